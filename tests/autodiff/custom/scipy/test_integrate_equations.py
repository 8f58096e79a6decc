"""Derivatives of ``scipy.integrate``: solutions of differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import ODEintWarning, odeint, solve_bvp, solve_ivp

import autodiff as ad
import compgraph as cg
from compgraph.interception import unpatched
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions

FINE = {"rtol": 1e-9, "atol": 1e-10}
SMALL = {"rtol": 1e-5, "atol": 1e-5, "max_step": 0.05}
Y0 = np.array([1.0, 2.0])


def predators(t: Any, z: Any, a: Any, b: Any) -> Any:
    """The rates of Lotka and Volterra."""
    x, y = z
    return [a * x - b * x * y, -y + x * y * 0.5]


def end(method: str, **options: Any) -> Any:
    return lambda y0, a: solve_ivp(predators, (0, 1.0), y0, method=method, args=(a, 1.1), **options).y[:, -1]


def at_times(method: str, **options: Any) -> Any:
    return lambda y0, a: (
        solve_ivp(lambda t, z: predators(t, z, a, 1.1), (0, 1.0), y0, method=method, t_eval=[0, 0.3, 0.5, 1.0], **options).y
    )


def between(t: Any, method: str = "DOP853", span: Any = (0, 1.0)) -> Any:
    return lambda y0, a: solve_ivp(lambda t, z: predators(t, z, a, 1.1), span, y0, dense_output=True, method=method, **FINE).sol(
        t if t is not None else a
    )


def ground_event(t: Any, y: Any) -> Any:
    """Zero on the ground."""
    return y[0]


ground_event.terminal = True  # type: ignore[attr-defined]
ground_event.direction = -1  # type: ignore[attr-defined]


def thrown(v: Any, **options: Any) -> Any:
    return solve_ivp(
        lambda t, y: [y[1], -9.8 - 0.1 * y[1]],
        (0, 100),
        [0.0, v],
        events=ground_event,
        method="DOP853",
        max_step=1.0,
        **FINE,
        **options,
    )


CASES: dict[str, list[tuple[Any, ...]]] = {
    "solve_ivp": [
        ("RK45", end("RK45", **FINE), Y0, 0.7),
        ("DOP853", end("DOP853", **FINE), Y0, 0.7),
        ("RK23", end("RK23", **SMALL), Y0, 0.7),
        ("vectorized", lambda y0, a: solve_ivp(lambda t, y: -a * y, (0, 1), y0, vectorized=True, **FINE).y[:, -1], Y0, 0.7),
        ("complex", lambda y0: solve_ivp(lambda t, y: 1j * y * y, (0, 1), y0, **FINE).y[:, -1], np.array([0.3 + 0.2j])),
        ("dense", between(None), Y0, 0.7),
        ("dense, backwards", between([0.3, 0.2, 0.9], "DOP853", (1.0, 0)), Y0, 0.7),
        (
            "the times",
            lambda a, b: solve_ivp(lambda t, z: predators(t, z, t, 1.1), (a, b), Y0, "DOP853", **FINE).y[:, -1],
            0.2,
            0.7,
        ),
        ("an event", lambda v: thrown(v).t_events[0], 3.0),
        ("the state at an event", lambda v: (thrown(v).y[:, -1], thrown(v).y_events[0], thrown(v).t[-1]), 3.0),
        (
            "events that end nothing",
            lambda v: solve_ivp(
                lambda t, y: [y[1], -y[0]], (0, 3.5), [v * 0, v], events=lambda t, y: y[0] - 0.5, method="DOP853", **FINE
            ).t_events[0],
            3.0,
        ),
        (
            "a threshold",
            lambda h: solve_ivp(lambda t, y: y, (0, 2), [1.0], "DOP853", events=lambda t, y: y[0] - h, **FINE).t_events[0],
            3.0,
        ),
    ],
    "odeint": [
        (
            "args",
            lambda y0, a: odeint(lambda z, t, a: predators(t, z, a, 1.1), y0, np.linspace(0, 1, 4), args=(a,), **FINE),
            Y0,
            0.7,
        ),
    ],
}
FIRST: dict[str, list[tuple[Any, ...]]] = {
    "solve_ivp": [
        ("RK45", at_times("RK45", **FINE), Y0, 0.7),
        ("DOP853", at_times("DOP853", **FINE), Y0, 0.7),
        ("RK23", at_times("RK23", **SMALL), Y0, 0.7),
        ("Radau", at_times("Radau", rtol=1e-10, atol=1e-12), Y0, 0.7),
        ("BDF", at_times("BDF", rtol=1e-10, atol=1e-12), Y0, 0.7),
        ("LSODA", at_times("LSODA", rtol=1e-11, atol=1e-12), Y0, 0.7),
        (
            "times between times",
            lambda a, b: solve_ivp(
                lambda t, z: predators(t, z, t, 1.1), (a, b), Y0, t_eval=np.linspace(a, b, 5), method="DOP853", **FINE
            ).y[:, 1:],
            0.2,
            0.7,
        ),
    ],
    "odeint": [
        (
            "times",
            lambda y0, a, t: odeint(lambda t, z: predators(t, z, a, 1.1), y0, t, tfirst=True, **FINE),
            Y0,
            0.7,
            np.linspace(0, 1, 4),
        ),
    ],
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_ode_solvers_second_derivatives(rows: Rows) -> None:
    rows.check(tolerance=1e-5)


@pytest.mark.parametrize("rows", functions(FIRST))
def test_ode_solvers_first_derivatives(rows: Rows) -> None:
    """Differences of second order would show the noise of steps that are chosen anew."""
    rows.check(order=1, tolerance=1e-4)


@for_each("method", ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_ode_solvers_values_equal_scipy(method: str) -> None:
    """To the last bit, with the tolerances that are usual, and the derivative by one state is that of a shorter way."""
    solutions: list[Any] = []

    def f(y0: Any) -> Any:
        solutions.append(solve_ivp(predators, (0, 1.5), y0, method, args=(0.7, 1.1)))
        return np.sum(solutions[-1].y)

    ad.grad(f)(Y0)
    reference = unpatched(solve_ivp)(predators, (0, 1.5), Y0, method, args=(0.7, 1.1))
    solution = solutions[0]
    np.testing.assert_array_equal(solution.t, reference.t)
    np.testing.assert_allclose(solution.y.value, reference.y, rtol=4e-16)
    assert (solution.nfev, solution.njev, solution.status, solution.message) == (
        reference.nfev,
        reference.njev,
        reference.status,
        reference.message,
    )


def test_ode_solvers_match_closed_form_decay() -> None:
    """Of y0 exp(-k t), by all three, and twice by k."""

    def f(y0: Any, k: Any, t: Any) -> Any:
        return solve_ivp(lambda s, y: -k * y, (0.0, t), [y0], method="DOP853", **FINE).y[0, -1]

    gradients = ad.grad(f, (0, 1, 2))(2.0, 0.5, 1.5)
    decay = np.exp(-0.75)
    np.testing.assert_allclose(gradients, [decay, -1.5 * 2 * decay, -0.5 * 2 * decay], rtol=1e-9)
    assert ad.grad(ad.grad(f, 1), 1)(2.0, 0.5, 1.5) == pytest.approx(1.5**2 * 2 * decay, rel=1e-8)


def test_solve_ivp_jacobians_of_both_modes_agree() -> None:
    p = np.array([1.0, 2.0])

    def f(p: Any) -> Any:
        return solve_ivp(lambda t, z: predators(t, z, p[0], p[1]), (0, 0.5), p, "DOP853", **FINE).y[:, -1]

    rows = ad.jacrev(f)(p)
    np.testing.assert_allclose(ad.jacfwd(f)(p), rows, atol=1e-12)
    np.testing.assert_allclose(ad.jacobian(f)(p), rows, atol=1e-12)
    whole = ad.hessian(lambda p: f(p)[0])(p)
    np.testing.assert_allclose(ad.jacfwd(ad.grad(lambda p: f(p)[0]))(p), whole, atol=1e-10)


def test_solve_ivp_fit_beside_penalty() -> None:
    """The gradient of the misfit vanishes at the growth rate that generated the data."""
    times = np.linspace(0, 2, 9)
    data = unpatched(odeint)(lambda y, t: 0.8 * y * (1 - y), 0.1, times)[:, 0]

    def loss(p: Any) -> Any:
        path = odeint(lambda y, t, r: r * y * (1 - y), 0.1, times, args=(p,), **FINE)[:, 0]
        return np.sum((path - data) ** 2) + (p - 0.8) ** 2

    assert ad.grad(loss)(0.8) == pytest.approx(0.0, abs=1e-6)
    assert ad.grad(loss)(0.9) > 0.1


@for_each("solver", ["Radau", "odeint"])
def test_ode_solvers_tolerance_of_each_component(solver: str) -> None:
    atol = np.array([1e-8, 1e-9])

    def end(k: Any) -> Any:
        if solver == "odeint":
            return odeint(lambda y, t: -k * y, [1.0, 2.0], [0.0, 1.0], atol=atol)[-1, 0]
        return solve_ivp(lambda t, y: -k * y, (0, 1), [1.0, 2.0], method=solver, atol=atol).y[0, -1]

    assert ad.grad(end)(0.5) == pytest.approx(-np.exp(-0.5), rel=1e-8)


@for_each("method", ["RK45", "DOP853", "LSODA"])
def test_solve_ivp_relative_tolerance_of_each_component(method: str) -> None:
    tolerances = {"rtol": np.array([1e-8, 1e-6]), "atol": 1e-12}
    gradient = ad.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0, 2.0], method=method, **tolerances).y[0, -1])(0.5)
    assert gradient == pytest.approx(-np.exp(-0.5), rel=1e-5)


@for_each("method", ["Radau", "BDF"])
def test_solve_ivp_relative_tolerance_of_implicit_method_is_one_number(method: str) -> None:
    rtol = np.array([1e-6, 1e-8])
    with pytest.raises(ValueError, match="ambiguous"):
        unpatched(solve_ivp)(lambda t, y: -y, (0, 1), [1.0, 2.0], method=method, rtol=rtol)
    with pytest.raises(ValueError, match="ambiguous") as info:
        ad.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0, 2.0], method=method, rtol=rtol).y[0, -1])(1.0)
    assert any("rtol=np.min(rtol)" in note for note in info.value.__notes__)


def test_ode_solvers_unsupported_options_raise() -> None:
    with pytest.raises(TypeError, match="dense_output"):
        ad.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0], method="Radau", dense_output=True).y[0, -1])(1.0)
    with pytest.raises(RuntimeError, match="stiff"):
        ad.grad(lambda k: solve_ivp(lambda t, y: -k * (y - np.cos(t)), (0, 1), [0.0], method="Radau").y[0, -1])(1e7)
    with pytest.raises(ValueError, match="touches"):
        ad.grad(lambda v: solve_ivp(lambda t, y: [v + 0 * y[0]], (0, 1), [0.0], events=lambda t, y: np.sign(t - 0.5) + 0 * y[0])
                .t_events[0][0])(1.0)  # fmt: skip


def test_ode_solvers_replay_with_other_values_raises() -> None:
    ad.grad(lambda x: x * x)(1.0)  # the family is entered
    k = cg.placeholder((), example=1.3)
    value = solve_ivp(lambda t, y: -k * y, (0, 1), [1.0]).y[0, -1]
    run = cg.Executor(value)
    np.testing.assert_allclose(run.run({k: np.float64(1.3)}), value.value)
    with pytest.raises(cg.GuardError):
        run.run({k: np.float64(2.0)})


def test_ode_solvers_failure_raises() -> None:
    with pytest.raises(RuntimeError, match="odeint"), pytest.warns(ODEintWarning):
        ad.grad(lambda a: odeint(lambda y, t: a * y * y, 1.0, [0.0, 2.0])[-1, 0])(1.0)
    with pytest.raises(RuntimeError, match="solve_ivp"):
        ad.grad(lambda a: solve_ivp(lambda t, y: a * y * y, (0, 2), [1.0]).y[0, -1])(1.0)


# ------------------------------------------------------------------------------------------ boundary values

MESH = np.linspace(0, 1, 5)


def bratu(k: Any, end: Any) -> Any:
    """Of y'' + k exp(y) = 0 the states on the mesh."""
    return solve_bvp(
        lambda x, y: np.vstack([y[1], -k * np.exp(y[0])]),
        lambda left, right: np.array([left[0], right[0] - end]),
        MESH,
        np.zeros((2, 5)),
        tol=1e-5,
    )


def eigenvalue(a: Any) -> Any:
    """Of y'' + k^2 (1 + a x) y = 0 with y(0) = y(1) = 0 the first k."""
    return solve_bvp(
        lambda x, y, p: [y[1], -(p[0] ** 2) * (1 + a * x) * y[0]],
        lambda left, right, p: [left[0], right[0], left[1] - p[0]],
        MESH,
        np.stack([np.sin(np.pi * MESH), np.pi * np.cos(np.pi * MESH)]),
        p=[3.0],
        tol=1e-5,
    )


@for_each(
    ("function", "arguments"),
    [
        (lambda k, e: bratu(k, e).y[1, [0, -1]], (1.0, 0.2)),
        (lambda k, e: bratu(k, e).sol(0.37), (1.0, 0.2)),
        (lambda a: eigenvalue(a).p, (0.3,)),
    ],
)
def test_solve_bvp_first_derivatives(function: Any, arguments: Any) -> None:
    """Differences of SciPy's numbers show its tolerance, and to second order more of it."""
    checked(function, arguments, order=1, tolerance=1e-4)


def test_solve_bvp_matches_closed_form_slope() -> None:
    """Of y'' = k^2 y with y(0) = 0 and y(1) = 1 the slope at 0 is k / sinh(k)."""

    def slope(k: Any) -> Any:
        return solve_bvp(lambda x, y: [y[1], k * k * y[0]], lambda u, v: [u[0], v[0] - 1], MESH, np.zeros((2, 5)), tol=1e-6).y[
            1, 0
        ]

    def formula(k: Any) -> Any:
        return k / np.sinh(k)

    assert ad.grad(slope)(1.3) == pytest.approx(ad.grad(formula)(1.3), rel=1e-5)
    assert ad.grad(ad.grad(slope))(1.3) == pytest.approx(ad.grad(ad.grad(formula))(1.3), rel=1e-4)


def test_solve_bvp_unsupported_options_raise() -> None:
    with pytest.raises(TypeError, match="x and S"):
        ad.grad(lambda a: solve_bvp(lambda x, y: y, lambda u, v: u - 1, a * MESH, np.ones((1, 5))).y[0, 0])(1.0)
