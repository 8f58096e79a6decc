"""SciPy's own Python code, run on nodes, with NumPy's names exchanged for functions that keep the graph.

Much of SciPy is Python over NumPy, and nodes would pass through it but for ``np.asarray``, ``np.zeros`` and the like, which do
not ask nodes, and with which nearly every function begins. `own_code` runs a function with the same code and other globals, in
which these names mean functions of ours (such a function is called hosted). The functions of private modules that it calls are
hosted too if a node is among their arguments, else run as they are; public ones have handlers of their own, or refuse.

SciPy itself is not changed. Code that takes the numbers of a node raises here as in a user's function, since values are tracers.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .. import arrays
from ..bind import to_concrete
from ..graph import stack_nested
from ..interception import holds_node, original_of
from ..tracing import is_tracing
from ..values import TRACEABLE, Value, as_buffer, unwrap_buffer


def _asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None) -> Any:
    if type(a) in TRACEABLE and not copy and (dtype is None or a.dtype == dtype):
        return a  # a node may yet be written into it
    return arrays.asarray(a, dtype, order, copy=copy)


def _array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0) -> Any:
    if not carries_node(object):
        return _fresh(np.array)(object, dtype, copy=copy, order=order, ndmin=ndmin)
    return arrays.array(object, dtype, copy=copy, order=order, ndmin=ndmin)


def _fresh(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `make` and returns its array promotable, so that nodes can be written into it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        found = make(*args, **kwargs)
        return as_buffer(found) if type(found) is np.ndarray and found.dtype.kind in "fc" else found

    return made


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    return (
        arrays.full(shape, fill_value, dtype, order) if holds_node(fill_value) else _plain_full(shape, fill_value, dtype, order)
    )


_plain_full = _fresh(np.full)


def _gathering(function: Any) -> Callable[..., Any]:
    return lambda *args: function(*map(stack_nested, args))


_OURS: dict[str, Any] = {
    "array": _array,
    "asarray": _asarray,
    "asanyarray": _asarray,
    "ascontiguousarray": _asarray,
    "asarray_chkfinite": _asarray,
    "atleast_1d": _gathering(np.atleast_1d),
    "atleast_2d": _gathering(np.atleast_2d),
    "astype": lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy),
    "zeros": _fresh(np.zeros),
    "ones": _fresh(np.ones),
    "empty": _fresh(np.empty),
    "full": _full,
    "isscalar": lambda x: (isinstance(x, Value) and x.ndim == 0) or np.isscalar(x),
    "r_": arrays.r_,
    "c_": arrays.c_,
}


class _Taking(type):
    """A stand-in for ``float``, ``int`` or ``complex`` that returns a scalar node as a node, instead of taking its number."""

    number: type

    def __call__(cls, x: Any = 0, *more: Any) -> Any:
        if not isinstance(x, Value) or x.ndim:
            return cls.number(x, *more)
        return int(np.trunc(x)) if cls.number is int else x  # int() is piecewise constant

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.number)


class _Float(metaclass=_Taking):
    number = float
    dtype = np.dtype(float)  # NumPy reads this attribute where the class is given as a dtype


class _Int(metaclass=_Taking):
    number = int
    dtype = np.dtype(int)


class _Complex(metaclass=_Taking):
    number = complex
    dtype = np.dtype(complex)


class _Keeping(ModuleType):
    """A module with NumPy's names, some of which mean functions that keep the graph."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


KEEPING = _Keeping("numpy")
vars(KEEPING).update(_OURS)
NUMPY = KEEPING


class _At:
    """``xpx.at(x, index).set(y)``, by which SciPy writes into arrays of any library: here a write in place."""

    def __init__(self, x: Any, index: Any = ...) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.x, index)

    def set(self, y: Any, copy: bool | None = None, xp: Any = None) -> Any:
        x = np.copy(self.x) if copy or (copy is None and not self.x.flags.writeable) else self.x
        x[self.index] = y
        return x

    def add(self, y: Any, copy: bool | None = None, xp: Any = None) -> Any:
        return self.set(self.x[self.index] + y, copy)

    def subtract(self, y: Any, copy: bool | None = None, xp: Any = None) -> Any:
        return self.set(self.x[self.index] - y, copy)

    def multiply(self, y: Any, copy: bool | None = None, xp: Any = None) -> Any:
        return self.set(self.x[self.index] * y, copy)

    def divide(self, y: Any, copy: bool | None = None, xp: Any = None) -> Any:
        return self.set(self.x[self.index] / y, copy)


_BY_NAME: dict[str, Any] = {  # by these SciPy asks which library an array belongs to: a node counts as NumPy's
    "array_namespace": lambda *args, **kwargs: KEEPING,
    "_namespace": lambda xp: KEEPING,
    "is_numpy": lambda xp: True,
    "at": _At,
}
_spaces: dict[int, dict[str, Any]] = {}  # by the id of a module's globals, which live as long as SciPy


_standing_in: dict[str, ModuleType] = {}  # by the name of a module in C: what hosted code sees in its place


