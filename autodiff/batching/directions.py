"""A batch of adjoints, or of tangents, through one operation.

Formulas are given batched values, as functions within `vmap` are: each operation in them is computed for the whole batch by
`examples`. The formulas of elementwise rules and of reductions take an axis of the batch unaided, which is faster (`batched`).
Rules whose formulas depend on the numbers of adjoints, and those of users, are called for each of a batch by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.values import BatchedValueError, ConstantNode, MultiOutput, Value

from ..rules import DEFERRED, Parts, Rule, Scatter, as_node, by_function, conform, conform_batch, plain_operands, push
from .active import Alive, next_level
from .batch_node import BatchNode, basic_parts
from .batched import count_of, declared_pull, declared_push
from .examples import OneByOneError, lifted, located


def pull_batch(rule: Rule, position: int, adjoints: Any, out: Any, /, *operands: Any, **options: Any) -> Any:
    """The contributions of a batch of adjoints to those of one operand, with broadcasting not yet undone.

    Parameters
    ----------
    rule : Rule
        The rule of the operation; it has a formula for the operand.
    position : int
        Which operand.
    adjoints : array_like or Node
        Those of the output, of shape ``(count, *out.shape)``; of an operation with several outputs a tuple of such.
    out, *operands, **options
        The output, the operands, and the options of the operation.

    Returns
    -------
    array, Node, Scatter or Parts
        The first axis is that of the batch.
    """
    found = declared_pull(rule, position, adjoints, out, operands, options)
    if found is NotImplemented and rule.is_batchable:
        formula: Any = rule.formulas[position]
        found = _batched(lambda g: formula(g, out, *operands, **options), adjoints, x=operands[position])
    return _pull_each(rule, position, adjoints, out, operands, options) if found is NotImplemented else found


def pull_several(rule: Rule, positions: list[int], adjoints: Any, out: Any, /, *operands: Any, **options: Any) -> list[Any]:
    """As `pull_batch`, of several operands of an operation whose formulas are `Shared`."""
    formulas: Any = rule.formulas
    if formulas.batched:
        return formulas.formula(positions, adjoints, out, *operands, **options)  # type: ignore[no-any-return]
    if rule.is_batchable:
        found = _batched(lambda g: formulas.formula(positions, g, out, *operands, **options), adjoints)
        if found is not NotImplemented:
            return list(found)
    return [pull_batch(rule, position, adjoints, out, *operands, **options) for position in positions]


def push_batch(rule: Rule, tangents: list[Any], out: Any, function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """A batch of tangents of an output, from those of the operands.

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
        The first axis is that of the batch; a tuple for several outputs; None where the tangents are zero.
    """
    found = declared_push(rule, tangents, out, operands, options)
    if found is NotImplemented and rule.is_batchable:
        found = _batched(lambda *ts: push(rule, ts, out, function, tuple(operands), options), *tangents)
    return _push_each(rule, tangents, out, function, operands, options) if found is NotImplemented else found


def pushed_on(node: Any, given: list[Any], create_graph: bool, count: int | None) -> Any:
    """The tangents of one node of a graph from those of its operands: a batch of `count`, or a single one if that is None."""
    if isinstance(node.function, ops.Output):
        tangent = given[0][node.function.index]
        return tangent if tangent is None or count is not None else conform(tangent, node.raw_value)
    rule = by_function[node.function]
    out, operands = as_seen(node, create_graph)
    if count is None:
        tangent = push(rule, given, out, node.function, tuple(operands), node.options)
        return tangent if tangent is None or type(node) is MultiOutput else conform(tangent, node.raw_value)
    tangent = push_batch(rule, given, out, node.function, operands, node.options)
    return None if tangent is None else conform_all(tangent, node.raw_value, count)


def as_seen(node: Any, create_graph: bool) -> tuple[Any, list[Any]]:
    """The output and the operands of a node, as its rule is given them."""
    if create_graph:
        return as_node(node), [as_node(a) for a in node.args]
    return node.raw_value, [a.raw_value if type(a) is MultiOutput else a for a in plain_operands(node)]


def conform_all(tangents: Any, out: Any, count: int) -> Any:
    """Tangents in the shapes and dtypes of an output, or of several."""
    if isinstance(out, (tuple, list)):
        return tuple([t if t is None else conform_batch(t, part, count) for t, part in zip(tangents, out, strict=True)])
    return conform_batch(tangents, out, count)


# ------------------------------------------------------------------------------------------ batched values


def _batched(formula: Callable[..., Any], *batches: Any, x: Any = None) -> Any:
    """The result of a formula for batches (arrays, None, or tuples of these), whose axis comes first.

    NotImplemented if the formula depends on the numbers of a batch element. `x` is the operand of a deferred adjoint.
    """
    level, count = next_level(), count_of(next(batch for batch in batches if batch is not None))
    with Alive((level,)):
        try:
            found = formula(*[_wrapped(batch, level) for batch in batches])
            return _located(found, x, level, count) if type(found) is Scatter else _unwrapped(found, level, count)
        except (BatchedValueError, OneByOneError):
            return NotImplemented


def _wrapped(batch: Any, level: int) -> Any:
    if isinstance(batch, tuple):
        return tuple([_wrapped(part, level) for part in batch])
    return batch if batch is None else BatchNode.create_using(batch, level)


def _unwrapped(found: Any, level: int, count: int) -> Any:
    """Results with the axis of the batch; one that does not depend on the batch is repeated."""
    if type(found) is BatchNode and found.level == level:
        return found.values
    if found is None or found is NotImplemented:
        return found
    if isinstance(found, (tuple, list)):
        return tuple([_unwrapped(part, level, count) for part in found])
    if type(found) is Parts:
        return Parts({index: _unwrapped(part, level, count) for index, part in found.found.items()})
    return lifted(found, count)


def _located(found: Scatter, x: Any, level: int, count: int) -> Scatter:
    """The pieces of an adjoint of `x`, at indices of the whole batch."""
    made: Any = None
    for piece, index in zip(found.pieces, found.indices, strict=True):
        parts = basic_parts(index[0] if len(index) == 1 else index)
        moved = _unwrapped(piece, level, count)
        if parts is None:
            where = located(x.shape, list(index), [False] * len(index), count)
            parts, moved = where.index, where.back(moved)
        else:
            parts = (slice(None), *parts)
        if made is None:
            made = Scatter(moved, parts)
        else:
            made.take(moved, parts)
    made.dense = found.dense if found.dense is None else _unwrapped(found.dense, level, count)
    return made  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------- one by one


def _one(batch: Any, i: int) -> Any:
    if isinstance(batch, tuple):
        return tuple([None if part is None else part[i] for part in batch])
    return None if batch is None else batch[i]


def _settled(contribution: Any, operand: Any) -> Any:
    if type(contribution) in DEFERRED:
        return contribution.settle(operand if isinstance(operand, Value) else ConstantNode.hold(operand))
    return contribution


def _pull_each(rule: Rule, position: int, adjoints: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    formula: Any = rule.formulas[position]
    operand = operands[position]
    each = [formula(_one(adjoints, i), out, *operands, **options) for i in range(count_of(adjoints))]
    return np.stack([conform(_settled(contribution, operand), operand) for contribution in each])


def _push_each(rule: Rule, tangents: list[Any], out: Any, function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    given = tuple(operands)
    along = [[_one(t, i) for t in tangents] for i in range(count_of(tangents))]
    found = [push(rule, one, out, function, given, options) for one in along]
    if isinstance(out, (tuple, list)):
        return tuple([_stacked([part[k] for part in found], out[k]) for k in range(len(out))])
    return _stacked(found, out)


def _stacked(found: list[Any], out: Any) -> Any:
    return None if any(part is None for part in found) else np.stack([conform(part, out) for part in found])
