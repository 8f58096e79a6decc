"""Differentiable replacements of SciPy's integrators and solvers, whose callbacks may compute with nodes.

Integrals and differential equations have formulas for their derivatives. Equations, minima and fits are solved on plain numbers
by SciPy's own function; the solution is one node, differentiated by the implicit function theorem. This module registers names
only: a replacement is imported when its function is first called.
"""

from compgraph.scipy import register_replacement

# Names of SciPy's functions, by the module here that replaces them.
_REPLACEMENTS = {
    "integrate.quadrature": "quad quad_vec nquad dblquad tplquad",
    "integrate.initial_value_problems": "solve_ivp odeint",
    "integrate.boundary_value_problems": "solve_bvp",
    "optimize.roots": (
        "root fsolve root_scalar brentq brenth ridder bisect toms748 newton fixed_point anderson broyden1 broyden2 diagbroyden "
        "excitingmixing linearmixing newton_krylov"
    ),
    "optimize.minimizers": (
        "minimize minimize_scalar fmin fmin_powell fmin_cg fmin_bfgs fmin_ncg fmin_l_bfgs_b fmin_tnc fmin_slsqp fmin_cobyla "
        "fminbound brent golden differential_evolution dual_annealing shgo direct basinhopping least_squares leastsq curve_fit"
    ),
    "optimize.linear_programs": "nnls lsq_linear linprog milp isotonic_regression",
}
# Functions that call one of the others, or take only arrays. The others are always intercepted, because a callback may capture
# nodes.
_WITHOUT_CALLBACK = ["nquad", "dblquad", "tplquad", "nnls", "lsq_linear", "linprog", "milp", "isotonic_regression"]

for _module, _names in _REPLACEMENTS.items():
    for _name in _names.split():
        register_replacement(
            f"scipy.{_module.partition('.')[0]}", _name, f"{__name__}.{_module}:{_name}", always=_name not in _WITHOUT_CALLBACK
        )
