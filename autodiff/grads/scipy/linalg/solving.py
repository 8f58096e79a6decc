"""Rules of SciPy's solvers of linear systems."""

from __future__ import annotations

import numpy as np
import scipy

from ....rules import general

scipy_linalg_solve_grad = general(
    "scipy_linalg_solve",
    lambda g, out, a, b: -np.outer(scipy.linalg.solve(np.transpose(a), g), out),
    lambda g, out, a, b: scipy.linalg.solve(np.transpose(a), g),
).tangent(
    lambda t, out, a, b: -scipy.linalg.solve(a, t @ out),
    lambda t, out, a, b: scipy.linalg.solve(a, t),
)
