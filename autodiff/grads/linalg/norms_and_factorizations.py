"""Rules of decompositions into triangles, and of what is found by a decomposition: norms, least squares.

The formulas of the first are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), extended to complex matrices. Where NumPy reads one triangle of a Hermitian matrix,
the adjoint lies in that triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.graph import to_values
from compgraph.ops import NO_VALUE
from compgraph.values import Value

from ...rules import general, reduction
from ..corners import of_lengths, safe_quotient, with_corners
from ..reductions import _shares
from .matrix_inverses import _adjoint, _diagonal, _folded, _half, _inverse, _mirrored, _of_matrices, _product, _swap
from .repeated_eigenvalues import zero_values
from .spectral_decompositions import _svd, _svd_tangent

# ---------------------------------------------------------------------------------------- triangles


def _cholesky(g: Any, out: Any, a: Any, upper: bool = False) -> Any:
    lower, g = (_adjoint(out), _adjoint(g)) if upper else (out, g)
    inverse = np.linalg.inv(lower)
    middle = _half(a.shape[-1]) * np.matmul(_swap(lower), g)
    return _folded(_product(_swap(inverse), middle, np.conjugate(inverse)), upper)


def _cholesky_tangent(t: Any, out: Any, a: Any, upper: bool = False) -> Any:
    lower = _adjoint(out) if upper else out
    inverse = np.linalg.inv(lower)
    moved = np.matmul(lower, _half(a.shape[-1]) * _product(inverse, _mirrored(t, upper), _adjoint(inverse)))
    return _adjoint(moved) if upper else moved


linalg_cholesky_grad = general("linalg_cholesky", _cholesky).tangent(_cholesky_tangent)

# a = q r; of a wide matrix, the square part in front settles q.


def _qr_parts(out: Any, a: Any, mode: str) -> tuple[Any, Any, int]:
    """q, r and the number of columns of q."""
    tall = a.shape[-2] > a.shape[-1]
    if mode not in ("reduced", "complete", "r") or (mode == "complete" and tall):
        what = f"mode={mode!r}" + (" of a tall matrix" if mode == "complete" else "")
        raise TypeError(f"np.linalg.qr: the derivative with {what} is not known; use mode='reduced'")
    q, r = np.linalg.qr(a) if mode == "r" else out
    return q, r, q.shape[-1]


def _settling(a: Any, r: Any, k: int) -> tuple[int, Any]:
    """How many columns settle q, and the inverse of the part of r that belongs to them.

    The last column of a square q is what the others leave, whatever the last of `a` is; of complex numbers, its phase is not.
    If the columns depend on each other there is no derivative: the inverse is infinite, with NumPy's own error.
    """
    count = k - 1 if a.shape[-2] == k and a.dtype.kind != "c" else k
    plain = np.asarray(to_values(r))[..., :k]
    rounding = np.finfo(r.dtype).eps * max(a.shape[-2:]) * np.linalg.norm(plain, axis=(-2, -1))
    singular = np.any(np.abs(_diagonal(plain)[..., :count]) <= rounding[..., None], axis=-1)
    return count, _inverse(r[..., :count, :count], singular[..., None, None])


def _widened(x: Any, columns: int) -> Any:
    """Matrices with columns of zeros behind."""
    missing = columns - x.shape[-1]
    return np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1) if missing else x


def _qr(g: Any, out: Any, a: Any, mode: str = "reduced") -> Any:
    if not a.size:
        return np.zeros_like(a)
    gq, gr = (None, g) if mode == "r" else g
    q, r, k = _qr_parts(out, a, mode)
    count, inverse = _settling(a, r, k)
    inner = 0 if gq is None else np.matmul(_swap(q), gq)
    turn = inner if gr is None else inner - np.matmul(gr, _swap(r))
    back = np.matmul(np.conjugate(q), (turn - _adjoint(turn)) * _half(k))
    if gq is not None and a.shape[-2] > k:
        back = back + gq - np.matmul(np.conjugate(q), inner)
    total = _widened(np.matmul(back[..., :count], _swap(inverse)), a.shape[-1])
    return total if gr is None else total + np.matmul(np.conjugate(q), gr)


def _qr_tangent(t: Any, out: Any, a: Any, mode: str = "reduced") -> Any:
    if not a.size:  # whatever else is made of nothing never changes
        return np.zeros_like(out) if mode == "r" else tuple(map(np.zeros_like, out))
    q, r, k = _qr_parts(out, a, mode)
    count, inverse = _settling(a, r, k)
    moved = np.matmul(_adjoint(q), t)
    inner = _widened(np.matmul(moved[..., :count], inverse), k)
    below = inner * np.tri(k, k=-1)
    turn = below - _adjoint(below)
    if a.dtype.kind == "c":
        turn = turn + np.multiply(1j, np.imag(inner * np.eye(k)))
    dr = moved - np.matmul(turn, r)
    if mode == "r":
        return dr
    dq = np.matmul(q, turn)
    return (dq if a.shape[-2] == k else dq + np.matmul(t - np.matmul(q, moved), inverse)), dr


linalg_qr_grad = general("linalg_qr", _qr).tangent(_qr_tangent)

# -------------------------------------------------------------------------------------------- norms


def _is_euclidean(axes: tuple[int, ...], ord: Any) -> bool:
    """Whether a norm is the root of a sum of squares."""
    return (
        ord is None
        or (isinstance(ord, str) and ord in ("f", "fro"))
        or (len(axes) == 1 and not isinstance(ord, str) and ord == 2)
    )


def _axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def _length(x: Any, axis: Any = None, ord: Any = None, **_: Any) -> Any:
    """The numbers whose length a norm is, if it is one."""
    return np.conjugate(x) if _is_euclidean(_axes_of(x, axis), ord) else None


def _norm(out: Any, x: Any, axis: Any = None, ord: Any = None, **_: Any) -> Any:
    """The partial derivatives of a norm; 0, a subgradient, where the norm or an element is 0."""
    axes = _axes_of(x, axis)
    if _is_euclidean(axes, ord):
        return safe_quotient(np.conjugate(x), out, "linalg_norm")
    if isinstance(ord, str) or (len(axes) == 2 and abs(ord) == 2):
        matrices = np.moveaxis(x, axes, (-2, -1))
        u, s, vh = np.linalg.svd(matrices, full_matrices=False)
        weights = _swap(np.matmul(_swap(vh), _swap(u * _slopes_of(s, _winners(s, ord))[..., None, :])))
        return np.moveaxis(np.conjugate(weights), (-2, -1), axes)
    sizes, signs = np.abs(x), np.conjugate(np.sign(x))
    if len(axes) == 2:
        summed, along = axes if abs(ord) == 1 else axes[::-1]
        return _winners(np.sum(sizes, axis=summed, keepdims=True), ord, along) * signs
    if abs(ord) == np.inf:
        return _winners(sizes, ord, axes[0]) * signs
    if ord == 0:
        return np.zeros_like(x)
    if ord == 1:
        return signs
    if ord < 1:
        sizes = np.where(sizes == 0, 1, sizes)  # the slopes on both sides are infinite, and opposite
    return signs * (sizes / np.where(out == 0, 1, out)) ** (ord - 1)


def _slopes_of(s: Any, shares: Any) -> Any:
    """Shares of singular values, 0 where one is 0: it has a corner there, as `abs` has."""
    zero = zero_values(s)
    if not isinstance(s, Value) or not np.any(zero & (np.asarray(to_values(shares)) != 0)):
        return np.where(zero, 0, shares)
    return shares * safe_quotient(s, np.where(zero, 0, s), "linalg_norm")


def _winners(s: Any, ord: Any, axis: int = -1) -> Any:
    """Even shares for the largest numbers, for the smallest if `ord` is negative; ones for their sum, the nuclear norm."""
    if isinstance(ord, str):
        return np.ones_like(s)
    best = np.max(s, axis=axis, keepdims=True, initial=0) if ord > 0 else np.min(s, axis=axis, keepdims=True)
    return _shares(s < best if ord > 0 else s > best, best, s, axis)


def _norm_corner(out: Any, x: Any, share: Any, axis: Any = None, ord: Any = None, **_: Any) -> Any:
    """Where norms by sums and by the largest have a corner: at elements that are 0, where several are the largest, at 0."""
    axes = _axes_of(x, axis)
    if _is_euclidean(axes, ord) or isinstance(ord, str) or len(axes) == 2 or ord == 0:
        return np.zeros(x.shape, bool)
    if abs(ord) == np.inf:
        chosen = np.abs(x) == out
        return chosen & ((np.sum(chosen, axis=axis, keepdims=True) > 1) | (out == 0))
    return np.broadcast_to((x == 0) if ord == 1 else (out == 0), x.shape)


linalg_norm_grad = of_lengths(with_corners(reduction("linalg_norm", _norm), _norm, _norm_corner), _length)


def _cond(out: Any, x: Any, p: Any = None) -> Any:
    """The partial derivatives of a condition number, by singular values or by the norms of x and its inverse."""
    if p is None or abs(p if not isinstance(p, str) else 0) == 2:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        slope = out[..., 0] * (_winners(s, 2) - _winners(s, -2)) / s
        return np.conjugate(np.matmul(u * (-slope if p == -2 else slope)[..., None, :], vh))
    inverse = _inverse(x, np.isinf(out))
    sizes = [np.linalg.norm(y, p, axis=(-2, -1), keepdims=True) for y in (x, inverse)]
    first, second = (_norm(n, y, (-2, -1), p) for n, y in zip(sizes, (x, inverse), strict=True))
    return sizes[1] * first - sizes[0] * _product(_swap(inverse), second, _swap(inverse))


linalg_cond_grad = _of_matrices("linalg_cond", _cond)

# ------------------------------------------------------------------------- pseudo-inverse, least squares


def _cutoff(a: Any, s: Any, rcond: Any, rtol: Any) -> Any:
    """Up to where pinv takes singular values for 0."""
    if rcond is None:
        rcond = 1e-15 if rtol is NO_VALUE else max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
    return np.asarray(rcond)[..., None] * np.max(s, axis=-1, keepdims=True, initial=0)


def _cut(a: Any, hermitian: bool = False, rcond: Any = None, rtol: Any = NO_VALUE) -> Any:
    """The decomposition of a and 1 / s where s is kept; None if all that is left out is 0 within rounding."""
    u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    kept = s > _cutoff(a, s, rcond, rtol)
    zero = s <= _cutoff(a, s, None, None)
    return None if np.all(kept | zero) else ((u, s, vh), np.where(kept, 1 / np.where(kept, s, 1), 0))


def _complements(out: Any, a: Any) -> tuple[Any, Any]:
    """The projections on what a does not reach, and on what it sends to 0."""
    return np.eye(a.shape[-2]) - np.matmul(a, out), np.eye(a.shape[-1]) - np.matmul(out, a)


def _pinv(g: Any, out: Any, a: Any, rcond: Any = None, hermitian: bool = False, rtol: Any = NO_VALUE) -> Any:
    """Golub and Pereyra's formula; with singular values left out that are not 0, by those that are kept."""
    cut = _cut(a, hermitian, rcond, rtol)
    if cut is not None:
        (u, s, vh), d = cut
        right = np.matmul(g, np.conjugate(u))
        left = np.matmul(np.conjugate(vh), g)
        gs = -np.real(np.sum(_adjoint(vh) * right, axis=-2)) * d**2
        return _svd((_adjoint(d[..., None] * left), gs, _adjoint(right * d[..., None, :])), (u, s, vh), a, False, True, hermitian)
    a = _mirrored(a) if hermitian else a
    outside, inside = (np.conjugate(x) for x in _complements(out, a))
    backward = _adjoint(g)
    total = (
        _product(outside, backward, np.conjugate(out), _swap(out))
        + _product(_swap(out), np.conjugate(out), backward, inside)
        - _product(_swap(out), g, _swap(out))
    )
    return _folded(total) if hermitian else total


