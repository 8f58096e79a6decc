"""Powers of e and of two, and what is made of one of them: sigmoid, tanh, sinh, cosh."""

from __future__ import annotations

import math

from ..code import Code, Value
from .parts import SHIFT, bits, divided, exceeds, from_bits, is_nan, magnitude, polynomial, scale, with_sign, within
from .slow import redone

# log(2), and what is left of it, as doubles.
_LN2, _LN2_REST = 0.6931471805599453, 2.3190468138462996e-17

# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2, by Remez's algorithm, of degrees 9 and 10: exp(r) is right to 2**-57 and 2**-63.
_EXP = (
    0.5000000000000006, 0.1666666666666646, 0.0416666666665723, 0.008333333333480852, 0.001388888893359013,
    0.000198412695108373, 2.4801502655379815e-05, 2.755759913714016e-06, 2.762708525076234e-07, 2.4992024395597957e-08,
)  # fmt: skip
_EXPM1 = (
    0.5, 0.1666666666666668, 0.04166666666666627, 0.00833333333331994, 0.0013888888889073195, 0.00019841269890258866,
    2.4801586970126057e-05, 2.755724020842408e-06, 2.7557564351282647e-07, 2.5110378588281467e-08, 2.082818674735891e-09,
)  # fmt: skip
# (2**r - 1 - r log(2)) / r**2 for |r| <= 1/2, by Remez's algorithm: 2**r is right to 2**-64.
_EXP2 = (
    0.24022650695910072, 0.05550410866482164, 0.009618129107628343, 0.0013333558146402184, 0.00015403530393635293,
    1.525273384665016e-05, 1.3215486588905519e-06, 1.017805474135784e-07, 7.054979238836445e-09, 4.456191411021305e-10,
    2.561646613249924e-11,
)  # fmt: skip
# (sinh(x) - x) / x**3 as a polynomial of x**2, for |x| <= 1, by Remez's algorithm: right to 2**-63.
_SINH = (
    0.16666666666666669, 0.008333333333333139, 0.0001984126984143768, 2.7557319155335918e-06, 2.5052123398755902e-08,
    1.6057240323324926e-10, 7.759312793425616e-13,
)  # fmt: skip


def _reduced(code: Code, x: Value) -> tuple[Value, Value]:
    """A value whose lowest bits are `n`, and ``x - n log(2)``, for the `n` that makes it least."""
    shifted = code.fma(x, code.double(math.log2(math.e), x), code.double(SHIFT, x))
    less = code.negative(code.binary("fsub", shifted, code.double(SHIFT, x)))
    return shifted, code.fma(less, code.double(_LN2_REST, x), code.fma(less, code.double(_LN2, x), x))


def _scaled_twice(code: Code, x: Value, shifted: Value) -> Value:
    """``x * 2**n`` for any `n`, as `parts.scale`: two factors, since one might be too large or too small for a double."""
    n = code.binary("sub", bits(code, shifted), bits(code, code.double(SHIFT, x)))
    half = code.binary("ashr", n, code.long(1, x))
    for part in (half, code.binary("sub", n, half)):
        exponent = code.binary("shl", code.binary("add", part, code.long(1023, x)), code.long(52, x))
        x = code.binary("fmul", x, from_bits(code, exponent))
    return x


def _far(code: Code, x: Value, awkward: Value, power: Value, shifted: Value) -> Value:
    """``power * 2**n``, that may overflow or be subnormal where `awkward`; `x` itself where that is nan or infinity."""
    with code.unlikely(code.any(awkward), scale(code, power, shifted)) as found:
        made = _scaled_twice(code, power, shifted)
        found[0] = code.select(code.compare("ueq", x, code.double(math.inf, x)), x, made)
    return found[0]


def _near(code: Code, r: Value, coefficients: tuple[float, ...]) -> Value:
    """``exp(r) - 1`` for ``|r| <= log(2) / 2``."""
    return code.fma(code.binary("fmul", r, r), polynomial(code, r, coefficients), r)


def exp(code: Code, x: Value) -> Value:
    """``e**x``."""
    plus = code.compare("ueq", x, code.double(math.inf, x))  # overflows are told by a flag, infinity is not
    shifted, r = _reduced(code, with_sign(code, within(code, code.select(plus, code.double(0, x), x), 746), x))
    power = code.binary("fadd", _near(code, r, _EXP), code.double(1, x))
    return _far(code, x, exceeds(code, x, 708), power, shifted)


def exp_of_less(code: Code, x: Value) -> Value:
    """``e**x`` of a bounded `x`: in magnitude at most 708, and not nan."""
    shifted, r = _reduced(code, x)
    return scale(code, code.binary("fadd", _near(code, r, _EXP), code.double(1, x)), shifted)


