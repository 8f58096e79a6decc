"""What passes along each edge in a sweep, as data.

The adjoints and tangents of nodes are computed by the sweep, and by forward mode, as always. To see what passes along a single
edge, the rule of its operation is called once more, for that operand alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.graph import breadth_first
from compgraph.storage import Write
from compgraph.values import ACTIVE, MultiOutput, Value, describe, require_history

from ..reverse import collect, ids_on_paths, owned_arrays, seed_of, sweep, wanted_variables
from ..rules import LAZY_COTANGENTS, RuleErrors, by_function, conform, push

WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class Step:
    """What passes along one edge, from an operation to an operand or, in forward mode, the other way.

    Attributes
    ----------
    node : Node or MultiOutput
        The operation.
    position : int
        Which of its ``args`` is at the other end of the edge.
    given : array
        What the rule gets: in reverse mode the adjoint of the operation, in forward mode the tangent of the operand.
    part : array
        What the rule gives: the contribution to the adjoint of the operand, or to the tangent of the operation.
    before : array or None
        The sum of the contributions that have arrived there by other edges.
    total : array
        The sum of `before` and `part`.
    local : array or None
        The derivative of the operation by the operand, element by element; None if it is no product of elements.
    text : str
        The derivative in the words of the rule (``Rule.said``); empty if these do not give `part` here.
    """

    node: Any
    position: int
    given: Any
    part: Any
    before: Any
    total: Any
    local: Any = None
    text: str = ""

    @property
    def operand(self) -> Any:
        """The operand: the node at the other end of the edge."""
        return self.node.args[self.position]

    @property
    def passed(self) -> Any:
        """What is shown on the edge: `part`; of one of several outputs its own adjoint or tangent, not a tuple of all."""
        return self.given if isinstance(self.node.function, ops.Output) else self.part


@dataclass(frozen=True, eq=False)
class Pass:
    """A sweep, with all its steps.

    Attributes
    ----------
    mode : {"reverse", "forward"}
        Whether adjoints or tangents were passed.
    output : Node
        The end of the graph.
    start : dict
        The nodes where the sweep began, with their adjoints or tangents.
    steps : list of Step
        In the order of the sweep.
    result : dict
        What was asked for: the adjoints of variables, or the tangent of the output.
    """

    mode: str
    output: Any
    start: dict[Any, Any]
    steps: list[Step]
    result: dict[Any, Any]


def backward(node: Any, wrt: Any, seed: Any) -> Pass:
    """The `Pass` of reverse mode, from `node` to `wrt`."""
    nodes = _still(node)
    wanted = wanted_variables(node, nodes, wrt, "raise")
    adjoint = seed_of(node, seed)
    needed = ids_on_paths(nodes, node, set(wanted))
    adjoints = sweep(nodes, node, adjoint, {n for n in nodes if id(n) in needed}.union(wanted), False)
    arrived: dict[Any, Any] = {}
    steps = []
    for event in nodes:
        if event not in adjoints or not event.args:
            continue
        formulas, values = by_function[event.function].formulas, _values(event)
        for position in event.parent_argnums:
            operand = event.args[position]
            formula = formulas[position] if id(operand) in needed else None
            if formula is None:
                continue
            with np.errstate(all="ignore"):  # the sweep has given the same warnings
                part = formula(adjoints[event], event.raw_value, *values, **event.options)
            part = part.materialize(operand) if type(part) in LAZY_COTANGENTS else conform(part, operand.raw_value)
            part = _chosen(part, adjoints[operand])
            before = arrived.get(operand)
            arrived[operand] = part if before is None else _sum(before, part)
            steps.append(_explained(Step(event, position, adjoints[event], part, before, arrived[operand])))
    last = {step.operand: place for place, step in enumerate(steps)}
    for operand, place in last.items():  # the sweep may have added in another order, with other rounding
        steps[place] = replace(steps[place], total=adjoints[operand])
    return Pass("reverse", node, {node: adjoint}, steps, owned_arrays(adjoints, wanted, *adjoints.values()))


def _chosen(part: Any, total: Any) -> Any:
    """A contribution to an adjoint, with 0 in place of nan where the whole adjoint is not nan: a structural zero of the sweep."""
    if isinstance(part, tuple):
        return part
    dropped = np.isnan(part) & ~np.isnan(total)
    return np.where(dropped, 0, part)[()] if dropped.any() else part


def forward(node: Any, wrt: Any, seed: Any) -> Pass:
    """The `Pass` of forward mode, from `wrt` to `node`."""
    nodes = _still(node)
    wanted = wanted_variables(node, nodes, wrt, "raise")
    if len(wanted) != 1:
        raise ValueError(
            f"forward mode follows one tangent, but there are {len(wanted)} nodes to start from: say which by wrt=, as in "
            "animate(f, mode='forward', wrt=x)"
        )
    (start,) = wanted
    tangents = {start: _tangent(start, seed)}
    needed = ids_on_paths(nodes, node, {start})
    steps: list[Step] = []
    for event in reversed(nodes):
        if id(event) in needed and event is not start and event.args:
            found = _forward_steps(event, tangents)
            if found:
                steps += found
                tangents[event] = found[-1].total
    end = tangents.get(node)
    return Pass("forward", node, {start: tangents[start]}, steps, {node: np.zeros_like(node.raw_value) if end is None else end})


def _forward_steps(event: Any, tangents: dict[Any, Any]) -> list[Step]:
    """One step for each operand of an operation that adds to its tangent."""
    if event.function in ops.PIECEWISE:  # no tangent passes
        return []
    positions = [k for k in event.parent_argnums if event.args[k] in tangents]
    given = [tangents[a] if k in positions else None for k, a in enumerate(event.args)]
    if isinstance(event.function, ops.Output):
        part = tangents[event.args[0]][event.function.index] if positions else None
        return [] if part is None else [Step(event, 0, part, part, None, part)]
    steps: list[Step] = []
    before = None
    for position in positions:
        part = _tangent_of(event, [t if k == position else None for k, t in enumerate(given)])
        if part is not None:
            total = part if before is None else _sum(before, part)
            steps.append(_explained(Step(event, position, given[position], part, before, total), is_forward=True))
            before = total
    if steps:
        steps[-1] = replace(steps[-1], total=_tangent_of(event, given))
    return steps


def _tangent_of(event: Any, given: list[Any]) -> Any:
    """The tangent of an operation, as forward mode has it; None where it is zero."""
    work = RuleErrors(event.function)
    work.at = event
    rule = by_function[event.function]
    tangent = work.run(push, rule, given, event.raw_value, event.function, tuple(_values(event)), event.options)
    if isinstance(tangent, tuple):
        return tuple(None if t is None else conform(np.asarray(t), o) for t, o in zip(tangent, event.raw_value, strict=True))
    return None if tangent is None else conform(tangent, event.raw_value)


def _tangent(start: Any, seed: Any) -> Any:
    """The tangent to start from."""
    if type(start) not in ACTIVE:
        raise ValueError(f"the {describe(start)} is constant; a tangent starts from a variable")
    if seed is None:
        return np.ones_like(start.raw_value)
    require_history(seed)
    given = np.asarray(seed)
    if given.shape != start.shape:
        raise ValueError(f"the tangent has shape {given.shape}, but belongs to the {describe(start)}")
    return conform(given, start)


def _still(node: Any) -> list[Any]:
    """The graph of a node in the order of a sweep; raises if an array in it was written, or a variable updated after use."""
    nodes = collect(node)
    written = any(isinstance(event, Write) for event in [*nodes, *breadth_first(node)])
    late = [
        event.args[k] for event in nodes for k in event.parent_argnums if event.args[k].sequence_number > event.sequence_number
    ]
    if written or late:
        what = "an array was written into" if written else f"the {describe(late[0])} was updated after use"
        raise ValueError(
            f"animate: {what}, so the nodes no longer hold the values of the steps. Compute the graph again after an update; "
            "instead of writing use np.stack, np.where or np.concatenate. gradient(node) takes writes"
        )
    return nodes


def _values(event: Any) -> list[Any]:
    return [a.raw_value if isinstance(a, (Value, MultiOutput)) else a for a in event.args]


def _sum(before: Any, part: Any) -> Any:
    """The sum of two contributions; of an operation with several outputs, for each output."""
    if isinstance(part, tuple):
        pairs = zip(before, part, strict=True)
        return tuple(b if p is None else p if b is None else b + p for b, p in pairs)
    return before + part


# --------------------------------------------------------------------------- the derivative of an operation


def _explained(step: Step, is_forward: bool = False) -> Step:
    """The step with `local` and `text`, each if it gives the `part` that the rule gave."""
    event, operand = step.node, step.operand
    if isinstance(event, MultiOutput) or isinstance(operand, MultiOutput):
        return step
    rule, values = by_function[event.function], _values(event)
    at = step.position
    texts = rule.texts if not isinstance(event.function, ops.Keyworded) else ()
    text = texts[at] if at < len(texts) else ""
    to = event.raw_value if is_forward else operand.raw_value
    with np.errstate(all="ignore"):
        local = None
        formula = rule.formulas[at]
        if formula is not None and (rule.kind == "elementwise" or event.ndim == operand.ndim == 0):
            local = formula(np.ones_like(event.raw_value), event.raw_value, *values, **event.options)
            local = local.materialize(operand) if type(local) in LAZY_COTANGENTS else local
            wide = step.given * local if np.shape(local) == event.shape else np.nan
            local = local if _gives(wide, step.part, to) else None
        said = evaluate(text, event, values, step.given) if text and not (is_forward and "g" in letters(text)) else None
        if said is None or not _gives(said if "g" in letters(text) else step.given * said, step.part, to):
            text = ""
    return replace(step, local=local, text=text)


def letters(text: str) -> set[str]:
    """The names in an expression: operands a, b, c, the result y, the adjoint g, and functions of NumPy's."""
    return set(WORD.findall(text))


def evaluate(text: str, event: Any, values: list[Any], given: Any) -> Any:
    """The value of a rule's text for an operation; None where its shapes do not fit."""
    known: dict[str, Any] = dict(zip("abc", map(np.asarray, values[:3]), strict=False))
    known |= {"y": event.raw_value, "g": given, "n": np.float64(np.size(values[0])) / max(np.size(event.raw_value), 1)}
    names = {name: known[name] if name in known else getattr(np, name) for name in letters(text)}
    try:
        return eval(text, {"__builtins__": {}}, names)
    except ValueError:  # the text is about matrices, the operands are vectors
        return None


def _gives(found: Any, part: Any, like: Any) -> bool:
    """Whether a value equals `part` up to rounding, once it is summed or broadcast to the shape of `like`."""
    try:
        found = conform(np.broadcast_to(found, np.broadcast_shapes(np.shape(found), np.shape(like))), np.asarray(like))
    except ValueError:
        return False
    close = 1e-3 if like.dtype.itemsize <= 4 else 1e-8
    return bool(np.allclose(found, part, rtol=close, atol=close * 1e-3, equal_nan=True))
