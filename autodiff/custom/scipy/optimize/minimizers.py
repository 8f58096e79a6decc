"""Minimisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize

from compgraph.graph import stack_nested, to_values

from ....operators import grad
from ..solver_calls import Call, carrying, has_node, with_value
from . import optimality_conditions
from .optimality_conditions import Constraint, minimiser

Function = Callable[..., Any]


def _objective(call: Call) -> Function:
    """The function that is minimised; of one that gives its derivative too, the value."""
    function = call.function
    return (lambda *args: function(*args)[0]) if call.raw.get("jac") is True else function


def _value(call: Call, f: Function, x: Any) -> Any:
    return np.reshape(stack_nested(f(x, *call.extra)), ())


def _result(call: Call, scipy_result: Any, constraints: Sequence[Constraint], f: Function | None = None) -> Any:
    """A result whose x, value and gradient are nodes."""
    f = _objective(call) if f is None else f
    x = minimiser(call, scipy_result.x, f, constraints, lambda result: result.x)
    fields = {"x": x, "fun": with_value(scipy_result.fun, np.reshape(_value(call, f, x), np.shape(scipy_result.fun)))}
    for name in ("jac", "grad"):
        value = dict.get(scipy_result, name)
        if isinstance(value, np.ndarray) and value.shape == np.shape(x):
            slope = grad(lambda z: _value(call, f, z))
            fields[name] = with_value(value, slope(x))
    return carrying(scipy_result, fields)


def minimize(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.minimize``."""
    call = Call(scipy.optimize.minimize, args, kwargs, "fun jac hess hessp", kept="bounds constraints")
    bounds = _bounds(call)
    constraints: list[Constraint] = []
    if call.given.get("constraints"):
        call.given["constraints"], constraints = optimality_conditions.constraints_of(call, call.given["constraints"])
    scipy_result = call()
    return _result(call, scipy_result, [*optimality_conditions.of_bounds(bounds), *constraints]) if call.met else scipy_result


def _bounds(call: Call, name: str = "bounds") -> Any:
    """The bounds a function was given; in its call they become plain."""
    bounds = call.given.get(name)
    if isinstance(bounds, zip):
        bounds = list(bounds)
    if bounds is not None:
        call.given[name] = optimality_conditions.plain_bounds(bounds)
    return bounds


