"""Tracing: within operators values are tracers, and code that takes their numbers unseen is refused."""

from .contexts import Strict, Tracing, concretely, is_compiling, is_tracing, strict
from .messages import has_compiled_code, is_library, message, places_of, variable_of
from .refusals import LOGS, OPAQUE_CLASSES, EscapeError, raised_at, refused

__all__ = [
    "LOGS", "OPAQUE_CLASSES", "EscapeError", "Strict", "Tracing", "concretely", "has_compiled_code", "is_compiling", "is_library",
    "is_tracing", "message", "places_of", "raised_at", "refused", "strict", "variable_of",
]  # fmt: skip
