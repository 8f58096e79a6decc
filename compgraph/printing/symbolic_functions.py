"""The formulas of operations (`ops.OpSpec.formula`) as functions of SymPy expressions.

Booleans are the numbers 0 and 1: ``Piecewise((1, x > 0), (0, True))``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import sympy as sp

from .symbolic_arrays import Choice, protected

E = Any  # an expression of SymPy's, which has no types


def condition(x: E) -> Any:
    """A number as a condition."""
    if isinstance(x, (sp.Piecewise, Choice)) and len(x.args) == 2 and (x.args[0].expr, x.args[1].expr) == (1, 0):
        return x.args[0].cond
    return sp.Ne(protected(x), 0)


def truth(holds: Any) -> E:
    """A condition as a number."""
    return sp.Piecewise((1, protected(sp.sympify(holds))), (0, True))


def where(holds: E, x: E, y: E) -> E:
    """One value or another, as `np.where`."""
    return sp.Piecewise((x, protected(condition(holds))), (y, True))


def _comparison(relation: Any) -> Callable[[E, E], E]:
    return lambda x, y: truth(relation(protected(sp.sympify(x)), protected(sp.sympify(y))))


def _connective(connective: Any) -> Callable[..., E]:
    return lambda *args: truth(connective(*map(condition, args)))


def _unguarded(x: E, zero: E | None = None) -> E:
    """The operand of a logarithm or power, without the 1 that rules put in its place where `zero`, or it itself, is 0.

    There the other side is not defined.
    """
    if not isinstance(x, (sp.Piecewise, Choice)) or len(x.args) != 2 or x.args[0].expr != 1:
        return x
    other, condition = x.args[1].expr, x.args[0].cond
    zero = other if zero is None else zero
    return other if sp.Eq(zero, 0) in (condition, *(condition.args if isinstance(condition, sp.And) else ())) else x


def trunc(x: E) -> E:
    """The integer part."""
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
    "log": lambda x: sp.log(_unguarded(x)),
    "power": lambda x, y: sp.sympify(x) ** _unguarded(y, x),
}


def applies(formula: str, kinds: set[str]) -> bool:
    """Whether a formula holds for operands with the given kinds of dtype."""
    if formula.startswith("bool: "):
        return kinds == {"b"}
    return bool(formula) and not (formula.startswith("real: ") and "c" in kinds)


@functools.cache
def function_of(formula: str, output: int = 0) -> Callable[..., Any]:
    """A formula as a function of SymPy expressions."""
    text = formula.rpartition(": ")[2].split("; ")[output]
    names = {name: _NAMES.get(name) or getattr(sp, name) for name in set(re.findall(r"[A-Za-z_]\w*", text)) - {*"xyz"}}
    function: Callable[..., Any] = eval(f"lambda x=None, y=None, z=None: {text}", names)
    return function
