"""The checkers detect wrong derivatives and report their place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, rule
from autodiff.checks import check_graph
from autodiff.reverse import check_gradient
from tests.support.for_each import for_each


@cg.primitive
def slightly_off(x: Any, y: Any) -> Any:
    return np.sin(x) * y


rule(slightly_off, lambda g, out, x, y: g * np.cos(x) * y, lambda g, out, x, y: g * np.sin(x) * 1.001, kind="elementwise")


@cg.primitive
def wrong_tangent(x: Any) -> Any:
    return np.sum(x * x)


rule(wrong_tangent, lambda g, out, x: 2 * g * x, tangents=[lambda t, out, x: np.sum(t * x)])


@cg.primitive
def wrong_second(x: Any) -> Any:
    return x**3


rule(wrong_second, lambda g, out, x: g * 3 * cg.stop_gradient(x) * x, kind="elementwise")


def test_checks_accept_right_functions() -> None:
    check_grads(lambda x, y: np.tanh(x) @ y, [np.ones((2, 3)), np.ones(3)], order=3)
    x = cg.variable([0.5, 1.5], "x")
    assert check_graph(np.sum(np.exp(x[::-1]) * x / np.prod(x)) + divmod(x, 2.0)[1]) == []
    z = cg.variable([1 + 2j, 0.5 - 1j], "z")
    assert check_graph(np.real(np.exp(z) * np.conj(z)) + np.abs(z)) == []


def test_checks_name_wrong_operand() -> None:
    x, y = cg.variable([1.0, 2.0], "x"), cg.variable(3.0, "y")
    findings = check_graph(np.sum(np.exp(slightly_off(np.cos(x), y))))
    assert {(f.opname, f.position, f.mode) for f in findings} == {("slightly_off", 1, "reverse"), ("slightly_off", 1, "forward")}
    assert all(abs(f.found / f.expected - 1.001) < 1e-6 for f in findings)


@for_each("mode", ["fwd", "rev"])
def test_check_grads_names_wrong_operand(mode: str) -> None:
    with pytest.raises(AssertionError, match=f"mode '{mode}'.*operand 1 of slightly_off"):
        check_grads(lambda x, y: slightly_off(np.cos(x), y), [1.0, 2.0], modes=(mode,), rtol=1e-6)


def test_check_grads_wrong_tangent_is_detected_by_forward_mode() -> None:
    check_grads(wrong_tangent, [np.array([1.0, 2.0])], order=1, modes=("rev",))
    with pytest.raises(AssertionError, match="operand 0 of wrong_tangent, forward mode"):
        check_grads(wrong_tangent, [np.array([1.0, 2.0])], order=1)


def test_check_grads_wrong_second_derivative_is_detected() -> None:
    check_grads(wrong_second, [2.0], order=1)
    with pytest.raises(AssertionError):
        check_grads(wrong_second, [2.0], order=2)


def test_check_grads_detects_lost_graph() -> None:
    with pytest.raises(AssertionError, match="no single rule is wrong: look for values that left the graph"):
        check_grads(lambda x: x * (x.value if isinstance(x, cg.Node) else x), [2.0])
    assert not check_gradient(lambda x: x * float(str(x)), [2.0])
    for check in (check_grads, check_gradient):
        with pytest.raises(cg.LeakError, match=r"x \* math\.nextafter\(x, 9\)"):
            check(lambda x: x * math.nextafter(x, 9), [2.0])


def test_check_grads_bad_arguments_raise() -> None:
    with pytest.raises(ValueError, match="order must be at least 1"):
        check_grads(np.sin, [1.0], order=0)
    with pytest.raises(ValueError, match="modes among"):
        check_grads(np.sin, [1.0], modes=("reverse",))
