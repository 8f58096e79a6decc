"""Replacements of SciPy's functions of functions, for user functions that compute with nodes.

Integrals and differential equations have formulas for their derivatives. Equations, minima and fits are solved on plain numbers
by SciPy's own function; the solution is one node, differentiated by the implicit function theorem. This module registers names
only: a replacement is imported when its function is first called.
"""

from compgraph.scipy import register_replacement

# By SciPy's module and ours: functions that are always intercepted, because their callbacks may capture nodes.
_CALLING = {
    ("scipy.integrate", "integrate"): "quad quad_vec solve_bvp solve_ivp odeint",
    ("scipy.optimize", "optimize"): (
        "root fsolve root_scalar brentq brenth ridder bisect toms748 newton fixed_point anderson broyden1 broyden2 diagbroyden "
        "excitingmixing linearmixing newton_krylov minimize minimize_scalar fmin fmin_powell fmin_cg fmin_bfgs fmin_ncg "
        "fmin_l_bfgs_b fmin_tnc fmin_slsqp fmin_cobyla fminbound brent golden differential_evolution dual_annealing shgo direct "
        "basinhopping least_squares leastsq curve_fit"
    ),
}
# Functions that call one of the above, or take only arrays.
_NON_CALLING = {
    ("scipy.integrate", "integrate"): "nquad dblquad tplquad",
    ("scipy.optimize", "optimize"): "nnls lsq_linear linprog milp isotonic_regression",
}

for _table, _is_calling in ((_CALLING, True), (_NON_CALLING, False)):
    for (_module, _module_name), _names in _table.items():
        for _name in _names.split():
            register_replacement(_module, _name, f"{__name__}.{_module_name}:{_name}", always=_is_calling)
