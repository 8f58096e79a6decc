"""Propagation of batches of cotangents or tangents through one operation, and a forward pass over a recorded graph.

A batch of cotangents of an array of shape ``s`` has shape ``(size, *s)``. There are three ways to compute it, in this order:

1. The formulas of elementwise rules accept a batch axis, because NumPy aligns shapes at their ends. Reductions use the weights
   of their rule, gathers its positions, and a rule may declare a formula for batches (`Rule.batched`).
2. Other formulas are called with batched values, as functions under `vmap` are; see `rules`.
3. Formulas that depend on the values of cotangents, and user-defined formulas, are called once for each batch element.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.values import INERT, BatchedValueError, ConstantNode, MultiOutput, Value

from ..rules import (
    LAZY_COTANGENTS,
    Formula,
    OutputCotangents,
    Rule,
    ScatteredCotangent,
    as_node,
    by_function,
    conform,
    conform_batch,
    plain_operands,
    push,
    restore_axes,
    scatter,
    weigh_tangent,
)
from .batch_node import BatchNode, basic_parts
from .levels import LiveLevels, broadcast_batch, next_level, pad_ndim
from .rules import NoBatchRuleError, batch_index, is_elementwise_rule


def pull_batch(rule: Rule, position: int, cotangents: Any, out: Any, /, *operands: Any, **options: object) -> Any:
    """Pull a batch of cotangents of the output back to one operand. Broadcasting is not undone.

    Parameters
    ----------
    rule : Rule
        The rule of the operation; it has a formula for the operand.
    position : int
        The position of the operand.
    cotangents : array_like or Node
        The cotangents of the output, of shape ``(size, *out.shape)``; a tuple of arrays for several outputs.
    out, *operands, **options
        The output, the operands, and the options of the operation.

    Returns
    -------
    array, Node, ScatteredCotangent or OutputCotangents
        The contributions, with the batch axis first.
    """
    result = _pull_by_rule(rule, position, cotangents, out, operands, options)
    if result is NotImplemented and rule.is_batchable:
        formula: Any = rule.formulas[position]
        result = _call_batched(lambda g: formula(g, out, *operands, **options), cotangents, operand=operands[position])
    return _pull_per_element(rule, position, cotangents, out, operands, options) if result is NotImplemented else result


def pull_batch_shared(
    rule: Rule, positions: list[int], cotangents: Any, out: Array, /, *operands: Any, **options: object
) -> list[Any]:
    """Pull a batch back to several operands at once, whose formulas are `SharedFormulas`; see `pull_batch`."""
    formulas: Any = rule.formulas
    if formulas.batched:
        return formulas.formula(positions, cotangents, out, *operands, **options)  # type: ignore[no-any-return]
    if rule.is_batchable:
        result = _call_batched(lambda g: formulas.formula(positions, g, out, *operands, **options), cotangents)
        if result is not NotImplemented:
            return list(result)
    return [pull_batch(rule, position, cotangents, out, *operands, **options) for position in positions]


def push_batch(
    rule: Rule, tangents: Sequence[Any], out: Any, function: Any, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Push a batch of tangents of the operands forward to the output.

    Parameters
    ----------
    rule : Rule
        The rule of the operation.
    tangents : sequence
        For each operand, tangents of shape ``(size, *operand.shape)``, or None if they are zero.
    out, function, operands, options
        The output, the operation, its operands and options.

    Returns
    -------
    array, Node, tuple or None
        The tangents, with the batch axis first; a tuple for several outputs; None if they are zero.
    """
    result = _push_by_rule(rule, tangents, out, operands, options)
    if result is NotImplemented and rule.is_batchable:
        result = _call_batched(lambda *ts: push(rule, ts, out, function, tuple(operands), options), *tangents)
    return _push_per_element(rule, tangents, out, function, operands, options) if result is NotImplemented else result


# --------------------------------------------------------------------------- the forward pass over a recorded graph


