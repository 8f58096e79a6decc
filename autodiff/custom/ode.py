"""Solutions of ordinary differential equations, differentiated by the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.context import NoGraph
from compgraph.graph import as_operands, to_values

from ..arguments import as_argument
from ..batching import any_batched, map_elements, outside_vmap
from ..forward import jvp
from ..operators import vjp
from .call import CallFunction, require_same
from .implicit import require_no_captures, reshape_vector
from .nested import create_problem

Function = Callable[..., Any]


def odeint(
    f: Function,
    y0: object,
    t: object,
    *params: object,
    args: Any = (),
    method: str = "DOP853",
    rtol: float = 1e-9,
    atol: float = 1e-11,
) -> Any:
    """Solve ``dy/dt = f(y, t, *params)`` at given times, differentiable in the state, the times and the parameters.

    Parameters
    ----------
    f : callable
        A function of the state, the time and the parameters. It returns the rate of change, with the structure of the state.
    y0 : array_like or Node, or arrays nested in any way
        The state at the first time.
    t : array_like or Node
        Two or more times, increasing or decreasing.
    *params : array_like or Node, or arrays nested in any way
        Parameters of `f`.
    args : tuple
        The parameters, as in SciPy; instead of `params`.
    method : str
        As in ``scipy.integrate.solve_ivp``.
    rtol, atol : float
        The tolerances, of the solution and of its derivatives.

    Returns
    -------
    array or Node
        The states at the times, of shape ``(len(t), *y0.shape)``, with the structure of `y0`.

    Raises
    ------
    RuntimeError
        If the solver fails.
    TypeError
        If `f` captures a node, an argument is complex, or both `params` and `args` are passed.
    ValueError
        If the times are not a monotonic vector of two or more, or the rate has a different shape than the state.

    Notes
    -----
    Reverse mode solves the adjoint equation backwards, together with the state, between neighboring times (L. S. Pontryagin et
    al., *The Mathematical Theory of Optimal Processes*, 1962; R. T. Q. Chen et al., "Neural ordinary differential equations",
    NeurIPS 2018). Memory does not grow with the number of steps. Forward mode solves the tangent equation. Both call `odeint`,
    so higher orders follow. The tolerances determine the accuracy of derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> decay = lambda k: odeint(lambda y, t, k: -k * y, 1.0, np.array([0.0, 2.0]), k)[-1]
    >>> print(round(float(decay(0.5)), 6), round(float(grad(decay)(0.5)), 6))
    0.367879 -0.735759
    """
    problem = create_problem("odeint", f, y0, params, args, num_between=1)
    options: Any = {"method": method, "rtol": rtol, "atol": atol}
    return problem.restore(_states(problem.function, problem.start, t, problem.leaves, options))


def _states(f: Function, y0: object, t: object, params: tuple[Any, ...], options: object) -> Any:
    """Return the solution as one node; within vmap, solve per batch element."""
    if any_batched(y0, t, params):
        return map_elements(
            "odeint", lambda y0, t, parameter_leaves: _states(f, y0, t, tuple(parameter_leaves), options), (y0, t, params)
        )
    with outside_vmap():
        return _solve_as_node(f, y0, t, params, options)


def _solve_as_node(f: Function, y0: object, t: Any, params: tuple[Any, ...], options: Any) -> Any:
    """Return the solution as one node."""
    operands = tuple(as_argument(p) for p in as_operands((y0, t, *params)))
    y0, t, *rest = (to_values(p) for p in operands)
    if any(np.asarray(a).dtype.kind == "c" for a in (y0, t, *rest)):
        raise TypeError("odeint: complex numbers are not supported. Pass real and imaginary parts as two arrays")
    steps = np.diff(t) if t.ndim == 1 else np.zeros(1)
    if not len(steps) or not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError("odeint: the times must be a vector of two or more, increasing or decreasing")
    call = OdeintCall(f, options)
    out = bind(_odeint, operands, {"call": call})
    require_no_captures("odeint", f, [y0, t[0], *rest])
    call.first_solution = [*map(np.copy, (y0, t, *rest))], call.rates(to_values(out), t, *rest)
    return out


class OdeintCall:
    """One call of `odeint`, with the data of its derivative."""

    def __init__(self, f: Function, options: dict[str, Any]) -> None:
        self.f = f
        self.options = options
        self.first_solution: tuple[list[Any], Any] | None = None  # the operands, and the rates at the times

    def compute(self, y0: Any, t: Any, *params: Any) -> Any:
        """Return the states at the times, solved by SciPy."""
        from scipy.integrate import solve_ivp

        y0 = np.asarray(y0)

        def rate(time: Any, flat: Any) -> Any:
            derivative = np.asarray(to_values(self.f(flat.reshape(y0.shape)[()], np.float64(time), *params)))
            if derivative.shape != y0.shape:
                raise ValueError(
                    f"odeint: the function returned a rate of shape {derivative.shape} for a state of shape {y0.shape}"
                )
            return derivative.ravel()

        with NoGraph():
            scipy_result = solve_ivp(
                rate, (float(t[0]), float(t[-1])), y0.ravel().astype(float), t_eval=np.asarray(t, float), **self.options
            )
        if not scipy_result.success or scipy_result.y.shape[1] != len(t) or not np.all(np.isfinite(scipy_result.y)):
            raise RuntimeError(f"odeint: the solver failed: {scipy_result.message}")
        return scipy_result.y.T.reshape(len(t), *y0.shape).astype(np.result_type(y0, t, *params))

    def rates(self, out: Any, t: Any, *params: object) -> Any:
        """Return the plain rates at all times."""
        with NoGraph():
            return np.stack([to_values(self.f(out[i], t[i], *params)) for i in range(len(t))])

    def _require_same(self, out: Array, *operands: object) -> None:
        """Raise if the function returns different rates than when the equation was solved."""
        values = to_values(list(operands))
        if self.first_solution is not None and all(map(np.array_equal, values, self.first_solution[0])):
            require_same("odeint", self.first_solution[1], self.rates(to_values(out), *values[1:]))

    def solve_like(self, f: Function, y0: object, t: Any, *params: object) -> Any:
        """Solve another equation with the same method and tolerances."""
        return odeint(f, y0, t, *params, **self.options)

    def pull(self, cotangent: Any, out: Any, y0: Any, t: Any, *params: Any) -> list[Any]:
        """Return the cotangents of the first state, the times and the parameters."""
        self._require_same(out, y0, t, *params)
        f, shape, size = self.f, np.shape(y0), int(np.size(y0))
        sizes = [int(np.size(p)) for p in params]

        def backward(state: Any, time: object, *params: object) -> Any:
            y, adjoint = reshape_vector(state[:size], shape), reshape_vector(state[size : 2 * size], shape)
            rate, pull = vjp(f, y, time, *params)  # with respect to time too, because f may depend only on it
            state_cotangent, _, *param_cotangents = pull(adjoint)
            return np.concatenate([np.ravel(rate), *(-np.ravel(a) for a in (state_cotangent, *param_cotangents))])

        adjoint, totals = cotangent[-1], np.zeros(sum(sizes))
        rates = [f(out[i], t[i], *params) for i in range(len(t))]
        time_cotangents = [np.sum(cotangent[i] * rates[i]) for i in range(1, len(t))]
        for i in range(len(t) - 1, 0, -1):
            state = np.concatenate([np.ravel(out[i]), np.ravel(adjoint), totals])
            state = self.solve_like(backward, state, np.stack([t[i], t[i - 1]]), *params)[1]
            adjoint, totals = reshape_vector(state[size : 2 * size], shape), state[2 * size :]
            if i > 1:
                adjoint = adjoint + cotangent[i - 1]
        first = -np.sum(adjoint * rates[0])
        return [adjoint + cotangent[0], np.stack([first, *time_cotangents]), *_split_totals(totals, params, sizes)]

    def push(self, position: int, tangent: Any, out: Any, y0: Any, t: Any, *params: object) -> Any:
        """Return the tangent of the states, given that of the first state, of the times, or of one parameter."""
        self._require_same(out, y0, t, *params)
        f, shape, size = self.f, np.shape(y0), int(np.size(y0))
        param_index = position - 2  # negative for the first state and the times

        def forward(state: Any, time: object, *arguments: object) -> Any:
            y, state_tangent = reshape_vector(state[:size], shape), reshape_vector(state[size:], shape)
            p, direction = (arguments[:-1], arguments[-1]) if param_index >= 0 else (arguments, None)
            if param_index >= 0:
                rate, rate_tangent = jvp(
                    lambda y, s, q: f(y, s, *p[:param_index], q, *p[param_index + 1 :]),
                    (y, time, p[param_index]),
                    (state_tangent, 0.0, direction),
                )
            else:
                rate, rate_tangent = jvp(lambda y, s: f(y, s, *p), (y, time), (state_tangent, 0.0))
            return np.concatenate([np.ravel(rate), np.ravel(rate_tangent)])

        start = tangent if position == 0 else np.zeros(shape)
        if position == 1:
            start = -f(y0, t[0], *params) * tangent[0]
        state = np.concatenate([np.ravel(y0), np.ravel(start)])
        trajectory = self.solve_like(forward, state, t, *params, *([tangent] if param_index >= 0 else []))
        state_tangents = np.reshape(trajectory[:, size:], out.shape)
        if position == 1:
            state_tangents = state_tangents + np.stack([f(out[i], t[i], *params) * tangent[i] for i in range(len(t))])
        return state_tangents


def _split_totals(totals: Any, params: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Split a vector into arrays of the shapes of the parameters."""
    ends = np.cumsum([0, *sizes])
    return [reshape_vector(totals[a:b], np.shape(p)) for a, b, p in zip(ends[:-1], ends[1:], params, strict=True)]


_odeint = CallFunction("odeint")
