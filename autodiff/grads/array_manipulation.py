"""Rules of operations that rearrange whole arrays: reshaping, joining, indexing, and views of written buffers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.storage import layout_of, overlaps_itself, scatter_to_buffer, window

from ..rules import SharedFormulas, general, linear, record_getitem, scatter, scatter_lazily


def _identity(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **_: object) -> Any:
    return g


def _pull_reshape(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], *, order: Any = "C", **_: object) -> Any:
    return np.reshape(g, x.shape, order=order)


def _pull_view(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], dtype: DTypeLike | None) -> Any:
    """Convert between the cotangent `g` of a complex array and those of its parts, which are ``Re g`` and ``-Im g``."""
    if x.dtype.kind == "c":
        return np.conjugate(g.copy().view(np.result_type(g.dtype, np.complex64)))
    return np.conjugate(g).copy().view(np.finfo(g.dtype).dtype)


def _pull_transpose(
    g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axes: NDArray[Any] | tuple[int, ...] | None = None
) -> Any:
    return np.transpose(g, None if axes is None else tuple(np.argsort([a % x.ndim for a in axes]).tolist()))


def _split_concatenated(
    argnums: list[int], g: NDArray[Any], out: NDArray[Any], *operands: NDArray[Any], axis: int = 0, **_: object
) -> list[Any]:
    """Return the parts of a concatenation's cotangent that belong to the operands `argnums`."""
    shapes = [np.shape(x) for x in operands]
    concat_axis = 0 if axis is None else axis % out.ndim
    bounds = list(itertools.accumulate([math.prod(s) if axis is None else s[concat_axis] for s in shapes], initial=0))
    leading_slices = (slice(None),) * concat_axis
    return [np.reshape(g[(*leading_slices, slice(bounds[p], bounds[p + 1]))], shapes[p]) for p in argnums]


def _unstack(argnums: list[int], g: NDArray[Any], out: NDArray[Any], *operands: Operand, axis: Any = 0, **_: object) -> list[Any]:
    """Return the parts of a stack's cotangent that belong to the operands `argnums`."""
    leading_slices = (slice(None),) * (axis % out.ndim)
    return [g[(*leading_slices, p)] for p in argnums]


astype_grad = linear("astype", _identity).moves_elements()
input_grad = linear("input", _identity).moves_elements()
copy_grad = linear("copy", _identity).moves_elements()
view_grad = linear("view", _pull_view)
broadcast_to_grad = linear("broadcast_to", _identity).moves_elements()
reshape_grad = linear("reshape", _pull_reshape).moves_elements()
ravel_grad = linear("ravel", _pull_reshape).moves_elements()
flatten_grad = linear("flatten", _pull_reshape).moves_elements()
squeeze_grad = linear("squeeze", lambda g, out, x, axis=None: np.reshape(g, x.shape)).moves_elements()
expand_dims_grad = linear("expand_dims", lambda g, out, x, axis: np.reshape(g, x.shape)).moves_elements()
transpose_grad = linear("transpose", _pull_transpose).moves_elements().with_formula("g.T")
swapaxes_grad = linear("swapaxes", lambda g, out, x, axis1, axis2: np.swapaxes(g, axis1, axis2)).moves_elements()
moveaxis_grad = linear("moveaxis", lambda g, out, x, source, destination: np.moveaxis(g, destination, source)).moves_elements()
concatenate_grad = linear("concatenate", shared=_split_concatenated).moves_elements()
stack_grad = linear("stack", shared=_unstack).moves_elements()

# ------------------------------------------------------------------------------------------- indexing


getitem_grad = general("getitem", scatter_lazily).tangent(lambda t, out, x, *index: record_getitem(t, *index)).selects_elements()


def _index_slices(argnums: list[int], index_counts: tuple[int, ...]) -> list[slice]:
    """Return, for each updated value, the slice of `updates` that holds its index.

    The operands of `scatter` are ``like, value, *index, value, *index, ...``. `argnums` are the positions of the values among
    them; `updates` lacks `like`.
    """
    starts = itertools.accumulate([1, *[count + 1 for count in index_counts[:-1]]])
    lengths = dict(zip(starts, index_counts, strict=True))
    return [slice(k, k + lengths[k]) for k in argnums]


