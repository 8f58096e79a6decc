"""Rules of the Cholesky and QR factorizations, norms, pseudo-inverses and least squares.

The formulas of the factorizations are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), extended to complex matrices. If NumPy reads one triangle of a Hermitian matrix, the
cotangent is in that triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array, Axis, Operand
from compgraph.graph import to_values
from compgraph.ops import NO_VALUE
from compgraph.values import Value

from ...rules import general, reduction
from ..corners import as_norm, safe_quotient, with_corners
from ..reductions import _shares
from .inverses_and_determinants import (
    conj_transpose,
    diagonals,
    fold_hermitian,
    function_of_matrices,
    inverse_or_inf,
    matmul_chain,
    mirror_triangle,
    transpose,
    triangle_weights,
)
from .spectral_decompositions import svd_cotangent, svd_tangent, zero_values

# ---------------------------------------------------------------------------------------- triangles


def cholesky_cotangent(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], upper: bool = False) -> Any:
    """Return the cotangent of `a` from that of its Cholesky factor."""
    lower, g = (conj_transpose(out), conj_transpose(g)) if upper else (out, g)
    inverse = np.linalg.inv(lower)
    inner = triangle_weights(a.shape[-1]) * np.matmul(transpose(lower), g)
    return fold_hermitian(matmul_chain(transpose(inverse), inner, np.conjugate(inverse)), upper)


def cholesky_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], upper: bool = False) -> Any:
    """Return the tangent of the Cholesky factor."""
    lower = conj_transpose(out) if upper else out
    inverse = np.linalg.inv(lower)
    tangent = np.matmul(
        lower, triangle_weights(a.shape[-1]) * matmul_chain(inverse, mirror_triangle(t, upper), conj_transpose(inverse))
    )
    return conj_transpose(tangent) if upper else tangent


linalg_cholesky_grad = general("linalg_cholesky", cholesky_cotangent).tangent(cholesky_tangent)

# a = q r; the leading square part of a wide matrix determines q.


def _qr_parts(out: Any, a: NDArray[Any], mode: str) -> tuple[Any, Any, int]:
    """Return q, r and the number of columns of q."""
    tall = a.shape[-2] > a.shape[-1]
    if mode not in ("reduced", "complete", "r") or (mode == "complete" and tall):
        what = f"mode={mode!r}" + (" of a tall matrix" if mode == "complete" else "")
        raise TypeError(f"np.linalg.qr: the derivative with {what} is not implemented. Use mode='reduced'")
    q, r = np.linalg.qr(a) if mode == "r" else out
    return q, r, q.shape[-1]


def _pivot_columns(a: NDArray[Any], r: NDArray[Any], k: int) -> tuple[int, Any]:
    """Return the number of columns of `a` that determine q, and the inverse of their part of r.

    The other columns determine the last column of a real square q, but not the phase of a complex one. If the columns are
    linearly dependent, the inverse and thus the derivative are infinite, with NumPy's floating-point error.
    """
    count = k - 1 if a.shape[-2] == k and a.dtype.kind != "c" else k
    r_values = np.asarray(to_values(r))[..., :k]
    rounding = np.finfo(r.dtype).eps * max(a.shape[-2:]) * np.linalg.norm(r_values, axis=(-2, -1))
    singular = np.any(np.abs(diagonals(r_values)[..., :count]) <= rounding[..., None], axis=-1)
    return count, inverse_or_inf(r[..., :count, :count], singular[..., None, None])


def _pad_columns(x: NDArray[Any], columns: int) -> Any:
    """Append columns of zeros to matrices."""
    missing = columns - x.shape[-1]
    return np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1) if missing else x


def qr_cotangent(
    g: NDArray[Any] | tuple[Any, ...], out: NDArray[Any] | tuple[Any, ...], a: NDArray[Any], mode: str = "reduced"
) -> Any:
    """Return the cotangent of `a` from those of q and r."""
    if not a.size:
        return np.zeros_like(a)
    gq, gr = (None, g) if mode == "r" else g
    q, r, k = _qr_parts(out, a, mode)
    count, inverse = _pivot_columns(a, r, k)
    inner = 0 if gq is None else np.matmul(transpose(q), gq)
    rotation_cotangent = inner if gr is None else inner - np.matmul(gr, transpose(r))
    leading_cotangent = np.matmul(
        np.conjugate(q), (rotation_cotangent - conj_transpose(rotation_cotangent)) * triangle_weights(k)
    )
    if gq is not None and a.shape[-2] > k:
        leading_cotangent = leading_cotangent + gq - np.matmul(np.conjugate(q), inner)
    total = _pad_columns(np.matmul(leading_cotangent[..., :count], transpose(inverse)), a.shape[-1])
    return total if gr is None else total + np.matmul(np.conjugate(q), gr)


def qr_tangent(t: Array, out: Any, a: NDArray[Any], mode: str = "reduced") -> Any:
    """Return the tangents of q and r."""
    if not a.size:  # the factors of an empty matrix are constant
        return np.zeros_like(out) if mode == "r" else tuple(map(np.zeros_like, out))
    q, r, k = _qr_parts(out, a, mode)
    count, inverse = _pivot_columns(a, r, k)
    projected = np.matmul(conj_transpose(q), t)
    inner = _pad_columns(np.matmul(projected[..., :count], inverse), k)
    below = inner * np.tri(k, k=-1)
    rotation = below - conj_transpose(below)
    if a.dtype.kind == "c":
        rotation = rotation + np.multiply(1j, np.imag(inner * np.eye(k)))
    dr = projected - np.matmul(rotation, r)
    if mode == "r":
        return dr
    dq = np.matmul(q, rotation)
    return (dq if a.shape[-2] == k else dq + np.matmul(t - np.matmul(q, projected), inverse)), dr


linalg_qr_grad = general("linalg_qr", qr_cotangent).tangent(qr_tangent)

# -------------------------------------------------------------------------------------------- norms


def _is_euclidean(axes: tuple[int, ...], ord: ArrayLike | str | None) -> bool:
    """Whether a norm is the root of a sum of squares."""
    return (
        ord is None
        or (isinstance(ord, str) and ord in ("f", "fro"))
        or (len(axes) == 1 and not isinstance(ord, str) and ord == 2)
    )


def _axes_of(x: NDArray[Any], axis: Axis) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def norm_numerator(x: NDArray[Any], axis: Axis = None, ord: Any = None, **_: object) -> Any:
    """Return the conjugated elements if the norm is their Euclidean length, else None; see `as_norm`."""
    return np.conjugate(x) if _is_euclidean(_axes_of(x, axis), ord) else None


def norm_weights(out: Any, x: NDArray[Any], axis: Axis = None, ord: Any = None, **_: object) -> Any:
    """Return the partial derivatives of a norm; 0, a subgradient, where the norm or an element is 0."""
    axes = _axes_of(x, axis)
    if _is_euclidean(axes, ord):
        return safe_quotient(np.conjugate(x), out, "linalg_norm")
    if isinstance(ord, str) or (len(axes) == 2 and abs(ord) == 2):
        matrices = np.moveaxis(x, axes, (-2, -1))
        u, s, vh = np.linalg.svd(matrices, full_matrices=False)
        weights = transpose(
            np.matmul(transpose(vh), transpose(u * _shares_at_nonzero(s, _extremal_shares(s, ord))[..., None, :]))
        )
        return np.moveaxis(np.conjugate(weights), (-2, -1), axes)
    sizes, signs = np.abs(x), np.conjugate(np.sign(x))
    if len(axes) == 2:
        summed_axis, compared_axis = axes if abs(ord) == 1 else axes[::-1]
        return _extremal_shares(np.sum(sizes, axis=summed_axis, keepdims=True), ord, compared_axis) * signs
    if abs(ord) == np.inf:
        return _extremal_shares(sizes, ord, axes[0]) * signs
    if ord == 0:
        return np.zeros_like(x)
    if ord == 1:
        return signs
    if ord < 1:
        sizes = np.where(sizes == 0, 1, sizes)  # at 0 the one-sided slopes are infinite and opposite; `signs` gives 0
    return signs * (sizes / np.where(out == 0, 1, out)) ** (ord - 1)


def _shares_at_nonzero(s: object, shares: NDArray[Any]) -> Any:
    """Return the shares of singular values, and 0 for a singular value of 0, which is a corner as in `abs`."""
    zero = zero_values(s)
    if not isinstance(s, Value) or not np.any(zero & (np.asarray(to_values(shares)) != 0)):
        return np.where(zero, 0, shares)
    return shares * safe_quotient(s, np.where(zero, 0, s), "linalg_norm")


def _extremal_shares(s: Any, ord: Any, axis: int = -1) -> Any:
    """Return even shares for the largest numbers, or the smallest for a negative `ord`; ones for the nuclear norm."""
    if isinstance(ord, str):
        return np.ones_like(s)
    extremum = np.max(s, axis=axis, keepdims=True, initial=0) if ord > 0 else np.min(s, axis=axis, keepdims=True)
    return _shares(s < extremum if ord > 0 else s > extremum, extremum, s, axis)


def norm_corner(out: NDArray[Any], x: NDArray[Any], share: NDArray[Any], axis: Axis = None, ord: Any = None, **_: object) -> Any:
    """Return the mask of elements at a corner of a norm.

    Sums of absolute values have corners at elements of 0, the largest or smallest absolute value at ties, other norms at 0.
    """
    axes = _axes_of(x, axis)
    if _is_euclidean(axes, ord) or isinstance(ord, str) or len(axes) == 2 or ord == 0:
        return np.zeros(x.shape, bool)
    if abs(ord) == np.inf:
        is_extreme = np.abs(x) == out
        return is_extreme & ((np.sum(is_extreme, axis=axis, keepdims=True) > 1) | (out == 0))
    return np.broadcast_to((x == 0) if ord == 1 else (out == 0), x.shape)


linalg_norm_grad = as_norm(with_corners(reduction("linalg_norm", norm_weights), norm_weights, norm_corner), norm_numerator)


def _cond(out: Any, x: NDArray[Any], p: Any = None) -> Any:
    """Return the partial derivatives of a condition number: a quotient of singular values, or norm(x) * norm(inv(x))."""
    if p is None or abs(p if not isinstance(p, str) else 0) == 2:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        slope = out[..., 0] * (_extremal_shares(s, 2) - _extremal_shares(s, -2)) / s
        return np.conjugate(np.matmul(u * (-slope if p == -2 else slope)[..., None, :], vh))
    inverse = inverse_or_inf(x, np.isinf(out))
    sizes = [np.linalg.norm(y, p, axis=(-2, -1), keepdims=True) for y in (x, inverse)]
    first, second = (norm_weights(n, y, (-2, -1), p) for n, y in zip(sizes, (x, inverse), strict=True))
    return sizes[1] * first - sizes[0] * matmul_chain(transpose(inverse), second, transpose(inverse))


linalg_cond_grad = function_of_matrices("linalg_cond", _cond)

# ------------------------------------------------------------------------- pseudo-inverse, least squares


def _cutoff(a: NDArray[Any], s: NDArray[Any], rcond: object, rtol: object) -> Any:
    """Return the bound up to which pinv discards singular values."""
    if rcond is None:
        rcond = 1e-15 if rtol is NO_VALUE else max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
    return np.asarray(rcond)[..., None] * np.max(s, axis=-1, keepdims=True, initial=0)


def _truncated_svd(a: NDArray[Any], hermitian: bool = False, rcond: Operand | None = None, rtol: object = NO_VALUE) -> Any:
    """Return the SVD and the reciprocals of the singular values, 0 for discarded ones; None if all discarded ones are 0."""
    u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    is_kept = s > _cutoff(a, s, rcond, rtol)
    is_zero = s <= _cutoff(a, s, None, None)
    return None if np.all(is_kept | is_zero) else ((u, s, vh), np.where(is_kept, 1 / np.where(is_kept, s, 1), 0))


def _complements(out: Any, a: NDArray[Any]) -> tuple[Any, Any]:
    """Return the projections onto the orthogonal complement of the range of a, and onto its kernel."""
    return np.eye(a.shape[-2]) - np.matmul(a, out), np.eye(a.shape[-1]) - np.matmul(out, a)


def pinv_cotangent(
    g: Any, out: Any, a: NDArray[Any], rcond: Operand | None = None, hermitian: bool = False, rtol: object = NO_VALUE
) -> Any:
    """Return the cotangent of `a` by the formula of Golub and Pereyra, or by the SVD if nonzero singular values are discarded."""
    truncated = _truncated_svd(a, hermitian, rcond, rtol)
    if truncated is not None:
        (u, s, vh), reciprocals = truncated
        right = np.matmul(g, np.conjugate(u))
        left = np.matmul(np.conjugate(vh), g)
        gs = -np.real(np.sum(conj_transpose(vh) * right, axis=-2)) * reciprocals**2
        return svd_cotangent(
            (conj_transpose(reciprocals[..., None] * left), gs, conj_transpose(right * reciprocals[..., None, :])),
            (u, s, vh),
            a,
            False,
            True,
            hermitian,
        )
    a = mirror_triangle(a) if hermitian else a
    off_range, on_kernel = (np.conjugate(x) for x in _complements(out, a))
    g_adjoint = conj_transpose(g)
    total = (
        matmul_chain(off_range, g_adjoint, np.conjugate(out), transpose(out))
        + matmul_chain(transpose(out), np.conjugate(out), g_adjoint, on_kernel)
        - matmul_chain(transpose(out), g, transpose(out))
    )
    return fold_hermitian(total) if hermitian else total


def pinv_tangent(
    t: Any, out: object, a: Any, rcond: Operand | None = None, hermitian: bool = False, rtol: object = NO_VALUE
) -> Any:
    """Return the tangent of the pseudo-inverse."""
    truncated = _truncated_svd(a, hermitian, rcond, rtol)
    if truncated is not None:
        (u, s, vh), reciprocals = truncated
        du, ds, dvh = svd_tangent(t, (u, s, vh), a, False, True, hermitian)
        v, uh = conj_transpose(vh), conj_transpose(u)
        tangent = np.matmul(conj_transpose(dvh), reciprocals[..., None] * uh)
        tangent = tangent + np.matmul(v * reciprocals[..., None, :], conj_transpose(du))
        return tangent - np.matmul(v, (reciprocals**2 * ds)[..., None] * uh)
    a, t = (mirror_triangle(a), mirror_triangle(t)) if hermitian else (a, t)
    off_range, on_kernel = _complements(out, a)
    t_adjoint = conj_transpose(t)
    return (
        matmul_chain(out, conj_transpose(out), t_adjoint, off_range)
        + matmul_chain(on_kernel, t_adjoint, conj_transpose(out), out)
        - matmul_chain(out, t, out)
    )


def _pinv_pull(position: int, g: object, out: Any, a: NDArray[Any], **options: Any) -> Any:
    """Process a batch as one more axis of the stack, unless the formula branches on the cotangent."""
    return NotImplemented if _truncated_svd(a, **options) is not None else pinv_cotangent(g, out, a, **options)


def _pinv_push(tangents: Any, out: Any, a: NDArray[Any], **options: Any) -> Any:
    return NotImplemented if _truncated_svd(a, **options) is not None else pinv_tangent(tangents[0], out, a, **options)


linalg_pinv_grad = general("linalg_pinv", pinv_cotangent).tangent(pinv_tangent).not_batchable().batched(_pinv_pull, _pinv_push)

# lstsq returns x = pinv(a) b, the squares of b - a x if the solution is unique, the rank, and the singular values.


def _lstsq_parts(out: Any, a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the cutoff, the pseudo-inverse, and right-hand sides, solutions and residuals as columns."""
    eps = np.finfo(out[0].dtype).eps
    rcond = max(a.shape) * eps if rcond is None else eps if rcond < 0 else rcond
    b, x = (y[:, None] if y.ndim == 1 else y for y in (b, out[0]))
    return rcond, np.linalg.pinv(a, rcond=rcond), b, x, b - np.matmul(a, x)


