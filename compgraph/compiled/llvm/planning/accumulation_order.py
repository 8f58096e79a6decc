"""Early accumulation: each term of a sum is added where it is computed (a pass before rerolling).

A reverse sweep adds the cotangents of all reads ``x[index]`` in one operation at its end. If each is added where it is computed,
it is not stored, and a rerolled loop does not stack the cotangents of all iterations. The terms of each sum keep their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeGuard

from ..buffer_ir import Buffer, BufferView, Loop, Map, NumPyCall, Scatter, Step

MIN_UPDATES = 4  # updates of a sum that is reordered
MIN_UPDATE_SIZE = 33  # mean elements of an update; loops over smaller updates are vectorized over their iterations


def accumulate_early(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with each update of a sum moved after the last step that it depends on."""
    sums = _large_sums(steps)
    return list(steps) if not sums else [steps[number] for number in _order(steps, sums)]


def _large_sums(steps: Sequence[Step]) -> set[Buffer]:
    """Return the buffers with many updates of many elements."""
    counts, sizes = Counter[Buffer](), Counter[Buffer]()
    for step in steps:
        if _is_update(step):
            counts[step.out.buffer] += 1
            sizes[step.out.buffer] += prod(step.out.shape)
    return {b for b, count in counts.items() if count >= MIN_UPDATES and sizes[b] >= count * MIN_UPDATE_SIZE}


def _is_update(step: Step) -> TypeGuard[Map | Scatter]:
    """Return whether a step adds to a part of a buffer."""
    if isinstance(step, Scatter):
        return step.operation == "add"
    return isinstance(step, Map) and step.is_write and step.operation == "add" and step.operands[0] == step.out


def _order(steps: Sequence[Step], sums: set[Buffer]) -> list[int]:
    """Return the numbers of the steps in their new order.

    An update moves after the last write of its operands and the last access of its sum. The writes that initialize a sum move
    to its first update.
    """
    placed_after = list(range(len(steps)))  # the step after which each step is placed; itself if it does not move
    last_write: defaultdict[Buffer, int] = defaultdict(lambda: -1)  # the place of the last write of each buffer so far
    last_access: defaultdict[Buffer, int] = defaultdict(lambda: -1)
    initial_writes: defaultdict[Buffer, list[int]] = defaultdict(list)  # of each sum before its first access
    for number, step in enumerate(steps):
        reads, out = list(_buffers_read(step)), getattr(step, "out", None)
        target = None if out is None else out.buffer
        other_reads = [buffer for buffer in reads if buffer is not target]
        for buffer in other_reads if initial_writes else ():
            for k in initial_writes.pop(buffer, ()):  # the sum is read before its first update, so these stay in place
                last_write[buffer] = last_access[buffer] = k
        if target is not None and target in sums and _may_move(step):
            if not other_reads and last_access[target] < 0:
                initial_writes[target].append(number)
                continue
            last_dependence = max([last_access[target], *[last_write[buffer] for buffer in other_reads]])
            if last_dependence >= 0:
                for k in (*initial_writes.pop(target, ()), number):
                    placed_after[k] = last_dependence
        for buffer in reads:
            last_access[buffer] = max(last_access[buffer], placed_after[number])
        if target is not None:
            initial_writes.pop(target, None)  # they stay in place, before this step
            last_access[target] = max(last_access[target], placed_after[number])
            last_write[target] = max(last_write[target], last_access[target])
    return sorted(range(len(steps)), key=lambda number: (placed_after[number], number))


def _may_move(step: Step) -> bool:
    """Return whether a write into a sum may move: an update, or a write that does not read the sum."""
    if _is_update(step):
        return True
    if not isinstance(step, Map) or not step.is_write:
        return False
    return all(buffer is not step.out.buffer for buffer in _buffers_read(step))


def _buffers_read(step: Step) -> Iterator[Buffer]:
    """Yield the buffers that a step reads."""
    assert not isinstance(step, Loop), "this pass runs before loops are rerolled"
    for operand in step.views.values() if isinstance(step, NumPyCall) else step.operands:
        if isinstance(operand, BufferView):
            yield operand.buffer
