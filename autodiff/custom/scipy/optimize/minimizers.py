"""Minimizers of `scipy.optimize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize

from compgraph.graph import stack_nested, to_values
from compgraph.scipy import pin_value

from ....operators import grad
from ..solver_calls import Call, first_output, has_active_node, solution_in, with_node_fields
from . import optimality_conditions
from .optimality_conditions import Constraint, solve_optimality

Function = Callable[..., Any]


def _objective(call: Call) -> Any:
    """Return the objective; without the derivative if the function returns both."""
    return first_output(call.function) if call.user_arguments.get("jac") is True else call.function


def _evaluate(call: Call, f: Function, x: object) -> Any:
    return np.reshape(stack_nested(f(x, *call.extra)), ())


def _result_with_nodes(call: Call, scipy_result: Any, constraints: Sequence[Constraint], f: Function | None = None) -> Any:
    """Return SciPy's result with nodes as x, value and gradient."""
    f = _objective(call) if f is None else f
    x = solve_optimality(call, scipy_result.x, f, constraints, lambda result: result.x)
    fields = {"x": x, "fun": pin_value(np.reshape(_evaluate(call, f, x), np.shape(scipy_result.fun)), scipy_result.fun)}
    for name in ("jac", "grad"):
        value = dict.get(scipy_result, name)
        if isinstance(value, np.ndarray) and value.shape == np.shape(x):
            slope = grad(lambda z: _evaluate(call, f, z))
            fields[name] = pin_value(slope(x), value)
    return with_node_fields(scipy_result, fields)


def _take_bounds(call: Call, name: str = "bounds") -> Any:
    """Return the bounds of a call, and replace them there by plain values."""
    bounds = call.arguments.get(name)
    if isinstance(bounds, zip):
        bounds = list(bounds)
    if bounds is not None:
        call.arguments[name] = optimality_conditions.plain_bounds(bounds)
    return bounds


