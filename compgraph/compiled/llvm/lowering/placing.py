"""Where the values of a graph lie, as the steps of a program are found one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....storage import owner_of
from ....values import ConstantNode, Value
from .. import elementwise
from ..steps import Buffer, Map, Place, Step, dense

SMALL = 2048  # bytes of arrays that are looked at for equal ones


def fits(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a place, or a number, becomes one of a dtype as by NumPy; of floating numbers as integers, only code tells."""
    if isinstance(value, Place):
        return True
    if type(value) is int and dtype.kind in "iu":  # a comparison with one out of range is exact, and does not wrap around
        return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
    kind = np.asarray(value).dtype.kind
    return kind in "biu" or (kind == "f" and dtype.kind in "bf")


class Placing:
    """Steps so far, and the places of their results.

    Parameters
    ----------
    inputs : iterable of Node
        What is given from outside.
    is_exact : bool
        Whether only operations are compiled that have NumPy's bits.

    Attributes
    ----------
    steps : list of Step
        What is done, in order.
    places : dict
        For each node that is an array of numbers, where it lies.
    given : dict
        For each input that is needed, where it lies.
    """

    def __init__(self, inputs: Iterable[Any], is_exact: bool = False) -> None:
        self.is_exact = is_exact
        self.steps: list[Step] = []
        self.places: dict[Any, Place] = {}
        self.given: dict[Any, Place] = {}
        self._given = frozenset(inputs)
        self._arrays: dict[int, Place] = {}
        self._constants: dict[Any, Place] = {}
        self._kept: list[Any] = []  # so that their ids stay theirs
        self._works: dict[Any, Place] = {}

    def outside(self, array: Any, item: Any = None) -> Place:
        """Where an array that is there already lies: an input, a constant, or a variable, which is read when the program runs."""
        if any(s % array.itemsize for s in array.strides):
            raise NotImplementedError("an array lies at addresses that are no multiples of its numbers' size")
        if id(array) not in self._arrays or item in self._given:
            strides = tuple(s // array.itemsize for s in array.strides)
            buffer = Buffer(array.dtype, array.size, item if item in self._given else array, is_given=True)
            self._arrays[id(array)] = Place(buffer, 0, array.shape, strides)
            self._kept.append(array)
        return self._arrays[id(array)]

    def place(self, operand: Any) -> Place | None:
        """Where an operand lies; None if it is no array of numbers that are compiled."""
        place = self.places.get(operand) if isinstance(operand, Value) else None
        if isinstance(operand, np.ndarray) and not isinstance(operand, Value):
            place = self.constant(operand)
        return None if place is None or not elementwise.is_known(place.buffer.dtype) else place

    def constant(self, array: Any) -> Place:
        """Where an array that belongs to the graph lies; small ones that are equal are one."""
        if array.nbytes > SMALL:
            return self.outside(array)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.outside(array)
        return self._constants[key]

    def operand(self, operand: Any) -> Any:
        """Where an operand lies, or the number that it is in all its elements; None if neither is known."""
        if not isinstance(operand, np.ndarray):
            return operand if isinstance(operand, (bool, int, float, np.generic)) else None
        place = self.place(operand)
        if place is None or not self._is_fixed(operand) or not place.buffer.size:
            return place
        if any(stride and length > 1 for stride, length in zip(place.strides, place.shape, strict=True)):
            return place
        return np.asarray(place.buffer.node)[(0,) * len(place.shape)]

    def _is_fixed(self, operand: Any) -> bool:
        is_constant = isinstance(operand, ConstantNode) and operand not in self._given and not operand.memory
        return is_constant or not isinstance(operand, Value)

    def is_mutable(self, place: Place) -> bool:
        """Whether a place lies in an array that is written into."""
        return isinstance(place.buffer.node, Value) and bool(place.buffer.node.memory)

    @staticmethod
    def is_shared(item: Any) -> bool:
        """Whether a result lies in memory of an operand."""
        if not isinstance(item.raw_value, np.ndarray):
            return False
        owner = owner_of(item.raw_value)
        return any(
            isinstance(a.raw_value, np.ndarray) and owner_of(a.raw_value) is owner for a in item.args if isinstance(a, Value)
        )

    def map(self, name: str, operands: Sequence[Any], out: Place, computed: Any = None, is_write: bool = False) -> None:
        """Append a `Map`; operands are converted to the dtype `computed`, by default that of `out`."""
        computed = computed if computed is not None else out.buffer.dtype
        seen = tuple([o.broadcast(out.shape) if isinstance(o, Place) else o for o in operands])
        if 0 not in out.shape:
            self.steps.append(Map(name, seen, out, computed, is_write))

    def work(self, dtype: Any, size: int) -> Place:
        """Memory for what one step alone needs; that of steps that are alike is the same, so that loops of them are found."""
        key = np.dtype(dtype), size
        if key not in self._works:
            self._works[key] = dense(dtype, (size,))
        return self._works[key]

    def copied(self, place: Place, dtype: Any) -> Place:
        """A copy of an array, of a dtype."""
        own = dense(dtype, place.shape)
        self.map("copy", (place,), own, place.buffer.dtype)
        return own

    def raveled(self, place: Place) -> Place:
        """An array as one axis; a copy if it does not lie in C order."""
        place = place if place.is_dense else self.copied(place, place.buffer.dtype)
        return Place(place.buffer, place.offset, (prod(place.shape),), (1,))
