"""Products and decompositions of matrices."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy()
