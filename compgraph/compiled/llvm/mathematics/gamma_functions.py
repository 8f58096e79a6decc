"""The gamma function, its logarithm, and the first and second derivatives of the logarithm.

Near the zeros, a polynomial of a quotient interpolates the function at Chebyshev nodes. From 3 on, a polynomial replaces
the Stirling series (DLMF 5.11.1 and 5.11.2). Recurrences (DLMF 5.5.1 and 5.5.2) shift small operands, a reflection (DLMF 5.5.4)
negative ones. The coefficients are by mpmath. As in SciPy, poles are infinite or nan without flags.
"""

from __future__ import annotations

import math
import sys

from ..ir_builder import IRBuilder, Value
from .exponentials import exp_of_pair
from .float_primitives import (
    Pair,
    bits_of,
    call_libm_where,
    clamp_magnitude,
    from_bits,
    is_nan,
    magnitude,
    polynomial,
    ratio,
    to_bits,
    two_sum,
)
from .logarithms import combine_log, split_exponent
from .powers import fast_two_sum, log_pair
from .trigonometry import cosine_pair, sine_correction

_CENTER = 1.375  # polynomials near the zeros are of t = (x - c) / (x + c)
_SMALL = 0.75  # below it a recurrence is used
_LOG_GAMMA_FAR, _DIGAMMA_FAR = 3.0, 2.5  # from there on, a series
_LARGEST = 2.556348e305  # the largest operand of SciPy's gammaln with a finite result
_LARGEST_OF_GAMMA = 171.62437695630268  # the largest operand of SciPy's gamma with a finite result
_TINY = 2.0**-1024  # whose inverse overflows
_TRIGAMMA_LEAST = 7.5e-155  # whose inverse has a finite square

# log(gamma(x)) / ((x - 1) (x - 2)) for 3/4 <= x <= 3, accurate to 2**-57: the constant in two parts, and the other coefficients.
_LOG_GAMMA_CONSTANT = 0.5024224884952694, 5.5018350638808196e-17
_LOG_GAMMA = (
    -0.44907267850537497, 0.12895292459802024, -0.15450486623037799, 0.08585501645824452, -0.09501881167525227,
    0.06413162638335787, -0.06874743134979806, 0.05110287611493297, -0.05388317977905035, 0.042453948395920836,
    -0.044311570612657364, 0.036292702935173435, -0.0376404163263698, 0.03184186938921277, -0.03271584256793766,
    0.026878507479372368, -0.02780637292324888, 0.03120136599502141, -0.03541732135135346, 0.01549927692596692,
)  # fmt: skip
# psi(x) / (x - root) for 3/4 <= x <= 5/2, accurate to 2**-55.
_DIGAMMA_CONSTANT = 1.0080828832111486, 1.9984243879077538e-17
_DIGAMMA = (
    -1.3517500432512504, 0.9659871042629722, -1.030218857928898, 0.9779246583750734, -1.0072843597641574, 0.9865818272957747,
    -1.0016028790308564, 0.9901330450981661, -0.9991691360132836, 0.9918612912734698, -0.997890039514439, 0.9928874177184114,
    -0.9972324905766763, 0.9922145222257787, -0.9948887733608043, 1.0103882458382922, -1.0184120312151173, 0.8558931287770936,
    -0.8276571972777332, 1.6174532735151919, -1.6903925237052058,
)  # fmt: skip
# x (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2) as a polynomial of 1 / x**2, for x >= 3: log(gamma(x)) to 2**-56.
_STIRLING = (
    0.0833333333333333, -0.0027777777777198667, 0.0007936507724226743, -0.0005952350112477844, 0.0008415163747249217,
    -0.0019068287216766513, 0.006092362809879146, -0.023023369716838427, 0.08133058725404782, -0.20709276946433305,
    0.2618076244779907,
)  # fmt: skip
# x**2 (log(x) - 1 / (2 x) - psi(x)) as a polynomial of 1 / x**2, for x >= 5/2: psi(x) is accurate to 2**-58.
_DIGAMMA_TAIL = (
    0.08333333333333331, -0.008333333333290996, 0.0039682539481119715, -0.0041666628219269855, 0.007575365816723422,
    -0.021068167379269368, 0.08228900717706253, -0.4114232522949609, 2.317031159971655, -12.733126282988389, 60.327896943070584,
    -223.19840760631672, 586.3539082608623, -958.3186662203595, 726.5859560185779,
)  # fmt: skip
# x psi'(x) for 3/4 <= x <= 5/2, accurate to 2**-57.
_TRIGAMMA_CONSTANT = 1.4446664672692955, 4.0077223064673197e-17
_TRIGAMMA = (
    -1.0287702249643587, 1.2562784068239135, -1.3841132219634964, 1.4361401321937797, -1.450909227326415, 1.45384943452507,
    -1.4543930522361155, 1.4545214888612767, -1.4545416677501968, 1.454541673645749, -1.4545410044497629, 1.4546280195758263,
    -1.4546788731146552, 1.4527725522917991, -1.4519555366128738, 1.478779128274879, -1.4868028321027629, 1.252415310059413,
    -1.2084327391323022, 2.366004406359298, -2.4690778657204855,
)  # fmt: skip
# x**3 (psi'(x) - 1 / x - 1 / (2 x**2)) as a polynomial of 1 / x**2, for x >= 5/2: psi'(x) is accurate to 2**-57.
_TRIGAMMA_TAIL = (
    0.1666666666666666, -0.03333333333308724, 0.023809523676236993, -0.033333304323500165, 0.07575419668770778,
    -0.25286987632443814, 1.1547650027087404, -6.672390286669289, 43.690224262785485, -285.1457459394253, 1656.8844187429738,
    -7859.101810727172, 28298.199493927805, -71399.56543719153, 111481.95341964334, -80646.17597542703,
)  # fmt: skip
# The positive zero of psi, in two parts, and the same minus one.
_ROOT, _ROOT_REST = 1.4616321449683622, 9.549995429965697e-17
_ROOT_MINUS_ONE, _ROOT_MINUS_ONE_REST = 0.46163214496836236, -1.5522348162858677e-17
# log(2 pi) / 2 - 1/2, and pi, in two parts.
_STIRLING_CONSTANT, _STIRLING_CONSTANT_REST = 0.4189385332046727, 1.6728209650585413e-17
_PI_REST = 1.2246467991473532e-16


