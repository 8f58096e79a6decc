"""SciPy's functions of functions: what answers for them when the function they are given has nodes in it.

Only names stand here. A module is imported when one of its functions is first called, after SciPy's own.
"""

from compgraph.scipy import answer_by

ANSWERS: dict[str, dict[str, tuple[str, ...]]] = {
    "scipy.integrate": {
        "integrate": ("quad", "quad_vec", "solve_ivp", "odeint", "nquad", "dblquad", "tplquad"),
    },
    "scipy.optimize": {
        "optimize": (
            *("root", "fsolve", "root_scalar", "brentq", "brenth", "ridder", "bisect", "toms748", "newton", "fixed_point"),
            *("anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing", "newton_krylov"),
            *("minimize", "minimize_scalar", "fmin", "fmin_powell", "fmin_cg", "fmin_bfgs", "fmin_ncg", "fmin_l_bfgs_b"),
            *("fmin_tnc", "fmin_slsqp", "fmin_cobyla", "fminbound", "brent", "golden"),
            *("differential_evolution", "dual_annealing", "shgo", "direct", "basinhopping"),
            *("least_squares", "leastsq", "curve_fit", "nnls", "lsq_linear", "linprog", "milp", "isotonic_regression"),
        ),
    },
}

NESTED = {"nquad", "dblquad", "tplquad"}  # these ask others, which ask what the function brings
NESTED |= {"nnls", "lsq_linear", "linprog", "milp", "isotonic_regression"}  # these are given no functions

for _module, _places in ANSWERS.items():
    for _place, _names in _places.items():
        for _name in _names:
            answer_by(_module, _name, f"{__name__}.{_place}:{_name}", calling=_name not in NESTED)
