"""Solutions of equations, differentiated by the implicit function theorem.

If ``g(x, p) = 0`` defines x as a function of p, then ``dx/dp = -(dg/dx)^-1 dg/dp``: the derivative does not depend on the
solver. The solvers are those of `scipy.optimize`; their operations are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.context import NoGraph
from compgraph.graph import as_operands, to_values
from compgraph.guards import note_input_shapes
from compgraph.values import INERT, Value, describe, require_unbatched

from ..arguments import as_argument
from ..batching import any_batched, map_elements, outside_vmap
from ..forward import jvp
from ..operators import jacrev, vjp
from .call import CallFunction, require_same
from .closure import TracedFunction
from .nested import create_problem

Function = Callable[..., Any]


def root(
    g: Function,
    x0: object,
    *params: object,
    args: Any = (),
    method: str = "hybr",
    tol: float = 1e-12,
    options: object = None,
) -> Any:
    """Solve ``g(x, *params) = 0`` for x; the solution is a differentiable function of the parameters.

    Parameters
    ----------
    g : callable
        A function of x and the parameters. Its result has the structure of x, with arrays of the same shapes.
    x0 : array_like, or arrays nested in any way
        The start value. The solution does not depend on it, so it has no derivative.
    *params : array_like or Node, or arrays nested in any way
        The parameters.
    args : tuple
        The parameters, as in SciPy; instead of `params`.
    method, tol, options
        As in ``scipy.optimize.root``.

    Returns
    -------
    array or Node
        The solution, with the structure and shapes of `x0`.

    Raises
    ------
    RuntimeError
        If the solver does not converge.
    TypeError
        If `g` captures a node, x is complex, or both `params` and `args` are passed.
    ValueError
        If the result of `g` and `x0` have different structures.
    numpy.linalg.LinAlgError
        In a derivative: if the Jacobian of `g` with respect to x is singular at the solution.

    Notes
    -----
    Both modes and all orders, by the implicit function theorem (A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd
    ed., SIAM 2008, ch. 15). A derivative needs one Jacobian of `g` with respect to x, and one linear solve.

    Examples
    --------
    >>> from autodiff import grad
    >>> square_root = lambda p: root(lambda x, p: x * x - p, 1.0, p)
    >>> print(round(float(square_root(2.0)), 9), round(float(grad(square_root)(2.0)), 9))
    1.414213562 0.353553391

    Unknowns and parameters may nest:

    >>> circle = lambda x, p: {"u": x["u"] ** 2 + x["v"] ** 2 - p["r"] ** 2, "v": x["u"] - p["a"] * x["v"]}
    >>> solution = root(circle, {"u": 1.0, "v": 1.0}, args=({"r": 5.0, "a": 0.75},))
    >>> print(round(float(solution["u"]), 9), round(float(solution["v"]), 9))
    3.0 4.0
    """
    problem = create_problem("root", g, x0, params, args)

    def solve(start: Any, values: tuple[Any, ...]) -> Any:
        from scipy import optimize

        scipy_result = optimize.root(
            lambda x: np.ravel(to_values(problem.function(_reshape_like(x, start), *values))),
            np.ravel(start),
            jac=lambda x: to_values(jacobian_of(problem.function, _reshape_like(x, start), values)),
            method=method,
            tol=tol,
            options=options,
        )
        residual = np.max(np.abs(np.ravel(to_values(problem.function(_reshape_like(scipy_result.x, start), *values)))), initial=0)
        if not scipy_result.success and not residual <= _rounding_error(problem.function, scipy_result.x, start, values):
            raise RuntimeError(f"root: no solution was found: {scipy_result.message} (residual {residual:.3g}). Try another x0")
        return scipy_result.x

    return problem.restore(_solution("root", problem.function, problem.start, problem.leaves, solve))


def fixed_point(f: Function, x0: object, *params: object, args: Any = (), tol: float = 1e-12, maxiter: int = 500) -> Any:
    """Iterate ``x = f(x, *params)`` to a fixed point, which is a differentiable function of the parameters.

    Parameters
    ----------
    f : callable
        A function of x and the parameters. Its result has the structure of x, with arrays of the same shapes.
    x0 : array_like, or arrays nested in any way
        The start value; it has no derivative.
    *params : array_like or Node, or arrays nested in any way
        The parameters.
    args : tuple
        The parameters, as in SciPy; instead of `params`.
    tol : float
        The relative change at which the iteration ends.
    maxiter : int
        The greatest number of steps.

    Returns
    -------
    array or Node
        The fixed point, with the structure and shapes of `x0`.

    Raises
    ------
    RuntimeError
        If the iteration does not converge; `root` may find the solution nevertheless.
    TypeError, ValueError, numpy.linalg.LinAlgError
        As `root`.

    Notes
    -----
    The derivative is that of the root of ``x - f(x, *params)``; see `root`. The iteration is not accelerated, so it converges
    only to stable fixed points.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> print(round(float(grad(lambda p: fixed_point(lambda x, p: np.cos(p * x), 0.5, p))(1.0)), 6))
    -0.297474
    """
    problem = create_problem("fixed_point", f, x0, params, args)

    def solve(start: Any, values: tuple[Any, ...]) -> Any:
        x = start
        for _ in range(maxiter):
            before, x = x, np.asarray(to_values(problem.function(_reshape_like(x, start), *values)))
            if x.shape != start.shape:
                raise ValueError(f"fixed_point: the function returned shape {x.shape} for an x of shape {start.shape}")
            if not np.all(np.isfinite(x)):
                break
            if np.max(np.abs(x - before), initial=0) <= tol * max(1.0, float(np.max(np.abs(x), initial=0))):
                return x
        raise RuntimeError(f"fixed_point: the iteration has not converged after {maxiter} steps. Try autodiff.root")

    solution = _solution("fixed_point", lambda x, *p: x - problem.function(x, *p), problem.start, problem.leaves, solve)
    return problem.restore(solution)


# ------------------------------------------------------------------------------------------ derivatives


class ImplicitCall:
    """One call of `root` or `fixed_point`: the root of a function of x and parameters."""

    def __init__(self, name: str, g: Function, start: Any, solve: Function) -> None:
        self.name, self.g, self.solve = name, g, solve
        self.start, self.dtype = start.astype(float), start.dtype
        self.first_solution: tuple[list[Any], Any] | None = None  # a solution with its parameters, and the residual there

    def compute(self, *params: object) -> Any:
        """Return the solution."""
        with NoGraph():
            solution = self.solve(self.start, tuple(np.asarray(p)[()] for p in params))
        return np.asarray(solution, self.dtype).reshape(self.start.shape)[()]

    def _matrix(self, out: Array, params: tuple[Any, ...]) -> Any:
        matrix = jacobian_of(self.g, out, params)
        plain = np.asarray(to_values(matrix))
        if not np.all(np.isfinite(plain)) or np.linalg.cond(plain) > 1 / np.finfo(plain.dtype).eps:
            raise np.linalg.LinAlgError(f"{self.name}: the Jacobian is singular at the solution, so it has no derivative")
        values = to_values([out, *params])
        if self.first_solution is not None and all(map(np.array_equal, values, self.first_solution[0])):
            residual_change = np.ravel(to_values(self.g(*values))) - np.ravel(self.first_solution[1])
            magnitude = float(np.max(np.abs(values[0]), initial=1.0))
            require_same(self.name, np.zeros(residual_change.shape), np.linalg.solve(plain, residual_change), magnitude)
        return matrix

    def pull(self, cotangent: Any, out: Any, *params: Any) -> list[Any]:
        """Return the cotangents of the parameters."""
        adjoint = np.linalg.solve(np.transpose(self._matrix(out, params)), np.ravel(-cotangent))
        _, pull = vjp(lambda x, *p: np.ravel(self.g(x, *p)), out, *params)
        return list(pull(adjoint)[1:])

    def push(self, position: int, tangent: Any, out: Any, *params: object) -> Any:
        """Return the tangent of the solution, given that of one parameter."""
        before, after = params[:position], params[position + 1 :]
        zero_tangent = np.zeros(out.shape, out.dtype)
        residual_tangent = jvp(lambda x, p: self.g(x, *before, p, *after), (out, params[position]), (zero_tangent, tangent))[1]
        return reshape_vector(np.linalg.solve(self._matrix(out, params), np.ravel(-residual_tangent)), out.shape)


def _solution(name: str, g: Function, x0: object, params: tuple[Any, ...], solve: Function) -> Any:
    """Return the solution as one node; within vmap, solve per batch element."""
    if any_batched(x0, params):
        return map_elements(
            name, lambda start, parameter_leaves: _solution(name, g, start, tuple(parameter_leaves), solve), (x0, params)
        )
    with outside_vmap():
        return _solve_as_node(name, g, x0, params, solve)


def _solve_as_node(name: str, g: Function, x0: object, params: tuple[Any, ...], solve: Function) -> Any:
    """Return the solution as one node."""
    start = np.asarray(to_values(as_argument(to_values(x0))))
    operands = tuple(as_argument(p) for p in as_operands(params))
    note_input_shapes(f"the start of autodiff.{name}", x0)
    if any(np.asarray(to_values(a)).dtype.kind == "c" for a in (start, *operands)):
        raise TypeError(f"{name}: complex numbers are not supported. Pass real and imaginary parts as two arrays")
    call = ImplicitCall(name, g, start, solve)
    out = bind(_functions[name], operands, {"call": call})
    values = [to_values(v) for v in (out, *operands)]
    call.first_solution = [*map(np.copy, values)], require_no_captures(name, g, values)
    return out


_functions = {name: CallFunction(name) for name in ("root", "fixed_point")}


def require_no_captures(name: str, g: Function, values: list[Any]) -> Any:
    """Return the result of a function; raise a TypeError if it captures nodes, which its derivative would miss."""
    closure = TracedFunction(name, lambda elements: g(*elements), values, range(len(values)))
    active_captures = [n for n in closure.captured if type(n) not in INERT]
    require_unbatched(name, *closure.results)
    if active_captures or closure.level:
        what = describe(active_captures[0]) if active_captures else "value with a tangent"
        raise TypeError(f"{name}: the function captures the {what}. Pass it among the parameters")
    return to_values(closure.results[0])


def jacobian_of(g: Function, x: Any, params: tuple[Any, ...]) -> Any:
    """Return the Jacobian of `g` with respect to x, as a square matrix."""
    x = x if isinstance(x, Value) else np.asarray(x)[()]
    matrix = jacrev(lambda z: np.ravel(g(z, *params)))(x)
    if matrix.shape[0] != x.size:
        raise ValueError(f"the function returned {matrix.shape[0]} numbers for {x.size} unknowns. It must return as many")
    return np.reshape(matrix, (x.size, x.size))


def reshape_vector(flat: Any, shape: tuple[int, ...]) -> Any:
    """Reshape a vector; to a scalar for the shape ()."""
    return np.reshape(flat, shape) if shape else flat[0]


def _reshape_like(x: Any, like: Any) -> Any:
    return np.reshape(np.asarray(x, like.dtype), like.shape)[()]


def _rounding_error(g: Function, x: Any, start: Any, values: tuple[Any, ...]) -> float:
    """Return the greatest residual that rounding errors explain."""
    matrix = np.abs(to_values(jacobian_of(g, _reshape_like(x, start), values)))
    return float(1e3 * np.finfo(start.dtype).eps * max(1.0, float(np.max(matrix @ np.abs(np.ravel(x)), initial=0))))
