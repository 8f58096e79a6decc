"""Scopes: which nodes know which names, and that they cost nothing where none is open."""

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


def test_nodes_know_the_scopes_around() -> None:
    """Leaves and operations of every kind, nested, and none once the scope is left."""
    with cg.scope("outer"):
        x = variable([1.0, 2.0])
        with cg.scope("inner"):
            made = [x * 2, 2 * x, np.sin(x), x[0], x > 1, np.sum(x), cg.constant(3.0), cg.zeros(2), cg.relu(x), np.linalg.norm(x)]
        after = -x
    assert {node.scope for node in made} == {("outer", "inner")}
    assert (x.scope, after.scope, (x + 1).scope) == (("outer",), ("outer",), ())


def test_a_slash_nests() -> None:
    """A path opens several scopes at once; a scope may be opened again, and within itself."""
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


def test_scope_ends_at_an_exception() -> None:
    """Nodes created after an exception are outside the scope."""
    with pytest.raises(KeyError), cg.scope("a"):
        raise KeyError
    assert (variable(1.0) * 2).scope == ()
    assert settings.is_quick()


@pytest.mark.parametrize("name", ["", "/", "a//b", "a/", "/a"])
def test_an_empty_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="empty name"):
        cg.scope(name)


def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="a string, not a int"):
        cg.scope(3)  # type: ignore[arg-type]


def test_outputs_share_the_scope_of_their_record() -> None:
    """An operation with several outputs, and the constants made of raw operands when they are looked at."""
    x = variable([4.0, 5.0])
    with cg.scope("a"):
        quotient, remainder = np.divmod(x, np.array([2.0, 3.0]))
    joint = quotient.args[0]
    assert isinstance(joint, MultiOutput)
    assert {quotient.scope, remainder.scope, joint.scope} == {("a",)}
    with cg.scope("somewhere else"):
        assert [operand.scope for operand in joint.operands] == [(), ("a",)]


def test_a_write_knows_its_scope() -> None:
    y = cg.zeros(3)
    with cg.scope("a"):
        y[0] = variable(1.0)
    y[1] = variable(2.0)
    assert [write.scope for write in y.memory.log] == [("a",), ()]


def test_values_do_not_change() -> None:
    """The same bits and kinds inside and outside."""
    x = variable([0.1, 0.7, 3.0])
    outside = np.sum(np.tanh(x) ** 2 / x)
    with cg.scope("a"):
        inside = np.sum(np.tanh(x) ** 2 / x)
    assert inside.value.tobytes() == outside.value.tobytes()
    assert type(inside) is type(outside)
    assert gradient(inside)[x].tobytes() == gradient(outside)[x].tobytes()


def test_no_graph_in_a_scope_and_the_other_way_round() -> None:
    x = variable(2.0)
    with cg.scope("a"):
        with cg.no_graph():
            assert not isinstance(x * 2, cg.Node)
        assert (x * 2).scope == ("a",)
    with cg.no_graph(), cg.scope("a"):
        assert not isinstance(x * 2, cg.Node)


def test_debug_and_a_scope() -> None:
    """Both look at each operation."""
    x = variable(0.0)
    with cg.scope("a"), cg.debug():
        assert (x + 1).scope == ("a",)
        with np.errstate(divide="ignore"), pytest.raises(cg.NonFiniteError):
            np.log(x)
    assert settings.is_quick()


@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy])
def test_copies_keep_scopes(carry: Callable[[Any], Any]) -> None:
    x = variable([1.0, 2.0], "x")
    y = cg.zeros(2)
    with cg.scope("a/b"):
        y[0] = np.sum(np.divmod(x, 2.0)[1])
    carried = carry(y)
    copied = pickle.loads(carried) if isinstance(carried, bytes) else carried
    assert [n.scope for n in breadth_first(copied)] == [n.scope for n in breadth_first(y)]
    assert {n.scope for n in breadth_first(copied)} == {(), ("a", "b")}


def test_recorded_derivatives_belong_to_the_scope_of_their_operation() -> None:
    x = variable(2.0, "x")
    with cg.scope("a"):
        y = np.sin(x)
    with cg.scope("b"):
        z = np.exp(y)
    slope = gradient(z, create_graph=True)[x]
    of_opname = {node.opname: node.scope for node in breadth_first(slope)}
    assert of_opname["cos"] == ("a",)
    assert gradient(slope)[x] == pytest.approx(float(np.exp(np.sin(2)) * (np.cos(2) ** 2 - np.sin(2))))


def test_derivatives_of_functions_with_scopes() -> None:
    """Forward mode, Jacobians and second order pass through."""

    def f(x: Any) -> Any:
        with cg.scope("a"):
            return np.sum(np.sin(x) * x)

    x = np.array([0.3, 1.2])
    exact = np.sin(x) + x * np.cos(x)
    np.testing.assert_allclose(ad.grad(f)(x), exact)
    np.testing.assert_allclose(ad.jvp(f, (x,), (np.ones(2),))[1], exact.sum())
    np.testing.assert_allclose(ad.hessian(f)(x), np.diag(2 * np.cos(x) - x * np.sin(x)))


def test_threads_have_scopes_of_their_own() -> None:
    found = []
    with cg.scope("a"):
        thread = threading.Thread(target=lambda: found.append((variable(1.0) * 2).scope))
        thread.start()
        thread.join()
    assert found == [()]


def test_outside_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no scope is open, an operation neither asks for one nor leaves the short way."""

    def asked(*args: Any) -> Any:
        raise AssertionError("an operation outside of all scopes looked for one")

    x = variable([1.0, 2.0])
    monkeypatch.setattr("compgraph.values.node.open_scopes", asked)
    np.sum(np.sin(x) * 2 @ np.ones(2))
    monkeypatch.setattr(operators, "bind", asked)
    assert (x * 2).scope == ()
    with pytest.raises(AssertionError, match="looked for one"), cg.scope("a"):
        x * 2
