"""Derivatives at eigenvalues, or singular values, that are equal up to rounding.

The vectors of equal values are one of many bases of the space that they span. A nearby matrix has another basis, arbitrarily
rotated, and distinct values. The cotangents of values and of vectors at one basis determine

* the derivative of a function of the values alone, if it is symmetric in all equal values (``w.sum()``),
* the derivative of a function of the vectors alone, if the basis does not matter (``v[:, :2] @ v[:, :2].T``),
* not that of a function of both (``v * f(w) @ v.T``): the part between the vectors of equal values is missing.

The second derivative of the first kind is of the third kind, unless the weights of the values are constants. A missing or
undefined part gives a warning.
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
    """Return which values are equal up to rounding, as a table of all pairs."""
    return evaluate_guarded("which values of a decomposition are equal", _equal, w)


def _equal(w: NDArray[Any]) -> Any:
    return np.abs(w[..., None, :] - w[..., :, None]) <= _rounding(w)[..., None]


def zero_values(w: object) -> Any:
    """Return which values are zero up to rounding."""
    return evaluate_guarded("which values of a decomposition are zero", _zero, w)


def _zero(w: NDArray[Any]) -> Any:
    return np.abs(w) <= _rounding(w)


def _equal_off_diagonal(w: Any) -> Any:
    """Return the pairs of different positions whose values are equal."""
    return equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)


def _zero_pairs(w: object) -> Any:
    """Return the pairs of different positions whose values are zero."""
    return _equal_off_diagonal(w) & zero_values(w)[..., None, :]


def check_independent(opname: str, v: object) -> None:
    """Warn if eigenvectors are nearly dependent, that is, the matrix is nearly defective."""
    if evaluate_guarded("whether eigenvectors are nearly dependent", _are_dependent, v):
        warn_user(
            f"a matrix that is nearly defective in the derivative of {opname}: its eigenvectors are nearly dependent, so the "
            "derivatives of eigenvalues and vectors are infinite, and those of functions of them are lost. Use a function that "
            "needs no decomposition (np.linalg.inv, solve, matrix_power, trace, det, scipy.linalg.expm)",
            DerivativeWarning,
        )


def _are_dependent(v: NDArray[Any]) -> bool:
    """Whether the matrix of eigenvectors is so ill-conditioned that derivatives have no correct digit."""
    if not v.size or not np.isfinite(v).all():
        return False
    with np.errstate(all="ignore"):
        condition = np.linalg.cond(v)
        return bool(np.any(condition * (condition * np.finfo(v.dtype).eps) > 0.1))


def _matters(change: NDArray[Any], where: NDArray[Any], of: NDArray[Any]) -> bool:
    """Whether a table of changes exceeds rounding somewhere; `of` is the array it was computed from."""
    size = np.max(np.abs(np.asarray(to_values(of))), initial=0)
    return bool(np.any(np.where(where, np.abs(np.asarray(to_values(change))), 0) > 1e3 * np.finfo(size.dtype).eps * size))


def _plus_conj_transpose(table: object, sign: int) -> Any:
    """Return a table plus or minus its conjugate transpose."""
    table = np.asarray(to_values(table))
    return table + sign * np.conjugate(np.swapaxes(table, -1, -2))


def _warn(opname: str, what: str) -> None:
    values = "singular values" if opname == "linalg_svd" else "eigenvalues"
    warn_user(
        f"equal {values} in the derivative of {opname}: {what}. Keep the {values} apart, or use a function that needs "
        "no decomposition (np.linalg.inv, solve, matrix_power, norm, det)",
        DerivativeWarning,
    )


_MISSING = "in functions of both values and vectors, the part between vectors of equal values is missing"


def check_cotangent(opname: str, w: Any, value_cotangent: object, turn: Any, against: Any = None) -> None:
    """Warn of cotangents that do not determine the derivative.

    Parameters
    ----------
    opname : str
        The decomposition.
    w : array_like
        Its values.
    value_cotangent : array_like or None
        The cotangent of the values.
    turn : array_like or None
        The product of the vectors and their cotangent; for singular vectors, the sum for both sides.
    against : array_like or None
        The difference for both sides.
    """
    where = _equal_off_diagonal(w)
    if not where.any():
        return
    if value_cotangent is not None and turn is not None:
        _warn(opname, _MISSING)
    elif value_cotangent is not None:
        weights = np.asarray(to_values(value_cotangent))
        if _matters(weights[..., None, :] - weights[..., :, None], where, weights):
            _warn(opname, "it depends on which of the equal values comes first, so it is one of many")
    elif turn is not None:
        changed = _matters(turn if opname == "linalg_eig" else _plus_conj_transpose(turn, -1), where, turn)
        if changed or (against is not None and _matters(_plus_conj_transpose(against, -1), _zero_pairs(w), against)):
            _warn(opname, "it depends on the basis chosen for their vectors, so it is infinite")


def check_rank(s: object, a: Any, value_cotangent: Any = None, moved: tuple[Any, ...] = ()) -> None:
    """Warn if a rectangular matrix has lost rank: the vectors of zero values change discontinuously.

    Parameters
    ----------
    s : array_like
        Singular values, with some vectors in use.
    a : array_like
        The matrix.
    value_cotangent : array_like or None
        The cotangent of the values.
    moved : tuple of array_like
        The change of the vectors towards vectors without a singular value, one column per value.
    """
    if a.shape[-2] == a.shape[-1]:
        return
    zero = zero_values(s)
    if not np.any(zero):
        return
    if value_cotangent is not None and _matters(value_cotangent, zero, value_cotangent):
        _warn_of_zeros("in functions of both values and vectors, the part beside vectors of zero is missing")
    elif any(_matters(part, zero[..., None, :], part) for part in moved):
        _warn_of_zeros("the vectors of zero are discontinuous, or are missing in functions of both values and vectors")


def _warn_of_zeros(what: str) -> None:
    warn_user(
        f"singular values of 0 in the derivative of linalg_svd of a matrix that is not square: {what}. Leave them out "
        "(u[:, :k] * s[:k] @ vh[:k]), or use a function that needs no decomposition (np.linalg.norm, det, solve)",
        DerivativeWarning,
    )


def check_tangent(opname: str, w: object, inner: object) -> None:
    """Warn of tangents that mix vectors of equal values: these separate along another basis."""
    where = _equal_off_diagonal(w)
    if not where.any():
        return
    for part in _value_and_tangents(inner):
        mixing = _plus_conj_transpose(part, 1) if opname == "linalg_svd" else part
        if _matters(mixing, where, part) or (opname == "linalg_svd" and _matters(part, _zero_pairs(w), part)):
            _warn(opname, _MISSING)
            return


def _value_and_tangents(x: Any) -> Iterator[Any]:
    """Yield the plain value, and those of its tangents in outer derivatives, which may mix vectors even if the value does not."""
    while getattr(x, "level", 0):
        tangent = x.derivative()
        if tangent is not None:
            yield from _value_and_tangents(tangent)
        x = x.primal
    yield to_values(x)


def diagonal_matrix(values: NDArray[Any], w: NDArray[Any], of: str) -> Any:
    """Return matrices with the cotangent of `w`, values by the decomposition `of`, on their diagonals."""
    return np.eye(w.shape[-1]) * values[..., None, :]


ops.register_operation(diagonal_matrix, "diagonal_matrix")


def on_diagonal(values: object, w: object, of: str) -> Any:
    """Compute `diagonal_matrix`, recorded so that its rule can check equal values."""
    equal_pairs(w)  # the rule depends only on which values are equal
    return bind(diagonal_matrix, (values, np.asarray(to_values(w))), {"of": of})


def _diagonal_matrix(g: NDArray[Any], out: NDArray[Any], values: NDArray[Any], w: NDArray[Any], of: str) -> Any:
    """Warn if the weights of equal values change: the derivative between them would change by an unknown amount."""
    if _matters(g if of == "linalg_eig" else _plus_conj_transpose(g, 1), _equal_off_diagonal(w), g):
        _warn(of, "in its own derivative, the part between vectors of equal values is missing")
    return np.einsum("...ii->...i", g)


diagonal_matrix_grad = linear("diagonal_matrix", _diagonal_matrix, None).not_batchable()
