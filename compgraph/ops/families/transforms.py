"""Fourier transforms, convolutions, interpolation, polynomials."""

from __future__ import annotations

import numpy as np

from ..compositions import statistics
from ..spec import OpSpec, composed, replaced, rule

OPERATIONS: tuple[OpSpec, ...] = (
    # Fourier transforms
    rule(np.fft.fft, "a", kind="along"),
    rule(np.fft.ifft, "a", kind="along"),
    rule(np.fft.rfft, "a", kind="along"),
    rule(np.fft.irfft, "a", kind="along"),
    rule(np.fft.hfft, "a", kind="along"),
    rule(np.fft.ihfft, "a", kind="along"),
    rule(np.fft.fft2, "a", kind="transform"),
    rule(np.fft.ifft2, "a", kind="transform"),
    composed(np.fft.rfft2),
    composed(np.fft.irfft2),
    rule(np.fft.fftn, "a", kind="transform"),
    rule(np.fft.ifftn, "a", kind="transform"),
    rule(np.fft.rfftn, "a", kind="transform"),
    rule(np.fft.irfftn, "a", kind="transform"),
    rule(np.fft.fftshift, "x", kind="transform"),
    rule(np.fft.ifftshift, "x", kind="transform"),
    replaced(np.fft.fftfreq, np.fft.fftfreq),
    replaced(np.fft.rfftfreq, np.fft.rfftfreq),
    # convolutions and interpolation
    rule(np.convolve, "a v", returns_buffer=True),
    rule(np.correlate, "a v"),
    rule(np.interp, "x xp fp left right", returns_buffer=True),
    # polynomials by their coefficients, the highest power first
    rule(np.polyval, "p x"),
    composed(np.polyadd),
    composed(np.polysub),
    rule(np.polymul, "a1 a2", kind="sequential", shape_depends_on="values"),
    rule(np.polydiv, "u v", kind="sequential", shape_depends_on="values"),
    rule(np.polyder, "p", kind="sequential"),
    rule(np.polyint, "p k", kind="sequential"),
    replaced(np.polyfit, statistics.polyfit),
    rule(np.poly, "seq_of_zeros", kind="sequential"),
    rule(np.roots, "p", kind="sequential", shape_depends_on="values", real_on="unknown"),
)
