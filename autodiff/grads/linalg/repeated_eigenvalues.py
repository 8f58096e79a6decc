"""What can be known of a derivative where eigenvalues, or singular values, are equal within rounding.

The vectors of equal values are one basis of many for the space they span; the next matrix has another, turned by any
amount, and values that part from each other there. From the adjoints of values and of vectors at one basis

* what is made of the values alone has its derivative if all equal values count alike in it (``w.sum()``);
* what is made of the vectors alone has it if the basis does not matter (``v[:, :2] @ v[:, :2].T``);
* what is made of both (``v * f(w) @ v.T``) has a derivative that these adjoints do not tell: the part between the
  vectors of equal values is missing.

The second derivative of the first kind is of the third, except where the weights of the values are constants. All
that is missing, or is not defined, is announced by a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.guards import evaluate_guarded

from ...rules import linear


def _rounding(w: Any) -> Any:
    """What rounding makes of values."""
    return np.max(np.abs(w), axis=-1, keepdims=True, initial=0) * (w.shape[-1] * np.finfo(w.dtype).eps)


def equal_pairs(w: Any) -> Any:
    """Which values are equal within rounding: a table of all pairs."""
    return evaluate_guarded("which values of a decomposition are equal", _equal, w)


def _equal(w: Any) -> Any:
    return np.abs(w[..., None, :] - w[..., :, None]) <= _rounding(w)[..., None]


def zero_values(w: Any) -> Any:
    """Which values are zero within rounding."""
    return evaluate_guarded("which values of a decomposition are zero", _zero, w)


def _zero(w: Any) -> Any:
    return np.abs(w) <= _rounding(w)


def _others(w: Any) -> Any:
    """The pairs of different values that are equal."""
    return equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)


def _among_zeros(w: Any) -> Any:
    """The pairs of different values that are zero."""
    return _others(w) & zero_values(w)[..., None, :]


def check_independent(opname: str, v: Any) -> None:
    """Warn if eigenvectors are nearly dependent: the matrix is defective, or nearly so."""
    if evaluate_guarded("whether eigenvectors are nearly dependent", _are_dependent, v):
        warnings.warn(
            f"a matrix that is nearly defective in the derivative of {opname}: its eigenvectors are nearly dependent, so the "
            "derivatives of eigenvalues and vectors are infinite, and those of functions of them are lost. Use a function that "
            "needs no decomposition (np.linalg.inv, solve, matrix_power, trace, det, scipy.linalg.expm)",
            RuntimeWarning,
            stacklevel=4,
        )


def _are_dependent(v: Any) -> bool:
    """Whether the matrix of eigenvectors is so ill-conditioned that derivatives have no correct digit."""
    if not v.size or not np.isfinite(v).all():
        return False
    with np.errstate(all="ignore"):
        condition = np.linalg.cond(v)
        return bool(np.any(condition * (condition * np.finfo(v.dtype).eps) > 0.1))


def _matters(change: Any, where: Any, of: Any) -> bool:
    """Whether a table of changes has more than rounding somewhere; `of` is what it was computed from."""
    size = np.max(np.abs(np.asarray(to_values(of))), initial=0)
    return bool(np.any(np.where(where, np.abs(np.asarray(to_values(change))), 0) > 1e3 * np.finfo(size.dtype).eps * size))


def _both_ways(table: Any, sign: int) -> Any:
    """A table and the conjugate of its transpose."""
    table = np.asarray(to_values(table))
    return table + sign * np.conjugate(np.swapaxes(table, -1, -2))


def _warn(opname: str, what: str) -> None:
    values = "singular values" if opname == "linalg_svd" else "eigenvalues"
    warnings.warn(
        f"equal {values} in the derivative of {opname}: {what}. Keep the {values} apart, or use a function that needs "
        "no decomposition (np.linalg.inv, solve, matrix_power, norm, det)",
        RuntimeWarning,
        stacklevel=4,
    )


_MISSING = "for what is made of both values and vectors, the part between vectors of equal values is missing"


def check_back(opname: str, w: Any, of_values: Any, turn: Any, against: Any = None) -> None:
    """Warn of adjoints that do not tell the derivative.

    Parameters
    ----------
    opname : str
        The decomposition.
    w : array_like
        Its values.
    of_values : array_like or None
        The adjoint of the values.
    turn : array_like or None
        The adjoint of the vectors, by the vectors; of singular vectors, the sum for both sides.
    against : array_like or None
        The difference for both sides.
    """
    where = _others(w)
    if not where.any():
        return
    if of_values is not None and turn is not None:
        _warn(opname, _MISSING)
    elif of_values is not None:
        weights = np.asarray(to_values(of_values))
        if _matters(weights[..., None, :] - weights[..., :, None], where, weights):
            _warn(opname, "it depends on which of the equal values comes first, so it is one of many")
    elif turn is not None:
        changed = _matters(turn if opname == "linalg_eig" else _both_ways(turn, -1), where, turn)
        if changed or (against is not None and _matters(_both_ways(against, -1), _among_zeros(w), against)):
            _warn(opname, "it depends on the basis chosen for their vectors, so it is infinite")


def check_lost(s: Any, a: Any, of_values: Any = None, moved: tuple[Any, ...] = ()) -> None:
    """Warn where a matrix that is not square has lost rank: vectors of zero turn into what is beside them at once.

    Parameters
    ----------
    s : array_like
        Singular values, of which some vectors are used.
    a : array_like
        The matrix.
    of_values : array_like or None
        The adjoint of the values.
    moved : tuple of array_like
        How the vectors move, or would, into what belongs to no singular value; those of one value in each column.
    """
    if a.shape[-2] == a.shape[-1]:
        return
    zero = zero_values(s)
    if not np.any(zero):
        return
    if of_values is not None and _matters(of_values, zero, of_values):
        _warn_of_zeros("for what is made of both values and vectors, the part beside vectors of zero is missing")
    elif any(_matters(part, zero[..., None, :], part) for part in moved):
        _warn_of_zeros("the vectors of zero move at once, or are missing in what is made of both values and vectors")


def _warn_of_zeros(what: str) -> None:
    warnings.warn(
        f"singular values of 0 in the derivative of linalg_svd of a matrix that is not square: {what}. Leave them out "
        "(u[:, :k] * s[:k] @ vh[:k]), or use a function that needs no decomposition (np.linalg.norm, det, solve)",
        RuntimeWarning,
        stacklevel=4,
    )


def check_along(opname: str, w: Any, inner: Any) -> None:
    """Warn of tangents that mix vectors of equal values: they part in another basis than the one at hand."""
    where = _others(w)
    if not where.any():
        return
    for part in _with_tangents(inner):
        mixing = _both_ways(part, 1) if opname == "linalg_svd" else part
        if _matters(mixing, where, part) or (opname == "linalg_svd" and _matters(part, _among_zeros(w), part)):
            _warn(opname, _MISSING)
            return


def _with_tangents(x: Any) -> Iterator[Any]:
    """The numbers of a value, and those of its tangents in outer derivatives: they too may mix, where the value does not."""
    while getattr(x, "level", 0):
        tangent = x.derivative()
        if tangent is not None:
            yield from _with_tangents(tangent)
        x = x.primal
    yield to_values(x)


def diagonal_matrix(values: Any, w: Any, of: str) -> Any:
    """Matrices with the adjoint of `w`, values by the decomposition `of`, on their diagonals."""
    return np.eye(w.shape[-1]) * values[..., None, :]


ops.enter(diagonal_matrix, "diagonal_matrix")


def on_diagonal(values: Any, w: Any, of: str) -> Any:
    """`diagonal_matrix`, recorded, so that its rule sees what is asked of vectors of equal values."""
    equal_pairs(w)  # which are equal is all that its rule asks
    return bind(diagonal_matrix, (values, np.asarray(to_values(w))), {"of": of})


def _diagonal_matrix(g: Any, out: Any, values: Any, w: Any, of: str) -> Any:
    """If the weights of equal values change at all, those between them do, by an amount that is not known."""
    if _matters(g if of == "linalg_eig" else _both_ways(g, 1), _others(w), g):
        _warn(of, "in its own derivative, the part between vectors of equal values is missing")
    return np.einsum("...ii->...i", g)


diagonal_matrix_grad = linear("diagonal_matrix", _diagonal_matrix, None).one_by_one()
