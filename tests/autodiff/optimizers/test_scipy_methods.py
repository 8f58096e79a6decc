"""SciPy's minimizers with exact derivatives."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import autodiff as ad
import compgraph as cg
from autodiff.arguments import flatten
from autodiff.optimizers import METHODS, minimize
from autodiff.optimizers.scipy_methods import Constraint, Problem, VectorLayout
from tests.support.for_each import for_each, sampled

GRADIENT = [name for name, kind in METHODS.items() if kind.gradient]
BOUNDED = [name for name, kind in METHODS.items() if kind.bounds]
CONSTRAINED = [name for name, kind in METHODS.items() if kind.constraints]
EFFORT: dict[str, dict[str, Any]] = {"nelder-mead": {"maxiter": 4000, "xatol": 1e-7, "fatol": 1e-12}, "cobyla": {"maxiter": 5000},
    "trust-constr": {"maxiter": 2000, "gtol": 1e-10, "xtol": 1e-12}, "powell": {"ftol": 1e-12, "xtol": 1e-9}}  # fmt: skip


@dataclass
class Point:
    a: Any
    b: Any


def tree(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return {"p": Point(float(rng.normal()), rng.normal(size=(2, 2))), "c": [cg.variable(rng.normal(), "c"), None]}


def numbers(x: Any) -> Any:
    return np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in flatten(x)[0]])


def bowl(x: Any, scale: float = 1.0) -> Any:
    """Least, zero, where all numbers are one, and of a Hessian that couples them."""
    p, (c, _) = x["p"], x["c"]
    return scale * ((p.a - c) ** 2 + np.sum((p.b - 1) ** 4 + (p.b - p.a) ** 2) + np.exp(c - 1) - c)


def plain_minimize(f: Any, x0: Any) -> Any:
    layout = VectorLayout(x0)
    return lambda v: float(f(layout.to_tree(np.array(v, float))))


def differences(f: Any, x: Any, step: float = 1e-6) -> Any:
    """Central differences of a function of a vector."""
    return np.stack([(f(x + e) - f(x - e)) / (2 * step) for e in step * np.eye(len(x))], axis=-1)


@pytest.mark.parametrize("method", [None, *METHODS, "BFGS", "Newton-CG"])
def test_minimize_every_method_finds_minimum(method: str | None) -> None:
    x0 = tree()
    solution = minimize(bowl, x0, 2.0, method=method, tol=1e-9, options=EFFORT.get(method or ""))
    loose = method in ("cobyla", "cobyqa", "nelder-mead")
    np.testing.assert_allclose(numbers(solution.x), np.ones(6), atol=1e-2 if loose else 3e-3)
    assert isinstance(solution, optimize.OptimizeResult)
    assert isinstance(solution.x["p"], Point)
    assert solution.x["p"].b.shape == (2, 2)
    assert isinstance(solution.x["p"].a, float)
    assert type(solution.x["c"][0]) is np.ndarray
    assert solution.x["c"][1] is None
    assert solution.fun == pytest.approx(float(bowl(solution.x, 2.0)), abs=1e-12)
    slope = solution.get("grad" if method == "trust-constr" else "jac")
    if method is None or METHODS[method.lower()].gradient:
        assert np.max(np.abs(numbers(slope))) < 1e-3
        assert isinstance(slope["p"], Point)


@for_each("method", METHODS)
def test_minimize_passes_derivatives_that_method_uses(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly what its method uses, and derivatives that agree with central differences."""
    options: dict[str, Any] = {}

    def spy(fun: Any, x0: Any, **settings: Any) -> Any:
        options.update(settings, fun=fun)
        return optimize.OptimizeResult(x=x0)

    monkeypatch.setattr(optimize, "minimize", spy)
    minimize(bowl, tree(), method=method)
    kind, f = METHODS[method], plain_minimize(bowl, tree())
    x, v = np.linspace(-1, 1, 6), np.arange(6.0)
    assert options["jac"] is (True if kind.gradient else None)
    assert (options["hess"] is not None) == (kind.hessian == "matrix")
    assert (options["hessp"] is not None) == (kind.hessian == "products")
    if not kind.gradient:
        assert options["fun"](x) == f(x)
        return
    value, slope = options["fun"](x)
    assert (type(value), value) == (float, f(x))
    np.testing.assert_allclose(slope, differences(f, x), rtol=1e-6, atol=1e-6)
    hessian = differences(lambda z: options["fun"](z)[1], x)
    if kind.hessian == "matrix":
        np.testing.assert_allclose(options["hess"](x), hessian, rtol=1e-6, atol=1e-6)
    if kind.hessian == "products":
        np.testing.assert_allclose(options["hessp"](x, v), hessian @ v, rtol=1e-6, atol=1e-6)
        y = x + 1  # another point, then the first again
        np.testing.assert_allclose(
            options["hessp"](y, v), differences(lambda z: options["fun"](z)[1], y) @ v, rtol=1e-6, atol=1e-5
        )
        np.testing.assert_allclose(options["hessp"](x, v), hessian @ v, rtol=1e-6, atol=1e-6)


