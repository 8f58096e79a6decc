"""Runge-Kutta steps: SciPy's steps, recorded on nodes.

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
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.frames import source_lines
from compgraph.graph import stack_nested, to_values
from compgraph.guards import note_guard
from compgraph.scipy import limit_order
from compgraph.values import Value

Function = Callable[..., Any]
METHODS = ("RK23", "RK45", "DOP853")

ORDER = 8  # of the method for steps of length zero (DOP853)


def explicit_method(method: str) -> Any:
    """Return the class of an explicit method from its name or class; None for other methods."""
    known = {name: getattr(scipy.integrate, name) for name in METHODS}
    return known.get(method) if isinstance(method, str) else method if method in known.values() else None


def step(rate: Function, method: Any, t: Any, y: Any, h: Any, first: Any) -> tuple[Any, list[Any]]:
    """Return the state after one step, and the slopes of its stages; the last slope is at the end of the step."""
    slopes = [first]
    for a, c in zip(method.A[1:], method.C[1:], strict=False):
        s = len(slopes)
        slopes.append(rate(t + c * h, y + np.dot(np.stack(slopes).T, a[:s]) * h))
    after = y + h * np.dot(np.stack(slopes).T, method.B)
    slopes.append(rate(t + h, after))
    return after, slopes


def advance(rate: Function, y: Any, start: Any, end: Any) -> Any:
    """Make a step of length zero, from `start` to an equal time `end`, so that the state is differentiable in both.

    The method has order 8, so all derivatives to that order are those of the solution.
    """
    after = step(rate, scipy.integrate.DOP853, start, y, end - start, rate(start, y))[0]
    return limit_order(after, ORDER, "the solution of a differential equation at a time that is a node")


class RecordedStep:
    """One step, and the states within it by SciPy's interpolating polynomial."""

    def __init__(self, rate: Function, method: Any, t_old: Any, t: Any, y_old: Any, first: object) -> None:
        self.rate, self.method, self.t_old, self.t, self.h, self.y_old = rate, method, t_old, t, t - t_old, y_old
        self.y, self.slopes = step(rate, method, t_old, y_old, self.h, first)

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
    y, first = y0, rate(spans[0][0], y0) if spans else None
    for t_old, t in spans:
        steps.append(RecordedStep(rate, method, t_old, t, y, first))
        y, first = steps[-1].y, steps[-1].slopes[-1]
    return steps


def guard_step_choice(description: str, node: object) -> None:
    """Add a guard on a solution, because a replay does not choose the steps again."""
    note_guard(description, functools.partial(_is_close, np.array(to_values(node))), (node,), True, source_lines.user_frame(2))


def _is_close(recorded: NDArray[Any], current: NDArray[Any]) -> bool:
    return bool(np.shape(current) == recorded.shape and np.allclose(current, recorded, rtol=1e-10, atol=1e-12, equal_nan=True))
