"""The error function and its complement, and the normal distribution function and its logarithm."""

from __future__ import annotations

import math
import sys

from ..ir_builder import IRBuilder, Value
from .exponentials import exp_bounded, times_exp_of_square
from .float_primitives import Pair, bits_of, clamp_magnitude, copy_sign, exceeds, is_nan, magnitude, polynomial, ratio, to_bits
from .logarithms import combine_log, log_of_sum, split_exponent

# By Remez's algorithm: erf(x) / x - 1 as a polynomial of x**2, for |x| <= 1, right to 2**-57 of erf(x);
_ERF = (
    0.12837916709551256, -0.3761263890318352, 0.112837916709442, -0.026866170643113415, 0.005223977606130842,
    -0.0008548325929766244, 0.0001205529358693695, -1.4924712439534814e-05, 1.6447132699786621e-06, -1.6206318752969208e-07,
    1.3710988704190523e-08, -7.779462971761597e-10,
)  # fmt: skip
# log(1 - erf(x)) for 1 <= x <= 6, so that erf(x) is right to 2**-59;
_LOG_ERFC = (
    -1.7962477457410596e-07, -1.1283773292158341, -0.6366284891568282, -0.10274725138377, 0.019078153343988016,
    0.0002804924514626529, -0.0017690052826499153, 0.0006411769755730554, -4.482557293167891e-05, -7.036481948547494e-05,
    4.503652456764111e-05, -1.6513624954573774e-05, 4.326953512960783e-06, -8.505555719018416e-07, 1.257020651142033e-07,
    -1.3626384296271018e-08, 1.0256767527430516e-09, -4.795925781849726e-11, 1.0495970869229545e-12,
)  # fmt: skip
# (1 + 2 x) erfc(x) exp(x**2) as a polynomial of (x - 4) / (x + 4), for 1/2 <= x <= 28, right to 2**-60.
_ERFCX = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102619873, 0.06809705425468865, -0.10103906603631245,
    0.0937328349985266, -0.06633036581201905, 0.03716751553393258, -0.016197734060338396, 0.005031970017215849,
    -0.0007577732694226337, -0.00019925695761291106, 0.00015062158625397362, -2.4398086525510544e-05, -1.1221768762697152e-05,
    5.706562567282981e-06, 2.933427200618651e-07, -8.196051320472183e-07, 7.512809723478645e-08, 1.0333363494591405e-07,
    -1.8201628017727847e-08, -9.678471601430679e-09, 1.906107425158638e-09,
)  # fmt: skip


def _erf_slope(ir: IRBuilder, x: Value, limit: float) -> tuple[Value, Value]:
    """Return where ``|x|`` is below a limit, and there ``erf(x) / x - 1``."""
    a = clamp_magnitude(ir, x, limit)
    square = ir.binary("fmul", a, a)
    is_near = ir.compare("ult", magnitude(ir, x), ir.long_like(bits_of(limit), x))
    return is_near, _polynomial_with_exact_constant(ir, square, _ERF)


