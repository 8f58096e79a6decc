"""The texts of a step: its label, title, index and formula; names as mathematics, abbreviated values, lines of code."""

from __future__ import annotations

import os
import re
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from ..array_types import Array
from ..frames import assigned_name
from ..storage import Write
from ..values import ConstantNode, MultiOutput, Value
from .write_history import Item, Steps, ViewAfterWrite, part_of, value_at_creation

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


def chosen_name(node: Value) -> str | None:
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


TYPOGRAPHY = {"-": "−", "*": "·", "%": "mod", "**": "^", ">=": "≥", "<=": "≤", "==": "=", "!=": "≠"}
BITWISE = frozenset({"&", "|", "^", "<<", ">>", "~"})  # drawn as names
INFIX, PREFIX = (
    {ops.opname_of(function): TYPOGRAPHY.get(symbol, symbol) for function, symbol in symbols.items() if symbol not in BITWISE}
    for symbols in (ops.INFIX, ops.PREFIX)
)
PREFIX["sqrt"] = "√"
SYMBOLS = {
    opname: symbol.replace("·", "×") for opname, symbol in {**INFIX, **PREFIX}.items()
}  # a dot alone in a box is too small
# Precedence of operators, by symbol: an operand of lower precedence is written in parentheses.
INFIX_PRECEDENCE = {"+": 2, "−": 2, "·": 3, "/": 3, "//": 3, "mod": 3, "@": 3, "^": 5}
PREFIX_PRECEDENCE = 4
SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

MAX_OPERANDS = 12  # of a formula
MAX_DEPTH = 2  # nested operations without a name that a formula writes out
MAX_INDEX_TEXT = 24  # characters of an index
UNKNOWN = "…"
MAX_SPELLED_OUT = 3  # elements of a constant that is written out


