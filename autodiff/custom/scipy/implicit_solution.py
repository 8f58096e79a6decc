"""The implicit function theorem for functions that capture nodes: the result of a solver as a node.

If ``g(x, p) = 0`` defines x as a function of p, then ``dx/dp = -(dg/dx)^-1 dg/dp``, where p are the arguments that are nodes and
the captured nodes. Both modes and all orders (A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008, ch. 15).

A solver ends near the solution: the value is the solver's, and derivatives are those at the solution itself, which a few Newton
steps reach. If they diverge, there is no solution, and no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from compgraph.bind import attach
from compgraph.context import NoGraph, is_recording, recording_on
from compgraph.graph import stack_nested, to_values
from compgraph.storage import memory_of
from compgraph.values import INERT, Value, describe, is_plain_array, require_unbatched, save_operand

from ...forward import TangentNode
from ...reverse import collect, connected_zeros, owned_arrays, sweep
from ..call import Opaque, has_node, require_same
from ..closure import Closure
from ..implicit import jacobian_of

Residual = Callable[[Sequence[Any]], Any]
Verify = Callable[[Any], object]
STEPS = 6  # Newton steps; each doubles the number of digits
FAR = 1e-2  # how far from what a solver found, relative to its size, the solution may be

_functions: dict[str, Opaque] = {}


def solution(
    name: str, residual: Residual, x: Any, leaves: Sequence[Any], again: Callable[[list[Any]], Any], verify: Verify | None = None
) -> Any:
    """Return the result of a solver as a function of everything that it depends on.

    Parameters
    ----------
    name : str
        The solver, for messages and as the name of the operation.
    residual : callable
        A function of a list, x and the leaves: an array with as many numbers as x, which are zero at the solution.
    x : array
        The solver's result.
    leaves : sequence
        Arguments of the user's function, some of which may be nodes.
    again : callable
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
    flat = _flat(residual)
    closure = Closure(name, flat, [x, *leaves], [0, *[i + 1 for i in positions]])
    require_unbatched(name, *leaves, *closure.results)
    if closure.level:
        return _with_tangents(name, residual, x, leaves, again, verify, closure.results[0])
    operands = (*[leaves[i] for i in positions], *closure.closed)
    if not operands or not is_recording():
        return x
    for node in closure.closed:
        if memory_of(node):
            raise TypeError(
                f"{name}: the function uses the {describe(node)} from outside, which was written into; pass it by args=, or use "
                "a copy (np.copy)"
            )
    if name not in _functions:
        _functions[name] = Opaque(name)
    call = Solution(name, flat, x, leaves, positions, closure, again, verify)
    return attach(x, _functions[name], operands, {"call": call})


def _flat(residual: Residual) -> Residual:
    return lambda elements: np.ravel(stack_nested(residual(elements)))


def _with_tangents(name: str, residual: Residual, x: Any, leaves: Sequence[Any], again: Any, verify: Any, like: Any) -> Any:
    """The same one level down, and its tangent: ``-(dg/dx)^-1`` times that of the residual where x stands still."""
    level = like.level

    def lower(elements: Sequence[Any]) -> Any:
        return _primal(_flat(residual)(elements), level)

    below = [_primal(leaf, level) for leaf in leaves]
    base = solution(name, lower, x, below, again, verify)
    at = base + polishing(name, lower, x, list(map(to_values, below)), verify)
    moved = _flat(residual)([at, *leaves]).tangent
    matrix = regular(name, jacobian_of(lambda z: lower([z, *below]), at, ()))
    tangent = np.linalg.solve(matrix, -np.expand_dims(moved, -1))[..., 0]
    return like.like(base, np.reshape(tangent, (*moved.shape[:-1], *x.shape)) if x.ndim or moved.ndim > 1 else tangent[0])


def _primal(value: Any, level: int) -> Any:
    return value.primal if isinstance(value, TangentNode) and value.level == level else value


