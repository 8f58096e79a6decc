"""``scipy.integrate``: integrals of samples. `autodiff` replaces the functions that integrate a function of the user."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import to_values
from .policy import Policy
from .tools import to_array


def _ratio(a: object, b: NDArray[Any]) -> Any:
    """``a / b``, zero where `b` is zero."""
    is_nonzero = np.asarray(to_values(b)) != 0
    return a / b if np.all(is_nonzero) else np.where(is_nonzero, a / np.where(is_nonzero, b, 1.0), 0.0)


def _odd_simpson(y: NDArray[Any], x: NDArray[Any] | None, dx: Any) -> Any:
    """Simpson's rule for an odd number of samples."""
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if x is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h = np.diff(x.astype(np.float64), axis=-1)
    h0, h1 = h[..., ::2], h[..., 1::2]
    total, ratio = h0 + h1, _ratio(h0, h1)
    middle = middle * (total * _ratio(total, h0 * h1))
    return np.sum(total / 6.0 * (first * (2.0 - _ratio(1.0, ratio)) + middle + last * (2.0 - ratio)), axis=-1)


def _last_interval(y: NDArray[Any], x: NDArray[Any] | None, dx: object) -> Any:
    """Integral over the last interval of the parabola through the last three samples.

    K. V. Cartwright, "Simpson's rule cumulative integration with MS Excel and irregularly-spaced data", J. Math. Sci. Math.
    Educ. 12 (2017), equation 8.
    """
    if x is None:
        h0 = h1 = to_array(dx) * np.float64(1.0)
    else:
        h = np.diff(x.astype(np.float64), axis=-1)
        h0, h1 = h[..., -2], h[..., -1]
    alpha = _ratio(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _ratio(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = _ratio(h1**3, 6 * h0 * (h0 + h1))
    return alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def _simpson(y: NDArray[Any], x: NDArray[Any] | None = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """``scipy.integrate.simpson`` in recorded steps; SciPy's code converts the widths by ``np.float64(...)``."""
    y = to_array(y)
    ndim, y = y.ndim, np.moveaxis(y, axis, -1)
    count = y.shape[-1]
    if x is not None:
        x = to_array(x)
        if x.ndim not in (1, ndim):
            raise ValueError("If given, shape of x must be 1-D or the same as y.")
        x = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
        if x.shape[-1] != count:
            raise ValueError("If given, length of x along axis must be the same as y.")
    if count % 2:
        return _odd_simpson(y, x, dx)
    if count == 2:
        return 0.5 * (dx if x is None else x[..., 1] - x[..., 0]) * (y[..., 1] + y[..., 0])
    if count == 0:
        raise IndexError("scipy.integrate.simpson: there are no samples along the axis")
    return _odd_simpson(y[..., :-1], None if x is None else x[..., :-1], dx) + _last_interval(y, x, dx)


_IMPORT_ADVICE = "`import autodiff`, which implements it for nodes"
_SOLVER_ADVICE = "scipy.integrate.solve_ivp, which records its steps"
_QUADRATURE_ADVICE = "scipy.integrate.quad or quad_vec, or fixed_quad for a smooth function"

POLICY = Policy(
    module="scipy.integrate",
    own_code=frozenset({"trapezoid", "cumulative_trapezoid", "cumulative_simpson", "romb", "fixed_quad"}),
    replacements={"simpson": _simpson},
    plain=frozenset({"IntegrationWarning", "ODEintWarning"}),
    unsupported={
        **dict.fromkeys(["quad", "quad_vec", "nquad", "dblquad", "tplquad", "solve_ivp", "solve_bvp", "odeint"], _IMPORT_ADVICE),
        **dict.fromkeys(["ode", "complex_ode", "OdeSolver", "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"], _SOLVER_ADVICE),
        **dict.fromkeys(["DenseOutput", "OdeSolution"], "the `sol` of " + _SOLVER_ADVICE),
        **dict.fromkeys(["cubature", "tanhsinh", "qmc_quad"], _QUADRATURE_ADVICE + " (nested: nquad)"),
        "nsum": "np.sum over the significant terms",
        "newton_cotes": "node.value (the weights depend only on the sample positions)",
        "lebedev_rule": "node.value (an order is a count)",
    },
)
