"""Equal eigenvalues and singular values: derivatives are right, or warn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from autodiff import grad, jvp, numeric
from tests.support.arguments import complexes, real
from tests.support.for_each import for_each

BASIS = np.linalg.qr(real(3, 3))[0]
TWICE = (BASIS * [1.0, 1.0, 2.0]) @ BASIS.T
UNIT = np.eye(3)
WEIGHTS = real(3, 3, seed=5)
ALONG = real(3, 3, seed=6)
eigh, svd = np.linalg.eigh, np.linalg.svd


def projector(a: Any) -> Any:
    v = eigh(a)[1][:, :2]
    return np.sum(WEIGHTS * (v @ v.T))


def polar(a: Any) -> Any:
    u, _, vh = svd(a)
    return np.sum(WEIGHTS * (u @ vh))


def of_both(a: Any) -> Any:
    w, v = eigh(a)
    return np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T))


def of_both_sides(a: Any) -> Any:
    u, s, vh = svd(a)
    return np.sum(WEIGHTS * ((u * s) @ vh))


def of_eig(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    return np.sum(WEIGHTS * ((v * w) @ np.linalg.inv(v)).real)  # NumPy 2.5 gives complex numbers, whatever they are


def curvature(function: Any, a: Any) -> Any:
    return grad(lambda x: np.sum(grad(function)(x) * ALONG))(a)


RIGHT: dict[str, Any] = {
    "sum of eigh": lambda a: np.sum(eigh(a)[0] ** 3),
    "sum of eigvalsh": lambda a: np.sum(np.exp(np.linalg.eigvalsh(a))),
    "sum of eigvals": lambda a: np.sum(np.linalg.eigvals(a) ** 3).real,
    "sum of svd": lambda a: np.sum(np.exp(svd(a)[1])),
    "polar": polar,
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc"),
}


@for_each("a", [TWICE, UNIT], ids=["two of three", "all"])
@for_each("function", RIGHT.values(), ids=RIGHT)
def test_equal_eigenvalues_basis_free_gradient_is_exact(function: Any, a: Any) -> None:
    np.testing.assert_allclose(np.sum(grad(function)(a) * ALONG), numeric.directional(function, [a], [ALONG]), rtol=1e-6)


def test_eigh_projector_onto_equal_eigenvalues() -> None:
    np.testing.assert_allclose(
        np.sum(grad(projector)(TWICE) * ALONG), numeric.directional(projector, [TWICE], [ALONG]), rtol=1e-6
    )


def test_svd_polar_factor_of_complex_matrix() -> None:
    def function(a: Any) -> Any:
        u, _, vh = svd(a)
        return np.sum(complexes(3, 3) * (u @ vh)).real

    a = np.linalg.qr(complexes(3, 3))[0] * 2.0
    for t in (ALONG + 0j, 1j * real(3, 3, seed=9)):
        np.testing.assert_allclose(np.sum(grad(function)(a) * t).real, numeric.directional(function, [a], [t]), rtol=1e-6)


@for_each("a", [TWICE, UNIT], ids=["two of three", "all"])
def test_equal_eigenvalues_determined_second_derivative(a: Any) -> None:
    for function in (lambda x: np.sum(eigh(x)[0]), lambda x: np.sum(np.linalg.eigvalsh(x))):
        np.testing.assert_allclose(curvature(function, a), np.zeros((3, 3)), atol=1e-13)
    slope = numeric.directional(grad(RIGHT["nuclear norm"]), [a], [ALONG])
    np.testing.assert_allclose(curvature(RIGHT["nuclear norm"], a), slope, atol=1e-8)


INCOMPLETE: dict[str, tuple[Any, str]] = {
    "f(A)": (of_both, "eigenvalues in the derivative of linalg_eigh: .*both values and vectors"),
    "A rebuilt": (of_both_sides, "singular values in the derivative of linalg_svd: .*both values and vectors"),
    "A rebuilt by eig": (of_eig, "eigenvalues in the derivative of linalg_eig: .*both values and vectors"),
    "first of equal values": (lambda a: eigh(a)[0][0], "linalg_eigh: .*the order of the equal values"),
    "first vector": (lambda a: np.sum(WEIGHTS[0] * eigh(a)[1][:, 0]), "linalg_eigh: .*the basis"),
    "first left vector": (lambda a: np.sum(WEIGHTS[0] * svd(a)[0][:, -1]), "linalg_svd: .*the basis"),
}


@for_each(("function", "message"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_equal_eigenvalues_basis_dependent_gradient_warns(function: Any, message: str) -> None:
    with pytest.warns(RuntimeWarning, match=message):
        grad(function)(TWICE if "order" not in message else UNIT * [1.0, 1.0, 2.0])


CURVED = {name: RIGHT[name] for name in ("sum of eigh", "sum of eigvalsh", "sum of eigvals", "sum of svd", "polar")}


@for_each("function", CURVED.values(), ids=CURVED)
def test_equal_eigenvalues_undetermined_second_derivative_warns(function: Any) -> None:
    for second in (
        lambda: curvature(function, UNIT),
        lambda: jvp(grad(function), [UNIT], [ALONG]),
        lambda: jvp(lambda x: jvp(function, [x], [ALONG])[1], [UNIT], [ALONG]),
    ):
        with pytest.warns(RuntimeWarning, match="equal (eigen|singular )values in the derivative of linalg_"):
            second()


def test_equal_eigenvalues_jvp_of_mixing_vectors_warns() -> None:
    with pytest.warns(RuntimeWarning, match="linalg_eigh"):
        jvp(of_both, [UNIT], [ALONG])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tangent = jvp(of_both, [UNIT], [np.diag([1.0, 2.0, 3.0])])[1]
    np.testing.assert_allclose(tangent, np.e * np.sum(np.diag(WEIGHTS) * [1.0, 2.0, 3.0]))


def test_equal_eigenvalues_nested_jvp_warns_at_second_order() -> None:
    """Neither direction mixes the vectors of the value that is there twice; the second derivative does, by the third."""
    vectors = np.linalg.eigh(TWICE)[1]
    within = ALONG + ALONG.T
    apart = [
        vectors @ (np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]]) * m) @ vectors.T for m in (within, np.diag([2, 3, 4]) @ within)
    ]
    first, second = [d + d.T for d in apart]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jvp(of_both, [TWICE], [first])
        jvp(of_both, [TWICE], [second])
    with pytest.warns(RuntimeWarning, match="linalg_eigh"):
        jvp(lambda x: jvp(of_both, [x], [first])[1], [TWICE], [second])


def test_svd_zero_singular_values_warn() -> None:
    with pytest.warns(RuntimeWarning, match="linalg_svd: .*the basis"):
        grad(polar)(np.diag([1.0, 0.0, 0.0]))


LOST = {
    "tall": np.outer([1.0, 2.0, -1.0, 0.5], [1.0, -2.0]),
    "tall, exactly": np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
    "wide": np.outer([1.0, 2.0], [1.0, -2.0, 0.5, 1.0]),
}


def rebuild_matrix(a: Any, rank: int | None = None, full_matrices: bool = False) -> Any:
    """A matrix rebuilt from its singular values and vectors, or from the first `rank` of them."""
    rank = min(a.shape) if rank is None else rank
    u, s, vh = svd(a, full_matrices)
    return np.sum(real(*a.shape, seed=7) * ((u[:, :rank] * s[:rank]) @ vh[:rank]))


@for_each("full_matrices", [False, True])
@for_each("a", LOST.values(), ids=LOST)
def test_svd_rank_deficient_rectangular_matrix_warns(a: Any, full_matrices: bool) -> None:
    for derivative in (grad, lambda f: lambda x: jvp(f, (x,), (real(*x.shape, seed=8),))[1]):
        with pytest.warns(RuntimeWarning, match="singular values of 0 in the derivative of linalg_svd"):
            derivative(lambda x: rebuild_matrix(x, full_matrices=full_matrices))(a)
    t = real(*a.shape, seed=8)
    first = lambda x: rebuild_matrix(x, 1, full_matrices)  # noqa: E731
    np.testing.assert_allclose(np.sum(grad(first)(a) * t), numeric.directional(first, [a], [t]), rtol=1e-6, atol=1e-8)


# ------------------------------------------------------------------------------------ matrices that are nearly defective

JORDAN = np.array([[2.0, 1.0], [0.0, 2.0]])
DEFECTIVE = {
    "Jordan block": JORDAN,
    "nilpotent": JORDAN - 2 * np.eye(2),
    "rotated": np.array([[3.0, 1.0], [-1.0, 1.0]]),
    "three": np.eye(3) + np.eye(3, k=1),
    "two blocks": np.kron(np.eye(2), JORDAN),
    "stack": np.stack([JORDAN, np.diag([1.0, 2.0])]),
}


@for_each("a", DEFECTIVE.values(), ids=DEFECTIVE)
@for_each("values", [np.linalg.eigvals, lambda a: np.linalg.eig(a)[0], lambda a: np.abs(np.linalg.eig(a)[1])])
def test_eig_of_defective_matrix_warns(values, a):
    def total(a):
        return np.sum(np.real(values(a) ** 2))

    for derive in (lambda: grad(total)(a), lambda: jvp(total, (a,), (a,))):
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            derive()
        assert any("nearly defective" in str(warning.message) for warning in records)


@for_each("of", [scipy.linalg.logm, lambda a: scipy.linalg.fractional_matrix_power(a, 0.5), scipy.linalg.sqrtm])
@pytest.mark.filterwarnings("ignore")
def test_inv_and_solve_of_singular_matrix_raise(of):
    with pytest.raises((scipy.linalg.LinAlgError, ValueError)):
        grad(lambda a: np.sum(np.real(of(a))))(np.array([[0.0, 1.0], [0.0, 0.0]]))