def _is_below(ir: IRBuilder, x: Value, limit: float) -> Value:
    """Return where a positive `x` is below a limit."""
    return ir.compare("ult", to_bits(ir, x), ir.long_like(bits_of(limit), x))


def _rational(ir: IRBuilder, x: Value, constant: tuple[float, float], coefficients: tuple[float, ...]) -> Value:
    """Evaluate a polynomial of ``(x - c) / (x + c)``, whose constant has two parts."""
    center = ir.double_like(_CENTER, x)
    t, t_rest = ratio(ir, ir.binary("fsub", x, center), *two_sum(ir, center, x))
    rest = ir.fma(t_rest, ir.double_like(coefficients[0], x), ir.double_like(constant[1], x))
    rest = ir.fma(t, polynomial(ir, t, coefficients), rest)
    return ir.binary("fadd", rest, ir.double_like(constant[0], x))


def _near_operands(ir: IRBuilder, x: Value, far: float) -> tuple[Value, Value, Value, Value]:
    """Return masks of ``x < 3/4`` and ``x < far``, the operands below `far`, and the same plus one where they are below 3/4."""
    is_small, is_near = _is_below(ir, x, _SMALL), _is_below(ir, x, far)
    near = ir.select(is_near, x, ir.double_like(1.5, x))
    return is_small, is_near, near, ir.select(is_small, ir.binary("fadd", near, ir.double_like(1, x)), near)


def _log_gamma_of_positive(ir: IRBuilder, x: Value) -> Value:
    """Return ``log(gamma(x))`` of a positive normal number."""
    one = ir.double_like(1, x)
    log, log_rest = log_pair(ir, x)
    is_small, is_near, near, y = _near_operands(ir, x, _LOG_GAMMA_FAR)
    first = ir.select(is_small, near, ir.binary("fsub", near, one))
    product = ir.binary("fmul", first, ir.binary("fsub", first, one))
    value = ir.fma(product, _rational(ir, y, _LOG_GAMMA_CONSTANT, _LOG_GAMMA), ir.double_like(0, x))  # not -0 at 1
    shifted = ir.binary("fsub", ir.binary("fsub", value, log), log_rest)
    value = ir.select(is_small, shifted, value)
    product, rest = _stirling(ir, ir.select(is_near, ir.double_like(4, x), x), log, log_rest)
    far = ir.binary("fadd", ir.binary("fadd", product, ir.double_like(_STIRLING_CONSTANT, x)), rest)
    return ir.select(is_near, value, far)


