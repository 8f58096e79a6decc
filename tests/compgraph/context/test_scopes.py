"""Scopes: the names of nodes within them, and no overhead outside of them."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.context import settings
from compgraph.graph import breadth_first
from compgraph.protocols import operators
from compgraph.values import MultiOutput

variable: Callable[..., Any] = cg.variable


def test_scope_nodes_record_enclosing_scopes() -> None:
    """Leaves and operations of every kind, nested, and none once the scope is left."""
    with cg.scope("outer"):
        x = variable([1.0, 2.0])
        with cg.scope("inner"):
            nodes = [
                x * 2,
                2 * x,
                np.sin(x),
                x[0],
                x > 1,
                np.sum(x),
                cg.constant(3.0),
                cg.zeros(2),
                cg.relu(x),
                np.linalg.norm(x),
            ]
        after = -x
    assert {node.scope for node in nodes} == {("outer", "inner")}
    assert (x.scope, after.scope, (x + 1).scope) == (("outer",), ("outer",), ())


def test_scope_path_opens_nested_scopes() -> None:
    """A path opens several scopes; a scope may be reopened, also within itself."""
    x = variable(1.0)
    again = cg.scope("a/b")
    with again:
        first = x * 1
        with again:
            second = x * 2
    with cg.scope("a"), cg.scope("b"):
        third = x * 3
    assert first.scope == third.scope == ("a", "b")
    assert second.scope == ("a", "b", "a", "b")


def test_scope_ends_on_exception() -> None:
    """Nodes created after an exception are outside the scope."""
    with pytest.raises(KeyError), cg.scope("a"):
        raise KeyError
    assert (variable(1.0) * 2).scope == ()
    assert settings.is_fast_path()


@pytest.mark.parametrize("name", ["", "/", "a//b", "a/", "/a"])
def test_scope_empty_name_raises(name: str) -> None:
    with pytest.raises(ValueError, match="empty name"):
        cg.scope(name)


def test_scope_name_must_be_string() -> None:
    with pytest.raises(TypeError, match="a string, not a int"):
        cg.scope(3)  # type: ignore[arg-type]


def test_scope_is_shared_by_outputs_and_constants_of_operation() -> None:
    """An operation with several outputs, and constants created from plain operands on demand."""
    x = variable([4.0, 5.0])
    with cg.scope("a"):
        quotient, remainder = np.divmod(x, np.array([2.0, 3.0]))
    joint = quotient.args[0]
    assert isinstance(joint, MultiOutput)
    assert {quotient.scope, remainder.scope, joint.scope} == {("a",)}
    with cg.scope("somewhere else"):
        assert [operand.scope for operand in joint.operands] == [(), ("a",)]


def test_scope_of_write_is_recorded() -> None:
    y = cg.zeros(3)
    with cg.scope("a"):
        y[0] = variable(1.0)
    y[1] = variable(2.0)
    assert [write.scope for write in y.memory.log] == [("a",), ()]


def test_scope_does_not_change_values() -> None:
    """The same bits and kinds inside and outside."""
    x = variable([0.1, 0.7, 3.0])
    outside = np.sum(np.tanh(x) ** 2 / x)
    with cg.scope("a"):
        inside = np.sum(np.tanh(x) ** 2 / x)
    assert inside.value.tobytes() == outside.value.tobytes()
    assert type(inside) is type(outside)
    assert gradient(inside)[x].tobytes() == gradient(outside)[x].tobytes()


def test_scope_with_no_graph_in_either_order() -> None:
    x = variable(2.0)
    with cg.scope("a"):
        with cg.no_graph():
            assert not isinstance(x * 2, cg.Node)
        assert (x * 2).scope == ("a",)
    with cg.no_graph(), cg.scope("a"):
        assert not isinstance(x * 2, cg.Node)


def test_scope_within_debug() -> None:
    """Both look at each operation."""
    x = variable(0.0)
    with cg.scope("a"), cg.debug():
        assert (x + 1).scope == ("a",)
        with np.errstate(divide="ignore"), pytest.raises(cg.NonFiniteError):
            np.log(x)
    assert settings.is_fast_path()


@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy])
def test_scope_is_kept_by_copies(carry: Callable[[Any], Any]) -> None:
    x = variable([1.0, 2.0], "x")
    y = cg.zeros(2)
    with cg.scope("a/b"):
        y[0] = np.sum(np.divmod(x, 2.0)[1])
    carried = carry(y)
    copied = pickle.loads(carried) if isinstance(carried, bytes) else carried
    assert [n.scope for n in breadth_first(copied)] == [n.scope for n in breadth_first(y)]
    assert {n.scope for n in breadth_first(copied)} == {(), ("a", "b")}


def test_scope_of_recorded_derivative_is_that_of_operation() -> None:
    x = variable(2.0, "x")
    with cg.scope("a"):
        y = np.sin(x)
    with cg.scope("b"):
        z = np.exp(y)
    slope = gradient(z, create_graph=True)[x]
    of_opname = {node.opname: node.scope for node in breadth_first(slope)}
    assert of_opname["cos"] == ("a",)
    assert gradient(slope)[x] == pytest.approx(float(np.exp(np.sin(2)) * (np.cos(2) ** 2 - np.sin(2))))


def test_scope_within_differentiated_functions() -> None:
    """Forward mode, Jacobians and second order pass through."""

    def f(x: Any) -> Any:
        with cg.scope("a"):
            return np.sum(np.sin(x) * x)

    x = np.array([0.3, 1.2])
    exact = np.sin(x) + x * np.cos(x)
    np.testing.assert_allclose(ad.grad(f)(x), exact)
    np.testing.assert_allclose(ad.jvp(f, (x,), (np.ones(2),))[1], exact.sum())
    np.testing.assert_allclose(ad.hessian(f)(x), np.diag(2 * np.cos(x) - x * np.sin(x)))


def test_scope_is_per_thread() -> None:
    scopes = []
    with cg.scope("a"):
        thread = threading.Thread(target=lambda: scopes.append((variable(1.0) * 2).scope))
        thread.start()
        thread.join()
    assert scopes == [()]


def test_scope_absence_costs_no_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of scopes, operations do not look for one, and use the fast path."""

    def fail(*args: Any) -> Any:
        raise AssertionError("an operation outside of all scopes looked for one")

    x = variable([1.0, 2.0])
    monkeypatch.setattr("compgraph.values.node.open_scopes", fail)
    np.sum(np.sin(x) * 2 @ np.ones(2))
    monkeypatch.setattr(operators, "bind", fail)
    assert (x * 2).scope == ()
    with pytest.raises(AssertionError, match="looked for one"), cg.scope("a"):
        x * 2
