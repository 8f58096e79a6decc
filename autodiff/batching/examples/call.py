"""One call of an operation, some of whose operands are another for each example."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from compgraph import ops
from compgraph.bind import bind
from compgraph.values import NO_OPTIONS


class OneByOneError(Exception):
    """This call has no way but to go through the examples."""


class Call:
    """One call of an operation on examples.

    Parameters
    ----------
    function : callable
        What is computed.
    values : sequence
        The operands; those that differ between examples with the axis of examples first.
    batched : sequence of bool
        Which of them differ.
    options : dict
        Everything else it is given.
    count : int
        How many examples there are.

    Attributes
    ----------
    base : callable
        The function without what says how operands are named, or a ufunc computes.
    names : tuple of str
        Of the last operands, the names by which they were given.
    ndims : list of int
        How many axes each operand has in one example.
    """

    __slots__ = ("base", "batched", "count", "function", "names", "ndims", "options", "values")

    def __init__(self, function: Any, values: list[Any], batched: list[bool], options: dict[str, Any], count: int) -> None:
        self.function, self.values, self.batched, self.options, self.count = function, values, batched, options, count
        self.ndims = [_ndim(v) - b for v, b in zip(values, batched, strict=True)]
        self.names = function.names if type(function) is ops.Keyworded else ()
        base = function.function if self.names else function
        self.base = base.function if type(base) is ops.Configured else base

    def run(self, values: Any, **options: Any) -> Any:
        """The function of other operands, with some options changed."""
        return bind(self.function, tuple(values), {**self.options, **options} or NO_OPTIONS)

    def first(self) -> Any:
        """The first operand, where it is the only one that differs."""
        if not self.batched[0] or any(self.batched[1:]):
            raise OneByOneError
        return self.values[0]

    def on_first(self, value: Any, **options: Any) -> Any:
        """The function of another first operand, the rest as they are."""
        return self.run((value, *self.values[1:]), **options)

    def aligned(self) -> list[Any]:
        """The operands, with as many axes in each example as the one that has most."""
        ndim = max(self.ndims)
        return [front(v, ndim) if b else v for v, b in zip(self.values, self.batched, strict=True)]

    def all_lifted(self) -> list[Any]:
        """The operands, also those that are the same for all examples, with the axis of examples."""
        return [v if b else lifted(v, self.count) for v, b in zip(self.values, self.batched, strict=True)]


def _ndim(value: Any) -> int:
    if hasattr(value, "ndim"):
        return int(value.ndim)
    return 0 if value is None or isinstance(value, (tuple, slice)) or value is Ellipsis else np.ndim(value)


def front(values: Any, ndim: int) -> Any:
    """Examples with axes of length one in front, so that each has `ndim`."""
    missing = ndim + 1 - values.ndim
    return values if missing <= 0 else np.reshape(values, (values.shape[0], *(1,) * missing, *values.shape[1:]))


def lifted(value: Any, count: int) -> Any:
    """A value that is the same for all examples as one for each; nothing is copied."""
    return np.broadcast_to(value, (count, *np.shape(value)))


def shift(axis: Any, ndim: int) -> Any:
    """Axes of one example as they lie behind that of examples."""
    if isinstance(axis, (tuple, list, range)) or (isinstance(axis, np.ndarray) and axis.ndim):
        return tuple([shift(a, ndim) for a in axis])
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim)
    return axis % ndim + 1


def all_axes(ndim: int) -> tuple[int, ...]:
    """All axes of one example."""
    return tuple(range(1, ndim + 1))


def flat(values: Any) -> Any:
    """Each example as a vector."""
    size = 1
    for length in values.shape[1:]:
        size *= length
    return np.reshape(values, (values.shape[0], size))