def lstsq_cotangent_a(g: Any, out: Any, a: NDArray[Any], b: NDArray[Any], rcond: Any = None) -> Any:
    """Return the cotangent of the matrix."""
    rcond, inverse, b, x, residual = _lstsq_parts(out, a, b, rcond)
    total = 0 * a
    if g[0] is not None:
        total = total + pinv_cotangent(np.matmul(np.reshape(g[0], x.shape), b.T), inverse, a, rcond=rcond)
    if g[1] is not None and out[1].size:
        total = total - np.matmul(2 * np.conjugate(residual) * g[1], x.T)
    return total if g[3] is None else total + svd_cotangent(g[3], out[3], a, compute_uv=False)


def lstsq_cotangent_b(g: tuple[Any, ...], out: tuple[Any, ...], a: object, b: NDArray[Any], rcond: Operand | None = None) -> Any:
    """Return the cotangent of the right-hand sides."""
    _, inverse, columns, x, residual = _lstsq_parts(out, a, b, rcond)
    total = 0 * columns
    if g[0] is not None:
        total = total + np.matmul(inverse.T, np.reshape(g[0], x.shape))
    if g[1] is not None and out[1].size:
        total = total + 2 * np.conjugate(residual) * g[1]
    return np.reshape(total, b.shape)


