"""Central differences of functions of NumPy arrays, the reference for all gradient checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.values import Value, require_computed


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
