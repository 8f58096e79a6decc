"""Rules of Fourier transforms, polynomials and grids.

A Fourier transform is linear and its matrix symmetric: its adjoint is the same transform of the adjoint, with no
conjugation, cut or padded to the length of the operand. The transforms between real numbers and half a spectrum
differ in that each frequency between zero and the highest stands for two.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compgraph.guards import decided

from ..rules import Formula, general, linear, unbroadcast

# ------------------------------------------------------------------------------------- Fourier transforms


def _swapped(norm: Any) -> Any:
    """The `norm` with which an inverse transform has the factor that the transform has with this one."""
    return {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")


def _fit(g: Any, length: int, axis: int) -> Any:
    """Cut, or pad with zeros, to a length along an axis, as transforms do: it is its own transpose."""
    axis %= g.ndim
    have = g.shape[axis]
    if have >= length:
        return g[(slice(None),) * axis + (slice(length),)]
    zeros = np.zeros((*g.shape[:axis], length - have, *g.shape[axis + 1 :]), g.dtype)
    return np.concatenate([g, zeros], axis=axis)


def _weights(g: Any, n: int, axis: int, inner: float) -> Any:
    """One for frequency zero and the highest of an even number, `inner` for those between, along an axis of `g`."""
    weights = np.full(n // 2 + 1, inner, np.finfo(g.dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim)))


def _fft(g: Any, length: int, axis: int, norm: Any) -> Any:
    return _fit(np.fft.fft(g, axis=axis, norm=norm), length, axis)


def _ifft(g: Any, length: int, axis: int, norm: Any) -> Any:
    return _fit(np.fft.ifft(g, axis=axis, norm=norm), length, axis)


def _rfft(g: Any, length: int, n: int, axis: int, norm: Any) -> Any:
    halved = np.conjugate(g) * _weights(g, n, axis, 0.5)
    return _fit(np.fft.irfft(halved, n, axis=axis, norm=_swapped(norm)), length, axis)


def _irfft(g: Any, length: int, axis: int, norm: Any) -> Any:
    doubled = _weights(g, g.shape[axis], axis, 2)
    return _fit(np.conjugate(np.fft.rfft(g, axis=axis, norm=_swapped(norm))) * doubled, length, axis)


def _length(x: Any, n: Any, axis: int) -> int:
    return int(x.shape[axis] if n is None else n)


def _transform(function: Any) -> Formula:
    """The push of a transform: an axis that is counted from the end is the same behind an axis of directions."""

    def push(tangents: Any, out: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return function(tangents[0], n=n, axis=axis % x.ndim - x.ndim, norm=norm)

    return push


def _transform_n(function: Any, default: Any = None) -> Formula:
    """As `_transform`, along several axes: the last ones, if they are not given."""

    def push(tangents: Any, out: Any, x: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Any:
        if axes is None:
            axes = range(-(x.ndim if s is None else len(s)), 0)
        return function(tangents[0], s=s, axes=[i % x.ndim - x.ndim for i in axes], norm=norm)

    return push


def _shift(function: Any) -> Formula:
    """As `_transform`, for halves that change places along all axes that are given, or all."""

    def push(tangents: Any, out: Any, x: Any, axes: Any = None) -> Any:
        axes = range(x.ndim) if axes is None else [axes] if isinstance(axes, (int, np.integer)) else axes
        return function(tangents[0], [i % x.ndim - x.ndim for i in axes])

    return push


fft_fft_grad = linear("fft_fft", lambda g, out, x, n=None, axis=-1, norm=None: _fft(g, x.shape[axis], axis, norm)).batched(
    push=_transform(np.fft.fft)
)
fft_ifft_grad = linear("fft_ifft", lambda g, out, x, n=None, axis=-1, norm=None: _ifft(g, x.shape[axis], axis, norm)).batched(
    push=_transform(np.fft.ifft)
)
fft_rfft_grad = linear(
    "fft_rfft", lambda g, out, x, n=None, axis=-1, norm=None: _rfft(g, x.shape[axis], _length(x, n, axis), axis, norm)
).batched(push=_transform(np.fft.rfft))
fft_irfft_grad = linear("fft_irfft", lambda g, out, x, n=None, axis=-1, norm=None: _irfft(g, x.shape[axis], axis, norm)).batched(
    push=_transform(np.fft.irfft)
)
# hfft(x) is irfft(conj(x)) with the other norm, and ihfft(x) is conj(rfft(x)).
fft_hfft_grad = linear(
    "fft_hfft",
    lambda g, out, x, n=None, axis=-1, norm=None: np.conjugate(_irfft(g, x.shape[axis], axis, _swapped(norm))),
).batched(push=_transform(np.fft.hfft))
fft_ihfft_grad = linear(
    "fft_ihfft",
    lambda g, out, x, n=None, axis=-1, norm=None: _rfft(
        np.conjugate(g), x.shape[axis], _length(x, n, axis), axis, _swapped(norm)
    ),
).batched(push=_transform(np.fft.ihfft))
fft_fftshift_grad = (
    linear("fft_fftshift", lambda g, out, x, axes=None: np.fft.ifftshift(g, axes)).moving().batched(push=_shift(np.fft.fftshift))
)
fft_ifftshift_grad = (
    linear("fft_ifftshift", lambda g, out, x, axes=None: np.fft.fftshift(g, axes)).moving().batched(push=_shift(np.fft.ifftshift))
)


def _steps(x: Any, s: Any, axes: Any, real: bool = False, inverse_real: bool = False) -> list[tuple[int, int, int]]:
    """The axis, the length before and the length after each of the transforms that make up one of several axes."""
    if axes is None:
        axes = range(x.ndim if s is None else len(s))
        axes = [i - len(axes) for i in axes]
    after = (
        [x.shape[axis] for axis in axes] if s is None else [x.shape[a] if n == -1 else n for n, a in zip(s, axes, strict=True)]
    )
    if inverse_real and s is None:
        after[-1] = 2 * (after[-1] - 1)
    shape = list(x.shape)
    steps = []
    for axis, n in list(zip(axes, after, strict=True))[:: 1 if inverse_real else -1]:
        steps.append((axis, int(shape[axis]), int(n)))
        shape[axis] = n // 2 + 1 if real and len(steps) == 1 else n
    return steps


def _fftn(g: Any, out: Any, x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    for axis, length, _ in reversed(_steps(x, s, axes)):
        g = _fft(g, length, axis, norm)
    return g


def _ifftn(g: Any, out: Any, x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    for axis, length, _ in reversed(_steps(x, s, axes)):
        g = _ifft(g, length, axis, norm)
    return g


def _rfftn(g: Any, out: Any, x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    (last, real_length, n), *others = _steps(x, s, axes, real=True)
    for axis, length, _ in reversed(others):
        g = _fft(g, length, axis, norm)
    return _rfft(g, real_length, n, last, norm)


def _irfftn(g: Any, out: Any, x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    *others, (last, half_length, _) = _steps(x, s, axes, inverse_real=True)
    g = _irfft(g, half_length, last, norm)
    for axis, length, _ in reversed(others):
        g = _ifft(g, length, axis, norm)
    return g


fft_fft2_grad = linear("fft_fft2", lambda g, out, x, s=None, axes=(-2, -1), norm=None: _fftn(g, out, x, s, axes, norm)).batched(
    push=_transform_n(np.fft.fft2, (-2, -1))
)
fft_ifft2_grad = linear(
    "fft_ifft2", lambda g, out, x, s=None, axes=(-2, -1), norm=None: _ifftn(g, out, x, s, axes, norm)
).batched(push=_transform_n(np.fft.ifft2, (-2, -1)))
fft_fftn_grad = linear("fft_fftn", _fftn).batched(push=_transform_n(np.fft.fftn))
fft_ifftn_grad = linear("fft_ifftn", _ifftn).batched(push=_transform_n(np.fft.ifftn))
fft_rfftn_grad = linear("fft_rfftn", _rfftn).batched(push=_transform_n(np.fft.rfftn))
fft_irfftn_grad = linear("fft_irfftn", _irfftn).batched(push=_transform_n(np.fft.irfftn))

# ------------------------------------------------------------------------------------------- polynomials


def _polyval_x(g: Any, out: Any, p: Any, x: Any) -> Any:
    degrees = np.reshape(np.arange(len(p) - 1, 0, -1), (-1, *[1] * (np.ndim(p) - 1)))
    return g * np.polyval(p[:-1] * degrees, x)


def _polyval_p(g: Any, out: Any, p: Any, x: Any) -> Any:
    """The powers of x, for each coefficient; a coefficient may be an array, which broadcasts against x."""
    degrees = np.reshape(np.arange(len(p) - 1, -1, -1), (-1, *[1] * out.ndim))
    terms = g * np.asanyarray(x) ** degrees
    return np.reshape(unbroadcast(terms, (len(p), *[1] * (out.ndim + 1 - p.ndim), *p.shape[1:])), p.shape)


def _convolve(a: Any, b: Any) -> Any:
    """The coefficients of a product: the outer product with each row moved one place further, summed."""
    n, m = len(a), len(b)
    padded = np.concatenate([np.outer(a, b), np.zeros((n, n), b.dtype)], axis=1)
    return np.sum(np.reshape(np.ravel(padded)[: n * (n + m - 1)], (n, n + m - 1)), axis=0)


def _correlate(a: Any, b: Any) -> Any:
    """``sum of a[k + j] b[j]`` for each k: the transpose of a convolution with b."""
    return _convolve(a, b[::-1])[len(b) - 1 : len(a)]


def _padded(p: Any, length: int) -> Any:
    """Coefficients with leading zeros."""
    return np.concatenate([np.zeros(length - len(p), p.dtype), p])


def _without_zeros(p: Any) -> tuple[int, Any]:
    """How many leading zeros a polynomial has, and its other coefficients; of zero, the last is one of them."""
    p = np.ravel(p)
    lead = decided("how many leading zeros a polynomial has", _leading_zeros, p)
    return lead, p[lead:]


def _leading_zeros(p: Any) -> int:
    found = np.flatnonzero(p)
    return int(found[0]) if found.size else len(p) - 1


def _polymul_a(g: Any, out: Any, a: Any, b: Any) -> Any:
    return np.reshape(_padded(_correlate(g, _without_zeros(b)[1]), a.size), a.shape)


def _polymul_tangent(t: Any, out: Any, a: Any, b: Any) -> Any:
    return _convolve(np.ravel(t)[_without_zeros(a)[0] :], _without_zeros(b)[1])


polyval_grad = general("polyval", _polyval_p, _polyval_x).tangent(lambda t, out, p, x: np.polyval(t, x), _polyval_x)
polymul_grad = general("polymul", _polymul_a, lambda g, out, a, b: _polymul_a(g, out, b, a)).tangent(
    _polymul_tangent, lambda t, out, a, b: _polymul_tangent(t, out, b, a)
)


# polydiv(u, v) is (q, r) with u = conv(q, v) + r, where r has lost leading zeros.


def _polydiv_u(g: Any, out: Any, u: Any, v: Any) -> Any:
    """The division is by a triangular matrix, whose transpose it is if the order of all coefficients is turned."""
    u, v = np.ravel(u), np.ravel(v)
    quotient, rest = g
    back = np.zeros_like(u) if rest is None else _padded(rest, len(u))
    if len(u) < len(v):
        return back
    total = -_correlate(back, v)
    if quotient is not None:
        total = total + quotient
    filled = np.concatenate([total[::-1], np.zeros(len(v) - 1, total.dtype)])
    return back + np.concatenate([np.polydiv(filled, v)[0][::-1], np.zeros(len(v) - 1, total.dtype)])


def _polydiv_v(g: Any, out: Any, u: Any, v: Any) -> Any:
    if np.size(u) < np.size(v):
        return np.zeros_like(v)
    return np.reshape(-_correlate(_polydiv_u(g, out, u, v), out[0]), v.shape)


def _polydiv_tangent(t: Any, out: Any, u: Any, v: Any) -> Any:
    t, v = np.ravel(t), np.ravel(v)
    if len(t) < len(v):
        return np.zeros_like(out[0]), t[len(t) - len(out[1]) :]
    quotient = np.polydiv(t, v)[0]
    return quotient, (t - _convolve(quotient, v))[len(t) - len(out[1]) :]


def _polydiv_v_tangent(t: Any, out: Any, u: Any, v: Any) -> Any:
    if np.size(u) < np.size(v):
        return np.zeros_like(out[0]), np.zeros_like(out[1])
    return _polydiv_tangent(-_convolve(out[0], np.ravel(t)), out, u, v)


polydiv_grad = general("polydiv", lambda g, out, u, v: np.reshape(_polydiv_u(g, out, u, v), u.shape), _polydiv_v).tangent(
    _polydiv_tangent, _polydiv_v_tangent
)


def _polyder(g: Any, out: Any, p: Any, m: int = 1) -> Any:
    lowered = g * np.polyder(np.ones(len(p)), m)
    return np.concatenate([lowered, np.zeros(len(p) - len(lowered), g.dtype)])


def _polyint(g: Any, out: Any, p: Any, m: int = 1, k: Any = None) -> Any:
    return g[: len(p)] * np.polyint(np.ones(len(p)), m)[: len(p)]


def _polyint_constants(sign: int, g: Any, out: Any, p: Any, m: int = 1, k: Any = None) -> Any:
    """A constant is integrated as often as is left: ``k[i] x**(m - 1 - i) / (m - 1 - i)!``; one stands for all."""
    k = np.ravel(k)
    weights = 1 / np.cumprod(np.maximum(np.arange(m), 1.0))[::-1]
    if sign > 0:
        used: Any = np.ravel(g)[:m] * weights
        return np.concatenate([np.zeros(len(out) - m, out.dtype), used])
    back = g[len(out) - m :] * weights
    if len(k) == 1:
        return np.sum(back)
    return np.concatenate([back, np.zeros(len(k) - m, out.dtype)])


def _monic(roots: Any) -> Any:
    """``numpy.poly``, but complex wherever the roots are: NumPy's is real for pairs of conjugates, and then loses a part."""
    factors = [np.concatenate([np.ones(1, roots.dtype), -roots[i : i + 1]]) for i in range(len(roots))]
    return functools.reduce(_convolve, factors, np.ones(1, roots.dtype))


