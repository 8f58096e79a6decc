"""Operations that reshape, join and move elements, in terms of the array API standard."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import NDArray

from .positions import UnsupportedError, as_array, flat, is_static, move_elements, size_of
from .reductions import Reduction

Namespace = Any
Array = Any


def reshape(xp: Namespace, a: Array, shape: Any = None, order: str = "C") -> Array:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
    if order == "F" and a.ndim + len(shape) > 2:
        return move_elements(xp, np.reshape, a, shape, order="F")
    if order not in ("C", "F", "A"):
        raise UnsupportedError(f"reshape in order {order!r} is not supported")
    if -1 in shape:
        other_size = -math.prod(shape)
        shape = tuple(size_of(a) // other_size if n == -1 else n for n in shape) if other_size else shape
    return xp.reshape(a, shape)


def ravel(xp: Namespace, a: Array, order: str = "C") -> Array:
    if order == "F":
        return flat(xp, transpose(xp, a))
    if order != "C" and a.ndim > 1:
        raise UnsupportedError(f"ravel in order {order!r} is not supported")
    return flat(xp, a)


def flatten(xp: Namespace, x: Array, order: str = "C") -> Array:
    """See `ops.flatten`."""
    return ravel(xp, x, order)


def transpose(xp: Namespace, a: Array, axes: NDArray[Any] | tuple[int, ...] | None = None) -> Array:
    order = range(a.ndim)[::-1] if axes is None else normalize_axis_tuple(axes, a.ndim)
    return xp.permute_dims(a, tuple(order)) if a.ndim > 1 else a


def swapaxes(xp: Namespace, a: Array, axis1: int, axis2: int) -> Array:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.permute_dims(a, tuple(order))


def moveaxis(xp: Namespace, a: Array, source: tuple[int, ...] | int, destination: tuple[int, ...] | int) -> Array:
    starts, ends = normalize_axis_tuple(source, a.ndim), normalize_axis_tuple(destination, a.ndim)
    order = [k for k in range(a.ndim) if k not in starts]
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return xp.permute_dims(a, tuple(order)) if a.ndim > 1 else a


def call_on_axes(
    xp: Namespace, function: Callable[..., Array], axes: Sequence[tuple[int, ...]], keeps_axis: bool, *operands: Array
) -> Array:
    """Call a function of the last axes with other axes of its operands, and of its result: the option ``axes`` of a ufunc."""
    last = (-2, -1)
    result = function(*[moveaxis(xp, x, moved, last[2 - len(moved) :]) for x, moved in zip(operands, axes, strict=False)])
    inner = axes[len(operands)]
    if not inner:
        return result
    return moveaxis(xp, result[..., None] if keeps_axis else result, last[2 - len(inner) :], inner)


def squeeze(xp: Namespace, a: Array, axis: tuple[int, ...] | None = None) -> Array:
    axes = [k for k, n in enumerate(a.shape) if n == 1] if axis is None else normalize_axis_tuple(axis, a.ndim)
    return xp.reshape(a, tuple(n for k, n in enumerate(a.shape) if k not in axes))


def expand_dims(xp: Namespace, a: Array, axis: tuple[int, ...] | int) -> Array:
    count = a.ndim + (1 if isinstance(axis, (int, np.integer)) else len(axis))
    axes, lengths = normalize_axis_tuple(axis, count), iter(a.shape)
    return xp.reshape(a, tuple(1 if k in axes else next(lengths) for k in range(count)))


def broadcast_to(xp: Namespace, array: Array, shape: tuple[int, ...], subok: bool = False) -> Array:
    return xp.broadcast_to(array, (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape)))


def concatenate(xp: Namespace, arrays: Sequence[Array], axis: int = 0, dtype: object = None) -> Array:
    if axis is None:
        arrays, axis = [flat(xp, a) for a in arrays], 0
    return xp.concat(list(arrays), axis=int(axis))


def stack(xp: Namespace, arrays: Sequence[Array], axis: int = 0, dtype: object = None) -> Array:
    return xp.stack(list(arrays), axis=int(axis))


def _by_moving_elements(function: Callable[..., Any]) -> Reduction:
    def move(xp: Namespace, a: Array, *args: object, **options: object) -> Array:
        if not is_static(args):
            raise UnsupportedError(f"{function.__name__} by computed integers is not supported")
        return move_elements(xp, function, a, *args, **options)

    return move


roll, tile, repeat = _by_moving_elements(np.roll), _by_moving_elements(np.tile), _by_moving_elements(np.repeat)
diagonal, diag, diagflat = _by_moving_elements(np.diagonal), _by_moving_elements(np.diag), _by_moving_elements(np.diagflat)
sliding_window_view = _by_moving_elements(np.lib.stride_tricks.sliding_window_view)
fft_fftshift, fft_ifftshift = _by_moving_elements(np.fft.fftshift), _by_moving_elements(np.fft.ifftshift)
delete = _by_moving_elements(np.delete)


def pad(xp: Namespace, array: Array, pad_width: Any, mode: str = "constant", **options: object) -> Array:
    if mode in ("edge", "reflect", "symmetric", "wrap") and options.get("reflect_type", "even") == "even":
        return move_elements(xp, np.pad, array, pad_width, mode)
    if mode not in ("constant", "empty") or not {"constant_values"}.issuperset(options):
        raise UnsupportedError(f"pad with mode {mode!r} is not supported")
    filled = move_elements(xp, np.pad, array, pad_width)
    values = np.asarray(options.get("constant_values", 0))
    if not np.any(values):
        return filled
    inside = np.pad(np.ones(array.shape, bool), pad_width)
    border = np.pad(np.zeros(array.shape, values.dtype), pad_width, constant_values=values.tolist())
    return xp.where(as_array(xp, inside, array), filled, as_array(xp, border, array, array.dtype))


def _fill_like(value: int) -> Reduction:
    def make(xp: Namespace, a: Array, dtype: object = None, shape: object = None) -> Array:
        return xp.full_like(a, value) if shape is None else xp.full(shape, value, dtype=a.dtype)

    return make


zeros_like, ones_like, empty_like = _fill_like(0), _fill_like(1), _fill_like(0)


def full_like(xp: Namespace, a: Array, fill_value: Array, dtype: object = None, shape: Any = None) -> Array:
    return xp.broadcast_to(fill_value, a.shape if shape is None else tuple(np.atleast_1d(shape).tolist()))


def linspace(
    xp: Namespace,
    start: Array,
    stop: Array,
    num: int = 50,
    endpoint: bool = True,
    dtype: object = None,
    axis: int = 0,
    retstep: bool = False,
) -> Array:
    count = num - 1 if endpoint else num
    fractions = as_array(xp, np.arange(num) / (count or 1), start, start.dtype)
    first, last = (x[None, ...] for x in xp.broadcast_arrays(start, stop))
    fractions = xp.reshape(fractions, (num, *(1,) * (first.ndim - 1)))
    points = first * (1 - fractions) + last * fractions if count else first + 0 * fractions
    points = moveaxis(xp, points, 0, axis)
    return (points, (stop - start) / count if count else stop * math.nan) if retstep else points


def geomspace(xp: Namespace, start: Array, stop: Array, num: int = 50, endpoint: bool = True, axis: int = 0) -> Array:
    start, stop = xp.broadcast_arrays(start, stop)
    powers = linspace(xp, xp.zeros_like(start), xp.log(stop / start), num, endpoint)
    return moveaxis(xp, start[None, ...] * xp.exp(powers), 0, axis)
