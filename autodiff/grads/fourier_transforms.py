"""Rules of Fourier transforms: those of NumPy, and the declarations for those of SciPy.

A Fourier transform is linear and its matrix is symmetric. Its transpose is therefore the same transform, without conjugation,
cut or padded to the length of the operand. In transforms between real numbers and half a spectrum, each frequency
strictly between zero and the highest represents two.

The transposed transforms `pull_*` take the module of the transforms, ``np.fft`` or ``scipy.fft``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rules import Rule, linear

Ints = Sequence[int] | int | None  # the axes of a transform, or the lengths along them
Transpose = Callable[[ModuleType, Any, Any, Any, Any, Any], Any]  # (module, g, x, s, axes, norm) -> cotangent of x


def inverse_norm(norm: str | None) -> str:
    """Return the `norm` for which an inverse transform has the factor of the forward transform with this one."""
    return {"forward": "backward", "ortho": "ortho"}.get(norm or "backward", "forward")


def transformed_axes(x: NDArray[Any], s: Ints, axes: Ints) -> list[int]:
    """Return the axes of a transform, counted from the end."""
    last = range(-(x.ndim if s is None else np.size(s)), 0)
    return [int(axis) % x.ndim - x.ndim for axis in np.ravel(last if axes is None else axes).astype(int)]


def cut_or_pad(g: NDArray[Any], length: int, axis: int) -> Any:
    """Cut or zero-pad to a length along an axis. This is also the transpose, because transforms cut or zero-pad their operand."""
    axis %= g.ndim
    current = g.shape[axis]
    if current >= length:
        return g[(slice(None),) * axis + (slice(length),)]
    zeros = np.zeros((*g.shape[:axis], length - current, *g.shape[axis + 1 :]), g.dtype)
    return np.concatenate([g, zeros], axis=axis)


def _steps(x: NDArray[Any], s: Ints, axes: Ints, name: str = "fftn") -> list[tuple[int, int, int]]:
    """Return the axis, the length before and the length after each one-dimensional transform, in NumPy's order.

    ``fftn`` and ``rfftn`` begin with the last axis, ``irfftn`` with the first. The first transform of ``rfftn`` halves the
    spectrum.
    """
    negative_axes = transformed_axes(x, s, axes)
    lengths = [-1] * len(negative_axes) if s is None else np.ravel(s).tolist()
    shape, steps = list(x.shape), []
    for axis, n in list(zip(negative_axes, lengths, strict=True))[:: 1 if name == "irfftn" else -1]:
        after = x.shape[axis] if n in (None, -1) else n
        steps.append((axis, int(shape[axis]), int(after)))
        shape[axis] = after // 2 + 1 if name == "rfftn" and len(steps) == 1 else after
    return steps


def _half_spectrum_weights(g: NDArray[Any], n: int, axis: int, inner: float) -> Any:
    """Return the weights of n // 2 + 1 frequencies along an axis of `g`: 1 for zero and for n / 2, `inner` for others."""
    weights = np.full(n // 2 + 1, inner, np.finfo(g.dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim)))


def _pull_steps(transform: Callable[..., Any], g: NDArray[Any], steps: Sequence[tuple[int, int, int]], norm: str | None) -> Any:
    for axis, length, _ in reversed(steps):
        g = cut_or_pad(transform(g, axis=axis, norm=norm), length, axis)
    return g


def pull_fftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``fftn``."""
    return _pull_steps(fft.fft, g, _steps(x, s, axes), norm)


def pull_ifftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``ifftn``."""
    return _pull_steps(fft.ifft, g, _steps(x, s, axes), norm)


def pull_rfftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``rfftn``."""
    (axis, length, n), *others = _steps(x, s, axes, "rfftn")
    g = np.conjugate(_pull_steps(fft.fft, g, others, norm))
    halved = g * _half_spectrum_weights(g, n, axis, 0.5)
    return cut_or_pad(fft.irfft(halved, n, axis=axis, norm=inverse_norm(norm)), length, axis)


def pull_irfftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``irfftn``."""
    *others, (axis, length, _) = _steps(x, s, axes, "irfftn")
    doubled = _half_spectrum_weights(g, g.shape[axis], axis, 2)
    g = cut_or_pad(np.conjugate(fft.rfft(g, axis=axis, norm=inverse_norm(norm))) * doubled, length, axis)
    return _pull_steps(fft.ifft, g, others, norm)


def pull_hfftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``hfftn``, which is ``irfftn(conj(x))`` with the inverse norm."""
    return np.conjugate(pull_irfftn(fft, g, x, s, axes, inverse_norm(norm)))


def pull_ihfftn(fft: ModuleType, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, norm: str | None) -> Any:
    """Compute the transpose of ``ihfftn``, which is ``conj(rfftn(x))`` with the inverse norm."""
    return pull_rfftn(fft, np.conjugate(g), x, s, axes, inverse_norm(norm))


def along_axis(opname: str, fft: ModuleType, pull: Transpose) -> Rule:
    """Declare the rule of a transform along one axis."""
    return linear(
        opname, lambda g, out, x, n=None, axis=-1, norm=None, **_: pull(fft, g, x, None if n is None else [n], [axis], norm)
    )


def along_axes(opname: str, fft: ModuleType, pull: Transpose, default: tuple[int, ...] | None = None) -> Rule:
    """Declare the rule of a transform along several axes."""
    return linear(opname, lambda g, out, x, s=None, axes=default, norm=None, **_: pull(fft, g, x, s, axes, norm))


fft_fft_grad, fft_ifft_grad = along_axis("fft_fft", np.fft, pull_fftn), along_axis("fft_ifft", np.fft, pull_ifftn)
fft_rfft_grad, fft_irfft_grad = along_axis("fft_rfft", np.fft, pull_rfftn), along_axis("fft_irfft", np.fft, pull_irfftn)
fft_hfft_grad, fft_ihfft_grad = along_axis("fft_hfft", np.fft, pull_hfftn), along_axis("fft_ihfft", np.fft, pull_ihfftn)
fft_fftn_grad, fft_ifftn_grad = along_axes("fft_fftn", np.fft, pull_fftn), along_axes("fft_ifftn", np.fft, pull_ifftn)
fft_rfftn_grad, fft_irfftn_grad = along_axes("fft_rfftn", np.fft, pull_rfftn), along_axes("fft_irfftn", np.fft, pull_irfftn)
fft_fft2_grad = along_axes("fft_fft2", np.fft, pull_fftn, (-2, -1))
fft_ifft2_grad = along_axes("fft_ifft2", np.fft, pull_ifftn, (-2, -1))
fft_fftshift_grad = linear("fft_fftshift", lambda g, out, x, axes=None: np.fft.ifftshift(g, axes)).moves_elements()
fft_ifftshift_grad = linear("fft_ifftshift", lambda g, out, x, axes=None: np.fft.fftshift(g, axes)).moves_elements()