def polishing(name: str, residual: Residual, x: Any, leaves: Sequence[Any], verify: Verify | None, before: Any = None) -> Any:
    """Return the Newton steps from the solver's result to the solution, on plain numbers.

    `before` is the residual at the solver's result, if known; the function must return it again.
    """
    with NoGraph():
        at, size = np.asarray(x), float(np.max(np.abs(x), initial=1.0))
        floor = 4 * np.finfo(np.result_type(at.dtype, np.float32)).eps * np.max(np.abs(x), initial=0.0)
        last = np.inf
        for _ in range(STEPS):
            value = np.asarray(to_values(residual([at[()], *leaves])))
            matrix = regular(name, to_values(jacobian_of(lambda z: residual([z, *leaves]), at[()], ())))
            if before is not None:
                require_same(name, np.zeros(value.shape), np.linalg.solve(matrix, value - before), size)
                before = None
            step = np.linalg.solve(matrix, -value)
            length = float(np.max(np.abs(step)))
            if not length <= FAR * size:
                raise RuntimeError(
                    f"{name}: the solver's result is not a solution (the next Newton step has length {length:.3g}), so it has "
                    "no derivative; give it smaller tolerances, more iterations or another start"
                )
            if length >= last:
                break  # no more than rounding
            at, last = at + np.reshape(step, at.shape), length
            if length <= floor:
                break
        if verify is not None:
            verify(at[()])
        return (at - x)[()]


def regular(name: str, matrix: Any) -> Any:
    """A Jacobian with respect to the unknowns that can be inverted."""
    plain = np.asarray(to_values(matrix))
    if not np.all(np.isfinite(plain)) or np.linalg.cond(plain) > 0.1 / np.finfo(plain.dtype).eps:
        raise np.linalg.LinAlgError(f"{name}: the Jacobian is singular at the solution, which has no derivative there")
    return matrix


class Solution:
    """One solution: what its derivative takes."""

    def __init__(
        self, name: str, residual: Residual, x: Any, leaves: Any, positions: list[int], closure: Closure, again: Any, verify: Any
    ) -> None:
        self.name, self.residual, self.closed, self.again, self.positions = name, residual, closure.closed, again, positions
        self._first = to_values([x, *leaves]), to_values(closure.results[0])
        self.verify = verify
        self.leaves = [None if i in positions else leaf for i, leaf in enumerate(leaves)]
        self.dtype, self.shape = x.dtype, x.shape
        self._kept: Any = None

    def _given(self, operands: Sequence[Any]) -> list[Any]:
        """The leaves, with operands in their places."""
        leaves = list(self.leaves)
        for i, operand in zip(self.positions, operands, strict=False):
            leaves[i] = operand
        for node, operand in zip(self.closed, operands[len(self.positions) :], strict=True):
            same = operand is node or operand is node.raw_value
            if not same and (isinstance(operand, Value) or not np.array_equal(operand, node.raw_value, equal_nan=True)):
                np.asarray(operand)  # raises if it is a variable that was updated
                raise ValueError(f"{self.name}: the {describe(node)}, used from outside, has changed since; pass it by args=")
        return leaves

    def compute(self, *operands: Any) -> Any:
        """The solution for other operands."""
        operand_values = operands if self.closed else [np.asarray(operand)[()] for operand in operands]
        result = np.asarray(self.again(self._given(operand_values)))
        return result.astype(self.dtype, copy=False).reshape(self.shape)[()]

    def _there(self, out: Any, leaves: list[Any]) -> Any:
        """The solution itself, at which derivatives of `out` are taken."""
        plain = to_values([out, *leaves])
        key = [*plain, *self.closed]
        before = [] if self._kept is None else self._kept[0]
        if len(before) != len(key) or any(a is not b for a, b in zip(before, key, strict=True)):
            is_first = all(map(np.array_equal, plain, self._first[0]))
            before = self._first[1] if is_first else None
            self._kept = key, polishing(self.name, self.residual, plain[0], plain[1:], self.verify, before)
        return out + self._kept[1]

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of the operands: those that ``-(dg/dx)^-T adjoint`` has through the residual."""
        leaves = self._given(operands)
        live = has_node(adjoint, out, *operands)
        with nullcontext() if live else NoGraph():
            at = self._there(out, leaves)
            matrix = regular(self.name, jacobian_of(lambda z: self.residual([z, *leaves]), at, ()))
            weights = np.linalg.solve(np.transpose(matrix), -np.ravel(adjoint))
            closure = Closure(self.name, self.residual, [at, *leaves], [0, *[i + 1 for i in self.positions]])
        (result,) = closure.results
        wanted = [*closure.inputs[1:], *self.closed]
        nodes = collect(result, stop=[*closure.inputs, *self.closed])
        if not live:
            weights = to_values(weights)
            cotangents = owned_arrays(sweep(nodes, result, weights, set(wanted), False, frozenset(wanted)), wanted, weights)
            return [cotangents[x] for x in wanted]
        with recording_on():
            cotangents = sweep(nodes, result, np.ones_like(result) * weights, set(wanted), True, frozenset(wanted))
            return [cotangents[x] if x in cotangents else connected_zeros(x, weights) for x in wanted]
