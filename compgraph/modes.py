"""Whether operations on nodes are recorded, for the current thread or asyncio task."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

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

# Whether derivatives are recorded so that they hold where others give nan, for values that are not known yet.
guarding: ContextVar[bool] = ContextVar("guarding", default=False)

# What an array made to be written into is given to before it becomes a node: functions, the innermost last.
wrappers: ContextVar[tuple[Callable[[Any], Any], ...]] = ContextVar("wrappers", default=())

# Who is given what `stop_gradient` returns on plain arrays, and returns it, or what was returned before.
holding: ContextVar[Callable[[Any], Any] | None] = ContextVar("holding", default=None)

# What Python numbers become where an array is made of them.
FLOAT64: np.dtype[Any] = np.dtype(float)
_number: ContextVar[np.dtype[Any]] = ContextVar("number", default=FLOAT64)
default_float = _number.get


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


class DefaultDtype:
    """A default precision, in force since it was made; as a context, until the context ends. Made by `default_dtype`."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._before = _number.get()
        _number.set(dtype)

    def __enter__(self) -> np.dtype[Any]:
        _number.set(self._dtype)
        return self._dtype

    def __exit__(self, *exception: object) -> None:
        _number.set(self._before)


def default_dtype(dtype: DTypeLike) -> DefaultDtype:
    """Set the precision of what is made of Python numbers.

    Called, it holds from then on; as a context, until the context ends. In both cases for the current thread or asyncio
    task only. `variable`, `zeros`, `ones`, `empty`, and of Python floats `constant`, `array` and `full`, follow it, and so do
    the arguments of `autodiff.grad` and kin where they are Python numbers or integers. What has a dtype of its own keeps it.

    Parameters
    ----------
    dtype : dtype
        A real floating dtype; float64 at the beginning. Complex numbers become complex ones of the same precision.

    Returns
    -------
    DefaultDtype
        To be used in ``with cg.default_dtype(np.float32):``, or dropped.

    Raises
    ------
    TypeError
        If the dtype is not a real floating one.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> with cg.default_dtype(np.float32):
    ...     x = cg.variable([1.0, 2.0])
    >>> x.dtype, cg.variable([1.0, 2.0]).dtype
    (dtype('float32'), dtype('float64'))
    """
    found = np.dtype(dtype)
    if found.kind != "f" or dtype is None:
        raise TypeError(f"default_dtype: {dtype!r} is not a real floating dtype; give np.float32, np.float64 or their like")
    return DefaultDtype(found)


def of_numbers(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    """`array`, made of `value`, in the default precision if `value` is made of Python's floats or complex numbers."""
    default = default_float()
    if default == np.float64 or array.dtype not in (np.float64, np.complex128) or not _bare(value):
        return array
    return array.astype(default if array.dtype.kind == "f" else np.result_type(default, np.complex64))


def _bare(value: Any) -> bool:
    """Whether a value is made of Python numbers, which have no dtype."""
    if isinstance(value, (list, tuple)):
        return all(map(_bare, value))
    return not hasattr(value, "dtype") and isinstance(value, (bool, int, float, complex))


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
