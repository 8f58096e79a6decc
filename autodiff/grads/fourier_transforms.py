"""Rules of Fourier transforms.

A Fourier transform is linear and its matrix is symmetric, so the contribution is the same transform of the cotangent, without
conjugation, cut or padded to the length of the operand. In transforms between real numbers and half a spectrum, each frequency
strictly between zero and the highest represents two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Axis

from ..rules import linear


def inverse_norm(norm: Any) -> Any:
    """Return the `norm` for which an inverse transform has the factor of the forward transform with this one."""
    return {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")


def _cut_or_pad(g: NDArray[Any], length: int, axis: int) -> Any:
    """Cut or zero-pad to a length along an axis: the transpose of what transforms do to their operand."""
    axis %= g.ndim
    current = g.shape[axis]
    if current >= length:
        return g[(slice(None),) * axis + (slice(length),)]
    zeros = np.zeros((*g.shape[:axis], length - current, *g.shape[axis + 1 :]), g.dtype)
    return np.concatenate([g, zeros], axis=axis)


def half_spectrum_weights(g: NDArray[Any], n: int, axis: int, inner: float) -> Any:
    """Return the weights of n // 2 + 1 frequencies along an axis of `g`: 1 for zero and for n / 2, `inner` for others."""
    weights = np.full(n // 2 + 1, inner, np.finfo(g.dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim)))


def _fft(g: NDArray[Any], length: int, axis: int, norm: Any) -> Any:
    return _cut_or_pad(np.fft.fft(g, axis=axis, norm=norm), length, axis)


def _ifft(g: NDArray[Any], length: int, axis: int, norm: Any) -> Any:
    return _cut_or_pad(np.fft.ifft(g, axis=axis, norm=norm), length, axis)


def _rfft(g: NDArray[Any], length: int, n: int, axis: int, norm: str | None) -> Any:
    halved = np.conjugate(g) * half_spectrum_weights(g, n, axis, 0.5)
    return _cut_or_pad(np.fft.irfft(halved, n, axis=axis, norm=inverse_norm(norm)), length, axis)


def _irfft(g: NDArray[Any], length: int, axis: int, norm: str | None) -> Any:
    doubled = half_spectrum_weights(g, g.shape[axis], axis, 2)
    return _cut_or_pad(np.conjugate(np.fft.rfft(g, axis=axis, norm=inverse_norm(norm))) * doubled, length, axis)


def _length(x: NDArray[Any], n: int | None, axis: int) -> int:
    return int(x.shape[axis] if n is None else n)


fft_fft_grad = linear("fft_fft", lambda g, out, x, n=None, axis=-1, norm=None: _fft(g, x.shape[axis], axis, norm))
fft_ifft_grad = linear("fft_ifft", lambda g, out, x, n=None, axis=-1, norm=None: _ifft(g, x.shape[axis], axis, norm))
fft_rfft_grad = linear(
    "fft_rfft", lambda g, out, x, n=None, axis=-1, norm=None: _rfft(g, x.shape[axis], _length(x, n, axis), axis, norm)
)
fft_irfft_grad = linear("fft_irfft", lambda g, out, x, n=None, axis=-1, norm=None: _irfft(g, x.shape[axis], axis, norm))
# hfft(x) is irfft(conj(x)), and ihfft(x) is conj(rfft(x)), both with the inverse norm.
fft_hfft_grad = linear(
    "fft_hfft",
    lambda g, out, x, n=None, axis=-1, norm=None: np.conjugate(_irfft(g, x.shape[axis], axis, inverse_norm(norm))),
)
fft_ihfft_grad = linear(
    "fft_ihfft",
    lambda g, out, x, n=None, axis=-1, norm=None: _rfft(
        np.conjugate(g), x.shape[axis], _length(x, n, axis), axis, inverse_norm(norm)
    ),
)
fft_fftshift_grad = linear("fft_fftshift", lambda g, out, x, axes=None: np.fft.ifftshift(g, axes)).moves_elements()
fft_ifftshift_grad = linear("fft_ifftshift", lambda g, out, x, axes=None: np.fft.fftshift(g, axes)).moves_elements()


def _axis_lengths(
    x: NDArray[Any], s: Any, axes: Any, real: bool = False, inverse_real: bool = False
) -> list[tuple[int, int, int]]:
    """Return the axis, the length before and the length after each one-dimensional transform of a multidimensional one."""
    if axes is None:
        axes = range(x.ndim if s is None else len(s))
        axes = [i - len(axes) for i in axes]
    after = (
        [x.shape[axis] for axis in axes] if s is None else [x.shape[a] if n == -1 else n for n, a in zip(s, axes, strict=True)]
    )
    if inverse_real and s is None:
        after[-1] = 2 * (after[-1] - 1)
    shape = list(x.shape)
    steps = []
    for axis, n in list(zip(axes, after, strict=True))[:: 1 if inverse_real else -1]:
        steps.append((axis, int(shape[axis]), int(n)))
        shape[axis] = n // 2 + 1 if real and len(steps) == 1 else n
    return steps


def _fftn(g: NDArray[Any], out: object, x: NDArray[Any], s: object = None, axes: Axis = None, norm: str | None = None) -> Any:
    for axis, length, _ in reversed(_axis_lengths(x, s, axes)):
        g = _fft(g, length, axis, norm)
    return g


def _ifftn(g: NDArray[Any], out: object, x: NDArray[Any], s: object = None, axes: Axis = None, norm: str | None = None) -> Any:
    for axis, length, _ in reversed(_axis_lengths(x, s, axes)):
        g = _ifft(g, length, axis, norm)
    return g


def _rfftn(
    g: NDArray[Any],
    out: NDArray[Any],
    x: NDArray[Any],
    s: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    norm: str | None = None,
) -> Any:
    (last, real_length, n), *others = _axis_lengths(x, s, axes, real=True)
    for axis, length, _ in reversed(others):
        g = _fft(g, length, axis, norm)
    return _rfft(g, real_length, n, last, norm)


def _irfftn(g: NDArray[Any], out: object, x: NDArray[Any], s: object = None, axes: Axis = None, norm: str | None = None) -> Any:
    *others, (last, half_length, _) = _axis_lengths(x, s, axes, inverse_real=True)
    g = _irfft(g, half_length, last, norm)
    for axis, length, _ in reversed(others):
        g = _ifft(g, length, axis, norm)
    return g


fft_fft2_grad = linear("fft_fft2", lambda g, out, x, s=None, axes=(-2, -1), norm=None: _fftn(g, out, x, s, axes, norm))
fft_ifft2_grad = linear("fft_ifft2", lambda g, out, x, s=None, axes=(-2, -1), norm=None: _ifftn(g, out, x, s, axes, norm))
fft_fftn_grad = linear("fft_fftn", _fftn)
fft_ifftn_grad = linear("fft_ifftn", _ifftn)
fft_rfftn_grad = linear("fft_rfftn", _rfftn)
fft_irfftn_grad = linear("fft_irfftn", _irfftn)
