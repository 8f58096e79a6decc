"""Integers and booleans that no recorded operation reads: a replay warns if they change, and only then."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from compgraph.executor import fastest_backend
from compgraph.guards import guard_logs
from compgraph.values import untracked
from tests.support.failures import Failures

K = np.array([10.0, 20.0, 30.0])
RECORDED, OTHER = np.array([3.0, 1.0, 2.0]), np.array([-1.0, 5.0, 0.0])
Program = Callable[[Any], Any]


def fill_buffer(x: Any, place: Any) -> Any:
    plain = np.zeros((3, 3))
    plain[np.arange(3), place] = K
    return np.sum(plain @ x)


def keep_order(x: Any) -> Any:
    order = np.argsort(x)
    ORDERS.append(order)
    return np.sum(K[order] * x)


ORDERS: list[Any] = []
# Programs that index plain arrays by computed indices: a run with other values gives results different from NumPy's.
SILENT: dict[str, Program] = {
    "argsort": lambda x: np.sum(K[np.argsort(x)] * x),
    "argsort, of a freed node": lambda x: np.sum(K[np.argsort(np.sin(x) * 2)] * x),
    "argsort, kept by the user": keep_order,
    "part of argsort": lambda x: np.sum(K[np.argsort(x)[:2]]) * np.sum(x),
    "argmax": lambda x: np.sum(K.take(np.argmax(x)) * x),
    "take": lambda x: np.sum(K.take(np.argsort(x)) * x),
    "rows of eye": lambda x: np.sum(np.eye(3)[np.argsort(x) * 1] @ x * K),
    "mask": lambda x: np.sum(K[x > 2.5].sum() * x),
    "mask of two": lambda x: np.sum(K[(x > 1.5) & (x < 2.5)].sum() * x),
    "compress": lambda x: np.sum(K.compress(x > 1.5).sum() * x),
    "astype": lambda x: np.sum(K[np.clip(x, 0, 2).astype(int)] * x),
    "nonzero": lambda x: np.sum(K[np.nonzero(x > 2.5)].sum() * x),
    "digitize": lambda x: np.sum(K[np.digitize(x, [1.5])] * x),
    "searchsorted": lambda x: np.sum(K[np.searchsorted([1.5, 2.5], x)] * x),
    "isin": lambda x: np.sum(K[np.isin(x, [3.0])].sum() * x),
    "ix_": lambda x: np.sum(np.diag(K)[np.ix_(np.argsort(x), [0, 1, 2])] @ x * K),
    "sign bit": lambda x: np.sum(K[np.signbit(x - 2)].sum() * x),
    "asarray": lambda x: np.sum(K[np.asarray(np.argsort(x))] * x),
    "written into": lambda x: fill_buffer(x, np.argsort(x)),
    "in a constant": lambda x: np.sum(cg.constant(K[np.argsort(x)]) * x),
    "of a derivative": lambda x: np.sum(K[np.argsort(ad.grad(lambda y: np.sum(y**2))(x))] * x),
}  # fmt: skip
# Programs whose integers and booleans are read by operations or guards, are results, or are only looked at afterwards.
LABELS = np.array([0, 2, 1])
INNOCENT: dict[str, Program] = {
    "accuracy before the loss": lambda x: (np.mean(np.argmax(np.outer(x, K), 1) == LABELS), np.sum(x * x))[1],
    "where": lambda x: np.sum(np.where(x > 1, x, 0.0)),
    "mask of a node": lambda x: np.sum(x[np.argsort(x)] * K),
    "mask as a factor": lambda x: np.sum((x > 1) * x),
    "index of a constant": lambda x: np.sum(cg.constant(K)[np.argsort(x)] * x),
    "take": lambda x: np.sum(np.take(K, np.argsort(x)) * x),
    "take of one": lambda x: np.sum(np.take(K, np.argmax(x)) * x),
    "take, by keyword": lambda x: np.sum(np.take(K, indices=np.argsort(x)) * x[np.argsort(x)]),
    "repeat": lambda x: np.sum(np.repeat(K, np.argsort(x)) * 2) * np.sum(x),
    "roll": lambda x: np.sum(np.roll(K, np.argmax(x)) * x) * np.argmax(x),
    "axis": lambda x: np.sum(np.sum(np.arange(9.0).reshape(3, 3), axis=np.argmax(x)) * x),
    "take along an axis": lambda x: np.sum(np.take_along_axis(x, np.argsort(x), 0) * K),
    "sort": lambda x: np.sum(np.sort(x) * K),
    "choose": lambda x: np.sum(np.choose(np.argsort(x), K) * x),
    "the same answer": lambda x: np.sum(K[np.isfinite(x)] * x),
    "a shape alone": lambda x: np.sum(np.ones_like(x > 0) * x),
    "printed afterwards": lambda x: (np.sum(x * x), str(np.argmax(x)))[0],
    "a result": np.argsort,
    "maximum": lambda x: np.max(x) + np.median(x) + np.percentile(x, 30.0),
    "rules that choose": lambda x: gradients(np.sum(np.abs(x)) + np.max(x) + np.prod(x), [x])[0],
    "clip and round": lambda x: np.sum(np.clip(x, 0, 2) * np.round(x)),
    "counted": lambda x: np.sum(x) * np.count_nonzero(x > 0),
    "piecewise": lambda x: np.sum(np.piecewise(x, [x > 2], [lambda v: v**2, lambda v: -v])),
    "select": lambda x: np.sum(np.select([x > 2, x > 0], [x, x**2], 1.0)),
    "lstsq": lambda x: np.linalg.lstsq(np.outer(K, K) + np.diag(x + 9), K)[0],
    "interp": lambda x: np.sum(np.interp(x, K, K)),
    "heaviside": lambda x: np.sum(np.heaviside(x, 0.5) * x),
    "unique": lambda x: np.sum(np.unique(x)),
    "norms": lambda x: np.linalg.norm(np.outer(x, x) + np.eye(3), 2) + np.linalg.slogdet(np.outer(x, x) + np.eye(3))[1],
    "losses": lambda x: np.mean(cg.softmax_cross_entropy(np.outer(x, K), np.eye(3)[LABELS])),
}  # fmt: skip


def output_and_warnings(program: Program, **options: Any) -> tuple[Any, list[str]]:
    """The result of a graph for values different from the recorded ones, and the warnings of that run."""
    x = cg.variable(RECORDED, "x")
    executor = cg.Executor(program(x), **options)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        assert executor.run({"x": RECORDED}) is not None
        assert not records
        output = [executor.run({"x": OTHER}) for _ in range(3)][-1]
    return output, [str(warning.message) for warning in records]


def test_untracked_index_warns_once() -> None:
    with Failures("untracked indices") as failures:
        for label, options in itertools.product(SILENT, ({}, {"simplify": False}, {"fuse": True}, {"jit": True})):
            with failures.case(f"{label}, {options}"):
                output, messages = output_and_warnings(SILENT[label], **options)
                with cg.no_graph():
                    right = np.asarray(SILENT[label](cg.variable(OTHER)))
                assert not np.allclose(output, right)  # else the table proves nothing
                assert len(messages) == 1, messages  # once, in three runs
                assert "test_untracked_indices.py" in messages[0]
                assert "cg.constant(K)[i]" in messages[0]


def test_index_within_an_operator_is_a_guard() -> None:
    """Converting a tracer to numbers adds a guard."""
    x = cg.variable(RECORDED, "x")
    executor = cg.Executor(ad.grad(lambda y: np.sum(K[np.argsort(y)] * y**2))(x))
    executor.run({"x": RECORDED})
    for _ in range(2):
        with pytest.raises(
            cg.GuardError, match=r"__(array|buffer)__\(\) at .*test_untracked_indices.*Record the graph.*cg\.constant\(K\)\[i\]"
        ):
            executor.run({"x": OTHER})


def test_tracked_index_does_not_warn() -> None:
    with Failures("tracked indices") as failures:
        for label, options in itertools.product(INNOCENT, ({}, {"jit": True})):
            with failures.case(f"{label}, {options}"):
                output, messages = output_and_warnings(INNOCENT[label], **options)
                assert not messages
                np.testing.assert_allclose(output, INNOCENT[label](cg.variable(OTHER)).value)


def test_strict_executor_raises_on_an_untracked_index() -> None:
    with Failures("untracked indices") as failures:
        for label in SILENT:
            with failures.case(label):
                x = cg.variable(RECORDED, "x")
                executor = cg.Executor(SILENT[label](x), strict=True)
                executor.run({"x": RECORDED})
                for _ in range(2):
                    with pytest.raises(cg.GuardError, match=r"cg\.constant\(K\)"):
                        executor.run({"x": OTHER})


def test_untracked_index_of_other_shape_warns() -> None:
    x = cg.placeholder((None,), name="x", example=RECORDED)
    assert (x > np.array([0.0, 1.0, 2.0])).any().ndim == 0
    executor = cg.Executor(np.sum(x**2))
    with pytest.warns(RuntimeWarning, match="cannot be computed as it was"):
        assert executor.run({"x": np.ones(5)}) == 5
    assert executor.run({"x": np.ones(5)}) == 5
    y = cg.variable(RECORDED, "y")
    np.nonzero(y > 1)  # its shape depends on values
    executor = cg.Executor(np.sum(y * 2))
    with pytest.warns(RuntimeWarning, match="cannot be computed as it was"):
        assert executor.run({"y": RECORDED + 1}) == 18


def test_untracked_index_used_for_length_is_ignored() -> None:
    labels = cg.placeholder((4,), int, name="labels", example=np.array([0, 1, 1, 2]))
    executor = cg.Executor(labels * len(labels[1:]))
    assert executor.run({"labels": np.array([5, 6, 6, 7])}).tolist() == [15, 18, 18, 21]


def test_untracked_index_with_writes_warns() -> None:
    def program(x: Any) -> Any:
        y = np.zeros_like(x)
        y[:2] = x[1:] * K[np.argsort(x)][:2]
        return np.sum(y * x)

    _, messages = output_and_warnings(program)
    assert len(messages) == 1


def test_untracked_index_read_later_is_ignored() -> None:
    x = cg.variable(RECORDED, "x")
    order = np.argsort(x)
    s = np.sum(K[order] * x)
    early = cg.Executor(s)
    late = cg.Executor(s + np.sum(x[order]))  # reads it
    del order
    gc.collect()
    with pytest.warns(RuntimeWarning, match="argsort"):
        early.run({"x": OTHER})
    late.run({"x": OTHER})


def test_untracked_index_is_cleared_by_reset_and_update() -> None:
    x = cg.variable(RECORDED, "x")
    np.argsort(x)
    cg.reset()
    cg.Executor(np.sum(x * 2)).run({"x": OTHER})
    np.argsort(x)
    x += 1.0
    cg.Executor(np.sum(x * 2)).run({"x": OTHER})


@pytest.mark.parametrize("copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy, copy.copy])
def test_untracked_index_is_checked_by_executor_copies(copied: Callable[[Any], Any]) -> None:
    x = cg.variable(RECORDED, "x")
    executor = cg.Executor(SILENT["argsort"](x))
    strict = cg.Executor(executor.nodes[0], strict=True)
    with pytest.warns(RuntimeWarning, match="argsort"):
        copied(executor).run({"x": OTHER})
    with pytest.raises(cg.GuardError, match="argsort"):
        copied(strict).run({"x": OTHER})


@pytest.mark.parametrize("copied", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy])
@pytest.mark.parametrize("label", ["argsort", "argsort, kept by the user"])
def test_untracked_index_in_copied_graph_warns(label: str, copied: Callable[[Any], Any]) -> None:
    s = copied(SILENT[label](cg.variable(RECORDED)))
    with pytest.warns(RuntimeWarning, match=r"its copy lacks: the result of argsort"):
        cg.Executor(s)


def test_untracked_index_in_subgraph_warns() -> None:
    x = cg.variable(RECORDED, "x")
    hidden = np.sin(x)
    part, (cut,) = cg.subgraph(np.sum(K[np.argsort(hidden)] * hidden), hidden)
    with pytest.warns(RuntimeWarning, match="argsort"):
        cg.Executor(part).run({cut: OTHER})


def test_untracked_index_is_visible_to_other_threads() -> None:
    x = cg.variable(RECORDED, "x")
    s = np.sum(K[np.argsort(x)] * x)
    executors: list[Any] = []
    thread = threading.Thread(target=lambda: executors.append(cg.Executor(s)))
    thread.start()
    thread.join()
    with pytest.warns(RuntimeWarning, match="argsort"):
        executors[0].run({"x": OTHER})


def test_untracked_index_log_drops_read_and_freed_nodes() -> None:
    x = cg.variable(RECORDED)
    before = len(untracked)
    for _ in range(5):
        assert np.sum((x > 0) * x).value == 6
    assert len(untracked) == before
    nodes = [x > k for k in range(5)]
    assert len(untracked) == before + 5
    del nodes
    assert len(untracked) == before


def test_untracked_index_log_of_long_loop_is_bounded() -> None:
    x = cg.variable(RECORDED)
    for k in range(2 * guard_logs.MAX_GUARDS):
        assert (x > k).shape == (3,)
    log = x.recipe.log.resolve()  # type: ignore[attr-defined]
    assert guard_logs.MAX_GUARDS // 4 <= len(log.guards) <= guard_logs.MAX_GUARDS
    assert log._recipe_bytes <= guard_logs.MAX_LOG_BYTES


def test_untracked_index_log_releases_freed_graphs() -> None:
    x = cg.variable(RECORDED)
    y = np.sin(x) * 2
    watched = weakref.ref(y)
    np.argsort(y)
    del y
    assert watched() is None


def test_untracked_index_finalizers_wait_for_lock() -> None:
    x = cg.variable(RECORDED, "x")
    node = np.argsort(x)
    with guard_logs._lock:
        del node
        assert len(guard_logs._deferred) == 1
    executor = cg.Executor(np.sum(x * 2) * 1)
    assert not guard_logs._deferred
    executor.run({"x": RECORDED})


def test_untracked_index_tests_use_llvm() -> None:
    assert fastest_backend() == "llvm"


@pytest.mark.parametrize("copied", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy])
def test_untracked_index_copies_are_plain_nodes(copied: Callable[[Any], Any]) -> None:
    x = cg.variable(RECORDED, "x")
    order, total = copied([np.argsort(x), np.sum(x * 2)])
    replayed_order, replayed_total = cg.Executor([order, total]).run({"x": OTHER})
    assert np.array_equal(replayed_order, np.argsort(OTHER))
    assert replayed_total == 8
    assert type(copied(x > 0)) is type(pickle.loads(pickle.dumps(x > 0)))
