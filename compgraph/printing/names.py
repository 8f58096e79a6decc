"""Valid Python names, Python literals, and names in LaTeX."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..graph import full_name
from ..storage import Write
from ..values import ConstantNode, Value
from ..view import GREEK

MAX_LITERAL_SIZE = 4  # a vector with at most this many elements is written as numbers; a larger array gets a name
MODULES = {"np": "numpy", "cg": "compgraph", "scipy": "scipy"}
_RESERVED = frozenset({*MODULES, *keyword.kwlist, *dir(builtins)})
_PYTHON_NUMBERS = (np.float64, np.complex128)
LETTER_WITH_SUBSCRIPT = re.compile(
    r"([A-Za-z]|" + "|".join(sorted(GREEK, key=len, reverse=True)) + r")_?([0-9]+|(?<=_)[A-Za-z0-9]{1,3})"
)


def is_automatic(node: Value) -> bool:
    """Whether a name is missing, or automatic: the opname, or the kind, and a number."""
    return node._name is None or bool(re.fullmatch(rf"{re.escape(node.opname or node.kind)}_\d+", node._name))


def is_number(node: NDArray[Any]) -> bool:
    """Whether a node is a scalar constant without a name chosen by the user."""
    return isinstance(node, ConstantNode) and node.ndim == 0 and is_automatic(node)


class Names:
    """The names of nodes and of other objects in a text.

    Attributes
    ----------
    bindings : dict
        The values of names in the text: modules, leaves, large arrays, functions without a public name.
    """

    def __init__(self, items: list[Any]) -> None:
        self.bindings: dict[str, Any] = {}
        self._names: dict[Any, str] = {}
        self._used_names = set(_RESERVED)
        self._arrays: dict[int, str] = {}
        self._count = 0
        for item in items:  # first the user's names, so that automatic names avoid them
            if isinstance(item, Value) and not is_number(item) and (item._name if not item.args else not is_automatic(item)):
                self._names[item] = self._unused_name(item.name)
        for item in items:
            if not isinstance(item, Write) and item not in self._names and not is_number(item):
                self._names[item] = self._numbered_name("v")

    def __contains__(self, item: object) -> bool:
        return item in self._names

    def __getitem__(self, item: object) -> str:
        return self._names[item]

    def define(self, item: object) -> str:
        """Return the name of an item, assigned in the constructor."""
        return self._names[item]

    def bind(self, value: Any, preferred: str) -> str:
        """Bind an object to a name, and return the name; an object has one name."""
        existing = next((name for name, other in self.bindings.items() if other is value), None)
        if existing is None:
            existing = self._unused_name(preferred)
            self.bindings[existing] = value
        return existing

    def bind_array(self, array: NDArray[Any]) -> str:
        """Bind an array to a name, and return the name: ``c0``, ``c1`` ..."""
        if id(array) not in self._arrays:
            name = self._arrays[id(array)] = self._numbered_name("c")
            self.bindings[name] = array
        return self._arrays[id(array)]

    def function(self, function: Callable[..., Any]) -> str:
        """Return the public name of a function, or a name bound to it."""
        for path in _candidate_paths(function):
            candidate = _resolve(path)
            if candidate is function or (candidate is not None and getattr(candidate, "function", None) is function):
                self.bind_module(path.partition(".")[0])
                return path
        name = getattr(function, "__name__", "")
        return self.bind(function, name if name.isidentifier() else "function")

    def object_at(self, path: str) -> Any:
        """Return the object to which a name returned by `function` refers, or None."""
        return self.bindings[path] if path in self.bindings else _resolve(path)

    def bind_module(self, name: str) -> None:
        """Bind the name of a module: ``np``, ``cg`` or ``scipy``."""
        self.bindings[name] = sys.modules[MODULES[name]]

    def literal(self, value: Any, as_python_number: bool = False) -> str:
        """Return a value as a Python literal; `as_python_number` permits Python numbers for NumPy's double precision."""
        if value is None or value is Ellipsis or type(value) in (bool, int, str, bytes):
            return "..." if value is Ellipsis else repr(value)
        if type(value) in (float, complex):
            return self._number(value)
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.literal, (value.start, value.stop, value.step)))})"
        if type(value) in (list, tuple, dict):
            return self._collection(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            if as_python_number and type(value) in _PYTHON_NUMBERS:
                return self._number(value.item())
            self.bind_module("np")
            return f"np.{value.__class__.__name__}({self._number(value.item())})"
        if isinstance(value, (np.dtype, type)):
            return self._type(value)
        return self._array(value) if isinstance(value, np.ndarray) else self.bind(value, "option")

    def index(self, index: object) -> str:
        """Return an index as it is written between brackets."""
        if isinstance(index, tuple) and index:
            return ", ".join(map(self.index, index)) + ("," if len(index) == 1 else "")
        if isinstance(index, slice):
            ends = ["" if end is None else self.index(end) for end in (index.start, index.stop)]
            return ":".join([*ends, self.index(index.step)] if index.step is not None else ends)
        if isinstance(index, Value):
            return self._names[index] if index in self else self.literal(index.raw_value)
        if isinstance(index, np.integer):
            return str(index)
        return self.literal(index)

    def _collection(self, value: Sequence[Any]) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.literal(k)}: {self.literal(v)}" for k, v in value.items()) + "}"
        inner = ", ".join(map(self.literal, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"

    def _number(self, value: complex) -> str:
        if isinstance(value, (float, complex)) and not np.isfinite(value):
            self.bind_module("np")
            if isinstance(value, complex):
                return f"complex({self._number(value.real)}, {self._number(value.imag)})"
            return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
        return repr(value)

    def _type(self, value: Any) -> str:
        if isinstance(value, np.dtype):
            self.bind_module("np")
            is_common = value.isbuiltin == 1 and value.isnative
            return f"np.{value.type.__name__}" if is_common else f"np.dtype({value.str!r})"
        name: str = value.__name__
        if getattr(np, name, None) is value:
            self.bind_module("np")
            return f"np.{name}"
        return name if getattr(builtins, name, None) is value else self.bind(value, name)

    def _array(self, value: NDArray[Any]) -> str:
        if type(value) is not np.ndarray or value.ndim > 1 or value.size > MAX_LITERAL_SIZE or value.dtype.kind not in "biufc":
            return self.bind_array(value)
        self.bind_module("np")
        dtype = "" if value.size and np.array(value.tolist()).dtype == value.dtype else f", dtype={value.dtype.str!r}"
        inner = [self._number(number) for number in np.atleast_1d(value).tolist()]
        return f"np.array({'[' + ', '.join(inner) + ']' if value.ndim else inner[0]}{dtype})"

    def _unused_name(self, preferred: str) -> str:
        name = re.sub(r"\W+", "_", preferred).strip("_") or "x"
        name = f"x_{name}" if not name.isidentifier() else name
        count, candidate = 1, f"{name}_" if name in _RESERVED else name
        while candidate in self._used_names:
            count += 1
            candidate = f"{name}_{count}"
        self._used_names.add(candidate)
        return candidate

    def _numbered_name(self, letter: str) -> str:
        while f"{letter}{self._count}" in self._used_names:
            self._count += 1
        return self._unused_name(f"{letter}{self._count}")


def _candidate_paths(function: Callable[..., Any]) -> list[str]:
    """Return the possible public paths of a function: ``np.linalg.norm``, ``cg.relu``."""
    if isinstance(function, np.ufunc):
        return [f"np.{function.__name__}", f"scipy.special.{function.__name__}"]
    public_name = ops.PUBLIC_NAMES.get(function)
    name = getattr(function, "__name__", "")
    paths = [public_name] if public_name else []
    if getattr(function, "__module__", None):
        paths.append(full_name(function))
    return [*paths, f"np.{name}", f"cg.{name}", f"np.emath.{name}"]


def _resolve(path: str) -> Any:
    """Return the object under a dotted name, or None."""
    first, *rest = path.split(".")
    value = sys.modules.get(MODULES.get(first, ""))
    for part in rest:
        value = getattr(value, part, None)
    return value


def latex_name(text: str) -> str:
    r"""Return a name in LaTeX: ``W_1`` with a subscript, ``alpha`` as a Greek letter, words upright.

    Examples
    --------
    >>> [latex_name(text) for text in ("x", "W_1", "theta_ij", "loss", "learning_rate")]
    ['x', 'W_{1}', '\\theta_{ij}', '\\mathrm{loss}', '\\mathrm{learning\\_rate}']
    """
    if text.endswith("'") and len(text) > 1:
        return f"{latex_name(text[:-1])}'"
    match = LETTER_WITH_SUBSCRIPT.fullmatch(text)
    if match:
        return f"{latex_name(match[1])}_{{{match[2]}}}"
    if text in GREEK or (len(text) == 1 and text.isalpha()):
        return f"\\{text}" if text in GREEK else text
    return f"\\mathrm{{{escape_latex(text)}}}"


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX."""
    return re.sub(r"([_#%&$])", r"\\\1", re.sub(r"[\\^~{}\n]", " ", text))
