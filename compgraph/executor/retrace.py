"""Retracing: recording a graph again, with other values for its leaves.

Every operation and every write is repeated in the order of recording, so lengths that depend on the leaves are recomputed. A
node with an `Origin` was computed by a pass through the graph, such as a derivative, which may have recorded lengths of arrays.
That pass runs again, on the new graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import ops
from ..array_types import Array
from ..bind import attach, bind
from ..context import rerecording, run_isolated
from ..guards import Guard, GuardError, Shape, UntrackedGuard, collecting_guards
from ..inplace import store
from ..storage import Write, layout_in, memory_of, root_of, value_at, viewed_operand, window
from ..values import (
    NO_OPTIONS,
    MultiOutput,
    OperationalNode,
    Origin,
    PlaceholderNode,
    Value,
    describe,
    new_leaf,
    next_sequence_number,
    node_class,
)
from .schedule import collect_dependencies, retrace_sources_of

ReadOperand = Callable[[Any, int, dict[Any, Any]], Any]


def retrace_graph(
    items: list[Any],
    feeds: Mapping[Any, Any],
    substitutions: Mapping[Any, Any] = NO_OPTIONS,
    read_operand: ReadOperand | None = None,
    guard_log: list[Guard] | None = None,
) -> dict[Any, Any]:
    """Record a graph again.

    Parameters
    ----------
    items : list
        The nodes, multi-output operations, writes and guards of the graph in the order of recording, as from
        `schedule.collect_dependencies`.
    feeds : mapping
        Plain arrays as values of some of its nodes.
    substitutions : mapping, optional
        Replacements for some of its nodes.
    read_operand : callable, optional
        ``read_operand(item, position, replacements)`` is called for each operand before an item is recorded again. The last
        argument holds the replacements so far. It returns the operand to use, or None for the default one.
    guard_log : list of Guard, optional
        The list to which guards of rules are appended. By default they are logged like those of other operations.

    Returns
    -------
    dict
        The replacement of each node, multi-output operation and guard of `items`.

    Raises
    ------
    GuardError
        If Python would have taken another branch with these values.
    """
    return run_isolated(_Retrace(items, feeds, substitutions, read_operand).run, guard_log)


def retrace_outputs(
    items: list[Any], outputs: Iterable[Any], feeds: Mapping[Any, Any], guard_log: list[Guard] | None = None, **keywords: Any
) -> dict[Any, Any]:
    """Record a graph again for some outputs, as `retrace_graph` does.

    If an untracked index cannot be computed, its guard is left out with a warning.
    """
    try:
        return retrace_graph(items, feeds, guard_log=guard_log, **keywords)
    except (ValueError, IndexError, TypeError, GuardError) as error:
        untracked_guards = [item for item in items if isinstance(item, UntrackedGuard)]
        if not untracked_guards or getattr(error, "is_untracked", False):
            raise
    tracked_guards = [item for item in items if isinstance(item, Guard) and item not in untracked_guards]
    if guard_log:
        guard_log.clear()
    items = collect_dependencies([*outputs, *tracked_guards], retrace_sources_of)
    replacements = retrace_graph(items, feeds, guard_log=guard_log, **keywords)
    for guard in untracked_guards:
        guard.warn_once("it cannot be computed as it was while the graph was recorded")
    return replacements


class _Retrace:
    """The state of `retrace_graph`.

    Attributes
    ----------
    replacements : dict
        The new node or multi-output operation for each old one so far.
    outputs : dict
        The outputs of each new multi-output operation.
    roots : dict
        The array with writes by the id of its memory.
    is_fixed : bool
        Whether all lengths are fixed, because the graph has no placeholder.
    requested_positions : dict
        By pass (the id of its variables), the positions of the variables whose derivatives are in the graph.
    derivatives_by_pass : dict
        By pass, the recomputed derivatives by position.
    """

    def __init__(
        self,
        items: list[Any],
        feeds: Mapping[Any, Any],
        substitutions: Mapping[Any, Any],
        read_operand: ReadOperand | None,
    ) -> None:
        self.items, self.feeds, self.substitutions, self.read_operand = items, feeds, substitutions, read_operand
        self.is_fixed = not any(isinstance(item, PlaceholderNode) for item in (*items, *substitutions.values()))
        self.roots = {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}
        self.replacements: dict[Any, Any] = dict(substitutions)
        self.outputs: dict[Any, Any] = {}
        self.requested_positions: dict[int, list[int]] = {}
        for item in items:
            if (origin := getattr(item, "origin", None)) is not None:
                self.requested_positions.setdefault(id(origin.wrt), []).append(origin.position)
        self.derivatives_by_pass: dict[int, dict[int, Any]] = {}

    def run(self, guard_log: list[Guard] | None) -> dict[Any, Any]:
        """Record all items again, and return their replacements."""
        with rerecording(), collecting_guards(guard_log):
            for item in self.items:
                if item in self.substitutions:
                    continue
                if isinstance(item, Guard):
                    args = self._map_operands(item)
                    item.check(*[a.raw_value if isinstance(a, Value) else a for a in args])
                    self.replacements[item] = item.with_args(args, next_sequence_number())
                elif isinstance(item, Write):
                    self._repeat_write(item)
                else:
                    self._retrace_item(item)
        return self.replacements

    def _map_operands(self, item: Any) -> tuple[Any, ...]:
        """Return the operands of an item in the new graph."""
        if self.read_operand is None:
            return tuple([self.replacements[a] if isinstance(a, (Value, MultiOutput)) else a for a in item.args])
        new_operands = []
        for position, a in enumerate(item.args):
            operand = self.read_operand(item, position, self.replacements)
            if operand is None:
                operand = self.replacements[a] if isinstance(a, (Value, MultiOutput)) else a
            new_operands.append(operand)
        return tuple(new_operands)

    def _retrace_item(self, item: Any) -> None:
        """Record a node or multi-output operation again, with its name, line and scope."""
        replacement = self._make_replacement(item)
        if isinstance(item, Value) and replacement is not item:
            self._require_same_type(item, replacement)
        if replacement is not item:
            replacement.code, replacement.instruction, replacement._scope = item.code, item.instruction, item.scope
            if isinstance(item, Value):
                replacement._name = item._name
        self.replacements[item] = replacement

    def _require_same_type(self, item: Any, replacement: Any) -> None:
        """Raise if the dtype of a result differs from the recorded one; also for its shape if `is_fixed`."""
        has_other_dtype = replacement.dtype != item.dtype
        if has_other_dtype or (self.is_fixed and replacement.raw_value.shape != item.raw_value.shape):
            recorded_type = item.dtype if has_other_dtype else f"of shape {item.raw_value.shape}"
            new_type = replacement.dtype if has_other_dtype else f"of shape {replacement.raw_value.shape}"
            raise GuardError(
                f"while the graph was recorded, the {describe(item)} was {recorded_type} at {item.line}; with these values it is "
                f"{new_type}, so Python may take another branch. Record the graph again with such values"
            )

    def _make_replacement(self, item: Any) -> Any:
        """Return the new node or multi-output operation: from a fed value, from its origin, or by its operation."""
        if not item.args:
            if item in self.feeds:
                return new_leaf(self.feeds[item], node_class(item), None)
            # An array with writes starts with its contents before the first write.
            return new_leaf(np.array(value_at(item, item.sequence_number)), OperationalNode, None) if item.memory else item
        origin = getattr(item, "origin", None)
        if origin is not None:
            replacement = self._recompute_from_origin(origin)
            if item in self.feeds:
                return attach(self.feeds[item], replacement.function, replacement.args, replacement.options)
            return replacement
        args = self._map_operands(item)
        options = _plain_options(item.options)
        if item in self.feeds:
            return attach(self.feeds[item], item.function, args, options)
        if isinstance(item.function, ops.Output):
            return self.outputs[args[0]][item.function.index]
        if not isinstance(item, MultiOutput):
            replacement = bind(item.function, args, options)
            if item.function in ops.VIEW_FUNCTIONS:
                _require_copy(item, replacement)
            return replacement
        outputs = bind(item.function, args, options)
        multi_output = next(output for output in outputs if output is not None).args[0]
        self.outputs[multi_output] = outputs
        return multi_output

    def _recompute_from_origin(self, origin: Origin) -> Any:
        """Recompute a node from its origin, in one pass with the other requested results of that pass."""
        if id(origin.wrt) not in self.derivatives_by_pass:
            positions = self.requested_positions[id(origin.wrt)]
            derivatives = origin.derive(
                self.replacements[origin.output], [self.replacements[origin.wrt[position]] for position in positions]
            )
            self.derivatives_by_pass[id(origin.wrt)] = dict(zip(positions, derivatives, strict=True))
        return self.derivatives_by_pass[id(origin.wrt)][origin.position]

    def _repeat_write(self, item: Write) -> None:
        """Repeat a write, into the replacement of its array."""
        start = next_sequence_number()
        root = self.roots[id(item.memory)]
        target, buffer = self.replacements[root], root.raw_value
        if item.window is not buffer:
            if (target.raw_value.shape, target.raw_value.strides) != (buffer.shape, buffer.strides):
                raise GuardError(
                    f"a part of an array of shape {buffer.shape} was written into at {item.line}; with these values it has "
                    f"shape {target.raw_value.shape}, so the part is ambiguous. Record the graph again with such values"
                )
            target = bind(window, (target,), layout_in(buffer, item.window))
        (value,) = self._map_operands(item)
        store(target, item.index, value)
        memory = root_of(target).memory
        if memory and memory.log[-1].sequence_number > start:  # an empty store is not logged
            memory.log[-1].code, memory.log[-1].instruction = item.code, item.instruction


def _plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with plain tuples as shapes: reading a `Shape` here would be recorded as an access by the user."""
    return {name: tuple(o) if isinstance(o, Shape) else o for name, o in options.items()} if options else options


def _require_copy(item: Any, replacement: Array) -> None:
    """Raise if a recorded copy of an array with writes is now a view, which would show the writes."""
    if viewed_operand(replacement) is not None and viewed_operand(item) is None and memory_of(item.args[0]):
        raise GuardError(
            f"while the graph was recorded, np.{item.function.__name__} made a copy at {item.line}, of an array with writes; "
            "with these values, which have another memory layout, it makes a view. Record the graph again with such values"
        )
