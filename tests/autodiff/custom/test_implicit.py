"""root, fixed_point, minimize and odeint: values, derivatives of first and second order in both modes, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, fixed_point, grad, jvp, minimize, odeint, root, vmap
from autodiff.checks import check_graph
from autodiff.reverse import gradient

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3))
A = A @ A.T + np.eye(3)
B = np.array([1.0, 2.0, 3.0])


def square_root(p: Any) -> Any:
    return root(lambda x, p: x * x - p, 1.0, p)


class TestImplicit:
    def test_root_derivatives_to_third_order(self) -> None:
        assert float(square_root(2.0)) == pytest.approx(np.sqrt(2), rel=1e-14)
        third = grad(grad(grad(square_root)))(2.0)
        assert float(third) == pytest.approx(3 / 8 * 2**-2.5, rel=1e-12)
        check_grads(lambda a, b: root(lambda x, a, b: a @ x + x**3 - b, np.zeros(3), a, b), [A, B], order=2)

    def test_root_of_arrays_keeps_shapes(self) -> None:
        target = np.arange(1.0, 7).reshape(2, 3)
        result = root(lambda x, t: x**3 - t, np.ones((2, 3)), target)
        assert np.allclose(result, np.cbrt(target))
        assert np.allclose(
            grad(lambda t: np.sum(root(lambda x, t: x**3 - t, np.ones((2, 3)), t)))(target), target ** (-2 / 3) / 3
        )

    def test_fixed_point_derivatives(self) -> None:
        check_grads(lambda p: fixed_point(lambda x, p: np.cos(p * x), np.array([0.5, 0.4]), p), [np.array([1.0, 0.8])], order=2)

    def test_minimize_derivatives(self) -> None:
        def f(x: Any, p: Any, q: Any) -> Any:
            return np.sum((x - p) ** 2) + q * np.sum(x**4) + x[0] * x[1]

        check_grads(lambda p, q: minimize(f, np.zeros(2), p, q, tol=1e-12).x, [np.array([1.0, 0.8]), 0.3], order=2)
        ridge = minimize(lambda x, a, b: np.sum((a @ x - b) ** 2) + np.sum(x * x), np.zeros(3), A, B, tol=1e-9).x
        assert np.allclose(ridge, np.linalg.solve(A.T @ A + np.eye(3), A.T @ B), rtol=1e-8)

    def test_solvers_keep_float32(self) -> None:
        start, p = np.float32(1), np.float32(2)
        for solution in (
            root(lambda x, p: x * x - p, start, p),
            fixed_point(lambda x, p: (x + p / x) / 2, start, p),
            minimize(lambda x, p: (x * x - p) ** 2, start, p).x,
        ):
            assert solution.dtype == np.float32
            assert float(solution) == pytest.approx(np.sqrt(2), rel=1e-6)
        slope = grad(lambda p: root(lambda x, p: x * x - p, start, p))(p)
        assert slope.dtype == np.float32
        assert float(slope) == pytest.approx(0.5 / np.sqrt(2), rel=1e-6)

    def test_solvers_connect_nodes(self) -> None:
        w = cg.variable(2.0, "w")
        y = square_root(w * 2) ** 3
        assert y.operands[0].opname == "root"
        assert float(gradient(y)["w"]) == pytest.approx(6.0)
        slope = gradient(y, create_graph=True)["w"]
        assert float(gradient(slope)["w"]) == pytest.approx(1.5)
        assert check_graph(y) == []

    def test_solvers_nested_unknowns_and_parameters(self) -> None:
        """Unknowns and parameters nest; the solution nests as the unknowns."""

        def circle(x: Any, p: Any) -> Any:
            return {"u": x["u"] ** 2 + np.sum(x["v"] ** 2) - p["r"] ** 2, "v": x["u"] - p["a"][0] * x["v"] - p["a"][1]}

        def of(p: Any, **how: Any) -> Any:
            result = root(circle, {"u": 1.0, "v": np.ones(2)}, *(() if how else (p,)), **how)
            assert np.shape(result["u"]) == ()
            assert np.shape(result["v"]) == (2,)
            return result["u"] * 2 + result["v"]

        point = {"r": 5.0, "a": [np.array([0.75, 0.5]), 0.1]}
        check_grads(of, [point], order=2)
        assert np.array_equal(of(point), of(None, args=(point,)))
        assert np.array_equal(of(point), of(None, args=point)), "one parameter that is not a tuple, as in SciPy"

        def angle(p: Any) -> Any:
            return fixed_point(lambda x, p: (np.cos(p[0] * x[1]), x[0] * p[1] / 2), (0.5, 0.5), args=(p,))[0]

        slope = grad(angle)([1.0, 1.0])
        k = 0.5
        u = fixed_point(lambda u: np.cos(u * k), 0.5)
        sine = np.sin(k * u)
        assert [float(s) for s in slope] == pytest.approx([-sine * u * k / (1 + k * sine)] * 2, rel=1e-8)
        several = vmap(lambda r: of({"r": r, "a": point["a"]}))(np.array([5.0, 6.0]))
        assert np.allclose(several[0], of(point), rtol=1e-12)
        narrow = root(lambda x: {"a": x["a"] - 2, "b": x["b"] ** 2 - 2}, {"a": np.float32(1), "b": np.ones(2)})
        assert (narrow["a"].dtype, narrow["b"].dtype) == (np.float32, np.float64)

    def test_solvers_nested_bad_calls_raise(self) -> None:
        with pytest.raises(TypeError, match="passed by position and by args="):
            root(lambda x, p: x - p, 1.0, 2.0, args=(2.0,))
        with pytest.raises(ValueError, match="root: the function returned a value of structure"):
            root(lambda x: x["a"], {"a": 1.0})
        with pytest.raises(ValueError, match=r"fixed_point: the function returned shape \(2,\) for an unknown of shape \(\)"):
            fixed_point(lambda x: [np.ones(2)], [1.0])
        with pytest.raises(TypeError, match="contains no array"):
            root(lambda x: x, [])

    def test_root_unused_parameter_has_zero_derivative(self) -> None:
        assert float(grad(lambda p: root(lambda x, p: x - 1.0, 0.0, p) * p)(2.0)) == 1.0
        assert float(jvp(lambda p: root(lambda x, p: x - 1.0, 0.0, p) * p, (2.0,), (1.0,))[1]) == 1.0

    def test_root_start_has_zero_derivative(self) -> None:
        assert float(grad(lambda x0: root(lambda x: x * x - 2.0, x0) * x0)(1.0)) == pytest.approx(np.sqrt(2))

    def test_solvers_failures_raise(self) -> None:
        w = cg.variable(2.0, "w")
        with pytest.raises(RuntimeError, match=r"(?s)root: no solution was found: .*residual"):
            root(lambda x, p: x * x + p, 1.0, 2.0)
        with pytest.raises(RuntimeError, match="fixed_point: the iteration has not converged after 50 steps"):
            fixed_point(lambda x, p: p * x + 1, 1.0, -1.0, maxiter=50)
        with np.errstate(over="ignore", invalid="ignore"):
            assert not minimize(lambda x, p: p * x, 1.0, 2.0).success
        with pytest.raises(RuntimeError, match="minimize"):
            grad(lambda p: minimize(lambda x, p: (x - p) ** 4 + x**2, 5.0, p, options={"maxiter": 1}).x)(2.0)
        with pytest.raises(ValueError, match="fixed_point: the function returned shape"):
            fixed_point(lambda x: np.ones(2), 1.0)
        with pytest.raises(TypeError, match="root: complex numbers are not supported"):
            root(lambda x: x * x + 1, 1j)
        for solve in (lambda f: root(lambda x: f(x) - x, 1.0), lambda f: fixed_point(f, 1.0)):
            with pytest.raises(TypeError, match=r"captures the variable 'w' .*\. Pass it among the parameters"):
                solve(lambda x: x - 0.5 * (x - w))
        with pytest.raises(TypeError, match="captures the value with a tangent"):
            jvp(lambda v: root(lambda x: x - v, 1.0), (1.0,), (1.0,))
        with pytest.raises(np.linalg.LinAlgError, match="root: the Jacobian is singular at the solution"):
            grad(lambda p: root(lambda x, p: p * x**3, 0.0, p))(1.0)


T = np.array([0.0, 0.5, 1.2])


class TestOde:
    def test_odeint_lotka_volterra_derivatives(self) -> None:
        def f(y: Any, t: Any, p: Any) -> Any:
            return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], -y[1] + p[2] * y[0] * y[1] * np.cos(t)])

        check_grads(lambda y0, t, p: odeint(f, y0, t, p), [np.array([1.0, 0.7]), T, np.array([1.1, 0.5, 0.9])], order=1)

    def test_odeint_second_derivatives(self) -> None:
        check_grads(lambda y0, p: odeint(lambda y, t, p: -p * y * t, y0, T, p)[1:], [1.3, 0.7], order=2)

    def test_odeint_matches_closed_form(self) -> None:
        def end(y0: Any, t: Any, k: Any) -> Any:
            return odeint(lambda y, t, k: -k * y, y0, t, k)[-1]

        t = np.array([0.2, 2.0])
        value = 3 * np.exp(-0.5 * 1.8)
        gy, gt, gk = grad(end, argnums=(0, 1, 2))(3.0, t, 0.5)
        assert float(end(3.0, t, 0.5)) == pytest.approx(value, rel=1e-8)
        assert [float(gy), float(gk)] == pytest.approx([value / 3, -1.8 * value], rel=1e-8)
        assert gt == pytest.approx([0.5 * value, -0.5 * value], rel=1e-8)
        assert float(grad(grad(lambda k: end(3.0, t, k)))(0.5)) == pytest.approx(1.8**2 * value, rel=1e-6)

    def test_odeint_of_matrices_and_reversed_time(self) -> None:
        y0 = np.array([[1.0, 2.0], [0.5, -1.0]])
        check_grads(lambda y0, m: odeint(lambda y, t, m: m @ y * 0.3, y0, T[::-1].copy(), m), [y0, y0.T.copy()], order=1)

    def test_odeint_connects_nodes(self) -> None:
        k = cg.variable(0.5, "k")
        y = odeint(lambda y, t, k: -k * y, 1.0, [0.0, 1.0, 2.0], k)
        assert y.opname == "odeint"
        assert float(gradient(y[-1])["k"]) == pytest.approx(-2 * np.exp(-1), rel=1e-8)

    def test_odeint_nested_states(self) -> None:
        def f(y: Any, t: Any, p: Any) -> Any:
            return {"x": y["v"], "v": -p["k"] * y["x"] + p["f"][0] * np.cos(t)}

        def end(y0: Any, p: Any) -> Any:
            states = odeint(f, y0, T, args=(p,))
            assert np.shape(states["x"]) == (3, 2)
            return states["x"][-1] * states["v"][1]

        check_grads(end, [{"x": np.array([1.0, 0.5]), "v": np.array([0.0, 0.2])}, {"k": 1.3, "f": [0.4]}], order=1)

    def test_odeint_of_rates_depending_on_time_alone(self) -> None:
        check_grads(lambda y0, t, p: odeint(lambda y, t, p: np.cos(t), y0, t, p), [0.3, T, 2.0], order=1)
        check_grads(lambda k: odeint(lambda y, t, k: k * t, 0.0, T, k), [2.0], order=2)

    def test_odeint_honors_tolerances(self) -> None:
        def error(**options: Any) -> float:
            return abs(float(odeint(lambda y, t: -y, 1.0, [0.0, 3.0], **options)[-1]) - np.exp(-3))

        assert error(rtol=1e-3, atol=1e-3) > 1e-8 > error()
        assert error(method="RK45", rtol=1e-4) > error(method="LSODA", rtol=1e-10)

    def test_odeint_failures_raise(self) -> None:
        w = cg.variable(2.0, "w")
        with pytest.raises(RuntimeError, match="odeint: the solver failed: Required step size"), np.errstate(all="ignore"):
            odeint(lambda y, t: y * y, 1.0, [0.0, 2.0])
        for t in ([0.0], [0.0, 1.0, 0.5], 1.0, [[0.0, 1.0]]):
            with pytest.raises(ValueError, match="times must be a vector of two or more, increasing or decreasing"):
                odeint(lambda y, t: y, 1.0, t)
        with pytest.raises(ValueError, match=r"returned a rate of shape \(2,\) for a state of shape \(\)"):
            odeint(lambda y, t: np.ones(2), 1.0, [0.0, 1.0])
        with pytest.raises(TypeError, match="captures the variable 'w'"):
            odeint(lambda y, t: w * y, 1.0, [0.0, 1.0])
        with pytest.raises(TypeError, match="complex numbers are not supported"):
            odeint(lambda y, t: y, 1j, [0.0, 1.0])