def _stirling(ir: IRBuilder, a: Value, log: Value, log_rest: Value) -> Pair:
    """Return the terms of ``log(gamma(a))`` beyond 3, without a constant, as a sum: ``(a - 1/2) (log(a) - 1)``, and the rest."""
    one = ir.double_like(1, a)
    factor = ir.binary("fsub", log, one)
    factor_rest = ir.binary("fadd", ir.binary("fsub", ir.binary("fsub", log, factor), one), log_rest)
    multiplier = ir.binary("fsub", a, ir.double_like(0.5, a))
    product = ir.binary("fmul", multiplier, factor)
    rest = ir.fma(multiplier, factor_rest, ir.fma(multiplier, factor, ir.neg(product)))
    inverse = ir.binary("fdiv", one, a)
    series = polynomial(ir, ir.binary("fmul", inverse, inverse), _STIRLING)
    return product, ir.binary("fadd", ir.fma(inverse, series, ir.double_like(_STIRLING_CONSTANT_REST, a)), rest)


def gamma(ir: IRBuilder, x: Value) -> Value:
    """The exponential of the logarithm, which is in two parts beyond 3; C's library computes it for negative operands."""
    one, zero, infinite = ir.double_like(1, x), ir.double_like(0, x), ir.double_like(math.inf, x)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    is_tiny = ir.compare("ule", magnitude(ir, x), ir.long_like(bits_of(_TINY), x))
    is_large = ir.compare("sgt", to_bits(ir, x), ir.long_like(bits_of(_LARGEST_OF_GAMMA), x))
    a = ir.select(ir.binary("or", is_negative, is_tiny), one, clamp_magnitude(ir, x, _LARGEST_OF_GAMMA))
    is_small, is_near, near, y = _near_operands(ir, a, _LOG_GAMMA_FAR)
    first = ir.select(is_small, near, ir.binary("fsub", near, one))
    product = ir.binary("fmul", first, ir.binary("fsub", first, one))
    logarithm = ir.binary("fmul", product, _rational(ir, y, _LOG_GAMMA_CONSTANT, _LOG_GAMMA))
    far = ir.select(is_near, ir.double_like(4, x), a)
    high, low = _stirling(ir, far, *log_pair(ir, far))
    total, rounding_error = fast_two_sum(ir, high, ir.double_like(_STIRLING_CONSTANT, x))
    total, rest = two_sum(ir, total, ir.binary("fadd", low, rounding_error))
    value = exp_of_pair(ir, ir.select(is_near, logarithm, total), ir.select(is_near, zero, rest))
    value = ir.binary("fdiv", value, ir.select(is_small, near, one))
    value = ir.select(is_tiny, ir.intrinsic("copysign", infinite, x), ir.select(is_large, infinite, value))
    is_pole = ir.compare("oeq", ir.intrinsic("rint", x), x)
    exceptional = ir.binary("and", is_negative, ir.binary("xor", is_tiny, ir.number(1, is_tiny.type)))
    value = ir.select(ir.binary("and", exceptional, is_pole), ir.double_like(math.nan, x), value)
    needs_libm = ir.binary("and", exceptional, ir.binary("xor", is_pole, ir.number(1, is_pole.type)))
    value = call_libm_where(ir, "tgamma", needs_libm, value, x)
    return ir.select(is_nan(ir, x), x, value)


