"""SciPy's functions whose derivative needs operators: solvers of equations, minimisers, fits.

Each is solved plainly by SciPy's own call; the solution is one node, whose derivative is that of the implicit function theorem.
What stands here says to `compgraph.scipy` who answers, and imports nothing of SciPy's.
"""

from __future__ import annotations

from compgraph.scipy import answer_by

_HERE = "autodiff.custom.scipy.optimize"
_ROOTS = (
    "root fsolve root_scalar brentq brenth ridder bisect toms748 newton fixed_point anderson broyden1 broyden2 diagbroyden "
    "excitingmixing linearmixing newton_krylov"
)
_MINIMA = (
    "minimize minimize_scalar fmin fmin_powell fmin_cg fmin_bfgs fmin_ncg fmin_l_bfgs_b fmin_tnc fmin_slsqp fmin_cobyla "
    "fminbound brent golden differential_evolution dual_annealing shgo direct basinhopping"
)
_FITS = "least_squares leastsq curve_fit"
_PROGRAMS = "nnls lsq_linear linprog milp isotonic_regression"

for _name in f"{_ROOTS} {_MINIMA} {_FITS}".split():
    answer_by("scipy.optimize", _name, f"{_HERE}:{_name}")
for _name in _PROGRAMS.split():
    answer_by("scipy.optimize", _name, f"{_HERE}:{_name}", calling=False)
