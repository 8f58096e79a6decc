"""Conversion of buffers to tracers, and the operators, methods and protocols of buffers and borrowed arrays."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from ..bind import bind
from ..context import is_recording, trace_guards
from ..frames import frame_up
from ..graph import flatten_sequences, stack_nested, to_values
from ..storage import TRACERS, OpaqueTransform, layout_in, set_class, window
from ..tracing import make_leak_error
from ..values import (
    BUFFERS,
    INERT,
    TRACEABLE,
    Borrowed,
    Buffer,
    ClassViews,
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
_TYPES_WITHOUT_NODES = frozenset({float, int, bool, complex, ndarray, np.float64, np.float32, np.int64, np.bool_}) | TRACEABLE


# ------------------------------------------------------------------------------------------- conversion to tracers


def trace_buffer(array: Any) -> None:
    """Convert a buffer, its root, and all views of the root to tracers."""
    if array.is_borrowed:
        raise TypeError(
            f"a node cannot be written into an array from outside the differentiated function (shape {array.shape}, "
            f"{array.dtype}). Copy the array inside the function: np.copy(a), or a.copy()"
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
    """Convert a root to a tracer: of its transforms if it is a `TransformBuffer`, otherwise an inert one."""
    memory = root.raw_value
    if isinstance(root, TransformBuffer):
        tracer: Any = memory
        for wrap in root._wrappers:
            tracer = wrap(tracer)
        if not isinstance(tracer, OpaqueTransform):
            raise TypeError(
                f"a node is written into an array (shape {root.shape}) after the function that created it returned, which "
                "forward mode does not support. Write into a copy: np.copy(a)"
            )
        _convert_to_tracer(root, tracer)
        return
    set_class(root, TRACERS[InertNode])  # the write of an active value makes it active; see `inplace.stores`
    root.raw_value = memory
    set_history(root, None, (), ())


def _convert_to_tracer(buffer: Buffer | TransformBuffer, tracer: object) -> None:
    """Copy the class and the slots of a tracer to a buffer."""
    for cls in type(tracer).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if slot != "__weakref__" and hasattr(tracer, slot):
                setattr(buffer, slot, getattr(tracer, slot))
    if isinstance(buffer, TransformBuffer):
        del buffer._wrappers  # a tracer has no use for them, and they may hold much memory
    set_class(buffer, type(tracer))


def as_traced(target: Any, operands: Any = ()) -> Any:
    """Convert the target of a write to a tracer, in place, if it is a buffer; return it.

    A buffer of integers or booleans stays a buffer unless an operand is batched by a vmap.
    """
    if type(target) in TRACEABLE and (target.dtype.kind in "fc" or any(map(_contains_batch, operands))):
        trace_buffer(target)
    return target


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


def _is_batched_index(index: Any) -> bool:
    """Whether an index differs between batch elements."""
    return any(
        isinstance(part, Value) and part.trace_kind == "batch" for part in (index if isinstance(index, tuple) else (index,))
    )


def _is_recorded_index(index: Any) -> bool:
    """Whether indexing must be recorded: the index is batched, or contains a node and the graph is recorded for a replay."""
    if _is_batched_index(index):
        return True
    return trace_guards.get() is not None and contains_node(index) and is_recording()


def _needs_graph(value: object) -> bool:
    """Whether the target of a write must be a tracer: a node in the value is batched, or the write is recorded."""
    if isinstance(value, Value):
        return is_recording() or value.trace_kind == "batch"
    return any(map(_needs_graph, value)) if isinstance(value, (list, tuple)) else False


def _as_integers(value: object, dtype: np.dtype[Any]) -> Any:
    """Convert the floating nodes in a value to integers.

    Raises
    ------
    LeakError
        If a node has a derivative. The nodes of piecewise constant functions, such as ``np.floor``, have none.
    """
    if isinstance(value, (list, tuple)):
        return [_as_integers(part, dtype) for part in value]
    if not isinstance(value, Value) or value.dtype.kind not in "fc":
        return value
    if type(value) in INERT or getattr(value, "_tangent", value) is None:
        return value.astype(dtype)
    raise make_leak_error(frame_up(2), f"the {describe(value)}")


# --------------------------------------------------------------------------- operators, methods, protocols


def _getitem(self: Any, index: Any) -> Any:
    if type(index) not in _BASIC_INDEX_TYPES and _is_recorded_index(index):  # NumPy does not dispatch to an index
        return bind(ops.getitem, (unwrap_buffer(self), *(index if isinstance(index, tuple) else (index,))))
    elements = unwrap_buffer(self)[index]
    return wrap_result(elements, (self,)) if type(elements) is ndarray else elements


_BASIC_INDEX_TYPES = frozenset({int, slice})


def _setitem(self: Any, index: Any, value: Any) -> None:
    memory = unwrap_buffer(self)
    if isinstance(value, ClassViews):
        value = value._traced
    if type(value) in _FAST_NUMBER_TYPES and type(index) in _BASIC_INDEX_TYPES:
        memory[index] = value
        return
    if trace_guards.get() is not None and not self.is_borrowed and _is_recorded_index(index):
        _store_traced(self, index, value)
        return
    has_node = type(value) not in _TYPES_WITHOUT_NODES and contains_node(value)
    if has_node and memory.dtype.kind in "fc":
        if _needs_graph(value):
            _store_traced(self, index, value)
        else:
            memory[index] = unwrap_buffers(to_values(value))
        return
    if has_node and memory.dtype.kind in "biu":
        value = _as_integers(value, memory.dtype)
        if _contains_batch(value):
            _store_traced(self, index, value)
            return
    try:
        memory[index] = _as_storable(value)
    except (IndexError, TypeError):
        if not _is_batched_index(index):
            raise
        _store_traced(self, index, value)


def _store_traced(buffer: Any, index: object, value: object) -> None:
    """Convert a buffer to a tracer, then write into it."""
    trace_buffer(buffer)
    buffer[index] = value


_FAST_NUMBER_TYPES = frozenset({float, int, np.float64})


def _as_storable(value: ArrayLike | Buffer | TransformBuffer) -> Any:
    """Return what NumPy can store for a value. A scalar integer node becomes a Python int, which logs a guard."""
    if isinstance(value, Value):
        return value if value.ndim or value.dtype.kind not in "iu" else operator.index(value)
    return unwrap_buffers(value)


def _fill(self: Any, value: object) -> None:
    self[...] = value


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``__array_ufunc__`` on the backing array; NotImplemented if an operand is a node, to which NumPy then dispatches."""
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
        outputs = tuple([wrap_result(part, ()) if target is None else target for target, part in zip(out, parts, strict=True)])
        return outputs if isinstance(result, tuple) else outputs[0]
    return None if result is None else wrap_result(result, (self,))


