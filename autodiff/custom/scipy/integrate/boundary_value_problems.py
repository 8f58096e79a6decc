"""Boundary value problems: SciPy's solution, differentiated by the implicit function theorem on SciPy's mesh.

The equations are those of collocation with cubics, which SciPy solves (J. Kierzenka and L. F. Shampine, "A BVP solver based on
residual control and the MATLAB PSE", ACM Trans. Math. Softw. 27 (2001)). Newton steps are recorded, starting at the solution:
they do not change its value, and each doubles the order to which derivatives are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.graph import stack_nested, to_values
from compgraph.interception import unpatched
from compgraph.scipy import limit_order, pin_value
from compgraph.values import Value

from ....operators import jacrev
from ..linear_functionals import NodeRecorder
from .initial_value_problems import guard_step_choice

Function = Callable[..., Any]
NEWTON_STEPS = 3  # recorded steps; derivatives are exact to order 7
MAX_UNKNOWNS = 1500  # the greatest size of the dense linear systems


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: object,
    y: object,
    p: list[float] | None = None,
    S: object = None,  # noqa: N803
    **options: Any,
) -> Any:
    """``scipy.integrate.solve_bvp``; the start of the search has no derivative."""
    if isinstance(stack_nested(x), Value) or isinstance(stack_nested(S), Value):
        raise TypeError(
            "scipy.integrate.solve_bvp: x and S cannot be nodes. Scale the equation so that its ends and its singular term are "
            "constant, and use the nodes within the function"
        )
    rate, ends = NodeRecorder(fun), NodeRecorder(bc)
    options = {name: to_values(value) for name, value in options.items()}
    for name in ("fun_jac", "bc_jac"):
        if options.get(name) is not None:
            options[name] = _as_plain_function(options[name])
    scipy_function = unpatched(scipy.integrate.solve_bvp)
    scipy_result = scipy_function(
        rate, ends, x, to_values(stack_nested(y)), None if p is None else to_values(stack_nested(p)), S, **options
    )
    if not (rate.returned_node or ends.returned_node):
        return scipy_result
    if not scipy_result.success:
        raise RuntimeError(
            f"scipy.integrate.solve_bvp: the solver failed, so the result has no derivative: {scipy_result.message}"
        )
    if S is not None:
        raise TypeError("scipy.integrate.solve_bvp: S= is not recorded. Write the singular term into the function")
    problem = Collocation(fun, bc, scipy_result)
    if problem.start.size > MAX_UNKNOWNS:
        raise TypeError(
            f"scipy.integrate.solve_bvp: a derivative needs linear systems of {problem.start.size} unknowns, which is too many. "
            "Increase tol= for a coarser mesh, or use the shooting method: solve_ivp within autodiff.root"
        )
    z: Any = problem.start
    for _ in range(NEWTON_STEPS):
        z = z - np.linalg.solve(jacrev(problem.residual)(z), problem.residual(z))
    z = limit_order(pin_value(z, problem.start), 2**NEWTON_STEPS - 1, "the solution of scipy.integrate.solve_bvp")
    scipy_result.y, parameters = problem.split_unknowns(z)
    if scipy_result.p is not None:
        scipy_result.p = parameters
    scipy_result.yp = pin_value(problem.rate(scipy_result.x, scipy_result.y, parameters), scipy_result.yp)
    scipy_result.sol = scipy.interpolate.CubicHermiteSpline(scipy_result.x, scipy_result.y, scipy_result.yp, axis=1)
    guard_step_choice("the numbers for which scipy.integrate.solve_bvp chose its mesh", scipy_result.y)
    return scipy_result


def _as_plain_function(function: Function) -> Function:
    """Return a user's function whose results are plain numbers."""

    def plain(*args: object) -> Any:
        result = function(*args)
        return (
            tuple(to_values(stack_nested(part)) for part in result)
            if isinstance(result, tuple)
            else to_values(stack_nested(result))
        )

    return plain


class Collocation:
    """The collocation equations for the states at the points of a mesh, and for unknown parameters."""

    def __init__(self, fun: Function, bc: Function, scipy_result: Any) -> None:
        self.fun, self.bc, self.x, self.shape = fun, bc, scipy_result.x, scipy_result.y.shape
        self.has_parameters = scipy_result.p is not None
        self.start = np.concatenate([scipy_result.y.ravel(), scipy_result.p]) if self.has_parameters else scipy_result.y.ravel()

    def split_unknowns(self, z: Any) -> tuple[Any, Any]:
        """Split the vector of unknowns into the states and the parameters."""
        size = self.shape[0] * self.shape[1]
        return np.reshape(z[:size], self.shape), z[size:]

    def rate(self, x: NDArray[Any], y: object, p: object) -> Any:
        """Return the rates of change at points."""
        return stack_nested(self.fun(x, y, p) if self.has_parameters else self.fun(x, y))

    def residual(self, z: object) -> Any:
        """Return the residual of the equation at the middle of each interval, and of the boundary conditions."""
        y, p = self.split_unknowns(z)
        h = np.diff(self.x)
        f = self.rate(self.x, y, p)
        middle = (y[:, 1:] + y[:, :-1]) / 2 - h / 8 * (f[:, 1:] - f[:, :-1])
        f_middle = self.rate(self.x[:-1] + h / 2, middle, p)
        inner = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * f_middle)
        ends = stack_nested(self.bc(y[:, 0], y[:, -1], p) if self.has_parameters else self.bc(y[:, 0], y[:, -1]))
        return np.concatenate([np.ravel(inner), np.ravel(ends)])
