"""All operations by family: one entry per NumPy function that may be called with a node."""

from __future__ import annotations

from ..spec import OpSpec
from . import elementwise, indexing, linear_algebra, reductions, shapes, transforms, unrecorded
from .unrecorded import UNDISPATCHED

OPERATIONS: tuple[OpSpec, ...] = (
    *elementwise.OPERATIONS,
    *reductions.OPERATIONS,
    *shapes.OPERATIONS,
    *indexing.OPERATIONS,
    *linear_algebra.OPERATIONS,
    *transforms.OPERATIONS,
    *unrecorded.OPERATIONS,
)

__all__ = ["OPERATIONS", "UNDISPATCHED"]
