"""Approximations that are exact up to an order have derivatives up to that order; higher ones raise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.transform import Rotation

import autodiff as ad
from compgraph.scipy import limit_order
from tests.support.for_each import for_each


def at_order(order: int) -> Callable[[Any], Any]:
    return lambda x: np.sum(limit_order(x, order, "this") ** 5)


@for_each("order", range(1, 5))
def test_exactness_order_is_counted(order: int) -> None:
    coefficients = ad.taylor(at_order(order), 2.0, order)
    assert [float(c) for c in coefficients] == pytest.approx([math.comb(5, k) * 2.0 ** (5 - k) for k in range(order + 1)])
    with pytest.raises(TypeError, match="this has no derivative of this order"):
        ad.taylor(at_order(order), 2.0, order + 1)


def test_exactness_hessian_and_higher_orders() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(ad.hessian(at_order(2))(x), np.diag(20 * x**3))
    np.testing.assert_allclose(ad.hvp(at_order(2))(x, x), 20 * x**4)
    for wrong in (ad.hessian(at_order(1)), lambda x: ad.hvp(at_order(1))(x, x), ad.hessian(lambda x: at_order(0)(x))):
        with pytest.raises(TypeError, match="no derivative of this order"):
            wrong(x)
    np.testing.assert_allclose(ad.jacfwd(lambda x: limit_order(x, 1, "this") ** 2)(x), np.diag(2 * x))


def by_limit(b: Any) -> Any:
    return scipy.integrate.quad(np.exp, 0.0, b)[0]


def by_time(t: Any) -> Any:
    return scipy.integrate.solve_ivp(lambda t, y: y, (0, t), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]


@for_each(("f", "order"), [(by_limit, 12), (by_time, 8)])
def test_quad_derivatives_above_exact_order_raise(f: Callable[[Any], Any], order: int) -> None:
    result = [float(c) for c in ad.taylor(f, 1.0, order)]
    assert result[1:] == pytest.approx([math.e / math.factorial(k) for k in range(1, order + 1)], rel=1e-7)
    with pytest.raises(TypeError, match="no derivative of this order"):
        ad.taylor(f, 1.0, order + 1)


def test_solve_ivp_event_derivatives_above_exact_order_raise() -> None:
    """A stone thrown upwards falls back after ``2 v / 9.8``."""

    def landed(t: Any, y: Any) -> Any:
        return y[0] + 1e-3

    landed.terminal = True  # type: ignore[attr-defined]

    def f(v: Any) -> Any:
        return scipy.integrate.solve_ivp(lambda t, y: [y[1], -9.8], (0, 9), [0.0, v], events=landed, rtol=1e-9).t_events[0][0]

    def exact(v: Any) -> Any:
        return (v + np.sqrt(v * v + 2 * 9.8 * 1e-3)) / 9.8

    expected = [float(c) for c in ad.taylor(exact, 1.0, 7)]
    assert [float(c) for c in ad.taylor(f, 1.0, 7)] == pytest.approx(expected, rel=1e-5, abs=1e-8)
    with pytest.raises(TypeError, match="no derivative of this order"):
        ad.taylor(f, 1.0, 8)


def test_rotation_derivatives_above_exact_order_raise() -> None:
    def f(a: Any) -> Any:
        matrix = np.eye(3) + a * np.arange(9.0).reshape(3, 3)
        return np.sum(Rotation.from_matrix(matrix).as_rotvec() ** 2)

    ad.taylor(f, 0.01, 7)
    with pytest.raises(TypeError, match="no derivative of this order"):
        ad.taylor(f, 0.01, 8)
