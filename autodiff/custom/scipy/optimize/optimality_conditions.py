"""The Karush-Kuhn-Tucker conditions of a minimizer as equations, with the active constraints at the solution.

At a minimum of f under ``h(x) = 0`` and ``c(x) >= 0``, with the active set A, the gradient of the Lagrangian
``f - sum(lambda_i c_i)``, h, and the c in A are zero (J. Nocedal and S. Wright, *Numerical Optimization*, 2nd ed., ch. 12). If
the multipliers in A are positive and the gradients of its constraints are independent, A is constant nearby, and the implicit
function theorem holds for x and the multipliers together (A. V. Fiacco, 1976).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from compgraph.array_types import Array
from compgraph.context import NoGraph
from compgraph.graph import stack_nested, to_values
from compgraph.interception import unpatched

from ....operators import grad, jacrev
from ..solver_calls import Call, Callback, has_active_node

Function = Callable[..., Any]
MAX_ACTIVE_VALUE = 1e-3  # the greatest value of a constraint that may be active, relative to x
MAX_ZERO_MULTIPLIER = 1e-7  # the greatest multiplier that counts as zero, relative to the gradient
_DEGENERACY_MESSAGE = (
    "a constraint or bound is active at the solution, but its multiplier is 0 within the tolerances, so the solution has a "
    "corner and no derivative. Omit or move the constraint, or use smaller tolerances"
)


class Constraint(NamedTuple):
    """A vector, ``function(x, *extra)``, that is zero (`is_equation`) or not negative at the solution."""

    function: Function
    is_equation: bool


class ActiveConstraint(NamedTuple):
    """A constraint, and the indices of its elements that are zero at the solution."""

    constraint: Constraint
    indices: Any


def solve_optimality(call: Call, x: Any, f: Function, constraints: Sequence[Constraint], extract_x: Function) -> Any:
    """Return SciPy's minimizer of f, differentiable in all nodes that f and the constraints use."""
    x = np.asarray(x)
    if not x.size:
        return x
    active, multipliers = _find_active(call, x, f, constraints)
    count = sum(part.indices.size for part in active)
    size = x.size

    def conditions(y: NDArray[Any], *extra: object) -> Any:
        point, constraint_multipliers = (y[:size], y[size:]) if count else (y, None)
        point = np.reshape(point, x.shape) if x.ndim else np.reshape(point, ())

        def lagrangian(z: object) -> Any:
            value = _scalar(f(z, *extra))
            return value - np.sum(constraint_multipliers * _active_values(active, z, extra)) if count else value

        slope = np.ravel(grad(lagrangian)(point))
        return np.concatenate([slope, _active_values(active, point, extra)]) if count else slope

    if not count:
        return call.solution(x, conditions, extract_x, lambda point: _verify(call, point, np.zeros(0), active, constraints))

    def verify(y: NDArray[Any]) -> None:
        point = np.reshape(y[:size], x.shape)[()]
        _verify(call, point, y[size:], active, constraints)

    stationary_point = call.solution(
        np.concatenate([np.ravel(x), multipliers]),
        conditions,
        lambda r: np.concatenate([np.ravel(extract_x(r)), multipliers]),
        verify,
    )
    return np.reshape(stationary_point[:size], x.shape) if x.ndim else stationary_point[0]


def _verify(
    call: Call, point: Array, multipliers: NDArray[Any], active: Sequence[ActiveConstraint], constraints: Sequence[Constraint]
) -> None:
    """Raise if the active set at the exact solution differs from the assumed one."""
    extra = to_values(call.extra)
    is_equation = np.concatenate(
        [np.zeros(0, bool), *[np.full(part.indices.size, part.constraint.is_equation) for part in active]]
    )
    is_wrong = bool(np.any(multipliers[~is_equation] <= 0))
    size = max(1.0, float(np.max(np.abs(point))))
    for constraint in constraints:
        is_wrong = is_wrong or bool(np.any(np.asarray(to_values(_constraint_values(constraint, point, extra))) < -1e-9 * size))
    if is_wrong:
        raise ValueError(f"{call.name}: {_DEGENERACY_MESSAGE}")


def _scalar(value: object) -> Any:
    return np.reshape(stack_nested(value), ())


def _constraint_values(constraint: Constraint, z: object, extra: tuple[Any, ...]) -> Any:
    return np.ravel(stack_nested(constraint.function(z, *extra)))


