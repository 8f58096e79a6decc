"""Axes of examples outside of all derivatives: what is differentiated within vmap is taken out of it, and put back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .active import vmaps
from .batch_node import BatchNode
from .values import is_batch


def levels_around() -> list[int]:
    """The levels of the vmaps around, the outermost first."""
    return [level for level, _ in vmaps.get()]


def lifted_to_all(value: Any) -> Any:
    """A value as one that differs between the examples of every vmap around; nothing is copied."""
    for level, count in vmaps.get():
        value = _lifted_to(value, level, count)
    return value


def _lifted_to(value: Any, level: int, count: int) -> Any:
    if is_batch(value) and value.level >= level:
        if value.level == level:
            return value
        return BatchNode.create_using(_beneath(value.values, level, count), value.level, is_array=not value.is_scalar)
    return BatchNode.create_using(np.broadcast_to(value, (count, *np.shape(value))), level)


def _beneath(values: Any, level: int, count: int) -> Any:
    """Values with an axis of their own in front, of which each is to differ."""
    if is_batch(values) and values.level >= level:
        return _lifted_to(values, level, count)
    return BatchNode.create_using(np.broadcast_to(values, (count, *np.shape(values))), level)


def put_back(value: Any, levels: list[int], is_array: bool = False, borrows_values: bool = False) -> Any:
    """A value with the axes of vmaps in front, as each example sees it; if it is lent, it is copied before one writes into it."""
    for level in levels:
        value = BatchNode.create_using(value, level, is_array=is_array)
        value.borrows_values = borrows_values
    return value


def levels_of(value: Any) -> list[int]:
    """The levels of the vmaps that a value is of, the outermost first."""
    levels: list[int] = []
    while is_batch(value):
        levels.insert(0, value.level)
        value = value.values
    return levels


def is_repeated(value: Any, depth: int) -> bool:
    """Whether an array is one for all examples, of which no copies need be made; its axes of examples are so many."""
    if type(value) is not np.ndarray or value.ndim == depth or not all(value.shape[:depth]):
        return False
    return bool(0 in value.strides[:depth] and value[(0,) * depth].flags.c_contiguous)


def taken_out(value: Any, levels: list[int]) -> Any:
    """A value with the axes of vmaps, the outermost first, as axes of its own: what `put_back` undoes."""
    value = lifted_to_all(value)
    for level in reversed(levels):
        if not is_batch(value) or value.level != level:
            raise TypeError("vmap: a value of a vmap that has returned, or of another thread, is used here")
        value = value.values
    return value
