"""Data: how an operation on one example becomes one on many, whose axis comes first.

=============  ============================================================================================
elementwise    axes of length one are put after the first, so that examples broadcast as they did alone
reduction      the axes are those of an example, each one further on; without any all but the first
position       a reduction to one place, of the flattened example if no axis is given
cumulative     along one axis, of the flattened example if none is given
ordering       along one axis, the last by default; of the flattened example if it is None
along          along one axis, the last by default
matrices       the last axes are those of matrices, the others of stacks of them
transform      Fourier transforms and shifts along several axes
own            a way of its own, written under its opname
loop           example by example, and stacked
=============  ============================================================================================

Ufuncs without a signature are elementwise, others have a way of their own. What stands nowhere is elementwise if its rule is, and
runs in a loop otherwise: SciPy's functions that are no ufuncs, and users' primitives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.operations import added_at, astype, complex_sign, copy, input_of, power, stop_gradient, view
from compgraph.operations.compositions import histograms, moving, selection

_BY_KIND: dict[str, tuple[Any, ...]] = {
    "elementwise": (
        np.where, np.clip, np.round, np.fix, np.isclose, np.isposinf, np.isneginf, np.iscomplex, np.isreal, np.real, np.imag,
        np.sinc, np.i0, np.angle, np.copy, np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10, np.emath.arccos,
        np.emath.arcsin, np.emath.arctanh, moving.nan_to_num, power, complex_sign, astype, copy, input_of, stop_gradient,
    ),
    "reduction": (
        np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.any, np.all, np.nansum, np.nanprod, np.nanmax, np.nanmin,
        np.nanmean, np.nanvar, np.nanstd, np.ptp, np.count_nonzero,
    ),
    "position": (np.argmax, np.argmin, np.nanargmax, np.nanargmin),
    "cumulative": (np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.cumulative_sum, np.cumulative_prod),
    "ordering": (np.sort, np.argsort, np.partition, np.argpartition),
    "along": (np.unwrap, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft),
    "matrices": (
        np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.eig,
        np.linalg.eigvals, np.linalg.svd, np.linalg.qr, np.linalg.pinv, np.linalg.matrix_power, np.linalg.matrix_rank,
        np.linalg.cond,
    ),
    "transform": (
        np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn, np.fft.fftshift, np.fft.ifftshift,
    ),
    "loop": (
        np.emath.logn, np.emath.power, view, added_at, np.ediff1d, np.bincount, np.histogram, histograms.histogramdd,
        np.histogram_bin_edges, selection.delete, selection.insert, selection.unique, np.linalg.tensorinv,
        np.linalg.tensorsolve, np.linalg.lstsq, np.polymul, np.polydiv, np.polyder, np.polyint, np.poly, np.roots,
        np.nonzero, np.flatnonzero, np.lexsort, np.argwhere, np.unravel_index, np.packbits, np.unpackbits,
    ),
}  # fmt: skip
BATCH_KINDS: dict[Any, str] = {function: kind for kind, functions in _BY_KIND.items() for function in functions}
