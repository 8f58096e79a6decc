"""Minimizers of `scipy.optimize`: of functions, sums of squares and robust losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.graph import stack_nested, to_values
from compgraph.scipy import pin_value
from compgraph.values import Value

from ....operators import grad, jacobian
from ..solver_calls import Call, Callback, first_output, has_active_node, solution_in, with_node_fields
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


def _take_bounds(call: Call) -> Any:
    """Return the bounds of a call, and replace them there by plain values."""
    bounds = call.arguments.get("bounds")
    if isinstance(bounds, zip):
        bounds = list(bounds)
    if bounds is not None:
        call.arguments["bounds"] = optimality_conditions.plain_bounds(bounds)
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


def _replace_x(call: Call, scipy_result: object, x: Array) -> Any:
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
    for list_name, function_name, is_equation in (("eqcons", "f_eqcons", True), ("ieqcons", "f_ieqcons", False)):
        functions = list(call.arguments.get(list_name, ()))
        call.arguments[list_name] = [optimality_conditions.wrap_callback(call, f) for f in functions]
        functions += [call.user_arguments[function_name]] if call.user_arguments.get(function_name) is not None else []
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
    constraint_args = call.arguments.get("consargs")
    call.has_node_argument = call.has_node_argument or has_active_node(constraint_args)
    call.arguments["consargs"] = to_values(constraint_args)
    constraint_args = call.extra if constraint_args is None else tuple(constraint_args)
    call.arguments["cons"] = [optimality_conditions.wrap_callback(call, f) for f in functions]
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    constraints = [Constraint(lambda z, *extra, f=f: f(z, *constraint_args), False) for f in functions]
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


# The losses of `least_squares`, as functions of the squared residuals.
_LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


def _cost(residuals: Function, loss: str = "linear", scale: float = 1.0) -> Function:
    """Return the cost function: half the sum of the losses of the squared residuals."""
    rho: Function = (lambda z: loss(z)[0]) if callable(loss) else _LOSSES[loss]

    def cost(x: object, *extra: object) -> Any:
        return 0.5 * scale**2 * np.sum(rho((np.ravel(stack_nested(residuals(x, *extra))) / scale) ** 2))

    return cost


def least_squares(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.least_squares``."""
    call = Call(scipy.optimize.least_squares, args, kwargs, "fun jac", node_parameters="bounds kwargs f_scale loss")
    keyword_arguments = call.arguments.pop("kwargs", None) or {}
    function = call.function if not keyword_arguments else _bind_keywords(call.function, keyword_arguments)
    call.arguments["fun"] = Callback(function)
    if callable(call.arguments.get("jac")) and keyword_arguments:
        call.arguments["jac"] = Callback(_bind_keywords(call.user_arguments["jac"], keyword_arguments))
    bounds = call.arguments.get("bounds", (-np.inf, np.inf))
    call.arguments["bounds"] = optimality_conditions.plain_bounds(bounds)
    scale = call.arguments.get("f_scale", 1.0)
    call.arguments["f_scale"] = to_values(scale)
    loss = call.arguments.get("loss", "linear")
    if callable(loss):
        call.arguments["loss"] = optimality_conditions.wrap_callback(call, loss)
    call.has_node_argument = call.has_node_argument or has_active_node(keyword_arguments)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    cost = _cost(function, loss, scale)
    x = solve_optimality(call, scipy_result.x, cost, optimality_conditions.pair_to_constraints(bounds), lambda result: result.x)
    fields = {
        "x": x,
        "cost": pin_value(cost(x, *call.extra), scipy_result.cost),
        "fun": pin_value(np.atleast_1d(stack_nested(function(x, *call.extra))), scipy_result.fun),
    }
    return with_node_fields(scipy_result, fields)


def _bind_keywords(function: Function, keyword_arguments: dict[str, Any]) -> Function:
    return lambda *args: function(*args, **keyword_arguments)


