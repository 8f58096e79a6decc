"""Contexts in which new values are tracers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, TypeVar

from ..context import Context, Setting, layered_variable, recording, tracking_indices
from .leak_errors import LOGS, OWN_LOG, LeakLog, annotate_error, explain_error, warn_caught

T = TypeVar("T")
_tracing: ContextVar[bool] = layered_variable("tracing", False, is_read=True)
_compiling: ContextVar[bool] = layered_variable("compiling", False)
is_tracing = _tracing.get  # whether new values are tracers
_after_trace: ContextVar[bool] = layered_variable("after_trace", False)
is_after_trace = _after_trace.get  # whether tracers among the operands belong to a finished trace; see `after_trace`
# Whether a function is traced for compilation: integer tracers raise on conversion, and values that steer Python become guards.
is_compiling = _compiling.get


_MAX_RETRACES = 100  # of one call of an operator; each replaces the calls of one more module, unless a copy of the old code runs
_retraceable: ContextVar[bool] = ContextVar("retraceable", default=False)
is_retraceable = _retraceable.get  # whether a `RetraceError` is handled by an operator
# Called with the frame that reads a tracer's values; raise a `RetraceError` if they have replaced the code of the frame.
RETRACERS: list[Callable[[FrameType], None]] = []
# Called with an error of the traced function; return whether they have replaced its code, so that it has to be traced again.
ERROR_RETRACERS: list[Callable[[Exception], bool]] = []


class RetraceError(BaseException):
    """The code that was being traced has been replaced, so an operator has to trace its function again."""


def retracing(trace: Callable[[], T]) -> T:
    """Call a function that traces the user's, again after each `RetraceError`."""
    token = _retraceable.set(True)
    try:
        for _ in range(_MAX_RETRACES):
            try:
                return trace()
            except RetraceError:
                pass
            except Exception as error:
                if not any(has_replaced_code(error) for has_replaced_code in ERROR_RETRACERS):
                    raise
    finally:
        _retraceable.reset(token)
    return trace()


class Tracing(Setting):
    """A context in which new values are tracers, used once. `autodiff.grad` and other operators call the user's function in it.

    Parameters
    ----------
    records : bool
        Whether operations are recorded also within `no_graph`.
    compiles : bool
        Whether integer and boolean tracers raise on conversion, too. Plain arrays could be indexed by them (``table[i]``). The
        setting extends to nested contexts.

    Attributes
    ----------
    leak_errors : LeakLog
        The leak errors that were raised inside.
    """

    __slots__ = ("leak_errors",)

    def __init__(self, *, records: bool = False, compiles: bool = False) -> None:
        self.leak_errors = LeakLog()
        changes: dict[ContextVar[Any], Any] = {_tracing: True, OWN_LOG: self.leak_errors}
        if records:
            changes[recording] = True
        if compiles:
            changes |= {_compiling: True, tracking_indices: False}
        super().__init__(changes)

    def __enter__(self) -> None:
        LOGS.add(weakref.ref(self.leak_errors, LOGS.discard))
        super().__enter__()

    def __exit__(self, error_class: type | None = None, error: Any = None, trace: object = None) -> None:  # type: ignore[override]
        super().__exit__(error_class, error, trace)
        _close(self.leak_errors, error)


def _close(log: LeakLog, error: BaseException | None) -> None:
    """Leave a tracing context: explain or annotate the error, or warn about leaks whose errors were caught."""
    LOGS.discard(weakref.ref(log))
    explanation = explain_error(error, log) if isinstance(error, Exception) else None
    if explanation is not None:
        raise explanation from error
    if isinstance(error, Exception):
        annotate_error(error)
    if error is None and log:
        warn_caught(log)


class Strict(Context):
    """`Tracing` for users, which may be entered several times and nested within itself. Created by `strict`."""

    __slots__ = ()

    def __enter__(self) -> Any:
        self._enter_tracing({})

    def _enter_tracing(self, others: dict[Any, Any]) -> None:
        """Enter a context in which new values are tracers and `others` are set; called by ``__enter__``."""
        log = LeakLog()
        LOGS.add(weakref.ref(log, LOGS.discard))
        self._enter({_tracing: True, OWN_LOG: log, **others}, 3)

    def __exit__(self, error_class: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _close(self._leave().changes[OWN_LOG], error)


def without_tracing() -> Setting:
    """A context in which new values are ordinary nodes, not tracers."""
    return Setting({_tracing: False, _compiling: False})


def after_trace() -> Setting:
    """A context for operations on tracers of a finished trace: recorded, with ordinary nodes as results.

    Otherwise, while another thread traces, results are tracers, because the operands may be those of a running function.
    """
    return Setting({recording: True, _after_trace: True})


def strict() -> Strict:
    """Raise where code reads the values of nodes without recording; a context manager.

    A node is a NumPy array, so code that does not support graphs (C code, much of SciPy, pandas) accepts it, and its results lose
    their derivatives. Functions differentiated by `autodiff.grad` and other operators always raise there. This context extends
    the check to all nodes made inside, at the top level as well. ``x.value`` and ``cg.stop_gradient(x)`` state that the plain
    values are intended.

    Returns
    -------
    Strict
        For use as ``with cg.strict():``, local to the current thread or asyncio task.

    Raises
    ------
    LeakError
        Inside, where values are read. It names the node, the line and a replacement.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> with cg.strict():
    ...     x = cg.variable([1.0, 2.0])
    ...     np.asarray(x).max()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compgraph.LeakError: ...
    >>> with cg.strict():
    ...     print(np.asarray(cg.variable([1.0, 2.0]).value).max())
    2.0
    """
    return Strict()