def minimize_scalar(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.minimize_scalar``."""
    call = Call(scipy.optimize.minimize_scalar, args, kwargs, "fun", kept="bounds")
    bounds = _bounds(call)
    scipy_result = call()
    return (
        _result(call, scipy_result, [] if bounds is None else optimality_conditions.of_pair(bounds)) if call.met else scipy_result
    )


# ------------------------------------------------------------------------------------ the older functions


def _fmin(name: str, callbacks: str, refused: str = "retall") -> Function:
    """The answer of a function that gives x, and with ``full_output=True`` more: the value second, counts after it."""
    function = getattr(scipy.optimize, name)

    def answer(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, callbacks)
        scipy_result = call()
        if not call.met:
            return scipy_result
        _refuse(call, refused)
        x = minimiser(call, _x(scipy_result), call.function, [], _x)
        return (
            (x, with_value(scipy_result[1], _value(call, call.function, x)), *scipy_result[2:])
            if isinstance(scipy_result, tuple)
            else x
        )

    return answer


def _x(scipy_result: Any) -> Any:
    return scipy_result[0] if isinstance(scipy_result, tuple) else scipy_result


def _refuse(call: Call, names: str) -> None:
    for name in names.split():
        if call.given.get(name):
            raise TypeError(
                f"{call.name}: {name}= gives numbers that depend on nodes and carry no derivative; leave it out, or use "
                "scipy.optimize.minimize, whose result has x and fun"
            )


fmin = _fmin("fmin", "func")
fmin_cg = _fmin("fmin_cg", "f fprime")
fmin_ncg = _fmin("fmin_ncg", "f fprime fhess_p fhess")
fmin_powell = _fmin("fmin_powell", "func", "retall full_output")
fmin_bfgs = _fmin("fmin_bfgs", "f fprime", "retall full_output")
brent = _fmin("brent", "func")
golden = _fmin("golden", "func")


def fminbound(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fminbound``."""
    call = Call(scipy.optimize.fminbound, args, kwargs, "func", kept="x1 x2")
    ends = call.given["x1"], call.given["x2"]
    call.given["x1"], call.given["x2"] = optimality_conditions.plain_bounds(ends)
    scipy_result = call()
    if not call.met:
        return scipy_result
    x = minimiser(call, _x(scipy_result), call.function, optimality_conditions.of_pair(ends), _x)
    return (
        (x, with_value(scipy_result[1], _value(call, call.function, x)), *scipy_result[2:])
        if isinstance(scipy_result, tuple)
        else x
    )


def fmin_l_bfgs_b(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fmin_l_bfgs_b``."""
    call = Call(scipy.optimize.fmin_l_bfgs_b, args, kwargs, "func fprime", kept="bounds")
    bounds = _bounds(call)
    scipy_result = call()
    if not call.met:
        return scipy_result
    f = _with_slope(call)
    x = minimiser(call, scipy_result[0], f, optimality_conditions.of_bounds(bounds), _x)
    slope = with_value(scipy_result[2]["grad"], grad(lambda z: _value(call, f, z))(x))
    return x, with_value(scipy_result[1], _value(call, f, x)), carrying(scipy_result[2], {"grad": slope})


def _with_slope(call: Call) -> Function:
    """The function that is minimised, where without ``fprime`` and ``approx_grad`` it gives its derivative too."""
    function = call.function
    gives_both = call.raw.get("fprime") is None and not call.raw.get("approx_grad")
    return (lambda *args: function(*args)[0]) if gives_both else function


def fmin_tnc(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fmin_tnc``."""
    call = Call(scipy.optimize.fmin_tnc, args, kwargs, "func fprime", kept="bounds")
    bounds = _bounds(call)
    scipy_result = call()
    if not call.met:
        return scipy_result
    return (minimiser(call, scipy_result[0], _with_slope(call), optimality_conditions.of_bounds(bounds), _x), *scipy_result[1:])


def fmin_slsqp(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fmin_slsqp``."""
    names = "func f_eqcons f_ieqcons fprime fprime_eqcons fprime_ieqcons"
    call = Call(scipy.optimize.fmin_slsqp, args, kwargs, names, kept="bounds eqcons ieqcons")
    bounds, constraints = _bounds(call), []
    for several, single, is_equation in (("eqcons", "f_eqcons", True), ("ieqcons", "f_ieqcons", False)):
        functions = list(call.given.get(several, ()))
        call.given[several] = [optimality_conditions.watched(call, f) for f in functions]
        functions += [call.raw[single]] if call.raw.get(single) is not None else []
        constraints += [Constraint(f, is_equation) for f in functions]
    scipy_result = call()
    if not call.met:
        return scipy_result
    x = minimiser(call, _x(scipy_result), call.function, [*optimality_conditions.of_bounds(bounds), *constraints], _x)
    return (
        (x, with_value(scipy_result[1], _value(call, call.function, x)), *scipy_result[2:])
        if isinstance(scipy_result, tuple)
        else x
    )


def fmin_cobyla(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.fmin_cobyla``."""
    call = Call(scipy.optimize.fmin_cobyla, args, kwargs, "func", kept="cons consargs")
    cons = call.given["cons"]
    functions = list(cons) if isinstance(cons, (list, tuple)) else [cons]
    further = call.given.get("consargs")
    call.holds = call.holds or has_node(further)
    call.given["consargs"] = to_values(further)
    further = call.extra if further is None else tuple(further)
    call.given["cons"] = [optimality_conditions.watched(call, f) for f in functions]
    scipy_result = call()
    if not call.met:
        return scipy_result
    constraints = [Constraint(lambda z, *extra, f=f: f(z, *further), False) for f in functions]
    return minimiser(call, scipy_result, call.function, constraints, lambda x: x)


# ------------------------------------------------------------------------------------------ of all space


def _over_box(name: str, callbacks: str = "func", kept: str = "", refused: str = "") -> Function:
    """The answer of a function that searches between bounds."""
    function = getattr(scipy.optimize, name)

    def answer(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, callbacks, kept=f"bounds {kept}")
        bounds = _bounds(call)
        constraints: list[Constraint] = []
        if call.given.get("constraints"):
            call.given["constraints"], constraints = optimality_conditions.constraints_of(call, call.given["constraints"])
        scipy_result = call()
        if not call.met:
            return scipy_result
        _refuse(call, refused)
        return _result(call, scipy_result, [*optimality_conditions.of_bounds(bounds), *constraints])

    return answer


differential_evolution = _over_box("differential_evolution", kept="constraints", refused="integrality vectorized")
dual_annealing = _over_box("dual_annealing")
shgo = _over_box("shgo", kept="constraints")
direct = _over_box("direct")


def basinhopping(*args: Any, **kwargs: Any) -> Any:
    """``scipy.optimize.basinhopping``."""
    call = Call(scipy.optimize.basinhopping, args, kwargs, "func", kept="minimizer_kwargs")
    options = dict(call.given.get("minimizer_kwargs") or {})
    call.take_extra(options)
    constraints = optimality_conditions.of_bounds(options.get("bounds"))
    if "bounds" in options:
        options["bounds"] = optimality_conditions.plain_bounds(options["bounds"])
    if options.get("constraints"):
        options["constraints"], further = optimality_conditions.constraints_of(call, options["constraints"])
        constraints += further
    for name in ("jac", "hess", "hessp"):
        if callable(options.get(name)):
            options[name] = optimality_conditions.watched(call, options[name])
    if "minimizer_kwargs" in call.given:
        call.given["minimizer_kwargs"] = options
    scipy_result = call()
    if not call.met:
        return scipy_result
    function = call.function
    return _result(call, scipy_result, constraints, (lambda *a: function(*a)[0]) if options.get("jac") is True else function)
