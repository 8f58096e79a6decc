"""Rules of ``scipy.signal``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.ops import ensure_array

from ...rules import Rule, general, multilinear

# ---------------------------------------------------------------------------------------------------------- convolutions


def _axes(x: NDArray[Any], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple([int(axis) % x.ndim for axis in np.ravel(axes)])


def _full_cotangent(g: NDArray[Any], first: Any, second: Any, mode: str, axes: tuple[int, ...]) -> Any:
    """Return the cotangent of the full result; the result is a part of it."""
    before = [(0, 0)] * g.ndim
    for axis in axes:
        n, m = first.shape[axis], second.shape[axis]
        length = n + m - 1
        start = {"full": 0, "same": (length - n) // 2, "valid": min(n, m) - 1}[mode]
        before[axis] = (start, length - start - g.shape[axis])
    return np.pad(g, before) if any(map(any, before)) else g


def _convolve_transposed(name: str, g: NDArray[Any], kernel: Any, axes: Any, method: str) -> Any:
    """Compute the transpose of the full convolution with a kernel."""
    turned = np.flip(kernel, axes)
    if name == "fftconvolve":
        return scipy.signal.fftconvolve(g, turned, "valid", axes)
    if name == "convolve2d":
        return scipy.signal.convolve2d(g, turned, "valid")
    return scipy.signal.convolve(g, turned, "valid", method)


def _convolution(name: str, acting: str) -> Rule:
    """Declare the rule of a convolution; its formulas use the convolution function `acting`."""

    def operand(position: int) -> Any:
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
            return _convolve_transposed(acting, _full_cotangent(g, in1, in2, mode, axis_numbers), other, axis_numbers, method)

        return formula

    return multilinear(f"scipy_signal_{name}", operand(0), operand(1))


def _correlation(
    position: int, g: NDArray[Any], out: NDArray[Any], in1: Any, in2: Any, mode: str = "full", method: str = "auto"
) -> Any:
    """Convert a correlation to a convolution: the kernel is reversed and conjugated."""
    in1, in2 = ensure_array(in1), ensure_array(in2)
    turned = np.conjugate(np.flip(in2))
    if out.ndim == 0 or not g.size:
        one, two = (g * np.conjugate(in2), np.conjugate(g * in1)) if out.ndim == 0 else (np.zeros_like(in1), np.zeros_like(in2))
        return two if position else one
    axes = _axes(g, None)
    g = _full_cotangent(g, in1, in2, mode, axes)
    if position == 0:
        return _convolve_transposed("convolve", g, turned, axes, method)
    return np.conjugate(np.flip(_convolve_transposed("convolve", g, in1, axes, method)))


scipy_signal_convolve_grad = _convolution("convolve", "convolve")
scipy_signal_fftconvolve_grad = _convolution("fftconvolve", "fftconvolve")
scipy_signal_oaconvolve_grad = _convolution("oaconvolve", "fftconvolve")
scipy_signal_convolve2d_grad = _convolution("convolve2d", "convolve2d")
scipy_signal_correlate_grad = multilinear(
    "scipy_signal_correlate",
    lambda g, out, in1, in2, **options: _correlation(0, g, out, in1, in2, **options),
    lambda g, out, in1, in2, **options: _correlation(1, g, out, in1, in2, **options),
)


# --------------------------------------------------------------------------------------------------------------- filters

_MANY = 64  # more lags than these are computed by a Fourier transform


def _transposed_filter(b: NDArray[Any], a: NDArray[Any], g: NDArray[Any], axis: int) -> Any:
    """Apply the transpose of a filter."""
    return np.flip(scipy.signal.lfilter(b, a, np.flip(g, axis), axis), axis)


def _lagged_products(g: NDArray[Any], u: Any, count: int) -> Any:
    """``sum over n of g[n] u[n - k]`` along the last axis, and over all others, for k from 0 on."""
    length = g.shape[-1]
    if count <= _MANY:
        return np.stack([np.sum(g[..., k:] * u[..., : max(length - k, 0)]) for k in range(count)])
    correlations = scipy.signal.fftconvolve(g, np.flip(u, -1), axes=-1)[..., length - 1 : length - 1 + count]
    summed = np.sum(correlations, axis=tuple(range(correlations.ndim - 1)))
    return np.pad(summed, (0, count - summed.shape[0]))


def _recursive(g: NDArray[Any], a: NDArray[Any], signal: object, count: int, axis: int) -> Any:
    """The adjoint of coefficients that meet a signal before the recursive part does."""
    through = scipy.signal.lfilter(np.ones(1, a.dtype), a, signal, axis)
    return _lagged_products(np.moveaxis(g, axis, -1), np.moveaxis(through, axis, -1), count)


scipy_signal_lfilter_grad = general(
    "scipy_signal_lfilter",
    lambda g, out, b, a, x, axis=-1: _recursive(g, ensure_array(a), x, len(b), axis),
    lambda g, out, b, a, x, axis=-1: -_recursive(g, ensure_array(a), out, len(a), axis),
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
    apart = np.pad(x[..., None], [(0, 0)] * x.ndim + [(0, up - 1)])
    return _cut_or_pad(np.reshape(apart, (*x.shape[:-1], -1)), length)


def _upfirdn_x(
    g: NDArray[Any], out: NDArray[Any], h: Any, x: NDArray[Any], up: int = 1, down: int = 1, axis: int = -1, **_: object
) -> Any:
    """The kernel turned around, up and down exchanged; zeros before it bring the first result to the first element."""
    late = len(h) - 1
    before = -late % up
    turned = np.pad(np.flip(h), (before, 0))
    cotangent = np.moveaxis(scipy.signal.upfirdn(turned, g, down, up, axis), axis, -1)[..., (late + before) // up :]
    return np.moveaxis(_cut_or_pad(cotangent, x.shape[axis]), -1, axis)


def _upfirdn_h(
    g: NDArray[Any], out: NDArray[Any], h: Any, x: NDArray[Any], up: int = 1, down: int = 1, axis: int = -1, **_: object
) -> Any:
    length = max(g.shape[axis] * down, x.shape[axis] * up)
    spread = _insert_zeros(np.moveaxis(g, axis, -1), down, length), _insert_zeros(np.moveaxis(x, axis, -1), up, length)
    return _lagged_products(*spread, len(h))


scipy_signal_upfirdn_grad = general("scipy_signal_upfirdn", _upfirdn_h, _upfirdn_x).tangent(
    lambda t, out, h, x, **options: scipy.signal.upfirdn(t, x, **options),
    lambda t, out, h, x, **options: scipy.signal.upfirdn(h, t, **options),
)
