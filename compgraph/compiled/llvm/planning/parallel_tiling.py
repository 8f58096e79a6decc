"""Tiling: large nests are divided into tiles, which several threads run in parallel (a pass).

The tiling depends only on the steps and the shape of a nest, so results have the same bits with any number of threads. A nest
is tiled along a non-reduced axis if one has enough iterations. Otherwise it is tiled along a reduced axis: each tile stores
partial results, which a further nest combines in order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from .. import mathematics
from ..buffer_ir import Buffer, BufferView, Map, Reduce, dense_view
from .loop_order import LoopOrder
from .memory_planning import find_materialized
from .nest_fusion import LoopNest, Tiling, Unit

# The unit of work is one vectorized operation on an element, about 0.025 ns.
FUNCTION_WORK = 30  # work of a mathematical function or a division
MEMORY_WORK = 2  # work of an element that is read or written
MAX_STEP_VIEWS = 4  # the three operands of `where`, and its result
MIN_WORK = 8_000_000  # smallest work of a tiled nest: 200 us; waking a thread takes 20 to 60 us
TILE_WORK = 2_000_000  # work of a tile: 50 us, much more than its overhead
MAX_TILES = 256  # tiles of a nest
MIN_ITERATIONS = 32  # iterations of a non-reduced axis that is tiled even if a later one is longer
_SLOW = mathematics.MULTI_INSTRUCTION | {"sqrt", "divide", "reciprocal"}


def tile_nests(units: Sequence[Unit], outputs: Collection[BufferView], width: int) -> list[Unit]:
    """Tile the large nests of a program.

    Parameters
    ----------
    units : sequence of Unit
        A program, in order.
    outputs : collection of BufferView
        Its results.
    width : int
        The bytes of a vector.
    """
    large_nests = {unit for unit in units if isinstance(unit, LoopNest) and _may_be_tiled(unit)}
    if not large_nests:
        return list(units)
    materialized = find_materialized(units) | {view.buffer for view in outputs}
    tiled_units: list[Unit] = []
    for unit in units:
        tiled_units.append(unit)
        if isinstance(unit, LoopNest) and unit in large_nests:
            tiled_units += _tile_nest(unit, materialized, width)
    return tiled_units


def _may_be_tiled(nest: LoopNest) -> bool:
    """Return whether a nest has enough work to be tiled if each of its steps is expensive."""
    max_step_work = 1 + FUNCTION_WORK + MAX_STEP_VIEWS * MEMORY_WORK
    return prod(nest.shape) * len(nest.steps) * max_step_work >= MIN_WORK and all(map(_writes_once, nest.steps))


def _tile_nest(nest: LoopNest, materialized: Collection[Buffer], width: int) -> list[Unit]:
    """Tile a nest if it is large enough; return the units that combine its partial results."""
    loops = LoopOrder(nest, materialized, width)
    work = prod(nest.shape) * _work(nest, loops)
    if work < MIN_WORK:
        return []
    target_count = min(max(work // TILE_WORK, 2), MAX_TILES)
    trip_counts = [loops.vectorized_length(k) // loops.step(k) for k in range(len(loops.axes))]
    count, depth = _choose_tiling(nest, loops, trip_counts, target_count)
    if count < 2:
        return []
    length = -(-trip_counts[depth] // count)
    nest.tiling = Tiling(depth, length * loops.step(depth), -(-trip_counts[depth] // length))
    return _combine_partials(nest, nest.tiling) if loops.axes[depth].is_reduced else []


def _work(nest: LoopNest, loops: LoopOrder) -> int:
    """Return the work per element."""
    slow_steps = sum(step.operation in _SLOW for step in nest.steps)
    return len(nest.steps) + FUNCTION_WORK * slow_steps + MEMORY_WORK * len(loops.views)


def _choose_tiling(nest: LoopNest, loops: LoopOrder, trip_counts: list[int], target_count: int) -> tuple[int, int]:
    """Return the number of tiles, at most `target_count`, and the tiled loop."""
    parallel_loops = [k for k, axis in enumerate(loops.axes) if not axis.is_reduced]
    for k in parallel_loops:
        if trip_counts[k] >= min(target_count, MIN_ITERATIONS):
            return min(trip_counts[k], target_count), k
    choices = [(min(trip_counts[k], target_count), k) for k in parallel_loops]
    if all(map(_has_dense_result, nest.steps)):
        results = prod(loops.axes[k].length for k in parallel_loops)
        max_count = min(target_count, prod(nest.shape) // (results * MIN_ITERATIONS))  # limits the memory of partial results
        choices += [(min(trip_counts[k], max_count), k) for k, axis in enumerate(loops.axes) if axis.is_reduced]
    return max(choices, key=lambda choice: choice[0], default=(0, 0))


def _has_dense_result(step: Map | Reduce) -> bool:
    """Return whether the result of a reduction, if the step is one, is dense in C order, like its partial results."""
    if isinstance(step, Map):
        return True
    remaining_axes = [k for k in range(len(step.shape)) if k not in step.axes]
    shape, strides = tuple(step.shape[k] for k in remaining_axes), tuple(step.out.strides[k] for k in remaining_axes)
    return BufferView(step.out.buffer, step.out.offset, shape, strides).is_dense


def _combine_partials(nest: LoopNest, tiling: Tiling) -> list[Unit]:
    """Allocate the partial results of reductions; return the nests that combine them."""
    partials, combining_nest, divisions = [], LoopNest(()), []
    for step in (step for step in nest.steps if isinstance(step, Reduce)):
        remaining_axes = [k for k in range(len(step.shape)) if k not in step.axes]
        shape = (tiling.count, *(step.shape[k] for k in remaining_axes))
        strides = tuple(step.out.strides[k] for k in remaining_axes)
        partial = dense_view(step.out.buffer.dtype, shape)
        partials.append(partial)
        combining_nest.shape = shape
        name = "add" if step.operation == "mean" else step.operation
        out = BufferView(step.out.buffer, step.out.offset, shape, (0, *strides))
        combining_nest.add(Reduce(name, partial, frozenset({0}), out))
        if step.operation == "mean":
            mean = BufferView(step.out.buffer, step.out.offset, shape[1:], strides)
            count = prod(step.shape[k] for k in step.axes)
            divisions.append(Map("divide", (mean, count), mean, mean.buffer.dtype, is_write=True))
    nest.tiling = Tiling(tiling.depth, tiling.tile_length, tiling.count, tuple(partials))
    if not divisions:
        return [combining_nest]
    division_nest = LoopNest(divisions[0].shape)
    for division in divisions:
        division_nest.add(division)
    return [combining_nest, division_nest]


def _writes_once(step: Map | Reduce) -> bool:
    """Return whether a step writes no element twice, so that its result does not depend on the order of the tiles."""
    if isinstance(step, Reduce):
        return True
    extent = 0  # of the axes with smaller strides, in elements
    for n, stride in sorted(zip(step.out.shape, map(abs, step.out.strides), strict=True), key=lambda pair: pair[1]):
        if n > 1 and stride <= extent:
            return False
        extent += (n - 1) * stride
    return True
