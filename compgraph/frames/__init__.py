"""The one place that looks at Python's interpreter: the user's line and the expression in it, and the current instruction.

A conversion such as ``__float__`` does not know its caller. Whether a frame assigns (``plain[0] = x``) is read off one
instruction (`instructions`). Which callable it calls (``float(x)``) is read off the source (`expressions`), for messages and the
top level.
"""

from . import source_lines
from .assignments import assigned_name
from .classes import is_heap_type
from .expressions import callee, has_source, method_called, unknown
from .instructions import assigns, delegates, formats, is_raised_by, operates
from .source_lines import described, frame_up, is_internal, made_for, made_since, outwards, record_lines, wrapping
from .uses import numbers_in, use_of
from .warning_lines import show_at_users_line

__all__ = [
    "assigned_name", "assigns", "callee", "delegates", "described", "formats", "frame_up",
    "has_source", "is_heap_type", "is_internal", "is_raised_by", "made_for", "made_since", "method_called",
    "numbers_in", "operates", "outwards", "record_lines", "show_at_users_line", "source_lines", "unknown", "use_of", "wrapping",
]  # fmt: skip

show_at_users_line()
