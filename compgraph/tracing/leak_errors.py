"""LeakError: raised where code without graph support reads the values of a tracer.

A tracer raises when its values are requested. C code that accepts only arrays often rejects a tracer first, with an error of its
own that names the class. `explain_error` recognizes such errors by that name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

from ..context import layered_variable
from ..frames import is_raised_by, source_lines, walk_frames, warn_user
from .leak_messages import CYTHON_SUFFIXES, cython_note, is_library, leak_message, names_tracer, package_note, user_frame_index

_CYTHON_MISMATCH = "No matching signature found"  # a Cython function with fused types received no array
OPAQUE_CLASSES: set[str] = set()  # names of the classes of tracers and buffers, which errors of C code contain


class LeakError(TypeError):
    """Code without graph support requested the values of a node, which would lose the derivative."""

    __module__ = "compgraph"  # the public module, for tracebacks

    # The user's code and instruction. An error of C code from the same location has replaced this one; see `explain_error`.
    location: tuple[Any, int] | None = None

    def __reduce__(self) -> Any:
        return type(self), self.args  # without the location, which cannot be pickled


class LeakWarning(RuntimeWarning):
    """Numbers of a node left its graph, so results computed from them lack a derivative.

    It is issued for ``float(x)`` and similar conversions within an operator; by `autodiff.reverse.gradient` and other operators,
    if constants of the graph seem to come from such numbers; and where code caught a `LeakError`. Compute with the node itself.
    If a constant is intended, write ``x.value`` or ``cg.stop_gradient(x)``, which do not warn.

    Examples
    --------
    >>> import warnings
    >>> import compgraph as cg
    >>> with warnings.catch_warnings(), cg.strict():
    ...     warnings.filterwarnings("ignore", category=cg.errors.LeakWarning)
    ...     float(cg.variable(2.0))
    2.0
    """

    __module__ = "compgraph.errors"  # the public module


def make_leak_error(frame: FrameType | None, description: str | None = None, message: str | None = None) -> LeakError:
    """Create and log the error for a request of a node's value by C code that `frame` called.

    `description` describes the node, if it is known; `message` replaces the standard message. The error is appended to the log
    of the context, or to all logs if the thread has none of its own.
    """
    frames = list(walk_frames(frame))
    error = LeakError(message or leak_message(frames, description))
    if frames:
        user_frame = frames[user_frame_index(frames)]
        error.location = user_frame.f_code, user_frame.f_lasti
    own_log = OWN_LOG.get()
    for log in [reference() for reference in tuple(LOGS)] if own_log is None else [own_log]:  # threads have contexts of their own
        if log is not None:
            log.append(error)
    return error


def warn_caught(errors: list[LeakError]) -> None:
    """Warn that code caught a LeakError and continued."""
    warn_user(f"code caught the error of a conversion to numbers; its result may lack a derivative: {errors[0]}", LeakWarning)


class LeakLog(list["LeakError"]):
    """The leak errors raised within one context."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


OWN_LOG: ContextVar[LeakLog | None] = layered_variable("leak_log", None)
# The logs of all open contexts of all threads; weak references, because an interrupt may prevent the closing of a context.
LOGS: set[weakref.ref[LeakLog]] = set()


def explain_error(error: Exception, log: list[LeakError]) -> LeakError | None:
    """Return the LeakError that explains an error caused by a tracer; None if it is a LeakError, or has another cause.

    `log` holds the leak errors so far, because C code may replace one by an error of its own.
    """
    if isinstance(error, LeakError):
        return None
    for cause in _iterate_causes(error):
        if isinstance(cause, LeakError):
            return LeakError(*cause.args)
    trace = _traceback_entries(error)
    if not trace:
        return None
    frames = [part.tb_frame for part in trace]
    code = frames[0].f_code
    if source_lines.is_in_packages(code.co_filename) or (
        not is_library(code.co_filename) and is_raised_by(code, trace[0].tb_lasti)
    ):
        return None  # an error of this package, or raised by the user's code
    locations = {(part.tb_frame.f_code, part.tb_lasti) for part in trace}
    for leak in reversed(log):
        if leak.location in locations:
            return LeakError(*leak.args)
    if isinstance(error, AttributeError) and hasattr(type(error.obj), "opname"):
        return None  # the user accessed an attribute that arrays lack
    message = str(error)
    # Messages that begin with the class are Python's own: "'OperationalTracer' object is not callable". They are kept.
    names_class = any(name in message and not message.startswith(f"'{name}' object") for name in OPAQUE_CLASSES)
    is_cython_error = message == _CYTHON_MISMATCH or (type(error) is ValueError and code.co_filename.endswith(CYTHON_SUFFIXES))
    is_tracer_error = names_class or (is_cython_error and names_tracer(frames[user_frame_index(frames)]))
    return LeakError(leak_message(frames)) if is_tracer_error else None


def annotate_error(error: Exception) -> None:
    """Add a note to an error of another package that handled a tracer, or that passed through Cython code."""
    frames = [part.tb_frame for part in _traceback_entries(error)]
    if not frames:
        return
    note = cython_note(frames, str(error)) if isinstance(error, LeakError) else package_note(frames, type(error))
    if note is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _traceback_entries(error: BaseException) -> list[TracebackType]:
    """The traceback of an error, innermost entry first, up to where it is caught."""
    entries, trace = [], error.__traceback__
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries[::-1]


def user_line_of(error: BaseException) -> str | None:
    """Return the innermost user line that an error passed through; None if it passed through none."""
    frames = [part.tb_frame for part in _traceback_entries(error)]
    frame = frames[user_frame_index(frames)] if frames else None
    return None if frame is None or source_lines.internal[frame.f_code.co_filename] else source_lines.format_frame(frame)
