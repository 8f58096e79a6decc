"""Logarithms, inverse hyperbolic functions, softplus and logaddexp, logit and entropy.

The operand is ``2**k (1 + f)``, and ``log(1 + f)`` is a polynomial of ``s = f / (2 + f)``, as in fdlibm (e_log.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ir_builder import IRBuilder, Value
from .exponentials import exp, exp2
from .float_primitives import bits_of, call_libm_where, copy_sign, exceeds, from_bits, polynomial, ratio, to_bits, two_sum

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 32 bits: times k is exact

# fdlibm, e_log.c: (log(1 + f) - 2 s) / s as a polynomial of s**2, accurate to 2**-58.
_LOG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip

# FreeBSD, e_log2.c and e_log10.c: 1 / log(2) and 1 / log(10), log10(2), the first parts with few bits.
_PER_LN2 = 1.44269504072144627571e00, 1.67517131648865118353e-10
_PER_LN10 = 4.34294481878168880939e-01, 2.50829467116452752298e-11
_LOG10_2 = 3.01029995663611771306e-01, 3.69423907715893078616e-13

_ROOT = bits_of(math.sqrt(0.5)) & ~0xFFFFFFFF
_FRACTION = (1 << 52) - 1


def needs_libm_log(ir: IRBuilder, x: Value, limit: float = math.inf) -> Value:
    """Return where `x` is not a positive normal number below a limit."""
    least = 1 << 52
    return ir.compare("uge", ir.binary("sub", to_bits(ir, x), ir.long_like(least, x)), ir.long_like(bits_of(limit) - least, x))


def split_exponent(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Return the bits of ``k + 1023``, `k` as a double, and `f`: ``x = 2**k (1 + f)`` with ``sqrt(1/2) <= 1 + f < sqrt(2)``."""
    shifted_bits = ir.binary("add", to_bits(ir, x), ir.long_like((1023 << 52) - _ROOT, x))
    exponent = ir.binary("lshr", shifted_bits, ir.long_like(52, x))
    as_double = from_bits(ir, ir.binary("or", exponent, ir.long_like(0x433 << 52, x)))
    k = ir.binary("fsub", as_double, ir.double_like(2.0**52 + 1023, x))
    fraction = ir.binary("add", ir.binary("and", shifted_bits, ir.long_like(_FRACTION, x)), ir.long_like(_ROOT, x))
    return exponent, k, ir.binary("fsub", from_bits(ir, fraction), ir.double_like(1, x))


def _split_log(ir: IRBuilder, f: Value) -> tuple[Value, Value]:
    """Return ``h = f**2 / 2``, and ``log(1 + f) - f + h``."""
    s = ir.binary("fdiv", f, ir.binary("fadd", f, ir.double_like(2, f)))
    square = ir.binary("fmul", s, s)
    rest = ir.binary("fmul", square, polynomial(ir, square, _LOG))
    half = ir.binary("fmul", ir.binary("fmul", f, ir.double_like(0.5, f)), f)
    return half, ir.binary("fmul", s, ir.binary("fadd", half, rest))


def combine_log(ir: IRBuilder, k: Value, f: Value) -> Value:
    """Return ``k log(2) + log(1 + f)``."""
    half, rest = _split_log(ir, f)
    low = ir.fma(k, ir.double_like(LN2_LOW, k), rest)
    near = ir.binary("fsub", ir.binary("fsub", half, low), f)
    return ir.binary("fsub", ir.binary("fmul", k, ir.double_like(LN2_HIGH, k)), near)


def log(ir: IRBuilder, x: Value) -> Value:
    """The natural logarithm."""
    _, k, f = split_exponent(ir, x)
    return call_libm_where(ir, "log", needs_libm_log(ir, x), combine_log(ir, k, f), x)


def _log_to_base(ir: IRBuilder, x: Value, inverse_log_of_base: tuple[float, float], log_of_two: tuple[float, float]) -> Value:
    """Return the logarithm to a base, given ``1 / log(base)`` and the logarithm of two to this base, each in two parts."""
    _, k, f = split_exponent(ir, x)
    half, rest = _split_log(ir, f)
    high = ir.binary("fsub", f, half)
    high = from_bits(ir, ir.binary("and", to_bits(ir, high), ir.long_like(~0xFFFFFFFF, x)))
    low = ir.binary("fadd", ir.binary("fsub", ir.binary("fsub", f, high), half), rest)
    large = ir.binary("fmul", high, ir.double_like(inverse_log_of_base[0], x))
    small = ir.binary("fmul", ir.binary("fadd", low, high), ir.double_like(inverse_log_of_base[1], x))
    small = ir.fma(low, ir.double_like(inverse_log_of_base[0], x), small)
    whole = ir.binary("fmul", k, ir.double_like(log_of_two[0], x))
    if log_of_two[1]:
        small = ir.fma(k, ir.double_like(log_of_two[1], x), small)
    total = ir.binary("fadd", whole, large)
    small = ir.binary("fadd", small, ir.binary("fadd", ir.binary("fsub", whole, total), large))
    return ir.binary("fadd", small, total)


