"""The steps of a sweep, one per edge, as data.

The sweep and forward mode compute the cotangents and tangents of nodes. Another call of the operation's rule, for one operand
alone, computes the contribution of a single edge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array
from compgraph.graph import GraphNode, breadth_first
from compgraph.storage import Write
from compgraph.values import ACTIVE, MultiOutput, Value, describe, require_history

from ..reverse import collect, ids_on_paths, owned_arrays, seed_of, select_nodes, sweep
from ..rules import LAZY_COTANGENTS, RuleErrors, by_function, conform, push

WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class Step:
    """The contribution along one edge: from an operation to an operand or, in forward mode, from the operand to the operation.

    Attributes
    ----------
    node : Node or MultiOutput
        The operation.
    position : int
        The position of the operand in its ``args``.
    incoming : array
        The argument of the rule: the cotangent of the operation, or in forward mode the tangent of the operand.
    contribution : array
        The result of the rule: the contribution to the cotangent of the operand, or to the tangent of the operation.
    previous_total : array or None
        The sum of the contributions of earlier edges.
    total : array
        The sum of `previous_total` and `contribution`.
    local_derivative : array or None
        The elementwise derivative of the operation with respect to the operand; None unless the rule multiplies by it.
    text : str
        The formula text of the rule (`Rule.with_formula`); empty if it does not evaluate to `contribution` here.
    """

    node: Any
    position: int
    incoming: Any
    contribution: Any
    previous_total: Any
    total: Any
    local_derivative: Any = None
    text: str = ""

    @property
    def operand(self) -> Any:
        """The operand: the node at the other end of the edge."""
        return self.node.args[self.position]

    @property
    def derivative_on_edge(self) -> Any:
        """The value shown on the edge: `contribution`, or for one of several outputs its own cotangent or tangent."""
        return self.incoming if isinstance(self.node.function, ops.Output) else self.contribution


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep, with all its steps.

    Attributes
    ----------
    mode : {"reverse", "forward"}
        Whether cotangents or tangents were passed.
    output : Node
        The end of the graph.
    start : dict
        The start of the sweep: nodes with their cotangents or tangents.
    steps : list of Step
        In the order of the sweep.
    result : dict
        The cotangents of the variables, or the tangent of the output.
    """

    mode: str
    output: Any
    start: dict[Any, Any]
    steps: list[Step]
    result: dict[Any, Any]


def backward(node: Any, wrt: object, seed: Any) -> Sweep:
    """Return the `Sweep` of reverse mode, from `node` to `wrt`."""
    nodes = _unwritten_graph(node)
    wrt_nodes = select_nodes(node, nodes, wrt, "raise")
    cotangent = seed_of(node, seed)
    needed_ids = ids_on_paths(nodes, node, set(wrt_nodes))
    cotangents = sweep(nodes, node, cotangent, {n for n in nodes if id(n) in needed_ids}.union(wrt_nodes), False)
    partial_sums: dict[Any, Any] = {}
    steps = []
    for item in nodes:
        if item not in cotangents or not item.args:
            continue
        formulas, values = by_function[item.function].formulas, _operand_values(item)
        for position in item.parent_argnums:
            operand = item.args[position]
            formula = formulas[position] if id(operand) in needed_ids else None
            if formula is None:
                continue
            with np.errstate(all="ignore"):  # the sweep has issued the same warnings
                contribution = formula(cotangents[item], item.raw_value, *values, **item.options)
            is_lazy = type(contribution) in LAZY_COTANGENTS
            contribution = contribution.materialize(operand) if is_lazy else conform(contribution, operand.raw_value)
            contribution = _with_structural_zeros(contribution, cotangents[operand])
            previous_total = partial_sums.get(operand)
            partial_sums[operand] = contribution if previous_total is None else _sum(previous_total, contribution)
            steps.append(_explain(Step(item, position, cotangents[item], contribution, previous_total, partial_sums[operand])))
    last = {step.operand: index for index, step in enumerate(steps)}
    for operand, index in last.items():  # the sweep may add in a different order, with different rounding
        steps[index] = replace(steps[index], total=cotangents[operand])
    return Sweep("reverse", node, {node: cotangent}, steps, owned_arrays(cotangents, wrt_nodes, *cotangents.values()))


