"""Least squares: minimizers of sums of squares, or of losses of squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from compgraph.graph import stack_nested, to_values
from compgraph.scipy import pin_value
from compgraph.values import Value

from ....operators import jacobian
from ..solver_calls import Call, Callback, has_active_node, with_node_fields
from . import optimality_conditions
from .optimality_conditions import solve_optimality

Function = Callable[..., Any]

# The losses of `least_squares`, of squares.
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
    by_name = call.arguments.pop("kwargs", None) or {}
    function = call.function if not by_name else _bind_keywords(call.function, by_name)
    call.arguments["fun"] = Callback(function)
    if callable(call.arguments.get("jac")) and by_name:
        call.arguments["jac"] = Callback(_bind_keywords(call.user_arguments["jac"], by_name))
    bounds = call.arguments.get("bounds", (-np.inf, np.inf))
    call.arguments["bounds"] = optimality_conditions.plain_bounds(bounds)
    scale = call.arguments.get("f_scale", 1.0)
    call.arguments["f_scale"] = to_values(scale)
    loss = call.arguments.get("loss", "linear")
    if callable(loss):
        call.arguments["loss"] = optimality_conditions.wrap_callback(call, loss)
    call.has_node_argument = call.has_node_argument or has_active_node(by_name)
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


def _bind_keywords(function: Function, by_name: dict[str, Any]) -> Function:
    return lambda *args: function(*args, **by_name)


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
    omits = call.arguments.get("nan_policy") == "omit"
    if omits and any(isinstance(v, Value) and np.isnan(to_values(v)).any() for v in (x, y)):
        raise TypeError("curve_fit: nan_policy='omit' does not apply to nodes. Remove the elements before the call")
    if omits:
        is_present = ~np.isnan(to_values(y))
        is_present &= ~np.any(np.isnan(to_values(x)), axis=tuple(range(np.ndim(x) - 1)))
        x, y = x[..., is_present], y[is_present]
        sigma = sigma if sigma is None else sigma[is_present] if np.ndim(sigma) == 1 else sigma[is_present][:, is_present]

    def weighted_residuals(p: Any, *extra: Any) -> Any:
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
