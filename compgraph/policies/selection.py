"""Taking, sorting, moving, padding and joining elements."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy()