def _with_structural_zeros(contribution: Array, total: Array) -> Any:
    """Replace nan by 0 in a contribution where the whole cotangent is not nan: there the sweep has a structural zero."""
    if isinstance(contribution, tuple):
        return contribution
    dropped = np.isnan(contribution) & ~np.isnan(total)
    return np.where(dropped, 0, contribution)[()] if dropped.any() else contribution


def forward(node: Any, wrt: object, seed: Any) -> Sweep:
    """Return the `Sweep` of forward mode, from `wrt` to `node`."""
    nodes = _unwritten_graph(node)
    wrt_nodes = select_nodes(node, nodes, wrt, "raise")
    if len(wrt_nodes) != 1:
        raise ValueError(
            f"forward mode propagates one tangent, but there are {len(wrt_nodes)} nodes to start from: select one by wrt=, as in "
            "animate(f, mode='forward', wrt=x)"
        )
    (start,) = wrt_nodes
    tangents = {start: _tangent(start, seed)}
    needed_ids = ids_on_paths(nodes, node, {start})
    steps: list[Step] = []
    for item in reversed(nodes):
        if id(item) in needed_ids and item is not start and item.args:
            new_steps = _forward_steps(item, tangents)
            if new_steps:
                steps += new_steps
                tangents[item] = new_steps[-1].total
    end = tangents.get(node)
    return Sweep("forward", node, {start: tangents[start]}, steps, {node: np.zeros_like(node.raw_value) if end is None else end})


def _forward_steps(item: Any, tangents: dict[Any, Any]) -> list[Step]:
    """Return a step for each operand of an operation that contributes to its tangent."""
    if item.function in ops.PIECEWISE:  # the tangent is zero
        return []
    positions = [k for k in item.parent_argnums if item.args[k] in tangents]
    incoming = [tangents[a] if k in positions else None for k, a in enumerate(item.args)]
    if isinstance(item.function, ops.Output):
        contribution = tangents[item.args[0]][item.function.index] if positions else None
        return [] if contribution is None else [Step(item, 0, contribution, contribution, None, contribution)]
    steps: list[Step] = []
    previous_total = None
    for position in positions:
        contribution = _tangent_of(item, [t if k == position else None for k, t in enumerate(incoming)])
        if contribution is not None:
            total = contribution if previous_total is None else _sum(previous_total, contribution)
            steps.append(_explain(Step(item, position, incoming[position], contribution, previous_total, total), is_forward=True))
            previous_total = total
    if steps:
        steps[-1] = replace(steps[-1], total=_tangent_of(item, incoming))
    return steps


def _tangent_of(item: Any, incoming: list[Any]) -> Any:
    """Return the tangent of an operation in forward mode; None if it is zero."""
    errors = RuleErrors(item.function)
    errors.current_node = item
    rule = by_function[item.function]
    tangent = errors.run(push, rule, incoming, item.raw_value, item.function, tuple(_operand_values(item)), item.options)
    if isinstance(tangent, tuple):
        return tuple(None if t is None else conform(np.asarray(t), o) for t, o in zip(tangent, item.raw_value, strict=True))
    return None if tangent is None else conform(tangent, item.raw_value)


def _tangent(start: Any, seed: Any) -> Any:
    """Return the tangent to start from."""
    if type(start) not in ACTIVE:
        raise ValueError(f"the {describe(start)} is constant; a tangent starts from a variable")
    if seed is None:
        return np.ones_like(start.raw_value)
    require_history(seed)
    tangent = np.asarray(seed)
    if tangent.shape != start.shape:
        raise ValueError(f"the tangent of the {describe(start)} has shape {tangent.shape}. Pass one of shape {start.shape}")
    return conform(tangent, start)


