"""Lanes that are seldom awkward, computed again one by one by C's library: right for every operand, and with the right flags."""

from __future__ import annotations

from ..code import DOUBLE, Code, Value


def redone(code: Code, name: str, awkward: Value, value: Value, *operands: Value) -> Value:
    """`value`, but in the lanes whose bit `awkward` is set what C's function `name` gives."""
    with code.unlikely(code.any(awkward), value) as found:
        found[0] = _lane_by_lane(code, name, awkward, value, operands)
    return found[0]


def _lane_by_lane(code: Code, name: str, awkward: Value, value: Value, operands: tuple[Value, ...]) -> Value:
    """A call of C's function, or of a function of this module that calls it for each awkward lane."""
    code.module.declare(name, DOUBLE, [DOUBLE] * len(operands))
    if value.type.lanes == 1:
        return code.call(name, DOUBLE, *operands)
    given = (awkward, value, *operands)
    full = f".{name}.lanes.{value.type.mangled}"

    def write() -> None:
        made = code.module.function(full, value.type, [v.type for v in given], "noinline cold")
        bits, before, *of = made.operands
        with made.loop(0, value.type.lanes, carried=[before]) as lane:
            with made.unlikely(made.lane(bits, lane.index), lane.now[0]) as found:
                number = made.call(name, DOUBLE, *(made.lane(v, lane.index) for v in of))
                found[0] = made.insert(lane.now[0], number, lane.index)
            lane.then[0] = found[0]
        made.give(lane.then[0])

    return code.call(code.module.made(full, write), value.type, *given)
