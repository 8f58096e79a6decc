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
    has_equal_values,
    on_diagonal,
    zero_values,
)


def inverse_gaps(w: Any) -> Any:
    """Compute ``F_ij = 1 / (w_j - w_i)``, and 0 for values that are equal up to rounding."""
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
        return NotImplemented if has_equal_values(_values_of(out)) else formula(g, out, a, **options)

    def push(tangents: list[Any], out: object, a: object, **options: object) -> Any:
        formula: Any = rule.tangents[0]
        return NotImplemented if has_equal_values(_values_of(out)) else formula(tangents[0], out, a, **options)

    return rule.not_batchable().batched(pull, push)


def _values_of(out: Any) -> Any:
    """Return the values of a decomposition: (values, vectors), (vectors, values, vectors), or the values alone."""
    return out[-2] if isinstance(out, tuple) else out


# a = v diag(w) v^H


def _eigh(g: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    rotation_cotangent = None if gv is None else np.matmul(transpose(v), gv)
    check_cotangent("linalg_eigh", w, gw, rotation_cotangent)
    if rotation_cotangent is not None:
        middle = inverse_gaps(w) * rotation_cotangent
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


def _inverse_of_largest(v: Any) -> Any:
    """Return one over the largest component of each vector at its position, and zeros elsewhere."""
    if not v.size:
        return v
    size = np.abs(v)
    is_largest = np.equal(np.arange(v.shape[-2])[:, None], np.argmax(size, axis=-2)[..., None, :])
    return np.where(is_largest, 1 / np.where(is_largest, v, 1), 0)


def eig_cotangent(g: Any, out: Any, a: Any) -> Any:
    """Return the cotangent of `a` from those of eigenvalues and eigenvectors."""
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    rotation_cotangent: Any = None
    if gv is not None:
        radial = np.sum(gv * v, axis=-2, keepdims=True)
        tangential = gv - np.real(radial) * np.conjugate(v)
        if v.dtype.kind == "c":
            tangential = tangential - np.multiply(1j, np.imag(radial)) * _inverse_of_largest(v)
        rotation_cotangent = np.matmul(transpose(v), tangential)
        middle = inverse_gaps(w) * rotation_cotangent
    check_cotangent("linalg_eig", w, gw, rotation_cotangent)
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
    vector_tangent = np.matmul(v, inverse_gaps(w) * inner)
    scale = np.real(np.sum(np.conjugate(v) * vector_tangent, axis=-2, keepdims=True))
    if v.dtype.kind == "c":
        phase = np.imag(np.sum(_inverse_of_largest(v) * vector_tangent, axis=-2, keepdims=True))
        scale = scale + np.multiply(1j, phase)
    return diagonals(inner), vector_tangent - v * scale


linalg_eig_grad = batch_unless_equal(general("linalg_eig", eig_cotangent).tangent(eig_tangent))


def _eigvals_tangent(t: NDArray[Any], out: object, a: Any) -> Any:
    v = np.linalg.eig(a)[1]
    check_independent("linalg_eigvals", v)
    return diagonals(np.linalg.solve(v, np.matmul(t, v)))


linalg_eigvals_grad = batch_unless_equal(
    general("linalg_eigvals", lambda g, out, a: eig_cotangent((g, None), np.linalg.eig(a), a)).tangent(_eigvals_tangent)
)

# a = u diag(s) vh


def _svd_parts(out: Any, a: Any, compute_uv: bool, hermitian: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Return u, s, v, s as a matrix of matching shape, and 1 / s."""
    u, s, vh = out if compute_uv else np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    return u, s, conj_transpose(vh), rectangular_diagonal(s, u.shape[-1], vh.shape[-2]), reciprocal_or_zero(s)


def _svd_gaps(s: Any, n: int) -> Any:
    """Compute ``1 / (s_j^2 - s_i^2)`` for the n vectors of one side, whose singular value is 0 if they have none."""
    s = np.matmul(np.eye(n, s.shape[-1]), s[..., None])[..., 0]
    return inverse_gaps(s) * reciprocal_or_zero(s[..., None, :] + s[..., :, None])


def _relative_rotations(s: Any, inner: Any, rows: int, columns: int) -> Any:
    """Return the rotations of u against v within equal singular values, which are unique, unlike their common rotation."""
    k = s.shape[-1]
    inner = inner[..., :k, :k]
    is_equal = equal_pairs(s) & ~np.eye(k, dtype=bool) & ~zero_values(s)[..., None, :]
    rotations = np.where(is_equal, (inner - conj_transpose(inner)) / 2, 0) * reciprocal_or_zero(s[..., None, :] + s[..., :, None])
    return matmul_chain(np.eye(rows, k), rotations, np.eye(k, columns))


def svd_cotangent(g: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the cotangent of `a` from those of u, s and vh."""
    gu, gs, gvh = g if compute_uv else (None, g, None)
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    total, middle, phase_cotangent, k = 0 * a, 0 * matrix, 0, s.shape[-1]
    relative_cotangent: Any = None
    common_cotangent: Any = None
    outward_changes: list[Any] = []
    if gs is not None:
        middle = matmul_chain(np.eye(u.shape[-1], k), on_diagonal(gs, s, "linalg_svd"), np.eye(k, v.shape[-1]))
    if gu is not None:
        inner = np.matmul(transpose(u), gu)
        relative_cotangent = common_cotangent = inner[..., :k, :k]
        middle = middle + np.matmul(_svd_gaps(s, u.shape[-1]) * (inner - conj_transpose(inner)), matrix)
        phase_cotangent = phase_cotangent + diagonals(inner[..., :k, :k])
        outward_changes.append((inner - conj_transpose(inner))[..., k:, :k])
        if u.shape[-1] < u.shape[-2]:
            outward_changes.append(gu - np.matmul(np.conjugate(u), inner))
            total = total + np.matmul(outward_changes[-1] * inverse[..., None, :], transpose(v))
    if gvh is not None:
        gv = conj_transpose(gvh)
        inner = np.matmul(transpose(v), gv)
        v_cotangent = inner[..., :k, :k]
        relative_cotangent = -v_cotangent if gu is None else relative_cotangent - v_cotangent
        common_cotangent = v_cotangent if gu is None else common_cotangent + v_cotangent
        middle = middle + np.matmul(matrix, _svd_gaps(s, v.shape[-1]) * (inner - conj_transpose(inner)))
        phase_cotangent = phase_cotangent - diagonals(inner[..., :k, :k])
        outward_changes.append((inner - conj_transpose(inner))[..., k:, :k])
        if v.shape[-1] < v.shape[-2]:
            outward_changes.append(gv - np.matmul(np.conjugate(v), inner))
            total = total + np.matmul(np.conjugate(u), conj_transpose(outward_changes[-1] * inverse[..., None, :]))
    check_cotangent("linalg_svd", s, gs, common_cotangent, relative_cotangent)
    if outward_changes:
        check_rank(s, a, gs, tuple(outward_changes))
    if relative_cotangent is not None:
        middle = middle + _relative_rotations(s, relative_cotangent, *middle.shape[-2:])
    if a.dtype.kind == "c" and (gu is not None or gvh is not None):
        middle = middle + rectangular_diagonal(np.multiply(0.5j, np.imag(phase_cotangent)) * inverse, *matrix.shape[-2:])
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
    k = s.shape[-1]
    if u.shape[-2] > k:
        outward_change = np.matmul(t, v)[..., :k] - np.matmul(u[..., :k], square)
    else:
        outward_change = np.matmul(conj_transpose(t), u)[..., :k] - np.matmul(v[..., :k], conj_transpose(square))
    check_rank(s, a, None, (outward_change,))
    left = _svd_gaps(s, u.shape[-1]) * (left + conj_transpose(left)) + _relative_rotations(s, square, *left.shape[-2:])
    right = _svd_gaps(s, v.shape[-1]) * (right + conj_transpose(right)) - _relative_rotations(s, square, *right.shape[-2:])
    if a.dtype.kind == "c":
        phase = np.multiply(0.5j, np.imag(diagonal)) * inverse
        left = left + rectangular_diagonal(phase, *left.shape[-2:])
        right = right - rectangular_diagonal(phase, *right.shape[-2:])
    du, dv = np.matmul(u, left), np.matmul(v, right)
    if u.shape[-1] < u.shape[-2]:
        du = du + (np.matmul(t, v) - np.matmul(u, inner)) * inverse[..., None, :]
    if v.shape[-1] < v.shape[-2]:
        dv = dv + (np.matmul(conj_transpose(t), u) - np.matmul(v, conj_transpose(inner))) * inverse[..., None, :]
    return du, np.real(diagonal), conj_transpose(dv)


linalg_svd_grad = batch_unless_equal(general("linalg_svd", svd_cotangent).tangent(svd_tangent))
