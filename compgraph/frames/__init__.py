"""Introspection of CPython frames: the user's line, the expression in it, and the current instruction.

A conversion such as ``__float__`` is not passed its caller. `instructions` reads from one instruction whether the caller assigns
(``plain[0] = x``). `expressions` reads from the source which callable it calls (``float(x)``).
"""

from . import source_lines
from .expressions import assigned_name, callee, classify_use, expression, has_source, literals_in, method_called, unknown
from .instructions import is_assigning, is_at_operator, is_delegating, is_formatting, is_heap_type, is_raised_by
from .source_lines import (
    SourceLine,
    add_internal_code,
    format_line,
    frame_up,
    is_called_by_packages,
    is_in_library,
    is_internal,
    may_wrap,
    record_lines,
    set_lines_of_rules,
    set_lines_since,
    shorten_traceback,
    show_at_users_line,
    user_source_line,
    walk_frames,
    warn_at,
    warn_user,
)

__all__ = [
    "SourceLine", "add_internal_code", "assigned_name", "callee", "classify_use", "expression", "format_line", "frame_up",
    "has_source", "is_assigning", "is_at_operator", "is_called_by_packages", "is_delegating", "is_formatting", "is_heap_type",
    "is_in_library", "is_internal", "is_raised_by", "literals_in", "may_wrap", "method_called", "record_lines",
    "set_lines_of_rules", "set_lines_since", "shorten_traceback", "source_lines", "unknown", "user_source_line", "walk_frames",
    "warn_at", "warn_user",
]  # fmt: skip

show_at_users_line()
