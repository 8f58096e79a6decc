"""Solvers of `scipy.optimize`: each is solved by SciPy's own call, on plain numbers, and differentiated at the solution."""

from .least_squares_fits import curve_fit, least_squares, leastsq
from .linear_programs import isotonic_regression, linprog, lsq_linear, milp, nnls
from .minimizers import (
    basinhopping,
    brent,
    differential_evolution,
    direct,
    dual_annealing,
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_cobyla,
    fmin_l_bfgs_b,
    fmin_ncg,
    fmin_powell,
    fmin_slsqp,
    fmin_tnc,
    fminbound,
    golden,
    minimize,
    minimize_scalar,
    shgo,
)
from .roots import (
    anderson,
    bisect,
    brenth,
    brentq,
    broyden1,
    broyden2,
    diagbroyden,
    excitingmixing,
    fixed_point,
    fsolve,
    linearmixing,
    newton,
    newton_krylov,
    ridder,
    root,
    root_scalar,
    toms748,
)

__all__ = [
    "anderson", "basinhopping", "bisect", "brent", "brenth", "brentq", "broyden1", "broyden2", "curve_fit", "diagbroyden",
    "differential_evolution", "direct", "dual_annealing", "excitingmixing", "fixed_point", "fmin", "fmin_bfgs", "fmin_cg",
    "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc", "fminbound", "fsolve", "golden",
    "isotonic_regression", "least_squares", "leastsq", "linearmixing", "linprog", "lsq_linear", "milp", "minimize",
    "minimize_scalar", "newton", "newton_krylov", "nnls", "ridder", "root", "root_scalar", "shgo", "toms748",
]  # fmt: skip
