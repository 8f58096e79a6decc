"""Fourier transforms, polynomials, special functions and the rest of the ufuncs."""

from __future__ import annotations

import numpy as np

from ..compositions.polynomials import polyfit
from .policy import Policy

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
        # They share opname and rule with the function of the same name (np.sqrt ...); logn has a rule of its own.
        np.emath.sqrt: "x",
        np.emath.log: "x",
        np.emath.log2: "x",
        np.emath.log10: "x",
        np.emath.logn: "n x",
        np.emath.power: "x p",
        np.emath.arccos: "x",
        np.emath.arcsin: "x",
        np.emath.arctanh: "x",
    },
    # The first two run NumPy's own code on the node: it has no dispatch, and divides by the node as it is.
    instead={np.fft.fftfreq: np.fft.fftfreq, np.fft.rfftfreq: np.fft.rfftfreq, np.polyfit: polyfit},
    composed=frozenset({np.fft.rfft2, np.fft.irfft2, np.polyadd, np.polysub, np.logspace}),
)
