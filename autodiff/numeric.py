"""Central differences of plain functions, and the detection of gradients that disagree with them.

Implicit conversions of a node to numbers raise. Explicit ones (``float(x)``, ``x.value``) return numbers, and results computed
from these have no derivative. A wrong gradient is detected by a comparison of two derivatives along a random direction: by the
graph, and by a central difference of the function on plain arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.context import holding_constants, no_graph, run_isolated
from compgraph.guards import format_leaks, recent_leaks
from compgraph.values import Value, describe, require_computed, require_history, require_unbatched

# The public functions; the others are for other packages.
__all__ = ["directional", "gradient", "plain", "step_of"]

VERIFY = (None, "first", "always")
NO_LEAK_ADVICE = (
    "No conversion was recorded. In a differentiated function, only round trips through text are not detected (and, before "
    "Python 3.12, reads of a node's buffer). Use the node itself"
)
# Factors of the default step of a central difference; smaller ones are used where the function is not finite.
_STEPS = (1.0, 1e-2, 1e-4)


def plain(value: NDArray[Any]) -> Any:
    """Copy a value to a plain floating or complex array; integers and booleans become float64."""
    require_computed(value, "an argument")
    array = np.array(value.value if isinstance(value, Value) else value)
    return array.astype(float) if array.dtype.kind in "biu" else array


def step_of(dtype: np.dtype[Any]) -> float:
    """Return the relative step that balances truncation and rounding of a central difference: the cube root of epsilon."""
    return float(np.finfo(dtype).eps ** (1 / 3))


def random_direction(value: Array, rng: Any) -> Any:
    """Draw a direction of independent normal numbers, with the shape and dtype of an array."""
    direction = rng.normal(size=value.shape)
    if value.dtype.kind == "c":
        direction = direction + 1j * rng.normal(size=value.shape)
    return direction.astype(value.dtype)


def directional(f: Callable[..., Any], args: Sequence[Any], directions: Sequence[Any], step: float | None = None) -> Any:
    """Compute the derivative of ``f(*args)`` along `directions` by a central difference.

    Parameters
    ----------
    f : callable
        A function of plain arrays that returns an array.
    args : sequence of array_like
        The point.
    directions : sequence of array_like
        For each argument, the direction of the same shape; None for zero.
    step : float, optional
        The step, relative to the largest absolute value in the arguments, or to 1 if that is larger. By default the largest
        `step_of` the dtypes.

    Returns
    -------
    numpy.ndarray
        Of the shape of ``f(*args)``.

    Examples
    --------
    >>> float(round(directional(lambda x: x**2, [3.0], [1.0]), 6))
    6.0
    """
    args = [plain(a) for a in args]
    size = max([1.0, *(float(np.max(np.abs(a), initial=0)) for a in args)])
    h = size * (step or max(step_of(a.dtype) for a in args))
    pairs = [(a, 0 if d is None else np.asarray(d)) for a, d in zip(args, directions, strict=True)]
    values = [np.asarray(f(*[add_perturbation(a, sign * h * d) for a, d in pairs])) for sign in (1, -1)]
    return (values[0] - values[1]) / (2 * h)


def add_perturbation(array: NDArray[Any], perturbation: Operand) -> Any:
    """Return the sum of an array and a perturbation, in the dtype and memory layout of the array."""
    result = np.empty_like(array)
    np.add(array, perturbation, out=result, casting="unsafe")
    return result if np.ndim(array) else result[()]


def gradient(
    f: Callable[..., Any], args: Sequence[Any], weights: NDArray[Any] | None = None, step: float | None = None
) -> list[Any]:
    """Compute the gradient of ``real(sum(weights * f(*args)))`` by central differences, one element at a time.

    Parameters
    ----------
    f : callable
        A function of plain arrays that returns an array.
    args : sequence of array_like
        The point.
    weights : array_like, optional
        Of the shape of the result; ones by default.
    step : float, optional
        The step, relative to the size of each element, or to 1 if that is larger. By default `step_of` its dtype.

    Returns
    -------
    list of numpy.ndarray
        For each argument, an array of its shape and dtype (float64 for integers and booleans).

    Notes
    -----
    For a complex argument the result follows the convention of `autodiff`: the derivative along the real axis minus
    ``1j`` times that along the imaginary one.

    Examples
    --------
    >>> gradient(lambda x, y: x * y, [[1.0, 2.0], 3.0])[1].round(6)
    np.float64(3.0)
    """
    args = [plain(a) for a in args]
    gradients = []
    for position, argument in enumerate(args):
        gradient_array = np.zeros(argument.shape, argument.dtype)
        units = (1, 1j) if argument.dtype.kind == "c" else (1,)
        for index in np.ndindex(argument.shape):
            for unit in units:
                gradient_array[index] += np.conj(unit) * _partial_derivative(f, args, position, index, unit, weights, step)
        gradients.append(gradient_array)
    return gradients


def elementwise_derivative(f: Callable[[Any], Any], x: NDArray[Any]) -> Any:
    """Compute the derivative of an elementwise function by a central difference, with all elements perturbed together."""
    difference, widths = _central_difference(f, plain(x), 1.0)
    return difference / widths


def jacobian(f: Callable[[Any], Any], x: NDArray[Any]) -> Any:
    """Compute the Jacobian of a function by central differences, of shape ``(*f(x).shape, *x.shape)``."""
    x = plain(x)
    columns = []
    for unit in np.eye(x.size).reshape(-1, *x.shape):
        difference, widths = _central_difference(f, x, unit)
        columns.append((difference / np.sum(widths))[..., None])
    shape = (*f(x).shape, *x.shape)
    return np.reshape(np.concatenate(columns, axis=-1), shape) if columns else np.zeros(shape)


def _central_difference(f: Callable[[Any], Any], x: NDArray[Any], mask: Array | float) -> tuple[Any, Any]:
    """Return the difference of `f` at two points, and the difference of the points, which is 0 where `mask` is 0.

    The step of each element is relative to its size.
    """
    step = (step_of(x.dtype) * np.maximum(1, np.abs(x))).astype(x.dtype)
    upper, lower = (x + mask * step).astype(x.dtype), (x - mask * step).astype(x.dtype)
    return np.asarray(f(upper)) - np.asarray(f(lower)), upper - lower


def _partial_derivative(
    f: Callable[..., Any],
    args: list[Any],
    position: int,
    index: tuple[int, ...],
    unit: complex,
    weights: NDArray[Any] | None,
    step: float | None,
) -> Any:
    """Return the central difference of the weighted sum with one element of one argument perturbed along `unit` (1 or 1j)."""
    argument = args[position]
    h = max(1.0, abs(argument[index])) * (step or step_of(argument.dtype))
    outputs, coordinates = [], []
    for sign in (1, -1):
        perturbed = argument.copy("K")
        perturbed[index] += sign * h * unit
        coordinates.append(perturbed[index])
        others = [a.copy("K") for a in args]  # the function may write into them
        outputs.append(np.asarray(f(*others[:position], perturbed, *others[position + 1 :])))
    difference = outputs[0] - outputs[1]
    if weights is not None:
        difference = difference * weights
    width = np.real((coordinates[0] - coordinates[1]) / unit)
    return np.real(np.sum(difference)) / width


# ------------------------------------------------------------------------------------------ verification


class DetachedGradientError(ValueError):
    """Raised if the computed gradient differs from central differences, because a value left the graph."""

    __module__ = "autodiff"  # the public name, in tracebacks


def require_differentiable(operator: str, node: object) -> None:
    """Raise a TypeError unless reverse mode can start from a value."""
    require_history(node)
    if not isinstance(node, Value):
        if callable(node):
            raise TypeError(
                f"{operator} takes a node, not a function. For the derivative of a function, call autodiff.grad(f)(x)"
            )
        if isinstance(node, (list, tuple, dict)):
            raise TypeError(
                f"{operator} takes one node, not a {type(node).__name__}. Add the nodes, or call {operator} for each of them"
            )
        raise TypeError(
            f"{operator} needs a node, not a plain {type(node).__name__}: the value has lost its graph, was computed under "
            "no_graph, is a derivative without create_graph=True, or never depended on a variable. Where plain[...] = node wrote "
            f"numbers, make the array by cg.zeros or np.zeros_like(node).{format_leaks(recent_leaks())}"
        )
    require_unbatched(operator, node)
    if node.level:
        raise TypeError(
            f"{operator}: the value has tangents of forward mode. Use autodiff.grad inside jvp, and the attribute jacobian of "
            "values computed from autodiff.forward.variables"
        )
    if node.dtype.kind not in "fc":
        raise TypeError(
            f"{operator}: the {describe(node)} has no derivative: it is not floating or complex. Convert it (x.astype(float))"
        )


def require_arguments(operator: str, args: object) -> None:
    """Raise a TypeError unless the arguments of a function are in a tuple or list."""
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"{operator}: args must be a tuple or list of the arguments, not a {type(args).__name__}. For one argument write "
            f"{operator}(f, [x])"
        )


def require_verify_option(verify: str | None) -> None:
    """Raise a ValueError unless `verify` is one of `VERIFY`."""
    if verify not in VERIFY:
        raise ValueError(f"verify must be None, 'first' or 'always', not {verify!r}")


def verify_gradient(
    f: Callable[..., Any],
    points: Sequence[Any],
    value: object,
    gradients: Sequence[Any],
    leaks: list[Any],
    compute_gradient: Callable[[Sequence[Any]], Sequence[Any]],
    seed: int = 0,
) -> None:
    """Compare a gradient with a central difference along a random direction, and raise if they differ.

    Three other causes of a difference are ruled out first. Results of `stop_gradient` are held fixed in the difference. A
    function whose value changes from call to call (random numbers, state) is accepted. At a kink, any slope between the
    one-sided ones is right, so the gradient must be wrong at points nearby too.

    Parameters
    ----------
    f : callable
        A function of `points` that returns a number.
    points : sequence of array_like
        The arguments.
    value : array_like
        The value of `f`, whose magnitude limits the accuracy of differences.
    gradients : sequence of array_like
        The gradient to verify: one array for each point.
    leaks : sequence
        The leaks that were recorded while the function was traced, for the message.
    compute_gradient : callable
        ``compute_gradient(points)`` returns the gradients at other points.
    seed : int
        The seed of the direction.

    Raises
    ------
    DetachedGradientError
        If they differ.
    """
    run_isolated(_verify, f, points, value, gradients, leaks, compute_gradient, seed)


def _verify(
    f: Callable[..., Any],
    points: Sequence[Any],
    value: object,
    gradients: list[Any],
    leaks: list[Any],
    compute_gradient: Callable[..., Any],
    seed: int,
) -> None:
    points = [plain(p) for p in points]
    rng = np.random.default_rng(seed)
    directions = [_scaled_direction(p, rng) for p in points]
    derivative, magnitude = _directional_derivative(gradients, directions)
    default_step = max(step_of(p.dtype) for p in points)
    slack = 10 * default_step**2 * abs(_value_of(value))  # the rounding error of the difference
    for step in default_step * np.array(_STEPS):
        with no_graph(), np.errstate(all="ignore"):
            expected = float(np.real(_difference_along(f, points, directions, step)))
        if abs(derivative - expected) <= 4 * default_step * max(abs(expected), magnitude) + slack:
            return
        if np.isfinite(expected) and step == default_step:
            break
    if not np.isfinite(expected):  # no reference, because the function is not finite around the point
        return
    if (
        _is_nondeterministic(f, points)
        or _matches_difference(f, points, gradients, directions)
        or _is_correct_nearby(f, points, compute_gradient, directions)
    ):
        return
    raise DetachedGradientError(
        f"grad: along a random direction the derivative is {derivative:.8g} by the graph, and {expected:.8g} by a central "
        f"difference of the function on plain arrays.{format_leaks(leaks) or ' ' + NO_LEAK_ADVICE}. Call autodiff.check_grads to "
        "check the rules"
    )


def _directional_derivative(gradients: Sequence[Any], directions: Sequence[Any]) -> tuple[float, float]:
    """Return the derivative along a direction by gradients, and the sum of the absolute values of its terms."""
    parts = [np.real(_value_of(g) * d) for g, d in zip(gradients, directions, strict=True)]
    return float(sum(np.sum(p, dtype=float) for p in parts)), float(sum(np.sum(np.abs(p), dtype=float) for p in parts))


def _is_nondeterministic(f: Callable[..., Any], points: Sequence[Any]) -> bool:
    """Whether repeated calls of a function return different values, because of random numbers or state."""
    with no_graph(), np.errstate(all="ignore"):
        values = [np.asarray(f(*[p.copy("K") for p in points])) for _ in range(3)]
    return not all(np.array_equal(values[0], v, equal_nan=True) for v in values[1:])


def _is_correct_nearby(
    f: Callable[..., Any], points: Sequence[Any], compute_gradient: Callable[..., Any], directions: Sequence[Any]
) -> bool:
    """Whether the gradient is correct at a nearby point, with each element perturbed by about 1 % or 10 % of its magnitude."""
    rng = np.random.default_rng(1)
    for scale in (1e-2, 1e-1):
        nearby = [p + (scale * _scaled_direction(p, rng)).astype(p.dtype) for p in points]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gradients = compute_gradient(nearby)
        except (ArithmeticError, TypeError, ValueError):  # the function is not defined or not differentiable there
            continue
        if _matches_difference(f, nearby, gradients, directions, allows_kink=True):
            return True
    return False


def _matches_difference(
    f: Callable[..., Any], points: Sequence[Any], gradients: Sequence[Any], directions: Sequence[Any], allows_kink: bool = False
) -> bool:
    """Whether gradients agree with a central difference, with the results of `stop_gradient` held fixed.

    With `allows_kink`, an error up to the difference of the one-sided slopes is accepted, for a kink within the step.
    """
    derivative, magnitude = _directional_derivative(gradients, directions)
    accuracy = 4 * max(step_of(p.dtype) for p in points)
    doubles = [p.astype(np.result_type(p, np.float64)) for p in points]  # float64 allows a smaller step
    with no_graph(), np.errstate(all="ignore"):
        result = plain(f(*[p.copy("K") for p in doubles]))
    default_step = max(step_of(x.dtype) for x in (*doubles, result))
    forward, backward = _slopes(f, doubles, directions, default_step)
    error = abs(derivative - (forward + backward) / 2)
    tolerance = accuracy * max(abs(forward), abs(backward), magnitude) + 10 * default_step**2 * abs(result)
    return bool(error <= tolerance or (allows_kink and error <= abs(forward - backward)))


def _slopes(f: Callable[..., Any], points: Sequence[Any], directions: Sequence[Any], step: float) -> tuple[float, float]:
    """Return the forward and backward difference along a direction, with the results of `stop_gradient` held fixed."""
    recorder = _StopGradientRecorder()
    with holding_constants(recorder), no_graph(), np.errstate(all="ignore"):
        middle = float(np.real(f(*[p.copy("K") for p in points])))
        ends = []
        for sign in (1, -1):
            recorder.replay()
            perturbed = [add_perturbation(p, sign * step * d) for p, d in zip(points, directions, strict=True)]
            ends.append(float(np.real(f(*perturbed))))
    return (ends[0] - middle) / step, (middle - ends[1]) / step


class _StopGradientRecorder:
    """Records the results of `stop_gradient`, call by call, and returns them in a replay."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.position: int | None = None

    def replay(self) -> None:
        """Start a replay, from the first recorded value."""
        self.position = 0

    def __call__(self, value: NDArray[Any]) -> Any:
        """Record a value; in a replay, return the value recorded by this call if it has the same shape."""
        if self.position is None:
            self.values.append(value)
            return value
        recorded = self.values[self.position] if self.position < len(self.values) else value
        self.position += 1
        return recorded if np.shape(recorded) == np.shape(value) else value