def gammaln(ir: IRBuilder, x: Value) -> Value:
    """``log(|gamma(x)|)``; C's library computes it for negative and subnormal operands."""
    infinite = ir.double_like(math.inf, x)
    is_finite = ir.compare("ult", magnitude(ir, x), to_bits(ir, infinite))
    exceptional = ir.compare("slt", to_bits(ir, x), ir.long_like(1 << 52, x))
    is_tiny = ir.compare("ule", magnitude(ir, x), ir.long_like(bits_of(_TINY), x))
    is_pole = ir.binary("and", exceptional, ir.compare("oeq", ir.intrinsic("rint", x), x))
    is_large = ir.compare("sgt", to_bits(ir, x), ir.long_like(bits_of(_LARGEST), x))
    is_pole = ir.binary("or", is_pole, ir.binary("or", is_tiny, is_large))
    value = _log_gamma_of_positive(ir, ir.select(exceptional, ir.double_like(1.5, x), clamp_magnitude(ir, x, _LARGEST)))
    value = ir.select(is_pole, infinite, value)
    needs_libm = ir.binary("and", ir.binary("and", exceptional, is_finite), ir.binary("xor", is_pole, ir.number(1, is_pole.type)))
    value = call_libm_where(ir, "lgamma", needs_libm, value, x)
    return ir.select(is_finite, value, x)


def psi(ir: IRBuilder, x: Value) -> Value:
    """The digamma function."""
    one, infinite = ir.double_like(1, x), ir.double_like(math.inf, x)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    # the magnitude, from the least number whose inverse is finite to the largest number
    a = from_bits(ir, ir.intrinsic("umax", magnitude(ir, x), ir.long_like(bits_of(_TINY) + 1, x)))
    a = clamp_magnitude(ir, a, sys.float_info.max)
    positive = ir.select(is_negative, ir.binary("fadd", a, one), a)
    is_small, is_near, near, y = _near_operands(ir, positive, _DIGAMMA_FAR)
    roots = (_ROOT, _ROOT_REST), (_ROOT_MINUS_ONE, _ROOT_MINUS_ONE_REST)
    high, low = (ir.select(is_small, ir.double_like(r[1], x), ir.double_like(r[0], x)) for r in zip(*roots, strict=True))
    factor = _rational(ir, y, _DIGAMMA_CONSTANT, _DIGAMMA)
    value = ir.fma(ir.binary("fsub", near, high), factor, ir.neg(ir.binary("fmul", low, factor)))
    value = ir.select(is_small, ir.binary("fsub", value, ir.binary("fdiv", one, near)), value)
    far = ir.select(is_near, ir.double_like(4, x), positive)
    _, k, f = split_exponent(ir, far)
    inverse = ir.binary("fdiv", one, far)
    square = ir.binary("fmul", inverse, inverse)
    rest = ir.fma(square, polynomial(ir, square, _DIGAMMA_TAIL), ir.binary("fmul", inverse, ir.double_like(0.5, x)))
    value = ir.select(is_near, value, ir.binary("fsub", combine_log(ir, k, f), rest))
    with ir.branch_if_unlikely(ir.any(is_negative), value) as replacements:
        replacements[0] = ir.select(is_negative, _reflect_digamma(ir, a, value), value)
    is_tiny = ir.compare("ule", magnitude(ir, x), ir.long_like(bits_of(_TINY), x))
    value = ir.select(is_tiny, ir.neg(ir.intrinsic("copysign", infinite, x)), replacements[0])
    is_infinite = ir.compare("eq", to_bits(ir, x), to_bits(ir, infinite))
    return ir.select(ir.binary("or", is_infinite, is_nan(ir, x)), x, value)


def trigamma(ir: IRBuilder, x: Value) -> Value:
    """The derivative of the digamma function, ``zeta(2, x)``."""
    one, infinite = ir.double_like(1, x), ir.double_like(math.inf, x)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    a = from_bits(ir, ir.intrinsic("umax", magnitude(ir, x), ir.long_like(bits_of(_TRIGAMMA_LEAST), x)))
    a = clamp_magnitude(ir, a, sys.float_info.max)
    positive = ir.select(is_negative, ir.binary("fadd", a, one), a)
    is_small, is_near, near, y = _near_operands(ir, positive, _DIGAMMA_FAR)
    value = ir.binary("fdiv", _rational(ir, y, _TRIGAMMA_CONSTANT, _TRIGAMMA), y)
    inverse = ir.binary("fdiv", one, near)
    value = ir.select(is_small, ir.fma(inverse, inverse, value), value)
    inverse = ir.binary("fdiv", one, ir.select(is_near, ir.double_like(4, x), positive))
    square = ir.binary("fmul", inverse, inverse)
    rest = ir.binary("fmul", ir.binary("fmul", square, inverse), polynomial(ir, square, _TRIGAMMA_TAIL))
    rest = ir.fma(square, ir.double_like(0.5, x), rest)
    value = ir.select(is_near, value, ir.binary("fadd", inverse, rest))
    with ir.branch_if_unlikely(ir.any(is_negative), value) as replacements:
        replacements[0] = ir.select(is_negative, _reflect_trigamma(ir, a, value), value)
    is_tiny = ir.compare("ult", magnitude(ir, x), ir.long_like(bits_of(_TRIGAMMA_LEAST), x))
    value = ir.select(is_tiny, infinite, replacements[0])
    # Of numbers. LLVM would compile an equality with infinity to "<=", which sets the flag "invalid" for nan.
    is_infinite = ir.compare("sge", to_bits(ir, x), to_bits(ir, infinite))
    return ir.select(is_nan(ir, x), x, ir.select(is_infinite, ir.double_like(0, x), value))