def propagate(
    nodes: Iterable[Any],
    properties: dict[Any, Any],
    step: Callable[[Any, list[Any]], Any],
    last_uses: Mapping[Any, Sequence[Any]] | None = None,
) -> dict[Any, Any]:
    """Compute a property of the nodes of a graph from that of their operands: tangents, sparsity patterns, series.

    Parameters
    ----------
    nodes : iterable of Node
        Operands before results.
    properties : dict
        The property of some nodes, such as the inputs. Those of other nodes that have a derivative are added.
    step : callable
        ``step(node, operand_values)`` returns the property of a node, or None. Operands without one are passed as None.
    last_uses : dict, optional
        Maps a node to the nodes that are used last by it. Their properties are deleted.

    Returns
    -------
    dict
        `properties`.
    """
    piecewise = ops.PIECEWISE
    for node in nodes:
        if type(node) not in INERT and node not in properties and node.function not in piecewise:
            operand_values: list[Any] = [None] * len(node.args)
            is_reached = False
            for position in node.parent_argnums:
                operand_values[position] = value = properties.get(node.args[position])
                is_reached = is_reached or value is not None
            if is_reached:
                value = step(node, operand_values)
                if value is not None:
                    properties[node] = value
        if last_uses is not None:
            for dead_node in last_uses.get(node, ()):
                properties.pop(dead_node, None)
    return properties


def push_node(node: Any, tangents: list[Any], create_graph: bool, batch_size: int | None) -> Any:
    """Return the tangent of a node from those of its operands, or a batch of tangents unless `batch_size` is None."""
    if isinstance(node.function, ops.Output):
        tangent = tangents[0][node.function.index]
        return tangent if tangent is None or batch_size is not None else conform(tangent, node.raw_value)
    rule = by_function[node.function]
    out, operands = rule_operands(node, create_graph)
    if batch_size is None:
        tangent = push(rule, tangents, out, node.function, tuple(operands), node.options)
        return tangent if tangent is None or type(node) is MultiOutput else conform(tangent, node.raw_value)
    tangent = push_batch(rule, tangents, out, node.function, operands, node.options)
    return None if tangent is None else _conform_outputs(tangent, node.raw_value, batch_size)


def rule_operands(node: Value, create_graph: bool) -> tuple[Any, list[Any]]:
    """Return the output and the operands of a node as arguments of its rule: nodes if `create_graph`, else plain arrays."""
    if create_graph:
        return as_node(node), [as_node(a) for a in node.args]
    return node.raw_value, [a.raw_value if type(a) is MultiOutput else a for a in plain_operands(node)]


def _conform_outputs(tangents: NDArray[Any], out: Array, batch_size: int) -> Any:
    """Convert tangents to the shape and dtype of an output, or of several."""
    if isinstance(out, (tuple, list)):
        pairs = zip(tangents, out, strict=True)
        return tuple([t if t is None else conform_batch(t, part, batch_size) for t, part in pairs])
    return conform_batch(tangents, out, batch_size)


# ---------------------------------------------------------------------------------- formulas that accept a batch axis


def _pull_by_rule(
    rule: Rule, position: int, cotangents: NDArray[Any], out: Array, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Pull a batch back by a rule that is elementwise, a reduction, a gather, or has a batched pull; else NotImplemented."""
    result: Any = NotImplemented
    if rule.batched_pull is not None:
        result = rule.batched_pull(position, cotangents, out, *operands, **options)
    elif is_elementwise_rule(rule):
        result = rule.formulas[position](cotangents, out, *operands, **options)  # type: ignore[misc]
        # a result without the batch axis does not depend on the cotangents
        result = result if getattr(result, "ndim", 0) > out.ndim else NotImplemented
    elif rule.weights:
        result = pull_reduction(rule, position, cotangents, out, *operands, **options)
    elif rule.positions is not None:
        flat_indices = rule.positions(out, *operands, **options)
        result = np.reshape(scatter_batch(cotangents, operands[0], flat_indices), (cotangents.shape[0], *operands[0].shape))
    return result


def _push_by_rule(rule: Rule, tangents: Sequence[Any], out: Array, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Push a batch forward by a rule that is elementwise, a reduction, a gather, or has a batched push; else NotImplemented."""
    if rule.batched_push is not None:
        return rule.batched_push(tangents, out, *operands, **options)
    if is_elementwise_rule(rule):
        padded = [None if t is None else pad_ndim(t, out.ndim) for t in tangents]
        return _sum_tangents(rule.tangents, padded, out, operands, options)
    if rule.weights:
        return push_reduction(rule, tangents, out, *operands, **options)
    if rule.positions is not None:
        return gather_batch(tangents[0], rule.positions(out, *operands, **options))
    return NotImplemented


def sum_over_operands(operand_push: Formula) -> Formula:
    """Return a batched push that sums ``operand_push(position, tangents, out, *operands, **options)`` over the operands."""

    def push_all(tangents: Sequence[Any], out: NDArray[Any], *operands: object, **options: object) -> Any:
        parts = [operand_push(i, t, out, *operands, **options) for i, t in enumerate(tangents) if t is not None]
        return NotImplemented if any(p is NotImplemented for p in parts) else functools.reduce(operator.add, parts)

    return push_all


def _sum_tangents(formulas: Any, tangents: Sequence[Any], out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return the sum of the tangent formulas of an elementwise rule; NotImplemented if one does not depend on its tangent."""
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is not None and formulas[position] is not None:
            part = formulas[position](tangent, out, *operands, **options)
            if getattr(part, "ndim", 0) <= out.ndim:
                return NotImplemented
            total = part if total is None else total + part
    return total


def reduced_axes(x: NDArray[Any], axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the axes of a reduction of `x`, as axes of a batch."""
    if not x.ndim:
        return ()
    return tuple([1 + i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,))])


