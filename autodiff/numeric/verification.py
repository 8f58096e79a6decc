"""Finds gradients that lack a part because a value left the graph.

Code that takes the numbers of a node without asking gets an error. Code that asks for them by name (``float(x)``, ``x.value``)
gets them: what it computes from them is right as a value, but has no derivative. Whether that makes the gradient wrong shows
only in a comparison: the derivative along a random direction, by the graph and by a central difference of the function on
plain arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.context import holding_constants, no_graph, run_isolated
from compgraph.guards import format_leaks, recent_leaks
from compgraph.values import Value, describe, require_history, require_unbatched

from . import finite_differences

VERIFY = (None, "first", "always")
UNSEEN = (
    "No conversion was noticed. Within a function that is differentiated, only numbers that are written into a text and "
    "read from it again are not (and, before Python 3.12, those in the buffer of a node): use the node itself"
)
# Factors of the default step of a central difference; the smaller ones are tried where the function is not finite.
_STEPS = (1.0, 1e-2, 1e-4)


class DetachedGradientError(ValueError):
    """The gradient differs from that of the function, because a value has left the graph on the way."""

    __module__ = "autodiff"  # as users know it, in a traceback


def require_differentiable(operator: str, node: Any) -> None:
    """Raise a TypeError unless reverse mode can start from a value."""
    require_history(node)
    if not isinstance(node, Value):
        if callable(node):
            raise TypeError(f"{operator} takes a node, not a function; of a function, autodiff.grad(f)(x) is the derivative")
        if isinstance(node, (list, tuple, dict)):
            raise TypeError(
                f"{operator} takes one node, not a {type(node).__name__}. Add the nodes, or call {operator} for each of them"
            )
        raise TypeError(
            f"{operator} needs a node, not a plain {type(node).__name__}: the value has lost its graph (plain[...] = node writes "
            "numbers; make the array by cg.zeros or np.zeros_like(node)), was computed under no_graph, is a derivative without "
            f"create_graph=True, or never depended on a variable.{format_leaks(recent_leaks())}"
        )
    require_unbatched(operator, node)
    if node.level:
        raise TypeError(
            f"{operator} cannot start from a value that carries tangents; use autodiff.grad inside jvp, and the attribute "
            "jacobian of what was computed from autodiff.forward.variables"
        )
    if node.dtype.kind not in "fc":
        raise TypeError(f"the {describe(node)} has no derivative: it is not floating or complex")


def require_arguments(operator: str, args: Any) -> None:
    """Raise a TypeError unless the arguments of a function come as a tuple or list."""
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"{operator}: args is the list of the arguments of the function, not a {type(args).__name__}; of one argument "
            f"write {operator}(f, [x])"
        )


def require_known(verify: str | None) -> None:
    """Raise a ValueError unless `verify` is an option that exists."""
    if verify not in VERIFY:
        raise ValueError(f"verify is None, 'first' or 'always', not {verify!r}")


def verify_gradient(
    f: Callable[..., Any],
    points: Sequence[Any],
    value: Any,
    gradients: Sequence[Any],
    escapes: Any,
    derive: Callable[[Sequence[Any]], Sequence[Any]],
    seed: int = 0,
) -> None:
    """Compare a gradient with a central difference along a random direction, and raise if they differ.

    Three other reasons for a difference are ruled out first. `stop_gradient`: its results are held fixed while the difference
    is taken. Random numbers or state: a function whose value changes from call to call is let through. A kink, where any slope
    between the one-sided ones is right: the gradient must be wrong at points nearby too.

    Parameters
    ----------
    f : callable
        A function of `points` that returns a number.
    points : sequence of array_like
        The arguments.
    value, gradients : array_like and sequence of array_like
        The value of `f`, whose size limits the accuracy of differences, and the gradient to verify: one array for each point.
    escapes : sequence
        The escapes that were noticed while the function was traced, for the message.
    derive : callable
        ``derive(points)`` returns the gradients at other points.
    seed : int
        The seed of the direction.

    Raises
    ------
    DetachedGradientError
        If they differ.
    """
    run_isolated(_verify, f, points, value, gradients, escapes, derive, seed)


def _verify(f: Any, points: Sequence[Any], value: Any, gradients: Any, escapes: Any, derive: Any, seed: int) -> None:
    points = [finite_differences.plain(p) for p in points]
    rng = np.random.default_rng(seed)
    directions = [_direction(p, rng) for p in points]
    derivative, size = _along(gradients, directions)
    base = max(finite_differences.step_of(p.dtype) for p in points)
    slack = 10 * base**2 * abs(_plain(value))  # the error of the difference by rounding of the value
    expected = np.nan
    for step in base * np.array(_STEPS):
        with no_graph(), np.errstate(all="ignore"):
            slope = float(np.real(_called(f, points, directions, step)))
        if abs(derivative - slope) <= 4 * base * max(abs(slope), size) + slack:
            return
        expected = slope
        if np.isfinite(slope) and step == base:
            break
    if not np.isfinite(expected):  # nothing to compare with: the function is not finite around the point
        return
    if _changes(f, points) or _agrees(f, points, gradients, directions) or _agrees_aside(f, points, derive, directions):
        return
    raise DetachedGradientError(
        f"grad: along a random direction the derivative is {derivative:.8g} by the graph, and {expected:.8g} by a central "
        f"difference of the function on plain arrays.{format_leaks(escapes) or ' ' + UNSEEN}. (autodiff.check_grads says "
        "whether a rule is off.)"
    )


def _along(gradients: Sequence[Any], directions: Sequence[Any]) -> tuple[float, float]:
    """The derivative along a direction by gradients, and the sum of the absolute values of its terms."""
    parts = [np.real(_plain(g) * d) for g, d in zip(gradients, directions, strict=True)]
    return float(sum(np.sum(p, dtype=float) for p in parts)), float(sum(np.sum(np.abs(p), dtype=float) for p in parts))


def _changes(f: Callable[..., Any], points: Sequence[Any]) -> bool:
    """Whether a function gives another value when it is called again: it draws random numbers, or keeps a state."""
    with no_graph(), np.errstate(all="ignore"):
        values = [np.asarray(f(*[p.copy("K") for p in points])) for _ in range(3)]
    return not all(np.array_equal(values[0], v, equal_nan=True) for v in values[1:])


def _agrees_aside(f: Callable[..., Any], points: Sequence[Any], derive: Callable[..., Any], directions: Sequence[Any]) -> bool:
    """Whether the gradient is right at a point nearby, where each element is moved by about 1 % or 10 % of its size."""
    rng = np.random.default_rng(1)
    for reach in (1e-2, 1e-1):
        aside = [p + (reach * _direction(p, rng)).astype(p.dtype) for p in points]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gradients = derive(aside)
        except (ArithmeticError, TypeError, ValueError):  # the function is not defined or not differentiable there
            continue
        if _agrees(f, aside, gradients, directions, bent=True):
            return True
    return False


def _agrees(
    f: Callable[..., Any], points: Sequence[Any], gradients: Sequence[Any], directions: Sequence[Any], bent: bool = False
) -> bool:
    """Whether gradients agree with a central difference, with the results of `stop_gradient` held fixed.

    With `bent` an error up to the difference of the two one-sided slopes is accepted too: a kink may lie within the step.
    """
    derivative, size = _along(gradients, directions)
    accuracy = 4 * max(finite_differences.step_of(p.dtype) for p in points)
    doubles = [p.astype(np.result_type(p, np.float64)) for p in points]  # float64 allows a smaller step
    with no_graph(), np.errstate(all="ignore"):
        result = finite_differences.plain(f(*[p.copy("K") for p in doubles]))
    base = max(finite_differences.step_of(x.dtype) for x in (*doubles, result))
    ahead, behind = _slopes(f, doubles, directions, base)
    off = abs(derivative - (ahead + behind) / 2)
    close = accuracy * max(abs(ahead), abs(behind), size) + 10 * base**2 * abs(result)
    return bool(off <= close or (bent and off <= abs(ahead - behind)))


def _slopes(f: Callable[..., Any], points: Sequence[Any], directions: Sequence[Any], step: float) -> tuple[float, float]:
    """The one-sided differences of a function ahead and behind along a direction, with results of `stop_gradient` held fixed."""
    stopped = _Held()
    with holding_constants(stopped), no_graph(), np.errstate(all="ignore"):
        middle = float(np.real(f(*[p.copy("K") for p in points])))
        ends = []
        for sign in (1, -1):
            stopped.replay()
            moved = [finite_differences.shifted(p, sign * step * d) for p, d in zip(points, directions, strict=True)]
            ends.append(float(np.real(f(*moved))))
    return (ends[0] - middle) / step, (middle - ends[1]) / step


class _Held:
    """Records what `stop_gradient` returns, call by call, and returns the same again in a replay."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.place: int | None = None

    def replay(self) -> None:
        """From now on return the recorded values, from the first on."""
        self.place = 0

    def __call__(self, value: Any) -> Any:
        """Record a value, or in a replay return the one recorded by the same call, if its shape is the same."""
        if self.place is None:
            self.values.append(value)
            return value
        kept = self.values[self.place] if self.place < len(self.values) else value
        self.place += 1
        return kept if np.shape(kept) == np.shape(value) else value


