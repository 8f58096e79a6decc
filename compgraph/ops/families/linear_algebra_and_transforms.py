"""Products of arrays, decompositions of matrices, Fourier transforms, convolutions, interpolation, polynomials."""

from __future__ import annotations

import numpy as np

from ..callables import einsum, stacked_matmul
from ..compositions import statistics
from ..spec import OpSpec, composed, packed, piecewise, replaced, rule

OPERATIONS: tuple[OpSpec, ...] = (
    # products
    rule(np.matmul, warns="floats", operator="@"),
    rule(stacked_matmul, warns="floats"),
    composed(np.linalg.matmul),
    rule(np.dot, "a b", warns="floats", method="dot", returns_buffer=True),
    rule(np.inner, "a b", warns="floats"),
    rule(np.outer, "a b", warns="floats", returns_buffer=True),
    composed(np.linalg.outer),
    rule(np.vdot, "a b", warns="floats"),
    rule(np.vecdot),
    rule(np.linalg.vecdot, "x1 x2"),
    rule(np.matvec),
    rule(np.vecmat),
    rule(np.tensordot, "a b", warns="floats"),
    composed(np.linalg.tensordot),
    rule(np.kron, "a b", warns="floats", returns_buffer=True),
    rule(np.cross, "a b"),
    composed(np.linalg.cross),
    rule(einsum, warns="floats"),
    packed(np.linalg.multi_dot, opname="multi_dot"),
    rule(np.linalg.matrix_power, "a", kind="matrices"),
    # solving and inverting
    rule(np.linalg.solve, "a b"),
    rule(np.linalg.inv, "a", kind="matrices"),
    rule(np.linalg.pinv, "a", kind="matrices"),
    rule(np.linalg.lstsq, "a b", kind="sequential", shape_depends_on="values"),
    rule(np.linalg.tensorsolve, "a b", kind="sequential"),
    rule(np.linalg.tensorinv, "a", kind="sequential"),
    # decompositions
    rule(np.linalg.cholesky, "a", kind="matrices"),
    rule(np.linalg.qr, "a", kind="matrices"),
    rule(np.linalg.svd, "a", kind="matrices"),
    composed(np.linalg.svdvals),
    rule(np.linalg.eig, "a", kind="matrices", real_on="unknown"),
    rule(np.linalg.eigh, "a", kind="matrices"),
    rule(np.linalg.eigvals, "a", kind="matrices", real_on="unknown"),
    rule(np.linalg.eigvalsh, "a", kind="matrices"),
    # determinants, norms, ranks
    rule(np.linalg.det, "a", kind="matrices"),
    rule(np.linalg.slogdet, "a", kind="matrices"),
    rule(np.linalg.norm, "x", corner="length"),
    composed(np.linalg.vector_norm),
    composed(np.linalg.matrix_norm),
    rule(np.linalg.cond, "x", kind="matrices"),
    composed(np.linalg.trace),
    piecewise(np.linalg.matrix_rank, "A tol rtol", kind="matrices"),
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
