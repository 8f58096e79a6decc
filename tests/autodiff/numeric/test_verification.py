"""Incomplete gradients are detected by verify= and check_gradient; results that depend on no variable."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient
from tests.support.for_each import for_each

POINT = np.array([0.7, -1.2, 2.0])

# ------------------------------------------------------------------------------------------------- verify=

LOST: dict[str, tuple[Callable[[Any], Any], str]] = {
    "value": (lambda x: np.sum(x * x.value) if isinstance(x, cg.Node) else np.sum(x * x), r"\.value at File .*test_verification"),
    "float": (lambda x: np.sum(x) * math.exp(float(x[0])), r"float\(\) at File .*test_verification"),
    "bytes": (lambda x: x[0] * np.frombuffer(x.tobytes())[1], r"\.tobytes\(\) at File .*test_verification"),
    "text": (lambda x: np.sum(x) * float(f"{x[1]}"), "No conversion was recorded.*round trips through text"),
}
ERRORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "array": (lambda x: np.sum(x * np.array(x)), r"x \* np\.array\(x\).*cg\.array"),
    "slice": (lambda x: np.sum(x * filled(x)), r"in filled: plain\[:\] = x.*cg\.zeros"),
    "function": (lambda x: np.sum(x) * math.exp(x[0]), r"math\.exp\(\) takes.*Use np\.exp"),
    "dot": (lambda x: np.sum(x) + np.ones(3).dot(x), r"np\.ones\(3\)\.dot\(x\).*np\.dot"),
    "sum": (lambda x: np.sum(x) + np.asarray(x).sum(), r"np\.asarray\(x\)\.sum\(\).*Use cg\.asarray"),
}


def numbers_of(x: Any) -> Any:
    """The numbers of a node."""
    return x.value if isinstance(x, cg.Node) else x


def filled(x: Any) -> Any:
    plain = np.zeros(3)
    plain[:] = x
    return plain


@for_each("name", ERRORS)
def test_verify_conversion_raises_where_it_happens(name: str) -> None:
    f, named = ERRORS[name]
    cg.interception(False)  # by which most of it is right
    try:
        for call in (lambda: ad.grad(f)(POINT), lambda: ad.jvp(f, (POINT,), (POINT,)), lambda: check_gradient(f, [POINT])):
            with pytest.raises(cg.LeakError, match=named):
                call()
    finally:
        cg.interception(True)


@pytest.mark.filterwarnings("ignore:.*has no derivative:RuntimeWarning")
@for_each("name", LOST)
def test_verify_detects_and_names_lost_part(name: str) -> None:
    f, named = LOST[name]
    with pytest.raises(ad.DetachedGradientError, match=rf"random direction.* by the graph, and .*{named}"):
        ad.grad(f, verify="first")(POINT)
    with pytest.raises(ad.DetachedGradientError):
        ad.value_and_grad(f, verify="always")(POINT)
    ad.grad(f)(POINT)  # not looked for


RIGHT: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(np.sin(x) * x),
    "norm": lambda x: np.linalg.norm(x),
    "list": lambda x: x[0] * np.array(x.tolist())[1],
    "large": lambda x: 1e9 + np.sum(x),
    "flat": lambda x: np.sum(x) * 1e-12,
    "sizes": lambda x: np.sum(np.sin(x * [1e-6, 1.0, 1e6] / [1e-6, 1.0, 1e6])) + np.log(x[0] * 1e-9),
    "pole": lambda x: np.sum(np.log(x - POINT + 1e-7)),
    "constant": lambda x: 0 * x[0],
    "converted where it has no part": lambda x: np.sum(x * x) + 0.0 * numbers_of(x)[0],
    "elements": lambda x: x[0] * np.array([x[0] * 1.0, x[1]])[1] if x.dtype == np.float64 else x[0] * x[1],
}


@for_each("dtype", [np.float64, np.float32])
@for_each("name", RIGHT)
def test_verify_accepts_correct_gradient(name: str, dtype: Any) -> None:
    if dtype is np.float32 and name == "pole":
        return  # float32 cannot tell these points apart
    f, point = RIGHT[name], POINT.astype(dtype)
    assert np.array_equal(ad.grad(f, verify="first")(point), ad.grad(f)(point))


def test_verify_arguments_of_all_sizes() -> None:
    points = [np.array([1e4, 1e-4, 1.0]), np.zeros(2), 1e-5]
    f = lambda x, y, z: np.sum(np.log(x + 1e-5)) + np.sum(np.exp(y)) + np.log(z)  # noqa: E731
    ad.grad(f, (0, 1, 2), verify="first")(*points)
    with pytest.raises(ad.DetachedGradientError):
        ad.grad(lambda x, y, z: f(x, y, numbers_of(z) + 0 * z), (0, 1, 2), verify="first")(*points)


@for_each("dtype", [np.float64, np.float32])
def test_verify_detects_small_part(dtype: Any) -> None:
    with pytest.raises(ad.DetachedGradientError):
        ad.grad(lambda x: np.sum(x * x) + np.sum(numbers_of(x)) / 5, verify="first")(POINT.astype(dtype))


def returns_a_number(x: Any) -> Any:
    return x[0].value ** 2


@for_each("operator", [lambda f: ad.grad(f)(POINT), lambda f: ad.jvp(f, (POINT,), (POINT,)), lambda f: ad.vjp(f, POINT)])
def test_verify_lost_result_names_function_and_causes(operator: Any) -> None:
    place = rf"\(File \".*test_verification\.py\", line {returns_a_number.__code__.co_firstlineno}, in returns_a_number\)"
    causes = r".*plain\[1:-1\] = node.*np\.asarray.*SciPy"
    with pytest.raises(TypeError, match=rf"the function returned a plain float.*{place}\. Common causes{causes}"):
        operator(returns_a_number)


ZEROS = np.zeros(5)
WEIGHTS = np.random.default_rng(0).normal(size=(50, 5))
KINKS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "abs": (lambda x: np.sum(np.abs(x)), ZEROS),
    "relu": (lambda x: np.sum(cg.relu(x) * [1, -1, 2, -3, 1]), ZEROS),
    "network": (lambda x: np.mean(np.arange(50) * cg.relu(WEIGHTS @ x)) / 9, ZEROS),
    "max": (np.max, np.ones(4)),
    "norm": (np.linalg.norm, ZEROS),
    "maximum": (lambda x: np.sum(np.maximum(x, 0.5) * [1, 2, -3, 4, 5]), ZEROS + 0.5),
    "sort": (lambda x: np.sum(np.sort(x) * np.arange(5)), np.ones(5)),
    "floor": (lambda x: np.sum(np.floor(x) + x**2), np.ones(3)),
    "clip": (lambda x: np.sum(np.clip(x, -1, 1) * x), np.ones(3)),
    "median": (lambda x: np.median(x) ** 2, np.ones(4)),
    "beside stop_gradient": (lambda x: np.sum(cg.stop_gradient(x + 1) * np.abs(x)), ZEROS),
}


@for_each("dtype", [np.float64, np.float32])
@for_each("name", KINKS)
def test_verify_kink_is_no_false_alarm(name: str, dtype: Any) -> None:
    f, point = KINKS[name]
    ad.grad(f, verify="first")(point.astype(dtype))
    for part in (lambda x: np.sum(numbers_of(x) + 0.3) ** 2, lambda x: (x[0] + 1) * np.sum(np.exp(numbers_of(x)))):
        with pytest.raises(ad.DetachedGradientError):
            ad.grad(lambda x, part=part: f(x) + part(x), verify="first")(point.astype(dtype))


STOPPED: dict[str, Callable[[Any], Any]] = {
    "factor": lambda x: np.sum(cg.stop_gradient(x) * x),
    "several": lambda x: np.sum(ad.stop_gradient(np.sin(x)) * x**2) + np.sum(cg.stop_gradient(x**3)) * x[0],
    "in a loop": lambda x: sum(cg.stop_gradient(v) * v for v in x),
    "straight through": lambda x: np.sum((x + cg.stop_gradient(np.round(x) - x)) ** 2),
    "a list": lambda x: np.sum(cg.stop_gradient([x[0], 2.0, x[1]]) * x),
}


@for_each("dtype", [np.float64, np.float32])
@for_each("name", STOPPED)
def test_verify_stop_gradient_is_no_false_alarm(name: str, dtype: Any) -> None:
    f = STOPPED[name]
    assert np.array_equal(ad.grad(f, verify="first")(POINT.astype(dtype)), ad.grad(f)(POINT.astype(dtype)))
    with pytest.raises(ad.DetachedGradientError):
        ad.grad(lambda x: f(x) + np.sum(x * numbers_of(x)), verify="first")(POINT.astype(dtype))


def test_verify_changing_function_is_no_false_alarm() -> None:
    rng = np.random.default_rng(0)
    calls = [0]

    def counting(x: Any) -> Any:
        calls[0] += 1
        return np.sum(x**2) * calls[0]

    for f in (
        counting,
        lambda x: np.sum(x * rng.normal(size=3)),
        lambda x: np.sum(x**2) + rng.normal(),
        lambda x: np.sum((rng.random(3) > 0.5) * x**2),
        lambda x: np.sum(x * np.random.normal(size=3)),  # noqa: NPY002
    ):
        for _ in range(3):
            ad.grad(f, verify="always")(POINT)


def test_verify_first_runs_once_and_always_each_time() -> None:
    for verify, expected in (("first", 1), ("always", 3)):
        plain: list[Any] = []

        def f(x: Any, plain: list[Any] = plain) -> Any:
            if not isinstance(x, cg.Node):
                plain.append(x)
            return np.sum(x**2)

        g = ad.grad(f, verify=verify)
        for _ in range(3):
            g(POINT)
        assert len(plain) == 2 * expected


def test_verify_error_is_raised_again() -> None:
    g = ad.grad(LOST["value"][0], verify="first")
    for _ in range(2):
        with pytest.raises(ad.DetachedGradientError):
            g(POINT)


def test_verify_keeps_other_arguments() -> None:
    def f(mode: str, x: Any, n: int, y: Any, *, scale: float) -> Any:
        assert (mode, n, scale) == ("m", 3, 2.0)
        return np.sum(x) * y * scale, "aux"

    gradients, aux = ad.grad(f, argnums=(1, 3), has_aux=True, verify="first")("m", POINT, 3, 4.0, scale=2.0)
    assert aux == "aux"
    assert gradients[0].tolist() == [8.0] * 3
    with pytest.raises(ad.DetachedGradientError):
        ad.grad(lambda m, x: (np.sum(x * numbers_of(x)), m), argnums=1, has_aux=True, verify="first")("m", POINT)


def test_verify_complex_arguments() -> None:
    z = POINT + 1j
    ad.grad(lambda z: np.sum(abs(z) ** 2 * z.imag), verify="first")(z)
    with pytest.raises(ad.DetachedGradientError):
        ad.grad(lambda z: np.sum(abs(z) * abs(numbers_of(z))), verify="first")(z)


def test_verify_nested_operators_and_outer_variables() -> None:
    inner = ad.grad(lambda x: x**3, verify="always")
    assert float(ad.grad(inner)(2.0)) == 12.0
    w = cg.variable(3.0, "w")
    loss = ad.grad(lambda x: x**2 * w, verify="first")(2.0)
    assert float(gradient(loss)["w"]) == 4.0
    assert float(ad.jvp(inner, (2.0,), (1.0,))[1]) == 12.0


def test_verify_error_on_plain_arguments_names_verify() -> None:
    with pytest.raises(AttributeError) as caught:
        ad.grad(lambda x: np.sum(x) + 0 * len(x.operands), verify="first")(POINT)
    assert "verify=" in caught.value.__notes__[0]


def test_verify_unknown_value_raises() -> None:
    with pytest.raises(ValueError, match="verify must be None, 'first' or 'always', not True"):
        ad.grad(np.sum, verify=True)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ check_gradient


def test_check_gradient_names_detected_leaks() -> None:
    expected_error = pytest.raises(ad.DetachedGradientError, match=r"argument 0 is .* by central differences.*float\(\) at File")
    with pytest.warns(RuntimeWarning, match="has no derivative"), expected_error:
        check_gradient(lambda x: x * math.exp(float(x)), [2.0])


def test_check_gradient_of_plain_result() -> None:
    with pytest.raises(ad.DetachedGradientError, match=r"argument 0 is \[0\., 0\., 0\.\] by the graph"):
        check_gradient(lambda x: numbers_of(x) ** 2, [POINT])
    assert check_gradient(lambda x: np.ones(2), [POINT]) is True
    with pytest.raises(TypeError, match="NoneType"):
        check_gradient(lambda x: None, [POINT])


def test_check_gradient_of_undetected_loss_returns_false() -> None:
    assert check_gradient(lambda x: x * np.array([float(f"{v}") for v in x]), [POINT]) is False
    assert check_gradient(lambda x, y: float(str(y)) * x, [2.0, 3.0]) is False
    assert check_gradient(lambda x, y: x * 1, [2.0, 3.0]) is True


def test_check_gradient_with_explicit_gradients() -> None:
    assert check_gradient(lambda x: x * float(x), [2.0], [4.1]) is False
    assert check_gradient(lambda x: x * float(x), [2.0], [4.0]) is True


# ------------------------------------------------------------------------------------------------- unused=


def test_gradient_of_unused_variable_raises() -> None:
    x, y = cg.variable(2.0, "x"), cg.variable([1.0, 2.0], "y")
    with pytest.raises(ValueError, match=r"does not depend on the variable 'y'.*unused='zero'"):
        gradient(x * 2, y)
    for unused in ("raise", "zero"):
        with pytest.raises(ValueError, match="no variable called 'z'"):
            gradient(x * 2, "z", unused=unused)
    with pytest.raises(ValueError, match="unused is 'raise' or 'zero', not 'none'"):
        gradient(x * 2, x, unused="none")


def test_gradient_unused_option_returns_zeros() -> None:
    x, y = cg.variable(2.0, "x"), cg.variable(np.ones(2, np.float32), "y")
    g = gradient(x * 3, [x, y], unused="zero")
    assert float(g[x]) == 3.0
    assert g[y].dtype == np.float32
    assert g["y"].tolist() == [0.0, 0.0]
    second = gradient(x * x, [x, y], create_graph=True, unused="zero")
    assert isinstance(second[y], cg.Node)
    assert gradient(np.sum(second[y] * 2 + second[x]), [x, y])["x"].tolist() == 4.0


def test_gradient_errors_name_detected_leaks() -> None:
    x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
    loss = x * float(y)
    with pytest.raises(ValueError, match=r"does not depend on the variable 'y'.*float\(\) at File .*test_verification"):
        gradient(loss, y)
    with pytest.raises(ValueError, match=r"no variable called 'y'.*float\(\) at File"):
        gradient(loss, "y")
    with pytest.raises(TypeError, match=r"plain float.*float\(\) at File .*test_verification"):
        gradient(math.sin(float(y)))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "value_and_grad": lambda f, x: ad.value_and_grad(f)(x)[1],
    "vjp": lambda f, x: ad.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f, x: ad.jvp(f, (x,), (np.ones(np.shape(x)),))[1],
}


@for_each("operator", OPERATORS)
def test_grad_of_independent_result_is_zero(operator: str) -> None:
    w = cg.variable(3.0, "w")
    result = OPERATORS[operator](lambda x: w * 2, 2.0)
    assert float(result) == 0.0


@for_each("operator", OPERATORS)
def test_grad_warning_names_detected_leaks(operator: str) -> None:
    w = cg.variable(3.0, "w")
    with pytest.warns(RuntimeWarning) as records:
        derivative = OPERATORS[operator](lambda x: w * float(x), 2.0)
    assert float(derivative) == 0.0
    at_the_line, at_the_end = [str(warning.message) for warning in records]
    assert re.match(r"float\(\) at File .*test_verification.* no derivative\. If that is intended, write x\.value", at_the_line)
    assert re.search(r"does not depend on .*derivative is zero.*float\(\) at File .*test_verification", at_the_end)


@for_each("operator", OPERATORS)
def test_grad_lists_intended_conversions_only_without_others(operator: str) -> None:
    w = cg.variable(3.0, "w")
    with pytest.warns(RuntimeWarning, match=r"derivative is zero.*\.value at File .*test_verification") as records:
        OPERATORS[operator](lambda x: w * x.value, 2.0)
    assert len(records) == 1


@for_each("operator", OPERATORS)
def test_grad_plain_result_error_names_leaks(operator: str) -> None:
    lost = pytest.raises(TypeError, match=r"plain float.*float\(\) at File .*test_verification")
    with pytest.warns(RuntimeWarning, match="has no derivative"), lost:
        OPERATORS[operator](lambda x: math.sin(float(x)), 2.0)
    with pytest.raises(cg.LeakError, match=r"math\.nextafter\(\) takes.*test_verification.*Use np\.nextafter"):
        OPERATORS[operator](lambda x: math.nextafter(x, 0.0), 2.0)


def test_grad_ignores_value_read_beside_the_result() -> None:
    values: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ad.grad(lambda x: values.append(x.value) or x * x)(2.0) == 4.0  # type: ignore[func-returns-value]
    with pytest.warns(RuntimeWarning, match=r"float\(\) at .*: this number has no derivative") as records:
        assert ad.grad(lambda x: values.append(float(x)) or x * x)(2.0) == 4.0  # type: ignore[func-returns-value]
    assert values == [2.0, 2.0]
    assert len(records) == 1


def test_grad_names_argument_without_derivative() -> None:
    with pytest.warns(RuntimeWarning, match="does not depend on argument 1 by"):
        gradients = ad.grad(lambda x, y: x * y.value, argnums=(0, 1))(2.0, 3.0)
    assert [float(g) for g in gradients] == [3.0, 0.0]
