"""Many directions through one operation together.

The adjoints, or tangents, of several directions are stacked along a first axis: those of an array of shape ``s`` have
shape ``(count, *s)``. NumPy aligns shapes at their ends, so the formula of an elementwise rule takes them unaided; a
reduction follows from its weights, a gather from its positions; other rules may say how they are batched
(`Rule.batched`). For all the rest each direction is passed by itself, and the results are stacked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.nodes import ConstantNode, Joint, Node, record

from .broadcasting import conform, conform_batch, spread
from .deferred import DEFERRED, scatter
from .registry import Rule, Variadic
from .tangents import push


def pull_batch(rule: Rule, position: int, adjoints: Any, out: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """The contributions of many adjoints to those of one operand, with broadcasting not yet undone.

    Parameters
    ----------
    rule : Rule
        The rule of the operation; it has a formula for the operand.
    position : int
        Which operand.
    adjoints : array_like or Node
        Those of the output, of shape ``(count, *out.shape)``; of an operation with several outputs a tuple of such.
    out, operands, options
        The output, the operands, and the options of the operation.

    Returns
    -------
    array, Node, Scatter or Parts
        The first axis is that of the directions.
    """
    found: Any = NotImplemented
    if rule.batch is not None:
        found = rule.batch[0](position, adjoints, out, *operands, **options)
    elif _is_elementwise(rule):
        found = rule.formulas[position](adjoints, out, *operands, **options)  # type: ignore[misc]
        found = found if np.ndim(found) > out.ndim else NotImplemented  # zeros, whatever the adjoint
    elif rule.weights:
        found = _pull_reduction(rule, position, adjoints, out, *operands, **options)
    elif rule.positions is not None:
        places = rule.positions(out, *operands, **options)
        found = np.reshape(put_at(adjoints, operands[0], places), (adjoints.shape[0], *operands[0].shape))
    return _pull_each(rule, position, adjoints, out, operands, options) if found is NotImplemented else found


def push_batch(rule: Rule, tangents: list[Any], out: Any, function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """The tangents of an output in many directions, from those of the operands.

    Parameters
    ----------
    rule : Rule
        The rule of the operation.
    tangents : list
        For each operand, tangents of shape ``(count, *operand.shape)``, or None where they are zero.
    out, function, operands, options
        The output, the operation, its operands and options.

    Returns
    -------
    array, Node, tuple or None
        The first axis is that of the directions; a tuple for several outputs; None where the tangents are zero.
    """
    found: Any = NotImplemented
    if rule.batch is not None:
        found = rule.batch[1](tangents, out, *operands, **options)
    elif _is_elementwise(rule):
        found = _total(rule.tangents, [None if t is None else padded(t, out.ndim) for t in tangents], out, operands, options)
    elif rule.weights:
        found = _push_reduction(rule, tangents, out, *operands, **options)
    elif rule.positions is not None:
        found = found_at(tangents[0], rule.positions(out, *operands, **options))
    return _push_each(rule, tangents, out, function, operands, options) if found is NotImplemented else found


def _is_elementwise(rule: Rule) -> bool:
    return rule.kind == "elementwise" and rule.formulas.__class__ is not Variadic


def padded(tangents: Any, ndim: int) -> Any:
    """Tangents of an operand with axes of length one after the first, so that it has `ndim` axes besides."""
    missing = ndim + 1 - tangents.ndim
    return np.reshape(tangents, (tangents.shape[0], *[1] * missing, *tangents.shape[1:])) if missing > 0 else tangents


def _total(formulas: Any, tangents: list[Any], out: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is not None and formulas[position] is not None:
            part = formulas[position](tangent, out, *operands, **options)
            if np.ndim(part) <= out.ndim:
                return NotImplemented
            total = part if total is None else total + part
    return total


# ------------------------------------------------------------------------------------------ reductions


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes that are reduced, as they lie in what has an axis of directions before."""
    if not x.ndim:
        return ()
    return tuple([1 + i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))])


def _pull_reduction(
    rule: Rule, position: int, g: Any, out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any
) -> Any:
    weights = rule.weights[position]
    factor = weights(spread(out, x, axis, keepdims), x, *others, axis=axis, **options)  # type: ignore[misc]
    if position == rule.initial:
        return g if factor is None else g * np.reshape(factor, out.shape)
    axes = _axes(x, axis)
    if not keepdims and x.ndim:
        g = np.reshape(g, (g.shape[0], *[1 if i + 1 in axes else n for i, n in enumerate(x.shape)]))
    return g if factor is None else g * factor