def test_minimize_table_has_methods_of_scipy() -> None:
    """A method that SciPy has gained is missing here."""
    theirs = inspect.getsource(optimize.minimize)
    for name in METHODS:
        assert f"'{name}'" in theirs
    assert {m.lower() for m in optimize._minimize.MINIMIZE_METHODS} == set(METHODS)
    documented = inspect.getdoc(minimize) or ""
    for name in METHODS:
        assert f"``{name}``" in documented


def test_minimize_records_once_per_point() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return np.sum(x**4)

    problem = Problem(f, VectorLayout(np.ones(3)))
    for v in np.eye(3):
        np.testing.assert_allclose(problem.hessian_product(np.arange(3.0), v), 12 * np.arange(3.0) ** 2 * v)
    assert len(calls) == 1


def test_minimize_rosenbrock_by_second_order() -> None:
    counts = {}
    for method in ("bfgs", "newton-cg", "trust-ncg", "trust-exact"):
        solution = minimize(
            lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), np.zeros(8), method=method, tol=1e-8
        )
        np.testing.assert_allclose(solution.x, np.ones(8), atol=1e-5)
        counts[method] = solution.nit
    assert counts["trust-exact"] < counts["bfgs"]


# ----------------------------------------------------------------------------------- bounds and constraints


@for_each("method", [None, *BOUNDED])
def test_minimize_bounds(method: str | None) -> None:
    x0 = {"a": np.zeros(2), "b": 0.0}

    def f(x: Any) -> Any:
        return np.sum((x["a"] - 3) ** 2) + (x["b"] + 3) ** 2

    low = {"a": (None, np.array([1.0, 5.0])), "b": (-1, None)}
    solution = minimize(f, x0, method=method, bounds=low, options=EFFORT.get(method or ""))
    np.testing.assert_allclose(numbers(solution.x), [1, 3, -1], atol=2e-3)
    for bounds in ([(None, 1), (None, 5), (-1, None)], optimize.Bounds([-9, -9, -1], [1, 5, 9])):
        if isinstance(bounds, list):
            solution = minimize(lambda x: f({"a": x[:2], "b": x[2]}), np.zeros(3), method=method, bounds=bounds)
        else:
            solution = minimize(f, x0, method=method, bounds=bounds)
        np.testing.assert_allclose(numbers(solution.x), [1, 3, -1], atol=2e-2)


def constraint_cases() -> list[Any]:
    def ring(x: Any) -> Any:
        return x["a"] ** 2 + np.sum(x["b"] ** 2)

    return [
        {"type": "ineq", "fun": lambda x: 2 - ring(x)},
        [{"type": "ineq", "fun": lambda x, r: r - ring(x), "args": (2.0,)}],
        {"type": "ineq", "fun": lambda x: 2 - ring(x), "jac": lambda x: np.r_[-2 * x["a"], -2 * x["b"]]},
        optimize.NonlinearConstraint(ring, -np.inf, 2.0),
        (optimize.NonlinearConstraint(ring, -np.inf, 2.0, jac=lambda x: np.r_[2 * x["a"], 2 * x["b"]]),),
    ]


