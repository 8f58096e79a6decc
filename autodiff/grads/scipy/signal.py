"""Rules of ``scipy.signal``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Axis
from compgraph.ops import ensure_array

from ...rules import Rule, general, multilinear

# ---------------------------------------------------------------------------------------------------------- convolutions


def _axes(x: NDArray[Any], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple([int(axis) % x.ndim for axis in np.ravel(axes)])


def _full_cotangent(g: NDArray[Any], first: Any, second: Any, mode: str, axes: tuple[int, ...]) -> Any:
    """Zero-pad the cotangent of a convolution to that of the full convolution."""
    padding = [(0, 0)] * g.ndim
    for axis in axes:
        n, m = first.shape[axis], second.shape[axis]
        length = n + m - 1
        start = {"full": 0, "same": (length - n) // 2, "valid": min(n, m) - 1}[mode]
        padding[axis] = (start, length - start - g.shape[axis])
    return np.pad(g, padding) if any(map(any, padding)) else g


def _convolve_transposed(name: str, g: NDArray[Any], kernel: Any, axes: Axis, method: str) -> Any:
    """Compute the transpose of the full convolution with a kernel."""
    flipped = np.flip(kernel, axes)
    if name == "fftconvolve":
        return scipy.signal.fftconvolve(g, flipped, "valid", axes)
    if name == "convolve2d":
        return scipy.signal.convolve2d(g, flipped, "valid")
    return scipy.signal.convolve(g, flipped, "valid", method)


def _declare_convolution(name: str, function_name: str) -> Rule:
    """Declare the rule of a convolution; its formulas call the convolution function of the given name."""

    def pull_operand(position: int) -> Any:
        def formula(
            g: NDArray[Any],
            out: NDArray[Any],
            in1: Any,
            in2: Any,
            mode: str = "full",
            method: str = "auto",
            axes: tuple[int, ...] | None = None,
            **_: object,
        ) -> Any:
            in1, in2 = ensure_array(in1), ensure_array(in2)
            other = in1 if position else in2
            if out.ndim == 0 or not g.size:
                return g * other if out.ndim == 0 else np.zeros_like(in2 if position else in1)
            axis_numbers = _axes(g, axes)
            full_cotangent = _full_cotangent(g, in1, in2, mode, axis_numbers)
            return _convolve_transposed(function_name, full_cotangent, other, axis_numbers, method)

        return formula

    return multilinear(f"scipy_signal_{name}", pull_operand(0), pull_operand(1))


def _correlation(
    position: int, g: NDArray[Any], out: NDArray[Any], in1: Any, in2: Any, mode: str = "full", method: str = "auto"
) -> Any:
    """Return the cotangent of an operand of a correlation, which is a convolution with the flipped and conjugated kernel."""
    in1, in2 = ensure_array(in1), ensure_array(in2)
    if out.ndim == 0:
        return np.conjugate(g * in1) if position else g * np.conjugate(in2)
    if not g.size:
        return np.zeros_like(in2 if position else in1)
    axes = _axes(g, None)
    g = _full_cotangent(g, in1, in2, mode, axes)
    if position == 0:
        return _convolve_transposed("convolve", g, np.conjugate(np.flip(in2)), axes, method)
    return np.conjugate(np.flip(_convolve_transposed("convolve", g, in1, axes, method)))


scipy_signal_convolve_grad = _declare_convolution("convolve", "convolve")
scipy_signal_fftconvolve_grad = _declare_convolution("fftconvolve", "fftconvolve")
scipy_signal_oaconvolve_grad = _declare_convolution("oaconvolve", "fftconvolve")
scipy_signal_convolve2d_grad = _declare_convolution("convolve2d", "convolve2d")
scipy_signal_correlate_grad = multilinear(
    "scipy_signal_correlate",
    lambda g, out, in1, in2, **options: _correlation(0, g, out, in1, in2, **options),
    lambda g, out, in1, in2, **options: _correlation(1, g, out, in1, in2, **options),
)


# --------------------------------------------------------------------------------------------------------------- filters

_MAX_DIRECT_LAGS = 64  # more lags are computed by a Fourier transform


def _transposed_filter(b: NDArray[Any], a: NDArray[Any], g: NDArray[Any], axis: int) -> Any:
    """Apply the transpose of a filter."""
    return np.flip(scipy.signal.lfilter(b, a, np.flip(g, axis), axis), axis)


def _lagged_products(g: NDArray[Any], u: NDArray[Any], count: int) -> Any:
    """Compute ``sum over n of g[n] u[n - k]`` along the last axis, summed over all others, for k from 0 to `count` - 1."""
    length = g.shape[-1]
    if count <= _MAX_DIRECT_LAGS:
        return np.stack([np.sum(g[..., k:] * u[..., : max(length - k, 0)]) for k in range(count)])
    correlations = scipy.signal.fftconvolve(g, np.flip(u, -1), axes=-1)[..., length - 1 : length - 1 + count]
    summed = np.sum(correlations, axis=tuple(range(correlations.ndim - 1)))
    return np.pad(summed, (0, count - summed.shape[0]))


def _pull_coefficients(g: NDArray[Any], a: NDArray[Any], signal: object, count: int, axis: int) -> Any:
    """Return the cotangent of coefficients that multiply delayed values of a signal, before the recursion by `a`."""
    filtered = scipy.signal.lfilter(np.ones(1, a.dtype), a, signal, axis)
    return _lagged_products(np.moveaxis(g, axis, -1), np.moveaxis(filtered, axis, -1), count)


scipy_signal_lfilter_grad = general(
    "scipy_signal_lfilter",
    lambda g, out, b, a, x, axis=-1: _pull_coefficients(g, ensure_array(a), x, len(b), axis),
    lambda g, out, b, a, x, axis=-1: -_pull_coefficients(g, ensure_array(a), out, len(a), axis),
    lambda g, out, b, a, x, axis=-1: _transposed_filter(b, a, g, axis),
).tangent(
    lambda t, out, b, a, x, axis=-1: scipy.signal.lfilter(t, a, x, axis),
    lambda t, out, b, a, x, axis=-1: -scipy.signal.lfilter(t, a, out, axis),
    lambda t, out, b, a, x, axis=-1: scipy.signal.lfilter(b, a, t, axis),
)


def _cut_or_pad(x: NDArray[Any], length: int) -> Any:
    """Cut or zero-pad along the last axis."""
    missing = length - x.shape[-1]
    return x[..., :length] if missing <= 0 else np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])


def _insert_zeros(x: NDArray[Any], up: int, length: int) -> Any:
    """Insert ``up - 1`` zeros after each element of the last axis, and cut or pad to a length."""
    padded = np.pad(x[..., None], [(0, 0)] * x.ndim + [(0, up - 1)])
    return _cut_or_pad(np.reshape(padded, (*x.shape[:-1], -1)), length)


def _upfirdn_x(
    g: NDArray[Any], out: NDArray[Any], h: NDArray[Any], x: NDArray[Any], up: int = 1, down: int = 1, axis: int = -1, **_: object
) -> Any:
    """Apply upfirdn with the flipped kernel, and `up` and `down` exchanged.

    Leading zeros in the kernel make the delay a multiple of `up`; the delayed elements are cut.
    """
    delay = len(h) - 1
    num_zeros = -delay % up
    flipped = np.pad(np.flip(h), (num_zeros, 0))
    cotangent = np.moveaxis(scipy.signal.upfirdn(flipped, g, down, up, axis), axis, -1)[..., (delay + num_zeros) // up :]
    return np.moveaxis(_cut_or_pad(cotangent, x.shape[axis]), -1, axis)


def _upfirdn_h(
    g: NDArray[Any], out: NDArray[Any], h: NDArray[Any], x: NDArray[Any], up: int = 1, down: int = 1, axis: int = -1, **_: object
) -> Any:
    length = max(g.shape[axis] * down, x.shape[axis] * up)
    upsampled_g = _insert_zeros(np.moveaxis(g, axis, -1), down, length)
    upsampled_x = _insert_zeros(np.moveaxis(x, axis, -1), up, length)
    return _lagged_products(upsampled_g, upsampled_x, len(h))


scipy_signal_upfirdn_grad = general("scipy_signal_upfirdn", _upfirdn_h, _upfirdn_x).tangent(
    lambda t, out, h, x, **options: scipy.signal.upfirdn(t, x, **options),
    lambda t, out, h, x, **options: scipy.signal.upfirdn(h, t, **options),
)
