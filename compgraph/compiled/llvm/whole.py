"""Division with a whole quotient and a remainder, shifts, and floating numbers that become integers: each as NumPy's.

Where NumPy warns of integers, or C does not say what a conversion gives, the code refuses (see `refusal`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .code import DOUBLE, Code, Type, Value
from .refusal import refuse


def _fmod(code: Code, a: Value, b: Value) -> Value:
    """C's ``fmod``, which is exact, so that floats may be computed as doubles."""
    wide = [code.cast("fpext", v, DOUBLE) if v.type.of == "float" else v for v in (a, b)]
    found = code.binary("frem", *wide)
    return code.cast("fptrunc", found, a.type) if a.type.of == "float" else found


def _modulo(code: Code, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """``fmod(a, b)``, the remainder that has the sign of `b`, and where the two differ by `b`."""
    zero = code.number(0.0, a.type)
    rest = _fmod(code, a, b)
    is_rest = code.compare("une", rest, zero)
    differs = code.binary("xor", code.compare("olt", b, zero), code.compare("olt", rest, zero))
    differs = code.binary("and", differs, is_rest)
    found = code.select(is_rest, rest, code.intrinsic("copysign", zero, b))
    return rest, code.select(differs, code.binary("fadd", rest, b), found), differs


def _remainder(code: Code, a: Value, b: Value) -> Value:
    rest, found, _ = _modulo(code, a, b)
    return code.select(code.compare("oeq", b, code.number(0.0, b.type)), rest, found)


def _floor_divide(code: Code, a: Value, b: Value) -> Value:
    zero, one = code.number(0.0, a.type), code.number(1.0, a.type)
    rest, _, differs = _modulo(code, a, b)
    quotient = code.binary("fdiv", code.binary("fsub", a, rest), b)
    quotient = code.select(differs, code.binary("fsub", quotient, one), quotient)
    whole = code.intrinsic("floor", quotient)
    is_above = code.compare("ogt", code.binary("fsub", quotient, whole), code.number(0.5, a.type))
    whole = code.select(is_above, code.binary("fadd", whole, one), whole)
    ratio = code.binary("fdiv", a, b)
    whole = code.select(code.compare("oeq", quotient, zero), code.intrinsic("copysign", zero, ratio), whole)
    return code.select(code.compare("oeq", b, zero), ratio, whole)


FLOATING: dict[str, Callable[[Code, Value, Value], Value]] = {
    "fmod": _fmod,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}


def divided(code: Code, name: str, kind: str, a: Value, b: Value) -> Value:
    """``floor_divide``, ``remainder`` or ``fmod`` of integers; it refuses where NumPy warns: 0 below, or a quotient too large."""
    zero, one = code.number(0, a.type), code.number(1, a.type)
    is_bad = code.compare("eq", b, zero)
    if kind == "i":
        least = code.number(-(2 ** (int(a.type.of[1:]) - 1)), a.type)
        too_large = code.binary("and", code.compare("eq", a, least), code.compare("eq", b, code.number(-1, a.type)))
        is_bad = code.binary("or", is_bad, too_large)
    refuse(code, is_bad)
    b = code.select(is_bad, one, b)
    if kind == "u":
        return code.binary("udiv" if name == "floor_divide" else "urem", a, b)
    rest = code.binary("srem", a, b)
    if name == "fmod":
        return rest
    differs = code.compare("slt", code.binary("xor", rest, b), zero)
    differs = code.binary("and", differs, code.compare("ne", rest, zero))
    if name == "remainder":
        return code.select(differs, code.binary("add", rest, b), rest)
    quotient = code.binary("sdiv", a, b)
    return code.select(differs, code.binary("sub", quotient, one), quotient)


def shifted(code: Code, name: str, kind: str, a: Value, b: Value) -> Value:
    """Shifts: by more than there are bits, or by a negative number, all go."""
    zero, bits = code.number(0, a.type), int(a.type.of[1:])
    is_far = code.compare("uge", b, code.number(bits, b.type))
    b = code.select(is_far, zero, b)
    if name == "left_shift":
        return code.select(is_far, zero, code.binary("shl", a, b))
    if kind == "u":
        return code.select(is_far, zero, code.binary("lshr", a, b))
    return code.select(is_far, code.binary("ashr", a, code.number(bits - 1, a.type)), code.binary("ashr", a, b))


def truncated(code: Code, value: Value, wanted: np.dtype[Any], to: Type) -> Value:
    """A floating number as an integer, towards zero; it refuses one that does not fit, of which C says nothing."""
    value = code.cast("fpext", value, DOUBLE) if value.type.of == "float" else value
    limits = np.iinfo(wanted)
    above = code.compare("olt", value, code.number(float(int(limits.max) + 1), value.type))
    lowest = code.number(float(limits.min) if wanted.itemsize == 8 and wanted.kind == "i" else float(limits.min) - 1, value.type)
    below = code.compare("oge" if wanted.itemsize == 8 and wanted.kind == "i" else "ogt", value, lowest)
    fits = code.binary("and", above, below)
    refuse(code, code.binary("xor", fits, code.number(1, fits.type)))
    value = code.select(fits, value, code.number(0.0, value.type))
    return code.cast("fptosi" if wanted.kind == "i" else "fptoui", value, to)
