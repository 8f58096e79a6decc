"""Early accumulation: updates of a sum move to the steps that compute them (a pass before rerolling).

A reverse sweep adds the cotangents of all reads ``x[index]`` in one operation at its end. If each update is added where it is
computed, it need not be stored, and in a rerolled loop no values of all iterations are stacked for it. The order of the updates
of each buffer remains.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeGuard

from ..buffer_ir import Buffer, BufferView, Loop, Map, NumPyCall, Scatter, Step

MIN_UPDATES = 4  # updates of the smallest sum that is reordered
MIN_UPDATE_SIZE = 33  # mean elements of an update; loops over smaller ones are vectorized over their iterations


def accumulate_early(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with updates of sums moved to the last step that they depend on."""
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

    A step moves behind the last write of its operands and the last access of its sum. The steps that initialize a sum move
    to its first update.
    """
    position = list(range(len(steps)))  # the step behind which each step is placed; itself if it does not move
    written: defaultdict[Buffer, int] = defaultdict(lambda: -1)
    accessed: defaultdict[Buffer, int] = defaultdict(lambda: -1)
    initial: defaultdict[Buffer, list[int]] = defaultdict(list)  # writes of constants that wait for the first update
    for number, step in enumerate(steps):
        reads, out = list(_buffers_read(step)), getattr(step, "out", None)
        target = None if out is None else out.buffer
        others = [buffer for buffer in reads if buffer is not target]
        if target is not None and target in sums and _is_part_of_sum(step):
            if not others and accessed[target] < 0:
                initial[target].append(number)
                continue
            earliest = max([accessed[target], *[written[buffer] for buffer in others]])
            if earliest >= 0:
                for k in (*initial.pop(target, ()), number):
                    position[k] = earliest
        for buffer in {*reads, target}:
            if buffer is not None:
                for k in initial.pop(buffer, ()):
                    accessed[buffer] = max(accessed[buffer], position[k])
                accessed[buffer] = max(accessed[buffer], position[number])
        if target is not None:
            written[target] = max(written[target], accessed[target])
    return sorted(range(len(steps)), key=lambda number: (position[number], number))


def _is_part_of_sum(step: Step) -> bool:
    """Return whether a step may move: an update, or a write that does not read the sum."""
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
