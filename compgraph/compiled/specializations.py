"""Compiled programs of one call signature, specialized to branches of Python and to captured state."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..executor import MISMATCH_ERRORS, compile_family, compile_schedule, has_nan, supports_families
from ..frames import user_source_line
from ..guards import GuardError
from ..tracing import Tracing, user_line_of
from . import compiler_thread
from .call_signatures import ArgumentState, Call, StaticArgument, copy_with_strides, require_numbers, value_names
from .captured_state import CapturedState, require_unchanged
from .compile_errors import NotCompilableError, submitted_at
from .function_trace import FunctionTrace, trace_function
from .loop_truncation import LoopMismatchError
from .result_trees import block_indices, require_close_results, snapshot_results

_log = logging.getLogger(__name__)
CALLS_BEFORE_COMPILATION = 2  # calls of a signature that run as NumPy before it is compiled
MAX_SPECIALIZATIONS, MAX_STATE_CHANGES, MAX_ATTEMPTS = 16, 8, 3
# Errors and warnings of a run after which another program, or NumPy, computes the results.
FAILED_RUN_ERRORS = (GuardError, *MISMATCH_ERRORS, ArithmeticError, Warning)


class Specialization:
    """A compiled program, with the captured state that it assumes, and statistics of its runs.

    Attributes
    ----------
    program : callable
        Maps the values to the tuple of the outputs.
    build : callable
        Builds the function's result from that tuple.
    captured : CapturedState or None
        The state compared before a run, or None.
    size : int
        The number of operations.
    checks_nan : bool
        Whether a result with nan discards the program, because the short form of a derivative may cause it.
    times : dict
        The seconds of each step of the compilation.
    runs, timed, seconds : int, int, float
        The number of runs, the number of timed runs, and the total seconds of these.
    """

    __slots__ = ("build", "captured", "checks_nan", "program", "runs", "seconds", "size", "timed", "times")

    def __init__(
        self,
        program: Any,
        build: Callable[..., Any] | type,
        captured: CapturedState,
        size: int,
        checks_nan: bool,
        times: dict[str, float],
    ):
        self.program, self.build, self.size, self.times = program, build, size, times
        self.captured = captured if captured else None
        self.checks_nan = checks_nan
        self.runs = self.timed = 0
        self.seconds = 0.0


class SignatureCache:
    """The specializations of one call signature.

    Parameters
    ----------
    jitted : Jitted
        The function.
    call : Call
        A call with this signature; its values are not retained.

    Attributes
    ----------
    specializations : tuple of Specialization
        The most recently used first.
    rejection : str or None
        Why calls with this signature always run as NumPy.
    is_eager : bool
        Whether further programs are compiled immediately, as by `Jitted.compile`.
    """

    def __init__(self, jitted: Any, call: Call) -> None:
        self.jitted, self.title = jitted, _describe_signature(call)
        self._dynamic = call.dynamic
        self._call_template = call.with_values([None] * len(call.dynamic))
        self._are_arrays = all(type(value) is np.ndarray for value in call.values())
        self._static_values = call.statics()  # kept alive, because the key may contain their ids
        self.specializations: tuple[Specialization, ...] = ()
        self.rejection: str | None = None
        self.notes: list[str] = []
        self.is_eager = False
        self.calls = self.misses = self._state_changes = self._attempts = 0
        self._nan_safe = False
        self._pending: int | None = None  # while a job is in progress, `compiler_thread.generation`, which a fork changes

    # ------------------------------------------------------------------------------------------ runs

    def run_matching(self, values: Sequence[Any]) -> tuple[Specialization, Any] | None:
        """Run the first program that matches some values; return it with its outputs, or None."""
        for specialization in self.specializations:
            if specialization.captured is not None and not specialization.captured.is_current():
                continue
            specialization.runs += 1
            try:
                if specialization.runs % 16 == 1:  # one of 16 runs is timed
                    start = time.perf_counter()
                    results = specialization.program(values)
                    specialization.seconds += time.perf_counter() - start
                    specialization.timed += 1
                else:
                    results = specialization.program(values)
            except FAILED_RUN_ERRORS:
                specialization.runs -= 1
                continue
            if specialization.checks_nan and self.has_nan(results):
                self._discard(specialization)
                return None
            if specialization is not self.specializations[0]:
                self._move_to_front(specialization)
            return specialization, results
        return None

    def has_nan(self, results: Sequence[Any]) -> bool:
        """Return whether results contain nan, which the short form of a derivative may cause."""
        return has_nan(results)

    def input_names(self) -> list[str]:
        """Return the names of a program's inputs."""
        return value_names(self._call_template, self.jitted.__wrapped__)

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the inputs of a program among the leaves of a call, as arrays."""
        if self._are_arrays:
            return [leaves[position] for position in self._dynamic]
        return [np.asarray(leaves[position]) for position in self._dynamic]

    def call_without_program(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function as NumPy, because no program matches; compile one, now or in the background, if it is due.

        The function is called once, with `args` and `kwargs`. They are the arguments of `call`, or nodes with the same values.
        """
        self.calls += 1
        is_pending = self._pending == compiler_thread.generation
        is_due = self.is_eager or self.calls > CALLS_BEFORE_COMPILATION
        if self.rejection is not None or is_pending or not is_due:
            return self.jitted.__wrapped__(*args, **kwargs)
        return self._call_and_compile(call, args, kwargs)

    def _call_and_compile(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function as NumPy, and compile a program from the call, immediately or in the background."""
        try:
            self._require_few_specializations()
            call_and_make_job = self.prepare_call(call)
        except NotCompilableError as error:
            self.reject(error)
            return self.jitted.__wrapped__(*args, **kwargs)
        result, job = call_and_make_job(args, kwargs)
        if job is not None and self.is_eager:
            job()
        elif job is not None:
            self._pending = compiler_thread.generation
            context = copy_context()
            context.run(submitted_at.set, user_source_line())
            compiler_thread.submit(context, job)
        return result

    def prepare_call(self, call: Call, original: Call | None = None) -> Callable[..., tuple[Any, Any]]:
        """Prepare the compilation of a call.

        The returned function ``f(args, kwargs)`` calls the compiled function as NumPy, and returns its result and a compilation
        job, or None if the call cannot be compiled.

        The job traces a copy of the values, unless `call` already is a copy of `original`. In both cases the other one shows
        whether the function wrote into its arguments, so that there is only one copy at any time.
        """
        require_numbers(call)
        captured = CapturedState(self.jitted.roots(call))
        if captured.rejection is not None:
            raise NotCompilableError(captured.rejection)
        copied_call = call if original is not None else call.with_values(map(copy_with_strides, call.values()))
        unchanged_call = copied_call if original is None else original

        def call_and_make_job(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
            before = ArgumentState.of(args, kwargs, self.jitted.static_parameters)
            result = self.jitted.__wrapped__(*args, **kwargs)
            try:
                require_unchanged(captured, "by a call")
                _require_unchanged_arguments(
                    before, ArgumentState.of(args, kwargs, self.jitted.static_parameters), unchanged_call
                )
                expected = snapshot_results(result)
            except NotCompilableError as error:
                self.reject(error)
                return result, None
            return result, lambda: self._run_job(copied_call, captured, expected)

        return call_and_make_job

    def _require_few_specializations(self) -> None:
        """Raise a NotCompilableError if Python has branched, or captured state has changed, too often for more programs."""
        if len(self.specializations) >= MAX_SPECIALIZATIONS:
            raise NotCompilableError(
                f"Python branches on the values of the arguments (if x > 0, int(x)) in more than {MAX_SPECIALIZATIONS} ways; use "
                "np.where, np.minimum, or x * (x > 0)"
            )
        stale = [
            label for v in self.specializations if v.captured is not None and (label := v.captured.find_change()) is not None
        ]
        if stale and len(stale) == len(self.specializations):
            self._state_changes += 1
            if self._state_changes > MAX_STATE_CHANGES:
                raise NotCompilableError(
                    f"{stale[0]} changed more than {MAX_STATE_CHANGES} times between calls; make it an argument"
                )

    # ------------------------------------------------------------------------------------------ compilation

    def _run_job(self, call: Call, captured: CapturedState, expected: tuple[Any, ...]) -> None:
        """Compile a program, or record the reason why it cannot be compiled."""
        try:
            with compiler_thread.trace_lock, compiler_thread.pause_garbage_collection():
                specialization = self._specialize(call, captured, expected)
        except NotCompilableError as error:
            self.reject(error)
        except Exception as error:
            self.reject(NotCompilableError(_describe_error(error)))
        else:
            self._attempts = 0
            self.specializations = (specialization, *self.specializations)
            self._log_program(specialization)
        finally:
            self._pending = None

    def _log_program(self, specialization: Specialization) -> None:
        name, times = self.jitted.display_name(), specialization.times
        _log.info(
            "compiled %s(%s): %d operations, traced in %.3f s, compiled in %.3f s",
            *(name, self.title, specialization.size, times["trace"], times["compile"]),
        )
        if reason := getattr(specialization.program, "numpy_reason", ""):
            _log.info("%s(%s) runs as NumPy calls: %s", name, self.title, reason)

    def _specialize(self, call: Call, captured: CapturedState, expected: Any) -> Specialization:
        if (label := captured.find_change()) is not None:
            raise NotCompilableError(f"{label} changed before the call was traced", is_lasting=False)
        with compiler_thread.import_lock:
            backend = self.jitted.backend
        if not self._nan_safe and supports_families(backend):
            try:
                return self._specialize_trace(call, captured, expected, True)
            except LoopMismatchError:
                pass  # retry with all iterations; a lasting reason is raised again
        return self._specialize_trace(call, captured, expected, False)

    def _specialize_trace(self, call: Call, captured: CapturedState, expected: Any, may_truncate_loops: bool) -> Specialization:
        """Compile a trace; raise a LoopMismatchError if truncating its loops failed."""
        start = time.perf_counter()
        trace = trace_function(self.jitted.__wrapped__, call, captured, expected, self._nan_safe, may_truncate_loops)
        build, size, is_unmasked, may_extrapolate = trace.build, trace.size, trace.is_unmasked, trace.family is not None
        traced_at = time.perf_counter()
        try:
            program = self._compile(trace)
            del trace  # and its values, before the program allocates its results
            if hasattr(program, "release_values"):
                program.release_values()
            values = self.values(call.leaves)
            if program is not _empty_program:
                with np.errstate(all="ignore"):
                    require_close_results(build(program(values)), expected, "the result of its program", values)
        except Exception as error:
            if not may_extrapolate:
                raise
            raise LoopMismatchError from error
        times = {"trace": traced_at - start, "compile": time.perf_counter() - traced_at}
        return Specialization(program, build, captured, size, is_unmasked, times)

    def _compile(self, trace: FunctionTrace) -> Any:
        """Compile the program of a trace."""
        if trace.is_constant:
            return _empty_program
        options, backend = {**self.jitted.options, "has_index_guards": True}, self.jitted.backend
        with Tracing(compiles=True):  # tracers can release their values, unlike nodes that are arrays
            if trace.family is not None:
                return compile_family(trace.family, options, backend)
            return compile_schedule(trace.schedule, options, backend)

    def reject(self, error: NotCompilableError) -> None:
        """Record why a call was not compiled; if this is permanent, always run as NumPy."""
        self._attempts += 1
        if error.is_lasting or self._attempts >= MAX_ATTEMPTS:
            self.rejection = str(error)
            _log.info("%s(%s) runs as NumPy: %s", self.jitted.display_name(), self.title, error)
        else:
            self.notes.append(str(error))
            _log.info("%s(%s) is not compiled so far: %s", self.jitted.display_name(), self.title, error)

    def _discard(self, specialization: Specialization) -> None:
        """Discard a program whose result was nan; later programs use nan-safe derivatives."""
        self._nan_safe = True
        self.specializations = tuple(
            [other for other in self.specializations if other is not specialization and not other.checks_nan]
        )

    def _move_to_front(self, specialization: Specialization) -> None:
        others = [other for other in self.specializations if other is not specialization]
        if len(others) < len(self.specializations):
            self.specializations = (specialization, *others)

    def compile(self, call: Call) -> None:
        """Compile a program that matches a call, unless one exists."""
        self.is_eager = True
        while self._pending == compiler_thread.generation:
            time.sleep(0.001)
        if self.rejection is not None or self.run_matching(self.values(call.leaves)) is not None:
            return
        count = len(self.specializations)
        while self.rejection is None and len(self.specializations) <= count:
            copied_call = call.with_values(map(copy_with_strides, call.values()))  # protects the caller's arrays
            try:
                self._require_few_specializations()
                call_and_make_job = self.prepare_call(copied_call, call)
            except NotCompilableError as error:
                self.reject(error)
                return
            job = call_and_make_job(*copied_call.arguments())[1]
            if job is not None:
                job()


def _has_same_bytes(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether arrays of the same shape and dtype have the same bytes, also of nan."""
    return all(a[index].tobytes() == b[index].tobytes() for index in block_indices(a.shape))


def _require_unchanged_arguments(before: ArgumentState, after: ArgumentState, unchanged_call: Call) -> None:
    """Raise a NotCompilableError if a function has written into its arguments, including lists and dictionaries.

    `unchanged_call` is the call with equal arrays, into which the function cannot write.
    """
    if before.structure != after.structure or before.orders != after.orders:
        raise NotCompilableError(
            "it modifies an argument (a list, dictionary or object), which a program cannot repeat; return a new one"
        )
    for position, (leaf_index, copy) in enumerate(zip(unchanged_call.dynamic, unchanged_call.values(), strict=True)):
        value = before.leaves[leaf_index]
        if after.leaves[leaf_index] is not value:
            raise NotCompilableError("it replaces a value in an argument (a list, dictionary or object); return a new one")
        is_array = type(value) is np.ndarray
        if before.writes[leaf_index] != after.writes[leaf_index] or (is_array and not _has_same_bytes(value, copy)):
            raise NotCompilableError(
                f"it writes into an argument (array {position}), which a program cannot repeat; copy it first"
            )


def _empty_program(values: Sequence[Any]) -> tuple[Any, ...]:
    return ()


def _describe_error(error: Exception) -> str:
    """Describe an error of tracing that plain NumPy does not raise."""
    line = user_line_of(error)
    suffix = f" ({line})" if line is not None and line not in str(error) else ""
    return f"tracing raised {type(error).__name__}: {error}{suffix}"


def _describe_signature(call: Call) -> str:
    """Describe the arguments: dtypes, shapes, static values."""
    descriptions = []
    for position, leaf in enumerate(call.leaves):
        if position in call.dynamic:
            descriptions.append(f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, np.ndarray) else type(leaf).__name__)
        else:
            value = leaf.value if type(leaf) is StaticArgument else leaf
            cls = type(value)
            text = repr(value) if cls.__module__ in ("builtins", "numpy") else cls.__name__  # runs no user code
            descriptions.append(text if len(text) <= 40 else f"{text[:37]}...")
    return ", ".join(descriptions) or "no arguments"
