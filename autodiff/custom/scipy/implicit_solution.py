"""The implicit function theorem for functions that capture nodes: the result of a solver as a node.

If ``g(x, p) = 0`` defines x as a function of p, then ``dx/dp = -(dg/dx)^-1 dg/dp``, where p are the arguments that are nodes and
the captured nodes. Both modes use it, for all orders (A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008,
ch. 15).

The value is the solver's result. Derivatives are taken at the exact solution, which a few Newton steps reach from there. If the
steps diverge, there is no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.bind import attach
from compgraph.context import NoGraph, is_recording, recording_on
from compgraph.graph import stack_nested, to_values
from compgraph.storage import memory_of
from compgraph.values import INERT, Value, describe, is_plain_array, require_unbatched, save_operand

from ...forward import TangentNode
from ...reverse import collect, connected_zeros, owned_arrays, sweep
from ..call import CallFunction, has_node, require_same
from ..closure import TracedFunction
from ..implicit import jacobian_of

Residual = Callable[[Sequence[Any]], Any]
Verify = Callable[[Any], object]
NEWTON_STEPS = 6  # the maximum; each step doubles the number of digits
MAX_RELATIVE_STEP = 1e-2  # the greatest distance from the solver's result to the solution, relative to its size

_functions: dict[str, CallFunction] = {}


def solution(
    name: str,
    residual: Residual,
    x: Array,
    leaves: Sequence[Any],
    solve_again: Callable[[list[Any]], Any],
    verify: Verify | None = None,
) -> Any:
    """Return the result of a solver, differentiable in the leaves and captured nodes that it depends on.

    Parameters
    ----------
    name : str
        The solver, for messages and as the name of the operation.
    residual : callable
        A function of the list of x and the leaves. It returns an array with as many numbers as x, zero at the solution.
    x : array
        The solver's result.
    leaves : sequence
        Arguments of the user's function, nodes or plain values.
    solve_again : callable
        Solves for other leaves.
    verify : callable, optional
        Checks the solution itself, and raises if it has no derivative.

    Returns
    -------
    array or Node
        With the value of `x`; `x` itself if nothing is a node.
    """
    if not np.size(x):
        return x
    leaves = [save_operand(leaf) if is_plain_array(leaf) else leaf for leaf in leaves]
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Value) and type(leaf) not in INERT]
    flat = _flatten_residual(residual)
    closure = TracedFunction(name, flat, [x, *leaves], [0, *[i + 1 for i in positions]])
    require_unbatched(name, *leaves, *closure.results)
    if closure.level:
        return _solve_with_tangents(name, residual, x, leaves, solve_again, verify, closure.results[0])
    operands = (*[leaves[i] for i in positions], *closure.captured)
    if not operands or not is_recording():
        return x
    for node in closure.captured:
        if memory_of(node):
            raise TypeError(
                f"{name}: the function captures the {describe(node)}, which was written into. Pass it by args=, or use a copy "
                "(np.copy)"
            )
    if name not in _functions:
        _functions[name] = CallFunction(name)
    call = SolutionCall(name, flat, x, leaves, positions, closure, solve_again, verify)
    return attach(x, _functions[name], operands, {"call": call})


def _flatten_residual(residual: Residual) -> Residual:
    return lambda elements: np.ravel(stack_nested(residual(elements)))


def _solve_with_tangents(
    name: str,
    residual: Residual,
    x: Array,
    leaves: Sequence[Any],
    solve_again: Callable[..., Any],
    verify: Callable[..., Any] | None,
    tracer: Any,
) -> Any:
    """Solve on primals of this level; the tangent is ``-(dg/dx)^-1`` times that of the residual at constant x."""
    level = tracer.level

    def primal_residual(elements: Sequence[Any]) -> Any:
        return _primal(_flatten_residual(residual)(elements), level)

    primal_leaves = [_primal(leaf, level) for leaf in leaves]
    base = solution(name, primal_residual, x, primal_leaves, solve_again, verify)
    point = base + polish(name, primal_residual, x, list(map(to_values, primal_leaves)), verify)
    residual_tangent = _flatten_residual(residual)([point, *leaves]).tangent
    matrix = require_regular(name, jacobian_of(lambda z: primal_residual([z, *primal_leaves]), point, ()))
    tangent = np.linalg.solve(matrix, -np.expand_dims(residual_tangent, -1))[..., 0]
    return tracer.like(
        base, np.reshape(tangent, (*residual_tangent.shape[:-1], *x.shape)) if x.ndim or residual_tangent.ndim > 1 else tangent[0]
    )


def _primal(value: object, level: int) -> Any:
    return value.primal if isinstance(value, TangentNode) and value.level == level else value


def polish(
    name: str,
    residual: Residual,
    x: Array,
    leaves: Sequence[Any],
    verify: Verify | None,
    earlier_residual: NDArray[Any] | None = None,
) -> Any:
    """Return the sum of the Newton steps from the solver's result to the solution, on plain numbers.

    `earlier_residual` is the residual at the solver's result, if known; the function must return it again.
    """
    with NoGraph():
        point, size = np.asarray(x), float(np.max(np.abs(x), initial=1.0))
        floor = 4 * np.finfo(np.result_type(point.dtype, np.float32)).eps * np.max(np.abs(x), initial=0.0)
        last_length = np.inf
        for _ in range(NEWTON_STEPS):
            value = np.asarray(to_values(residual([point[()], *leaves])))
            matrix = require_regular(name, to_values(jacobian_of(lambda z: residual([z, *leaves]), point[()], ())))
            if earlier_residual is not None:
                require_same(name, np.zeros(value.shape), np.linalg.solve(matrix, value - earlier_residual), size)
                earlier_residual = None
            step = np.linalg.solve(matrix, -value)
            length = float(np.max(np.abs(step)))
            if not length <= MAX_RELATIVE_STEP * size:
                raise RuntimeError(
                    f"{name}: the solver's result is not a solution (the next Newton step has length {length:.3g}), so it has "
                    "no derivative. Use smaller tolerances, more iterations or another start"
                )
            if length >= last_length:
                break  # the steps consist of rounding errors
            point, last_length = point + np.reshape(step, point.shape), length
            if length <= floor:
                break
        if verify is not None:
            verify(point[()])
        return (point - x)[()]


def require_regular(name: str, matrix: NDArray[Any]) -> Any:
    """Return the Jacobian with respect to the unknowns; raise if it is singular."""
    plain = np.asarray(to_values(matrix))
    if not np.all(np.isfinite(plain)) or np.linalg.cond(plain) > 0.1 / np.finfo(plain.dtype).eps:
        raise np.linalg.LinAlgError(f"{name}: the Jacobian is singular at the solution, so it has no derivative")
    return matrix


class SolutionCall:
    """One call of a solver, with the data of its derivative."""

    def __init__(
        self,
        name: str,
        residual: Residual,
        x: Array,
        leaves: list[Any],
        positions: list[int],
        closure: TracedFunction,
        solve_again: Callable[..., Any],
        verify: Callable[..., Any] | None,
    ) -> None:
        self.name, self.residual, self.solve_again, self.verify = name, residual, solve_again, verify
        self.captured, self.positions = closure.captured, positions
        self._first = to_values([x, *leaves]), to_values(closure.results[0])  # the solver's result, and the residual there
        self.leaves = [None if i in positions else leaf for i, leaf in enumerate(leaves)]
        self.dtype, self.shape = x.dtype, x.shape
        self._cached_newton_step: Any = None

    def _fill_leaves(self, operands: Sequence[Any]) -> list[Any]:
        """Return the leaves with the operands inserted."""
        leaves = list(self.leaves)
        for i, operand in zip(self.positions, operands, strict=False):
            leaves[i] = operand
        for node, operand in zip(self.captured, operands[len(self.positions) :], strict=True):
            is_same = operand is node or operand is node.raw_value
            if not is_same and (isinstance(operand, Value) or not np.array_equal(operand, node.raw_value, equal_nan=True)):
                np.asarray(operand)  # raises if it is a variable that was updated
                raise ValueError(f"{self.name}: the captured {describe(node)} has changed since the call. Pass it by args=")
        return leaves

    def compute(self, *operands: object) -> Any:
        """Solve for other operands."""
        operand_values = operands if self.captured else [np.asarray(operand)[()] for operand in operands]
        result = np.asarray(self.solve_again(self._fill_leaves(operand_values)))
        return result.astype(self.dtype, copy=False).reshape(self.shape)[()]

    def _exact_solution(self, out: object, leaves: list[Any]) -> Any:
        """Return the exact solution, at which derivatives of `out` are taken."""
        plain = to_values([out, *leaves])
        key = [*plain, *self.captured]
        cached_key = [] if self._cached_newton_step is None else self._cached_newton_step[0]
        if len(cached_key) != len(key) or any(a is not b for a, b in zip(cached_key, key, strict=True)):
            is_solver_point = all(map(np.array_equal, plain, self._first[0]))
            earlier_residual = self._first[1] if is_solver_point else None
            self._cached_newton_step = key, polish(self.name, self.residual, plain[0], plain[1:], self.verify, earlier_residual)
        return out + self._cached_newton_step[1]

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the operands: a sweep through the residual, seeded with ``-(dg/dx)^-T cotangent``."""
        leaves = self._fill_leaves(operands)
        is_recorded = has_node(cotangent, out, *operands)
        with nullcontext() if is_recorded else NoGraph():
            point = self._exact_solution(out, leaves)
            matrix = require_regular(self.name, jacobian_of(lambda z: self.residual([z, *leaves]), point, ()))
            adjoint = np.linalg.solve(np.transpose(matrix), -np.ravel(cotangent))
            closure = TracedFunction(self.name, self.residual, [point, *leaves], [0, *[i + 1 for i in self.positions]])
        (result,) = closure.results
        targets = [*closure.inputs[1:], *self.captured]
        nodes = collect(result, stop=[*closure.inputs, *self.captured])
        if not is_recorded:
            adjoint = to_values(adjoint)
            cotangents = owned_arrays(sweep(nodes, result, adjoint, set(targets), False, frozenset(targets)), targets, adjoint)
            return [cotangents[x] for x in targets]
        with recording_on():
            cotangents = sweep(nodes, result, np.ones_like(result) * adjoint, set(targets), True, frozenset(targets))
            return [cotangents[x] if x in cotangents else connected_zeros(x, adjoint) for x in targets]