def minimize_scalar(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.minimize_scalar``."""
    call = Call(scipy.optimize.minimize_scalar, args, kwargs, "fun", node_parameters="bounds")
    bounds = _take_bounds(call)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    return _result_with_nodes(call, scipy_result, [] if bounds is None else optimality_conditions.pair_to_constraints(bounds))


# ------------------------------------------------------------------------------------ the older functions


def _wrap_fmin(name: str, callbacks: str, unsupported: str = "retall") -> Function:
    """Wrap a function that returns x; with ``full_output=True`` a tuple of x, the value and counts."""
    function = getattr(scipy.optimize, name)

    def wrapper(*args: object, **kwargs: object) -> Any:
        call = Call(function, args, kwargs, callbacks)
        scipy_result = call()
        if not call.depends_on_nodes:
            return scipy_result
        _require_no_option(call, unsupported)
        x = solve_optimality(call, solution_in(scipy_result), call.function, [], solution_in)
        return _replace_x(call, scipy_result, x)

    return wrapper


def _replace_x(call: Call, scipy_result: Any, x: Any) -> Any:
    """Return x, or SciPy's tuple with x and the value as nodes."""
    if not isinstance(scipy_result, tuple):
        return x
    return (x, pin_value(_evaluate(call, call.function, x), scipy_result[1]), *scipy_result[2:])


def _require_no_option(call: Call, names: str) -> None:
    for name in names.split():
        if call.arguments.get(name):
            raise TypeError(
                f"{call.name}: {name}= returns numbers that depend on nodes, but have no derivative. Omit it, or use "
                "scipy.optimize.minimize, whose result has x and fun"
            )


fmin = _wrap_fmin("fmin", "func")
fmin_cg = _wrap_fmin("fmin_cg", "f fprime")
fmin_ncg = _wrap_fmin("fmin_ncg", "f fprime fhess_p fhess")
fmin_powell = _wrap_fmin("fmin_powell", "func", "retall full_output")
fmin_bfgs = _wrap_fmin("fmin_bfgs", "f fprime", "retall full_output")
brent = _wrap_fmin("brent", "func")
golden = _wrap_fmin("golden", "func")


def fminbound(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fminbound``."""
    call = Call(scipy.optimize.fminbound, args, kwargs, "func", node_parameters="x1 x2")
    ends = call.arguments["x1"], call.arguments["x2"]
    call.arguments["x1"], call.arguments["x2"] = optimality_conditions.plain_bounds(ends)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    x = solve_optimality(
        call, solution_in(scipy_result), call.function, optimality_conditions.pair_to_constraints(ends), solution_in
    )
    return _replace_x(call, scipy_result, x)


def fmin_l_bfgs_b(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fmin_l_bfgs_b``."""
    call = Call(scipy.optimize.fmin_l_bfgs_b, args, kwargs, "func fprime", node_parameters="bounds")
    bounds = _take_bounds(call)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    f = _objective_without_gradient(call)
    x = solve_optimality(call, scipy_result[0], f, optimality_conditions.bounds_to_constraints(bounds), solution_in)
    slope = pin_value(grad(lambda z: _evaluate(call, f, z))(x), scipy_result[2]["grad"])
    return x, pin_value(_evaluate(call, f, x), scipy_result[1]), with_node_fields(scipy_result[2], {"grad": slope})


def _objective_without_gradient(call: Call) -> Any:
    """Return the objective; without ``fprime`` and ``approx_grad`` the user's function also returns its derivative."""
    returns_both = call.user_arguments.get("fprime") is None and not call.user_arguments.get("approx_grad")
    return first_output(call.function) if returns_both else call.function


def fmin_tnc(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fmin_tnc``."""
    call = Call(scipy.optimize.fmin_tnc, args, kwargs, "func fprime", node_parameters="bounds")
    bounds = _take_bounds(call)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    return (
        solve_optimality(
            call,
            scipy_result[0],
            _objective_without_gradient(call),
            optimality_conditions.bounds_to_constraints(bounds),
            solution_in,
        ),
        *scipy_result[1:],
    )


def fmin_slsqp(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fmin_slsqp``."""
    names = "func f_eqcons f_ieqcons fprime fprime_eqcons fprime_ieqcons"
    call = Call(scipy.optimize.fmin_slsqp, args, kwargs, names, node_parameters="bounds eqcons ieqcons")
    bounds, constraints = _take_bounds(call), []
    for several, single, is_equation in (("eqcons", "f_eqcons", True), ("ieqcons", "f_ieqcons", False)):
        functions = list(call.arguments.get(several, ()))
        call.arguments[several] = [optimality_conditions.wrap_callback(call, f) for f in functions]
        functions += [call.user_arguments[single]] if call.user_arguments.get(single) is not None else []
        constraints += [Constraint(f, is_equation) for f in functions]
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    x = solve_optimality(
        call,
        solution_in(scipy_result),
        call.function,
        [*optimality_conditions.bounds_to_constraints(bounds), *constraints],
        solution_in,
    )
    return _replace_x(call, scipy_result, x)


def fmin_cobyla(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.fmin_cobyla``."""
    call = Call(scipy.optimize.fmin_cobyla, args, kwargs, "func", node_parameters="cons consargs")
    cons = call.arguments["cons"]
    functions = list(cons) if isinstance(cons, (list, tuple)) else [cons]
    more_constraints = call.arguments.get("consargs")
    call.has_node_argument = call.has_node_argument or has_active_node(more_constraints)
    call.arguments["consargs"] = to_values(more_constraints)
    more_constraints = call.extra if more_constraints is None else tuple(more_constraints)
    call.arguments["cons"] = [optimality_conditions.wrap_callback(call, f) for f in functions]
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    constraints = [Constraint(lambda z, *extra, f=f: f(z, *more_constraints), False) for f in functions]
    return solve_optimality(call, scipy_result, call.function, constraints, lambda x: x)


# ------------------------------------------------------------------------------------------ with bounds and constraints


def _wrap_minimizer(name: str, callbacks: str = "func", node_parameters: str = "", unsupported: str = "") -> Function:
    """Wrap a function that minimizes under bounds and constraints."""

    def wrapper(*args: object, **kwargs: object) -> Any:
        call = Call(getattr(scipy.optimize, name), args, kwargs, callbacks, node_parameters=f"bounds {node_parameters}")
        bounds = _take_bounds(call)
        constraints: list[Constraint] = []
        if call.arguments.get("constraints"):
            call.arguments["constraints"], constraints = optimality_conditions.convert_constraints(
                call, call.arguments["constraints"]
            )
        scipy_result = call()
        if not call.depends_on_nodes:
            return scipy_result
        _require_no_option(call, unsupported)
        return _result_with_nodes(call, scipy_result, [*optimality_conditions.bounds_to_constraints(bounds), *constraints])

    return wrapper


minimize = _wrap_minimizer("minimize", "fun jac hess hessp", "constraints")
differential_evolution = _wrap_minimizer(
    "differential_evolution", node_parameters="constraints", unsupported="integrality vectorized"
)
dual_annealing = _wrap_minimizer("dual_annealing")
shgo = _wrap_minimizer("shgo", node_parameters="constraints")
direct = _wrap_minimizer("direct")


def basinhopping(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.basinhopping``."""
    call = Call(scipy.optimize.basinhopping, args, kwargs, "func", node_parameters="minimizer_kwargs")
    options = dict(call.arguments.get("minimizer_kwargs") or {})
    call.take_extra_arguments(options)
    constraints = optimality_conditions.bounds_to_constraints(options.get("bounds"))
    if "bounds" in options:
        options["bounds"] = optimality_conditions.plain_bounds(options["bounds"])
    if options.get("constraints"):
        options["constraints"], more_constraints = optimality_conditions.convert_constraints(call, options["constraints"])
        constraints += more_constraints
    for name in ("jac", "hess", "hessp"):
        if callable(options.get(name)):
            options[name] = optimality_conditions.wrap_callback(call, options[name])
    if "minimizer_kwargs" in call.arguments:
        call.arguments["minimizer_kwargs"] = options
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    f = first_output(call.function) if options.get("jac") is True else call.function
    return _result_with_nodes(call, scipy_result, constraints, f)
