"""Functions of floats, computed in double to some 30 bits, which is enough for a float result.

Intermediates neither overflow nor are subnormal; overflow is signaled when the result is rounded to float. The polynomials are
by Remez's algorithm.
"""

from __future__ import annotations

import math

from ..ir_builder import IRBuilder, Value
from . import error_function, gamma_functions, logarithms
from .float_primitives import (
    SHIFT,
    bits_of,
    call_libm_where,
    clamp_magnitude,
    copy_sign,
    exceeds,
    from_bits,
    is_nan,
    polynomial,
    scale_by_power_of_two,
    to_bits,
)
from .logarithms import combine_log, needs_libm_log, split_exponent
from .powers import sign_of_power
from .trigonometry import reduce_to_quadrant, select_by_quadrant

# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2: exp(r) - 1 is accurate to 2**-31.
_EXP = (
    0.5000000044636739, 0.16666666815543568, 0.04166635922554659, 0.008333273295417389, 0.0013940748287628226,
    0.00019914075087182334,
)  # fmt: skip
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 as polynomials of r**2, for |r| <= pi / 4: accurate to 2**-28 and 2**-33.
_SIN = (-0.16666654992819302, 0.008332180158322775, -0.00019517492273395847)
_COS = (0.04166664710673759, -0.001388737722004716, 2.4439400117048754e-05)
# (log(1 + f) - f) / f**2 for sqrt(1/2) <= 1 + f <= sqrt(2): log(1 + f) is accurate to 2**-30.
_LOG = (
    -0.5000000000885509, 0.33333311097704926, -0.24999985847143194, 0.20002190809882153, -0.16669253379728313,
    0.14219275252875188, -0.1238468237361146, 0.11869260989727567, -0.11786580811767765, 0.06919179578050251,
)  # fmt: skip


_LARGEST = 4e36  # beyond, x log(x) is not a finite float


def _reduce_argument(ir: IRBuilder, x: Value) -> tuple[Value, Value]:
    """Return a value whose lowest bits are `n`, and ``exp(r) - 1``, for the `n` that minimizes ``r = x - n log(2)``."""
    shifted = ir.fma(x, ir.double_like(math.log2(math.e), x), ir.double_like(SHIFT, x))
    n = ir.binary("fsub", shifted, ir.double_like(SHIFT, x))
    r = ir.fma(ir.neg(n), ir.double_like(math.log(2), x), x)
    return shifted, ir.fma(ir.binary("fmul", r, r), polynomial(ir, r, _EXP), r)


def _exp_bounded(ir: IRBuilder, x: Value) -> Value:
    """Return ``e**x`` of ``|x| <= 700``."""
    shifted, exp_minus_one = _reduce_argument(ir, x)
    return scale_by_power_of_two(ir, ir.binary("fadd", exp_minus_one, ir.double_like(1, x)), shifted)


def _expm1_bounded(ir: IRBuilder, x: Value) -> Value:
    """Return ``e**x - 1`` of ``|x| <= 700``."""
    shifted, exp_minus_one = _reduce_argument(ir, x)
    power = scale_by_power_of_two(ir, ir.double_like(1, x), shifted)
    return ir.fma(power, exp_minus_one, ir.binary("fsub", power, ir.double_like(1, x)))


def _clamp_exponent(ir: IRBuilder, x: Value) -> tuple[Value, Value]:
    """Return where `x` is nan or infinity, and `x` clamped to the exponents of floats.

    Exceptional operands become zero, because LLVM rounds to float before it selects, which would signal an overflow.
    """
    is_inf_or_nan = ir.compare("ueq", x, ir.double_like(math.inf, x))
    return is_inf_or_nan, copy_sign(ir, clamp_magnitude(ir, ir.select(is_inf_or_nan, ir.double_like(0, x), x), 150), x)


def exp(ir: IRBuilder, x: Value) -> Value:
    """``e**x``."""
    is_inf_or_nan, bounded = _clamp_exponent(ir, x)
    return ir.select(is_inf_or_nan, x, _exp_bounded(ir, bounded))


def expm1(ir: IRBuilder, x: Value) -> Value:
    """``e**x - 1``."""
    is_inf_or_nan, bounded = _clamp_exponent(ir, x)
    return ir.select(is_inf_or_nan, x, copy_sign(ir, _expm1_bounded(ir, bounded), x))


def tanh(ir: IRBuilder, x: Value) -> Value:
    """``(e**2x - 1) / (e**2x + 1)``; one from 10 on."""
    a = clamp_magnitude(ir, x, 10)
    exp_minus_one = _expm1_bounded(ir, ir.binary("fadd", a, a))
    value = ir.binary("fdiv", exp_minus_one, ir.binary("fadd", exp_minus_one, ir.double_like(2, x)))
    return ir.select(is_nan(ir, x), x, copy_sign(ir, value, x))


def _exp_of_minus(ir: IRBuilder, x: Value) -> tuple[Value, Value]:
    """Return where `x` is positive, and ``e**-|x|``."""
    e = _exp_bounded(ir, ir.neg(clamp_magnitude(ir, x, 150)))
    return ir.compare("sge", to_bits(ir, x), ir.long_like(0, x)), e


def sigmoid(ir: IRBuilder, x: Value) -> Value:
    """``1 / (1 + e**-x)``."""
    is_positive, e = _exp_of_minus(ir, x)
    one = ir.double_like(1, x)
    value = ir.binary("fdiv", ir.select(is_positive, one, e), ir.binary("fadd", one, e))
    return ir.select(is_nan(ir, x), x, value)


