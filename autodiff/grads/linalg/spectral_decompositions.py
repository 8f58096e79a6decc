"""Rules of eigenvalues and singular values, and their vectors.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), extended to complex matrices. If NumPy reads one triangle of a Hermitian matrix, the cotangent is in
that triangle. Eigenvalues that are equal up to rounding contribute nothing to each other's vectors; `repeated_eigenvalues`
explains when this is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array

from ...rules import Rule, general
from .matrix_inverses import (
    conj_transpose,
    diagonals,
    fold_hermitian,
    matmul_chain,
    mirror_triangle,
    reciprocal_or_zero,
    rectangular_diagonal,
    transpose,
)
from .repeated_eigenvalues import (
    check_cotangent,
    check_independent,
    check_rank,
    check_tangent,
    equal_pairs,
    on_diagonal,
    zero_values,
)


def inverse_gaps(w: Any) -> Any:
    """F_ij = 1 / (w_j - w_i), and 0 for values that are equal up to rounding."""
    gaps = w[..., None, :] - w[..., :, None]
    equal = equal_pairs(w)
    return np.where(equal, 0, 1 / np.where(equal, 1, gaps))


def batch_unless_equal(rule: Rule) -> Rule:
    """Declare that formulas process a batch as one more axis of a stack, unless values are equal.

    For equal values the formulas branch on the cotangent, so the batch is processed element by element.
    """

    def pull(
        position: int, g: NDArray[Any] | tuple[Any, ...], out: NDArray[Any] | tuple[Any, ...], a: object, **options: object
    ) -> Any:
        formula: Any = rule.formulas[0]
        return NotImplemented if _has_equal_values(out) else formula(g, out, a, **options)

    def push(tangents: list[Any], out: object, a: object, **options: object) -> Any:
        formula: Any = rule.tangents[0]
        return NotImplemented if _has_equal_values(out) else formula(tangents[0], out, a, **options)

    return rule.not_batchable().batched(pull, push)


def _has_equal_values(out: Any) -> bool:
    """Whether two of the values of a decomposition are equal; singular values are between the vectors."""
    w = out[-2] if isinstance(out, tuple) else out
    return bool(np.any(equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)))


# a = v diag(w) v^H


def _eigh(g: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    turn = None if gv is None else np.matmul(transpose(v), gv)
    check_cotangent("linalg_eigh", w, gw, turn)
    if turn is not None:
        middle = inverse_gaps(w) * turn
    if gw is not None:
        middle = middle + on_diagonal(gw, w, "linalg_eigh")
    return fold_hermitian(matmul_chain(np.conjugate(v), middle, transpose(v)), UPLO.upper() == "U")


def _eigh_tangent(t: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    w, v = out
    inner = matmul_chain(conj_transpose(v), mirror_triangle(t, UPLO.upper() == "U"), v)
    check_tangent("linalg_eigh", w, inner)
    return np.real(diagonals(inner)), np.matmul(v, inverse_gaps(w) * inner)


linalg_eigh_grad = batch_unless_equal(general("linalg_eigh", _eigh).tangent(_eigh_tangent))


def _eigvalsh(g: Any, out: object, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    return _eigh((g, None), np.linalg.eigh(a, UPLO), a, UPLO)


def _eigvalsh_tangent(t: Any, out: object, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    v = np.linalg.eigh(a, UPLO)[1]
    return np.real(diagonals(matmul_chain(conj_transpose(v), mirror_triangle(t, UPLO.upper() == "U"), v)))


linalg_eigvalsh_grad = batch_unless_equal(general("linalg_eigvalsh", _eigvalsh).tangent(_eigvalsh_tangent))

# a v = v diag(w). NumPy's vectors have length one, and their largest component is real.


def _largest_component(v: Any) -> Any:
    """Return one over the largest component of each vector, in its place, and zeros elsewhere."""
    if not v.size:
        return v
    size = np.abs(v)
    first = np.equal(np.arange(v.shape[-2])[:, None], np.argmax(size, axis=-2)[..., None, :])
    return np.where(first, 1 / np.where(first, v, 1), 0)


def eig(g: Any, out: Any, a: Any) -> Any:
    """Return the cotangent of `a` from those of eigenvalues and eigenvectors."""
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    turn: Any = None
    if gv is not None:
        along = np.sum(gv * v, axis=-2, keepdims=True)
        free = gv - np.real(along) * np.conjugate(v)
        if v.dtype.kind == "c":
            free = free - np.multiply(1j, np.imag(along)) * _largest_component(v)
        turn = np.matmul(transpose(v), free)
        middle = inverse_gaps(w) * turn
    check_cotangent("linalg_eig", w, gw, turn)
    check_independent("linalg_eig", v)
    if gw is not None:
        middle = middle + on_diagonal(gw, w, "linalg_eig")
    return np.linalg.solve(transpose(v), np.matmul(middle, transpose(v)))


def eig_tangent(t: Array, out: Any, a: Any) -> Any:
    """Return the tangents of eigenvalues and eigenvectors."""
    w, v = out
    check_independent("linalg_eig", v)
    inner = np.linalg.solve(v, np.matmul(t, v))
    check_tangent("linalg_eig", w, inner)
    moved = np.matmul(v, inverse_gaps(w) * inner)
    scale = np.real(np.sum(np.conjugate(v) * moved, axis=-2, keepdims=True))
    if v.dtype.kind == "c":
        turn = np.imag(np.sum(_largest_component(v) * moved, axis=-2, keepdims=True))
        scale = scale + np.multiply(1j, turn)
    return diagonals(inner), moved - v * scale


linalg_eig_grad = batch_unless_equal(general("linalg_eig", eig).tangent(eig_tangent))


def _eigvals_tangent(t: NDArray[Any], out: object, a: Any) -> Any:
    v = np.linalg.eig(a)[1]
    check_independent("linalg_eigvals", v)
    return diagonals(np.linalg.solve(v, np.matmul(t, v)))


linalg_eigvals_grad = batch_unless_equal(
    general("linalg_eigvals", lambda g, out, a: eig((g, None), np.linalg.eig(a), a)).tangent(_eigvals_tangent)
)

# a = u diag(s) vh


def _svd_parts(out: Any, a: Any, compute_uv: bool, hermitian: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Return u, s, v, s as a matrix of matching shape, and 1 / s."""
    u, s, vh = out if compute_uv else np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    return u, s, conj_transpose(vh), rectangular_diagonal(s, u.shape[-1], vh.shape[-2]), reciprocal_or_zero(s)


