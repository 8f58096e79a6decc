"""The settings of a thread or asyncio task: whether operations are recorded, the precision, what derivatives ask for."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from .layers import Context, Setting, is_quick, layer_of, layered_variable, sync_variables

F = TypeVar("F", bound=Callable[..., Any])

recording: ContextVar[bool] = layered_variable("recording", True, is_quick=True)
# An observer that checks each new node and each derivative; see `debugging`.
watcher: ContextVar[Any] = layered_variable("watcher", None, is_quick=True)
# An observer of operations and sweeps while they run, in its own thread; see `compgraph.profiling`.
profiler: ContextVar[Any] = layered_variable("profiler", None, is_quick=True)
# An observer that is shown each result recorded, a node or several; see `compiled.unused`.
collector: ContextVar[Any] = layered_variable("collector", None, is_quick=True)
# Levels of vmaps and of derivatives: inner ones have the higher. Within `no_graph` no tangent of a level up to `cut` is computed.
next_level = itertools.count(1).__next__
blocked_level: ContextVar[int] = layered_variable("cut", 0, is_quick=True)
# The names of the scopes around, the outermost first; see `scopes`.
scopes: ContextVar[tuple[str, ...]] = layered_variable("scopes", (), is_quick=True)


def is_recording() -> bool:
    """Whether operations on nodes are recorded."""
    if is_quick():
        return True
    sync_variables()
    return recording.get()


def is_blocked_level(level: int) -> bool:
    """Whether tangents of a level are dropped: `no_graph` is in force, around this code or around an operator that runs it."""
    if is_quick():
        return False
    sync_variables()
    return not recording.get() or level <= blocked_level.get()


def active_watcher() -> Any:
    """The object that is shown each new node; None if there is none."""
    if is_quick():
        return None
    sync_variables()
    return watcher.get()


def active_profiler() -> Any:
    """The object that is told of operations and sweeps in this thread; None if there is none."""
    if is_quick():
        return None
    sync_variables()
    found = profiler.get()
    return found if found is None or found.thread == get_ident() else None


def observers() -> list[Any]:
    """Who sees what is recorded here: objects whose ``wrap(interpreter)`` is an interpreter that lets them."""
    return [found for found in (watcher.get(), collector.get(), active_profiler()) if found is not None]


def scope_change(name: str) -> dict[ContextVar[Any], Any]:
    """The change of a context in which nodes belong to one more scope."""
    return {scopes: (*open_scopes(), name)}


def open_scopes() -> tuple[str, ...]:
    """The names of the scopes around."""
    if is_quick():
        return ()
    sync_variables()
    return scopes.get()


# Nodes made up to this tick may not be written into: a function that is run twice (a checkpoint) would write twice.
sealed: ContextVar[float] = layered_variable("sealed", -math.inf)
sealed_until = sealed.get

# Whether rules must record derivatives that are right for values fed later, also where the short form would give nan.
records_for_replay: ContextVar[bool] = layered_variable("guarding", False)

# Whether a derivative is being recorded. Nobody writes into the arrays that rules make, so fewer views need to be active.
deriving: ContextVar[bool] = layered_variable("deriving", False)
is_deriving = deriving.get

# Whether results of integers and booleans are followed until an operation or a guard reads them (see `kinds.UntrackedNode`). They
# are not where a graph is recorded again, or a derivative: no code of the user's is given them.
following: ContextVar[bool] = layered_variable("following", True)
is_following = following.get

# Functions that an array made to be written into is passed through, the innermost last: each adds a tangent.
wrappers: ContextVar[tuple[Callable[[Any], Any], ...]] = layered_variable("wrappers", ())

# A function that each result of `stop_gradient` on plain arrays is passed through. It may return what an earlier call was given.
constant_holder: ContextVar[Callable[[Any], Any] | None] = layered_variable("holding", None)

# The guards noted so far by the trace of a compiled function, or of an executor, that is under way; None outside of such a trace.
trace_guards: ContextVar[list[Any] | None] = layered_variable("noting", None)

# What the functions that are differentiated are called by: given a function and its arguments it gives what the function does.
call_wrapper: ContextVar[Callable[[Callable[..., Any], Sequence[Any]], Any] | None] = layered_variable("calling", None)


def call_function(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What a function that is to be differentiated gives, called as those around have asked for."""
    sync_variables()
    by = call_wrapper.get()
    return f(*args) if by is None else by(f, args)


# The dtype of arrays made of Python numbers: set by a context, and by a call of `default_dtype` outside of all contexts.
FLOAT64: np.dtype[Any] = np.dtype(float)
_number: ContextVar[np.dtype[Any] | None] = layered_variable("number", None)
_number_called: ContextVar[np.dtype[Any]] = ContextVar("number_called", default=FLOAT64)


def default_float() -> np.dtype[Any]:
    """The dtype that Python numbers become."""
    sync_variables()
    return _number.get() or _number_called.get()


