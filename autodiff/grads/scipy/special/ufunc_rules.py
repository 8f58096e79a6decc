"""Declaration of the rules of SciPy's ufuncs.

Each ufunc of ``scipy.special`` is recorded under its own name with the prefix ``special_``; its policy in `compgraph.scipy`
lists them. A rule has a formula for each argument. If the derivative with respect to an argument is unknown, the name of the
argument replaces the formula, and the derivative raises a TypeError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from compgraph.scipy import ufunc_opname

from ....rules import Formula, Rule, elementwise, general

DEGREE = math.pi / 180
ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2 * math.pi)

# The opnames whose derivatives with respect to all arguments are unknown.
UNKNOWN: set[str] = set()


def special(name: str, *arguments: Formula | str | None) -> Rule:
    """Declare the rule of a ufunc of ``scipy.special``.

    Parameters
    ----------
    name : str
        The name of the ufunc; private ufuncs of SciPy have names with an underscore.
    *arguments : callable, str or None
        For each argument, its formula, or the name of the argument if the derivative is unknown.
    """
    opname = ufunc_opname("scipy.special", name)
    _register_unknown(opname, arguments)
    return elementwise(opname, *[_unknown_derivative(name, a) if isinstance(a, str) else a for a in arguments])


def special_multi_output(name: str, *arguments: Sequence[Formula] | str) -> Rule:
    """Declare the rule of a ufunc of ``scipy.special`` that returns several arrays.

    Parameters
    ----------
    name : str
        The name of the ufunc.
    *arguments : sequence of callable, or str
        For each argument: for each result, ``(out, *arguments) -> derivative``; or the name of the argument if the derivative is
        unknown.
    """
    opname = ufunc_opname("scipy.special", name)
    _register_unknown(opname, arguments)
    formulas = [_unknown_derivative(name, a) if isinstance(a, str) else _pull_argument(a) for a in arguments]
    tangents = [_unknown_derivative(name, a) if isinstance(a, str) else _push_argument(a) for a in arguments]
    return general(opname, *formulas).tangent(*tangents)


def _register_unknown(opname: str, arguments: Sequence[Any]) -> None:
    if all(isinstance(a, str) for a in arguments):
        UNKNOWN.add(opname)


def _pull_argument(slopes: Sequence[Formula]) -> Formula:
    def formula(g: tuple[Any, ...], out: NDArray[Any], *operands: object) -> Any:
        return sum(cotangent * slope(out, *operands) for cotangent, slope in zip(g, slopes, strict=True) if cotangent is not None)

    return formula


def _push_argument(slopes: Sequence[Formula]) -> Formula:
    return lambda t, out, *operands: tuple([t * slope(out, *operands) for slope in slopes])


def _unknown_derivative(name: str, argument: str) -> Formula:
    def formula(*_: object, **__: object) -> Any:
        raise TypeError(
            f"scipy.special.{name.strip('_')}: no derivative with respect to its argument {argument} is known. Pass a plain "
            "value, or declare your own function with cg.primitive and autodiff.rule"
        )

    return formula


def real_only(name: str, instead: str, formula: Formula) -> Formula:
    """Return a formula that raises if the last argument is complex, where the function is not analytic."""

    def checked_formula(*arguments: Any) -> Any:
        if arguments[-1].dtype.kind == "c":
            raise TypeError(f"scipy.special.{name} is not analytic for complex numbers. Use {instead}")
        return formula(*arguments)

    return checked_formula
