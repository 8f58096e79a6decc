"""The kinds of rules and their declaration.

The tangent formulas of most rules follow from their kind:

============  ==========================================================================================
elementwise   the Jacobian is diagonal: the same formula, applied to the tangent
linear        linear in all its operands together: the operation itself, applied to the tangents
multilinear   linear in each operand: the sum over the operands of the operation on the tangent of one and the other operands
reduction     ``out = sum(weight * x)`` to first order: one formula, the weights, serves both modes
gather        ``out = x.ravel()[positions]``: one formula, the positions, serves both modes
general       tangent formulas are declared with the rule, one per operand
============  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Axis, Operand
from compgraph.bind import bind
from compgraph.values import Value

from .broadcasting import restore_axes
from .lazy_cotangents import scatter
from .rule import Formula, Rule, SharedFormulas, VariadicFormulas, declare


def elementwise(opname: str, *formulas: Formula | None) -> Rule:
    """Declare an operation whose Jacobian with respect to each operand is diagonal."""
    return declare(Rule(opname, "elementwise", formulas, formulas))


def linear(opname: str, *formulas: Formula | None, shared: Formula | None = None) -> Rule:
    """Declare an operation that is linear in all its operands together. `shared` is the formula of `SharedFormulas`."""
    return declare(Rule(opname, "linear", SharedFormulas(shared) if shared else formulas, ()).batchable())


def multilinear(opname: str, *formulas: Formula | None, variadic: Formula | None = None) -> Rule:
    """Declare an operation that is linear in each of its operands. `variadic` is the formula of `VariadicFormulas`."""
    return declare(Rule(opname, "multilinear", VariadicFormulas(variadic) if variadic else formulas, ()).batchable())


def reduction(opname: str, *weights: Formula | None, initial: Formula | None = None) -> Rule:
    """Declare a reduction along ``axis`` by its partial derivatives.

    For each operand, ``weights(out, *operands, axis=..., ...)`` returns the partial derivatives of the output with
    respect to its elements, in a form that broadcasts against it, or None if all are one. Here `out` keeps the reduced
    axes with length one. `initial` does the same for the initial value, which is the second operand.
    """
    rule = Rule(opname, "reduction", (), ())
    formula_pairs = [_reduction_formulas(rule, w) if w else (None, None) for w in weights]
    if initial is not None:
        initial_formula = _initial_formula(initial)
        formula_pairs.insert(1, (initial_formula, initial_formula))
    rule.formulas, rule.tangents = [f for f, _ in formula_pairs], [t for _, t in formula_pairs]
    rule.weights = weights
    if initial is not None:
        rule.weights, rule.initial = (weights[0], initial, *weights[1:]), 1
    return declare(rule)


def _initial_formula(weights: Formula) -> Formula:
    """Return the formula of the initial value, for both modes: every element of the result depends on it."""

    def formula(
        g: Operand, out: Array, x: Array, *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        factor = weights(restore_axes(out, x, axis, keepdims), x, *others, axis=axis, **options)
        return np.broadcast_to(g, out.shape) if factor is None else g * np.reshape(factor, out.shape)

    return formula


def _reduction_formulas(rule: Rule, weights: Formula) -> tuple[Formula, Formula]:
    """Return the formula and the tangent formula of a reduced operand."""

    def formula(
        cotangent: object, out: object, x: object, *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        out_with_axes = restore_axes(out, x, axis, keepdims)
        factor = weights(out_with_axes, x, *others, axis=axis, **options)
        cotangent = restore_axes(cotangent, x, axis, keepdims)
        return cotangent if factor is None else cotangent * factor

    def tangent(
        tangent: Array, out: Array, x: NDArray[Any], *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        out_with_axes = restore_axes(out, x, axis, keepdims)
        factor = weights(out_with_axes, x, *others, axis=axis, **options)
        weighted = tangent if factor is None else weigh_tangent(rule, tangent, factor, x, *others, axis=axis, **options)
        return np.sum(weighted, axis=axis, keepdims=bool(keepdims))

    return formula, tangent


def weigh_tangent(rule: Rule, tangent: Array, factor: Any, *operands: object, **options: object) -> Any:
    """Multiply the tangent of a reduced operand by the partial derivatives; unselected elements give zero for any tangent."""
    weighted = tangent * factor
    if not rule.makes_zeros:
        return weighted
    is_selected: Any = factor != 0 if np.ndim(factor) else True
    if rule.selection_mask is not None:
        is_selected = rule.selection_mask(*operands, **options)
    return weighted if is_selected is True else np.where(is_selected, weighted, 0)


def moved_positions(function: Callable[..., Any]) -> Formula:
    """Return positions computed by the operation itself from ``0, 1, 2, ...``, for operations that only move elements."""

    def positions(out: object, x: NDArray[Any], *others: object, **options: object) -> Any:
        return bind(function, (np.arange(math.prod(x.shape)).reshape(x.shape), *others), options)

    return positions


def gather(opname: str, positions: Formula) -> Rule:
    """Declare an operation whose result consists of elements of its first operand and zeros.

    ``positions(out, x, *others, **options)`` returns the position in ``x.ravel()`` of each element of the result, in
    the shape of the result; -1 for a zero.
    """

    def formula(cotangent: Array, out: object, x: Array, *others: object, **options: object) -> Any:
        flat_positions = np.ravel(positions(out, x, *others, **options))
        is_element = flat_positions >= 0
        if isinstance(flat_positions, Value):  # updates of fixed length, which all backends compile
            update_and_index = np.where(is_element, np.ravel(cotangent), 0), np.maximum(flat_positions, 0)
        else:
            update_and_index = np.ravel(cotangent)[is_element], flat_positions[is_element]
        flat = bind(scatter, (np.ravel(x), *update_and_index), {"index_counts": (1,)})
        return np.reshape(flat, x.shape)

    def tangent(tangent: Array, out: object, x: NDArray[Any], *others: object, **options: object) -> Any:
        flat_positions = positions(out, x, *others, **options)
        if not x.size:
            return np.zeros_like(out)
        return np.where(flat_positions >= 0, np.ravel(tangent)[flat_positions], 0)

    rule = Rule(opname, "gather", (formula,), (tangent,))
    rule.positions = positions
    return declare(rule.selects_elements())


def general(opname: str, *formulas: Formula | None, shared: Formula | None = None, fixed: int = 0) -> Rule:
    """Declare an operation of no special kind. `Rule.tangent` sets its tangent formulas. `shared`: see `SharedFormulas`."""
    return declare(Rule(opname, "general", SharedFormulas(shared, fixed) if shared else formulas, ()).batchable())
