"""Settings of a thread or asyncio task: recording, scopes, precision, and the state of derivatives in progress."""

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
from numpy.typing import ArrayLike, DTypeLike

from .layers import Context, Setting, is_fast_path, layer_of, layered_variable, sync_variables

F = TypeVar("F", bound=Callable[..., Any])

# Whether errors keep the frames of the packages in their tracebacks; see `debugging`.
full_tracebacks: ContextVar[bool] = layered_variable("full_tracebacks", False)
recording: ContextVar[bool] = layered_variable("recording", True, disables_fast_path=True)
# The checks of each new node and each derivative; see `debugging.Checks`.
checks: ContextVar[Any] = layered_variable("checks", None, disables_fast_path=True)
# Times operations and sweeps in its own thread; see `compgraph.profiling`.
profiler: ContextVar[Any] = layered_variable("profiler", None, disables_fast_path=True)
# Receives each recorded result, a node or several; see `compiled.function_trace`.
collector: ContextVar[Any] = layered_variable("collector", None, disables_fast_path=True)
# Trace levels of vmaps and derivatives; inner levels are higher. `no_graph` drops tangents of levels up to `blocked_level`.
next_level = itertools.count(1).__next__
blocked_level: ContextVar[int] = layered_variable("blocked_level", 0, disables_fast_path=True)
# The names of the open scopes, outermost first.
scopes: ContextVar[tuple[str, ...]] = layered_variable("scopes", (), disables_fast_path=True)


def is_recording() -> bool:
    """Whether operations on nodes are recorded."""
    if is_fast_path():
        return True
    sync_variables()
    return recording.get()


def is_blocked_level(level: int) -> bool:
    """Whether tangents of a level are dropped because `no_graph` is active, here or around the enclosing operator."""
    if is_fast_path():
        return False
    sync_variables()
    return not recording.get() or level <= blocked_level.get()


def active_checks() -> Any:
    """The active checks of `debug`, or None."""
    if is_fast_path():
        return None
    sync_variables()
    return checks.get()


def active_profiler() -> Any:
    """The profiler of operations and sweeps in this thread, or None."""
    if is_fast_path():
        return None
    sync_variables()
    current_profiler = profiler.get()
    return current_profiler if current_profiler is None or current_profiler.thread == get_ident() else None


def observers() -> list[Any]:
    """The active observers: objects whose ``wrap(interpreter)`` returns an interpreter that reports to them."""
    return [observer for observer in (checks.get(), collector.get(), active_profiler()) if observer is not None]


def scope_change(name: str) -> dict[ContextVar[Any], Any]:
    """Return the changed context variable of a context that opens one more scope, with its value."""
    return {scopes: (*open_scopes(), name)}


def open_scopes() -> tuple[str, ...]:
    """The names of the open scopes, outermost first."""
    if is_fast_path():
        return ()
    sync_variables()
    return scopes.get()


# Nodes up to this sequence number may not be written into, because a checkpoint runs a function twice and would write twice.
sealed: ContextVar[float] = layered_variable("sealed", -math.inf)
sealed_until = sealed.get

# Whether rules must record derivatives that stay correct for values fed later, even where a shorter form would give nan.
records_for_replay: ContextVar[bool] = layered_variable("records_for_replay", False)

# A list while a trace assumes that its derivatives are not differentiated again; None otherwise. An operation whose derivative is
# differentiated again adds its opname to the list, and the trace is repeated without the assumption.
higher_derivatives: ContextVar[list[str] | None] = layered_variable("higher_derivatives", None)

# Whether the corners of choices are guards, because a program differentiates a derivative again.
guards_corners: ContextVar[bool] = layered_variable("guards_corners", False)

# A list while a function is traced, or a graph is retraced, for a program; None otherwise. A sweep adds the derivatives that may
# be nan in later runs because they were recorded without masks for structural zeros.
unmasked_derivatives: ContextVar[list[Any] | None] = layered_variable("unmasked_derivatives", None)

# Whether a derivative is being recorded. Arrays made by rules are never written into, so fewer views need to be active.
deriving: ContextVar[bool] = layered_variable("deriving", False)
is_deriving = deriving.get

