"""The formulas of operations (`ops.OpSpec.formula`) as functions of SymPy expressions.

Booleans are the numbers 0 and 1: ``Piecewise((1, x > 0), (0, True))``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import sympy as sp

from .symbolic_arrays import ProtectedPiecewise, protect

E = Any  # an expression of SymPy's, which has no types


def condition(x: E) -> Any:
    """Convert a number to a condition."""
    if isinstance(x, (sp.Piecewise, ProtectedPiecewise)) and len(x.args) == 2 and (x.args[0].expr, x.args[1].expr) == (1, 0):
        return x.args[0].cond
    return sp.Ne(protect(x), 0)


def truth(condition: object) -> E:
    """Convert a condition to a number."""
    return sp.Piecewise((1, protect(sp.sympify(condition))), (0, True))


def where(holds: E, x: E, y: E) -> E:
    """Select one of two values, as `np.where`."""
    return sp.Piecewise((x, protect(condition(holds))), (y, True))


def _comparison(relation: type) -> Callable[[E, E], E]:
    return lambda x, y: truth(relation(protect(sp.sympify(x)), protect(sp.sympify(y))))


def _connective(connective: Any) -> Callable[..., E]:
    return lambda *args: truth(connective(*map(condition, args)))


def _unguard(x: E, zero: E | None = None) -> E:
    """Return the operand of a logarithm or power without its guard.

    Rules replace the operand by 1 where `zero`, or the operand itself, is 0, because the function is undefined there.
    """
    if not isinstance(x, (sp.Piecewise, ProtectedPiecewise)) or len(x.args) != 2 or x.args[0].expr != 1:
        return x
    other, condition = x.args[1].expr, x.args[0].cond
    zero = other if zero is None else zero
    return other if sp.Eq(zero, 0) in (condition, *(condition.args if isinstance(condition, sp.And) else ())) else x


def trunc(x: E) -> E:
    """Return the integer part."""
    return sp.sign(x) * sp.floor(sp.Abs(x))


def _clip(x: E, low: E | None = None, high: E | None = None) -> E:
    x = x if low is None else sp.Max(x, low)
    return x if high is None else sp.Min(x, high)


# The names that formulas use: SymPy's, except for functions with conditions or guards.
_NAMES: dict[str, Any] = {
    **{name: _comparison(getattr(sp, name)) for name in ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")},
    **{name: _connective(getattr(sp, name)) for name in ("And", "Or", "Xor", "Not")},
    "where": where,
    "clip": _clip,
    "trunc": trunc,
    "log": lambda x: sp.log(_unguard(x)),
    "power": lambda x, y: sp.sympify(x) ** _unguard(y, x),
}


def is_applicable(formula: str, kinds: set[str]) -> bool:
    """Whether a formula holds for operands with the given dtype kinds."""
    if formula.startswith("bool: "):
        return kinds == {"b"}
    return bool(formula)


@functools.cache
def function_of(formula: str, output: int = 0) -> Callable[..., Any]:
    """Compile a formula to a function of SymPy expressions."""
    text = formula.rpartition(": ")[2].split("; ")[output]
    names = {name: _NAMES.get(name) or getattr(sp, name) for name in set(re.findall(r"[A-Za-z_]\w*", text)) - {*"xyz"}}
    function: Callable[..., Any] = eval(f"lambda x=None, y=None, z=None: {text}", names)
    return function
