"""The error function, its complement, the normal distribution function and its logarithm, and their inverse functions."""

from __future__ import annotations

import math
import sys

from ..ir_builder import IRBuilder, Value
from .exponentials import exp_bounded, times_exp_of_square
from .float_primitives import Pair, bits_of, clamp_magnitude, copy_sign, exceeds, is_nan, magnitude, polynomial, ratio, to_bits
from .logarithms import combine_log, log_of_sum, split_exponent

# Coefficients by Remez's algorithm. erf(x) / x - 1 as a polynomial of x**2, for |x| <= 1: erf(x) is accurate to 2**-57.
_ERF = (
    0.12837916709551256, -0.3761263890318352, 0.112837916709442, -0.026866170643113415, 0.005223977606130842,
    -0.0008548325929766244, 0.0001205529358693695, -1.4924712439534814e-05, 1.6447132699786621e-06, -1.6206318752969208e-07,
    1.3710988704190523e-08, -7.779462971761597e-10,
)  # fmt: skip
# log(1 - erf(x)) as a polynomial of x, for 1 <= x <= 6: erf(x) is accurate to 2**-59.
_LOG_ERFC = (
    -1.7962477457410596e-07, -1.1283773292158341, -0.6366284891568282, -0.10274725138377, 0.019078153343988016,
    0.0002804924514626529, -0.0017690052826499153, 0.0006411769755730554, -4.482557293167891e-05, -7.036481948547494e-05,
    4.503652456764111e-05, -1.6513624954573774e-05, 4.326953512960783e-06, -8.505555719018416e-07, 1.257020651142033e-07,
    -1.3626384296271018e-08, 1.0256767527430516e-09, -4.795925781849726e-11, 1.0495970869229545e-12,
)  # fmt: skip
# (1 + 2 x) erfc(x) exp(x**2) as a polynomial of (x - 4) / (x + 4), for 1/2 <= x <= 28, accurate to 2**-60.
_ERFCX = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102619873, 0.06809705425468865, -0.10103906603631245,
    0.0937328349985266, -0.06633036581201905, 0.03716751553393258, -0.016197734060338396, 0.005031970017215849,
    -0.0007577732694226337, -0.00019925695761291106, 0.00015062158625397362, -2.4398086525510544e-05, -1.1221768762697152e-05,
    5.706562567282981e-06, 2.933427200618651e-07, -8.196051320472183e-07, 7.512809723478645e-08, 1.0333363494591405e-07,
    -1.8201628017727847e-08, -9.678471601430679e-09, 1.906107425158638e-09,
)  # fmt: skip


def _erf_slope(ir: IRBuilder, x: Value, limit: float) -> tuple[Value, Value]:
    """Return the mask of elements with ``|x| < limit``, and ``erf(x) / x - 1``, which is valid for these elements."""
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
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    far = ir.select(is_negative, ir.binary("fsub", ir.double_like(2, x), far), far)
    return ir.select(is_nan(ir, x), x, ir.select(is_near, near, far))


_ROOT_HALF = math.sqrt(0.5)
_NDTR_NEAR = 0.75
_FAR = 28  # where the polynomial of `_scaled_tail` ends, before the factor of sqrt(2)
# z erfc(z) exp(z**2) sqrt(pi) as a polynomial of 1 / z**2, by its asymptotic series (DLMF 7.12.1).
_FAR_TAIL = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125)


def ndtr(ir: IRBuilder, x: Value) -> Value:
    """``(1 + erf(x / sqrt(2))) / 2`` near zero, else half of `erfc`, or one minus that for positive `x`."""
    half = ir.double_like(0.5, x)
    near = copy_sign(ir, ir.binary("fmul", clamp_magnitude(ir, x, _NDTR_NEAR), ir.double_like(_ROOT_HALF, x)), x)
    _, slope = _erf_slope(ir, near, 0.75)
    near = ir.fma(half, ir.fma(near, slope, near), half)
    a = clamp_magnitude(ir, x, 39.5)
    high, low = _scaled_tail(ir, ir.binary("fmul", a, ir.double_like(_ROOT_HALF, x)))
    far = times_exp_of_square(ir, a, ir.binary("fmul", high, half), ir.binary("fmul", low, half), is_halved=True)
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    far = ir.select(is_negative, far, ir.binary("fsub", ir.double_like(1, x), far))
    is_near = ir.compare("ult", magnitude(ir, x), ir.long_like(bits_of(_NDTR_NEAR), x))
    return ir.select(is_nan(ir, x), x, ir.select(is_near, near, far))


