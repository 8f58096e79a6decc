"""A batch of adjoints, or of tangents, through one operation."""

from .batched import (
    batch_like,
    by_parts,
    found_at,
    padded,
    pull_reduction,
    push_reduction,
    put_at,
    reduced_axes,
    zeros_like_batch,
)
from .propagate import propagate
from .tracing import as_seen, pull_batch, push_batch, pushed_on

__all__ = [
    "as_seen", "batch_like", "by_parts", "found_at", "padded", "propagate", "pull_batch", "pull_reduction", "push_batch",
    "push_reduction", "pushed_on", "put_at", "reduced_axes", "zeros_like_batch",
]  # fmt: skip