# Whether integer and boolean results are tracked until an operation or a guard reads them (see `node_kinds.UntrackedNode`). This
# is off while a graph is recorded again or a derivative is recorded, because user code does not see those results.
tracking_indices: ContextVar[bool] = layered_variable("tracking_indices", True)
is_tracking_indices = tracking_indices.get

# Functions applied to newly allocated arrays, innermost last; each adds a tangent or a batch axis.
wrappers: ContextVar[tuple[Callable[[Any], Any], ...]] = layered_variable("wrappers", ())

# A function applied to each result of `stop_gradient` on plain arrays. `numeric.verification` holds such results constant by it,
# because finite differences must not vary them.
constant_holder: ContextVar[Callable[[Any], Any] | None] = layered_variable("constant_holder", None)

# The guards of the current trace of a compiled function or an executor; None outside of such a trace.
trace_guards: ContextVar[list[Any] | None] = layered_variable("trace_guards", None)

# Wraps calls of differentiated functions: takes the function and its arguments, returns its result.
call_wrapper: ContextVar[Callable[[Callable[..., Any], Sequence[Any]], Any] | None] = layered_variable("call_wrapper", None)


def call_function(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call a function that is being differentiated, through the wrappers of enclosing operators."""
    sync_variables()
    wrapper = call_wrapper.get()
    return f(*args) if wrapper is None else wrapper(f, args)


# The dtype of arrays made from Python numbers: set by a context, and by calls of `default_dtype` outside of contexts.
FLOAT64: np.dtype[Any] = np.dtype(float)
_context_dtype: ContextVar[np.dtype[Any] | None] = layered_variable("context_dtype", None)
_called_dtype: ContextVar[np.dtype[Any]] = ContextVar("called_dtype", default=FLOAT64)


def default_float() -> np.dtype[Any]:
    """The dtype to which Python numbers are converted."""
    sync_variables()
    return _context_dtype.get() or _called_dtype.get()


class NoGraph(Context):
    """A context manager and decorator that disables recording. Created by `no_graph`."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._enter({recording: False, blocked_level: next_level()})

    def __exit__(self, *exception: object) -> None:
        self._leave()

    def __call__(self, function: F) -> F:
        """Decorate a function to compute without recording."""
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"no_graph cannot decorate {function.__name__}, whose body runs after the call has returned; write "
                "`with cg.no_graph():` inside it"
            )

        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            with NoGraph():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def no_graph() -> NoGraph:
    """Disable recording: operations on nodes return plain NumPy results.

    No derivative passes through values computed or written inside, in reverse or forward mode: later code treats them as
    constants. Within a differentiated function, views made inside are read-only.

    A context manager and decorator, local to the current thread or asyncio task. Inside a generator it holds while the generator
    runs; the code that iterates over the generator keeps recording.

    Returns
    -------
    NoGraph
        For use as ``with cg.no_graph():`` or ``@cg.no_graph()``.

    Raises
    ------
    TypeError
        If it decorates a generator or coroutine function, whose body runs after the call.

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
    """A default precision, in force from its creation; as a context, until the context ends. Created by `default_dtype`."""

    __slots__ = ("_dtype", "_layer", "_previous")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._dtype, self._previous, self._layer = dtype, default_float(), layer_of(_context_dtype)
        self._set_default(dtype)

    def _set_default(self, dtype: np.dtype[Any]) -> None:
        """Set the default. Within a context that has set a default, the new one holds until that context ends."""
        if self._layer is None:
            _called_dtype.set(dtype)
        else:
            self._layer.changes = {**self._layer.changes, _context_dtype: dtype}
            _context_dtype.set(dtype)

    def __enter__(self) -> np.dtype[Any]:
        self._set_default(self._previous)
        self._enter({_context_dtype: self._dtype})
        return self._dtype

    def __exit__(self, *exception: object) -> None:
        self._leave()


def default_dtype(dtype: DTypeLike) -> DefaultDtype:
    """Set the dtype to which Python numbers are converted.

    A call sets it until the next call. As a context it holds until the context ends. Both are local to the current thread or
    asyncio task. The setting is the dtype of `variable`, `zeros`, `ones` and `empty`, of `constant`, `array` and `full` of Python
    floats, and of Python numbers and integers passed to `autodiff.grad` and other operators. Arrays keep their dtype.

    Parameters
    ----------
    dtype : dtype
        A real floating dtype; initially float64. Complex numbers get the complex dtype of the same precision.

    Returns
    -------
    DefaultDtype
        For use as ``with cg.default_dtype(np.float32):``.

    Raises
    ------
    TypeError
        If the dtype is not real and floating.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> with cg.default_dtype(np.float32):
    ...     x = cg.variable([1.0, 2.0])
    >>> x.dtype, cg.variable([1.0, 2.0]).dtype
    (dtype('float32'), dtype('float64'))
    """
    float_dtype = np.dtype(dtype)
    if float_dtype.kind != "f" or dtype is None:
        raise TypeError(f"default_dtype: {dtype!r} is not a real floating dtype; pass np.float32 or np.float64")
    return DefaultDtype(float_dtype)


def with_default_dtype(array: np.ndarray[Any, Any], value: ArrayLike) -> np.ndarray[Any, Any]:
    """Cast `array` to the default precision if `value`, from which it was made, contains only Python numbers."""
    default = default_float()
    if default == np.float64 or array.dtype not in (np.float64, np.complex128) or not _has_only_python_numbers(value):
        return array
    return array.astype(default if array.dtype.kind == "f" else np.result_type(default, np.complex64))


def _has_only_python_numbers(value: ArrayLike) -> bool:
    """Whether a value is a Python number, or lists and tuples of such numbers."""
    if isinstance(value, (list, tuple)):
        return all(map(_has_only_python_numbers, value))
    return not hasattr(value, "dtype") and isinstance(value, (bool, int, float, complex))


def recording_on() -> Setting:
    """A context that enables recording, also within `no_graph`."""
    return Setting(_RECORDING)


_RECORDING = {recording: True}


def rerecording() -> Setting:
    """A context in which operations of an existing graph are recorded again with other values."""
    return Setting({recording: True, tracking_indices: False})


def sealing(sequence_number: int, wrap_functions: tuple[Callable[[Any], Any], ...]) -> Setting:
    """A context that rejects writes into nodes made up to a sequence number, and sets `wrappers` to `wrap_functions`."""
    return Setting({sealed: max(sequence_number, sealed_until()), wrappers: wrap_functions})


def wrapping_buffers(wrap: Callable[[Any], Any]) -> Setting:
    """A context in which `wrap` adds a tangent to each newly allocated array."""
    return Setting({wrappers: (*wrappers.get(), wrap)})


def recording_derivative() -> Setting:
    """A context for the recording of a derivative; see `deriving`."""
    return Setting({deriving: True, tracking_indices: False})


def recording_for_replay() -> Setting:
    """A context in which rules record derivatives that stay correct for values fed later; see `records_for_replay`."""
    return Setting({records_for_replay: True})


def holding_constants(hold: Callable[[Any], Any]) -> Setting:
    """A context in which `stop_gradient` of a plain array returns ``hold(result)``."""
    return Setting({constant_holder: hold})


class Scope(Context):
    """A context that stores its name in the nodes made inside. Created by `scope`."""

    __slots__ = ("_path",)

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__()
        self._path = path

    def __enter__(self) -> None:
        self._enter({scopes: (*open_scopes(), *self._path)})

    def __exit__(self, *exception: object) -> None:
        self._leave()


def scope(name: str) -> Scope:
    """Name a part of the graph: nodes made inside store the name, and `visualize_at` draws a box around them.

    Scopes nest. The same name in the same scope is one box, even if it is opened several times. A recorded derivative
    (``create_graph=True``) belongs to the scope of the operation that it differentiates. Operations outside of all scopes have no
    overhead. A scope is local to the current thread or asyncio task.

    Parameters
    ----------
    name : str
        The name of the box; ``"encoder/layer1"`` is ``"layer1"`` inside ``"encoder"``.

    Returns
    -------
    Scope
        For use as ``with cg.scope("layer1"):``.

    Raises
    ------
    TypeError
        If the name is not a string.
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
        raise ValueError(f"the scope {name!r} has an empty name, or an empty part between slashes; name each part")
    return Scope(path)
