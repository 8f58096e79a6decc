"""Powers, cube roots and hypotenuses."""

from __future__ import annotations

import math

from ..ir_builder import IRBuilder, Value
from .exponentials import exp_of_pair
from .float_primitives import (
    INFINITE,
    SIGN,
    Pair,
    call_libm_where,
    copy_sign,
    exceeds,
    from_bits,
    magnitude,
    polynomial,
    ratio,
    to_bits,
)
from .logarithms import LN2_HIGH, LN2_LOW, needs_libm_log, split_exponent

# atanh(s) / s = 1 + z (1/3 + z u(z)) of z = s**2, for |s| <= 0.1716: u by Remez's algorithm, the whole accurate to 2**-73.
_THIRD, _THIRD_REST = 0.3333333333333333, 1.850371707708594e-17
_ATANH = (
    0.1999999999999999, 0.14285714285722567, 0.11111111108764964, 0.09090909435588204, 0.07692278404598994,
    0.06668159942923121, 0.05837383494171555, 0.059947260437263436,
)  # fmt: skip

# FreeBSD, s_cbrt.c: about r**(-1/3).
_CUBE_ROOT = (
    1.87595182427177009643, -1.88497979543377169875, 1.621429720105354466140, -0.758397934778766047437, 0.145996192886612446982,
)  # fmt: skip


def fast_two_sum(ir: IRBuilder, large: Value, small: Value) -> Pair:
    """Return the sum and its rounding error (Dekker's Fast2Sum); `large` is the larger operand, or zero."""
    total = ir.binary("fadd", large, small)
    return total, ir.binary("fadd", ir.binary("fsub", large, total), small)


def _two_product(ir: IRBuilder, a: Pair, b: Pair) -> Pair:
    """Return the product of numbers in two parts."""
    high = ir.binary("fmul", a[0], b[0])
    low = ir.fma(a[0], b[0], ir.neg(high))
    return high, ir.fma(a[1], b[0], ir.fma(a[0], b[1], low))


def log_pair(ir: IRBuilder, x: Value) -> Pair:
    """Return ``log(x)`` of a positive normal `x` to some 66 bits."""
    _, k, f = split_exponent(ir, x)
    denominator, denominator_low = fast_two_sum(ir, ir.double_like(2, x), f)
    s = ratio(ir, f, denominator, denominator_low)
    z, z_rest = _two_product(ir, s, s)
    inner = polynomial(ir, z, _ATANH)
    third = ir.fma(z, inner, ir.double_like(_THIRD, x))
    rest = ir.fma(z, inner, ir.binary("fsub", ir.double_like(_THIRD, x), third))  # the difference is exact
    rest = ir.fma(z_rest, ir.double_like(0.2, x), ir.binary("fadd", rest, ir.double_like(_THIRD_REST, x)))
    near = _two_product(ir, s, _two_product(ir, (z, z_rest), (third, rest)))
    two = ir.double_like(2, x)
    total, first = fast_two_sum(ir, ir.binary("fmul", k, ir.double_like(LN2_HIGH, x)), ir.binary("fmul", s[0], two))
    total, second = fast_two_sum(ir, total, ir.binary("fmul", near[0], two))
    rest = ir.fma(ir.binary("fadd", s[1], near[1]), two, ir.binary("fmul", k, ir.double_like(LN2_LOW, x)))
    return fast_two_sum(ir, total, ir.binary("fadd", ir.binary("fadd", first, second), rest))