def _difference_along(f: Callable[..., Any], points: Sequence[Any], directions: Sequence[Any], step: float) -> Any:
    """Return the central difference along directions. Errors of the function get a note that verify= called it."""
    magnitude = max([1.0, *(float(np.max(np.abs(p), initial=0)) for p in points)])  # `directional` multiplies the step by it
    try:
        return directional(f, points, directions, step / magnitude)
    except Exception as error:
        error.add_note("verify= calls the function on plain arrays near the arguments, where this was raised.")
        raise


def _scaled_direction(point: NDArray[Any], rng: object) -> Any:
    """Draw a direction whose elements are proportional to the magnitudes of those of `point`."""
    direction = random_direction(point, rng)
    magnitudes = np.abs(point)
    largest = float(np.max(magnitudes, initial=0))
    return (direction * np.where(magnitudes > 0, magnitudes, 1e-3 * largest or 1.0)).astype(point.dtype)


def _value_of(value: object) -> Any:
    return value.raw_value if isinstance(value, Value) else value


def detached_gradient_error(position: int, actual: Array, expected: NDArray[Any], leaks: list[Any]) -> DetachedGradientError:
    """Return the error for a gradient with respect to argument `position` that differs from central differences."""
    return DetachedGradientError(
        f"check_gradient: the gradient with respect to argument {position} is {_format_array(actual)} by the graph, and "
        f"{_format_array(expected)} by central differences of the function on plain arrays."
        f"{format_leaks(leaks) or ' ' + NO_LEAK_ADVICE}"
    )


def _format_array(value: Array) -> str:
    return np.array2string(np.asarray(_value_of(value)), threshold=10, separator=", ")
