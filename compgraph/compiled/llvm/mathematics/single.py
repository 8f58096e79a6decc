"""Functions of doubles that were floats: right to some 30 bits, which is enough for the float that the result becomes.

There is no overflow and there are no subnormal numbers on the way: what is too large or small for a float tells so when it is
rounded. The polynomials are by Remez's algorithm.
"""

from __future__ import annotations

import math

from ..code import Code, Value
from .logarithm import awkward_for_log, natural, split
from .parts import SHIFT, bits, from_bits, is_nan, polynomial, scale, with_sign, within
from .powers import sign_of_power
from .slow import redone
from .trigonometric import quarters_and_rest, signed_by_quarters

# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2: exp(r) - 1 is right to 2**-31.
_EXP = (
    0.5000000044636739, 0.16666666815543568, 0.04166635922554659, 0.008333273295417389, 0.0013940748287628226,
    0.00019914075087182334,
)  # fmt: skip
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 as polynomials of r**2, for |r| <= pi / 4: right to 2**-28 and 2**-33.
_SIN = (-0.16666654992819302, 0.008332180158322775, -0.00019517492273395847)
_COS = (0.04166664710673759, -0.001388737722004716, 2.4439400117048754e-05)
# (log(1 + f) - f) / f**2 for sqrt(1/2) <= 1 + f <= sqrt(2): log(1 + f) is right to 2**-30.
_LOG = (
    -0.5000000000885509, 0.33333311097704926, -0.24999985847143194, 0.20002190809882153, -0.16669253379728313,
    0.14219275252875188, -0.1238468237361146, 0.11869260989727567, -0.11786580811767765, 0.06919179578050251,
)  # fmt: skip


def _parts(code: Code, x: Value) -> tuple[Value, Value]:
    """For the `n` that makes ``r = x - n log(2)`` least: a value whose lowest bits are `n`, and ``exp(r) - 1``."""
    shifted = code.fma(x, code.double(math.log2(math.e), x), code.double(SHIFT, x))
    n = code.binary("fsub", shifted, code.double(SHIFT, x))
    r = code.fma(code.negative(n), code.double(math.log(2), x), x)
    return shifted, code.fma(code.binary("fmul", r, r), polynomial(code, r, _EXP), r)


def _exp_of_less(code: Code, x: Value) -> Value:
    """``e**x`` of an `x` of at most 700."""
    shifted, less = _parts(code, x)
    return scale(code, code.binary("fadd", less, code.double(1, x)), shifted)


def _expm1_of_less(code: Code, x: Value) -> Value:
    """``e**x - 1`` of an `x` of at most 700."""
    shifted, less = _parts(code, x)
    power = scale(code, code.double(1, x), shifted)
    return code.fma(power, less, code.binary("fsub", power, code.double(1, x)))


def _bounded(code: Code, x: Value) -> tuple[Value, Value]:
    """Where `x` is nan or infinity (not less infinity), and ``-150 <= x <= 150``: more or less is no exponent of a float's.

    What is without bounds becomes zero: LLVM rounds to a float before it selects, and then an overflow would be told of.
    """
    without = code.compare("ueq", x, code.double(math.inf, x))
    return without, with_sign(code, within(code, code.select(without, code.double(0, x), x), 150), x)


def exp(code: Code, x: Value) -> Value:
    """``e**x``."""
    without, bounded = _bounded(code, x)
    return code.select(without, x, _exp_of_less(code, bounded))


def expm1(code: Code, x: Value) -> Value:
    """``e**x - 1``."""
    without, bounded = _bounded(code, x)
    return code.select(without, x, with_sign(code, _expm1_of_less(code, bounded), x))


def tanh(code: Code, x: Value) -> Value:
    """``(e**2x - 1) / (e**2x + 1)``; one from 10 on."""
    a = within(code, x, 10)
    less = _expm1_of_less(code, code.binary("fadd", a, a))
    value = code.binary("fdiv", less, code.binary("fadd", less, code.double(2, x)))
    return code.select(is_nan(code, x), x, with_sign(code, value, x))


