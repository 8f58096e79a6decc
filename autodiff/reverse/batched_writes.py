"""The sweep back through writes with a batch of adjoints: as `writes`, with a batch axis in front."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compgraph.graph import OperationalNode, Write, leaf

from ..batching import batch_like, pull_batch
from ..forward import Layers
from ..rules import DEFERRED, Rule, RuleErrors, conform_batch
from .structural_zeros import swept
from .writes import Events, Past, only_last, sweep_with, turned


def sweep_batch_back(
    events: Events, output: Any, seeds: Any, wanted: set[Any], create_graph: bool, support: Any = None
) -> dict[Any, Any]:
    """Pass a batch of adjoints back through a graph in which buffers were written into.

    Parameters
    ----------
    events, output, seeds, wanted, create_graph, support
        As for `batched_sweep.sweep_batch`.

    Returns
    -------
    dict
        For each wanted node that an adjoint reached, its adjoints, of shape ``(count, *node.shape)``.
    """

    def once(rules: Any, errors: RuleErrors, seeds: Any, create_graph: bool) -> dict[Any, Any]:
        past = BatchedPast(events, create_graph, rules, errors, seeds.shape[0])
        return sweep_with(past, events, output, seeds, wanted, ())

    return swept(once, events, seeds, create_graph, support)


class BatchedShadow(Layers):
    """A shadow with a batch of adjoints, which may be nodes."""

    __slots__ = ()

    def __init__(self, like: Any, count: int, recorded: bool) -> None:
        super().__init__(like, count)
        if recorded:
            self.buffer = leaf(self.buffer, OperationalNode, None)


class InBatch:
    """The formulas of a rule, for batches of adjoints."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __getitem__(self, position: int) -> Any:
        if self.rule.formulas[position] is None:
            return None
        return lambda adjoint, out, *operands, **options: pull_batch(self.rule, position, adjoint, out, list(operands), options)


class BatchedPast(Past):
    """What the buffers held, and a batch of adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: Events, create_graph: bool, rules: Any, errors: RuleErrors, count: int) -> None:
        super().__init__(events, create_graph, rules, errors)
        self.count = count
        self.fitted = functools.partial(conform_batch, count=count)

    def settled(self, adjoint: Any, node: Any) -> Any:
        """Adjoints put together."""
        return adjoint.settle(batch_like(node, self.count)) if adjoint.__class__ in DEFERRED else adjoint

    def shadow_of(self, root: Any) -> Any:
        """A new shadow of a buffer."""
        return BatchedShadow(root.plain, self.count, self.create_graph)

    def formulas(self, node: Any) -> Any:
        """What takes batches, in the place of the formulas of a node's rule."""
        return InBatch(self.rules[node.function])

    def taken(self, shadow: Any, write: Write) -> Any:
        """The adjoints of what a write stored, which are taken out of the shadow."""
        index = write.index if isinstance(write.index, tuple) else (write.index,)
        whole = index if any(part is Ellipsis for part in index) else (*index, ...)
        last = np.moveaxis(shadow.window(write.window), 0, -1)  # behind all others, the batch axis stays where it is
        adjoint = turned(np.copy(np.moveaxis(last[*whole, slice(None)], -1, 0)))
        last[*whole, slice(None)] = 0
        return only_last(write, adjoint)  # that axes of length one are missing in front is seen to with what is given
