"""Large nests are cut into pieces, that several threads may do at the same time (a pass).

How a nest is cut hangs on its steps and its shape alone, not on the number of threads, so that results have the same bits with
any number. A nest is cut along an axis that its reductions keep, where that has enough turns. Otherwise each piece gathers a part
of every result in memory of its own, and another nest puts the parts together, in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from .. import mathematics
from ..steps import Buffer, Map, Place, Reduce, dense
from .axes import Loops
from .buffers import needing_memory
from .group import Nest, Pieces, Unit

# Work is measured by what a processor does in about 0.025 nanoseconds: one operation on an element, where vectors are computed.
SLOW, MEMORY = 30, 2  # such operations, for a function of mathematics or a quotient, and for an element that is read or written
LEAST = 8_000_000  # operations of a nest that is cut, in 200 microseconds: a thread that sleeps needs 20 to 60 until it helps
PIECE = 2_000_000  # operations of a piece, of which taking it is a small part
MOST = 256  # pieces of a nest
ENOUGH = 32  # turns of an axis that is cut though others are longer
_SLOW = mathematics.WRITTEN | {"sqrt", "divide", "reciprocal"}


def split(units: Sequence[Unit], outputs: Collection[Place], width: int) -> list[Unit]:
    """The same units, the large nests among them cut.

    Parameters
    ----------
    units : sequence of Nest, Product and Call
        A program, in order.
    outputs : collection of Place
        Its results.
    width : int
        The bytes of a vector.
    """
    kept = needing_memory(units) | {place.buffer for place in outputs}
    found: list[Unit] = []
    for unit in units:
        found.append(unit)
        if isinstance(unit, Nest) and all(map(_is_single, unit.steps)):
            found += _cut(unit, kept, width)
    return found


def _cut(nest: Nest, kept: Collection[Buffer], width: int) -> list[Unit]:
    """Cut a nest, if it is large enough; returns what has to be done after it."""
    loops = Loops(nest, kept, width)
    work = prod(nest.shape) * _work(nest, loops)
    if work < LEAST:
        return []
    wanted = min(max(work // PIECE, 2), MOST)
    turns = [loops.whole(k) // loops.step(k) for k in range(len(loops.axes))]
    count, depth = _chosen(nest, loops, turns, wanted)
    if count < 2:
        return []
    length = -(-turns[depth] // count)
    nest.pieces = Pieces(depth, length * loops.step(depth), -(-turns[depth] // length))
    return _joined(nest, nest.pieces) if loops.axes[depth].is_reduced else []


def _work(nest: Nest, loops: Loops) -> int:
    """The operations for one element."""
    names = [step.operation for step in nest.steps]
    return len(names) + SLOW * sum(name in _SLOW for name in names) + MEMORY * len(loops.places)


def _chosen(nest: Nest, loops: Loops, turns: list[int], wanted: int) -> tuple[int, int]:
    """Into how many pieces a nest is cut, at most as many as are wanted; and which of its loops is."""
    keeping = [k for k, axis in enumerate(loops.axes) if not axis.is_reduced]
    for k in keeping:
        if turns[k] >= min(wanted, ENOUGH):
            return min(turns[k], wanted), k
    choices = [(min(turns[k], wanted), k) for k in keeping]
    if all(map(_lies_dense, nest.steps)):
        results = prod(loops.axes[k].length for k in keeping)
        most = min(wanted, prod(nest.shape) // (results * ENOUGH))  # else the parts would take much memory
        choices += [(min(turns[k], most), k) for k, axis in enumerate(loops.axes) if axis.is_reduced]
    return max(choices, key=lambda choice: choice[0], default=(0, 0))


def _lies_dense(step: Map | Reduce) -> bool:
    """Whether the result of a reduction lies without gaps, as its parts do."""
    if isinstance(step, Map):
        return True
    kept = [k for k in range(len(step.shape)) if k not in step.axes]
    shape, strides = tuple(step.shape[k] for k in kept), tuple(step.out.strides[k] for k in kept)
    return Place(step.out.buffer, step.out.offset, shape, strides).is_dense


def _joined(nest: Nest, pieces: Pieces) -> list[Unit]:
    """Give each reduction memory for its parts; returns the nests that put them together."""
    reductions = [step for step in nest.steps if isinstance(step, Reduce)]
    parts, joining, dividing = [], Nest(()), []
    for step in reductions:
        kept = [k for k in range(len(step.shape)) if k not in step.axes]
        shape = (pieces.count, *(step.shape[k] for k in kept))
        strides = tuple(step.out.strides[k] for k in kept)
        part = dense(step.out.buffer.dtype, shape)
        parts.append(part)
        joining.shape = shape
        name = "add" if step.operation == "mean" else step.operation
        joining.add(Reduce(name, part, frozenset({0}), Place(step.out.buffer, step.out.offset, shape, (0, *strides))))
        if step.operation == "mean":
            out = Place(step.out.buffer, step.out.offset, shape[1:], strides)
            count = prod(step.shape[k] for k in step.axes)
            dividing.append(Map("divide", (out, count), out, out.buffer.dtype, is_write=True))
    nest.pieces = Pieces(pieces.depth, pieces.length, pieces.count, tuple(parts))
    if not dividing:
        return [joining]
    last = Nest(dividing[0].shape)
    for division in dividing:
        last.add(division)
    return [joining, last]


def _is_single(step: Map | Reduce) -> bool:
    """Whether a step writes no element twice, where the order would matter."""
    if isinstance(step, Reduce):
        return True
    reach = 0
    for n, stride in sorted(zip(step.out.shape, map(abs, step.out.strides), strict=True), key=lambda pair: pair[1]):
        if n > 1 and stride <= reach:
            return False
        reach += (n - 1) * stride
    return True
