"""Rules of decompositions into triangles, and of the polar decomposition.

Cholesky and QR factorizations have the formulas of NumPy's functions; LU follows M. Giles, "Collected matrix derivative results
for forward and reverse mode algorithmic differentiation" (2008), for matrices that are not square as well.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Operand
from compgraph.guards import guarded_value
from compgraph.scipy import banded_matrices

from ....rules import general
from ...linalg import (
    cholesky_cotangent,
    cholesky_tangent,
    conj_transpose,
    fold_hermitian,
    matmul_chain,
    mirror_triangle,
    transpose,
    triangle_weights,
)
from .matrix_functions import solve_sum_equation

# ------------------------------------------------------------------------------------------- Cholesky

scipy_linalg_cholesky_grad = general(
    "scipy_linalg_cholesky", lambda g, out, a, lower=False, **_: cholesky_cotangent(g, out, a, not lower)
).tangent(lambda t, out, a, lower=False, **_: cholesky_tangent(t, out, a, not lower))


def _triangle(x: NDArray[Any], lower: bool) -> Any:
    mask = np.tri(x.shape[-1], dtype=bool)
    return np.where(mask if lower else mask.T, x, 0)


@functools.cache
def _keeps_other_triangle() -> bool:
    """Whether SciPy leaves the other triangle unchanged; newer versions set it to zero."""
    return bool(scipy.linalg.cho_factor(np.array([[4.0, 1.0], [1.0, 4.0]]))[0][1, 0])


def _other_triangle(x: NDArray[Any], lower: bool) -> Any:
    mask = np.tri(x.shape[-1], dtype=bool)
    return np.where((mask if lower else mask.T) | (not _keeps_other_triangle()), 0, x)


def _cho_factor(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], lower: bool, **_: object) -> Any:
    return cholesky_cotangent(_triangle(g, lower), _triangle(out, lower), a, not lower) + _other_triangle(g, lower)


def _cho_factor_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], lower: bool, **_: object) -> Any:
    return cholesky_tangent(t, _triangle(out, lower), a, not lower) + _other_triangle(t, lower)


scipy_linalg_cho_factor_grad = general("scipy_linalg_cho_factor", _cho_factor).tangent(_cho_factor_tangent)


def _cholesky_banded(g: NDArray[Any], out: NDArray[Any], ab: Any, lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.widths(ab, lower)
    cotangent = cholesky_cotangent(
        banded_matrices.dense(g, below, above),
        banded_matrices.dense(out, below, above),
        banded_matrices.dense(ab, below, above),
        not lower,
    )
    return np.where(banded_matrices.inside(ab.shape[-1], below, above), banded_matrices.banded(cotangent, below, above), g)


def _cholesky_banded_tangent(t: NDArray[Any], out: NDArray[Any], ab: Any, lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.widths(ab, lower)
    dense = banded_matrices.dense(t, below, above)
    tangent = cholesky_tangent(dense, banded_matrices.dense(out, below, above), dense, not lower)
    return np.where(banded_matrices.inside(ab.shape[-1], below, above), banded_matrices.banded(tangent, below, above), t)


scipy_linalg_cholesky_banded_grad = general("scipy_linalg_cholesky_banded", _cholesky_banded).tangent(_cholesky_banded_tangent)

# ---------------------------------------------------------------------------------- LU, with rows in order


def _under(x: NDArray[Any]) -> Any:
    rows, columns = x.shape[-2:]
    return np.tri(rows, columns, k=-1, dtype=bool)


def _below(x: NDArray[Any]) -> Any:
    return np.where(_under(x), x, 0)


def _above(x: NDArray[Any]) -> Any:
    return np.where(_under(x), 0, x)


def _take_order(x: NDArray[Any], order: NDArray[Any], axis: int = -2) -> Any:
    """Permute rows or columns."""
    order = order[..., None] if axis == -2 else order[..., None, :]
    return np.take_along_axis(x, np.broadcast_to(order, (*x.shape[:-2], *order.shape[-2:])), axis)


def _lu(gl: Any, gu: Any, lower: Any, upper: Any) -> Any:
    """Return the adjoint of ``lower @ upper``."""
    k = lower.shape[-1]
    square = (np.linalg.inv(lower[..., :k, :k]), np.linalg.inv(upper[..., :k, :k]))
    inner = np.matmul(transpose(lower), gl) - np.matmul(gu, transpose(upper))
    if lower.shape[-2] <= upper.shape[-1]:
        middle, whole = _below(inner), np.matmul(transpose(square[0]), gu)
        rest = np.zeros((*whole.shape[:-1], upper.shape[-1] - k))
        return whole + np.concatenate([matmul_chain(transpose(square[0]), middle, transpose(square[1])), rest], axis=-1)
    middle, whole = _above(-inner), np.matmul(gl, transpose(square[1]))
    rest = np.zeros((*whole.shape[:-2], lower.shape[-2] - k, k))
    return whole + np.concatenate([matmul_chain(transpose(square[0]), middle, transpose(square[1])), rest], axis=-2)


def _lu_tangent(t: NDArray[Any], lower: Any, upper: Any) -> tuple[Any, Any]:
    k = lower.shape[-1]
    first, second = np.linalg.inv(lower[..., :k, :k]), np.linalg.inv(upper[..., :k, :k])
    middle = matmul_chain(first, t[..., :k, :k], second)
    if lower.shape[-2] <= upper.shape[-1]:
        return np.matmul(lower, _below(middle)), np.matmul(first, t) - np.matmul(_below(middle), upper)
    return np.matmul(t, second) - np.matmul(lower, _above(middle)), np.matmul(_above(middle), upper)


def _rows(order: object) -> Any:
    return np.asarray(guarded_value(order, "the order of the rows of a decomposition")).astype(np.intp)


def _lu_apart(g: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    order, lower, upper = out
    if not a.size:
        return 0 * a
    gl, gu = (0 * x if part is None else part for part, x in zip(g[1:], (lower, upper), strict=True))
    return _take_order(_lu(gl, gu, lower, upper), _rows(order))


def _lu_apart_tangent(t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    order, lower, upper = out
    if not a.size:
        return None, 0 * lower, 0 * upper
    return (None, *_lu_tangent(_take_order(t, np.argsort(_rows(order), axis=-1)), lower, upper))


scipy_linalg_lu_grad = general("scipy_linalg_lu", _lu_apart).tangent(_lu_apart_tangent)


def _parts(both: Any) -> tuple[Any, Any]:
    """Split LAPACK's matrix into L and U."""
    k = min(both.shape[-2:])
    return _below(both)[..., :k] + np.eye(both.shape[-2], k), _above(both)[..., :k, :]