def _pinv_tangent(t: Any, out: Any, a: Any, rcond: Any = None, hermitian: bool = False, rtol: Any = NO_VALUE) -> Any:
    cut = _cut(a, hermitian, rcond, rtol)
    if cut is not None:
        (u, s, vh), d = cut
        du, ds, dvh = _svd_tangent(t, (u, s, vh), a, False, True, hermitian)
        right = d[..., None] * _adjoint(u)
        turned = np.matmul(_adjoint(dvh), right) + np.matmul(_adjoint(vh) * d[..., None, :], _adjoint(du))
        return turned - np.matmul(_adjoint(vh), (d**2 * ds)[..., None] * _adjoint(u))
    a, t = (_mirrored(a), _mirrored(t)) if hermitian else (a, t)
    outside, inside = _complements(out, a)
    backward = _adjoint(t)
    return (
        _product(out, _adjoint(out), backward, outside) + _product(inside, backward, _adjoint(out), out) - _product(out, t, out)
    )


def _pinv_batch(position: int, g: Any, out: Any, a: Any, **options: Any) -> Any:
    """A stack takes one more axis; what is found by singular values looks at the numbers of the adjoint."""
    return NotImplemented if _cut(a, **options) is not None else _pinv(g, out, a, **options)


def _pinv_push(tangents: Any, out: Any, a: Any, **options: Any) -> Any:
    return NotImplemented if _cut(a, **options) is not None else _pinv_tangent(tangents[0], out, a, **options)


