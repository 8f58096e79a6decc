"""Tracebacks without the frames of the packages, for errors that leave a public operator."""

from __future__ import annotations

from types import FrameType, TracebackType

from .source_lines import is_packaged, walk_frames


def is_called_by_packages(frame: FrameType) -> bool:
    """Whether a caller of a frame belongs to the packages, so that the frame is not that of the outermost call."""
    return any(is_packaged(caller.f_code.co_filename) for caller in walk_frames(frame.f_back))


def shorten_traceback(error: BaseException) -> None:
    """Remove the entries of the packages from the traceback of an error, except the one in which it was raised.

    Examples
    --------
    >>> import traceback
    >>> import compgraph as cg
    >>> def f():
    ...     cg.variable([1.0, 2.0]).reshape(3)
    >>> try:
    ...     f()
    ... except ValueError as error:
    ...     shorten_traceback(error)
    ...     print([entry.name for entry in traceback.extract_tb(error.__traceback__)][:2])
    ['<module>', 'f']
    """
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    short: TracebackType | None = None
    for entry in reversed(entries):
        if short is None or not is_packaged(entry.tb_frame.f_code.co_filename):
            short = TracebackType(short, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = short
