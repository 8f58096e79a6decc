"""Trigonometric functions and their inverses.

Angles are reduced to within pi/4 of a multiple of pi/2, and both series are evaluated there. The polynomials are those of
fdlibm (k_sin.c and k_cos.c, with relative errors below 2**-58).
"""

from __future__ import annotations

import math

from ..ir_builder import IRBuilder, Value
from .float_primitives import (
    SHIFT,
    SIGN,
    bits_of,
    call_libm_where,
    clamp_magnitude,
    copy_sign,
    exceeds,
    from_bits,
    is_nan,
    magnitude,
    polynomial,
    to_bits,
)

# pi / 2 in three parts (by mpmath): 53 bits, 31 bits and 53 bits. For n up to 2**22 the products with the second are exact.
_HALF_PI_PARTS = 1.5707963267948966, 6.12323399409214e-17, 1.6446256936324258e-26

_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip

_LARGE = 4e6  # n is below 2**22; C's library computes larger angles


def _split_quadrant(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value, Value]:
    """Reduce ``|x| = n pi/2 + rough``: return where `x` is exceptional, bits ending with `n`, ``-n``, and the rest."""
    exceptional = exceeds(ir, x, _LARGE)
    a = ir.select(exceptional, ir.double_like(0, x), ir.intrinsic("fabs", x))
    shifted = ir.fma(a, ir.double_like(2 / math.pi, x), ir.double_like(SHIFT, x))
    minus_n = ir.neg(ir.binary("fsub", shifted, ir.double_like(SHIFT, x)))
    return exceptional, to_bits(ir, shifted), minus_n, ir.fma(minus_n, ir.double_like(_HALF_PI_PARTS[0], x), a)


def _reduce_argument(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value, Value]:
    """Reduce ``|x| = n pi/2 + high + low``: return where `x` is exceptional, bits ending with `n`, and both parts.

    The first two steps are exact where much cancels, so the result is right to its last digit.
    """
    exceptional, n, minus_n, rough = _split_quadrant(ir, x)
    second, third = (ir.double_like(part, x) for part in _HALF_PI_PARTS[1:])
    high = ir.fma(minus_n, second, rough)
    low = ir.fma(minus_n, second, ir.binary("fsub", rough, high))
    return exceptional, n, high, ir.fma(minus_n, third, low)


