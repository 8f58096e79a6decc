"""A batch of adjoints, or of tangents, through one operation, where its rule does not say how.

A rule's formula is linear in the adjoint (or tangent), so we trace it for one, and run the trace with a batch axis: the
operations it consists of are simpler, and know how they take a batch. What does not depend on the adjoint is computed
once. Rules whose formulas look at the numbers of adjoints, and those of users, are asked for each of a batch by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.graph import ConstantNode, InputNode, Joint, Value, leaf, next_tick, walk
from compgraph.graph.context import recording_on

from ..rules import DEFERRED, Rule, as_node, by_function, conform, conform_batch, plain_operands, push
from .batched import count_of, declared_pull, declared_push
from .propagate import propagate

_by_tick = attrgetter("tick")
FEW = 3  # so short a batch is not worth a trace


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
    if found is NotImplemented and rule.is_traced and count_of(adjoints) > FEW:

        def formula(g: Any) -> Any:
            return _settled(rule.formulas[position](g, out, *operands, **options), operands[position])  # type: ignore[misc]

        found = _traced(formula, adjoints, ())
    return _pull_each(rule, position, adjoints, out, operands, options) if found is NotImplemented else found


def push_batch(
    rule: Rule, tangents: list[Any], out: Any, function: Any, operands: list[Any], options: dict[str, Any],
    within: tuple[Rule, ...] = (),
) -> Any:  # fmt: skip
    """A batch of tangents of an output, from those of the operands.

    Parameters
    ----------
    rule : Rule
        The rule of the operation.
    tangents : list
        For each operand, tangents of shape ``(count, *operand.shape)``, or None where they are zero.
    out, function, operands, options
        The output, the operation, its operands and options.
    within : tuple of Rule
        The rules whose formulas are being traced.

    Returns
    -------
    array, Node, tuple or None
        The first axis is that of the batch; a tuple for several outputs; None where the tangents are zero.
    """
    found = declared_push(rule, tangents, out, operands, options)
    # the tangent of what is linear is the operation itself, which has no smaller steps; nor has a rule that leads to itself
    if found is NotImplemented and rule.is_traced and rule.kind == "general" and rule not in within and count_of(tangents) > FEW:

        def formula(*ts: Any) -> Any:
            return push(rule, ts, out, function, tuple(operands), options)

        found = _traced(lambda ts: formula(*ts), tuple(tangents), (*within, rule))
    return _push_each(rule, tangents, out, function, operands, options) if found is NotImplemented else found


def pushed_on(node: Any, given: list[Any], create_graph: bool, count: int | None, within: tuple[Rule, ...] = ()) -> Any:
    """The tangents of one node of a graph from those of its operands: a batch of `count`, or a single one if that is None."""
    if isinstance(node.function, operations.Output):
        tangent = given[0][node.function.index]
        return tangent if tangent is None or count is not None else conform(tangent, node.plain)
    rule = by_function[node.function]
    out, operands = as_seen(node, create_graph)
    if count is None:
        tangent = push(rule, given, out, node.function, tuple(operands), node.options)
        return tangent if tangent is None or node.__class__ is Joint else conform(tangent, node.plain)
    tangent = push_batch(rule, given, out, node.function, operands, node.options, within)
    return None if tangent is None else conform_all(tangent, node.plain, count)


def as_seen(node: Any, create_graph: bool) -> tuple[Any, list[Any]]:
    """The output and the operands of a node, as its rule is given them."""
    if create_graph:
        return as_node(node), [as_node(a) for a in node.args]
    return node.plain, [a.plain if a.__class__ is Joint else a for a in plain_operands(node)]


def conform_all(tangents: Any, out: Any, count: int) -> Any:
    """Tangents in the shapes and dtypes of an output, or of several."""
    if isinstance(out, (tuple, list)):
        return tuple([t if t is None else conform_batch(t, part, count) for t, part in zip(tangents, out, strict=True)])
    return conform_batch(tangents, out, count)


# --------------------------------------------------------------------------------------------- tracing


def _traced(formula: Callable[[Any], Any], batch: Any, within: tuple[Rule, ...]) -> Any:
    """What a linear formula makes of each in a batch (an array, or a tuple of arrays and None).

    NotImplemented if it makes something that does not depend on it.
    """
    single = not isinstance(batch, tuple)
    parts = (batch,) if single else batch
    before = next_tick()
    with recording_on():
        inputs = [None if part is None else leaf(_first(part), InputNode, None) for part in parts]
        result = formula(inputs[0] if single else tuple(inputs))
    known = {x: part for x, part in zip(inputs, parts, strict=True) if x is not None}
    outs = list(result) if isinstance(result, (tuple, list)) else [result]
    if any(out is not None and not isinstance(out, Value) for out in outs):
        return NotImplemented
    steps = _since(before, outs)
    if any(isinstance(step, Value) and step.memory for step in steps):
        return NotImplemented
    # operands may be nodes of a graph that has plain tangents
    create_graph = any(isinstance(part, Value) for part in parts) or any(
        step.args[position].tick <= before for step in steps for position in step.edges
    )
    count = count_of(parts)
    propagate(steps, known, lambda step, given: pushed_on(step, given, create_graph, count, within))
    found = [None if out is None else known.get(out) for out in outs]
    if any(part is None and out is not None for part, out in zip(found, outs, strict=True)):
        return NotImplemented
    return tuple(found) if isinstance(result, (tuple, list)) else found[0]


def _first(batch: Any) -> Any:
    return np.array((batch.plain if isinstance(batch, Value) else batch)[0])


def _since(tick: int, outs: list[Any]) -> list[Any]:
    """The nodes made after a tick that results were computed from, oldest first."""
    newer = [out for out in outs if out is not None and out.tick > tick]
    behind = walk(newer, lambda node: [a for position in node.edges if (a := node.args[position]).tick > tick])
    return sorted(behind, key=_by_tick)


# ------------------------------------------------------------------------------------------- one by one


def _one(batch: Any, i: int) -> Any:
    if isinstance(batch, tuple):
        return tuple([None if part is None else part[i] for part in batch])
    return None if batch is None else batch[i]


def _settled(contribution: Any, operand: Any) -> Any:
    if contribution.__class__ in DEFERRED:
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
