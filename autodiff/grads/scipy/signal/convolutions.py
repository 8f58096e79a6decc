"""Rules of ``scipy.signal``'s convolutions and correlations.

The full convolution with a kernel is a matrix of Toeplitz form; its transpose is the convolution with the kernel turned around,
of which the part counts where the two overlap wholly. The modes "same" and "valid" cut a part out of the full result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from compgraph.ops import ensure_array

from ....rules import Rule, multilinear


def _axes(x: Any, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple([int(axis) % x.ndim for axis in np.ravel(axes)])


def _whole(g: Any, first: Any, second: Any, mode: str, axes: Any) -> Any:
    """The adjoint of the full result, of which the result is a part."""
    before = [(0, 0)] * g.ndim
    for axis in axes:
        n, m = first.shape[axis], second.shape[axis]
        length = n + m - 1
        start = {"full": 0, "same": (length - n) // 2, "valid": min(n, m) - 1}[mode]
        before[axis] = (start, length - start - g.shape[axis])
    return np.pad(g, before) if any(map(any, before)) else g


def _against(name: str, g: Any, kernel: Any, axes: Any, method: Any) -> Any:
    """The transpose of the full convolution with a kernel."""
    turned = np.flip(kernel, axes)
    if name == "fftconvolve":
        return scipy.signal.fftconvolve(g, turned, "valid", axes)
    if name == "convolve2d":
        return scipy.signal.convolve2d(g, turned, "valid")
    return scipy.signal.convolve(g, turned, "valid", method)


def _convolution(name: str, acting: str) -> Rule:
    """The rule of a convolution; `acting` is the one that its adjoints are computed by."""

    def operand(position: int) -> Any:
        def formula(
            g: Any, out: Any, in1: Any, in2: Any, mode: str = "full", method: str = "auto", axes: Any = None, **_: Any
        ) -> Any:
            in1, in2 = ensure_array(in1), ensure_array(in2)
            other = in1 if position else in2
            if out.ndim == 0 or not g.size:
                return g * other if out.ndim == 0 else np.zeros_like(in2 if position else in1)
            found = _axes(g, axes)
            return _against(acting, _whole(g, in1, in2, mode, found), other, found, method)

        return formula

    return multilinear(f"scipy_signal_{name}", operand(0), operand(1))


def _correlation(position: int, g: Any, out: Any, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """A correlation is the convolution with the kernel turned around and conjugated."""
    in1, in2 = ensure_array(in1), ensure_array(in2)
    turned = np.conjugate(np.flip(in2))
    if out.ndim == 0 or not g.size:
        one, two = (g * np.conjugate(in2), np.conjugate(g * in1)) if out.ndim == 0 else (np.zeros_like(in1), np.zeros_like(in2))
        return two if position else one
    axes = _axes(g, None)
    g = _whole(g, in1, in2, mode, axes)
    if position == 0:
        return _against("convolve", g, turned, axes, method)
    return np.conjugate(np.flip(_against("convolve", g, in1, axes, method)))


scipy_signal_convolve_grad = _convolution("convolve", "convolve")
scipy_signal_fftconvolve_grad = _convolution("fftconvolve", "fftconvolve")
scipy_signal_oaconvolve_grad = _convolution("oaconvolve", "fftconvolve")
scipy_signal_convolve2d_grad = _convolution("convolve2d", "convolve2d")
scipy_signal_correlate_grad = multilinear(
    "scipy_signal_correlate",
    lambda g, out, in1, in2, **options: _correlation(0, g, out, in1, in2, **options),
    lambda g, out, in1, in2, **options: _correlation(1, g, out, in1, in2, **options),
)
