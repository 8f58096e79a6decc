"""What is behind values that differ between examples: the axes of all vmaps around, in front of those of one example."""

from __future__ import annotations

from typing import Any

from compgraph.graph import Node


def is_batch(value: Any) -> bool:
    """Whether a value differs between the examples of a vmap."""
    return isinstance(value, Node) and value.carries == "batch"


def base_of(value: Any) -> Any:
    """A value with the axes of all vmaps in front, an array or node like others."""
    while is_batch(value):
        value = value.values
    return value


def plain_base(value: Any) -> Any:
    """The plain array behind a value."""
    value = base_of(value)
    return value.plain if isinstance(value, Node) else value


def depth_of(value: Any) -> int:
    """How many vmaps a value is a BatchNode of."""
    depth = 0
    while is_batch(value):
        value, depth = value.values, depth + 1
    return depth