def log2(ir: IRBuilder, x: Value) -> Value:
    """The logarithm to the base two."""
    return call_libm_where(ir, "log2", needs_libm_log(ir, x), _log_to_base(ir, x, _PER_LN2, (1, 0)), x)


def log10(ir: IRBuilder, x: Value) -> Value:
    """The logarithm to the base ten."""
    return call_libm_where(ir, "log10", needs_libm_log(ir, x), _log_to_base(ir, x, _PER_LN10, _LOG10_2), x)


def log_of_sum(ir: IRBuilder, high: Value, low: Value) -> Value:
    """Return ``log(high + low)`` of a positive normal number and a correction below its last digit."""
    exponent, k, f = split_exponent(ir, high)
    power = ir.binary("shl", ir.binary("sub", ir.long_like(2046, high), exponent), ir.long_like(52, high))
    return combine_log(ir, k, ir.fma(low, from_bits(ir, power), f))


def log1p_of_fraction(ir: IRBuilder, x: Value) -> Value:
    """Return ``log(1 + x)`` for `x` between zero and one."""
    one = ir.double_like(1, x)
    total = ir.binary("fadd", one, x)
    return log_of_sum(ir, total, ir.binary("fsub", x, ir.binary("fsub", total, one)))


def log1p(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + x)``."""
    exceptional = needs_libm_log(ir, ir.binary("fadd", x, ir.double_like(1, x)), 2.0**1000)
    value = log_of_sum(ir, *two_sum(ir, ir.select(exceptional, ir.double_like(0, x), x), ir.double_like(1, x)))
    return call_libm_where(ir, "log1p", exceptional, copy_sign(ir, value, x), x)


def _log1p_of_pair(ir: IRBuilder, high: Value, low: Value) -> Value:
    """Return ``log(1 + high + low)`` of ``high >= 0``."""
    total, rounding_error = two_sum(ir, high, ir.double_like(1, high))
    return log_of_sum(ir, total, ir.binary("fadd", rounding_error, low))


def arcsinh(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + a + (sqrt(1 + a**2) - 1))`` of ``a = |x|``."""
    exceptional, one = exceeds(ir, x, 2.0**500), ir.double_like(1, x)
    a = ir.select(exceptional, one, ir.intrinsic("fabs", x))
    square = ir.binary("fmul", a, a)
    root = ir.intrinsic("sqrt", ir.binary("fadd", square, one))
    correction = ir.binary("fdiv", square, ir.binary("fadd", root, one))
    total = ir.binary("fadd", a, correction)
    rounding_error = ir.binary("fadd", ir.binary("fsub", a, total), correction)  # exact: correction < a
    return call_libm_where(ir, "asinh", exceptional, copy_sign(ir, _log1p_of_pair(ir, total, rounding_error), x), x)


def arccosh(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + t + sqrt(2 t + t**2))`` of ``t = x - 1``."""
    one = ir.double_like(1, x)
    exceptional = ir.compare("sge", to_bits(ir, x), ir.long_like(bits_of(2.0**500), x))
    exceptional = ir.binary("or", exceptional, ir.compare("slt", to_bits(ir, x), to_bits(ir, one)))
    t = ir.binary("fsub", ir.select(exceptional, one, x), one)
    square = ir.fma(t, t, ir.binary("fadd", t, t))
    root = ir.intrinsic("sqrt", square)
    total = ir.binary("fadd", root, t)
    rounding_error = ir.binary("fadd", ir.binary("fsub", root, total), t)  # exact: t < root
    return call_libm_where(ir, "acosh", exceptional, _log1p_of_pair(ir, total, rounding_error), x)


def arctanh(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + 2 a / (1 - a)) / 2`` of ``a = |x|``; the quotient in two parts."""
    exceptional, one = exceeds(ir, x, 1), ir.double_like(1, x)
    a = ir.select(exceptional, ir.double_like(0, x), ir.intrinsic("fabs", x))
    numerator, denominator = ir.binary("fadd", a, a), ir.binary("fsub", one, a)
    rounding_error = ir.binary("fsub", ir.binary("fsub", one, denominator), a)  # exact: the rounding error of `denominator`
    value = ir.binary("fmul", _log1p_of_pair(ir, *ratio(ir, numerator, denominator, rounding_error)), ir.double_like(0.5, x))
    return call_libm_where(ir, "atanh", exceptional, copy_sign(ir, value, x), x)


