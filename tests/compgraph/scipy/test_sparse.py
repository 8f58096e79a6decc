"""Derivatives of ``scipy.sparse``: products of plain matrices with nodes, and matrices whose elements are nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.arguments import real
from tests.support.scipy_checks import Rows, functions

M = sp.csr_array(np.array([[0.5, 0.0, -1.2, 0.0, 2.0], [0, 0, 0, 0, 0], [1.1, 0.7, 0, 0, 0.3], [0, -0.4, 0, 1.5, 0]]))
D = M.data.copy()
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
ROWS, COLS = np.array([0, 1, 2, 2, 0, 0]), np.array([1, 1, 0, 2, 1, 2])  # a place twice, not in order
X, Y, V = real(5, seed=1), real(4, 5, seed=2), real(4, seed=3)


def csr(d: Any, kind: Any = sp.csr_array) -> Any:
    return kind((d, M.indices, M.indptr), shape=M.shape)


def coo(e: Any, kind: Any = sp.coo_array) -> Any:
    return kind((e, (ROWS, COLS)), shape=(3, 3))


PLAIN: dict[str, list[tuple[Any, ...]]] = {
    **{
        f"{name} {kind}": [
            ("A @ x", lambda x, a=a: a @ x, X),
            ("A.dot(x)", lambda x, a=a: a.dot(x), X),
            ("A @ X", lambda x, a=a: a @ x, real(5, 2, seed=4)),
            ("x @ A", lambda x, a=a: x @ a, V),
            ("X @ A", lambda x, a=a: x @ a, real(2, 4, seed=5)),
            ("A.T @ x", lambda x, a=a: a.T @ x, V),
        ]
        for name in FORMATS
        for kind, a in (("array", M.asformat(name)), ("matrix", sp.csr_matrix(M).asformat(name)))
    },
    "csr": [
        ("A * X", lambda y: (M * y).toarray(), Y),
        ("X * A", lambda y: (y * M).toarray(), Y),
        ("A.multiply(x)", lambda x: M.multiply(x).toarray(), X),
        ("A * s", lambda s: (s * M * s).toarray(), 1.3),
        ("A / s", lambda s: (M / s).toarray(), 1.3),
        ("A / X", lambda y: (M / (3 + y)).toarray(), Y),
        ("A + X", lambda y: M + y, Y),
        ("X + A", lambda y: y + M, Y),
        ("A - X", lambda y: M - y, Y),
        ("X - A", lambda y: y - M, Y),
        ("a column", lambda x: M @ np.reshape(x, (5, 1)), X),
        ("a list", lambda s: M @ [s, 1.0, s, 2.0, s**2], 1.3),
        ("complex", lambda x: (M * (1 + 2j)) @ x, X + 1j),
    ],
    "spmatrix": [
        ("A * x", lambda x: sp.csr_matrix(M) * x, X),
        ("x * A", lambda x: x * sp.csr_matrix(M), V),
        ("s * A", lambda s: (s * sp.csr_matrix(M)).toarray(), 1.3),
    ],
}

ELEMENTS: dict[str, list[tuple[Any, ...]]] = {
    "products": [
        ("A @ x", lambda d, x: csr(d) @ x, D, X),
        ("A @ X", lambda d, x: csr(d) @ x, D, real(5, 2, seed=4)),
        ("x @ A", lambda d, x: x @ csr(d), D, V),
        ("A.T @ x", lambda d, x: csr(d).T @ x, D, V),
        ("dot", lambda d, x: csr(d).dot(x), D, X),
        ("spmatrix", lambda d, x: csr(d, sp.csr_matrix) * x, D, X),
        ("A @ B", lambda d: (csr(d) @ M.T).toarray(), D),
        ("B @ A", lambda d: (M.T @ csr(d)).toarray(), D),
        ("A.T @ A", lambda d: (csr(d).T @ csr(d)).toarray(), D),
        ("complex", lambda d, x: csr(d) @ x, D + 0.5j, X + 1j),
    ],
    "sums": [
        ("A + B", lambda d: (csr(d) + M + csr(d) * 2).toarray(), D),
        ("B + A", lambda d: (M.tocsc() + csr(d)).toarray(), D),
        ("B - A", lambda d: (2 * M - csr(d)).toarray(), D),
        ("-A", lambda d: (-csr(d)).toarray(), D),
        ("A * B", lambda d: (csr(d) * M + M * csr(d)).toarray(), D),
        ("A * A", lambda d: (csr(d) * csr(d)).toarray(), D),
        ("A * X", lambda d, y: (csr(d) * y).toarray(), D, Y),
        ("A * x", lambda d, x: csr(d).multiply(x).toarray(), D, X),
        ("A / s", lambda d, s: (csr(d) / s).toarray(), D, 1.3),
        ("A + X", lambda d, y: csr(d) + y, D, Y),
        ("power", lambda d: (csr(d) ** 2).toarray(), D),
        ("sin", lambda d: csr(d).sin().toarray(), D),
        ("abs", lambda d: abs(csr(d)).toarray(), D),
    ],
    "made": [
        *[(kind.__name__, lambda e, kind=kind: coo(e, kind).toarray(), real(6)) for kind in
          (sp.coo_array, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.csr_matrix, sp.csc_matrix)],
        ("a dense array", lambda y: sp.csr_array(y) @ X, Y),
        ("another", lambda d: sp.csc_array(csr(d)).toarray(), D),
        ("dia", lambda y: sp.dia_array((y, [0, 1, -1, 2]), shape=(5, 5)).toarray(), Y),
        ("a list", lambda s: sp.csr_array(([s, 2.0, s * s], ([0, 1, 1], [1, 0, 1]))).toarray(), 1.3),
        ("diags", lambda x: sp.diags([x[1:], x, 2 * x[:-1]], [-1, 0, 1]).toarray(), X),
        ("diags of one", lambda x: sp.diags(x).tocsc() @ X, X),
        ("diags_array", lambda x: sp.diags_array([x[0], x[1:5], 1.0], offsets=[-1, 0, 1], shape=(4, 4)).toarray(), X),
        ("spdiags", lambda y: sp.spdiags(y, [0, 1, -1, 2], 5, 5).toarray(), Y),
        ("bmat", lambda d: sp.bmat([[csr(d), None], [M, 2 * csr(d)]]).toarray(), D),
        ("block_array", lambda d, y: sp.block_array([[csr(d), y]], format="csc").toarray(), D, Y),
        ("hstack", lambda d: sp.hstack([csr(d), M]).toarray(), D),
        ("vstack", lambda d: sp.vstack([M, csr(d)], format="csr").toarray(), D),
        ("block_diag", lambda d: sp.block_diag([csr(d), M]).toarray(), D),
        ("kron", lambda d: sp.kron(csr(d), M + csr(d)).toarray(), D),
        ("kron without elements", lambda d: sp.kron(sp.csr_array((2, 2)), csr(d)).toarray() + d[0], D),
        ("kron with eye", lambda d: sp.kron(sp.eye_array(2), csr(d)).toarray(), D),
        ("kronsum", lambda e: sp.kronsum(coo(e), sp.eye_array(2)).toarray(), real(6)),
        ("kronsum of zeros", lambda e: sp.kronsum(sp.csr_array((2, 2)), coo(e)).toarray(), real(6)),
        ("tril and triu", lambda d: (sp.tril(csr(d)) - sp.triu(csr(d), 1)).toarray(), D),
    ],
    "read": [
        ("toarray", lambda d: csr(d).toarray(), D),
        ("sums", lambda d: (csr(d).sum(axis=0), csr(d).sum(axis=1), csr(d).sum(), csr(d).mean(axis=0)), D),
        ("rows", lambda d: (csr(d)[1:3].toarray(), csr(d)[[0, 2]].toarray(), csr(d)[:, 1:3].toarray()), D),
        ("elements", lambda d: (csr(d)[0, 2], csr(d)[2, 0] ** 2), D),
        ("diagonal", lambda d: (csr(d).diagonal(), csr(d).diagonal(2), csr(d).trace()), D),
        ("a sum at one place", lambda e: (coo(e).diagonal(), coo(e).tocsr()[0, 1], coo(e).tocsc().data), real(6)),
        ("find", lambda d: sp.find(csr(d))[2], D),
        ("reshape", lambda d: csr(d).reshape((2, 10)).toarray(), D),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(PLAIN))
def test_sparse_plain_matrix_derivatives(rows: Rows) -> None:
    rows.check()


@pytest.mark.parametrize("rows", functions(ELEMENTS))
def test_sparse_matrix_of_nodes_derivatives(rows: Rows) -> None:
    rows.check()


def test_sparse_values_and_classes_equal_scipy() -> None:
    def f(d: Any) -> Any:
        a, plain = csr(d), csr(D)
        for one, two in ((a, plain), (a.T, plain.T), (a @ M.T, plain @ M.T), (a + M, plain + M), (a.tocoo(), plain.tocoo())):
            assert isinstance(one, type(two))
            assert (one.format, one.shape, one.nnz, one.dtype) == (two.format, two.shape, two.nnz, two.dtype)
            np.testing.assert_allclose(one.toarray().value, two.toarray(), rtol=1e-15)
        assert sp.issparse(a)
        np.testing.assert_array_equal((a @ X).value, plain @ X)
        return a.sum()

    np.testing.assert_array_equal(ad.grad(f)(D), np.ones(D.size))


def test_sparse_on_plain_arguments_equals_scipy() -> None:
    ad.grad(lambda x: np.sum(M @ x))(X)
    for matrix in (M @ M.T, M + M, M * 2.0, sp.diags_array([1.0, 2.0]), sp.kron(M, M), sp.hstack([M, M])):
        assert type(matrix).__module__.startswith("scipy.sparse.")
    assert type(M @ X) is np.ndarray


def test_sparse_cotangent_has_elements_only() -> None:
    """A matrix that would not fit into memory as a dense one."""
    n = 200_000
    places = np.arange(n)
    x = np.linspace(0, 1, n)

    def f(d: Any) -> Any:
        return np.sum((sp.csr_array((d, (places, places)), shape=(n, n)) @ x) ** 2)

    np.testing.assert_allclose(ad.grad(f)(np.ones(n)), 2 * x**2)


def test_sparse_jacobians_of_both_modes_agree() -> None:
    for f, x in ((lambda x: M @ np.sin(x), X), (lambda d: csr(d) @ X, D), (lambda d: csr(d).toarray(), D)):
        np.testing.assert_allclose(ad.jacrev(f)(x), ad.jacfwd(f)(x), atol=1e-14)
    total = lambda d: np.sum((csr(d) @ X) ** 3)  # noqa: E731
    np.testing.assert_allclose(ad.hessian(total)(D), ad.jacrev(ad.grad(total))(D), atol=1e-13)
    np.testing.assert_allclose(ad.jacobian(lambda x: M @ x)(X), M.toarray(), atol=0)


def test_sparse_programs_beside_dense_term() -> None:
    """Ridge regression with a sparse design, and a graph's Laplacian whose weights are parameters."""
    laplacian = sp.csr_array(np.array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]]))

    def loss(w: Any) -> Any:
        a = sp.diags_array(w) @ laplacian
        return np.sum(w**2) + np.sum((a @ np.array([1.0, 2.0, 3.0]) - 1) ** 2)

    w = np.array([0.5, 1.5, -0.3])
    flow = laplacian @ np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ad.grad(loss)(w), 2 * w + 2 * (w * flow - 1) * flow)