def _array_function(
    self: Any, function: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``__array_function__`` on the backing array; NotImplemented if an argument is a node, to which NumPy then dispatches."""
    if any(issubclass(cls, Value) for cls in types):
        return NotImplemented
    index = kwargs.get("indices", args[1] if len(args) > 1 else None)  # np.take does not dispatch to its indices
    if isinstance(index, Value) and index.trace_kind == "batch":
        return index.__array_function__(function, types, args, kwargs)
    values = (*args, *kwargs.values())
    keeps_lists = (spec := ops.SPECS.get(function)) is not None and spec.lists == "unchanged"
    # NumPy does not dispatch to these arguments: np.piecewise(a, conditions, [x, 0.0]), np.sum(a, initial=x)
    for node in flatten_sequences(values) if keeps_lists else (kwargs.get("initial"),):
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


def _make_binary_operator(name: str) -> Any:
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


def _make_inplace_operator(name: str) -> Any:
    """Make an in-place operator; if the other operand is a node, the buffer becomes a tracer."""
    numpy_method = getattr(ndarray, name)

    def operate(self: Any, other: Any) -> Any:
        other = stack_nested(other) if type(other) in (list, tuple) and contains_node(other) else other
        if isinstance(other, Value):
            if other.trace_kind == "batch" or (self.dtype.kind in "fc" and _needs_graph(other)):
                trace_buffer(self)
                return getattr(self, name)(other)
            other = _as_integers(other, self.dtype) if self.dtype.kind in "biu" else to_values(other)
            other = _as_storable(other)
        result = numpy_method(unwrap_buffer(self), unwrap_buffer(other))
        return result if result is NotImplemented else self

    operate.__name__ = name
    return operate


def _make_unary_operator(name: str) -> Any:
    """Make a unary operator that computes in the backing array."""
    numpy_method = getattr(ndarray, name)
    return lambda self: wrap_result(numpy_method(unwrap_buffer(self)), (self,))


def _make_special_method(name: str) -> Any:
    """Make a special method of the backing array, such as ``__int__``, whose result stays as NumPy returns it."""
    numpy_method = getattr(ndarray, name)
    return lambda self, *args: numpy_method(unwrap_buffer(self), *map(unwrap_buffer, args))


def _make_method(name: str) -> Any:
    """Make a method that calls NumPy's function of that name if an argument is a node, because methods do not dispatch."""
    numpy_method = getattr(ndarray, name)

    @functools.wraps(numpy_method)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        if any(map(contains_node, args)) or any(map(contains_node, kwargs.values())):
            return getattr(np, name)(self, *args, **kwargs)
        plain_args, plain_kwargs = unwrap_buffers(args), unwrap_buffers(kwargs)
        result = numpy_method(unwrap_buffer(self), *plain_args, **plain_kwargs)
        for argument, plain in zip((*args, *kwargs.values()), (*plain_args, *plain_kwargs.values()), strict=True):
            if plain is result:  # out=, also by position
                return argument
        return wrap_result(result, (self,))

    return method


def _make_view_attribute(name: str) -> property:
    """Make ``z.real``, ``z.imag`` or ``a.flat``; the array becomes a tracer when a node is written into it."""
    descriptor = getattr(ndarray, name)

    def write(self: Any, value: object) -> None:
        if contains_node(value) and _needs_graph(value) and self.dtype.kind in "fc":
            trace_buffer(self)
            setattr(self, name, value)
        else:
            descriptor.__set__(unwrap_buffer(self), unwrap_buffers(value))

    def read(self: Any) -> Any:
        if name == "flat":
            return self.reshape(-1) if self.flags.c_contiguous else unwrap_buffer(self).flat  # writes reach the reshaped view
        return wrap_result(descriptor.__get__(unwrap_buffer(self)), (self,))

    return property(read, write)


def _make_attribute(name: str) -> property:
    """Make an attribute of the backing array, such as ``dtype``; it can be set if NumPy's can."""
    descriptor = getattr(ndarray, name)
    write = getattr(descriptor, "__set__", None)
    return property(
        lambda self: descriptor.__get__(self.raw_value),
        None if write is None else lambda self, value: write(self.raw_value, value),
    )


def _make_hidden_attribute(name: str) -> property:
    """Make a property that raises AttributeError, so that NumPy calls ``__array__`` instead of reading the memory."""

    def read(self: Any) -> Any:
        raise AttributeError(f"a buffer has no {name}; use np.asarray(x)")

    return property(read)


def _array_wrap(self: Any, array: NDArray[Any], context: tuple[Any, ...] | None = None, return_scalar: bool = False) -> Any:
    """``__array_wrap__``: wrap a result that NumPy computed from a borrowed array."""
    return array[()] if return_scalar else wrap_result(array, ())


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    return self.raw_value if dtype is None and not copy else np.array(self.raw_value, dtype=dtype, copy=copy)


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
# Attributes that `Buffer` does not copy from ndarray.
_UNCOPIED_ATTRIBUTES = frozenset({
    "__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__",
    "__init_subclass__", "__subclasshook__", "__class_getitem__", "__array_finalize__", "__array_wrap__", "__array_priority__",
    "__sizeof__", "__getstate__", "__setstate__", "__iter__", "__len__", "__hash__", "__array_namespace__", "__dlpack_device__",
    "__delitem__", "device", "ndim", "size", "shape",
})  # fmt: skip


def _install_methods() -> None:
    common_methods: dict[str, Any] = {"__getitem__": _getitem, "__setitem__": _setitem, "fill": _fill}
    common_methods |= {"__array_function__": _array_function}
    for name in _BINARY:
        common_methods |= {f"__{prefix}{name}__": _make_binary_operator(f"__{prefix}{name}__") for prefix in ("", "r")}
        if name != "divmod":
            common_methods[f"__i{name}__"] = _make_inplace_operator(f"__i{name}__")
    methods = {name: value for name, value in vars(ndarray).items() if callable(value) and not name.startswith("__")}
    common_methods |= {name: _make_method(name) for name in methods if name not in common_methods}
    common_methods |= {name: _make_view_attribute(name) for name in ("real", "imag", "flat")}
    common_methods["__reduce__"] = lambda self: unwrap_buffer(self).__reduce__()
    common_methods["__reduce_ex__"] = lambda self, protocol: unwrap_buffer(self).__reduce_ex__(protocol)
    common_methods["__deepcopy__"] = lambda self, memo: self.copy()
    common_methods["__copy__"] = lambda self: self.copy("K")
    for name, method in common_methods.items():
        setattr(Buffer, name, method)
        if name not in ("setflags", "resize"):  # they change the array object, not its elements
            setattr(Borrowed, name, method)
    setattr(Borrowed, "__array_wrap__", _array_wrap)  # noqa: B010
    for name in _COMPARISONS:
        setattr(Buffer, f"__{name}__", _make_binary_operator(f"__{name}__"))
    for name in ("__neg__", "__pos__", "__abs__", "__invert__"):
        setattr(Buffer, name, _make_unary_operator(name))
    buffer_methods: dict[str, Any] = {
        "__array_ufunc__": _array_ufunc, "__array__": _array, "__hash__": None, "__array_priority__": 1e5,
        **{name: _make_hidden_attribute(name) for name in ("__array_interface__", "__array_struct__")},
        "T": property(lambda self: wrap_result(self.raw_value.T, (self,))),
        "mT": property(lambda self: wrap_result(self.raw_value.mT, (self,))),
        "shape": _make_attribute("shape"), "base": property(lambda self: self.args[0] if self.args else None),
        "__format__": lambda self, spec: format(self.raw_value[()], spec), "__len__": lambda self: len(self.raw_value),
    }  # fmt: skip
    for name, method in buffer_methods.items():
        setattr(Buffer, name, method)
    for name, value in vars(ndarray).items():
        if name not in vars(Buffer) and name not in _UNCOPIED_ATTRIBUTES:
            setattr(Buffer, name, _make_special_method(name) if callable(value) else _make_attribute(name))


_install_methods()
