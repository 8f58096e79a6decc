"""What is asked of every function of SciPy's that has a derivative; see `checked`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad

Function = Callable[..., Any]
STEP = 1e-3  # of differences of fourth order


def cases(table: dict[str, list[tuple[Any, ...]]]) -> list[Any]:
    """The cases of a table, ``{name of the function: [(label, function, *arguments), ...]}``, as parameters of a test."""
    return [
        pytest.param(sketch[1], sketch[2:], id=f"{name}: {sketch[0]}") for name, sketches in table.items() for sketch in sketches
    ]


def checked(function: Function, arguments: tuple[Any, ...], order: int = 2, tolerance: float = 2e-6) -> None:
    """Hold a function to plain SciPy and to differences of it.

    The value is SciPy's own; the derivatives along random directions in reverse and in forward mode, and to second order,
    are those of central differences of plain calls; with strided and Fortran arguments; beside another term; in float32.

    Parameters
    ----------
    function : callable
        Calls SciPy as users do; gives an array, or arrays in a tuple.
    arguments : tuple of array_like
        Floating or complex arrays, all differentiated; the function is smooth about them.
    order : {1, 2}
        Whether second derivatives are looked at.
    tolerance : float
        Of first derivatives, relative to the largest; of second ones a hundredfold.
    """
    rng = np.random.default_rng(3)
    arrays = tuple([np.asarray(a, dtype=np.result_type(np.asarray(a), np.float32)) for a in arguments])
    plain = _flat(function(*arrays))
    weights = rng.standard_normal(plain.size) + 1j * rng.standard_normal(plain.size)

    def total(*given: Any) -> Any:
        flat = _flat(function(*given))
        return np.sum(np.real(flat) * weights.real) + (np.sum(np.imag(flat) * weights.imag) if plain.dtype.kind == "c" else 0.0)

    places = tuple(range(len(arrays)))
    value, found = ad.value_and_grad(total, places)(*arrays)
    np.testing.assert_allclose(value, total(*arrays), rtol=1e-12, atol=1e-12)
    directions = [_direction(rng, a) for a in arrays]
    wanted = _difference(lambda s: total(*_moved(arrays, directions, s)))
    scale = max(1.0, abs(wanted), *[float(np.max(np.abs(g), initial=0.0)) for g in found])
    assert _along(found, directions) == pytest.approx(wanted, abs=tolerance * scale), "reverse mode"
    for place, direction in enumerate(directions):  # each argument by itself
        alone = [d if k == place else np.zeros_like(d) for k, d in enumerate(directions)]
        difference = _difference(lambda s, alone=alone: total(*_moved(arrays, alone, s)))
        assert _along(found[place : place + 1], [direction]) == pytest.approx(difference, abs=tolerance * scale), f"{place}"
    _, tangent = ad.jvp(total, arrays, tuple(directions))
    assert float(tangent) == pytest.approx(wanted, abs=tolerance * scale), "forward mode"
    beside = ad.grad(lambda *given: total(*given) + sum(np.sum(np.real(g) ** 2) for g in given), places)(*arrays)
    for one, two, array in zip(found, beside, arrays, strict=True):
        np.testing.assert_allclose(two, one + 2 * np.real(array), atol=tolerance * scale, err_msg="beside another term")
    laid = ad.grad(total, places)(*map(_laid_otherwise, arrays))
    for one, two in zip(found, laid, strict=True):
        np.testing.assert_allclose(two, one, atol=1e-9 * scale, err_msg="in other memory")
    if order > 1:
        _second(total, arrays, directions, scale, tolerance)
    _narrow(total, arrays, found, scale)


def _second(total: Function, arrays: Any, directions: Any, scale: float, tolerance: float) -> None:
    places = tuple(range(len(arrays)))

    def slope(*given: Any) -> Any:
        return sum(np.sum(np.real(d * g)) for g, d in zip(ad.grad(total, places)(*given), directions, strict=True))

    wanted = _difference(lambda s: slope(*_moved(arrays, directions, s)))
    room = 100 * tolerance * max(scale, abs(wanted))
    assert _along(ad.grad(slope, places)(*arrays), directions) == pytest.approx(wanted, abs=room), "reverse over reverse"
    assert float(ad.jvp(slope, arrays, tuple(directions))[1]) == pytest.approx(wanted, abs=room), "forward over reverse"


def _narrow(total: Function, arrays: Any, found: Any, scale: float) -> None:
    """In float32 the gradient has that dtype, and nearly the same numbers."""
    narrow = tuple([a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for a in arrays])
    for one, two in zip(found, ad.grad(total, tuple(range(len(arrays))))(*narrow), strict=True):
        assert two.dtype == np.result_type(one.dtype, narrow[0].dtype) or two.dtype.itemsize * 2 == one.dtype.itemsize
        np.testing.assert_allclose(two, one, atol=5e-2 * scale, err_msg="in float32")


def _flat(result: Any) -> Any:
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


def _direction(rng: np.random.Generator, array: Any) -> Any:
    made = rng.standard_normal(array.shape)
    return made + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else made


def _moved(arrays: Any, directions: Any, s: float) -> list[Any]:
    return [a + s * d for a, d in zip(arrays, directions, strict=True)]


def _difference(f: Callable[[float], Any], step: float = STEP) -> float:
    near, far = float(f(step)) - float(f(-step)), float(f(2 * step)) - float(f(-2 * step))
    return (8 * near - far) / (12 * step)


def _along(gradients: Any, directions: Any) -> float:
    """The derivative along directions."""
    return float(sum(np.sum(np.real(g * d)) for g, d in zip(gradients, directions, strict=True)))


def _laid_otherwise(array: Any) -> Any:
    """The same numbers with gaps in memory; of matrices, in Fortran order."""
    if array.ndim > 1:
        return np.asfortranarray(array)
    room = np.zeros((2 * array.size,), array.dtype)
    room[::2] = array.ravel()
    return room[::2].reshape(array.shape) if array.ndim else array