@sampled
@for_each("method", [None, *CONSTRAINED])
@for_each("case", range(5))
def test_minimize_constraints(method: str | None, case: int) -> None:
    """The point of a disk that is farthest along the diagonal."""
    constraint = constraint_cases()[case]
    solution = minimize(
        lambda x: -x["a"] - np.sum(x["b"]), {"a": 0.1, "b": np.array([0.2])}, method=method, constraints=constraint,
        options={"maxiter": 2000},
    )  # fmt: skip
    np.testing.assert_allclose(numbers(solution.x), [1, 1], atol=2e-3)


def test_minimize_constraint_with_own_derivatives() -> None:
    points = []
    ring = optimize.NonlinearConstraint(
        lambda x: float(np.hypot(x["a"], x["b"])) ** 2,  # of no node, so that no derivative could be found
        -np.inf,
        2.0,
        jac=lambda x: [[2 * x["a"], 2 * x["b"]]],
        hess=lambda x, v: points.append(x) or 2 * v[0] * np.eye(2),  # type: ignore[func-returns-value]
    )
    solution = minimize(lambda x: -x["a"] - x["b"], {"a": 0.1, "b": 0.2}, method="trust-constr", constraints=ring)
    np.testing.assert_allclose(numbers(solution.x), [1, 1], atol=2e-3)
    assert set(points[0]) == {"a", "b"}


@for_each("method", CONSTRAINED)
def test_minimize_linear_constraints(method: str) -> None:
    solution = minimize(
        lambda x: np.sum(x["a"] ** 2) + x["b"] ** 2,
        {"a": np.ones(2), "b": 0.0},
        method=method,
        constraints=optimize.LinearConstraint([[1, 1, 1]], 3, 3),
    )
    np.testing.assert_allclose(numbers(solution.x), [1, 1, 1], atol=2e-3)


def test_constraint_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.stack([np.sum(np.sin(x["a"])) * x["b"], np.prod(x["a"]) - x["b"] ** 3])

    parts = Constraint(f, VectorLayout({"a": np.zeros(3), "b": 0.0}))
    x, weights = np.array([0.3, -0.7, 1.1, 0.5]), np.array([2.0, -3.0])
    np.testing.assert_allclose(parts.jacobian(x), differences(parts.value, x), rtol=1e-6, atol=1e-6)
    hessian = differences(lambda z: weights @ parts.jacobian(z), x)
    np.testing.assert_allclose(parts.hessian(x, weights), hessian, rtol=1e-6, atol=1e-6)
    one = Constraint(lambda x: x["b"] ** 2, VectorLayout({"a": np.zeros(3), "b": 0.0}))
    np.testing.assert_allclose(one.jacobian(x), [[0, 0, 0, 1.0]])


# --------------------------------------------------------------------------------- dtypes, callbacks, errors


def test_minimize_keeps_dtypes() -> None:
    dtypes = set()

    def f(x: Any) -> Any:
        dtypes.add((x["a"].dtype.name, x["b"].dtype.name))
        return np.sum((x["a"] - 1) ** 2) + (x["b"] - 2) ** 2

    x0 = {"a": np.zeros(2, np.float32), "b": 0}
    for method in ("bfgs", "newton-cg", "nelder-mead"):
        solution = minimize(f, x0, method=method, tol=1e-4)
        assert solution.x["a"].dtype == np.float32
        assert solution.x["b"].dtype == np.float64
        np.testing.assert_allclose(numbers(solution.x), [1, 1, 2], atol=1e-3)
    assert dtypes == {("float32", "float64")}
    assert np.array_equal(x0["a"], [0, 0])


