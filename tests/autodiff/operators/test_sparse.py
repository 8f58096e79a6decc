"""Sparsity patterns of Jacobians, coloring of their columns, and sparse derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import compgraph as cg
from autodiff import grad, hessian, jacobian, jacrev, jvp
from autodiff.operators import contractions, sparse, sparsity_patterns
from autodiff.operators.sparse import color_columns
from autodiff.reverse.linearization import Linearization
from tests.support.arguments import Case
from tests.support.checks.sparsity import check_sparsity, traced
from tests.support.checks.sparsity import sparsity_pattern as pattern_of_input
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def sparsity_pattern(f: Function, *args: Any) -> list[Array]:
    """Which results depend on which elements of each argument."""
    recorded = traced(f, *args)
    return [pattern_of_input(recorded, x).toarray() for x in recorded.inputs]


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
    "kron": lambda x: np.kron(x[:4].reshape(2, 2), x[4:10].reshape(2, 3)),
    "kron of other dimensions": lambda x: np.kron(FACTOR, x),
    "kron with a constant": lambda x: np.kron(_rows(x), np.array([1.0, 0.0, 2.0])),
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
            passed.append(count[0] if type(directions) is dict else len(directions))
            return original(self, directions, *count)

        monkeypatch.setattr(Linearization, name, counting)
    matrix = hessian(rosenbrock, sparse=True)(x)
    assert passed == [2]
    assert matrix.nnz == 3 * 200 - 2
    passed.clear()
    wide = jacobian(lambda x: np.stack([np.sum(x[:100] ** 2), np.sum(x[100:])]), sparse=True)(x)
    assert passed == [1]
    assert wide.nnz == 200
    passed.clear()
    stencil = jacobian(lambda x: x[2:] * x[:-2] - x[1:-1] ** 2, sparse=True)(x)
    assert passed == [1]  # no two rows share an element of a slice
    assert stencil.nnz == 3 * 198
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


def products_of_neighbors(x: Any) -> Any:
    return np.sin(x[1:]) * x[:-1] ** 2


SPARSE: Function = jacobian(products_of_neighbors, sparse=True)

OUTER: dict[str, tuple[Function, Function]] = {
    "elements": (lambda x: np.sum(SPARSE(x).data ** 2), lambda x: np.sum(jacrev(products_of_neighbors)(x) ** 2)),
    "a product": (lambda x: np.sum((SPARSE(x) @ x) ** 3), lambda x: np.sum((jacrev(products_of_neighbors)(x) @ x) ** 3)),
    "zero coefficients": (
        lambda x: np.sum(jacobian(lambda y: np.outer(x - X, X) @ y, sparse=True)(X).toarray() ** 2 + x[0]),
        lambda x: np.sum(jacrev(lambda y: np.outer(x - X, X) @ y)(X) ** 2 + x[0]),
    ),
    "hessian": (
        lambda x: np.sum(hessian(rosenbrock, sparse=True)(x).toarray() ** 2),
        lambda x: np.sum(hessian(rosenbrock)(x) ** 2),
    ),
}


@for_each("label", OUTER)
def test_sparse_jacobian_within_a_gradient(label: str) -> None:
    f, dense = OUTER[label]
    assert np.allclose(f(X), dense(X), rtol=1e-14)
    gradient = grad(f)(X)
    differences = [(dense(X + h) - dense(X - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    assert np.allclose(gradient, differences, rtol=1e-6, atol=1e-6)
    assert np.allclose(gradient, grad(dense)(X), rtol=1e-12)
    assert np.allclose(jacrev(grad(f))(X), jacrev(grad(dense))(X), rtol=1e-12)


def test_sparse_jacobian_keeps_derivatives_at_zero_coefficients() -> None:
    by_matrix = grad(lambda a: np.sum(jacobian(lambda y: a @ y, sparse=True)(X).toarray() * np.arange(16).reshape(4, 4)))
    assert np.array_equal(by_matrix(np.eye(4)), np.arange(16).reshape(4, 4))


ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "complex": (lambda: jacobian(np.sin, sparse=True)(X + 0j), TypeError, "sparse=True is for real numbers"),
    "outer tangents": (lambda: jvp(jacobian(np.sin, sparse=True), (X,), (X,)), TypeError, "cannot have tangents"),
    "several arguments": (lambda: hessian(lambda x, y: x @ y, (0, 1), sparse=True), ValueError, "needs a single argument"),
}


@for_each("label", ERRORS)
def test_sparse_bad_calls_raise(label: str) -> None:
    call, error, message = ERRORS[label]
    with pytest.raises(error, match=message):
        call()


def test_sparse_structure_check_detects_missing_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of structures fails for one that is too small."""
    monkeypatch.setattr(sparsity_patterns.Patterns, "union", lambda self, patterns: next(g for g in patterns if g is not None))
    with pytest.raises(AssertionError, match="lacks parts"):
        check_sparsity(Case("mul", "", lambda x: x[1:] * x[:-1], (X,)))
    assert sparse.longest_row(scipy.sparse.csr_array(np.eye(2))) == 1


