"""Values that leaked from a graph and returned as constants: `gradient` warns of these alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradient, jacobian

POINT = np.array([0.3, 0.2, 0.1])


def leaves() -> tuple[Any, Any, Any]:
    return cg.variable(2.3, "a"), cg.variable(3.1, "b"), cg.variable([1.1, 2.2, 3.3], "x")


def number_times_node(a: Any, b: Any, x: Any) -> Any:
    number = float(a)
    return number * a


def function_of_a_number(a: Any, b: Any, x: Any) -> Any:
    number = np.sqrt(float(a * b)) + 1
    return a / number


def item(a: Any, b: Any, x: Any) -> Any:
    number = (a * b).item()
    return b - number * a


def plain_array(a: Any, b: Any, x: Any) -> Any:
    plain = np.asarray(x)
    return np.sum(plain * x)


def element_of_a_plain_array(a: Any, b: Any, x: Any) -> Any:
    return np.sum(np.array(x)[0] * x)


def statistic_of_a_plain_array(a: Any, b: Any, x: Any) -> Any:
    spread = np.asarray(x).std()
    return np.sum(x) / spread


def numbers_in_a_list(a: Any, b: Any, x: Any) -> Any:
    return np.sum(np.asarray(x.tolist()) * x)


def method_of_a_plain_array(a: Any, b: Any, x: Any) -> Any:
    return np.array([1.0, 2.0, 3.5]).dot(x) * a * x[0]


LOST = [
    element_of_a_plain_array, function_of_a_number, item, method_of_a_plain_array, number_times_node, numbers_in_a_list,
    plain_array, statistic_of_a_plain_array,
]  # fmt: skip


@pytest.mark.parametrize("program", LOST, ids=lambda f: f.__name__)
def test_gradient_warns_of_leaks(program: Callable[..., Any]) -> None:
    result = program(*leaves())
    with pytest.warns(RuntimeWarning, match=rf"left their graph.*\n?.*in {program.__name__}") as records:
        gradient(result)
    assert records[0].filename == __file__


def test_gradient_warns_of_leaks_in_its_argument() -> None:
    a, b, _ = leaves()
    with pytest.warns(RuntimeWarning, match="left their graph"):
        print(gradient(np.array([float(a), b]) @ np.array([1.0, 2.0]) * a)["a"])


def test_jacobian_warns_of_leaks() -> None:
    a, _, x = leaves()
    result = x * float(a) * a
    with pytest.warns(RuntimeWarning, match="jacobian: numbers left their graph"):
        jacobian(result, a)


def format_number(a: Any, b: Any, x: Any) -> None:
    for scale in (0.3, 0.7):
        loss = np.sum((x * scale - a) ** 2)
        print(float(loss), f"{float(a):.3f}", "%.2f" % loss)  # noqa: UP031
        if float(loss) < 0 or loss.item() < 0:
            return
        gradient(loss)
    assert abs(float(a) - 2.3) < 1e-9
    gradient(loss * 0.37)


def store_number(a: Any, b: Any, x: Any) -> None:
    losses = []
    for scale in np.linspace(0.1, 0.9, 3):
        loss = np.sum((x - 0.5) ** 2)
        losses.append(float(loss))
        gradient(loss * scale)


def variable_updated(a: Any, b: Any, x: Any) -> None:
    for step in np.geomspace(0.01, 0.1, 3):
        loss = np.sum((x * step - 0.5) ** 2)
        before = float(loss)
        x -= step * gradient(loss)[x]
    assert before > 0


def computed_before(a: Any, b: Any, x: Any) -> None:
    loss = np.sum((x * np.sqrt(0.7)) ** 2)
    number = float(loss)
    gradient(loss)
    assert number > 0


def expected_by_hand(a: Any, b: Any, x: Any) -> None:
    plain = np.asarray(x)
    derivative = gradient(np.sum(np.sin(x) * 0.25))[x]
    assert np.allclose(derivative, np.cos(plain) * 0.25)


def names_only_shown(a: Any, b: Any, x: Any) -> None:
    total, first = 0.0, float(np.sum(x))
    for _ in range(2):
        loss = np.sum((x - 0.5) ** 2)
        number = float(loss)
        total += number
    gradient(loss * np.sqrt(3.0))
    print(total, first)


def value_and_gradient(a: Any, b: Any, x: Any) -> None:
    def evaluate(point: Any) -> Any:
        x.value[:] = point
        loss = np.sum((x - 0.5) ** 2) * np.exp(0.3)
        return float(loss), gradient(loss)[x]

    for k in range(3):
        evaluate(POINT * k)


def of_another_graph(a: Any, b: Any, x: Any) -> None:
    number = float(b) ** 2
    gradient(number * a)


def intended_number(a: Any, b: Any, x: Any) -> None:
    gradient(np.sum(x.value * x) + cg.stop_gradient(a) * a)


RIGHT = [
    names_only_shown,
    value_and_gradient,
    format_number,
    store_number,
    variable_updated,
    computed_before,
    expected_by_hand,
    of_another_graph,
    intended_number,
]


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_gradient_without_leaks_does_not_warn(program: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program(*leaves())


def test_gradient_warns_of_leaks_in_code_without_source() -> None:
    """The use of a number is read from the source."""
    a, _, x = leaves()
    around = {"a": a, "x": x, "gradient": gradient, "np": np}
    with pytest.warns(RuntimeWarning, match="left their graph"):
        exec("print(float(a)); gradient(a * np.sqrt(2.0))", around)
    with pytest.warns(RuntimeWarning, match=r"left their graph.*ndarray\.dot\(\)"):
        exec("number = np.array([1.0, 2.0, 3.5]).dot(x); gradient(number * x[0])", around)
    for lost in ("plain.fill(a)", "plain = np.sin([a, a, a])", "plain.put([0], [a])"):
        with pytest.warns(RuntimeWarning, match="left their graph"):
            exec(f"print(float(a * 2)); plain = np.zeros(3); {lost}; gradient(np.sum(plain * a))", around)


def test_leak_message_names_leaks_of_requested_node() -> None:
    a, b = cg.variable(2.3, "mass"), cg.variable(3.1, "radius")
    for scale in (0.5, 0.25):
        print(float(a * scale))
    other = float(b * 2)
    with pytest.raises(ValueError, match="does not depend") as error:
        gradient(b * 3, a)
    assert "left the graph" not in str(error.value)
    number = float(a * a) + other
    for key in (a, "mass"):
        with pytest.raises(ValueError, match=r"Values left the graph here: float\(\) at") as error:
            gradient(b * number, key)
        assert "number = float(a * a)" in str(error.value)
        assert "print" not in str(error.value)
        assert "other" not in str(error.value).partition("number =")[0]
    with pytest.raises(TypeError, match="needs a node") as plain:
        gradient(number)
    assert "print" not in str(plain.value)
