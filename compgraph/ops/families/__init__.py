"""The operations of NumPy, by family: one `OpSpec` per function that nodes support."""

from __future__ import annotations

from ..spec import OpSpec
from . import elementwise, indexing, linear_algebra, queries, reductions, shapes, transforms
from .queries import UNDISPATCHED

OPERATIONS: tuple[OpSpec, ...] = (
    *elementwise.OPERATIONS,
    *reductions.OPERATIONS,
    *shapes.OPERATIONS,
    *indexing.OPERATIONS,
    *linear_algebra.OPERATIONS,
    *transforms.OPERATIONS,
    *queries.OPERATIONS,
)

__all__ = ["OPERATIONS", "UNDISPATCHED"]
