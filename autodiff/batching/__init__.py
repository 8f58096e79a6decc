"""Many at once: a batch of adjoints, or of tangents, through one operation; and code for one example on many (`vmap`)."""

from .active import next_level, only_around, outside
from .batch_node import BatchNode
from .batched import (
    batch_like,
    by_parts,
    found_at,
    padded,
    pull_reduction,
    push_reduction,
    put_at,
    reduced_axes,
)
from .directions import as_seen, pull_batch, pull_several, push_batch, pushed_on
from .lifting import is_repeated, levels_around, levels_of, lifted_to_all, put_back, taken_out
from .looping import any_differs, each_example
from .propagate import propagate
from .stepping import SteppedOut
from .values import base_of, is_batch
from .vmap import vmap

__all__ = [
    "BatchNode",
    "SteppedOut",
    "any_differs",
    "as_seen",
    "base_of",
    "batch_like",
    "by_parts",
    "each_example",
    "found_at",
    "is_batch",
    "is_repeated",
    "levels_around",
    "levels_of",
    "lifted_to_all",
    "next_level",
    "only_around",
    "outside",
    "padded",
    "propagate",
    "pull_batch",
    "pull_reduction",
    "pull_several",
    "push_batch",
    "push_reduction",
    "pushed_on",
    "put_at",
    "put_back",
    "reduced_axes",
    "taken_out",
    "vmap",
]  # fmt: skip