def _active_values(active: Sequence[ActiveConstraint], z: object, extra: tuple[Any, ...]) -> Any:
    """Return the active elements of all constraints, which are zero at the solution."""
    return np.concatenate([_constraint_values(part.constraint, z, extra)[part.indices] for part in active])


def _find_active(
    call: Call, x: NDArray[Any], f: Function, constraints: Sequence[Constraint]
) -> tuple[list[ActiveConstraint], Any]:
    """Return the active constraints at a solution, and their multipliers."""
    if not constraints:
        return [], np.zeros(0)
    candidates: list[ActiveConstraint] = []
    with NoGraph():
        extra = to_values(call.extra)
        slope = np.ravel(to_values(grad(lambda z: _scalar(f(z, *extra)))(x[()])))
        slacks, gradients = [], []
        for constraint in constraints:
            numbers = np.asarray(to_values(_constraint_values(constraint, x[()], extra)))
            indices = np.arange(numbers.size)
            if not constraint.is_equation:
                indices = np.flatnonzero(numbers <= MAX_ACTIVE_VALUE * np.maximum(1.0, np.max(np.abs(x))))
            if indices.size:
                candidates.append(ActiveConstraint(constraint, indices))
                slacks.append(numbers[indices])
                gradients.append(_constraint_jacobian(constraint, x, extra)[indices])
    if not candidates:
        return [], np.zeros(0)
    is_equation = np.concatenate([np.full(part.indices.size, part.constraint.is_equation) for part in candidates])
    return _find_multipliers(call.name, candidates, slope, np.concatenate(gradients), np.concatenate(slacks), is_equation)


def _constraint_jacobian(constraint: Constraint, x: NDArray[Any], extra: tuple[NDArray[Any], ...]) -> Any:
    """Return the Jacobian of a constraint."""
    jacobian = to_values(jacrev(lambda z: _constraint_values(constraint, z, extra))(x[()]))
    return np.reshape(jacobian, (-1, x.size))


def _find_multipliers(
    name: str,
    candidates: list[ActiveConstraint],
    slope: NDArray[Any],
    gradients: NDArray[Any],
    slacks: NDArray[Any],
    is_equation: NDArray[Any],
) -> tuple[list[ActiveConstraint], Any]:
    """Return the nearly active constraints that have a multiplier, and the multipliers."""
    signs = np.where(is_equation, -1.0, 1.0)[:, None] * gradients  # multipliers of equations have either sign
    columns = np.concatenate([gradients, signs[is_equation]]).T
    nonnegative_multipliers = unpatched(scipy.optimize.nnls)(columns, slope)[0]
    multipliers = nonnegative_multipliers[: is_equation.size].copy()
    multipliers[is_equation] -= nonnegative_multipliers[is_equation.size :]
    has_multiplier = is_equation | (
        multipliers > np.maximum(slacks, MAX_ZERO_MULTIPLIER * max(1.0, float(np.max(np.abs(slope)))))
    )
    is_tight = ~has_multiplier & (slacks <= 1e-9)
    if np.any(is_tight & (np.max(np.abs(gradients), axis=1, initial=0) > 0)):
        raise ValueError(f"{name}: {_DEGENERACY_MESSAGE}")
    active, start = [], 0
    for part in candidates:
        mask = has_multiplier[start : start + part.indices.size]
        start += part.indices.size
        if np.any(mask):
            active.append(ActiveConstraint(part.constraint, part.indices[mask]))
    return active, multipliers[has_multiplier]


def plain_bounds(bounds: object) -> Any:
    """Replace nodes in bounds by plain values."""
    if not isinstance(bounds, Bounds):
        return to_values(bounds) if not isinstance(bounds, zip) else list(bounds)
    bounds_copy = copy.copy(bounds)
    bounds_copy.lb, bounds_copy.ub = to_values(bounds.lb), to_values(bounds.ub)
    return bounds_copy


def bounds_to_constraints(bounds: Any) -> list[Constraint]:
    """Convert bounds, one pair per number or an object of SciPy, to constraints."""
    if bounds is None:
        return []
    if isinstance(bounds, Bounds):
        return _ends_to_constraints(bounds.lb, bounds.ub)
    pairs = [tuple(pair) for pair in bounds]
    return _ends_to_constraints([low for low, _ in pairs], [high for _, high in pairs])


