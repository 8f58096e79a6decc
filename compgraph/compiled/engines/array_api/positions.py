"""Elements of arrays by their positions: strided windows as slices, gathers, and updates of some elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....array_types import Operand

Namespace = Any
Array = Any


class UnsupportedError(NotImplementedError):
    """An operation or an option has no counterpart in a library."""


def size_of(x: Array) -> int:
    """Return the number of elements."""
    return math.prod(x.shape)


def as_array(xp: Namespace, values: Operand, like: Array, dtype: object = None) -> Array:
    """Convert a NumPy array to an array of the namespace, on the device of `like`."""
    device = getattr(like, "device", None)
    options = {} if device is None or callable(device) else {"device": device}
    return xp.asarray(values, dtype=dtype, **options)


def number(xp: Namespace, value: complex, like: Array) -> Array:
    """Convert a number to a 0-d array of the dtype and on the device of `like`."""
    return as_array(xp, value, like, like.dtype)


def is_complex(xp: Namespace, x: Array) -> bool:
    """Return whether an array is complex."""
    return bool(xp.isdtype(x.dtype, "complex floating"))


def is_floating(xp: Namespace, x: Array) -> bool:
    """Return whether an array is real or complex floating-point."""
    return bool(xp.isdtype(x.dtype, ("real floating", "complex floating")))


def flat(xp: Namespace, x: Array) -> Array:
    """Return an array as a vector, in C order."""
    return xp.reshape(x, (size_of(x),))


class Box(NamedTuple):
    """Elements of a reshaped array, as one slice per axis.

    Attributes
    ----------
    dims : tuple of int
        The shape to which the array is reshaped.
    ranges : tuple of range
        The positions along each axis.
    """

    dims: tuple[int, ...]
    ranges: tuple[range, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of the elements in the reshaped array."""
        return tuple(slice(r.start, r.stop, r.step) for r in self.ranges)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return tuple(map(len, self.ranges))


