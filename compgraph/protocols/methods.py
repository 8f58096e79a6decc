"""The methods and attributes of nodes; importing this module installs them on `Value`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import ops
from ..array_types import Array, Operand
from ..bind import bind, record_active
from ..context import is_fast_path
from ..frames import source_lines
from ..graph import recover_history, to_values
from ..guards import (
    conversions,
    guarded_flags,
    guarded_strides,
    hash_scalars_by_value,
    is_within_operator,
    make_raising_setter,
    note_dot_method,
    note_guard,
)
from ..inplace import Flat, mark_copied_row, numpy_writes
from ..values import (
    ACTIVE,
    LEFT,
    SCALARS,
    Tracer,
    Value,
    has_history,
    is_number,
    is_plain_array,
    require_computed,
    require_history,
    save_operand,
)
from .binding import resolve_order
from .class_views import view_as
from .functions import HANDLERS, array_function
from .hints import FOREIGN_OPTIONS
from .ufuncs import array_ufunc

ndarray = np.ndarray


def _method(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def method(self: Value, *args: object, **kwargs: object) -> Any:
        if kwargs:
            ops.raise_for_foreign_options(function.__name__, kwargs, FOREIGN_OPTIONS)
        return handler(function, (self, *args), kwargs) if handler else function(self, *args, **kwargs)

    handler = HANDLERS.get(function)
    return method


_INDEX_TYPES = frozenset({int, slice, type(None), type(Ellipsis), np.int64})  # immutable parts of an index that are not nodes


def _getitem(self: Value, index: object) -> Any:
    if type(index) not in _INDEX_TYPES and not (type(index) is tuple and _INDEX_TYPES.issuperset(map(type, index))):
        require_computed(index, "an index")
        index = _copy_index_arrays(index)
        parts = index if type(index) is tuple else (index,)
        if any(isinstance(part, Value) for part in parts):
            selection = bind(ops.getitem, (self, *parts))
            return _copy_row(selection) if isinstance(selection, Value) and selection.ndim and _selects_view(parts) else selection
    if type(self) in ACTIVE and is_fast_path() and not isinstance(index, Value) and not self.is_scalar:
        try:
            return record_active(self.raw_value[index], ops.getitem, (self, index), LEFT)
        except AttributeError as error:
            recover_history(error, self)
    return bind(ops.getitem, (self, index))


def _copy_row(selection: Value) -> Any:
    row = bind(ops.copy, (selection,))
    mark_copied_row(row)
    return row


def _selects_view(parts: tuple[Any, ...]) -> bool:
    """Whether NumPy returns a view for an index that contains integer nodes.

    The position of such a view depends on values, so it is recorded as a copy, which must not be written into.
    """
    return all(
        type(part) in _INDEX_TYPES or (isinstance(part, Value) and part.is_scalar and part.dtype.kind in "iu") for part in parts
    )


def _copy_index_arrays(index: object) -> Any:
    """Copy the lists and arrays in an index, because the caller may change them later."""
    if type(index) is tuple:
        return tuple([part if type(part) in _INDEX_TYPES else _copy_index_arrays(part) for part in index])
    if type(index) is list:
        return np.array(index) if index else index
    return save_operand(index) if is_plain_array(index) else index


def _reshape(self: Value, *shape: Any, **options: Any) -> Any:
    return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)


def _transpose(self: Value, *axes: Any) -> Any:
    (order,) = axes if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else (axes or None,)
    return np.transpose(self, order)


def _astype(
    self: Value,
    dtype: Array | DTypeLike,
    order: NDArray[Any] | list[Any] | str = "K",
    casting: bool | str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind not in "biufc":
        raise TypeError(f"a node holds numbers; use node.value.astype({dtype}) if its graph is no longer needed")
    return bind(ops.astype, (self,), {"dtype": dtype, "order": order, "casting": casting, "copy": copy})


def _view(self: Value, dtype: Any = ops.NO_VALUE, type: object = None) -> Any:
    if isinstance(dtype, (int, np.integer, tuple)):
        raise TypeError("x.view(dtype) reads the memory as another dtype. x.reshape(shape) changes the shape")
    if type is not None or (inspect.isclass(dtype) and issubclass(dtype, ndarray)):
        return view_as(self, dtype if type is None else type)
    require_history(self)
    if dtype is ops.NO_VALUE or np.dtype(dtype) == self.dtype:
        return self[()] if self.is_scalar else self[...]
    dtype = np.dtype(dtype)
    if {dtype.kind, self.dtype.kind} != {"f", "c"} or _native_parts(dtype) is not _native_parts(self.dtype):
        raise TypeError(
            f"view({dtype}) of a node of {self.dtype} is not supported: only real and complex dtypes of the same precision can "
            "be viewed as each other; use x.astype to convert, or node.value.view for a plain array"
        )
    plain = as_strided(np.empty(1, self.dtype), self.shape, self.strides) if self.trace_kind == "batch" else self.value
    plain.view(dtype)  # raises for unsuitable layouts
    return bind(ops.view, (self,), {"dtype": dtype})


def _native_parts(dtype: np.dtype[Any]) -> Any:
    """The scalar type of the real part; the dtype itself if its byte order is not the machine's."""
    return np.finfo(dtype).dtype.type if dtype.isnative else dtype


