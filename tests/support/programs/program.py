"""Programs to be differentiated unchanged, and reference derivatives by plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

STEPS = (1e-3, 1e-4, 1e-2, 1e-5, 1e-6)  # of central differences, relative to the varied argument; tried in this order
SMOOTH = 1e-6  # relative to the largest derivative, the disagreement of two steps that satisfies
USABLE = 1e-4  # and the one with which a program is still good for comparing


@dataclass(frozen=True, eq=False)
class Program:
    """A function of plain arrays, and where it is differentiated.

    Attributes
    ----------
    name : str
        Unique in its corpus.
    function : callable
        Of one array, or of some floats and arrays; returns a number or an array.
    point : tuple
        The arguments.
    """

    name: str
    function: Callable[..., Any]
    point: tuple[Any, ...]


class Corpus:
    """Programs, in the order in which they were declared."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}

    def __iter__(self) -> Iterator[Program]:
        return iter(self._programs.values())

    def __len__(self) -> int:
        return len(self._programs)

    def __getitem__(self, name: str) -> Program:
        return self._programs[name]

    def add(self, name: str, function: Callable[..., Any], *point: Any) -> None:
        """Declare a program."""
        if name in self._programs:
            raise ValueError(f"there are two programs {name!r}")
        self._programs[name] = Program(name, function, tuple(_fixed(p) for p in point))

    def at(self, *point: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the function that follows, to be differentiated at these arguments."""

        def declared(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add(function.__name__, function, *point)
            return function

        return declared


def _fixed(point: Any) -> Any:
    """An argument: a Python float, or a read-only array."""
    if isinstance(point, float):
        return point
    point = np.array(point, dtype=float)
    point.flags.writeable = False
    return point


def fresh(point: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments for one call: arrays are copied, since programs may write into them."""
    return tuple(p if isinstance(p, float) else p.copy() for p in point)


def flat(result: Any) -> Any:
    """A result as a vector of floats."""
    result = np.asarray(result)
    if result.dtype.kind not in "fbiu":
        raise TypeError(f"a program returns real numbers, not {result.dtype}")
    return result.astype(float).ravel()


class Reference(NamedTuple):
    """The value and derivatives of a program by NumPy alone.

    Attributes
    ----------
    value : ndarray
        The result.
    jacobian, error : ndarray
        Its derivatives by central differences, a row for each element of the result and a column for each of the
        arguments, one after another; and by how much they may be off.
    """

    value: Any
    jacobian: Any
    error: Any

    @property
    def gradient(self) -> Any:
        """The derivatives of the sum of the result."""
        return self.jacobian.sum(axis=0)


def reference(program: Program) -> Reference:
    """The value and the derivatives of a program by NumPy alone.

    Each derivative is extrapolated from two central differences (Richardson); its error is their disagreement, or
    a bend that does not become less in the smaller step: at a kink, both differences are the mean of the slopes. Where the
    largest error is not satisfying, other steps are tried, and of each derivative the best is kept.

    Raises
    ------
    ValueError
        If the program has no derivative there, or it cannot be found.
    """
    value = np.asarray(program.function(*fresh(program.point)))
    sizes = [np.size(p) for p in program.point]
    best = np.zeros((value.size, sum(sizes)))
    error = np.full(best.shape, np.inf)
    for step in STEPS:
        try:
            estimate, off = _extrapolated(program, flat(value), step)
        except (ArithmeticError, ValueError, RuntimeError):  # too far away
            continue
        better = np.isfinite(estimate) & (off < error)
        best[better], error[better] = estimate[better], off[better]
        if np.all(error <= SMOOTH * np.max(np.abs(best))):
            break
    if not np.all(error <= USABLE * np.max(np.abs(best)) + 1e-9):
        raise ValueError(f"{program.name} has no derivative there, or central differences cannot find it: {best} +- {error}")
    return Reference(value, best, error)


def _extrapolated(program: Program, value: Any, relative: float) -> tuple[Any, Any]:
    """All derivatives, a column for each element of the arguments, and their errors."""
    columns = []
    for position, point in enumerate(program.point):
        for index in np.ndindex(np.shape(point)):
            step = relative * max(abs(float(point if isinstance(point, float) else point[index])), 0.1)
            (wide, more), (narrow, less) = (_difference(program, value, position, index, h) for h in (step, step / 2))
            kink = np.where(less > 0.75 * more, less, 0.0)  # where the function is smooth it is half of it
            columns.append(((4 * narrow - wide) / 3, np.maximum(np.abs(narrow - wide) / 3, kink)))
    estimates, off = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    return estimates, off


def _difference(program: Program, value: Any, position: int, index: tuple[int, ...], step: float) -> tuple[Any, Any]:
    """One central difference, and by how much the slopes of the two sides differ from it."""
    ends = []
    for sign in (1, -1):
        args = list(fresh(program.point))
        if isinstance(args[position], float):
            args[position] += sign * step
        else:
            args[position][index] += sign * step
        ends.append(flat(program.function(*args)))
    return (ends[0] - ends[1]) / (2 * step), np.abs(ends[0] - 2 * value + ends[1]) / (2 * step)
