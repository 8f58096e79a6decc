"""Fourier transforms, polynomials, special functions and the rest of the ufuncs."""

from __future__ import annotations

import numpy as np

from .policy import Policy

POLICY = Policy(
    smooth={
        np.fft.fft: "a",
        np.fft.ifft: "a",
        np.fft.rfft: "a",
        np.fft.irfft: "a",
        np.fft.hfft: "a",
        np.fft.ihfft: "a",
        np.fft.fft2: "a",
        np.fft.ifft2: "a",
        np.fft.fftn: "a",
        np.fft.ifftn: "a",
        np.fft.rfftn: "a",
        np.fft.irfftn: "a",
        np.fft.fftshift: "x",
        np.fft.ifftshift: "x",
    },
    composed=frozenset({np.fft.rfft2, np.fft.irfft2}),
)
