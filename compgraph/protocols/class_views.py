"""Views of traced arrays as a subclass of ``np.ndarray``: ``x.view(Quantity)``, and operations of a tracer with such an array.

A `ClassView` is an instance of the subclass. Its memory contains no numbers, and code that reads it raises. Operations call the
protocols of the subclass; where these call those of ``np.ndarray`` by ``super()``, the operation is recorded. The view shares
writes with the array that it was made of, as views do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from .. import ops
from ..frames import frame_up
from ..graph import overrides_protocol
from ..guards import CONVERSIONS
from ..tracing import OPAQUE_CLASSES, is_tracing, make_leak_error
from ..values import BUFFERS, ClassViews, Value, new_view

ndarray = np.ndarray
# Classes that access the memory of their instances by functions of ``np.ndarray``, and classes of records and files.
_UNSUPPORTED = (np.ma.MaskedArray, np.matrix, np.recarray, np.memmap)


def _raise_leak(self: object, *args: object, **options: object) -> Any:
    raise make_leak_error(frame_up(1), "a view of a traced array as another class")


class _Leak:
    """The element of an array that has no numbers; conversions of it, and operators on it, raise."""

    __slots__ = ()


_OPERATORS = [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "pow",
    "rpow",
    "neg",
    "abs",
    "lt",
    "gt",
    "le",
    "ge",
]
for _name in (*CONVERSIONS, *_OPERATORS, "reduce", "deepcopy"):
    setattr(_Leak, f"__{_name}__", _raise_leak)


class _OpaqueArray(ndarray):
    """An object array that is the memory of views; its only element is a `_Leak`, so C code that reads it raises."""


_element = np.empty((), object)
_element[()] = _Leak()


class ClassView(ClassViews):
    """Base of all classes of views; it precedes ``np.ndarray`` in their method resolution order."""

    __slots__ = ()
    viewed_class: type[ndarray] = ndarray

    @property
    def traced(self) -> Any:
        """Return the array that this view was made of, without its class."""
        try:
            return self._traced
        except AttributeError:  # a slice or copy that C code made
            raise make_leak_error(frame_up(1), "a view of a traced array as another class") from None

    def view(self, dtype: Any = ops.NO_VALUE, type: Any = None) -> Any:
        """Return a view as a class, or the array itself as ``np.ndarray``."""
        target = dtype if type is None else type
        if target is ndarray:
            return self.traced
        if target is ops.NO_VALUE:
            return _with_class_of(self, self.traced.view())
        return view_as(self.traced, target, self) if _is_array_class(target) else _with_class_of(self, self.traced.view(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> Any:
        """Record a ufunc on the arrays without their classes; the result has the class if an input has it."""
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(map(_without_class, out))
        result = getattr(ufunc, method)(*map(_without_class, inputs), **options)
        if out is not None and isinstance(out[0], ClassView):
            return out[0] if len(out) == 1 else out
        return _with_first_class(inputs, result)

    def __array_function__(self, function: Any, types: Iterable[Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run NumPy's implementation for a class with a protocol of its own, otherwise record the function."""
        leaves = [leaf for value in (*args, *kwargs.values()) for leaf in _leaves(value)]
        if not any(isinstance(leaf, ClassView) for leaf in leaves):
            return function(*args, **kwargs)
        implementation = ops.implementation(function)
        if isinstance(implementation, FunctionType) and self.viewed_class.__array_function__ is not ndarray.__array_function__:
            return implementation(*args, **kwargs)
        arguments = {name: _without_classes(value) for name, value in kwargs.items()}
        return _with_first_class(leaves, function(*map(_without_classes, args), **arguments))

    def __getitem__(self, index: object) -> Any:
        result = self.traced[_without_classes(index)]
        return result if getattr(result, "is_scalar", False) else _with_class_of(self, result)

    def item(self, *index: Any) -> Any:
        """Return an element, without the class."""
        if not index:
            return self.traced.reshape(())[()]
        return self.traced.reshape(-1)[index[0]] if isinstance(index[0], int) and len(index) == 1 else self.traced[index]

    def tolist(self) -> Any:
        """Return nested lists of the elements, without the class."""
        return _nested_elements(self.traced)

    def __setitem__(self, index: Any, value: object) -> None:
        self.traced[index] = _without_class(value)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return repr(self.traced)

    __str__ = __repr__
    __hash__ = None  # type: ignore[assignment]


def _forward(name: str) -> Any:
    """Return a method that calls that of the traced array, and gives the result the class of the view."""

    def method(self: ClassView, *args: object, **kwargs: object) -> Any:
        values = {key: _without_class(value) for key, value in kwargs.items()}
        return _with_class_of(self, getattr(self.traced, name)(*map(_without_class, args), **values))

    return functools.wraps(getattr(ndarray, name), ("__name__", "__qualname__"))(
        method
    )  # without the docstring, whose examples would run as doctests


def _attribute(name: str, has_class: bool) -> property:
    def write(self: ClassView, value: object) -> None:
        setattr(self.traced, name, _without_class(value))

    if has_class:
        return property(lambda self: _with_class_of(self, getattr(self.traced, name)), write)
    return property(lambda self: getattr(self.traced, name), write)


