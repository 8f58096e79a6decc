"""Exponentials, and functions of an exponential: sigmoid, tanh, sinh, cosh."""

from __future__ import annotations

import math

from ..ir_builder import IRBuilder, Value
from .float_primitives import (
    SHIFT,
    call_libm_where,
    clamp_magnitude,
    copy_sign,
    divide,
    exceeds,
    from_bits,
    is_nan,
    magnitude,
    polynomial,
    scale_by_power_of_two,
    to_bits,
)

# log(2) as a sum of two doubles.
_LN2, _LN2_REST = 0.6931471805599453, 2.3190468138462996e-17

# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2, by Remez's algorithm of degrees 9 and 10: exp(r) accurate to 2**-57 and 2**-63.
_EXP = (
    0.5000000000000006, 0.1666666666666646, 0.0416666666665723, 0.008333333333480852, 0.001388888893359013,
    0.000198412695108373, 2.4801502655379815e-05, 2.755759913714016e-06, 2.762708525076234e-07, 2.4992024395597957e-08,
)  # fmt: skip
_EXPM1 = (
    0.5, 0.1666666666666668, 0.04166666666666627, 0.00833333333331994, 0.0013888888889073195, 0.00019841269890258866,
    2.4801586970126057e-05, 2.755724020842408e-06, 2.7557564351282647e-07, 2.5110378588281467e-08, 2.082818674735891e-09,
)  # fmt: skip
# (2**r - 1 - r log(2)) / r**2 for |r| <= 1/2, by Remez's algorithm: 2**r is accurate to 2**-64.
_EXP2 = (
    0.24022650695910072, 0.05550410866482164, 0.009618129107628343, 0.0013333558146402184, 0.00015403530393635293,
    1.525273384665016e-05, 1.3215486588905519e-06, 1.017805474135784e-07, 7.054979238836445e-09, 4.456191411021305e-10,
    2.561646613249924e-11,
)  # fmt: skip
# (sinh(x) - x) / x**3 as a polynomial of x**2, for |x| <= 1, by Remez's algorithm: accurate to 2**-63.
_SINH = (
    0.16666666666666669, 0.008333333333333139, 0.0001984126984143768, 2.7557319155335918e-06, 2.5052123398755902e-08,
    1.6057240323324926e-10, 7.759312793425616e-13,
)  # fmt: skip


def _reduce_argument(ir: IRBuilder, x: Value) -> tuple[Value, Value]:
    """Return a value whose lowest bits are `n`, and ``x - n log(2)``, with the `n` that minimizes it."""
    shifted = ir.fma(x, ir.double_like(math.log2(math.e), x), ir.double_like(SHIFT, x))
    minus_n = ir.neg(ir.binary("fsub", shifted, ir.double_like(SHIFT, x)))
    return shifted, ir.fma(minus_n, ir.double_like(_LN2_REST, x), ir.fma(minus_n, ir.double_like(_LN2, x), x))


def _scale_in_two_steps(ir: IRBuilder, x: Value, shifted: Value) -> Value:
    """Return ``x * 2**n`` for any `n`, by two factors, because one might be out of range."""
    n = ir.binary("sub", to_bits(ir, shifted), to_bits(ir, ir.double_like(SHIFT, x)))
    half = ir.binary("ashr", n, ir.long_like(1, x))
    for part in (half, ir.binary("sub", n, half)):
        exponent = ir.binary("shl", ir.binary("add", part, ir.long_like(1023, x)), ir.long_like(52, x))
        x = ir.binary("fmul", x, from_bits(ir, exponent))
    return x


def _scale_any(ir: IRBuilder, x: Value, exceptional: Value, power: Value, shifted: Value) -> Value:
    """Return ``power * 2**n``, which may overflow or be subnormal where `exceptional`; or `x` where `x` is inf or nan."""
    with ir.branch_if_unlikely(ir.any(exceptional), scale_by_power_of_two(ir, power, shifted)) as replacements:
        product = _scale_in_two_steps(ir, power, shifted)
        replacements[0] = ir.select(ir.compare("ueq", x, ir.double_like(math.inf, x)), x, product)
    return replacements[0]


def _expm1_reduced(ir: IRBuilder, r: Value, coefficients: tuple[float, ...]) -> Value:
    """Return ``exp(r) - 1`` for ``|r| <= log(2) / 2``."""
    return ir.fma(ir.binary("fmul", r, r), polynomial(ir, r, coefficients), r)


def exp(ir: IRBuilder, x: Value) -> Value:
    """``e**x``."""
    is_inf_or_nan = ir.compare("ueq", x, ir.double_like(math.inf, x))  # an overflow sets a flag, infinity does not
    finite = ir.select(is_inf_or_nan, ir.double_like(0, x), x)
    shifted, r = _reduce_argument(ir, copy_sign(ir, clamp_magnitude(ir, finite, 746), x))
    power = ir.binary("fadd", _expm1_reduced(ir, r, _EXP), ir.double_like(1, x))
    return _scale_any(ir, x, exceeds(ir, x, 708), power, shifted)


def exp_bounded(ir: IRBuilder, x: Value) -> Value:
    """Return ``e**x`` of ``|x| <= 708``, not nan."""
    shifted, r = _reduce_argument(ir, x)
    return scale_by_power_of_two(ir, ir.binary("fadd", _expm1_reduced(ir, r, _EXP), ir.double_like(1, x)), shifted)


def exp_of_pair(ir: IRBuilder, x: Value, correction: Value) -> Value:
    """Return ``e**(x + correction)`` of a bounded `x` and a small correction."""
    shifted, r = _reduce_argument(ir, x)
    return scale_by_power_of_two(
        ir, ir.binary("fadd", _expm1_reduced(ir, ir.binary("fadd", r, correction), _EXP), ir.double_like(1, x)), shifted
    )


