"""The order of the loops of a nest, and the choice of its vectorized loop.

Axes are ordered by stride, and adjacent axes that are contiguous in memory are collapsed into one loop. The loop with the least
estimated time is vectorized.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .. import mathematics
from ..buffer_ir import Buffer, BufferView, Map, Reduce
from .nest_fusion import LoopNest

MAX_STRIDED_LOAD = 4  # largest stride of vectors that are read by one contiguous load and a selection of lanes
FUNCTION_COST = 10  # cost of a mathematical function, in instructions
PAIR_COST = 1.3  # cost of an iteration with a pair of vectors, relative to one vector


@dataclass
class Axis:
    """A loop over one axis of a nest, or over several collapsed ones.

    Attributes
    ----------
    length : int
        Its trip count.
    nest_axes : tuple of int
        The axes of the nest, the outermost first.
    is_reduced : bool
        Whether the nest's reductions reduce it.
    """

    length: int
    nest_axes: tuple[int, ...]
    is_reduced: bool

    def stride(self, view: BufferView) -> int:
        """Return the stride of a view along this loop, in elements."""
        return view.strides[self.nest_axes[-1]]


class LoopOrder:
    """The loops of a nest, in order.

    Parameters
    ----------
    nest : LoopNest
        The nest.
    materialized : collection of Buffer
        Buffers whose values are stored in memory.
    width : int
        The bytes of a vector.

    Attributes
    ----------
    axes : list of Axis
        The loops, the outermost first.
    lanes : int
        The number of elements of a vector.
    vector_depth : int or None
        The depth of the vectorized loop; None if scalar code is faster.
    views : list of BufferView
        The views that are read from or written to memory.
    """

    def __init__(self, nest: LoopNest, materialized: Collection[Buffer], width: int) -> None:
        self.views = list(views_in_memory(nest, materialized))
        self.axes = _collapse_axes(nest, self.views)
        itemsizes = [view.buffer.dtype.itemsize for view in self.views] or [8]
        self.lanes = max(width // max(itemsizes), 1)
        self.vector_depth = self._choose_vectorized_axis(nest)
        if self.vector_depth is not None:  # it becomes the innermost of the reduced or of the other loops
            axis = self.axes[self.vector_depth]
            others = [other for other in self.axes if other is not axis]
            depth = len(others) if axis.is_reduced else sum(not other.is_reduced for other in others)
            self.axes = [*others[:depth], axis, *others[depth:]]
            self.vector_depth = depth
            if max(itemsizes) == 8 and self._is_faster_in_pairs(nest, axis.length):
                self.lanes *= 2

    def vectorized_length(self, depth: int) -> int:
        """Return the number of iterations of a loop without its scalar remainder, which only the vectorized loop has."""
        length = self.axes[depth].length
        return length - length % self.lanes if depth == self.vector_depth else length

    def step(self, depth: int) -> int:
        """Return the step of a loop: the number of lanes if vectorized."""
        return self.lanes if depth == self.vector_depth else 1

    def _choose_vectorized_axis(self, nest: LoopNest) -> int | None:
        """Return the loop whose vectorization takes the least estimated time; None if scalar code is faster."""
        work = sum(FUNCTION_COST if step.operation in mathematics.MULTI_INSTRUCTION else 1 for step in nest.steps)
        results = {step.out for step in nest.steps}
        scalar_cost = work + len(self.views)
        best, best_cost = None, float(scalar_cost)
        for k, axis in enumerate(self.axes):
            if axis.length < self.lanes or self.lanes == 1:
                continue
            vector_cost = work + sum(self._memory_cost(axis.stride(view), view in results) for view in self.views)
            vectors, remainder = divmod(axis.length, self.lanes)
            combine_cost = 2 * self.lanes if axis.is_reduced else 0  # of the lanes of the accumulator
            cost = (vectors * vector_cost + remainder * scalar_cost + combine_cost) / axis.length
            if cost < best_cost:
                best, best_cost = k, cost
        return best

    def _is_faster_in_pairs(self, nest: LoopNest, length: int) -> bool:
        """Return whether two vectors per iteration are faster, because the latencies of mathematical functions overlap."""
        if not any(
            step.operation in mathematics.MULTI_INSTRUCTION and step.compute_dtype.itemsize == 8
            for step in nest.steps
            if isinstance(step, Map)
        ):
            return False
        vectors, pairs = divmod(length, self.lanes), divmod(length, 2 * self.lanes)
        return pairs[0] * PAIR_COST + pairs[1] < sum(vectors)

    def _memory_cost(self, stride: int, is_result: bool) -> float:
        """Return the cost of loading or storing a vector with a stride, relative to a contiguous one."""
        if stride in (0, 1):
            return 0.5 + 0.5 * stride
        if stride == -1 or (abs(stride) <= MAX_STRIDED_LOAD and not is_result):
            return 1.0 + abs(stride)
        return 2.0 * self.lanes


def views_in_memory(nest: LoopNest, materialized: Collection[Buffer]) -> Iterator[BufferView]:
    """Yield the views that a nest reads from memory or writes to it."""
    in_registers: set[BufferView] = set()
    for step in nest.steps:
        for operand in step.operands:
            if isinstance(operand, BufferView) and operand not in in_registers:
                yield operand
                in_registers.add(operand)
        if isinstance(step, Reduce) or step.out.buffer in materialized:
            yield step.out
        in_registers.add(step.out)


def _collapse_axes(nest: LoopNest, views: list[BufferView]) -> list[Axis]:
    """Return the loops of a nest, non-reduced axes first; contiguous axes become one loop."""
    reduced_axes = nest.reduced_axes or frozenset()
    order = [k for k in range(len(nest.shape)) if nest.shape[k] != 1]
    order = sorted(order, key=lambda k: (k in reduced_axes, -_total_stride(views, k)))
    axes: list[Axis] = []
    for k in order:
        last = axes[-1] if axes else None
        if (
            last is not None
            and last.is_reduced == (k in reduced_axes)
            and all(view.strides[last.nest_axes[-1]] == view.strides[k] * nest.shape[k] for view in views)
        ):
            axes[-1] = Axis(last.length * nest.shape[k], (*last.nest_axes, k), last.is_reduced)
        else:
            axes.append(Axis(nest.shape[k], (k,), k in reduced_axes))
    return axes


def _total_stride(views: list[BufferView], axis: int) -> float:
    return sum(abs(view.strides[axis]) for view in views)
