"""Lowering of convolutions and pooling (see `compgraph.nn`).

Signals are images with one row. Pooling is computed elementwise, with one view of the array per window position.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ....nn import Correlation, Windows, count_elements_per_axis, count_window_elements, pooling_windows
from .. import elementwise_ops
from ..buffer_ir import BufferView, Convolution, dense_view
from ..convolution_geometry import ConvolutionGeometry
from .lowering_state import EXACT_BITS, UNSUPPORTED, LoweringState

MAX_PHASES = 256  # phases of an input gradient, each with a kernel call


def lower_cross_correlate(state: LoweringState, item: Any) -> str:
    """Lower `cross_correlate`; return the reason if it is not supported."""
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


def _options(item: Any) -> dict[str, Any]:
    return {"strides": 1, "padding": "valid", "dilation": 1, "groups": 1, **item.options}


def _append_convolution(
    state: LoweringState, item: Any, kind: str, correlation: Correlation, a: BufferView, b: BufferView
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
    if 0 in (geometry.batch, geometry.groups, geometry.channels, geometry.results) or 0 in geometry.lengths:
        state.append_map("copy", (0.0,), view)
        return ""
    a, b = (p if p.is_dense else state.copy_of(p, dtype) for p in (a, b))
    sizes = geometry.work_sizes(kind)
    state.steps.append(Convolution(kind, (a, b, state.scratch(dtype, sum(sizes))), view, geometry))
    return ""


def _geometry_of(correlation: Correlation) -> ConvolutionGeometry:
    """Return the geometry: one row for signals, a single row for pointwise kernels."""
    w = correlation.windows
    batch, groups, channels, results = correlation.batch, correlation.groups, correlation.channels, correlation.results
    is_pointwise = not any(map(any, w.pads)) and {*w.window, *w.strides} == {1}
    if is_pointwise:
        flat = 1, prod(w.lengths)
        return ConvolutionGeometry(batch, groups, channels, results, flat, (1, 1), flat, (1, 1), (1, 1), (0, 0), (0, 0))
    before, after = zip(*w.pads, strict=True)
    return ConvolutionGeometry(
        batch, groups, channels, results, _pair(w.lengths), _pair(w.window), _pair(w.counts), _pair(w.strides), _pair(w.dilation),
        _pair(before, 0), _pair(after, 0),
    )  # fmt: skip


def _pair(lengths: tuple[int, ...], first: int = 1) -> tuple[int, int]:
    """Return a pair of lengths; for one axis, `first` for its single row."""
    return (first, lengths[0]) if len(lengths) == 1 else (lengths[0], lengths[1])


MAX_WINDOW = 64  # positions of a window, each with several steps


def lower_max_pool(state: LoweringState, item: Any) -> str:
    """Lower `max_pool`; return the reason if it is not supported."""
    x = state.view(item.args[0])
    if x is None or x.buffer.dtype.kind not in "iuf":
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.refused():
        return reason
    lowest = -np.inf if x.buffer.dtype.kind == "f" else np.iinfo(x.buffer.dtype).min
    maxima = pool.gathered("maximum", pool.views(pool.padded(x, lowest)), x.buffer.dtype)
    return pool.result("copy", maxima)


def lower_mean_pool(state: LoweringState, item: Any) -> str:
    """Lower `mean_pool`."""
    x = state.view(item.args[0])
    if x is None or x.buffer.dtype.kind not in "biuf":
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.refused():
        return reason
    if x.buffer.dtype.kind != "f":
        x = state.copy_of(x, np.dtype(float))
    total = pool.gathered("add", pool.views(pool.padded(x, 0.0)), item.raw_value.dtype)
    return pool.result("divide", total, pool.sizes())


def lower_max_pool_gradient(state: LoweringState, item: Any) -> str:
    """Lower `max_pool_back` of a cotangent, the input and the result."""
    g, x, best = (state.view(a) for a in item.args)
    if g is None or x is None or best is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.refused(x, g):
        return reason
    won = pool.winners(x, best)
    shares = pool.computed("divide", g.shape, g, pool.number_of(won, best.shape))
    return pool.spread(shares, won)


def lower_max_pool_tangent(state: LoweringState, item: Any) -> str:
    """Lower `max_pool_along` of a tangent, the input and the result."""
    t, x, best = (state.view(a) for a in item.args)
    if t is None or x is None or best is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, x.shape)
    if reason := pool.refused(x, t):
        return reason
    won = pool.winners(x, best)
    total: Any = 0.0
    for view, chosen in zip(pool.views(pool.padded(t, 0.0)), won, strict=True):
        total = pool.computed("add", view.shape, total, pool.computed("where", view.shape, chosen, view, 0.0))
    return pool.result("divide", total, pool.number_of(won, best.shape))


def lower_mean_pool_gradient(state: LoweringState, item: Any) -> str:
    """Lower `mean_pool_back`."""
    g = state.view(item.args[0])
    if g is None:
        return UNSUPPORTED
    pool = _PoolLowering(state, item, np.shape(item.args[1]))
    if reason := pool.refused(g):
        return reason
    return pool.spread(pool.computed("divide", g.shape, g, pool.sizes()), [True] * pool.window_size)


class _PoolLowering:
    """The windows of a pooling operation, and steps over them."""

    def __init__(self, state: LoweringState, item: Any, shape: tuple[int, ...]) -> None:
        self.state, self.item, self.dtype = state, item, item.raw_value.dtype
        self.windows: Windows = pooling_windows(item.opname, shape, **item.options)
        self.window_size = prod(self.windows.window)

    def refused(self, *floating: BufferView) -> str:
        """Return the reason if it is not supported, otherwise an empty string."""
        if self.window_size > MAX_WINDOW:
            return "pooling of large windows is not compiled"
        if any(p.buffer.dtype.kind != "f" for p in floating) or not elementwise_ops.is_compilable(self.dtype):
            return f"pooling of {self.dtype} is not compiled"
        return "" if np.size(self.item.raw_value) else "there is nothing to pool"

    def computed(self, name: str, shape: tuple[int, ...], *operands: Any, dtype: Any = None, computed: Any = None) -> BufferView:
        """Append an elementwise operation with a new array as its result."""
        own = dense_view(self.dtype if dtype is None else dtype, shape)
        self.state.append_map(name, operands, own, computed)
        return own

    def result(self, name: str, *operands: Any) -> str:
        """Append the operation that computes the result."""
        self.state.views[self.item] = own = dense_view(self.dtype, np.shape(self.item.raw_value), self.item)
        self.state.append_map(name, operands, own)
        return ""

    def padded(self, x: BufferView, value: Any) -> BufferView:
        """Return an array with its padding."""
        if not any(map(any, self.windows.pads)):
            return x
        axes = len(self.windows.lengths)
        own = dense_view(x.buffer.dtype, (*x.shape[: len(x.shape) - axes], *self.windows.padded))
        self.state.append_map("copy", (value,), own, is_write=True)
        self.state.append_map("copy", (x,), self.inner(own), is_write=True)
        return own

    def inner(self, padded: BufferView) -> BufferView:
        """Return a padded array without its padding."""
        axes = len(self.windows.lengths)
        before = sum(s * left for s, (left, _) in zip(padded.strides[-axes:], self.windows.pads, strict=True))
        shape = (*padded.shape[:-axes], *self.windows.lengths)
        return BufferView(padded.buffer, padded.offset + before, shape, padded.strides)

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

    def gathered(self, name: str, views: list[BufferView], dtype: Any) -> BufferView:
        """Reduce all window positions by a binary operation."""
        total = views[0]
        for view in views[1:]:
            total = self.computed(name, view.shape, total, view, dtype=dtype)
        return total

    def winners(self, x: BufferView, best: BufferView) -> list[BufferView]:
        """Return for each window position whether the maximum is there; padding never is."""
        boolean, kind = np.dtype(bool), x.buffer.dtype
        unknown = self.computed("isnan", best.shape, best, dtype=boolean, computed=kind)
        winners = []
        for view, inside in zip(self.views(self.padded(x, -np.inf)), self._inside(), strict=True):
            won = self.computed("greater_equal", best.shape, view, best, dtype=boolean, computed=kind)
            if not inside.all():
                won = self.computed("logical_and", best.shape, won, self.state.external(inside), dtype=boolean)
            winners.append(self.computed("logical_or", best.shape, won, unknown, dtype=boolean))
        return winners

    def _inside(self) -> list[Any]:
        """Return for each window position in which windows it is not padding."""
        w, masks = self.windows, []
        for position in np.ndindex(w.window):
            along = []
            for axis, k in enumerate(position):
                at = np.arange(w.counts[axis]) * w.strides[axis] + k * w.dilation[axis] - w.pads[axis][0]
                along.append((at >= 0) & (at < w.lengths[axis]))
            masks.append(functools.reduce(np.logical_and.outer, along))
        return masks

    def number_of(self, won: list[BufferView], shape: tuple[int, ...]) -> BufferView:
        """Return the number of positions of each window with its maximum, at least 1."""
        total = self.computed("copy", shape, won[0], computed=np.dtype(bool))
        for more in won[1:]:
            one = self.computed("copy", shape, more, computed=np.dtype(bool))
            total = self.computed("add", shape, total, one)
        return self.computed("maximum", shape, total, 1.0)

    def sizes(self) -> Any:
        """Return the number of elements in each window, without padding."""
        counts = count_elements_per_axis(self.windows)
        if all((count == count[0]).all() for count in counts):
            return float(prod(int(count[0]) for count in counts))
        return self.state.external(np.ascontiguousarray(count_window_elements(self.windows, self.dtype)))

    def spread(self, shares: BufferView, won: list[Any]) -> str:
        """Lower the result: `shares`, added at the window positions selected by `won`."""
        axes = len(self.windows.lengths)
        padded = dense_view(self.dtype, (*shares.shape[:-axes], *self.windows.padded), self.item)
        self.state.append_map("copy", (0.0,), padded, is_write=True)
        for view, chosen in zip(self.views(padded), won, strict=True):
            value = shares if chosen is True else self.computed("where", shares.shape, chosen, shares, 0.0)
            self.state.append_map("add", (view, value), view, is_write=True)
        self.state.views[self.item] = self.inner(padded)
        return ""
