"""Derivatives of the decompositions of ``scipy.linalg``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import autodiff as ad
from tests.support.arguments import complexes, real
from tests.support.cases.linear_algebra import complex_definite, complex_regular, definite, regular
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions
from tests.support.scipy_matrices import LOWER, UPPER, as_complex

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3)]
INDEFINITE = np.array([[0.1, 2.0, 0.3, -0.4], [2.0, 0.2, 0.5, 0.7], [0.3, 0.5, 1.5, 0.1], [-0.4, 0.7, 0.1, -1.2]])
COMPLEX_INDEFINITE = INDEFINITE + 0.1j * (real(4, 4) + np.diag([9j] * 4))
SPECTRUM = np.diag([1.0, 2.2, 3.5, 5.0]) + 0.15 * real(4, 4)
COMPLEX_SPECTRUM = np.diag([1.0, 2.2, 3.5, 5.0]) + 0.15 * complexes(4, 4)
TRIDIAGONAL = np.array([1.0, 2.5, 4.0]), np.array([0.5, -0.3])
NEAR_ONE = np.eye(4) + 0.02 * real(4, 4, seed=3)
TURNING = np.array([[0.5, 1.5, 0.2], [-1.4, 0.7, 0.3], [0.1, -0.2, 2.5]])  # two complex eigenvalues, and a real one


def size(x: Any) -> Any:
    """Squared absolute values, which do not depend on the phase of complex numbers."""
    return np.real(x) ** 2 + np.imag(x) ** 2


def project(v: Any) -> Any:
    """The projections on vectors, whatever their signs and phases are."""
    return v[..., :, None, :] * np.conjugate(v[..., None, :, :])


def pair(decomposition: Any) -> Any:
    """Values, in their order, and the projections on their vectors."""
    order = np.argsort(np.real(decomposition[0]), axis=-1)
    values, vectors = decomposition[0], project(decomposition[-1])
    return np.take_along_axis(values, order, -1), np.take_along_axis(vectors, order[..., None, None, :], -1)


CASES: dict[str, list[tuple[Any, ...]]] = {
    "cholesky": [
        *[(f"{lower}", partial(sl.cholesky, lower=lower), definite(3, 3)) for lower in (False, True)],
        *[(f"complex {lower}", partial(sl.cholesky, lower=lower), complex_definite(3, 3)) for lower in (False, True)],
        ("stack", sl.cholesky, np.stack([definite(2, 2), definite(2, 2, seed=1)])),
        ("empty", sl.cholesky, np.zeros((0, 0))),
    ],
    "cho_factor": [
        *[(f"{lower}", lambda a, lower=lower: sl.cho_factor(a, lower=lower)[0], definite(3, 3)) for lower in (False, True)],
        ("complex", lambda a: sl.cho_factor(a)[0], complex_definite(3, 3)),
    ],
    "cho_solve": [
        *[(f"{lower}", lambda a, b, lower=lower: sl.cho_solve(sl.cho_factor(a, lower), b), definite(3, 3), real(3, 2))
          for lower in (False, True)],
        ("complex", lambda a, b: sl.cho_solve(sl.cho_factor(a), b), complex_definite(3, 3), complexes(3)),
        ("of cholesky", lambda a, b: sl.cho_solve((sl.cholesky(a, lower=True), True), b), definite(3, 3), real(3)),
        ("a plain factor", lambda b: sl.cho_solve((np.linalg.cholesky(np.eye(2) * 4), True), b), real(2)),
        ("a factor alone", lambda c: sl.cho_solve((c, True), [1.0, 2.0]), definite(2, 2)),
    ],
    "cholesky_banded": [
        ("upper", sl.cholesky_banded, UPPER),
        ("lower", partial(sl.cholesky_banded, lower=True), LOWER),
        ("complex", sl.cholesky_banded, as_complex(UPPER)),
        ("complex lower", partial(sl.cholesky_banded, lower=True), as_complex(LOWER)),
    ],
    "cho_solve_banded": [
        ("upper", lambda a, b: sl.cho_solve_banded((sl.cholesky_banded(a), False), b), UPPER, real(5)),
        ("lower", lambda a, b: sl.cho_solve_banded((sl.cholesky_banded(a, lower=True), True), b), LOWER, real(5, 2)),
        ("complex", lambda a, b: sl.cho_solve_banded((sl.cholesky_banded(a), False), b), as_complex(UPPER), complexes(5)),
        ("complex lower", lambda c, b: sl.cho_solve_banded((c, True), b), as_complex(LOWER), complexes(5, 2)),
    ],
    "lu": [
        *[(f"{shape}", lambda a: sl.lu(a)[1:], regular(*shape)) for shape in SHAPES],
        ("rows are exchanged", lambda a: sl.lu(a)[1:], regular(3, 3)[::-1].copy()),
        ("complex", lambda a: sl.lu(a)[1:], complex_regular(3, 2)[::-1].copy()),
        ("permute_l", partial(sl.lu, permute_l=True), regular(4, 3)[::-1].copy()),
        ("p_indices", lambda a: (lambda p, x, y: x[p] @ y)(*sl.lu(a, p_indices=True)), regular(3, 4)[::-1].copy()),
        ("the product", lambda a: (lambda p, x, y: p @ x @ (2 * y))(*sl.lu(a)), regular(3, 3)[::-1].copy()),
    ],
    "lu_factor": [
        *[(f"{shape}", lambda a: sl.lu_factor(a)[0], regular(*shape)) for shape in SHAPES],
        ("complex", lambda a: sl.lu_factor(a)[0], complex_regular(3, 3)[::-1].copy()),
        ("rows are exchanged", lambda a: sl.lu_factor(a)[0], regular(4, 4)[[2, 0, 3, 1]].copy()),
    ],
    "lu_solve": [
        *[(f"{t}", lambda a, b, t=t: sl.lu_solve(sl.lu_factor(a), b, trans=t), regular(4, 4)[[2, 0, 3, 1]].copy(), real(4, 2))
          for t in (0, 1, 2)],
        *[(f"complex {t}", lambda a, b, t=t: sl.lu_solve(sl.lu_factor(a), b, trans=t), complex_regular(3, 3)[::-1].copy(),
           complexes(3)) for t in (0, 1, 2)],
        ("stack", lambda a, b: sl.lu_solve(sl.lu_factor(a), b), regular(2, 3, 3), real(3)),
        ("a plain factor", lambda b: sl.lu_solve(sl.lu_factor(regular(3, 3)), b), real(3)),
    ],
    "ldl": [
        *[(f"{o}", lambda a, o=o: sl.ldl(a, lower=o[0], hermitian=o[1])[:2], INDEFINITE)
          for o in ((True, True), (False, True), (True, False))],
        *[(f"complex {o}", lambda a, o=o: sl.ldl(a, lower=o[0], hermitian=o[1])[:2], COMPLEX_INDEFINITE)
          for o in ((True, False), (False, False))],
        ("of no blocks", lambda a: sl.ldl(a)[:2], definite(3, 3)),
    ],
    "qr": [
        *[(f"{shape}", partial(sl.qr, mode="economic"), regular(*shape)) for shape in SHAPES],
        ("full", sl.qr, regular(3, 3)),
        ("full, wide", sl.qr, regular(2, 4)),
        ("r", partial(sl.qr, mode="r"), regular(4, 2)),
        ("complex", partial(sl.qr, mode="economic"), complex_regular(4, 3)),
        ("pivoting", lambda a: sl.qr(a, mode="economic", pivoting=True)[:2], regular(4, 3)),
        ("pivoting, r", lambda a: sl.qr(a, mode="r", pivoting=True)[0], regular(3, 3)),
    ],
    "qr_multiply": [
        ("right", lambda a, c: sl.qr_multiply(a, c), regular(4, 2), real(3, 4)),
        ("left", partial(sl.qr_multiply, mode="left"), regular(4, 2), real(2, 3)),
        ("a vector", lambda a, c: sl.qr_multiply(a, c, pivoting=True)[:2], regular(3, 3), real(3)),
        ("complex", partial(sl.qr_multiply, conjugate=True), complex_regular(3, 2), complexes(2, 3)),
        ("complex, left", partial(sl.qr_multiply, mode="left"), complex_regular(3, 2), complexes(2)),
    ],
    "rq": [
        *[(f"{shape}", partial(sl.rq, mode="economic"), regular(*shape)) for shape in SHAPES],
        ("full", sl.rq, regular(3, 3)),
        ("full, tall", sl.rq, regular(4, 2)),
        ("r", partial(sl.rq, mode="r"), regular(2, 4)),
        ("complex", partial(sl.rq, mode="economic"), complex_regular(2, 3)),
    ],
    "polar": [
        *[(f"{shape} {side}", partial(sl.polar, side=side), regular(*shape)) for shape in SHAPES for side in ("right", "left")],
        *[(f"complex {side}", partial(sl.polar, side=side), complex_regular(3, 2)) for side in ("right", "left")],
        ("of a unitary matrix", sl.polar, np.eye(3)),
    ],
    "svd": [
        *[(f"{shape}", partial(sl.svd, full_matrices=False), regular(*shape)) for shape in SHAPES],
        ("values", partial(sl.svd, compute_uv=False), regular(3, 2)),
        ("gesvd", partial(sl.svd, full_matrices=False, lapack_driver="gesvd"), regular(3, 3)),
        ("complex", lambda a: (lambda u, s, vh: (u * np.exp(s)) @ vh)(*sl.svd(a, full_matrices=False)), complex_regular(3, 2)),
        ("svdvals", sl.svdvals, regular(2, 4)),
        ("svdvals of a stack", sl.svdvals, complex_regular(2, 2, 2)),
    ],
    "eigh": [
        *[(f"lower={lower}", lambda a, lower=lower: pair(sl.eigh(a, lower=lower)), SPECTRUM) for lower in (False, True)],
        ("complex", lambda a: pair(sl.eigh(a)), COMPLEX_SPECTRUM),
        ("stack", lambda a: pair(sl.eigh(a)), np.stack([SPECTRUM, SPECTRUM.T])),
        ("values", partial(sl.eigh, eigvals_only=True), SPECTRUM),
        ("eigvalsh", sl.eigvalsh, COMPLEX_SPECTRUM),
        ("by index", partial(sl.eigh, subset_by_index=[1, 2]), SPECTRUM),
        ("values by index", partial(sl.eigvalsh, subset_by_index=(0, 1), lower=False), SPECTRUM),
        ("by value", partial(sl.eigh, subset_by_value=(1.5, np.inf)), SPECTRUM),
        *[(f"by value at other positions, {only}", partial(sl.eigh, subset_by_value=(2.8, 4.1), eigvals_only=only),
           np.stack([SPECTRUM, SPECTRUM + 1.2 * np.eye(4)])) for only in (False, True)],
        ("driver", partial(sl.eigh, driver="evd"), SPECTRUM),
        *[(f"a pair of type {t}, {lower}", partial(sl.eigh, type=t, lower=lower), SPECTRUM, definite(4, 4, seed=3))
          for t in (1, 2, 3) for lower in (False, True)],
        *[(f"a complex pair of type {t}", lambda a, b, t=t: pair(sl.eigh(a, b, type=t)),
           COMPLEX_SPECTRUM, complex_definite(4, 4, seed=3)) for t in (1, 2, 3)],
        ("values of a pair", sl.eigvalsh, SPECTRUM, definite(4, 4, seed=3)),
        ("a part of a pair", partial(sl.eigh, subset_by_index=[1, 2]), SPECTRUM, definite(4, 4, seed=3)),
        ("b by name", lambda b: sl.eigh(SPECTRUM, b=b), definite(4, 4, seed=3)),
    ],
    "eigh_tridiagonal": [
        ("all", sl.eigh_tridiagonal, np.array([1.0, 2.5, 4.0, 6.0]), np.array([0.5, -0.3, 0.4])),
        ("by index", partial(sl.eigh_tridiagonal, select="i", select_range=(1, 2)), *TRIDIAGONAL),
        ("by value", partial(sl.eigh_tridiagonal, select="v", select_range=(0, 3)), *TRIDIAGONAL),
        ("values", sl.eigvalsh_tridiagonal, *TRIDIAGONAL),
        ("values only", partial(sl.eigh_tridiagonal, eigvals_only=True), np.array([1.0, 2.5]), np.array([0.5])),
        ("one", sl.eigvalsh_tridiagonal, np.array([2.0]), np.zeros(0)),
    ],
    "eig_banded": [
        ("upper", sl.eig_banded, UPPER),
        ("lower", partial(sl.eig_banded, lower=True), LOWER),
        ("complex", lambda a: pair(sl.eig_banded(a)), as_complex(UPPER)),
        ("by index", partial(sl.eig_banded, select="i", select_range=(1, 2)), UPPER),
        ("values", sl.eigvals_banded, UPPER),
        ("values by value", partial(sl.eigvals_banded, lower=True, select="v", select_range=(2, 3.2)), LOWER),
    ],
    "eig": [
        ("values", sl.eigvals, TURNING),
        ("real values", sl.eigvals, SPECTRUM),
        ("complex values", sl.eigvals, COMPLEX_SPECTRUM),
        ("right", sl.eig, TURNING),
        ("right, real", lambda a: pair(sl.eig(a)), SPECTRUM),
        ("right, complex", sl.eig, COMPLEX_SPECTRUM),
        ("left", partial(sl.eig, left=True, right=False), TURNING),
        ("both", partial(sl.eig, left=True), COMPLEX_SPECTRUM),
        ("neither", partial(sl.eig, right=False), TURNING),
        ("values of a pair", sl.eigvals, TURNING, definite(3, 3, seed=3)),
        ("values of a complex pair", sl.eigvals, COMPLEX_SPECTRUM, complex_regular(4, 4, seed=3)),
        ("a pair, right", lambda a, b: pair(sl.eig(a, b)), SPECTRUM, NEAR_ONE),
        ("a pair, both", lambda a, b: pair(sl.eig(a, b, left=True)[:2]), SPECTRUM, NEAR_ONE),
        ("stack", lambda a: pair(sl.eig(a)), np.stack([SPECTRUM, SPECTRUM.T])),
    ],
    "matrix_balance": [
        ("scales", lambda a: sl.matrix_balance(a)[0], np.array([[1.0, 100.0, 10.0], [0.01, 2.0, 0.03], [0.3, 40.0, 3.0]])),
    ],
    "orthogonal_procrustes": [
        ("real", sl.orthogonal_procrustes, regular(4, 3), real(4, 3, seed=1)),
        ("complex", sl.orthogonal_procrustes, complex_regular(4, 2), complexes(4, 2, seed=1)),
    ],
    "subspace_angles": [
        ("real", sl.subspace_angles, regular(5, 2), real(5, 3, seed=1)),
        ("small ones", sl.subspace_angles, regular(5, 3), regular(5, 2) + 0.05 * real(5, 2, seed=1)),
        ("orth", lambda a: project(sl.orth(a)), regular(4, 2)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(CASES))
def test_scipy_decompositions_derivatives(rows: Rows) -> None:
    rows.check(tolerance=1e-5)


def test_eigenvectors_phase_invariant_function_has_derivative() -> None:
    b = definite(3, 3, seed=3)

    def f(a: Any) -> Any:
        w, v = sl.eig(a, b)
        return np.sum(np.real(project(v) * np.arange(27.0).reshape(3, 3, 3)[..., np.argsort(np.imag(w))]))

    direction = real(3, 3, seed=5)
    step = 1e-6
    expected = (f(TURNING + step * direction) - f(TURNING - step * direction)) / (2 * step)
    assert np.sum(ad.grad(f)(TURNING) * direction) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(TypeError, match="phase"):
        ad.grad(lambda a: np.sum(np.imag(sl.eig(a, b)[1]) ** 2))(TURNING)
    with pytest.raises(TypeError, match="phase"):
        ad.jvp(lambda a: np.sum(size(sl.eig(a, b)[1])), (TURNING,), (direction,))


UNSUPPORTED: dict[str, Any] = {
    "economic": lambda a: np.sum(sl.qr(a)[0] ** 3),
    "mode='economic'": lambda a: np.sum(sl.rq(a.T)[1] ** 3),
    "node.value": lambda a: np.sum(sl.qr(a, mode="raw")[1]),
    "homogeneous": lambda a: np.sum(np.abs(sl.eigvals(a[:2], homogeneous_eigvals=True))),
    "left vectors alone": lambda a: np.sum(sl.eig(np.diag(a[:, 0] ** 2), np.eye(4), left=True, right=False)[1]),
    "eig or eigh": lambda a: np.sum(sl.schur(a[:2])[0]),
    "projection": lambda a: np.sum(sl.null_space(a.T)),
    "rank-deficient": lambda a: np.sum(sl.null_space(a.T * np.array([[1.0], [0.0]])) ** 2),
    "infinite": lambda a: np.sum(sl.polar(a * np.array([1.0, 0.0]))[0]),
    "equal eigenvalues": lambda a: np.sum(sl.eigh(a.T @ a * 0 + np.eye(2))[1][0]),
}


@for_each("what", UNSUPPORTED)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_decompositions_without_derivative_raise(what: str) -> None:
    with pytest.raises((TypeError, np.linalg.LinAlgError, RuntimeWarning), match=what):
        ad.grad(UNSUPPORTED[what])(regular(4, 2))


def test_qr_determined_columns_of_q_have_derivative() -> None:
    a = regular(4, 2)
    full = ad.grad(lambda a: np.sum(sl.qr(a)[0][:, :2] ** 3) + np.sum(sl.qr(a)[1] ** 2))(a)
    assert full == pytest.approx(ad.grad(lambda a: (lambda q, r: np.sum(q**3) + np.sum(r**2))(*sl.qr(a, mode="economic")))(a))
    full = ad.grad(lambda a: np.sum(sl.rq(a)[1][-2:] ** 3))(a.T)
    assert full == pytest.approx(ad.grad(lambda a: np.sum(sl.rq(a, mode="economic")[1] ** 3))(a.T))


@for_each("a", [regular(2, 4), complex_regular(2, 3), np.stack([regular(2, 4), regular(2, 4, seed=1)])])
def test_null_space_projector_has_derivative(a: Any) -> None:
    weights = real(*a.shape[:-2], a.shape[-1], a.shape[-1], seed=3)

    def by_basis(a: Any) -> Any:
        n = sl.null_space(a)
        return np.sum(np.real(np.matmul(n, np.conjugate(np.swapaxes(n, -1, -2)))) * weights)

    def by_projection(a: Any) -> Any:
        return np.sum(np.real(np.eye(a.shape[-1]) - np.matmul(np.linalg.pinv(a), a)) * weights)

    np.testing.assert_allclose(ad.grad(by_basis)(a), ad.grad(by_projection)(a), atol=1e-12)

    def slope(by: Any) -> Any:
        return ad.grad(lambda a: np.sum(np.abs(ad.grad(by)(a)) ** 2))(a)

    np.testing.assert_allclose(slope(by_basis), slope(by_projection), atol=1e-10)
    with pytest.raises(TypeError, match="no tangent"):
        ad.jvp(by_basis, (a,), (a,))


def test_decompositions_ranks_and_orders_are_plain() -> None:
    def f(a: Any) -> Any:
        b, rank = sl.pinv(a, return_rank=True)
        lu, piv = sl.lu_factor(a[:2])
        assert rank == 2
        assert sorted(sl.lu(a, p_indices=True)[0]) == [0, 1, 2, 3]
        assert sl.bandwidth(np.diag(a[0])) == (0, 0)
        assert sl.issymmetric(a[:2] + a[:2].T)
        assert not sl.ishermitian(a[:2])
        return np.sum(b) + np.sum(lu) * len(piv) + sl.orth(a).shape[1]

    assert np.all(np.isfinite(ad.grad(f)(regular(4, 2))))


def test_qr_element_of_completing_column_raises() -> None:
    matrix = np.arange(6.0).reshape(3, 2) + np.eye(3, 2)
    with pytest.raises(TypeError, match="completes the basis is not unique"):
        ad.grad(lambda a: sl.qr(a)[0][0, -1])(matrix)
