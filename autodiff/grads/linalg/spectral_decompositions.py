"""Rules of eigenvalues and singular values, and their vectors.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), extended to complex matrices. If NumPy reads one triangle of a Hermitian matrix, the cotangent is in
that triangle. Values that are equal up to rounding contribute nothing to each other's vectors.

The vectors of equal values are one of many bases of the space that they span. A nearby matrix has distinct values, and an
arbitrarily rotated basis. The cotangents of values and of vectors at one basis determine the derivative of

1. a function of the values alone, if it is symmetric in all equal values (``w.sum()``),
2. a function of the vectors alone, if the basis does not matter (``v[:, :2] @ v[:, :2].T``).

They do not determine the derivative of

3. a function of both (``v * f(w) @ v.T``): the part between the vectors of equal values is missing.

The derivative of a function of kind 1 is a function of kind 3, unless the cotangents of the values are constants. A missing or
undefined part gives a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.frames import warn_user
from compgraph.graph import to_values
from compgraph.guards import evaluate_guarded

from ...rules import DerivativeWarning, Rule, general, linear
from .inverses_and_determinants import (
    conj_transpose,
    diagonals,
    fold_hermitian,
    matmul_chain,
    mirror_triangle,
    reciprocal_or_zero,
    rectangular_diagonal,
    transpose,
)


def _rounding(w: NDArray[Any]) -> Any:
    """Return the rounding error of values."""
    return np.max(np.abs(w), axis=-1, keepdims=True, initial=0) * (w.shape[-1] * np.finfo(w.dtype).eps)


def equal_pairs(w: object) -> Any:
    """Return the mask of all pairs of values that are equal up to rounding."""
    return evaluate_guarded("which values of a decomposition are equal", _equal, w)


def _equal(w: NDArray[Any]) -> Any:
    return np.abs(w[..., None, :] - w[..., :, None]) <= _rounding(w)[..., None]


def zero_values(w: object) -> Any:
    """Return the mask of values that are zero up to rounding."""
    return evaluate_guarded("which values of a decomposition are zero", _zero, w)


def _zero(w: NDArray[Any]) -> Any:
    return np.abs(w) <= _rounding(w)


def _equal_off_diagonal(w: Any) -> Any:
    """Return the mask of the pairs of different positions whose values are equal."""
    return equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)


def has_equal_values(w: NDArray[Any]) -> bool:
    """Whether two of the values are equal up to rounding."""
    return bool(np.any(_equal_off_diagonal(w)))


def _zero_pairs(w: object) -> Any:
    """Return the mask of the pairs of different positions whose values are zero."""
    return _equal_off_diagonal(w) & zero_values(w)[..., None, :]


def check_independent(opname: str, v: object) -> None:
    """Warn if eigenvectors are nearly dependent, that is, the matrix is nearly defective."""
    if evaluate_guarded("whether eigenvectors are nearly dependent", _are_dependent, v):
        warn_user(
            f"a matrix is nearly defective in the derivative of {opname}: its eigenvectors are nearly dependent, so derivatives "
            "of eigenvalues and vectors are infinite, and those of functions of them are inaccurate. Use a function that needs "
            "no decomposition (np.linalg.inv, solve, matrix_power, trace, det, scipy.linalg.expm)",
            DerivativeWarning,
        )


def _are_dependent(v: NDArray[Any]) -> bool:
    """Whether the matrix of eigenvectors is so ill-conditioned that derivatives have no correct digit."""
    if not v.size or not np.isfinite(v).all():
        return False
    with np.errstate(all="ignore"):
        condition = np.linalg.cond(v)
        return bool(np.any(condition * (condition * np.finfo(v.dtype).eps) > 0.1))


def _exceeds_rounding(change: NDArray[Any], where: NDArray[Any], source: NDArray[Any]) -> bool:
    """Whether an element of `change`, selected by a mask, exceeds the rounding error of `source`, from which it was computed."""
    magnitude = np.max(np.abs(np.asarray(to_values(source))), initial=0)
    return bool(
        np.any(np.where(where, np.abs(np.asarray(to_values(change))), 0) > 1e3 * np.finfo(magnitude.dtype).eps * magnitude)
    )


def _plus_conj_transpose(matrix: object, sign: int) -> Any:
    """Return a matrix plus or minus its conjugate transpose."""
    matrix = np.asarray(to_values(matrix))
    return matrix + sign * np.conjugate(np.swapaxes(matrix, -1, -2))


def _warn(opname: str, problem: str) -> None:
    values = "singular values" if opname == "linalg_svd" else "eigenvalues"
    warn_user(
        f"equal {values} in the derivative of {opname}: {problem}. Keep the {values} apart, or use a function that needs "
        "no decomposition (np.linalg.inv, solve, matrix_power, norm, det)",
        DerivativeWarning,
    )


_MISSING = "in functions of both values and vectors, the part between vectors of equal values is missing"


def check_cotangent(
    opname: str, w: NDArray[Any], value_cotangent: object, rotation_cotangent: Any, relative_cotangent: Any = None
) -> None:
    """Warn if the cotangents do not determine the derivative.

    Parameters
    ----------
    opname : str
        The decomposition.
    w : array_like
        Its values.
    value_cotangent : array_like or None
        The cotangent of the values.
    rotation_cotangent : array_like or None
        The product of the vectors and their cotangent, which is the cotangent of a rotation of the vectors; for singular
        vectors, of a common rotation of both sides.
    relative_cotangent : array_like or None
        The cotangent of a rotation of the left singular vectors against the right ones.
    """
    where = _equal_off_diagonal(w)
    if not where.any():
        return
    if value_cotangent is not None and rotation_cotangent is not None:
        _warn(opname, _MISSING)
    elif value_cotangent is not None:
        weights = np.asarray(to_values(value_cotangent))
        if _exceeds_rounding(weights[..., None, :] - weights[..., :, None], where, weights):
            _warn(opname, "it depends on the order of the equal values, so it is not unique")
    elif rotation_cotangent is not None:
        change = rotation_cotangent if opname == "linalg_eig" else _plus_conj_transpose(rotation_cotangent, -1)
        depends_on_basis = _exceeds_rounding(change, where, rotation_cotangent)
        if not depends_on_basis and relative_cotangent is not None:
            relative_change = _plus_conj_transpose(relative_cotangent, -1)
            depends_on_basis = _exceeds_rounding(relative_change, _zero_pairs(w), relative_cotangent)
        if depends_on_basis:
            _warn(opname, "it depends on the basis chosen for their vectors, so it is infinite")


def check_rank(s: object, a: NDArray[Any], value_cotangent: Any = None, outward_changes: tuple[Any, ...] = ()) -> None:
    """Warn if a rectangular matrix is rank-deficient: the vectors of zero singular values are discontinuous.

    Parameters
    ----------
    s : array_like
        The singular values.
    a : array_like
        The matrix.
    value_cotangent : array_like or None
        The cotangent of the values.
    outward_changes : tuple of array_like
        The components of the changes of vectors along vectors without a singular value, one column per value.
    """
    if a.shape[-2] == a.shape[-1]:
        return
    zero = zero_values(s)
    if not np.any(zero):
        return
    if value_cotangent is not None and _exceeds_rounding(value_cotangent, zero, value_cotangent):
        _warn_of_zeros("in functions of both values and vectors, the part that belongs to vectors of zero values is missing")
    elif any(_exceeds_rounding(change, zero[..., None, :], change) for change in outward_changes):
        _warn_of_zeros("the vectors of zero values are discontinuous, and functions of both values and vectors lack a part")


def _warn_of_zeros(problem: str) -> None:
    warn_user(
        f"singular values of 0 in the derivative of linalg_svd of a matrix that is not square: {problem}. Leave them out "
        "(u[:, :k] * s[:k] @ vh[:k]), or use a function that needs no decomposition (np.linalg.norm, det, solve)",
        DerivativeWarning,
    )


def check_tangent(opname: str, w: object, basis_tangent: object) -> None:
    """Warn if the tangents mix vectors of equal values: the perturbed matrix then has a different basis of eigenvectors.

    `basis_tangent` is the tangent of the matrix in the basis of its vectors.
    """
    where = _equal_off_diagonal(w)
    if not where.any():
        return
    for value in _value_and_tangents(basis_tangent):
        mixing = _plus_conj_transpose(value, 1) if opname == "linalg_svd" else value
        if _exceeds_rounding(mixing, where, value) or (
            opname == "linalg_svd" and _exceeds_rounding(value, _zero_pairs(w), value)
        ):
            _warn(opname, _MISSING)
            return


def _value_and_tangents(x: Any) -> Iterator[Any]:
    """Yield the values of `x` and of its tangents in outer derivatives, which may mix vectors although `x` does not."""
    while getattr(x, "level", 0):
        tangent = x.derivative()
        if tangent is not None:
            yield from _value_and_tangents(tangent)
        x = x.primal
    yield to_values(x)


def diagonal_matrix(values: NDArray[Any], w: NDArray[Any], of: str) -> Any:
    """Return matrices with `values` on their diagonals: the cotangent of `w`, the values of the decomposition `of`."""
    return np.eye(w.shape[-1]) * values[..., None, :]


ops.register_operation(diagonal_matrix, "diagonal_matrix", kind="sequential")


def on_diagonal(values: object, w: object, of: str) -> Any:
    """Compute `diagonal_matrix`. It is recorded, so that its rule can check equal values."""
    equal_pairs(w)  # adds a guard: the rule depends only on which values are equal
    return bind(diagonal_matrix, (values, np.asarray(to_values(w))), {"of": of})


def _diagonal_matrix(g: NDArray[Any], out: NDArray[Any], values: NDArray[Any], w: NDArray[Any], of: str) -> Any:
    """Return the diagonals; warn if the cotangents of equal values change, because the part between them is then unknown."""
    if _exceeds_rounding(g if of == "linalg_eig" else _plus_conj_transpose(g, 1), _equal_off_diagonal(w), g):
        _warn(of, "in its own derivative, the part between vectors of equal values is missing")
    return np.einsum("...ii->...i", g)


diagonal_matrix_grad = linear("diagonal_matrix", _diagonal_matrix, None).not_batchable()


def inverse_gaps(w: NDArray[Any]) -> Any:
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


def _eigh(g: Any, out: Any, a: NDArray[Any], UPLO: Any = "L") -> Any:  # noqa: N803
    (gw, gv), (w, v) = g, out
    basis_cotangent: Any = 0
    rotation_cotangent = None if gv is None else np.matmul(transpose(v), gv)
    check_cotangent("linalg_eigh", w, gw, rotation_cotangent)
    if rotation_cotangent is not None:
        basis_cotangent = inverse_gaps(w) * rotation_cotangent
    if gw is not None:
        basis_cotangent = basis_cotangent + on_diagonal(gw, w, "linalg_eigh")
    return fold_hermitian(matmul_chain(np.conjugate(v), basis_cotangent, transpose(v)), UPLO.upper() == "U")


def _eigh_tangent(t: NDArray[Any], out: Any, a: NDArray[Any], UPLO: Any = "L") -> Any:  # noqa: N803
    w, v = out
    basis_tangent = matmul_chain(conj_transpose(v), mirror_triangle(t, UPLO.upper() == "U"), v)
    check_tangent("linalg_eigh", w, basis_tangent)
    return np.real(diagonals(basis_tangent)), np.matmul(v, inverse_gaps(w) * basis_tangent)


linalg_eigh_grad = batch_unless_equal(general("linalg_eigh", _eigh).tangent(_eigh_tangent))


def _eigvalsh(g: Any, out: object, a: NDArray[Any], UPLO: Any = "L") -> Any:  # noqa: N803
    return _eigh((g, None), np.linalg.eigh(a, UPLO), a, UPLO)


def _eigvalsh_tangent(t: NDArray[Any], out: object, a: NDArray[Any], UPLO: Any = "L") -> Any:  # noqa: N803
    v = np.linalg.eigh(a, UPLO)[1]
    return np.real(diagonals(matmul_chain(conj_transpose(v), mirror_triangle(t, UPLO.upper() == "U"), v)))


linalg_eigvalsh_grad = batch_unless_equal(general("linalg_eigvalsh", _eigvalsh).tangent(_eigvalsh_tangent))

# a v = v diag(w). NumPy's vectors have length one, and their largest component is real.


def _inverse_of_largest(v: NDArray[Any]) -> Any:
    """Return zeros with the reciprocal of the largest component of each vector at its position."""
    if not v.size:
        return v
    magnitudes = np.abs(v)
    is_largest = np.equal(np.arange(v.shape[-2])[:, None], np.argmax(magnitudes, axis=-2)[..., None, :])
    return np.where(is_largest, 1 / np.where(is_largest, v, 1), 0)


def eig_cotangent(g: Any, out: Any, a: Any) -> Any:
    """Return the cotangent of `a` from those of eigenvalues and eigenvectors."""
    (gw, gv), (w, v) = g, out
    basis_cotangent: Any = 0
    rotation_cotangent: Any = None
    if gv is not None:
        radial = np.sum(gv * v, axis=-2, keepdims=True)
        tangential = gv - np.real(radial) * np.conjugate(v)
        if v.dtype.kind == "c":
            tangential = tangential - np.multiply(1j, np.imag(radial)) * _inverse_of_largest(v)
        rotation_cotangent = np.matmul(transpose(v), tangential)
        basis_cotangent = inverse_gaps(w) * rotation_cotangent
    check_cotangent("linalg_eig", w, gw, rotation_cotangent)
    check_independent("linalg_eig", v)
    if gw is not None:
        basis_cotangent = basis_cotangent + on_diagonal(gw, w, "linalg_eig")
    return np.linalg.solve(transpose(v), np.matmul(basis_cotangent, transpose(v)))


def eig_tangent(t: Array, out: Any, a: Any) -> Any:
    """Return the tangents of eigenvalues and eigenvectors."""
    w, v = out
    check_independent("linalg_eig", v)
    basis_tangent = np.linalg.solve(v, np.matmul(t, v))
    check_tangent("linalg_eig", w, basis_tangent)
    vector_tangent = np.matmul(v, inverse_gaps(w) * basis_tangent)
    scale = np.real(np.sum(np.conjugate(v) * vector_tangent, axis=-2, keepdims=True))
    if v.dtype.kind == "c":
        phase = np.imag(np.sum(_inverse_of_largest(v) * vector_tangent, axis=-2, keepdims=True))
        scale = scale + np.multiply(1j, phase)
    return diagonals(basis_tangent), vector_tangent - v * scale


linalg_eig_grad = batch_unless_equal(general("linalg_eig", eig_cotangent).tangent(eig_tangent))


def _eigvals_tangent(t: NDArray[Any], out: object, a: NDArray[Any]) -> Any:
    v = np.linalg.eig(a)[1]
    check_independent("linalg_eigvals", v)
    return diagonals(np.linalg.solve(v, np.matmul(t, v)))


linalg_eigvals_grad = batch_unless_equal(
    general("linalg_eigvals", lambda g, out, a: eig_cotangent((g, None), np.linalg.eig(a), a)).tangent(_eigvals_tangent)
)

# a = u diag(s) vh


def _svd_parts(out: Any, a: NDArray[Any], compute_uv: bool, hermitian: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Return u, s, v, the matrix with s on its diagonal, and 1 / s."""
    u, s, vh = out if compute_uv else np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    return u, s, conj_transpose(vh), rectangular_diagonal(s, u.shape[-1], vh.shape[-2]), reciprocal_or_zero(s)