def _unwritten_graph(node: Value) -> list[Any]:
    """Return the graph of a node in the order of a sweep; raise if an array was written, or a variable updated after use."""
    nodes = collect(node)
    written = any(isinstance(item, Write) for item in [*nodes, *breadth_first(node)])
    updated_later = [
        item.args[k] for item in nodes for k in item.parent_argnums if item.args[k].sequence_number > item.sequence_number
    ]
    if written or updated_later:
        reason = "an array was written into" if written else f"the {describe(updated_later[0])} was updated after use"
        raise ValueError(
            f"animate: {reason}, so the nodes no longer hold the values of the steps. Compute the graph again after an update; "
            "instead of writing use np.stack, np.where or np.concatenate. gradient(node) supports writes"
        )
    return nodes


def _operand_values(item: GraphNode) -> list[Any]:
    return [a.raw_value if isinstance(a, (Value, MultiOutput)) else a for a in item.args]


def _sum(previous_total: Array, contribution: Array) -> Any:
    """Add two contributions; for an operation with several outputs, output by output."""
    if isinstance(contribution, tuple):
        pairs = zip(previous_total, contribution, strict=True)
        return tuple(b if p is None else p if b is None else b + p for b, p in pairs)
    return previous_total + contribution


# --------------------------------------------------------------------------- the derivative of an operation


def _explain(step: Step, is_forward: bool = False) -> Step:
    """Return the step with `local_derivative` and `text`, each if it evaluates to the contribution of the rule."""
    item, operand = step.node, step.operand
    if isinstance(item, MultiOutput) or isinstance(operand, MultiOutput):
        return step
    rule, values = by_function[item.function], _operand_values(item)
    position = step.position
    texts = rule.texts if not isinstance(item.function, ops.Keyworded) else ()
    text = texts[position] if position < len(texts) else ""
    target = item.raw_value if is_forward else operand.raw_value
    with np.errstate(all="ignore"):
        local_derivative = None
        formula = rule.formulas[position]
        if formula is not None and (rule.kind == "elementwise" or item.ndim == operand.ndim == 0):
            local_derivative = formula(np.ones_like(item.raw_value), item.raw_value, *values, **item.options)
            local_derivative = (
                local_derivative.materialize(operand) if type(local_derivative) in LAZY_COTANGENTS else local_derivative
            )
            product = step.incoming * local_derivative if np.shape(local_derivative) == item.shape else np.nan
            local_derivative = local_derivative if _matches(product, step.contribution, target) else None
        uses_cotangent = "g" in names_in(text)
        value_of_text = evaluate(text, item, values, step.incoming) if text and not (is_forward and uses_cotangent) else None
        if value_of_text is not None and not uses_cotangent:
            value_of_text = step.incoming * value_of_text
        if value_of_text is None or not _matches(value_of_text, step.contribution, target):
            text = ""
    return replace(step, local_derivative=local_derivative, text=text)


def names_in(text: str) -> set[str]:
    """Return the names in an expression: operands a, b, c, the result y, the cotangent g, and NumPy functions."""
    return set(WORD.findall(text))


def evaluate(text: str, item: Any, values: list[Any], incoming: Any) -> Any:
    """Evaluate the formula text of a rule for an operation; None if its shapes do not fit."""
    known: dict[str, Any] = dict(zip("abc", map(np.asarray, values[:3]), strict=False))
    known |= {"y": item.raw_value, "g": incoming, "n": np.float64(np.size(values[0])) / max(np.size(item.raw_value), 1)}
    names = {name: known[name] if name in known else getattr(np, name) for name in names_in(text)}
    try:
        return eval(text, {"__builtins__": {}}, names)
    except ValueError:  # a formula of matrices, with vectors for operands
        return None


def _matches(value: Any, contribution: Array, like: Array) -> bool:
    """Whether a value, summed or broadcast to the shape of `like`, equals `contribution` up to rounding."""
    try:
        value = conform(np.broadcast_to(value, np.broadcast_shapes(np.shape(value), np.shape(like))), np.asarray(like))
    except ValueError:
        return False
    tolerance = 1e-3 if like.dtype.itemsize <= 4 else 1e-8
    return bool(np.allclose(value, contribution, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))
