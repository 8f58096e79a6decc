"""Tracing: the contexts in which new values are tracers, which no code can take numbers from unseen."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..context import Context, Setting, following, layered_variable, recording
from .leak_errors import LOGS, OWN_LOG, LeakLog, annotate, explain, warn_caught

_tracing: ContextVar[bool] = layered_variable("tracing", False, is_read=True)
_compiling: ContextVar[bool] = layered_variable("compiling", False)
is_tracing = _tracing.get  # whether new values are tracers
# Whether a function is traced to be compiled: arrays of integers refuse as well, and what steered Python is a guard.
is_compiling = _compiling.get


class Tracing(Setting):
    """A context in which new values are tracers; `autodiff.grad` and kin call the user's function in one. Entered once.

    Parameters
    ----------
    records : bool
        Whether operations are recorded also within `no_graph`.
    compiles : bool
        Whether arrays of integers and booleans refuse as well, by which plain arrays might be indexed (``table[i]``); this
        holds in the contexts within this one, too.
    """

    __slots__ = ("_log",)

    def __init__(self, *, records: bool = False, compiles: bool = False) -> None:
        self._log = LeakLog()
        changes: dict[ContextVar[Any], Any] = {_tracing: True, OWN_LOG: self._log}
        if records:
            changes[recording] = True
        if compiles:
            changes |= {_compiling: True, following: False}
        super().__init__(changes)

    def __enter__(self) -> None:
        LOGS.add(weakref.ref(self._log, LOGS.discard))
        super().__enter__()

    def __exit__(self, kind: Any = None, error: Any = None, trace: Any = None) -> None:  # type: ignore[override]
        super().__exit__(kind, error, trace)
        _close(self._log, error)


def _close(log: LeakLog, error: BaseException | None) -> None:
    """Leave a context in which values were tracers: raise, annotate the error or warn, in our words, if numbers were refused."""
    LOGS.discard(weakref.ref(log))
    explanation = explain(error, log) if isinstance(error, Exception) else None
    if explanation is not None:
        raise explanation from error
    if isinstance(error, Exception):
        annotate(error)
    if error is None and log:
        warn_caught(log)


class Strict(Context):
    """`Tracing` for users, which may be entered several times, and within itself. Made by `strict`."""

    __slots__ = ()

    def __enter__(self) -> Any:
        self._enter_tracing({})

    def _enter_tracing(self, others: dict[Any, Any]) -> None:
        """Called by ``__enter__``: new values are tracers, and `others` are set as well."""
        log = LeakLog()
        LOGS.add(weakref.ref(log, LOGS.discard))
        self._enter({_tracing: True, OWN_LOG: log, **others}, 3)

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        _close(self._leave().changes[OWN_LOG], error)


def without_tracing() -> Setting:
    """A context in which new values are nodes over real memory, whatever context is around."""
    return Setting({_tracing: False, _compiling: False})


def strict() -> Strict:
    """Let no code take the numbers of a node without asking it; a context manager.

    A node is a NumPy array, so code that knows nothing of graphs (C code, most of SciPy, pandas) takes it for one, and what
    it computes has lost its derivative. Inside a function that `autodiff.grad` and kin differentiate, that is refused anyway;
    inside this context it is refused for all nodes that are made, also at the top level. ``x.value`` and
    ``cg.stop_gradient(x)`` say that the numbers are meant.

    Returns
    -------
    Strict
        To be used in ``with cg.strict():``, for the current thread or asyncio task.

    Raises
    ------
    LeakError
        Inside, where the numbers are taken. It names the node, the line of code and what to use instead.

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
