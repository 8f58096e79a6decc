"""Derivatives of ``scipy.linalg``: functions of matrices, norms, and structured matrices built from their elements."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import autodiff as ad
import compgraph as cg
from tests.support.arguments import complexes, positive, real
from tests.support.cases.linear_algebra import complex_regular, definite, regular
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions

ROTATION = np.array([[0.3, -1.2, 0.1], [1.1, 0.4, 0.2], [0.2, -0.1, 0.9]])
INDEFINITE = np.array([[1.5, 0.4, 0.2], [0.3, -1.2, 0.5], [-0.1, 0.6, 2.0]])
JORDAN = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])

FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "expm": [
        *[(f"{shape}", sl.expm, regular(*shape)) for shape in ((3, 3), (2, 2, 2), (1, 1))],
        ("rotation", sl.expm, ROTATION),
        ("zero", sl.expm, np.zeros((3, 3))),
        ("large", lambda a: sl.expm(a) / 1e4, 3 * regular(3, 3)),
        ("of equal eigenvalues", sl.expm, JORDAN),
        ("complex", sl.expm, complex_regular(2, 2)),
        ("number", sl.expm, np.array(0.7)),
        ("complex number", sl.expm, np.array(0.7 + 0.4j)),
        ("along a path", lambda a, t: sl.expm(a * t) @ [1.0, 2.0, 3.0], ROTATION, np.array(0.7)),
    ],
    "expm_frechet": [
        ("both", sl.expm_frechet, ROTATION, real(3, 3)),
        ("alone", partial(sl.expm_frechet, compute_expm=False), regular(2, 2), real(2, 2)),
        ("complex", sl.expm_frechet, 0.5 * complex_regular(2, 2), complexes(2, 2)),
        ("enlarged", partial(sl.expm_frechet, method="blockEnlarge"), regular(2, 2), real(2, 2)),
    ],
    "logm": [
        ("real", sl.logm, regular(3, 3)),
        ("rotation", sl.logm, ROTATION + np.eye(3)),
        ("of equal eigenvalues", sl.logm, np.eye(3)),
        ("complex", sl.logm, complex_regular(2, 2)),
        ("stack", sl.logm, regular(2, 2, 2)),
    ],
    "sqrtm": [
        ("real", sl.sqrtm, regular(3, 3)),
        ("rotation", sl.sqrtm, ROTATION + np.eye(3)),
        ("of equal eigenvalues", sl.sqrtm, JORDAN),
        ("complex", sl.sqrtm, complex_regular(2, 2)),
        ("stack", sl.sqrtm, np.stack([regular(2, 2), 2 * regular(2, 2)])),
        ("one by one", sl.sqrtm, np.array([[2.0]])),
    ],
    "signm": [
        ("real", sl.signm, INDEFINITE),
        ("complex", sl.signm, INDEFINITE + 0.2j * real(3, 3)),
    ],
    "fractional_matrix_power": [
        *[(f"{t}", partial(sl.fractional_matrix_power, t=t), regular(3, 3)) for t in (0.5, -0.3, 1.7, 2, -1)],
        ("complex", lambda a: sl.fractional_matrix_power(a, 0.4), complex_regular(2, 2)),
    ],
    **{
        name: [
            ("real", getattr(sl, name), 0.5 * regular(3, 3)),
            ("complex", getattr(sl, name), 0.4 * complex_regular(2, 2)),
        ]
        for name in ("sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")
    },
    "norm": [
        *[(f"vector {o}", partial(sl.norm, ord=o), real(4)) for o in (None, 1, 2, 3, np.inf, -np.inf, 0.5, 0)],
        *[(f"matrix {o}", partial(sl.norm, ord=o), regular(3, 2)) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)],
        ("axis", partial(sl.norm, axis=1), real(2, 3)),
        ("axes, keepdims", partial(sl.norm, ord=1, axis=(0, 2), keepdims=True), real(2, 3, 2)),
        ("complex", sl.norm, complexes(3)),
        ("large", lambda a: sl.norm(a * a.dtype.type(1e30)) / 1e30, positive(3)),
    ],
}

BUILT: dict[str, list[tuple[Any, ...]]] = {
    "toeplitz": [
        ("a column", sl.toeplitz, real(3)),
        ("both", sl.toeplitz, real(3), real(4, seed=1)),
        ("complex", sl.toeplitz, complexes(3)),
        ("a number", sl.toeplitz, real()),
        ("stack", sl.toeplitz, real(2, 3), real(4, seed=1)),
        ("a list with nodes", lambda a: sl.toeplitz([a[0], 0.0, a[1]]), real(2)),
    ],
    "hankel": [("a column", sl.hankel, real(3)), ("both", sl.hankel, real(3), real(4, seed=1))],
    "circulant": [("a vector", sl.circulant, real(3)), ("stack", sl.circulant, real(2, 3))],
    "companion": [(f"{shape}", sl.companion, positive(*shape)) for shape in ((4,), (2,), (2, 3))],
    "fiedler": [("a vector", sl.fiedler, real(4)), ("one", sl.fiedler, real(1)), ("stack", sl.fiedler, real(2, 3))],
    "fiedler_companion": [(f"of {n}", sl.fiedler_companion, positive(n)) for n in (2, 3, 4, 6, 7)],
    "leslie": [("vectors", sl.leslie, real(4), real(3, seed=1)), ("stack", sl.leslie, real(2, 3), real(2, seed=1))],
    "convolution_matrix": [
        *[(f"{mode} {n}", partial(sl.convolution_matrix, n=n, mode=mode), real(4))
          for mode in ("full", "same", "valid") for n in (2, 5)],
        ("complex", partial(sl.convolution_matrix, n=3), complexes(2)),
        ("stack", partial(sl.convolution_matrix, n=3, mode="same"), real(2, 4)),
    ],
    "block_diag": [
        ("blocks", sl.block_diag, real(2, 3), real(1), real(3, 1, seed=1), real()),
        ("with plain ones", lambda a: sl.block_diag(a, [[1, 2]], a.T), real(2, 3)),
        ("stack", sl.block_diag, real(2, 2, 1), real(1, 2)),
    ],
    "khatri_rao": [("matrices", sl.khatri_rao, real(2, 3), real(4, 3)), ("complex", sl.khatri_rao, complexes(2, 2), real(3, 2))],
    "diagsvd": [("wide", lambda s: sl.diagsvd(s, 2, 4), real(2)), ("tall", lambda s: sl.diagsvd(s, 4, 2), real(2))],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")  # SciPy warns of every result in float32
@pytest.mark.parametrize("rows", functions(FUNCTIONS))
def test_matrix_functions_derivatives(rows: Rows) -> None:
    rows.check(tolerance=1e-5)


@pytest.mark.parametrize("rows", functions(BUILT))
def test_structured_matrices_derivatives(rows: Rows) -> None:
    rows.check()
    for label, function, *arguments in BUILT[rows.name]:
        assert np.asarray(ad.jvp(function, arguments, arguments)[0]).dtype == function(*arguments).dtype, label


def test_fractional_matrix_power_node_exponent_raises() -> None:
    with pytest.raises(TypeError, match="t= cannot be a node"):
        ad.grad(lambda t: np.sum(sl.fractional_matrix_power(regular(2, 2), t)))(0.5)


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@for_each("function", [sl.logm, partial(sl.fractional_matrix_power, t=0.3)])
@for_each("a", [INDEFINITE, INDEFINITE.T, -ROTATION, np.diag([-1.0, 2.0])])
def test_matrix_functions_of_negative_eigenvalues_second_order(function: Any, a: Any) -> None:
    """Rounding may move the block that contains the second derivative across the branch cut."""
    checked(function, (a,), order=1)

    def slope(a: Any) -> Any:
        return ad.grad(lambda a: np.sum(np.real(function(a))))(a)

    direction, step = real(*a.shape, seed=9), 1e-5
    expected = (slope(a + step * direction) - slope(a - step * direction)) / (2 * step)
    derivative = None
    with contextlib.suppress(np.linalg.LinAlgError):
        derivative = ad.jvp(slope, (a,), (direction,))[1]
    if derivative is not None:
        np.testing.assert_allclose(derivative, expected, atol=1e-6 * max(1, np.max(np.abs(expected))))


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_sqrtm_and_signm_of_singular_matrix_raise() -> None:
    singular = np.array([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(np.linalg.LinAlgError, match="infinite"):
        ad.grad(lambda a: np.sum(np.real(sl.sqrtm(a))))(singular)
    with pytest.raises(np.linalg.LinAlgError, match="infinite"):
        ad.grad(lambda a: np.sum(sl.signm(a)))(singular)


WHOLE = {
    "solve": lambda x: sl.solve(x, x[0]),
    "solve, vectors of a stack": lambda x: sl.solve(np.stack([x, x + np.eye(3)]), x[0]),
    "solve, pos": lambda x: sl.solve(x, x[:, :2], assume_a="pos"),
    "cho_solve": lambda x: sl.cho_solve(sl.cho_factor(x), x[0]),
    "triangular": lambda x: sl.solve_triangular(x, x.T, trans=1),
    "inv": lambda x: sl.inv(x),
    "det": lambda x: sl.det(x)[None],
    "lu": lambda x: sl.lu(x)[2],
    "lu_factor": lambda x: sl.lu_factor(x)[0],
    "ldl": lambda x: sl.ldl(x)[0],
    "qr": lambda x: sl.qr(x)[0],
    "rq": lambda x: sl.rq(x)[1],
    "polar": lambda x: sl.polar(x)[1],
    "svd": lambda x: sl.svd(x)[0],
    "svdvals": sl.svdvals,
    "eigh": lambda x: sl.eigh(x)[1],
    "eigh of a pair": lambda x: sl.eigh(x, x @ x.T + np.eye(3))[1],
    "eigvalsh, a part": lambda x: sl.eigvalsh(x, subset_by_index=[1, 2]),
    "eigvals": lambda x: np.real(sl.eigvals(x)),
    "eigh_tridiagonal": lambda x: sl.eigh_tridiagonal(np.diag(x), x[0, 1:])[1],
    "eig_banded": lambda x: sl.eig_banded(x[:2])[0],
    "expm": sl.expm,
    "logm": sl.logm,
    "sqrtm": sl.sqrtm,
    "signm": sl.signm,
    "sinm": sl.sinm,
    "expm_frechet": lambda x: sl.expm_frechet(x, x.T)[1],
    "pinv": lambda x: sl.pinv(x[:2]),
    "pinvh": sl.pinvh,
    "lstsq": lambda x: sl.lstsq(x[:, :2], x[0])[0],
    "norm": lambda x: sl.norm(x, axis=0),
    "solve_banded": lambda x: sl.solve_banded((1, 1), x, x[1]),
    "solveh_banded": lambda x: sl.solveh_banded(np.stack([np.diag(x) + 3, x[0]]), x, lower=True),
    "solve_toeplitz": lambda x: sl.solve_toeplitz((np.diag(x), x[0]), x[1]),
    "solve_circulant": lambda x: sl.solve_circulant(x[0], x[1]),
    "matmul_toeplitz": lambda x: sl.matmul_toeplitz(x[0], x[1]),
    "sylvester": lambda x: sl.solve_sylvester(x, x.T, x),
    "lyapunov": lambda x: sl.solve_continuous_lyapunov(x, x),
    "discrete lyapunov": lambda x: sl.solve_discrete_lyapunov(x / 5, x),
    "riccati": lambda x: sl.solve_continuous_are(x, x[:, :1], np.eye(3), np.eye(1)),
    "discrete riccati": lambda x: sl.solve_discrete_are(x, x[:, :1], np.eye(3), np.eye(1)),
    "toeplitz": lambda x: sl.toeplitz(x[0]),
    "block_diag": lambda x: sl.block_diag(x, x[0]),
    "procrustes": lambda x: sl.orthogonal_procrustes(x, x.T @ x)[0],
    "subspace_angles": lambda x: sl.subspace_angles(x[:, :1], x[:, 1:]),
}  # fmt: skip


@for_each("name", WHOLE)
def test_matrix_functions_jacobians_and_hessians(name: str) -> None:
    """A batch of directions gives the results of single directions."""
    function, x = WHOLE[name], definite(3, 3) + np.diag([0.0, 1.0, 2.5])
    back = ad.jacobian(function)(x)
    forth = ad.jacfwd(function)(x)
    columns = [ad.jvp(function, (x,), (unit.reshape(3, 3),))[1] for unit in np.eye(9)]
    np.testing.assert_allclose(back, forth, atol=1e-9 * max(1, np.max(np.abs(forth))))
    np.testing.assert_allclose(np.reshape(forth, (-1, 9)), np.reshape(columns, (9, -1)).T, atol=1e-9)

    def total(x: Any) -> Any:
        return np.sum(np.sin(function(x)))

    hessian = ad.hessian(total)(x).reshape(9, 9)
    rows = [np.ravel(ad.jvp(ad.grad(total), (x,), (unit.reshape(3, 3),))[1]) for unit in np.eye(9)]
    np.testing.assert_allclose(hessian, rows, atol=1e-8 * max(1, np.max(np.abs(hessian))))


def test_matrix_functions_in_programs() -> None:
    """A Gaussian process, a linear-quadratic regulator and a flow, beside terms of NumPy's."""
    inputs, targets = np.linspace(0, 1, 6), np.sin(np.linspace(0, 3, 6))

    def likelihood(theta: Any) -> Any:
        kernel = theta[0] ** 2 * np.exp(-((inputs[:, None] - inputs) ** 2) / theta[1] ** 2) + theta[2] ** 2 * np.eye(6)
        factor = sl.cho_factor(kernel, lower=True)
        return targets @ sl.cho_solve(factor, targets) / 2 + np.sum(np.log(np.diag(factor[0]))) + np.sum(theta**2)

    def cost(theta: Any) -> Any:
        a, b = cg.array([[0.0, 1.0], [theta[0], -theta[1]]]), cg.array([[0.0], [theta[2]]])
        return np.trace(sl.solve_continuous_are(a, b, np.eye(2), np.eye(1))) + np.sum(theta**2)

    def flow(theta: Any) -> Any:
        generator = np.zeros((3, 3)) + theta[:, None] * np.array([[-1.0, 0.7, 0.3], [0.2, -1.0, 0.8], [0.5, 0.5, -1.0]])
        return np.sum(sl.expm(generator * theta[0])[0] * [1.0, 2.0, 4.0]) + theta[2]

    theta = np.array([0.8, 0.5, 0.6])
    for program in (likelihood, cost, flow):
        checked(program, (theta,), tolerance=1e-5)


