"""The intermediate representation between graphs and LLVM IR: steps over buffers, in order.

A `Buffer` stores a value. A `BufferView` is an array in a buffer, described by an offset and strides, so NumPy views cost
nothing. The elements of a buffer are real: a complex number is two consecutive ones, and the view of a complex array is the
view of its real part.

The steps are elementwise operations (`Map`), reductions (`Reduce`), indexing by integer arrays (`Gather`, `Scatter`),
cumulative operations (`Scan`), sorts (`Sort`), searches in sorted tables (`Search`), matrix products (`MatMul`), factorizations
of small matrices (`Factorization`), convolutions (`Convolution`), calls of NumPy (`NumPyCall`), and loops of steps (`Loop`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .convolution_geometry import ConvolutionGeometry


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for the elements of one array.

    Attributes
    ----------
    dtype : dtype
        The dtype of its elements.
    size : int
        The number of elements.
    node : Node or None
        The node or array whose value it holds: an input, a constant, or a result of NumPy.
    is_external : bool
        Whether it is filled before the first step: an input or a constant.
    is_numpy_result : bool
        Whether it is the result of a `NumPyCall`.
    is_complex : bool
        Whether its elements are real and imaginary parts, in turn.
    """

    dtype: np.dtype[Any]
    size: int
    node: Any = None
    is_external: bool = False
    is_numpy_result: bool = False
    is_complex: bool = False

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize


@dataclass(eq=False, slots=True)
class LoopIndex:
    """The index of a `Loop`: from 0 to `trip_count`, exclusive."""

    trip_count: int


class BufferView(NamedTuple):
    """An array in a buffer.

    Attributes
    ----------
    buffer : Buffer
        The buffer of its elements.
    offset : int
        The position of the first element.
    shape, strides : tuple of int
        The shape, and the strides in elements.
    loop_strides : tuple of (LoopIndex, int)
        The stride per iteration of each enclosing loop, in elements.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    loop_strides: tuple[tuple[LoopIndex, int], ...] = ()

    @property
    def is_dense(self) -> bool:
        """Whether the elements are contiguous in C order."""
        dense = c_strides(self.shape)
        return all(n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense, strict=True))

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest position of an element, in all iterations of the enclosing loops."""
        extents = [stride * (length - 1) for stride, length in zip(self.strides, self.shape, strict=True)]
        extents += [stride * (loop_index.trip_count - 1) for loop_index, stride in self.loop_strides]
        return self.offset + sum(min(extent, 0) for extent in extents), self.offset + sum(max(extent, 0) for extent in extents)

    def axis_slice(self, axis: int, start: int, stop: int) -> BufferView:
        """Return a slice of an axis."""
        lengths = (*self.shape[:axis], stop - start, *self.shape[axis + 1 :])
        return BufferView(self.buffer, self.offset + start * self.strides[axis], lengths, self.strides)

    def broadcast(self, shape: tuple[int, ...]) -> BufferView:
        """Return the view broadcast to a shape."""
        if shape == self.shape:
            return self
        lead = len(shape) - len(self.shape)
        strides = [0 if n == 1 and m != 1 else s for n, m, s in zip(self.shape, shape[lead:], self.strides, strict=True)]
        return BufferView(self.buffer, self.offset, shape, (0,) * lead + tuple(strides))

    def matrix_transpose(self) -> BufferView:
        """Return the transposes of a stack of matrices."""
        (*stack, rows, columns), (*stack_strides, down, right) = self.shape, self.strides
        return BufferView(self.buffer, self.offset, (*stack, columns, rows), (*stack_strides, right, down))


@functools.lru_cache(maxsize=1024)
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in C order."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def dense_view(dtype: DTypeLike, shape: tuple[int, ...], node: object = None) -> BufferView:
    """Return an array in C order in a buffer of its own; of a complex dtype, its real part."""
    part, count = element_dtype(np.dtype(dtype))
    strides = tuple(count * s for s in c_strides(shape))
    return BufferView(Buffer(part, count * prod(shape), node, is_complex=count == 2), 0, shape, strides)


