"""`subgraph` computes the same values as the whole graph, and keeps its guards."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradients

RNG = np.random.default_rng(5)


def two_layers() -> tuple[Any, Any, Any, Any]:
    x = cg.placeholder((None, 3), name="x")
    w = cg.variable(RNG.normal(size=(3, 2)), "w")
    hidden = cg.tanh(x @ w)
    return x, w, hidden, cg.sum(hidden * hidden, axis=1)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_subgraph_halves_compose_to_whole(rows: int) -> None:
    x, _, hidden, out = two_layers()
    front, (cut,) = cg.subgraph(hidden, x)
    back, (inner,) = cg.subgraph(out, [hidden])
    points = RNG.normal(size=(rows, 3))
    outputs = cg.Executor(back).run({inner: cg.Executor(front).run({cut: points})})
    np.testing.assert_array_equal(outputs, cg.Executor(out).run({"x": points}))
    assert (cut.name, cut.declared_shape, inner.declared_shape) == ("x", (None, 3), (None, None))


def test_subgraph_returns_node_or_list() -> None:
    x, _, hidden, out = two_layers()
    assert isinstance(cg.subgraph(out, x)[0], cg.Node)
    outputs, placeholders = cg.subgraph([out, hidden], [hidden])
    assert outputs[1] is placeholders[0]
    assert len(outputs) == 2


def test_subgraph_excludes_nodes_before_cut() -> None:
    x, w, hidden, out = two_layers()
    back, (inner,) = cg.subgraph(out, hidden)
    order = cg.topological_order([back])
    assert inner in order
    assert not any(node is other for node in order for other in (x, w, hidden))


def test_subgraph_shares_other_leaves() -> None:
    x, w, hidden, _ = two_layers()
    front, (cut,) = cg.subgraph(hidden, x)
    w += 1.0
    np.testing.assert_array_equal(cg.Executor(front).run({cut: np.ones((2, 3))}), np.tanh(np.ones((2, 3)) @ w.value))


def test_subgraph_parameters_become_placeholders() -> None:
    x, w, _, out = two_layers()
    (slope,) = gradients(out, [w])
    part, (parameter, at) = cg.subgraph(slope, [w, x])
    points, weights = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))
    there = cg.Executor(part).run({parameter: weights, at: points})
    np.testing.assert_array_equal(there, cg.Executor(slope).run({w: weights, "x": points}))


def test_subgraph_derivatives_match_whole_graph() -> None:
    x, w, hidden, out = two_layers()
    front, (cut, weights) = cg.subgraph(hidden, [x, w])
    back, (inner,) = cg.subgraph(out, hidden)
    cotangent = cg.placeholder((None, 2), name="cotangent")
    (to_inner,) = gradients(back, [inner])
    (to_weights,) = gradients(cg.sum(front * cotangent), [weights])
    points = RNG.normal(size=(4, 3))
    value = cg.Executor(front).run({cut: points, weights: w.value})
    slope = cg.Executor(to_weights).run({cut: points, weights: w.value, cotangent: cg.Executor(to_inner).run({inner: value})})
    np.testing.assert_allclose(slope, cg.Executor(gradients(out, [w])[0]).run({"x": points}), rtol=1e-14)


def test_subgraph_is_pickled_and_cut_again() -> None:
    _, _, hidden, out = two_layers()
    back, (inner,) = pickle.loads(pickle.dumps(cg.subgraph(out, hidden)))
    (product,) = [node for node in cg.topological_order([back]) if node.opname == "mul"]
    last, (at,) = cg.subgraph(back, product)
    value = RNG.normal(size=(3, 2))
    np.testing.assert_array_equal(cg.Executor(last).run({at: value * value}), cg.Executor(back).run({inner: value}))


def test_subgraph_includes_writes_in_place() -> None:
    x = cg.placeholder((3,), name="x")
    y = x * 2
    buffer = cg.zeros(3)
    buffer[0] = y[1]
    buffer[1:] += y[:2]
    out = cg.sum(buffer * buffer)
    part, (at,) = cg.subgraph(out, y)
    value = np.array([1.0, 2.0, 3.0])
    assert cg.Executor(part).run({at: value}) == 4 + 1 + 4
    (slope,) = gradients(part, [at])
    np.testing.assert_array_equal(cg.Executor(slope).run({at: value}), [2.0, 8.0, 0.0])


def test_subgraph_cut_at_written_node_raises() -> None:
    x = cg.placeholder((3,), name="x")
    y = x * 2
    y[0] = 1.0
    with pytest.raises(ValueError, match=r"written into; cut at a copy of it \(np.copy\)"):
        cg.subgraph(cg.sum(y), y)
    copied = np.copy(y)
    part, (at,) = cg.subgraph(cg.sum(copied), copied)
    assert cg.Executor(part).run({at: np.arange(3.0)}) == 3.0


def test_subgraph_of_multi_output_operations() -> None:
    a = cg.placeholder((2, 2), name="a", example=[[2.0, 1.0], [1.0, 3.0]])
    values, vectors = np.linalg.eigh(a @ a)
    out = cg.sum(vectors @ values)
    part, (at,) = cg.subgraph(out, values)
    matrix = np.array([[4.0, 1.0], [1.0, 2.0]])
    whole = cg.Executor([out, values]).run({"a": matrix})
    assert cg.Executor(part).run({at: whole[1], "a": matrix}) == whole[0]


def graph_with_branch() -> tuple[Any, Any, Any]:
    a = cg.placeholder((), name="a", example=4.0)
    doubled = a * 2
    return a, doubled, (cg.sqrt(doubled) if doubled > 1 else -doubled) * 3


def test_subgraph_keeps_guards_after_cut() -> None:
    _, doubled, out = graph_with_branch()
    part, (at,) = cg.subgraph(out, doubled)
    executor = cg.Executor(part)
    assert executor.run({at: 4.0}) == 6.0
    with pytest.raises(cg.GuardError, match="gave True"):
        executor.run({at: 0.5})


def test_subgraph_drops_guards_before_cut() -> None:
    _, _, out = graph_with_branch()
    (root,) = [node for node in cg.topological_order([out]) if node.opname == "sqrt"]
    part, (at,) = cg.subgraph(out, root)
    assert cg.Executor(part).run({at: -1.0}) == -3.0


def test_subgraph_reports_leaks() -> None:
    x = cg.placeholder((), name="x")
    y = x * 2
    out = y * y.value
    with pytest.warns(RuntimeWarning, match=r"numbers left the graph.*value"):
        cg.subgraph(out, y)


@pytest.mark.parametrize(
    ("outputs", "at", "error", "words"),
    [
        ("out", "other", ValueError, "does not depend on the variable 'other'"),
        ("hidden", "out", ValueError, "does not depend on the result of sum"),
        ("out", ["hidden", "hidden"], ValueError, "is repeated"),
        ("out", ["x", "hidden"], ValueError, "or only through other nodes at which the graph is cut"),
        ("out", [], ValueError, "at least one node that the subgraph begins at"),
        ([], "x", ValueError, "at least one node that the subgraph computes"),
        ("out", "array", TypeError, "begins at nodes, not a ndarray"),
        ("array", "x", TypeError, "computes nodes, not a ndarray"),
    ],
)
def test_subgraph_impossible_cut_raises(outputs: Any, at: Any, error: Any, words: str) -> None:
    x, _, hidden, out = two_layers()
    named = {"x": x, "hidden": hidden, "out": out, "other": cg.variable(1.0, "other"), "array": np.ones(3)}
    look = lambda keys: [named[k] for k in keys] if isinstance(keys, list) else named[keys]  # noqa: E731
    with pytest.raises(error, match=words):
        cg.subgraph(look(outputs), look(at))


def test_subgraph_cut_through_derivative_raises() -> None:
    _, w, hidden, out = two_layers()
    (slope,) = gradients(out, [w])
    with pytest.raises(ValueError, match=r"cut at the result of tanh .* through which the derivative of the result of sum"):
        cg.subgraph(slope, [hidden, w])
    part, (at,) = cg.subgraph(slope * 2, slope)
    np.testing.assert_array_equal(cg.Executor(part).run({at: np.ones((3, 2))}), np.full((3, 2), 2.0))


def test_placeholder_declared_warns_of_new_name() -> None:
    x = cg.placeholder((None, 3), name="x")
    with pytest.warns(DeprecationWarning, match="declared is now PlaceholderNode.declared_shape"):
        assert x.declared is x.declared_shape
