"""Linear programs and bounded least squares: the free variables solve linear equations, which are recorded.

Unless the solution is degenerate, the set of active constraints is constant nearby; see `optimality_conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.graph import stack_nested, to_values
from compgraph.interception import unpatched
from compgraph.scipy import pin_value

from ..solver_calls import Call, has_active_node, piecewise_constant, with_node_fields

Function = Callable[..., Any]
TOLERANCE = 1e-9  # relative to the compared numbers


def _degeneracy_error(name: str, reason: str) -> ValueError:
    return ValueError(f"{name}: {reason}, so the solution has a corner or is not unique, and has no derivative. Perturb the data")


# ------------------------------------------------------------------------------------------ least squares


def nnls(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.nnls``."""
    call = Call(scipy.optimize.nnls, args, kwargs, "", node_parameters="A b")
    a, b = (stack_nested(call.user_arguments[name]) for name in "Ab")
    call.arguments.update(A=to_values(a), b=to_values(b))
    x, norm = call()
    node = _solve_bounded("nnls", a, b, x, np.zeros(x.size), np.full(x.size, np.inf))
    residual = stack_nested(a) @ node - b
    return node, pin_value(np.sqrt(np.sum(residual**2)), norm) if norm > 0 else norm


def _solve_bounded(name: str, a: NDArray[Any], b: NDArray[Any], x: Array, low: Array, high: Array) -> Any:
    """Return the x between bounds at which ``norm(a @ x - b)`` is least, by the normal equations of the free variables.

    The multipliers of the bounds are the gradient, which points away from them (C. L. Lawson and R. J. Hanson, *Solving Least
    Squares Problems*, 1974, ch. 23).
    """
    plain_a, plain_b = np.asarray(to_values(a), float), np.asarray(to_values(b), float)
    ends = np.asarray(to_values(low), float), np.asarray(to_values(high), float)
    slope = plain_a.T @ (plain_a @ x - plain_b)
    scale = np.linalg.norm(plain_a, axis=0) * max(float(np.linalg.norm(plain_b)), 1e-300)
    magnitude = np.maximum(1.0, np.abs(x))
    at_low, at_high = x - ends[0] <= TOLERANCE * magnitude, ends[1] - x <= TOLERANCE * magnitude
    is_free = ~(at_low | at_high)
    if np.any(~is_free & (np.where(at_low, slope, -slope) <= TOLERANCE * scale) & (ends[0] < ends[1])):
        raise _degeneracy_error(name, "an element of the solution is at its bound with a multiplier of 0")
    if np.any(np.abs(slope[is_free]) > 1e-3 * scale[is_free]):
        raise RuntimeError(f"{name}: the solver's result is not a solution, so it has no derivative. Use smaller tolerances")
    free_indices, fixed_indices = np.flatnonzero(is_free), np.flatnonzero(~is_free)
    parts, order = [], np.concatenate([free_indices, fixed_indices])
    fixed_values = np.where(
        at_low[fixed_indices], np.broadcast_to(low, x.shape)[fixed_indices], np.broadcast_to(high, x.shape)[fixed_indices]
    )
    if free_indices.size:
        rhs = b - a[:, fixed_indices] @ fixed_values if fixed_indices.size else b
        columns = a[:, free_indices]
        if np.linalg.matrix_rank(plain_a[:, free_indices]) < free_indices.size:
            raise _degeneracy_error(name, "the columns of the free variables are dependent")
        parts.append(np.linalg.solve(columns.T @ columns, columns.T @ rhs))
    if fixed_indices.size:
        parts.append(fixed_values)
    return piecewise_constant(pin_value(np.concatenate(parts)[np.argsort(order)], x), a, b)