def _angle_from_pole(ir: IRBuilder, a: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Reduce ``pi a``: return the distance of `a` from an integer, with its sign, and where it is below 1/4.

    Return also the sine and the cosine of ``pi`` times the distance, or of pi/2 minus that where it is not below 1/4.
    """
    rest = ir.binary("fsub", a, ir.intrinsic("rint", a))  # exact
    distance = ir.intrinsic("fabs", rest)
    is_steep = _is_below(ir, distance, 0.25)
    t = ir.select(is_steep, distance, ir.binary("fsub", ir.double_like(0.5, a), distance))
    angle = ir.binary("fmul", t, ir.double_like(math.pi, a))
    low = ir.fma(t, ir.double_like(_PI_REST, a), ir.fma(t, ir.double_like(math.pi, a), ir.neg(angle)))
    square = ir.binary("fmul", angle, angle)
    sine = ir.binary("fadd", angle, sine_correction(ir, angle, low, square))
    cosine = ir.binary("fadd", *cosine_pair(ir, angle, low, square))
    return rest, distance, is_steep, sine, cosine


def _reflect_trigamma(ir: IRBuilder, a: Value, reflected: Value) -> Value:
    """Return ``(pi / sin(pi a))**2 - psi'(1 + a)``, which is ``psi'(-a)``; infinite where `a` is an integer."""
    a = clamp_magnitude(ir, a, 2.0**53)
    _, distance, is_steep, sine, cosine = _angle_from_pole(ir, a)
    is_pole = ir.compare("eq", to_bits(ir, distance), ir.long_like(0, a))
    is_close = _is_below(ir, distance, 2.0**-40)  # there it is the square of 1 / distance
    sine = ir.select(is_close, ir.select(is_pole, ir.double_like(0.25, a), distance), ir.select(is_steep, sine, cosine))
    ratio_of_pi = ir.binary("fdiv", ir.select(is_close, ir.double_like(1, a), ir.double_like(math.pi, a)), sine)
    value = ir.fma(ratio_of_pi, ratio_of_pi, ir.neg(reflected))
    return ir.select(is_pole, ir.double_like(math.inf, a), value)


def _reflect_digamma(ir: IRBuilder, a: Value, reflected: Value) -> Value:
    """Return ``psi(1 + a) + pi / tan(pi a)``, which is ``psi(-a)``; nan where `a` is an integer."""
    a, quarter = clamp_magnitude(ir, a, 2.0**53), ir.double_like(0.25, a)
    rest, distance, is_steep, sine, cosine = _angle_from_pole(ir, a)
    is_pole = ir.compare("eq", to_bits(ir, distance), ir.long_like(0, a))
    is_close = _is_below(ir, distance, 2.0**-40)  # to a pole: there it is 1 / rest
    numerator = ir.binary("fmul", ir.select(is_steep, cosine, sine), ir.double_like(math.pi, a))
    numerator = ir.select(is_close, ir.double_like(1, a), numerator)
    denominator = ir.select(is_close, ir.select(is_pole, quarter, distance), ir.select(is_steep, sine, cosine))
    cotangent = ir.intrinsic("copysign", ir.binary("fdiv", numerator, denominator), rest)
    return ir.select(is_pole, ir.double_like(math.nan, a), ir.binary("fadd", reflected, cotangent))
