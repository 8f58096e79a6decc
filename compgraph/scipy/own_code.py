"""Run SciPy's own Python code on tracers.

Much of SciPy is Python over NumPy. Nodes would pass through it, except that ``np.asarray``, ``np.zeros`` and similar functions,
with which nearly every function begins, do not dispatch. `rebind` returns a function with the same code whose globals bind
these names to functions that keep the graph. Functions of private modules that it calls are rebound as well if a node is
among their arguments. Public functions have handlers. A method runs on a view of its object, whose class has rebound methods
(`rebind_class`).

SciPy itself is not changed. Code that converts a traced value to a number raises, as it does in a user's function.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from .. import arrays
from ..bind import to_concrete
from ..graph import stack_nested
from ..interception import argument_has_node, unpatched
from ..tracing import is_tracing
from ..values import TRACEABLE, Value, as_buffer, unwrap_buffer

Function = Callable[..., Any]
Shape = SupportsIndex | tuple[SupportsIndex, ...]

# -------------------------------------------------------------------------------------------- NumPy in rebound code


def _asarray(
    a: Any, dtype: DTypeLike | None = None, order: object = None, *, device: object = None, copy: bool | None = None
) -> Any:
    if type(a) in TRACEABLE and not copy and (dtype is None or a.dtype == dtype):
        return a  # the same object, because a node may be written into it later
    return arrays.asarray(a, dtype, order, copy=copy)


def _array(
    object: object, dtype: DTypeLike | None = None, *, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0
) -> Any:
    if not contains_node(object):
        return _traceable(np.array)(object, dtype, copy=copy, order=order, ndmin=ndmin)
    return arrays.array(object, dtype, copy=copy, order=order, ndmin=ndmin)


def _traceable(constructor: Function) -> Function:
    """Return `constructor` with its result as a buffer into which nodes can be written."""

    def construct(*args: object, **kwargs: object) -> Any:
        array = constructor(*args, **kwargs)
        return as_buffer(array) if type(array) is np.ndarray and array.dtype.kind in "fc" else array

    return construct


_plain_full = _traceable(np.full)


def _full(shape: Shape, fill_value: object, dtype: DTypeLike | None = None, order: Any = "C", *, device: object = None) -> Any:
    return (arrays.full if argument_has_node(fill_value) else _plain_full)(shape, fill_value, dtype, order)


def _like_constructor(constructor: Function) -> Function:
    construct = _traceable(constructor)
    return lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: construct(
        np.shape(a) if shape is None else shape, stack_nested(a).dtype if dtype is None else dtype
    )


def _stack_arguments(function: Function) -> Function:
    return lambda *args: function(*map(stack_nested, args))


def _place(arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``, by a single write to the whole array if possible, so that batches of `vmap` are processed together."""
    if np.all(mask) and np.size(vals) == np.size(arr):
        arr[...] = np.reshape(vals, np.shape(arr))
    elif np.any(mask):
        np.place(arr, mask, vals)


def _putmask(a: Any, mask: Any, values: Any) -> None:
    if np.any(mask):
        np.putmask(a, mask, values)


_FUNCTIONS: dict[str, Any] = {
    "array": _array,
    "asarray": _asarray,
    "asanyarray": _asarray,
    "ascontiguousarray": _asarray,
    "asarray_chkfinite": _asarray,
    "atleast_1d": _stack_arguments(np.atleast_1d),
    "atleast_2d": _stack_arguments(np.atleast_2d),
    "astype": lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy),
    "zeros": _traceable(np.zeros),
    "ones": _traceable(np.ones),
    "empty": _traceable(np.empty),
    "full": _full,
    "zeros_like": _like_constructor(np.zeros),
    "ones_like": _like_constructor(np.ones),
    "empty_like": _like_constructor(np.empty),
    "full_like": lambda a, fill_value, dtype=None, **options: _full(
        np.shape(a), fill_value, stack_nested(a).dtype if dtype is None else dtype
    ),
    "isscalar": lambda x: (isinstance(x, Value) and x.ndim == 0) or np.isscalar(x),
    "place": _place,
    "putmask": _putmask,
    "r_": arrays.r_,
    "c_": arrays.c_,
}


