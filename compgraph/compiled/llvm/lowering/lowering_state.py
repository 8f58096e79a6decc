"""State of a lowering: the steps so far, and the view of each value; NumPy views as buffer views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .... import ops
from ....storage import owner_of, window
from ....values import ConstantNode, Value
from .. import elementwise_ops
from ..buffer_ir import Buffer, BufferView, Map, Step, c_strides, dense_view, element_dtype

UNSUPPORTED = "an operand or an option is not supported; pass arrays and default options"
EXACT_BITS = "exact=True requires NumPy's bits; exact=False compiles it"
EMPTY = "an operand is empty, 0-d or of an unsupported dtype"
MAX_SHARED_BYTES = 2048  # bytes of the largest constants that are deduplicated


def casts_like_numpy(value: object, dtype: np.dtype[Any]) -> bool:
    """Return whether compiled code converts a view or number to a dtype as NumPy does; float views are checked at run time."""
    if isinstance(value, BufferView):
        return True
    if type(value) is int and dtype.kind in "iu":  # comparisons with an integer out of range are exact
        return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
    kind = np.asarray(value).dtype.kind
    return kind in "biu" or (kind == "f" and dtype.kind in "bf")


def operands_and_options(item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the operands and options of an item, with operands passed by keyword among the options."""
    function = item.function
    if not isinstance(function, ops.Keyworded):
        return item.args, dict(item.options)
    count = len(item.args) - len(function.names)  # positional operands
    return item.args[:count], {**item.options, **dict(zip(function.names, item.args[count:], strict=True))}


