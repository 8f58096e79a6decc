"""Fourier transforms in terms of the array API standard."""

from __future__ import annotations

from typing import Any

from .positions import is_complex
from .reductions import Reduction

Namespace = Any
Array = Any


def _fourier(name: str, takes_complex: bool) -> Reduction:
    def transform(xp: Namespace, a: Array, n: object = None, axis: int = -1, norm: str | None = None) -> Array:
        if takes_complex and not is_complex(xp, a):
            a = xp.astype(a, xp.complex64 if a.dtype == xp.float32 else xp.complex128)
        return getattr(xp.fft, name)(a, n=n, axis=axis, norm=norm or "backward")

    return transform


def _fourier_over_axes(name: str, takes_complex: bool, last: tuple[int, ...] | None = None) -> Reduction:
    def transform(xp: Namespace, a: Array, s: Any = None, axes: Any = last, norm: str | None = None) -> Array:
        if takes_complex and not is_complex(xp, a):
            a = xp.astype(a, xp.complex64 if a.dtype == xp.float32 else xp.complex128)
        axes = tuple(range(a.ndim))[-len(s) :] if axes is None and s is not None else axes
        return getattr(xp.fft, name)(a, s=s, axes=axes, norm=norm or "backward")

    return transform


fft_fft, fft_ifft, fft_irfft, fft_hfft = (_fourier(name, True) for name in ("fft", "ifft", "irfft", "hfft"))
fft_rfft, fft_ihfft = (_fourier(name, False) for name in ("rfft", "ihfft"))
fft_fftn, fft_ifftn, fft_irfftn = (_fourier_over_axes(name, True) for name in ("fftn", "ifftn", "irfftn"))
fft_fft2, fft_ifft2 = (_fourier_over_axes(name, True, (-2, -1)) for name in ("fftn", "ifftn"))
fft_rfftn = _fourier_over_axes("rfftn", False)