class _NumPy(ModuleType):
    """NumPy in rebound code: some functions are replaced by ones that keep the graph."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


NUMPY = _NumPy("numpy")
vars(NUMPY).update(_FUNCTIONS)


class _Number(type):
    """The metaclass of replacements of ``float``, ``int`` and ``complex``.

    ``float`` and ``complex`` return a scalar node unchanged; ``int`` truncates its value.
    """

    number: type

    def __call__(cls, x: object = 0, *more: object) -> Any:
        if not isinstance(x, Value) or x.ndim:
            return cls.number(x, *more)
        return int(np.trunc(x)) if cls.number is int else x  # int() is piecewise constant

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.number)


class _Float(metaclass=_Number):
    number = float
    dtype = np.dtype(float)  # NumPy reads this attribute of a class that is passed as a dtype


class _Int(metaclass=_Number):
    number = int
    dtype = np.dtype(int)


class _Complex(metaclass=_Number):
    number = complex
    dtype = np.dtype(complex)


class _IndexedWriter:
    """``xpx.at(x, index).set(y)``, SciPy's write into arrays of any library: here a write in place."""

    def __init__(self, x: Any, index: Any = ...) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: object) -> _IndexedWriter:
        return _IndexedWriter(self.x, index)

    def set(self, y: Any, copy: bool | None = None, xp: object = None) -> Any:
        is_mask = getattr(self.index, "dtype", type(self.index)) in (bool, np.bool_)
        if is_mask and isinstance(self.x, Value) and np.ndim(y) == 0:
            return np.where(self.index, y, self.x)  # for batches of `vmap`, which have no writes by a mask
        x = np.copy(self.x) if copy or (copy is None and not self.x.flags.writeable) else self.x
        x[self.index] = y
        return x

    def add(self, y: Any, copy: bool | None = None, xp: object = None) -> Any:
        return self.set(self.x[self.index] + y, copy)

    def subtract(self, y: Any, copy: bool | None = None, xp: object = None) -> Any:
        return self.set(self.x[self.index] - y, copy)

    def multiply(self, y: Any, copy: bool | None = None, xp: object = None) -> Any:
        return self.set(self.x[self.index] * y, copy)

    def divide(self, y: Any, copy: bool | None = None, xp: object = None) -> Any:
        return self.set(self.x[self.index] / y, copy)


def _apply_where(
    cond: Any, args: object, f1: Function, f2: Function | None = None, /, *, fill_value: float | None = None,
    kwargs: Mapping[str, Any] | None = None, xp: object = None,
) -> Any:  # fmt: skip
    """``xpx.apply_where`` by selection instead of writes; functions are not called on empty arrays."""
    names = [] if kwargs is None else list(kwargs)
    operands = [*(args if isinstance(args, tuple) else (args,)), *[kwargs[name] for name in names if kwargs is not None]]
    cond, *operands = np.broadcast_arrays(cond, *operands)
    count = len(operands) - len(names)

    def evaluate_branch(function: Function, mask: object) -> Any:
        call = lambda *args: function(*args[:count], **dict(zip(names, args[count:], strict=True)))  # noqa: E731
        return _evaluate_where(call, mask, operands)

    selected = evaluate_branch(f1, cond)
    others = fill_value if f2 is None else evaluate_branch(f2, ~cond)
    return selected if others is None else others if selected is None else np.where(cond, selected, others)


