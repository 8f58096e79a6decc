"""All operations by family: one entry per NumPy function that may be called with a node."""

from __future__ import annotations

from ..spec import OpSpec
from . import array_manipulation, elementwise, linear_algebra_and_transforms, reductions, unrecorded
from .unrecorded import UNDISPATCHED

OPERATIONS: tuple[OpSpec, ...] = (
    *elementwise.OPERATIONS,
    *reductions.OPERATIONS,
    *array_manipulation.OPERATIONS,
    *linear_algebra_and_transforms.OPERATIONS,
    *unrecorded.OPERATIONS,
)

__all__ = ["OPERATIONS", "UNDISPATCHED"]
