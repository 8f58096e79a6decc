"""SciPy's own code in Python, run on nodes, with names of NumPy's that keep the graph.

Much of SciPy is Python over NumPy, and nodes would pass all of it but for ``np.asarray``, ``np.zeros`` and kin, which ask no
array, and which nearly every function of SciPy's begins with. `own_code` gives a function of the same code that finds, under the
names of its module, ours in place of these. Functions of SciPy's private modules that it calls are run in the same way where a
node is among their arguments, and as they are where none is; public ones answer for nodes themselves, or refuse.

Nothing of SciPy is changed by it. What cannot be followed there is as loud as in a user's own code, nodes being hollow.
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
from ..graph import Node, Promotable, gathered, promotable
from ..interception import holds_node, original_of


def _asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None) -> Any:
    if isinstance(a, Promotable) and not copy and (dtype is None or a.dtype == dtype):
        return a  # a node may yet be written into it
    return arrays.asarray(a, dtype, order, copy=copy)


def _array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0) -> Any:
    if not carries_node(object):
        return _fresh(np.array)(object, dtype, copy=copy, order=order, ndmin=ndmin)
    return arrays.array(object, dtype, copy=copy, order=order, ndmin=ndmin)


def _fresh(make: Callable[..., Any]) -> Callable[..., Any]:
    """A plain array, into which nodes can be written."""

    def made(*args: Any, **kwargs: Any) -> Any:
        found = make(*args, **kwargs)
        return promotable(found) if found.__class__ is np.ndarray and found.dtype.kind in "fc" else found

    return made


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    return (
        arrays.full(shape, fill_value, dtype, order) if holds_node(fill_value) else _plain_full(shape, fill_value, dtype, order)
    )


_plain_full = _fresh(np.full)


def _gathering(function: Any) -> Callable[..., Any]:
    return lambda *args: function(*map(gathered, args))


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
    "isscalar": lambda x: (isinstance(x, Node) and x.ndim == 0) or np.isscalar(x),
    "r_": arrays.r_,
    "c_": arrays.c_,
}


class _Taking(type):
    """A type of Python's numbers that gives a node back, where it would take its number."""

    number: type

    def __call__(cls, x: Any = 0, *more: Any) -> Any:
        if not isinstance(x, Node) or x.ndim:
            return cls.number(x, *more)
        return int(np.trunc(x)) if cls.number is int else x  # a count does not change with small changes of the number

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.number)


class _Float(metaclass=_Taking):
    number = float
    dtype = np.dtype(float)  # what NumPy asks where a type stands for a dtype


class _Int(metaclass=_Taking):
    number = int
    dtype = np.dtype(int)


class _Complex(metaclass=_Taking):
    number = complex
    dtype = np.dtype(complex)


class _Keeping(ModuleType):
    """NumPy, with names that keep the graph."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


KEEPING = _Keeping("numpy")
vars(KEEPING).update(_OURS)

_BY_NAME: dict[str, Any] = {  # what SciPy asks of arrays of other libraries
    "array_namespace": lambda *args, **kwargs: KEEPING,
    "_namespace": lambda xp: KEEPING,
    "is_numpy": lambda xp: True,
}
_spaces: dict[int, dict[str, Any]] = {}  # by the identity of a module's names, which live as long as SciPy


_standing_in: dict[str, ModuleType] = {}  # for modules in C


def stand_in(name: str, module: ModuleType) -> None:
    """Let a module stand in for one of SciPy's in C, where code of SciPy's is run on nodes."""
    _standing_in[name] = module


def own_code(module: str, *names: str) -> Mapping[str, Callable[..., Any]]:
    """For a policy: functions of a module of SciPy's, methods, and the making of what classes are of, run in their own code."""
    return {name: functools.partial(_run, module, name) for name in names}


def _run(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    original, ours = _both(module, name)
    return (ours if any(map(carries_node, (*args, *kwargs.values()))) else original)(*args, **kwargs)


@functools.cache
def _both(module: str, name: str) -> tuple[Any, Any]:
    """A function as it is, and hosted."""
    found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    original = original_of(found.__dict__["__init__"] if inspect.isclass(found) else found)
    return original, hosted(original)


def carries_node(value: Any) -> bool:
    """Whether a value is, has in it, or, being an object of SciPy's, is made of nodes."""
    if holds_node(value):
        return True
    made_of = getattr(value, "__dict__", None) if type(value).__module__.startswith("scipy.") else None
    return made_of is not None and any(map(holds_node, made_of.values()))


def hosted(function: FunctionType) -> Any:
    """A function of the same code, to which the names of its module mean what keeps the graph."""
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
    """The names of a module, with what they mean to nodes."""
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
    if isinstance(value, FunctionType) and value.__module__.startswith("scipy.") and not _is_public(value):
        return _where_nodes_are(value)
    return value


def _is_public(function: FunctionType) -> bool:
    """Whether a function is asked as users ask it: it answers for nodes, or it has nothing to do with them."""
    module = sys.modules[".".join(function.__module__.split(".")[:2])]
    return getattr(module, function.__name__, None) is function


def _module(module: ModuleType) -> Any:
    if module is np or module.__name__ == "scipy._lib.array_api_compat.numpy":
        return KEEPING
    if module.__name__ in _standing_in:
        return _standing_in[module.__name__]
    if module is math or module is cmath:
        return _Math(module)
    if module.__name__.startswith("scipy.") and "._" in module.__name__:
        return _Private(module)
    return module


class _Math(ModuleType):
    """Python's functions of numbers, which take the number of a node; for these NumPy's."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        plain, ours = getattr(self._module, name), getattr(np, name, None)
        if not callable(plain) or not isinstance(ours, np.ufunc):
            return plain
        return lambda *args: ours(*args) if any(isinstance(a, Node) for a in args) else plain(*args)


class _Private(ModuleType):
    """A private module of SciPy's, whose functions are run in their own code where a node is among the arguments."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _meaning(name, getattr(self._module, name))


def _where_nodes_are(function: FunctionType) -> Any:
    """A function as it is where no node is among its arguments, and hosted where one is."""
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