def reduce_to_quadrant(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Reduce a float in double, ``|x| = n pi/2 + rest``: return where `x` is exceptional, bits ending with `n`, and the rest."""
    exceptional, n, minus_n, rough = _split_quadrant(ir, x)
    return exceptional, n, ir.fma(minus_n, ir.double_like(_HALF_PI_PARTS[1], x), rough)


def sine_correction(ir: IRBuilder, high: Value, low: Value, square: Value) -> Value:
    """Return the sine minus `high`."""
    return ir.fma(ir.binary("fmul", high, square), polynomial(ir, square, _SIN), low)


def cosine_pair(ir: IRBuilder, high: Value, low: Value, square: Value) -> tuple[Value, Value]:
    """Return the cosine in two parts: ``1 - square / 2``, and the rest with the rounding error."""
    half, one = ir.binary("fmul", square, ir.double_like(0.5, high)), ir.double_like(1, high)
    near = ir.binary("fsub", one, half)
    rounding_error = ir.binary("fsub", ir.binary("fsub", one, near), half)
    rest = ir.fma(ir.binary("fmul", square, square), polynomial(ir, square, _COS), rounding_error)
    return near, ir.fma(ir.neg(high), low, rest)


def select_by_quadrant(ir: IRBuilder, x: Value, n: Value, quarters: int, sine: Value, cosine: Value) -> Value:
    """Select the sine or cosine, and its sign, by the quadrant `n`, shifted by some quarter turns."""
    n = ir.binary("add", n, ir.long_like(quarters, x)) if quarters else n
    is_odd = ir.compare("ne", ir.binary("and", n, ir.long_like(1, x)), ir.long_like(0, x))
    sign = ir.binary("shl", n, ir.long_like(62, x))  # the second lowest bit of `n` becomes the sign bit
    if not quarters:  # the sine is odd
        sign = ir.binary("xor", sign, to_bits(ir, x))
    sign = ir.binary("and", sign, ir.long_like(SIGN, x))
    return from_bits(ir, ir.binary("xor", to_bits(ir, ir.select(is_odd, cosine, sine)), sign))


def _sine_of_quadrant(ir: IRBuilder, x: Value, name: str, quarters: int) -> Value:
    """The sine, shifted by some quarter turns."""
    exceptional, n, high, low = _reduce_argument(ir, x)
    square = ir.binary("fmul", high, high)
    sine = ir.binary("fadd", high, sine_correction(ir, high, low, square))
    cosine = ir.binary("fadd", *cosine_pair(ir, high, low, square))
    return call_libm_where(ir, name, exceptional, select_by_quadrant(ir, x, n, quarters, sine, cosine), x)


def sin(ir: IRBuilder, x: Value) -> Value:
    """The sine."""
    return _sine_of_quadrant(ir, x, "sin", 0)


def cos(ir: IRBuilder, x: Value) -> Value:
    """The cosine."""
    return _sine_of_quadrant(ir, x, "cos", 1)


def tan(ir: IRBuilder, x: Value) -> Value:
    """The quotient of sine and cosine, each in two parts; in odd quadrants minus the quotient of cosine and sine."""
    exceptional, n, high, low = _reduce_argument(ir, x)
    square = ir.binary("fmul", high, high)
    correction = sine_correction(ir, high, low, square)
    sine = ir.binary("fadd", high, correction)
    sine_rest = ir.binary("fadd", ir.binary("fsub", high, sine), correction)
    near, correction = cosine_pair(ir, high, low, square)
    cosine = ir.binary("fadd", near, correction)
    cosine_rest = ir.binary("fadd", ir.binary("fsub", near, cosine), correction)
    lowest = ir.binary("and", n, ir.long_like(1, x))
    is_odd = ir.compare("ne", lowest, ir.long_like(0, x))
    numerator, numerator_low = ir.select(is_odd, cosine, sine), ir.select(is_odd, cosine_rest, sine_rest)
    denominator, denominator_low = ir.select(is_odd, sine, cosine), ir.select(is_odd, sine_rest, cosine_rest)
    inverse = ir.binary("fdiv", ir.double_like(1, x), denominator)
    quotient = ir.binary("fmul", numerator, inverse)
    rest = ir.fma(ir.neg(quotient), denominator_low, numerator_low)
    rest = ir.binary("fadd", ir.fma(ir.neg(quotient), denominator, numerator), rest)
    value = ir.fma(rest, inverse, quotient)
    sign = ir.binary("shl", lowest, ir.long_like(63, x))
    sign = ir.binary("xor", sign, ir.binary("and", to_bits(ir, x), ir.long_like(SIGN, x)))
    value = from_bits(ir, ir.binary("xor", to_bits(ir, value), sign))
    return call_libm_where(ir, "tan", exceptional, value, x)


# pi / 4 and pi / 2 as sums of two doubles.
_QUARTER_PI, _QUARTER_PI_REST = 0.7853981633974483, 3.061616997868383e-17
_HALF_PI, _HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17

# fdlibm, s_atan.c: (atan(t) - t) / t**3 as a polynomial of t**2, for |t| < 7/16.
_ARCTAN = (
    -3.33333333333329318027e-01, 1.99999999998764832476e-01, -1.42857142725034663711e-01, 1.11111104054623557880e-01,
    -9.09088713343650656196e-02, 7.69187620504482999495e-02, -6.66107313738753120669e-02, 5.83357013379057348645e-02,
    -4.97687799461593236017e-02, 3.65315727442169155270e-02, -1.62858201153657823623e-02,
)  # fmt: skip
# (arcsin(x) - x) / x**3 as a polynomial of x**2, for |x| <= 1/2, by Remez's algorithm: accurate to 2**-59 of x.
_ARCSIN = (
    0.16666666666666766, 0.07499999999969421, 0.04464285717596749, 0.030381942641012277, 0.022372216912416712,
    0.017351576733446766, 0.013981251239970637, 0.011395329099079766, 0.010800650173752563, 0.0036282244566048266,
    0.021900359749640923, -0.021275767426991433, 0.03280393661135683,
)  # fmt: skip

_LOW, _HIGH = 0.4142135623730951, 2.414213562373095  # the tangents of pi / 8 and 3 pi / 8


def _is_below(ir: IRBuilder, x: Value, limit: float) -> Value:
    """Return where ``|x| < limit``."""
    return ir.compare("ult", magnitude(ir, x), ir.long_like(bits_of(limit), x))


def arctan(ir: IRBuilder, x: Value) -> Value:
    """``arctan(t)`` with t = |x|, plus pi/4 with t = (x - 1) / (x + 1), or plus pi/2 with t = -1 / x: ``|t| <= tan(pi / 8)``."""
    a, one, zero = ir.intrinsic("fabs", x), ir.double_like(1, x), ir.double_like(0, x)
    is_low, is_high = _is_below(ir, x, _LOW), exceeds(ir, x, _HIGH)
    numerator = ir.select(is_low, a, ir.select(is_high, ir.double_like(-1, x), ir.binary("fsub", a, one)))
    denominator = ir.select(is_low, one, ir.select(is_high, a, ir.binary("fadd", a, one)))
    t = ir.binary("fdiv", numerator, denominator)
    offset = ir.select(is_low, zero, ir.select(is_high, ir.double_like(_HALF_PI, x), ir.double_like(_QUARTER_PI, x)))
    rest = ir.select(is_low, zero, ir.select(is_high, ir.double_like(_HALF_PI_REST, x), ir.double_like(_QUARTER_PI_REST, x)))
    square = ir.binary("fmul", t, t)
    correction = ir.fma(ir.binary("fmul", square, t), polynomial(ir, square, _ARCTAN), rest)
    return copy_sign(ir, ir.binary("fadd", offset, ir.binary("fadd", correction, t)), x)


def arctan2(ir: IRBuilder, y: Value, x: Value) -> Value:
    """The angle of ``(x, y)``: the arctangent of a ratio of at most ``tan(pi / 8)``, plus a multiple of pi/4."""
    one, zero, limits = ir.double_like(1, x), ir.double_like(0, x), (2.0**-500, 2.0**500)
    exceptional = ir.binary("or", *(ir.binary("or", exceeds(ir, v, limits[1]), _is_below(ir, v, limits[0])) for v in (x, y)))
    a, b = (ir.select(exceptional, one, ir.intrinsic("fabs", v)) for v in (x, y))
    large = from_bits(ir, ir.intrinsic("umax", to_bits(ir, a), to_bits(ir, b)))
    small = from_bits(ir, ir.intrinsic("umin", to_bits(ir, a), to_bits(ir, b)))
    product = ir.binary("fmul", large, ir.double_like(_LOW, x))
    is_near = ir.compare("ult", to_bits(ir, small), to_bits(ir, product))
    numerator = ir.select(is_near, small, ir.binary("fsub", small, large))
    denominator = ir.select(is_near, large, ir.binary("fadd", small, large))
    t = ir.binary("fdiv", numerator, denominator)
    square = ir.binary("fmul", t, t)
    correction = ir.binary("fmul", ir.binary("fmul", square, t), polynomial(ir, square, _ARCTAN))
    # the angle is count * pi/4 plus or minus (t + correction); it is reflected where y is larger or x negative
    count = ir.select(is_near, zero, one)
    is_steep = ir.compare("ugt", to_bits(ir, b), to_bits(ir, a))
    count = ir.select(is_steep, ir.binary("fsub", ir.double_like(2, x), count), count)
    sign = ir.select(is_steep, ir.long_like(SIGN, x), ir.long_like(0, x))
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    count = ir.select(is_negative, ir.binary("fsub", ir.double_like(4, x), count), count)
    sign = ir.binary("xor", sign, ir.binary("and", to_bits(ir, x), ir.long_like(SIGN, x)))
    t, correction = (from_bits(ir, ir.binary("xor", to_bits(ir, v), sign)) for v in (t, correction))
    correction = ir.fma(count, ir.double_like(_QUARTER_PI_REST, x), correction)
    value = ir.fma(count, ir.double_like(_QUARTER_PI, x), ir.binary("fadd", t, correction))
    return call_libm_where(ir, "atan2", exceptional, copy_sign(ir, value, y), y, x)


def _arcsin_parts(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Return where ``|x| < 1/2``, and ``arcsin(t) = t + correction``: t is ``|x|`` there, else ``sqrt((1 - |x|) / 2)``."""
    a, is_near = ir.intrinsic("fabs", x), _is_below(ir, x, 0.5)
    half = ir.double_like(0.5, x)
    rest = ir.fma(ir.neg(a), half, half)  # negative if |x| > 1, so its root is invalid
    root = ir.intrinsic("sqrt", ir.select(is_near, half, rest))
    small = clamp_magnitude(ir, x, 0.5)  # the square of a large x would set the overflow flag
    square = ir.select(is_near, ir.binary("fmul", small, small), clamp_magnitude(ir, rest, 0.25))
    t = ir.select(is_near, a, root)
    correction = ir.binary("fmul", ir.binary("fmul", t, square), polynomial(ir, square, _ARCSIN))
    return is_near, t, correction


def arcsin(ir: IRBuilder, x: Value) -> Value:
    """``arcsin(t)``, or ``pi/2 - 2 arcsin(sqrt((1 - |x|) / 2))``."""
    is_near, t, correction = _arcsin_parts(ir, x)
    minus_two = ir.double_like(-2, x)
    far = ir.fma(t, minus_two, ir.double_like(_HALF_PI, x))
    rounding_error = ir.fma(t, minus_two, ir.binary("fsub", ir.double_like(_HALF_PI, x), far))
    rounding_error = ir.fma(correction, minus_two, ir.binary("fadd", rounding_error, ir.double_like(_HALF_PI_REST, x)))
    value = ir.select(is_near, ir.binary("fadd", t, correction), ir.binary("fadd", far, rounding_error))
    return ir.select(is_nan(ir, x), x, copy_sign(ir, value, x))


def arccos(ir: IRBuilder, x: Value) -> Value:
    """``pi/2 - arcsin(x)``, or ``2 arcsin(sqrt((1 - x) / 2))``, or for negative `x` pi minus that."""
    is_near, t, correction = _arcsin_parts(ir, x)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    sign = ir.binary("and", to_bits(ir, x), ir.long_like(SIGN, x))
    factor = ir.select(is_near, ir.double_like(-1, x), ir.double_like(2, x))
    factor = from_bits(ir, ir.binary("xor", to_bits(ir, factor), sign))
    quarters = ir.select(is_negative, ir.double_like(2, x), ir.double_like(0, x))
    quarters = ir.select(is_near, ir.double_like(1, x), quarters)
    start = ir.binary("fmul", quarters, ir.double_like(_HALF_PI, x))
    far = ir.fma(t, factor, start)
    rounding_error = ir.fma(t, factor, ir.binary("fsub", start, far))
    rest = ir.fma(quarters, ir.double_like(_HALF_PI_REST, x), rounding_error)
    return ir.binary("fadd", far, ir.fma(correction, factor, rest))