def _svd_gaps(s: Any, n: int) -> Any:
    """1 / (s_j^2 - s_i^2), for the n vectors of one side; 0 for those without a singular value."""
    s = np.matmul(np.eye(n, s.shape[-1]), s[..., None])[..., 0]
    return inverse_gaps(s) * reciprocal_or_zero(s[..., None, :] + s[..., :, None])


def _relative_rotations(s: Any, inner: Any, rows: int, columns: int) -> Any:
    """Return the rotations of u against v within equal singular values; unlike their common rotation they are determined."""
    k = s.shape[-1]
    inner = inner[..., :k, :k]
    among = equal_pairs(s) & ~np.eye(k, dtype=bool) & ~zero_values(s)[..., None, :]
    turns = np.where(among, (inner - conj_transpose(inner)) / 2, 0) * reciprocal_or_zero(s[..., None, :] + s[..., :, None])
    return matmul_chain(np.eye(rows, k), turns, np.eye(k, columns))


def svd(g: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the cotangent of `a` from those of u, s and vh."""
    gu, gs, gvh = g if compute_uv else (None, g, None)
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    total, middle, turn, k = 0 * a, 0 * matrix, 0, s.shape[-1]
    against: Any = None
    both: Any = None
    moved: list[Any] = []
    if gs is not None:
        middle = matmul_chain(np.eye(u.shape[-1], k), on_diagonal(gs, s, "linalg_svd"), np.eye(k, v.shape[-1]))
    if gu is not None:
        inner = np.matmul(transpose(u), gu)
        against = both = inner[..., :k, :k]
        middle = middle + np.matmul(_svd_gaps(s, u.shape[-1]) * (inner - conj_transpose(inner)), matrix)
        turn = turn + diagonals(inner[..., :k, :k])
        moved.append((inner - conj_transpose(inner))[..., k:, :k])
        if u.shape[-1] < u.shape[-2]:
            moved.append(gu - np.matmul(np.conjugate(u), inner))
            total = total + np.matmul(moved[-1] * inverse[..., None, :], transpose(v))
    if gvh is not None:
        gv = conj_transpose(gvh)
        inner = np.matmul(transpose(v), gv)
        mine = inner[..., :k, :k]
        against, both = (-mine, mine) if gu is None else (against - mine, both + mine)
        middle = middle + np.matmul(matrix, _svd_gaps(s, v.shape[-1]) * (inner - conj_transpose(inner)))
        turn = turn - diagonals(inner[..., :k, :k])
        moved.append((inner - conj_transpose(inner))[..., k:, :k])
        if v.shape[-1] < v.shape[-2]:
            moved.append(gv - np.matmul(np.conjugate(v), inner))
            total = total + np.matmul(np.conjugate(u), conj_transpose(moved[-1] * inverse[..., None, :]))
    check_cotangent("linalg_svd", s, gs, both, against)
    if moved:
        check_rank(s, a, gs, tuple(moved))
    if against is not None:
        middle = middle + _relative_rotations(s, against, *middle.shape[-2:])
    if a.dtype.kind == "c" and (gu is not None or gvh is not None):
        middle = middle + rectangular_diagonal(np.multiply(0.5j, np.imag(turn)) * inverse, *matrix.shape[-2:])
    total = total + matmul_chain(np.conjugate(u), middle, transpose(v))
    return fold_hermitian(total) if hermitian else total


def svd_tangent(t: Any, out: Any, a: Any, full_matrices: bool = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the tangents of u, s and vh."""
    t = mirror_triangle(t) if hermitian else t
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    inner = matmul_chain(conj_transpose(u), t, v)
    square = inner[..., : s.shape[-1], : s.shape[-1]]
    diagonal = diagonals(square)
    if not compute_uv:
        return np.real(diagonal)
    left, right = np.matmul(inner, transpose(matrix)), np.matmul(transpose(matrix), inner)
    check_tangent("linalg_svd", s, square)
    tall = u.shape[-2] > s.shape[-1]
    beside = np.matmul(t, v)[..., : s.shape[-1]] if tall else np.matmul(conj_transpose(t), u)[..., : s.shape[-1]]
    check_rank(
        s, a, None, (beside - np.matmul((u if tall else v)[..., : s.shape[-1]], square if tall else conj_transpose(square)),)
    )
    left = _svd_gaps(s, u.shape[-1]) * (left + conj_transpose(left)) + _relative_rotations(s, square, *left.shape[-2:])
    right = _svd_gaps(s, v.shape[-1]) * (right + conj_transpose(right)) - _relative_rotations(s, square, *right.shape[-2:])
    if a.dtype.kind == "c":
        turn = np.multiply(0.5j, np.imag(diagonal)) * inverse
        left = left + rectangular_diagonal(turn, *left.shape[-2:])
        right = right - rectangular_diagonal(turn, *right.shape[-2:])
    du, dv = np.matmul(u, left), np.matmul(v, right)
    if u.shape[-1] < u.shape[-2]:
        du = du + (np.matmul(t, v) - np.matmul(u, inner)) * inverse[..., None, :]
    if v.shape[-1] < v.shape[-2]:
        dv = dv + (np.matmul(conj_transpose(t), u) - np.matmul(v, conj_transpose(inner))) * inverse[..., None, :]
    return du, np.real(diagonal), conj_transpose(dv)


linalg_svd_grad = batch_unless_equal(general("linalg_svd", svd).tangent(svd_tangent))
