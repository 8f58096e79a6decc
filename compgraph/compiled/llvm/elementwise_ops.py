"""Elementwise operations: the functions that are compiled for each dtype, and their instructions.

Where NumPy warns for integers, or a conversion is undefined in C, the code bails out to NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import mathematics
from .ir_builder import BIT, BYTE, DOUBLE, FLOAT, IRBuilder, Type, Value


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


_FLOAT_DIVISIONS: dict[str, Callable[[IRBuilder, Value, Value], Value]] = {
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


# LLVM instructions of ufuncs, for floats, integers and booleans.
_FLOAT_INSTRUCTIONS = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTEGER_INSTRUCTIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
_BOOLEAN_INSTRUCTIONS = {
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "add": "or", "multiply": "and", "not_equal": "xor",
}  # fmt: skip
_ORDERED = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne"}
_FLOAT_OPS = frozenset({
    *_FLOAT_INSTRUCTIONS, *_FLOAT_DIVISIONS, "negative", "square", "reciprocal", "sign", "maximum", "minimum", "fmax", "fmin",
    "logical_not", "isnan", "isinf", "isfinite", "copysign", "signbit", "heaviside", "rad2deg", "degrees", "deg2rad", "radians",
})  # fmt: skip
_ROUNDING = frozenset({"floor", "ceil", "trunc"})  # the identity on integers
_DIVISIONS = frozenset({"floor_divide", "remainder", "fmod"})
_INTEGER_OPS = frozenset({
    *_INTEGER_INSTRUCTIONS, "negative", "square", "maximum", "minimum", "invert", "absolute", "sign", "left_shift",
})  # fmt: skip
_INTEGER_OPS |= _ROUNDING | _DIVISIONS | {"right_shift", "isnan", "isinf", "isfinite"}
_BOOLEAN_OPS = frozenset({*_BOOLEAN_INSTRUCTIONS, *_ORDERED, "logical_not", "invert", "maximum", "minimum", "absolute"})
_GENERIC_OPS = frozenset({"copy", "positive", "where"})
_ANGLE_FACTORS: dict[str, tuple[float, float]] = {  # numerator and denominator
    **dict.fromkeys(("rad2deg", "degrees"), (180, np.pi)),
    **dict.fromkeys(("deg2rad", "radians"), (np.pi, 180)),
}

# Operations with NumPy's bits. `fmax` and `fmin` are excluded, because the sign of a zero result of NumPy depends on the position
# in the array.
EXACT = frozenset({*_FLOAT_OPS, *_INTEGER_OPS, *_BOOLEAN_OPS, *_GENERIC_OPS, *_ORDERED, "sqrt", "rint"} - {"fmax", "fmin"})
_TYPES = {"f8": DOUBLE, "f4": FLOAT, "b1": BIT, **{f"{k}{n}": Type(f"i{8 * n}") for k in "iu" for n in (1, 2, 4, 8)}}


@functools.cache
def is_compilable(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is supported."""
    return dtype.isnative and dtype.str[1:] in _TYPES


def type_of(dtype: np.dtype[Any]) -> Type:
    """Return the IR type of the values of a dtype."""
    return _TYPES[dtype.str[1:]]


def memory_type(dtype: np.dtype[Any]) -> Type:
    """Return the IR type of the values of a dtype in memory, where a boolean is a byte."""
    return BYTE if dtype.kind == "b" else type_of(dtype)


def can_compute(name: str, dtype: np.dtype[Any]) -> bool:
    """Return whether an operation is compiled for operands of a dtype."""
    if name in _GENERIC_OPS:
        return True
    if dtype.kind == "b":
        return name in _BOOLEAN_OPS
    if dtype.kind == "f":
        return name in _FLOAT_OPS or name in _ORDERED or name in mathematics.NAMES
    return name in _INTEGER_OPS or name in _ORDERED


def emit(ir: IRBuilder, name: str, operands: list[Value], dtype: np.dtype[Any]) -> Value:
    """Emit an operation on operands of one dtype."""
    kind = dtype.kind
    if name in ("copy", "positive"):
        return operands[0]
    if name == "where":
        result = ir.select(*operands)
        return ir.intrinsic("arithmetic.fence", result) if kind == "f" else result
    if name == "require":  # where it is false, the program falls back to NumPy
        ir.bail_out_if(ir.binary("xor", operands[0], ir.number(1, operands[0].type)))
        return operands[0]
    if kind == "b":
        return _emit_boolean(ir, name, *operands)
    if name in _ORDERED:
        return _emit_comparison(ir, name, kind, *operands)
    if kind == "f":
        return _emit_float(ir, name, *operands)
    return _emit_integer(ir, name, kind, *operands)


def _emit_comparison(ir: IRBuilder, name: str, kind: str, a: Value, b: Value) -> Value:
    order = _ORDERED[name]
    if kind == "f":
        return ir.compare("une" if order == "ne" else "o" + order, a, b)
    return ir.compare(order if order in ("eq", "ne") else {"i": "s", "u": "u"}[kind] + order, a, b)


def _emit_boolean(ir: IRBuilder, name: str, a: Value, b: Value | None = None) -> Value:
    if name in ("logical_not", "invert"):
        return ir.binary("xor", a, ir.number(1, a.type))
    if name == "absolute":
        return a
    assert b is not None
    if name in ("maximum", "minimum"):
        return ir.binary("or" if name == "maximum" else "and", a, b)
    if name in _ORDERED:
        return _emit_comparison(ir, name, "u", a, b)
    return ir.binary(_BOOLEAN_INSTRUCTIONS[name], a, b)


