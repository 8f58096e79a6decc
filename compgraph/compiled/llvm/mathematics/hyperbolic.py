"""The inverse functions of the hyperbolic ones: logarithms of sums, whose second part is kept."""

from __future__ import annotations

from ..code import Code, Value
from .logarithm import log_of_sum
from .parts import bits, bits_of, exceeds, ratio, with_sign
from .slow import redone


def _log1p(code: Code, high: Value, low: Value) -> Value:
    """``log(1 + high + low)`` of ``high >= 0``."""
    one = code.double(1, high)
    total = code.binary("fadd", high, one)
    share = code.binary("fsub", total, high)
    lost = code.binary("fadd", code.binary("fsub", high, code.binary("fsub", total, share)), code.binary("fsub", one, share))
    return log_of_sum(code, total, code.binary("fadd", lost, low))


def arcsinh(code: Code, x: Value) -> Value:
    """``log(1 + a + (sqrt(1 + a**2) - 1))`` of ``a = |x|``."""
    awkward, one = exceeds(code, x, 2.0**500), code.double(1, x)
    a = code.select(awkward, one, code.intrinsic("fabs", x))
    square = code.binary("fmul", a, a)
    root = code.intrinsic("sqrt", code.binary("fadd", square, one))
    more = code.binary("fdiv", square, code.binary("fadd", root, one))
    total = code.binary("fadd", a, more)
    lost = code.binary("fadd", code.binary("fsub", a, total), more)  # exact: more < a
    return redone(code, "asinh", awkward, with_sign(code, _log1p(code, total, lost), x), x)


def arccosh(code: Code, x: Value) -> Value:
    """``log(1 + t + sqrt(2 t + t**2))`` of ``t = x - 1``."""
    one = code.double(1, x)
    awkward = code.compare("sge", bits(code, x), code.long(bits_of(2.0**500), x))
    awkward = code.binary("or", awkward, code.compare("slt", bits(code, x), bits(code, one)))
    t = code.binary("fsub", code.select(awkward, one, x), one)
    square = code.fma(t, t, code.binary("fadd", t, t))
    root = code.intrinsic("sqrt", square)
    total = code.binary("fadd", root, t)
    lost = code.binary("fadd", code.binary("fsub", root, total), t)  # exact: t < root
    return redone(code, "acosh", awkward, _log1p(code, total, lost), x)


def arctanh(code: Code, x: Value) -> Value:
    """``log(1 + 2 a / (1 - a)) / 2`` of ``a = |x|``; the quotient in two parts."""
    awkward, one = exceeds(code, x, 1), code.double(1, x)
    a = code.select(awkward, code.double(0, x), code.intrinsic("fabs", x))
    over, under = code.binary("fadd", a, a), code.binary("fsub", one, a)
    lost = code.binary("fsub", code.binary("fsub", one, under), a)  # exact; what under is short of
    value = code.binary("fmul", _log1p(code, *ratio(code, over, under, lost)), code.double(0.5, x))
    return redone(code, "atanh", awkward, with_sign(code, value, x), x)
