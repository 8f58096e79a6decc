"""Sine, cosine and tangent: the angle is brought within pi/4 of a quarter turn, and both series are computed there.

The polynomials are those of fdlibm (k_sin.c and k_cos.c, right to 2**-58 of the value).
"""

from __future__ import annotations

import math

from ..code import Code, Value
from .parts import SHIFT, SIGN, bits, exceeds, from_bits, polynomial
from .slow import redone

# pi / 2 in three parts (by mpmath): 53 bits, 31 bits and 53 bits. For n up to 2**22 the products with the second are exact.
_QUARTER = 1.5707963267948966, 6.12323399409214e-17, 1.6446256936324258e-26

_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip

_LARGE = 4e6  # n is below 2**22; larger angles are left to C's library


def _quarters(code: Code, x: Value) -> tuple[Value, Value, Value, Value]:
    """Of ``|x| = n pi/2 + rough`` by the first part: where `x` is awkward, bits that end with `n`, ``-n``, and the rough rest."""
    awkward = exceeds(code, x, _LARGE)
    a = code.select(awkward, code.double(0, x), code.intrinsic("fabs", x))
    shifted = code.fma(a, code.double(2 / math.pi, x), code.double(SHIFT, x))
    less = code.negative(code.binary("fsub", shifted, code.double(SHIFT, x)))
    return awkward, bits(code, shifted), less, code.fma(less, code.double(_QUARTER[0], x), a)


def _reduced(code: Code, x: Value) -> tuple[Value, Value, Value, Value]:
    """Of ``|x| = n pi/2 + high + low``: where `x` is awkward, bits that end with `n`, the high part and the low one.

    The first two steps are exact where much cancels, so that what is left is right to its last digit.
    """
    awkward, n, less, rough = _quarters(code, x)
    second, third = (code.double(part, x) for part in _QUARTER[1:])
    high = code.fma(less, second, rough)
    low = code.fma(less, second, code.binary("fsub", rough, high))
    return awkward, n, high, code.fma(less, third, low)


def quarters_and_rest(code: Code, x: Value) -> tuple[Value, Value, Value]:
    """Of ``|x| = n pi/2 + rest`` of a double that was a float: where `x` is awkward, bits that end with `n`, and the rest."""
    awkward, n, less, rough = _quarters(code, x)
    return awkward, n, code.fma(less, code.double(_QUARTER[1], x), rough)


def _sine(code: Code, high: Value, low: Value, square: Value) -> Value:
    """What is to be added to `high` for the sine."""
    return code.fma(code.binary("fmul", high, square), polynomial(code, square, _SIN), low)


def _cosine(code: Code, high: Value, low: Value, square: Value) -> tuple[Value, Value]:
    """The cosine in two parts: ``1 - square / 2``, and the rest with what its rounding has lost."""
    half, one = code.binary("fmul", square, code.double(0.5, high)), code.double(1, high)
    near = code.binary("fsub", one, half)
    lost = code.binary("fsub", code.binary("fsub", one, near), half)
    rest = code.fma(code.binary("fmul", square, square), polynomial(code, square, _COS), lost)
    return near, code.fma(code.negative(high), low, rest)


def signed_by_quarters(code: Code, x: Value, n: Value, quarters: int, sine: Value, cosine: Value) -> Value:
    """The sine or cosine of what is left of `x` after `n` quarter turns, whichever is the sine so many quarter turns on."""
    n = code.binary("add", n, code.long(quarters, x)) if quarters else n
    odd = code.compare("ne", code.binary("and", n, code.long(1, x)), code.long(0, x))
    turned = code.binary("shl", n, code.long(62, x))  # the second lowest bit comes to be the sign
    if not quarters:
        turned = code.binary("xor", turned, bits(code, x))
    sign = code.binary("and", turned, code.long(SIGN, x))
    return from_bits(code, code.binary("xor", bits(code, code.select(odd, cosine, sine)), sign))


def _of_quarters(code: Code, x: Value, name: str, quarters: int) -> Value:
    """The sine, after so many quarter turns more."""
    awkward, n, high, low = _reduced(code, x)
    square = code.binary("fmul", high, high)
    sine = code.binary("fadd", high, _sine(code, high, low, square))
    cosine = code.binary("fadd", *_cosine(code, high, low, square))
    return redone(code, name, awkward, signed_by_quarters(code, x, n, quarters, sine, cosine), x)


def sin(code: Code, x: Value) -> Value:
    """The sine."""
    return _of_quarters(code, x, "sin", 0)


def cos(code: Code, x: Value) -> Value:
    """The cosine."""
    return _of_quarters(code, x, "cos", 1)


def tan(code: Code, x: Value) -> Value:
    """The sine by the cosine, each in two parts; after an odd number of quarters minus the cosine by the sine."""
    awkward, n, high, low = _reduced(code, x)
    square = code.binary("fmul", high, high)
    more = _sine(code, high, low, square)
    sine = code.binary("fadd", high, more)
    sine_rest = code.binary("fadd", code.binary("fsub", high, sine), more)
    near, more = _cosine(code, high, low, square)
    cosine = code.binary("fadd", near, more)
    cosine_rest = code.binary("fadd", code.binary("fsub", near, cosine), more)
    lowest = code.binary("and", n, code.long(1, x))
    odd = code.compare("ne", lowest, code.long(0, x))
    over, over_rest = code.select(odd, cosine, sine), code.select(odd, cosine_rest, sine_rest)
    under, under_rest = code.select(odd, sine, cosine), code.select(odd, sine_rest, cosine_rest)
    inverse = code.binary("fdiv", code.double(1, x), under)
    quotient = code.binary("fmul", over, inverse)
    rest = code.fma(code.negative(quotient), under_rest, over_rest)
    rest = code.binary("fadd", code.fma(code.negative(quotient), under, over), rest)
    value = code.fma(rest, inverse, quotient)
    sign = code.binary("shl", lowest, code.long(63, x))
    sign = code.binary("xor", sign, code.binary("and", bits(code, x), code.long(SIGN, x)))
    value = from_bits(code, code.binary("xor", bits(code, value), sign))
    return redone(code, "tan", awkward, value, x)
