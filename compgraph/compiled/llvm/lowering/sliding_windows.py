"""Lowering of convolutions and pooling (see `compgraph.nn`).

Signals are images with one row. Pooling is computed elementwise, with one view of the array per window position.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ....nn import Correlation, Windows, compute_pooling_windows, count_elements_per_axis, count_window_elements
from ....values import Value
from .. import elementwise_ops
from ..buffer_ir import BufferView, Convolution, dense_view
from ..convolution_geometry import ConvolutionGeometry
from .lowering_state import EXACT_BITS, UNSUPPORTED, LoweringState

MAX_WINDOW = 64  # positions of a pooling window, each with several steps
MAX_PHASES = 256  # phases of an input gradient, each with a kernel call


def lower_cross_correlate(state: LoweringState, item: Any) -> str:
    """Lower `cross_correlate`."""
    x, kernel = map(state.view, item.args)
    if x is None or kernel is None:
        return UNSUPPORTED
    return _append_convolution(
        state,
        item,
        "forward",
        Correlation(item.opname, x.shape, kernel.shape, **_options(item)),
        x,
        kernel,
    )


def lower_conv(state: LoweringState, item: Any) -> str:
    """Lower `conv`."""
    x, kernel = map(state.view, item.args)
    if x is None or kernel is None:
        return UNSUPPORTED
    first = 2 if len(kernel.shape) > 1 else 0
    strides = tuple(s if k < first else -s for k, s in enumerate(kernel.strides))
    offset = kernel.offset + sum(s * (n - 1) for n, s in zip(kernel.shape[first:], kernel.strides[first:], strict=True))
    correlation = Correlation(item.opname, x.shape, kernel.shape, **_options(item))
    return _append_convolution(state, item, "forward", correlation, x, BufferView(kernel.buffer, offset, kernel.shape, strides))


def lower_input_gradient(state: LoweringState, item: Any) -> str:
    """Lower `cross_correlate_back`."""
    g, kernel = map(state.view, item.args[:2])
    if g is None or kernel is None:
        return UNSUPPORTED
    correlation = Correlation(item.opname, np.shape(item.raw_value), kernel.shape, **_options(item))
    return _append_convolution(state, item, "back", correlation, g, kernel)


def lower_kernel_gradient(state: LoweringState, item: Any) -> str:
    """Lower `cross_correlate_kernel`."""
    x, g = map(state.view, item.args[:2])
    if x is None or g is None:
        return UNSUPPORTED
    correlation = Correlation(item.opname, x.shape, np.shape(item.raw_value), **_options(item))
    return _append_convolution(state, item, "kernel", correlation, x, g)


def _options(item: Value) -> dict[str, Any]:
    return {"strides": 1, "padding": "valid", "dilation": 1, "groups": 1, **item.options}


def _append_convolution(
    state: LoweringState, item: Value, kind: str, correlation: Correlation, a: BufferView, b: BufferView
) -> str:
    dtype, shape = item.raw_value.dtype, np.shape(item.raw_value)
    if state.is_exact:
        return EXACT_BITS
    if dtype.kind != "f" or a.buffer.dtype != dtype or b.buffer.dtype != dtype:
        return f"convolutions of {a.buffer.dtype} and {b.buffer.dtype} are not compiled"
    if len(correlation.windows.lengths) > 2:
        return "images of more than two axes are not compiled"
    geometry = _geometry_of(correlation)
    if kind == "back" and geometry.strides[0] * geometry.strides[1] > MAX_PHASES:
        return "the input gradient of large strides is not compiled"
    view = dense_view(dtype, shape, item)
    state.views[item] = view
    if 0 in (geometry.batch, geometry.groups, geometry.in_channels, geometry.out_channels) or 0 in geometry.lengths:
        state.append_map("copy", (0.0,), view)
        return ""
    a, b = (p if p.is_dense else state.copy_of(p, dtype) for p in (a, b))
    sizes = geometry.scratch_sizes(kind)
    state.steps.append(Convolution(kind, (a, b, state.scratch(dtype, sum(sizes))), view, geometry))
    return ""


def _geometry_of(correlation: Correlation) -> ConvolutionGeometry:
    """Return the geometry: one row for signals, a single row for pointwise kernels."""
    w = correlation.windows
    batch, groups, channels, results = correlation.batch, correlation.groups, correlation.channels, correlation.results
    is_pointwise = not any(map(any, w.pad_width)) and {*w.window, *w.strides} == {1}
    if is_pointwise:
        flat = 1, prod(w.lengths)
        return ConvolutionGeometry(batch, groups, channels, results, flat, (1, 1), flat, (1, 1), (1, 1), (0, 0), (0, 0))
    before, after = zip(*w.pad_width, strict=True)
    return ConvolutionGeometry(
        batch, groups, channels, results, _pair(w.lengths), _pair(w.window), _pair(w.counts), _pair(w.strides), _pair(w.dilation),
        _pair(before, 0), _pair(after, 0),
    )  # fmt: skip


def _pair(lengths: tuple[int, ...], first: int = 1) -> tuple[int, int]:
    """Return a pair of lengths; a signal has `first` as the length of its row axis."""
    return (first, lengths[0]) if len(lengths) == 1 else (lengths[0], lengths[1])


def lower_max_pool(state: LoweringState, item: Value) -> str:
    """Lower `max_pool`."""
    x = state.view(item.args[0])
    if x is None or x.buffer.dtype.kind not in "iuf":
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.unsupported_reason():
        return reason
    lowest = -np.inf if x.buffer.dtype.kind == "f" else np.iinfo(x.buffer.dtype).min
    maxima = pool.reduce_windows("maximum", pool.views(pool.pad(x, lowest)), x.buffer.dtype)
    return pool.append_result("copy", maxima)


def lower_mean_pool(state: LoweringState, item: Value) -> str:
    """Lower `mean_pool`."""
    x = state.view(item.args[0])
    if x is None or x.buffer.dtype.kind not in "biuf":
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.unsupported_reason():
        return reason
    if x.buffer.dtype.kind != "f":
        x = state.copy_of(x, np.dtype(float))
    total = pool.reduce_windows("add", pool.views(pool.pad(x, 0.0)), item.raw_value.dtype)
    return pool.append_result("divide", total, pool.window_sizes())


def lower_max_pool_gradient(state: LoweringState, item: Value) -> str:
    """Lower `max_pool_back` of a cotangent, the input and the result."""
    g, x, maxima = (state.view(a) for a in item.args)
    if g is None or x is None or maxima is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.unsupported_reason(x, g):
        return reason
    masks = pool.maximum_masks(x, maxima)
    shares = pool.append_map("divide", g.shape, g, pool.count_maxima(masks, maxima.shape))
    return pool.scatter_to_windows(shares, masks)


def lower_max_pool_tangent(state: LoweringState, item: Value) -> str:
    """Lower `max_pool_along` of a tangent, the input and the result."""
    t, x, maxima = (state.view(a) for a in item.args)
    if t is None or x is None or maxima is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.unsupported_reason(x, t):
        return reason
    masks = pool.maximum_masks(x, maxima)
    total: Any = 0.0
    for view, mask in zip(pool.views(pool.pad(t, 0.0)), masks, strict=True):
        total = pool.append_map("add", view.shape, total, pool.append_map("where", view.shape, mask, view, 0.0))
    return pool.append_result("divide", total, pool.count_maxima(masks, maxima.shape))


def lower_mean_pool_gradient(state: LoweringState, item: Value) -> str:
    """Lower `mean_pool_back`."""
    g = state.view(item.args[0])
    if g is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, np.shape(item.args[1]))
    if reason := pool.unsupported_reason(g):
        return reason
    return pool.scatter_to_windows(pool.append_map("divide", g.shape, g, pool.window_sizes()), [True] * pool.window_size)


class _PoolLowering:
    """The windows of a pooling operation, and steps over them."""

    def __init__(self, state: LoweringState, item: Any, shape: tuple[int, ...]) -> None:
        self.state, self.item, self.dtype = state, item, item.raw_value.dtype
        self.windows: Windows = compute_pooling_windows(item.opname, shape, **item.options)
        self.window_size = prod(self.windows.window)

    def unsupported_reason(self, *floating: BufferView) -> str:
        """Return the reason if it is not supported, otherwise an empty string."""
        if self.window_size > MAX_WINDOW:
            return "pooling of large windows is not compiled"
        if any(p.buffer.dtype.kind != "f" for p in floating) or not elementwise_ops.is_compilable(self.dtype):
            return f"pooling of {self.dtype} is not compiled"
        return "" if np.size(self.item.raw_value) else "there is nothing to pool"

    def append_map(
        self,
        name: str,
        shape: tuple[int, ...],
        *operands: object,
        dtype: np.dtype[Any] | None = None,
        compute_dtype: np.dtype[Any] | None = None,
    ) -> BufferView:
        """Append an elementwise operation with a new array as its result."""
        out = dense_view(self.dtype if dtype is None else dtype, shape)
        self.state.append_map(name, operands, out, compute_dtype)
        return out

    def append_result(self, name: str, *operands: Any) -> str:
        """Append the operation that computes the result."""
        self.state.views[self.item] = out = dense_view(self.dtype, np.shape(self.item.raw_value), self.item)
        self.state.append_map(name, operands, out)
        return ""

    def pad(self, x: BufferView, value: object) -> BufferView:
        """Return an array with its padding."""
        if not any(map(any, self.windows.pad_width)):
            return x
        axes = len(self.windows.lengths)
        out = dense_view(x.buffer.dtype, (*x.shape[: len(x.shape) - axes], *self.windows.padded_shape))
        self.state.append_map("copy", (value,), out, is_write=True)
        self.state.append_map("copy", (x,), self.without_padding(out), is_write=True)
        return out

    def without_padding(self, padded: BufferView) -> BufferView:
        """Return a padded array without its padding."""
        axes = len(self.windows.lengths)
        offset = sum(s * before for s, (before, _) in zip(padded.strides[-axes:], self.windows.pad_width, strict=True))
        shape = (*padded.shape[:-axes], *self.windows.lengths)
        return BufferView(padded.buffer, padded.offset + offset, shape, padded.strides)

    def views(self, padded: BufferView) -> list[BufferView]:
        """Return for each window position the elements at this position in all windows."""
        w, axes, views = self.windows, len(self.windows.lengths), []
        steps = padded.strides[-axes:]
        shape = (*padded.shape[:-axes], *w.counts)
        strides = (*padded.strides[:-axes], *[s * n for s, n in zip(steps, w.strides, strict=True)])
        for position in np.ndindex(w.window):
            offset = sum(s * d * k for s, d, k in zip(steps, w.dilation, position, strict=True))
            views.append(BufferView(padded.buffer, padded.offset + offset, shape, strides))
        return views

    def reduce_windows(self, name: str, views: list[BufferView], dtype: np.dtype[Any]) -> BufferView:
        """Reduce all window positions by a binary operation."""
        total = views[0]
        for view in views[1:]:
            total = self.append_map(name, view.shape, total, view, dtype=dtype)
        return total

    def maximum_masks(self, x: BufferView, maxima: BufferView) -> list[BufferView]:
        """Return for each window position a mask of the windows that have their maximum there; padding is excluded."""
        boolean, kind = np.dtype(bool), x.buffer.dtype
        is_nan = self.append_map("isnan", maxima.shape, maxima, dtype=boolean, compute_dtype=kind)
        masks = []
        for view, inside in zip(self.views(self.pad(x, -np.inf)), self._interior_masks(), strict=True):
            is_maximum = self.append_map("greater_equal", maxima.shape, view, maxima, dtype=boolean, compute_dtype=kind)
            if not inside.all():
                is_maximum = self.append_map("logical_and", maxima.shape, is_maximum, self.state.external(inside), dtype=boolean)
            masks.append(self.append_map("logical_or", maxima.shape, is_maximum, is_nan, dtype=boolean))
        return masks

    def _interior_masks(self) -> list[Any]:
        """Return for each window position a mask of the windows where it is not padding."""
        w, masks = self.windows, []
        for position in np.ndindex(w.window):
            axis_masks = []
            for axis, k in enumerate(position):
                positions = np.arange(w.counts[axis]) * w.strides[axis] + k * w.dilation[axis] - w.pad_width[axis][0]
                axis_masks.append((positions >= 0) & (positions < w.lengths[axis]))
            masks.append(functools.reduce(np.logical_and.outer, axis_masks))
        return masks

    def count_maxima(self, masks: list[BufferView], shape: tuple[int, ...]) -> BufferView:
        """Return the number of positions of each window that have its maximum, at least 1."""
        total = self.append_map("copy", shape, masks[0], compute_dtype=np.dtype(bool))
        for mask in masks[1:]:
            ones = self.append_map("copy", shape, mask, compute_dtype=np.dtype(bool))
            total = self.append_map("add", shape, total, ones)
        return self.append_map("maximum", shape, total, 1.0)

    def window_sizes(self) -> Any:
        """Return the number of elements in each window, without padding."""
        counts = count_elements_per_axis(self.windows)
        if all((count == count[0]).all() for count in counts):
            return float(prod(int(count[0]) for count in counts))
        return self.state.external(np.ascontiguousarray(count_window_elements(self.windows, self.dtype)))

    def scatter_to_windows(self, shares: BufferView, masks: list[Any]) -> str:
        """Lower a gradient: `shares`, added at the window positions that `masks` select."""
        axes = len(self.windows.lengths)
        padded = dense_view(self.dtype, (*shares.shape[:-axes], *self.windows.padded_shape), self.item)
        self.state.append_map("copy", (0.0,), padded, is_write=True)
        for view, mask in zip(self.views(padded), masks, strict=True):
            value = shares if mask is True else self.append_map("where", shares.shape, mask, shares, 0.0)
            self.state.append_map("add", (view, value), view, is_write=True)
        self.state.views[self.item] = self.without_padding(padded)
        return ""
