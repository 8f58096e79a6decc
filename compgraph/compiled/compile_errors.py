"""Errors and warnings of compilation: `NotCompilableError`, with the reason, and `CompileWarning`."""

from __future__ import annotations

from contextvars import ContextVar

from ..frames import SourceLine, user_source_line, warn_at


class NotCompilableError(Exception):
    """A call cannot be compiled and runs as NumPy; the message gives the reason.

    Parameters
    ----------
    message : str
        The reason, for the report. Its subject is a name, or "it" for the function.
    is_lasting : bool
        Whether another attempt would also fail. False if another thread may have interfered.
    """

    def __init__(self, message: str, is_lasting: bool = True) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


class CompileWarning(RuntimeWarning):
    """`compgraph.jit` cannot compile on this machine, or does not use its cache on disk.

    It is issued once per process if llvmlite is missing or the processor is not supported; then functions run as NumPy. Install
    the extra ``compgraph[jit]``, or use ``backend=``. It is also issued for a cache folder that other users could write to; the
    message names the folder and the remedy. A function that runs as NumPy for other reasons does not warn: see its `report`.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import compgraph as cg
    >>> with warnings.catch_warnings():
    ...     warnings.filterwarnings("ignore", category=cg.errors.CompileWarning)
    ...     float(cg.jit(np.sum).compile(np.ones(3))(np.ones(3)))
    3.0
    """

    __module__ = "compgraph.errors"  # the public module


# In the compiler thread: the user's line that called the function.
submitted_at: ContextVar[SourceLine | None] = ContextVar("submitted_at", default=None)


def warn_compile(message: str) -> None:
    """Issue a `CompileWarning` at the user's line, also from the compiler thread."""
    warn_at(submitted_at.get() or user_source_line(), message, CompileWarning)
