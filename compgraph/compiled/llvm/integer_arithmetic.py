"""Floor division, remainders, shifts, and conversions of floats to integers, as NumPy computes them.

Where NumPy warns for integers, or a conversion is undefined in C, the code bails out to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .ir_builder import DOUBLE, IRBuilder, Type, Value


def _fmod(ir: IRBuilder, a: Value, b: Value) -> Value:
    """C's ``fmod``, which is exact, so it can be computed in double."""
    wide = [ir.cast("fpext", v, DOUBLE) if v.type.scalar == "float" else v for v in (a, b)]
    remainder = ir.binary("frem", *wide)
    return ir.cast("fptrunc", remainder, a.type) if a.type.scalar == "float" else remainder


def _modulo(ir: IRBuilder, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Return ``fmod(a, b)``, the remainder with the sign of `b`, and a mask where the two differ by `b`."""
    zero = ir.number(0.0, a.type)
    c_remainder = _fmod(ir, a, b)
    is_nonzero = ir.compare("une", c_remainder, zero)
    differs = ir.binary("xor", ir.compare("olt", b, zero), ir.compare("olt", c_remainder, zero))
    differs = ir.binary("and", differs, is_nonzero)
    nonzero_remainder = ir.select(is_nonzero, c_remainder, ir.intrinsic("copysign", zero, b))
    return c_remainder, ir.select(differs, ir.binary("fadd", c_remainder, b), nonzero_remainder), differs


def _remainder(ir: IRBuilder, a: Value, b: Value) -> Value:
    c_remainder, remainder, _ = _modulo(ir, a, b)
    return ir.select(ir.compare("oeq", b, ir.number(0.0, b.type)), c_remainder, remainder)


def _floor_divide(ir: IRBuilder, a: Value, b: Value) -> Value:
    zero, one = ir.number(0.0, a.type), ir.number(1.0, a.type)
    c_remainder, _, differs = _modulo(ir, a, b)
    quotient = ir.binary("fdiv", ir.binary("fsub", a, c_remainder), b)
    quotient = ir.select(differs, ir.binary("fsub", quotient, one), quotient)
    whole = ir.intrinsic("floor", quotient)
    is_rounded_down = ir.compare("ogt", ir.binary("fsub", quotient, whole), ir.number(0.5, a.type))
    whole = ir.select(is_rounded_down, ir.binary("fadd", whole, one), whole)
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
    is_undefined = ir.compare("eq", b, zero)
    if kind == "i":
        least = ir.number(-(2 ** (int(a.type.scalar[1:]) - 1)), a.type)
        too_large = ir.binary("and", ir.compare("eq", a, least), ir.compare("eq", b, ir.number(-1, a.type)))
        is_undefined = ir.binary("or", is_undefined, too_large)
    ir.bail_out_if(is_undefined)
    b = ir.select(is_undefined, one, b)
    if kind == "u":
        return ir.binary("udiv" if name == "floor_divide" else "urem", a, b)
    c_remainder = ir.binary("srem", a, b)
    if name == "fmod":
        return c_remainder
    differs = ir.compare("slt", ir.binary("xor", c_remainder, b), zero)
    differs = ir.binary("and", differs, ir.compare("ne", c_remainder, zero))
    if name == "remainder":
        return ir.select(differs, ir.binary("add", c_remainder, b), c_remainder)
    quotient = ir.binary("sdiv", a, b)
    return ir.select(differs, ir.binary("sub", quotient, one), quotient)


def shift(ir: IRBuilder, name: str, kind: str, a: Value, b: Value) -> Value:
    """Emit a shift. A shift by a negative number, or by at least the number of bits, shifts out all bits."""
    zero, bits = ir.number(0, a.type), int(a.type.scalar[1:])
    shifts_out = ir.compare("uge", b, ir.number(bits, b.type))
    b = ir.select(shifts_out, zero, b)
    if name == "left_shift":
        return ir.select(shifts_out, zero, ir.binary("shl", a, b))
    if kind == "u":
        return ir.select(shifts_out, zero, ir.binary("lshr", a, b))
    return ir.select(shifts_out, ir.binary("ashr", a, ir.number(bits - 1, a.type)), ir.binary("ashr", a, b))


def truncate(ir: IRBuilder, value: Value, dtype: np.dtype[Any], type: Type) -> Value:
    """Convert a float to an integer, rounded toward zero; bail out if it is out of range."""
    value = ir.cast("fpext", value, DOUBLE) if value.type.scalar == "float" else value
    limits, is_long = np.iinfo(dtype), dtype.itemsize == 8 and dtype.kind == "i"
    fits_above = ir.compare("olt", value, ir.number(float(int(limits.max) + 1), value.type))
    lower_bound = ir.number(float(limits.min) if is_long else float(limits.min) - 1, value.type)
    fits_below = ir.compare("oge" if is_long else "ogt", value, lower_bound)
    fits = ir.binary("and", fits_above, fits_below)
    ir.bail_out_if(ir.binary("xor", fits, ir.number(1, fits.type)))
    value = ir.select(fits, value, ir.number(0.0, value.type))
    return ir.cast("fptosi" if dtype.kind == "i" else "fptoui", value, type)
