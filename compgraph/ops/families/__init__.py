"""All operations, family by family: one entry per function of NumPy's that a node may meet."""

from __future__ import annotations

from ..spec import OpSpec
from . import elementwise, indexing, linear_algebra, polynomials, queries, reductions, shapes, statistics, transforms
from .undispatched import UNDISPATCHED

OPERATIONS: tuple[OpSpec, ...] = (
    *elementwise.OPERATIONS,
    *reductions.OPERATIONS,
    *shapes.OPERATIONS,
    *indexing.OPERATIONS,
    *linear_algebra.OPERATIONS,
    *transforms.OPERATIONS,
    *polynomials.OPERATIONS,
    *statistics.OPERATIONS,
    *queries.OPERATIONS,
)

__all__ = ["OPERATIONS", "UNDISPATCHED"]
