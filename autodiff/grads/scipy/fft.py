"""Rules of ``scipy.fft``.

The matrix of a Fourier transform is symmetric: the transposed transform is the transform itself, without conjugation, cut or
padded to the lengths of the operand. Between real arrays and half a spectrum, each frequency strictly between zero and the
highest represents two.

Sine and cosine transforms of the types I and IV are symmetric; those of the types II and III are transposes of each other,
except for factors at the ends, where an element represents one cosine and the others two (G. Strang, "The discrete cosine
transform", 1999). With ``orthogonalize=True`` there are no such factors, whatever the norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array, Axis

from ...rules import Rule, linear
from ..fourier_transforms import half_spectrum_weights, inverse_norm

# ------------------------------------------------------------------------------------------------------ axes and lengths

Axes = tuple[int, ...]


def _axes_and_lengths(x: NDArray[Any], s: Any, axes: Any) -> tuple[Axes, list[int]]:
    """Return the axes, counted from the end, and the lengths to which `x` is cut or padded along them."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - np.size(s), x.ndim)
    negative_axes = tuple([int(axis) % x.ndim - x.ndim for axis in np.ravel(axes).astype(int)])
    lengths = [-1] * len(negative_axes) if s is None else np.ravel(s).tolist()
    return negative_axes, [int(x.shape[axis] if n in (None, -1) else n) for axis, n in zip(negative_axes, lengths, strict=True)]


def _cut_or_pad(g: NDArray[Any], like: Array, axes: Axes) -> Any:
    """Cut or zero-pad to the lengths of `like` along some axes: the transpose of what transforms do to their operand."""
    padding = [(0, 0)] * g.ndim
    slices = [slice(None)] * g.ndim
    for axis in axes:
        padding[axis] = (0, max(like.shape[axis] - g.shape[axis], 0))
        slices[axis] = slice(like.shape[axis])
    if any(after for _, after in padding):
        g = np.pad(g, padding)
    return g[tuple(slices)]


# ----------------------------------------------------------------------------------------- Fourier and Hankel transforms


def _pull_half_spectrum(g: NDArray[Any], n: int, axis: int, norm: str | None) -> Any:
    """Compute the transpose of ``rfft`` of length n."""
    halved = np.conjugate(g) * half_spectrum_weights(g, n, axis, 0.5)
    return scipy.fft.irfft(halved, n, axis, norm=inverse_norm(norm))


def _pull_real(g: NDArray[Any], axis: int, norm: str | None) -> Any:
    """Compute the transpose of ``irfft``."""
    spectrum = np.conjugate(scipy.fft.rfft(g, axis=axis, norm=inverse_norm(norm)))
    return spectrum * half_spectrum_weights(g, g.shape[axis], axis, 2)


# Each of the following returns the cotangent before it is cut or padded.


def _fft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: dict[str, Any] | str | None) -> Any:
    return scipy.fft.fftn(g, axes=axes, norm=norm)


def _ifft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: str | None) -> Any:
    return scipy.fft.ifftn(g, axes=axes, norm=norm)


def _rfft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: str | None) -> Any:
    g = scipy.fft.fftn(g, axes=axes[:-1], norm=norm) if axes[:-1] else g
    return _pull_half_spectrum(g, lengths[-1], axes[-1], norm)


def _irfft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: str | None) -> Any:
    g = _pull_real(g, axes[-1], norm)
    return scipy.fft.ifftn(g, axes=axes[:-1], norm=norm) if axes[:-1] else g


def _hfft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: str | None) -> Any:
    """Compute the transpose of ``hfftn``, which is ``irfftn(conj(x))`` with the inverse norm."""
    return np.conjugate(_irfft(g, axes, lengths, inverse_norm(norm)))


