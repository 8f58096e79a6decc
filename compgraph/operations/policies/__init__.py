"""Data: what is done with each NumPy function, family by family. `operations` gathers it."""

from __future__ import annotations

from . import linear_algebra, rest, selection, statistics, transforms
from .policy import Policy

FAMILIES: tuple[Policy, ...] = (statistics.POLICY, selection.POLICY, linear_algebra.POLICY, transforms.POLICY, rest.POLICY)

__all__ = ["FAMILIES", "Policy"]
