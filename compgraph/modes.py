"""Whether operations on nodes are recorded, for the current thread or asyncio task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

recording: ContextVar[bool] = ContextVar("recording", default=True)
is_recording = recording.get


@contextmanager
def no_graph() -> Iterator[None]:
    """Compute without recording: inside, operations on nodes give plain NumPy results.

    A context manager, and a decorator. It holds for the current thread or asyncio task only.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0)
    >>> with cg.no_graph():
    ...     type(x * 2).__name__
    'float64'
    """
    token = recording.set(False)
    try:
        yield
    finally:
        recording.reset(token)


@contextmanager
def recording_on() -> Iterator[None]:
    """Record inside, whatever is around."""
    token = recording.set(True)
    try:
        yield
    finally:
        recording.reset(token)
