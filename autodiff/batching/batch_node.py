"""`BatchNode`: a batched value, with one value per element of a `vmap`.

`compgraph.bind` dispatches every operation on a `BatchNode` to `BatchNode.process`, and every write to `BatchNode.store`. As an
array, a `BatchNode` has the shape of one element and exposes no data. Its `values` have the batch axis first: a plain array, a
node, a value with a tangent, or a `BatchNode` of an outer level.

Batch axes lie outside of all derivatives. Under vmap, a differentiating operator first lifts its arguments (see `lifting`), so
its sweeps and writes process ordinary arrays whose first axis is a batch axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Operand
from compgraph.bind import bind
from compgraph.context import is_blocked_level, is_recording
from compgraph.frames import callee, frame_up, is_internal, unknown
from compgraph.graph import as_operand
from compgraph.inplace import as_traced
from compgraph.ops import getitem
from compgraph.protocols import number_methods, pass_leading_by_position
from compgraph.storage import layout_in, owner_of, window
from compgraph.tracing import RETRACERS
from compgraph.values import (
    NO_OPTIONS,
    BatchedValueError,
    InertNode,
    OperationalNode,
    TransformTracer,
    Value,
    describe,
    new_leaf,
    reported_class,
)

from .batched_writes import require_batched_target, store, ufunc_at
from .levels import (
    base_of,
    batch_depth,
    broadcast_buffer,
    copy_values,
    dummy_array,
    dummy_arrays,
    pad_ndim,
    plain_base,
    require_live,
)
from .rules import Call, apply_batch_rule, map_elements

ndarray = np.ndarray
_SCALAR_TYPES = frozenset({int, float, bool, complex, np.float64, np.float32, np.int64, np.bool_})
_BASIC_INDEX = frozenset({int, slice, type(None), type(Ellipsis), np.int64})
# Functions that return an array, not a scalar, for a 0-d array; and those that do so for a scalar too.
_KEEP_0D_ARRAYS, _MAKE_0D_ARRAYS = (
    frozenset(spec.function for spec in ops.OPERATIONS if spec.scalar_result == result) for result in ("like operands", "array")
)
_PIECEWISE = ops.PIECEWISE
_array_ufunc: Any = Value.__array_ufunc__


class BatchNode(TransformTracer):
    """A batched value: one value for each element of a batch. It has the shape and dtype of one element.

    Attributes
    ----------
    values : array or Node
        The values of all elements, with the batch axis first.
    level : int
        The level of the vmap. Inner vmaps, and derivatives within them, have higher levels.
    root : BatchNode or None
        The owner of the buffer, for a view.
    borrows_values : bool
        Whether the buffer belongs to the caller, so that it is copied before a write. For a view, see `is_unrecorded_view`.
    """

    __slots__ = ()
    __class__ = reported_class
    kind = "batch"
    trace_kind = "batch"
    # A batched value has no history of its own: its `values` have.
    function = memory = _operands = code = None
    args: ClassVar[tuple[Any, ...]] = ()  # type: ignore[misc]
    parent_argnums: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    options: ClassVar[dict[str, Any]] = NO_OPTIONS  # type: ignore[misc]
    sequence_number = instruction = 0

    root: BatchNode | None
    borrows_values: bool
    _values: Any
    _root_values: Any  # of a view, the values of the root that `_values` is a view of

    @classmethod
    def create_using(cls, values: NDArray[Any], level: int, root: BatchNode | None = None, is_array: bool = False) -> BatchNode:
        """Wrap values whose first axis is the batch axis. 0-d elements are scalars, unless `is_array` or the node is a view."""
        shape, dtype = values.shape[1:], values.dtype
        try:
            raw_value = dummy_arrays[shape, dtype]
        except KeyError:
            raw_value = dummy_array(shape, dtype)
        node: Any = cls()  # type: ignore[call-arg]
        node.raw_value = raw_value
        node._values, node.level, node.root = values, level, root
        node._root_values = None if root is None else root._values
        node.is_scalar = not shape and root is None and not is_array
        node.borrows_values, node._name = False, None
        return node  # type: ignore[no-any-return]

    @classmethod
    def borrow(cls, values: NDArray[Any], level: int, is_array: bool = True) -> BatchNode:
        """Wrap values of the caller. They are copied before a write, or at once if they are not contiguous and writeable."""
        flags = plain_base(values).flags
        is_borrowed = flags.c_contiguous and flags.writeable
        node = cls.create_using(values if is_borrowed else copy_values(values), level, is_array=is_array)
        node.borrows_values = is_borrowed
        return node

    @property
    def is_unrecorded_view(self) -> bool:
        """Whether this is a view that was made under `no_graph` of a recorded root, so that it cannot follow later writes."""
        return self.root is not None and self.borrows_values

    @property
    def batch_size(self) -> int:
        """The length of the batch axis."""
        return int(self._values.shape[0])

    @property
    def values(self) -> Any:
        """The values of all elements, with the batch axis first."""
        root = self.root
        if root is not None and root._values is not self._root_values:  # replaced by a copy or a node
            if self.is_unrecorded_view:
                raise TypeError(
                    f"vmap: the base of a view was written to after the view was made under no_graph: {describe(self)}. Copy "
                    "the view where it is made (np.copy)"
                )
            values = bind(window, (root._values,), self._layout_in(self._root_values))
            level = getattr(base_of(root._values), "level", 0)
            if not is_recording() or (level and is_blocked_level(level)):  # not recorded
                return values
            self._values, self._root_values = values, root._values
        return self._values

    def _layout_in(self, buffer: NDArray[Any]) -> dict[str, Any]:
        """Return the offset, shape and strides of this view in its root's buffer, without the batch axes of outer levels."""
        depth = batch_depth(self._values)
        layout = layout_in(plain_base(buffer), plain_base(self._values))
        shape, strides = layout["shape"][depth:], layout["strides"][depth:]
        root_values = self.root._values  # type: ignore[union-attr]
        batch_stride = plain_base(root_values).strides[batch_depth(root_values)]  # 0 if it was broadcast
        return {**layout, "shape": shape, "strides": (batch_stride, *strides[1:])}

    @classmethod
    def process(cls, level: int, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` for all elements of the batch."""
        require_live(level)
        if type(function) is np.ufunc and not options and function.signature is None and function.nout == 1:
            result = _apply_ufunc(cls, level, function, args)
            if result is not None:
                return result
        batched = [type(a) is cls and a.level == level for a in args]
        nodes = [a for a, is_batched in zip(args, batched, strict=True) if is_batched]
        _record_buffers(nodes, args)
        values = [a.values if is_batched else a for a, is_batched in zip(args, batched, strict=True)]
        if function is getitem and len(args) == 2 and batched[0] and (parts := basic_parts(args[1])) is not None:
            out = bind(getitem, (values[0], (slice(None), *parts)))
            if out.ndim == 1 and Ellipsis not in parts:  # an element by integers is a new scalar, not a view
                out = np.copy(out)
        else:
            out = apply_batch_rule(Call(function, values, batched, options, nodes[0].batch_size))
        is_array = function in _MAKE_0D_ARRAYS or (function in _KEEP_0D_ARRAYS and not all(a.is_scalar for a in nodes))
        shares_no_memory = type(function) is np.ufunc or function in _PIECEWISE
        return _wrap(out, level, () if shares_no_memory else nodes, is_array)

    @classmethod
    def store(cls, level: int, target: NDArray[Any], index: object, value: Operand, casting: str | None) -> None:
        """Write ``target[index] = value`` for all elements of the batch."""
        require_live(level)
        require_batched_target(level, target, index)
        store(target, index, value, casting)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: object) -> Any:
        if len(inputs) == 1 and not options and method == "__call__" and ufunc in ops.SMOOTH_UFUNCS:  # fast path
            return self.process(self.level, ufunc, inputs, NO_OPTIONS)
        if method == "at" and type(as_traced(inputs[0], inputs)) is BatchNode:
            target, index, *others = inputs
            operands = tuple(map(as_operand, others))
            level = max(x.level for x in (target, *operands) if isinstance(x, Value))
            require_live(level)
            require_batched_target(level, target, index)
            return ufunc_at(ufunc, target, index, operands)
        return _array_ufunc(self, ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function. If its steps depend on the values of single elements, map it over the batch."""
        has_out = kwargs.get("out") is not None
        if function in ops.WRITING_FUNCTIONS:
            args, kwargs = pass_leading_by_position(function, args, kwargs)
        try:
            return Value.__array_function__(self, function, types, args, dict(kwargs))
        except BatchedValueError:
            if function in ops.PLAIN_FUNCTIONS or function in ops.SMOOTH_FUNCTIONS or has_out:
                raise
            if function in ops.WRITING_FUNCTIONS:
                if not isinstance(args[0], BatchNode):
                    raise
                args[0].prepare_write(None)  # the loop writes into views of it
            return self.map_elements(f"np.{function.__name__}", function, args, kwargs)

    map_elements = staticmethod(map_elements)  # for compgraph, which does not import this package

    def prepare_write(self, values: object) -> None:
        """Prepare the buffer for a write of `values`: copy a borrowed buffer, and convert it to a node if `values` is a node."""
        root = self._owning_root()
        buffer = _writable_buffer(root._values, values)
        if buffer is not root._values:
            root._values = buffer

    def _owning_root(self) -> BatchNode:
        """Return the node that owns the buffer; a borrowed buffer is copied first."""
        root = self if self.root is None else self.root
        if root.borrows_values:
            root._values, root.borrows_values = copy_values(root._values), False
        return root

    # ---------------------------------------------------------------------- conversions to one number, which raise

    def single_value_error(self, operation: str) -> BatchedValueError:
        """Return the error for an operation that needs a single value, such as ``bool()``."""
        return BatchedValueError(
            f"vmap: {operation} of the {describe(self)} needs one value, but it is batched ({self.batch_size} values). Use "
            "np.where(condition, a, b) in place of if, or exclude the argument from vmap (in_axes None)"
        )

    def __hash__(self) -> int:  # type: ignore[override]
        """Hash by identity, within this package; in the user's code a scalar raises, because its value is unknown."""
        if not self.ndim and not is_internal(frame_up(1).f_code.co_filename):
            raise self.single_value_error("hash()")
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"BatchNode(batch size {self.batch_size}, shape {self.shape}, dtype={self.dtype})"

    def __str__(self) -> str:
        if callee(frame_up(1)) in (str, unknown):  # the string may become a key or be compared
            raise self.single_value_error("str()")
        return repr(self)

    def __format__(self, spec: str) -> str:
        if spec:
            raise self.single_value_error("format()")
        return repr(self)

    @property  # type: ignore[misc]
    def strides(self) -> Any:
        """The strides of one element."""
        base = plain_base(self.values)
        return base.strides[base.ndim - self.ndim :]

    @property
    def flags(self) -> Any:
        """The flags of one element."""
        if self.is_scalar:
            return self.dtype.type(0).flags
        base = plain_base(self.values)
        depth = base.ndim - self.ndim
        return (base[(0,) * depth + (...,)] if all(base.shape[:depth]) else np.empty(self.shape, self.dtype)).flags


def _raising_method(name: str, operation: str) -> Callable[..., Any]:
    """Make a method that raises the error of `BatchNode.single_value_error`."""

    def method(self: BatchNode, *args: object, **kwargs: object) -> Any:
        if name in ("__float__", "__array__"):
            for retrace in RETRACERS:
                retrace(frame_up(1))
        raise self.single_value_error(operation)

    method.__name__ = name
    return method


for _name in ("bool", "float", "int", "complex", "index", "round", "trunc", "floor", "ceil"):
    setattr(BatchNode, f"__{_name}__", _raising_method(f"__{_name}__", f"{_name}()"))
for _name in ("item", "tolist", "tobytes", "tofile", "dump", "dumps", "__array__", "__dlpack__"):
    setattr(BatchNode, _name, _raising_method(_name, f".{_name}()"))
for _name, _method in number_methods.items():
    setattr(BatchNode, _name, _method)
BatchNode.__contains__ = _raising_method("__contains__", "in")  # type: ignore[method-assign]
for _name in ("value", "data", "ctypes", "__array_interface__", "__array_struct__"):
    setattr(BatchNode, _name, property(_raising_method(_name, f".{_name}")))


# ------------------------------------------------------------------------------------------------ operations


def _record_buffers(nodes: Sequence[BatchNode], operands: Sequence[object]) -> None:
    """If an operand is recorded, convert the buffers of plain batched values to nodes, so that later writes are logged."""
    if not any(isinstance(base_of(a), Value) for a in operands) or not is_recording():
        return
    for node in nodes:
        root = node if node.root is None else node.root
        if type(root._values) is ndarray and not root.is_scalar:
            root._values = new_leaf(node._owning_root()._values, InertNode, None)


def _apply_ufunc(cls: type[BatchNode], level: int, function: np.ufunc, args: tuple[Any, ...]) -> Any:
    """Compute a ufunc of one or two operands faster than `process`; return None if that is not possible."""
    if len(args) == 1:
        values = args[0].values
        if type(values) is ndarray:
            return cls.create_using(function(values), level)
        return cls.create_using(bind(function, (values,)), level)
    if len(args) != 2:
        return None
    a, b = args
    if a is None or b is None:  # x == None
        return None
    x = a.values if type(a) is cls and a.level == level else a
    y = b.values if type(b) is cls and b.level == level else b
    a_is_batched, b_is_batched = x is not a, y is not b
    if a_is_batched:  # align the axes of the elements
        ndim = y.ndim - b_is_batched if type(y) not in _SCALAR_TYPES else 0
        x = x if x.ndim > ndim else pad_ndim(x, ndim)
    if b_is_batched:
        ndim = x.ndim - a_is_batched if type(x) not in _SCALAR_TYPES else 0
        y = y if y.ndim > ndim else pad_ndim(y, ndim)
    if (type(x) is ndarray or type(x) in _SCALAR_TYPES) and (type(y) is ndarray or type(y) in _SCALAR_TYPES):
        return cls.create_using(function(x, y), level)
    if type(x) is ndarray or type(y) is ndarray:  # `process` converts a plain buffer beside a node to a node
        return None
    return cls.create_using(bind(function, (x, y)), level)


def basic_parts(index: object) -> tuple[Any, ...] | None:
    """Return the parts of a basic index (integers, slices, None, an ellipsis); None for other indices."""
    parts = index if type(index) is tuple else (index,)
    return parts if _BASIC_INDEX.issuperset(map(type, parts)) else None


def _wrap(out: Any, level: int, nodes: Sequence[BatchNode], is_array: bool) -> Any:
    """Wrap the results of an operation; those that share memory with an operand become views of its root."""
    if isinstance(out, (tuple, list)):
        parts: list[Any] = [None if o is None else _wrap(o, level, nodes, is_array) for o in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    base = plain_base(out)
    root = None
    if type(base) is ndarray:
        owner = owner_of(base)
        for node in nodes:
            if owner_of(plain_base(node.values)) is owner:
                if node.is_scalar:  # NumPy returns a new array for a number
                    out = copy_values(out)
                else:
                    root = node if node.root is None else node.root
                break
    batch_node = BatchNode.create_using(out, level, root, is_array)
    # A view under `no_graph` of a recorded root; see `is_unrecorded_view`.
    batch_node.borrows_values = root is not None and not is_recording() and isinstance(base_of(root._values), Value)
    return batch_node


# --------------------------------------------------------------------------------------------------- buffers


def _writable_buffer(buffer: Any, value: object) -> Any:
    """Return a buffer into which a value can be written: batched, with tangents, or recorded, as the value is."""
    if not isinstance(value, Value):
        return buffer
    if type(value) is BatchNode:
        if type(buffer) is BatchNode and buffer.level >= value.level:
            return buffer  # its own write adds missing batch axes, tangents and graph
        return BatchNode.create_using(broadcast_buffer(buffer, value.batch_size), value.level, is_array=True)
    if isinstance(buffer, Value) and (not value.level or buffer.level):
        return buffer
    return value.buffer_over(buffer) if value.level else new_leaf(buffer, OperationalNode, None)  # type: ignore[attr-defined]


class BufferWrapper:
    """Converts new arrays of a function under vmap to batched values, so that batched values can be written into them."""

    __slots__ = ("batch_size", "level")

    def __init__(self, level: int, batch_size: int) -> None:
        self.level, self.batch_size = level, batch_size

    def __call__(self, buffer: NDArray[Any]) -> BatchNode:
        """Repeat an array for each element of the batch."""
        return BatchNode.create_using(broadcast_buffer(buffer, self.batch_size), self.level, is_array=True)
