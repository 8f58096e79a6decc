"""Hollow nodes: while a function is differentiated a node's own memory holds no numbers, so that none are taken unseen."""

from . import copies
from .bodies import (
    OF_SCALARS,
    Hollowing,
    Strict,
    address_of,
    bodies,
    body_of,
    hollow_body,
    is_traced,
    refusing_body,
    solidly,
    strict,
)
from .messages import COPY, OBJECT, is_library
from .refusals import LOGS, REFUSAL, EscapeError, raised_at, refused

__all__ = [
    "COPY", "LOGS", "OBJECT", "OF_SCALARS", "REFUSAL", "EscapeError", "Hollowing", "Strict", "address_of", "bodies", "body_of",
    "copies", "hollow_body", "is_library", "is_traced", "raised_at", "refused", "refusing_body", "solidly", "strict",
]  # fmt: skip
