"""Guards of `try`: an operation that raised while a graph was recorded is checked again on replay."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

REGULAR, NEGATIVE, SINGULAR = np.array([[2.0, 1.0], [1.0, 3.0]]), -np.array([[2.0, 1.0], [1.0, 3.0]]), np.diag([0.0, 1.0])


def root_of_matrix(x: Any) -> Any:
    try:
        return np.sum(np.linalg.cholesky(x))
    except np.linalg.LinAlgError:
        return np.sum(x) * 0


def without_its_argument(x: Any) -> Any:
    try:
        return np.linalg.inv(x)[0, 0]
    except np.linalg.LinAlgError:
        return 5.0


def inverse(x: Any) -> Any:
    try:
        return np.sum(np.linalg.inv(2 * x))
    except ValueError:
        return 1.0 * x[0, 0]


def quotient(x: Any) -> Any:
    with np.errstate(divide="raise"):
        try:
            return np.sum(1 / x)
        except FloatingPointError:
            return np.sum(x)


def logarithm(x: Any) -> Any:
    with np.errstate(all="raise"):
        try:
            return np.sum(np.log(x * 1.0))
        except ArithmeticError:
            return np.sum(x)


def element(x: Any) -> Any:
    with np.errstate(all="raise"):
        try:
            return 1.0 / x[0, 0]
        except FloatingPointError:
            return np.sum(x)


def count(x: Any) -> Any:
    try:
        number = int(x[0, 0] / x[0, 1])
    except (ValueError, OverflowError):  # of nan, of infinity
        number = 7
    return number * x


def by_mathematics(x: Any) -> Any:
    try:
        return math.log(x[0, 0]) + np.sum(x)
    except ValueError:
        return np.sum(x) * 2


def by_warnings(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.sum(np.log(x))
        except RuntimeWarning:
            return np.sum(x)


MATRICES = [root_of_matrix, inverse]
ALL = [*MATRICES, quotient, logarithm, element]
ORDERS = list(permutations([REGULAR, NEGATIVE, SINGULAR]))


@pytest.mark.filterwarnings("ignore:.*int.. at File", "ignore:.*encountered in")
def test_guarded_error_jit_branches_on_values() -> None:
    with Failures("functions") as failures:
        functions = [*ALL, without_its_argument, count, by_mathematics, by_warnings]
        for f, (k, order) in itertools.product(functions, enumerate(ORDERS)):
            with failures.case(f"{f.__name__}, order {k}"):
                check_compiled(f, order)


def check_compiled(f: Callable[[Any], Any], order: Any) -> None:
    """Compare a compiled function, and its gradient, with the function, at points that raise and others."""
    pytest.importorskip("llvmlite")
    for g in [f] if f is without_its_argument else [f, ad.grad(lambda x: np.sum(f(x)))]:
        jitted = cg.jit(g, cache=False).compile(order[0])
        for x in (*order, *order):
            np.testing.assert_allclose(jitted(x), g(x), rtol=1e-12)


def test_guarded_error_executor_is_right_or_raises() -> None:
    with Failures("executors") as failures:
        for f, (k, order) in itertools.product(ALL, enumerate(ORDERS)):
            with failures.case(f"{f.__name__}, order {k}"):
                x = cg.placeholder((2, 2), name="x", example=order[0])
                executor = cg.Executor(f(x))
                for runs in (executor, pickle.loads(pickle.dumps(executor))):
                    np.testing.assert_allclose(runs.run({"x": order[0]}), f(order[0]))
                    for other in order[1:]:
                        try:
                            with warnings.catch_warnings():
                                warnings.simplefilter("error", RuntimeWarning)  # of a division that raised nothing then
                                outputs = runs.run({"x": other})
                        except (cg.GuardError, np.linalg.LinAlgError, RuntimeWarning):
                            continue
                        np.testing.assert_allclose(outputs, f(other))


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_guarded_error_is_named(f: Callable[[Any], Any]) -> None:
    first = SINGULAR if f is not root_of_matrix else NEGATIVE
    x = cg.placeholder((2, 2), name="x", example=first)
    executor = cg.Executor(f(x))
    message = r"whether \w+ raises at File .*test_guarded_errors.* gave '(LinAlg|FloatingPoint)Error'.* None"
    with pytest.raises(cg.GuardError, match=message):
        executor.run({x: REGULAR})


def test_guarded_error_independent_of_values_is_ignored() -> None:
    x = cg.variable(np.ones(3), "x")
    with pytest.raises(ValueError, match="mismatch"):
        np.ones((2, 2)) @ x
    with cg.no_graph(), pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(cg.variable(np.zeros((2, 2))))
    assert not cg.Executor(x * 2, strict=True).leaks
    np.testing.assert_array_equal(cg.Executor(x * 2).run({x: np.arange(3.0)}), [0.0, 2.0, 4.0])


def test_guarded_error_math_functions_raise_as_for_numbers() -> None:
    def safe(x: Any) -> Any:
        try:
            return math.log(x) + math.exp(x)
        except (ValueError, OverflowError):
            return 3 * x

    assert [float(ad.grad(safe)(x)) for x in (-1.0, 0.0, 1000.0)] == [3.0, 3.0, 3.0]
    assert ad.grad(safe)(1.0) == pytest.approx(1 + np.e)
    with pytest.raises(ValueError, match=r"math domain error|positive"):
        ad.grad(lambda x: math.sqrt(x))(-1.0)


BATCHES = {
    "log": (math.log, [-1.0, 2.0]), "exp": (math.exp, [0.0, 1000.0]), "acos": (lambda x: math.acos(x), [0.5, 2.0]),
    "gamma": (math.gamma, [-2.0, 1.0]), "pow": (lambda x: math.pow(x, -1), [0.0, 1.0]), "atan": (math.atan, [1.0, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_guarded_error_of_batch_elements_raises(name: str) -> None:
    """NumPy's functions of the whole batch warn, and return nan or inf."""
    f, values = BATCHES[name]
    bad = [x for x in values if _raises(f, x)]
    if not bad:
        np.testing.assert_array_equal(ad.vmap(f)(np.array(values)), list(map(f, values)))
        return
    with pytest.raises(
        cg.BatchedValueError, match=r"math\.\w+, which raises 'math (domain|range) error' for some batch elements"
    ):
        ad.vmap(f)(np.array(values))
    with pytest.raises((ValueError, OverflowError), match="math"):
        ad.vmap(f)(np.array(bad * 3))
    with pytest.raises((ValueError, OverflowError), match="math"):
        ad.vmap(ad.vmap(ad.grad(f)))(np.full((2, 3), bad[0]))


def _raises(f: Any, x: float) -> bool:
    try:
        f(x)
    except (ValueError, OverflowError):
        return True
    return False


def test_guarded_error_that_all_batch_elements_raise_is_caught_and_replayed() -> None:
    def safe(x: Any) -> Any:
        try:
            return math.log(x)
        except ValueError:
            return 3 * x

    x = cg.variable(np.array([-1.0, -2.0]), "x")
    executor = cg.Executor(ad.vmap(safe)(x))
    np.testing.assert_array_equal(executor.run({x: np.array([-3.0, -4.0])}), [-9, -12])
    for values in ([1.0, -1.0], [1.0, 2.0]):
        with pytest.raises(cg.GuardError):
            executor.run({x: np.array(values)})
