"""Tracing: within operators values are tracers, and code that takes their numbers unseen is refused."""

from .contexts import Strict, Tracing, is_compiling, is_tracing, strict, without_tracing
from .messages import format_places, has_compiled_code, is_library, leak_message, variable_of
from .refusals import LOGS, OPAQUE_CLASSES, LeakError, leak_error, user_line_of

__all__ = [
    "LOGS", "OPAQUE_CLASSES", "LeakError", "Strict", "Tracing", "format_places", "has_compiled_code", "is_compiling",
    "is_library", "is_tracing", "leak_error", "leak_message", "strict", "user_line_of", "variable_of", "without_tracing",
]  # fmt: skip