def _gather_updates(
    argnums: list[int], g: NDArray[Any], out: NDArray[Any], like: NDArray[Any], *updates: object, index_counts: tuple[int, ...]
) -> list[Any]:
    """Return the elements of the cotangent at the indices of the updates."""
    return [record_getitem(g, *updates[index_slice]) for index_slice in _index_slices(argnums, index_counts)]


def _scatter_tangents(
    tangents: Sequence[Any], out: NDArray[Any], like: object, *updates: object, index_counts: tuple[int, ...]
) -> Any:
    """Scatter the tangents of the updates."""
    argnums = [k for k, t in enumerate(tangents) if t is not None and k > 0]
    if not argnums:
        return None
    indices = [updates[index_slice] for index_slice in _index_slices(argnums, index_counts)]
    tangent_updates = [part for k, index in zip(argnums, indices, strict=True) for part in (tangents[k], *index)]
    return bind(scatter, (like, *tangent_updates), {"index_counts": tuple(map(len, indices))})


# The first operand of scatter determines only the shape.
scatter_grad = general("scatter", shared=_gather_updates, fixed=1).moves_elements()
scatter_grad.tangents = SharedFormulas(_scatter_tangents, fixed=1)


def _pull_window(
    g: NDArray[Any], out: NDArray[Any], buffer: Any, *, shape: Any, dtype: Any, offset: int, strides: tuple[int, ...]
) -> Any:
    """Return zeros with `g` at the window. The cotangent of a complex buffer viewed by its real parts is conjugated."""
    memory: Any = to_values(buffer)
    # `flat` spans all addresses of the buffer, whose first element is at `start`
    low, high = np.lib.array_utils.byte_bounds(memory) if memory.size else (0, 0)
    start = layout_of(memory, low)["offset"]
    count, offset = -(-(high - low) // memory.itemsize), offset + start
    is_flat = memory.ndim == 1 and memory.flags.c_contiguous
    if overlaps_itself(window(np.empty(count, buffer.dtype), shape, dtype, offset, strides)):
        like = buffer if is_flat and dtype == buffer.dtype else np.zeros(count * memory.itemsize // dtype.itemsize, dtype)
        flat = _scatter_overlapping(g, like, shape, offset, strides)
    else:
        flat = bind(scatter_to_buffer, (g,), {"count": count, "dtype": buffer.dtype, "offset": offset, "strides": strides})
    if flat.dtype != buffer.dtype:
        flat = flat[::2] + 1j * flat[1::2]  # combine real and imaginary parts
    if not is_flat:
        flat = bind(window, (flat,), {"shape": memory.shape, "dtype": memory.dtype, "offset": start, "strides": memory.strides})
    return np.conjugate(flat) if dtype != buffer.dtype else flat


def _scatter_overlapping(
    g: NDArray[Any], like: NDArray[Any], shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> Any:
    """Add `g` to zeros of the shape of `like` at a window whose elements overlap. `offset` and `strides` are in bytes."""
    positions = np.full(shape, offset // like.itemsize)
    for axis, step in enumerate(strides):
        positions += np.expand_dims(np.arange(shape[axis]) * (step // like.itemsize), tuple(range(1, len(shape) - axis)))
    return bind(scatter, (like, np.ravel(g), np.ravel(positions)), {"index_counts": (1,)})


def _pull_scatter_to_buffer(
    g: Array, out: Array, values: NDArray[Any], *, count: int, dtype: DTypeLike | None, offset: int, strides: tuple[int, ...]
) -> Any:
    return bind(window, (g,), {"shape": values.shape, "dtype": values.dtype, "offset": offset, "strides": strides})


def _sum_at_positions(g: NDArray[Any], like: NDArray[Any], positions: Array) -> Any:
    """Sum the cotangents at each position of a flat array with the size and dtype of `like`."""
    return bind(scatter, (np.ravel(like), np.ravel(g), np.ravel(positions)), {"index_counts": (1,)})


window_grad = linear("window", _pull_window).selects_elements()
scatter_to_buffer_grad = linear("scatter_to_buffer", _pull_scatter_to_buffer).selects_elements()
scatter_add_grad = linear(
    "scatter_add",
    lambda g, out, region, values, positions: np.reshape(_sum_at_positions(g, region, positions), region.shape),
    lambda g, out, region, values, positions: _sum_at_positions(g, region, positions)[positions],
).moves_elements()
ops.register_operation(window, "window")
ops.register_operation(scatter_to_buffer, "scatter_to_buffer", kind="sequential")
