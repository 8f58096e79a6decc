"""Sparsity patterns of Jacobians, coloring of their columns, and sparse derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import compgraph as cg
from autodiff import grad, hessian, jacobian, jacrev, jvp
from autodiff.operators import contractions, sparse
from autodiff.operators.sparse import color_columns
from autodiff.reverse.linearization import Linearization
from tests.support.arguments import Case
from tests.support.checks.sparsity import check_sparsity, traced
from tests.support.for_each import for_each

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def sparsity_pattern(f: Function, *args: Any) -> list[Array]:
    """Which results depend on which elements of each argument."""
    recorded = traced(f, *args)
    return [sparse.sparsity_pattern(recorded, x).toarray() for x in recorded.inputs]


X = np.array([0.3, -0.7, 1.1, 0.4])
BAND = np.eye(4) + np.diag(np.ones(3), 1)
EXACT: dict[str, tuple[Function, Any]] = {
    "elementwise": (lambda x: np.sin(x) * x + 2, np.eye(4)),
    "broadcast": (lambda x: x[:, None] * x[None, :2], None),
    "slices": (lambda x: x[1:] * x[:-1], BAND[:3]),
    "backwards": (lambda x: x[::-1] ** 2, np.eye(4)[::-1]),
    "an index twice": (lambda x: x[[1, 1, 3]], np.eye(4)[[1, 1, 3]]),
    "sum of rows": (lambda x: np.sum(x.reshape(2, 2) ** 2, axis=1), np.kron(np.eye(2), [1, 1])),
    "sum of columns": (lambda x: np.mean(x.reshape(2, 2) ** 2, axis=0, keepdims=True), np.kron([1, 1], np.eye(2))),
    "sorted": (np.sort, np.eye(4)[np.argsort(X)]),
    "joined": (lambda x: np.concatenate([x[2:], [1.0], x[:1]]), np.eye(5)[[2, 3, 4, 0]][:, :4]),
    "stacked": (lambda x: np.stack([x[:2], x[2:]], axis=1), np.eye(4)[[0, 2, 1, 3]]),
    "a sparse matrix": (lambda x: BAND @ np.exp(x), BAND),
    "a vector by a matrix": (lambda x: np.exp(x) @ BAND, BAND.T),
    "only one element": (lambda x: x[2] * np.ones(3), np.eye(4)[[2, 2, 2]]),
    "piecewise constant": (lambda x: np.floor(x) * x, np.eye(4)),
    "unknown": (lambda x: np.cumsum(x[:2]), np.ones((2, 1)) * [1, 1, 0, 0]),
    "branches": (lambda x: np.where(x > 0, x, x[::-1]), np.eye(4) + np.eye(4)[::-1]),
    "gradient of a chain": (grad(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2)), BAND + BAND.T),
    "gradient of a loop": (
        grad(lambda x: sum(np.sin(x[i]) * x[i + 1] for i in range(3))),
        BAND + BAND.T - 2 * np.diag([0, 0, 0, 1]),
    ),
}


def _rows(x: Any, length: int = 3) -> Any:
    return x.reshape(-1, length)


FACTOR = np.array([[1.0, 0.0, 2.0], [-1.0, 3.0, 0.5], [0.0, 0.0, 1.5]])
VECTORS = np.random.default_rng(3).normal(size=(4, 3))
PRODUCTS: dict[str, Function] = {
    "cross": lambda x: np.cross(_rows(x), VECTORS),
    "cross of nodes": lambda x: np.cross(_rows(x)[:2], _rows(x)[2:]),
    "cross along axes": lambda x: np.cross(x.reshape(3, 4), VECTORS, axisa=0, axisc=0),
    "matmul of stacks": lambda x: FACTOR @ x.reshape(4, 3, 1),
    "matmul of nodes": lambda x: x[:9].reshape(3, 3) @ x[9:, None],
    "matmul, broadcast": lambda x: x[:6].reshape(1, 2, 3) @ x[6:].reshape(2, 3, 1),
    "matrix times a constant": lambda x: _rows(x) @ FACTOR,
    "einsum": lambda x: np.einsum("ij,nj->ni", FACTOR, _rows(x)),
    "einsum of nodes": lambda x: np.einsum("ni,nj->nij", _rows(x), _rows(x)),
    "einsum of three": lambda x: np.einsum("ni,nj,ij->n", _rows(x), VECTORS, FACTOR),
    "einsum with dots": lambda x: np.einsum("...i,...i", _rows(x), VECTORS),
    "einsum of a diagonal": lambda x: np.einsum("nii->ni", x[:8].reshape(2, 2, 2)),
    "einsum, broadcast": lambda x: np.einsum("ij,kj->ik", x[:3, None], _rows(x[3:9])),
    "inner": lambda x: np.inner(_rows(x), FACTOR),
    "dot": lambda x: np.dot(_rows(x), np.stack([FACTOR, FACTOR])),
    "dot of a number": lambda x: np.dot(x[0], x[1:]),
    "tensordot": lambda x: np.tensordot(x.reshape(2, 3, 2), np.ones((2, 3, 4)), ([1, 2], [1, 0])),
    "outer": lambda x: np.outer(x[:4], x[4:6]),
    "vecdot": lambda x: np.vecdot(_rows(x), VECTORS),
    "matvec": lambda x: np.matvec(x[:9].reshape(3, 3), x[9:]),
    "vecmat": lambda x: np.vecmat(x[9:], x[:9].reshape(3, 3)),
}


@for_each("label", PRODUCTS)
def test_sparse_jacobian_of_products_is_exact(label: str) -> None:
    x, f = np.random.default_rng(4).normal(size=12), PRODUCTS[label]
    matrix, dense = jacobian(f, sparse=True)(x), jacrev(f)(x)
    assert np.allclose(matrix.toarray(), dense.reshape(matrix.shape), rtol=1e-12)
    assert matrix.nnz == np.count_nonzero(dense)


def test_sparse_jacobian_of_products_along_other_axes() -> None:
    axes = [(1, 0), (0, 1), (1, 0)]
    for f in (lambda x: np.matmul(VECTORS, x.reshape(4, 3), axes=axes), lambda x: np.vecdot(x.reshape(3, 4), VECTORS.T, axis=0)):
        x = np.random.default_rng(4).normal(size=12)
        matrix, dense = jacobian(f, sparse=True)(x), jacrev(f)(x)
        assert np.allclose(matrix.toarray(), dense.reshape(matrix.shape), rtol=1e-12)


def test_sparse_structure_of_large_products_is_full() -> None:
    x = np.ones(600)

    def f(x: Any) -> Any:
        return np.tensordot(x[:300].reshape(3, 100), x[300:].reshape(100, 3), 1)[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contractions, "MAX_INDICES", 100)
        assert jacobian(f, sparse=True)(x).nnz == 3 * 600
    assert jacobian(f, sparse=True)(x).nnz == 3 * 200


@for_each("label", EXACT)
def test_sparse_structure_of_jacobian(label: str) -> None:
    f, expected = EXACT[label]
    if expected is None:
        expected = jacrev(f)(X).reshape(-1, 4)
    assert np.array_equal(sparsity_pattern(f, X)[0], np.asarray(expected) != 0)
    matrix = jacobian(f, sparse=True)(X)
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert np.allclose(matrix.toarray(), jacrev(f)(X).reshape(-1, 4), rtol=1e-14, atol=1e-15)


# ------------------------------------------------------------------------------------------- coloring

PATTERNS: dict[str, tuple[Any, int]] = {
    "nothing": (np.zeros((3, 4)), 1),
    "diagonal": (np.eye(5), 1),
    "a band": (sum(np.eye(9, k=k) for k in (-1, 0, 1)), 3),
    "a wide band with holes": (np.eye(9) + np.eye(9, k=5), 2),
    "full": (np.ones((3, 4)), 4),
    "an arrow": (np.eye(6) + np.eye(6)[:, :1] + np.eye(6)[:1], 6),
    "a row": (np.ones((1, 3)), 3),
    "a column": (np.ones((3, 1)), 1),
    "a grid": (np.kron(np.eye(4), np.eye(4, k=1) + np.eye(4) + np.eye(4, k=-1)) + np.eye(16, k=4) + np.eye(16, k=-4), 8),
}


@for_each("label", PATTERNS)
def test_color_columns_uses_few_colors(label: str) -> None:
    pattern, at_most = PATTERNS[label]
    colors, count = color_columns(scipy.sparse.csr_array(pattern != 0))
    check_coloring(pattern != 0, colors)
    assert count <= at_most
    assert set(colors) <= set(range(count))


def check_coloring(pattern: Array, colors: Array) -> None:
    """Fail if two columns of one color share a row."""
    for row in pattern:
        used = colors[row]
        assert len(set(used)) == len(used), f"columns of colors {used} meet"


def test_color_columns_unsorted_indices() -> None:
    pattern = scipy.sparse.csr_array((np.ones(4, bool), [2, 0, 3, 1], [0, 2, 4]), shape=(2, 4))
    check_coloring(pattern.toarray(), color_columns(pattern)[0])


def test_color_columns_random_patterns_and_check_detects_errors() -> None:
    rng = np.random.default_rng(0)
    for density in (0.02, 0.1, 0.4):
        pattern = rng.random((30, 40)) < density
        check_coloring(pattern, color_columns(scipy.sparse.csr_array(pattern))[0])
    with pytest.raises(AssertionError, match="meet"):
        check_coloring(np.eye(3, k=1) + np.eye(3) != 0, np.array([0, 0, 1]))


# ------------------------------------------------------------------------------------------ derivatives


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def arrow(x: Any) -> Any:
    return np.concatenate([np.sum(x**2)[None], x[1:] * x[0]])


def test_sparse_jacobian_needs_few_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-1, 2, 200)
    passed: list[int] = []
    for name in ("push", "pull"):
        original = getattr(Linearization, name)

        def counting(self: Any, directions: Any, *count: int, original: Any = original) -> Any:
            passed.append(count[0] if count else len(directions))
            return original(self, directions, *count)

        monkeypatch.setattr(Linearization, name, counting)
    matrix = hessian(rosenbrock, sparse=True)(x)
    assert passed == [3]
    assert matrix.nnz == 3 * 200 - 2
    passed.clear()
    wide = jacobian(lambda x: np.stack([np.sum(x[:100] ** 2), np.sum(x[100:])]), sparse=True)(x)
    assert passed == [1]
    assert wide.nnz == 200
    monkeypatch.undo()
    assert np.allclose(matrix.toarray(), hessian(rosenbrock)(x), rtol=1e-14)


def test_sparse_jacobian_of_other_shapes() -> None:
    x = np.arange(6.0).reshape(2, 3)
    matrix = jacobian(lambda x: np.sin(x).T, sparse=True)(x)
    assert np.allclose(matrix.toarray(), jacrev(lambda x: np.sin(x).T)(x).reshape(6, 6))
    by_x, by_y = jacobian(lambda x, y: x * y, (0, 1), sparse=True)(X, X + 1)
    assert np.array_equal(by_x.toarray(), np.diag(X + 1))
    assert np.array_equal(by_y.toarray(), np.diag(X))
    value, aux = jacobian(lambda x: (arrow(x), "aux"), has_aux=True, sparse=True)(X)
    assert aux == "aux"
    assert np.allclose(value.toarray(), jacrev(arrow)(X))
    assert hessian(lambda x: (rosenbrock(x), 1), has_aux=True, sparse=True)(X)[1] == 1
    assert jacobian(lambda x: x[:0], sparse=True)(X).shape == (0, 4)
    assert jacobian(lambda t: t**2, sparse=True)(3.0).toarray() == [[6.0]]
    assert jacobian(lambda x: cg.constant(np.ones(2)) * 1, sparse=True)(X).nnz == 0

    def written(x: Any) -> Any:
        y = np.zeros_like(x)
        y[1:] = x[:-1] ** 2
        return y

    assert np.allclose(jacobian(written, sparse=True)(X).toarray(), jacrev(written)(X))


def test_sparse_structure_follows_branches_at_the_point() -> None:
    assert jacobian(np.sort, sparse=True)(X[::-1].copy()).toarray()[0, 2] == 1
    assert jacobian(np.sort, sparse=True)(X).toarray()[0, 1] == 1


OUTER = cg.variable(X)
ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "complex": (lambda: jacobian(np.sin, sparse=True)(X + 0j), TypeError, "sparse=True is for real numbers"),
    "outer tangents": (lambda: jvp(jacobian(np.sin, sparse=True), (X,), (X,)), TypeError, "cannot have tangents"),
    "outer gradient": (
        lambda: grad(lambda x: np.sum(jacobian(np.sin, sparse=True)(x).data))(X),
        TypeError,
        "depends on nodes recorded outside",
    ),
    "outer variable": (
        lambda: hessian(lambda x: np.sum(np.sin(OUTER * x)), sparse=True)(X),
        TypeError,
        "hessian: the function depends on nodes recorded outside",
    ),
    "several arguments": (lambda: hessian(lambda x, y: x @ y, (0, 1), sparse=True), ValueError, "needs a single argument"),
}


@for_each("label", ERRORS)
def test_sparse_bad_calls_raise(label: str) -> None:
    call, error, message = ERRORS[label]
    with pytest.raises(error, match=message):
        call()


def test_sparse_structure_check_detects_missing_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of structures fails for one that is too small."""
    monkeypatch.setattr(sparse.Patterns, "union", lambda self, patterns: next(g for g in patterns if g is not None))
    with pytest.raises(AssertionError, match="lacks parts"):
        check_sparsity(Case("mul", "", lambda x: x[1:] * x[:-1], (X,)))
    assert sparse.longest_row(scipy.sparse.csr_array(np.eye(2))) == 1