def _lu_factor(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    both, piv = out
    k = min(a.shape[-2:])
    if not a.size or g[0] is None:
        return 0 * a
    permuted_cotangent = _lu(_below(g[0])[..., :k], _above(g[0])[..., :k, :], *_parts(both))
    return _take_order(permuted_cotangent, np.argsort(banded_matrices.order_of_rows(piv, a.shape[-2]), axis=-1))


def _lu_factor_tangent(t: NDArray[Any], out: Sequence[Any], a: NDArray[Any], **_: object) -> Any:
    both, piv = out
    if not a.size:
        return 0 * both, None
    dl, du = _lu_tangent(_take_order(t, banded_matrices.order_of_rows(piv, a.shape[-2])), *_parts(both))
    rows, columns = a.shape[-2:]
    return np.matmul(dl, np.eye(dl.shape[-1], columns)) + np.matmul(np.eye(rows, du.shape[-2]), du), None


scipy_linalg_lu_factor_grad = general("scipy_linalg_lu_factor", _lu_factor).tangent(_lu_factor_tangent)

# a = l d l^H with rows and columns in order; d has blocks of one and two.


def _ldl_parts(out: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the triangle, its inverse, the inverse of d, and the mask of its blocks."""
    triangle = np.linalg.inv(_take_order(out[0], _rows(out[2])))
    blocks = guarded_value(out[1] != 0, "the blocks of a decomposition") | np.eye(out[1].shape[-1], dtype=bool)
    return _take_order(out[0], _rows(out[2])), triangle, np.linalg.inv(out[1]), blocks


def _of_triangle(blocks: NDArray[Any], lower: Operand | None) -> Any:
    mask = np.tri(blocks.shape[-1], dtype=bool)
    return (mask if lower else mask.T) & ~blocks


def _ldl(
    g: tuple[Any, ...],
    out: tuple[Any, ...],
    a: NDArray[Any],
    lower: Operand | None = True,
    hermitian: ArrayLike | str = True,
    **_: object,
) -> Any:
    order = _rows(out[2])
    triangle, inverse, of_blocks, blocks = _ldl_parts(out)
    middle: Any = 0
    if g[0] is not None:
        turn = np.matmul(transpose(triangle), _take_order(g[0], order))
        middle = np.where(_of_triangle(blocks, lower), np.matmul(turn, transpose(of_blocks)), 0)
    if g[1] is not None:
        middle = middle + np.where(blocks, g[1], 0)
    if not np.ndim(middle):
        return 0 * a
    right = np.conjugate(inverse) if hermitian else inverse
    back = np.argsort(order, axis=-1)
    total = _take_order(_take_order(matmul_chain(transpose(inverse), middle, right), back), back, -1)
    return (
        fold_hermitian(total, not lower) if hermitian else (total + transpose(total)) * triangle_weights(a.shape[-1], not lower)
    )


def _ldl_tangent(
    t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], lower: bool = True, hermitian: bool = True, **_: object
) -> Any:
    order = _rows(out[2])
    triangle, inverse, of_blocks, blocks = _ldl_parts(out)
    triangle_of_t = t * triangle_weights(a.shape[-1], not lower)
    whole = mirror_triangle(t, not lower) if hermitian else triangle_of_t + transpose(triangle_of_t)
    whole = _take_order(_take_order(whole, order), order, -1)
    middle = matmul_chain(inverse, whole, conj_transpose(inverse) if hermitian else transpose(inverse))
    turn = np.matmul(np.where(_of_triangle(blocks, lower), middle, 0), of_blocks)
    return _take_order(np.matmul(triangle, turn), np.argsort(order, axis=-1)), np.where(blocks, middle, 0), None


scipy_linalg_ldl_grad = general("scipy_linalg_ldl", _ldl).tangent(_ldl_tangent)

# ---------------------------------------------------------------------------------------------- polar

# Of a matrix with more rows than columns, or as many, u is settled by a = u (a^H a)^(1/2); of others by a = (a a^H)^(1/2) u.


def _pull_polar(gu: Any, u: Any, a: NDArray[Any]) -> Any:
    """Return the adjoint of a, given that of the unitary factor: with u^H du = x, ``x p + p x = u^H da - da^H u``."""
    if a.shape[-2] < a.shape[-1]:
        return conj_transpose(_pull_polar(conj_transpose(gu), conj_transpose(u), conj_transpose(a)))
    p = np.matmul(conj_transpose(u), a)
    turn = solve_sum_equation("polar", transpose(p), np.matmul(transpose(u), gu))
    total = np.matmul(np.conjugate(u), turn - conj_transpose(turn))
    if a.shape[-2] > a.shape[-1]:
        beside = gu - np.matmul(np.conjugate(u), np.matmul(transpose(u), gu))
        total = total + np.matmul(beside, transpose(np.linalg.inv(p)))
    return total


def _push_polar(t: NDArray[Any], u: Any, a: NDArray[Any]) -> Any:
    if a.shape[-2] < a.shape[-1]:
        return conj_transpose(_push_polar(conj_transpose(t), conj_transpose(u), conj_transpose(a)))
    p = np.matmul(conj_transpose(u), a)
    along = np.matmul(conj_transpose(u), t)
    tangent = np.matmul(u, solve_sum_equation("polar", p, along - conj_transpose(along)))
    if a.shape[-2] > a.shape[-1]:
        tangent = tangent + np.matmul(t - np.matmul(u, along), np.linalg.inv(p))
    return tangent


def _polar(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], side: str = "right") -> Any:
    """With ``p = u^H a``, or ``a u^H``, pass the adjoint of p to both."""
    u, total, gu = out[0], 0 * a, g[0]
    if g[1] is not None:
        hermitian = (g[1] + conj_transpose(g[1])) / 2
        if side == "right":
            total, more = np.matmul(np.conjugate(u), hermitian), np.conjugate(np.matmul(a, transpose(hermitian)))
        else:
            total, more = np.matmul(hermitian, np.conjugate(u)), np.conjugate(np.matmul(transpose(hermitian), a))
        gu = more if gu is None else gu + more
    return total if gu is None else total + _pull_polar(gu, u, a)


def _polar_tangent(t: NDArray[Any], out: Sequence[Any], a: NDArray[Any], side: str = "right") -> Any:
    u = out[0]
    du = _push_polar(t, u, a)
    if side == "right":
        dp = np.matmul(conj_transpose(du), a) + np.matmul(conj_transpose(u), t)
    else:
        dp = np.matmul(a, conj_transpose(du)) + np.matmul(t, conj_transpose(u))
    return du, (dp + conj_transpose(dp)) / 2


scipy_linalg_polar_grad = general("scipy_linalg_polar", _polar).tangent(_polar_tangent)

# ----------------------------------------------------------------------------------------- balancing


def _balance(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], separate: bool = False, **_: object) -> Any:
    """The scales are powers of two, which are piecewise constant."""
    turn = out[1]
    return 0 * a if g[0] is None else matmul_chain(transpose(np.linalg.inv(turn)), g[0], transpose(turn))


scipy_linalg_matrix_balance_grad = general("scipy_linalg_matrix_balance", _balance).tangent(
    lambda t, out, a, **_: (matmul_chain(np.linalg.inv(out[1]), t, out[1]), 0 * out[1])
)
