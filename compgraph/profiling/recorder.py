"""The recorder of one block of a profile: the time of operations and sweeps, and the arrays that they allocate.

Methods are patched while a profile runs, so that their calls have separate entries. The last block restores the methods, so
inactive profiles add no overhead. If a signal ends a block without ``__exit__``, they are restored when its recorder is freed;
until then the patches do nothing without an active profiler.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..context import active_profiler, callbacks_lock, import_lazily, open_scopes
from ..frames import source_lines
from ..interpreters import is_recorded
from ..storage import Memory, Write, owner_of
from ..values import MultiOutput, Value
from .entries import FORWARD, MAX_SWEEPS, Code, Entry, Function, Ledger, TrackedArray, process_log, root_entry

_patches: list[tuple[type, str, object, object]] = []  # the class, the name of the method, the method, the profiled method
_blocks: set[weakref.ref[Recorder]] = set()  # running ones, in all threads; weak, because an interrupt may prevent their end


def patch_method(
    owner: type, name: str, open_entry: Callable[..., OpenEntry], find_arrays: Callable[[Any], object] = lambda result: result
) -> None:
    """Record the calls of a method as entries of profiles.

    Parameters
    ----------
    owner : type
        The class that defines the method.
    name : str
        The method, or class method.
    open_entry : callable
        ``open_entry(recorder, *args, **kwargs)`` opens the entry and returns the result of `Recorder.begin`.
    find_arrays : callable
        ``find_arrays(result)`` returns the array, or the tuple of arrays, that the method allocated.
    """
    original = owner.__dict__[name]
    is_class_method = isinstance(original, classmethod)
    call = original.__func__ if is_class_method else original

    @functools.wraps(call)
    def profiled_method(*args: object, **kwargs: object) -> Any:
        recorder = active_profiler()
        if recorder is None:
            return call(*args, **kwargs)
        token = open_entry(recorder, *args, **kwargs)
        try:
            result = call(*args, **kwargs)
            recorder.track_all(find_arrays(result))
            return result
        finally:
            recorder.end(token)

    with callbacks_lock:
        _patches.append((owner, name, original, classmethod(profiled_method) if is_class_method else profiled_method))
        if _blocks:  # a module that is imported within a block
            _set_patches(True)


def _set_patches(is_profiled: bool) -> None:
    for owner, name, original, profiled_method in _patches:
        setattr(owner, name, profiled_method if is_profiled else original)


@functools.cache
def _patch_engines() -> None:
    """Patch executors and compiled functions. Both modules are imported with the first block."""
    executor, jitted = import_lazily("compgraph.executor").Executor, import_lazily("compgraph.compiled.jitted").Jitted
    patch_method(executor, "run", lambda profiler, *_: profiler.begin_here(FORWARD, "Executor.run"))
    patch_method(jitted, "__call__", lambda profiler, function, *_, **__: profiler.begin_here(FORWARD, f"{function!r}"))


def begin_block(recorder: Recorder) -> None:
    """Patch the methods for a block, until `end_block` or until its recorder is freed."""
    _patch_engines()
    with callbacks_lock:
        _blocks.add(weakref.ref(recorder, _end))
        _set_patches(True)


def end_block(recorder: Recorder) -> None:
    """Restore the methods, if this was the last block."""
    _end(weakref.ref(recorder))


def _end(block: weakref.ref[Recorder]) -> None:
    with callbacks_lock:
        _blocks.discard(block)
        if not _blocks:
            _set_patches(False)


def _begin_write(recorder: Recorder, memory: Memory, write: Write, *args: object) -> OpenEntry:
    """Open the entry of a write, and track what the write log keeps: overwritten values, and stored plain values."""
    token = recorder.begin(FORWARD, write.opname, write.code, write.instruction, write.scope)
    recorder.track_all((write.saved, *(() if write.parent_argnums else write.args)))
    return token


patch_method(Memory, "append", _begin_write)


ndarray = np.ndarray
MIN_TRACKED_BYTES = 1024  # tracking a smaller array would take longer than its allocation
MAX_LOG_LENGTH = 2**12  # arrays in the log before it is processed
OpenEntry = tuple[Entry, Entry, float]  # the enclosing entry, the open one, and the time at which it began


class Recorder:
    """The recorder of one block. At its end, a nested recorder passes its entries to the enclosing one.

    Attributes
    ----------
    thread : int or None
        The thread of the block; None after its end.
    root : Entry
        The entry that contains all others.
    top : Entry or None
        The running entry. None during an operation whose entry is known only at its end.
    log : list of TrackedArray
        Arrays in the order in which they were allocated and freed. Nested recorders share it, and `alive`.
    alive : dict of TrackedArray
        The tracked arrays by their identity, including some that were freed since the log was last processed.
    """

    def __init__(self, ledger: Ledger, outer: Recorder | None) -> None:
        self.thread: int | None = get_ident()
        self.outer = outer
        self.ledgers: tuple[Ledger, ...] = (ledger,) if outer is None else (*outer.ledgers, ledger)
        self.log: list[TrackedArray] = [] if outer is None else outer.log
        self.alive: dict[int, TrackedArray] = {} if outer is None else outer.alive
        if outer is not None:
            outer.flush()  # earlier allocations belong to the enclosing block
        self.root = root_entry()
        self.top: Entry | None = self.root

    # ------------------------------------------------------------------------------------------ operations

    def wrap(self, interpreter: object) -> ProfilingInterpreter:
        """Return an interpreter that records the operations of another one."""
        return ProfilingInterpreter(interpreter, self)

    def record_operation(
        self, result: NDArray[Any], function: Function, args: tuple[Any, ...], start: float, steps: Entry | None
    ) -> None:
        """Record an operation that began at `start`."""
        values = [a.raw_value if isinstance(a, Value) else a for a in args]
        if not is_recorded(result):
            code, instruction = source_lines.user_line()
            self._add_call(self.step(FORWARD, function, code, instruction, open_scopes()), start, values, steps, result)
            return
        node = result if isinstance(result, Value) else _multi_output_of(result)
        entry = self.entry_of(FORWARD, node)
        if len(node.parent_argnums) < len(node.args):
            for a in node.args:  # plain operands are copied
                if type(a) is ndarray and a.base is None and not any(a is v for v in values):
                    self.track(entry, a)
        self._add_call(entry, start, values, steps, node.raw_value)

    def record_attached(self, result: object) -> None:
        """Record an operation whose result was computed before, without a time."""
        node = result if isinstance(result, Value) else _multi_output_of(result)
        entry = self.step(FORWARD, node.function, node.code, node.instruction, node.scope)
        self._add_call(entry, perf_counter(), (), None, node.raw_value)

    def step(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> Entry:
        """Return the entry of an operation within the running entry. Steps of a derivative get its line."""
        top = self.top
        if top is None:
            top = self.top = root_entry()  # its steps are merged into the entry when that is known
        elif top.direction is not FORWARD:
            code, instruction, scope = top.code, top.instruction, top.scope
        return top.step(direction, function, code, instruction, scope)

    def _add_call(self, entry: Entry, start: float, values: Sequence[object], steps: Entry | None, plain: object) -> None:
        entry.calls += 1
        if steps is not None:
            entry.merge(steps)
        if type(plain) is ndarray:
            self.track(entry, plain, values)
        elif type(plain) is tuple or type(plain) is list:
            for part in plain:
                self.track(entry, part, values)
        entry.seconds += perf_counter() - start

    # ---------------------------------------------------------------------------------------- open entries

    def begin(self, direction: str, function: Function, code: Code, instruction: int, scope: tuple[str, ...]) -> OpenEntry:
        """Open an entry; everything recorded until `end` is a step of it."""
        entry = self.step(direction, function, code, instruction, scope)
        token: OpenEntry = (self.top, entry, perf_counter())  # type: ignore[assignment]  # `step` has set it
        self.top = entry
        return token

    def begin_here(self, direction: str, function: Function) -> OpenEntry:
        """Open an entry at the user's current line."""
        code, instruction = source_lines.user_line()
        return self.begin(direction, function, code, instruction, open_scopes())

    def begin_at(self, direction: str, node: Value | MultiOutput) -> OpenEntry:
        """Open an entry at the line of a node or a multi-output operation."""
        return self.begin(direction, node.function, node.code, node.instruction, node.scope)

    def end(self, token: OpenEntry) -> None:
        """Close an entry, and entries in it that an error left open."""
        self.top, entry, start = token
        entry.calls += 1
        entry.seconds += perf_counter() - start

    # ------------------------------------------------------------------------------------------------ bytes

    def track_all(self, value: object) -> None:
        """Track one or several arrays that the running entry keeps alive."""
        for part in value if isinstance(value, (tuple, list)) else (value,):
            part = part.raw_value if isinstance(part, Value) else part
            if self.top is not None:
                self.track(self.top, part)

    def entry_of(self, direction: str, node: Value | MultiOutput) -> Entry:
        """Return the entry of a node or a multi-output operation within the running entry."""
        return self.step(direction, node.function, node.code, node.instruction, getattr(node, "_scope", ()))

    def track(self, entry: Entry, array: object, operands: Sequence[object] = ()) -> None:
        """Track the memory of an array, unless it is already tracked or belongs to an operand."""
        if type(array) is not ndarray:
            return
        if array.base is not None:
            owner = owner_of(array)
            if type(owner) is not ndarray or any(type(v) is ndarray and owner_of(v) is owner for v in operands):
                return
            array = owner
        size, key = array.nbytes, id(array)
        if size < MIN_TRACKED_BYTES:
            entry.allocated += size  # not tracked, so counted again if it is passed again
            return
        existing = self.alive.get(key)
        if existing is not None and existing() is array:
            return
        self.alive[key] = tracked = TrackedArray(array, self.log.append)
        tracked.allocation, tracked.ledgers = (entry, perf_counter(), size, key), None
        entry.allocated += size
        self.log.append(tracked)
        if len(self.log) > MAX_LOG_LENGTH:
            self.flush()

    def flush(self, now: float | None = None) -> None:
        """Process the log into the ledgers."""
        process_log(self.log, self.alive, self.ledgers, perf_counter() if now is None else now)

    # ---------------------------------------------------------------------------------------- sweeps, and the end

    def record_sweep(self, start: float) -> None:
        """Record a sweep that began at `start`."""
        for ledger in self.ledgers:
            ledger.sweeps.append((start, perf_counter()))
            del ledger.sweeps[:-MAX_SWEEPS]

    def merge_steps(self, steps: Entry | None) -> None:
        """Merge steps without an entry into the running entry."""
        if steps is not None and steps.steps:
            if self.top is None:
                self.top = root_entry()
            self.top.merge(steps)

    def leave(self, now: float) -> Entry:
        """End the block, pass its entries to the enclosing recorder, and return the root."""
        self.thread = None
        self.flush(now)
        if self.outer is not None and self.outer.thread is not None:
            self.outer.merge_steps(self.root)
        return self.root


class ProfilingInterpreter:
    """An interpreter that records the operations of another one, with their time."""

    def __init__(self, inner: Any, recorder: Recorder) -> None:
        self.inner, self.recorder = inner, recorder

    def process(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Process an operation and record it, if one of its operands is a node."""
        if not any(isinstance(operand, Value) for operand in args):
            return self.inner.process(function, args, options)
        recorder = self.recorder
        outer, recorder.top = recorder.top, None
        start = perf_counter()
        try:
            result = self.inner.process(function, args, options)
        finally:
            steps, recorder.top = recorder.top, outer
        recorder.record_operation(result, function, args, start, steps)
        return result

    def attach(self, *operation: Any) -> Any:
        """Attach an operation, and record it without a time."""
        result = self.inner.attach(*operation)
        self.recorder.record_attached(result)
        return result


def _multi_output_of(results: Any) -> Any:
    """Return the multi-output operation that computed several results."""
    return next(part for part in results if part is not None).args[0]
