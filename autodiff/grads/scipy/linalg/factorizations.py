"""Rules of the Cholesky, LU and LDL factorizations, of the polar decomposition and of balancing.

Cholesky factorizations have the formulas of NumPy's function. LU follows M. Giles, "Collected matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), extended to matrices that are not square.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array, Operand
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


def _triangle_mask(n: int, lower: Any) -> Any:
    mask = np.tri(n, dtype=bool)
    return mask if lower else mask.T


def _triangle(x: NDArray[Any], lower: bool) -> Any:
    return np.where(_triangle_mask(x.shape[-1], lower), x, 0)


@functools.cache
def _keeps_other_triangle() -> bool:
    """Whether cho_factor leaves the other triangle unchanged; newer versions of SciPy set it to zero."""
    return bool(scipy.linalg.cho_factor(np.array([[4.0, 1.0], [1.0, 4.0]]))[0][1, 0])


def _other_triangle(x: NDArray[Any], lower: bool) -> Any:
    """Return the elements that cho_factor copies unchanged: the other triangle, or none."""
    return np.where(_triangle_mask(x.shape[-1], lower) | (not _keeps_other_triangle()), 0, x)


def _cho_factor(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], lower: bool, **_: object) -> Any:
    return cholesky_cotangent(_triangle(g, lower), _triangle(out, lower), a, not lower) + _other_triangle(g, lower)


def _cho_factor_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], lower: bool, **_: object) -> Any:
    return cholesky_tangent(t, _triangle(out, lower), a, not lower) + _other_triangle(t, lower)


scipy_linalg_cho_factor_grad = general("scipy_linalg_cho_factor", _cho_factor).tangent(_cho_factor_tangent)


def _cholesky_banded(g: NDArray[Any], out: NDArray[Any], ab: Array, lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.bandwidths(ab, lower)
    cotangent = cholesky_cotangent(
        banded_matrices.to_dense(g, below, above),
        banded_matrices.to_dense(out, below, above),
        banded_matrices.to_dense(ab, below, above),
        not lower,
    )
    mask = banded_matrices.matrix_mask(ab.shape[-1], below, above)
    return np.where(mask, banded_matrices.from_dense(cotangent, below, above), g)


def _cholesky_banded_tangent(t: NDArray[Any], out: NDArray[Any], ab: Array, lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.bandwidths(ab, lower)
    dense = banded_matrices.to_dense(t, below, above)
    tangent = cholesky_tangent(dense, banded_matrices.to_dense(out, below, above), dense, not lower)
    return np.where(banded_matrices.matrix_mask(ab.shape[-1], below, above), banded_matrices.from_dense(tangent, below, above), t)


scipy_linalg_cholesky_banded_grad = general("scipy_linalg_cholesky_banded", _cholesky_banded).tangent(_cholesky_banded_tangent)

# -------------------------------------------------------------------------------------------------- LU


def _is_below_diagonal(x: NDArray[Any]) -> Any:
    rows, columns = x.shape[-2:]
    return np.tri(rows, columns, k=-1, dtype=bool)


def _strictly_lower(x: NDArray[Any]) -> Any:
    return np.where(_is_below_diagonal(x), x, 0)


def _upper(x: NDArray[Any]) -> Any:
    return np.where(_is_below_diagonal(x), 0, x)


def permute(x: NDArray[Any], order: NDArray[Any], axis: int = -2) -> Any:
    """Permute the rows of the matrices in a stack, or their columns for `axis` -1."""
    order = order[..., None] if axis == -2 else order[..., None, :]
    return np.take_along_axis(x, np.broadcast_to(order, (*x.shape[:-2], *order.shape[-2:])), axis)


def _lu_cotangent(gl: Any, gu: Any, lower: Any, upper: Any) -> Any:
    """Return the cotangent of the product of `lower` and `upper`, given those of the factors."""
    k = lower.shape[-1]
    lower_inverse, upper_inverse = np.linalg.inv(lower[..., :k, :k]), np.linalg.inv(upper[..., :k, :k])
    inner = np.matmul(transpose(lower), gl) - np.matmul(gu, transpose(upper))
    if lower.shape[-2] <= upper.shape[-1]:
        inner_cotangent, outer_cotangent = _strictly_lower(inner), np.matmul(transpose(lower_inverse), gu)
        padding = np.zeros((*outer_cotangent.shape[:-1], upper.shape[-1] - k))
        return outer_cotangent + np.concatenate(
            [matmul_chain(transpose(lower_inverse), inner_cotangent, transpose(upper_inverse)), padding], axis=-1
        )
    inner_cotangent, outer_cotangent = _upper(-inner), np.matmul(gl, transpose(upper_inverse))
    padding = np.zeros((*outer_cotangent.shape[:-2], lower.shape[-2] - k, k))
    return outer_cotangent + np.concatenate(
        [matmul_chain(transpose(lower_inverse), inner_cotangent, transpose(upper_inverse)), padding], axis=-2
    )


def _lu_tangent(t: NDArray[Any], lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the tangents of `lower` and `upper`, given that of their product."""
    k = lower.shape[-1]
    lower_inverse, upper_inverse = np.linalg.inv(lower[..., :k, :k]), np.linalg.inv(upper[..., :k, :k])
    middle = matmul_chain(lower_inverse, t[..., :k, :k], upper_inverse)
    if lower.shape[-2] <= upper.shape[-1]:
        return np.matmul(lower, _strictly_lower(middle)), np.matmul(lower_inverse, t) - np.matmul(_strictly_lower(middle), upper)
    return np.matmul(t, upper_inverse) - np.matmul(lower, _upper(middle)), np.matmul(_upper(middle), upper)


