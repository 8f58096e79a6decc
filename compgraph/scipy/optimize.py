"""``scipy.optimize``: Rosenbrock's function. `autodiff` replaces the solvers."""

from __future__ import annotations

from .policy import Policy

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
    own_code=frozenset({"rosen", "rosen_der", "rosen_hess", "rosen_hess_prod"}),
    plain=frozenset(_PLAIN.split()),
    unsupported={
        **dict.fromkeys(_SOLVERS.split(), "`import autodiff`, which implements it for nodes"),
        "approx_fprime": "autodiff.grad, which is exact",
        "check_grad": "autodiff.check_grads",
        "brute": "scipy.optimize.differential_evolution or minimize (grid points have no derivative)",
        "bracket": "scipy.optimize.minimize_scalar (a bracket has no derivative)",
        "line_search": "scipy.optimize.minimize (no equations define the result of a line search)",
        "linear_sum_assignment": "linear_sum_assignment(cost.value) (the assignment is piecewise constant)",
        "quadratic_assignment": "quadratic_assignment(A.value, B.value) (the assignment is piecewise constant)",
        **dict.fromkeys(("BroydenFirst", "KrylovJacobian", "InverseJacobian"), "scipy.optimize.root"),
        "LbfgsInvHessProduct": "autodiff.hessian, and np.linalg.solve",
    },
)
