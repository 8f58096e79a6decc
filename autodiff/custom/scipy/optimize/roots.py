"""Roots of equations, and fixed points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from compgraph.graph import stack_nested

from ..solver_calls import Call, carrying, with_value

Answer = Callable[..., Any]


def _first(found: Any) -> Any:
    """Return the solution from a result that may be a tuple."""
    return found[0] if isinstance(found, tuple) else found


def root(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.root``."""
    call = Call(scipy.optimize.root, args, kwargs, "fun jac")
    found = call()
    if not call.met:
        return found
    equations = _of_pair(call.function) if call.raw.get("jac") is True else call.function
    x = call.solution(found.x, equations, lambda result: result.x)
    return carrying(found, {"x": x, "fun": with_value(found.fun, _values(equations, x, call))})


def _of_pair(function: Any) -> Any:
    """The function of one that gives a pair of a value and its derivative."""
    return lambda *args: function(*args)[0]


def _values(function: Any, x: Any, call: Call) -> Any:
    return stack_nested(function(x, *call.extra))


def fsolve(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fsolve``."""
    call = Call(scipy.optimize.fsolve, args, kwargs, "func fprime")
    found = call()
    if not call.met:
        return found
    x = call.solution(_first(found), call.function, _first)
    if not isinstance(found, tuple):
        return x
    info = carrying(found[1], {"fvec": with_value(found[1]["fvec"], _values(call.function, x, call))})
    return (x, info, *found[2:])


def root_scalar(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.root_scalar``."""
    call = Call(scipy.optimize.root_scalar, args, kwargs, "f fprime fprime2")
    found = call()
    if call.met:
        with_derivatives = call.raw.get("fprime") is True or call.raw.get("fprime2") is True
        equation = _of_pair(call.function) if with_derivatives else call.function
        found.root = call.solution(found.root, equation, lambda result: result.root)
    return found


def _scalar(name: str, callbacks: str) -> Answer:
    """The answer of a function that gives a root, and with ``full_output=True`` more."""
    function = getattr(scipy.optimize, name)

    def answer(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, callbacks)
        found = call()
        if not call.met:
            return found
        x = call.solution(_first(found), call.function, _first)
        if not isinstance(found, tuple):
            return x
        if isinstance(found[1], scipy.optimize.RootResults):
            found[1].root = x
        return (x, *found[1:])

    return answer


bisect, brentq, brenth, ridder, toms748 = (_scalar(name, "f") for name in ["bisect", "brentq", "brenth", "ridder", "toms748"])
newton = _scalar("newton", "func fprime fprime2")


def fixed_point(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fixed_point``."""
    call = Call(scipy.optimize.fixed_point, args, kwargs, "func")
    found = call()
    return call.solution(found, lambda x, *p: x - stack_nested(call.function(x, *p)), lambda x: x) if call.met else found


def _quasi_newton(name: str) -> Answer:
    """The answer of one of the methods of Broyden's kind, which give x alone."""
    function = getattr(scipy.optimize, name)

    def answer(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, "F")
        found = call()
        return call.solution(np.asarray(found), call.function, lambda x: x) if call.met else found

    return answer


anderson, broyden1, broyden2, diagbroyden, excitingmixing, linearmixing, newton_krylov = map(
    _quasi_newton, ["anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing", "newton_krylov"]
)
