"""Primitives of mathematical functions: polynomials, bit operations, comparisons without flags, and fallbacks to C.

Ordered floating-point comparisons (and minimum and maximum) set the flag "invalid" for nan. So magnitudes are compared as
integers, which have the same order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..ir_builder import DOUBLE, LONG, IRBuilder, Value

SIGN = -(2**63)  # the sign bit
INFINITE = 0x7FF << 52
SHIFT = 1.5 * 2.0**52  # adding it rounds to an integer

Pair = tuple[Value, Value]
"""A number as a sum of two doubles; the second is smaller than the last digit of the first."""


def bits_of(x: float) -> int:
    """Return the bits of a double."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def to_bits(ir: IRBuilder, a: Value) -> Value:
    """Bitcast doubles to integers."""
    return ir.cast("bitcast", a, LONG)


def from_bits(ir: IRBuilder, a: Value) -> Value:
    """Bitcast integers to doubles."""
    return ir.cast("bitcast", a, DOUBLE)


def magnitude(ir: IRBuilder, x: Value) -> Value:
    """Return the bits of ``|x|``."""
    return ir.binary("and", to_bits(ir, x), ir.long_like(2**63 - 1, x))


def is_nan(ir: IRBuilder, x: Value) -> Value:
    """Return where `x` is nan."""
    return ir.compare("uno", x, x)


def clamp_magnitude(ir: IRBuilder, x: Value, limit: float) -> Value:
    """Return ``|x|``, or `limit` where it is larger or nan."""
    return from_bits(ir, ir.intrinsic("umin", magnitude(ir, x), ir.long_like(bits_of(limit), x)))


def exceeds(ir: IRBuilder, x: Value, limit: float) -> Value:
    """Return where ``|x| >= limit``, or `x` is nan."""
    return ir.compare("uge", magnitude(ir, x), ir.long_like(bits_of(limit), x))


def copy_sign(ir: IRBuilder, x: Value, signed: Value) -> Value:
    """Return ``|x|`` with the sign of `signed`."""
    return ir.intrinsic("copysign", x, signed)


def scale_by_power_of_two(ir: IRBuilder, x: Value, shifted: Value) -> Value:
    """Return ``x * 2**n`` for the `n` in the lowest bits of `shifted`; `x` and the result are normal numbers."""
    exponent = ir.binary("shl", to_bits(ir, shifted), ir.long_like(52, x))
    return from_bits(ir, ir.binary("add", to_bits(ir, x), exponent))


def polynomial(ir: IRBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate ``c[0] + c[1] x + c[2] x**2 ...`` by Estrin's scheme, whose operations are independent."""
    level: list[Value] = [ir.double_like(c, x) for c in coefficients]
    while len(level) > 1:
        pairs = [ir.fma(high, x, low) for low, high in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
        x = ir.binary("fmul", x, x) if len(level) > 1 else x
    return level[0]


def two_sum(ir: IRBuilder, a: Value, b: Value) -> Pair:
    """Return ``a + b`` and its rounding error, for operands of any order (Knuth's TwoSum)."""
    total = ir.binary("fadd", a, b)
    b_part = ir.binary("fsub", total, a)
    return total, ir.binary("fadd", ir.binary("fsub", a, ir.binary("fsub", total, b_part)), ir.binary("fsub", b, b_part))


def ratio(ir: IRBuilder, numerator: Value, denominator: Value, denominator_low: Value) -> Pair:
    """Return ``numerator / (denominator + denominator_low)`` in two parts."""
    quotient, rest, inverse = _ratio(ir, numerator, denominator, denominator_low)
    return quotient, ir.binary("fmul", rest, inverse)


def divide(ir: IRBuilder, numerator: Value, denominator: Value, denominator_low: Value) -> Value:
    """Return ``numerator / (denominator + denominator_low)``."""
    quotient, rest, inverse = _ratio(ir, numerator, denominator, denominator_low)
    return ir.fma(rest, inverse, quotient)


def _ratio(ir: IRBuilder, numerator: Value, denominator: Value, denominator_low: Value) -> tuple[Value, Value, Value]:
    """Return an approximate quotient, its remainder, and the inverse of `denominator`."""
    inverse = ir.binary("fdiv", ir.double_like(1, numerator), denominator)
    quotient = ir.binary("fmul", numerator, inverse)
    minus_quotient = ir.neg(quotient)
    return quotient, ir.fma(minus_quotient, denominator_low, ir.fma(minus_quotient, denominator, numerator)), inverse


def call_libm_where(ir: IRBuilder, name: str, exceptional: Value, value: Value, *operands: Value) -> Value:
    """Replace `value` by the result of C's function `name` in the lanes where `exceptional` is set."""
    with ir.branch_if_unlikely(ir.any(exceptional), value) as replacements:
        replacements[0] = _call_libm_per_lane(ir, name, exceptional, value, operands)
    return replacements[0]


def _call_libm_per_lane(ir: IRBuilder, name: str, exceptional: Value, value: Value, operands: tuple[Value, ...]) -> Value:
    """Call C's function for each exceptional lane."""
    ir.module.declare(name, DOUBLE, [DOUBLE] * len(operands))
    if value.type.lanes == 1:
        return ir.call(name, DOUBLE, *operands)
    arguments = (exceptional, value, *operands)
    mangled = f".{name}.lanes.{value.type.mangled}"

    def write() -> None:
        builder = ir.module.function(mangled, value.type, [v.type for v in arguments], "noinline cold")
        is_exceptional, before, *arguments_of_lanes = builder.operands
        with builder.loop(0, value.type.lanes, carried=[before]) as lane:
            with builder.branch_if_unlikely(builder.lane(is_exceptional, lane.index), lane.current[0]) as replacements:
                number = builder.call(name, DOUBLE, *(builder.lane(v, lane.index) for v in arguments_of_lanes))
                replacements[0] = builder.insert(lane.current[0], number, lane.index)
            lane.next[0] = replacements[0]
        builder.ret(lane.next[0])

    return ir.call(ir.module.define_once(mangled, write), value.type, *arguments)
