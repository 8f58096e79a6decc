"""Whether operations on nodes are recorded, for the current thread or asyncio task."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

recording: ContextVar[bool] = ContextVar("recording", default=True)
is_recording = recording.get
# Who looks at each operation as it is recorded; see `debugging`.
watcher: ContextVar[Any] = ContextVar("watcher", default=None)
# The names of the scopes around, the outermost first; see `scopes`.
scopes: ContextVar[tuple[str, ...]] = ContextVar("scopes", default=())
open_scopes = scopes.get
# Whether operations may take the shortest way: recorded, in no scope, and nobody looks.
_quick: ContextVar[bool] = ContextVar("quick", default=True)
is_quick = _quick.get
_before: ContextVar[tuple[bool, ...]] = ContextVar("before", default=())  # one entry for each no_graph around

# Arrays made up to this tick may not be written into: a function that runs again would write twice.
sealed: ContextVar[float] = ContextVar("sealed", default=-math.inf)
sealed_until = sealed.get

# What an array made to be written into is given to before it becomes a node: functions, the innermost last.
wrappers: ContextVar[tuple[Callable[[Any], Any], ...]] = ContextVar("wrappers", default=())


def settle() -> None:
    """Let what follows from the other modes follow."""
    _quick.set(recording.get() and watcher.get() is None and not scopes.get())


class NoGraph:
    """A context, and a decorator, in which nothing is recorded. Made by `no_graph`."""

    def __enter__(self) -> None:
        _before.set((*_before.get(), recording.get()))
        recording.set(False)
        settle()

    def __exit__(self, *exception: object) -> None:
        *outer, before = _before.get()
        _before.set(tuple(outer))
        recording.set(before)
        settle()

    def __call__(self, function: F) -> F:
        """Let a function compute without recording."""
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"no_graph cannot decorate {function.__name__}, whose body runs after the call has returned; write "
                "`with cg.no_graph():` inside it"
            )

        @functools.wraps(function)
        def silent(*args: Any, **kwargs: Any) -> Any:
            with NoGraph():
                return function(*args, **kwargs)

        return silent  # type: ignore[return-value]


def no_graph() -> NoGraph:
    """Compute without recording: inside, operations on nodes give plain NumPy results.

    A context manager, and a decorator. It holds for the current thread or asyncio task only.

    Returns
    -------
    NoGraph
        To be used in ``with cg.no_graph():`` or as ``@cg.no_graph()``.

    Raises
    ------
    TypeError
        If it decorates a generator or a coroutine function, whose body runs later.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0)
    >>> with cg.no_graph():
    ...     type(x * 2).__name__
    'float64'
    """
    return NoGraph()


@contextmanager
def recording_on() -> Iterator[None]:
    """Record inside, whatever is around."""
    token = recording.set(True)
    settle()
    try:
        yield
    finally:
        recording.reset(token)
        settle()


@contextmanager
def sealed_up_to(tick: int, within: tuple[Callable[[Any], Any], ...]) -> Iterator[None]:
    """Refuse to write into arrays made up to a tick, and let `within` wrap those made inside."""
    tokens = sealed.set(max(tick, sealed_until())), wrappers.set(within)
    try:
        yield
    finally:
        sealed.reset(tokens[0])
        wrappers.reset(tokens[1])


@contextmanager
def buffers_wrapped(wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Let `wrap` make a node of each array that is made to be written into."""
    token = wrappers.set((*wrappers.get(), wrap))
    try:
        yield
    finally:
        wrappers.reset(token)
