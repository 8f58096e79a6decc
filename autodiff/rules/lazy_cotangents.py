"""Lazy cotangents, materialized when the sweep reaches their node.

The cotangent of ``x`` from ``x[i]`` is zero except at a few elements. Adding dense arrays would make a loop over the elements
of ``x`` quadratic in its length. A `ScatteredCotangent` collects the updates instead and fills one array at the end.
`OutputCotangents` collects the cotangents of the outputs of a multi-output operation.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.ops import getitem
from compgraph.values import Value


class ScatteredCotangent:
    """A sum of updates to an array of zeros, each with its index.

    Attributes
    ----------
    updates : list
        The values to add.
    indices : list of tuple
        For each update, its index.
    dense : array, Node or None
        The sum of the contributions that are whole arrays.
    """

    __slots__ = ("dense", "indices", "updates")
    __array_ufunc__ = None  # array + self calls __radd__ below

    def __init__(self, update: Any, index: tuple[Any, ...]) -> None:
        self.updates, self.indices = [update], [index]
        self.dense: Any = None

    def append(self, update: object, index: tuple[Any, ...]) -> None:
        """Append one update."""
        self.updates.append(update)
        self.indices.append(index)

    def __add__(self, other: object) -> ScatteredCotangent:
        if type(other) is ScatteredCotangent:
            self.updates += other.updates
            self.indices += other.indices
            other = other.dense
        if other is not None:
            self.dense = other if self.dense is None else self.dense + other
        return self

    __radd__ = __add__

    def materialize(self, node: Any) -> Any:
        """Return the dense cotangent of `node`."""
        types = {*map(type, self.updates), *map(type, chain.from_iterable(self.indices))}
        if any(issubclass(t, Value) for t in types):
            flat = [part for update, index in zip(self.updates, self.indices, strict=True) for part in (update, *index)]
            scattered = bind(scatter, (node, *flat), {"index_counts": tuple(map(len, self.indices))})
        else:
            scattered = _zeros(node.raw_value)
            self.add_to(scattered)
        return scattered if self.dense is None else scattered + self.dense

    def add_to(self, total: Any) -> None:
        """Add the updates to an array in place."""
        index_parts = [*chain.from_iterable(self.indices)]
        if len(index_parts) > 8 and set(map(type, index_parts)) == {int} and set(map(len, self.indices)) == {1}:
            np.add.at(total, index_parts, self.updates)  # as after a loop over the rows
            return
        for update, index in zip(self.updates, self.indices, strict=True):
            _add_at(total, update, index)


def scatter(like: NDArray[Any], *updates: Any, index_counts: tuple[int, ...]) -> Any:
    """Add updates at indices to zeros of the shape of `like`: the transpose of ``like[index]``.

    Parameters
    ----------
    like : array
        Determines shape and dtype.
    *updates
        For each update: its values, then the parts of its index.
    index_counts : tuple of int
        For each update, the number of parts of its index.
    """
    total = _zeros(like)
    start = 0
    for count in index_counts:
        _add_at(total, updates[start], updates[start + 1 : start + 1 + count])
        start += 1 + count
    return total


def scatter_lazily(g: object, out: object, x: object, *index: object) -> ScatteredCotangent:
    """Return the cotangent of ``x`` from ``x[index]``: the formula of getitem.

    If the cotangent of `x` is a `ScatteredCotangent` already, a sweep appends to it instead of calling this function.
    """
    return ScatteredCotangent(g, index)


def record_getitem(x: object, *index: object) -> Any:
    """Compute ``x[index]``. The operation is also recorded if only a part of the index is a node."""
    return bind(getitem, (x, *index))


def _zeros(like: NDArray[Any]) -> Any:
    return np.zeros(like.shape, like.dtype)


def _add_at(total: NDArray[Any], update: Any, index: tuple[Any, ...]) -> None:
    """Add an update at an index, repeatedly for repeated indices."""
    key = index[0] if len(index) == 1 else index
    if type(key) in _BASIC_INDEX_TYPES or (type(key) is tuple and _BASIC_INDEX_TYPES.issuperset(map(type, key))):
        total[key] += update
    else:
        np.add.at(total, key, update)


_BASIC_INDEX_TYPES = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.intp})
ops.register_operation(scatter, "scatter")
ops.INDEXING_FUNCTIONS.add(scatter)


class OutputCotangents:
    """The cotangents of the outputs of a multi-output operation, by output position."""

    __slots__ = ("cotangents",)

    def __init__(self, cotangents: dict[int, Any]) -> None:
        self.cotangents = cotangents

    def __add__(self, other: OutputCotangents) -> OutputCotangents:
        for index, cotangent in other.cotangents.items():
            accumulated = self.cotangents.get(index)
            self.cotangents[index] = cotangent if accumulated is None else accumulated + cotangent
        return self

    def materialize(self, operation: Any) -> tuple[Any, ...]:
        """Return the cotangents of all outputs of a multi-output operation in order, None for zero."""
        return tuple(self.cotangents.get(k) for k in range(len(operation.raw_value)))


LAZY_COTANGENTS: frozenset[Any] = frozenset({ScatteredCotangent, OutputCotangents})
# The types of cotangents in a sweep that is not recorded.
PLAIN_TYPES = frozenset({np.ndarray, *[np.dtype(code).type for code in "efdgFDG"]})


def as_view(contribution: object) -> Any:
    """Return a view of a contribution from a user's function, which may keep the array; sweeps never write into views."""
    return contribution.view() if type(contribution) is np.ndarray else contribution


def add_contribution(accumulated: object, contribution: Any, cotangent: object, key: int, owned_ids: set[int]) -> Any:
    """Return the sum of two contributions to an operand, computed in place if the sweep owns one of the arrays.

    Parameters
    ----------
    accumulated : array, Node or lazy cotangent
        The sum of the contributions so far.
    contribution : array, Node or lazy cotangent
        The next one. A formula of plain arrays returns a new array, its cotangent, or a view.
    cotangent : array, Node or None
        The cotangent that the formula received, if one was called.
    key : int
        The id of the operand.
    owned_ids : set of int
        The ids of operands whose cotangents are sums that were allocated here.
    """
    # In-place addition is slower for one element.
    if type(accumulated) is np.ndarray and type(contribution) is np.ndarray and accumulated.size > 1:
        if contribution.base is None and contribution is not cotangent and type(cotangent) in PLAIN_TYPES:
            contribution += accumulated
            return contribution
        if key in owned_ids:
            accumulated += contribution
            return accumulated
        owned_ids.add(key)
    return accumulated + contribution
