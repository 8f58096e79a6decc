"""Fourier transforms, polynomials, special functions and the rest of the ufuncs."""

from __future__ import annotations

import numpy as np

from .policy import Policy
from .polynomials import polyfit

POLICY = Policy(
    smooth_ufuncs=frozenset({np.copysign, np.ldexp, np.frexp, np.modf}),
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
        np.polyval: "p x",
        np.polymul: "a1 a2",
        np.polydiv: "u v",
        np.polyder: "p",
        np.polyint: "p k",
        np.poly: "seq_of_zeros",
        np.roots: "p",
        np.linspace: "start stop",
        np.geomspace: "start stop",
        np.sinc: "x",
        np.i0: "x",
        np.angle: "z",
        # Their derivatives are those of the functions of the same names.
        np.emath.sqrt: "x",
        np.emath.log: "x",
        np.emath.log2: "x",
        np.emath.log10: "x",
    },
    instead={np.polyfit: polyfit},
    composed=frozenset({np.fft.rfft2, np.fft.irfft2, np.polyadd, np.polysub, np.logspace}),
    refused={
        np.emath.logn: "np.emath.log(x) / np.emath.log(n)",
        np.emath.power: "np.power(x.astype(complex), p)",
        np.emath.arccos: "np.arccos(x.astype(complex))",
        np.emath.arcsin: "np.arcsin(x.astype(complex))",
        np.emath.arctanh: "np.arctanh(x.astype(complex))",
    },
)