def power_of(code: Code, x: Value, more: Value) -> Value:
    """``e**(x + more)`` of an `x` as for `exp_of_less`, and a number that is small beside its last digits."""
    shifted, r = _reduced(code, x)
    return scale(code, code.binary("fadd", _near(code, code.binary("fadd", r, more), _EXP), code.double(1, x)), shifted)


def times_power_of_square(code: Code, x: Value, factor: Value, more: Value) -> Value:
    """``(factor + more) * e**-(x**2)`` of an `x` of at most 28; what the square and the power lose is made good."""
    square, one = code.binary("fmul", x, x), code.double(1, x)
    lost = code.fma(x, x, code.negative(square))
    shifted, r = _reduced(code, code.negative(square))
    less = _near(code, code.binary("fsub", r, lost), _EXP)
    power = code.binary("fadd", less, one)
    rest = code.binary("fadd", code.binary("fsub", one, power), less)
    product = code.binary("fmul", power, factor)
    lost = code.fma(power, factor, code.negative(product))
    lost = code.fma(power, more, code.fma(rest, factor, lost))
    return _scaled_twice(code, code.binary("fadd", product, lost), shifted)


def exp2(code: Code, x: Value) -> Value:
    """``2**x``."""
    plus = code.compare("ueq", x, code.double(math.inf, x))
    y = with_sign(code, within(code, code.select(plus, code.double(0, x), x), 1080), x)
    shifted = code.binary("fadd", y, code.double(SHIFT, x))
    r = code.binary("fsub", y, code.binary("fsub", shifted, code.double(SHIFT, x)))
    slope = code.fma(r, polynomial(code, r, _EXP2), code.double(_LN2, x))
    return _far(code, x, exceeds(code, x, 1021), code.fma(r, slope, code.double(1, x)), shifted)


def _expm1_of_less(code: Code, x: Value) -> Value:
    """``e**x - 1`` of a bounded `x`, as `exp_of_less`: ``2**n - 1 + 2**n r``, almost exact, and the rest of the series."""
    shifted, r = _reduced(code, x)
    power = scale(code, code.double(1, x), shifted)
    rest = code.binary("fmul", code.binary("fmul", r, r), polynomial(code, r, _EXPM1))
    return code.fma(power, rest, code.fma(power, r, code.binary("fsub", power, code.double(1, x))))


def expm1(code: Code, x: Value) -> Value:
    """``e**x - 1``."""
    awkward = exceeds(code, x, 708)
    value = _expm1_of_less(code, code.select(awkward, code.double(0, x), x))
    return redone(code, "expm1", awkward, with_sign(code, value, x), x)


def tanh(code: Code, x: Value) -> Value:
    """``(e**2x - 1) / (e**2x + 1)``; one from 20 on."""
    a = within(code, x, 20)
    less = _expm1_of_less(code, code.binary("fadd", a, a))
    under = code.binary("fadd", less, code.double(2, x))
    lost = code.binary("fsub", less, code.binary("fsub", under, code.double(2, x)))  # if less is large it does not matter
    value = divided(code, less, under, lost)
    return code.select(is_nan(code, x), x, with_sign(code, value, x))


def sigmoid(code: Code, x: Value) -> Value:
    """``1 / (1 + e**-x)``."""
    e = exp(code, code.negative(code.intrinsic("fabs", x)))
    one = code.double(1, x)
    positive = code.compare("sge", bits(code, x), code.long(0, x))
    under = code.binary("fadd", one, e)
    lost = code.binary("fsub", e, code.binary("fsub", under, one))
    return divided(code, code.select(positive, one, e), under, lost)


def _two_powers(code: Code, x: Value) -> tuple[Value, Value, Value]:
    """Where `x` is awkward, and ``e**|x| / 2`` and ``e**-|x| / 2`` where it is not."""
    awkward = exceeds(code, x, 708)
    e = exp_of_less(code, code.select(awkward, code.double(0, x), code.intrinsic("fabs", x)))
    half = code.double(0.5, x)
    return awkward, code.binary("fmul", e, half), code.binary("fdiv", half, e)


def cosh(code: Code, x: Value) -> Value:
    """``(e**x + e**-x) / 2``."""
    awkward, large, small = _two_powers(code, x)
    return redone(code, "cosh", awkward, code.binary("fadd", large, small), x)


def sinh(code: Code, x: Value) -> Value:
    """``(e**x - e**-x) / 2``, and a polynomial below one."""
    awkward, large, small = _two_powers(code, x)
    a = within(code, x, 1)
    square = code.binary("fmul", a, a)
    near = code.fma(code.binary("fmul", square, a), polynomial(code, square, _SINH), a)
    below = code.compare("ult", magnitude(code, x), bits(code, code.double(1, x)))
    value = code.select(below, near, code.binary("fsub", large, small))
    return redone(code, "sinh", awkward, with_sign(code, value, x), x)
