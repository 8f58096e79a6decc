"""Adjoints that wait to be put together until their node is reached.

The adjoint of ``x`` from ``x[i]`` is zero but for a few places. Adding up whole arrays would make a loop over the
elements of ``x`` quadratic in its length; a `Scatter` keeps the pieces, and fills one array when all are there.
`Parts` does the same for an operation with several outputs.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.ops import getitem
from compgraph.values import Value


class Scatter:
    """Pieces of an adjoint, each with the index it belongs to."""

    __slots__ = ("dense", "indices", "pieces")
    __array_ufunc__ = None  # an array to the left of + leaves the addition to us

    def __init__(self, piece: Any, index: tuple[Any, ...]) -> None:
        self.pieces, self.indices = [piece], [index]
        self.dense: Any = None

    def take(self, piece: Any, index: tuple[Any, ...]) -> None:
        """Add one more piece."""
        self.pieces.append(piece)
        self.indices.append(index)

    def __add__(self, other: Any) -> Scatter:
        if type(other) is Scatter:
            self.pieces += other.pieces
            self.indices += other.indices
            other = other.dense
        if other is not None:
            self.dense = other if self.dense is None else self.dense + other
        return self

    __radd__ = __add__

    def settle(self, node: Any) -> Any:
        """The whole adjoint of `node`."""
        kinds = {*map(type, self.pieces), *map(type, chain.from_iterable(self.indices))}
        if any(issubclass(kind, Value) for kind in kinds):
            flat = [part for piece, index in zip(self.pieces, self.indices, strict=True) for part in (piece, *index)]
            scattered = bind(scatter, (node, *flat), {"layout": tuple(map(len, self.indices))})
        else:
            scattered = _zeros(node.raw_value)
            self.add_to(scattered)
        return scattered if self.dense is None else scattered + self.dense

    def add_to(self, total: Any) -> None:
        """Add the pieces to an array, in place."""
        places = [*chain.from_iterable(self.indices)]
        if len(places) > 8 and set(map(type, places)) == {int} and set(map(len, self.indices)) == {1}:  # a loop over rows
            np.add.at(total, places, self.pieces)
            return
        for piece, index in zip(self.pieces, self.indices, strict=True):
            _put(total, piece, index)


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
    total = _zeros(like)
    start = 0
    for count in layout:
        _put(total, flat[start], flat[start + 1 : start + 1 + count])
        start += 1 + count
    return total


def fetched(g: Any, out: Any, x: Any, *index: Any) -> Scatter:
    """The formula of ``x[index]``. Where `x` has a `Scatter` already, a sweep does not call it: that one takes the piece."""
    return Scatter(g, index)


def fetched_at(x: Any, *index: Any) -> Any:
    """``x[index]``, recorded also where only a part of the index is a node."""
    return bind(getitem, (x, *index))


def _zeros(like: Any) -> Any:
    return np.zeros(like.shape, like.dtype)


def _put(total: Any, piece: Any, index: tuple[Any, ...]) -> None:
    """Add a piece at an index; at places that the index names several times, as often."""
    place = index[0] if len(index) == 1 else index
    if type(place) in _BASIC or (type(place) is tuple and _BASIC.issuperset(map(type, place))):
        total[place] += piece
    else:
        np.add.at(total, place, piece)


_BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.intp})
ops.enter(scatter, "scatter")
ops.INDEXED.add(scatter)


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
        return tuple(self.found.get(k) for k in range(len(joint.raw_value)))


DEFERRED: frozenset[Any] = frozenset({Scatter, Parts})
PLAIN = frozenset({np.ndarray, *[np.dtype(code).type for code in "efdgFDG"]})  # the adjoints of a sweep that records nothing


def added(earlier: Any, contribution: Any, adjoint: Any, key: int, sums: set[int]) -> Any:
    """The sum of two contributions to an operand, in place where one is an array of the sweep's own.

    `adjoint` is the argument of the formula, if one was called; `key` is the id of the operand, and `sums` has the ids of
    operands whose adjoints are sums allocated here. A formula of plain arrays returns a new array, its adjoint, or a view.
    """
    if type(earlier) is np.ndarray and type(contribution) is np.ndarray and earlier.size > 1:  # one element takes longer in place
        if contribution.base is None and contribution is not adjoint and type(adjoint) in PLAIN:
            contribution += earlier
            return contribution
        if key in sums:
            earlier += contribution
            return earlier
        sums.add(key)
    return earlier + contribution
