"""One call of a function on stand-ins for its arguments, and the schedule of the graph that it left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..context import Setting, call_function, call_wrapper, recording_for_replay, run_isolated, trace_guards
from ..executor import Family, Schedule, needed
from ..guards import Guard, collecting_leaks, guards_among, is_length_guard
from ..interception import intercepted, lent
from ..scipy import enter_imported
from ..tracing import Tracing
from ..values import ArgumentNode, ConstantNode, ScalarNode, Value, new_leaf, next_sequence_number
from .arguments import Call
from .captured import Captured, require_unchanged
from .loops import STEP, NotAlikeError, Shortening
from .random_numbers import Drawn, refusing_draws
from .refusals import RefusedError
from .results import Results, require_like
from .unused import Unused, computed

# Conversions whose answers are guards, which a program asks again.
_ASKED_AGAIN = frozenset({"bool()", "int()", "index()"})


class Traced(NamedTuple):
    """What a trace left.

    Attributes
    ----------
    schedule : Schedule
        How the results are computed from the values of a call.
    build : callable
        What makes the results for the caller of the tuple that a program gives.
    size : int
        How many operations it has.
    is_constant : bool
        Whether nothing is computed, and nothing asked.
    family : Family or None
        Where loops were cut, `schedule` with some numbers of turns.
    """

    schedule: Schedule
    build: Callable[[Sequence[Any]], Any]
    size: int
    is_constant: bool
    family: Family | None = None


def traced(f: Any, call: Call, captured: Captured, expected: Any, careful: bool, cuts_loops: bool = False) -> Traced:
    """The graph of one call.

    Parameters
    ----------
    f : callable
        The function.
    call : Call
        Its arguments, which belong to the trace.
    captured : Captured
        What it reaches besides them.
    expected : tuple
        What it gave for these arguments by NumPy; see `results.kept`.
    careful : bool
        Whether derivatives are recorded that are right also where the short form gives nan.
    cuts_loops : bool
        Whether loops may be cut to a few turns, by which the others are known.

    Raises
    ------
    RefusedError
        If it cannot be compiled.
    NotAlikeError
        If loops were cut, and what was found then is not known to be right.
    """
    shortening = Shortening() if cuts_loops else None
    try:
        return run_isolated(_traced, f, call, captured, expected, careful, shortening)
    except Exception as error:
        if shortening is None or not shortening.loops:
            raise
        raise NotAlikeError from error


def _traced(f: Any, call: Call, captured: Captured, expected: Any, careful: bool, shortening: Shortening | None) -> Traced:
    enter_imported()
    since = next_sequence_number()
    tracing = Tracing(records=True, compiles=True)
    noted: list[Guard] = []
    with np.errstate(all="ignore"), tracing, Setting({call_wrapper: shortening, trace_guards: noted}):
        inputs = [_stand_in(value) for value in call.values()]
        again = partial(_called, f, *call.with_values(inputs).arguments(), careful, captured.derives)
        returned, escapes, unused = again()
        if tracing._log:  # an error was caught, so that it went another way than by NumPy
            raise RefusedError(f"it catches an error that it gets only while it is traced: {tracing._log[0]}")
        if shortening is not None and shortening.has_failed:
            raise NotAlikeError
        results = Results(returned, expected)
        del returned
        if shortening is not None and shortening.loops:
            require_unchanged(captured, "while it was traced")
            schedules = [_with_few_turns(results, noted, escapes, unused, inputs, shortening.tables, since)]
            for turns in shortening.further():
                shortening.begin_again(turns)
                noted.clear()
                returned, escapes, unused = again()
                made = Results(returned, expected)
                schedules.append(_with_few_turns(made, noted, escapes, unused, inputs, shortening.tables, since))
            return _of_many_turns(schedules, shortening, results, _by_numpy(f, call, results))
    require_unchanged(captured, "while it was traced")
    for position, node in enumerate(inputs):
        if node.memory:
            raise RefusedError(f"it writes into an argument (array {position}; {node.memory.log[0].line})")
    outputs = results.outputs
    left_out = unused.found(outputs, inputs)
    items = needed([*outputs, *inputs, *left_out])
    guards, escaped = guards_among(noted, items)
    escaped += _left(escapes)
    if escaped:
        told = "; ".join(dict.fromkeys(escaped))
        raise RefusedError(f"numbers leave the graph, and what is done with them would not be done again: {told}")
    if left_out:
        guards = [*guards, computed(left_out)]
    _require_own(items, inputs, since)
    build = results.builder()
    given, found = [node.raw_value for node in inputs], build([np.array(node.raw_value)[()] for node in outputs])
    require_like(found, expected, "what it gives of the stand-ins of a trace", given)
    is_constant = not outputs and not guards
    if not outputs and inputs:  # a program gives something, if only for its guards
        outputs = [min(inputs, key=lambda node: int(node.raw_value.size))]
    return Traced(Schedule.of(outputs, guards, inputs), build, len(items), is_constant)


def _left(escapes: list[Any]) -> list[str]:
    """The conversions to numbers that are not asked again, in words."""
    return [str(escape) for escape in escapes if escape.what not in _ASKED_AGAIN]


def _with_few_turns(
    results: Results,
    noted: list[Guard],
    escapes: list[Any],
    unused: Unused,
    inputs: list[Any],
    tables: list[Any],
    since: float,
) -> Schedule:
    """The schedule of a trace whose loops were cut: the values of its nodes are others, so nothing may hang on them."""
    items = needed([*results.outputs, *inputs])
    guards, escaped = guards_among(noted, items)
    given = [*inputs, *tables]
    hangs = not all(map(is_length_guard, guards))
    left_out = unused.found(results.outputs, given)
    if unused.derives:  # of derivatives of a long loop its warnings are not worth the time of all turns
        left_out = [node for node in left_out if not isinstance(node.function, np.ufunc)]
    if hangs or left_out or escaped or _left(escapes) or not results.outputs or any(node.memory for node in given):
        raise NotAlikeError
    _require_own(items, inputs, since)
    return Schedule.of(results.outputs, (), given)


def _of_many_turns(schedules: list[Schedule], shortening: Shortening, results: Results, plain: Any) -> Traced:
    """What traces left whose loops were cut."""
    turns, wanted = [shortening.least, *shortening.further()], shortening.wanted
    sizes = [len(schedule.units) for schedule in schedules]
    by = [(s - sizes[0]) // STEP for s in sizes[1:-1]]
    size = sizes[0] + sum((w - n) * b for w, n, b in zip(wanted, turns[0], by, strict=True))
    tables = [np.asarray(table.raw_value) for table in shortening.tables]
    return Traced(schedules[0], results.builder(), size, False, Family(turns, schedules, wanted, tables, plain))


def _by_numpy(f: Any, call: Call, results: Results) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What gives by NumPy what a program gives; of its values those after the ones of a call are tables."""
    blank = call.with_values([None] * len(call.values()))
    kinds = [type(value) for value in call.values()]

    def plain(values: Sequence[Any]) -> tuple[Any, ...]:
        own = [np.array(value) if kind is np.ndarray else value[()] for value, kind in zip(values, kinds, strict=False)]
        args, kwargs = blank.with_values(own).arguments()
        return results.computed(f(*args, **kwargs))

    return plain