def _exp_of_minus(code: Code, x: Value) -> tuple[Value, Value]:
    """Where `x` has no sign, and ``e**-|x|``."""
    e = _exp_of_less(code, code.negative(within(code, x, 150)))
    return code.compare("sge", bits(code, x), code.long(0, x)), e


def sigmoid(code: Code, x: Value) -> Value:
    """``1 / (1 + e**-x)``."""
    positive, e = _exp_of_minus(code, x)
    one = code.double(1, x)
    value = code.binary("fdiv", code.select(positive, one, e), code.binary("fadd", one, e))
    return code.select(is_nan(code, x), x, value)


def softplus(code: Code, x: Value) -> Value:
    """``log(1 + e**x)``."""
    positive, e = _exp_of_minus(code, x)
    start = code.select(code.binary("or", positive, is_nan(code, x)), x, code.double(0, x))
    return code.binary("fadd", start, _log1p_of(code, e))


def _natural(code: Code, k: Value, f: Value) -> Value:
    """``k log(2) + log(1 + f)``."""
    near = code.fma(code.binary("fmul", f, f), polynomial(code, f, _LOG), f)
    return code.fma(k, code.double(math.log(2), k), near)


def log(code: Code, x: Value) -> Value:
    """The natural logarithm."""
    _, k, f = split(code, x)
    return redone(code, "log", awkward_for_log(code, x), _natural(code, k, f), x)


def _log1p_of(code: Code, x: Value) -> Value:
    """``log(1 + x)`` of ``x > -1``; what `x` loses when one is added is added again (if `x` is large it does not matter)."""
    one = code.double(1, x)
    total = code.binary("fadd", x, one)
    exponent, k, f = split(code, total)
    power = code.binary("shl", code.binary("sub", code.long(2046, x), exponent), code.long(52, x))
    lost = code.binary("fsub", x, code.binary("fsub", total, one))
    return _natural(code, k, code.fma(lost, from_bits(code, power), f))


def log1p(code: Code, x: Value) -> Value:
    """``log(1 + x)``."""
    awkward = awkward_for_log(code, code.binary("fadd", x, code.double(1, x)))
    value = _log1p_of(code, code.select(awkward, code.double(0, x), x))
    return redone(code, "log1p", awkward, with_sign(code, value, x), x)


def _of_quarters(code: Code, x: Value, name: str, quarters: int) -> Value:
    """The sine, after so many quarter turns more."""
    awkward, n, r = quarters_and_rest(code, x)
    square = code.binary("fmul", r, r)
    sine = code.fma(code.binary("fmul", r, square), polynomial(code, square, _SIN), r)
    near = code.fma(square, code.double(-0.5, x), code.double(1, x))
    cosine = code.fma(code.binary("fmul", square, square), polynomial(code, square, _COS), near)
    return redone(code, name, awkward, signed_by_quarters(code, x, n, quarters, sine, cosine), x)


def sin(code: Code, x: Value) -> Value:
    """The sine."""
    return _of_quarters(code, x, "sin", 0)


def cos(code: Code, x: Value) -> Value:
    """The cosine."""
    return _of_quarters(code, x, "cos", 1)


def power(code: Code, x: Value, y: Value) -> Value:
    """``exp(y log(|x|))``, negative where `x` is, and `y` odd; a double has digits enough for the product."""
    a = code.intrinsic("fabs", x)
    awkward, sign = sign_of_power(code, x, y)
    _, k, f = split(code, a)
    times = code.select(awkward, code.double(0, y), y)
    exponent = code.binary("fmul", times, natural(code, k, f))
    value = _exp_of_less(code, with_sign(code, within(code, exponent, 150), exponent))
    return redone(code, "pow", awkward, from_bits(code, code.binary("or", bits(code, value), sign)), x, y)
