"""Which steps of a loop need the order of its turns, and which can be done for all turns at once, in vectors.

Two steps of a loop depend on each other if they touch the same number and one writes it. Steps that depend on each other in a
circle stay in a loop; the others become steps over one axis more. Any order of these pieces in which each comes after those that
it depends on gives the same numbers (Kennedy and Allen, Optimizing Compilers for Modern Architectures, chapter 2: loop
distribution).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..steps import Counter, Map, Place, Reduce, Step

SMALL = 32  # elements of a step: larger ones fill vectors by themselves
MOST_ROWS, MOST_PAIRS = 400, 20_000  # of a loop; of accesses to one buffer that are compared


class Access(NamedTuple):
    """How a step touches a value, turn for turn.

    Attributes
    ----------
    row : int
        The step.
    start, stop : int
        The numbers of the buffer that it may touch in the first turn.
    by : int
        How far these move with each turn.
    is_written : bool
        Whether it writes them.
    """

    row: int
    start: int
    stop: int
    by: int
    is_written: bool


class Piece(NamedTuple):
    """Steps of a loop that are done together.

    Attributes
    ----------
    rows : list of int
        Which.
    is_vector : bool
        Whether all turns are done at once; then there is one step.
    """

    rows: list[int]
    is_vector: bool


def can_be_distributed(steps: Sequence[Step]) -> bool:
    """Whether it is worth to look for steps that can be done for all turns at once."""
    return len(steps) <= MOST_ROWS and all(isinstance(step, (Map, Reduce)) and prod(step.shape) <= SMALL for step in steps)


def access(row: int, place: Place, further: int, by: int, is_written: bool) -> Access:
    """How a step touches a place that lies so many numbers further, and moves."""
    reach = [stride * (length - 1) for stride, length in zip(place.strides, place.shape, strict=True)]
    low, high = (place.offset + further + sum(end(r, 0) for r in reach) for end in (min, max))
    return Access(row, low, high + 1, by, is_written)


def pieces_of(rows: range, touched: dict[Any, list[Access]], turns: int) -> list[Piece]:
    """The pieces of a loop, in order, by who touches which buffer."""
    follows: dict[int, set[int]] = defaultdict(set)
    for accesses in touched.values():
        if len(accesses) ** 2 > MOST_PAIRS:
            return [Piece(list(rows), is_vector=False)]
        for a in accesses:
            for b in accesses:
                if a.is_written or b.is_written:
                    for first, then in _orders(a, b, turns):
                        follows[first].add(then)
    return _ordered(rows, follows)


def _orders(a: Access, b: Access, turns: int) -> Iterable[tuple[int, int]]:
    """Which of two steps must come first for numbers that both touch; ``b`` touches them some turns after ``a``."""
    least, most = _distances(a, b, turns)
    if least <= most:
        if most > 0:
            yield a.row, b.row
        if least <= 0 <= most and a.row < b.row:
            yield a.row, b.row


def _distances(a: Access, b: Access, turns: int) -> tuple[int, int]:
    """How many turns later, at least and at most, `b` may touch what `a` touches; if it never does, the least is above."""
    if a.by != b.by:
        return 1 - turns, turns - 1
    if not a.by:
        return (1 - turns, turns - 1) if a.start < b.stop and b.start < a.stop else (1, 0)
    # b.start + by d < a.stop  and  a.start < b.stop + by d
    low, high = a.start - b.stop + 1, a.stop - b.start - 1
    ends = (low, high) if a.by > 0 else (-high, -low)
    least, most = -(-ends[0] // abs(a.by)), ends[1] // abs(a.by)
    return max(least, 1 - turns), min(most, turns - 1)


def _ordered(rows: range, follows: dict[int, set[int]]) -> list[Piece]:
    """Pieces in an order in which each comes after those that it depends on; neighbours that need loops share one."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = [(first - rows.start, then - rows.start) for first in follows for then in follows[first]]
    if not pairs:
        return [Piece([row], is_vector=True) for row in rows]
    first, then = np.array(pairs).T
    graph = csr_array((np.ones(len(first), np.int8), (first, then)), shape=(len(rows), len(rows)))
    count, circle = connected_components(graph, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for row, number in zip(rows, circle.tolist(), strict=True):
        members[number].append(row)
    is_vector = [len(m) == 1 and m[0] not in follows[m[0]] for m in members]
    before: list[set[int]] = [set() for _ in range(count)]
    for a, b in zip(circle[first].tolist(), circle[then].tolist(), strict=True):
        if a != b:
            before[b].add(a)
    pieces: list[Piece] = []
    left = set(range(count))
    while left:
        ready = [number for number in left if before[number].isdisjoint(left)]
        last = pieces[-1].is_vector if pieces else None
        chosen = min(ready, key=lambda number: (is_vector[number] != last, members[number][0]))
        left.remove(chosen)
        if last is False and not is_vector[chosen]:
            pieces[-1].rows.extend(members[chosen])
        else:
            pieces.append(Piece(members[chosen], is_vector[chosen]))
    return [Piece(sorted(piece.rows), piece.is_vector) for piece in pieces]


def for_all_turns(step: Step, counter: Counter) -> Step:
    """A step of a loop for all its turns: one axis more, in front."""
    if isinstance(step, Map):
        operands = tuple([_spread(o, counter) if isinstance(o, Place) else o for o in step.operands])
        return Map(step.operation, operands, _spread(step.out, counter), step.computed_in, step.is_write)
    assert isinstance(step, Reduce)
    axes = frozenset(axis + 1 for axis in step.axes)
    return Reduce(step.operation, _spread(step.operand, counter), axes, _spread(step.out, counter))


def _spread(place: Place, counter: Counter) -> Place:
    moves = dict(place.moves)
    stride = moves.pop(counter, 0)
    shape, strides = (counter.length, *place.shape), (stride, *place.strides)
    return Place(place.buffer, place.offset, shape, strides, tuple(moves.items()))
