"""The texts of a node: its name as mathematics, its formula, its value in short, its line of code."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from ..graph import ConstantNode, GraphNode, Joint, Node, Write

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

MOST = 12  # a formula names at most so many operands

INFIX = {
    "add": "+", "sub": "−", "mul": "·", "div": "/", "floor_divide": "//", "mod": "mod", "matmul": "@",
    "greater": ">", "greater_equal": "≥", "less": "<", "less_equal": "≤", "equal": "=", "not_equal": "≠",
}  # fmt: skip
SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
PREFIX = {"neg": "−", "sqrt": "√"}
AUTOMATIC = re.compile(r"const_\d+")
LINE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*?)(?:: (?P<text>.*))?', re.DOTALL)


def as_mathematics(name: str) -> str:
    """A name as one writes it on paper: ``W_1`` with a subscript, ``alpha`` as a Greek letter; others as they are.

    Examples
    --------
    >>> [as_mathematics(name) for name in ("W_1", "alpha", "theta_ij", "learning_rate", "x_b")]
    ['W₁', 'α', 'θᵢⱼ', 'learning_rate', 'x_b']
    """
    match = WITH_SUBSCRIPT.fullmatch(name)
    if match:
        return GREEK.get(match[1], match[1]) + match[2].translate(SUBSCRIPTS)
    return GREEK.get(name, name)


def label_of(node: GraphNode) -> str:
    """The text on a node: its opname and its name; on a leaf its name alone."""
    if isinstance(node, (Joint, Write)):
        return node.opname
    return f"{node.opname}\n{as_mathematics(node.name)}" if node.opname else as_mathematics(node.name)


def formula_of(node: GraphNode, operands: tuple[GraphNode, ...]) -> str:
    """The formula of a node, in the names of its operands; an empty text for a leaf."""
    if isinstance(node, Write):
        return f"[…] = {_operand(operands[0])}"
    if node.opname is None:
        return ""
    operands = tuple([operand for operand in operands if not isinstance(operand, Write)])
    names = [_operand(operand) for operand in operands[:MOST]] + ["…"] * (len(operands) > MOST)
    name = node.opname
    if name == "pow" and len(names) == 2:
        whole = re.fullmatch(r"−?\d+", names[1])
        return names[0] + names[1].translate(SUPERSCRIPTS) if whole else f"{names[0]} ^ {names[1]}"
    if name in INFIX and len(names) == 2:
        return f"{names[0]} {INFIX[name]} {names[1]}"
    if name in PREFIX and len(names) == 1:
        return PREFIX[name] + names[0]
    if name == "getitem" and names:
        return f"{names[0]}[{', '.join(names[1:]) or '…'}]"
    told = [(key, value) for key, value in node.options.items() if isinstance(value, (int, float, str, tuple))]
    options = [f"{key}={value!r}" for key, value in told if isinstance(value, (int, float)) or len(value) <= 4 * MOST]
    return f"{name}({', '.join(names + options)})"


def _operand(node: GraphNode) -> str:
    """An operand in a formula: its name, or the number itself if it is a scalar constant that nobody named."""
    if isinstance(node, (Joint, Write)):
        return node.opname
    if isinstance(node, ConstantNode) and node.size == 1 and AUTOMATIC.fullmatch(node.name):
        return _number(node.value.reshape(())[()], 6)
    return as_mathematics(node.name)


def shown(value: Any, elements: int = 6, digits: int = 4) -> str:
    """An array as a short text: all of a small one, the corners of a large one.

    Examples
    --------
    >>> shown(np.pi), shown(np.arange(100.0))
    ('3.142', '[0 1 … 98 99]')
    """
    array = np.asarray(value)
    if not array.ndim:
        return _number(array[()], digits)
    if array.ndim == 1 or array.size <= elements:
        return _row(array, elements, digits)
    rows = [array[i] for i in (range(len(array)) if len(array) <= 3 else (0, 1, -1))]
    parts = [shown(row, max(elements - 2, 2), digits) for row in rows]
    if len(array) > 3:
        parts.insert(2, "…")
    return "[" + "\n ".join(parts) + "]"


def brief(value: Any) -> str:
    """An array in one line: of a large one the first element and the last.

    Examples
    --------
    >>> brief(0.25), brief([1.0, 2.0]), brief(np.ones((8, 4)))
    ('0.25', '[1 2]', '[1 … 1]')
    """
    array = np.asarray(value)
    return shown(array.ravel() if array.ndim > 1 else array, elements=3)


def _row(array: np.ndarray[Any, Any], elements: int, digits: int) -> str:
    if array.ndim > 1:
        return "[" + "\n ".join(_row(each, elements, digits) for each in array) + "]"
    if array.size <= elements:
        return "[" + " ".join(_number(each, digits) for each in array) + "]"
    half = 1 if elements < 4 else 2
    ends = [*array[:half], None, *array[-half:]]
    return "[" + " ".join("…" if each is None else _number(each, digits) for each in ends) + "]"


def _number(value: Any, digits: int) -> str:
    if value.dtype.kind in "fc":
        return f"{value:.{digits}g}".replace("-", "−")
    return str(value).replace("-", "−")


def place_of(line: str | None) -> str:
    """The file, without its folder, and the number of a line of code: ``model.py:12``."""
    match = LINE.fullmatch(line or "")
    return f"{os.path.basename(match['file'])}:{match['line']}" if match else ""


def code_of(line: str | None) -> str:
    """The text of a line of code."""
    match = LINE.fullmatch(line or "")
    return (match["text"] or "") if match else ""


def value_of(node: GraphNode) -> Any:
    """The value that is shown of a node: of a write what was written, of an operation with several outputs None."""
    if isinstance(node, Joint):
        return None
    if isinstance(node, Write):
        (stored,) = node.args
        return stored.value if isinstance(stored, Node) else stored
    return node.value