def find_box(shape: tuple[int, ...], lengths: Sequence[int], strides: Sequence[int], offset: int) -> Box | None:
    """Return a strided window of an array, in C order, as slices of the reshaped array; None if there are no such slices.

    Lengths, strides and the offset are those of the window, in elements.
    """
    size = math.prod(shape)
    steps = [(n, s) for n, s in zip(lengths, strides, strict=True) if n != 1]
    if 0 in lengths or any(s <= 0 for _, s in steps):
        return None
    block_strides = [s for _, s in steps if s > 1]
    chain = [size, *block_strides, 1]
    derived_dims = [a // b for a, b in itertools.pairwise(chain)] if all(a % b == 0 for a, b in itertools.pairwise(chain)) else []
    for dims in (shape, tuple(derived_dims)):
        if dims and math.prod(dims) == size and (ranges := _ranges_in(dims, steps, offset)) is not None:
            return Box(dims, ranges)
    return None


def _ranges_in(dims: tuple[int, ...], steps: Sequence[tuple[int, int]], offset: int) -> tuple[range, ...] | None:
    """Return the positions along each axis of the elements ``offset + sum(k * stride)``; None unless they are slices."""
    first, block = np.unravel_index(offset, dims), math.prod(dims)
    remaining_steps, ranges = list(steps), []
    for low, length in zip(map(int, first), dims, strict=True):
        above, block = block, block // length
        count, step = 1, 1
        if remaining_steps and block <= remaining_steps[0][1] < above:
            count, stride = remaining_steps.pop(0)
            step = stride // block
            if stride % block or low + step * (count - 1) >= length:
                return None
        ranges.append(range(low, low + step * (count - 1) + 1, step))
    return None if remaining_steps else tuple(ranges)


def embed(xp: Namespace, values: Array, shape: Sequence[int], ranges: Sequence[range]) -> Array:
    """Return an array of zeros, with values at the positions of `ranges` along each axis."""
    for axis, (length, positions) in enumerate(zip(shape, ranges, strict=True)):
        if len(positions) == length:
            continue
        outer, inner, count = values.shape[:axis], values.shape[axis + 1 :], len(positions)
        if positions.step > 1 and count > 1:
            gaps = xp.zeros((*outer, count, positions.step - 1, *inner), dtype=values.dtype)
            values = xp.concat([xp.reshape(values, (*outer, count, 1, *inner)), gaps], axis=axis + 1)
            values = xp.reshape(values, (*outer, count * positions.step, *inner))
            values = values[(slice(None),) * axis + (slice(0, (count - 1) * positions.step + 1), ...)]
        before = positions[0] if count else 0
        ends = [(*outer, n, *inner) for n in (before, length - before - values.shape[axis])]
        values = xp.concat([xp.zeros(ends[0], dtype=values.dtype), values, xp.zeros(ends[1], dtype=values.dtype)], axis=axis)
    return values


def gather(xp: Namespace, x: Array, positions: NDArray[Any]) -> Array:
    """Return the elements at positions of the flattened array; 0 where a position is negative."""
    positions = np.asarray(positions)
    vector = flat(xp, x)
    if positions.size and positions.min() < 0:
        vector = xp.concat([vector, xp.zeros_like(vector[:1]) if vector.shape[0] else xp.zeros((1,), dtype=x.dtype)])
        positions = np.where(positions < 0, size_of(x), positions)
    if not positions.size:
        return xp.reshape(vector[:0], positions.shape)
    return xp.reshape(xp.take(vector, as_array(xp, positions.ravel(), x, xp.int64), axis=0), positions.shape)


def move_elements(xp: Namespace, function: Callable[..., Any], x: Array, *args: object, **options: object) -> Array:
    """Apply a NumPy function that only moves elements: it is called on their positions, by which they are then gathered.

    The function may insert zeros.
    """
    positions = function(np.arange(1, size_of(x) + 1).reshape(x.shape), *args, **options)
    return gather(xp, x, np.asarray(positions) - 1)


def put(xp: Namespace, x: Array, positions: NDArray[Any], values: Array) -> Array:
    """Return a copy of an array with values at distinct positions of the flattened array (plain integers)."""
    size, sources = size_of(x), np.arange(size_of(x))
    sources[np.ravel(positions)] = size + np.arange(np.size(positions))
    elements = xp.concat([flat(xp, x), flat(xp, xp.broadcast_to(values, np.shape(positions)))])
    return gather(xp, elements, sources.reshape(x.shape))


def add_at(xp: Namespace, x: Array, positions: Any, values: Array) -> Array:
    """Return a copy of an array with values added at positions of the flattened array, also repeatedly."""
    values = flat(xp, xp.broadcast_to(values, np.shape(positions)))
    if not isinstance(positions, np.ndarray):
        hits = xp.astype(flat(xp, positions)[None, :] == xp.arange(size_of(x), dtype=positions.dtype)[:, None], x.dtype)
        return x + xp.reshape(hits @ values, x.shape)
    order = np.argsort(positions.ravel(), kind="stable")
    ranked = positions.ravel()[order]
    occurrence = np.arange(ranked.size) - np.searchsorted(ranked, ranked)  # of the same position
    for k in range(int(occurrence.max(initial=-1)) + 1):
        source = np.full(size_of(x), -1)
        source[ranked[occurrence == k]] = order[occurrence == k]
        x = x + gather(xp, values, source.reshape(x.shape))
    return x


def wrap_negative(xp: Namespace, index: Any, length: int) -> Any:
    """Return indices with negative ones counted from the end."""
    if isinstance(index, (int, np.integer, np.ndarray)):
        return np.where(np.asarray(index) < 0, np.asarray(index) + length, index)
    return xp.where(index < 0, index + length, index)


def flat_positions(xp: Namespace, shape: tuple[int, ...], index: Sequence[Any], like: Array) -> Array:
    """Return the positions in the flattened array of the elements that an index with computed parts selects."""
    parts = expand_index(index, len(shape))
    advanced = [k for k, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    advanced_position = advanced[0] if advanced and advanced == list(range(advanced[0], advanced[-1] + 1)) else 0
    advanced_shape = np.broadcast_shapes(*[np.shape(parts[k]) for k in advanced])
    other_parts = [k for k in range(len(parts)) if k not in advanced]
    leading = [k for k in other_parts if k < advanced_position]
    order: list[Any] = [*leading, "advanced", *[k for k in other_parts if k not in leading]]
    axis_of = np.cumsum([part is not None for part in parts]) - 1
    lengths = {k: 1 if parts[k] is None else len(range(*parts[k].indices(shape[axis_of[k]]))) for k in other_parts}
    result_shape = [n for k in order for n in (advanced_shape if k == "advanced" else (lengths[k],))]
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    total = as_array(xp, np.zeros(result_shape, np.int64), like)
    start = 0
    for k in order:
        if k == "advanced":
            for j in advanced:
                part = wrap_negative(xp, parts[j], shape[axis_of[j]])
                part = as_array(xp, part, like, xp.int64) if isinstance(part, np.ndarray) else xp.astype(part, xp.int64)
                new_axes = (1,) * (len(advanced_shape) - part.ndim)
                part = xp.reshape(part, (*new_axes, *part.shape, *(1,) * (len(result_shape) - start - len(advanced_shape))))
                total = total + part * strides[axis_of[j]]
            start += len(advanced_shape)
        else:
            if parts[k] is not None:
                steps = np.arange(shape[axis_of[k]])[parts[k]] * strides[axis_of[k]]
                total = total + as_array(xp, steps.reshape(-1, *(1,) * (len(result_shape) - start - 1)), like, xp.int64)
            start += 1
    return total


def expand_index(index: Sequence[Any], ndim: int) -> list[Any]:
    """Return the parts of an index, with slices in place of the ellipsis and of omitted axes at the end."""
    used = sum(part is not None and part is not Ellipsis for part in index)
    everything = [slice(None)] * (ndim - used)
    ellipsis_position = next((k for k, part in enumerate(index) if part is Ellipsis), None)
    return (
        [*index, *everything]
        if ellipsis_position is None
        else [*index[:ellipsis_position], *everything, *index[ellipsis_position + 1 :]]
    )


def is_basic(index: Sequence[Any]) -> bool:
    """Return whether an index has only slices, integers, None and an ellipsis."""
    return all(
        part is None or part is Ellipsis or (isinstance(part, (slice, int, np.integer)) and not isinstance(part, bool))
        for part in index
    )


def is_static(index: Sequence[Any]) -> bool:
    """Return whether an index has plain parts only."""
    return all(
        part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer, np.ndarray, list, bool)) for part in index
    )