# Methods that NumPy implements in C without ufuncs.
_METHODS = (
    "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "compress", "conj", "conjugate", "copy",
    "diagonal", "dot", "fill", "flatten", "getfield", "nonzero", "partition", "put", "ravel", "repeat", "reshape", "resize",
    "round", "searchsorted", "setfield", "setflags", "sort", "squeeze", "swapaxes", "take", "trace", "transpose", "__bool__",
    "__contains__", "__copy__", "__index__", "__int__",
)  # fmt: skip
# Methods and attributes that return the numbers.
_LEAKS = (
    "dump", "dumps", "tobytes", "tofile", "__array__", "__complex__", "__deepcopy__", "__float__", "__reduce__", "__reduce_ex__",
)  # fmt: skip
for _name in _METHODS:
    setattr(ClassView, _name, _forward(_name))
for _name in _LEAKS:
    setattr(ClassView, _name, _raise_leak)
for _name in ("T", "mT", "real", "imag", "flat"):
    setattr(ClassView, _name, _attribute(_name, _name != "flat"))
for _name in ("base", "dtype", "flags", "itemsize", "nbytes", "strides"):
    setattr(ClassView, _name, _attribute(_name, False))
for _name in ("ctypes", "data", "__array_interface__", "__array_struct__"):
    setattr(ClassView, _name, property(_raise_leak))
OPAQUE_CLASSES.add(ClassView.__name__)


def _is_array_class(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, ndarray)


@functools.lru_cache(256)
def _view_class(cls: type[ndarray]) -> Any:
    """Return the class of views as `cls`."""

    def finalize(self: ClassView, source: Any) -> None:
        if type(source) is not _OpaqueArray and cls.__array_finalize__ is not None:
            cls.__array_finalize__(self, source)

    members = {"__module__": cls.__module__, "viewed_class": cls, "__array_finalize__": finalize}
    metaclass: Any = type(cls)
    return metaclass(cls.__name__, (cls, ClassView), members)


def view_as(traced: Any, cls: Any, source: object = None) -> Any:
    """View a traced array as a subclass of ``np.ndarray``.

    Parameters
    ----------
    traced : array
        A node, or a plain array that takes part in an operation with a node.
    cls : type
        The subclass.
    source : array, optional
        The array whose attributes the view inherits, as of ``__array_finalize__``; by default an array without attributes.

    Raises
    ------
    TypeError
        If the class reads the memory of its instances.
    """
    cls = cls.viewed_class if issubclass(cls, ClassView) else cls
    if cls is ndarray:
        return traced.view()
    if not is_tracing() or issubclass(cls, (*_UNSUPPORTED, Value)):
        raise TypeError(f"a view as {cls.__name__} is not supported on nodes: it would lose the graph; use node.value")
    if isinstance(traced, Value) and traced.is_scalar:
        traced = _zero_dimensional(traced)
    shape = np.shape(traced)
    view = new_view(new_view(np.broadcast_to(_element, shape), _OpaqueArray), _view_class(cls))
    view._traced = traced
    ClassViews.count += 1
    view.__array_finalize__(np.broadcast_to(np.zeros((), traced.dtype), shape) if source is None else source)
    return view


def _zero_dimensional(scalar: Value) -> Any:
    """Convert a scalar to an array without axes, which accepts writes."""
    array: Any = np.zeros_like(scalar, shape=())
    array[...] = scalar
    return array


def _without_class(value: object) -> Any:
    return value.traced if isinstance(value, ClassView) else value


def _without_classes(value: object) -> Any:
    """Apply `_without_class`, also within lists and tuples."""
    return type(value)(map(_without_classes, value)) if type(value) is list or type(value) is tuple else _without_class(value)


def _leaves(value: object) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if type(value) is list or type(value) is tuple else [value]


def _nested_elements(array: Any) -> Any:
    return list(map(_nested_elements, array)) if array.ndim else array[()]


def _with_class_of(view: ClassView, result: Any) -> Any:
    """Give floating results of an operation on a view its class; 0-d ones only if the class overrides ``__array_ufunc__``."""
    if type(result) in (list, tuple):
        return type(result)([_with_class_of(view, part) for part in result])
    is_array = isinstance(result, Value) or type(result) in BUFFERS or type(result) is ndarray
    if not is_array or result.dtype.kind not in "fc":
        return result
    has_class = result.ndim or view.viewed_class.__array_ufunc__ is not ndarray.__array_ufunc__
    return view_as(result, type(view), view) if has_class else result[()]


def _with_first_class(values: Iterable[object], result: object) -> Any:
    """Give a result the class of the first view among some values."""
    view = next((value for value in values if isinstance(value, ClassView)), None)
    return result if view is None else _with_class_of(view, result)


def call_with_views(call: Callable[..., Any], protocol: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Repeat a call of NumPy with plain arrays of subclasses as views; NotImplemented if the arguments contain none."""
    has_views = False

    def convert(value: object) -> Any:
        nonlocal has_views
        if type(value) is list or type(value) is tuple:
            return type(value)(map(convert, value))
        if isinstance(value, ClassView) or not isinstance(value, ndarray) or not overrides_protocol(value, protocol):
            return value
        has_views = True
        return view_as(new_view(value, ndarray), type(value), value)

    if not is_tracing():
        return NotImplemented
    args, kwargs = tuple(map(convert, args)), {name: convert(value) for name, value in kwargs.items()}
    return call(*args, **kwargs) if has_views else NotImplemented


def construct_view(constructor: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], keeps_class: bool) -> Any:
    """Call a constructor such as ``np.array`` with a view as its first argument."""
    view = args[0]
    result = constructor(view.traced, *args[1:], **kwargs)
    if not keeps_class:
        return result
    return view if result is view.traced else view_as(result, type(view), view)
