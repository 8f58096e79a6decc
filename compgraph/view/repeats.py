"""Equal consecutive parts of a graph (layers, iterations of a loop), which can be drawn once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .write_history import Item, Uses

MAX_LENGTH = 200  # operations in a part
MIN_PARTS = 3  # parts in a run
MAX_SEARCHED = 50_000  # nodes, those nearest to the output


@dataclass
class Fold:
    """A run of equal parts: for each part its nodes, in the same order."""

    parts: list[list[Item]]


def folds_of(uses: Uses) -> list[Fold]:
    """Return the runs of equal parts of a graph. Of overlapping runs, the one that hides most nodes is chosen.

    Two parts are equal if they have the same operations, in the order in which they were recorded, with results of the same
    shape and dtype, and if each operand was recorded the same number of operations before, or is the same node. A leaf belongs
    to the part that uses it first, unless its uses are more than 200 operations apart.

    Parameters
    ----------
    uses : dict
        The nodes of the graph and their operands, the nearest to the output first.

    Returns
    -------
    list of Fold
    """
    near = list(uses)[:MAX_SEARCHED]
    operations = sorted((node for node in near if uses[node]), key=lambda node: node.sequence_number)
    order = {node: place for place, node in enumerate(operations)}
    first, last = _use_spans(operations, order, uses)
    local = {node for node in first if last[node] - first[node] <= MAX_LENGTH}
    # In a short loop, a leaf that all iterations use is near all of its uses, but belongs to none of them.
    counts = Counter(operand for node in operations for operand in uses[node] if operand in local and operand not in order)
    shared_leaves = {leaf for leaf, count in counts.items() if count >= MIN_PARTS}
    candidates = [_folds(operations, order, first, local, uses)]
    if shared_leaves:
        candidates.append(_folds(operations, order, first, local - shared_leaves, uses))
    return max(candidates, key=lambda folds: sum(len(part) for fold in folds for part in fold.parts[1:]))


def _folds(operations: list[Item], order: dict[Item, int], first: dict[Item, int], local: set[Item], uses: Uses) -> list[Fold]:
    """Return the runs of equal parts. Nodes in `local` belong to one part; all parts share the other nodes."""
    codes: dict[Any, int] = {}
    marks = np.array(
        [codes.setdefault(_equality_key(n, order, first, local, uses), len(codes)) for n in operations], dtype=np.int64
    )
    folds = []
    for start, period, count in _runs(marks, [getattr(n, "scope", ()) for n in operations]):
        parts = [operations[start + k * period : start + (k + 1) * period] for k in range(count)]
        folds.append(Fold([_with_leaves(part, order, first, local, uses) for part in parts]))
    return folds


def _use_spans(operations: list[Item], order: dict[Item, int], uses: Uses) -> tuple[dict[Item, int], ...]:
    """For each node, return two positions among the operations: creation (for a leaf, first use) and last use."""
    first, last = dict(order), dict(order)
    for place, node in enumerate(operations):
        for operand in uses[node]:
            first.setdefault(operand, place)
            last[operand] = place
    return first, last


def _equality_key(node: Item, order: dict[Item, int], first: dict[Item, int], local: set[Item], uses: Uses) -> Any:
    """Return a key that equal operations share; see `folds_of`."""
    place = order[node]
    operands = [(operand in order, place - first[operand]) if operand in local else id(operand) for operand in uses[node]]
    return node.opname, *_kind(node), *operands, *[_kind(operand) for operand in uses[node]]


def _kind(node: Item) -> tuple[Any, ...]:
    return type(node), getattr(node, "shape", None), getattr(node, "dtype", None)


def _with_leaves(part: list[Item], order: dict[Item, int], first: dict[Item, int], local: set[Item], uses: Uses) -> list[Item]:
    """Return the operations of a part, each after the leaves that it uses first."""
    items: dict[Item, None] = {}
    for node in part:
        for operand in uses[node]:
            if operand in local and operand not in order and first[operand] == order[node]:
                items[operand] = None
        items[node] = None
    return list(items)


def _runs(marks: np.ndarray[Any, Any], scopes: list[Any]) -> list[tuple[int, int, int]]:
    """Return start, period and count of runs that do not overlap."""
    candidates = []
    for period in range(1, min(MAX_LENGTH, len(marks) // MIN_PARTS) + 1):
        for start, length in _true_runs(marks[period:] == marks[:-period], period * (MIN_PARTS - 1)):
            start, count = _align_run(start, length + period, period, scopes)
            if count >= MIN_PARTS:
                candidates.append(((count - 1) * period, -period, start, count))
    is_covered = np.zeros(len(marks), dtype=bool)
    chosen = []
    for _, negative, start, count in sorted(candidates, reverse=True):
        span = slice(start, start - negative * count)
        if not is_covered[span].any():
            is_covered[span] = True
            chosen.append((start, -negative, count))
    return chosen


def _true_runs(equal: np.ndarray[Any, Any], least: int) -> Iterator[tuple[int, int]]:
    """Yield start and length of the runs of True that are long enough."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(np.int8)))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    long = lengths >= least
    yield from zip(starts[long].tolist(), lengths[long].tolist(), strict=True)


def _align_run(start: int, length: int, period: int, scopes: list[Any]) -> tuple[int, int]:
    """Return start and count of a run whose parts begin with a scope: the outermost that begins in the first part."""
    best, fewest = 0, math.inf
    for shift in range(min(period, length) if start else 0):
        here, before = scopes[start + shift], scopes[start + shift - 1]
        if here != before and common_length(here, before) < fewest:
            best, fewest = shift, common_length(here, before)
    return start + best, (length - best) // period


def common_length(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of outermost names that two scopes share."""
    differing = (i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))
