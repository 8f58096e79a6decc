"""``scipy.optimize``: here are the functions that need no derivative of a user's function; `autodiff` adds the solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import gathered
from .policy import Policy


def _floating(x: Any) -> Any:
    x = gathered(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _rosen(x: Any) -> Any:
    x = _floating(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


def _rosen_der(x: Any) -> Any:
    x = _floating(x)
    inner, left, right = x[1:-1], x[:-2], x[2:]
    first = -400 * x[:1] * (x[1:2] - x[:1] ** 2) - 2 * (1 - x[:1])
    middle = 200 * (inner - left**2) - 400 * (right - inner**2) * inner - 2 * (1 - inner)
    return np.concatenate([first, middle, 200 * (x[-1:] - x[-2:-1] ** 2)])


def _rosen_hess(x: Any) -> Any:
    x = _floating(x)
    sides = -400 * x[:-1]
    inner = 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]
    diagonal = np.concatenate([1200 * x[:1] ** 2 - 400 * x[1:2] + 2, inner, np.full(1, 200.0)])
    return np.diag(sides, 1) + np.diag(sides, -1) + np.diag(diagonal)


def _rosen_hess_prod(x: Any, p: Any) -> Any:
    x, p = np.atleast_1d(_floating(x)), gathered(p)
    first = (1200 * x[:1] ** 2 - 400 * x[1:2] + 2) * p[:1] - 400 * x[:1] * p[1:2]
    middle = -400 * x[:-2] * p[:-2] + (202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]) * p[1:-1] - 400 * x[1:-1] * p[2:]
    return np.concatenate([first, middle, -400 * x[-2:-1] * p[-2:-1] + 200 * p[-1:]])


_PLAIN = """
    Bounds LinearConstraint NonlinearConstraint BFGS SR1 HessianUpdateStrategy OptimizeResult OptimizeWarning RootResults
    NoConvergence show_options linprog_verbose_callback
"""
_SOLVERS = """
    root fsolve root_scalar brentq brenth ridder bisect toms748 newton fixed_point anderson broyden1 broyden2 diagbroyden
    excitingmixing linearmixing newton_krylov minimize minimize_scalar fmin fmin_powell fmin_cg fmin_bfgs fmin_ncg fmin_l_bfgs_b
    fmin_tnc fmin_slsqp fmin_cobyla fminbound brent golden differential_evolution dual_annealing shgo direct basinhopping
    least_squares leastsq curve_fit nnls lsq_linear linprog milp isotonic_regression
"""

POLICY = Policy(
    module="scipy.optimize",
    instead={"rosen": _rosen, "rosen_der": _rosen_der, "rosen_hess": _rosen_hess, "rosen_hess_prod": _rosen_hess_prod},
    plain=frozenset(_PLAIN.split()),
    refused={
        **dict.fromkeys(_SOLVERS.split(), "what autodiff answers, once it is imported"),
        "approx_fprime": "autodiff.grad, which is exact",
        "check_grad": "autodiff.check_grads",
        "brute": "scipy.optimize.differential_evolution or minimize; the points of a grid have no derivative",
        "bracket": "scipy.optimize.minimize_scalar: a bracket has no derivative",
        "line_search": "scipy.optimize.minimize: what a search along a line finds solves no equations",
        "linear_sum_assignment": "linear_sum_assignment(cost.value): which rows go to which columns is piecewise constant",
        "quadratic_assignment": "quadratic_assignment(A.value, B.value): which nodes go where is piecewise constant",
        **dict.fromkeys(("BroydenFirst", "KrylovJacobian", "InverseJacobian"), "scipy.optimize.root"),
        "LbfgsInvHessProduct": "autodiff.hessian, and np.linalg.solve",
    },
)
