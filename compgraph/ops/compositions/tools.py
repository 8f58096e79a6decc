"""Helpers of compositions. Nodes are recognized by the attribute `opname`, because the package of nodes imports this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_node(value: NDArray[Any]) -> bool:
    """Whether a value is a node."""
    return hasattr(type(value), "opname")


def to_plain(value: Any) -> Any:
    """The value of a node as a plain array, for decisions in Python."""
    if is_node(value) and value.trace_kind == "batch":
        value.item()  # raises for a batched value, with advice
    return np.asarray(value.raw_value if is_node(value) else value)


def ensure_array(value: NDArray[Any]) -> Any:
    """Convert a value by ``np.asanyarray``; return a node unchanged, because NumPy's C code may reject it."""
    return value if is_node(value) else np.asanyarray(value)


def record_call(function: Callable[..., Any], *operands: object, **options: object) -> Any:
    """Record the call of a function of this package by a node's ``__array_function__``; without a node, call it."""
    node = next((x for x in (*operands, *leaves([*options.values()])) if is_node(x)), None)
    if node is None:
        return function(*operands, **options)
    return node.__array_function__(function, (type(node),), operands, options)


def leaves(value: object) -> list[Any]:
    """The values in nested lists and tuples, in order."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def stack_sequence(value: object) -> Any:
    """A sequence with nodes in it as one array."""
    return np.stack([stack_sequence(part) for part in value]) if isinstance(value, (list, tuple)) else value


def as_array(value: Any) -> Any:
    """Convert a value to an array, nested sequences with nodes to one node; return a node unchanged."""
    if is_node(value):
        return value
    return stack_sequence(value) if any(map(is_node, leaves(value))) else np.asarray(value)