# ------------------------------------------------------------------------------------------------ writes


def _written(x: Any) -> Any:
    y = np.empty(5)
    y[:4] = x**2
    y[4] = x[0] * x[3]
    return y


def _overwritten(x: Any) -> Any:
    y = np.zeros(4)
    y[...] = np.sum(x)
    y[1:] = x[:-1] ** 2
    y[::2] += x[2:]
    return y


def _rotated_in_place(x: Any) -> Any:
    y = x * 1.0
    for i in range(3):
        y[i + 1] = np.sin(y[i + 1]) + 0.5 * y[3 - i]
    return y


def _through_views(x: Any) -> Any:
    y = np.zeros((2, 4))
    column = y.T[1]
    column[:] = x[[0, 2]]
    before = y[:, 1] * 2
    y[0] = x
    return np.concatenate([before, y.ravel(), column])


def _repeated_index(x: Any) -> Any:
    y = np.zeros(3)
    y[[0, 1, 1]] = x[:3] ** 2
    return y


def _with_out(x: Any) -> Any:
    y = np.empty(4)
    np.multiply(x, x[::-1], out=y)
    np.negative(y[:2], out=y[2:])
    return y


def _transposed_buffer(x: Any) -> Any:
    y = np.empty((2, 2), np.float32, order="F")
    y[0], y[1] = x[:2], x[2:] * x[0]
    return np.exp(y)


def _into_the_argument(x: Any) -> Any:
    before = x[[0, 1]] ** 2
    x[0] = x[1] * x[2]
    after = x[[0, 3]]
    return np.concatenate([before, after * 2, x[:2]])


WRITES: dict[str, tuple[Function, Any]] = {
    "parts": (_written, np.concatenate([np.eye(4), [[1, 0, 0, 1]]])),
    "overwritten": (_overwritten, [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]),
    "a loop": (_rotated_in_place, [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]]),
    "views": (_through_views, np.vstack([np.eye(4), np.zeros((1, 4))])[[0, 2, 0, 1, 2, 3, 4, 2, 4, 4, 1, 2]]),
    "an index twice": (_repeated_index, np.eye(4)[[0, 2, 2]] * [[1], [1], [0]]),
    "out": (_with_out, (np.eye(4) + np.eye(4)[::-1])[[0, 1, 0, 1]]),
    "the argument": (
        _into_the_argument,
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 0]],
    ),
    "other layouts": (_transposed_buffer, [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]),
}


@for_each("label", WRITES)
def test_sparse_structure_of_functions_with_writes(label: str) -> None:
    f, expected = WRITES[label]
    assert np.array_equal(sparsity_pattern(f, X)[0], np.asarray(expected) != 0)
    matrix = jacobian(f, sparse=True)(X)
    assert np.allclose(matrix.toarray(), jacrev(f)(X).reshape(matrix.shape), rtol=1e-7)
    assert matrix.nnz == np.count_nonzero(jacrev(f)(X))