def softplus(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + exp(x))``."""
    rest = log1p_of_fraction(ir, exp(ir, ir.neg(ir.intrinsic("fabs", x))))
    is_positive = ir.compare("sge", to_bits(ir, x), ir.long_like(0, x))
    return ir.binary("fadd", ir.select(is_positive, x, ir.double_like(0, x)), rest)


def log_expit(ir: IRBuilder, x: Value) -> Value:
    """``log(1 / (1 + exp(-x)))``."""
    return ir.neg(softplus(ir, ir.neg(x)))


def logit(ir: IRBuilder, x: Value) -> Value:
    """``log(x / (1 - x))``; between 1/4 and 3/4 ``log(1 + 2 s / (1 - s))`` of ``s = |2 x - 1|``. Quotients have two parts."""
    one, two = ir.double_like(1, x), ir.double_like(2, x)
    least = 1 << 52
    is_inside = ir.compare("ult", ir.binary("sub", to_bits(ir, x), ir.long_like(least, x)), ir.long_like(bits_of(1) - least, x))
    a = ir.select(is_inside, x, ir.double_like(0.125, x))
    difference = ir.fma(a, two, ir.double_like(-1, x))
    s = ir.intrinsic("fabs", difference)
    is_near = ir.compare("ule", to_bits(ir, s), ir.long_like(bits_of(0.5), x))
    subtrahend = ir.select(is_near, s, a)
    numerator = ir.select(is_near, ir.binary("fadd", s, s), a)
    denominator = ir.binary("fsub", one, subtrahend)
    rounding_error = ir.binary("fsub", ir.binary("fsub", one, denominator), subtrahend)
    high, low = ratio(ir, numerator, denominator, rounding_error)
    total, rounding_error = two_sum(ir, high, one)  # near 1/2, where the quotient is at most 2
    total, low = ir.select(is_near, total, high), ir.select(is_near, ir.binary("fadd", rounding_error, low), low)
    value = log_of_sum(ir, total, low)
    value = ir.select(is_near, copy_sign(ir, value, difference), value)
    is_subnormal = ir.compare("ult", ir.binary("sub", to_bits(ir, x), ir.long_like(1, x)), ir.long_like(least - 1, x))
    value = call_libm_where(ir, "log", is_subnormal, value, x)
    is_zero = ir.compare("eq", ir.binary("shl", to_bits(ir, x), ir.long_like(1, x)), ir.long_like(0, x))
    is_one = ir.compare("eq", to_bits(ir, x), to_bits(ir, one))
    outside = ir.select(is_zero, ir.double_like(-math.inf, x), ir.double_like(math.nan, x))
    outside = ir.select(is_one, ir.double_like(math.inf, x), outside)
    return ir.select(ir.binary("or", is_inside, is_subnormal), value, outside)


def entr(ir: IRBuilder, x: Value) -> Value:
    """``-x log(x)``, and ``-inf`` for negative `x`."""
    infinite, zero = ir.double_like(-math.inf, x), ir.double_like(0, x)
    least, limit = 1 << 52, 2.56e305  # beyond, the product overflows
    is_inside = ir.compare(
        "ult", ir.binary("sub", to_bits(ir, x), ir.long_like(least, x)), ir.long_like(bits_of(limit) - least, x)
    )
    a = ir.select(is_inside, x, ir.double_like(0.5, x))
    _, k, f = split_exponent(ir, a)
    is_subnormal = ir.compare("ult", ir.binary("sub", to_bits(ir, x), ir.long_like(1, x)), ir.long_like(least - 1, x))
    logarithm = call_libm_where(ir, "log", is_subnormal, combine_log(ir, k, f), x)
    product = ir.binary("fmul", ir.neg(ir.select(is_subnormal, x, a)), logarithm)
    is_zero = ir.compare("eq", ir.binary("shl", to_bits(ir, x), ir.long_like(1, x)), ir.long_like(0, x))
    outside = ir.select(is_zero, zero, infinite)
    outside = ir.select(ir.compare("uno", x, x), x, outside)
    return ir.select(ir.binary("or", is_inside, is_subnormal), product, outside)


def _logaddexp(ir: IRBuilder, x: Value, y: Value, power: Callable[[IRBuilder, Value], Value], factor: float) -> Value:
    """Return the larger operand, plus the logarithm of one plus a power of the difference.

    For equal operands, which may be infinite, the difference is zero. One operand is replaced before the subtraction; with
    zero, LLVM would subtract first and select afterwards, but infinity minus infinity sets a flag.
    """
    is_equal, zero = ir.compare("oeq", x, y), ir.double_like(0, x)
    difference = ir.binary("fsub", x, ir.select(is_equal, ir.double_like(1, x), y))
    is_less = ir.compare("slt", to_bits(ir, difference), ir.long_like(0, x))
    small = ir.select(is_equal, zero, ir.neg(ir.intrinsic("fabs", difference)))
    rest = log1p_of_fraction(ir, power(ir, small))
    if factor != 1:
        rest = ir.binary("fmul", rest, ir.double_like(factor, x))
    return ir.binary("fadd", ir.select(is_less, y, x), rest)


def logaddexp(ir: IRBuilder, x: Value, y: Value) -> Value:
    """``log(exp(x) + exp(y))``."""
    return _logaddexp(ir, x, y, exp, 1)


def logaddexp2(ir: IRBuilder, x: Value, y: Value) -> Value:
    """``log2(2**x + 2**y)``."""
    return _logaddexp(ir, x, y, exp2, 1 / math.log(2))
