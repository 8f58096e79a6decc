"""Derivatives at eigenvalues, or singular values, that are equal up to rounding.

The vectors of equal values are one of many bases of the space that they span. A nearby matrix has distinct values, and an
arbitrarily rotated basis. The cotangents of values and of vectors at one basis determine

1. the derivative of a function of the values alone, if it is symmetric in all equal values (``w.sum()``),
2. the derivative of a function of the vectors alone, if the basis does not matter (``v[:, :2] @ v[:, :2].T``),
3. not that of a function of both (``v * f(w) @ v.T``): the part between the vectors of equal values is missing.

The derivative of a derivative of the first kind is of the third kind, unless the weights of the values are constants. A missing
or undefined part gives a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.frames import warn_user
from compgraph.graph import to_values
from compgraph.guards import evaluate_guarded

from ...rules import DerivativeWarning, linear


def _rounding(w: NDArray[Any]) -> Any:
    """Return the rounding error of values."""
    return np.max(np.abs(w), axis=-1, keepdims=True, initial=0) * (w.shape[-1] * np.finfo(w.dtype).eps)


def equal_pairs(w: object) -> Any:
    """Return the mask of all pairs of values that are equal up to rounding."""
    return evaluate_guarded("which values of a decomposition are equal", _equal, w)


def _equal(w: NDArray[Any]) -> Any:
    return np.abs(w[..., None, :] - w[..., :, None]) <= _rounding(w)[..., None]


def zero_values(w: object) -> Any:
    """Return which values are zero up to rounding."""
    return evaluate_guarded("which values of a decomposition are zero", _zero, w)


def _zero(w: NDArray[Any]) -> Any:
    return np.abs(w) <= _rounding(w)


def _equal_off_diagonal(w: Any) -> Any:
    """Return the mask of the pairs of different positions whose values are equal."""
    return equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)


def has_equal_values(w: Any) -> bool:
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
    size = np.max(np.abs(np.asarray(to_values(source))), initial=0)
    return bool(np.any(np.where(where, np.abs(np.asarray(to_values(change))), 0) > 1e3 * np.finfo(size.dtype).eps * size))


def _plus_conj_transpose(matrix: object, sign: int) -> Any:
    """Return a matrix plus or minus its conjugate transpose."""
    matrix = np.asarray(to_values(matrix))
    return matrix + sign * np.conjugate(np.swapaxes(matrix, -1, -2))


def _warn(opname: str, what: str) -> None:
    values = "singular values" if opname == "linalg_svd" else "eigenvalues"
    warn_user(
        f"equal {values} in the derivative of {opname}: {what}. Keep the {values} apart, or use a function that needs "
        "no decomposition (np.linalg.inv, solve, matrix_power, norm, det)",
        DerivativeWarning,
    )


_MISSING = "in functions of both values and vectors, the part between vectors of equal values is missing"


def check_cotangent(
    opname: str, w: Any, value_cotangent: object, rotation_cotangent: Any, relative_cotangent: Any = None
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


def check_rank(s: object, a: Any, value_cotangent: Any = None, outward_changes: tuple[Any, ...] = ()) -> None:
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
        The changes of vectors in the directions of vectors without a singular value, one column per value.
    """
    if a.shape[-2] == a.shape[-1]:
        return
    zero = zero_values(s)
    if not np.any(zero):
        return
    if value_cotangent is not None and _exceeds_rounding(value_cotangent, zero, value_cotangent):
        _warn_of_zeros("in functions of both values and vectors, the part next to the vectors of zero is missing")
    elif any(_exceeds_rounding(change, zero[..., None, :], change) for change in outward_changes):
        _warn_of_zeros("the vectors of zero are discontinuous, or are missing in functions of both values and vectors")


def _warn_of_zeros(what: str) -> None:
    warn_user(
        f"singular values of 0 in the derivative of linalg_svd of a matrix that is not square: {what}. Leave them out "
        "(u[:, :k] * s[:k] @ vh[:k]), or use a function that needs no decomposition (np.linalg.norm, det, solve)",
        DerivativeWarning,
    )


def check_tangent(opname: str, w: object, inner: object) -> None:
    """Warn if the tangents mix vectors of equal values, because these then separate along a different basis."""
    where = _equal_off_diagonal(w)
    if not where.any():
        return
    for value in _value_and_tangents(inner):
        mixing = _plus_conj_transpose(value, 1) if opname == "linalg_svd" else value
        if _exceeds_rounding(mixing, where, value) or (
            opname == "linalg_svd" and _exceeds_rounding(value, _zero_pairs(w), value)
        ):
            _warn(opname, _MISSING)
            return


def _value_and_tangents(x: Any) -> Iterator[Any]:
    """Yield the plain value and those of its tangents in outer derivatives: they may mix vectors although the value does not."""
    while getattr(x, "level", 0):
        tangent = x.derivative()
        if tangent is not None:
            yield from _value_and_tangents(tangent)
        x = x.primal
    yield to_values(x)


def diagonal_matrix(values: NDArray[Any], w: NDArray[Any], of: str) -> Any:
    """Return matrices with `values`, the cotangent of `w`, on their diagonals. `w` are values by the decomposition `of`."""
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
