"""The one place that looks at Python's interpreter: the user's line, and what the instruction at work does."""

from . import instructions, source_lines
from .instructions import block_entered
from .source_lines import described, is_internal, made_since, record_lines, wrapping

__all__ = ["block_entered", "described", "instructions", "is_internal", "made_since", "record_lines", "source_lines", "wrapping"]
