"""Traces of functions: one call on argument tracers, and the schedule of the graph that it records.

A program computes the unused results of a trace only if their operation may warn or raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..array_types import Array
from ..context import (
    Setting,
    call_function,
    call_wrapper,
    collector,
    guards_corners,
    higher_derivatives,
    is_deriving,
    recording_for_replay,
    run_isolated,
    trace_guards,
    unmasked_derivatives,
)
from ..executor import Schedule, TripCountFamily, collect_dependencies, select_hidden, sources_of
from ..guards import EvaluationGuard, Guard, collecting_leaks, is_length_guard, select_guards
from ..interception import UNSEEDED, DrawMonitor, as_borrowed, generator_state, intercept, reachable_generators, with_draw_handler
from ..interpreters import ObservedInterpreter
from ..scipy import register_imported
from ..storage import window
from ..tracing import Tracing
from ..values import ArgumentNode, ConstantNode, MultiOutput, ScalarNode, Value, new_leaf, next_sequence_number
from .call_signatures import Call
from .captured_state import CapturedState, require_unchanged
from .compile_errors import NotCompilableError
from .loop_truncation import TRIP_COUNT_STEP, LoopMismatchError, LoopTruncation
from .result_trees import ResultTree, require_close_results

_SILENT_FUNCTIONS = frozenset({ops.copy_with_layout, window})  # own operations that neither warn nor raise
_INTEGERS = "biu"


class UnusedResults:
    """Collects the operations of a trace that may warn or raise.

    Parameters
    ----------
    uses_autodiff : bool
        Whether the function computes derivatives. They read few values of the differentiated function, and computing the others
        is expensive, so their arithmetic is not checked for overflow.
    """

    def __init__(self, uses_autodiff: bool) -> None:
        self.uses_autodiff = uses_autodiff
        self._collected: list[Any] = []

    def collecting(self) -> Setting:
        """Return a context whose recorded operations are collected, except those of derivatives."""
        return Setting({collector: self})

    def wrap(self, interpreter: Any) -> ObservedInterpreter:
        """Return an interpreter whose results are collected."""
        return ObservedInterpreter(interpreter, self.collect)

    def collect(self, result: object) -> None:
        """Collect the nodes of an operation."""
        node = result
        if not isinstance(result, Value) and isinstance(result, (tuple, list)):
            node = next((part for part in result if part is not None), None)
        if isinstance(node, Value) and not is_deriving() and not self._never_warns(node):
            self._collected.append(node)

    def _never_warns(self, node: Any) -> bool:
        item = _operation_of(node)
        function = item.function
        while isinstance(function, (ops.Configured, ops.Keyworded)):
            function = function.function
        if isinstance(function, ops.UfuncMethod):
            if function.method not in ("reduce", "accumulate", "outer"):
                return False
            function = function.ufunc
        spec = ops.spec_of(function)
        warns = "maybe" if spec is None else spec.warns
        if warns == "never" or function in _SILENT_FUNCTIONS:
            return True
        dtypes = [
            np.asarray(getattr(a, "raw_value", a)).dtype for a in item.args if isinstance(a, (Value, np.ndarray, np.generic))
        ]
        if warns == "casts":
            return all(np.can_cast(t, node.dtype) or (t.kind in _INTEGERS and node.dtype.kind in "biufc") for t in dtypes)
        if warns == "indices":
            return bool(item.parent_argnums == (0,))
        if warns == "floats":
            return self.uses_autodiff or all(dtype.kind in _INTEGERS for dtype in (*dtypes, node.dtype))
        return self.uses_autodiff and self._warns_of_overflow_only(function, "" if spec is None else spec.quiet_with, item)

    @staticmethod
    def _warns_of_overflow_only(function: Any, quiet_with: str, item: Any) -> bool:
        """Return whether an operation warns only of overflow and infinite operands, perhaps due to a constant operand."""
        if quiet_with and item.parent_argnums == (0,) and len(item.args) > 1:
            constant = np.asarray(item.args[1])
            if quiet_with == "nonzero":
                return bool(constant.all())
            return bool(constant.dtype.kind != "c" and (constant >= 0).all() and (constant == np.floor(constant)).all())
        is_ufunc_of_scipy = type(function) is np.ufunc and getattr(np, function.__name__, None) is not function
        return is_ufunc_of_scipy and "O" not in "".join(function.types)  # these do not warn

    def are_all_in(self, items: Iterable[Any], since: float) -> bool:
        """Return whether a graph contains all nodes collected since a sequence number."""
        graph_items = frozenset(items)
        return all(_operation_of(node) in graph_items for node in self._collected if node.sequence_number >= since)

    def discard_since(self, since: float) -> None:
        """Discard the nodes collected since a sequence number."""
        self._collected = [node for node in self._collected if node.sequence_number < since]

    def select_unused(self, ends: Iterable[Any], stop: Iterable[Any]) -> list[Any]:
        """Return the collected nodes that no result depends on."""
        if not self._collected:
            return []
        used_items = frozenset(collect_dependencies(ends, _dependencies, stop))
        collected, self._collected = self._collected, []
        unused = [node for node in collected if _operation_of(node) not in used_items]
        if self.uses_autodiff and unused:
            scatters = [item for item in used_items if isinstance(item, Value) and _is_scatter(item.function)]
            scatter_indices = frozenset(item.args[position] for item in scatters for position in item.parent_argnums)
            unused = [node for node in unused if not _is_checked_by_scatter(node, scatter_indices)]
        return unused


def _is_scatter(function: object) -> bool:
    """Return whether a function adds at indices."""
    return function is not ops.getitem and function in ops.INDEXING_FUNCTIONS


def _is_checked_by_scatter(node: Any, scatter_indices: frozenset[Any]) -> bool:
    """Return whether a scatter of a derivative checks the indices of an indexing operation."""
    return node.function is ops.getitem and all(
        node.args[position] in scatter_indices for position in node.parent_argnums if position
    )


def _operation_of(node: Any) -> Any:
    """Return the multi-output operation of one of its results; for another node, the node."""
    return node.args[0] if node.args and type(node.args[0]) is MultiOutput else node


def _dependencies(item: object) -> tuple[Any, ...]:
    """Return the operands of an item; none if it depends on a shape alone."""
    is_constant = isinstance(item, Value) and item.function in ops.FILL_VALUES and not item.memory
    return () if is_constant else sources_of(item)


def make_evaluation_guard(nodes: list[Any]) -> EvaluationGuard:
    """Return a guard that makes a program compute some nodes."""
    return EvaluationGuard("the errors of unused results", type(None), tuple(nodes), None, None, 0, next_sequence_number())


# Conversions whose results are guards, which programs re-check.
_GUARDED_CONVERSIONS = frozenset({"bool()", "int()", "index()"})


class FunctionTrace(NamedTuple):
    """The result of tracing a function.

    Attributes
    ----------
    schedule : Schedule
        The computation of the results from the values of a call.
    build : callable
        Builds the function's result from the outputs of a program.
    size : int
        The number of operations.
    is_constant : bool
        Whether the trace has neither operations nor guards.
    is_unmasked : bool
        Whether a derivative was recorded without masks for structural zeros, so that a result may be nan.
    family : TripCountFamily or None
        If loops were truncated, schedules with several trip counts.
    """

    schedule: Schedule
    build: Callable[[Sequence[Any]], Any]
    size: int
    is_constant: bool
    is_unmasked: bool
    family: TripCountFamily | None = None


def trace_function(
    f: object,
    call: Call,
    captured: CapturedState,
    expected: tuple[Any, ...],
    nan_safe: bool,
    may_truncate_loops: bool = False,
    is_differentiable: bool = False,
    checks_corners: bool = False,
) -> FunctionTrace:
    """Trace one call of a function.

    Parameters
    ----------
    f : callable
        The function.
    call : Call
        The arguments of the call, which the trace may modify.
    captured : CapturedState
        The other state that the function reads.
    expected : tuple
        The results of the function for these arguments, computed by NumPy; see `result_trees.snapshot_results`.
    nan_safe : bool
        Whether derivatives are recorded in a form without spurious NaN, which is slower.
    may_truncate_loops : bool
        Whether loops may be truncated to a few iterations; the program is then extrapolated.
    is_differentiable : bool
        Whether another library may differentiate the program.
    checks_corners : bool
        Whether the program differentiates a derivative again, which may have corners.

    Raises
    ------
    NotCompilableError
        If the function cannot be compiled.
    LoopMismatchError
        If loops were truncated, and the trace possibly differs from the full loops.
    """
    truncation = LoopTruncation() if may_truncate_loops else None
    # The opnames of derivatives that are differentiated again. A trace assumes that the list stays empty, else it is repeated.
    higher_opnames: list[str] | None = None if is_differentiable or checks_corners else []
    try:
        trace = run_isolated(_trace, f, call, captured, expected, nan_safe, truncation, higher_opnames, checks_corners)
    except Exception as error:
        if not higher_opnames:
            if truncation is None or not truncation.loops:
                raise
            raise LoopMismatchError from error
    if higher_opnames:
        return trace_function(f, call, captured, expected, nan_safe, may_truncate_loops, checks_corners=True)
    return trace


def _trace(
    f: object,
    call: Call,
    captured: CapturedState,
    expected: tuple[Any, ...],
    nan_safe: bool,
    truncation: LoopTruncation | None,
    higher_opnames: list[str] | None,
    checks_corners: bool,
) -> FunctionTrace:
    register_imported()
    start = next_sequence_number()
    tracing = Tracing(records=True, compiles=True)
    guard_log: list[Guard] = []
    unmasked: list[Any] = []
    settings: dict[ContextVar[Any], Any] = {
        trace_guards: guard_log,
        higher_derivatives: higher_opnames,
        unmasked_derivatives: unmasked,
        guards_corners: checks_corners,
    }
    with (
        np.errstate(all="ignore"),
        tracing,
        Setting({call_wrapper: truncation, **settings}),
    ):
        inputs = [_argument_tracer(value) for value in call.values()]
        call_on_tracers = partial(_call_function, f, *call.with_values(inputs).arguments(), nan_safe, captured.uses_autodiff)

        def record_call() -> _RecordedCall:
            unmasked.clear()
            result, leaks, unused = call_on_tracers()
            if tracing.leak_errors:  # the function caught an error of tracing, and took a branch that NumPy does not take
                raise NotCompilableError(f"it catches an error that is raised only while tracing: {tracing.leak_errors[0]}")
            if truncation is not None and truncation.has_failed:
                raise LoopMismatchError
            return _RecordedCall(inputs, start, ResultTree(result, expected), guard_log, leaks, unused, list(unmasked))

        recorded_call = record_call()
        if truncation is not None and truncation.loops:
            require_unchanged(captured, "while tracing")
            schedules = [_truncated_schedule(recorded_call, truncation.tables)]
            for trip_counts in truncation.further_trip_counts():
                truncation.restart(trip_counts)
                guard_log.clear()
                schedules.append(_truncated_schedule(record_call(), truncation.tables))
            return _family_trace(schedules, truncation, recorded_call, _numpy_fallback(f, call, recorded_call.results))
    require_unchanged(captured, "while tracing")
    return _full_trace(recorded_call, expected)


class _RecordedCall(NamedTuple):
    """One call of a function on argument tracers.

    Attributes
    ----------
    inputs : list of Node
        The argument tracers.
    start : float
        The sequence number before the call.
    results : ResultTree
        The results.
    guard_log : list of Guard
        The guards, which are cleared before another call.
    leaks : list of Leak
        The values that left the graph.
    unused : UnusedResults
        The operations that may be unused.
    unmasked : list of Node
        The derivatives that were recorded without masks for structural zeros.
    """

    inputs: list[Any]
    start: float
    results: ResultTree
    guard_log: list[Guard]
    leaks: list[Any]
    unused: UnusedResults
    unmasked: list[Any]

    def make_builder(self, has_checked_outputs: bool) -> Callable[[Sequence[Any]], Any]:
        """Return a function that builds the results from the outputs of a program.

        If `has_checked_outputs`, further outputs follow the results, and are only checked for nan.
        """
        build = self.results.make_builder()
        count = len(self.results.outputs)
        return (lambda values: build(values[:count])) if has_checked_outputs else build


def _full_trace(recorded_call: _RecordedCall, expected: tuple[Any, ...]) -> FunctionTrace:
    """Return the trace of a graph with all iterations of its loops. Raise a NotCompilableError if a program cannot repeat it."""
    inputs, start, results, guard_log, leaks, unused, unmasked = recorded_call
    for position, node in enumerate(inputs):
        if node.memory:
            raise NotCompilableError(f"it writes into an argument (array {position}; {node.memory.log[0].line}); copy it first")
    outputs = results.outputs
    unused_nodes = unused.select_unused(outputs, inputs)
    items = collect_dependencies([*outputs, *inputs, *unused_nodes])
    guards, leak_descriptions = select_guards(guard_log, items)
    leak_descriptions += _describe_unguarded_leaks(leaks)
    if leak_descriptions:
        leak_list = "; ".join(dict.fromkeys(leak_descriptions))
        raise NotCompilableError(f"values leave the graph, and computations with them would not be repeated: {leak_list}")
    checked = select_hidden(unmasked, collect_dependencies([*outputs, *guards])) if unmasked else []
    if unused_nodes:
        guards = [*guards, make_evaluation_guard(unused_nodes)]  # computed for their warnings and errors
    _require_local_graph(items, inputs, start)
    build = recorded_call.make_builder(bool(checked))
    traced_result = build([np.asarray(node.raw_value)[()] for node in outputs])
    require_close_results(traced_result, expected, "the traced result", [node.raw_value for node in inputs])
    is_constant = not outputs and not guards
    if not outputs and inputs:  # a program needs an output, if only for its guards
        outputs = [min(inputs, key=lambda node: int(node.raw_value.size))]
    return FunctionTrace(Schedule.of([*outputs, *checked], guards, inputs), build, len(items), is_constant, bool(unmasked))


def _describe_unguarded_leaks(leaks: list[Any]) -> list[str]:
    """Describe the conversions to numbers that are not guards."""
    return [str(leak) for leak in leaks if leak.description not in _GUARDED_CONVERSIONS]


def _truncated_schedule(recorded_call: _RecordedCall, tables: list[Any]) -> Schedule:
    """Return the schedule of a trace with truncated loops, whose inputs include the `tables` of constants.

    The values in such a trace are wrong. Raise a LoopMismatchError if the trace depends on them, or has effects besides its
    results.
    """
    inputs, start, results, guard_log, leaks, unused, unmasked = recorded_call
    items = collect_dependencies([*results.outputs, *inputs])
    guards, leak_descriptions = select_guards(guard_log, items)
    schedule_inputs = [*inputs, *tables]
    depends_on_values = not all(map(is_length_guard, guards))
    unused_nodes = unused.select_unused(results.outputs, schedule_inputs)
    if unused.uses_autodiff:  # nearly every derivative has unused ufunc results, which could warn
        unused_nodes = [node for node in unused_nodes if not isinstance(node.function, np.ufunc)]
    if (
        depends_on_values
        or unused_nodes
        or leak_descriptions
        or _describe_unguarded_leaks(leaks)
        or not results.outputs
        or any(node.memory for node in schedule_inputs)
    ):
        raise LoopMismatchError
    _require_local_graph(items, inputs, start)
    return Schedule.of([*results.outputs, *select_hidden(unmasked, items)], (), schedule_inputs)


def _family_trace(
    schedules: list[Schedule],
    truncation: LoopTruncation,
    recorded_call: _RecordedCall,
    numpy_fallback: Callable[..., Any],
) -> FunctionTrace:
    """Return a trace whose program is extrapolated from truncated schedules."""
    trip_counts = [truncation.min_trip_counts, *truncation.further_trip_counts()]
    full_trip_counts = truncation.trip_counts
    sizes = [len(schedule.units) for schedule in schedules]
    growths = [(size - sizes[0]) // TRIP_COUNT_STEP for size in sizes[1:-1]]  # the last schedule verifies the extrapolation
    omitted_iterations = [full - truncated for full, truncated in zip(full_trip_counts, trip_counts[0], strict=True)]
    size = sizes[0] + sum(n * growth for n, growth in zip(omitted_iterations, growths, strict=True))
    tables = [np.asarray(table.raw_value) for table in truncation.tables]
    family = TripCountFamily(trip_counts, schedules, full_trip_counts, tables, numpy_fallback)
    build = recorded_call.make_builder(len(schedules[0].outputs) > len(recorded_call.results.outputs))
    return FunctionTrace(schedules[0], build, size, False, bool(recorded_call.unmasked), family)


def _numpy_fallback(f: Any, call: Call, results: ResultTree) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that computes the outputs of a program with NumPy. It ignores tables, which follow the arguments."""
    template = call.with_values([None] * len(call.values()))
    types = [type(value) for value in call.values()]

    def run_numpy(values: Sequence[Any]) -> tuple[Any, ...]:
        copies = [np.array(value) if cls is np.ndarray else value[()] for value, cls in zip(values, types, strict=False)]
        args, kwargs = template.with_values(copies).arguments()
        return results.select_outputs(f(*args, **kwargs))

    return run_numpy


