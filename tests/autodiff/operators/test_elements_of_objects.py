"""Elements of an argument inside objects: users' classes with operators, object arrays, lists, `statistics`."""

from __future__ import annotations

import statistics
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

X = np.array([1.1, 2.3, 0.7])


class Vector:
    """A vector of users' code, with Python's operators."""

    __array_priority__ = 0.0

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __iter__(self) -> Any:
        return iter(self.parts)

    def __mul__(self, k: Any) -> Any:
        return Vector(*[part * k for part in self.parts])

    __rmul__ = __mul__

    def __rsub__(self, k: Any) -> Any:
        return Vector(*[k - part for part in self.parts])

    def __rtruediv__(self, k: Any) -> Any:
        return Vector(*[k / part for part in self.parts])


class Quantity(Vector):
    """One that NumPy's arrays leave their operators to."""

    __array_priority__ = 1000.0


product = np.frompyfunc(lambda a, b: a * b + 1 if isinstance(a, float) else 0.0, 2, 1)
halves = np.frompyfunc(lambda a: (a / 2, a**2), 1, 2)


def variance_of_one(x: Any) -> Any:
    try:
        return statistics.variance([x[0]])
    except statistics.StatisticsError:
        return x[1] ** 2


FUNCTIONS: dict[str, Any] = {
    "scalar times object": lambda x: sum((x[0] * Vector(2.0, x[1])) * x[2]) + sum(3.0 * Vector(x[0], x[1] ** 2)),
    "reflected operators": lambda x: sum(x[0] - Vector(1.0, x[1])) ** 2 + sum(x[2] / Vector(2.0, x[0])),
    "array times object": lambda x: sum(sum(v) ** 2 for v in x * Vector(1.0, 2.0)) + sum(sum(v) for v in x - Vector(1.0, 2.0)),
    "priority": lambda x: np.sum(sum(x * Quantity(2.0, x[0]))) + sum(x[1] * Quantity(3.0, x[2])),
    "fractions": lambda x: (x[0] * Fraction(1, 3) - Fraction(1, 2)) ** 2 + Fraction(2, 5) / x[1] + np.sum(x * Fraction(1, 2)),
    "fraction as power": lambda x: x[0] ** Fraction(1, 2) + Fraction(3, 2) ** x[1],
    "frompyfunc": lambda x: np.sum(product(x, x[0])) * product(x[1], 2.0) + product.outer(x, x).sum() + product.reduce(x),
    "frompyfunc with two results": lambda x: (halves(x)[0] * halves(x)[1]).sum() + halves(x[0])[1],
    "array of objects": lambda x: (np.array(list(x), dtype=object) * x[0]).sum() + np.array([[x[0], x[1]], [x[2], 1]], "O")[1, 0],
    "array of objects and texts": lambda x: np.array([x[0], "name", None], dtype=object)[0] ** 2,
    "array of arrays": lambda x: np.array([x[:1], x[:2]], dtype=object)[1].sum() ** 2,
    "tolist": lambda x: sum(v**2 for v in x.tolist() if type(v) is float) * np.outer(x, x).tolist()[0][1],
    "means": lambda x: statistics.fmean(x) * statistics.mean(v**2 for v in x) + statistics.fmean(x, [1, 2, 3]),
    "medians": lambda x: statistics.median(x) * statistics.median_low(list(x)) + statistics.geometric_mean(x),
    "spreads": lambda x: statistics.stdev(x) * statistics.pvariance(x, mu=1.0) + statistics.variance(x) * statistics.pstdev(x),
    "weights of a mean": lambda x: statistics.fmean([1, 2, 4], weights=x) * statistics.fmean(iter([1, 2, 4]), iter(x**2)),
    "center": lambda x: statistics.pstdev([1, 2, 4], mu=x[0]) * statistics.variance([1, 2], x[1]) + statistics.stdev(data=x),
    "two sequences": lambda x: statistics.covariance([3, 1, 2], x**2) * statistics.correlation(list(x), [3, 1, 5]),
    "regression": lambda x: np.prod(statistics.linear_regression([3, 1, 5], x)) + statistics.linear_regression(x, [3, 1, 5])[1],
    "regression through zero": lambda x: statistics.linear_regression(list(x), [3, 1, 5], proportional=True).slope,
    "normal distribution": lambda x: NormalDist(x[0], x[1] ** 2).cdf(x[2]) * NormalDist(x[1], 2).pdf(x[0]),
    "scores of a normal distribution": lambda x: NormalDist(mu=x[0], sigma=x[1]).zscore(x[2]) + NormalDist(x[0]).variance,
    "quantiles of a normal distribution": lambda x: NormalDist(x[0], x[1]).inv_cdf(x[2] / 9) + NormalDist(2, x[1]).quantiles()[0],
    "sums of normal distributions": lambda x: (NormalDist(x[0], x[1]) * x[2] + NormalDist(x[2]) - x[0]).stdev ** 3,
    "overlap of normal distributions": lambda x: NormalDist(x[0], x[1]).overlap(NormalDist(x[2], 0.5)),
    "normal distribution of samples": lambda x: NormalDist.from_samples(v**2 for v in x).inv_cdf(0.3),
    "too few": variance_of_one,
}  # fmt: skip


@for_each("name", FUNCTIONS)
def test_derivatives_through_objects_match_differences(name: str) -> None:
    f = FUNCTIONS[name]
    steps = np.eye(3) * 1e-6
    expected = np.array([(f(X + step) - f(X - step)) / 2e-6 for step in steps], dtype=float)
    value, gradient = ad.value_and_grad(f)(X)
    np.testing.assert_allclose(float(value), float(f(X)), rtol=1e-14)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ad.jvp(f, (X,), (np.arange(3.0),))[1], expected @ np.arange(3.0), rtol=1e-7)


def test_statistics_of_nodes_raise_errors_of_python() -> None:
    for f in (
        lambda x: statistics.fmean([1, 2], weights=x),
        lambda x: statistics.covariance([1, 2], x),
        lambda x: statistics.linear_regression(list(x), [1, 2]),
        lambda x: statistics.correlation([1], x[:1]),
        lambda x: statistics.variance([1], x[0]),
        lambda x: NormalDist(x[0], -x[1]),
        lambda x: NormalDist(x[0], x[1]).inv_cdf(x[2] * 2),
        lambda x: NormalDist.from_samples(x[:1]),
    ):
        with pytest.raises(statistics.StatisticsError):
            ad.grad(f)(X)


def test_normal_distribution_of_variables_is_recorded_or_raises() -> None:
    x = cg.variable([0.3, 1.2, 0.7])
    result = NormalDist(x[0], x[1]).zscore(x[2]) + NormalDist(x[0], x[1]).inv_cdf(0.9)
    np.testing.assert_allclose(ad.gradient(result, [x])[x], [1 - 1 / 1.2, NormalDist().inv_cdf(0.9) - 0.4 / 1.44, 1 / 1.2])
    with pytest.raises(cg.LeakError):
        NormalDist(x[0], x[1]).cdf(0.7)
    with cg.no_graph():
        assert type(NormalDist(x[0], x[1]).mean) is float


def test_scalar_variable_times_object_is_recorded() -> None:
    x = cg.variable(X)
    result = sum(x[0] * Vector(2.0, x[1])) + x[2] * Fraction(1, 2)
    np.testing.assert_allclose(ad.gradient(result, [x])[x], [2.0 + X[1], X[0], 0.5])
