"""Where the numbers of a place stand in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .. import elementwise
from ..code import LONG, Code, Value
from ..steps import Buffer, Counter, Place

Base = Callable[[Buffer], Value]
Turns = Mapping[Counter, Value]


def address_of(code: Code, place: Place, base: Base, turns: Turns, indices: Iterable[tuple[int, Value]]) -> Value:
    """The address of a number.

    Parameters
    ----------
    code : Code
        The function in which it is computed.
    place : Place
        The array.
    base : callable
        Gives the address of a buffer's first number.
    turns : mapping
        For each loop that it stands in, the turn.
    indices : iterable of (int, Value)
        Strides, and how often each is gone.
    """
    offset = None
    for stride, index in [*[(by, turns[counter]) for counter, by in place.moves], *indices]:
        if stride:
            term = index if stride == 1 else code.binary("mul", index, code.number(stride, LONG))
            offset = term if offset is None else code.binary("add", offset, term)
    memory = elementwise.in_memory(place.buffer.dtype)
    start = code.at(base(place.buffer), place.offset, memory)
    return start if offset is None else code.at(start, offset, memory)