def element_dtype(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], int]:
    """Return the dtype of the elements of a buffer, and their number in each number of an array."""
    if dtype.kind == "c" and dtype.isnative and dtype.itemsize in (8, 16):
        return np.dtype(f"f{dtype.itemsize // 2}"), 2
    return dtype, 1


@dataclass(eq=False, slots=True)
class Map:
    """``out[i] = operation(operands[i])`` for every index.

    Attributes
    ----------
    operation : str
        The operation; see `elementwise_ops`.
    operands : tuple of BufferView or number
        Views of the shape of `out`, and literals: numbers of the dtype `compute_dtype`.
    out : BufferView
        The result.
    compute_dtype : dtype
        The dtype that operands are converted to.
    is_write : bool
        Whether `out` is a part of an array that other steps access, so the order matters.
    """

    operation: str
    operands: tuple[Any, ...]
    out: BufferView
    compute_dtype: np.dtype[Any]
    is_write: bool = False

    def operand_dtype(self, position: int) -> np.dtype[Any]:
        """Return the dtype that an operand is converted to; conditions of ``where`` are booleans."""
        return np.dtype(bool) if self.operation == "where" and position == 0 else self.compute_dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the iteration space."""
        return self.out.shape


@dataclass(eq=False, slots=True)
class Reduce:
    """A reduction along axes.

    Attributes
    ----------
    operation : str
        ``"add"``, ``"multiply"``, ``"maximum"``, ``"minimum"``, ``"logical_or"``, ``"logical_and"``, or ``"mean"``.
    operand : BufferView
        The reduced array.
    axes : frozenset of int
        The reduced axes.
    out : BufferView
        The result, with the shape of the operand and strides of 0 along `axes`.
    """

    operation: str
    operand: BufferView
    axes: frozenset[int]
    out: BufferView

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the iteration space."""
        return self.operand.shape

    @property
    def operands(self) -> tuple[BufferView]:
        """The operand, as a tuple."""
        return (self.operand,)


@dataclass(eq=False, slots=True)
class MatMul:
    """``out = a @ b`` of matrices or stacks of matrices.

    Attributes
    ----------
    operands : tuple of BufferView
        `a` and `b`, and scratch memory for a copy of `b` if needed.
    out : BufferView
        The result in C order, of as many axes as `a` and `b`. The rows or columns of each operand are contiguous.
    is_small : bool
        Whether a tiled kernel computes it instead of BLAS.
    """

    operands: tuple[BufferView, ...]
    out: BufferView
    is_small: bool = False


@dataclass(eq=False, slots=True)
class Factorization:
    """A function of small square matrices, or of stacks of them, that factorizes them.

    Attributes
    ----------
    operation : str
        ``"solve"``: ``out = inv(a) @ b``. ``"slogdet"``: the sign of the determinant and the logarithm of its absolute value, as
        the two elements of `out`. ``"cholesky"``: the lower factor.
    operands : tuple of BufferView
        `a`, and `b` of ``"solve"``, with the stack of `out`.
    out : BufferView
        The result, with a stack of matrices; that of ``"slogdet"`` has shape ``(..., 1, 2)``.
    """

    operation: str
    operands: tuple[BufferView, ...]
    out: BufferView


@dataclass(eq=False, slots=True)
class Convolution:
    """A cross-correlation of images, or its gradient with respect to an operand.

    Attributes
    ----------
    kind : str
        ``"forward"`` of images and a kernel, ``"back"`` of result cotangents and a kernel, ``"kernel"`` of images and
        result cotangents.
    operands : tuple of BufferView
        The two operands, and scratch memory for copies.
    out : BufferView
        The result. All are in C order.
    geometry : ConvolutionGeometry
        Shapes, strides and padding.
    """

    kind: str
    operands: tuple[BufferView, BufferView, BufferView]
    out: BufferView
    geometry: ConvolutionGeometry


