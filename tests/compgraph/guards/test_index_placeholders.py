"""Placeholders of integers at the top level: each index of a plain array is a guard, also outside of the graph."""

from __future__ import annotations

import contextvars
import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.values import is_tracer
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

K = np.array([10.0, 20.0, 30.0])
X = np.array([1.0, 2.0, 3.0])
RECORDED, OTHER = np.array([2, 0, 1]), np.array([0, 1, 2])


def fill_buffer(p: Any) -> Any:
    plain = np.zeros((3, 3))
    plain[np.arange(3), p] = K
    return plain


# Each takes plain numbers by the placeholder; the graph reads the placeholder too (`x[p]`).
INDEXED: dict[str, Callable[[Any], Any]] = {
    "index": lambda p: K[p],
    "computed index": lambda p: K[(p + 1) % 3],
    "part": lambda p: K[p[:2]].sum(),
    "element": lambda p: K[p[0]],
    "mask": lambda p: np.append(K[p > 1], K[p <= 1]),
    "sorted": lambda p: K[np.argsort(p)],
    "take": lambda p: K.take(p),
    "rows of eye": lambda p: np.eye(3)[p] @ K,
    "assignment": fill_buffer,
    "largest": lambda p: K[np.argmax(p)],
    "array": lambda p: K[np.asarray(p)],
    "copy": lambda p: K[np.array(p)],
    "several outputs": lambda p: K[np.unique(p[:2], return_index=True)[1]].sum() + K[np.divmod(p, 2)[0]],
}  # fmt: skip


@pytest.mark.parametrize("jit", [False, True])
def test_index_placeholder_into_plain_array_is_guarded(jit: bool) -> None:
    if jit:
        pytest.importorskip("llvmlite", reason='pip install "compgraph[jit]"')
    with Failures("programs") as failures:
        for name, program in INDEXED.items():
            with failures.case(name):
                x, p = cg.variable(X, "x"), cg.placeholder((3,), int, "p", example=RECORDED)
                executor = cg.Executor(np.sum(program(p) @ x[p] if name == "assignment" else program(p) * x[p]), jit=jit)
                outputs = executor.run({p: RECORDED})
                np.testing.assert_allclose(outputs, np.sum(program(RECORDED) @ X[RECORDED] if name == "assignment" else
                                                         program(RECORDED) * X[RECORDED]))  # fmt: skip
                with pytest.raises(cg.GuardError, match="test_index_placeholders"):
                    executor.run({p: OTHER})


def test_index_placeholder_of_scalar_is_guarded() -> None:
    x, n = cg.variable(X, "x"), cg.placeholder((), int, "n", example=1)
    executor = cg.Executor(K[n] * x[n])
    assert executor.run({"n": 1}) == 40
    with pytest.raises(cg.GuardError, match=r"index\(\)"):
        executor.run({"n": 2})


def test_index_placeholder_into_node_is_followed() -> None:
    x, p = cg.variable(X, "x"), cg.placeholder((None,), int, "p", example=RECORDED)
    order = (p + 1) % 3
    executor = cg.Executor(np.sum(cg.constant(K)[p] * x[order] * np.where(p > 0, x, 1.0) + np.take(K, p)))
    for fed in (RECORDED, OTHER, OTHER[::-1]):
        expected = np.sum(K[fed] * X[(fed + 1) % 3] * np.where(fed > 0, X, 1.0) + K[fed])
        np.testing.assert_allclose(executor.run({"p": fed}), expected)


def test_index_placeholder_behaves_as_array() -> None:
    p = cg.placeholder((3,), int, "p", example=RECORDED)
    for node in (p, p + 1, p > 0):
        assert isinstance(node, np.ndarray)
        assert isinstance(node, cg.Node)
        assert is_tracer(node)
    assert isinstance(p, cg.PlaceholderNode)
    assert isinstance(p[0], np.integer)  # what NumPy returns for an array
    assert repr(p) == "InertPlaceholderNode([2, 0, 1], name='p', dtype=int64)"
    assert repr(p + 1).startswith("InertNode([3, 1, 2]")
    assert str(p) == "[2 0 1]"
    assert p.value.tolist() == RECORDED.tolist()
    assert (p.name, p.dtype, p.shape, p.declared_shape) == ("p", np.dtype(int), (3,), (3,))
    assert type(p * 0.5) is type(cg.constant(RECORDED) * 0.5)  # floating results are arrays
    assert not is_tracer(p * 0.5)
    assert [int(n) for n in p] == [2, 0, 1]
    assert "p" in cg.visualize_at(np.sum(p * cg.variable(X))).source
    written = p * 2
    written[0] = 7
    written += 1
    assert written.value.tolist() == [8, 1, 3]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_index_placeholder_copy_is_guarded(copied: Callable[[Any], Any]) -> None:
    x, p, order = copied((cg.variable(X, "x"), p := cg.placeholder((3,), int, "p", example=RECORDED), (p + 1) % 3))
    assert is_tracer(p)
    assert is_tracer(order)
    assert p.declared_shape == (3,)
    for index in (p, order):
        executor = cg.Executor(np.sum(K[index] * x[index]))
        executor.run({p: RECORDED})
        with pytest.raises(cg.GuardError, match=r"__(array|buffer)__"):
            executor.run({p: OTHER})


def test_index_placeholder_within_operator_is_guarded() -> None:
    x, p = cg.variable(X, "x"), cg.placeholder((3,), int, "p", example=RECORDED)
    executor = cg.Executor(ad.grad(lambda v: np.sum(K[p] * v[p] ** 2))(x))
    np.testing.assert_allclose(executor.run({p: RECORDED}), 2 * X * K)
    with pytest.raises(cg.GuardError, match=r"__(array|buffer)__"):
        executor.run({p: OTHER})


def test_index_placeholder_does_not_affect_other_threads() -> None:
    """A function that is differentiated in one thread does not turn results of integer placeholders into tracers in others."""
    p = cg.placeholder((3,), int, "p", example=RECORDED)
    results: list[Any] = []

    def f(x: Any) -> Any:
        results.append(contextvars.Context().run(lambda: p * 0.5))  # as another thread records
        return x * x

    ad.grad(f)(1.0)
    assert not is_tracer(results[0])
