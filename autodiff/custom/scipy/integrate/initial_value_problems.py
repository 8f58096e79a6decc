"""Initial value problems: SciPy's solution, with its Runge-Kutta steps recorded on nodes.

The tableaus are SciPy's own (J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", J. Comput. Appl. Math.
6 (1980); E. Hairer, S. P. Norsett and G. Wanner, *Solving Ordinary Differential Equations I*, 2nd ed., Springer 1993, II.4-II.6).
The step lengths are constants: the derivative ignores that the solver's choice of steps depends on the values.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array, Operand
from compgraph.frames import source_lines
from compgraph.graph import stack_nested, to_values
from compgraph.guards import note_guard
from compgraph.interception import unpatched
from compgraph.scipy import limit_order, pin_value
from compgraph.values import INERT, Value

from ....forward import jvp
from ..linear_functionals import NodeRecorder

Function = Callable[..., Any]
METHODS = ("RK23", "RK45", "DOP853")

ORDER = 8  # of the method for steps of length zero (DOP853)


def explicit_method(method: str) -> Any:
    """Return the class of an explicit method from its name or class; None for other methods."""
    methods_by_name = {name: getattr(scipy.integrate, name) for name in METHODS}
    return methods_by_name.get(method) if isinstance(method, str) else method if method in methods_by_name.values() else None


def step(rate: Function, method: Any, t: Any, y: Any, h: Any, first_slope: Any) -> tuple[Any, list[Any]]:
    """Return the state after one step, and the slopes of its stages; the last slope is at the end of the step."""
    slopes = [first_slope]
    for a, c in zip(method.A[1:], method.C[1:], strict=False):
        s = len(slopes)
        slopes.append(rate(t + c * h, y + np.dot(np.stack(slopes).T, a[:s]) * h))
    new_y = y + h * np.dot(np.stack(slopes).T, method.B)
    slopes.append(rate(t + h, new_y))
    return new_y, slopes


def advance(rate: Function, y: Any, start: Any, end: Any) -> Any:
    """Make a step of length zero, from `start` to an equal time `end`, so that the state is differentiable in both.

    The method has order 8, so all derivatives to that order are those of the solution.
    """
    new_y = step(rate, scipy.integrate.DOP853, start, y, end - start, rate(start, y))[0]
    return limit_order(new_y, ORDER, "the solution of a differential equation at a time that is a node")


class RecordedStep:
    """One step, and the states within it by SciPy's interpolating polynomial."""

    def __init__(self, rate: Function, method: Any, t_old: Any, t: Array, y_old: Any, first_slope: object) -> None:
        self.rate, self.method, self.t_old, self.t, self.h, self.y_old = rate, method, t_old, t, t - t_old, y_old
        self.y, self.slopes = step(rate, method, t_old, y_old, self.h, first_slope)

    @functools.cached_property
    def coefficients(self) -> Any:
        """The coefficients of the interpolating polynomial."""
        method, h, slopes = self.method, self.h, list(self.slopes)
        if not hasattr(method, "A_EXTRA"):
            return np.dot(np.stack(slopes).T, method.P)
        for a, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
            s = len(slopes)
            slopes.append(self.rate(self.t_old + c * h, self.y_old + np.dot(np.stack(slopes).T, a[:s]) * h))
        increment, first, last = self.y - self.y_old, slopes[0], self.slopes[-1]
        higher_terms = h * np.dot(method.D, np.stack(slopes))
        return np.concatenate([np.stack([increment, h * first - increment, 2 * increment - h * (last + first)]), higher_terms])

    def __call__(self, t: Any) -> Any:
        """The states at times: of shape ``(n,)`` or ``(n, len(t))``."""
        t = t if isinstance(t, Value) else np.asarray(t)
        x = (t - self.t_old) / self.h
        start = self.y_old if t.ndim == 0 else self.y_old[:, None]
        if hasattr(self.method, "A_EXTRA"):
            total: Any = 0
            for i, f in enumerate(self.coefficients[::-1]):  # Hairer, Norsett and Wanner, II.6 (6.12)
                total = (total + (f if t.ndim == 0 else f[:, None])) * (1 - x if i % 2 else x)
            return total + start
        powers = [x]
        for _ in range(self.coefficients.shape[1] - 1):
            powers.append(powers[-1] * x)
        return self.h * np.dot(self.coefficients, np.stack(powers)) + start


