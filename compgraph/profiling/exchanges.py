"""Methods that are exchanged while somebody profiles, so that they are entries of their own.

Nobody else pays for it: the classes have their own methods again when the last block is left. A block that a signal has ended
without ``__exit__`` leaves the others in place, which then ask for a profiler in vain.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..context import active_profiler, import_lazily, reset_after_fork
from ..storage import Memory, Write
from .entries import FORWARD
from .recorder import Opened, Recorder

ndarray = np.ndarray
_exchanges: list[Exchange] = []
_lock = reset_after_fork(threading.Lock())
_count = 0  # of the blocks that run, in all threads


class Exchange(NamedTuple):
    """What a class or a module calls by a name, and what it calls while somebody profiles."""

    owner: Any
    name: str
    own: Any
    told: Any

    def set(self, is_told: bool) -> None:
        """Put one of the two in place."""
        setattr(self.owner, self.name, self.told if is_told else self.own)


def _itself(result: Any) -> Any:
    return result


def exchange(owner: type, name: str, opening: Callable[..., Opened], holds: Callable[[Any], Any] = _itself) -> None:
    """Let calls of a method be entries of a profile.

    Parameters
    ----------
    owner : type
        The class that defines it.
    name : str
        The method, or class method.
    opening : callable
        ``opening(recorder, *args, **kwargs)`` opens the entry, and gives what `Recorder.begin` does.
    holds : callable
        Of what the method returns the array, or the tuple of arrays, whose memory it has allocated.
    """
    own = owner.__dict__[name]
    is_of_class = isinstance(own, classmethod)
    call = own.__func__ if is_of_class else own

    @functools.wraps(call)
    def told(*args: Any, **kwargs: Any) -> Any:
        recorder = active_profiler()
        if recorder is None:
            return call(*args, **kwargs)
        opened = opening(recorder, *args, **kwargs)
        try:
            result = call(*args, **kwargs)
            recorder.held(holds(result))
            return result
        finally:
            recorder.end(opened)

    _add(Exchange(owner, name, own, classmethod(told) if is_of_class else told))


def _add(made: Exchange) -> None:
    with _lock:
        _exchanges.append(made)
        if _count:  # a module that is imported within a block
            made.set(True)


@functools.cache
def _exchange_engines() -> None:
    """Let runs of executors and of compiled functions be entries; both modules are imported with the first block."""
    executor, jitted = import_lazily("compgraph.executor").Executor, import_lazily("compgraph.compiled.jitted").Jitted
    exchange(executor, "run", lambda profiler, *_: profiler.begin_here(FORWARD, "Executor.run"))
    exchange(jitted, "__call__", lambda profiler, function, *_, **__: profiler.begin_here(FORWARD, f"{function!r}"))


def begin_block() -> None:
    """Exchange the methods, unless they are exchanged already."""
    global _count
    _exchange_engines()
    with _lock:
        _count += 1
        if _count == 1:
            for each in _exchanges:
                each.set(True)


def end_block() -> None:
    """Put the methods back, at the end of the last block."""
    global _count
    with _lock:
        _count -= 1
        if not _count:
            for each in _exchanges:
                each.set(False)


def _entered(recorder: Recorder, memory: Memory, write: Write, *args: Any) -> Opened:
    """A write into a node; what was overwritten is kept, and so is a plain value that is stored."""
    opened = recorder.begin(FORWARD, write.opname, write.code, write.instruction, write.scope)
    recorder.held((write.saved, *(() if write.parent_argnums else write.args)))
    return opened


exchange(Memory, "enter", _entered)