def test_sparse_top_level_nodes() -> None:
    ad.grad(lambda x: np.sum(M @ x))(X)
    d = cg.variable(D, "d")
    y = np.sum(csr(d) @ X)
    assert y.operands[0].opname == "scipy_sparse_matmul"
    np.testing.assert_allclose(gradient(y)["d"], X[M.indices])


def test_sparse_forward_variables() -> None:
    d = ad.forward.variables(D)
    np.testing.assert_allclose((csr(d) @ X).jacobian, ad.jacrev(lambda d: csr(d) @ X)(D))


def test_sparse_unsupported_calls_raise() -> None:
    for f in (
        lambda d: csr(d).max(),
        lambda d: csr(d).setdiag(1.0),
        lambda d: csr(d).todia(),
        lambda d: sp.dok_array(csr(d)),
        lambda d: csr(d) + 1.0,
        lambda d: csr(d) ** -1,
        lambda d: csr(d) / M,
        lambda d: csr(d).__setitem__((0, 0), 1.0),
        lambda d: csr(d).__imul__(2.0),
        lambda d: csr(d) == M,
        lambda d: 1.0 / csr(d),
        lambda d: np.sin(csr(d)),
        lambda d: M.tolil().__setitem__((0, 0), d[0]),
        lambda d: sp.save_npz("nowhere", csr(d)),
        lambda d: csr(d).toarray(out=np.zeros((4, 5))),
    ):
        with pytest.raises((TypeError, AttributeError, NotImplementedError)):
            ad.grad(lambda d, f=f: np.sum(f(d)) + np.sum(d))(D)
    for f in (lambda d: csr(d) @ V, lambda d: csr(d) + M.T, lambda d: csr(d) @ M):
        with pytest.raises(ValueError, match=r"shape|dimension"):
            ad.grad(f)(D)


