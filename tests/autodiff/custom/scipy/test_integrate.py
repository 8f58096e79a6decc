"""Derivatives of ``scipy.integrate``: integrals of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import (
    dblquad,
    fixed_quad,
    nquad,
    quad,
    quad_vec,
    romb,
    tplquad,
)

import autodiff as ad
import compgraph as cg
from compgraph.interception import unpatched
from tests.support.arguments import real
from tests.support.scipy_checks import Rows, functions

COARSE = {"epsabs": 1e-7, "epsrel": 1e-7}


def wide(p: Any) -> Any:
    """In float32 no rule reaches the tolerance, and ``quad_vec`` would iterate up to its limit."""
    return np.float64(1) * p


FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "fixed_quad": [
        ("limits and closure", lambda p, a, b: fixed_quad(lambda x: np.sin(x * p), a, b)[0], 1.1, 0.2, 1.4),
        ("args", lambda p, q: fixed_quad(lambda x, p, q: np.sin(x * p) * q[0], 0, 1, args=(p, q), n=3)[0], 1.1, real(2)),
    ],
    "quad": [
        ("closure", lambda p: quad(lambda x: np.exp(-p * x), 0, 1)[0], 1.3),
        ("args", lambda p, q: quad(lambda x, p, q: np.exp(-p * x) * q[1], 0, 1, args=(p, q))[0], 1.3, real(2)),
        ("one for args", lambda p: quad(lambda x, p: np.exp(-p * x), 0, 1, p)[0], 1.3),
        ("infinite", lambda p: quad(lambda x: np.exp(-p * x * x), -np.inf, np.inf)[0], 1.3),
        ("half infinite", lambda p, a: quad(lambda x: np.exp(-p * x), a, np.inf)[0], 1.3, 0.4),
        ("a singular end", lambda p: quad(lambda x: x ** (p - 1.0), 0, 1)[0], 0.6),
        ("limits", lambda a, b, p: quad(lambda x: np.sin(p * x) / x, a, b)[0], 0.6, 2.0, 1.3),
        ("limits the other way", lambda a, b: quad(lambda x: np.sin(x) / x, b, a)[0], 0.6, 2.0),
        ("a jump", lambda b: quad(lambda x: (x > 0.3) * np.cos(x), 0, b, points=[0.3])[0] * b, 0.9),
        ("an oscillating weight", lambda b, p: quad(lambda x: p * x * x, 0.2, b, weight="sin", wvar=3.0)[0], 2.0, 1.3),
        ("an algebraic weight", lambda p: quad(lambda x: np.exp(p * x), 0, 1, weight="alg", wvar=(-0.5, 0.2))[0], 1.3),
        ("a principal value", lambda p: quad(lambda x: np.exp(p * x), -1, 2, weight="cauchy", wvar=0.5)[0], 1.3),
        ("complex", lambda p: quad(lambda x: np.exp(1j * p * x), 0, 2, complex_func=True)[0], 1.0),
        ("a vector", lambda p: quad(lambda x: np.sum(np.sin(x * p)), 0, p[0])[0], np.array([1.0, 2.0, 0.5])),
        ("one branch", lambda p: quad(lambda x: p * x if x > 0.5 else 1.0, 0, 1, points=[0.5])[0], 1.3),
    ],
    "quad_vec": [
        ("closure and limit", lambda p, b: quad_vec(lambda x: np.sin(x * wide(p)), 0, b)[0], np.array([1.0, 2.0]), 1.2),
        ("a matrix", lambda p: quad_vec(lambda x: np.outer(p, np.cos(x * wide(p))), 0, 1)[0], np.array([1.0, 2.0])),
        ("a number, args", lambda p: quad_vec(lambda x, p: np.exp(-p * x), 0, np.inf, args=(p,))[0], 1.3),
    ],
}


NESTED: dict[str, list[tuple[Any, ...]]] = {
    "nquad": [
        ("dblquad", lambda p, b: dblquad(lambda y, x: np.sin(x * y * p), 0, b, 0, lambda x: x * p, **COARSE)[0], 1.0, 1.2),
        ("nquad", lambda p, q: nquad(lambda x, y, q: np.sin(x * y * q), [[0, 1], [0, p]], args=(q,))[0], 1.0, 1.4),
    ],
}


@pytest.mark.parametrize("rows", functions(NESTED))
def test_quad_nested_first_derivatives(rows: Rows) -> None:
    """First order only: each evaluation of the outer integral, or of its derivative, is an integral."""
    rows.check(order=1)


@pytest.mark.parametrize("rows", functions(FUNCTIONS))
def test_quad_family_derivatives(rows: Rows) -> None:
    rows.check()


def test_tplquad_derivative_of_box_integral() -> None:
    """Of x y z p over a box the derivative by p is that of the volume."""

    def f(p: Any) -> Any:
        return tplquad(lambda z, y, x: p * p * x * y * z, 0, 1, 0, 1, 0, lambda x, y: 2.0, epsabs=1e-6)[0]

    assert ad.grad(f)(3.0) == pytest.approx(2 * 3.0 / 2)


def test_quad_jacobians_of_both_modes_agree() -> None:
    p = np.array([1.0, 2.0, 0.5])

    def f(p: Any) -> Any:
        return quad_vec(lambda x: np.sin(x * p) * p[0], 0, p[1])[0]

    def g(p: Any) -> Any:
        return quad(lambda x: np.sum(np.sin(x * p)), 0, p[0])[0]

    rows = ad.jacrev(f)(p)
    np.testing.assert_allclose(ad.jacfwd(f)(p), rows, atol=1e-12)
    np.testing.assert_allclose(ad.jacobian(f)(p), rows, atol=1e-12)
    np.testing.assert_allclose(ad.hessian(g)(p), ad.jacfwd(ad.grad(g))(p), atol=1e-10)
    np.testing.assert_allclose(ad.hessian(g)(p), ad.jacrev(ad.jacfwd(g))(p), atol=1e-10)


def test_quad_third_derivative() -> None:
    """Third derivatives of the integral of exp(-p x) from 0 to infinity, 1 / p, and of exp(p x) from 0 to p."""
    third = ad.grad(ad.grad(ad.grad(lambda p: quad(lambda x: np.exp(-p * x), 0, np.inf)[0])))
    assert third(2.0) == pytest.approx(-6 / 2.0**4)
    third = ad.grad(ad.grad(ad.grad(lambda p: quad(lambda x: np.exp(p * x), 0, p)[0])))
    whole = ad.grad(ad.grad(ad.grad(lambda p: (np.exp(p * p) - 1) / p)))
    assert third(0.7) == pytest.approx(whole(0.7), rel=1e-7)


def test_quad_error_estimate_and_report_are_scipys() -> None:
    """The error estimate and the report are SciPy's."""
    results: list[Any] = []

    def f(p: Any) -> Any:
        results.append(quad(lambda x: np.exp(-p * x), 0, 1, full_output=1))
        return results[-1][0]

    ad.grad(f)(1.3)
    expected = unpatched(quad)(lambda x: np.exp(-1.3 * x), 0, 1, full_output=1)
    assert results[0][1] == expected[1]
    assert results[0][2]["neval"] == expected[2]["neval"]