def test_minimize_scalar_and_zero_dimensional_start() -> None:
    for x0, kind in ((0.0, float), (np.array(0.0), np.ndarray), (cg.variable(0.0), np.ndarray), (np.zeros((1, 1)), np.ndarray)):
        for method in ("bfgs", "trust-exact", "trust-ncg", "powell"):
            solution = minimize(lambda x: np.sum((x - 2) ** 2) + np.sum(x**4), x0, method=method)
            assert isinstance(solution.x, kind), method
            assert np.shape(solution.x) == np.shape(x0)
            np.testing.assert_allclose(solution.x, 0.8351223, atol=1e-4)


def test_minimize_of_variables_returns_node() -> None:
    target = cg.variable([1.0, 2.0], "target")
    for method in ("bfgs", "trust-ncg", "trust-exact", "nelder-mead"):
        solution = minimize(lambda x: np.sum((x["a"] - target) ** 2) + 1, {"a": np.zeros(2)}, method=method, tol=1e-10)
        np.testing.assert_allclose(solution.x["a"].value, [1, 2], atol=1e-4)
        np.testing.assert_allclose(ad.gradient(solution.x["a"] * [3, 4])["target"], [3, 4], rtol=1e-6)
        np.testing.assert_allclose(ad.gradient(solution.fun + target[0] * 0)["target"], [0, 0], atol=1e-3)
        if method in ("bfgs", "nelder-mead"):
            with pytest.raises(TypeError, match="has no derivative"):
                solution["hess_inv" if method == "bfgs" else "final_simplex"]
    with cg.no_graph():
        assert type(minimize(lambda x: np.sum((x - target) ** 2), np.zeros(2)).x) is np.ndarray
    assert type(minimize(lambda x: np.sum((x - 2.0) ** 2), target).x) is np.ndarray, "where it starts does not matter"


@sampled
@for_each("method", ["bfgs", "nelder-mead", "trust-ncg", "l-bfgs-b"])
@for_each("how", ["closed", "given", "args", "nested"])
def test_minimize_within_derivative(method: str, how: str) -> None:
    def f(t: Any) -> Any:
        if how == "closed":
            minimum = minimize(lambda x: (x - t) ** 2 + x**4, 0.0, method=method, tol=1e-10).x
        elif how == "nested":
            minimum = minimize(lambda x, p: (x[0] - p["t"]) ** 2 + x[0] ** 4, [0.0], {"t": t}, method=method, tol=1e-10).x[0]
        else:
            keywords = {"args": (t,)} if how == "args" else {}
            params = (t,) if how == "given" else ()
            minimum = minimize(lambda x, s: (x - s) ** 2 + x**4, 0.0, *params, method=method, tol=1e-10, **keywords).x
        return t * minimum

    def exact(t: float) -> float:
        return t * np.real(next(r for r in np.roots([4, 0, 2, -2 * t]) if abs(r.imag) < 1e-9))

    slope = (exact(2.0001) - exact(1.9999)) / 0.0002
    assert float(ad.grad(f)(2.0)) == pytest.approx(slope, rel=1e-5)
    assert float(ad.jvp(f, (2.0,), (1.0,))[1]) == pytest.approx(slope, rel=1e-5)
    assert float(f(2.0)) == pytest.approx(exact(2.0), rel=1e-4)
    if how != "closed":
        several = ad.vmap(f)(np.array([1.0, 2.0]))
        np.testing.assert_allclose(several, [exact(1.0), exact(2.0)], rtol=1e-4)


def test_minimize_bounds_and_constraints_are_differentiated() -> None:
    def low(t: Any) -> Any:
        return minimize(
            lambda x: x["a"] ** 2 + (x["b"] - t) ** 2, {"a": 3.0, "b": 0.0}, bounds={"a": (t, None), "b": (None, 9)}
        ).x["a"]

    assert float(ad.grad(low)(1.5)) == pytest.approx(1.0)
    half = ad.grad(
        lambda t: minimize(lambda x: np.sum(x**2), np.ones(2), constraints={"type": "eq", "fun": lambda x: np.sum(x) - t}).x[0]
    )
    assert float(half(3.0)) == pytest.approx(0.5)


