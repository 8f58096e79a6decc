"""Names as mathematics, abbreviated values, lines of code."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..array_types import Array
from ..frames import assigned_name
from ..values import Value

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ",
    "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
# Unicode has subscripts for these characters only; a name with any other subscript stays as it is.
SUBSCRIPTS = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
WITH_SUBSCRIPT = re.compile(r"([^\W\d_]|" + "|".join(sorted(GREEK, key=len, reverse=True)) + r")_([0-9aehijklmnoprstuvx]+)")

LINE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*?)(?:: (?P<text>.*))?', re.DOTALL)


def typeset_name(name: str) -> str:
    """Typeset a name: ``W_1`` with a subscript, ``alpha`` as a Greek letter; return other names unchanged.

    Examples
    --------
    >>> [typeset_name(name) for name in ("W_1", "alpha", "theta_ij", "learning_rate", "x_b")]
    ['W₁', 'α', 'θᵢⱼ', 'learning_rate', 'x_b']
    """
    match = WITH_SUBSCRIPT.fullmatch(name)
    if match:
        return GREEK.get(match[1], match[1]) + match[2].translate(SUBSCRIPTS)
    return GREEK.get(name, name)


def chosen_name(node: Any) -> str | None:
    """Return the name that the user chose for a node; None if it has no name, or an automatic one such as ``mul_0``.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(1.0, "x")
    >>> chosen_name(x), chosen_name(cg.sin(x, name="y")), chosen_name(x * 2)
    ('x', 'y', None)
    """
    name: str | None = getattr(node, "_name", None)
    stem = node.kind if node.opname is None else node.opname
    return None if name is None or re.fullmatch(rf"{re.escape(stem)}_\d+", name) else name


def name_of(node: Value) -> str | None:
    """Return the name of a node in pictures: the chosen one or, for a leaf, that of the Python variable it was assigned to."""
    chosen = chosen_name(node)
    return chosen if chosen is not None or node.opname is not None else assigned_name(node.code, node.instruction)


def format_array(value: NDArray[Any], elements: int = 6, digits: int = 4) -> str:
    """Format an array: all of a small one, the corners of a large one.

    Examples
    --------
    >>> format_array(np.pi), format_array(np.arange(100.0))
    ('3.142', '[0 1 … 98 99]')
    """
    array = np.asarray(value)
    if not array.ndim:
        return format_number(array[()], digits)
    if array.ndim == 1 or array.size <= elements:
        return _row(array, elements, digits)
    rows = [array[i] for i in (range(len(array)) if len(array) <= 3 else (0, 1, -1))]
    parts = [format_array(row, max(elements - 2, 2), digits) for row in rows]
    if len(array) > 3:
        parts.insert(2, "…")
    return "[" + "\n ".join(parts) + "]"


def format_brief(value: ArrayLike) -> str:
    """Format an array in one line: of a large one the first element and the last.

    Examples
    --------
    >>> format_brief(0.25), format_brief([1.0, 2.0]), format_brief(np.ones((8, 4)))
    ('0.25', '[1 2]', '[1 … 1]')
    """
    array = np.asarray(value)
    return format_array(array.ravel() if array.ndim > 1 else array, elements=3)


def _row(array: np.ndarray[Any, Any], elements: int, digits: int) -> str:
    if array.ndim > 1:
        return "[" + "\n ".join(_row(each, elements, digits) for each in array) + "]"
    if array.size <= elements:
        return "[" + " ".join(format_number(each, digits) for each in array) + "]"
    half = 1 if elements < 4 else 2
    ends = [*array[:half], None, *array[-half:]]
    return "[" + " ".join("…" if each is None else format_number(each, digits) for each in ends) + "]"


def format_number(value: Array, digits: int) -> str:
    """Format a NumPy scalar."""
    if value.dtype.kind in "fc":
        return f"{value:.{digits}g}".replace("-", "−")
    return str(value).replace("-", "−")


def short_location(line: str | None) -> str:
    """Return the file name and the line number of a source line: ``model.py:12``."""
    match = LINE.fullmatch(line or "")
    return f"{os.path.basename(match['file'])}:{match['line']}" if match else ""


def source_text(line: str | None) -> str:
    """Return the code of a source line."""
    match = LINE.fullmatch(line or "")
    return (match["text"] or "") if match else ""
