"""Adjoints that wait to be put together until their node is reached.

The adjoint of ``x`` from ``x[i]`` is zero but for a few places. Adding up whole arrays would make a loop over the
elements of ``x`` quadratic in its length; a `Scatter` keeps the pieces, and fills one array when all are there.
`Parts` does the same for an operation with several outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph import operations
from compgraph.nodes import Node, record


class Scatter:
    """Pieces of an adjoint, each with the index it belongs to."""

    __slots__ = ("dense", "indices", "pieces")
    __array_ufunc__ = None  # an array to the left of + leaves the addition to us

    def __init__(self, piece: Any, index: tuple[Any, ...]) -> None:
        self.pieces = [piece]
        self.indices = [index]
        self.dense: Any = None

    def __add__(self, other: Any) -> Scatter:
        if isinstance(other, Scatter):
            self.pieces += other.pieces
            self.indices += other.indices
            other = other.dense
        if other is not None:
            self.dense = other if self.dense is None else self.dense + other
        return self

    __radd__ = __add__

    def settle(self, node: Any) -> Any:
        """The whole adjoint of `node`."""
        flat: list[Any] = []
        for piece, index in zip(self.pieces, self.indices, strict=True):
            flat += (piece, *index)
        like = node if any(isinstance(piece, Node) for piece in flat) else node.plain
        scattered = record(scatter, (like, *flat), {"layout": tuple(map(len, self.indices))})
        return scattered if self.dense is None else scattered + self.dense


def scatter(like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """Zeros of the shape of `like` with pieces added at indices: what undoes ``like[index]``.

    Parameters
    ----------
    like : array
        Gives shape and dtype.
    *flat
        For each piece: the piece, then the parts of its index.
    layout : tuple of int
        For each piece, the number of parts of its index.
    """
    total = np.zeros(np.shape(like), dtype=like.dtype)
    start = 0
    for count in layout:
        piece, *parts = flat[start : start + 1 + count]
        index = parts[0] if count == 1 else tuple(parts)
        if all(part.__class__ in _BASIC for part in (index if isinstance(index, tuple) else (index,))):
            total[index] += piece
        else:
            np.add.at(total, index, piece)
        start += 1 + count
    return total


_BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.intp})
operations.enter(scatter, "scatter")
operations.INDEXED.add(scatter)


class Parts:
    """The adjoints of the outputs of one operation that have arrived."""

    __slots__ = ("found",)

    def __init__(self, found: dict[int, Any]) -> None:
        self.found = found

    def __add__(self, other: Parts) -> Parts:
        for index, adjoint in other.found.items():
            earlier = self.found.get(index)
            self.found[index] = adjoint if earlier is None else earlier + adjoint
        return self

    def settle(self, joint: Any) -> tuple[Any, ...]:
        """The adjoints of all outputs, in order, None for those that did not arrive."""
        return tuple(self.found.get(k) for k in range(len(joint.plain)))


DEFERRED: frozenset[Any] = frozenset({Scatter, Parts})
