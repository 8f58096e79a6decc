"""Parts of cases: the class `Case`, constructors of arguments, patterns of shapes and options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
Sketch = tuple[Any, ...]
Shape = tuple[int, ...]


# Options that the oldest NumPy allowed does not have.
DESCENDING = {"descending": True} if "descending" in signature(np.sort).parameters else {}


@dataclass(frozen=True)
class Case:
    """A function with arguments at which its derivatives are checked.

    Attributes
    ----------
    opname : str
        The operation the case is for.
    label : str
        The special property of the case.
    function : callable
        A function of arrays that returns an array.
    args : tuple of numpy.ndarray
        The arguments to differentiate with respect to.
    kind : {"real", "complex", "composed"}
        Whether the arguments are real or complex; composed functions record several operations.
    """

    opname: str
    label: str
    function: Function
    args: tuple[Array, ...]
    kind: str = "real"

    def __str__(self) -> str:
        prefix = "" if self.kind == "real" else f"{self.kind} "
        return f"{prefix}{self.opname}: {self.label}"


# ------------------------------------------------------------------------------------------- arguments


def real(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Array:
    """Numbers from an interval, in random order, none near another, and none near the middle of the interval."""
    rng = np.random.default_rng([seed, *shape])
    count = math.prod(shape)
    steps = rng.permutation(np.arange(count)) + rng.uniform(0.6, 0.8, count)
    return np.reshape(low + (high - low) * steps / max(count, 1), shape)


def positive(*shape: int, seed: int = 0) -> Array:
    """Numbers from 0.5 to 2.5."""
    return real(*shape, low=0.5, high=2.5, seed=seed)


def inside(*shape: int, seed: int = 0) -> Array:
    """Numbers from -0.9 to 0.9."""
    return real(*shape, low=-0.9, high=0.9, seed=seed)


def above(*shape: int, seed: int = 0) -> Array:
    """Numbers from 1.2 to 3."""
    return real(*shape, low=1.2, high=3, seed=seed)


def shifted(*shape: int, seed: int = 7) -> Array:
    """Numbers from -1.7 to 2.4, none equal to one of `real`."""
    return real(*shape, low=-1.7, high=2.4, seed=seed)


def negative(*shape: int, seed: int = 0) -> Array:
    """Numbers from -2.5 to -0.5."""
    return -positive(*shape, seed=seed)


def off_zero(*shape: int, seed: int = 0) -> Array:
    """Numbers from -2.2 to 1.7, of both signs, none near zero."""
    return real(*shape, low=-2.2, high=1.7, seed=seed)


def complexes(*shape: int, seed: int = 0) -> Array:
    """Complex numbers off both axes."""
    return real(*shape, seed=seed) + 1j * shifted(*shape, seed=seed + 100)


def small_complexes(*shape: int, seed: int = 0) -> Array:
    """Complex numbers in the unit square."""
    return 0.4 * complexes(*shape, seed=seed)


MASK = np.array([[True, False, True], [True, True, False]])
ROW_MASK = np.array([True, False, True])

# ------------------------------------------------------------------------------------- common patterns

# Arbitrary shapes, dtypes and layouts are drawn once for each kind of rule, in tests/autodiff/rules/test_mechanisms.py.
PAIRS: dict[str, tuple[Shape, Shape]] = {"ones inside both": ((2, 1, 3), (2, 2, 1)), "numbers": ((), ())}


def unary(function: Function, make: Callable[..., Array] = real, zero_size: bool = False) -> list[Sketch]:
    """A function of one argument: of an array, of a number, and of zero size where that is not drawn for its kind of rule."""
    shapes: dict[str, Shape] = {"array": (2, 1, 2), "number": ()}
    if zero_size:
        shapes["zero size"] = (2, 0)
    return [(label, function, make(*shape)) for label, shape in shapes.items()]


def binary(
    function: Function,
    left: Callable[..., Array] = real,
    right: Callable[..., Array] = shifted,
) -> list[Sketch]:
    """A function of two arguments: of arrays that broadcast against each other, and of numbers."""
    return [(label, function, left(*a, seed=1), right(*b, seed=2)) for label, (a, b) in PAIRS.items()]


def scalars(function: Function, make: Callable[..., Array] = real, number: Any = 1.5) -> list[Sketch]:
    """A function of two arguments with a Python number on either side."""
    return [
        ("Python number right", lambda x: function(x, number), make(3)),
        ("Python number left", lambda x: function(number, x), make(2, 2)),
    ]


def optional(function: Function, make: Callable[..., Array], options: dict[str, tuple[Shape, dict[str, Any]]]) -> list[Sketch]:
    """A function of one argument with several choices of options."""
    return [(label, partial(function, **kwargs), make(*shape)) for label, (shape, kwargs) in options.items()]


AXES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "axes -1, 0": ((2, 3, 2), {"axis": (-1, 0)}),
    "axis 1 of 3": ((2, 3, 2), {"axis": 1}),
    "all": ((2, 3), {}),
    "number": ((), {}),
}
REDUCED: dict[str, tuple[Shape, dict[str, Any]]] = {
    "axes -1, 0, keepdims": ((2, 3, 2), {"axis": (-1, 0), "keepdims": True}),
    "axis 1 of 3": ((2, 3, 2), {"axis": 1}),
    "all": ((2, 3), {}),
    "number": ((), {}),
    "zero size kept": ((0, 3), {"axis": 1}),
}
# Forms of the arguments, which NumPy's reductions share.
FORMS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "axis a NumPy integer": ((2, 3), {"axis": np.int64(1)}),
    "axis in a tuple": ((2, 3), {"axis": (1,)}),
    "axis 1, keepdims=1": ((2, 2), {"axis": 1, "keepdims": 1}),
    "keepdims=False": ((2, 2), {"axis": 0, "keepdims": False}),
    "no axes": ((2, 2), {"axis": ()}),
    "number, no axes": ((), {"axis": ()}),
    "number, axis -1": ((), {"axis": -1, "keepdims": True}),
    "zero size, axis 0": ((0, 3), {"axis": 0}),
}
MASKED: dict[str, tuple[Shape, dict[str, Any]]] = {
    "where, axis, keepdims": ((2, 3), {"where": MASK, "axis": (1,), "keepdims": True}),
    "where repeated": ((2, 3), {"where": ROW_MASK, "axis": -1}),
}