def _evaluate_where(function: Function, mask: Any, args: Sequence[Any]) -> Any:
    """Evaluate a function where a mask is True; return None if it is False everywhere.

    The result has the shape of the mask. Its other elements are arbitrary.
    """
    if np.all(mask):
        values, shape = function(*map(np.ravel, args)), np.shape(mask)
        return np.reshape(values, shape) if np.size(values) == math.prod(shape) else np.broadcast_to(values, shape)
    if not np.any(mask):
        return None
    values = np.broadcast_to(function(*[a[mask] for a in args]), (int(np.count_nonzero(mask)),))
    return values[np.where(mask, np.reshape(np.cumsum(mask) - 1, np.shape(mask)), 0)]


_REPLACED_FUNCTIONS: dict[str, Any] = {  # functions that determine the library of an array: nodes belong to NumPy
    "array_namespace": lambda *args, **kwargs: NUMPY,
    "_namespace": lambda xp: NUMPY,
    "is_numpy": lambda xp: True,
    "is_lazy_array": lambda x: False,  # batched values have no truth value, by which SciPy tests for lazy arrays
    "at": _IndexedWriter,
    "apply_where": _apply_where,
}

# -------------------------------------------------------------------------------------------- replacements

_replaced_modules: dict[str, ModuleType] = {}
_replaced_methods: dict[tuple[str, str], Any] = {}


def replace_module(name: str, module: ModuleType) -> None:
    """Bind `module` in rebound code in place of the compiled module of SciPy named `name`."""
    _replaced_modules[name] = module


def replace_functions(functions: Mapping[str, Any]) -> None:
    """Replace private functions of SciPy in rebound code: compiled ones, and those without correct derivatives.

    Parameters
    ----------
    functions : mapping
        By the name under which SciPy's modules import the function.
    """
    _REPLACED_FUNCTIONS.update(functions)
    for namespace in _globals.values():
        namespace.update({name: function for name, function in functions.items() if name in namespace})


def replace_methods(methods: Mapping[tuple[str, str], Any]) -> None:
    """Replace methods of SciPy's classes in rebound code: those that run compiled code, or have no correct derivative.

    Parameters
    ----------
    methods : mapping
        By the names of the class and of the method, a function or a property.
    """
    _replaced_methods.update(methods)
    _classes_with_replaced_methods.cache_clear()


# -------------------------------------------------------------------------------------------- calls


def run_own_code(module: str, name: str, *args: object, **kwargs: object) -> Any:
    """Call a function of SciPy, rebound if a node is among the arguments.

    Parameters
    ----------
    module : str
        The module of SciPy.
    name : str
        The name of a function, of a class (its ``__init__`` is run) or of a method (``"Class.method"``).
    *args, **kwargs
        The arguments; the first of a method is its object.
    """
    original, rebound, owner = _original_and_rebound(module, name)
    if not any(map(contains_node, (*args, *kwargs.values()))):
        return original(*args, **kwargs)
    if owner is None or not args or not isinstance(args[0], owner):
        return to_caller(rebound(*args, **kwargs))
    result = rebound(rebind_instance(args[0]), *args[1:], **kwargs)
    to_caller(args[0])
    return to_caller(result)


def to_caller(result: object) -> Any:
    """At the top level, convert tracers in a result to nodes and buffers to arrays; within an operator, return it unchanged."""
    if is_tracing():
        return result
    if isinstance(result, list):
        return list(map(to_caller, result))
    attributes = getattr(result, "__dict__", {}) if is_from_scipy(type(result)) else {}
    attributes = {name: to_caller(value) for name, value in attributes.items() if not is_from_scipy(type(value))}
    if isinstance(result, tuple):
        result = tuple.__new__(type(result), map(to_caller, result))
    if attributes:
        vars(result).update(attributes)
    return to_concrete(result) if isinstance(result, Value) else unwrap_buffer(result)