class RecordedSolution:
    """The state at any time from recorded steps, as ``scipy.integrate.OdeSolution``.

    Attributes
    ----------
    ts : array
        The times at the ends of the steps.
    interpolants : list of RecordedStep
        The steps, in order.
    t_min, t_max : float
        The first and the last time.
    """

    def __init__(self, ts: NDArray[Any], steps: list[RecordedStep]) -> None:
        self.ts, self.interpolants, self.n_segments = np.asarray(ts), steps, len(steps)
        self.ascending = bool(self.ts[-1] >= self.ts[0])
        self.t_min, self.t_max = min(self.ts[0], self.ts[-1]), max(self.ts[0], self.ts[-1])

    def _segments(self, t: Array) -> Any:
        ascending_times, side = (self.ts, "left") if self.ascending else (self.ts[::-1], "right")
        segment_indices = np.clip(np.searchsorted(ascending_times, t, side=side) - 1, 0, self.n_segments - 1)  # type: ignore[call-overload]
        return segment_indices if self.ascending else self.n_segments - 1 - segment_indices

    def __call__(self, t: object) -> Any:
        """The states at times: of shape ``(n,)`` or ``(n, len(t))``."""
        t = stack_nested(t)
        t = t if isinstance(t, Value) else np.asarray(t)
        segments = self._segments(to_values(t))
        if t.ndim == 0:
            return self.interpolants[int(segments)](t)
        order = np.argsort(segments, kind="stable")
        groups = [(k, list(g)) for k, g in itertools.groupby(order.tolist(), key=lambda i: int(segments[i]))]
        states = np.concatenate([self.interpolants[k](t[np.array(g)]) for k, g in groups], axis=1)
        inverse_order = np.empty_like(order)
        inverse_order[order] = np.arange(len(order))
        return states[:, inverse_order]


def integrate_steps(rate: Function, method: type, y0: object, spans: Sequence[tuple[Any, Any]]) -> list[RecordedStep]:
    """Record the steps of a method between the times of each span."""
    steps: list[RecordedStep] = []
    y, first_slope = y0, rate(spans[0][0], y0) if spans else None
    for t_old, t in spans:
        steps.append(RecordedStep(rate, method, t_old, t, y, first_slope))
        y, first_slope = steps[-1].y, steps[-1].slopes[-1]
    return steps


def guard_step_choice(description: str, node: object) -> None:
    """Add a guard on a solution, because a replay does not choose the steps again."""
    note_guard(description, functools.partial(_is_close, np.array(to_values(node))), (node,), True, source_lines.user_frame(2))


def _is_close(recorded: NDArray[Any], current: NDArray[Any]) -> bool:
    return bool(np.shape(current) == recorded.shape and np.allclose(current, recorded, rtol=1e-10, atol=1e-12, equal_nan=True))


MAX_STEPS = 4000  # the greatest number of explicit steps that replace those of an implicit method
NEWTON_STEPS = 3  # recorded steps for the time of an event; derivatives are exact to order 7


