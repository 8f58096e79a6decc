"""Functions that are made of exponentials and logarithms, and cannot overflow on the way."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..code import Code, Value
from .exponential import exp, exp2
from .logarithm import log1p_of_part
from .parts import bits


def softplus(code: Code, x: Value) -> Value:
    """``log(1 + exp(x))``."""
    rest = log1p_of_part(code, exp(code, code.negative(code.intrinsic("fabs", x))))
    positive = code.compare("sge", bits(code, x), code.long(0, x))
    return code.binary("fadd", code.select(positive, x, code.double(0, x)), rest)


def _logaddexp(code: Code, x: Value, y: Value, power: Callable[[Code, Value], Value], factor: float) -> Value:
    """The larger, and a logarithm of one plus a power of the difference; equal operands, that may be infinite, differ by zero.

    Of those one is made another number before the difference, which may be anything then. Were it zero, or both, LLVM would take
    the difference as it was, and select afterwards; but infinity less infinity sets a flag.
    """
    equal, zero = code.compare("oeq", x, y), code.double(0, x)
    difference = code.binary("fsub", x, code.select(equal, code.double(1, x), y))
    less = code.compare("slt", bits(code, difference), code.long(0, x))
    small = code.select(equal, zero, code.negative(code.intrinsic("fabs", difference)))
    rest = log1p_of_part(code, power(code, small))
    if factor != 1:
        rest = code.binary("fmul", rest, code.double(factor, x))
    return code.binary("fadd", code.select(less, y, x), rest)


def logaddexp(code: Code, x: Value, y: Value) -> Value:
    """``log(exp(x) + exp(y))``."""
    return _logaddexp(code, x, y, exp, 1)


def logaddexp2(code: Code, x: Value, y: Value) -> Value:
    """``log2(2**x + 2**y)``."""
    return _logaddexp(code, x, y, exp2, 1 / math.log(2))