def _polynomial_with_exact_constant(ir: IRBuilder, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Evaluate a polynomial whose constant is added last, to reduce rounding errors."""
    return ir.fma(x, polynomial(ir, x, coefficients[1:]), ir.double_like(coefficients[0], x))


def erf(ir: IRBuilder, x: Value) -> Value:
    """A polynomial below one, beyond it ``1 - exp(polynomial)``."""
    is_near, slope = _erf_slope(ir, x, 1)
    a = clamp_magnitude(ir, x, 6)
    rest = exp_bounded(ir, polynomial(ir, a, _LOG_ERFC))
    value = ir.select(is_near, ir.fma(a, slope, a), ir.binary("fsub", ir.double_like(1, x), rest))
    return ir.select(is_nan(ir, x), x, copy_sign(ir, value, x))


def _scaled_tail(ir: IRBuilder, a: Value) -> Pair:
    """Return ``erfc(a) exp(a**2)`` for ``1/2 <= a <= 28`` in two parts: a polynomial by ``1 + 2 a``."""
    one, four = ir.double_like(1, a), ir.double_like(4, a)
    t = ir.binary("fdiv", ir.binary("fsub", a, four), ir.binary("fadd", a, four))
    numerator = _polynomial_with_exact_constant(ir, t, _ERFCX)
    twice = ir.binary("fadd", a, a)
    denominator = ir.binary("fadd", twice, one)
    rounding_error = ir.binary("fsub", one, ir.binary("fsub", denominator, twice))
    return ratio(ir, numerator, denominator, rounding_error)


def _erfc_tail(ir: IRBuilder, a: Value) -> Value:
    """Return ``erfc(a)`` from 3/4 on."""
    return times_exp_of_square(ir, a, *_scaled_tail(ir, a))


def erfc(ir: IRBuilder, x: Value) -> Value:
    """``1 - erf(x)`` between -3/4 and 3/4, beyond it `_erfc_tail`, or two minus that for negative `x`."""
    is_near, slope = _erf_slope(ir, x, 0.75)
    a = copy_sign(ir, clamp_magnitude(ir, x, 0.75), x)
    near = ir.fma(ir.neg(a), slope, ir.binary("fsub", ir.double_like(1, x), a))
    far = _erfc_tail(ir, clamp_magnitude(ir, x, 28))
    negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    far = ir.select(negative, ir.binary("fsub", ir.double_like(2, x), far), far)
    return ir.select(is_nan(ir, x), x, ir.select(is_near, near, far))


_ROOT_HALF = math.sqrt(0.5)
_NDTR_NEAR = 0.75
_FAR = 28  # where the polynomial of `_scaled_tail` ends, before the factor of sqrt(2)
# z erfc(z) exp(z**2) sqrt(pi) as a polynomial of 1 / z**2, by its asymptotic series (DLMF 7.12.1).
_FAR_TAIL = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125)


def ndtr(ir: IRBuilder, x: Value) -> Value:
    """``(1 + erf(x / sqrt(2))) / 2`` near zero, beyond half of `erfc`, or one minus that for positive `x`."""
    half = ir.double_like(0.5, x)
    near = copy_sign(ir, ir.binary("fmul", clamp_magnitude(ir, x, _NDTR_NEAR), ir.double_like(_ROOT_HALF, x)), x)
    _, slope = _erf_slope(ir, near, 0.75)
    near = ir.fma(half, ir.fma(near, slope, near), half)
    a = clamp_magnitude(ir, x, 39.5)
    high, low = _scaled_tail(ir, ir.binary("fmul", a, ir.double_like(_ROOT_HALF, x)))
    far = times_exp_of_square(ir, a, ir.binary("fmul", high, half), ir.binary("fmul", low, half), is_halved=True)
    negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    far = ir.select(negative, far, ir.binary("fsub", ir.double_like(1, x), far))
    is_near = ir.compare("ult", magnitude(ir, x), ir.long_like(bits_of(_NDTR_NEAR), x))
    return ir.select(is_nan(ir, x), x, ir.select(is_near, near, far))


def log_ndtr(ir: IRBuilder, x: Value) -> Value:
    """``log(1 - ndtr(-x))`` of positive `x`, ``log(ndtr(x) exp(x**2 / 2)) - x**2 / 2`` below -1, else ``log(ndtr(x))``."""
    one, half = ir.double_like(1, x), ir.double_like(0.5, x)
    largest = math.sqrt(2) * math.sqrt(sys.float_info.max) * (1 - 2.0**-50)  # whose square, halved, is finite
    is_below = ir.compare("sgt", magnitude(ir, x), ir.long_like(bits_of(1), x))
    negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    is_below = ir.binary("and", is_below, negative)
    tail = ndtr(ir, ir.neg(ir.intrinsic("fabs", ir.select(is_below, one, x))))
    total = ir.binary("fsub", one, tail)
    rounding_error = ir.binary("fsub", ir.binary("fsub", one, total), tail)
    total = ir.select(negative, tail, total)
    above = log_of_sum(ir, total, ir.select(negative, ir.double_like(0, x), rounding_error))
    above = ir.neg(ir.intrinsic("fabs", above))  # -0 of large `x`
    a = ir.select(is_below, clamp_magnitude(ir, x, largest), one)
    z = ir.binary("fmul", a, ir.double_like(_ROOT_HALF, x))
    near, _ = _scaled_tail(ir, clamp_magnitude(ir, z, _FAR))
    inverse = ir.binary("fdiv", one, z)
    far = polynomial(ir, ir.binary("fmul", inverse, inverse), _FAR_TAIL)
    far = ir.binary("fmul", far, ir.binary("fmul", inverse, ir.double_like(1 / math.sqrt(math.pi), x)))
    scaled = ir.select(exceeds(ir, z, _FAR), far, near)
    _, k, f = split_exponent(ir, ir.binary("fmul", scaled, half))
    below = ir.fma(ir.binary("fmul", a, ir.neg(half)), a, combine_log(ir, k, f))
    is_infinite = ir.binary("and", negative, exceeds(ir, x, largest))
    value = ir.select(is_infinite, ir.double_like(-math.inf, x), ir.select(is_below, below, above))
    return ir.select(is_nan(ir, x), x, value)