def leastsq(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.leastsq``."""
    call = Call(scipy.optimize.leastsq, args, kwargs, "func Dfun")
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    x = solve_optimality(call, scipy_result[0], _cost(call.function), [], lambda result: result[0])
    if not call.arguments.get("full_output"):
        return (x, *scipy_result[1:])
    jacobian_matrix = _residual_jacobian(lambda z: call.function(z, *call.extra), x)
    covariance = (
        None if scipy_result[1] is None else pin_value(np.linalg.inv(jacobian_matrix.T @ jacobian_matrix), scipy_result[1])
    )
    values = np.ravel(stack_nested(call.function(x, *call.extra)))
    return (
        x,
        covariance,
        with_node_fields(scipy_result[2], {"fvec": pin_value(values, scipy_result[2]["fvec"])}),
        *scipy_result[3:],
    )


def _residual_jacobian(residuals: Function, x: object) -> Any:
    """Return the Jacobian of the residuals."""
    return jacobian(lambda z: np.ravel(stack_nested(residuals(z))))(x)


# --------------------------------------------------------------------------------------------- curve_fit


def curve_fit(*args: object, **kwargs: object) -> Any:
    """``scipy.optimize.curve_fit``."""
    call = Call(scipy.optimize.curve_fit, args, kwargs, "f jac", node_parameters="xdata ydata sigma bounds")
    data = {name: stack_nested(call.arguments.get(name)) for name in ("xdata", "ydata", "sigma")}
    for name, value in data.items():
        if name in call.arguments:
            call.arguments[name] = to_values(value)
    bounds = call.arguments.get("bounds", (-np.inf, np.inf))
    call.arguments["bounds"] = optimality_conditions.plain_bounds(bounds)
    scipy_result = call()
    if not call.depends_on_nodes:
        return scipy_result
    if call.arguments.get("loss", "linear") != "linear":
        raise TypeError("curve_fit: loss= is not differentiable. Use scipy.optimize.least_squares, which is")
    residuals = _weighted_residuals(call, data)
    popt = solve_optimality(
        call, scipy_result[0], _cost(residuals), optimality_conditions.pair_to_constraints(bounds), lambda result: result[0]
    )
    pcov = _parameter_covariance(call, residuals, popt, scipy_result[1])
    if len(scipy_result) == 2:
        return popt, pcov
    info = with_node_fields(
        scipy_result[2], {"fvec": pin_value(residuals(popt), scipy_result[2]["fvec"])} if "fvec" in scipy_result[2] else {}
    )
    return (popt, pcov, info, *scipy_result[3:])


def _weighted_residuals(call: Call, data: dict[str, Any]) -> Function:
    """Return the residuals weighted by sigma, as SciPy defines them, as a function of the parameters."""
    x, y, sigma, f = data["xdata"], data["ydata"], data["sigma"], call.function
    x = np.asarray(x, float) if isinstance(x, (list, tuple)) else x
    y = y if isinstance(y, Value) else np.asarray(y, float)
    omits_nan = call.arguments.get("nan_policy") == "omit"
    if omits_nan and any(isinstance(v, Value) and np.isnan(to_values(v)).any() for v in (x, y)):
        raise TypeError("curve_fit: nan_policy='omit' does not apply to nodes. Remove the elements before the call")
    if omits_nan:
        is_present = ~np.isnan(to_values(y))
        is_present &= ~np.any(np.isnan(to_values(x)), axis=tuple(range(np.ndim(x) - 1)))
        x, y = x[..., is_present], y[is_present]
        sigma = sigma if sigma is None else sigma[is_present] if np.ndim(sigma) == 1 else sigma[is_present][:, is_present]

    def weighted_residuals(p: NDArray[Any], *extra: Any) -> Any:
        parameters = [p[k] for k in range(p.shape[0])] if isinstance(p, Value) else p
        residual = np.ravel(stack_nested(f(x, *parameters))) - y
        if sigma is None:
            return residual
        if np.size(sigma) == 1:
            return residual / np.reshape(sigma, ())
        return np.linalg.solve(np.linalg.cholesky(sigma), residual) if np.ndim(sigma) == 2 else residual / stack_nested(sigma)

    return weighted_residuals


def _parameter_covariance(call: Call, residuals: Function, popt: object, scipy_covariance: NDArray[Any]) -> Any:
    """Compute ``inv(J.T @ J)`` at the solution, scaled by the mean square of the residuals if sigma is relative."""
    if not np.all(np.isfinite(scipy_covariance)):
        return scipy_covariance
    jacobian_matrix = _residual_jacobian(residuals, popt)
    covariance = np.linalg.inv(jacobian_matrix.T @ jacobian_matrix)
    if not call.arguments.get("absolute_sigma"):
        covariance = covariance * (np.sum(residuals(popt) ** 2) / (jacobian_matrix.shape[0] - jacobian_matrix.shape[1]))
    return pin_value(covariance, scipy_covariance)
