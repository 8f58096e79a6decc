"""Elementwise operations: which of NumPy's functions are compiled for which dtypes, and their instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import integer_arithmetic, mathematics
from .ir_builder import BIT, BYTE, DOUBLE, FLOAT, IRBuilder, Type, Value

# LLVM instructions of ufuncs, for floats, integers and booleans.
_FLOATING = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTEGER = {"add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_BOOLEAN = {
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "add": "or", "multiply": "and", "not_equal": "xor",
}  # fmt: skip
_ORDERED = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne"}
_FLOAT_OPS = frozenset({
    *_FLOATING, *integer_arithmetic.FLOATING, "negative", "square", "reciprocal", "sign", "maximum", "minimum", "fmax", "fmin",
    "logical_not", "isnan", "isinf", "isfinite", "copysign", "signbit", "heaviside", "rad2deg", "degrees", "deg2rad", "radians",
})  # fmt: skip
_ROUNDING = frozenset({"floor", "ceil", "trunc"})  # the identity on integers
_DIVISIONS = frozenset({"floor_divide", "remainder", "fmod"})
_INTEGER_OPS = frozenset({*_INTEGER, "negative", "square", "maximum", "minimum", "invert", "absolute", "sign", "left_shift"})
_INTEGER_OPS |= _ROUNDING | _DIVISIONS | {"right_shift", "isnan", "isinf", "isfinite"}
_BOOLEAN_OPS = frozenset({*_BOOLEAN, *_ORDERED, "logical_not", "invert", "maximum", "minimum", "absolute"})
_GENERIC_OPS = frozenset({"copy", "positive", "where"})
_ANGLE_FACTORS: dict[str, tuple[float, float]] = {  # numerator and denominator
    **dict.fromkeys(("rad2deg", "degrees"), (180, np.pi)),
    **dict.fromkeys(("deg2rad", "radians"), (np.pi, 180)),
}

# Operations with NumPy's bits. `fmax` and `fmin` are excluded, because the sign of a zero result of NumPy depends on the position
# in the array.
EXACT = frozenset({*_FLOAT_OPS, *_INTEGER_OPS, *_BOOLEAN_OPS, *_GENERIC_OPS, *_ORDERED, "sqrt", "rint"} - {"fmax", "fmin"})
_TYPES = {"f8": DOUBLE, "f4": FLOAT, "b1": BIT, **{f"{k}{n}": Type(f"i{8 * n}") for k in "iu" for n in (1, 2, 4, 8)}}


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
    if name == "require":  # NumPy decides where it is false
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
    return ir.binary(_BOOLEAN[name], a, b)


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
        return integer_arithmetic.divide_integers(ir, name, kind, a, b)
    if name in ("left_shift", "right_shift"):
        return integer_arithmetic.shift(ir, name, kind, a, b)
    return ir.binary(_INTEGER[name], a, b)


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
    if name in _FLOATING:
        return ir.binary(_FLOATING[name], a, b)
    if name == "negative":
        return ir.neg(a)
    if name == "square":
        return ir.binary("fmul", a, a)
    if name == "reciprocal":
        return ir.binary("fdiv", one, a)
    if name in ("maximum", "minimum"):  # nan if an operand is; of two zeros the second, like the instruction that NumPy uses
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
    if name in integer_arithmetic.FLOATING:
        return integer_arithmetic.FLOATING[name](ir, a, b)
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
        return integer_arithmetic.truncate(ir, value, target, target_type)
    if source.kind == "f":
        return ir.cast("fpext" if target_type == DOUBLE else "fptrunc", value, target_type)
    if target.kind == "f":
        return ir.cast("sitofp" if source.kind == "i" else "uitofp", value, target_type)
    if source.itemsize == target.itemsize and source.kind != "b":
        return value
    if source.kind == "b" or source.itemsize < target.itemsize:
        return ir.cast("sext" if source.kind == "i" else "zext", value, target_type)
    return ir.cast("trunc", value, target_type)