@dataclass(eq=False, slots=True)
class Gather:
    """``out = source[..., index, ...]`` with integer arrays as indices.

    Attributes
    ----------
    operands : tuple of BufferView
        The source as if all indices were 0, with the shape of `out`; then the indices, each with the shape of `out`.
    out : BufferView
        The result.
    lengths, strides : tuple of int
        For each index, the length of the indexed axis, and its stride. A length of 0 means that the index needs no bounds
        check.
    """

    operands: tuple[BufferView, ...]
    out: BufferView
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Scatter:
    """``out[..., index, ...] = value`` or ``+= value`` with integer arrays as indices, in order.

    Attributes
    ----------
    operation : str
        ``"copy"`` or ``"add"``.
    operands : tuple of BufferView or number
        The value, with the shape of `out`; then the indices, each with the shape of `out`.
    out : BufferView
        The target as if all indices were 0.
    lengths, strides : tuple of int
        As in `Gather`.
    """

    operation: str
    operands: tuple[Any, ...]
    out: BufferView
    lengths: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Scan:
    """A cumulative operation along an axis, such as `cumsum`.

    Attributes
    ----------
    operation : str
        A binary operation of `Map`.
    operands : tuple of BufferView
        The operand.
    axis : int
        The axis.
    out : BufferView
        The result, of the same shape.
    """

    operation: str
    operands: tuple[BufferView]
    axis: int
    out: BufferView


@dataclass(eq=False, slots=True)
class Sort:
    """The elements of rows in ascending order, or their positions, by the functions of NumPy.

    Attributes
    ----------
    operation : str
        ``"sort"`` or ``"argsort"``.
    is_stable : bool
        Whether equal elements keep their order; otherwise they have the order of NumPy's default.
    operands : tuple of BufferView
        The rows, along the last axis, with the shape of `out`; those of ``"argsort"`` are contiguous.
    out : BufferView
        The result, whose rows are contiguous.
    """

    operation: str
    is_stable: bool
    operands: tuple[BufferView]
    out: BufferView


@dataclass(eq=False, slots=True)
class Search:
    """The number of elements of a sorted table before each key; nan is last.

    Attributes
    ----------
    side : str
        ``"left"`` counts the elements less than the key, ``"right"`` also those that equal it.
    dtype : dtype
        The dtype that table and keys are converted to.
    operands : tuple of BufferView
        The table, which is a vector; then the keys, with the shape of `out`.
    out : BufferView
        The result.
    """

    side: str
    dtype: np.dtype[Any]
    operands: tuple[BufferView, BufferView]
    out: BufferView


@dataclass(eq=False, slots=True)
class NumPyCall:
    """An item of the graph that is computed by NumPy.

    Attributes
    ----------
    item : Node, MultiOutput, Guard or Write
        The item.
    views : dict
        The view of each node among its operands; the other nodes are results of NumPy. The views of complex arrays have a last
        axis for the two parts.
    out : BufferView or None
        The view of its result, if that is a numeric array.
    reason : str
        The reason for which it was not compiled; empty for guards and checks.
    checks : list of (callable, object)
        Functions that check the result, with the expected property.
    dtypes : dict
        The dtype of each node in `views`, and of the array in `out`, by the item.
    """

    item: Any
    views: dict[Any, BufferView]
    out: BufferView | None
    reason: str
    checks: list[Any] = field(default_factory=list)
    dtypes: dict[Any, np.dtype[Any]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Loop:
    """A loop over steps. Views move by `BufferView.loop_strides` per iteration.

    Attributes
    ----------
    loop_index : LoopIndex
        The loop index.
    steps : list of Step
        The loop body, in order.
    """

    loop_index: LoopIndex
    steps: list[Any]


SingleStep = Map | Reduce | MatMul | Factorization | Convolution | Gather | Scatter | Scan | Sort | Search | NumPyCall
Step = SingleStep | Loop