def log_ndtr(ir: IRBuilder, x: Value) -> Value:
    """``log(1 - ndtr(-x))`` of positive `x`, ``log(ndtr(x) exp(x**2 / 2)) - x**2 / 2`` below -1, else ``log(ndtr(x))``."""
    one, half = ir.double_like(1, x), ir.double_like(0.5, x)
    largest = math.sqrt(2) * math.sqrt(sys.float_info.max) * (1 - 2.0**-50)  # whose square, halved, is finite
    is_below = ir.compare("sgt", magnitude(ir, x), ir.long_like(bits_of(1), x))
    is_negative = ir.compare("slt", to_bits(ir, x), ir.long_like(0, x))
    is_below = ir.binary("and", is_below, is_negative)
    tail = ndtr(ir, ir.neg(ir.intrinsic("fabs", ir.select(is_below, one, x))))
    total = ir.binary("fsub", one, tail)
    rounding_error = ir.binary("fsub", ir.binary("fsub", one, total), tail)
    total = ir.select(is_negative, tail, total)
    above = log_of_sum(ir, total, ir.select(is_negative, ir.double_like(0, x), rounding_error))
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
    is_infinite = ir.binary("and", is_negative, exceeds(ir, x, largest))
    value = ir.select(is_infinite, ir.double_like(-math.inf, x), ir.select(is_below, below, above))
    return ir.select(is_nan(ir, x), x, value)


# --------------------------------------------------------------------------------------------- inverse functions

# (erf^-1(y) / y - sqrt(pi) / 2) / w as a polynomial of w / 3.25 - 1, where w = -log(1 - y**2) <= 6.5: accurate to 2**-56.
_INVERSE_NEAR = (
    0.2453389945853159, -0.006722508633142129, -0.013733653928250029, 0.006872736154853554, -0.0007703614496767385,
    -0.000877582522178542, 0.0005119948340861463, -4.965726525853857e-05, -7.663986155575242e-05, 4.1162198266520934e-05,
    -2.1315924727240894e-06, -7.133911300273728e-06, 3.351570985820308e-06, 2.3832836031519803e-08, -6.71727213949162e-07,
    2.722176027362927e-07, 2.112916226633128e-08, -6.332165328420519e-08, 2.2310034977634436e-08, 3.834343427072974e-09,
    -6.427861207589142e-09, 1.5662697950479132e-09, 8.602338762006766e-10, -4.811718805826664e-10, -4.8022473656551546e-11,
    5.0644226206455565e-11,
)  # fmt: skip
# erf^-1(y) / (y sqrt(w)) as a polynomial of sqrt(w), which is from 5/2 to 9/2, scaled to the interval from -1 to 1.
_INVERSE_FAR_0 = (
    0.9529959191667297, 0.015535112450664456, -0.003502356066160625, 0.00041119456527067823, 0.00019493194813581166,
    -0.00024993937282837036, 0.000194488743896843, -0.00011987943804550644, 5.665807593232301e-05, -1.775432320243524e-05,
    1.248214092977313e-06, 2.3318973558682553e-06, -1.485433774808043e-06, 3.81631893635334e-07, 5.605938143375518e-08,
    -9.292921951070777e-08, 3.8896099561642065e-08, -5.868085507693533e-09, -2.5803907371793112e-09, 2.199029703463165e-09,
    -7.840344611612331e-10, 4.061856070651334e-11, 9.892358010899414e-11, -3.622979011733485e-11, 2.7070306703134144e-12,
)  # fmt: skip
# erf^-1(y) / (y sqrt(w)) as a polynomial of sqrt(w), which is from 9/2 to 19/2, scaled to the interval from -1 to 1.
_INVERSE_FAR_1 = (
    0.9812885216958581, 0.00975253554530104, -0.003940775759173667, 0.0014214477528279683, -0.00047387233515583653,
    0.00014664923607984962, -4.1415360501034524e-05, 1.0090429328796411e-05, -1.7175713224299366e-06, -1.1139270926302454e-07,
    3.096624600289534e-07, -2.0871000359994277e-07, 1.0967541963856564e-07, -5.112469428260602e-08, 2.1649950430100404e-08,
    -9.771976498020612e-09, 5.695008449705717e-09, -1.0499661322813287e-09, -2.1851973586487803e-09, -6.77395442601936e-10,
    3.0654069209196826e-09, -8.373566310296427e-11, -1.8332062809678663e-09, 1.6385507284630313e-10, 7.876270172258066e-10,
    -2.8849817493806126e-10,
)  # fmt: skip
# erf^-1(y) / (y sqrt(w)) as a polynomial of sqrt(w), which is from 19/2 to 55/2, scaled to the interval from -1 to 1.
_INVERSE_FAR_2 = (
    0.9959093000463816, 0.003271959071354729, -0.0020437043967707403, 0.001158567912052504, -0.0006233578234880918,
    0.00032446185893918763, -0.000164987793698023, 8.241865732038917e-05, -4.058414561117684e-05, 1.974084363981202e-05,
    -9.498033875079233e-06, 4.52347549157818e-06, -2.1322905376619154e-06, 9.955443336075719e-07, -4.6271561114590255e-07,
    2.1185012912180508e-07, -9.051533421843493e-08, 3.958767376699511e-08, -2.425318198625925e-08, 1.1417606325111604e-08,
    1.430234445095637e-09, -1.5643823085817342e-09, -2.8551762385001096e-09, 1.6272741908586445e-09, 4.9994909601062e-10,
    -3.4373977903635506e-10,
)  # fmt: skip
_FAR_INTERVALS = ((2.5, 4.5, _INVERSE_FAR_0), (4.5, 9.5, _INVERSE_FAR_1), (9.5, 27.5, _INVERSE_FAR_2))
_NEAR_LIMIT = 6.25  # of w
_SMALL_TAIL, _SMALL_TAIL_SCALE = 2.0**-1000, 100