def test_sparse_jacobian_of_writes_through_other_dtypes() -> None:
    def f(x: Any) -> Any:
        z = np.zeros(2, complex)
        z.real[:] = x[:2]
        z.imag[:] = x[2:]
        return np.abs(z) ** 2

    assert np.allclose(jacobian(f, sparse=True)(X).toarray(), jacrev(f)(X))


@for_each("dtype", [np.float16, np.float32, np.float64])
@for_each(
    "f",
    [
        lambda x: _stored(x, np.float64),
        lambda x: _stored(x * np.ones(4), np.float32),
        lambda x: np.ones(3) * np.sum(x[:0]),
        lambda x: BAND @ x,
        lambda x: BAND[:2] @ x,
    ],
)
def test_sparse_jacobian_has_dtype_of_dense_one(f: Function, dtype: Any) -> None:
    x = X.astype(dtype)
    dense, matrix = jacobian(f)(x), jacobian(f, sparse=True)(x)
    assert matrix.dtype == np.promote_types(dense.dtype, np.float32)
    assert np.allclose(matrix.toarray(), dense)


def _stored(x: Any, dtype: Any) -> Any:
    y = np.zeros(4, dtype)
    y[:] = 2 * x
    return y


# --------------------------------------------------------------------------------- equal and compiled patterns


def test_sparse_jacobian_computes_a_pattern_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    original = sparse.compress

    def counting(*args: Any) -> Any:
        computed.append(1)
        return original(*args)

    monkeypatch.setattr(sparse, "compress", counting)
    derivative = jacobian(lambda x: _overwritten(x) * BAND @ x[[0, 1, 1, 2]], sparse=True)
    for scale in (1.0, 2.0, 3.0):
        derivative(scale * X)
    assert len(computed) == 1
    derivative(X.astype(np.float32))
    shorter = jacobian(products_of_neighbors, sparse=True)
    for length in (4, 3, 4, 3):
        assert shorter(X[:length]).shape == (length - 1, length)
    assert len(computed) == 3


STATE: dict[str, Any] = {}
CHANGING: dict[str, tuple[Function, list[Any]]] = {
    "an index": (lambda x: x[STATE["value"]] ** 2, [np.array([0, 1]), np.array([1, 2]), np.array([3, 3])]),
    "a slice": (lambda x: x[STATE["value"]] ** 2, [slice(0, 2), slice(1, 3), slice(3, 1, -1)]),
    "zeros": (lambda x: STATE["value"] @ x, [BAND, BAND.T, np.eye(4)]),
    "a branch": (lambda x: x if STATE["value"] else x[::-1], [True, False]),
    "a sort order": (lambda x: np.sort(x * STATE["value"]), [1.0, -1.0]),
    "a function": (lambda x: STATE["value"](x), [np.sin, np.cumsum, np.flip]),
    "a shift": (lambda x: np.roll(x, STATE["value"]), [1, 2, 3]),
    "a written index": (lambda x: _write_at(STATE["value"], x), [0, 1, 2]),
    "a scattered index": (grad(lambda x: np.sum(x[STATE["value"]] ** 3)), [np.array([0, 1]), np.array([1, 2])]),
    "an order": (lambda x: np.ravel(x.reshape(2, 2), order=STATE["value"]), ["C", "F"]),
    "writes": (lambda x: _maybe_write(STATE["value"], x), [False, True]),
    "writes without derivatives": (lambda x: BAND[:2] @ (x * _floor(STATE["value"], x)), [False, True]),
    "an operand": (lambda x: np.outer(x, x)[STATE["value"]] * x[0], [0, 1, 2]),
}


def _maybe_write(writes: bool, x: Any) -> Any:
    y = np.zeros(4)
    if writes:
        y[0] = np.floor(x[0])
    return arrow(x) + y


def _floor(writes: bool, x: Any) -> Any:
    y = np.zeros(4)
    y[:] = np.floor(x)
    return y if writes else np.floor(x)


def _write_at(i: int, x: Any) -> Any:
    y = np.zeros(4)
    y[i] = x[0] * x[1]
    return y


