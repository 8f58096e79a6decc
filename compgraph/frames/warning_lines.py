"""Runtime warnings on the user's line. NumPy warns at the line of ours that calls it, and Python shows that line only once.

NumPy's C code attributes a warning to the innermost Python frame. `warnings` calls `_showwarnmsg` for what passes the filters;
it is replaced by a function that issues a warning from our files anew, on the user's line, with that module's filters and
registry. Nothing is called where nothing warns.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .source_lines import internal, is_package_code, walk_frames, warn_at


def _at_users_line(show: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(show)
    def show_warning(message: Any) -> None:
        if not (issubclass(message.category, RuntimeWarning) and _is_written_by_us(message.filename)):
            show(message)
            return
        users: Any = None
        for frame in walk_frames(sys._getframe(1)):
            filename = frame.f_code.co_filename
            if filename == message.filename:  # without a registry, Python shows each warning, and the user's registry decides
                frame.f_globals["__warningregistry__"] = None
            if not (internal[filename] or _is_written_by_us(filename)):
                users = frame
                break
        if users is None:
            show(message)
        else:
            warn_at(users, message.message)

    return show_warning


def _is_written_by_us(filename: str) -> bool:
    return filename.startswith("<executor ") or is_package_code(filename)


def show_at_users_line() -> None:
    """Let runtime warnings from our files be shown on the user's line."""
    show: Any = warnings._showwarnmsg  # type: ignore[attr-defined]
    if getattr(show, "__wrapped__", None) is None:
        warnings._showwarnmsg = _at_users_line(show)  # type: ignore[attr-defined]