def _row_order(order: object) -> Any:
    return np.asarray(guarded_value(order, "the order of the rows of a decomposition")).astype(np.intp)


def _pull_lu(g: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    order, lower, upper = out
    if not a.size:
        return 0 * a
    gl, gu = (0 * x if part is None else part for part, x in zip(g[1:], (lower, upper), strict=True))
    return permute(_lu_cotangent(gl, gu, lower, upper), _row_order(order))


def _push_lu(t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    order, lower, upper = out
    if not a.size:
        return None, 0 * lower, 0 * upper
    return (None, *_lu_tangent(permute(t, np.argsort(_row_order(order), axis=-1)), lower, upper))


scipy_linalg_lu_grad = general("scipy_linalg_lu", _pull_lu).tangent(_push_lu)


def _unpack_lu(packed: Any) -> tuple[Any, Any]:
    """Return L and U, which LAPACK stores in one matrix."""
    k = min(packed.shape[-2:])
    return _strictly_lower(packed)[..., :k] + np.eye(packed.shape[-2], k), _upper(packed)[..., :k, :]


def _lu_factor(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], **_: object) -> Any:
    packed, piv = out
    k = min(a.shape[-2:])
    if not a.size or g[0] is None:
        return 0 * a
    permuted_cotangent = _lu_cotangent(_strictly_lower(g[0])[..., :k], _upper(g[0])[..., :k, :], *_unpack_lu(packed))
    return permute(permuted_cotangent, np.argsort(banded_matrices.row_permutation(piv, a.shape[-2]), axis=-1))


def _lu_factor_tangent(t: NDArray[Any], out: Sequence[Any], a: NDArray[Any], **_: object) -> Any:
    packed, piv = out
    if not a.size:
        return 0 * packed, None
    dl, du = _lu_tangent(permute(t, banded_matrices.row_permutation(piv, a.shape[-2])), *_unpack_lu(packed))
    rows, columns = a.shape[-2:]
    return np.matmul(dl, np.eye(dl.shape[-1], columns)) + np.matmul(np.eye(rows, du.shape[-2]), du), None


scipy_linalg_lu_factor_grad = general("scipy_linalg_lu_factor", _lu_factor).tangent(_lu_factor_tangent)

# a = l d l^H, where l is a triangle with permuted rows, and d has blocks of size one and two.


def _ldl_parts(out: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the triangle, its inverse, the inverse of d, and the mask of the blocks of d."""
    triangle = permute(out[0], _row_order(out[2]))
    blocks = guarded_value(out[1] != 0, "the blocks of a decomposition") | np.eye(out[1].shape[-1], dtype=bool)
    return triangle, np.linalg.inv(triangle), np.linalg.inv(out[1]), blocks


def _is_in_triangle(blocks: NDArray[Any], lower: Operand | None) -> Any:
    """Return the mask of a triangle without the blocks."""
    return _triangle_mask(blocks.shape[-1], lower) & ~blocks


def _ldl(
    g: tuple[Any, ...],
    out: tuple[Any, ...],
    a: NDArray[Any],
    lower: Operand | None = True,
    hermitian: ArrayLike | str = True,
    **_: object,
) -> Any:
    order = _row_order(out[2])
    triangle, inverse, d_inverse, blocks = _ldl_parts(out)
    middle: Any = 0
    if g[0] is not None:
        l_cotangent = np.matmul(transpose(triangle), permute(g[0], order))
        middle = np.where(_is_in_triangle(blocks, lower), np.matmul(l_cotangent, transpose(d_inverse)), 0)
    if g[1] is not None:
        middle = middle + np.where(blocks, g[1], 0)
    if not np.ndim(middle):
        return 0 * a
    right = np.conjugate(inverse) if hermitian else inverse
    inverse_order = np.argsort(order, axis=-1)
    total = permute(permute(matmul_chain(transpose(inverse), middle, right), inverse_order), inverse_order, -1)
    return (
        fold_hermitian(total, not lower) if hermitian else (total + transpose(total)) * triangle_weights(a.shape[-1], not lower)
    )


def _ldl_tangent(
    t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], lower: bool = True, hermitian: bool = True, **_: object
) -> Any:
    order = _row_order(out[2])
    triangle, inverse, d_inverse, blocks = _ldl_parts(out)
    weighted = t * triangle_weights(a.shape[-1], not lower)
    full_tangent = mirror_triangle(t, not lower) if hermitian else weighted + transpose(weighted)
    full_tangent = permute(permute(full_tangent, order), order, -1)
    middle = matmul_chain(inverse, full_tangent, conj_transpose(inverse) if hermitian else transpose(inverse))
    l_change = np.matmul(np.where(_is_in_triangle(blocks, lower), middle, 0), d_inverse)
    return permute(np.matmul(triangle, l_change), np.argsort(order, axis=-1)), np.where(blocks, middle, 0), None


scipy_linalg_ldl_grad = general("scipy_linalg_ldl", _ldl).tangent(_ldl_tangent)

# ---------------------------------------------------------------------------------------------- polar

# The equation a = u (a^H a)^(1/2) determines u if a has at least as many rows as columns; otherwise a = (a a^H)^(1/2) u does.


def _pull_polar(gu: Any, u: NDArray[Any], a: NDArray[Any]) -> Any:
    """Return the cotangent of a, given that of the unitary factor. ``x = u^H du`` solves ``x p + p x = u^H da - da^H u``."""
    if a.shape[-2] < a.shape[-1]:
        return conj_transpose(_pull_polar(conj_transpose(gu), conj_transpose(u), conj_transpose(a)))
    p = np.matmul(conj_transpose(u), a)
    rotation = solve_sum_equation("polar", transpose(p), np.matmul(transpose(u), gu))
    total = np.matmul(np.conjugate(u), rotation - conj_transpose(rotation))
    if a.shape[-2] > a.shape[-1]:
        outside = gu - np.matmul(np.conjugate(u), np.matmul(transpose(u), gu))
        total = total + np.matmul(outside, transpose(np.linalg.inv(p)))
    return total


def _push_polar(t: NDArray[Any], u: NDArray[Any], a: NDArray[Any]) -> Any:
    if a.shape[-2] < a.shape[-1]:
        return conj_transpose(_push_polar(conj_transpose(t), conj_transpose(u), conj_transpose(a)))
    p = np.matmul(conj_transpose(u), a)
    projected = np.matmul(conj_transpose(u), t)
    tangent = np.matmul(u, solve_sum_equation("polar", p, projected - conj_transpose(projected)))
    if a.shape[-2] > a.shape[-1]:
        tangent = tangent + np.matmul(t - np.matmul(u, projected), np.linalg.inv(p))
    return tangent


def _polar(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], side: str = "right") -> Any:
    """Return the cotangent of a; that of ``p = u^H a``, or ``p = a u^H``, contributes to both factors."""
    u, total, gu = out[0], 0 * a, g[0]
    if g[1] is not None:
        hermitian = (g[1] + conj_transpose(g[1])) / 2
        if side == "right":
            total, from_p = np.matmul(np.conjugate(u), hermitian), np.conjugate(np.matmul(a, transpose(hermitian)))
        else:
            total, from_p = np.matmul(hermitian, np.conjugate(u)), np.conjugate(np.matmul(transpose(hermitian), a))
        gu = from_p if gu is None else gu + from_p
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
    """Return the cotangent of `a`. The scales are powers of two, hence piecewise constant."""
    scaling = out[1]
    return 0 * a if g[0] is None else matmul_chain(transpose(np.linalg.inv(scaling)), g[0], transpose(scaling))


scipy_linalg_matrix_balance_grad = general("scipy_linalg_matrix_balance", _balance).tangent(
    lambda t, out, a, **_: (matmul_chain(np.linalg.inv(out[1]), t, out[1]), 0 * out[1])
)