BUILT: dict[str, Any] = {
    "hstack": lambda a: sp.hstack([a, sp.eye_array(3)], "csc"),
    "vstack": lambda a: sp.vstack([a, sp.eye_array(3)], "csc"),
    "bmat": lambda a: sp.bmat([[a, None], [None, sp.eye_array(3)]], "csc"),
    "block_diag": lambda a: sp.block_diag([a, sp.eye_array(3)], "csc"),
    "diags": lambda a: sp.diags(a.diagonal(), 0, None, "csc"),
    "diags with dtype": lambda a: sp.diags([a.diagonal()], [1], (4, 4), "csc", np.float32),
}


@pytest.mark.parametrize("name", BUILT)
def test_options_by_position_are_honored(name: str) -> None:
    build = BUILT[name]
    x = np.array([1.0, 2.0, 3.0])
    expected = build(sp.csr_array(np.diag(x)))

    def loss(x: Any) -> Any:
        matrix = build(sp.csr_array(np.diag(x)))
        assert (matrix.format, matrix.dtype, matrix.shape) == (expected.format, expected.dtype, expected.shape)
        return (matrix @ np.arange(1.0, 1 + matrix.shape[1])).sum()

    value, slope = ad.value_and_grad(loss)(x)
    np.testing.assert_allclose(value, (expected @ np.arange(1.0, 1 + expected.shape[1])).sum())
    np.testing.assert_allclose(slope, [2, 3, 4] if name == "diags with dtype" else [1, 2, 3])