SQUARE = np.zeros((0, 0))
EMPTY: dict[str, tuple[Any, ...]] = {
    **{name: (getattr(sl, name), SQUARE)
       for name in ("inv", "det", "cholesky", "eigvalsh", "eigvals", "expm", "sqrtm", "pinvh")},
    **{name: (lambda a, name=name: getattr(sl, name)(a)[0], SQUARE)
       for name in ("eigh", "eig", "svd", "qr", "polar", "lu_factor", "ldl")},
    "a stack to invert": (sl.inv, np.zeros((0, 2, 2))),
    "cho_factor": (lambda a: sl.cho_factor(a)[0], SQUARE),
    "solve": (sl.solve, SQUARE, np.zeros(0)),
    "solve for nothing": (sl.solve, np.eye(2), np.zeros((2, 0))),
    "solve no systems": (sl.solve, np.zeros((0, 2, 2)), np.zeros(2)),
    "solve_triangular": (sl.solve_triangular, np.eye(2), np.zeros((2, 0))),
    "solve_banded": (lambda a, b: sl.solve_banded((0, 0), a, b), np.zeros((1, 0)), np.zeros(0)),
    "solveh_banded": (sl.solveh_banded, np.zeros((1, 0)), np.zeros(0)),
    "solve_toeplitz": (sl.solve_toeplitz, np.zeros(0), np.zeros(0)),
    "solve_sylvester": (sl.solve_sylvester, SQUARE, SQUARE, SQUARE),
    "solve_continuous_lyapunov": (sl.solve_continuous_lyapunov, SQUARE, SQUARE),
    "cholesky_banded": (sl.cholesky_banded, np.zeros((1, 0))),
    "eig_banded": (lambda a: sl.eig_banded(a)[0], np.zeros((2, 0))),
    "svdvals": (sl.svdvals, np.zeros((2, 0))),
    "lu": (lambda a: sl.lu(a)[2], np.zeros((0, 2))),
    "rq": (lambda a: sl.rq(a)[0], np.zeros((0, 2))),
    "pinv": (sl.pinv, np.zeros((0, 2))),
    "lstsq": (lambda a, b: sl.lstsq(a, b)[0], np.zeros((0, 2)), np.zeros(0)),
    "norm": (sl.norm, np.zeros((0, 2))),
    "toeplitz": (sl.toeplitz, np.zeros(0)),
    "block_diag": (sl.block_diag, SQUARE, np.eye(2)),
}  # fmt: skip


@for_each("name", EMPTY)
def test_matrix_functions_of_empty_arrays(name: str) -> None:
    function, *arguments = EMPTY[name]
    gradients = ad.grad(lambda *matrices: np.sum(np.real(function(*matrices))), tuple(range(len(arguments))))(*arguments)
    assert [g.shape for g in gradients] == [a.shape for a in arguments]
    assert ad.jvp(function, tuple(arguments), tuple(arguments))[1].shape == np.shape(function(*arguments))
