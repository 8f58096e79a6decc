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
from .sliding_windows import Windows, windows


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
        The steps from one window to the next; by default the lengths of the window. Elements after the last whole window
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
        Of shape ``(*others, *counts)``, with the number of windows along each of the last axes, and of the dtype of `x`.
        Where several elements are the largest, each gets an equal part of the derivative, as by ``np.max``.

    Raises
    ------
    ValueError
        If an option has another form, no window fits, or a window holds nothing but padding.
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
def pooled_max(x: ArrayLike, *, window: Any, strides: object, padding: object, dilation: object) -> Any:
    """`max_pool`, with all options by keyword."""
    x = np.asarray(x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"max_pool: numbers of dtype {x.dtype} have no largest one; pool their absolute values")
    window_layout = pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    lowest = {"f": -np.inf, "b": False}.get(x.dtype.kind)
    view = window_layout.view(window_layout.pad(x, np.iinfo(x.dtype).min if lowest is None else lowest))
    return functools.reduce(np.maximum, [view[position] for position in _window_positions(window_layout)]).copy()


@primitive
def max_pool_back(
    g: NDArray[Any],
    x: NDArray[Any],
    best: NDArray[Any],
    *,
    window: tuple[int, ...] | int,
    strides: int | None,
    padding: tuple[Any, ...] | int | str,
    dilation: int,
) -> Any:
    """Spread each of `g` over the largest elements of its window: the adjoint of `max_pool` at x, whose result is `best`.

    `g` may have more axes than `best`, in front.
    """
    window_layout = pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    masks = _largest_masks(window_layout, x, best)
    shares = g / np.maximum(sum(mask.astype(g.dtype) for mask in masks), 1)
    return _scatter_to_windows(window_layout, shares, masks, g.dtype)


@primitive
def max_pool_along(
    t: NDArray[Any],
    x: NDArray[Any],
    best: NDArray[Any],
    *,
    window: tuple[int, ...] | int,
    strides: int | None,
    padding: tuple[Any, ...] | int | str,
    dilation: int,
) -> Any:
    """The mean of `t` where x is largest in each window: the tangent of `max_pool` at x, whose result is `best`.

    `t` may have more axes than `x`, in front.
    """
    window_layout = pooling_windows("max_pool", x.shape, window, strides, padding, dilation)
    masks = _largest_masks(window_layout, x, best)
    view = window_layout.view(window_layout.pad(t))
    total = sum(np.where(mask, view[position], 0) for position, mask in zip(_window_positions(window_layout), masks, strict=True))
    return total / np.maximum(sum(mask.astype(t.dtype) for mask in masks), 1)


@primitive(opname="mean_pool")
def pooled_mean(x: ArrayLike, *, window: object, strides: object, padding: object, dilation: object) -> Any:
    """`mean_pool`, with all options by keyword."""
    x = np.asarray(x)
    x = x.astype(float) if x.dtype.kind in "biu" else x
    window_layout = pooling_windows("mean_pool", x.shape, window, strides, padding, dilation)
    view = window_layout.view(window_layout.pad(x))
    total = functools.reduce(np.add, [view[position] for position in _window_positions(window_layout)])
    return total / count_window_elements(window_layout, x.dtype)


@primitive
def mean_pool_back(g: NDArray[Any], like: Array, *, window: object, strides: object, padding: object, dilation: object) -> Any:
    """Spread each of `g` evenly over its window: the adjoint of `mean_pool` of an array of the lengths of `like`."""
    window_layout = pooling_windows("mean_pool", like.shape, window, strides, padding, dilation)
    shares = g / count_window_elements(window_layout, g.dtype)
    return _scatter_to_windows(window_layout, shares, [True] * len(_window_positions(window_layout)), g.dtype)


def pooling_windows(opname: str, shape: tuple[int, ...], window: Any, strides: Any, padding: Any, dilation: Any) -> Windows:
    """The windows along the last axes of a shape; raises if one of them holds nothing but padding."""
    try:
        window = (
            tuple(map(operator.index, window)) if isinstance(window, Sequence) or np.ndim(window) else (operator.index(window),)
        )
    except TypeError as error:
        raise ValueError(
            f"{opname}: window must be an integer, or an integer per axis of the last ones, not {window!r}"
        ) from error
    if not 0 < len(window) <= len(shape):
        raise ValueError(f"{opname}: a window of shape {window} needs as many axes; x has shape {shape}")
    if padding == "full":
        raise ValueError(f'{opname}: padding="full" would make windows of padding alone. Pass "same", or numbers')
    lengths = shape[len(shape) - len(window) :]
    window_layout = windows(opname, lengths, window, window if strides is None else strides, padding, dilation)
    if any(count.min() < 1 for count in count_elements_per_axis(window_layout)):
        raise ValueError(
            f"{opname}: some windows of shape {window} hold nothing but padding: x has shape {shape}, padding "
            f"{window_layout.pads}. Pass less padding"
        )
    return window_layout


def count_elements_per_axis(windows: Windows) -> list[Any]:
    """For each axis, the number of elements of the array (without padding) in each window."""
    counts = []
    for axis, (left, _) in enumerate(windows.pads):
        starts = np.arange(windows.counts[axis]) * windows.strides[axis] - left
        elements = starts[:, None] + np.arange(windows.window[axis]) * windows.dilation[axis]
        counts.append(np.sum((elements >= 0) & (elements < windows.lengths[axis]), axis=1))
    return counts


def count_window_elements(windows: Windows, dtype: DTypeLike) -> Any:
    """The number of elements of the array (without padding) in each window."""
    return functools.reduce(np.multiply.outer, count_elements_per_axis(windows)).astype(dtype)


def _window_positions(window_layout: Windows) -> list[tuple[Any, ...]]:
    """For each position within a window, the index of `Windows.view` that selects the element there from all windows."""
    every = [slice(None)] * len(window_layout.window)
    return [(..., *position, *every) for position in np.ndindex(window_layout.window)]


def _largest_masks(window_layout: Windows, x: NDArray[Any], best: NDArray[Any]) -> list[Any]:
    """Return for each position within a window a mask of the windows whose largest element is there.

    If the largest is nan, all positions of the window count.
    """
    view = window_layout.view(window_layout.pad(x, np.nan))  # nan never compares as largest: -inf would, in a window of -inf
    unknown = np.isnan(best)
    return [(view[position] >= best) | unknown for position in _window_positions(window_layout)]


def _scatter_to_windows(window_layout: Windows, shares: NDArray[Any], masks: list[Any], dtype: np.dtype[Any]) -> Any:
    """The sum over windows of `shares`, each added at the positions of its window that `masks` selects."""
    others = shares.shape[: shares.ndim - len(window_layout.lengths)]
    padded = np.zeros((*others, *window_layout.padded), dtype)
    view = window_layout.view(padded)
    # At one position, no two windows share an element.
    for position, mask in zip(_window_positions(window_layout), masks, strict=True):
        view[position] += shares if mask is True else np.where(mask, shares, 0)
    return padded[window_layout.inner]
