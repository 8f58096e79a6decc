"""Solvers of `scipy.optimize`: each is solved by SciPy's own call, on plain numbers, and differentiated at the solution."""

from .minimizers import minimize as minimize
