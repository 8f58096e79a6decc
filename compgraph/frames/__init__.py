"""The one place that looks at Python's interpreter: the user's line, and what the instruction at work in a frame does.

A conversion such as ``__float__`` is not told who asks. Two questions about the calling frame decide whether the number is given:
does it assign (``plain[0] = x``), and which callable does it call (``float(x)``, ``math.sin(x)``)? Tests hold the answers on
every Python.
"""

from . import source_lines
from .assignments import assigned_name
from .callees import callee, method_called, unknown
from .classes import is_heap_type
from .instructions import assigns, catches, delegates, formats, is_raised_by, operates
from .source_lines import described, frame_up, is_internal, made_for, made_since, outwards, record_lines, wrapping
from .uses import numbers_in, use_of
from .warning_lines import show_at_users_line

__all__ = [
    "assigned_name", "assigns", "callee", "catches", "delegates", "described", "formats", "frame_up",
    "is_heap_type", "is_internal", "is_raised_by", "made_for", "made_since", "method_called",
    "numbers_in", "operates", "outwards", "record_lines", "show_at_users_line", "source_lines", "unknown", "use_of", "wrapping",
]  # fmt: skip

show_at_users_line()
