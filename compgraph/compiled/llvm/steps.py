"""A program between the graph and the processor: steps over buffers, in order.

A value lies in a `Buffer`; a `Place` says where in it, by an offset and a stride for each axis, so that views cost nothing. A
step computes each element of a place from elements of others (`Map`), gathers along axes (`Reduce`), moves elements that arrays
of integers choose (`Gather`, `Scatter`), goes along an axis in order (`Scan`), multiplies matrices (`Product`), slides
kernels over images (`Convolution`), or is left to NumPy (`Call`). Steps that come again and again stand in a `Loop`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from .geometry import Geometry


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for the elements of one array.

    Attributes
    ----------
    dtype : dtype
        Of each element.
    size : int
        How many elements it has.
    node : Node or None
        Whose value it holds, of inputs, constants and results of NumPy's.
    is_given : bool
        Whether it is there before the first step: an input or a constant.
    is_called : bool
        Whether it is the result of a `Call`.
    """

    dtype: np.dtype[Any]
    size: int
    node: Any = None
    is_given: bool = False
    is_called: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize


@dataclass(eq=False, slots=True)
class Counter:
    """Which turn of a `Loop` it is: from 0 to `length`, which is left out."""

    length: int


@dataclass(frozen=True, slots=True)
class Place:
    """An array in a buffer.

    Attributes
    ----------
    buffer : Buffer
        Where its elements lie.
    offset : int
        The element of the buffer that is its first.
    shape, strides : tuple of int
        Its lengths, and by how many elements the buffer is passed through along each axis.
    moves : tuple of (Counter, int)
        By how many elements it moves with each turn of the loops that it is in.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    moves: tuple[tuple[Counter, int], ...] = ()

    @property
    def is_dense(self) -> bool:
        """Whether the elements follow each other in C order."""
        wanted = c_strides(self.shape)
        return all(n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted, strict=True))

    def broadcast(self, shape: tuple[int, ...]) -> Place:
        """The array as it is seen where one of another shape is asked for."""
        lead = len(shape) - len(self.shape)
        strides = [0 if n == 1 and m != 1 else s for n, m, s in zip(self.shape, shape[lead:], self.strides, strict=True)]
        return Place(self.buffer, self.offset, shape, (0,) * lead + tuple(strides))


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of an array in C order."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def dense(dtype: Any, shape: tuple[int, ...], node: Any = None) -> Place:
    """An array in C order, in a buffer of its own."""
    return Place(Buffer(np.dtype(dtype), prod(shape), node), 0, shape, c_strides(shape))


@dataclass(eq=False, slots=True)
class Map:
    """``out[i] = operation(operands[i])`` for every index.

    Attributes
    ----------
    operation : str
        What is computed; see `elementwise`.
    operands : tuple of Place or number
        Places have the shape of `out`; a number is of the dtype `computed_in`.
    out : Place
        Where it goes.
    computed_in : dtype
        What the operands are converted to first.
    is_write : bool
        Whether `out` is a part of an array that may be read before and after.
    """

    operation: str
    operands: tuple[Any, ...]
    out: Place
    computed_in: np.dtype[Any]
    is_write: bool = False

    def operand_dtype(self, position: int) -> np.dtype[Any]:
        """What an operand is converted to: conditions are booleans, whatever is chosen by them."""
        return np.dtype(bool) if self.operation == "where" and position == 0 else self.computed_in

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes along which it runs."""
        return self.out.shape


@dataclass(eq=False, slots=True)
class Reduce:
    """A sum, product, maximum or minimum along axes.

    Attributes
    ----------
    operation : str
        ``"add"``, ``"multiply"``, ``"maximum"``, ``"minimum"``, or ``"mean"``.
    operand : Place
        What is gathered.
    axes : frozenset of int
        Those of `operand` that go.
    out : Place
        The result, with the shape of the operand and strides of 0 along `axes`.
    """

    operation: str
    operand: Place
    axes: frozenset[int]
    out: Place

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes along which it runs."""
        return self.operand.shape

    @property
    def operands(self) -> tuple[Place]:
        """What is read."""
        return (self.operand,)


@dataclass(eq=False, slots=True)
class Product:
    """``out = a @ b``, of matrices or stacks of them.

    Attributes
    ----------
    operands : tuple of Place
        `a` and `b`; after them memory for a copy of `b`, where one is needed, whose numbers nobody else reads.
    out : Place
        Of as many axes as `a` and `b`; the last two are those of matrices. Rows or columns of these lie without gaps; `out` is in
        C order.
    is_small : bool
        Whether it is computed by code of its own; if not, by BLAS.
    """

    operands: tuple[Place, ...]
    out: Place
    is_small: bool = False


@dataclass(eq=False, slots=True)
class Convolution:
    """A cross-correlation of images, or the adjoint of one of its operands.

    Attributes
    ----------
    kind : str
        ``"forward"`` of images and a kernel, ``"back"`` of adjoints of results and a kernel, ``"kernel"`` of images and adjoints
        of results.
    operands : tuple of Place
        These two; and memory for copies, whose numbers nobody else reads.
    out : Place
        The result. All lie in C order.
    geometry : Geometry
        How the windows lie.
    """

    kind: str
    operands: tuple[Place, Place, Place]
    out: Place
    geometry: Geometry


@dataclass(eq=False, slots=True)
class Gather:
    """``out = source[..., index, ...]``, of indices that are arrays of integers.

    Attributes
    ----------
    operands : tuple of Place
        What is read, with the shape of `out`, as it lies if all indices are 0; then the indices, each with the shape of `out`.
    out : Place
        Where it goes.
    lengths, strides : tuple of int
        For each index, the length of the axis along which it chooses, 0 if it is known to be in range and not negative; and by
        how many elements the axis is passed through.
    """

    operands: tuple[Place, ...]
    out: Place
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Scatter:
    """``out[..., index, ...] = value``, or ``+= value``, in order, of indices that are arrays of integers.

    Attributes
    ----------
    operation : str
        ``"copy"`` or ``"add"``.
    operands : tuple of Place or number
        The value, with the shape of `out`; then the indices, each with the shape of `out`.
    out : Place
        What is written, as it lies if all indices are 0.
    lengths, strides : tuple of int
        As of `Gather`.
    """

    operation: str
    operands: tuple[Any, ...]
    out: Place
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Scan:
    """The sums or products of what comes before, along an axis: each is the last one, and one operand more.

    Attributes
    ----------
    operation : str
        As of `Map`, of two operands.
    operands : tuple of Place
        One: what is gone through.
    axis : int
        Along which.
    out : Place
        Of the same shape.
    """

    operation: str
    operands: tuple[Place]
    axis: int
    out: Place


@dataclass(eq=False, slots=True)
class Call:
    """An item of the graph that is left to NumPy.

    Attributes
    ----------
    item : Node, MultiOutput or Guard
        What is run.
    places : dict
        Where each node among its operands lies; those that are missing were called too.
    out : Place or None
        Where its result, if it is an array of numbers, lies.
    why : str
        Why it was not compiled; empty for guards.
    """

    item: Any
    places: dict[Any, Place]
    out: Place | None
    why: str
    checks: list[Any] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Loop:
    """Steps that are done again and again, with places that move and numbers that change from turn to turn.

    Attributes
    ----------
    counter : Counter
        The turns.
    steps : list of Step
        What is done in each turn, in order.
    """

    counter: Counter
    steps: list[Any]


Single = Map | Reduce | Product | Convolution | Gather | Scatter | Scan | Call
Step = Single | Loop
