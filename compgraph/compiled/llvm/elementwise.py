"""What is computed element by element: which of NumPy's functions, on which dtypes, by which instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import mathematics, whole
from .code import BIT, BYTE, DOUBLE, FLOAT, Code, Type, Value

# NumPy's ufuncs with one instruction each, for floating numbers, integers, and booleans.
_FLOATING = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTEGER = {"add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_BOOLEAN = {
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "add": "or", "multiply": "and", "not_equal": "xor",
}  # fmt: skip
_ORDERED = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne"}
_OF_FLOATING = frozenset(
    {
        *_FLOATING,
        "negative",
        "square",
        "reciprocal",
        "sign",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logical_not",
        "isnan",
        "isinf",
    }
    | {"isfinite", "copysign", "signbit", "heaviside", "rad2deg", "degrees", "deg2rad", "radians", *whole.FLOATING}
)
_WHOLE = frozenset({"floor", "ceil", "trunc"})  # nothing to do, of integers
_DIVIDED = frozenset({"floor_divide", "remainder", "fmod"})
_OF_INTEGERS = frozenset({*_INTEGER, "negative", "square", "maximum", "minimum", "invert", "absolute", "sign", "left_shift"})
_OF_INTEGERS |= _WHOLE | _DIVIDED | {"right_shift", "isnan", "isinf", "isfinite"}
_OF_BOOLEANS = frozenset({*_BOOLEAN, *_ORDERED, "logical_not", "invert", "maximum", "minimum", "absolute"})
_OF_ALL = frozenset({"copy", "positive", "where"})
_SCALED: dict[str, tuple[float, float]] = {
    "rad2deg": (180, np.pi),
    "degrees": (180, np.pi),
    "deg2rad": (np.pi, 180),
    "radians": (np.pi, 180),
}
# Those that have NumPy's bits: one instruction of the processor's, or none. NumPy's `fmax` and `fmin` of floating zeros of both
# signs depend on where in an array these are.
EXACT = frozenset({*_OF_FLOATING, *_OF_ALL, *_ORDERED, "sqrt", "absolute", "floor", "ceil", "rint", "trunc"} - {"fmax", "fmin"})
_KINDS = {"f8": DOUBLE, "f4": FLOAT, "b1": BIT, **{f"{k}{n}": Type(f"i{8 * n}") for k in "iu" for n in (1, 2, 4, 8)}}


def is_known(dtype: Any) -> bool:
    """Whether numbers of a dtype are compiled."""
    return dtype.isnative and dtype.str[1:] in _KINDS


def type_of(dtype: Any) -> Type:
    """Of the values of a dtype."""
    return _KINDS[dtype.str[1:]]


def in_memory(dtype: Any) -> Type:
    """Of the values of a dtype where they stand in memory: a boolean is a byte there."""
    return BYTE if dtype.kind == "b" else type_of(dtype)


def can_compute(name: str, dtype: Any) -> bool:
    """Whether an operation is compiled for operands of a dtype."""
    if name in _OF_ALL:
        return True
    if dtype.kind == "b":
        return name in _OF_BOOLEANS
    if dtype.kind == "f":
        return name in _OF_FLOATING or name in _ORDERED or name in mathematics.NAMES
    return name in _OF_INTEGERS or name in _ORDERED


def emit(code: Code, name: str, operands: list[Value], dtype: Any) -> Value:
    """The instructions of an operation on operands of one dtype."""
    kind = dtype.kind
    if name in ("copy", "positive"):
        return operands[0]
    if name == "where":
        return code.select(*operands)
    if kind == "b":
        return _of_booleans(code, name, *operands)
    if name in _ORDERED:
        return _compared(code, name, kind, *operands)
    if kind == "f":
        return _of_floating(code, name, *operands)
    return _of_integers(code, name, kind, *operands)


def _compared(code: Code, name: str, kind: str, a: Value, b: Value) -> Value:
    order = _ORDERED[name]
    if kind == "f":
        return code.compare("une" if order == "ne" else "o" + order, a, b)
    return code.compare(order if order in ("eq", "ne") else {"i": "s", "u": "u"}[kind] + order, a, b)


def _of_booleans(code: Code, name: str, a: Value, b: Value | None = None) -> Value:
    if name in ("logical_not", "invert"):
        return code.binary("xor", a, code.number(1, a.type))
    if name == "absolute":
        return a
    assert b is not None
    if name in ("maximum", "minimum"):
        return code.binary("or" if name == "maximum" else "and", a, b)
    if name in _ORDERED:
        return _compared(code, name, "u", a, b)
    return code.binary(_BOOLEAN[name], a, b)


def _of_integers(code: Code, name: str, kind: str, a: Value, b: Value | None = None) -> Value:
    if name == "negative":
        return code.binary("sub", code.number(0, a.type), a)
    if name == "invert":
        return code.binary("xor", a, code.number(-1, a.type))
    if name == "square":
        return code.binary("mul", a, a)
    if name in _WHOLE:
        return a
    if name in ("isnan", "isinf", "isfinite"):
        return code.compare("eq" if name == "isfinite" else "ne", a, a)
    if name in ("absolute", "sign"):
        return _of_signed(code, name, kind, a)
    assert b is not None
    if name in ("maximum", "minimum"):
        return code.intrinsic({"i": "s", "u": "u"}[kind] + name[:3], a, b)
    if name in _DIVIDED:
        return whole.divided(code, name, kind, a, b)
    if name in ("left_shift", "right_shift"):
        return whole.shifted(code, name, kind, a, b)
    return code.binary(_INTEGER[name], a, b)


def _of_signed(code: Code, name: str, kind: str, a: Value) -> Value:
    zero, one = code.number(0, a.type), code.number(1, a.type)
    if name == "absolute":
        negative = code.binary("sub", zero, a)
        return a if kind == "u" else code.select(code.compare("slt", a, zero), negative, a)
    above = code.select(code.compare("ne", a, zero), one, zero)
    return above if kind == "u" else code.select(code.compare("slt", a, zero), code.number(-1, a.type), above)


def _of_floating(code: Code, name: str, *operands: Value) -> Value:
    a, b = operands[0], operands[-1]
    one, zero = code.number(1.0, a.type), code.number(0.0, a.type)
    if name in _FLOATING:
        return code.binary(_FLOATING[name], a, b)
    if name == "negative":
        return code.negative(a)
    if name == "square":
        return code.binary("fmul", a, a)
    if name == "reciprocal":
        return code.binary("fdiv", one, a)
    if name in ("maximum", "minimum"):  # nan if one is; of zeros the second, as the instruction that NumPy uses has it
        chosen = code.compare("ogt" if name == "maximum" else "olt", a, b)
        return code.select(code.binary("or", chosen, code.compare("uno", a, a)), a, b)
    if name in ("fmax", "fmin"):  # the other if one is nan
        chosen = code.compare("oge" if name == "fmax" else "ole", a, b)
        return code.select(code.binary("or", chosen, code.compare("uno", b, b)), a, b)
    if name == "sign":
        found = code.select(code.compare("ogt", a, zero), one, code.number(-1.0, a.type))
        found = code.select(code.compare("oeq", a, zero), zero, found)
        return code.select(code.compare("uno", a, a), a, found)
    if name == "logical_not":
        return code.compare("oeq", a, zero)
    if name == "isnan":
        return code.compare("uno", a, a)
    if name == "copysign":
        return code.intrinsic("copysign", a, b)
    if name == "signbit":
        return code.compare("olt", code.intrinsic("copysign", one, a), zero)
    if name == "heaviside":
        found = code.select(code.compare("oeq", a, zero), b, code.select(code.compare("olt", a, zero), zero, one))
        return code.select(code.compare("uno", a, a), a, found)
    if name in _SCALED:
        over, under = np.array(_SCALED[name], np.float64 if a.type.of == "double" else np.float32)
        return code.binary("fmul", a, code.number(over / under, a.type))
    if name in whole.FLOATING:
        return whole.FLOATING[name](code, a, b)
    infinite = code.number(np.inf, a.type)
    if name == "isinf":
        return code.compare("oeq", code.intrinsic("fabs", a), infinite)
    if name == "isfinite":
        return code.compare("one", code.intrinsic("fabs", a), infinite)
    return mathematics.emit(code, name, *operands)


def converted(code: Code, value: Value, given: Any, wanted: Any) -> Value:
    """A value of one dtype as one of another, as NumPy converts."""
    if given == wanted:
        return value
    to = type_of(wanted)
    if wanted.kind == "b":
        zero = code.number(0, value.type)
        return code.compare("une" if given.kind == "f" else "ne", value, zero)
    if given.kind == "f" and wanted.kind in "iu":
        return whole.truncated(code, value, wanted, to)
    if given.kind == "f":
        return code.cast("fpext" if to == DOUBLE else "fptrunc", value, to)
    if wanted.kind == "f":
        return code.cast("sitofp" if given.kind == "i" else "uitofp", value, to)
    if given.itemsize == wanted.itemsize and given.kind != "b":
        return value
    if given.kind == "b" or given.itemsize < wanted.itemsize:
        return code.cast("sext" if given.kind == "i" else "zext", value, to)
    return code.cast("trunc", value, to)