INVALID: dict[str, Any] = {
    "shape of dense elements": (lambda x: sp.csr_array(np.outer(x, x), shape=(5, 4)), ValueError, "differs from the shape"),
    "one axis": (lambda x: sp.coo_array(x), TypeError, "one axis"),
    "axes twice": (lambda x: sp.permute_dims(sp.csr_array(np.outer(x, x)), (0, 0)), ValueError, None),
    "axis out of range": (lambda x: sp.swapaxes(sp.csr_array(np.outer(x, x)), 0, 5), ValueError, None),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_arguments_raise(name: str) -> None:
    build, error, words = INVALID[name]
    with pytest.raises(error, match=words):
        ad.grad(lambda x: build(x).sum())(np.array([1.0, 2.0]))


OUTER = sp.csr_array(np.diag([1.0, 2.0, 3.0]))
STRUCTURES: dict[str, Any] = {
    "find": lambda x: np.sum(sp.find(sp.csr_array(np.outer(x, x)))[2] * sp.find(sp.csr_array(np.outer(x, x)))[0]),
    "coordinates": lambda x: sp.csr_array((np.ones(3), (x.astype(int), [0, 1, 2])), shape=(5, 5)).toarray()[1].sum() * x[2],
    "coordinates of nodes": lambda x: sp.coo_matrix((x, (np.argsort(x), [0, 1, 2]))).toarray()[1].sum() * x[2],
    "indices": lambda x: sp.csr_matrix((x, np.argsort(x), [0, 1, 2, 3]), shape=(3, 3)).toarray()[:, 1].sum() * x[2],
    "shape": lambda x: sp.csr_matrix((np.argmax(x) + 1, 3)).shape[0] * x[2],
    "mask": lambda x: OUTER[x > 0.6].sum() * x[2],
    "indices of rows": lambda x: OUTER[np.argsort(x)[:2]].sum() * x[2] + np.sum(np.argsort(x)[:2]),
    "index of nodes": lambda x: sp.csr_array(np.diag(x))[x > 0.6].sum(),
    "assigned place": lambda x: _with_assignment(np.argmin(x)).sum() * x[2],
}


def _with_assignment(row: Any) -> Any:
    matrix = OUTER.tolil()
    matrix[row, 0] = 7.0
    return matrix


@pytest.mark.parametrize("name", STRUCTURES)
def test_sparse_structure_that_depends_on_values_is_guarded(name: str) -> None:
    f = STRUCTURES[name]
    points = np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 3.0], [1.0, 2.0, 0.5]])
    x = cg.placeholder((3,), example=points[0])
    executor = cg.Executor(f(x))
    jitted = cg.jit(f)
    failures = 0
    for point in points:
        expected = f(point)
        value, gradient = ad.value_and_grad(f)(point)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(ad.jacfwd(f)(point), gradient)
        assert [jitted(point) for _ in range(3)] == [pytest.approx(expected)] * 3
        try:
            assert executor.run({x: point}) == pytest.approx(expected)
        except cg.GuardError:
            failures += 1
    assert failures in (1, 2)


