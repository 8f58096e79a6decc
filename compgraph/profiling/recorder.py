"""What is told of operations and sweeps, in one thread, while the block of a `profile` runs."""

from __future__ import annotations

from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np

from ..context import open_scopes
from ..frames import source_lines
from ..interpreters import is_recorded
from ..storage import owner_of
from ..values import Value
from .entries import FORWARD, Entry, root
from .ledger import SWEEPS, Held, Ledger, read

ndarray = np.ndarray
SMALL = 1024  # bytes; a node of a smaller array takes about as much itself, and to follow it would cost more than to make it
READ = 2**12  # entries of a log, after which it is read
Opened = tuple[Entry, Entry, float]  # the entry around, the one that was opened, and when


class Recorder:
    """The profiler of one block; one within another tells the outer what it was told.

    Attributes
    ----------
    thread : int or None
        The thread in which it is told; None once the block was left.
    root : Entry
        Around all entries of the block.
    top : Entry or None
        What is being done. None while something is computed whose entry is found only when it is done.
    log : list of Held
        Arrays as they were allocated and freed. A recorder within another shares it, and `alive`.
    alive : dict of Held
        The arrays that are followed, by their identity; also some that have died since the log was read.
    """

    def __init__(self, ledger: Ledger, around: Recorder | None) -> None:
        self.thread: int | None = get_ident()
        self.around = around
        self.ledgers: tuple[Ledger, ...] = (ledger,) if around is None else (*around.ledgers, ledger)
        self.log: list[Held] = [] if around is None else around.log
        self.alive: dict[int, Held] = {} if around is None else around.alive
        if around is not None:
            around.read()  # what was allocated before is not this one's
        self.root = root()
        self.top: Entry | None = self.root

    # ------------------------------------------------------------------------------------------ operations

    def wrap(self, interpreter: Any) -> Profiling:
        """An interpreter whose operations are entered."""
        return Profiling(interpreter, self)

    def processed(self, result: Any, function: Any, args: tuple[Any, ...], start: float, steps: Entry | None) -> None:
        """Enter an operation that began at `start`; `result` is what it gave."""
        values = [a.raw_value if isinstance(a, Value) else a for a in args]
        if not is_recorded(result):
            code, instruction = source_lines.user_line()
            self._done(self.step(FORWARD, function, code, instruction, open_scopes()), start, values, steps, result)
            return
        node = result if isinstance(result, Value) else _record_of(result)
        entry = self.entry_of(FORWARD, node)
        if len(node.parent_argnums) < len(node.args):
            for a in node.args:  # plain operands are copied
                if type(a) is ndarray and a.base is None and not any(a is v for v in values):
                    self.hold(entry, a)
        self._done(entry, start, values, steps, node.raw_value)

    def attached(self, result: Any) -> None:
        """Enter an operation whose result was there already, with no time of its own."""
        node = result if isinstance(result, Value) else _record_of(result)
        entry = self.step(FORWARD, node.function, node.code, node.instruction, node.scope)
        self._done(entry, perf_counter(), (), None, node.raw_value)

    def step(self, direction: str, function: Any, code: Any, instruction: int, scope: tuple[str, ...]) -> Entry:
        """The entry of an operation, within what is being done; steps of a derivative belong to the line of that."""
        top = self.top
        if top is None:
            top = self.top = root()  # its steps are taken over when its entry is found
        elif top.direction is not FORWARD:
            code, instruction, scope = top.code, top.instruction, top.scope
        found = top.steps.get((direction, function, id(code), instruction, scope))
        return top.step(direction, function, code, instruction, scope) if found is None else found

    def _done(self, entry: Entry, start: float, values: Any, steps: Entry | None, plain: Any) -> None:
        entry.calls += 1
        if steps is not None:
            entry.take(steps)
        if type(plain) is ndarray:
            self.hold(entry, plain, values)
        elif type(plain) is tuple or type(plain) is list:
            for part in plain:
                self.hold(entry, part, values)
        entry.seconds += perf_counter() - start

    # ------------------------------------------------------------------------------ what is done in between

    def begin(self, direction: str, function: Any, code: Any, instruction: int, scope: tuple[str, ...]) -> Opened:
        """Open an entry; what is told until `end` are its steps."""
        entry = self.step(direction, function, code, instruction, scope)
        opened: Opened = (self.top, entry, perf_counter())  # type: ignore[assignment]  # `step` has seen to it
        self.top = entry
        return opened

    def begin_here(self, direction: str, function: Any) -> Opened:
        """Open an entry at the user's running line."""
        code, instruction = source_lines.user_line()
        return self.begin(direction, function, code, instruction, open_scopes())

    def begin_at(self, direction: str, node: Any) -> Opened:
        """Open an entry at the line of a node or a joint."""
        return self.begin(direction, node.function, node.code, node.instruction, node.scope)

    def end(self, opened: Opened) -> None:
        """Close an entry, and those within it that were left open by an error."""
        self.top, entry, start = opened
        entry.calls += 1
        entry.seconds += perf_counter() - start

    # ------------------------------------------------------------------------------------------------ bytes

    def held(self, value: Any) -> None:
        """Enter an array, or several, that are kept alive by what is being done."""
        for part in value if isinstance(value, (tuple, list)) else (value,):
            part = part.raw_value if isinstance(part, Value) else part
            if self.top is not None:
                self.hold(self.top, part)

    def entry_of(self, direction: str, node: Any) -> Entry:
        """The entry of a node or a joint, within what is being done."""
        return self.step(direction, node.function, node.code, node.instruction, getattr(node, "_scope", ()))

    def hold(self, entry: Entry, array: Any, operands: Any = ()) -> None:
        """Enter the memory of an array, unless it is known, or that of an operand."""
        if type(array) is not ndarray:
            return
        if array.base is not None:
            owner = owner_of(array)
            if type(owner) is not ndarray or any(type(v) is ndarray and owner_of(v) is owner for v in operands):
                return
            array = owner
        size, key = array.nbytes, id(array)
        if size < SMALL:
            entry.allocated += size  # not followed, and not known when it comes again
            return
        known = self.alive.get(key)
        if known is not None and known() is array:
            return
        self.alive[key] = held = Held(array, self.log.append)
        held.told, held.ledgers = (entry, perf_counter(), size, key), None
        entry.allocated += size
        self.log.append(held)
        if len(self.log) > READ:
            self.read()

    def read(self, now: float | None = None) -> None:
        """Enter what the log holds into the ledgers."""
        read(self.log, self.alive, self.ledgers, perf_counter() if now is None else now)

    # ---------------------------------------------------------------------------------------- sweeps, and the end

    def swept(self, start: float) -> None:
        """Remember that a sweep has ended that began at `start`."""
        for ledger in self.ledgers:
            ledger.sweeps.append((start, perf_counter()))
            del ledger.sweeps[:-SWEEPS]

    def adopt(self, steps: Entry | None) -> None:
        """Take steps of something that has no entry as those of what is being done."""
        if steps is not None and steps.steps:
            if self.top is None:
                self.top = root()
            self.top.take(steps)

    def leave(self, now: float) -> Entry:
        """End it, at a time; what it was told is told to the one around. Gives the entry around all."""
        self.thread = None
        self.read(now)
        if self.around is not None and self.around.thread is not None:
            self.around.adopt(self.root)
        return self.root


class Profiling:
    """An interpreter whose operations are entered in a profile, with the time that another one takes for them."""

    def __init__(self, inner: Any, recorder: Recorder) -> None:
        self.inner, self.recorder = inner, recorder

    def process(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Process an operation, and enter it; what has no node for an operand is no operation of its own."""
        if not any(isinstance(operand, Value) for operand in args):
            return self.inner.process(function, args, options)
        recorder = self.recorder
        around, recorder.top = recorder.top, None
        start = perf_counter()
        try:
            result = self.inner.process(function, args, options)
        finally:
            steps, recorder.top = recorder.top, around
        recorder.processed(result, function, args, start, steps)
        return result

    def attach(self, *operation: Any) -> Any:
        """Attach an operation, and enter it with no time of its own."""
        result = self.inner.attach(*operation)
        self.recorder.attached(result)
        return result


def _record_of(results: Any) -> Any:
    """The joint of the results of an operation with several."""
    return next(part for part in results if part is not None).args[0]