def _called(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], careful: bool, derives: bool) -> tuple[Any, list[Any], Unused]:
    """What the function gives of stand-ins, the numbers that were seen to leave the graph, and operations that may be unused."""
    unused = Unused(derives)
    given = (*args, *kwargs.values())
    with intercepted(f, given, True) as opened, collecting_leaks() as escapes:
        watch = None if opened.is_closed else Drawn(f, given)
        with (
            Setting(refusing_draws()),
            watch or Setting({}),
            recording_for_replay() if careful else Setting({}),
            unused.collecting(),
        ):
            named = {name: lent(value) for name, value in kwargs.items()}
            returned = call_function(partial(f, **named), [*map(lent, args)])
    if watch is not None:
        watch.require_none()
    return returned, escapes, unused


def _stand_in(value: Any) -> Any:
    """An input node with a value: of an array, or of a NumPy scalar, which names are rebound to by ``x += 1``."""
    if not value.shape and value.dtype.kind in "biu":  # C code takes it for a length, and asks nobody
        raise RefusedError(
            f"an argument is a 0-d array of {value.dtype}; give Python's number, int(n), which is part of a program"
        )
    if type(value) is np.ndarray:
        return new_leaf(value, ArgumentNode, None)
    node = new_leaf(np.asarray(value), ScalarNode, None)
    node.raw_value = np.asarray(value)
    return node


def _require_own(items: list[Any], inputs: list[Any], since: float) -> None:
    """Raise a RefusedError if a graph goes on beyond the trace: to variables, say."""
    given = frozenset(inputs)
    for item in items:
        if isinstance(item, Value) and item not in given and not isinstance(item, ConstantNode) and item.sequence_number < since:
            raise RefusedError(f"it uses a node that was made outside of it ({item.what}, {item.line or 'an unknown line'})")
