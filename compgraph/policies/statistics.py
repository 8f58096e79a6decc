"""Sums and products that accumulate, statistics, differences, interpolation."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy()