def _characteristic(out: Any, a: Any) -> list[Any]:
    """The derivatives of the coefficients of a characteristic polynomial, ``-(a**k + c[1] a**(k-1) + ... + c[k]).T``.

    These are the coefficients of the adjugate of ``x - a`` (Faddeev and LeVerrier), so eigenvalues may be equal.
    """
    one = np.eye(a.shape[0])
    adjugate = [one]
    for k in range(1, a.shape[0]):
        adjugate.append(np.matmul(a, adjugate[-1]) + out[k] * one)
    return [-np.transpose(b) for b in adjugate]


def _poly(g: Any, out: Any, roots: Any) -> Any:
    """Less each root, the polynomial of the others."""
    if roots.ndim == 2:
        return sum(g[k + 1] * slope for k, slope in enumerate(_characteristic(out, roots)))
    z = np.ravel(roots)
    if z.size < 2:
        return -g[1:] if z.size else np.zeros_like(z)
    others = [np.concatenate([z[:i], z[i + 1 :]]) for i in range(z.size)]
    return np.stack([-np.sum(g[1:] * _monic(kept)) for kept in others])


def _poly_tangent(t: Any, out: Any, roots: Any) -> Any:
    if roots.ndim == 2:
        moved = [np.sum(slope * t) for slope in _characteristic(out, roots)]
        return np.stack([np.zeros_like(moved[0]), *moved])
    z, t = np.ravel(roots), np.ravel(t)
    if z.size < 2:
        return np.concatenate([np.zeros(1), -t]) if z.size else _poly(t, out, roots) + 0.0
    others = [np.concatenate([z[:i], z[i + 1 :]]) for i in range(z.size)]
    slopes = np.stack([np.concatenate([np.zeros(1), -_monic(kept)]) for kept in others])
    return np.sum(t[:, None] * slopes, axis=0)


