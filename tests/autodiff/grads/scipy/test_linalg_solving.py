"""Derivatives of ``scipy.linalg``: linear systems, matrix equations and inverses."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

from tests.support.arguments import complexes, positive, real
from tests.support.cases.linear_algebra import complex_definite, complex_regular, definite, regular
from tests.support.scipy_checks import Rows, functions
from tests.support.scipy_matrices import BANDS, LOWER, UPPER, as_complex

COLUMN, ROW = np.array([3.0, 0.5, -0.4, 0.2]), np.array([9.0, -0.3, 0.6, 0.1])


def symmetric(x: Any) -> Any:
    """A symmetric, or Hermitian, positive matrix of any square one."""
    matrix = x @ np.conjugate(x.T) + np.eye(len(x))
    return (matrix + np.conjugate(matrix.T)) / 2


def solutions(function: Any, make: Any = regular, right: Any = real, options: Any = None) -> list[tuple[Any, ...]]:
    """A solver on the shapes of matrices and right-hand sides."""
    shapes: list[Any] = [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 2)), ((2, 2), (3, 2, 1))]
    return [(f"{a} {b} {options}", partial(function, **(options or {})), make(*a), right(*b, seed=1)) for a, b in shapes]


STRUCTURES = ["general", "diagonal", "tridiagonal", "banded", "upper triangular", "lower triangular", "sym", "her", "pos"]

CASES: dict[str, list[tuple[Any, ...]]] = {
    "solve": [
        *solutions(sl.solve),
        *solutions(sl.solve, complex_regular, complexes),
        *[(f"{s}, {lower}", partial(sl.solve, assume_a=s, lower=lower), definite(4, 4), real(4, 2, seed=1))
          for s in STRUCTURES for lower in (False, True)],
        *[(f"complex {s}, {lower}", partial(sl.solve, assume_a=s, lower=lower), complex_definite(3, 3), complexes(3, seed=1))
          for s in STRUCTURES for lower in (False, True)],
        *[(f"transposed {s}", partial(sl.solve, assume_a=s, transposed=True), definite(4, 4), real(4, 2, seed=1))
          for s in ("general", "banded", "upper triangular", "sym", "pos")],
        ("transposed", partial(sl.solve, transposed=True), regular(3, 3), real(3, seed=1)),
        ("transposed stack", partial(sl.solve, transposed=True), regular(2, 3, 3), real(3, seed=1)),
        ("a number for a matrix", sl.solve, np.array([[2.0]]), real(3, seed=1)),
        ("a number, columns", sl.solve, np.array([[2.0]]), real(3, 2, seed=1)),
        ("no columns", sl.solve, regular(2, 2), real(2, 0)),
        ("a triangle as it is", lambda a, b: sl.solve(np.tril(a), b), regular(3, 3), real(3, seed=1)),
        ("a symmetric matrix as it is", lambda a, b: sl.solve(a + a.T, b), regular(3, 3), real(3, seed=1)),
        ("a diagonal matrix as it is", lambda a, b: sl.solve(np.diag(a), b), positive(3), real(3, seed=1)),
        ("a plain matrix", lambda b: sl.solve([[1.0, 2.0], [3.0, 5.0]], b), real(2)),
        ("a plain right-hand side", lambda a: sl.solve(a, [1, 2]), regular(2, 2)),
        ("a list with nodes", lambda a: sl.solve([[a[0], 1.0], [a[1], a[2]]], [a[0], 2.0]), np.array([1.0, -2.0, 3.0])),
    ],
    "solve_triangular": [
        *solutions(sl.solve_triangular),
        *solutions(sl.solve_triangular, complex_regular, complexes, {"trans": 2, "lower": True}),
        *[(f"{o}", partial(sl.solve_triangular, trans=o[0], lower=o[1], unit_diagonal=o[2]), regular(3, 3), real(3, 2, seed=1))
          for o in ((0, True, False), ("T", False, True), (1, True, True), ("C", True, False), ("N", False, True))],
        *[(f"complex {t}", partial(sl.solve_triangular, trans=t), complex_regular(3, 3), complexes(3, seed=1)) for t in "NTC"],
        ("stack, transposed", partial(sl.solve_triangular, trans="T"), regular(2, 3, 3), real(2, 3, 1, seed=1)),
    ],
    "inv": [
        *[(f"{shape}", sl.inv, regular(*shape)) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0))],
        ("complex", sl.inv, complex_regular(3, 3)),
        *[(f"{s}, {lower}", partial(sl.inv, assume_a=s, lower=lower), definite(3, 3))
          for s in ("gen", "upper triangular", "lower triangular", "sym", "pos") for lower in (False, True)],
        *[(f"complex {s}, {lower}", partial(sl.inv, assume_a=s, lower=lower), complex_definite(3, 3))
          for s in ("sym", "her", "pos") for lower in (False, True)],
    ],
    "det": [
        *[(f"{shape}", sl.det, regular(*shape)) for shape in ((3, 3), (2, 2, 2), (1, 1))],
        ("complex", sl.det, complex_regular(3, 3)),
        ("singular", sl.det, np.array([[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [0.5, 1.0, 3.0]])),
    ],
    "solve_banded": [
        ("a vector", partial(sl.solve_banded, (2, 1)), BANDS, real(5, seed=1)),
        ("columns", partial(sl.solve_banded, (2, 1)), BANDS, real(5, 2, seed=1)),
        ("complex", partial(sl.solve_banded, (2, 1)), as_complex(BANDS), complexes(5, 2, seed=1)),
        ("tridiagonal", partial(sl.solve_banded, [1, 1]), BANDS[:3], real(5, seed=1)),
        ("triangular", partial(sl.solve_banded, (0, 1)), BANDS[:2], real(5, seed=1)),
        ("diagonal", partial(sl.solve_banded, (0, 0)), BANDS[1:2], real(5, seed=1)),
        ("stack", partial(sl.solve_banded, (1, 1)), np.stack([BANDS[:3], 2 * BANDS[:3]]), real(2, 5, 1, seed=1)),
        ("one by one", partial(sl.solve_banded, (0, 0)), np.array([[2.0]]), real(1, seed=1)),
        ("a plain matrix", lambda b: sl.solve_banded((2, 1), BANDS, b), real(5)),
        ("by name", lambda m, b: sl.solve_banded(l_and_u=(2, 1), ab=m, b=b), BANDS, real(5)),
    ],
    "solveh_banded": [
        ("upper", sl.solveh_banded, UPPER, real(5, seed=1)),
        ("lower", partial(sl.solveh_banded, lower=True), LOWER, real(5, 2, seed=1)),
        ("complex", sl.solveh_banded, as_complex(UPPER), complexes(5, 2, seed=1)),
        ("complex lower", partial(sl.solveh_banded, lower=True), as_complex(LOWER), complexes(5, seed=1)),
        ("tridiagonal", sl.solveh_banded, UPPER[1:], real(5, seed=1)),
        ("complex tridiagonal", sl.solveh_banded, as_complex(UPPER[1:]), complexes(5, seed=1)),
        ("complex tridiagonal lower", partial(sl.solveh_banded, lower=True), as_complex(LOWER[:2]), complexes(5, seed=1)),
    ],
    "solve_toeplitz": [
        ("a column", sl.solve_toeplitz, COLUMN, real(4, seed=1)),
        ("both", lambda c, r, b: sl.solve_toeplitz((c, r), b), COLUMN, ROW, real(4, seed=1)),
        ("columns", lambda c, r, b: sl.solve_toeplitz((c, r), b), COLUMN, ROW, real(4, 2, seed=1)),
        ("complex", lambda c, b: sl.solve_toeplitz(c, b), as_complex(COLUMN), complexes(4, seed=1)),
        ("complex both", lambda c, r, b: sl.solve_toeplitz((c, r), b), as_complex(COLUMN), as_complex(ROW), complexes(4, 2)),
        ("stack", sl.solve_toeplitz, np.stack([COLUMN, 2 * COLUMN]), real(2, 4, 1, seed=1)),
    ],
    "matmul_toeplitz": [
        ("a column", sl.matmul_toeplitz, COLUMN, real(4, seed=1)),
        ("not square", lambda c, r, x: sl.matmul_toeplitz((c, r), x), COLUMN, ROW[:3], real(3, 2, seed=1)),
        ("complex", lambda c, r, x: sl.matmul_toeplitz((c, r), x), as_complex(COLUMN), ROW, real(4, seed=1)),
    ],
    "solve_circulant": [
        ("a vector", sl.solve_circulant, COLUMN, real(4, seed=1)),
        ("columns", sl.solve_circulant, COLUMN, real(4, 2, seed=1)),
        ("complex", sl.solve_circulant, as_complex(COLUMN), complexes(4, seed=1)),
        ("axes", partial(sl.solve_circulant, caxis=0, baxis=-1, outaxis=-1), COLUMN[:, None] + np.zeros(2), real(2, 4, seed=1)),
        ("singular", lambda b: sl.solve_circulant([1.0, -1.0, 1.0, -1.0], b, singular="lstsq"), real(4)),
    ],
    "pinv": [
        *[(f"{shape}", sl.pinv, regular(*shape)) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2))],
        ("complex", sl.pinv, complex_regular(3, 2)),
        ("of a low rank", lambda a, b: sl.pinv(np.outer(a, b)), real(3), real(3, seed=1)),
        ("cut off", partial(sl.pinv, rtol=0.4), np.diag([3.0, 2.0, 0.5]) + 0.05 * real(3, 3)),
        ("cut off, absolutely", partial(sl.pinv, atol=1.0), np.diag([3.0, 2.0, 0.5]) + 0.05 * real(3, 3)),
        ("with its rank", lambda a: sl.pinv(a, return_rank=True)[0], regular(3, 2)),
    ],
    "pinvh": [
        *[(f"lower={lower}", partial(sl.pinvh, lower=lower), definite(3, 3)) for lower in (False, True)],
        *[(f"complex, lower={lower}", partial(sl.pinvh, lower=lower), complex_definite(3, 3)) for lower in (False, True)],
        ("cut off", partial(sl.pinvh, rtol=0.4), np.diag([3.0, -2.0, 0.5]) + 0.05 * real(3, 3)),
    ],
    "lstsq": [
        *[(f"{shape}", lambda a, b: sl.lstsq(a, b)[0], regular(*shape), real(shape[0], 2, seed=1))
          for shape in ((3, 3), (4, 2), (2, 4))],
        ("residues", lambda a, b: sl.lstsq(a, b)[:2], regular(4, 2), real(4, 2, seed=1)),
        ("residue of a vector", lambda a, b: sl.lstsq(a, b)[1], regular(4, 2), real(4, seed=1)),
        ("singular values", lambda a, b: (sl.lstsq(a, b)[0], sl.lstsq(a, b)[3]), regular(4, 2), real(4, seed=1)),
        ("complex", lambda a, b: sl.lstsq(a, b)[:2], complex_regular(4, 2), complexes(4, seed=1)),
        ("gelsy", lambda a, b: sl.lstsq(a, b, lapack_driver="gelsy")[0], regular(4, 2), real(4, seed=1)),
        ("gelss, cond", lambda a, b: sl.lstsq(a, b, cond=1e-3, lapack_driver="gelss")[0], regular(4, 2), real(4, seed=1)),
        ("of a low rank", lambda a, b: sl.lstsq(np.outer(a, a), b)[0], real(3), real(3, seed=1)),
    ],
    "solve_sylvester": [
        ("real", sl.solve_sylvester, regular(3, 3), regular(2, 2, seed=3), real(3, 2)),
        ("complex", sl.solve_sylvester, complex_regular(2, 2), complex_regular(3, 3, seed=3), complexes(2, 3)),
        ("stack", sl.solve_sylvester, regular(2, 2, 2), regular(2, 2, seed=3), real(2, 2, 2)),
    ],
    "solve_continuous_lyapunov": [
        ("real", sl.solve_continuous_lyapunov, regular(3, 3), real(3, 3, seed=1)),
        ("complex", sl.solve_continuous_lyapunov, complex_regular(3, 3), complexes(3, 3, seed=1)),
        ("by its old name", sl.solve_lyapunov, regular(3, 3), real(3, 3, seed=1)),
    ],
    "solve_discrete_lyapunov": [
        *[(f"{m}", partial(sl.solve_discrete_lyapunov, method=m), 0.3 * regular(3, 3), real(3, 3, seed=1))
          for m in (None, "direct", "bilinear")],
        ("complex", sl.solve_discrete_lyapunov, 0.2 * complex_regular(3, 3), complexes(3, 3, seed=1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(CASES))
def test_linear_solvers_derivatives(rows: Rows) -> None:
    rows.check()


def _riccati(solver: Any, a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None) -> Any:
    return solver(a, b, symmetric(q), symmetric(r), e, s)


RICCATI: dict[str, list[tuple[Any, ...]]] = {
    solver.__name__: [
        ("real", partial(_riccati, solver), regular(3, 3), real(3, 2), real(3, 3, seed=1), real(2, 2, seed=2)),
        ("complex", partial(_riccati, solver), complex_regular(2, 2), complexes(2, 1, seed=8), complex_regular(2, 2, seed=1),
         real(1, 1)),
        ("generalised", partial(_riccati, solver), regular(3, 3), real(3, 2), real(3, 3, seed=1), real(2, 2, seed=2),
         regular(3, 3, seed=4), 0.1 * real(3, 2, seed=5)),
        ("cross terms", lambda a, b, q, r, s, solver=solver: _riccati(solver, a, b, q, r, None, s), regular(3, 3), real(3, 2),
         real(3, 3, seed=1), real(2, 2, seed=2), 0.1 * real(3, 2, seed=5)),
        ("complex generalised", partial(_riccati, solver), complex_regular(2, 2), complexes(2, 1, seed=8),
         complex_regular(2, 2, seed=1), real(1, 1), complex_regular(2, 2, seed=4), 0.05 * complexes(2, 1, seed=5)),
    ]
    for solver in (sl.solve_continuous_are, sl.solve_discrete_are)
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(RICCATI))
def test_riccati_solvers_derivatives(rows: Rows) -> None:
    rows.check(tolerance=2e-5)


def _half_complex(name: str, *arguments: Any) -> tuple[Any, ...]:
    return (name, getattr(sl, name), *arguments)


MIXED: dict[str, list[tuple[Any, ...]]] = {
    "one is complex": [
        _half_complex("solve", regular(3, 3), complexes(3)),
        _half_complex("solve", complex_regular(3, 3), real(3, 2)),
        _half_complex("solve_triangular", regular(3, 3), complexes(3)),
        _half_complex("solve_triangular", complex_regular(3, 3), real(3, 2)),
        _half_complex("solveh_banded", UPPER, complexes(5)),
        _half_complex("solveh_banded", as_complex(UPPER), real(5)),
        _half_complex("solve_toeplitz", COLUMN, complexes(4)),
        _half_complex("solve_toeplitz", as_complex(COLUMN), real(4)),
        _half_complex("matmul_toeplitz", as_complex(COLUMN), real(4)),
        _half_complex("solve_circulant", COLUMN, complexes(4)),
        _half_complex("solve_sylvester", regular(3, 3), complex_regular(2, 2, seed=3), real(3, 2)),
        _half_complex("solve_continuous_lyapunov", regular(3, 3), complexes(3, 3)),
        _half_complex("solve_continuous_lyapunov", complex_regular(3, 3), real(3, 3)),
        _half_complex("solve_discrete_lyapunov", 0.3 * regular(3, 3), complexes(3, 3)),
        _half_complex("expm_frechet", regular(2, 2), complexes(2, 2)),
        _half_complex("expm_frechet", 0.5 * complex_regular(2, 2), real(2, 2)),
        _half_complex("eigvalsh", definite(3, 3), complex_definite(3, 3, seed=3)),
        _half_complex("eigvalsh", complex_definite(3, 3), definite(3, 3, seed=3)),
        _half_complex("toeplitz", real(3), complexes(2)),
        _half_complex("block_diag", real(2, 1), complexes(2)),
        ("lstsq", lambda a, b: sl.lstsq(a, b)[0], regular(4, 2), complexes(4)),
        ("solve_banded", lambda a, b: sl.solve_banded((2, 1), a, b), BANDS, complexes(5)),
        ("lu_solve", lambda a, b: sl.lu_solve(sl.lu_factor(a), b), regular(3, 3), complexes(3)),
        ("cho_solve", lambda a, b: sl.cho_solve(sl.cho_factor(a), b), complex_definite(3, 3), real(3)),
        ("cho_solve_banded", lambda a, b: sl.cho_solve_banded((a, False), b), as_complex(UPPER), real(5)),
    ]
}


@pytest.mark.parametrize("rows", functions(MIXED))
def test_linear_solvers_mixed_real_and_complex_arguments(rows: Rows) -> None:
    rows.check()