@for_each("label", CHANGING)
def test_sparse_jacobian_follows_changed_state(label: str) -> None:
    f, states = CHANGING[label]
    derivative, compiled_derivative = jacobian(f, sparse=True), cg.jit(jacobian(f, sparse=True), cache=False)
    for value in states + states:
        STATE["value"] = value
        expected = jacrev(f)(X).reshape(-1, 4)
        assert np.allclose(derivative(X).toarray(), expected, rtol=1e-14)
        compiled_derivative.compile(X)
        assert np.allclose(compiled_derivative(X).toarray(), expected, rtol=1e-14)


OF_ANY_LENGTH: dict[str, Function] = {
    "columns": lambda x: x[:3] ** 2,
    "rows": lambda x: np.reshape(np.sum(x[:3] * x[1:4]), 1),
    "a constant": lambda x: np.floor(x[:3]),
}


@for_each("label", OF_ANY_LENGTH)
def test_sparse_jacobian_of_first_elements_has_columns_of_argument(label: str) -> None:
    f = OF_ANY_LENGTH[label]
    derivative = jacobian(f, sparse=True)
    for length in (5, 7, 4):
        x = np.linspace(0.5, 1.5, length)
        matrix, dense = derivative(x), jacrev(f)(x)
        assert matrix.shape == dense.shape
        assert np.allclose(matrix.toarray(), dense, rtol=1e-14)


COMPILED: dict[str, Function] = {
    "tangents": jacobian(arrow, sparse=True),
    "cotangents": jacobian(products_of_neighbors, sparse=True),
    "summed": jacobian(lambda x: x[1:] * x[:-1] + x[1:] ** 2, sparse=True),
    "hessian": hessian(rosenbrock, sparse=True),
    "writes": jacobian(_written, sparse=True),
    "a loop": jacobian(_rotated_in_place, sparse=True),
    "of two arguments": jacobian(lambda x, y=X[:2]: x[:2] * y, sparse=True),
    "a dictionary": lambda x: {"matrix": SPARSE(x), "value": x**2},
    "a product": lambda x: SPARSE(x) @ x,
    "csc": lambda x: SPARSE(x).tocsc(),
    "coo": lambda x: SPARSE(x).tocoo(),
    "without elements": jacobian(lambda x: np.floor(x), sparse=True),
}


def dense_leaves(result: Any) -> list[Array]:
    """The arrays of a result, with matrices as dense arrays."""
    parts = [*result.values()] if isinstance(result, dict) else [result]
    return [part.toarray() if scipy.sparse.issparse(part) else part for part in parts]


@for_each("label", COMPILED)
def test_compiled_sparse_jacobian(label: str) -> None:
    f = COMPILED[label]
    jitted = compiled(f, X)
    for x in (X, X + 0.1, -X):
        result, expected = jitted(x), f(x)
        assert type(result) is type(expected)
        for part, other in zip(dense_leaves(result), dense_leaves(expected), strict=True):
            assert np.allclose(part, other, rtol=1e-12, atol=1e-14)
    assert is_compiled(jitted)


def test_compiled_sparse_jacobian_owns_its_parts() -> None:
    jitted = compiled(SPARSE, X)
    first = jitted(X)
    first.indices[:] = 0
    first.data[:] = 0
    assert np.allclose(jitted(X).toarray(), jacrev(products_of_neighbors)(X))


def test_compiled_sparse_jacobian_guards_indices_and_orders() -> None:
    at = jacobian(lambda x, index: x[index] * x[index[::-1]], sparse=True)
    jitted = compiled(at, X, np.array([0, 1]))
    for index in ([0, 1], [2, 1], [3, 3], [0, 1]):
        matrix = jitted(X, np.array(index))
        assert np.allclose(matrix.toarray(), at(X, np.array(index)).toarray())
        assert np.allclose(matrix.toarray(), jacrev(lambda x, i=index: x[i] * x[i[::-1]])(X))
    ordered = jacobian(lambda x: np.sort(x) * np.arange(4.0), sparse=True)
    jitted = compiled(ordered, X)
    for x in (X, X[::-1].copy(), np.roll(X, 1), X):
        assert np.allclose(jitted(x).toarray(), ordered(x).toarray())
