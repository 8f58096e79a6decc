"""A batch of adjoints, or of tangents, through one operation.

The batch axis comes first: adjoints of an array of shape ``s`` have shape ``(count, *s)``. NumPy aligns shapes at their
ends, so the formula of an elementwise rule takes them unaided; a reduction follows from its weights, a gather from its
positions; other rules may say how they are batched (`Rule.batched`). All others are given batched values: see `directions`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.values import ConstantNode, MultiOutput, Value

from ..rules import Formula, Rule, Variadic, scatter, spread, weighed


def declared_pull(rule: Rule, position: int, adjoints: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """As `directions.pull_batch`, by what the rule says of itself; NotImplemented where it says nothing."""
    found: Any = NotImplemented
    if rule.batch[0] is not None:
        found = rule.batch[0](position, adjoints, out, *operands, **options)
    elif _is_elementwise(rule):
        found = rule.formulas[position](adjoints, out, *operands, **options)  # type: ignore[misc]
        found = found if getattr(found, "ndim", 0) > out.ndim else NotImplemented  # zeros, whatever the adjoint
    elif rule.weights:
        found = pull_reduction(rule, position, adjoints, out, *operands, **options)
    elif rule.positions is not None:
        places = rule.positions(out, *operands, **options)
        found = np.reshape(put_at(adjoints, operands[0], places), (adjoints.shape[0], *operands[0].shape))
    return found


def declared_push(rule: Rule, tangents: list[Any], out: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """As `directions.push_batch`, by what the rule says of itself; NotImplemented where it says nothing."""
    if rule.batch[1] is not None:
        return rule.batch[1](tangents, out, *operands, **options)
    if _is_elementwise(rule):
        return _total(rule.tangents, [None if t is None else padded(t, out.ndim) for t in tangents], out, operands, options)
    if rule.weights:
        return push_reduction(rule, tangents, out, *operands, **options)
    if rule.positions is not None:
        return found_at(tangents[0], rule.positions(out, *operands, **options))
    return NotImplemented


def _is_elementwise(rule: Rule) -> bool:
    return rule.kind == "elementwise" and type(rule.formulas) is not Variadic


def by_parts(part: Formula) -> Formula:
    """The push of a rule, from ``part(position, tangents, out, *operands, **options)`` for each operand that has tangents."""

    def push(tangents: Any, out: Any, *operands: Any, **options: Any) -> Any:
        found = [part(i, t, out, *operands, **options) for i, t in enumerate(tangents) if t is not None]
        return NotImplemented if any(f is NotImplemented for f in found) else functools.reduce(operator.add, found)

    return push


def padded(tangents: Any, ndim: int) -> Any:
    """Tangents of an operand with axes of length one after the first, so that it has `ndim` axes besides."""
    missing = ndim + 1 - tangents.ndim
    return np.reshape(tangents, (tangents.shape[0], *[1] * missing, *tangents.shape[1:])) if missing > 0 else tangents


def _total(formulas: Any, tangents: list[Any], out: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is not None and formulas[position] is not None:
            part = formulas[position](tangent, out, *operands, **options)
            if getattr(part, "ndim", 0) <= out.ndim:
                return NotImplemented
            total = part if total is None else total + part
    return total


# ------------------------------------------------------------------------------------------ reductions


def reduced_axes(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes that are reduced, as they lie in what has a batch axis before."""
    if not x.ndim:
        return ()
    return tuple([1 + i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))])


def pull_reduction(
    rule: Rule, position: int, g: Any, out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any
) -> Any:
    """A batch of adjoints of the operand of a reduction."""
    weights = rule.weights[position]
    factor = weights(spread(out, x, axis, keepdims), x, *others, axis=axis, **options)  # type: ignore[misc]
    if position == rule.initial:
        return g if factor is None else g * np.reshape(factor, out.shape)
    axes = reduced_axes(x, axis)
    if not keepdims and x.ndim:
        g = np.reshape(g, (g.shape[0], *[1 if i + 1 in axes else n for i, n in enumerate(x.shape)]))
    return g if factor is None else g * factor


def push_reduction(
    rule: Rule, tangents: list[Any], out: Any, x: Any, *others: Any, axis: Any = None, keepdims: Any = False, **options: Any
) -> Any:
    """A batch of tangents of a reduction."""
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
            part = part if factor is None else weighed(rule, part, factor, x, *others, axis=axis, **options)
            part = np.sum(part, axis=reduced_axes(x, axis), keepdims=bool(keepdims))
        total = part if total is None else total + part
    return total


# ------------------------------------------------------------------------------------------- positions


def found_at(tangents: Any, places: Any) -> Any:
    """The elements at the places, of each in the batch; 0 where a place is negative."""
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
    if isinstance(places, Value) or not there.all():
        pieces, places = pieces[:, there], places[there]
    like = zeros_like_batch((math.prod(x.shape),), np.result_type(x.dtype, adjoints.dtype), count)
    return bind(scatter, (like, pieces, slice(None), places), {"layout": (2,)})


def zeros_like_batch(shape: tuple[int, ...], dtype: Any, count: int) -> Any:
    """Zeros that take no memory, for shape and dtype alone."""
    return np.broadcast_to(np.zeros((), dtype), (count, *shape))


def batch_like(node: Any, count: int) -> Any:
    """What a batch of `count` deferred adjoints is put together like."""
    return node if type(node) is MultiOutput else ConstantNode.hold(zeros_like_batch(node.shape, node.dtype, count))


def count_of(batch: Any) -> int:
    """How long a batch is; of several outputs, that of those that have one."""
    first = next(part for part in batch if part is not None) if isinstance(batch, (tuple, list)) else batch
    return int(first.shape[0])