@functools.cache
def _original_and_rebound(module: str, name: str) -> tuple[Any, Any, type | None]:
    """Return a function, its rebound copy, and its class if it is a method."""
    *holders, last = name.split(".")
    holder: Any = functools.reduce(getattr, holders, importlib.import_module(module))
    value = getattr(holder, last)
    owner = value if inspect.isclass(value) else None
    if holders and owner is None:
        cls = holder if inspect.isclass(holder) else type(holder)
        owner = next((base for base in cls.__mro__ if last in vars(base)), None)
    function = value.__dict__["__init__"] if inspect.isclass(value) else getattr(value, "__func__", value)
    original = unpatched(function)
    return original, rebind(original), owner


def contains_node(value: object) -> bool:
    """Whether a value is a node, contains one, or is an object of SciPy with an attribute that contains one."""
    if argument_has_node(value):
        return True
    attributes = getattr(value, "__dict__", None) if is_from_scipy(type(value)) else None
    return attributes is not None and any(map(argument_has_node, attributes.values()))


def is_from_scipy(definition: type | FunctionType) -> bool:
    """Whether SciPy defines a class or function."""
    return str(definition.__module__).startswith("scipy.")


# -------------------------------------------------------------------------------------------- rebinding

_globals: dict[int, dict[str, Any]] = {}  # for rebound code, by the id of a module's globals, which live as long as SciPy


