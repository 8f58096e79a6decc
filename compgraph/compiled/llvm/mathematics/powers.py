"""Powers, cube roots and lengths."""

from __future__ import annotations

import math

from ..code import Code, Value
from .exponential import power_of
from .logarithm import LN2_HIGH, LN2_LOW, awkward_for_log, split
from .parts import INFINITE, SIGN, Pair, bits, exceeds, from_bits, magnitude, polynomial, ratio, with_sign
from .slow import redone

# atanh(s) / s = 1 + z (1/3 + z u(z)) of z = s**2, for |s| <= 0.1716: u by Remez's algorithm, the whole right to 2**-73.
_THIRD, _THIRD_REST = 0.3333333333333333, 1.850371707708594e-17
_ATANH = (
    0.1999999999999999, 0.14285714285722567, 0.11111111108764964, 0.09090909435588204, 0.07692278404598994,
    0.06668159942923121, 0.05837383494171555, 0.059947260437263436,
)  # fmt: skip

# FreeBSD, s_cbrt.c: about r**(-1/3).
_CUBE_ROOT = (
    1.87595182427177009643, -1.88497979543377169875, 1.621429720105354466140, -0.758397934778766047437, 0.145996192886612446982,
)  # fmt: skip


def _plus(code: Code, large: Value, small: Value) -> Pair:
    """The sum, and what its rounding has lost; `large` is the larger, or zero."""
    total = code.binary("fadd", large, small)
    return total, code.binary("fadd", code.binary("fsub", large, total), small)


def _times(code: Code, a: Pair, b: Pair) -> Pair:
    """The product of numbers in two parts."""
    high = code.binary("fmul", a[0], b[0])
    low = code.fma(a[0], b[0], code.negative(high))
    return high, code.fma(a[1], b[0], code.fma(a[0], b[1], low))


def _logarithm(code: Code, x: Value) -> Pair:
    """``log(x)`` of a positive normal `x` to some 66 bits."""
    _, k, f = split(code, x)
    under, under_rest = _plus(code, code.double(2, x), f)
    s = ratio(code, f, under, under_rest)
    z, z_rest = _times(code, s, s)
    inner = polynomial(code, z, _ATANH)
    third = code.fma(z, inner, code.double(_THIRD, x))
    rest = code.fma(z, inner, code.binary("fsub", code.double(_THIRD, x), third))  # the difference is exact
    rest = code.fma(z_rest, code.double(0.2, x), code.binary("fadd", rest, code.double(_THIRD_REST, x)))
    near = _times(code, s, _times(code, (z, z_rest), (third, rest)))
    two = code.double(2, x)
    total, first = _plus(code, code.binary("fmul", k, code.double(LN2_HIGH, x)), code.binary("fmul", s[0], two))
    total, second = _plus(code, total, code.binary("fmul", near[0], two))
    rest = code.fma(code.binary("fadd", s[1], near[1]), two, code.binary("fmul", k, code.double(LN2_LOW, x)))
    return _plus(code, total, code.binary("fadd", code.binary("fadd", first, second), rest))


def sign_of_power(code: Code, x: Value, y: Value) -> tuple[Value, Value]:
    """Where ``exp(y log(|x|))`` is of no use for a power, and the bit of its sign."""
    half = code.binary("fmul", y, code.double(0.5, y))
    odd = code.compare("une", code.intrinsic("rint", half), half)
    broken = code.compare("une", code.intrinsic("rint", y), y)
    negative = code.compare("slt", bits(code, x), code.long(0, x))
    awkward = code.binary("or", awkward_for_log(code, code.intrinsic("fabs", x)), code.binary("and", negative, broken))
    sign = code.binary("and", code.select(odd, bits(code, x), code.long(0, x)), code.long(SIGN, x))
    return code.binary("or", awkward, exceeds(code, y, math.inf)), sign


def power(code: Code, x: Value, y: Value) -> Value:
    """``exp(y log(|x|))`` with the logarithm in two parts; negative where `x` is, and `y` odd."""
    awkward, sign = sign_of_power(code, x, y)
    awkward = code.binary("or", awkward, exceeds(code, y, 2.0**64))
    high, low = _logarithm(code, code.intrinsic("fabs", x))
    times, zero = code.select(awkward, code.double(0, y), y), code.double(0, x)
    exponent = code.binary("fmul", times, high)
    rest = code.fma(times, low, code.fma(times, high, code.negative(exponent)))
    far = exceeds(code, exponent, 707)
    value = power_of(code, code.select(far, zero, exponent), code.select(far, zero, rest))
    value = from_bits(code, code.binary("or", bits(code, value), sign))
    return redone(code, "pow", code.binary("or", awkward, far), value, x, y)


def cbrt(code: Code, x: Value) -> Value:
    """The cube root: a third of the exponent, a polynomial, and a step of Newton's, as in FreeBSD (s_cbrt.c).

    The root to 23 bits that the polynomial gives is cut to that length, so that its square is exact.
    """
    least = code.binary("sub", magnitude(code, x), code.long(1 << 52, x))
    awkward = code.compare("uge", least, code.long(INFINITE - (1 << 52), x))
    a = code.select(awkward, code.double(1, x), code.intrinsic("fabs", x))
    top = code.binary("lshr", bits(code, a), code.long(32, x))
    third = code.binary("lshr", code.binary("mul", top, code.long(0x55555556, x)), code.long(32, x))
    rough = code.binary("shl", code.binary("add", third, code.long(715094163, x)), code.long(32, x))
    t = from_bits(code, rough)
    r = code.binary("fmul", code.binary("fmul", t, t), code.binary("fdiv", t, a))  # t**3 might overflow
    t = code.binary("fmul", t, polynomial(code, r, _CUBE_ROOT))
    cut = code.binary("and", code.binary("add", bits(code, t), code.long(0x80000000, x)), code.long(~0x3FFFFFFF, x))
    t = from_bits(code, cut)
    quotient = code.binary("fdiv", a, code.binary("fmul", t, t))
    error = code.binary("fdiv", code.binary("fsub", quotient, t), code.binary("fadd", code.binary("fadd", t, t), quotient))
    return redone(code, "cbrt", awkward, with_sign(code, code.fma(t, error, t), x), x)


def hypot(code: Code, x: Value, y: Value) -> Value:
    """``sqrt(x**2 + y**2)``; operands whose squares would be too large or too small are scaled."""
    high = from_bits(code, code.intrinsic("umax", magnitude(code, x), magnitude(code, y)))
    low = from_bits(code, code.intrinsic("umin", magnitude(code, x), magnitude(code, y)))
    large, one = exceeds(code, high, 2.0**500), code.double(1, x)
    small = code.compare("ult", bits(code, high), bits(code, code.double(2.0**-400, x)))
    factor = code.select(large, code.double(2.0**-700, x), code.select(small, code.double(2.0**700, x), one))
    back = code.select(large, code.double(2.0**700, x), code.select(small, code.double(2.0**-700, x), one))
    high, low = code.binary("fmul", high, factor), code.binary("fmul", low, factor)
    length = code.intrinsic("sqrt", code.fma(high, high, code.binary("fmul", low, low)))
    length = code.binary("fmul", length, back)
    infinite = code.long(INFINITE, x)
    of_x, of_y = (code.compare("eq", magnitude(code, v), infinite) for v in (x, y))
    return code.select(code.binary("or", of_x, of_y), code.double(math.inf, x), length)
