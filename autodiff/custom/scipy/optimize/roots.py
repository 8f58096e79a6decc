"""Roots of equations, and fixed points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from compgraph.graph import stack_nested
from compgraph.scipy import pin_value

from ..solver_calls import Call, first_output, solution_in, with_node_fields

Function = Callable[..., Any]


def root(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.root``."""
    call = Call(scipy.optimize.root, args, kwargs, "fun jac")
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    equations = first_output(call.function) if call.user_arguments.get("jac") is True else call.function
    x = call.solution(scipy_result.x, equations, lambda result: result.x)
    return with_node_fields(scipy_result, {"x": x, "fun": pin_value(_evaluate(equations, x, call), scipy_result.fun)})


def _evaluate(function: Callable[..., Any], x: object, call: Call) -> Any:
    return stack_nested(function(x, *call.extra))


def fsolve(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fsolve``."""
    call = Call(scipy.optimize.fsolve, args, kwargs, "func fprime")
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    x = call.solution(solution_in(scipy_result), call.function, solution_in)
    if not isinstance(scipy_result, tuple):
        return x
    info = with_node_fields(scipy_result[1], {"fvec": pin_value(_evaluate(call.function, x, call), scipy_result[1]["fvec"])})
    return (x, info, *scipy_result[2:])


def root_scalar(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.root_scalar``."""
    call = Call(scipy.optimize.root_scalar, args, kwargs, "f fprime fprime2")
    scipy_result = call()
    if call.depends_on_nodes:
        with_derivatives = call.user_arguments.get("fprime") is True or call.user_arguments.get("fprime2") is True
        equation = first_output(call.function) if with_derivatives else call.function
        scipy_result.root = call.solution(scipy_result.root, equation, lambda result: result.root)
    return scipy_result


def _wrap_scalar_solver(name: str, callbacks: str) -> Function:
    """Wrap a function that returns a root; with ``full_output=True`` a tuple."""
    function = getattr(scipy.optimize, name)

    def wrapper(*args: object, **kwargs: object) -> Any:
        call = Call(function, args, kwargs, callbacks)
        scipy_result = call()
        if not call.depends_on_nodes:
            return scipy_result
        x = call.solution(solution_in(scipy_result), call.function, solution_in)
        if not isinstance(scipy_result, tuple):
            return x
        if isinstance(scipy_result[1], scipy.optimize.RootResults):
            scipy_result[1].root = x
        return (x, *scipy_result[1:])

    return wrapper


bisect, brentq, brenth, ridder, toms748 = (
    _wrap_scalar_solver(name, "f") for name in ["bisect", "brentq", "brenth", "ridder", "toms748"]
)
newton = _wrap_scalar_solver("newton", "func fprime fprime2")


def fixed_point(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fixed_point``."""
    call = Call(scipy.optimize.fixed_point, args, kwargs, "func")
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    return call.solution(scipy_result, lambda x, *p: x - stack_nested(call.function(x, *p)), lambda x: x)


def _wrap_quasi_newton(name: str) -> Function:
    """Wrap a quasi-Newton method, which returns only x."""
    function = getattr(scipy.optimize, name)

    def wrapper(*args: object, **kwargs: object) -> Any:
        call = Call(function, args, kwargs, "F")
        scipy_result = call()
        return call.solution(np.asarray(scipy_result), call.function, lambda x: x) if call.depends_on_nodes else scipy_result

    return wrapper


anderson, broyden1, broyden2, diagbroyden, excitingmixing, linearmixing, newton_krylov = map(
    _wrap_quasi_newton, ["anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing", "newton_krylov"]
)