def _svd_gaps(s: NDArray[Any], n: int) -> Any:
    """Compute ``1 / (s_j^2 - s_i^2)`` for the n vectors of one side; vectors without a singular value have 0."""
    s = np.matmul(np.eye(n, s.shape[-1]), s[..., None])[..., 0]
    return inverse_gaps(s) * reciprocal_or_zero(s[..., None, :] + s[..., :, None])


def _relative_rotations(s: NDArray[Any], basis_tangent: Any, rows: int, columns: int) -> Any:
    """Return the rotations of u against v within equal nonzero singular values. Unlike common rotations, they are unique."""
    k = s.shape[-1]
    basis_tangent = basis_tangent[..., :k, :k]
    is_equal = equal_pairs(s) & ~np.eye(k, dtype=bool) & ~zero_values(s)[..., None, :]
    rotations = np.where(is_equal, (basis_tangent - conj_transpose(basis_tangent)) / 2, 0) * reciprocal_or_zero(
        s[..., None, :] + s[..., :, None]
    )
    return matmul_chain(np.eye(rows, k), rotations, np.eye(k, columns))


def svd_cotangent(g: Any, out: Any, a: Any, full_matrices: object = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the cotangent of `a` from those of u, s and vh."""
    gu, gs, gvh = g if compute_uv else (None, g, None)
    u, s, v, diagonal_s, reciprocals = _svd_parts(out, a, compute_uv, hermitian)
    total, basis_cotangent, phase_cotangent, k = 0 * a, 0 * diagonal_s, 0, s.shape[-1]
    relative_cotangent: Any = None
    common_cotangent: Any = None
    outward_changes: list[Any] = []
    if gs is not None:
        basis_cotangent = matmul_chain(np.eye(u.shape[-1], k), on_diagonal(gs, s, "linalg_svd"), np.eye(k, v.shape[-1]))
    if gu is not None:
        rotation_cotangent = np.matmul(transpose(u), gu)
        relative_cotangent = common_cotangent = rotation_cotangent[..., :k, :k]
        skew_part = rotation_cotangent - conj_transpose(rotation_cotangent)
        basis_cotangent = basis_cotangent + np.matmul(_svd_gaps(s, u.shape[-1]) * skew_part, diagonal_s)
        phase_cotangent = phase_cotangent + diagonals(rotation_cotangent[..., :k, :k])
        outward_changes.append(skew_part[..., k:, :k])
        if u.shape[-1] < u.shape[-2]:
            outward_changes.append(gu - np.matmul(np.conjugate(u), rotation_cotangent))
            total = total + np.matmul(outward_changes[-1] * reciprocals[..., None, :], transpose(v))
    if gvh is not None:
        gv = conj_transpose(gvh)
        rotation_cotangent = np.matmul(transpose(v), gv)
        v_cotangent = rotation_cotangent[..., :k, :k]
        relative_cotangent = -v_cotangent if gu is None else relative_cotangent - v_cotangent
        common_cotangent = v_cotangent if gu is None else common_cotangent + v_cotangent
        skew_part = rotation_cotangent - conj_transpose(rotation_cotangent)
        basis_cotangent = basis_cotangent + np.matmul(diagonal_s, _svd_gaps(s, v.shape[-1]) * skew_part)
        phase_cotangent = phase_cotangent - diagonals(rotation_cotangent[..., :k, :k])
        outward_changes.append(skew_part[..., k:, :k])
        if v.shape[-1] < v.shape[-2]:
            outward_changes.append(gv - np.matmul(np.conjugate(v), rotation_cotangent))
            total = total + np.matmul(np.conjugate(u), conj_transpose(outward_changes[-1] * reciprocals[..., None, :]))
    check_cotangent("linalg_svd", s, gs, common_cotangent, relative_cotangent)
    if outward_changes:
        check_rank(s, a, gs, tuple(outward_changes))
    if relative_cotangent is not None:
        basis_cotangent = basis_cotangent + _relative_rotations(s, relative_cotangent, *basis_cotangent.shape[-2:])
    if a.dtype.kind == "c" and (gu is not None or gvh is not None):  # the phases of u against those of v
        basis_cotangent = basis_cotangent + rectangular_diagonal(
            np.multiply(0.5j, np.imag(phase_cotangent)) * reciprocals, *diagonal_s.shape[-2:]
        )
    total = total + matmul_chain(np.conjugate(u), basis_cotangent, transpose(v))
    return fold_hermitian(total) if hermitian else total


def svd_tangent(t: Any, out: Any, a: Any, full_matrices: bool = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """Return the tangents of u, s and vh."""
    t = mirror_triangle(t) if hermitian else t
    u, s, v, diagonal_s, reciprocals = _svd_parts(out, a, compute_uv, hermitian)
    basis_tangent = matmul_chain(conj_transpose(u), t, v)
    square = basis_tangent[..., : s.shape[-1], : s.shape[-1]]
    diagonal = diagonals(square)
    if not compute_uv:
        return np.real(diagonal)
    left, right = np.matmul(basis_tangent, transpose(diagonal_s)), np.matmul(transpose(diagonal_s), basis_tangent)
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
        phase = np.multiply(0.5j, np.imag(diagonal)) * reciprocals
        left = left + rectangular_diagonal(phase, *left.shape[-2:])
        right = right - rectangular_diagonal(phase, *right.shape[-2:])
    du, dv = np.matmul(u, left), np.matmul(v, right)
    if u.shape[-1] < u.shape[-2]:
        du = du + (np.matmul(t, v) - np.matmul(u, basis_tangent)) * reciprocals[..., None, :]
    if v.shape[-1] < v.shape[-2]:
        dv = dv + (np.matmul(conj_transpose(t), u) - np.matmul(v, conj_transpose(basis_tangent))) * reciprocals[..., None, :]
    return du, np.real(diagonal), conj_transpose(dv)


linalg_svd_grad = batch_unless_equal(general("linalg_svd", svd_cotangent).tangent(svd_tangent))