def pull_reduction(
    rule: Rule,
    position: int,
    g: Any,
    out: Any,
    x: Any,
    *others: object,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    **options: object,
) -> Any:
    """Pull a batch back through a reduction; see `pull_batch`."""
    weight_formula: Any = rule.weights[position]
    factor = weight_formula(restore_axes(out, x, axis, keepdims), x, *others, axis=axis, **options)
    if position == rule.initial:
        return g if factor is None else g * np.reshape(factor, out.shape)
    axes = reduced_axes(x, axis)
    if not keepdims and x.ndim:
        g = np.reshape(g, (g.shape[0], *[1 if i + 1 in axes else n for i, n in enumerate(x.shape)]))
    return g if factor is None else g * factor


def push_reduction(
    rule: Rule,
    tangents: Sequence[Any],
    out: Any,
    x: Any,
    *others: object,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    **options: object,
) -> Any:
    """Push a batch forward through a reduction; see `push_batch`."""
    full_out = restore_axes(out, x, axis, keepdims)
    total = None
    for position, tangent in enumerate(tangents):
        weight_formula = rule.weights[position] if tangent is not None else None
        if weight_formula is None:
            continue
        factor = weight_formula(full_out, x, *others, axis=axis, **options)
        if position == rule.initial:
            part = pad_ndim(tangent, out.ndim)
            part = part if factor is None else part * np.reshape(factor, out.shape)
        else:
            part = pad_ndim(tangent, x.ndim)
            part = part if factor is None else weigh_tangent(rule, part, factor, x, *others, axis=axis, **options)
            part = np.sum(part, axis=reduced_axes(x, axis), keepdims=bool(keepdims))
        total = part if total is None else total + part
    return total


def gather_batch(tangents: NDArray[Any], flat_indices: NDArray[Any]) -> Any:
    """Return the elements at flat indices of each array of a batch; 0 where an index is negative."""
    size = tangents.shape[0]
    if not math.prod(tangents.shape[1:]):
        return np.zeros((size, *flat_indices.shape), tangents.dtype)
    rows = np.reshape(tangents, (size, math.prod(tangents.shape[1:])))
    return np.where(flat_indices >= 0, rows[:, flat_indices], 0)


def scatter_batch(cotangents: NDArray[Any], x: NDArray[Any], flat_indices: NDArray[Any]) -> Any:
    """Return the cotangents of ``x.ravel()``, summed where indices repeat: the transpose of `gather_batch`."""
    flat_indices = np.ravel(flat_indices)
    is_used = flat_indices >= 0
    size = cotangents.shape[0]
    updates = np.reshape(cotangents, (size, flat_indices.size))
    if isinstance(flat_indices, Value) or not is_used.all():
        updates, flat_indices = updates[:, is_used], flat_indices[is_used]
    like = _zero_batch((math.prod(x.shape),), np.result_type(x.dtype, cotangents.dtype), size)
    return bind(scatter, (like, updates, slice(None), flat_indices), {"index_counts": (2,)})


