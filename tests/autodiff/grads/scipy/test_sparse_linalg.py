"""Derivatives of ``scipy.sparse.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import autodiff as ad
import compgraph as cg
from tests.support.arguments import real
from tests.support.scipy_checks import Rows, functions

N = 5
S = sp.csr_array(np.array(
    [[4.0, 1, 0, 0, -0.5], [0, 3.5, 0.7, 0, 0], [0.3, 0, 5, 1.4, 0], [0, -0.6, 0, 4.2, 0.2], [1, 0, 0, 0.4, 3.8]]
))  # fmt: skip
D, B, V0 = S.data.copy(), real(N, seed=1), np.ones(N)


def matrix(d: Any, kind: Any = sp.csr_array) -> Any:
    return kind((d, S.indices, S.indptr), shape=(N, N))


def columns(d: Any) -> Any:
    return matrix(d).tocsc()


def positive(d: Any) -> Any:
    return matrix(d) @ matrix(d).T


def small(x: Any) -> float:
    """A tolerance that can be reached."""
    return 1e-5 if x.dtype == np.float32 else 1e-13


def both(x: Any) -> Any:
    op = sl.LinearOperator((N, N), matvec=lambda x: 2 * x + x[::-1])
    return op.matvec(x), op @ x, op.dot(x)


def fix_sign(v: Any) -> Any:
    """Vectors with a sign that does not depend on the solver."""
    return v * np.sign(np.sum(np.asarray(v.value if isinstance(v, cg.Node) else v), axis=0))


SOLVING: dict[str, list[tuple[Any, ...]]] = {
    "spsolve": [
        ("csr", lambda d, b: sl.spsolve(matrix(d), b), D, B),
        ("csc", lambda d, b: sl.spsolve(columns(d), b, permc_spec="NATURAL"), D, B),
        ("columns", lambda d, b: sl.spsolve(columns(d), b), D, real(N, 2, seed=2)),
        ("one column", lambda d, b: sl.spsolve(columns(d), b), D, real(N, 1, seed=2)),
        ("plain", lambda b: sl.spsolve(S, b), B),
        ("plain right-hand side", lambda d: sl.spsolve(columns(d), B), D),
        ("spmatrix", lambda d, b: sl.spsolve(matrix(d, sp.csr_matrix), b), D, B),
        ("complex", lambda d, b: sl.spsolve(columns(d), b), D + 0.3j, B + 1j),
    ],
    "splu": [
        *[(trans, lambda d, b, t=trans: sl.splu(columns(d)).solve(b, t), D, B) for trans in "NTH"],
        ("columns", lambda d, b: sl.splu(columns(d)).solve(b), D, real(N, 2, seed=2)),
        ("plain", lambda b: sl.splu(S.tocsc()).solve(b), B),
        ("twice", lambda d, b: (lambda lu: lu.solve(lu.solve(b), "T"))(sl.splu(columns(d))), D, B),
    ],
    "factorized": [
        ("solve", lambda d, b: sl.factorized(columns(d))(b), D, B),
        ("plain", lambda b: sl.factorized(S.tocsc())(b), B),
    ],
    "spilu": [("plain", lambda b: sl.spilu(S.tocsc(), drop_tol=0.1).solve(b), B)],
    "spsolve_triangular": [
        ("lower", lambda d, b: sl.spsolve_triangular(sp.tril(matrix(d), format="csr"), b), D, B),
        ("upper", lambda d, b: sl.spsolve_triangular(sp.triu(matrix(d), format="csr"), b, lower=False), D, B),
        ("unit", lambda d, b: sl.spsolve_triangular(sp.tril(matrix(d), format="csr"), b, unit_diagonal=True), D, B),
        ("plain", lambda b: sl.spsolve_triangular(sp.tril(S, format="csr"), b), B),
    ],
    **{
        name: [("A and b", lambda d, b, name=name: getattr(sl, name)(positive(d), b, rtol=small(d))[0], D, B)]
        for name in ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
    },
    "iterations": [
        ("a dense matrix", lambda a, b: sl.cg(a @ a.T + np.eye(N), b, rtol=small(a))[0], real(N, N, seed=3), B),
        ("a plain matrix", lambda b: sl.gmres(S, b, rtol=small(b))[0], B),
        ("preconditioned", lambda d, b: sl.gmres(matrix(d), b, rtol=small(d), M=sp.diags_array(1 / S.diagonal()))[0], D, B),
        ("a shift", lambda d, b: sl.minres(positive(d), b, rtol=small(d), shift=-1.5)[0], D, B),
    ],
}

FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "norm": [
        *[(str(o), lambda d, o=o: sl.norm(matrix(d), o), D) for o in (None, "fro", 1, -1, np.inf)],
        ("an axis", lambda d: (sl.norm(matrix(d), axis=0), sl.norm(matrix(d), 1, axis=1)), D),
    ],
    "inv": [("csc", lambda d: sl.inv(columns(d)).toarray(), D)],
    "matrix_power": [("3", lambda d: sl.matrix_power(matrix(d), 3).toarray(), D / 4)],
    "expm_multiply": [
        ("a vector", lambda d, b: sl.expm_multiply(matrix(d), b), D / 4, B),
        ("columns", lambda d, b: sl.expm_multiply(matrix(d), b), D / 4, real(N, 2, seed=2)),
        ("times t", lambda t: sl.expm_multiply(S * t, B), 0.2),
        ("plain", lambda b: sl.expm_multiply(S / 4, b), B),
    ],
    "eigsh": [
        ("values", lambda d: sl.eigsh(matrix(d) + matrix(d).T, 2, v0=V0)[0], D),
        ("values alone", lambda d: sl.eigsh(positive(d), 2, v0=V0, which="SA", return_eigenvectors=False), D),
        ("vectors", lambda d: fix_sign(sl.eigsh(positive(d), 2, v0=V0)[1]), D),
        ("sigma", lambda d: sl.eigsh(matrix(d) + matrix(d).T, 2, sigma=7.5, v0=V0)[0], D),
    ],
    "svds": [
        ("values", lambda d: sl.svds(matrix(d), 2, v0=V0)[1], D),
        ("values alone", lambda d: sl.svds(matrix(d), 2, v0=V0, return_singular_vectors=False), D),
        ("all", lambda d: (lambda u, s, vh: (u * s**2) @ vh)(*sl.svds(matrix(d), 2, v0=V0)), D),
    ],
    "LinearOperator": [
        ("of a function", both, B),
        ("of a matrix", lambda x: (sl.aslinearoperator(S) @ x, sl.aslinearoperator(S).rmatvec(x)), B),
        ("columns", lambda x: sl.aslinearoperator(S) @ x, real(N, 2, seed=2)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(SOLVING))
def test_sparse_solvers_derivatives(rows: Rows) -> None:
    rows.check()


@pytest.mark.parametrize("rows", functions(FUNCTIONS))
def test_sparse_linalg_functions_derivatives(rows: Rows) -> None:
    rows.check(tolerance=1e-5)


def test_sparse_solvers_jacobians_of_both_modes_agree() -> None:
    for f, x in (
        (lambda d: sl.spsolve(columns(d), B), D),
        (lambda b: sl.spsolve(S, b), B),
        (lambda d: sl.splu(columns(d)).solve(B), D),
    ):
        np.testing.assert_allclose(ad.jacrev(f)(x), ad.jacfwd(f)(x), atol=1e-14)
    np.testing.assert_allclose(ad.jacobian(lambda b: sl.spsolve(S, b))(B), np.linalg.inv(S.toarray()), atol=1e-14)
    total = lambda d: np.sum(sl.spsolve(columns(d), B) ** 2)  # noqa: E731
    np.testing.assert_allclose(ad.hessian(total)(D), ad.jacrev(ad.grad(total))(D), atol=1e-12)


def test_sparse_linalg_values_equal_scipy() -> None:
    pairs: list[tuple[Any, Any]] = []

    def f(d: Any) -> Any:
        pairs.append((sl.spsolve(matrix(d), B).value, sl.spsolve(S, B)))
        pairs.append((sl.splu(columns(d)).solve(B).value, sl.splu(S.tocsc()).solve(B)))
        pairs.append((sl.eigsh(positive(d), 2, v0=V0)[0].value, sl.eigsh(S @ S.T, 2, v0=V0)[0]))
        return np.sum(d)

    ad.grad(f)(D)
    for one, two in pairs:
        np.testing.assert_allclose(one, two, rtol=1e-14)


def test_spsolve_poisson_conductivity() -> None:
    """A conductivity in a sparse system of equations, beside a term that keeps its graph."""
    n = 300
    b = np.ones(n)

    def loss(c: Any) -> Any:
        a = sp.diags_array([-c[1:-1], c[:-1] + c[1:], -c[1:-1]], offsets=[-1, 0, 1], format="csc")
        return np.sum(c**2) + np.sum(sl.spsolve(a, b)) / n**3

    c, h = np.linspace(1.0, 2.0, n + 1), 1e-5
    gradient = ad.grad(loss)(c)
    for k in (0, 100, n):
        e = np.zeros(n + 1)
        e[k] = h
        assert float(gradient[k]) == pytest.approx((loss(c + e) - loss(c - e)) / (2 * h), rel=1e-6)


def test_sparse_linalg_on_plain_arguments_equals_scipy() -> None:
    ad.grad(lambda b: np.sum(sl.spsolve(S, b)))(B)
    assert isinstance(sl.splu(S.tocsc()), sl.SuperLU)
    assert sl.cg(S @ S.T, B)[1] == 0
    assert type(sl.spsolve(S, B)) is np.ndarray


def test_sparse_linalg_unsupported_calls_raise() -> None:
    lu = sl.splu(S.tocsc())
    for f in (
        lambda d: lu.solve(d[:N]),
        lambda d: sl.spilu(columns(d)).solve(B),
        lambda d: sl.lsqr(matrix(d), B)[0],
        lambda d: sl.eigs(matrix(d), 2)[0],
        lambda d: sl.expm(columns(d)).toarray(),
        lambda d: sl.eigsh(positive(d), 2, M=sp.eye_array(N))[0],
        lambda d: sl.expm_multiply(matrix(d), B, start=0, stop=1, num=3),
        lambda d: sl.norm(matrix(d), 2),
        lambda d: sl.splu(columns(d)).L.toarray(),
        lambda d: sl.spsolve(columns(d), sp.csc_array(np.eye(N))).toarray(),
        lambda d: sl.cg(sl.LinearOperator((N, N), matvec=lambda x: d[0] * x), B)[0],
        lambda d: sl.cg(sl.LinearOperator((N, N), matvec=lambda x: x), d[:N])[0],
    ):
        with pytest.raises(TypeError):
            ad.grad(lambda d, f=f: np.sum(f(d)))(D)
    with pytest.raises(RuntimeError, match="no solution was found"):
        ad.grad(lambda b: np.sum(sl.cg(S @ S.T, b, maxiter=1, rtol=1e-12)[0]))(B)
    with pytest.raises(np.linalg.LinAlgError, match="repeated"):
        ad.grad(lambda d: sl.eigsh(sp.diags_array(d), 2, v0=np.array([1.0, 2, 3, 4, 5]))[1][0, 0])(
            np.array([1.0, 3.0, 3.0, 0.5, 0.2])
        )
