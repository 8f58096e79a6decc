"""The inverse functions of the trigonometric ones."""

from __future__ import annotations

from ..code import Code, Value
from .parts import SIGN, bits, bits_of, exceeds, from_bits, is_nan, magnitude, polynomial, with_sign, within
from .slow import redone

# pi / 4 and pi / 2, and what is left of them as doubles.
_EIGHTH, _EIGHTH_REST = 0.7853981633974483, 3.061616997868383e-17
_QUARTER, _QUARTER_REST = 1.5707963267948966, 6.123233995736766e-17

# fdlibm, s_atan.c: (atan(t) - t) / t**3 as a polynomial of t**2, for |t| < 7/16.
_ARCTAN = (
    -3.33333333333329318027e-01, 1.99999999998764832476e-01, -1.42857142725034663711e-01, 1.11111104054623557880e-01,
    -9.09088713343650656196e-02, 7.69187620504482999495e-02, -6.66107313738753120669e-02, 5.83357013379057348645e-02,
    -4.97687799461593236017e-02, 3.65315727442169155270e-02, -1.62858201153657823623e-02,
)  # fmt: skip
# (arcsin(x) - x) / x**3 as a polynomial of x**2, for |x| <= 1/2, by Remez's algorithm: right to 2**-59 of x.
_ARCSIN = (
    0.16666666666666766, 0.07499999999969421, 0.04464285717596749, 0.030381942641012277, 0.022372216912416712,
    0.017351576733446766, 0.013981251239970637, 0.011395329099079766, 0.010800650173752563, 0.0036282244566048266,
    0.021900359749640923, -0.021275767426991433, 0.03280393661135683,
)  # fmt: skip

_LOW, _HIGH = 0.4142135623730951, 2.414213562373095  # the tangents of pi / 8 and 3 pi / 8


def _below(code: Code, x: Value, limit: float) -> Value:
    """Where ``|x| < limit``."""
    return code.compare("ult", magnitude(code, x), code.long(bits_of(limit), x))


def arctan(code: Code, x: Value) -> Value:
    """``arctan(t)``, where t is |x|, or with pi/4 more (x - 1) / (x + 1), or with pi/2 more -1 / x: within tan(pi / 8)."""
    a, one, zero = code.intrinsic("fabs", x), code.double(1, x), code.double(0, x)
    low, high = _below(code, x, _LOW), exceeds(code, x, _HIGH)
    over = code.select(low, a, code.select(high, code.double(-1, x), code.binary("fsub", a, one)))
    under = code.select(low, one, code.select(high, a, code.binary("fadd", a, one)))
    t = code.binary("fdiv", over, under)
    turn = code.select(low, zero, code.select(high, code.double(_QUARTER, x), code.double(_EIGHTH, x)))
    rest = code.select(low, zero, code.select(high, code.double(_QUARTER_REST, x), code.double(_EIGHTH_REST, x)))
    square = code.binary("fmul", t, t)
    more = code.fma(code.binary("fmul", square, t), polynomial(code, square, _ARCTAN), rest)
    return with_sign(code, code.binary("fadd", turn, code.binary("fadd", more, t)), x)