class LoweringState:
    """The steps so far, and the views of their results.

    Parameters
    ----------
    inputs : iterable of Node
        The inputs of the program.
    is_exact : bool
        Whether only operations with NumPy's bits are compiled.

    Attributes
    ----------
    steps : list of Step
        The steps, in order.
    views : dict
        The view of each node with a numeric array.
    complex_parts : dict
        The views of the real and the imaginary part of each complex node that was computed; `views` gains such a node when its
        parts are stored as complex numbers.
    mask_positions : dict
        The positions, along each axis, of the true elements of masks that are used as indices.
    sorted_tables : set of BufferView
        The tables for which a check requires that they are sorted.
    inputs : dict
        The view of each input that is needed.
    """

    def __init__(self, inputs: Iterable[Any], is_exact: bool = False) -> None:
        self.is_exact = is_exact
        self.steps: list[Step] = []
        self.views: dict[Any, BufferView] = {}
        self.complex_parts: dict[Any, tuple[BufferView, BufferView]] = {}
        self.mask_positions: dict[Any, list[BufferView]] = {}
        self.sorted_tables: set[BufferView] = set()
        self.inputs: dict[Any, BufferView] = {}
        self._inputs = frozenset(inputs)
        self._external_views: dict[int, BufferView] = {}  # by the id of the array
        self._constants: dict[Any, BufferView] = {}
        self._keepalive: list[Any] = []  # arrays whose ids are keys
        self._scratch: dict[Any, BufferView] = {}

    def external(self, array: NDArray[Any], item: object = None) -> BufferView:
        """Return a view of an existing array: an input, a constant, or a variable, which is read at run time."""
        if any(s % array.itemsize for s in array.strides):
            raise NotImplementedError("the strides of an array are not multiples of its itemsize")
        if id(array) not in self._external_views or item in self._inputs:
            dtype, count = element_dtype(array.dtype)
            strides = tuple(s // dtype.itemsize for s in array.strides)
            node = item if item in self._inputs else array
            buffer = Buffer(dtype, count * array.size, node, is_external=True, is_complex=count == 2)
            self._external_views[id(array)] = BufferView(buffer, 0, array.shape, strides)
            self._keepalive.append(array)
        return self._external_views[id(array)]

    def view(self, operand: object) -> BufferView | None:
        """Return the view of an operand; None if it is not a real array of a supported dtype."""
        if isinstance(operand, np.ndarray) and operand.dtype.kind == "c":
            return None
        view = self.views.get(operand) if isinstance(operand, Value) else None
        if isinstance(operand, np.ndarray) and not isinstance(operand, Value):
            view = self.constant(operand)
        return None if view is None or not elementwise_ops.is_compilable(view.buffer.dtype) else view

    def operand_views(self, operands: Sequence[Any]) -> list[BufferView] | None:
        """Return the views of operands, also of numbers and nested lists; None if one is unsupported."""
        views = [self.view(a if isinstance(a, (Value, np.ndarray)) else np.asarray(a)) for a in operands]
        return None if None in views else views  # type: ignore[return-value]

    def constant(self, array: NDArray[Any]) -> BufferView:
        """Return a view of a constant array; small equal constants share a buffer."""
        if array.nbytes > MAX_SHARED_BYTES:
            return self.external(array)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.external(array)
        return self._constants[key]

    def operand(self, operand: object) -> Any:
        """Return the view of an operand, or the number that all its elements equal; None if unsupported."""
        if not isinstance(operand, np.ndarray):
            return operand if isinstance(operand, (bool, int, float, np.generic)) else None
        view = self.view(operand)
        if view is None or not self.is_constant(operand) or not view.buffer.size:
            return view
        if any(stride and length > 1 for stride, length in zip(view.strides, view.shape, strict=True)):
            return view
        return np.asarray(view.buffer.node)[(0,) * len(view.shape)]

    def is_constant(self, operand: object) -> bool:
        """Return whether an operand has the same value in each run."""
        if isinstance(operand, ConstantNode):
            return operand not in self._inputs and not operand.memory
        return not isinstance(operand, Value)

    def is_mutable(self, view: BufferView) -> bool:
        """Return whether a view is of an array with writes."""
        return isinstance(view.buffer.node, Value) and bool(view.buffer.node.memory)

    @staticmethod
    def is_shared(item: Any) -> bool:
        """Return whether a result shares memory with an operand."""
        if not isinstance(item.raw_value, np.ndarray):
            return False
        owner = owner_of(item.raw_value)
        return any(
            isinstance(a.raw_value, np.ndarray) and owner_of(a.raw_value) is owner for a in item.args if isinstance(a, Value)
        )

    def append_map(
        self,
        name: str,
        operands: Sequence[Any],
        out: BufferView,
        compute_dtype: np.dtype[Any] | None = None,
        is_write: bool = False,
    ) -> None:
        """Append a `Map`; operands are converted to the dtype `compute_dtype`, by default that of `out`."""
        compute_dtype = compute_dtype if compute_dtype is not None else out.buffer.dtype
        broadcast_operands = tuple([o.broadcast(out.shape) if isinstance(o, BufferView) else o for o in operands])
        if 0 not in out.shape:
            self.steps.append(Map(name, broadcast_operands, out, compute_dtype, is_write))

    def map_like(self, name: str, *operands: Any, like: BufferView, dtype: Any = None, compute_dtype: Any = None) -> BufferView:
        """Append an elementwise operation; return its result, with the shape, and by default the dtype, of `like`."""
        out = dense_view(dtype or like.buffer.dtype, like.shape)
        self.append_map(name, operands, out, compute_dtype or (None if dtype is None else like.buffer.dtype))
        return out

    def allocate_result(self, item: Any) -> BufferView:
        """Allocate a buffer for the value of an item, in C order, and register it."""
        array = np.asarray(item.raw_value)
        view = self.views[item] = dense_view(array.dtype, array.shape, item)
        return view

    def assign_view(self, item: object, source: BufferView, view: BufferView) -> None:
        """Make a view of `source` the value of an item, or a copy if NumPy copies and `source` has writes."""
        if self.is_shared(item) or not self.is_mutable(source):
            self.views[item] = view
        else:
            self.views[item] = out = dense_view(view.buffer.dtype, view.shape, item)
            self.append_map("copy", (view,), out)

    def scratch(self, dtype: np.dtype[Any], size: int) -> BufferView:
        """Return scratch memory for one step. Steps with equal sizes share it, so that repeated steps have the same structure."""
        key = np.dtype(dtype), size
        if key not in self._scratch:
            self._scratch[key] = dense_view(dtype, (size,))
        return self._scratch[key]

    def copy_of(self, view: BufferView, dtype: np.dtype[Any]) -> BufferView:
        """Append a copy of an array as a dtype."""
        out = dense_view(dtype, view.shape)
        self.append_map("copy", (view,), out, view.buffer.dtype)
        return out

    def ravel(self, view: BufferView) -> BufferView:
        """Return an array as one axis, copied unless it is dense."""
        view = view if view.is_dense else self.copy_of(view, view.buffer.dtype)
        return BufferView(view.buffer, view.offset, (prod(view.shape),), (1,))


def basic_index_view(view: BufferView, index: Sequence[Any]) -> BufferView | None:
    """Return the view of an array at a basic index; None for other indices."""
    index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else tuple(index)
    if not all(
        i is None or i is Ellipsis or (isinstance(i, (int, np.integer, slice)) and not isinstance(i, bool)) for i in index
    ):
        return None
    if Ellipsis not in index:
        index = (*index, Ellipsis)
    middle = index.index(Ellipsis)
    free = len(view.shape) - sum(i is not None and i is not Ellipsis for i in index)
    index = (*index[:middle], *[slice(None)] * free, *index[middle + 1 :])
    offset, shape, strides, axis = view.offset, [], [], 0
    for i in index:
        if i is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(i, slice):
            positions = range(*i.indices(length))
            shape.append(len(positions))
            strides.append(stride * positions.step)
            offset += positions.start * stride if positions else 0
        else:
            offset += (int(i) % length) * stride
    return BufferView(view.buffer, offset, tuple(shape), tuple(strides))


def view_of(item: Value, source: BufferView) -> BufferView | None:
    """Return the view of a node that may be a view of `source`; None if it is not a view, or unsupported."""
    if item.function is ops.getitem:
        index = item.args[1:]
        return None if any(isinstance(i, np.ndarray) for i in index) else basic_index_view(source, index)
    return VIEWS[item.function](item, source)


def _transpose(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or not {"axes"}.issuperset(item.options):
        return None
    axes = item.options.get("axes")
    return _permute(source, range(len(source.shape))[::-1] if axes is None else axes)


def _permute(source: BufferView, axes: Sequence[int]) -> BufferView:
    count = len(source.shape)
    order = [int(a) % count for a in axes]
    return BufferView(
        source.buffer, source.offset, tuple(source.shape[a] for a in order), tuple(source.strides[a] for a in order)
    )


def _swapaxes(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or set(item.options) != {"axis1", "axis2"}:
        return None
    axes, count = list(range(len(source.shape))), len(source.shape)
    a, b = item.options["axis1"] % count, item.options["axis2"] % count
    axes[a], axes[b] = axes[b], axes[a]
    return _permute(source, axes)


def _moveaxis(item: Value, source: BufferView) -> BufferView | None:
    if len(item.args) > 1 or set(item.options) != {"source", "destination"}:
        return None
    axes = np.arange(len(source.shape))  # axis numbers as lengths are permuted like the axes
    permuted_axes = np.moveaxis(np.empty(axes, bool), **item.options).shape
    return _permute(source, permuted_axes)


def _broadcast_to(item: Value, source: BufferView) -> BufferView | None:
    return source.broadcast(np.shape(item.raw_value))


def _reshape(item: Value, source: BufferView) -> BufferView | None:
    shape = np.shape(item.raw_value)
    is_c_order = item.options.get("order", "C") in ("C", None) and set(item.options) <= {"shape", "order", "axis", "copy"}
    if not is_c_order or item.options.get("copy"):
        return None
    if not source.is_dense:  # NumPy returns a view if only axes of length 1 change, and usually a copy otherwise
        return _squeeze(item, source)
    return BufferView(source.buffer, source.offset, shape, c_strides(shape))


def _squeeze(item: Value, source: BufferView) -> BufferView | None:
    """Return the view whose shape differs from that of `source` only in axes of length 1; None if other axes differ."""
    shape = np.shape(item.raw_value)
    lengths = [(n, s) for n, s in zip(source.shape, source.strides, strict=True) if n != 1]
    if [n for n, _ in lengths] != [n for n in shape if n != 1]:
        return None
    strides = iter([s for _, s in lengths])
    return BufferView(source.buffer, source.offset, shape, tuple(0 if n == 1 else next(strides) for n in shape))


def _window(item: Value, source: BufferView) -> BufferView | None:
    """Return a window of memory. Of complex numbers, `source` is the real part; a window may show that or both parts."""
    options, size, memory = item.options, source.buffer.dtype.itemsize, item.args[0].raw_value
    _, count = element_dtype(memory.dtype)
    has_same_layout = memory.flags.c_contiguous and source.strides == tuple(count * s for s in c_strides(source.shape))
    if not has_same_layout or element_dtype(options["dtype"])[0] != source.buffer.dtype or options["offset"] % size:
        return None
    strides = tuple(s // size for s in options["strides"])
    return BufferView(source.buffer, source.offset + options["offset"] // size, tuple(options["shape"]), strides)


VIEWS = {
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.broadcast_to: _broadcast_to,
    np.reshape: _reshape,
    np.ravel: _reshape,
    np.expand_dims: _squeeze,
    np.squeeze: _squeeze,
    window: _window,
}
