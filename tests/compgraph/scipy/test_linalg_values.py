"""Replacements of functions of ``scipy.linalg`` give SciPy's own values, shapes, dtypes and errors."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import compgraph as cg
from autodiff.reverse import gradients
from compgraph.graph import to_values
from compgraph.scipy import policy_of, register_imported
from compgraph.scipy.own_code import run_own_code
from tests.support.cases.linear_algebra import definite
from tests.support.failures import Failures

MATRIX, COUNTS, VECTOR = definite(3, 3), np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]]), np.array([1.0, 2.0, 3.5])
NUMBERS, STACK, NARROW = np.array([1, 2, 3]), np.stack([definite(3, 3), 2 * definite(3, 3)]), definite(3, 3).astype(np.float32)
PIVOTS = np.array([0, 2, 2])

CALLS: dict[str, list[tuple[Any, ...]]] = {
    "bandwidth": [(COUNTS,), (MATRIX,)],
    "block_diag": [(MATRIX, NUMBERS, 3), (COUNTS, COUNTS), ([], MATRIX)],
    "cho_factor": [(MATRIX,), (COUNTS,), (MATRIX, True)],
    "cho_solve": [((MATRIX, True), VECTOR), ((COUNTS, False), NUMBERS), ((MATRIX, False), np.ones((3, 2)))],
    "cho_solve_banded": [((MATRIX[:2] + 3, True), VECTOR), ((MATRIX[:2] + 3, False), VECTOR)],
    "circulant": [(VECTOR,), (NUMBERS,), (MATRIX,), (3,)],
    "companion": [(VECTOR,), (NUMBERS,), (MATRIX,), ([1.0],), ([0.0, 1.0],)],
    "convolution_matrix": [(VECTOR, 2), (NUMBERS, 4, "same"), (MATRIX, 2, "valid"), (NUMBERS, 0), (VECTOR, 2, "none")],
    "coshm": [(MATRIX,), (COUNTS,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "cosm": [(MATRIX,), (COUNTS,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "diagsvd": [(VECTOR, 3, 4), (NUMBERS, 5, 3), (NUMBERS, 3, 3), (NUMBERS, 2, 2)],
    "fiedler": [(VECTOR,), (NUMBERS,), (2,), (MATRIX,)],
    "fiedler_companion": [(VECTOR,), (NUMBERS,), (np.arange(1, 8.0),), ([3, 4, 5, 6],), (MATRIX,), ([0.0, 1.0, 2.0],)],
    "hankel": [(VECTOR,), (NUMBERS, NUMBERS), (NUMBERS, VECTOR)],
    "ishermitian": [(COUNTS,), (MATRIX,)],
    "issymmetric": [(COUNTS,), (MATRIX,)],
    "khatri_rao": [(MATRIX, COUNTS), (COUNTS, COUNTS[:2]), (MATRIX, MATRIX[:, :2])],
    "leslie": [(VECTOR, VECTOR[:2]), (NUMBERS, NUMBERS[:2]), (VECTOR, VECTOR), (VECTOR[:1], [])],
    "lstsq": [(MATRIX, VECTOR), (COUNTS, NUMBERS), (MATRIX[:, :2], VECTOR), (MATRIX[:2], VECTOR[:2])],
    "lu": [(MATRIX,), (COUNTS,), (MATRIX[:2],), (MATRIX[:, :2],), (STACK,), (MATRIX, True), (NARROW,), ([[3.0]],),
           (np.ones((0, 3)),)],
    "lu_solve": [((MATRIX, PIVOTS), VECTOR), ((MATRIX, PIVOTS), VECTOR, 1), ((MATRIX, PIVOTS), np.ones((3, 2)), 2)],
    "matmul_toeplitz": [(VECTOR, VECTOR), ((VECTOR, NUMBERS), NUMBERS), ((VECTOR, VECTOR[:2]), np.ones((2, 2))),
                        (VECTOR, 1j * VECTOR)],
    "norm": [(MATRIX,), (COUNTS,), (VECTOR,), (NUMBERS, 1), (MATRIX, 2), (MATRIX, 1), (MATRIX, None, 1), (MATRIX, None, [0, 1])],
    "orth": [(MATRIX,), (MATRIX[:, :2],), (STACK,), (np.ones((3, 2)),)],
    "orthogonal_procrustes": [(MATRIX, COUNTS), (MATRIX, 1j * MATRIX.T), (MATRIX, MATRIX[:2])],
    "pinv": [(MATRIX,), (COUNTS,), (MATRIX[:2],), (STACK,)],
    "pinvh": [(MATRIX,), (COUNTS,), (NARROW,)],
    "qr_multiply": [(MATRIX, COUNTS), (MATRIX[:, :2], VECTOR), (MATRIX, VECTOR, "left", True), (MATRIX, VECTOR, "none")],
    "sinhm": [(MATRIX,), (COUNTS,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "sinm": [(MATRIX,), (COUNTS,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "solve_banded": [((1, 0), MATRIX[:2], VECTOR), ((1, 0), COUNTS[:2], NUMBERS), ((1, 1), MATRIX[:2], VECTOR)],
    "solve_circulant": [(VECTOR, VECTOR), (NUMBERS, NUMBERS), (VECTOR, np.ones((3, 2))), (1j * VECTOR, VECTOR),
                        (np.ones(3), VECTOR)],
    "solve_toeplitz": [(VECTOR, VECTOR), ((VECTOR, NUMBERS), NUMBERS), (VECTOR, np.ones((3, 2)))],
    "subspace_angles": [(MATRIX[:, :1], MATRIX[:, 1:]), (MATRIX[:, :2], MATRIX[:, :2] + 0.01 * COUNTS[:, :2])],
    "tanhm": [(MATRIX,), (COUNTS,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "tanm": [(MATRIX,), (COUNTS / 5,), (1j * MATRIX,), (NARROW,), (STACK,)],
    "toeplitz": [(VECTOR,), (NUMBERS, VECTOR), (1j * VECTOR,), (3,), (MATRIX,)],
}  # fmt: skip


def to_nodes(x: Any) -> Any:
    """Arguments with arrays as nodes."""
    return tuple(map(to_nodes, x)) if isinstance(x, tuple) else cg.constant(x) if isinstance(x, np.ndarray) else x


def test_scipy_linalg_cases_cover_every_replacement() -> None:
    assert policy_of("linalg").replacements.keys() | policy_of("linalg").own_code == CALLS.keys()


def test_scipy_linalg_values_and_errors_equal_scipy() -> None:
    with Failures("scipy.linalg") as failures:
        for name, calls in CALLS.items():
            for place, arguments in enumerate(calls):
                with failures.case(f"{name}, call {place}"):
                    check_call(name, arguments)


def check_call(name: str, arguments: tuple[Any, ...]) -> None:
    """Check values, shapes, dtypes and errors of one call against SciPy's."""
    theirs = getattr(sl, name)
    ours = policy_of("linalg").replacements.get(name, functools.partial(run_own_code, "scipy.linalg", name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = theirs(*arguments)
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            kind = type(error)
            with pytest.raises(kind):
                ours(*to_nodes(arguments))
            return
        result = ours(*to_nodes(arguments))
    many = isinstance(expected, tuple)
    for one, other in zip(*((result, expected) if many else ((result,), (expected,))), strict=True):
        one, other = np.asarray(to_values(one)), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = 1e-5 if arguments[0] is NARROW else 1e-13
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


GRAPHS: dict[str, Any] = {
    "cho_solve": lambda x: sl.cho_solve(sl.cho_factor(x), x[0]),
    "lu_solve": lambda x: sl.lu_solve(sl.lu_factor(x), x[0]),
    "ldl": lambda x: sl.ldl(x)[0],
    "eigh": lambda x: sl.eigvalsh(x, subset_by_index=[1, 2]),
    "svd": lambda x: sl.svd(x)[1],
    "expm": lambda x: sl.expm(x),
    "logm": lambda x: sl.logm(x),
    "polar": lambda x: sl.polar(x)[1],
    "pinv": lambda x: sl.pinv(x[:2]),
    "orth": lambda x: sl.orth(x[:, :2]) ** 2,
    "norm": lambda x: sl.norm(x, 1),
    "banded": lambda x: sl.solve_banded((1, 1), x + 3 * np.array([[0], [1], [0]]), x[0]),
    "circulant": lambda x: sl.solve_circulant(x[0], x[1]),
    "riccati": lambda x: sl.solve_continuous_are(x, x[:, :1], np.eye(3), np.eye(1)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_scipy_linalg_graphs_replay_with_other_values(name: str) -> None:
    register_imported()
    function = GRAPHS[name]
    first, second = definite(3, 3) + np.diag([0, 1, 2.5]), definite(3, 3, seed=4) + np.diag([0.1, 1.2, 2.3])

    def both(numbers: Any) -> list[Any]:
        x = cg.variable(numbers.copy(), "x")
        total = np.sum(np.sin(function(x)))
        return [total, *gradients(total, [x])]

    outputs = cg.Executor(both(first)).run({"x": second})
    for one, other in zip(outputs, both(second), strict=True):
        np.testing.assert_allclose(one, other.value, rtol=1e-12, atol=1e-13)


def test_scipy_linalg_other_row_permutation_raises() -> None:
    register_imported()
    x = cg.variable(np.array([[2.0, 1.0], [1.0, 3.0]]), "x")
    run = cg.Executor(sl.lu_solve(sl.lu_factor(x), [1.0, 2.0])).run
    with pytest.raises(cg.GuardError, match="order of the rows"):
        run({"x": np.array([[1.0, 3.0], [2.0, 1.0]])})