def arctan2(code: Code, y: Value, x: Value) -> Value:
    """The angle of ``(x, y)``: that of the smaller by the larger magnitude, and as many eighths of a turn as it takes."""
    one, zero, limits = code.double(1, x), code.double(0, x), (2.0**-500, 2.0**500)
    awkward = code.binary("or", *(code.binary("or", exceeds(code, v, limits[1]), _below(code, v, limits[0])) for v in (x, y)))
    a, b = (code.select(awkward, one, code.intrinsic("fabs", v)) for v in (x, y))
    large = from_bits(code, code.intrinsic("umax", bits(code, a), bits(code, b)))
    small = from_bits(code, code.intrinsic("umin", bits(code, a), bits(code, b)))
    product = code.binary("fmul", large, code.double(_LOW, x))
    near = code.compare("ult", bits(code, small), bits(code, product))
    over = code.select(near, small, code.binary("fsub", small, large))
    under = code.select(near, large, code.binary("fadd", small, large))
    t = code.binary("fdiv", over, under)
    square = code.binary("fmul", t, t)
    more = code.binary("fmul", code.binary("fmul", square, t), polynomial(code, square, _ARCTAN))
    # the angle is so many eighths of a turn, and t + more, or less that: it is turned about where y is larger, or x negative
    count = code.select(near, zero, one)
    steep = code.compare("ugt", bits(code, b), bits(code, a))
    count = code.select(steep, code.binary("fsub", code.double(2, x), count), count)
    turn = code.select(steep, code.long(SIGN, x), code.long(0, x))
    left = code.compare("slt", bits(code, x), code.long(0, x))
    count = code.select(left, code.binary("fsub", code.double(4, x), count), count)
    turn = code.binary("xor", turn, code.binary("and", bits(code, x), code.long(SIGN, x)))
    t, more = (from_bits(code, code.binary("xor", bits(code, v), turn)) for v in (t, more))
    more = code.fma(count, code.double(_EIGHTH_REST, x), more)
    value = code.fma(count, code.double(_EIGHTH, x), code.binary("fadd", t, more))
    return redone(code, "atan2", awkward, with_sign(code, value, y), y, x)


def _half(code: Code, x: Value) -> tuple[Value, Value, Value]:
    """Where ``|x| < 1/2``; `t` and `more`: ``arcsin(t) = t + more``, where t is ``|x|`` there, else ``sqrt((1 - |x|) / 2)``."""
    a, near = code.intrinsic("fabs", x), _below(code, x, 0.5)
    half = code.double(0.5, x)
    rest = code.fma(code.negative(a), half, half)  # negative, and its root an invalid operand, if |x| > 1
    root = code.intrinsic("sqrt", code.select(near, half, rest))
    small = within(code, x, 0.5)  # no square of a large x, that would tell of an overflow
    square = code.select(near, code.binary("fmul", small, small), within(code, rest, 0.25))
    t = code.select(near, a, root)
    more = code.binary("fmul", code.binary("fmul", t, square), polynomial(code, square, _ARCSIN))
    return near, t, more


def arcsin(code: Code, x: Value) -> Value:
    """``arcsin(t)``, or ``pi/2 - 2 arcsin(sqrt((1 - |x|) / 2))``."""
    near, t, more = _half(code, x)
    two = code.double(-2, x)
    far = code.fma(t, two, code.double(_QUARTER, x))
    lost = code.fma(t, two, code.binary("fsub", code.double(_QUARTER, x), far))
    lost = code.fma(more, two, code.binary("fadd", lost, code.double(_QUARTER_REST, x)))
    value = code.select(near, code.binary("fadd", t, more), code.binary("fadd", far, lost))
    return code.select(is_nan(code, x), x, with_sign(code, value, x))


def arccos(code: Code, x: Value) -> Value:
    """``pi/2 - arcsin(x)``, or ``2 arcsin(sqrt((1 - x) / 2))``, or with a negative `x` what is left of pi."""
    near, t, more = _half(code, x)
    left = code.compare("slt", bits(code, x), code.long(0, x))
    sign = code.binary("and", bits(code, x), code.long(SIGN, x))
    factor = code.select(near, code.double(-1, x), code.double(2, x))
    factor = from_bits(code, code.binary("xor", bits(code, factor), sign))
    turn = code.select(left, code.double(2, x), code.double(0, x))
    turn = code.select(near, code.double(1, x), turn)  # quarters
    start = code.binary("fmul", turn, code.double(_QUARTER, x))
    far = code.fma(t, factor, start)
    lost = code.fma(t, factor, code.binary("fsub", start, far))
    rest = code.fma(turn, code.double(_QUARTER_REST, x), lost)
    return code.binary("fadd", far, code.fma(more, factor, rest))
