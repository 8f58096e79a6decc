"""Values for placeholders: checks, and division into micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from compgraph.executor import as_fed
from compgraph.values import Value, describe

from .parts import weighed

Batch = dict[Any, Any]  # the values of the placeholders


class Feeds:
    """The placeholders of a graph.

    Parameters
    ----------
    placeholders : list of PlaceholderNode
        All of them.
    micro_batches : int
        The number of micro-batches that rows are cut into.
    """

    def __init__(self, placeholders: list[Any], micro_batches: int) -> None:
        self.placeholders, self.micro_batches = placeholders, micro_batches
        self.cut_ones = [node for node in placeholders if node.declared and node.declared[0] is None]
        if micro_batches > 1 and not self.cut_ones:
            raise ValueError(
                "Split: micro_batches divides the first axis of placeholders declared as (None, ...), but no placeholder is"
            )

    def checked(self, feed: object) -> Batch:
        """The values that were fed, checked, by placeholder."""
        if not isinstance(feed, Mapping):
            raise TypeError(f"Split takes a mapping of placeholders or names to values, not a {type(feed).__name__}")
        batch: Batch = {}
        for key, value in feed.items():
            node = self._named(key)
            if node in batch:
                raise KeyError(f"the {describe(node)} is fed twice: by itself and by name")
            batch[node] = as_fed(node, value)
        missing = [describe(node) for node in self.placeholders if node not in batch]
        if missing:
            raise ValueError(f"no value was fed for the {', the '.join(missing)}")
        lengths = {node.name: len(batch[node]) for node in self.cut_ones}
        if len(set(lengths.values())) > 1:
            row_counts = ", ".join(f"{rows} of {name!r}" for name, rows in lengths.items())
            raise ValueError(f"Split: all placeholders that are cut must be fed equally many rows, not {row_counts}")
        if 0 in lengths.values():
            raise ValueError("Split: the fed arrays have no rows")
        return batch

    def _named(self, key: str) -> Any:
        matches = [node for node in self.placeholders if node is key or (isinstance(key, str) and node.name == key)]
        if len(matches) == 1:
            return matches[0]
        names = ", ".join(repr(node.name) for node in self.placeholders) or "none"
        what = f"the {describe(key)}" if isinstance(key, Value) else f"called {key!r}"
        if matches:
            raise KeyError(f"{len(matches)} placeholders of the graph are {what}; feed by the node itself")
        raise KeyError(f"no placeholder of the graph is {what}; there are {names}")

    def cut(self, batch: Batch) -> tuple[list[Batch], list[float]]:
        """The micro-batches, and each one's share of the rows."""
        if not self.cut_ones:
            return [batch], [1.0]
        rows = len(batch[self.cut_ones[0]])
        count = min(self.micro_batches, rows)
        edges = [rows * k // count for k in range(count + 1)]
        spans = list(pairwise(edges))
        return [batch | {node: batch[node][a:b] for node in self.cut_ones} for a, b in spans], [(b - a) / rows for a, b in spans]

    def joined(self, values: list[Any], batches: list[Batch], weights: list[float]) -> Any:
        """The output for all rows, from those for micro-batches."""
        if len(values) == 1 or not np.ndim(values[0]):
            return weighed(values, weights)
        if [len(v) for v in values] != [len(batch[self.cut_ones[0]]) for batch in batches]:
            raise ValueError(
                "Split: an output that is not a scalar must have a row for each row that is fed, to be joined from micro-batches"
            )
        return np.concatenate(values)
