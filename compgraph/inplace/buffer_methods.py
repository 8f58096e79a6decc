"""Conversion of buffers to tracers, and the operators, methods and protocols of buffers and borrowed arrays."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bind import bind
from ..context import is_recording, trace_guards
from ..frames import frame_up
from ..graph import flatten_sequences, stack_nested, to_values
from ..ops import getitem
from ..storage import TRACERS, OpaqueTransform, layout_in, set_class, window
from ..tracing import leak_error
from ..values import (
    BUFFERS,
    INERT,
    TRACEABLE,
    Borrowed,
    Buffer,
    InertNode,
    TransformBuffer,
    Value,
    describe,
    set_history,
    unwrap_buffer,
    unwrap_buffers,
    wrap_result,
)

ndarray = np.ndarray
_NUMBERS = frozenset({float, int, bool, complex, ndarray, np.float64, np.float32, np.int64, np.bool_}) | TRACEABLE


# ------------------------------------------------------------------------------------------- conversion to tracers


def trace_buffer(array: Any) -> None:
    """Turn a buffer, its base, and all views of that into tracers."""
    if array.is_borrowed:
        raise TypeError(
            f"a node is written into an array (shape {array.shape}, {array.dtype}) that was made before the differentiated "
            "function was called, and belongs to the caller. Copy it inside the function first: np.copy(a), or a.copy()"
        )
    root = array.args[0] if array.args else array
    if type(root) in BUFFERS:
        views = [view for reference in root.memory or () if (view := reference()) is not None and type(view) in BUFFERS]
        layouts = [layout_in(root.raw_value, view.raw_value) for view in views]
        dtype = root.raw_value.dtype
        _trace_root(root)
        for view, layout in zip(views, layouts, strict=True):
            if view.raw_value.dtype.kind in "fc" or view.raw_value.dtype == dtype:
                _convert_to_tracer(view, bind(window, (root,), layout))
    elif type(array) in BUFFERS:  # a view made after its root became a tracer
        _convert_to_tracer(array, bind(window, (root,), layout_in(root.raw_value, array.raw_value)))


def _trace_root(root: Buffer | TransformBuffer) -> None:
    plain = root.raw_value
    if isinstance(root, TransformBuffer):
        tracer: Any = plain
        for wrap in root._wrappers:
            tracer = wrap(tracer)
        if not isinstance(tracer, OpaqueTransform):
            raise TypeError(
                f"a node is written into an array (shape {root.shape}) that was made within a function differentiated in forward "
                "mode, after the function returned. Copy the array first (np.copy)"
            )
        _convert_to_tracer(root, tracer)
        return
    set_class(root, TRACERS[InertNode])  # the write of an active value makes it active; see `inplace.stores`
    root.raw_value = plain
    set_history(root, None, (), ())


def _convert_to_tracer(buffer: Buffer | TransformBuffer, tracer: object) -> None:
    """Copy the class and the slots of a tracer to a buffer."""
    for kind in type(tracer).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if slot != "__weakref__" and hasattr(tracer, slot):
                setattr(buffer, slot, getattr(tracer, slot))
    if isinstance(buffer, TransformBuffer):
        del buffer._wrappers  # a tracer has no use for them, and they may hold much memory
    set_class(buffer, type(tracer))


def as_traced(value: Any, operands: Any = ()) -> Any:
    """Convert a buffer into which values are written to a tracer; return other targets unchanged.

    A buffer of integers or booleans stays a buffer unless an operand is batched by a vmap.
    """
    if type(value) in TRACEABLE and (value.dtype.kind in "fc" or any(map(_contains_batch, operands))):
        trace_buffer(value)
    return value


# --------------------------------------------------------------------------------------------- values


def contains_node(value: object) -> bool:
    """Whether a value is a node, or a list or tuple with one in it."""
    if type(value) is list or type(value) is tuple:
        return any(map(contains_node, value))
    return isinstance(value, Value)


def _contains_batch(value: object) -> bool:
    """Whether a value is batched by a vmap, or is a list or tuple that contains such a value."""
    if type(value) is list or type(value) is tuple:
        return any(map(_contains_batch, value))
    return isinstance(value, Value) and value.trace_kind == "batch"


def _is_batched_index(index: NDArray[Any] | tuple[int, ...]) -> bool:
    """Whether an index differs between batch elements."""
    return any(
        isinstance(part, Value) and part.trace_kind == "batch" for part in (index if isinstance(index, tuple) else (index,))
    )


def _is_recorded_index(index: Any) -> bool:
    """Whether an element depends on an index in a way that is recorded: a batched one; any node, where the graph runs again."""
    if _is_batched_index(index):
        return True
    return trace_guards.get() is not None and contains_node(index) and is_recording()


def _needs_graph(value: object) -> bool:
    """Whether a write of a node, or of a list with nodes, must be recorded or needs tangents; false under `no_graph`."""
    if isinstance(value, Value):
        return is_recording() or value.trace_kind == "batch"
    return any(map(_needs_graph, value)) if isinstance(value, (list, tuple)) else False


def _as_integers(value: object, dtype: np.dtype[Any]) -> Any:
    """Convert a value with nodes to integers; floating nodes must be piecewise constant, such as those of ``np.floor``."""
    if isinstance(value, (list, tuple)):
        return [_as_integers(part, dtype) for part in value]
    if not isinstance(value, Value) or value.dtype.kind not in "fc":
        return value
    if type(value) in INERT or getattr(value, "_tangent", value) is None:
        return value.astype(dtype)
    raise leak_error(frame_up(2), f"the {describe(value)}")


# --------------------------------------------------------------------------- operators, methods, protocols


def _getitem(self: Any, index: Any) -> Any:
    if type(index) not in _BASIC_INDICES and _is_recorded_index(index):  # NumPy does not dispatch to an index
        return bind(getitem, (unwrap_buffer(self), *(index if isinstance(index, tuple) else (index,))))
    elements = unwrap_buffer(self)[index]
    return wrap_result(elements, (self,)) if type(elements) is ndarray else elements


_BASIC_INDICES = frozenset({int, slice})


def _setitem(self: Any, index: Any, value: Any) -> None:
    plain = unwrap_buffer(self)
    if type(value) in _PYTHON_NUMBERS and type(index) in _BASIC_INDICES:
        plain[index] = value
        return
    if trace_guards.get() is not None and not self.is_borrowed and _is_recorded_index(index):
        trace_buffer(self)
        self[index] = value
        return
    if type(value) in _NUMBERS or plain.dtype.kind not in "fc" or not contains_node(value):
        if plain.dtype.kind in "biu" and contains_node(value):
            value = _as_integers(value, plain.dtype)
            if _contains_batch(value):
                trace_buffer(self)
                self[index] = value
                return
        try:
            plain[index] = _as_storable(value)
        except (IndexError, TypeError):
            if not _is_batched_index(index):
                raise
            trace_buffer(self)
            self[index] = value
    elif not _needs_graph(value):
        plain[index] = unwrap_buffers(to_values(value))
    else:
        trace_buffer(self)
        self[index] = value


_PYTHON_NUMBERS = frozenset({float, int, np.float64})


def _as_storable(value: ArrayLike | Buffer | TransformBuffer) -> Any:
    """Convert a value to be stored into integers; a scalar node becomes a Python number, under a guard."""
    if isinstance(value, Value):
        return value if value.ndim or value.dtype.kind not in "iu" else operator.index(value)
    return unwrap_buffers(value)


def _fill(self: Any, value: object) -> None:
    self[...] = value


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``__array_ufunc__`` on the real memory; NotImplemented if an operand is a node, to which NumPy then dispatches."""
    out = options.get("out", ())
    if any(isinstance(value, Value) for value in (*inputs, *out)):
        return NotImplemented
    if any(type(value) in (list, tuple) and contains_node(value) for value in inputs):
        return getattr(ufunc, method)(*map(stack_nested, inputs), **options)
    if out:
        options["out"] = tuple(map(unwrap_buffer, out))
    if "where" in options:
        options["where"] = unwrap_buffer(options["where"])
    result = getattr(ufunc, method)(*map(unwrap_buffers, inputs), **options)
    if out:
        parts = result if isinstance(result, tuple) else (result,)
        output = tuple([output if output is not None else wrap_result(part, ()) for output, part in zip(out, parts, strict=True)])
        return output if isinstance(result, tuple) else output[0]
    return None if result is None else wrap_result(result, (self,))


