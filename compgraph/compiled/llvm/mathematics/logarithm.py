"""Logarithms: the operand is ``2**k (1 + f)``, and ``log(1 + f)`` a polynomial of ``s = f / (2 + f)``, as in fdlibm (e_log.c)."""

from __future__ import annotations

import math

from ..code import Code, Value
from .parts import bits, bits_of, from_bits, polynomial, with_sign
from .slow import redone

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 32 bits: times k is exact

# fdlibm, e_log.c: (log(1 + f) - 2 s) / s as a polynomial of s**2, right to 2**-58.
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


def awkward_for_log(code: Code, x: Value, limit: float = math.inf) -> Value:
    """Where `x` is not a positive normal number below a limit."""
    least = 1 << 52
    return code.compare("uge", code.binary("sub", bits(code, x), code.long(least, x)), code.long(bits_of(limit) - least, x))


def split(code: Code, x: Value) -> tuple[Value, Value, Value]:
    """The bits of ``k + 1023``, `k` as a double, and `f`: ``x = 2**k (1 + f)``, and ``sqrt(1/2) <= 1 + f < sqrt(2)``."""
    moved = code.binary("add", bits(code, x), code.long((1023 << 52) - _ROOT, x))
    exponent = code.binary("lshr", moved, code.long(52, x))
    as_double = from_bits(code, code.binary("or", exponent, code.long(0x433 << 52, x)))
    k = code.binary("fsub", as_double, code.double(2.0**52 + 1023, x))
    fraction = code.binary("add", code.binary("and", moved, code.long(_FRACTION, x)), code.long(_ROOT, x))
    return exponent, k, code.binary("fsub", from_bits(code, fraction), code.double(1, x))


def _near(code: Code, f: Value) -> tuple[Value, Value]:
    """``h = f**2 / 2``, and ``log(1 + f) - f + h``."""
    s = code.binary("fdiv", f, code.binary("fadd", f, code.double(2, f)))
    square = code.binary("fmul", s, s)
    rest = code.binary("fmul", square, polynomial(code, square, _LOG))
    half = code.binary("fmul", code.binary("fmul", f, code.double(0.5, f)), f)
    return half, code.binary("fmul", s, code.binary("fadd", half, rest))


def natural(code: Code, k: Value, f: Value) -> Value:
    """``k log(2) + log(1 + f)``."""
    half, rest = _near(code, f)
    low = code.fma(k, code.double(LN2_LOW, k), rest)
    near = code.binary("fsub", code.binary("fsub", half, low), f)
    return code.binary("fsub", code.binary("fmul", k, code.double(LN2_HIGH, k)), near)


def log(code: Code, x: Value) -> Value:
    """The natural logarithm."""
    _, k, f = split(code, x)
    return redone(code, "log", awkward_for_log(code, x), natural(code, k, f), x)


def _of_base(code: Code, x: Value, per: tuple[float, float], one: tuple[float, float]) -> Value:
    """A logarithm by its value at e, and at two, in parts; as FreeBSD, in twice the precision where it matters."""
    _, k, f = split(code, x)
    half, rest = _near(code, f)
    high = code.binary("fsub", f, half)
    high = from_bits(code, code.binary("and", bits(code, high), code.long(~0xFFFFFFFF, x)))
    low = code.binary("fadd", code.binary("fsub", code.binary("fsub", f, high), half), rest)
    large = code.binary("fmul", high, code.double(per[0], x))
    small = code.binary("fmul", code.binary("fadd", low, high), code.double(per[1], x))
    small = code.fma(low, code.double(per[0], x), small)
    whole = code.binary("fmul", k, code.double(one[0], x))
    if one[1]:
        small = code.fma(k, code.double(one[1], x), small)
    total = code.binary("fadd", whole, large)
    small = code.binary("fadd", small, code.binary("fadd", code.binary("fsub", whole, total), large))
    return code.binary("fadd", small, total)


def log2(code: Code, x: Value) -> Value:
    """The logarithm to the base two."""
    return redone(code, "log2", awkward_for_log(code, x), _of_base(code, x, _PER_LN2, (1, 0)), x)


def log10(code: Code, x: Value) -> Value:
    """The logarithm to the base ten."""
    return redone(code, "log10", awkward_for_log(code, x), _of_base(code, x, _PER_LN10, _LOG10_2), x)


def log_of_sum(code: Code, high: Value, low: Value) -> Value:
    """``log(high + low)`` of a positive normal number and a number that is smaller than its last digit."""
    exponent, k, f = split(code, high)
    power = code.binary("shl", code.binary("sub", code.long(2046, high), exponent), code.long(52, high))
    return natural(code, k, code.fma(low, from_bits(code, power), f))


def log1p_of_part(code: Code, x: Value) -> Value:
    """``log(1 + x)`` where x is between zero and one."""
    one = code.double(1, x)
    total = code.binary("fadd", one, x)
    return log_of_sum(code, total, code.binary("fsub", x, code.binary("fsub", total, one)))


def _log1p_of(code: Code, x: Value) -> Value:
    """``log(1 + x)`` of a finite ``x > -1``."""
    one = code.double(1, x)
    total = code.binary("fadd", x, one)
    share = code.binary("fsub", total, x)  # what is left of one; and so what is lost of both
    lost = code.binary("fadd", code.binary("fsub", x, code.binary("fsub", total, share)), code.binary("fsub", one, share))
    return log_of_sum(code, total, lost)


def log1p(code: Code, x: Value) -> Value:
    """``log(1 + x)``."""
    awkward = awkward_for_log(code, code.binary("fadd", x, code.double(1, x)), 2.0**1000)
    value = _log1p_of(code, code.select(awkward, code.double(0, x), x))
    return redone(code, "log1p", awkward, with_sign(code, value, x), x)