def _roots(g: Any, out: Any, p: Any) -> Any:
    """A root moves by what the change of the polynomial is there, over its slope."""
    powers = out[:, None] ** np.arange(len(p) - 1, -1, -1)
    return np.sum((-g / np.polyval(np.polyder(p), out))[:, None] * powers, axis=0)


polyder_grad = linear("polyder", _polyder)
polyint_grad = general("polyint", _polyint, functools.partial(_polyint_constants, -1)).tangent(
    lambda t, out, p, m=1, k=None: np.polyint(t, m), functools.partial(_polyint_constants, 1)
)
poly_grad = general("poly", _poly).tangent(_poly_tangent)
roots_grad = general("roots", _roots).tangent(lambda t, out, p: -np.polyval(t, out) / np.polyval(np.polyder(p), out))


# ------------------------------------------------------------------------------------------------- grids


def _along(g: Any, weights: Any, axis: int) -> Any:
    """The sum of the adjoint along an axis, with weights."""
    return np.sum(g * np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim))), axis=axis)


def _shares(num: Any, endpoint: Any) -> tuple[Any, int]:
    """How far along each point is, from 0 to 1, and the number of steps."""
    steps = int(num) - 1 if endpoint else int(num)
    return np.arange(num) / max(steps, 1), steps


def _linspace(sign: int, g: Any, out: Any, num: Any, endpoint: Any, retstep: Any, axis: Any) -> Any:
    """What start (-1) or stop (1) adds to the grid, and to the step."""
    shares, steps = _shares(num, endpoint)
    points, step = g if retstep else (g, None)
    grid = out[0] if retstep else out
    total = np.zeros(())
    if points is not None and grid.dtype.kind in "fc":
        total = total + _along(points, shares if sign > 0 else 1 - shares, axis)
    return total if step is None else total + step * (sign / steps)


linspace_grad = linear(
    "linspace",
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        -1, g, out, num, endpoint, retstep, axis
    ),
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        1, g, out, num, endpoint, retstep, axis
    ),
)


def _geomspace(which: int) -> tuple[Any, Any]:
    """Formula and tangent for start (0) or stop (1): each point is ``start**(1 - share) * stop**share``."""

    def formula(g: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        return _along(g * out, shares if which else 1 - shares, axis) / ends[which]

    def tangent(t: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        place = axis % out.ndim
        relative = np.broadcast_to(t / ends[which], out.shape[:place] + out.shape[place + 1 :])
        weights = np.reshape(shares if which else 1 - shares, (-1, *[1] * (out.ndim - 1 - place)))
        return np.expand_dims(relative, axis) * weights * out

    return formula, tangent


_start, _stop = _geomspace(0), _geomspace(1)
geomspace_grad = general("geomspace", _start[0], _stop[0]).tangent(_start[1], _stop[1])
