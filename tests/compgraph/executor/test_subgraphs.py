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
def test_both_halves_give_what_the_whole_does(rows: int) -> None:
    x, _, hidden, out = two_layers()
    front, (given,) = cg.subgraph(hidden, x)
    back, (inner,) = cg.subgraph(out, [hidden])
    points = RNG.normal(size=(rows, 3))
    found = cg.Executor(back).run({inner: cg.Executor(front).run({given: points})})
    np.testing.assert_array_equal(found, cg.Executor(out).run({"x": points}))
    assert (given.name, given.declared, inner.declared) == ("x", (None, 3), (None, None))


def test_one_output_is_one_and_several_are_a_list() -> None:
    x, _, hidden, out = two_layers()
    assert isinstance(cg.subgraph(out, x)[0], cg.Node)
    outputs, placeholders = cg.subgraph([out, hidden], [hidden])
    assert outputs[1] is placeholders[0]
    assert len(outputs) == 2


def test_what_lies_behind_is_no_part_of_it() -> None:
    x, w, hidden, out = two_layers()
    back, (inner,) = cg.subgraph(out, hidden)
    order = cg.topological_order([back])
    assert inner in order
    assert not any(node is other for node in order for other in (x, w, hidden))


def test_other_leaves_are_shared() -> None:
    x, w, hidden, _ = two_layers()
    front, (given,) = cg.subgraph(hidden, x)
    w += 1.0
    np.testing.assert_array_equal(cg.Executor(front).run({given: np.ones((2, 3))}), np.tanh(np.ones((2, 3)) @ w.value))


def test_parameters_become_placeholders() -> None:
    x, w, _, out = two_layers()
    (slope,) = gradients(out, [w])
    found, (given, at) = cg.subgraph(slope, [w, x])
    points, weights = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))
    there = cg.Executor(found).run({given: weights, at: points})
    np.testing.assert_array_equal(there, cg.Executor(slope).run({w: weights, "x": points}))


def test_derivatives_of_the_parts_are_those_of_the_whole() -> None:
    x, w, hidden, out = two_layers()
    front, (given, weights) = cg.subgraph(hidden, [x, w])
    back, (inner,) = cg.subgraph(out, hidden)
    adjoint = cg.placeholder((None, 2), name="adjoint")
    (to_inner,) = gradients(back, [inner])
    (to_weights,) = gradients(cg.sum(front * adjoint), [weights])
    points = RNG.normal(size=(4, 3))
    value = cg.Executor(front).run({given: points, weights: w.value})
    found = cg.Executor(to_weights).run({given: points, weights: w.value, adjoint: cg.Executor(to_inner).run({inner: value})})
    np.testing.assert_allclose(found, cg.Executor(gradients(out, [w])[0]).run({"x": points}), rtol=1e-14)


def test_a_sub_graph_can_be_pickled_and_cut_again() -> None:
    _, _, hidden, out = two_layers()
    back, (inner,) = pickle.loads(pickle.dumps(cg.subgraph(out, hidden)))
    (product,) = [node for node in cg.topological_order([back]) if node.opname == "mul"]
    last, (at,) = cg.subgraph(back, product)
    value = RNG.normal(size=(3, 2))
    np.testing.assert_array_equal(cg.Executor(last).run({at: value * value}), cg.Executor(back).run({inner: value}))


def test_writes_in_place_are_part_of_it() -> None:
    x = cg.placeholder((3,), name="x")
    y = x * 2
    buffer = cg.zeros(3)
    buffer[0] = y[1]
    buffer[1:] += y[:2]
    out = cg.sum(buffer * buffer)
    found, (at,) = cg.subgraph(out, y)
    value = np.array([1.0, 2.0, 3.0])
    assert cg.Executor(found).run({at: value}) == 4 + 1 + 4
    (slope,) = gradients(found, [at])
    np.testing.assert_array_equal(cg.Executor(slope).run({at: value}), [2.0, 8.0, 0.0])


def test_what_was_written_into_is_no_place_to_cut() -> None:
    x = cg.placeholder((3,), name="x")
    y = x * 2
    y[0] = 1.0
    with pytest.raises(ValueError, match=r"written into; cut at a copy of it \(np.copy\)"):
        cg.subgraph(cg.sum(y), y)
    copied = np.copy(y)
    found, (at,) = cg.subgraph(cg.sum(copied), copied)
    assert cg.Executor(found).run({at: np.arange(3.0)}) == 3.0


def test_operations_with_several_results() -> None:
    a = cg.placeholder((2, 2), name="a", example=[[2.0, 1.0], [1.0, 3.0]])
    values, vectors = np.linalg.eigh(a @ a)
    out = cg.sum(vectors @ values)
    found, (at,) = cg.subgraph(out, values)
    given = np.array([[4.0, 1.0], [1.0, 2.0]])
    whole = cg.Executor([out, values]).run({"a": given})
    assert cg.Executor(found).run({at: whole[1], "a": given}) == whole[0]


def decided() -> tuple[Any, Any, Any]:
    a = cg.placeholder((), name="a", example=4.0)
    doubled = a * 2
    return a, doubled, (cg.sqrt(doubled) if doubled > 1 else -doubled) * 3


def test_decisions_within_are_asked_again() -> None:
    _, doubled, out = decided()
    found, (at,) = cg.subgraph(out, doubled)
    executor = cg.Executor(found)
    assert executor.run({at: 4.0}) == 6.0
    with pytest.raises(cg.GuardError, match="gave True"):
        executor.run({at: 0.5})


def test_decisions_before_the_cut_are_not() -> None:
    _, _, out = decided()
    (root,) = [node for node in cg.topological_order([out]) if node.opname == "sqrt"]
    found, (at,) = cg.subgraph(out, root)
    assert cg.Executor(found).run({at: -1.0}) == -3.0


def test_numbers_that_left_the_graph_are_told() -> None:
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
        ("out", ["hidden", "hidden"], ValueError, "named twice"),
        ("out", ["x", "hidden"], ValueError, "or only through others where the graph is cut"),
        ("out", [], ValueError, "at least one node that the subgraph begins at"),
        ([], "x", ValueError, "at least one node that the subgraph computes"),
        ("out", "array", TypeError, "begins at nodes, not a ndarray"),
        ("array", "x", TypeError, "computes nodes, not a ndarray"),
    ],
)
def test_what_cannot_be_cut_says_why(outputs: Any, at: Any, error: Any, words: str) -> None:
    x, _, hidden, out = two_layers()
    named = {"x": x, "hidden": hidden, "out": out, "other": cg.variable(1.0, "other"), "array": np.ones(3)}
    look = lambda keys: [named[k] for k in keys] if isinstance(keys, list) else named[keys]  # noqa: E731
    with pytest.raises(error, match=words):
        cg.subgraph(look(outputs), look(at))


def test_a_derivative_taken_through_the_cut_is_refused() -> None:
    _, w, hidden, out = two_layers()
    (slope,) = gradients(out, [w])
    with pytest.raises(ValueError, match=r"cut at the result of tanh .* through which the derivative of the result of sum"):
        cg.subgraph(slope, [hidden, w])
    found, (at,) = cg.subgraph(slope * 2, slope)
    np.testing.assert_array_equal(cg.Executor(found).run({at: np.ones((3, 2))}), np.full((3, 2), 2.0))