def lsq_linear(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.lsq_linear``."""
    call = Call(scipy.optimize.lsq_linear, args, kwargs, "", node_parameters="A b bounds")
    a, b = (stack_nested(call.user_arguments[name]) for name in "Ab")
    if not isinstance(a, (np.ndarray, list, tuple)):
        raise TypeError("lsq_linear: with nodes, the matrix must be an array. Pass A.toarray()")
    bounds = call.arguments.get("bounds", (-np.inf, np.inf))
    low, high = (bounds.lb, bounds.ub) if isinstance(bounds, scipy.optimize.Bounds) else map(stack_nested, bounds)
    call.arguments.update(A=to_values(a), b=to_values(b), bounds=(to_values(low), to_values(high)))
    scipy_result = call()
    a, b = np.atleast_2d(a), np.atleast_1d(b)
    n = scipy_result.x.size
    x = _solve_bounded("lsq_linear", a, b, scipy_result.x, np.broadcast_to(low, (n,)), np.broadcast_to(high, (n,)))
    residual = a @ x - b
    return with_node_fields(
        scipy_result,
        {"x": x, "cost": pin_value(0.5 * np.sum(residual**2), scipy_result.cost), "fun": pin_value(residual, scipy_result.fun)},
    )


# ---------------------------------------------------------------------------------------- linear and integer programs


def linprog(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.linprog``."""
    names = "c A_ub b_ub A_eq b_eq bounds"
    call = Call(scipy.optimize.linprog, args, kwargs, "", node_parameters=names)
    problem_data = {name: stack_nested(call.arguments.get(name)) for name in names.split()[:-1]}
    problem_data["bounds"] = call.arguments.get("bounds", (0, None))
    for name in names.split():
        if name in call.arguments:
            call.arguments[name] = to_values(problem_data[name])
    scipy_result = call()
    if not call.depends_on_nodes or scipy_result.x is None:
        return scipy_result
    if np.any(call.arguments.get("integrality")) and any(has_active_node(problem_data[name]) for name in names.split()[1:]):
        raise TypeError("linprog: with integrality= only c= can be a node. Fix the integers, and solve for the other variables")
    c = problem_data["c"]
    if not any(has_active_node(problem_data[name]) for name in names.split()[1:]):  # the vertex is constant
        _require_unique(call, scipy_result)
        fields: dict[str, Any] = {name: piecewise_constant(scipy_result[name], c) for name in ("x", "slack", "con")}
        return with_node_fields(
            scipy_result, {**fields, "fun": pin_value(np.sum(np.ravel(c) * scipy_result.x), scipy_result.fun)}
        )
    x = _solve_vertex(problem_data, scipy_result)
    fields = {"x": x, "fun": pin_value(np.sum(np.ravel(c) * x), scipy_result.fun)}
    for field, a, b in (("slack", "A_ub", "b_ub"), ("con", "A_eq", "b_eq")):
        value = scipy_result[field]
        fields[field] = (
            value if problem_data[a] is None else pin_value(np.ravel(problem_data[b]) - _dense(problem_data[a]) @ x, value)
        )
    return with_node_fields(scipy_result, fields)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.atleast_2d(matrix)


def _require_unique(call: Call, scipy_result: Any) -> None:
    """Raise if several vertices are optimal: there ``fun``, whose derivative with respect to c is x, has a corner."""
    marginals = [np.ravel(scipy_result[name].marginals) for name in ("lower", "upper", "ineqlin") if name in scipy_result]
    slacks = [np.ravel(scipy_result[name].residual) for name in ("lower", "upper", "ineqlin") if name in scipy_result]
    if not marginals or np.any(call.arguments.get("integrality")):
        return  # older methods and integer programs have no marginals
    num_active = np.sum(np.abs(np.concatenate(marginals)) > TOLERANCE) + scipy_result.con.size
    if (
        num_active < scipy_result.x.size
        and np.sum(np.concatenate(slacks) <= TOLERANCE) + scipy_result.con.size >= scipy_result.x.size
    ):
        raise _degeneracy_error("linprog", "several vertices are optimal")


def _solve_vertex(problem_data: dict[str, Any], scipy_result: Any) -> Any:
    """Solve the active constraints for the vertex: as many as unknowns, each with a nonzero multiplier."""
    n = scipy_result.x.size
    low, high = _lower_and_upper(problem_data["bounds"], n)
    groups = [(np.eye(n), low, "lower"), (np.eye(n), high, "upper")]
    if problem_data["A_ub"] is not None:
        groups.append((_dense(problem_data["A_ub"]), np.ravel(problem_data["b_ub"]), "ineqlin"))
    rows, ends = [], []
    for matrix, end, name in groups:
        has_multiplier = np.abs(np.ravel(scipy_result[name].marginals)) > TOLERANCE
        is_tight = np.ravel(scipy_result[name].residual) <= TOLERANCE * np.maximum(1.0, np.max(np.abs(scipy_result.x)))
        if name == "upper":  # equal bounds are one equation, in the group of the lower ones
            is_equal = np.asarray(to_values(low) == to_values(high))
            is_tight, has_multiplier = is_tight & ~is_equal, has_multiplier & ~is_equal
        if name == "lower":
            has_multiplier = has_multiplier | np.asarray(to_values(low) == to_values(high))
        if np.any(is_tight & ~has_multiplier):
            raise _degeneracy_error("linprog", "an active constraint has a multiplier of 0")
        if has_multiplier.any():
            rows.append(matrix[has_multiplier])
            ends.append(end[has_multiplier])
    if problem_data["A_eq"] is not None:
        rows.append(_dense(problem_data["A_eq"]))
        ends.append(np.ravel(problem_data["b_eq"]))
    plain_rows = [np.asarray(to_values(r)) for r in rows]
    if sum(len(r) for r in plain_rows) != n or np.linalg.matrix_rank(np.concatenate(plain_rows)) < n:
        raise _degeneracy_error(
            "linprog", "the solution is not a vertex, where as many constraints as unknowns hold as equations"
        )
    return pin_value(np.linalg.solve(np.concatenate(rows), np.concatenate(ends)), scipy_result.x)


def _lower_and_upper(bounds: Sequence[Any], n: int) -> tuple[Any, Any]:
    """Return the lower and the upper bounds; infinite for missing ones."""
    if isinstance(bounds, np.ndarray):
        ends: Any = np.broadcast_to(bounds, (n, 2))
        return ends[:, 0], ends[:, 1]
    if bounds is None:
        bounds = (0, None)
    is_one_pair = len(bounds) == 2 and not any(isinstance(b, (list, tuple)) for b in bounds)
    pairs = [tuple(bounds)] * n if is_one_pair else [tuple(b) for b in bounds]
    if len(pairs) == 1:
        pairs = pairs * n
    low = [-np.inf if a is None else a for a, _ in pairs]
    high = [np.inf if b is None else b for _, b in pairs]
    ends = [stack_nested(end) if has_active_node(end) else np.asarray(end) for end in (low, high)]
    return ends[0], ends[1]


def milp(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.milp``: differentiable in the cost; the solution is piecewise constant."""
    call = Call(scipy.optimize.milp, args, kwargs, "", node_parameters="c")
    c = stack_nested(call.user_arguments["c"])
    call.arguments["c"] = to_values(c)
    if has_active_node(call.user_arguments.get("bounds")) or has_active_node(call.user_arguments.get("constraints")):
        raise TypeError("milp: bounds= and constraints= cannot contain nodes. Fix the integers, and use scipy.optimize.linprog")
    scipy_result = call()
    if not has_active_node(c) or scipy_result.x is None:
        return scipy_result
    return with_node_fields(
        scipy_result,
        {"x": piecewise_constant(scipy_result.x, c), "fun": pin_value(np.sum(np.ravel(c) * scipy_result.x), scipy_result.fun)},
    )


def isotonic_regression(y: object, *, weights: object = None, increasing: bool = True) -> Any:
    """``scipy.optimize.isotonic_regression``: the mean of each block."""
    y, weights = np.atleast_1d(stack_nested(y)), None if weights is None else np.atleast_1d(stack_nested(weights))
    scipy_function = unpatched(scipy.optimize.isotonic_regression)
    scipy_result = scipy_function(to_values(y), weights=to_values(weights), increasing=increasing)
    starts = scipy_result.blocks[:-1]
    w = np.ones(y.shape[0]) if weights is None else weights
    excess = np.cumsum(to_values(w) * (to_values(y) - scipy_result.x))  # zero only at the end of each block
    inside = np.delete(excess, scipy_result.blocks[1:] - 1)
    tolerance = TOLERANCE * float(np.sum(np.abs(to_values(w) * to_values(y))))
    if np.any(np.diff(scipy_result.x[starts]) == 0) or np.any(np.abs(inside) <= tolerance):
        raise _degeneracy_error("isotonic_regression", "neighboring blocks have the same height")
    totals = np.add.reduceat(w, starts)
    means = np.add.reduceat(w * y, starts) / totals
    x = np.repeat(means, np.diff(scipy_result.blocks))
    return with_node_fields(
        scipy_result,
        {"x": pin_value(x, scipy_result.x), "weights": pin_value(totals, scipy_result.weights), "blocks": scipy_result.blocks},
    )
