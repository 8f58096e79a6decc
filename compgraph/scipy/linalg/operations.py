"""Operations of SciPy's whose arguments or results are no plain arrays, as functions of arrays to arrays, which are recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ... import ops
from ...bind import bind
from ...graph import as_operands
from ..entering import opname


def _enter(function: Any, name: str) -> None:
    ops.enter(function, opname("scipy.linalg", name))


def cholesky_in_place(a: Any, lower: bool, check_finite: bool) -> Any:
    """A Cholesky factor in its triangle, and in the other what was there."""
    return scipy.linalg.cho_factor(a, lower=lower, check_finite=check_finite)[0]


def banded_solution(ab: Any, b: Any, l_and_u: tuple[int, int], check_finite: bool) -> Any:
    """The solution of a system whose matrix is given by its diagonals."""
    return scipy.linalg.solve_banded(l_and_u, ab, b, check_finite=check_finite)


def toeplitz_solution(c: Any, r: Any, b: Any, check_finite: bool) -> Any:
    """The solution of a system with a matrix of constant diagonals, of first column `c` and first row `r`."""
    return scipy.linalg.solve_toeplitz((c, r), b, check_finite=check_finite)


def lu_by_rows(a: Any, check_finite: bool) -> Any:
    """The order of the rows, L and U."""
    rows, lower, upper = scipy.linalg.lu(a, check_finite=check_finite, p_indices=True)
    return np.asarray(rows), lower, upper


def ranked_pinv(a: Any, atol: Any, rtol: Any, check_finite: bool) -> Any:
    """The pseudo-inverse and the rank."""
    inverse, rank = scipy.linalg.pinv(a, atol=atol, rtol=rtol, return_rank=True, check_finite=check_finite)
    return inverse, np.asarray(rank)[()]


def ranked_pinvh(a: Any, atol: Any, rtol: Any, lower: bool, check_finite: bool) -> Any:
    """The pseudo-inverse of a Hermitian matrix and the rank."""
    inverse, rank = scipy.linalg.pinvh(a, atol=atol, rtol=rtol, lower=lower, return_rank=True, check_finite=check_finite)
    return inverse, np.asarray(rank)[()]


def norm(a: Any, **options: Any) -> Any:
    """``scipy.linalg.norm``; a Python number of BLAS's as one of NumPy's that widens an array no more than that would."""
    return np.asarray(scipy.linalg.norm(a, **options), dtype=a.real.dtype if a.dtype.kind in "fc" else None)[()]


def least_squares(a: Any, b: Any, cond: Any, check_finite: bool, lapack_driver: Any) -> Any:
    """The solution, the residues, the rank and, if the driver finds them, the singular values."""
    x, residues, rank, s = scipy.linalg.lstsq(a, b, cond=cond, check_finite=check_finite, lapack_driver=lapack_driver)
    found = x, np.asarray(residues), np.asarray(rank)[()]
    return found if s is None else (*found, s)


_enter(cholesky_in_place, "cho_factor")
_enter(banded_solution, "solve_banded")
_enter(toeplitz_solution, "solve_toeplitz")
_enter(lu_by_rows, "lu")
_enter(ranked_pinv, "pinv")
_enter(ranked_pinvh, "pinvh")
_enter(norm, "norm")
_enter(least_squares, "lstsq")


def recorded(function: Any, *operands: Any, **options: Any) -> Any:
    """What an operation gives, as a node where a node is among the operands."""
    return bind(function, as_operands(operands), options)