def _emit_integer(ir: IRBuilder, name: str, kind: str, a: Value, b: Value | None = None) -> Value:
    if name == "negative":
        return ir.binary("sub", ir.number(0, a.type), a)
    if name == "invert":
        return ir.binary("xor", a, ir.number(-1, a.type))
    if name == "square":
        return ir.binary("mul", a, a)
    if name in _ROUNDING:
        return a
    if name in ("isnan", "isinf", "isfinite"):
        return ir.compare("eq" if name == "isfinite" else "ne", a, a)
    if name in ("absolute", "sign"):
        return _emit_signed(ir, name, kind, a)
    assert b is not None
    if name in ("maximum", "minimum"):
        return ir.intrinsic({"i": "s", "u": "u"}[kind] + name[:3], a, b)
    if name in _DIVISIONS:
        return divide_integers(ir, name, kind, a, b)
    if name in ("left_shift", "right_shift"):
        return shift(ir, name, kind, a, b)
    return ir.binary(_INTEGER_INSTRUCTIONS[name], a, b)


def _emit_signed(ir: IRBuilder, name: str, kind: str, a: Value) -> Value:
    zero, one = ir.number(0, a.type), ir.number(1, a.type)
    if name == "absolute":
        negative = ir.binary("sub", zero, a)
        return a if kind == "u" else ir.select(ir.compare("slt", a, zero), negative, a)
    is_nonzero = ir.select(ir.compare("ne", a, zero), one, zero)
    return is_nonzero if kind == "u" else ir.select(ir.compare("slt", a, zero), ir.number(-1, a.type), is_nonzero)


def _emit_float(ir: IRBuilder, name: str, *operands: Value) -> Value:
    a, b = operands[0], operands[-1]
    one, zero = ir.number(1.0, a.type), ir.number(0.0, a.type)
    if name in _FLOAT_INSTRUCTIONS:
        return ir.binary(_FLOAT_INSTRUCTIONS[name], a, b)
    if name == "negative":
        return ir.neg(a)
    if name == "square":
        return ir.binary("fmul", a, a)
    if name == "reciprocal":
        return ir.binary("fdiv", one, a)
    if name in ("maximum", "minimum"):  # nan if an operand is; the second of two zeros, as NumPy's instruction
        is_first = ir.compare("ogt" if name == "maximum" else "olt", a, b)
        return ir.select(ir.binary("or", is_first, ir.compare("uno", a, a)), a, b)
    if name in ("fmax", "fmin"):  # the other operand if one is nan
        is_first = ir.compare("oge" if name == "fmax" else "ole", a, b)
        return ir.select(ir.binary("or", is_first, ir.compare("uno", b, b)), a, b)
    if name == "sign":
        result = ir.select(ir.compare("ogt", a, zero), one, ir.number(-1.0, a.type))
        result = ir.select(ir.compare("oeq", a, zero), zero, result)
        return ir.select(ir.compare("uno", a, a), a, result)
    if name == "logical_not":
        return ir.compare("oeq", a, zero)
    if name == "isnan":
        return ir.compare("uno", a, a)
    if name == "copysign":
        return ir.intrinsic("copysign", a, b)
    if name == "signbit":
        return ir.compare("olt", ir.intrinsic("copysign", one, a), zero)
    if name == "heaviside":
        result = ir.select(ir.compare("oeq", a, zero), b, ir.select(ir.compare("olt", a, zero), zero, one))
        return ir.select(ir.compare("uno", a, a), a, result)
    if name in _ANGLE_FACTORS:
        numerator, denominator = np.array(_ANGLE_FACTORS[name], np.float64 if a.type.scalar == "double" else np.float32)
        return ir.binary("fmul", a, ir.number(numerator / denominator, a.type))
    if name in _FLOAT_DIVISIONS:
        return _FLOAT_DIVISIONS[name](ir, a, b)
    infinite = ir.number(np.inf, a.type)
    if name == "isinf":
        return ir.compare("oeq", ir.intrinsic("fabs", a), infinite)
    if name == "isfinite":
        return ir.compare("one", ir.intrinsic("fabs", a), infinite)
    return mathematics.emit(ir, name, *operands)


def convert(ir: IRBuilder, value: Value, source: np.dtype[Any], target: np.dtype[Any]) -> Value:
    """Convert a value from one dtype to another, as NumPy does."""
    if source == target:
        return value
    target_type = type_of(target)
    if target.kind == "b":
        zero = ir.number(0, value.type)
        return ir.compare("une" if source.kind == "f" else "ne", value, zero)
    if source.kind == "f" and target.kind in "iu":
        return truncate(ir, value, target, target_type)
    if source.kind == "f":
        return ir.cast("fpext" if target_type == DOUBLE else "fptrunc", value, target_type)
    if target.kind == "f":
        return ir.cast("sitofp" if source.kind == "i" else "uitofp", value, target_type)
    if source.itemsize == target.itemsize and source.kind != "b":
        return value
    if source.kind == "b" or source.itemsize < target.itemsize:
        return ir.cast("sext" if source.kind == "i" else "zext", value, target_type)
    return ir.cast("trunc", value, target_type)