def test_minimize_parameters_given_twice_raise() -> None:
    with pytest.raises(TypeError, match="passed by position and by args="):
        minimize(bowl, tree(), 2.0, args=(2.0,))
    assert ad.minimize is minimize


def test_minimize_function_with_writes() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = x[0] - 1
        y[1:] = x[1:] - x[:-1]
        y *= y
        return y.sum()

    for method in ("bfgs", "newton-cg", "trust-exact", "trust-krylov"):
        np.testing.assert_allclose(minimize(f, np.zeros(3), method=method).x, np.ones(3), atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_minimize_callback_receives_pytree(method: str) -> None:
    iterates: list[Any] = []
    minimize(bowl, tree(), method=method, callback=iterates.append)
    assert iterates
    assert isinstance(iterates[0]["p"], Point)
    assert iterates[0]["p"].b.shape == (2, 2)


@for_each("method", [name for name in METHODS if name != "tnc"])
def test_minimize_callback_stops_search(method: str) -> None:
    iterates: list[Any] = []

    def stop(x: Any) -> None:
        iterates.append(x)
        if len(iterates) == 2:
            raise StopIteration

    solution = minimize(bowl, tree(), method=method, callback=stop)
    assert len(iterates) == 2
    assert isinstance(solution.x["p"], Point)


def test_minimize_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    solution = minimize(bowl, tree(), progress=True)
    shown = capsys.readouterr().err
    assert f"bfgs: {solution.nit} iterations" in shown
    assert "value=" in shown


@for_each("method", [name for name in METHODS if name not in BOUNDED])
def test_minimize_unsupported_bounds_or_constraints_raise(method: str) -> None:
    with pytest.raises(ValueError, match="takes no bounds; these do: nelder-mead"):
        minimize(bowl, tree(), method=method, bounds=[(0, 1)] * 6)
    with pytest.raises(ValueError, match="takes no constraints; these do: cobyla"):
        minimize(bowl, tree(), method=method, constraints={"type": "eq", "fun": bowl})


def test_minimize_of_a_constant_returns_its_start() -> None:
    solution = minimize(lambda x: 3.0, np.full(2, 1.5))
    assert solution.fun == 3.0
    assert np.array_equal(solution.x, np.full(2, 1.5))


def test_minimize_bad_calls_raise() -> None:
    with pytest.raises(ValueError, match="no method 'newton'; use one of nelder-mead"):
        minimize(bowl, tree(), method="newton")
    for x0, message in (([1j], "complex128"), (np.ones(2, np.longdouble), "float64"), ([], "no numbers"), (["a"], "<U1")):
        with pytest.raises(TypeError, match=message):
            minimize(lambda x: 0.0, x0)
    for method in ("bfgs", "powell"):
        with pytest.raises(ValueError, match="not a scalar"):
            minimize(lambda x: x * 2, np.ones(2), method=method)
    for bounds in ({"a": (0, 1)}, {"a": (0, 1), "b": 3}, {"a": (0, 1), "b": (np.zeros(3), None)}):
        with pytest.raises(ValueError, match="the bounds do not fit x0"):
            minimize(lambda x: x["a"] ** 2 + x["b"] ** 2, {"a": 1.0, "b": 1.0}, bounds=bounds)
    with pytest.raises(TypeError, match="a constraint is"):
        minimize(bowl, tree(), constraints=[lambda x: 0])
    for settings in (
        {"hess": lambda x, v: np.eye(6)},
        {"hess": optimize.SR1()},
        {"jac": "3-point"},
        {"finite_diff_rel_step": 1e-3},
    ):
        with pytest.raises(ValueError, match=r"omit finite_diff|leave out"):
            minimize(bowl, tree(), constraints=optimize.NonlinearConstraint(bowl, 0, 1, **settings))
    with pytest.raises(ValueError, match=r"omit finite_diff|leave out"):
        minimize(bowl, tree(), constraints={"type": "eq", "fun": bowl, "jac": "3-point"})

    def stop(x: Any) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="cannot be ended by a callback"):
        minimize(bowl, tree(), method="tnc", callback=stop)
