"""Rules of SciPy's ufuncs: how they are declared.

Each ufunc of ``scipy.special`` is recorded under its own name with the prefix ``special_``; its policy in `compgraph.scipy`
lists them. A rule has a formula for each argument. Where no derivative by an argument is known, the name of the argument
replaces its formula, and that derivative raises a TypeError.
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

# Operations whose rule has no derivative, only a message
UNKNOWN: set[str] = set()


def special(name: str, *arguments: Formula | str | None) -> Rule:
    """Declare the rule of a ufunc of ``scipy.special``.

    Parameters
    ----------
    name : str
        The name of the ufunc; SciPy keeps some of them under a name with an underscore.
    *arguments : callable, str or None
        For each argument, its formula, or the name of the argument if its derivative is not known.
    """
    opname = ufunc_opname("scipy.special", name)
    _note(opname, arguments)
    return elementwise(opname, *[_unknown_derivative(name, a) if isinstance(a, str) else a for a in arguments])


def several(name: str, *arguments: Sequence[Formula] | str) -> Rule:
    """The same for a ufunc of several results: for each argument, ``(out, *arguments) -> derivative`` of each result."""
    opname = ufunc_opname("scipy.special", name)
    _note(opname, arguments)
    formulas = [_unknown_derivative(name, a) if isinstance(a, str) else _pull_arguments(a) for a in arguments]
    tangents = [_unknown_derivative(name, a) if isinstance(a, str) else _push_argument(a) for a in arguments]
    return general(opname, *formulas).tangent(*tangents)


def _note(opname: str, arguments: Sequence[Any]) -> None:
    if all(isinstance(a, str) for a in arguments):
        UNKNOWN.add(opname)


def _pull_arguments(slopes: Sequence[Formula]) -> Formula:
    def formula(g: tuple[Any, ...], out: NDArray[Any], *operands: object) -> Any:
        return sum(adjoint * slope(out, *operands) for adjoint, slope in zip(g, slopes, strict=True) if adjoint is not None)

    return formula


def _push_argument(slopes: Sequence[Formula]) -> Formula:
    return lambda t, out, *operands: tuple([t * slope(out, *operands) for slope in slopes])


def _unknown_derivative(name: str, argument: str) -> Formula:
    def formula(*_: object, **__: object) -> Any:
        raise TypeError(
            f"scipy.special.{name.strip('_')}: no derivative with respect to its argument {argument} is known; give a "
            "plain value for it, or make a function of your own with cg.primitive and a rule"
        )

    return formula


def real_only(name: str, instead: str, formula: Formula) -> Formula:
    """The formula of a function's last argument that holds for real numbers; the function is not analytic."""

    def guarded(*arguments: Any) -> Any:
        if arguments[-1].dtype.kind == "c":
            raise TypeError(f"scipy.special.{name}: of complex numbers it is not analytic; use {instead}")
        return formula(*arguments)

    return guarded