def _call_function(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], nan_safe: bool, uses_autodiff: bool
) -> tuple[Any, list[Any], UnusedResults]:
    """Call the function on tracers; return its result, the values that left the graph, and the possibly unused operations."""
    unused = UnusedResults(uses_autodiff)
    arguments = (*args, *kwargs.values())
    with intercept(f, arguments, True) as patches, collecting_leaks() as leaks:
        detector = None if patches.calls_only_numpy else DrawDetector(f, arguments)
        with (
            Setting(with_draw_handler(_reject_draw)),  # patched draws of random numbers raise
            detector or Setting({}),
            recording_for_replay() if nan_safe else Setting({}),
            unused.collecting(),
        ):
            borrowed_kwargs = {name: as_borrowed(value) for name, value in kwargs.items()}
            result = call_function(partial(f, **borrowed_kwargs), [*map(as_borrowed, args)])
    if detector is not None:
        detector.require_none()
    return result, leaks, unused


def _argument_tracer(value: Array) -> Any:
    """Return an argument tracer: a `ScalarNode` for a NumPy scalar, because ``x += 1`` rebinds the name of a scalar."""
    if not value.shape and value.dtype.kind in "biu":  # C code could use it as a length without a guard
        raise NotCompilableError(
            f"an argument is a 0-d array of {value.dtype}; pass a Python number, int(n), which is a compile-time constant"
        )
    if type(value) is np.ndarray:
        return new_leaf(value, ArgumentNode, None)
    return new_leaf(np.asarray(value), ScalarNode, None)