def sign_of_power(ir: IRBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return where a power is not ``exp(y log(|x|))``, and its sign bit."""
    half = ir.binary("fmul", y, ir.double_like(0.5, y))
    is_odd = ir.compare("une", ir.intrinsic("rint", half), half)
    is_fractional = ir.compare("une", ir.intrinsic("rint", y), y)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    exceptional = ir.binary("or", needs_libm_log(ir, ir.intrinsic("fabs", x)), ir.binary("and", is_negative, is_fractional))
    sign = ir.binary("and", ir.select(is_odd, to_bits(ir, x), ir.long_like(0, x)), ir.long_like(SIGN, x))
    return ir.binary("or", exceptional, exceeds(ir, y, math.inf)), sign


def power(ir: IRBuilder, x: Value, y: Value) -> Value:
    """``exp(y log(|x|))`` with the logarithm in two parts; negative where `x` is, and `y` odd."""
    exceptional, sign = sign_of_power(ir, x, y)
    exceptional = ir.binary("or", exceptional, exceeds(ir, y, 2.0**64))
    high, low = log_pair(ir, ir.intrinsic("fabs", x))
    multiplier, zero = ir.select(exceptional, ir.double_like(0, y), y), ir.double_like(0, x)
    exponent = ir.binary("fmul", multiplier, high)
    rest = ir.fma(multiplier, low, ir.fma(multiplier, high, ir.neg(exponent)))
    is_far = exceeds(ir, exponent, 707)
    value = exp_of_pair(ir, ir.select(is_far, zero, exponent), ir.select(is_far, zero, rest))
    value = from_bits(ir, ir.binary("or", to_bits(ir, value), sign))
    return call_libm_where(ir, "pow", ir.binary("or", exceptional, is_far), value, x, y)


def cbrt(ir: IRBuilder, x: Value) -> Value:
    """The cube root: a third of the exponent, a polynomial, and a Newton step, as in FreeBSD (s_cbrt.c).

    The polynomial's root is truncated to 23 bits, so that its square is exact.
    """
    above_least_normal = ir.binary("sub", magnitude(ir, x), ir.long_like(1 << 52, x))
    exceptional = ir.compare("uge", above_least_normal, ir.long_like(INFINITE - (1 << 52), x))
    a = ir.select(exceptional, ir.double_like(1, x), ir.intrinsic("fabs", x))
    high_word = ir.binary("lshr", to_bits(ir, a), ir.long_like(32, x))
    third = ir.binary("lshr", ir.binary("mul", high_word, ir.long_like(0x55555556, x)), ir.long_like(32, x))
    rough = ir.binary("shl", ir.binary("add", third, ir.long_like(715094163, x)), ir.long_like(32, x))
    t = from_bits(ir, rough)
    r = ir.binary("fmul", ir.binary("fmul", t, t), ir.binary("fdiv", t, a))  # t**3 might overflow
    t = ir.binary("fmul", t, polynomial(ir, r, _CUBE_ROOT))
    truncated = ir.binary("and", ir.binary("add", to_bits(ir, t), ir.long_like(0x80000000, x)), ir.long_like(~0x3FFFFFFF, x))
    t = from_bits(ir, truncated)
    quotient = ir.binary("fdiv", a, ir.binary("fmul", t, t))
    error = ir.binary("fdiv", ir.binary("fsub", quotient, t), ir.binary("fadd", ir.binary("fadd", t, t), quotient))
    return call_libm_where(ir, "cbrt", exceptional, copy_sign(ir, ir.fma(t, error, t), x), x)


def hypot(ir: IRBuilder, x: Value, y: Value) -> Value:
    """``sqrt(x**2 + y**2)``; operands whose squares would overflow or underflow are scaled."""
    high = from_bits(ir, ir.intrinsic("umax", magnitude(ir, x), magnitude(ir, y)))
    low = from_bits(ir, ir.intrinsic("umin", magnitude(ir, x), magnitude(ir, y)))
    is_large, one = exceeds(ir, high, 2.0**500), ir.double_like(1, x)
    is_small = ir.compare("ult", to_bits(ir, high), to_bits(ir, ir.double_like(2.0**-400, x)))
    factor = ir.select(is_large, ir.double_like(2.0**-700, x), ir.select(is_small, ir.double_like(2.0**700, x), one))
    inverse_factor = ir.select(is_large, ir.double_like(2.0**700, x), ir.select(is_small, ir.double_like(2.0**-700, x), one))
    high, low = ir.binary("fmul", high, factor), ir.binary("fmul", low, factor)
    length = ir.intrinsic("sqrt", ir.fma(high, high, ir.binary("fmul", low, low)))
    length = ir.binary("fmul", length, inverse_factor)
    infinite = ir.long_like(INFINITE, x)
    x_is_infinite, y_is_infinite = (ir.compare("eq", magnitude(ir, v), infinite) for v in (x, y))
    return ir.select(ir.binary("or", x_is_infinite, y_is_infinite), ir.double_like(math.inf, x), length)