def _called(f: Callable[..., Any], points: Sequence[Any], directions: Sequence[Any], step: float) -> Any:
    """The central difference along directions; a note on an error in the function says who called it."""
    size = max([1.0, *(float(np.max(np.abs(p), initial=0)) for p in points)])  # by which the step is multiplied
    try:
        return finite_differences.directional(f, points, directions, step / size)
    except Exception as error:
        error.add_note("verify= calls the function on plain arrays near the arguments, where this was raised.")
        raise


def _direction(point: Any, rng: Any) -> Any:
    """A random direction, in which each element is proportional to the size of that of `point`."""
    direction = finite_differences.random_direction(point, rng)
    sizes = np.abs(point)
    largest = float(np.max(sizes, initial=0))
    return (direction * np.where(sizes > 0, sizes, 1e-3 * largest or 1.0)).astype(point.dtype)


def _plain(value: Any) -> Any:
    return value.raw_value if isinstance(value, Value) else value


def detached(position: int, actual: Any, expected: Any, escapes: Any) -> DetachedGradientError:
    """The error for a gradient by argument `position` that differs from its central differences, element by element."""
    return DetachedGradientError(
        f"check_gradient: the gradient with respect to argument {position} is {_shown(actual)} by the graph, and "
        f"{_shown(expected)} by central differences of the function on plain arrays.{format_leaks(escapes) or ' ' + UNSEEN}"
    )


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(_plain(value)), threshold=10, separator=", ")