def pair_to_constraints(bounds: tuple[Any, ...]) -> list[Constraint]:
    """Convert ``(low, high)``, two numbers or arrays, to constraints."""
    return bounds_to_constraints(bounds) if isinstance(bounds, Bounds) else _ends_to_constraints(*bounds)


def _ends_to_constraints(low: ArrayLike, high: ArrayLike) -> list[Constraint]:
    """Convert lower and upper ends to constraints; None and infinite ends have none."""
    ends = []
    for end, default in ((low, -np.inf), (high, np.inf)):
        if isinstance(end, (list, tuple)):
            end = stack_nested([default if part is None else part for part in end])
        ends.append(default if end is None else stack_nested(end))
    return _interval_constraints(lambda z, *extra: z, *ends)


def convert_constraints(call: Call, constraints: object) -> tuple[Any, list[Constraint]]:
    """Return constraints as passed to SciPy, without nodes, and as functions."""
    all_constraints = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    plain_constraints: list[Any] = []
    constraint_functions: list[Constraint] = []
    for constraint in all_constraints:
        plain_constraint, constraint_list = _convert_constraint(call, constraint)
        plain_constraints.append(plain_constraint)
        constraint_functions += constraint_list
    return plain_constraints, constraint_functions


def _convert_constraint(call: Call, constraint: object) -> tuple[Any, list[Constraint]]:
    if isinstance(constraint, dict):
        return _convert_dict(call, constraint)
    if not isinstance(constraint, (Bounds, LinearConstraint, NonlinearConstraint)):
        return constraint, []  # SciPy raises
    plain = copy.copy(constraint)
    plain.lb, plain.ub = to_values(constraint.lb), to_values(constraint.ub)
    if isinstance(constraint, LinearConstraint):
        plain.A = to_values(constraint.A)
        matrix = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
        return plain, _interval_constraints(lambda z, *extra: matrix @ np.ravel(z), constraint.lb, constraint.ub)
    if not isinstance(constraint, NonlinearConstraint):
        return constraint, bounds_to_constraints(constraint)
    plain.fun = wrap_callback(call, constraint.fun)
    if callable(constraint.jac):
        plain.jac = wrap_callback(call, constraint.jac)
    return plain, _interval_constraints(lambda z, *extra: constraint.fun(z), constraint.lb, constraint.ub)


def wrap_callback(call: Call, function: Callable[..., Any]) -> Any:
    """Wrap a function of a constraint as a `Callback` of the call."""
    callback = Callback(function)
    call.other_callbacks.append(callback)
    return callback


def _convert_dict(call: Call, constraint: dict[str, Any]) -> tuple[Any, list[Constraint]]:
    extra_arguments = tuple(constraint.get("args", ()))
    plain = {**constraint, "fun": wrap_callback(call, constraint["fun"]), "args": to_values(extra_arguments)}
    call.has_node_argument = call.has_node_argument or has_active_node(extra_arguments)
    if callable(constraint.get("jac")):
        plain["jac"] = wrap_callback(call, constraint["jac"])
    is_equation = str(constraint.get("type")).lower() == "eq"
    return plain, [Constraint(lambda z, *extra: constraint["fun"](z, *extra_arguments), is_equation)]


def _interval_constraints(function: Callable[..., Any], low: object, high: object) -> list[Constraint]:
    """Return the constraints ``low <= function(x) <= high``; where the ends are equal, an equation."""
    ends = np.broadcast_arrays(np.asarray(to_values(low), float), np.asarray(to_values(high), float))
    is_equal = ends[0] == ends[1]
    constraints = []
    if is_equal.any():
        constraints.append(Constraint(_one_sided_constraint(function, low, 1.0, is_equal), True))
    for side, end, sign in ((low, ends[0], 1.0), (high, ends[1], -1.0)):
        is_finite = np.isfinite(end) & ~is_equal
        if is_finite.any():
            constraints.append(Constraint(_one_sided_constraint(function, side, sign, is_finite), False))
    return constraints


def _one_sided_constraint(function: Callable[..., Any], end: object, sign: float, is_selected: Array) -> Any:
    def distance(z: object, *extra: object) -> Any:
        numbers = np.ravel(stack_nested(function(z, *extra)))
        mask = np.broadcast_to(is_selected, numbers.shape)
        return sign * (numbers - np.broadcast_to(stack_nested(end), numbers.shape))[mask]

    return distance