def _ihfft(g: NDArray[Any], axes: Axes, lengths: list[int], norm: str | None) -> Any:
    """Compute the transpose of ``ihfftn``, which is ``conj(rfftn(x))`` with the inverse norm."""
    return _rfft(np.conjugate(g), axes, lengths, inverse_norm(norm))


_Transpose = Callable[[Any, Axes, list[int], Any], Any]


def _along_axis(name: str, transpose: _Transpose) -> Rule:
    """Declare the rule of a transform along one axis."""

    def formula(
        g: Array, out: NDArray[Any], x: NDArray[Any], n: int | None = None, axis: int = -1, norm: str | None = None, **_: object
    ) -> Any:
        axes, lengths = _axes_and_lengths(x, None if n is None else [n], [axis])
        return _cut_or_pad(transpose(g, axes, lengths, norm), x, axes)

    return linear(f"scipy_fft_{name}", formula)


def _along_axes(name: str, transpose: _Transpose, default: tuple[int, ...] | None = None) -> Rule:
    """Declare the rule of a transform along several axes."""

    def formula(
        g: object,
        out: object,
        x: NDArray[Any],
        s: Any = None,
        axes: Axis = default,
        norm: dict[str, Any] | str | None = None,
        **_: object,
    ) -> Any:
        negative_axes, lengths = _axes_and_lengths(x, s, axes)
        return _cut_or_pad(transpose(g, negative_axes, lengths, norm), x, negative_axes)

    return linear(f"scipy_fft_{name}", formula)


def _hankel(name: str) -> Rule:
    """Declare a fast Hankel transform: entry (j, k) of its matrix depends on j + k, so the matrix is symmetric.

    The biases before and after the convolution differ by a factor that is the same for all elements, so the matrix stays
    symmetric (A. Hamilton, "Uncorrelated modes of the non-linear power spectrum", 2000, appendix B).
    """
    return linear(f"scipy_fft_{name}", lambda g, out, a, *options, **keywords: getattr(scipy.fft, name)(g, *options, **keywords))


scipy_fft_fft_grad, scipy_fft_ifft_grad = _along_axis("fft", _fft), _along_axis("ifft", _ifft)
scipy_fft_rfft_grad, scipy_fft_irfft_grad = _along_axis("rfft", _rfft), _along_axis("irfft", _irfft)
scipy_fft_hfft_grad, scipy_fft_ihfft_grad = _along_axis("hfft", _hfft), _along_axis("ihfft", _ihfft)
scipy_fft_fftn_grad, scipy_fft_ifftn_grad = _along_axes("fftn", _fft), _along_axes("ifftn", _ifft)
scipy_fft_rfftn_grad, scipy_fft_irfftn_grad = _along_axes("rfftn", _rfft), _along_axes("irfftn", _irfft)
scipy_fft_hfftn_grad, scipy_fft_ihfftn_grad = _along_axes("hfftn", _hfft), _along_axes("ihfftn", _ihfft)
scipy_fft_fft2_grad, scipy_fft_ifft2_grad = _along_axes("fft2", _fft, (-2, -1)), _along_axes("ifft2", _ifft, (-2, -1))
scipy_fft_rfft2_grad, scipy_fft_irfft2_grad = _along_axes("rfft2", _rfft, (-2, -1)), _along_axes("irfft2", _irfft, (-2, -1))
scipy_fft_hfft2_grad, scipy_fft_ihfft2_grad = _along_axes("hfft2", _hfft, (-2, -1)), _along_axes("ihfft2", _ihfft, (-2, -1))
scipy_fft_fht_grad, scipy_fft_ifht_grad = _hankel("fht"), _hankel("ifht")
scipy_fft_fftshift_grad = linear(
    "scipy_fft_fftshift", lambda g, out, x, axes=None: scipy.fft.ifftshift(g, axes=axes)
).moves_elements()
scipy_fft_ifftshift_grad = linear(
    "scipy_fft_ifftshift", lambda g, out, x, axes=None: scipy.fft.fftshift(g, axes=axes)
).moves_elements()


