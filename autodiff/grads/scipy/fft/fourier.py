"""Rules of ``scipy.fft``'s Fourier and Hankel transforms.

A Fourier transform is linear and its matrix symmetric: its adjoint is the same transform of the adjoint, with no
conjugation, cut or padded to the lengths of the operand. Those between real numbers and half a spectrum differ in that each
frequency between zero and the highest stands for two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from ....rules import Rule, linear
from .lengths import Axes, along, fit, places

_OTHER = {"forward": "backward", "ortho": "ortho"}


def _other(norm: Any) -> str:
    """The `norm` with which an inverse transform has the factor that the transform has with this one."""
    return _OTHER.get(norm, "forward")


def _weights(n: int, axis: int, inner: float, dtype: Any) -> Any:
    """One for frequency zero and the highest of an even number, `inner` for those between."""
    weights = np.full(n // 2 + 1, inner, np.finfo(dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return along(weights, axis)


def _from_half(g: Any, n: int, axis: int, norm: Any) -> Any:
    """The transpose of ``rfft`` of length n."""
    halved = np.conjugate(g) * _weights(n, axis, 0.5, g.dtype)
    return scipy.fft.irfft(halved, n, axis, norm=_other(norm))


def _to_half(g: Any, axis: int, norm: Any) -> Any:
    """The transpose of ``irfft``."""
    return np.conjugate(scipy.fft.rfft(g, axis=axis, norm=_other(norm))) * _weights(g.shape[axis], axis, 2, g.dtype)


# Each gives the adjoint before it is cut or padded, from (g, axes, lengths, norm).


def _fft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    return scipy.fft.fftn(g, axes=axes, norm=norm)


def _ifft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    return scipy.fft.ifftn(g, axes=axes, norm=norm)


def _rfft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    g = scipy.fft.fftn(g, axes=axes[:-1], norm=norm) if axes[:-1] else g
    return _from_half(g, lengths[-1], axes[-1], norm)


def _irfft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    g = _to_half(g, axes[-1], norm)
    return scipy.fft.ifftn(g, axes=axes[:-1], norm=norm) if axes[:-1] else g


def _hfft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    """``hfftn(x)`` is ``irfftn(conj(x))`` with the other norm."""
    return np.conjugate(_irfft(g, axes, lengths, _other(norm)))


def _ihfft(g: Any, axes: Axes, lengths: list[int], norm: Any) -> Any:
    """``ihfftn(x)`` is ``conj(rfftn(x))`` with the other norm."""
    return _rfft(np.conjugate(g), axes, lengths, _other(norm))


_Transpose = Callable[[Any, Axes, list[int], Any], Any]


def _one(name: str, transpose: _Transpose) -> Rule:
    """The rule of a transform along one axis."""

    def formula(g: Any, out: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None, **_: Any) -> Any:
        axes, lengths = places(x, None if n is None else [n], [axis])
        return fit(transpose(g, axes, lengths, norm), x, axes)

    return linear(f"scipy_fft_{name}", formula)


def _several(name: str, transpose: _Transpose, default: Any = None) -> Rule:
    """The rule of a transform along several axes."""

    def formula(g: Any, out: Any, x: Any, s: Any = None, axes: Any = default, norm: Any = None, **_: Any) -> Any:
        found, lengths = places(x, s, axes)
        return fit(transpose(g, found, lengths, norm), x, found)

    return linear(f"scipy_fft_{name}", formula)


def _hankel(name: str) -> Rule:
    """The fast Hankel transform: entry (j, k) of its matrix depends on j + k, so that the matrix is symmetric.

    A. Hamilton, "Uncorrelated modes of the non-linear power spectrum" (2000), appendix B: the biases before and after the
    convolution differ by a factor that is the same for all elements, so they leave it symmetric.
    """
    return linear(f"scipy_fft_{name}", lambda g, out, a, *options, **named: getattr(scipy.fft, name)(g, *options, **named))


scipy_fft_fft_grad, scipy_fft_ifft_grad = _one("fft", _fft), _one("ifft", _ifft)
scipy_fft_rfft_grad, scipy_fft_irfft_grad = _one("rfft", _rfft), _one("irfft", _irfft)
scipy_fft_hfft_grad, scipy_fft_ihfft_grad = _one("hfft", _hfft), _one("ihfft", _ihfft)
scipy_fft_fftn_grad, scipy_fft_ifftn_grad = _several("fftn", _fft), _several("ifftn", _ifft)
scipy_fft_rfftn_grad, scipy_fft_irfftn_grad = _several("rfftn", _rfft), _several("irfftn", _irfft)
scipy_fft_hfftn_grad, scipy_fft_ihfftn_grad = _several("hfftn", _hfft), _several("ihfftn", _ihfft)
scipy_fft_fft2_grad, scipy_fft_ifft2_grad = _several("fft2", _fft, (-2, -1)), _several("ifft2", _ifft, (-2, -1))
scipy_fft_rfft2_grad, scipy_fft_irfft2_grad = _several("rfft2", _rfft, (-2, -1)), _several("irfft2", _irfft, (-2, -1))
scipy_fft_hfft2_grad, scipy_fft_ihfft2_grad = _several("hfft2", _hfft, (-2, -1)), _several("ihfft2", _ihfft, (-2, -1))
scipy_fft_fht_grad, scipy_fft_ifht_grad = _hankel("fht"), _hankel("ifht")
scipy_fft_fftshift_grad = linear("scipy_fft_fftshift", lambda g, out, x, axes=None: scipy.fft.ifftshift(g, axes=axes)).moving()
scipy_fft_ifftshift_grad = linear("scipy_fft_ifftshift", lambda g, out, x, axes=None: scipy.fft.fftshift(g, axes=axes)).moving()
