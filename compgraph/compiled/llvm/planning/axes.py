"""The loops of a nest: in which order its axes are passed through, which are one loop, and along which vectors lie.

The axes are put in the order in which memory is passed through, those that lie behind each other as one. Vectors lie along the
axis where most values follow each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .. import mathematics
from ..steps import Buffer, Map, Place, Reduce
from .group import Nest

NEAR = 4  # elements of which each second, third or fourth is read are loaded all
SLOW = 10  # instructions of a function of mathematics
PAIR = 1.3  # how long two vectors at a time take, in the time of one


@dataclass
class Axis:
    """One loop, or several axes of an array as one.

    Attributes
    ----------
    length : int
        Its turns.
    numbers : tuple of int
        Which axes of the nest it is, the outermost first.
    is_reduced : bool
        Whether the reductions of the nest go along it.
    """

    length: int
    numbers: tuple[int, ...]
    is_reduced: bool

    def stride(self, place: Place) -> int:
        """By how many elements a place is passed through with each turn."""
        return place.strides[self.numbers[-1]]


class Loops:
    """The loops of a nest.

    Parameters
    ----------
    nest : Nest
        What is computed.
    kept : collection of Buffer
        Those whose values go to memory.
    width : int
        The bytes of a vector.

    Attributes
    ----------
    axes : list of Axis
        The outermost first.
    lanes : int
        How many elements a vector has.
    vector : int or None
        Along which of `axes` vectors lie; None if no axis is long enough.
    places : list of Place
        All that are read from, or written to, memory.
    """

    def __init__(self, nest: Nest, kept: Collection[Buffer], width: int) -> None:
        self.places = list(_places(nest, kept))
        self.axes = _merged(nest, self.places)
        sizes = [p.buffer.dtype.itemsize for p in self.places] or [8]
        self.lanes = max(width // max(sizes), 1)
        self.vector = self._vector_axis(nest)
        if self.vector is not None:  # innermost among its like
            axis = self.axes[self.vector]
            rest = [a for a in self.axes if a is not axis]
            last = len(rest) if axis.is_reduced else sum(not a.is_reduced for a in rest)
            self.axes = [*rest[:last], axis, *rest[last:]]
            self.vector = last
            if max(sizes) == 8 and self._gains_by_two(nest, axis.length):
                self.lanes *= 2

    def whole(self, depth: int) -> int:
        """How many turns of a loop are done in vectors; all where no vectors lie along it."""
        length = self.axes[depth].length
        return length - length % self.lanes if depth == self.vector else length

    def step(self, depth: int) -> int:
        """By how many turns a loop goes on at once."""
        return self.lanes if depth == self.vector else 1

    def _vector_axis(self, nest: Nest) -> int | None:
        """Along which axis vectors lie: that which takes least time; None if none takes less than elements one by one."""
        work = sum(SLOW if step.operation in mathematics.WRITTEN else 1 for step in nest.steps)
        results = {step.out for step in nest.steps}
        alone = work + len(self.places)
        best, least = None, float(alone)
        for k, axis in enumerate(self.axes):
            if axis.length < self.lanes or self.lanes == 1:
                continue
            vector = work + sum(self._moving(axis.stride(place), place in results) for place in self.places)
            turns, rest = divmod(axis.length, self.lanes)
            across = 2 * self.lanes if axis.is_reduced else 0  # to put the lanes together
            time = (turns * vector + rest * alone + across) / axis.length
            if time < least:
                best, least = k, time
        return best

    def _gains_by_two(self, nest: Nest, length: int) -> bool:
        """Whether two vectors at a time take less time: functions of mathematics wait for what they compute themselves."""
        if not any(
            step.operation in mathematics.WRITTEN and step.computed_in.itemsize == 8
            for step in nest.steps
            if isinstance(step, Map)
        ):
            return False
        one, two = divmod(length, self.lanes), divmod(length, 2 * self.lanes)
        return two[0] * PAIR + two[1] < sum(one)

    def _moving(self, stride: int, is_result: bool) -> float:
        """How long a vector of elements that lie so takes to load or store, in loads."""
        if stride in (0, 1):
            return 0.5 + 0.5 * stride
        if stride == -1 or (abs(stride) <= NEAR and not is_result):
            return 1.0 + abs(stride)
        return 2.0 * self.lanes


def _places(nest: Nest, kept: Collection[Buffer]) -> Iterator[Place]:
    there: set[Place] = set()
    for step in nest.steps:
        for operand in step.operands:
            if isinstance(operand, Place) and operand not in there:
                yield operand
                there.add(operand)
        if isinstance(step, Reduce) or step.out.buffer in kept:
            yield step.out
        there.add(step.out)


def _merged(nest: Nest, places: list[Place]) -> list[Axis]:
    """The axes of a nest, those that go outermost first; of several that can be passed through as one, one."""
    gone = nest.axes or frozenset()
    order = [k for k in range(len(nest.shape)) if nest.shape[k] != 1]
    order = sorted(order, key=lambda k: (k in gone, -_mean_stride(places, k)))
    axes: list[Axis] = []
    for k in order:
        last = axes[-1] if axes else None
        if (
            last is not None
            and last.is_reduced == (k in gone)
            and all(p.strides[last.numbers[-1]] == p.strides[k] * nest.shape[k] for p in places)
        ):
            axes[-1] = Axis(last.length * nest.shape[k], (*last.numbers, k), last.is_reduced)
        else:
            axes.append(Axis(nest.shape[k], (k,), k in gone))
    return axes


def _mean_stride(places: list[Place], axis: int) -> float:
    return sum(abs(p.strides[axis]) for p in places)
