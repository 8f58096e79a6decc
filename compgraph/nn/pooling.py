"""Pooling: the largest, or the mean, of the elements in windows along the last axes.

The Python loops iterate over the positions within a window; for each, one NumPy call processes all windows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..array_types import Array
from ..protocols import primitive
from .sliding_windows import Windows, compute_windows


def max_pool(
    x: ArrayLike,
    window: int | tuple[int, ...],
    *,
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    name: str | None = None,
) -> Any:
    """The largest element of each window along the last axes.

    Parameters
    ----------
    x : array_like
        Real, with at least as many axes as a window; windows slide along the last ones.
    window : int or tuple of int
        The number of elements of a window along each of the last axes; an integer for the last axis alone.
    strides : int or sequence of int, optional
        The steps from one window to the next; by default the shape of the window. Elements after the last whole window
        are left out.
    padding : str, int or sequence
        The number of elements added around `x`, which are never the largest. One number, or for each axis a number or a pair
        ``(before, after)``; "valid" for nothing; "same" for ``ceil(length / stride)`` windows.
    dilation : int or sequence of int
        The steps from one element of a window to the next.
    name : str, optional
        A name for the node.

    Returns
    -------
    array
        Of shape ``(*batch_shape, *counts)``, where `counts` is the number of windows along each of the last axes. The dtype is
        that of `x`. Where several elements are the largest, each gets an equal part of the derivative, as with ``np.max``.

    Raises
    ------
    ValueError
        If an option is invalid, no window fits, or a window contains only padding.
    TypeError
        If `x` is complex.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.max_pool([1.0, 3.0, 2.0, 0.0], 2)
    array([3., 2.])
    """
    return pooled_max(x, window=window, strides=strides, padding=padding, dilation=dilation, name=name)  # type: ignore[call-arg]


def mean_pool(
    x: ArrayLike,
    window: int | tuple[int, ...],
    *,
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    name: str | None = None,
) -> Any:
    """The mean of each window along the last axes.

    Parameters
    ----------
    x, window, strides, padding, dilation, name
        As for `max_pool`. Padding does not count: the mean is that of the elements of `x` in a window (in PyTorch,
        ``count_include_pad=False``). `x` may be complex.

    Returns
    -------
    array
        Of the shape of the result of `max_pool`, and of the dtype of `x`; float64 for integers and booleans.

    Raises
    ------
    ValueError
        As for `max_pool`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.mean_pool([1.0, 3.0, 2.0, 0.0], 2)
    array([2., 1.])
    """
    return pooled_mean(x, window=window, strides=strides, padding=padding, dilation=dilation, name=name)  # type: ignore[call-arg]


@primitive(opname="max_pool")
def pooled_max(x: ArrayLike, *, window: object, strides: object, padding: object, dilation: object) -> Any:
    """`max_pool`, with all options by keyword."""
    x = np.asarray(x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"max_pool: x of dtype {x.dtype} has no order. Pool real numbers, such as np.abs(x)")
    windows = compute_pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    view = windows.view(windows.pad(x, _lowest(x.dtype)))
    maxima = functools.reduce(np.maximum, [view[position] for position in _window_positions(windows)])
    return maxima.copy()  # `maxima` is a view of `x` if windows have one element


def _lowest(dtype: np.dtype[Any]) -> float:
    """Return the lowest value of a real dtype."""
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else int(np.iinfo(dtype).min)


@primitive
def max_pool_back(
    g: NDArray[Any],
    x: NDArray[Any],
    maxima: NDArray[Any],
    *,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: str | int | Sequence[Any],
    dilation: int | Sequence[int],
) -> Any:
    """Spread each element of `g` over the largest elements of its window: the adjoint of `max_pool` at x with result `maxima`.

    `g` may have leading batch axes.
    """
    windows = compute_pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    masks = _largest_masks(windows, x, maxima)
    shares = g / np.maximum(sum(mask.astype(g.dtype) for mask in masks), 1)
    return _scatter_to_windows(windows, shares, masks, g.dtype)


@primitive
def max_pool_along(
    t: NDArray[Any],
    x: NDArray[Any],
    maxima: NDArray[Any],
    *,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: str | int | Sequence[Any],
    dilation: int | Sequence[int],
) -> Any:
    """The mean of `t` where x is largest in each window: the tangent of `max_pool` at x with result `maxima`.

    `t` may have leading batch axes.
    """
    windows = compute_pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    masks = _largest_masks(windows, x, maxima)
    view = windows.view(windows.pad(t))
    total = sum(np.where(mask, view[position], 0) for position, mask in zip(_window_positions(windows), masks, strict=True))
    return total / np.maximum(sum(mask.astype(t.dtype) for mask in masks), 1)


@primitive(opname="mean_pool")
def pooled_mean(x: ArrayLike, *, window: object, strides: object, padding: object, dilation: object) -> Any:
    """`mean_pool`, with all options by keyword."""
    x = np.asarray(x)
    x = x.astype(float) if x.dtype.kind in "biu" else x
    windows = compute_pooling_windows("mean_pool", x.shape, window, strides, padding, dilation)
    view = windows.view(windows.pad(x))
    total = functools.reduce(np.add, [view[position] for position in _window_positions(windows)])
    return total / count_window_elements(windows, x.dtype)


@primitive
def mean_pool_back(g: NDArray[Any], like: Array, *, window: object, strides: object, padding: object, dilation: object) -> Any:
    """Spread each element of `g` evenly over its window: the adjoint of `mean_pool` of an array of the shape of `like`."""
    windows = compute_pooling_windows("mean_pool", like.shape, window, strides, padding, dilation)
    shares = g / count_window_elements(windows, g.dtype)
    return _scatter_to_windows(windows, shares, [True] * len(_window_positions(windows)), g.dtype)


def compute_pooling_windows(
    opname: str, shape: tuple[int, ...], window: Any, strides: Any, padding: Any, dilation: Any
) -> Windows:
    """Compute the geometry of a pooling along the last axes of an array; raise if a window contains only padding."""
    try:
        window = (
            tuple(map(operator.index, window)) if isinstance(window, Sequence) or np.ndim(window) else (operator.index(window),)
        )
    except TypeError as error:
        raise ValueError(
            f"{opname}: window must be an integer, or a tuple of integers for the last axes, not {window!r}"
        ) from error
    if not window:
        raise ValueError(f"{opname}: the window has no axis. Pass an integer for each of the last axes of x")
    if len(window) > len(shape):
        raise ValueError(f"{opname}: the window {window} has more axes than x of shape {shape}. Pass at most {len(shape)}")
    if padding == "full":
        raise ValueError(f'{opname}: padding="full" would make windows of padding alone. Pass "same", or numbers')
    lengths = shape[len(shape) - len(window) :]
    windows = compute_windows(opname, lengths, window, window if strides is None else strides, padding, dilation)
    if any(count.min() < 1 for count in count_elements_per_axis(windows)):
        raise ValueError(
            f"{opname}: some windows of shape {window} contain only padding: x has shape {shape}, padding "
            f"{windows.pad_width}. Pass less padding"
        )
    return windows


def count_elements_per_axis(windows: Windows) -> list[Any]:
    """Return for each axis the number of elements of the array (without padding) in each window."""
    counts = []
    for axis, (left, _) in enumerate(windows.pad_width):
        starts = np.arange(windows.counts[axis]) * windows.strides[axis] - left
        elements = starts[:, None] + np.arange(windows.window[axis]) * windows.dilation[axis]
        counts.append(np.sum((elements >= 0) & (elements < windows.lengths[axis]), axis=1))
    return counts


def count_window_elements(windows: Windows, dtype: DTypeLike) -> Any:
    """Count the elements of the array (without padding) in each window."""
    return functools.reduce(np.multiply.outer, count_elements_per_axis(windows)).astype(dtype)


def _window_positions(windows: Windows) -> list[tuple[Any, ...]]:
    """Return for each position within a window the index of `Windows.view` that selects the element there in all windows."""
    all_windows = [slice(None)] * len(windows.window)
    return [(..., *position, *all_windows) for position in np.ndindex(windows.window)]


def _largest_masks(windows: Windows, x: NDArray[Any], maxima: NDArray[Any]) -> list[Any]:
    """Return for each position within a window a mask of the windows whose largest element is there.

    If the largest is nan, all positions of the window count.
    """
    view = windows.view(windows.pad(x, np.nan))  # not -inf, which would be largest in a window of -inf
    is_nan = np.isnan(maxima)
    return [(view[position] >= maxima) | is_nan for position in _window_positions(windows)]


def _scatter_to_windows(windows: Windows, shares: NDArray[Any], masks: list[Any], dtype: np.dtype[Any]) -> Any:
    """Sum `shares` over the windows, each added at the positions of its window that `masks` selects."""
    batch_shape = shares.shape[: shares.ndim - len(windows.lengths)]
    padded = np.zeros((*batch_shape, *windows.padded_shape), dtype)
    view = windows.view(padded)
    # At one position, no two windows share an element.
    for position, mask in zip(_window_positions(windows), masks, strict=True):
        view[position] += shares if mask is True else np.where(mask, shares, 0)
    return padded[windows.interior]
