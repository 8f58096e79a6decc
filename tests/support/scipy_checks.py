"""Checks of the derivatives of SciPy's functions; see `checked`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.failures import Failures

Function = Callable[..., Any]
STEP = 1e-3  # step of the fourth-order differences


def functions(table: dict[str, Any], in_full: Collection[str] = ()) -> list[Any]:
    """Parameters of a test: the rows of each function of a table, for the default run and for the exhaustive one.

    Parameters
    ----------
    table : dict
        ``{function name: [(label, function, *arguments), ...]}``. A callable in place of a list builds it when the test runs.
    in_full : collection of str
        Names whose rows call different functions; all their rows are checked in full.
    """
    parameters = []
    for name, rows in table.items():
        parameters.append(pytest.param(Rows(name, rows, name in in_full), id=name))
        if name not in in_full and (callable(rows) or len(rows) > 1):
            parameters.append(pytest.param(Rows(name, rows, every=True), id=f"{name}, every row", marks=pytest.mark.exhaustive))
    return parameters


class Rows:
    """Calls of one SciPy function.

    By default the first is checked in full, and the others by value and first derivatives.
    """

    def __init__(self, name: str, rows: Any, every: bool = False) -> None:
        self.name = name
        self.rows = rows
        self.every = every

    def check(self, order: int = 2, tolerance: float = 2e-6, jacobians: bool = False) -> None:
        """Compare all rows with plain SciPy and with differences of it, and report each that fails.

        With `jacobians`, Jacobians of both modes are compared too, for the first and the last row, or for all.
        """
        rows = self.rows() if callable(self.rows) else self.rows
        with Failures(self.name) as failures:
            for place, (label, function, *arguments) in enumerate(rows):
                with failures.case(label):
                    if self.every or place == 0:
                        checked(function, tuple(arguments), order, tolerance)
                    else:
                        checked_briefly(function, tuple(arguments), tolerance)
                    if jacobians and (self.every or place in (0, len(rows) - 1)):
                        check_jacobians(function, tuple(arguments))


def check_jacobians(function: Function, arguments: tuple[Any, ...]) -> None:
    """Compare the Jacobians of both modes by the first argument, of real numbers."""
    first, *others = [np.asarray(a) for a in arguments]

    def flat(x: Any) -> Any:
        flat_output = _flat(function(x, *others))
        return np.concatenate([np.real(flat_output), np.imag(flat_output)]) if flat_output.dtype.kind == "c" else flat_output

    x = np.real(first).astype(float)
    np.testing.assert_allclose(ad.jacobian(flat)(x), ad.jacfwd(flat)(x), rtol=1e-10, atol=1e-12)


class _Total:
    """A function of arrays as a weighted sum of its results, and its first derivatives by both modes.

    The value is SciPy's own, the derivatives along random directions are those of central differences of plain calls.
    """

    def __init__(self, function: Function, arguments: tuple[Any, ...], tolerance: float) -> None:
        rng = np.random.default_rng(3)
        self.function, self.tolerance = function, tolerance
        self.arrays = tuple([np.asarray(a, dtype=np.result_type(np.asarray(a), np.float32)) for a in arguments])
        self.argnums = tuple(range(len(self.arrays)))
        plain = _flat(function(*self.arrays))
        self.is_complex = plain.dtype.kind == "c"
        self.weights = rng.standard_normal(plain.size) + 1j * rng.standard_normal(plain.size)
        value, self.gradients = ad.value_and_grad(self, self.argnums)(*self.arrays)
        np.testing.assert_allclose(value, self._weighted(plain), rtol=1e-12, atol=1e-12)
        self.directions = [_direction(rng, a) for a in self.arrays]
        self.largest = max([1.0, *[float(np.max(np.abs(g), initial=0.0)) for g in self.gradients]])

    def __call__(self, *arguments: Any) -> Any:
        return self._weighted(_flat(self.function(*arguments)))

    def _weighted(self, flat: Any) -> Any:
        total = np.sum(np.real(flat) * self.weights.real)
        return total + np.sum(np.imag(flat) * self.weights.imag) if self.is_complex else total

    def check_first_order(self, difference: float) -> float:
        """Compare both modes with the difference along all directions, and return the scale of tolerances."""
        scale = max(self.largest, abs(difference))
        assert _along(self.gradients, self.directions) == pytest.approx(difference, abs=self.tolerance * scale), "reverse mode"
        _, tangent = ad.jvp(self, self.arrays, tuple(self.directions))
        assert float(tangent) == pytest.approx(difference, abs=self.tolerance * scale), "forward mode"
        return scale


def checked_briefly(function: Function, arguments: tuple[Any, ...], tolerance: float = 2e-6) -> None:
    """Compare the value and the first derivatives of a function in both modes with plain SciPy; see `checked`."""
    total = _Total(function, arguments, tolerance)
    total.check_first_order(_difference(lambda s: total(*_moved(total.arrays, total.directions, s))))


def checked(function: Function, arguments: tuple[Any, ...], order: int = 2, tolerance: float = 2e-6) -> None:
    """Compare a function and its derivatives with plain SciPy and with differences of it.

    The value is SciPy's own; the derivatives along random directions in reverse and in forward mode, and to second order,
    are those of central differences of plain calls; with strided and Fortran arguments; beside another term; in float32.

    Parameters
    ----------
    function : callable
        Calls SciPy as users do; gives an array, or arrays in a tuple.
    arguments : tuple of array_like
        Floating or complex arrays, all differentiated; the function is smooth about them.
    order : {1, 2}
        Order of the highest derivatives to check.
    tolerance : float
        Of first derivatives, relative to the largest; of second ones a hundredfold.
    """
    total = _Total(function, arguments, tolerance)
    arrays, directions, gradients = total.arrays, total.directions, total.gradients
    differences = []  # per argument; their sum is the derivative along all arguments
    for place in total.argnums:
        alone = [d if k == place else np.zeros_like(d) for k, d in enumerate(directions)]
        differences.append(_difference(lambda s, alone=alone: total(*_moved(arrays, alone, s))))
    scale = total.check_first_order(sum(differences))
    for place, difference in enumerate(differences):
        one = _along(gradients[place : place + 1], directions[place : place + 1])
        assert one == pytest.approx(difference, abs=tolerance * scale), f"argument {place}"
    squares = lambda *values: total(*values) + sum(np.sum(np.real(g) ** 2) for g in values)  # noqa: E731
    beside = ad.grad(squares, total.argnums)(*map(_in_other_layout, arrays))
    for one, two, array in zip(gradients, beside, arrays, strict=True):
        np.testing.assert_allclose(two, one + 2 * np.real(array), atol=1e-9 * scale, err_msg="beside a term, in other memory")
    if order > 1:
        _second(total, arrays, directions, scale, tolerance)
    _narrow(total, arrays, gradients, scale)


def _second(total: Function, arrays: Any, directions: Any, scale: float, tolerance: float) -> None:
    argnums = tuple(range(len(arrays)))

    def slope(*values: Any) -> Any:
        return sum(np.sum(np.real(d * g)) for g, d in zip(ad.grad(total, argnums)(*values), directions, strict=True))

    expected = _difference(lambda s: slope(*_moved(arrays, directions, s)))
    room = 100 * tolerance * max(scale, abs(expected))
    assert _along(ad.grad(slope, argnums)(*arrays), directions) == pytest.approx(expected, abs=room), "reverse over reverse"
    assert float(ad.jvp(slope, arrays, tuple(directions))[1]) == pytest.approx(expected, abs=room), "forward over reverse"


def _narrow(total: Function, arrays: Any, gradients: Any, scale: float) -> None:
    """In float32 the gradient has this dtype and nearly the same numbers."""
    narrow = tuple([a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for a in arrays])
    for one, two in zip(gradients, ad.grad(total, tuple(range(len(arrays))))(*narrow), strict=True):
        assert two.dtype == np.result_type(one.dtype, narrow[0].dtype) or two.dtype.itemsize * 2 == one.dtype.itemsize
        np.testing.assert_allclose(two, one, atol=5e-2 * scale, err_msg="in float32")


def _flat(result: Any) -> Any:
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


def _direction(rng: np.random.Generator, array: Any) -> Any:
    direction = rng.standard_normal(array.shape)
    return direction + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else direction


def _moved(arrays: Any, directions: Any, s: float) -> list[Any]:
    return [a + s * d for a, d in zip(arrays, directions, strict=True)]


def _difference(f: Callable[[float], Any], step: float = STEP) -> float:
    near, far = float(f(step)) - float(f(-step)), float(f(2 * step)) - float(f(-2 * step))
    return (8 * near - far) / (12 * step)


def _along(gradients: Any, directions: Any) -> float:
    """The derivative along directions."""
    return float(sum(np.sum(np.real(g * d)) for g, d in zip(gradients, directions, strict=True)))


def _in_other_layout(array: Any) -> Any:
    """The same numbers with gaps in memory; of matrices, in Fortran order."""
    if array.ndim > 1:
        return np.asfortranarray(array)
    room = np.zeros((2 * array.size,), array.dtype)
    room[::2] = array.ravel()
    return room[::2].reshape(array.shape) if array.ndim else array