def solve_ivp(
    fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False, events: Any = None,
    vectorized: bool = False, args: tuple[Any, ...] | None = None, **options: Any,
) -> Any:  # fmt: skip
    """``scipy.integrate.solve_ivp``."""
    scipy_function = unpatched(scipy.integrate.solve_ivp)
    if args is not None and not np.iterable(args):
        return scipy_function(fun, t_span, y0, args=args)  # raises SciPy's error
    extra_arguments = () if args is None else tuple(args)
    problem = Problem("solve_ivp", lambda t, y: fun(t, y, *extra_arguments), y0, vectorized)
    options = {name: to_values(value) for name, value in options.items()}
    if callable(options.get("jac")):
        user_jac = options["jac"]
        options["jac"] = lambda t, y: to_values(stack_nested(user_jac(t, y, *extra_arguments)))
    event_functions = _as_list(events)
    plain_events = (
        None if event_functions is None else [_plain_event(event, extra_arguments, problem.recorder) for event in event_functions]
    )

    def run(**overrides: object) -> Any:
        run_options = {"t_eval": to_values(stack_nested(t_eval)), "dense_output": dense_output, "events": plain_events, **options}
        run_options.update(overrides)
        return scipy_function(
            problem.recorder, to_values(tuple(t_span)), to_values(problem.y0), vectorized=vectorized, **run_options
        )

    try:
        scipy_result = run(method=method)
    except ValueError as error:
        if np.ndim(options.get("rtol", 0)) and explicit_method(method) is None:
            error.add_note("SciPy's Radau and BDF take one number as rtol: pass rtol=np.min(rtol), and one atol per component")
        raise
    times = [*t_span, *np.ravel(stack_nested([] if t_eval is None else t_eval))]
    if not (problem.recorder.returned_node or any(map(_is_active, [problem.y0, *times, *extra_arguments]))):
        return scipy_result
    if not scipy_result.success:
        raise RuntimeError(
            f"scipy.integrate.solve_ivp: the solver failed, so the result has no derivative: {scipy_result.message}"
        )
    if explicit_method(method) is None:
        return _explicit_derivatives(problem, scipy_result, t_span, t_eval, bool(dense_output or event_functions), options)
    if t_eval is not None or dense_output or event_functions:
        dense_result = run(method=method, dense_output=True)
        spans, ts = [(p.t_old, p.t) for p in dense_result.sol.interpolants], dense_result.sol.ts
    else:
        spans, ts = list(zip(scipy_result.t[:-1], scipy_result.t[1:], strict=True)), scipy_result.t
    start = problem.y0
    if _is_active(t_span[0]):
        start = advance(problem.rate, start, t_span[0], ts[0])
    steps = integrate_steps(problem.rate, explicit_method(method), start, spans)
    solution = RecordedSolution(ts, steps)
    _set_states(scipy_result, problem, solution, t_span, t_eval)
    if event_functions:
        _set_events(scipy_result, solution, event_functions, extra_arguments, t_eval)
    scipy_result.sol = solution if dense_output else None
    guard_step_choice("the numbers for which scipy.integrate.solve_ivp chose its steps", scipy_result.y)
    return scipy_result


def _set_states(scipy_result: Any, problem: Problem, solution: RecordedSolution, t_span: Any, t_eval: object) -> None:
    """Replace the states of SciPy's result by nodes."""
    if t_eval is not None:
        times = stack_nested(t_eval)
        count = len(scipy_result.t)
        scipy_result.y = pin_value(solution(times[:count]), scipy_result.y) if count else scipy_result.y
        scipy_result.t = times[:count] if isinstance(times, Value) else scipy_result.t
        return
    steps = solution.interpolants
    columns = [problem.y0, *[step.y for step in steps]]
    end = t_span[1]
    if scipy_result.status == 1:
        columns[-1] = steps[-1](scipy_result.t[-1])
    elif _is_active(end):
        columns[-1] = advance(problem.rate, columns[-1], scipy_result.t[-1], end)
    scipy_result.y = pin_value(np.stack(columns, axis=1), scipy_result.y)
    if any(map(_is_active, t_span)):
        ends = [end] if scipy_result.status == 0 else [scipy_result.t[-1]]
        scipy_result.t = np.concatenate([np.reshape(t, (-1,)) for t in (t_span[0], scipy_result.t[1:-1], ends[0])])


# ------------------------------------------------------------------------------------------ events