linalg_pinv_grad = general("linalg_pinv", _pinv).tangent(_pinv_tangent).one_by_one().batched(_pinv_batch, _pinv_push)

# lstsq returns x = pinv(a) b, the squares of b - a x if the solution is unique, the rank, and the singular values.


def _lstsq_parts(out: Any, a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The cutoff, the pseudo-inverse, right-hand sides and solutions as columns, and what they leave."""
    eps = np.finfo(out[0].dtype).eps
    rcond = max(a.shape) * eps if rcond is None else eps if rcond < 0 else rcond
    b, x = (y[:, None] if y.ndim == 1 else y for y in (b, out[0]))
    return rcond, np.linalg.pinv(a, rcond=rcond), b, x, b - np.matmul(a, x)


def _lstsq_a(g: Any, out: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    rcond, inverse, b, x, rest = _lstsq_parts(out, a, b, rcond)
    total = 0 * a
    if g[0] is not None:
        total = total + _pinv(np.matmul(np.reshape(g[0], x.shape), b.T), inverse, a, rcond=rcond)
    if g[1] is not None and out[1].size:
        total = total - np.matmul(2 * np.conjugate(rest) * g[1], x.T)
    return total if g[3] is None else total + _svd(g[3], out[3], a, compute_uv=False)


def _lstsq_b(g: Any, out: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    _, inverse, columns, x, rest = _lstsq_parts(out, a, b, rcond)
    total = 0 * columns
    if g[0] is not None:
        total = total + np.matmul(inverse.T, np.reshape(g[0], x.shape))
    if g[1] is not None and out[1].size:
        total = total + 2 * np.conjugate(rest) * g[1]
    return np.reshape(total, b.shape)


def _lstsq_tangent_a(t: Any, out: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    rcond, inverse, b, x, rest = _lstsq_parts(out, a, b, rcond)
    dx = np.reshape(np.matmul(_pinv_tangent(t, inverse, a, rcond=rcond), b), out[0].shape)
    left = -2 * np.real(np.sum(np.conjugate(rest) * np.matmul(t, x), axis=0)) if out[1].size else None
    return dx, left, None, _svd_tangent(t, out[3], a, compute_uv=False)


def _lstsq_tangent_b(t: Any, out: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    _, inverse, _, _, rest = _lstsq_parts(out, a, b, rcond)
    left = 2 * np.real(np.sum(np.conjugate(rest) * np.reshape(t, rest.shape), axis=0)) if out[1].size else None
    return np.matmul(inverse, t), left, None, None


linalg_lstsq_grad = general("linalg_lstsq", _lstsq_a, _lstsq_b).tangent(_lstsq_tangent_a, _lstsq_tangent_b).one_by_one()
