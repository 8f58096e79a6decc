"""Pieces of which functions are made: polynomials, powers of two, comparisons that leave nan alone.

No comparison here is of floating values by order: the instructions for it (and minimum and maximum) set the flag "invalid" where
an operand is nan. Magnitudes are compared as integers instead, which order as the numbers do.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..code import DOUBLE, LONG, Code, Value

SIGN = -(2**63)  # the bit of the sign, as a signed integer
INFINITE = 0x7FF << 52
SHIFT = 1.5 * 2.0**52  # a number this large has no room for a fraction: adding it rounds

Pair = tuple[Value, Value]
"""A number in two parts, of which the second is smaller than the last digit of the first."""


def bits_of(x: float) -> int:
    """A double's bits."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def bits(code: Code, a: Value) -> Value:
    """The bits of doubles as integers."""
    return code.cast("bitcast", a, LONG)


def from_bits(code: Code, a: Value) -> Value:
    """Doubles by their bits."""
    return code.cast("bitcast", a, DOUBLE)


def magnitude(code: Code, x: Value) -> Value:
    """The bits of ``|x|``."""
    return code.binary("and", bits(code, x), code.long(2**63 - 1, x))


def is_nan(code: Code, x: Value) -> Value:
    """Where `x` is nan."""
    return code.compare("uno", x, x)


def within(code: Code, x: Value, limit: float) -> Value:
    """``|x|``, but `limit` where it is larger, or nan."""
    return from_bits(code, code.intrinsic("umin", magnitude(code, x), code.long(bits_of(limit), x)))


def exceeds(code: Code, x: Value, limit: float) -> Value:
    """Where ``|x| >= limit``, or `x` is nan."""
    return code.compare("uge", magnitude(code, x), code.long(bits_of(limit), x))


def with_sign(code: Code, x: Value, of: Value) -> Value:
    """``|x|`` with the sign of another value."""
    return code.intrinsic("copysign", x, of)


def rounded(code: Code, x: Value) -> tuple[Value, Value]:
    """The whole number nearest to `x`, below ``2**51`` in magnitude, as a double; and a double whose lowest bits are its bits."""
    shifted = code.binary("fadd", x, code.double(SHIFT, x))
    return code.binary("fsub", shifted, code.double(SHIFT, x)), shifted


def scale(code: Code, x: Value, shifted: Value) -> Value:
    """``x * 2**n`` for the `n` whose bits are the lowest of `shifted`, where `x` and what becomes of it are normal numbers."""
    exponent = code.binary("shl", bits(code, shifted), code.long(52, x))
    return from_bits(code, code.binary("add", bits(code, x), exponent))


def polynomial(code: Code, x: Value, coefficients: Sequence[float]) -> Value:
    """``c[0] + c[1] x + c[2] x**2 ...``, by Estrin's scheme: pairs, pairs of pairs, that do not wait for one another."""
    level: list[Value] = [code.double(c, x) for c in coefficients]
    while len(level) > 1:
        pairs = [code.fma(high, x, low) for low, high in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
        x = code.binary("fmul", x, x) if len(level) > 1 else x
    return level[0]


def ratio(code: Code, over: Value, under: Value, under_rest: Value) -> Pair:
    """``over / (under + under_rest)``, in two parts."""
    quotient, rest, inverse = _ratio(code, over, under, under_rest)
    return quotient, code.binary("fmul", rest, inverse)


def divided(code: Code, over: Value, under: Value, under_rest: Value) -> Value:
    """``over / (under + under_rest)``."""
    quotient, rest, inverse = _ratio(code, over, under, under_rest)
    return code.fma(rest, inverse, quotient)


def _ratio(code: Code, over: Value, under: Value, under_rest: Value) -> tuple[Value, Value, Value]:
    """About ``over / under``, what it leaves of ``over``, and the inverse of ``under``."""
    inverse = code.binary("fdiv", code.double(1, over), under)
    quotient = code.binary("fmul", over, inverse)
    less = code.negative(quotient)
    return quotient, code.fma(less, under_rest, code.fma(less, under, over)), inverse