def _set_events(scipy_result: Any, solution: RecordedSolution, events: list[Any], args: tuple[Any, ...], t_eval: Any) -> None:
    """Replace the times and states of events by nodes, by the implicit function theorem."""
    last_time = to_values(scipy_result.t)[-1] if len(scipy_result.t) else None
    for k, event in enumerate(events):
        times = scipy_result.t_events[k]
        if not len(times):
            continue
        crossing_times = [_crossing_time(lambda t, event=event: event(t, solution(t), *args), t) for t in times]
        states = np.stack([solution(t) for t in crossing_times])
        if t_eval is None and scipy_result.status == 1 and times[-1] == last_time and isinstance(crossing_times[-1], Value):
            scipy_result.t = np.concatenate([scipy_result.t[:-1], np.reshape(crossing_times[-1], (1,))])
            scipy_result.y = np.concatenate([scipy_result.y[:, :-1], states[-1][:, None]], axis=1)
        scipy_result.t_events[k] = np.stack(crossing_times)
        scipy_result.y_events[k] = pin_value(states, scipy_result.y_events[k])


def _crossing_time(g: Function, time: Array) -> Any:
    """Return the time at which a function is zero, by Newton steps; each step doubles the order of derivatives."""
    t: Any = time
    for _ in range(NEWTON_STEPS):
        value, slope = jvp(lambda s: _as_scalar(g(s)), (t,), (1.0,))
        if not np.all(np.asarray(to_values(slope)) != 0):
            raise ValueError(
                f"scipy.integrate.solve_ivp: the event at t = {time} only touches zero, so its time has no derivative. Use "
                "events that cross zero"
            )
        t = t - value / slope
    return limit_order(pin_value(t, time), 2**NEWTON_STEPS - 1, "the time of an event of scipy.integrate.solve_ivp")


def _as_scalar(value: Array) -> Any:
    value = stack_nested(value)
    return np.reshape(value, ()) if isinstance(value, Value) else np.asarray(value, float).reshape(())[()]


def _as_list(events: Any) -> list[Any] | None:
    if events is None:
        return None
    return [events] if callable(events) else list(events)


def _plain_event(event: Function, args: tuple[Any, ...], recorder: NodeRecorder) -> Function:
    """Return an event for SciPy, with the attributes by which users configure it."""

    def plain(t: Operand, y: NDArray[Any]) -> Any:
        event_value = _as_scalar(event(t, y, *args))
        recorder.returned_node = recorder.returned_node or isinstance(event_value, Value)
        return to_values(event_value)

    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(plain, name, getattr(event, name))
    return plain


# ------------------------------------------------------------------------------------------ the problem


class Problem:
    """An initial value problem: the rate of change and the initial state."""

    def __init__(self, name: str, f: Function, y0: object, vectorized: bool = False) -> None:
        self.name, self.f, self.vectorized = name, f, vectorized
        y0 = stack_nested(y0)
        y0 = y0 if isinstance(y0, Value) else np.asarray(y0)
        self.y0 = y0 if y0.dtype.kind == "c" and y0.dtype == complex else y0.astype(complex if y0.dtype.kind == "c" else float)
        self.recorder = NodeRecorder(f)

    def rate(self, t: Operand, y: Any) -> Any:
        """Return the rate as a vector, plain or a node."""
        derivative = stack_nested(self.f(t, y[:, None]) if self.vectorized else self.f(t, y))
        derivative = derivative if isinstance(derivative, Value) else np.asarray(derivative, self.y0.dtype)
        return np.ravel(derivative) if derivative.ndim != 1 else derivative


def _is_active(value: Operand) -> bool:
    value = stack_nested(value)
    return isinstance(value, Value) and type(value) not in INERT


# ------------------------------------------------------------------------------------------ implicit methods


def _explicit_derivatives(
    problem: Problem, scipy_result: Any, t_span: Any, t_eval: Any, needs_dense_output: bool, options: dict[str, Any]
) -> Any:
    """Return the solution of an implicit method, with derivatives computed by explicit steps."""
    if needs_dense_output:
        raise TypeError(
            "scipy.integrate.solve_ivp: dense_output= and events= have derivatives only with method='RK23', 'RK45' and "
            "'DOP853'. Use one of these methods, or omit these arguments"
        )
    times = stack_nested(t_eval if t_eval is not None else [t_span[0], *scipy_result.t[1:-1], t_span[1]])
    scipy_result.y = pin_value(states_at(problem, t_span[0], times, options), scipy_result.y)
    scipy_result.t = times if isinstance(times, Value) else scipy_result.t
    guard_step_choice("the numbers for which scipy.integrate.solve_ivp chose its steps", scipy_result.y)
    return scipy_result


