"""Derivatives of ``scipy.optimize``: solutions of equations, minimizers, fits and linear programs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

P = np.array([1.1, 0.7])
A = np.array([[3.0, 1.0], [1.0, 2.0]])
T = np.linspace(0, 2, 9)
NOISE = np.array([0.02, -0.03, 0.05, 0.01, -0.04, 0.03, 0.02, -0.05, 0.01])


def equations(x: Any, p: Any) -> Any:
    return A @ x + x**3 * p[1] - p


def cubic(x: Any, a: Any, b: Any) -> Any:
    return a * x**3 + x - b


def valley(x: Any, p: Any) -> Any:
    return (x[0] - p[0]) ** 2 + p[1] * x[1] ** 2 + x[0] * x[1] + 0.1 * x[0] ** 4


def solve_root(name: str, *more: Any, **options: Any) -> Callable[[Any], Any]:
    """A function of parameters that solves by a name, which the equations use from outside."""
    return lambda p: getattr(so, name)(lambda x: equations(x, p), np.full(2, 0.3), *more, **options)


def solve_in_bracket(name: str) -> Callable[..., Any]:
    return lambda a, b: getattr(so, name)(cubic, 0.0, 3.0, args=(a, b), xtol=1e-14)


ROOTS: dict[str, list[tuple[Any, ...]]] = {
    "root": [
        *[(m, lambda p, m=m: so.root(lambda x: equations(x, p), np.ones(2), method=m, tol=1e-13).x, P) for m in ("hybr", "lm")],
        ("args", lambda p: so.root(equations, np.ones(2), args=(p,), tol=1e-13).x, P),
        ("jac", lambda p: so.root(equations, np.ones(2), (p,), jac=lambda x, p: A + np.diag(3 * x**2 * p[1]), tol=1e-13).x, P),
        ("args and closure", lambda p: so.root(lambda x, q: equations(x, p) + 0.1 * q * x, np.ones(2), args=p, tol=1e-13).x, P),
        ("fun", lambda p: so.root(equations, np.ones(2), args=(p,), tol=1e-13).fun, P),
        ("krylov", lambda p: so.root(equations, np.ones(2), args=(p,), method="krylov", options={"fatol": 1e-12}).x, P),
        ("df-sane", lambda p: so.root(equations, np.ones(2), args=(p,), method="df-sane", options={"fatol": 1e-13}).x, P),
        ("a matrix", lambda p: so.root(lambda x: x**3 + x - p.ravel(), np.ones((2, 2)), tol=1e-13).x, A),
    ],
    "fsolve": [
        ("lists", lambda p: so.fsolve(lambda x: [x[0] * p[0] - x[1], x[1] ** 2 + x[0] - p[1]], [1.0, 1.0], xtol=1e-13), P),
        ("full_output", lambda p: so.fsolve(equations, [1.0, 1.0], args=(p,), full_output=True, xtol=1e-13)[0], P),
        ("a number", lambda a, b: so.fsolve(cubic, 1.0, args=(a, b), xtol=1e-13), 1.1, 2.0),
    ],
    **{name: [("args", solve_in_bracket(name), 1.1, 2.0)] for name in ("brentq", "brenth", "ridder", "bisect", "toms748")},
    "newton": [
        ("secant", lambda a, b: so.newton(cubic, 1.0, args=(a, b), tol=1e-13), 1.1, 2.0),
        ("fprime", lambda a, b: so.newton(cubic, 1.0, fprime=lambda x, a, b: 3 * a * x**2 + 1, args=(a, b), tol=1e-13), 1.1, 2.0),
        ("arrays", lambda a, b: so.newton(cubic, np.ones(2), args=(a, b), tol=1e-13), P, np.array([2.0, 0.5])),
    ],
    "root_scalar": [
        ("bracket", lambda a, b: so.root_scalar(cubic, args=(a, b), bracket=(0, 3), xtol=1e-14).root, 1.1, 2.0),
        ("newton", lambda a, b: so.root_scalar(lambda x: (cubic(x, a, b), 3 * a * x**2 + 1), fprime=True, x0=1.0).root, 1.1, 2.0),
        ("secant", lambda a, b: so.root_scalar(lambda x: cubic(x, a, b), x0=1.0, x1=0.9, xtol=1e-13).root, 1.1, 2.0),
    ],
    "fixed_point": [
        ("args", lambda p: so.fixed_point(lambda x, p: np.cos(p * x), np.array([0.5, 0.5]), args=(p,), xtol=1e-13), P),
        ("iteration", lambda p: so.fixed_point(lambda x: np.cos(p * x), 0.5, xtol=1e-13, method="iteration"), 0.8),
    ],
    **{name: [("closure", solve_root(name, f_tol=1e-13), P)] for name in ("broyden1", "broyden2", "newton_krylov")},
    "excitingmixing": [("closure", lambda p: so.excitingmixing(lambda x: p - x - 0.1 * x**3, np.ones(2), f_tol=1e-13), P)],
    "diagbroyden": [("closure", lambda p: so.diagbroyden(lambda x: p - x - 0.1 * x**3, np.ones(2), f_tol=1e-13), P)],
    "linearmixing": [("alpha", lambda p: so.linearmixing(lambda x: p - x, np.ones(2), alpha=0.7, f_tol=1e-13), P)],
}


@pytest.mark.parametrize("rows", functions(ROOTS))
def test_root_finders_derivatives(rows: Rows) -> None:
    rows.check()


BOTH, SLOPE = ad.value_and_grad(valley), ad.grad(valley)


def least(f: Any, **options: Any) -> Callable[[Any], Any]:
    def at(p: Any) -> Any:
        slope = ad.grad(f)
        solution = so.minimize(f, np.ones(2), args=(p,), jac=lambda x, p: slope(x, p), tol=1e-13, **options)
        return solution.x, np.reshape(solution.fun, 1)

    return at


def ring(p: Any) -> Any:
    return so.NonlinearConstraint(lambda x: x[0] ** 2 + p[0] * x[1] ** 2, 0.5, 0.5)


MINIMA: dict[str, list[tuple[Any, ...]]] = {
    "minimize": [
        *[(m, least(valley, method=m), P) for m in ("BFGS", "CG", "L-BFGS-B", "SLSQP")],
        ("Newton-CG", least(valley, method="Newton-CG", options={"xtol": 1e-14}), P),
        ("trust-exact", least(valley, method="trust-exact", hess=ad.hessian(valley)), P),
        ("closure", lambda p: so.minimize(lambda x: valley(x, p), [1, 1], jac=lambda x: SLOPE(x, p), tol=1e-12).x, P),
        ("jac=True", lambda p: so.minimize(BOTH, np.ones(2), args=(p,), jac=True, tol=1e-13).x, P),
        ("jac", lambda p: so.minimize(BOTH, np.ones(2), args=(p,), jac=True, tol=1e-13).jac + p, P),
        ("bounds", least(valley, method="L-BFGS-B", bounds=[(None, 0.4), (0.1, None)]), P),
        ("bounds that do not hold", least(valley, method="L-BFGS-B", bounds=so.Bounds([-9, -9], [9, 9])), P),
        ("an end", lambda p: so.minimize(BOTH, [2, 2], (p,), jac=True, bounds=[(p[0], 3), (None, None)]).x, P),
        ("an end alone", lambda p: so.minimize(lambda x: (x[0] + 1) ** 2, [3.0], bounds=[(p, None)]).x, 1.3),
        ("dict", least(valley, constraints={"type": "ineq", "fun": lambda x: x[0] + 2 * x[1] - 2}), P),
        ("dict eq", lambda p: least(valley, constraints=[{"type": "eq", "fun": lambda x, q: x @ x - q, "args": (p[1],)}])(p), P),
        ("an element that is fixed", lambda p: least(valley, method="L-BFGS-B", bounds=[(p[0], p[0]), (None, None)])(p), P),
        ("linear", least(valley, method="SLSQP", constraints=so.LinearConstraint([[1.0, 2.0], [1, 0]], [2, -9], [9, 9])), P),
        ("nonlinear", lambda p: least(valley, method="SLSQP", constraints=ring(p))(p), P),
    ],
    "minimize_scalar": [
        ("brent", lambda p: so.minimize_scalar(lambda x: np.cosh(x - p[0]) + p[1] * x**2, tol=1e-12).x, P),
        ("fun", lambda p: so.minimize_scalar(lambda x: np.cosh(x - p[0]) + p[1] * x**2, tol=1e-12).fun, P),
    ],
    "fmin_bfgs": [("args", lambda p: so.fmin_bfgs(valley, [1, 1], SLOPE, args=(p,), gtol=1e-12, disp=0), P)],
    "fmin_cg": [("args", lambda p: so.fmin_cg(valley, [1, 1], SLOPE, args=(p,), gtol=1e-12, disp=0), P)],
    "fmin_ncg": [("args", lambda p: so.fmin_ncg(valley, [1.0, 1.0], SLOPE, args=(p,), avextol=1e-14, disp=0), P)],
    "fmin_l_bfgs_b": [
        ("both", lambda p: so.fmin_l_bfgs_b(BOTH, [1, 1], args=(p,), pgtol=1e-12, factr=1.0)[:2], P),
        ("bounds", lambda p: so.fmin_l_bfgs_b(valley, [1, 1], SLOPE, (p,), bounds=[(1.05, 3), (-2, 2)], factr=1.0)[0], P),
    ],
    "fmin_tnc": [("both", lambda p: so.fmin_tnc(BOTH, [1, 1], args=(p,), disp=0, ftol=0, pgtol=1e-14)[0], P)],
    "fmin_slsqp": [
        ("f_eqcons", lambda p: so.fmin_slsqp(valley, [1, 1], f_eqcons=lambda x, p: x[0] - p[1] * x[1], fprime=SLOPE,
                                             args=(p,), acc=1e-15, iprint=0), P),
        ("ieqcons", lambda p: so.fmin_slsqp(valley, [1, 1], ieqcons=[lambda x, p: x[0] - p[1] - 1], fprime=SLOPE,
                                            args=(p,), acc=1e-15, iprint=0), P),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(MINIMA))
@pytest.mark.filterwarnings("ignore:Desired error")
def test_minimizers_derivatives(rows: Rows) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", so.OptimizeWarning)
        rows.check(tolerance=2e-5)


def model(x: Any, a: Any, b: Any) -> Any:
    return a * np.exp(-b * x)


def misfit(x: Any, p: Any) -> Any:
    return model(T, x[0], x[1]) - p[0] * np.cos(p[1] * T)


TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def fit_parameters(loss: str = "linear", **options: Any) -> Callable[[Any], Any]:
    def at(p: Any) -> Any:
        rows = ad.jacobian(misfit)
        return so.least_squares(misfit, [1.0, 1.0], jac=lambda x, p: rows(x, p), args=(p,), loss=loss, **TIGHT, **options).x

    return at


def both(solution: Any) -> Any:
    return solution.fun, np.reshape(solution.cost, 1)


def curve(**options: Any) -> Callable[..., Any]:
    def at(x: Any, y: Any) -> Any:
        jac = lambda x, a, b: np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)], axis=1)  # noqa: E731
        popt, pcov = so.curve_fit(model, x, y, p0=[1.0, 1.0], jac=jac, **TIGHT, **options)
        return popt, 10 * pcov

    return at


Y = model(T, 2.0, 0.7) + NOISE
B = np.array([[0.6, 0.3, 0.9], [0.1, 0.8, 0.2], [0.5, 0.5, 0.7], [0.9, 0.1, 0.4], [0.3, 0.6, 0.8]])
RIGHT_SIDE = np.array([1.0, 2.0, 0.5, -1.0, 0.3])

FITS: dict[str, list[tuple[Any, ...]]] = {
    "least_squares": [
        ("linear", fit_parameters(), P),
        *[(loss, fit_parameters(loss, f_scale=0.3), P) for loss in ("soft_l1", "cauchy", "arctan")],
        ("huber", fit_parameters("huber", f_scale=0.25), P),
        ("lm", fit_parameters(method="lm"), P),
        ("bounds", fit_parameters(bounds=([0.0, 0.0], [1.0, 5.0])), P),
        ("fun and cost", lambda p: both(so.least_squares(misfit, [1, 1], args=(p,), **TIGHT)), P),
        ("kwargs", lambda p: so.least_squares(misfit, [1.0, 1.0], ad.jacobian(misfit), kwargs={"p": p}, **TIGHT).x, P),
    ],
    "leastsq": [
        ("args", lambda p: so.leastsq(misfit, [1.0, 1.0], (p,), ad.jacobian(misfit), xtol=1e-15, ftol=1e-15)[0], P),
        ("cov_x", lambda p: so.leastsq(misfit, [1.0, 1.0], (p,), ad.jacobian(misfit), True, xtol=1e-15, ftol=1e-15)[:2], P),
    ],
    "curve_fit": [
        ("popt and pcov", curve(), T, Y),
        ("bounds", curve(bounds=(0, [1.8, 3.0])), T, Y),
        ("absolute sigma", curve(sigma=1 + T, absolute_sigma=True), T, Y),
        ("sigma", curve(sigma=1 + T), T, Y),
        ("a matrix", curve(sigma=np.eye(9) + 0.1), T, Y),
        ("sigma is a node", lambda s: so.curve_fit(model, T, Y, p0=[1.0, 1.0], sigma=s, **TIGHT)[0], 1 + T),
    ],
    "nnls": [
        ("a bound", so.nnls, B, RIGHT_SIDE),
        ("no bound", lambda a: so.nnls(a, a @ np.array([1.0, 2.0, 0.5]) + NOISE[:5])[0], B),
    ],
    "lsq_linear": [
        ("free", lambda a, b: so.lsq_linear(a, b).x, B, RIGHT_SIDE),
        ("bounds", lambda a, b: so.lsq_linear(a, b, bounds=(-1.0, 0.8), tol=1e-14).x, B, np.arange(5) / 3),
        ("ends", lambda a, s: so.lsq_linear(a, np.arange(5) / 3, bounds=(-s, s), tol=1e-14).x, B, 0.8),
        ("cost", lambda a, b: so.lsq_linear(a, b).cost, B, RIGHT_SIDE),
    ],
    "linprog": [
        ("A_ub", lambda a, b: (lambda r: (r.x, np.reshape(r.fun, 1), r.slack))(so.linprog([-1.0, -2.0], A_ub=a, b_ub=b)),
         np.array([[1.0, 1.2], [3.0, 1.0]]), np.array([4.0, 6.0])),
        ("the cost", lambda c: so.linprog(c, A_ub=[[1.0, 1.2], [3.0, 1.0]], b_ub=[4.0, 6.0]).fun, np.array([-1.0, -1.1])),
        ("A_eq", lambda a, b: so.linprog([1.0, 2.0, 0.5], A_eq=a, b_eq=b).x, np.array([[1.0, 1.0, 3.0]]), np.array([4.0])),
        ("bounds", lambda b: so.linprog([1.0, -2.0], bounds=[(b[0], None), (-1, b[1])]).x, P),
    ],
    "milp": [("the cost", lambda c: so.milp(c, integrality=1, bounds=so.Bounds(0, 3),
                                            constraints=so.LinearConstraint([[1.0, 1.0]], ub=4.5)).fun, np.array([-1.0, -1.3]))],
    "isotonic_regression": [
        ("y and weights", lambda y, w: so.isotonic_regression(y, weights=w).x, 10 * NOISE, 1 + T),
        ("decreasing", lambda y: so.isotonic_regression(y, increasing=False).x, 10 * NOISE + T**2),
    ],
    "rosen": [
        ("f", so.rosen, np.array([1.0, 0.4, -0.7])),
        ("columns", so.rosen, np.array([[1.0, 0.4], [0.3, 0.2], [0.1, 1.0]])),
        ("der", so.rosen_der, np.array([1.0, 0.4, -0.7, 0.2])),
        ("hess", so.rosen_hess, np.array([1.0, 0.4, -0.7, 0.2])),
        ("hess_prod", so.rosen_hess_prod, np.array([1.0, 0.4, -0.7]), np.array([1.0, 2.0, 3.0])),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rows", functions(FITS))
def test_fits_derivatives(rows: Rows) -> None:
    rows.check(tolerance=2e-5)


@for_each("method", ["Nelder-Mead", "Powell", "COBYLA", "trust-constr", "TNC", "dogleg", "trust-ncg", "trust-krylov"])
def test_minimize_derivative_is_independent_of_method(method: str) -> None:
    """The derivative is that at the minimum itself, whatever the method has reached."""
    options: dict[str, Any] = {"tol": 1e-10} if method in ("Nelder-Mead", "Powell", "COBYLA", "TNC", "trust-constr") else {}
    if method in ("dogleg", "trust-ncg", "trust-krylov"):
        options = {"jac": SLOPE, "hess": ad.hessian(valley)}
    exact = ad.jacobian(lambda p: so.minimize(valley, np.ones(2), args=(p,), jac=SLOPE, tol=1e-13).x)(P)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = ad.jacobian(lambda p: so.minimize(valley, np.ones(2), args=(p,), method=method, **options).x)(P)
    np.testing.assert_allclose(solution, exact, atol=1e-8)


@for_each("name", ["differential_evolution", "dual_annealing", "shgo", "basinhopping", "fmin", "fmin_powell"])
def test_global_searches_derivatives(name: str) -> None:
    def at(p: Any) -> Any:
        options: dict[str, Any] = {"rng": 1} if name in ("differential_evolution", "dual_annealing") else {}
        if name == "basinhopping":
            return so.basinhopping(lambda x: valley(x, p), [0.0, 0.0], niter=2, rng=1).x
        if name.startswith("fmin"):
            return getattr(so, name)(valley, [0.0, 0.0], args=(p,), disp=0)
        solution = getattr(so, name)(valley, [(-2, 2), (-2, 2)], args=(p,), **options)
        assert solution.fun.shape == ()
        return solution.x

    exact = ad.jacobian(lambda p: so.minimize(valley, np.ones(2), args=(p,), jac=SLOPE, tol=1e-13).x)(P)
    np.testing.assert_allclose(ad.jacobian(at)(P), exact, atol=1e-7)


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")
def test_anderson_jacobian() -> None:
    jacobian = ad.jacobian(lambda p: so.anderson(lambda x: equations(x, p), np.full(2, 0.3), f_tol=1e-9))(P)
    np.testing.assert_allclose(jacobian, ad.jacobian(solve_system)(P), atol=1e-12)


def test_fmin_cobyla_jacobian_by_constraints() -> None:
    def at(p: Any) -> Any:
        return so.fmin_cobyla(lambda x: x @ x, [2.0, 2.0], [lambda x: x[0] - p[0], lambda x: x[1] - p[1]], rhoend=1e-9)

    np.testing.assert_allclose(ad.jacobian(at)(P), np.eye(2), atol=1e-9)


def test_minimize_scalar_bounded_derivative() -> None:
    def at(p: Any) -> Any:
        return so.minimize_scalar(lambda x: (x - p[0]) ** 2 + p[1] * x**4, bounds=(p[0], 3.0), method="bounded").x

    np.testing.assert_allclose(ad.grad(at)(P), [1.0, 0.0], atol=1e-12)
    inside = ad.grad(lambda p: so.fminbound(lambda x: (x - p[0]) ** 2 + x**2, -3.0, 3.0))(P)
    np.testing.assert_allclose(inside, [0.5, 0.0], atol=1e-12)
    assert float(ad.grad(lambda p: so.brent(lambda x: (x - p) ** 2))(1.0)) == pytest.approx(1.0)
    assert float(ad.grad(lambda p: so.golden(lambda x: (x - p) ** 2))(1.0)) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------ whole programs


def solve_system(p: Any) -> Any:
    return so.root(lambda x: equations(x, p), np.ones(2), tol=1e-13).x


def test_root_jacobians_of_both_modes_agree() -> None:
    one, two = ad.jacrev(solve_system)(P), ad.jacfwd(solve_system)(P)
    np.testing.assert_allclose(one, two, atol=1e-13)
    x = solve_system(P)
    by_p = np.array([[-1.0, x[0] ** 3], [0.0, x[1] ** 3 - 1.0]])
    np.testing.assert_allclose(one, -np.linalg.solve(A + np.diag(3 * x**2 * P[1]), by_p), atol=1e-12)
    np.testing.assert_allclose(ad.jacobian(solve_system, sparse=True)(P).toarray(), one, atol=1e-13)
    np.testing.assert_allclose(ad.linearize(solve_system, P)[1](np.array([1.0, 2.0])), one @ [1.0, 2.0], atol=1e-13)
    total = lambda p: np.sum(solve_system(p) ** 2) + p[0] * p[1]  # noqa: E731
    np.testing.assert_allclose(ad.hessian(total)(P), ad.jacrev(ad.grad(total))(P), atol=1e-12)
    np.testing.assert_allclose(ad.hessian(total)(P), ad.jacfwd(ad.jacfwd(total))(P), atol=1e-12)


def test_brentq_third_derivatives() -> None:
    f = lambda p: so.brentq(lambda x: x * x - p, 0.0, 3.0, xtol=1e-14)  # noqa: E731
    assert float(ad.grad(ad.grad(ad.grad(f)))(2.0)) == pytest.approx(3 / 8 * 2**-2.5, rel=1e-10)
    assert float(ad.grad(lambda p: ad.jvp(ad.grad(f), (p,), (1.0,))[1])(2.0)) == pytest.approx(3 / 8 * 2**-2.5, rel=1e-10)


def test_root_of_nested_minimize() -> None:
    """An inner minimizer in the equations of an outer root, both using a parameter from outside."""

    def at(p: Any) -> Any:
        def inner(x: Any) -> Any:
            return so.minimize_scalar(lambda y: (y - x) ** 2 + p * y**2, tol=1e-12).x

        return so.brentq(lambda x: inner(x) + x**3 - p, -1.0, 3.0)

    h = 1e-4
    assert float(ad.grad(at)(0.8)) == pytest.approx((at(0.8 + h) - at(0.8 - h)) / (2 * h), rel=1e-4)


def test_solvers_connect_top_level_nodes() -> None:
    ad.grad(lambda x: x * 1.0)(1.0)  # the first use of an operator patches SciPy's functions
    w = cg.variable(2.0, "w")
    y = so.brentq(lambda x: x**3 - w, 0.0, 3.0) ** 2
    assert y.operands[0].opname == "scipy_optimize_brentq"
    assert float(gradient(y)["w"]) == pytest.approx(2 / 3 * 2 ** (-1 / 3))


def test_solvers_beside_term_that_keeps_graph() -> None:
    def loss(p: Any) -> Any:
        penalty = np.sum(p**2)
        x = so.minimize(lambda x: np.sum((x - p) ** 2) + np.sum(x**4), np.zeros(2), tol=1e-10).x
        return penalty + np.sum(x)

    with pytest.raises(AssertionError):
        np.testing.assert_allclose(ad.grad(loss)(P), 2 * P, atol=1e-3)
    h = 1e-4
    expected = [(loss(P + h * e) - loss(P - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(ad.grad(loss)(P), expected, atol=1e-5)


def test_start_and_bracket_have_zero_derivative() -> None:
    assert float(ad.grad(lambda x0: so.newton(lambda x: x * x - 2, x0) * x0)(1.0)) == pytest.approx(np.sqrt(2))
    assert float(ad.grad(lambda b: so.brentq(lambda x: x * x - 2, 0.0, b) * b)(3.0)) == pytest.approx(np.sqrt(2))


# ------------------------------------------------------------------------------------------ plain, and loud


def test_solvers_on_plain_arguments_equal_scipy() -> None:
    """User functions are intercepted in any case; without nodes nothing changes."""
    ad.grad(lambda x: x * 1.0)(1.0)
    solution = so.minimize(so.rosen, [1.3, 0.7, 0.8], method="BFGS")
    assert type(solution) is so.OptimizeResult
    assert solution.hess_inv.shape == (3, 3)
    assert so.brentq(lambda x: x * x - 2, 0, 3) == so.brentq(math.cos, 1, 2) * 0 + so.brentq(lambda x: x * x - 2, 0, 3)
    popt, pcov = so.curve_fit(lambda x, a, b: a * x + b, [0, 1, 2], [1.0, 3.0, 5.0])
    assert type(popt) is np.ndarray
    assert type(pcov) is np.ndarray
    with pytest.raises(ValueError, match="different signs"):
        so.brentq(lambda x: x * x + 2, 0, 3)
    for call in (lambda: so.brentq(math.cos), lambda: so.brentq(math.cos, 0, 1, a=2), lambda: so.fminbound(math.cos)):
        with pytest.raises(TypeError):
            call()


def test_solvers_values_equal_scipy() -> None:
    for f in (
        solve_system,
        lambda p: so.minimize(valley, np.ones(2), args=(p,)).x,
        lambda p: so.least_squares(misfit, [1, 1], args=(p,)).x,
    ):
        values: list[Any] = []

        def value_of(p: Any, f: Any = f, values: Any = values) -> Any:
            x = f(p)
            values.append(x.value)
            return np.sum(x)

        ad.grad(value_of)(P)
        np.testing.assert_array_equal(values[0], f(P))


def test_solvers_function_leaving_graph_raises() -> None:
    """Functions of ``math`` keep the graph within a function that is differentiated; other conversions raise."""
    assert float(ad.grad(lambda p: so.brentq(lambda x: math.sin(x * p) - 0.5, 0.0, 1.0))(1.1)) == pytest.approx(
        -np.arcsin(0.5) / 1.1**2
    )
    with pytest.raises(TypeError):
        ad.grad(lambda p: so.brentq(lambda x: np.array([x * p - 0.5], dtype=object)[0].__float__(), 0.0, 1.0))(1.1)
    with pytest.raises((TypeError, RuntimeWarning)):
        ad.grad(lambda p: so.minimize(lambda x: float(p * x[0] ** 2), [1.0]).x[0])(1.1)


def test_solvers_undefined_derivative_raises() -> None:
    with pytest.raises(RuntimeError, match="not a solution"):
        ad.grad(lambda p: so.minimize(valley, [50.0, 90.0], args=(p,), options={"maxiter": 1}).x[0])(P)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ad.grad(lambda p: so.brentq(lambda x: p * x**3, -1.0, 1.0))(1.0)
    with pytest.raises(ValueError, match="corner"):
        ad.grad(lambda p: so.minimize(lambda x: (x[0] - p) ** 2, [3.0], bounds=[(1.0, None)]).x[0])(1.0)
    with pytest.raises(ValueError, match="corner"):
        ad.grad(lambda b: so.nnls(np.eye(2), b)[0][0])(np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="corner"):
        ad.grad(lambda y: so.isotonic_regression(y).x[0])(np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match="corner"):
        ad.grad(lambda b: so.linprog([-1.0, -1.0], A_ub=[[1.0, 1.0]], b_ub=b).x[0])(np.array([1.0]))


def test_result_fields_without_derivative_raise() -> None:
    with pytest.raises(TypeError, match="hess_inv"):
        ad.grad(lambda p: so.minimize(valley, np.ones(2), args=(p,)).hess_inv[0, 0])(P)
    with pytest.raises(TypeError, match="fjac"):
        ad.grad(lambda p: so.fsolve(equations, np.ones(2), args=(p,), full_output=True)[1]["fjac"][0, 0])(P)
    with pytest.raises(TypeError, match="retall"):
        ad.grad(lambda p: so.fmin(valley, np.ones(2), args=(p,), retall=True, disp=0)[0][0])(P)
    with pytest.raises(TypeError, match="initial_temp"):
        ad.grad(lambda p: so.dual_annealing(valley, [(-2, 2)] * 2, args=(P,), initial_temp=p[0] * 5230).x[0])(P)
    solution = so.minimize(valley, np.ones(2), args=(P,))
    counts: list[Any] = []

    def f(p: Any) -> Any:
        result = so.minimize(valley, np.ones(2), args=(p,))
        counts.append((result.nit, result.nfev, result.success, result.message))
        return result.fun

    ad.grad(f)(P)
    assert counts[0] == (solution.nit, solution.nfev, solution.success, solution.message)


def test_solvers_replay_solves_again() -> None:
    """An executor solves anew for arguments; what a function used from outside must stay."""
    ad.grad(lambda x: x * 1.0)(1.0)
    p = cg.placeholder(shape=(), name="p")
    y = so.brentq(lambda x, p: x * x + 1e-3 * x - p, 0.0, 3.0, args=(p,)) * 2
    (output,) = cg.Executor([y]).run({p: 2.0})
    assert float(output) == 2 * so.brentq(lambda x: x * x + 1e-3 * x - 2.0, 0.0, 3.0)


def test_solvers_locally_constant_solution_has_zero_derivative() -> None:
    np.testing.assert_array_equal(ad.grad(lambda c: so.linprog(c, bounds=(1, 3)).x[0])(np.array([1.0, -1.0])), 0)
    np.testing.assert_array_equal(ad.grad(lambda b: so.nnls(np.eye(2), b)[0][0])(np.array([-1.0, -1.0])), 0)
