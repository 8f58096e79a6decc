"""Activations, losses, convolutions and poolings in terms of the array API standard."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....nn import Correlation, Windows, compute_pooling_windows, count_window_elements, kernel_axes, signal_padding
from .elementwise import conj
from .indexing import take_along_axis
from .positions import as_array, embed, flat, size_of
from .reductions import drop_axes, max_, mean, sum_
from .shapes import pad

Namespace = Any
Array = Any


def relu(xp: Namespace, x: Array) -> Array:
    return xp.maximum(x, xp.zeros_like(x))


def sigmoid(xp: Namespace, x: Array) -> Array:
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


special_expit = sigmoid


def softplus(xp: Namespace, x: Array) -> Array:
    return relu(xp, x) + xp.log1p(xp.exp(-xp.abs(x)))


def logsumexp(xp: Namespace, x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    top = max_(xp, x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    log_sum = xp.log(sum_(xp, xp.exp(x - top), axis=axis, keepdims=True)) + top
    return drop_axes(xp, log_sum, axis, x.ndim, keepdims)


def log_softmax(xp: Namespace, x: Array, axis: object = -1) -> Array:
    shifted = x - max_(xp, x, axis=axis, keepdims=True)
    return shifted - xp.log(sum_(xp, xp.exp(shifted), axis=axis, keepdims=True))


def softmax(xp: Namespace, x: Array, axis: object = -1) -> Array:
    shares = xp.exp(x - max_(xp, x, axis=axis, keepdims=True))
    return shares / sum_(xp, shares, axis=axis, keepdims=True)


def sigmoid_cross_entropy(xp: Namespace, logits: Array, labels: Array) -> Array:
    return mean(xp, relu(xp, logits) - logits * labels + xp.log1p(xp.exp(-xp.abs(logits))))


def softmax_cross_entropy(xp: Namespace, logits: Array, labels: Array) -> Array:
    scale = max(1, size_of(logits) // logits.shape[-1])
    if xp.isdtype(labels.dtype, "integral"):
        label_scores = take_along_axis(xp, log_softmax(xp, logits), labels[..., None], axis=-1)
        return -sum_(xp, label_scores) / scale
    return -sum_(xp, labels * log_softmax(xp, logits)) / scale


def _select_class(xp: Namespace, below: Array, labels: Array) -> Array:
    return take_along_axis(xp, below, flat(xp, labels)[:, None], axis=-1)[:, 0]


def _slices(windows: Windows, padded: Array) -> list[Array]:
    """Return for each offset within a window the elements of all windows at that offset."""
    slices = []
    for offset in np.ndindex(windows.window):
        steps = zip(offset, windows.dilation, windows.strides, windows.counts, strict=True)
        slices.append(padded[(..., *[slice(k * d, k * d + s * (n - 1) + 1, s) for k, d, s, n in steps])])
    return slices


def _pad_windows(xp: Namespace, windows: Windows, x: Array, value: float = 0.0) -> Array:
    """Pad an array as its windows require."""
    widths = [(0, 0)] * (x.ndim - len(windows.lengths)) + list(windows.pad_width)
    return pad(xp, x, widths, constant_values=value) if np.any(widths) else x


def _sum_at_offsets(xp: Namespace, windows: Windows, parts: Sequence[Array]) -> Array:
    """Sum arrays, one per offset within a window, each added at the elements that its windows have at that offset."""
    total: Any = None
    leading_ndim = len(parts[0].shape) - len(windows.counts)
    for part, offset in zip(parts, np.ndindex(windows.window), strict=True):
        steps = zip(offset, windows.dilation, windows.strides, windows.counts, strict=True)
        ranges = [range(k * d, k * d + s * (n - 1) + 1, s) for k, d, s, n in steps]
        shape = (*part.shape[:leading_ndim], *windows.padded_shape)
        part = embed(xp, part, shape, [*map(range, shape[:leading_ndim]), *ranges])
        total = part if total is None else total + part
    return total[windows.interior] if np.any(windows.pad_width) else total


def correlation_of(name: str, x: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any]) -> Correlation:
    return Correlation(name, tuple(x), tuple(kernel), **{"strides": 1, "padding": "valid", "dilation": 1, "groups": 1, **options})


def _columns(xp: Namespace, correlation: Correlation, x: Array) -> Array:
    """Return the windows of an array as the columns of matrices, of shape (batch, groups, elements of a window, windows)."""
    x = xp.reshape(x, (correlation.batch, correlation.groups, correlation.channels, *correlation.windows.lengths))
    columns = xp.stack(_slices(correlation.windows, _pad_windows(xp, correlation.windows, x)), axis=3)
    return xp.reshape(columns, (correlation.batch, correlation.groups, correlation.height, math.prod(correlation.windows.counts)))


def _shape_of(correlation: Correlation, channels: int, lengths: tuple[int, ...]) -> tuple[int, ...]:
    return lengths if correlation.is_signal else (correlation.batch, channels, *lengths)


def cross_correlate(xp: Namespace, x: Array, kernel: Array, **options: object) -> Array:
    correlation = correlation_of("cross_correlate", x.shape, kernel.shape, options)
    matrices = xp.reshape(conj(xp, kernel), (correlation.groups, correlation.results, correlation.height))
    out = xp.matmul(matrices, _columns(xp, correlation, x))
    return xp.reshape(out, _shape_of(correlation, correlation.groups * correlation.results, correlation.windows.counts))


def conv(xp: Namespace, x: Array, kernel: Array, **options: Any) -> Array:
    kernel = conj(xp, xp.flip(kernel, axis=kernel_axes(kernel)))
    if kernel.ndim == 1:
        options["padding"] = signal_padding(kernel.shape[0], **options) if options.get("padding") != "same" else "same"
    return cross_correlate(xp, x, kernel, **options)


def cross_correlate_back(xp: Namespace, g: Array, kernel: Array, like: Any, **options: object) -> Array:
    lengths = tuple(like.shape[2:] if like.ndim > 2 else like.shape)
    shape = lengths if g.ndim == 1 else (g.shape[0], kernel.shape[1] * options.get("groups", 1), *lengths)
    correlation = correlation_of("cross_correlate_back", shape, kernel.shape, options)
    g = xp.reshape(g, (correlation.batch, correlation.groups, correlation.results, math.prod(correlation.windows.counts)))
    matrices = xp.matrix_transpose(xp.reshape(kernel, (correlation.groups, correlation.results, correlation.height)))
    columns = xp.matmul(matrices, g)
    columns_shape = (
        correlation.batch,
        correlation.groups,
        correlation.channels,
        math.prod(correlation.windows.window),
        *correlation.windows.counts,
    )
    columns = xp.reshape(columns, columns_shape)
    parts = [columns[:, :, :, k, ...] for k in range(columns_shape[3])]
    return xp.reshape(_sum_at_offsets(xp, correlation.windows, parts), shape)


def cross_correlate_kernel(xp: Namespace, x: Array, g: Array, like: Any, **options: object) -> Array:
    lengths = tuple(like.shape[2:] if like.ndim > 2 else like.shape)
    shape = lengths if g.ndim == 1 else (g.shape[1], x.shape[1] // options.get("groups", 1), *lengths)
    correlation = correlation_of("cross_correlate_kernel", x.shape, shape, options)
    g = xp.reshape(g, (correlation.batch, correlation.groups, correlation.results, math.prod(correlation.windows.counts)))
    total = sum_(xp, xp.matmul(g, xp.matrix_transpose(_columns(xp, correlation, x))), axis=0)
    return xp.reshape(total, shape)


def _pooling(name: str, shape: tuple[int, ...], options: dict[str, Any]) -> Windows:
    return compute_pooling_windows(name, tuple(shape), **options)


def pooled_max(xp: Namespace, x: Array, **options: object) -> Array:
    windows = _pooling("max_pool", x.shape, options)
    return functools.reduce(xp.maximum, _slices(windows, _pad_windows(xp, windows, x, -math.inf)))


def pooled_mean(xp: Namespace, x: Array, **options: object) -> Array:
    windows = _pooling("mean_pool", x.shape, options)
    total = functools.reduce(xp.add, _slices(windows, _pad_windows(xp, windows, x)))
    return total / as_array(xp, count_window_elements(windows, np.float64), x, x.dtype)


def _mark_maxima(xp: Namespace, windows: Windows, x: Array, maxima: Array) -> tuple[list[Array], Array]:
    """Mark by 1 the elements that are the maximum of their window, per offset; return also their number per window."""
    slices = _slices(windows, _pad_windows(xp, windows, x, math.nan))
    marks = [xp.astype((part >= maxima) | xp.isnan(maxima), maxima.dtype) for part in slices]
    return marks, xp.maximum(functools.reduce(xp.add, marks), xp.ones_like(maxima))


def max_pool_back(xp: Namespace, g: Array, x: Array, maxima: Array, **options: object) -> Array:
    windows = _pooling("max_pool", x.shape, options)
    marks, count = _mark_maxima(xp, windows, x, maxima)
    return _sum_at_offsets(xp, windows, [mark * (g / count) for mark in marks])


def max_pool_along(xp: Namespace, t: Array, x: Array, maxima: Array, **options: object) -> Array:
    windows = _pooling("max_pool", x.shape, options)
    marks, count = _mark_maxima(xp, windows, x, maxima)
    parts = _slices(windows, _pad_windows(xp, windows, t))
    return functools.reduce(xp.add, [mark * part for mark, part in zip(marks, parts, strict=True)]) / count


def mean_pool_back(xp: Namespace, g: Array, like: Any, **options: object) -> Array:
    windows = _pooling("mean_pool", like.shape, options)
    share = g / as_array(xp, count_window_elements(windows, np.float64), g, g.dtype)
    return _sum_at_offsets(xp, windows, [share] * math.prod(windows.window))