def test_quad_unsupported_options_raise() -> None:
    with pytest.raises(TypeError, match="wvar"):
        ad.grad(lambda w: quad(np.exp, 0, 1, weight="sin", wvar=w)[0])(1.0)
    with pytest.raises(TypeError, match="alg"):
        ad.grad(lambda b: quad(np.exp, 0, b, weight="alg", wvar=(0.5, 0.5))[0])(1.0)
    with pytest.raises(ValueError, match="not finite"), np.errstate(divide="ignore", invalid="ignore"):
        ad.grad(lambda a: quad(lambda x: x**-0.5, a, 1.0)[0])(0.0)
    with pytest.raises(TypeError, match="workers"):
        ad.grad(lambda b: quad_vec(np.exp, 0, b, workers=2)[0])(1.0)


def test_romb_show_prints_table(capsys: pytest.CaptureFixture[str]) -> None:
    expected = ad.grad(romb)(np.ones(5))
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(ad.grad(lambda y: romb(y, show=True))(np.ones(5)), expected)
    assert "Romberg" in capsys.readouterr().out


def test_quad_replay_with_other_values_raises() -> None:
    p = cg.placeholder((), example=1.3)
    value = quad(lambda x: np.exp(-p * x), 0, 1)[0]
    run = cg.Executor(value)
    np.testing.assert_allclose(run.run({p: np.float64(1.3)}), value.value)
    with pytest.raises(ValueError, match="has changed since"):
        run.run({p: np.float64(2.0)})


def test_quad_arc_length_beside_penalty() -> None:
    """The arc length of an ellipse, and a penalty."""

    def length(a: Any, b: Any) -> Any:
        speed = quad(lambda t: np.sqrt((a * np.sin(t)) ** 2 + (b * np.cos(t)) ** 2), 0, 2 * np.pi)[0]
        return speed + 0.5 * a * a

    gradients = ad.grad(length, (0, 1))(2.0, 2.0)
    assert gradients[0] == pytest.approx(np.pi + 2.0)
    assert gradients[1] == pytest.approx(np.pi)