def lstsq_tangent_a(t: NDArray[Any], out: Any, a: NDArray[Any], b: NDArray[Any], rcond: Any = None) -> Any:
    """Return the tangents of solution, squared residuals and singular values along the matrix."""
    rcond, inverse, b, x, residual = _lstsq_parts(out, a, b, rcond)
    dx = np.reshape(np.matmul(pinv_tangent(t, inverse, a, rcond=rcond), b), out[0].shape)
    squares = -2 * np.real(np.sum(np.conjugate(residual) * np.matmul(t, x), axis=0)) if out[1].size else None
    return dx, squares, None, svd_tangent(t, out[3], a, compute_uv=False)


def lstsq_tangent_b(t: NDArray[Any], out: Any, a: object, b: object, rcond: Operand | None = None) -> Any:
    """Return the tangents of solution and squared residuals along the right-hand sides."""
    _, inverse, _, _, residual = _lstsq_parts(out, a, b, rcond)
    squares = 2 * np.real(np.sum(np.conjugate(residual) * np.reshape(t, residual.shape), axis=0)) if out[1].size else None
    return np.matmul(inverse, t), squares, None, None


linalg_lstsq_grad = (
    general("linalg_lstsq", lstsq_cotangent_a, lstsq_cotangent_b).tangent(lstsq_tangent_a, lstsq_tangent_b).not_batchable()
)