def _set_flags(self: Value, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
    """``setflags``: ``write=False`` is accepted within operators, where it changes no result; other flags raise."""
    require_history(self)
    if write is not False or align is not None or uic is not None or not is_within_operator(self):
        _unsupported_method("setflags", ops.UNSUPPORTED_METHODS["setflags"])(self)


def _conj(self: Value) -> Any:
    require_history(self)
    return np.conjugate(self) if self.dtype.kind == "c" else self


def _clip_method(self: Value, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    return np.clip(self, min, max, out, **options)


def _contains(self: Value, element: ArrayLike | str) -> bool:
    is_member = _holds(to_values(self), to_values(element))
    note_guard("in", _holds, (self, element), is_member, source_lines.user_frame(2))
    return is_member


def _holds(array: NDArray[Any], element: ArrayLike | str) -> bool:
    return bool(np.any(array == element))


def _round(self: Value, digits: int | None = None) -> Any:
    require_history(self)
    if self.ndim:
        raise TypeError("round takes a single number; use np.round for an array")
    if digits is not None:
        return np.round(self, digits)
    rounded_value = _round_number(self.item())
    note_guard("round()", _round_number, (self,), rounded_value, source_lines.user_frame(2))
    return rounded_value


def _round_number(number: Operand) -> Any:
    return round(np.asarray(number).item())


def _copy(self: Value, order: str = "C") -> Any:
    return bind(ops.copy, (self,), {"order": order})


def _flatten(self: Value, order: str = "C") -> Any:
    node, order = resolve_order(self, order)
    return bind(ops.flatten, (node,), {"order": order})


def _unsupported_method(name: str, instead: str) -> Any:
    def method(self: Value, *args: object, **kwargs: object) -> Any:
        require_history(self)
        raise TypeError(f"the array method {name} is not supported on nodes, because its result would lose the graph; {instead}")

    return method


def _read_only_property(read: Callable[..., Any], name: str) -> property:
    """A property with the getter `read`, which raises when it is set."""
    return property(read, make_raising_setter(name))


def _value_attribute(name: str) -> Any:
    """A getter of an attribute of the node's value; of a node without history, of the node's own memory."""
    read_memory = getattr(ndarray, name).__get__

    def read(self: Value) -> Any:
        try:
            return getattr(self.raw_value, name)
        except AttributeError:
            return getattr(self.raw_value, name) if has_history(self) else read_memory(self)

    return read


def _flags(self: Value) -> Any:
    if not has_history(self):
        return ndarray.flags.__get__(self)
    return (self.dtype.type(0) if is_number(self) else np.asarray(self.raw_value)).flags


def _format(self: Value, spec: str) -> str:
    require_history(self)
    return format(np.asarray(self.raw_value)[()], spec)


def _view_property(read: Callable[..., Any] | type) -> property:
    """A property whose getter `read` returns a view of the node; setting it writes into the view."""

    def write(self: Value, value: object) -> None:
        read(self)[...] = value

    return property(read, write)


def _set_imag(self: Value, value: object) -> None:
    require_history(self)
    if self.dtype.kind != "c":
        raise TypeError("a real node has no imaginary part to set; convert it first by astype(complex)")
    np.imag(self)[...] = value


class _Element:
    """Collects the names of the methods that a ufunc calls on the elements of an object array."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str) -> NoReturn:
        self.names.append(name)
        raise AttributeError(name)


def _calls_method(ufunc: np.ufunc) -> bool:
    """Whether a ufunc, on object arrays, calls a method of its own name on each element; others use Python's operators."""
    if ufunc.signature is not None or not any("O" in types for types in ufunc.types):
        return False
    element = _Element()
    operands = np.empty((ufunc.nin, 1), object)
    operands[:] = element
    with contextlib.suppress(TypeError, AttributeError):
        ufunc(*operands)
    return ufunc.__name__ in element.names


def _ufunc_method(ufunc: np.ufunc) -> Any:
    return lambda self, *others: ufunc(self, *others)


def _array_priority(self: Any) -> float:
    note_dot_method(self, source_lines.frame_up(1))
    return 1e6


def _install_methods() -> None:
    methods = {
        **{f.__name__: _ufunc_method(f) for f in ops.SMOOTH_UFUNCS | ops.PIECEWISE_UFUNCS if _calls_method(f)},
        **conversions.node_methods(),
        **{name: getattr(numpy_writes, name) for name in ops.WRITING_METHODS},
        **{name: _unsupported_method(name, instead) for name, instead in ops.UNSUPPORTED_METHODS.items()},
        **{name: _method(function) for name, function in ops.METHODS.items()},
        "__getitem__": _getitem,
        "__setitem__": numpy_writes.set_item,
        "put": lambda self, indices, values, mode="raise": numpy_writes.put(self, indices, values, mode),
        "__contains__": _contains,
        "__round__": _round,
        "clip": _clip_method,
        "setflags": _set_flags,
        "conj": _conj,
        "conjugate": _conj,
        "reshape": _reshape,
        "transpose": _transpose,
        "astype": _astype,
        "copy": _copy,
        "__copy__": lambda self: _copy(self, "K"),
        "view": _view,
        "flatten": _flatten,
        "T": _read_only_property(np.transpose, "T"),
        "mT": _read_only_property(np.matrix_transpose, "mT"),
        "real": _view_property(lambda self: np.real(self)),
        "imag": property(lambda self: np.imag(self), _set_imag),
        "flat": _view_property(Flat),
        **{name: _read_only_property(_value_attribute(name), name) for name in ("dtype", "itemsize", "nbytes")},
        "strides": guarded_strides(_value_attribute("strides")),
        "flags": guarded_flags(_flags),
        "__format__": conversions.make_text_conversion("format()", _format),
        # The highest priority: where NumPy selects the class of a result by priority, without dispatch, the result is a node
        # without history, which raises when used, instead of a plain array. Classes with precedence set __array_ufunc__ = None.
        "__array_priority__": property(_array_priority),
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
    }
    for name, method in methods.items():
        setattr(Value, name, method)
    for name, method in conversions.tracer_methods().items():
        setattr(Tracer, name, method)


_install_methods()
conversions.install_inert_conversions()
hash_scalars_by_value()


class UnsizedError(TypeError, AttributeError):
    """Raised by ``len(x)`` and iteration of a scalar node; ``hasattr(x, "__len__")`` is False."""

    __module__ = "compgraph.errors"  # the public module


def _array_method(name: str, message: str) -> property:
    """A special method that arrays have and scalars lack."""

    def read(self: Value) -> Any:
        if is_number(self):
            raise UnsizedError(message)
        return getattr(super(Value, self), name)

    return property(read)


number_methods: dict[str, Any] = {
    "__len__": _array_method("__len__", "object of type 'numpy.float64' has no len()"),
    **conversions.NUMBER_METHODS,
}
for _kind in SCALARS:
    _kind.__iter__ = None
    for _name, _number_method in number_methods.items():
        setattr(_kind, _name, _number_method)