def states_at(problem: Problem, t0: Any, times: Any, options: dict[str, Any]) -> Any:
    """Return the states at times, of shape ``(n, len(times))``, by steps of `DOP853` with small tolerances."""
    plain_times, start = np.asarray(to_values(times), float), float(to_values(t0))
    count = 0

    def counted_rate(t: Array, y: ArrayLike) -> Any:
        nonlocal count
        count += 1
        if count > 12 * MAX_STEPS:
            raise RuntimeError(
                f"scipy.integrate.{problem.name}: the equation is stiff, and its derivative would take more than {MAX_STEPS} "
                "explicit steps. Use autodiff.odeint(..., method='Radau'), which solves the adjoint equation"
            )
        return to_values(problem.rate(t, y))

    rtol, atol = _tighten(options.get("rtol"), 1e-10), _tighten(options.get("atol"), 1e-12)
    scipy_function = unpatched(scipy.integrate.solve_ivp)
    scipy_result = scipy_function(
        counted_rate, (start, plain_times[-1]), to_values(problem.y0), "DOP853", dense_output=True, rtol=np.min(rtol), atol=atol
    )
    if not scipy_result.success:
        raise RuntimeError(f"scipy.integrate.{problem.name}: the steps for the derivative failed: {scipy_result.message}")
    y0 = advance(problem.rate, problem.y0, t0, start) if _is_active(t0) else problem.y0
    steps = integrate_steps(problem.rate, scipy.integrate.DOP853, y0, [(p.t_old, p.t) for p in scipy_result.sol.interpolants])
    states = RecordedSolution(scipy_result.sol.ts, steps)(plain_times)
    if not _is_active(times):
        return states
    columns = [advance(problem.rate, states[:, k], plain_times[k], times[k]) for k in range(len(plain_times))]
    return np.stack(columns, axis=1)


def _tighten(tolerance: ArrayLike | None, limit: float) -> Any:
    """Return a tolerance, one number or one per component, but at most `limit`; `limit` if it is missing or 0."""
    tolerance = np.asarray(limit if tolerance is None else tolerance, float)
    return np.where(tolerance > 0, np.minimum(tolerance, limit), limit)[()]


def odeint(
    func: Callable[..., Any],
    y0: object,
    t: object,
    args: tuple[Any, ...] = (),
    Dfun: Any = None,  # noqa: N803
    *positional_arguments: object,
    **options: object,
) -> Any:
    """``scipy.integrate.odeint``."""
    args = args if isinstance(args, tuple) else (args,)
    t_first = options.get("tfirst", positional_arguments[16] if len(positional_arguments) > 16 else False)
    problem = Problem("odeint", lambda t, y: func(t, y, *args) if t_first else func(y, t, *args), np.ravel(stack_nested(y0)))
    recorder = NodeRecorder(lambda *x: problem.f(*x) if t_first else problem.f(*x[::-1]))
    jacobian = None if Dfun is None else (lambda *x: to_values(stack_nested(Dfun(*x, *args))))
    scipy_function = unpatched(scipy.integrate.odeint)
    options = {name: to_values(value) for name, value in options.items()}
    times = stack_nested(t)
    scipy_result = scipy_function(
        recorder, to_values(stack_nested(y0)), to_values(times), (), jacobian, *positional_arguments, **options
    )
    if not (recorder.returned_node or any(map(_is_active, [y0, times, *args]))):
        return scipy_result
    has_info = isinstance(scipy_result, tuple)
    value = scipy_result[0] if has_info else scipy_result
    if not np.all(np.isfinite(value)) or (has_info and scipy_result[1]["message"] != "Integration successful."):
        raise RuntimeError("scipy.integrate.odeint: the integration failed, so the result has no derivative")
    node = pin_value(states_at(problem, times[0], times, options).T, value)
    guard_step_choice("the numbers for which scipy.integrate.odeint chose its steps", node)
    return (node, scipy_result[1]) if has_info else node
