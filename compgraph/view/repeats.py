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
    positions = {node: position for position, node in enumerate(operations)}
    first_uses, last_uses = _use_spans(operations, positions, uses)
    local_nodes = {node for node in first_uses if last_uses[node] - first_uses[node] <= MAX_LENGTH}
    # In a short loop, a leaf that all iterations use is near all of its uses, but belongs to none of them.
    operands = [operand for node in operations for operand in uses[node]]
    counts = Counter(operand for operand in operands if operand in local_nodes and operand not in positions)
    shared_leaves = {leaf for leaf, count in counts.items() if count >= MIN_PARTS}
    candidates = [
        _RunSearch(uses, operations, positions, first_uses, nodes).folds()
        for nodes in ([local_nodes, local_nodes - shared_leaves] if shared_leaves else [local_nodes])
    ]
    return max(candidates, key=lambda folds: sum(len(part) for fold in folds for part in fold.parts[1:]))


def _use_spans(operations: list[Item], positions: dict[Item, int], uses: Uses) -> tuple[dict[Item, int], ...]:
    """For each node, return two positions among the operations: creation (for a leaf, first use) and last use."""
    first_uses, last_uses = dict(positions), dict(positions)
    for position, node in enumerate(operations):
        for operand in uses[node]:
            first_uses.setdefault(operand, position)
            last_uses[operand] = position
    return first_uses, last_uses


@dataclass(frozen=True)
class _RunSearch:
    """A search for runs of equal parts. Nodes in `local_nodes` belong to one part; all parts share the other nodes."""

    uses: Uses
    operations: list[Item]
    positions: dict[Item, int]
    first_uses: dict[Item, int]
    local_nodes: set[Item]

    def folds(self) -> list[Fold]:
        """Return the runs of equal parts."""
        codes: dict[Any, int] = {}
        keys = np.array([codes.setdefault(self._equality_key(node), len(codes)) for node in self.operations], dtype=np.int64)
        folds = []
        for start, period, count in _runs(keys, [getattr(node, "scope", ()) for node in self.operations]):
            parts = [self.operations[start + k * period : start + (k + 1) * period] for k in range(count)]
            folds.append(Fold([self._with_leaves(part) for part in parts]))
        return folds

    def _equality_key(self, node: Item) -> Any:
        """Return a key that equal operations share; see `folds_of`."""
        operands = []
        for operand in self.uses[node]:
            distance = self.positions[node] - self.first_uses[operand]
            operands.append((operand in self.positions, distance) if operand in self.local_nodes else id(operand))
        return node.opname, *_kind(node), *operands, *map(_kind, self.uses[node])

    def _with_leaves(self, part: list[Item]) -> list[Item]:
        """Return the operations of a part, each after the leaves that it uses first."""
        items: dict[Item, None] = {}
        for node in part:
            for operand in self.uses[node]:
                is_local_leaf = operand in self.local_nodes and operand not in self.positions
                if is_local_leaf and self.first_uses[operand] == self.positions[node]:
                    items[operand] = None
            items[node] = None
        return list(items)


def _kind(node: Item) -> tuple[Any, ...]:
    return type(node), getattr(node, "shape", None), getattr(node, "dtype", None)


def _runs(keys: np.ndarray[Any, Any], scopes: list[Any]) -> list[tuple[int, int, int]]:
    """Return start, period and count of runs that do not overlap."""
    candidates = []
    for period in range(1, min(MAX_LENGTH, len(keys) // MIN_PARTS) + 1):
        for start, length in _true_runs(keys[period:] == keys[:-period], period * (MIN_PARTS - 1)):
            start, count = _align_run(start, length + period, period, scopes)
            if count >= MIN_PARTS:
                candidates.append(((count - 1) * period, -period, start, count))
    is_covered = np.zeros(len(keys), dtype=bool)
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