def test_sparse_assignment_of_nodes_names_the_replacement() -> None:
    for assign in (
        lambda d: sp.lil_array((3, 3)).__setitem__((0, 0), d[0]),
        lambda d: sp.dok_matrix((3, 3)).__setitem__((0, 0), d[0]),
        lambda d: OUTER.copy().__setitem__((0, slice(None)), d[:3]),
        lambda d: OUTER.copy().setdiag(d[:3]),
    ):
        for call in (ad.grad(lambda d, assign=assign: assign(d) or d.sum()), lambda d, assign=assign: assign(cg.variable(d))):
            with pytest.raises(TypeError, match="coo_array"):
                call(D)


@pytest.mark.parametrize("k", [0, 1, -2])
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_setdiag_of_traced_elements_matches_scipy(format: str, k: int) -> None:
    def program(d: Any, call: int) -> Any:
        a = coo(d).asformat(format)
        rows, cols = a.shape
        a.setdiag([lambda: d[:2] ** 2, lambda: 3.0, lambda: np.arange(1.0, 9.0) * d[0], lambda: d[1]][call](), k)
        return a.toarray()[::-1] @ np.arange(1.0, cols + 1) @ np.arange(2.0, rows + 2) + a.nnz + np.sum(a.diagonal(k)) ** 2

    d = np.array([1.0, 0.3, 2.0, -1.0, 0.7, 0.5])
    for call in range(4):
        value, gradient = ad.value_and_grad(lambda d, call=call: program(d, call))(d)
        np.testing.assert_allclose(value, program(d, call), rtol=1e-12)
        expected = ad.numeric.gradient(lambda d, call=call: program(d, call), [d])[0]
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_setdiag_of_a_matrix_made_before_the_call_raises() -> None:
    a = coo(cg.variable(np.arange(1.0, 7.0))).tocsr()
    before = a.toarray().value.copy()
    for value in (lambda x: x, lambda x: x[:2]):
        with pytest.raises(TypeError, match="coo_array"):
            ad.grad(lambda x, value=value: (a.setdiag(value(x)), np.sum(a.data))[1])(np.arange(3.0))
    with pytest.raises(ValueError, match="exceeds"):
        a.setdiag(1.0, 7)
    np.testing.assert_array_equal(a.toarray().value, before)


def test_eliminate_zeros_keeps_derivatives_of_zero_elements() -> None:
    def program(d: Any) -> Any:
        a = coo(d).tocsr()
        a.eliminate_zeros()
        return np.sum((a @ np.array([1.0, 2.0, 3.0])) ** 2) + a.sum()

    d = np.array([1.0, 0.0, 2.0, -1.0, 0.0, 0.5])
    np.testing.assert_allclose(ad.grad(program)(d), ad.numeric.gradient(program, [d])[0], rtol=1e-6, atol=1e-8)