# -------------------------------------------------------------------------------------------- sine and cosine transforms

_TRANSPOSED = {2: 3, 3: 2}
# By kind and type: factors of the first and the last element of the cotangent, before and after the transposed transform.
_ENDS = {
    ("c", 1): ((1.0, 1.0), (1.0, 1.0)),
    ("c", 2): ((2.0, 1.0), (1.0, 1.0)),
    ("c", 3): ((1.0, 1.0), (0.5, 1.0)),
    ("s", 2): ((1.0, 2.0), (1.0, 1.0)),
    ("s", 3): ((1.0, 1.0), (1.0, 0.5)),
}


def _scale_ends(g: NDArray[Any], axes: tuple[int, ...], ends: tuple[float, float], inner: float = 1.0) -> Any:
    """Multiply by factors at both ends of axes, and by `inner` between them; a single element gets the factors of both ends."""
    for axis in axes:
        weights = np.full(g.shape[axis], inner, np.finfo(g.dtype).dtype)
        if len(weights) > 1:
            weights[0], weights[-1] = ends
        elif len(weights):
            weights[0] = ends[0] * ends[1]
        g = g * np.reshape(weights, (-1, *[1] * (-1 - axis)))
    return g


def _transform_transposed(
    name: str, g: NDArray[Any], axes: tuple[int, ...], kind: int, norm: str | None, orthogonalize: bool | None, workers: object
) -> Any:
    """Compute the transposed transform along axes."""
    function = getattr(scipy.fft, f"{name}n")
    options = {"axes": axes, "norm": norm, "orthogonalize": orthogonalize, "workers": workers}
    if norm == "ortho" if orthogonalize is None else orthogonalize:
        return function(g, _TRANSPOSED.get(kind, kind), **options)
    # An inverse of type II is a transform of type III.
    forward_kind = _TRANSPOSED.get(kind, kind) if name.startswith("i") else kind
    before, after = _ENDS.get((name[-2], forward_kind), ((1.0, 1.0), (1.0, 1.0)))
    inner_before, inner_after = (0.5, 2.0) if (name[-2], forward_kind) == ("c", 1) else (1.0, 1.0)
    transform = function(_scale_ends(g, axes, before, inner_before), _TRANSPOSED.get(kind, kind), **options)
    return _scale_ends(transform, axes, after, inner_after)


def _real_along_axis(name: str) -> Rule:
    """Declare the rule of a transform along one axis."""

    def formula(
        g: NDArray[Any],
        out: NDArray[Any],
        x: NDArray[Any],
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        workers: object = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        axes, _ = _axes_and_lengths(x, None if n is None else [n], [axis])
        return _cut_or_pad(_transform_transposed(name, g, axes, type, norm, orthogonalize, workers), x, axes)

    return linear(f"scipy_fft_{name}", formula)


def _real_along_axes(name: str) -> Rule:
    """Declare the rule of a transform along several axes."""

    def formula(
        g: Any, out: object, x: NDArray[Any], type: int = 2, s: Any = None, axes: Any = None, norm: Any = None,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        negative_axes, _ = _axes_and_lengths(x, s, axes)
        return _cut_or_pad(
            _transform_transposed(name[:-1], g, negative_axes, type, norm, orthogonalize, workers), x, negative_axes
        )

    return linear(f"scipy_fft_{name}", formula)


scipy_fft_dct_grad, scipy_fft_idct_grad = _real_along_axis("dct"), _real_along_axis("idct")
scipy_fft_dst_grad, scipy_fft_idst_grad = _real_along_axis("dst"), _real_along_axis("idst")
scipy_fft_dctn_grad, scipy_fft_idctn_grad = _real_along_axes("dctn"), _real_along_axes("idctn")
scipy_fft_dstn_grad, scipy_fft_idstn_grad = _real_along_axes("dstn"), _real_along_axes("idstn")