def softplus(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + e**x)``."""
    is_positive, e = _exp_of_minus(ir, x)
    start = ir.select(ir.binary("or", is_positive, is_nan(ir, x)), x, ir.double_like(0, x))
    return ir.binary("fadd", start, _log1p_of(ir, e))


def _combine_log(ir: IRBuilder, k: Value, f: Value) -> Value:
    """Return ``k log(2) + log(1 + f)``."""
    near = ir.fma(ir.binary("fmul", f, f), polynomial(ir, f, _LOG), f)
    return ir.fma(k, ir.double_like(math.log(2), k), near)


def log(ir: IRBuilder, x: Value) -> Value:
    """The natural logarithm."""
    _, k, f = split_exponent(ir, x)
    return call_libm_where(ir, "log", needs_libm_log(ir, x), _combine_log(ir, k, f), x)


def _log1p_of(ir: IRBuilder, x: Value) -> Value:
    """Return ``log(1 + x)`` of ``x > -1``, corrected for the rounding error of the sum."""
    one = ir.double_like(1, x)
    total = ir.binary("fadd", x, one)
    exponent, k, f = split_exponent(ir, total)
    power = ir.binary("shl", ir.binary("sub", ir.long_like(2046, x), exponent), ir.long_like(52, x))
    rounding_error = ir.binary("fsub", x, ir.binary("fsub", total, one))
    return _combine_log(ir, k, ir.fma(rounding_error, from_bits(ir, power), f))


def log1p(ir: IRBuilder, x: Value) -> Value:
    """``log(1 + x)``."""
    exceptional = needs_libm_log(ir, ir.binary("fadd", x, ir.double_like(1, x)))
    value = _log1p_of(ir, ir.select(exceptional, ir.double_like(0, x), x))
    return call_libm_where(ir, "log1p", exceptional, copy_sign(ir, value, x), x)


def _sine_of_quadrant(ir: IRBuilder, x: Value, name: str, quarters: int) -> Value:
    """The sine, shifted by some quarter turns."""
    exceptional, n, r = reduce_to_quadrant(ir, x)
    square = ir.binary("fmul", r, r)
    sine = ir.fma(ir.binary("fmul", r, square), polynomial(ir, square, _SIN), r)
    near = ir.fma(square, ir.double_like(-0.5, x), ir.double_like(1, x))
    cosine = ir.fma(ir.binary("fmul", square, square), polynomial(ir, square, _COS), near)
    return call_libm_where(ir, name, exceptional, select_by_quadrant(ir, x, n, quarters, sine, cosine), x)


def sin(ir: IRBuilder, x: Value) -> Value:
    """The sine."""
    return _sine_of_quadrant(ir, x, "sin", 0)


def cos(ir: IRBuilder, x: Value) -> Value:
    """The cosine."""
    return _sine_of_quadrant(ir, x, "cos", 1)


def power(ir: IRBuilder, x: Value, y: Value) -> Value:
    """``exp(y log(|x|))``, negative where `x` is, and `y` odd; a double has enough digits for the product."""
    a = ir.intrinsic("fabs", x)
    exceptional, sign = sign_of_power(ir, x, y)
    _, k, f = split_exponent(ir, a)
    multiplier = ir.select(exceptional, ir.double_like(0, y), y)
    exponent = ir.binary("fmul", multiplier, combine_log(ir, k, f))
    value = _exp_bounded(ir, copy_sign(ir, clamp_magnitude(ir, exponent, 150), exponent))
    return call_libm_where(ir, "pow", exceptional, from_bits(ir, ir.binary("or", to_bits(ir, value), sign)), x, y)


def _clamp(ir: IRBuilder, x: Value, limit: float) -> Value:
    """Clamp a magnitude, so that a function of it is a finite float. LLVM would undo a selection of another operand."""
    return copy_sign(ir, clamp_magnitude(ir, x, limit), x)


def gammaln(ir: IRBuilder, x: Value) -> Value:
    """``log(|gamma(x)|)``."""
    value = gamma_functions.gammaln(ir, _clamp(ir, x, _LARGEST))
    is_beyond = ir.compare("sgt", to_bits(ir, x), ir.long_like(bits_of(_LARGEST), x))
    value = ir.select(is_beyond, ir.double_like(math.inf, x), value)
    return ir.select(exceeds(ir, x, math.inf), x, value)


def entr(ir: IRBuilder, x: Value) -> Value:
    """``-x log(x)``."""
    value = logarithms.entr(ir, _clamp(ir, x, _LARGEST))
    is_beyond = ir.compare("sgt", to_bits(ir, x), ir.long_like(bits_of(_LARGEST), x))
    value = ir.select(is_beyond, ir.double_like(-math.inf, x), value)
    return ir.select(is_nan(ir, x), x, value)


def log_ndtr(ir: IRBuilder, x: Value) -> Value:
    """``log(ndtr(x))``."""
    value = error_function.log_ndtr(ir, _clamp(ir, x, 2.6e19))
    is_beyond = ir.binary("and", exceeds(ir, x, 2.6e19), ir.compare("slt", to_bits(ir, x), ir.long_like(0, x)))
    value = ir.select(is_beyond, ir.double_like(-math.inf, x), value)
    return ir.select(is_nan(ir, x), x, value)