def _push_reduction(
    rule: Rule, tangents: list[Any], out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any
) -> Any:
    kept = spread(out, x, axis, keepdims)
    total = None
    for position, tangent in enumerate(tangents):
        weights = rule.weights[position] if tangent is not None else None
        if weights is None:
            continue
        factor = weights(kept, x, *others, axis=axis, **options)
        if position == rule.initial:
            part = padded(tangent, out.ndim)
            part = part if factor is None else part * np.reshape(factor, out.shape)
        else:
            part = padded(tangent, x.ndim)
            part = np.sum(part if factor is None else part * factor, axis=_axes(x, axis), keepdims=bool(keepdims))
        total = part if total is None else total + part
    return total


# ------------------------------------------------------------------------------------------- positions


def found_at(tangents: Any, places: Any) -> Any:
    """In each direction, the elements at the places; 0 where a place is negative."""
    count = tangents.shape[0]
    if not math.prod(tangents.shape[1:]):
        return np.zeros((count, *places.shape), tangents.dtype)
    rows = np.reshape(tangents, (count, math.prod(tangents.shape[1:])))
    return np.where(places >= 0, rows[:, places], 0)


def put_at(adjoints: Any, x: Any, places: Any) -> Any:
    """What `found_at` undoes: adjoints of ``x.ravel()``, each of those given added at its place."""
    places = np.ravel(places)
    there = places >= 0
    count = adjoints.shape[0]
    pieces = np.reshape(adjoints, (count, places.size))
    if isinstance(places, Node) or not there.all():
        pieces, places = pieces[:, there], places[there]
    like = zeros_like_batch((math.prod(x.shape),), np.result_type(x.dtype, adjoints.dtype), count)
    return record(scatter, (like, pieces, slice(None), places), {"layout": (2,)})


def zeros_like_batch(shape: tuple[int, ...], dtype: Any, count: int) -> Any:
    """Zeros that take no memory, for shape and dtype alone."""
    return np.broadcast_to(np.zeros((), dtype), (count, *shape))


def batch_like(node: Any, count: int) -> Any:
    """What deferred adjoints of `count` directions are put together like."""
    return node if node.__class__ is Joint else ConstantNode.hold(zeros_like_batch(node.shape, node.dtype, count))


# -------------------------------------------------------------------------------------------- the rest


def count_of(stacked: Any) -> int:
    """How many directions are stacked; of several outputs, those that have them."""
    first = next(part for part in stacked if part is not None) if isinstance(stacked, (tuple, list)) else stacked
    return int(first.shape[0])


def _direction(stacked: Any, i: int) -> Any:
    if isinstance(stacked, tuple):
        return tuple([None if part is None else part[i] for part in stacked])
    return None if stacked is None else stacked[i]


def _pull_each(rule: Rule, position: int, adjoints: Any, out: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    formula: Any = rule.formulas[position]
    operand = operands[position]
    found = []
    for i in range(count_of(adjoints)):
        contribution = formula(_direction(adjoints, i), out, *operands, **options)
        if contribution.__class__ in DEFERRED:
            contribution = contribution.settle(operand if isinstance(operand, Node) else ConstantNode.hold(operand))
        found.append(conform(contribution, operand))
    return np.stack(found)


def _push_each(rule: Rule, tangents: list[Any], out: Any, function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    given = tuple(operands)
    along = [[_direction(t, i) for t in tangents] for i in range(count_of(tangents))]
    found = [push(rule, one, out, function, given, options) for one in along]
    if isinstance(out, (tuple, list)):
        return tuple([_stacked([part[k] for part in found], out[k]) for k in range(len(out))])
    return _stacked(found, out)


def _stacked(found: list[Any], out: Any) -> Any:
    return None if any(part is None for part in found) else np.stack([conform(part, out) for part in found])


def conform_all(tangents: Any, out: Any, count: int) -> Any:
    """Tangents in the shapes and dtypes of an output, or of several."""
    if isinstance(out, (tuple, list)):
        return tuple([t if t is None else conform_batch(t, part, count) for t, part in zip(tangents, out, strict=True)])
    return conform_batch(tangents, out, count)