def times_exp_of_square(ir: IRBuilder, x: Value, factor: Value, correction: Value, is_halved: bool = False) -> Value:
    """Return ``(factor + correction) * e**-(x**2)`` of ``|x| <= 28``, corrected for rounding errors.

    If `is_halved`, the exponent is ``-(x**2) / 2``.
    """
    square, one = ir.binary("fmul", x, x), ir.double_like(1, x)
    rounding_error = ir.fma(x, x, ir.neg(square))
    if is_halved:
        square, rounding_error = (ir.binary("fmul", part, ir.double_like(0.5, x)) for part in (square, rounding_error))
    shifted, r = _reduce_argument(ir, ir.neg(square))
    exp_minus_one = _expm1_reduced(ir, ir.binary("fsub", r, rounding_error), _EXP)
    power = ir.binary("fadd", exp_minus_one, one)
    rest = ir.binary("fadd", ir.binary("fsub", one, power), exp_minus_one)
    product = ir.binary("fmul", power, factor)
    rounding_error = ir.fma(power, factor, ir.neg(product))
    rounding_error = ir.fma(power, correction, ir.fma(rest, factor, rounding_error))
    return _scale_in_two_steps(ir, ir.binary("fadd", product, rounding_error), shifted)


def exp2(ir: IRBuilder, x: Value) -> Value:
    """``2**x``."""
    is_inf_or_nan = ir.compare("ueq", x, ir.double_like(math.inf, x))
    y = copy_sign(ir, clamp_magnitude(ir, ir.select(is_inf_or_nan, ir.double_like(0, x), x), 1080), x)
    shifted = ir.binary("fadd", y, ir.double_like(SHIFT, x))
    r = ir.binary("fsub", y, ir.binary("fsub", shifted, ir.double_like(SHIFT, x)))
    slope = ir.fma(r, polynomial(ir, r, _EXP2), ir.double_like(_LN2, x))
    return _scale_any(ir, x, exceeds(ir, x, 1021), ir.fma(r, slope, ir.double_like(1, x)), shifted)


def _expm1_bounded(ir: IRBuilder, x: Value) -> Value:
    """Return ``e**x - 1`` of a bounded `x`: ``2**n - 1 + 2**n r``, almost exact, plus the rest of the series."""
    shifted, r = _reduce_argument(ir, x)
    power = scale_by_power_of_two(ir, ir.double_like(1, x), shifted)
    rest = ir.binary("fmul", ir.binary("fmul", r, r), polynomial(ir, r, _EXPM1))
    return ir.fma(power, rest, ir.fma(power, r, ir.binary("fsub", power, ir.double_like(1, x))))


def expm1(ir: IRBuilder, x: Value) -> Value:
    """``e**x - 1``."""
    exceptional = exceeds(ir, x, 708)
    value = _expm1_bounded(ir, ir.select(exceptional, ir.double_like(0, x), x))
    return call_libm_where(ir, "expm1", exceptional, copy_sign(ir, value, x), x)


def tanh(ir: IRBuilder, x: Value) -> Value:
    """``(e**2x - 1) / (e**2x + 1)``; one from 20 on."""
    a, two = clamp_magnitude(ir, x, 20), ir.double_like(2, x)
    exp_minus_one = _expm1_bounded(ir, ir.binary("fadd", a, a))
    denominator = ir.binary("fadd", exp_minus_one, two)
    rounding_error = ir.binary("fsub", exp_minus_one, ir.binary("fsub", denominator, two))  # negligible if the first is large
    value = divide(ir, exp_minus_one, denominator, rounding_error)
    return ir.select(is_nan(ir, x), x, copy_sign(ir, value, x))


def sigmoid(ir: IRBuilder, x: Value) -> Value:
    """``1 / (1 + e**-x)``."""
    e = exp(ir, ir.neg(ir.intrinsic("fabs", x)))
    one = ir.double_like(1, x)
    is_positive = ir.compare("sge", to_bits(ir, x), ir.long_like(0, x))
    denominator = ir.binary("fadd", one, e)
    rounding_error = ir.binary("fsub", e, ir.binary("fsub", denominator, one))
    return divide(ir, ir.select(is_positive, one, e), denominator, rounding_error)


def _half_exponentials(ir: IRBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Return where `x` is exceptional, and ``e**|x| / 2`` and ``e**-|x| / 2``."""
    exceptional = exceeds(ir, x, 708)
    e = exp_bounded(ir, ir.select(exceptional, ir.double_like(0, x), ir.intrinsic("fabs", x)))
    half = ir.double_like(0.5, x)
    return exceptional, ir.binary("fmul", e, half), ir.binary("fdiv", half, e)


def cosh(ir: IRBuilder, x: Value) -> Value:
    """``(e**x + e**-x) / 2``."""
    exceptional, large, small = _half_exponentials(ir, x)
    return call_libm_where(ir, "cosh", exceptional, ir.binary("fadd", large, small), x)


def sinh(ir: IRBuilder, x: Value) -> Value:
    """``(e**x - e**-x) / 2``, and a polynomial below one."""
    exceptional, large, small = _half_exponentials(ir, x)
    a = clamp_magnitude(ir, x, 1)
    square = ir.binary("fmul", a, a)
    near = ir.fma(ir.binary("fmul", square, a), polynomial(ir, square, _SINH), a)
    is_below = ir.compare("ult", magnitude(ir, x), to_bits(ir, ir.double_like(1, x)))
    value = ir.select(is_below, near, ir.binary("fsub", large, small))
    return call_libm_where(ir, "sinh", exceptional, copy_sign(ir, value, x), x)
