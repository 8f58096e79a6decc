"""Rules of ``scipy.fft``.

Sine and cosine transforms of the types I and IV are symmetric; those of the types II and III are transposes of each other. This
holds up to factors at the ends: an element represents one cosine there, and two elsewhere (G. Strang, "The discrete cosine
transform", 1999). ``orthogonalize=True`` removes these factors for every norm.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...rules import Rule, linear
from .. import fourier_transforms
from ..fourier_transforms import (
    Ints,
    cut_or_pad,
    pull_fftn,
    pull_hfftn,
    pull_ifftn,
    pull_ihfftn,
    pull_irfftn,
    pull_rfftn,
    transformed_axes,
)

# ----------------------------------------------------------------------------------------- Fourier and Hankel transforms


def _along_axis(name: str, pull: fourier_transforms.Transpose) -> Rule:
    return fourier_transforms.along_axis(f"scipy_fft_{name}", scipy.fft, pull)


def _along_axes(name: str, pull: fourier_transforms.Transpose, default: tuple[int, ...] | None = None) -> Rule:
    return fourier_transforms.along_axes(f"scipy_fft_{name}", scipy.fft, pull, default)


def _hankel(name: str) -> Rule:
    """Declare a fast Hankel transform: entry (j, k) of its matrix depends on j + k, so the matrix is symmetric.

    The biases before and after the convolution differ by a factor that is the same for all elements, so the matrix stays
    symmetric (A. Hamilton, "Uncorrelated modes of the non-linear power spectrum", 2000, appendix B).
    """
    return linear(f"scipy_fft_{name}", lambda g, out, a, *options, **keywords: getattr(scipy.fft, name)(g, *options, **keywords))


scipy_fft_fft_grad, scipy_fft_ifft_grad = _along_axis("fft", pull_fftn), _along_axis("ifft", pull_ifftn)
scipy_fft_rfft_grad, scipy_fft_irfft_grad = _along_axis("rfft", pull_rfftn), _along_axis("irfft", pull_irfftn)
scipy_fft_hfft_grad, scipy_fft_ihfft_grad = _along_axis("hfft", pull_hfftn), _along_axis("ihfft", pull_ihfftn)
scipy_fft_fftn_grad, scipy_fft_ifftn_grad = _along_axes("fftn", pull_fftn), _along_axes("ifftn", pull_ifftn)
scipy_fft_rfftn_grad, scipy_fft_irfftn_grad = _along_axes("rfftn", pull_rfftn), _along_axes("irfftn", pull_irfftn)
scipy_fft_hfftn_grad, scipy_fft_ihfftn_grad = _along_axes("hfftn", pull_hfftn), _along_axes("ihfftn", pull_ihfftn)
scipy_fft_fft2_grad, scipy_fft_ifft2_grad = _along_axes("fft2", pull_fftn, (-2, -1)), _along_axes("ifft2", pull_ifftn, (-2, -1))
scipy_fft_rfft2_grad, scipy_fft_irfft2_grad = (
    _along_axes("rfft2", pull_rfftn, (-2, -1)),
    _along_axes("irfft2", pull_irfftn, (-2, -1)),
)
scipy_fft_hfft2_grad, scipy_fft_ihfft2_grad = (
    _along_axes("hfft2", pull_hfftn, (-2, -1)),
    _along_axes("ihfft2", pull_ihfftn, (-2, -1)),
)
scipy_fft_fht_grad, scipy_fft_ifht_grad = _hankel("fht"), _hankel("ifht")
scipy_fft_fftshift_grad = linear(
    "scipy_fft_fftshift", lambda g, out, x, axes=None: scipy.fft.ifftshift(g, axes=axes)
).moves_elements()
scipy_fft_ifftshift_grad = linear(
    "scipy_fft_ifftshift", lambda g, out, x, axes=None: scipy.fft.fftshift(g, axes=axes)
).moves_elements()


# -------------------------------------------------------------------------------------------- sine and cosine transforms

_TRANSPOSED = {2: 3, 3: 2}
_ONES = (1.0, 1.0, 1.0)
# By letter (cosine or sine) and type: the factors of the first, the inner and the last elements of the cotangent, before and
# after the transposed transform.
_FACTORS = {
    ("c", 1): ((1.0, 0.5, 1.0), (1.0, 2.0, 1.0)),
    ("c", 2): ((2.0, 1.0, 1.0), _ONES),
    ("c", 3): (_ONES, (0.5, 1.0, 1.0)),
    ("s", 2): ((1.0, 1.0, 2.0), _ONES),
    ("s", 3): (_ONES, (1.0, 1.0, 0.5)),
}


def _scale_elements(g: NDArray[Any], axes: list[int], factors: tuple[float, float, float]) -> Any:
    """Multiply the first, the inner and the last elements along axes by factors; a single element is both first and last."""
    first, inner, last = factors
    for axis in axes:
        weights = np.full(g.shape[axis], inner, np.finfo(g.dtype).dtype)
        if len(weights) > 1:
            weights[0], weights[-1] = first, last
        elif len(weights):
            weights[0] = first * last
        g = g * np.reshape(weights, (-1, *[1] * (-1 - axis)))
    return g


def _pull_real(
    name: str, g: NDArray[Any], x: NDArray[Any], s: Ints, axes: Ints, kind: int, norm: str | None, workers: object,
    orthogonalize: bool | None,
) -> Any:  # fmt: skip
    """Compute the transpose of a sine or cosine transform; `kind` is its type, and `name` is dct, idct, dst or idst."""
    negative_axes = transformed_axes(x, s, axes)
    function = partial(
        getattr(scipy.fft, f"{name}n"), axes=negative_axes, norm=norm, orthogonalize=orthogonalize, workers=workers
    )
    if norm == "ortho" if orthogonalize is None else orthogonalize:
        g = function(g, _TRANSPOSED.get(kind, kind))
    else:
        # An inverse of type II is a transform of type III.
        forward_kind = _TRANSPOSED.get(kind, kind) if name.startswith("i") else kind
        before, after = _FACTORS.get((name[-2], forward_kind), (_ONES, _ONES))
        g = function(_scale_elements(g, negative_axes, before), _TRANSPOSED.get(kind, kind))
        g = _scale_elements(g, negative_axes, after)
    for axis in negative_axes:
        g = cut_or_pad(g, x.shape[axis], axis)
    return g


def _real_along_axis(name: str) -> Rule:
    """Declare the rule of a transform along one axis."""
    return linear(
        f"scipy_fft_{name}",
        lambda g, out, x, type=2, n=None, axis=-1, norm=None, workers=None, orthogonalize=None: _pull_real(
            name, g, x, None if n is None else [n], [axis], type, norm, workers, orthogonalize
        ),
    )


def _real_along_axes(name: str) -> Rule:
    """Declare the rule of a transform along several axes."""
    return linear(
        f"scipy_fft_{name}n",
        lambda g, out, x, type=2, s=None, axes=None, norm=None, workers=None, orthogonalize=None: _pull_real(
            name, g, x, s, axes, type, norm, workers, orthogonalize
        ),
    )


scipy_fft_dct_grad, scipy_fft_idct_grad = _real_along_axis("dct"), _real_along_axis("idct")
scipy_fft_dst_grad, scipy_fft_idst_grad = _real_along_axis("dst"), _real_along_axis("idst")
scipy_fft_dctn_grad, scipy_fft_idctn_grad = _real_along_axes("dct"), _real_along_axes("idct")
scipy_fft_dstn_grad, scipy_fft_idstn_grad = _real_along_axes("dst"), _real_along_axes("idst")