def _inverse_erf(ir: IRBuilder, y: Value, tail: Value, scale: float = 1) -> Value:
    """Return ``erf^-1(y)``; infinite where `tail`, which is ``(1 - |y|) / scale``, is 0, and nan where it is negative or nan."""
    one, two = ir.double_like(1, y), ir.double_like(2, y)
    last = bits_of(1 / scale)
    is_inside = ir.compare("ult", ir.binary("sub", to_bits(ir, tail), ir.long_like(1, y)), ir.long_like(last, y))
    is_limit = ir.compare("eq", magnitude(ir, tail), ir.long_like(0, y))
    inside = ir.binary("fmul", clamp_magnitude(ir, tail, 1 / scale), ir.double_like(scale, y))
    is_tiny = ir.compare("ult", to_bits(ir, inside), ir.long_like(bits_of(_SMALL_TAIL), y))
    scaled = ir.select(is_tiny, ir.binary("fmul", inside, ir.double_like(2.0**_SMALL_TAIL_SCALE, y)), inside)
    product = ir.binary("fmul", scaled, ir.binary("fsub", two, inside))
    _, k, f = split_exponent(ir, product)
    k = ir.select(is_tiny, ir.binary("fsub", k, ir.double_like(_SMALL_TAIL_SCALE, y)), k)
    w = ir.neg(combine_log(ir, k, f))
    is_far = ir.compare("sgt", to_bits(ir, w), ir.long_like(bits_of(_NEAR_LIMIT), y))
    near = ir.select(is_far, one, w)
    x = ir.fma(near, ir.double_like(1 / 3.25, y), ir.double_like(-1, y))
    slope = ir.fma(near, _polynomial_with_exact_constant(ir, x, _INVERSE_NEAR), ir.double_like(math.sqrt(math.pi) / 2, y))
    with ir.branch_if_unlikely(ir.any(is_far), slope) as replacements:
        replacements[0] = ir.select(is_far, _far_slope(ir, ir.select(is_far, w, ir.double_like(9, y))), slope)
    bounded = copy_sign(ir, clamp_magnitude(ir, y, 1), y)
    value = ir.fma(bounded, replacements[0], ir.double_like(0, y))  # 0 also at -0
    value = ir.select(is_limit, copy_sign(ir, ir.double_like(math.inf, y), y), value)
    return ir.select(ir.binary("or", is_inside, is_limit), value, ir.double_like(math.nan, y))


def _far_slope(ir: IRBuilder, w: Value) -> Value:
    """Return ``erf^-1(y) / y`` beyond `_NEAR_LIMIT`."""
    root, slope = ir.intrinsic("sqrt", w), None
    for low, high, coefficients in _FAR_INTERVALS:
        center, scale = (low + high) / 2, 2 / (high - low)
        x = ir.binary("fmul", ir.binary("fsub", root, ir.double_like(center, w)), ir.double_like(scale, w))
        value = _polynomial_with_exact_constant(ir, x, coefficients)
        is_beyond = ir.compare("sge", to_bits(ir, root), ir.long_like(bits_of(low), w))
        slope = value if slope is None else ir.select(is_beyond, value, slope)
    assert slope is not None
    return ir.binary("fmul", root, slope)


def erfinv(ir: IRBuilder, x: Value) -> Value:
    """The inverse of the error function."""
    return _inverse_erf(ir, x, ir.binary("fsub", ir.double_like(1, x), ir.intrinsic("fabs", x)))


def erfcinv(ir: IRBuilder, x: Value) -> Value:
    """The inverse of the complement of the error function."""
    y = ir.binary("fsub", x, ir.double_like(1, x))
    is_negative = ir.compare("slt", to_bits(ir, y), ir.long_like(0, x))
    smaller = ir.select(is_negative, x, ir.binary("fsub", ir.double_like(2, x), x))
    is_least = ir.compare("eq", to_bits(ir, smaller), ir.long_like(1, x))  # where SciPy's result is infinite
    return ir.neg(_inverse_erf(ir, y, ir.select(is_least, ir.double_like(0, x), smaller)))


def ndtri(ir: IRBuilder, x: Value) -> Value:
    """The inverse of the normal distribution function."""
    y = ir.binary("fsub", x, ir.double_like(0.5, x))
    is_negative = ir.compare("slt", to_bits(ir, y), ir.long_like(0, x))
    tail = ir.select(is_negative, x, ir.binary("fsub", ir.double_like(1, x), x))
    return ir.binary("fmul", _inverse_erf(ir, y, tail, scale=2), ir.double_like(2 * math.sqrt(2), x))