def _require_local_graph(items: list[Any], inputs: list[Any], start: float) -> None:
    """Raise a NotCompilableError if a graph contains nodes from outside the trace, such as variables."""
    input_nodes = frozenset(inputs)
    for item in items:
        if (
            isinstance(item, Value)
            and item.sequence_number < start
            and item not in input_nodes
            and not isinstance(item, ConstantNode)
        ):
            raise NotCompilableError(
                f"it uses a node from outside the function ({item.noun}, {item.line or 'unknown line'}); pass it as an argument"
            )


_DRAW_MESSAGE = "it draws random numbers ({}); draw outside, and pass the numbers as an argument"


def _reject_draw(name: str, draw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise NotCompilableError(_DRAW_MESSAGE.format(name if name == UNSEEDED else f"random.{name}"))


class DrawDetector(DrawMonitor):
    """Detects draws from generators that are not patched, by their states."""

    def __init__(self, f: object, arguments: Iterable[Any]) -> None:
        self._generators = reachable_generators(f, arguments)
        self._before: list[Any] = []
        self._used_generator: Any = None

    def start(self) -> None:
        """Record the states of the generators."""
        self._before = [generator_state(generator) for generator in self._generators]

    def check(self) -> None:
        """Find a generator whose state has changed."""
        if self._used_generator is None:
            pairs = zip(self._generators, self._before, strict=True)
            self._used_generator = next((generator for generator, state in pairs if generator_state(generator) != state), None)

    def require_none(self) -> None:
        """Raise a NotCompilableError if a generator was used; not a lasting one, because another thread may have used it."""
        if self._used_generator is not None:
            raise NotCompilableError(_DRAW_MESSAGE.format(f"from a {type(self._used_generator).__name__}"), is_lasting=False)
