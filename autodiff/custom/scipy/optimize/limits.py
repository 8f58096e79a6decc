"""SciPy's bounds and constraints, as numbers that are not negative, and as SciPy takes them: without nodes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from compgraph.graph import stack_nested, to_values

from ..callbacks import Call, Callback, has_node
from .extrema import Constraint


def plain_bounds(bounds: Any) -> Any:
    """Bounds without nodes."""
    if not isinstance(bounds, Bounds):
        return to_values(bounds) if not isinstance(bounds, zip) else list(bounds)
    made = copy.copy(bounds)
    made.lb, made.ub = to_values(bounds.lb), to_values(bounds.ub)
    return made


def of_bounds(bounds: Any) -> list[Constraint]:
    """The constraints that bounds are: pairs for each number, or an object of SciPy's."""
    if bounds is None:
        return []
    if isinstance(bounds, Bounds):
        return _of_ends(bounds.lb, bounds.ub)
    pairs = [tuple(pair) for pair in bounds]
    return _of_ends([low for low, _ in pairs], [high for _, high in pairs])


def of_pair(bounds: Any) -> list[Constraint]:
    """The constraints of ``(low, high)``, of numbers or arrays."""
    return of_bounds(bounds) if isinstance(bounds, Bounds) else _of_ends(*bounds)


def _of_ends(low: Any, high: Any) -> list[Constraint]:
    """The constraints of lower and upper ends, of which those that are None or infinite say nothing."""
    ends = []
    for end, nothing in ((low, -np.inf), (high, np.inf)):
        if isinstance(end, (list, tuple)):
            end = stack_nested([nothing if part is None else part for part in end])
        ends.append(nothing if end is None else stack_nested(end))
    return _between(lambda z, *extra: z, *ends)


def constraints_of(call: Call, constraints: Any) -> tuple[Any, list[Constraint]]:
    """What SciPy is given for constraints, and what they are."""
    several = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    plain: list[Any] = []
    found: list[Constraint] = []
    for constraint in several:
        one, those = _one(call, constraint)
        plain.append(one)
        found += those
    return plain, found


def _one(call: Call, constraint: Any) -> tuple[Any, list[Constraint]]:
    if isinstance(constraint, dict):
        return _dictionary(call, constraint)
    if not isinstance(constraint, (Bounds, LinearConstraint, NonlinearConstraint)):
        return constraint, []  # SciPy says what is wrong with it
    plain = copy.copy(constraint)
    plain.lb, plain.ub = to_values(constraint.lb), to_values(constraint.ub)
    if isinstance(constraint, LinearConstraint):
        plain.A = to_values(constraint.A)
        matrix = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
        return plain, _between(lambda z, *extra: matrix @ np.ravel(z), constraint.lb, constraint.ub)
    if not isinstance(constraint, NonlinearConstraint):
        return constraint, of_bounds(constraint)
    plain.fun = watched(call, constraint.fun)
    if callable(constraint.jac):
        plain.jac = watched(call, constraint.jac)
    return plain, _between(lambda z, *extra: constraint.fun(z), constraint.lb, constraint.ub)


def watched(call: Call, function: Any) -> Any:
    """A function of a constraint as SciPy is to call it: with plain numbers, and seen to use nodes."""
    wrapped = Callback(function)
    call.others.append(wrapped)
    return wrapped


def _dictionary(call: Call, constraint: dict[str, Any]) -> tuple[Any, list[Constraint]]:
    further = tuple(constraint.get("args", ()))
    plain = {**constraint, "fun": watched(call, constraint["fun"]), "args": to_values(further)}
    call.holds = call.holds or has_node(further)
    if callable(constraint.get("jac")):
        plain["jac"] = watched(call, constraint["jac"])
    is_equation = str(constraint.get("type")).lower() == "eq"
    return plain, [Constraint(lambda z, *extra: constraint["fun"](z, *further), is_equation)]


def _between(function: Any, low: Any, high: Any) -> list[Constraint]:
    """``low <= function(x) <= high``; where both are the same, an equation."""
    ends = np.broadcast_arrays(np.asarray(to_values(low), float), np.asarray(to_values(high), float))
    equal = ends[0] == ends[1]
    found = []
    if equal.any():
        found.append(Constraint(_side(function, low, 1.0, equal), True))
    for side, end, sign in ((low, ends[0], 1.0), (high, ends[1], -1.0)):
        there = np.isfinite(end) & ~equal
        if there.any():
            found.append(Constraint(_side(function, side, sign, there), False))
    return found


def _side(function: Any, end: Any, sign: float, there: Any) -> Any:
    def distance(z: Any, *extra: Any) -> Any:
        numbers = np.ravel(stack_nested(function(z, *extra)))
        which = np.broadcast_to(there, numbers.shape)
        return sign * (numbers - np.broadcast_to(stack_nested(end), numbers.shape))[which]

    return distance