class NoGraph(Context):
    """A context, and a decorator, in which nothing is recorded. Made by `no_graph`."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._enter({recording: False, blocked_level: next_level()})

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __call__(self, function: F) -> F:
        """Decorate a function so that it computes without recording."""
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

    No derivative passes through values computed or written inside, in reverse and in forward mode: they are constants to
    the code that follows. Within a function that is differentiated, views made inside are read-only.

    A context manager, and a decorator. It holds for the current thread or asyncio task only. Inside a generator it holds while
    the generator runs; the code that loops over the generator goes on recording.

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


class DefaultDtype(Context):
    """A default precision, which holds from its making on; used as a context, until that ends. Made by `default_dtype`."""

    __slots__ = ("_before", "_dtype", "_layer")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._dtype, self._before, self._layer = dtype, default_float(), layer_of(_number)
        self._say(dtype)

    def _say(self, dtype: np.dtype[Any]) -> None:
        """Make `dtype` the default from now on; inside a context that set another one, until that context ends."""
        if self._layer is None:
            _number_called.set(dtype)
        else:
            self._layer.changes = {**self._layer.changes, _number: dtype}
            _number.set(dtype)

    def __enter__(self) -> np.dtype[Any]:
        self._say(self._before)
        self._enter({_number: self._dtype})
        return self._dtype

    def __exit__(self, *exception: object) -> None:
        self._leave()


def default_dtype(dtype: DTypeLike) -> DefaultDtype:
    """Set the precision of what is made of Python numbers.

    Called, it holds from then on; as a context, until the context ends. In both cases for the current thread or asyncio
    task only. It is the dtype of what `variable`, `zeros`, `ones` and `empty` make, and `constant`, `array` and `full` of Python
    floats; also of arguments of `autodiff.grad` and kin that are Python numbers or integers. What has a dtype keeps it.

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


def with_default_dtype(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    """`array`, cast to the default precision if the `value` it was made of holds Python's floats or complex numbers alone."""
    default = default_float()
    if default == np.float64 or array.dtype not in (np.float64, np.complex128) or not _bare(value):
        return array
    return array.astype(default if array.dtype.kind == "f" else np.result_type(default, np.complex64))


def _bare(value: Any) -> bool:
    """Whether a value is a Python number, or lists or tuples of nothing else."""
    if isinstance(value, (list, tuple)):
        return all(map(_bare, value))
    return not hasattr(value, "dtype") and isinstance(value, (bool, int, float, complex))


def recording_on() -> Setting:
    """A context in which operations are recorded, also within `no_graph`."""
    return Setting(_RECORDING)


_RECORDING = {recording: True}


def rerecording() -> Setting:
    """A context in which operations are recorded that were recorded before, for other values."""
    return Setting({recording: True, following: False})


def sealing(sequence_number: int, within: tuple[Callable[[Any], Any], ...]) -> Setting:
    """A context that refuses writes into nodes made up to a sequence number, and in which `within` is what `wrappers` is."""
    return Setting({sealed: max(sequence_number, sealed_until()), wrappers: within})


def buffers_wrapped(wrap: Callable[[Any], Any]) -> Setting:
    """A context in which `wrap` makes a node with a tangent of each array that is made to be written into."""
    return Setting({wrappers: (*wrappers.get(), wrap)})


def recording_derivative() -> Setting:
    """A context around the recording of a derivative; see `deriving`."""
    return Setting({deriving: True, following: False})


def recording_for_replay() -> Setting:
    """A context in which rules record derivatives that are right for values fed later; see `records_for_replay`."""
    return Setting({records_for_replay: True})


def holding_constants(hold: Callable[[Any], Any]) -> Setting:
    """A context in which `stop_gradient` of a plain array returns ``hold(result)``."""
    return Setting({constant_holder: hold})


class Scope(Context):
    """A context that enters its name into the nodes made inside. Made by `scope`."""

    __slots__ = ("_path",)

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__()
        self._path = path

    def __enter__(self) -> None:
        self._enter({scopes: (*open_scopes(), *self._path)})

    def __exit__(self, *exception: object) -> None:
        self._leave()


def scope(name: str) -> Scope:
    """Give a name to a part of the graph: nodes made inside know it, and `visualize_at` draws a box around them.

    Scopes nest; the same name in the same place is the same box, wherever it is opened again. A derivative that is recorded
    (``create_graph=True``) belongs to the scope of the operation it is the derivative of. Operations outside of all scopes
    cost nothing more. A scope holds for the current thread or asyncio task.

    Parameters
    ----------
    name : str
        The name of the box; ``"encoder/layer1"`` is ``"layer1"`` inside ``"encoder"``.

    Returns
    -------
    Scope
        To be used in ``with cg.scope("layer1"):``.

    Raises
    ------
    TypeError
        If the name is no string.
    ValueError
        If the name, or a part of it between slashes, is empty.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0)
    >>> with cg.scope("layer1"):
    ...     with cg.scope("inner"):
    ...         y = x * 2
    >>> y.scope, x.scope
    (('layer1', 'inner'), ())
    """
    if not isinstance(name, str):
        raise TypeError(f"a scope's name is a string, not a {type(name).__name__}")
    path = tuple(name.split("/"))
    if not all(path):
        raise ValueError(f"the scope {name!r} has an empty name, or one between slashes")
    return Scope(path)
