"""The formulas of operations element by element."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from . import expressions as ex
from .expressions import Call, Expression


def _power_of(exponent: Any) -> Callable[..., Expression]:
    return lambda args, shape: ex.power(args[0], ex.number(exponent), shape)


def _quotient(args: list[Expression], shape: ex.Shape) -> Expression:
    a, b = args
    if b.is_number() and isinstance(b.data, int) and b.data:
        return ex.mul([a, ex.number(Fraction(1, b.data))], shape)
    return ex.mul([a, ex.power(b, ex.number(-1), b.shape)], shape)


def _difference(args: list[Expression], shape: ex.Shape) -> Expression:
    return ex.add([args[0], ex.mul([ex.number(-1), args[1]], args[1].shape)], shape)


def _exponential(args: list[Expression], shape: ex.Shape) -> Expression:
    return ex.call(Call("exp", np.exp, {}, True), args, shape)


def _logarithm(args: list[Expression], shape: ex.Shape) -> Expression:
    return ex.call(Call("log", np.log, {}, True), [_unguarded(args[0])], shape)


def _power(args: list[Expression], shape: ex.Shape) -> Expression:
    return ex.power(args[0], _unguarded(args[1], args[0]), shape)


def _unguarded(x: Expression, zero: Expression | None = None) -> Expression:
    """What a power or a logarithm is of, without the 1 that rules put in its place where `zero`, or it itself, is 0.

    There the other side is not defined.
    """
    if x.head != "call" or x.data.opname != "where" or len(x.args) != 3 or not x.args[1].is_number(1):
        return x
    condition, _, other = x.args
    zero = other if zero is None else zero
    parts = condition.args if condition.head == "call" and condition.data.opname in AND else ()
    asked = [part.args for part in parts if part.head == "call" and part.data.opname == "equal"]
    return other if any(one == zero and against.is_number(0) for one, against in asked) else x


def _and(args: list[Expression], shape: ex.Shape) -> Expression | None:
    """Of conditions that are known, the other, or none."""
    if any(arg.is_number(0) for arg in args):
        return ex.number(0, shape)
    return next((args[1 - place] for place in (0, 1) if args[place].is_number(1) and args[1 - place].shape == shape), None)


def _not(args: list[Expression], shape: ex.Shape) -> Expression | None:
    """Of a comparison the opposite one."""
    (x,) = args
    opposite = OPPOSITES.get(x.data.opname) if x.head == "call" else None
    return None if opposite is None else ex.call(Call(opposite, getattr(np, opposite), {}, True), x.args, shape)


AND = "bitwise_and", "logical_and"
OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "equal": "not_equal"}
OPPOSITES |= {other: one for one, other in OPPOSITES.items()}


ELEMENTWISE: dict[str, Callable[[list[Expression], ex.Shape], Expression | None]] = {
    "add": ex.add,
    "mul": ex.mul,
    "sub": _difference,
    "div": _quotient,
    "over": _quotient,
    "neg": lambda args, shape: ex.mul([ex.number(-1), *args], shape),
    "pow": _power,
    **dict.fromkeys(AND, _and),
    "logical_not": _not,
    "square": _power_of(2),
    "sqrt": _power_of(0.5),
    "reciprocal": _power_of(-1),
    "exp": _exponential,
    "log": _logarithm,
    "expm1": lambda args, shape: ex.add([_exponential(args, shape), ex.number(-1)], shape),
    "log1p": lambda args, shape: _logarithm([ex.add([ex.number(1), args[0]], shape)], shape),
    "exp2": lambda args, shape: ex.power(ex.number(2), args[0], shape),
    "logaddexp": lambda args, shape: _logarithm([ex.add([_exponential([a], a.shape) for a in args], shape)], shape),
    "hypot": lambda args, shape: ex.power(
        ex.add([ex.power(a, ex.number(2), a.shape) for a in args], shape), ex.number(0.5), shape
    ),
}