def rebind(function: Function) -> Any:
    """Return a copy of a function, whose globals and closure refer to functions that keep the graph.

    Other callables are returned unchanged: a NumPy function (``scipy.special.sinc``) dispatches to nodes.
    """
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__
    closure = None if function.__closure__ is None else tuple([_rebind_cell(cell) for cell in function.__closure__])
    copy = FunctionType(code, _rebind_globals(function.__globals__), function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def rebind_instance(instance: object) -> Any:
    """Return an object that shares the attributes of `instance`, with rebound methods."""
    if not hasattr(instance, "__dict__") or hasattr(instance, "_original"):
        return instance
    cls: Any = type(instance)
    copy: Any = object.__new__(rebind_class(cls))
    object.__setattr__(copy, "__dict__", instance.__dict__)
    copy._original = instance
    return copy


def original_instance(instance: object) -> Any:
    """Return the object from which `rebind_instance` made `instance`."""
    return getattr(instance, "_original", instance)


class _View:
    """The base of rebound classes, whose instances refer to the object whose attributes they share."""

    __slots__ = ("_original",)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return original_instance, (original_instance(self),)


def replaced_methods(cls: type) -> dict[str, Any]:
    """Return the replacements of a class's methods by `replace_methods`."""
    return {name: value for (owner, name), value in _replaced_methods.items() if owner == cls.__name__}


@functools.cache
def rebind_class(cls: type) -> type:
    """Return a subclass of `cls` with the replacements by `replace_methods`, in which SciPy's other methods are rebound.

    In the method resolution order, each base follows its rebound subclass, so that ``super()`` finds rebound methods as well.
    """
    if cls is object:
        return _View
    methods: dict[str, Any] = {}
    if is_from_scipy(cls):
        methods.update({name: _rebind_method(value) for name, value in vars(cls).items() if name not in _UNCHANGED_NAMES})
        methods.update(replaced_methods(cls))
    inherited: Any = cls.__bases__
    bases = (cls, *map(rebind_class, inherited))
    return type(cls.__name__, bases, {**methods, "__module__": cls.__module__, "__slots__": ()})


_UNCHANGED_NAMES = {
    "__new__",
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__init_subclass__",
    "__class_getitem__",
    "__slots__",
}


def _rebind_method(value: object) -> Any:
    if isinstance(value, FunctionType):
        return rebind(unpatched(value))
    if isinstance(value, (staticmethod, classmethod)) and isinstance(value.__func__, FunctionType):
        return type(value)(rebind(unpatched(value.__func__)))
    if isinstance(value, property):
        return property(*[f and rebind(f) for f in (value.fget, value.fset, value.fdel)])
    return value


def _rebind_cell(cell: CellType) -> CellType:
    try:
        return CellType(rebind_value("", cell.cell_contents))
    except ValueError:  # still empty
        return cell


def _rebind_globals(module_globals: dict[str, Any]) -> dict[str, Any]:
    """Return the globals of a module for rebound code, with functions and modules replaced."""
    namespace = _globals.get(id(module_globals))
    if namespace is None:
        namespace = {"float": _Float, "complex": _Complex, "int": _Int, **module_globals}
        namespace.update({name: rebind_value(name, value) for name, value in module_globals.items() if not name.startswith("__")})
        _globals[id(module_globals)] = namespace
    return namespace


def rebind_value(name: str, value: Any) -> Any:
    """Return the replacement, in rebound code, of a value that SciPy's code refers to by `name`."""
    if name in _REPLACED_FUNCTIONS:
        return _REPLACED_FUNCTIONS[name]
    if getattr(value, "__module__", None) == "numpy" and getattr(value, "__name__", None) in _FUNCTIONS:
        return _FUNCTIONS[value.__name__]
    if value is np.r_ or value is np.c_:
        return arrays.r_ if value is np.r_ else arrays.c_
    if isinstance(value, ModuleType):
        return _rebind_module(value)
    replacement = _replaced_modules.get(str(getattr(value, "__module__", None)))
    if replacement is not None and name in vars(replacement):
        return vars(replacement)[name]
    if isinstance(value, FunctionType) and is_from_scipy(value) and not _is_public(value):
        return _rebind_for_nodes(value)
    base_names = {base.__name__ for base in type(value).__mro__}
    if is_from_scipy(type(value)) and not base_names.isdisjoint(_classes_with_replaced_methods()):
        return _InstanceProxy(value)
    return value


@functools.cache
def _classes_with_replaced_methods() -> frozenset[str]:
    return frozenset(name for name, _ in _replaced_methods)


class _InstanceProxy:
    """A proxy of an object in the globals of SciPy's modules (a distribution), whose methods are rebound at first use."""

    def __init__(self, instance: object) -> None:
        self._instance = instance

    def __getattr__(self, name: str) -> Any:
        return getattr(rebind_instance(self._instance), name)


def _is_public(function: FunctionType) -> bool:
    """Whether a function is public, so that its policy applies and it is not rebound."""
    module = sys.modules[".".join(function.__module__.split(".")[:2])]
    return getattr(module, function.__name__, None) is function


def _rebind_module(module: ModuleType) -> Any:
    if module is np or module.__name__.endswith("array_api_compat.numpy"):
        return NUMPY
    if module.__name__ in _replaced_modules:
        return _replaced_modules[module.__name__]
    if module is math or module is cmath:
        return _Math(module)
    if module.__name__.startswith("scipy.") and "._" in module.__name__:
        return _PrivateModule(module)
    return module


class _Math(ModuleType):
    """`math` or `cmath`, whose functions convert to numbers; for a node, NumPy's ufunc of the same name is called."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function, ufunc = getattr(self._module, name), getattr(np, name, None)
        if not callable(function) or not isinstance(ufunc, np.ufunc):
            return function
        return lambda *args: ufunc(*args) if any(isinstance(a, Value) for a in args) else function(*args)


class _PrivateModule(ModuleType):
    """A private module of SciPy, whose functions are rebound where a node is among their arguments."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return rebind_value(name, getattr(self._module, name))


_ALWAYS_REBOUND = {"_get_output", "_lazyselect"}  # they access nodes that are not among their arguments


def _rebind_for_nodes(function: FunctionType) -> Any:
    """Return a function that runs rebound if a node is among the arguments, else unchanged."""
    rebound_function = functools.cache(lambda: rebind(function))

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if function.__name__ in _ALWAYS_REBOUND or any(map(contains_node, (*args, *kwargs.values()))):
            return rebound_function()(*args, **kwargs)
        if any(value is NUMPY for value in (*args, *kwargs.values())):
            args = tuple([np if value is NUMPY else value for value in args])
            kwargs = {name: np if value is NUMPY else value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return call
