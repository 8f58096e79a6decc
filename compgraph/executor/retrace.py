"""Retracing: records a graph again, with other values for its leaves.

Every operation and every write is repeated in the order of recording, so lengths derived from the leaves are derived again. A
node with an `Origin` was computed by a pass through the graph, which may have recorded lengths of the arrays it saw. That pass
runs again, on the new graph.
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
from .schedule import needed, origins_of

ReadOperand = Callable[[Any, int, dict[Any, Any]], Any]


def replay(
    items: list[Any],
    feeds: Mapping[Any, Any],
    instead: Mapping[Any, Any] = NO_OPTIONS,
    reading: ReadOperand | None = None,
    noted: list[Guard] | None = None,
) -> dict[Any, Any]:
    """Record a graph again.

    Parameters
    ----------
    items : list
        The nodes, joints, writes and guards of the graph in the order of recording, as `schedule.needed` returns them.
    feeds : mapping
        Plain arrays as values of some of its nodes.
    instead : mapping, optional
        Replacements for some of its nodes.
    reading : callable, optional
        ``reading(item, position, replacements)`` is called for each operand before an item is recorded again; the last argument
        holds the replacements so far. It returns the operand to use, or None for the default one.
    noted : list of Guard, optional
        Receives the guards that rules note. By default they are noted like those of other operations.

    Returns
    -------
    dict
        The replacement of each node, joint and guard of `items`.

    Raises
    ------
    GuardError
        If Python would have taken another branch with these values.
    """
    return run_isolated(_record_again, items, feeds, instead, reading, noted)


def replay_watched(
    items: list[Any], outputs: Iterable[Any], feeds: Mapping[Any, Any], noted: list[Guard] | None = None, **more: Any
) -> dict[Any, Any]:
    """Replay a graph for some outputs, as `replay` does; values that are only watched are skipped if they cannot be computed."""
    try:
        return replay(items, feeds, noted=noted, **more)
    except (ValueError, IndexError, TypeError, GuardError) as error:
        watches = [item for item in items if isinstance(item, UntrackedGuard)]
        if not watches or getattr(error, "is_untracked", False):
            raise
    tracked_guards = [item for item in items if isinstance(item, Guard) and item not in watches]
    if noted:
        noted.clear()
    replacements = replay(needed([*outputs, *tracked_guards], origins_of), feeds, noted=noted, **more)
    for watch in watches:
        watch.warn_once("it cannot be computed as it was while the graph was recorded")
    return replacements


def _record_again(
    items: list[Any],
    feeds: Mapping[Any, Any],
    instead: Mapping[Any, Any],
    reading: ReadOperand | None,
    noted: list[Guard] | None,
) -> dict[Any, Any]:
    again = _Replay(feeds, items)
    again.replacements.update(instead)
    again.reading = reading

    # change.
    again.is_fixed = not any(isinstance(item, PlaceholderNode) for item in (*items, *instead.values()))
    with rerecording(), collecting_guards(noted):
        for item in items:
            if item in instead:
                continue
            if isinstance(item, Guard):
                args = again.operands(item)
                item.check(*[a.raw_value if isinstance(a, Value) else a for a in args])
                again.replacements[item] = item.with_args(args, next_sequence_number())
            elif isinstance(item, Write):
                again.write(item)
            else:
                again.record(item)
    return again.replacements


class _Replay:
    """The state of a replay."""

    def __init__(self, feeds: Mapping[Any, Any], items: list[Any]) -> None:
        self.feeds, self.is_fixed = feeds, False
        self.roots = {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}
        self.replacements: dict[Any, Any] = {}
        self.outputs: dict[Any, Any] = {}
        self.requested: dict[int, list[int]] = {}  # by pass: the positions of the results that are needed
        for item in items:
            if (origin := getattr(item, "origin", None)) is not None:
                self.requested.setdefault(id(origin.wrt), []).append(origin.place)
        self.repeated: dict[int, dict[int, Any]] = {}
        self.reading: ReadOperand | None = None

    def operands(self, item: Any) -> tuple[Any, ...]:
        """Return the operands of an item in the new graph."""
        if self.reading is None:
            return tuple([self.replacements[a] if isinstance(a, (Value, MultiOutput)) else a for a in item.args])
        new_operands = []
        for place, a in enumerate(item.args):
            other = self.reading(item, place, self.replacements)
            if other is None:
                other = self.replacements[a] if isinstance(a, (Value, MultiOutput)) else a
            new_operands.append(other)
        return tuple(new_operands)

    def record(self, item: Any) -> None:
        """Record a node or joint again."""
        replacement = self._again(item)
        if isinstance(item, Value) and replacement is not item:
            self._require_kind(item, replacement)
        if replacement is not item:
            replacement.code, replacement.instruction, replacement._scope = item.code, item.instruction, item.scope
            if isinstance(item, Value):
                replacement._name = item._name
        self.replacements[item] = replacement

    def _require_kind(self, item: Any, replacement: Any) -> None:
        """Raise if a result has another dtype; or another shape, where no length may change (`is_fixed`)."""
        is_other = replacement.dtype != item.dtype
        if is_other or (self.is_fixed and replacement.raw_value.shape != item.raw_value.shape):
            was = item.dtype if is_other else f"of shape {item.raw_value.shape}"
            raise GuardError(
                f"while the graph was recorded, the {describe(item)} was {was} at {item.line}; with these values it is "
                f"{replacement.dtype if is_other else f'of shape {replacement.raw_value.shape}'}, so Python may take another "
                "branch. Record the graph again with such values"
            )

    def _again(self, item: Any) -> Any:
        if not item.args:
            if item in self.feeds:
                return new_leaf(self.feeds[item], node_class(item), None)
            # An array with writes starts with its contents before the first write.
            return new_leaf(np.array(value_at(item, item.sequence_number)), OperationalNode, None) if item.memory else item
        origin = getattr(item, "origin", None)
        if origin is not None:
            replacement = self._repeated(origin)
            if item in self.feeds:
                return attach(self.feeds[item], replacement.function, replacement.args, replacement.options)
            return replacement
        args = self.operands(item)
        options = _plain_options(item.options)
        if item in self.feeds:
            return attach(self.feeds[item], item.function, args, options)
        if isinstance(item.function, ops.Output):
            return self.outputs[args[0]][item.function.index]
        if not isinstance(item, MultiOutput):
            replacement = bind(item.function, args, options)
            if item.function in ops.MAYBE_VIEWS:
                _require_copy(item, replacement)
            return replacement
        parts = bind(item.function, args, options)
        joint = next(part for part in parts if part is not None).args[0]
        self.outputs[joint] = parts
        return joint

    def _repeated(self, origin: Origin) -> Any:
        """Recompute a node from its origin, in one pass with the other needed results of that pass."""
        if id(origin.wrt) not in self.repeated:
            places = self.requested[id(origin.wrt)]
            derivatives = origin.derive(
                self.replacements[origin.output], [self.replacements[origin.wrt[place]] for place in places]
            )
            self.repeated[id(origin.wrt)] = dict(zip(places, derivatives, strict=True))
        return self.repeated[id(origin.wrt)][origin.place]

    def write(self, item: Write) -> None:
        """Repeat a write, into the replacement of its array."""
        start = next_sequence_number()
        root = self.roots[id(item.memory)]
        target, there = self.replacements[root], root.raw_value
        if item.window is not there:
            if (target.raw_value.shape, target.raw_value.strides) != (there.shape, there.strides):
                raise GuardError(
                    f"a part of an array of shape {there.shape} was written into at {item.line}; with these values it has "
                    f"shape {target.raw_value.shape}, so the part is ambiguous. Record the graph again with such values"
                )
            target = bind(window, (target,), layout_in(there, item.window))
        (value,) = self.operands(item)
        store(target, item.index, value)
        written = root_of(target).memory
        if written and written.log[-1].sequence_number > start:  # an empty store is not logged
            written.log[-1].code, written.log[-1].instruction = item.code, item.instruction


def _plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with plain tuples for shapes, because reading a `Shape` here would change the guard of the user's access."""
    return {name: tuple(o) if isinstance(o, Shape) else o for name, o in options.items()} if options else options


def _require_copy(item: Any, replacement: Array) -> None:
    """Raise if a recorded copy of an array with writes is now a view, which would show the writes."""
    if viewed_operand(replacement) is not None and viewed_operand(item) is None and memory_of(item.args[0]):
        raise GuardError(
            f"while the graph was recorded, np.{item.function.__name__} made a copy at {item.line}, of an array with writes; "
            "with these values, which have another memory layout, it makes a view. Record the graph again with such values"
        )