class Labels:
    """Writes the texts of the steps behind a result."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def label(self, item: Item) -> str:
        """Return the text on a step: symbol and user-chosen name of an operation, name or number of a leaf."""
        if isinstance(item, Write):
            return f"{self._written_element(item)} ="
        if isinstance(item, MultiOutput):
            return SYMBOLS.get(item.opname, item.opname)
        node = item.view if isinstance(item, ViewAfterWrite) else item
        if node.opname is None:
            return self._leaf(node)
        symbol = f"[{index_text(_index(node))}]" if node.function is ops.getitem else SYMBOLS.get(node.opname, node.opname)
        name = chosen_name(node)
        return f"{symbol}\n{typeset_name(name)}" if name else symbol

    def is_symbol(self, item: Item) -> bool:
        """Whether the first line of the label is a symbol."""
        return not isinstance(item, Write) and item.opname in SYMBOLS

    def title(self, item: Item) -> str:
        """Return the step in one line: its name, or else its formula."""
        if isinstance(item, (MultiOutput, Write)):
            return self.label(item)
        node = item.view if isinstance(item, ViewAfterWrite) else item
        if node.opname is None:
            return self._leaf(node)
        name = chosen_name(node)
        return typeset_name(name) if name else self.formula(item)

    def formula(self, item: Item, depth: int = MAX_DEPTH) -> str:
        """Return the formula of a step, in the names of its operands; empty for a leaf."""
        if item.opname is None:
            return ""
        uses = self._steps.uses.get(item, ())
        if isinstance(item, Write):
            return f"{self._written_element(item)} = {self._operand(uses[-1], depth - 1)}"
        node = item.view if isinstance(item, ViewAfterWrite) else item
        opname = item.opname
        if node.function is ops.getitem:
            return f"{self._operand(uses[0], depth - 1, min_precedence=6)}[{index_text(_index(node))}]"
        if opname in INFIX and len(uses) == 2:
            return self._infix(opname, uses, depth)
        if opname in PREFIX and len(uses) == 1:
            return PREFIX[opname] + self._operand(uses[0], depth - 1, min_precedence=PREFIX_PRECEDENCE)
        names = [self._operand(each, depth - 1) for each in uses[:MAX_OPERANDS]] + ["…"] * (len(uses) > MAX_OPERANDS)
        options = getattr(node, "options", {})
        plain = [(key, value) for key, value in options.items() if isinstance(value, (int, float, str, tuple))]
        texts = [f"{key}={value!r}" for key, value in plain if isinstance(value, (int, float)) or len(value) <= 4 * MAX_OPERANDS]
        return f"{opname}({', '.join(names + texts)})"

    def _infix(self, opname: str, uses: tuple[Item, ...], depth: int) -> str:
        symbol, binding = INFIX[opname], _precedence(opname)
        left = self._operand(uses[0], depth - 1, min_precedence=binding + (symbol == "^"))
        right = self._operand(uses[1], depth - 1, min_precedence=binding + (symbol not in ("+", "·")))
        if symbol == "^" and re.fullmatch(r"−?\d+", right):
            return left + right.translate(SUPERSCRIPTS)
        return f"{left} {symbol} {right}"

    def _operand(self, item: Item, depth: int, min_precedence: int = 0) -> str:
        """Return an operand in a formula: its name, its number, or else its own formula."""
        if isinstance(item, Write):
            return self._root_name(item) or "[…]"
        if isinstance(item, MultiOutput):
            return item.opname
        node = item.view if isinstance(item, ViewAfterWrite) else item
        if node.opname is None:
            return self._leaf(node, digits=6)
        name = chosen_name(node)
        if name is not None:
            return typeset_name(name)
        if depth <= 0:
            return "(…)" if node.opname in SYMBOLS else f"{node.opname}(…)"
        text = self.formula(item, depth)
        return f"({text})" if _precedence(node.opname) < min_precedence else text

    def _leaf(self, node: Value, digits: int = 4) -> str:
        """Return the name of a leaf. A constant without a name is written as its number, or as its shape if it is large."""
        is_constant = isinstance(node, ConstantNode)
        name = chosen_name(node) if is_constant else name_of(node)
        if name is None and (is_constant or is_array_to_fill(node)):
            value = value_at_creation(node)
            if not value.ndim:
                return format_number(value[()], digits)
            return format_brief(value) if value.size <= MAX_SPELLED_OUT else str(value.shape)
        return typeset_name(node.name if name is None else name)

    def _written_element(self, write: Write) -> str:
        """Return the written part of an array, as ``y[0]``."""
        root: Any = self._steps.root(write)
        return f"{self._root_name(write)}[{element_text(root.raw_value, write.window, write.index)}]"

    def _root_name(self, write: Write) -> str:
        return typeset_name(name_of(self._steps.root(write)) or "")


def _precedence(opname: str) -> int:
    """The precedence of an operation in a formula: of its symbol, or that of a call."""
    if opname in PREFIX:
        return PREFIX_PRECEDENCE
    return INFIX_PRECEDENCE.get(INFIX[opname], 1) if opname in INFIX else 6


def _index(node: Any) -> Any:
    """Return the index of a `getitem`; its parts may be separate arguments."""
    return node.args[1] if len(node.args) == 2 else tuple(node.args[1:])


def index_text(index: object) -> str:
    """Format an index, without its brackets.

    Examples
    --------
    >>> index_text((0, slice(1, None), None, ...)), index_text([True, False])
    ('0, 1:, None, …', 'mask')
    """
    text = ", ".join(map(_part_text, index if isinstance(index, tuple) else (index,)))
    return text if len(text) <= MAX_INDEX_TEXT else UNKNOWN


def _part_text(part: object) -> str:
    if isinstance(part, slice):
        start, stop, step = ("" if each is None else _part_text(each) for each in (part.start, part.stop, part.step))
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    if part is None or isinstance(part, EllipsisType):
        return UNKNOWN if part is ... else "None"
    if isinstance(part, Value):
        return typeset_name(chosen_name(part) or UNKNOWN)
    array = np.asarray(part)
    if array.dtype.kind == "b":
        return "mask"
    return format_brief(array) if array.ndim else str(array[()]).replace("-", "−")


def element_text(array: np.ndarray[Any, Any], window: np.ndarray[Any, Any], index: object) -> str:
    """Return the index of ``window[index]`` in `array`, where `window` is `array` or a view of it.

    Examples
    --------
    >>> a = np.zeros((4, 5))
    >>> element_text(a, a[1:, 2], 0), element_text(a, a[::2], slice(None))
    ('1, 2', '::2')
    """
    if _layout(window) == _layout(array):
        return index_text(index)
    part = part_of(window, index)
    return UNKNOWN if part is None or part.dtype != array.dtype else _region(array, part)


def _layout(array: np.ndarray[Any, Any]) -> Any:
    return array.ctypes.data, array.shape, array.strides, array.dtype


def _region(array: np.ndarray[Any, Any], part: np.ndarray[Any, Any]) -> str:
    """Return the elements of an array that a view consists of, as an index."""
    offset = part.ctypes.data - array.ctypes.data
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    if offset < 0 or any(stride <= 0 for stride in array.strides):
        return UNKNOWN
    starts, texts = {}, {}
    for axis in order:
        starts[axis], offset = divmod(offset, array.strides[axis])
        texts[axis] = str(starts[axis])
    strides_and_lengths = [(stride, n) for stride, n in zip(part.strides, part.shape, strict=True) if n > 1]
    for stride, n in strides_and_lengths:
        candidates = [a for a in order if stride % array.strides[a] == 0 and array.shape[a] > 1]
        if not candidates:
            return UNKNOWN
        axis = candidates[0]
        step = stride // array.strides[axis]
        if not 0 <= starts[axis] + step * (n - 1) < array.shape[axis] or ":" in texts[axis]:
            return UNKNOWN
        texts[axis] = _slice_text(starts[axis], step, n, array.shape[axis])
    index_texts = [texts[axis] for axis in range(array.ndim)]
    while len(index_texts) > 1 and index_texts[-1] == ":":
        index_texts.pop()
    return UNKNOWN if offset else ", ".join(index_texts)


def _slice_text(start: int, step: int, count: int, length: int) -> str:
    stop = start + step * count
    first = "" if start == (0 if step > 0 else length - 1) else str(start)
    last = "" if stop < 0 or stop >= length else str(stop)
    return f"{first}:{last}" if step == 1 else f"{first}:{last}:{str(step).replace('-', '−')}"


def is_array_to_fill(node: Value) -> bool:
    """Whether a node is an array of plain numbers that was made for writing."""
    return node.function is None and node.kind == "buffer"


NUMBERS = re.compile(r"\d+")


def merge_labels(labels: list[str]) -> str:
    """Merge the labels of equal steps: those of the first and the last, if they differ.

    Examples
    --------
    >>> merge_labels(["y[1] =", "y[2] =", "y[3] ="]), merge_labels(["W₁", "W₂"]), merge_labels(["sin", "sin"])
    ('y[1 … 3] =', 'W₁ … W₂', 'sin')
    """
    first, last = labels[0], labels[-1]
    if first == last:
        return first if len(set(labels)) == 1 else f"{first} … {last}"
    between, others = NUMBERS.split(first), NUMBERS.split(last)
    if between == others and "[" in first:
        pairs = zip(NUMBERS.findall(first), NUMBERS.findall(last), strict=True)
        numbers = [one if one == other else f"{one} … {other}" for one, other in pairs] + [""]
        return "".join(text + each for text, each in zip(between, numbers, strict=True))
    return f"{first} … {last}"
