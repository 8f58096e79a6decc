"""Floor division, remainders, shifts, and conversions of floats to integers, as NumPy computes them.

Where NumPy warns for integers, or C leaves a conversion undefined, the code bails out to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .ir_builder import DOUBLE, IRBuilder, Type, Value


def _fmod(ir: IRBuilder, a: Value, b: Value) -> Value:
    """C's ``fmod``, which is exact, so it can be computed in double."""
    wide = [ir.cast("fpext", v, DOUBLE) if v.type.of == "float" else v for v in (a, b)]
    remainder = ir.binary("frem", *wide)
    return ir.cast("fptrunc", remainder, a.type) if a.type.of == "float" else remainder


def _modulo(ir: IRBuilder, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Return ``fmod(a, b)``, the remainder with the sign of `b`, and where the two differ by `b`."""
    zero = ir.number(0.0, a.type)
    rest = _fmod(ir, a, b)
    is_rest = ir.compare("une", rest, zero)
    differs = ir.binary("xor", ir.compare("olt", b, zero), ir.compare("olt", rest, zero))
    differs = ir.binary("and", differs, is_rest)
    signed_rest = ir.select(is_rest, rest, ir.intrinsic("copysign", zero, b))
    return rest, ir.select(differs, ir.binary("fadd", rest, b), signed_rest), differs


def _remainder(ir: IRBuilder, a: Value, b: Value) -> Value:
    rest, remainder, _ = _modulo(ir, a, b)
    return ir.select(ir.compare("oeq", b, ir.number(0.0, b.type)), rest, remainder)


def _floor_divide(ir: IRBuilder, a: Value, b: Value) -> Value:
    zero, one = ir.number(0.0, a.type), ir.number(1.0, a.type)
    rest, _, differs = _modulo(ir, a, b)
    quotient = ir.binary("fdiv", ir.binary("fsub", a, rest), b)
    quotient = ir.select(differs, ir.binary("fsub", quotient, one), quotient)
    whole = ir.intrinsic("floor", quotient)
    is_above = ir.compare("ogt", ir.binary("fsub", quotient, whole), ir.number(0.5, a.type))
    whole = ir.select(is_above, ir.binary("fadd", whole, one), whole)
    ratio = ir.binary("fdiv", a, b)
    whole = ir.select(ir.compare("oeq", quotient, zero), ir.intrinsic("copysign", zero, ratio), whole)
    return ir.select(ir.compare("oeq", b, zero), ratio, whole)


FLOATING: dict[str, Callable[[IRBuilder, Value, Value], Value]] = {
    "fmod": _fmod,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
}


def divide_integers(ir: IRBuilder, name: str, kind: str, a: Value, b: Value) -> Value:
    """Emit ``floor_divide``, ``remainder`` or ``fmod`` of integers; bail out for zero divisors and overflows."""
    zero, one = ir.number(0, a.type), ir.number(1, a.type)
    is_bad = ir.compare("eq", b, zero)
    if kind == "i":
        least = ir.number(-(2 ** (int(a.type.of[1:]) - 1)), a.type)
        too_large = ir.binary("and", ir.compare("eq", a, least), ir.compare("eq", b, ir.number(-1, a.type)))
        is_bad = ir.binary("or", is_bad, too_large)
    ir.bail_out_if(is_bad)
    b = ir.select(is_bad, one, b)
    if kind == "u":
        return ir.binary("udiv" if name == "floor_divide" else "urem", a, b)
    rest = ir.binary("srem", a, b)
    if name == "fmod":
        return rest
    differs = ir.compare("slt", ir.binary("xor", rest, b), zero)
    differs = ir.binary("and", differs, ir.compare("ne", rest, zero))
    if name == "remainder":
        return ir.select(differs, ir.binary("add", rest, b), rest)
    quotient = ir.binary("sdiv", a, b)
    return ir.select(differs, ir.binary("sub", quotient, one), quotient)


def shift(ir: IRBuilder, name: str, kind: str, a: Value, b: Value) -> Value:
    """Emit a shift; shifts by a negative number, or by at least the number of bits, shift everything out."""
    zero, bits = ir.number(0, a.type), int(a.type.of[1:])
    is_far = ir.compare("uge", b, ir.number(bits, b.type))
    b = ir.select(is_far, zero, b)
    if name == "left_shift":
        return ir.select(is_far, zero, ir.binary("shl", a, b))
    if kind == "u":
        return ir.select(is_far, zero, ir.binary("lshr", a, b))
    return ir.select(is_far, ir.binary("ashr", a, ir.number(bits - 1, a.type)), ir.binary("ashr", a, b))


def truncate(ir: IRBuilder, value: Value, wanted: np.dtype[Any], to: Type) -> Value:
    """Convert a float to an integer towards zero; bail out if it is out of range."""
    value = ir.cast("fpext", value, DOUBLE) if value.type.of == "float" else value
    limits = np.iinfo(wanted)
    above = ir.compare("olt", value, ir.number(float(int(limits.max) + 1), value.type))
    lowest = ir.number(float(limits.min) if wanted.itemsize == 8 and wanted.kind == "i" else float(limits.min) - 1, value.type)
    below = ir.compare("oge" if wanted.itemsize == 8 and wanted.kind == "i" else "ogt", value, lowest)
    fits = ir.binary("and", above, below)
    ir.bail_out_if(ir.binary("xor", fits, ir.number(1, fits.type)))
    value = ir.select(fits, value, ir.number(0.0, value.type))
    return ir.cast("fptosi" if wanted.kind == "i" else "fptoui", value, to)
