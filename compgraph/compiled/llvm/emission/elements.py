"""Elements of places, outside of nests: what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import elementwise
from ..code import Code, Value
from ..steps import Place
from .addresses import Base, Turns, address_of


class Memory(NamedTuple):
    """How places are found.

    Attributes
    ----------
    code : Code
        The function in which their addresses are computed.
    base : callable
        Gives the address of a buffer's first number.
    turns : mapping
        For each loop that it stands in, the turn.
    """

    code: Code
    base: Base
    turns: Turns

    def address(self, place: Place, indices: Sequence[Value | None]) -> Value:
        """Where the element at some indices lies, of which there may be fewer than axes; None stands for 0."""
        gone = [(s, i) for s, i in zip(place.strides, indices, strict=False) if i is not None]
        return address_of(self.code, place, self.base, self.turns, gone)

    def read(self, operand: Any, indices: Sequence[Value | None], wanted: np.dtype[Any], lanes: int = 1) -> Value:
        """An operand of a step as one of a dtype: a number, or elements of a place whose last axis has a stride of 1 or 0."""
        code = self.code
        if not isinstance(operand, Place):
            number = np.asarray(operand).astype(wanted)[()]
            plain = float(number) if wanted.kind == "f" else int(number)
            return code.number(plain, elementwise.type_of(wanted).with_lanes(lanes))
        given, where = operand.buffer.dtype, self.address(operand, indices)
        if lanes > 1 and not any(operand.strides[-1:]):
            return elementwise.converted(code, code.splat(load(code, where, given), lanes), given, wanted)
        return elementwise.converted(code, load(code, where, given, lanes), given, wanted)


def load(code: Code, where: Value, dtype: np.dtype[Any], lanes: int = 1) -> Value:
    """The numbers of a dtype that stand at an address, one behind the other."""
    value = code.load(where, elementwise.in_memory(dtype).with_lanes(lanes), dtype.itemsize)
    return code.compare("ne", value, code.number(0, value.type)) if dtype.kind == "b" else value


def store(code: Code, value: Value, where: Value, dtype: np.dtype[Any]) -> None:
    """Write numbers of a dtype to an address, one behind the other."""
    if dtype.kind == "b":
        value = code.cast("zext", value, elementwise.in_memory(dtype))
    code.store(value, where, dtype.itemsize)
