"""Patches of methods while a profile runs, which give their calls separate entries.

The last block restores the methods, so inactive profiles add no overhead. If a signal ends a block without ``__exit__``, they
are restored when its recorder is freed; until then the patches do nothing without an active profiler.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from ..context import active_profiler, callbacks_lock, import_lazily
from ..storage import Memory, Write
from .entries import FORWARD
from .recorder import Opened, Recorder

_patches: list[tuple[type, str, object, object]] = []  # the class, the name of the method, the method, the profiled method
_blocks: set[weakref.ref[Recorder]] = set()  # running ones, in all threads; weak, because an interrupt may prevent their end


def patch_method(
    owner: type, name: str, open_entry: Callable[..., Opened], allocated: Callable[[Any], object] = lambda result: result
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
    allocated : callable
        Returns the array, or the tuple of arrays, for which the method allocated memory, given its result.
    """
    original = owner.__dict__[name]
    is_class_method = isinstance(original, classmethod)
    call = original.__func__ if is_class_method else original

    @functools.wraps(call)
    def profiled(*args: object, **kwargs: object) -> Any:
        recorder = active_profiler()
        if recorder is None:
            return call(*args, **kwargs)
        opened = open_entry(recorder, *args, **kwargs)
        try:
            result = call(*args, **kwargs)
            recorder.track_all(allocated(result))
            return result
        finally:
            recorder.end(opened)

    with callbacks_lock:
        _patches.append((owner, name, original, classmethod(profiled) if is_class_method else profiled))
        if _blocks:  # a module that is imported within a block
            _set_patches(True)


def _set_patches(is_profiled: bool) -> None:
    for owner, name, original, profiled in _patches:
        setattr(owner, name, profiled if is_profiled else original)


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


def _begin_write(recorder: Recorder, memory: Memory, write: Write, *args: object) -> Opened:
    """Open the entry of a write, and track what the write log keeps: overwritten values, and stored plain values."""
    opened = recorder.begin(FORWARD, write.opname, write.code, write.instruction, write.scope)
    recorder.track_all((write.saved, *(() if write.parent_argnums else write.args)))
    return opened


patch_method(Memory, "append", _begin_write)