def stand_in(name: str, module: ModuleType) -> None:
    """Let hosted code see `module` in place of a module of SciPy that is written in C."""
    _standing_in[name] = module


def replace_functions(functions: Mapping[str, Any]) -> None:
    """Bind private functions of SciPy's to other ones in rebound code: those that are compiled, or have no right derivative.

    Parameters
    ----------
    functions : mapping
        By the name under which SciPy's modules import the function.
    """
    _BY_NAME.update(functions)


def own_code(module: str, *names: str) -> Mapping[str, Callable[..., Any]]:
    """For `instead` of a policy: by name, functions that run those of a module, hosted where a node is among the arguments.

    A name may be that of a function, of a class (its ``__init__`` is run) or of a method (``"Class.method"``).
    """
    return {name: functools.partial(_run, module, name) for name in names}


def _run(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    original, ours = _both(module, name)
    if not any(map(carries_node, (*args, *kwargs.values()))):
        return original(*args, **kwargs)
    return _concrete(ours(*args, **kwargs))


def _concrete(result: Any) -> Any:
    """A result for the caller: at the top level nodes in place of tracers, and arrays in place of buffers."""
    if is_tracing():
        return result
    if isinstance(result, (tuple, list)):
        parts = map(_concrete, result)
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return to_concrete(result) if isinstance(result, Value) else unwrap_buffer(result)


@functools.cache
def _both(module: str, name: str) -> tuple[Any, Any]:
    """A function as it is, and hosted."""
    found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    original = original_of(found.__dict__["__init__"] if inspect.isclass(found) else found)
    return original, hosted(original)


def carries_node(value: Any) -> bool:
    """Whether a value is a node, holds one, or is an object of SciPy with an attribute that does."""
    if holds_node(value):
        return True
    made_of = getattr(value, "__dict__", None) if type(value).__module__.startswith("scipy.") else None
    return made_of is not None and any(map(holds_node, made_of.values()))


def hosted(function: FunctionType) -> Any:
    """A function with the same code, whose globals and closure mean functions that keep the graph."""
    code = function.__code__
    closure = None if function.__closure__ is None else tuple([_cell(cell) for cell in function.__closure__])
    made = FunctionType(code, _space(function.__globals__), function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _cell(cell: CellType) -> CellType:
    try:
        return CellType(_meaning("", cell.cell_contents))
    except ValueError:  # still empty
        return cell


def _space(names: dict[str, Any]) -> dict[str, Any]:
    """The globals of a module as hosted code sees them."""
    known = _spaces.get(id(names))
    if known is None:
        known = _spaces[id(names)] = {"float": _Float, "complex": _Complex, "int": _Int, **names}
        known.update({name: _meaning(name, value) for name, value in names.items() if not name.startswith("__")})
    return known


def _meaning(name: str, value: Any) -> Any:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if getattr(value, "__module__", None) == "numpy" and getattr(value, "__name__", None) in _OURS:
        return _OURS[value.__name__]
    if value is np.r_ or value is np.c_:
        return arrays.r_ if value is np.r_ else arrays.c_
    if isinstance(value, ModuleType):
        return _module(value)
    module = getattr(value, "__module__", None)
    if isinstance(module, str) and module in _standing_in and name in vars(_standing_in[module]):
        return vars(_standing_in[module])[name]
    if isinstance(value, FunctionType) and value.__module__.startswith("scipy.") and not _is_public(value):
        return _where_nodes_are(value)
    return value


def _is_public(function: FunctionType) -> bool:
    """Whether a function is one that users call: its policy says what is done for nodes, so it is not hosted."""
    module = sys.modules[".".join(function.__module__.split(".")[:2])]
    return getattr(module, function.__name__, None) is function


def _module(module: ModuleType) -> Any:
    if module is np or module.__name__.endswith("array_api_compat.numpy"):
        return KEEPING
    if module.__name__ in _standing_in:
        return _standing_in[module.__name__]
    if module is math or module is cmath:
        return _Math(module)
    if module.__name__.startswith("scipy.") and "._" in module.__name__:
        return _Private(module)
    return module


class _Math(ModuleType):
    """`math` or `cmath`, whose functions would take the number of a node: for nodes NumPy's ufunc of the same name runs."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        plain, ours = getattr(self._module, name), getattr(np, name, None)
        if not callable(plain) or not isinstance(ours, np.ufunc):
            return plain
        return lambda *args: ours(*args) if any(isinstance(a, Value) for a in args) else plain(*args)


class _Private(ModuleType):
    """A private module of SciPy, whose functions are hosted where a node is among their arguments."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _meaning(name, getattr(self._module, name))


def _where_nodes_are(function: FunctionType) -> Any:
    """A function that runs hosted where a node is among the arguments, and as it is where none is."""
    run = functools.cache(lambda: hosted(function))

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        if function.__name__ == "_get_output" or any(map(carries_node, (*args, *kwargs.values()))):
            return run()(*args, **kwargs)
        if any(value is KEEPING for value in (*args, *kwargs.values())):
            args = tuple([np if value is KEEPING else value for value in args])
            kwargs = {name: np if value is KEEPING else value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return either