def _zero_batch(shape: tuple[int, ...], dtype: DTypeLike | None, batch_size: int) -> Any:
    """Return a batch of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), (batch_size, *shape))


def batch_like(node: Any, batch_size: int) -> Any:
    """Return a node of the shape and dtype of a batch of cotangents of `node`, for `materialize`."""
    return node if type(node) is MultiOutput else ConstantNode.wrap(_zero_batch(node.shape, node.dtype, batch_size))


def _size_of(batch: Any) -> int:
    """Return the size of a batch. For several outputs, the first that is not None determines it."""
    first = next(part for part in batch if part is not None) if isinstance(batch, (tuple, list)) else batch
    return int(first.shape[0])


# ------------------------------------------------------------------------------------- formulas on batched values


def _call_batched(formula: Callable[..., Any], *batches: Any, operand: Any = None) -> Any:
    """Call a formula with batched values, from batches (arrays, None, or tuples of these).

    Returns NotImplemented if the formula depends on the values of a batch element. `operand` is the operand whose cotangent the
    formula computes; the indices of a `ScatteredCotangent` refer to it.
    """
    level, size = next_level(), _size_of(next(batch for batch in batches if batch is not None))
    with LiveLevels((level,)):
        try:
            result = formula(*[_wrap(batch, level) for batch in batches])
            if type(result) is ScatteredCotangent:
                return _unwrap_scatter(result, operand, level, size)
            return _unwrap(result, level, size)
        except (BatchedValueError, NoBatchRuleError):
            return NotImplemented


def _wrap(batch: NDArray[Any] | None, level: int) -> Any:
    if isinstance(batch, tuple):
        return tuple([_wrap(part, level) for part in batch])
    return batch if batch is None else BatchNode.create_using(batch, level)


def _unwrap(result: Any, level: int, batch_size: int) -> Any:
    """Return the results of a formula with the batch axis first; unbatched ones are broadcast."""
    if type(result) is BatchNode and result.level == level:
        return result.values
    if result is None or result is NotImplemented:
        return result
    if isinstance(result, (tuple, list)):
        return tuple([_unwrap(part, level, batch_size) for part in result])
    if type(result) is OutputCotangents:
        return OutputCotangents({index: _unwrap(part, level, batch_size) for index, part in result.cotangents.items()})
    return broadcast_batch(result, batch_size)


def _unwrap_scatter(result: ScatteredCotangent, operand: NDArray[Any], level: int, batch_size: int) -> ScatteredCotangent:
    """Return the updates of a cotangent of `operand`, with the batch axis first, and their indices in the batch."""
    batched: ScatteredCotangent | None = None
    for update, index in zip(result.updates, result.indices, strict=True):
        index_parts: Any = basic_parts(index[0] if len(index) == 1 else index)
        values = _unwrap(update, level, batch_size)
        if index_parts is None:
            batched_index = batch_index(operand.shape, list(index), [False] * len(index), batch_size)
            index_parts, values = batched_index.index, batched_index.from_front(values)
        else:
            index_parts = (slice(None), *index_parts)
        if batched is None:
            batched = ScatteredCotangent(values, index_parts)
        else:
            batched.append(values, index_parts)
    assert batched is not None  # a ScatteredCotangent has at least one update
    batched.dense = result.dense if result.dense is None else _unwrap(result.dense, level, batch_size)
    return batched


# ----------------------------------------------------------------------------------- formulas called per element


def _element(batch: NDArray[Any] | tuple[Any, ...] | None, i: int) -> Any:
    if isinstance(batch, tuple):
        return tuple([None if part is None else part[i] for part in batch])
    return None if batch is None else batch[i]


def _materialize(contribution: Any, operand: object) -> Any:
    if type(contribution) in LAZY_COTANGENTS:
        return contribution.materialize(operand if isinstance(operand, Value) else ConstantNode.wrap(operand))
    return contribution


def _pull_per_element(
    rule: Rule, position: int, cotangents: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    formula: Any = rule.formulas[position]
    operand = operands[position]
    contributions = [formula(_element(cotangents, i), out, *operands, **options) for i in range(_size_of(cotangents))]
    return np.stack([conform(_materialize(contribution, operand), operand) for contribution in contributions])


def _push_per_element(
    rule: Rule, tangents: Sequence[Any], out: Any, function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    element_tangents = [[_element(t, i) for t in tangents] for i in range(_size_of(list(tangents)))]
    results = [push(rule, element, out, function, tuple(operands), options) for element in element_tangents]
    if not isinstance(out, (tuple, list)):
        return _stack(results, out)
    return tuple([_stack([None if parts is None else parts[k] for parts in results], part) for k, part in enumerate(out)])


def _stack(results: list[Any], out: Array) -> Any:
    """Return the tangents of all batch elements as one array; None if all of them are None (zero)."""
    if all(result is None for result in results):
        return None
    return np.stack([conform(np.zeros_like(out) if result is None else result, out) for result in results])
