"""Fourier transforms and convolutions of signals, interpolation, polynomials and quantiles by the array API standard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .elementwise import conj
from .indexing import getitem, searchsorted
from .positions import UnsupportedError, as_array, flat, is_complex, move_elements, number
from .reductions import Reduction, all_, any_, count_nonzero, sum_
from .shapes import expand_dims, sliding_window_view

Namespace = Any
Array = Any


def convolve(xp: Namespace, a: Array, v: Array, mode: str = "full") -> Array:
    a, v = (xp.reshape(x, (1,)) if not x.ndim else x for x in (a, v))
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return _correlate_windows(xp, a, xp.flip(v), mode)


def _correlate_windows(xp: Namespace, a: Array, kernel: Array, mode: str) -> Array:
    """Return the products of a kernel with the windows of a vector; the kernel is not longer than the vector."""
    size = kernel.shape[0]
    before = {"full": size - 1, "same": size // 2, "valid": 0}[mode]
    after = {"full": size - 1, "same": size - 1 - size // 2, "valid": 0}[mode]
    return sliding_window_view(xp, move_elements(xp, np.pad, a, (before, after)), size) @ kernel


def correlate(xp: Namespace, a: Array, v: Array, mode: str = "valid") -> Array:
    a, v = (xp.reshape(x, (1,)) if not x.ndim else x for x in (a, v))
    if v.shape[0] > a.shape[0]:
        return xp.flip(conj(xp, correlate(xp, v, a, mode)))
    return _correlate_windows(xp, a, conj(xp, v), mode)


def _transform(name: str, converts_to_complex: bool) -> Reduction:
    """Return the Fourier transform along one axis that the standard has under a name."""

    def transform(xp: Namespace, a: Array, n: object = None, axis: int = -1, norm: str | None = None) -> Array:
        a = _as_complex(xp, a) if converts_to_complex else a
        return getattr(xp.fft, name)(a, n=n, axis=axis, norm=norm or "backward")

    return transform


def _transform_over_axes(name: str, converts_to_complex: bool, default_axes: tuple[int, ...] | None = None) -> Reduction:
    """Return the Fourier transform along several axes that the standard has under a name."""

    def transform(xp: Namespace, a: Array, s: Any = None, axes: Any = default_axes, norm: str | None = None) -> Array:
        a = _as_complex(xp, a) if converts_to_complex else a
        axes = tuple(range(a.ndim))[-len(s) :] if axes is None and s is not None else axes
        return getattr(xp.fft, name)(a, s=s, axes=axes, norm=norm or "backward")

    return transform


def _as_complex(xp: Namespace, a: Array) -> Array:
    return a if is_complex(xp, a) else xp.astype(a, xp.complex64 if a.dtype == xp.float32 else xp.complex128)


fft_fft, fft_ifft, fft_irfft, fft_hfft = (_transform(name, True) for name in ("fft", "ifft", "irfft", "hfft"))
fft_rfft, fft_ihfft = (_transform(name, False) for name in ("rfft", "ihfft"))
fft_fftn, fft_ifftn, fft_irfftn = (_transform_over_axes(name, True) for name in ("fftn", "ifftn", "irfftn"))
fft_fft2, fft_ifft2 = (_transform_over_axes(name, True, (-2, -1)) for name in ("fftn", "ifftn"))
fft_rfftn = _transform_over_axes("rfftn", False)


def interp(xp: Namespace, x: Array, xs: Array, fs: Array, left: Any = None, right: Any = None, period: Any = None) -> Array:
    if period is not None:
        raise UnsupportedError("interp with a period is not supported")
    count = xs.shape[0]
    upper = xp.clip(searchsorted(xp, xs, x, "right"), 1, max(count - 1, 1))
    low, high = (getitem(xp, xs, upper - 1), getitem(xp, xs, upper)) if count > 1 else (xs[0], xs[0] + 1)
    first, last = (getitem(xp, fs, upper - 1), getitem(xp, fs, upper)) if count > 1 else (fs[0], fs[0])
    result = first + (x - low) * ((last - first) / (high - low))
    for is_outside, bound, end in ((x < xs[0], left, fs[0]), (x > xs[-1], right, fs[-1])):
        result = xp.where(
            is_outside, end if bound is None else bound if hasattr(bound, "dtype") else number(xp, bound, result), result
        )
    return xp.where(x == xs[-1], fs[-1], result)


def polyval(xp: Namespace, p: Array, x: Array) -> Array:
    total = xp.zeros_like(x)
    for k in range(p.shape[0]):
        total = total * x + p[k, ...]
    return total


def polyder(xp: Namespace, p: Array, m: int = 1) -> Array:
    for _ in range(m):
        p = p[:-1] * as_array(xp, np.arange(p.shape[0] - 1, 0, -1), p, p.dtype)
    return p


def polyint(xp: Namespace, p: Array, k: Any = None, m: int = 1) -> Array:
    if k is None:
        constants = xp.zeros((m,), dtype=p.dtype)
    else:
        constants = flat(xp, k if hasattr(k, "dtype") else as_array(xp, k, p, p.dtype))
    constants = xp.broadcast_to(constants, (m,)) if constants.shape[0] == 1 else constants
    for order in range(m):
        p = xp.concat([p / as_array(xp, np.arange(p.shape[0], 0, -1), p, p.dtype), constants[order : order + 1]])
    return p


def _merge_axes(xp: Namespace, x: Array, axis: tuple[int, ...] | None) -> tuple[Array, tuple[int, ...]]:
    """Merge the axes of a reduction into one, the last; return the array and the axes."""
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    other_axes = [k for k in range(x.ndim) if k not in axes]
    rows = xp.permute_dims(x, (*other_axes, *axes)) if x.ndim > 1 else x
    return xp.reshape(rows, (*[x.shape[k] for k in other_axes], math.prod(x.shape[k] for k in axes))), axes


def _neighboring_values(xp: Namespace, rows: Array, q: Array, skips_nan: bool) -> Iterator[tuple[Array, Array, Array]]:
    """Yield for each quantile the sorted numbers below and above it, and the weight of the upper one."""
    ranked, length = xp.sort(rows, axis=-1), rows.shape[-1]
    is_number = ~xp.isnan(rows)
    counts = count_nonzero(xp, is_number, axis=-1, keepdims=True) if skips_nan else None
    for fraction in np.ravel(q).tolist():
        if counts is None:
            rank = fraction * (length - 1)
            low = int(rank)
            ends = [ranked[..., k] for k in (low, min(low + 1, length - 1))]
            yield ends[0], ends[1], number(xp, rank - low, rows)
        else:
            last = xp.astype(xp.maximum(counts - 1, xp.zeros_like(counts)), rows.dtype)
            rank = last * fraction
            low = xp.floor(rank)
            ends = [xp.astype(xp.minimum(low + k, last), xp.int64) for k in (0, 1)]
            below, above = (xp.take_along_axis(ranked, end, axis=-1)[..., 0] for end in ends)
            yield below, above, (rank - low)[..., 0]


def _quantile(scale: float, skips_nan: bool) -> Reduction:
    def quantile(xp: Namespace, a: Array, q: Any = 0.5, axis: Any = None, keepdims: object = False, **options: object) -> Array:
        _require_linear(options)
        rows, axes = _merge_axes(xp, a, axis)
        q = np.asarray(q, float) / scale
        is_nan = (all_ if skips_nan else any_)(xp, xp.isnan(rows), axis=-1)
        quantiles = [
            xp.where(is_nan, number(xp, math.nan, a), below + (above - below) * weight)
            for below, above, weight in _neighboring_values(xp, rows, q, skips_nan)
        ]
        result = xp.reshape(xp.stack(quantiles), (*q.shape, *rows.shape[:-1])) if q.ndim else quantiles[0]
        return expand_dims(xp, result, tuple(k + q.ndim for k in axes)) if keepdims and keepdims is not np._NoValue else result

    return quantile


def _require_linear(options: dict[str, Any]) -> None:
    if options.get("weights") is not None or options.get("method", "linear") != "linear":
        raise UnsupportedError("a quantile with weights, or with a method that is not 'linear', is not supported")


median, quantile, percentile = _quantile(1, False), _quantile(1, False), _quantile(100, False)
nanmedian, nanquantile, nanpercentile = _quantile(1, True), _quantile(1, True), _quantile(100, True)


def _row_weights(
    xp: Namespace,
    out: Array,
    x: Array,
    *,
    function: Callable[..., Any],
    skips: bool,
    axis: tuple[int, ...],
    options: dict[str, Any],
) -> Array:
    """See `autodiff.grads.element_selection`: the weight of each element of a row in its quantile."""
    _require_linear(options)
    rows, _ = _merge_axes(xp, x, axis)
    q = np.asarray(options.get("q", 0.5), float) / (100 if function is np.percentile else 1)
    results = xp.reshape(out, (q.size, *rows.shape[:-1]))
    weights = []
    for k, (below, above, share) in enumerate(_neighboring_values(xp, rows, q, skips)):
        ends = [xp.where(xp.isnan(results[k, ...]), results[k, ...], end)[..., None] for end in (below, above)]
        equal = [xp.astype(rows == end, rows.dtype) for end in ends]
        ties = [e / sum_(xp, e, axis=-1, keepdims=True) for e in equal]
        share = xp.broadcast_to(share, rows.shape[:-1])[..., None]
        weights.append(ties[0] * (1 - share) + ties[1] * share)
    return xp.stack(weights) if weights else xp.zeros((0, *rows.shape), dtype=rows.dtype)