def _array_function(
    self: Any, function: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``__array_function__`` on the real memory; NotImplemented if an argument is a node, to which NumPy then dispatches."""
    if any(issubclass(kind, Value) for kind in types):
        return NotImplemented
    if function is np.take:  # NumPy does not dispatch to the indices
        index = kwargs["indices"] if "indices" in kwargs else args[1]
        if _is_batched_index(index):
            return index.__array_function__(function, types, args, kwargs)
    values = (*args, *kwargs.values())
    # Arguments to which NumPy does not dispatch: np.piecewise(a, conditions, [x, 0.0]), np.sum(a, initial=x)
    for node in flatten_sequences(values) if function is np.piecewise else (kwargs.get("initial"),):
        if isinstance(node, Value):
            return node.__array_function__(function, types, args, kwargs)
    result = function(*unwrap_buffers(args), **unwrap_buffers(kwargs))
    sources = tuple(_arrays_in(values))
    out = kwargs.get("out")
    return out if out is not None and not isinstance(out, tuple) else wrap_result(result, sources)


def _arrays_in(values: Any) -> list[Any]:
    """The buffers and borrowed arrays in nested lists and tuples."""
    arrays = []
    for value in values:
        if type(value) in TRACEABLE:
            arrays.append(value)
        elif type(value) is list or type(value) is tuple:
            arrays += _arrays_in(value)
    return arrays


_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift", "divmod"]
_REFLECTED = {
    **{f"__{name}__": f"__r{name}__" for name in _BINARY},
    **{f"__r{name}__": f"__{name}__" for name in _BINARY},
    "__lt__": "__gt__",
    "__gt__": "__lt__",
    "__le__": "__ge__",
    "__ge__": "__le__",
    "__eq__": "__eq__",
    "__ne__": "__ne__",
}


def _operator(name: str) -> Any:
    """Make a binary operator; if the other operand is a node, it calls the reflected operator of the node."""
    numpy_method = getattr(ndarray, name)

    def operate(self: Any, other: object) -> Any:
        if isinstance(other, Value):
            return getattr(other, _REFLECTED[name])(self)
        if (type(other) is list or type(other) is tuple) and contains_node(other):
            return getattr(stack_nested(other), _REFLECTED[name])(self)
        result = numpy_method(unwrap_buffer(self), unwrap_buffer(other))
        return result if result is NotImplemented else wrap_result(result, (self,))

    operate.__name__ = name
    return operate


def _in_place(name: str) -> Any:
    """Make an in-place operator; if the other operand is a node, the buffer becomes a tracer."""
    numpy_method = getattr(ndarray, name)

    def operate(self: Any, other: Any) -> Any:
        other = stack_nested(other) if type(other) in (list, tuple) and contains_node(other) else other
        if isinstance(other, Value):
            if _needs_graph(other) and self.dtype.kind in "fc":
                trace_buffer(self)
                return getattr(self, name)(other)
            if other.trace_kind == "batch":
                trace_buffer(self)
                return getattr(self, name)(other)
            other = _as_integers(other, self.dtype) if self.dtype.kind in "biu" else to_values(other)
            other = _as_storable(other)
        result = numpy_method(unwrap_buffer(self), unwrap_buffer(other))
        return result if result is NotImplemented else self

    operate.__name__ = name
    return operate


def _unary(name: str) -> Any:
    numpy_method = getattr(ndarray, name)
    return lambda self: wrap_result(numpy_method(unwrap_buffer(self)), (self,))


def _special_method(name: str) -> Any:
    numpy_method = getattr(ndarray, name)
    return lambda self, *args: numpy_method(unwrap_buffer(self), *map(unwrap_buffer, args))


def _method(name: str) -> Any:
    """Return a method that calls NumPy's function of that name if an argument is a node, because methods do not dispatch."""
    numpy_method = getattr(ndarray, name)

    @functools.wraps(numpy_method)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        if any(map(contains_node, args)) or any(map(contains_node, kwargs.values())):
            return getattr(np, name)(self, *args, **kwargs)
        out = kwargs.get("out")
        result = numpy_method(unwrap_buffer(self), *unwrap_buffers(args), **unwrap_buffers(kwargs))
        return out if out is not None else wrap_result(result, (self,))

    return method


def _view_attribute(name: str) -> property:
    """Make ``z.real``, ``z.imag`` or ``a.flat``; the array becomes a tracer when a node is written into it."""
    numpy_method = getattr(ndarray, name)

    def write(self: Any, value: object) -> None:
        if contains_node(value) and _needs_graph(value) and self.dtype.kind in "fc":
            trace_buffer(self)
            setattr(self, name, value)
        else:
            numpy_method.__set__(unwrap_buffer(self), unwrap_buffers(value))

    def read(self: Any) -> Any:
        if name == "flat":
            return self.reshape(-1) if self.flags.c_contiguous else unwrap_buffer(self).flat  # a view can be written into
        return wrap_result(numpy_method.__get__(unwrap_buffer(self)), (self,))

    return property(read, write)


def _attribute(name: str) -> property:
    numpy_method = getattr(ndarray, name)
    write = getattr(numpy_method, "__set__", None)
    return property(
        lambda self: numpy_method.__get__(self.raw_value),
        None if write is None else lambda self, value: write(self.raw_value, value),
    )


def _hidden_attribute(name: str) -> property:
    """Make an attribute by which NumPy would read the memory; because it raises, NumPy calls ``__array__``."""

    def read(self: Any) -> Any:
        raise AttributeError(f"a buffer has no {name}; use np.asarray(x)")

    return property(read)


def _array_wrap(self: Any, array: NDArray[Any], context: tuple[Any, ...] | None = None, return_scalar: bool = False) -> Any:
    """``__array_wrap__``, by which NumPy returns results computed from a borrowed array."""
    return array[()] if return_scalar else wrap_result(array, ())


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    return self.raw_value if dtype is None and not copy else np.array(self.raw_value, dtype=dtype, copy=copy)


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
# Attributes that `Buffer` does not copy from ndarray.
_NOT_COPIED = frozenset({
    "__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__",
    "__init_subclass__", "__subclasshook__", "__class_getitem__", "__array_finalize__", "__array_wrap__", "__array_priority__",
    "__sizeof__", "__getstate__", "__setstate__", "__iter__", "__len__", "__hash__", "__array_namespace__", "__dlpack_device__",
    "__delitem__", "device", "ndim", "size", "shape",
})  # fmt: skip


def _install() -> None:
    shared: dict[str, Any] = {"__getitem__": _getitem, "__setitem__": _setitem, "fill": _fill}
    shared |= {"__array_function__": _array_function}
    for name in _BINARY:
        shared |= {f"__{prefix}{name}__": _operator(f"__{prefix}{name}__") for prefix in ("", "r")}
        if name != "divmod":
            shared[f"__i{name}__"] = _in_place(f"__i{name}__")
    methods = {name: value for name, value in vars(ndarray).items() if callable(value) and not name.startswith("__")}
    shared |= {name: _method(name) for name in methods if name not in shared}
    shared |= {name: _view_attribute(name) for name in ("real", "imag", "flat")}
    shared["__reduce__"] = lambda self: unwrap_buffer(self).__reduce__()
    shared["__reduce_ex__"] = lambda self, protocol: unwrap_buffer(self).__reduce_ex__(protocol)
    shared["__deepcopy__"] = lambda self, memo: self.copy()
    shared["__copy__"] = lambda self: self.copy("K")
    for name, method in shared.items():
        setattr(Buffer, name, method)
        if name not in ("setflags", "resize"):  # they change the array object, not its elements
            setattr(Borrowed, name, method)
    setattr(Borrowed, "__array_wrap__", _array_wrap)  # noqa: B010
    for name in _COMPARISONS:
        setattr(Buffer, f"__{name}__", _operator(f"__{name}__"))
    for name in ("__neg__", "__pos__", "__abs__", "__invert__"):
        setattr(Buffer, name, _unary(name))
    own: dict[str, Any] = {
        "__array_ufunc__": _array_ufunc, "__array__": _array, "__hash__": None, "__array_priority__": 1e5,
        **{name: _hidden_attribute(name) for name in ("__array_interface__", "__array_struct__")},
        "T": property(lambda self: wrap_result(self.raw_value.T, (self,))),
        "mT": property(lambda self: wrap_result(self.raw_value.mT, (self,))),
        "shape": _attribute("shape"), "base": property(lambda self: self.args[0] if self.args else None),
        "__format__": lambda self, spec: format(self.raw_value[()], spec), "__len__": lambda self: len(self.raw_value),
    }  # fmt: skip
    for name, method in own.items():
        setattr(Buffer, name, method)
    for name, value in vars(ndarray).items():
        if name not in vars(Buffer) and name not in _NOT_COPIED:
            setattr(Buffer, name, _special_method(name) if callable(value) else _attribute(name))


_install()
