"""Tracing: contexts in which new values are tracers, and the errors for code that reads a tracer's values."""

from .leak_errors import (
    LOGS,
    OPAQUE_CLASSES,
    LeakError,
    LeakWarning,
    format_locations,
    has_compiled_code,
    is_library,
    leak_message,
    library_folders,
    make_leak_error,
    user_line_of,
    variable_of,
)
from .tracing_contexts import (
    ERROR_RETRACERS,
    RETRACERS,
    RetraceError,
    Strict,
    Tracing,
    after_trace,
    is_after_trace,
    is_compiling,
    is_retraceable,
    is_tracing,
    retracing,
    strict,
    without_tracing,
)

__all__ = [
    "ERROR_RETRACERS", "LOGS", "OPAQUE_CLASSES", "RETRACERS", "LeakError", "LeakWarning", "RetraceError", "Strict", "Tracing",
    "after_trace", "format_locations", "has_compiled_code", "is_after_trace", "is_compiling", "is_library", "is_retraceable",
    "is_tracing", "leak_message", "library_folders", "make_leak_error", "retracing", "strict",
    "user_line_of", "variable_of", "without_tracing",
]  # fmt: skip
