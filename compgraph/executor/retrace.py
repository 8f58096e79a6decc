"""Records a graph once more, with other values in its leaves.

Every operation, and every write in place, is done again in the order of recording, so lengths that follow from those of the
leaves follow again. A node with an `Origin` was computed by a pass through the graph, which may have recorded lengths of the
arrays it saw: the pass is run again, on the new graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import ops
from ..bind import attach, bind
from ..context import rerecording, run_isolated
from ..guards import Guard, GuardError, Shape, UntrackedGuard, collecting_guards
from ..inplace import store
from ..storage import Write, memory_of, place_in, root_of, value_at, viewed_operand, window
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

Reading = Callable[[Any, int, dict[Any, Any]], Any]


def replay(
    items: list[Any],
    feeds: Mapping[Any, Any],
    instead: Mapping[Any, Any] = NO_OPTIONS,
    reading: Reading | None = None,
    noted: list[Guard] | None = None,
) -> dict[Any, Any]:
    """Record a graph again.

    Parameters
    ----------
    items : list
        The nodes, joints, writes and guards of the graph in the order of recording, as `schedule.needed` gives them.
    feeds : mapping
        The values, plain arrays, of some of its nodes.
    instead : mapping, optional
        For some of its nodes others, made beforehand, that take their places.
    reading : callable, optional
        ``reading(item, position, made)`` is called for each operand, node or not, before an item is recorded again; `made` is the
        result so far. It returns the operand to read there, or None for the old one, or what took its place.
    noted : list of Guard, optional
        Where the guards are entered that rules note. By default they are noted as those of other operations are.

    Returns
    -------
    dict
        For each node, joint and guard of `items` the one that took its place.

    Raises
    ------
    GuardError
        If Python would have decided otherwise with these values.
    """
    return run_isolated(_recorded_again, items, feeds, instead, reading, noted)


def replay_watched(
    items: list[Any], outputs: Iterable[Any], feeds: Mapping[Any, Any], noted: list[Guard] | None = None, **more: Any
) -> dict[Any, Any]:
    """Record a graph again, as by `replay`, to compute some outputs; what is only watched is left out where that fails."""
    try:
        return replay(items, feeds, noted=noted, **more)
    except (ValueError, IndexError, TypeError, GuardError) as error:
        watches = [item for item in items if isinstance(item, UntrackedGuard)]
        if not watches or getattr(error, "is_of_watch", False):
            raise
    asked = [item for item in items if isinstance(item, Guard) and item not in watches]
    if noted:
        noted.clear()
    made = replay(needed([*outputs, *asked], origins_of), feeds, noted=noted, **more)
    for watch in watches:
        watch.tell("it cannot be computed as it was while the graph was recorded")
    return made


def _recorded_again(
    items: list[Any],
    feeds: Mapping[Any, Any],
    instead: Mapping[Any, Any],
    reading: Reading | None,
    noted: list[Guard] | None,
) -> dict[Any, Any]:
    again = _Replay(feeds, items)
    again.made.update(instead)
    again.reading = reading
    # Guards on lengths are noted only while a placeholder lives. Without one, nothing tells what was done with lengths: none may
    # change.
    again.is_fixed = not any(isinstance(item, PlaceholderNode) for item in (*items, *instead.values()))
    with rerecording(), collecting_guards(noted):
        for item in items:
            if item in instead:
                continue
            if isinstance(item, Guard):
                args = again.operands(item)
                item.check(*[a.raw_value if isinstance(a, Value) else a for a in args])
                again.made[item] = item.on(args, next_sequence_number())
            elif isinstance(item, Write):
                again.write(item)
            else:
                again.record(item)
    return again.made


class _Replay:
    """What has been recorded again so far."""

    def __init__(self, feeds: Mapping[Any, Any], items: list[Any]) -> None:
        self.feeds, self.is_fixed = feeds, False
        self.roots = {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}
        self.made: dict[Any, Any] = {}
        self.outputs: dict[Any, Any] = {}
        self.asked: dict[int, list[int]] = {}  # for nodes of one pass: the places that are needed here
        for item in items:
            if (origin := getattr(item, "origin", None)) is not None:
                self.asked.setdefault(id(origin.wrt), []).append(origin.place)
        self.repeated: dict[int, dict[int, Any]] = {}
        self.reading: Reading | None = None

    def operands(self, item: Any) -> tuple[Any, ...]:
        """What an item reads now, in place of its operands."""
        if self.reading is None:
            return tuple([self.made[a] if isinstance(a, (Value, MultiOutput)) else a for a in item.args])
        found = []
        for place, a in enumerate(item.args):
            other = self.reading(item, place, self.made)
            if other is None:
                other = self.made[a] if isinstance(a, (Value, MultiOutput)) else a
            found.append(other)
        return tuple(found)

    def record(self, item: Any) -> None:
        """Record a node or joint."""
        made = self._again(item)
        if isinstance(item, Value) and made is not item:
            self._require_kind(item, made)
        if made is not item:
            made.code, made.instruction, made._scope = item.code, item.instruction, item.scope
            if isinstance(item, Value):
                made._name = item._name
        self.made[item] = made

    def _require_kind(self, item: Any, made: Any) -> None:
        """Raise if a result has another dtype; or another shape, where no lengths may change (`is_fixed`)."""
        is_other = made.dtype != item.dtype
        if is_other or (self.is_fixed and made.raw_value.shape != item.raw_value.shape):
            was = item.dtype if is_other else f"of shape {item.raw_value.shape}"
            raise GuardError(
                f"while the graph was recorded, the {describe(item)} was {was} at {item.line}; with these values it is "
                f"{made.dtype if is_other else f'of shape {made.raw_value.shape}'}, and what Python did after that may be "
                "another. Record the graph again with such values"
            )

    def _again(self, item: Any) -> Any:
        if not item.args:
            if item in self.feeds:
                return new_leaf(self.feeds[item], node_class(item), None)
            # An array that is written into has to hold what it held before the first write.
            return new_leaf(np.array(value_at(item, item.sequence_number)), OperationalNode, None) if item.memory else item
        origin = getattr(item, "origin", None)
        if origin is not None:
            made = self._repeated(origin)
            return attach(self.feeds[item], made.function, made.args, made.options) if item in self.feeds else made
        args = self.operands(item)
        options = _settled(item.options)
        if item in self.feeds:
            return attach(self.feeds[item], item.function, args, options)
        if isinstance(item.function, ops.Output):
            return self.outputs[args[0]][item.function.index]
        if not isinstance(item, MultiOutput):
            made = bind(item.function, args, options)
            if item.function in ops.VIEWS_IF_THEY_CAN:
                _require_copy(item, made)
            return made
        parts = bind(item.function, args, options)
        joint = next(part for part in parts if part is not None).args[0]
        self.outputs[joint] = parts
        return joint

    def _repeated(self, origin: Origin) -> Any:
        """A node computed from its origin again, in one pass with the others of that pass that are needed here."""
        if id(origin.wrt) not in self.repeated:
            places = self.asked[id(origin.wrt)]
            found = origin.derive(self.made[origin.output], [self.made[origin.wrt[place]] for place in places])
            self.repeated[id(origin.wrt)] = dict(zip(places, found, strict=True))
        return self.repeated[id(origin.wrt)][origin.place]

    def write(self, item: Write) -> None:
        """Write again, into the array that took the place of the one written into."""
        begun = next_sequence_number()
        root = self.roots[id(item.memory)]
        target, there = self.made[root], root.raw_value
        if item.window is not there:
            if (target.raw_value.shape, target.raw_value.strides) != (there.shape, there.strides):
                raise GuardError(
                    f"a part of an array of shape {there.shape} was written into at {item.line}; with these values it has "
                    f"shape {target.raw_value.shape}, and which part is meant is not known. Record the graph again with such "
                    "values"
                )
            target = bind(window, (target,), place_in(there, item.window))
        (value,) = self.operands(item)
        store(target, item.index, value)
        written = root_of(target).memory
        if written and written.log[-1].sequence_number > begun:  # where nothing is left to be written into, nothing is remembered
            written.log[-1].code, written.log[-1].instruction = item.code, item.instruction


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    """Options with ordinary tuples for shapes: to read a `Shape` here would change the guard of the user's reading."""
    return {name: tuple(o) if isinstance(o, Shape) else o for name, o in options.items()} if options else options


def _require_copy(item: Any, made: Any) -> None:
    """Raise if what was a copy of an array that was written into is a view now, in which the writes would show."""
    if viewed_operand(made) is not None and viewed_operand(item) is None and memory_of(item.args[0]):
        raise GuardError(
            f"while the graph was recorded, np.{item.function.__name__} made a copy at {item.line}, of an array that was written "
            "into; with these values, which lie otherwise in memory, it makes a view. Record the graph again with such values"
        )
