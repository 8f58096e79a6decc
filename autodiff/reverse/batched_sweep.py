"""A batch of adjoints back through a recorded graph: all rows of a Jacobian in one pass.

The sweep is that of `writes`, with a batch axis in front of all adjoints, whether there are writes or not.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from compgraph.storage import Write

from ..batching import batch_like, pull_batch, pull_several
from ..rules import DEFERRED, BatchedShadow, Rule, RuleErrors, Shared, conform_batch
from .structural_zeros import swept
from .sweep import depending_on
from .writes import Past, only_last, sweep_with, turned


def sweep_batch(
    nodes: list[Any], output: Any, seeds: Any, wanted: set[Any], create_graph: bool, needed: set[int] | None = None,
    support: Any = None,
) -> dict[Any, Any]:  # fmt: skip
    """Pass a batch of adjoints back through a graph.

    Parameters
    ----------
    nodes : list
        The graph as `collect` gives it.
    output : Node
        Where the sweep starts.
    seeds : array or Node
        The adjoints of `output`, of shape ``(count, *output.shape)``.
    wanted : set
        The nodes whose adjoints are kept.
    create_graph : bool
        Whether rules are given nodes, so that what they compute is recorded.
    needed : set, optional
        The ids of the nodes to be passed, as `depending_on` gives them.
    support : array or True, optional
        Where `seeds` have no structural zeros, 1, elsewhere 0; True if all their zeros are. They have none by default.

    Returns
    -------
    dict
        For each wanted node that an adjoint reached, its adjoints, of shape ``(count, *node.shape)``.
    """
    needed = depending_on(nodes, output, wanted) if needed is None else needed

    def once(rules: Any, errors: RuleErrors, seeds: Any, create_graph: bool) -> dict[Any, Any]:
        past = BatchedPast(nodes, create_graph, rules, errors, seeds.shape[0])
        return sweep_with(past, nodes, output, seeds, wanted, needed)

    return swept(once, nodes, seeds, create_graph, support)


class InBatch:
    """The formulas of a rule, for batches of adjoints."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __getitem__(self, position: int) -> Any:
        return None if self.rule.formulas[position] is None else functools.partial(pull_batch, self.rule, position)


class BatchedPast(Past):
    """What the buffers held, and a batch of adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: list[Any], create_graph: bool, rules: Any, errors: RuleErrors, count: int) -> None:
        super().__init__(events, create_graph, rules, errors)
        self.count = count
        self.fitted = functools.partial(conform_batch, count=count)

    def settled(self, adjoint: Any, node: Any) -> Any:
        """Adjoints put together."""
        return adjoint.settle(batch_like(node, self.count)) if type(adjoint) in DEFERRED else adjoint

    def shadow_of(self, root: Any) -> Any:
        """A new shadow of a buffer."""
        return BatchedShadow(root.raw_value, self.count, self.create_graph)

    def formulas(self, node: Any) -> Any:
        """What takes batches, in the place of the formulas of a node's rule."""
        rule = self.rules[node.function]
        if type(rule.formulas) is Shared:
            return Shared(functools.partial(pull_several, rule), rule.formulas.fixed)
        return InBatch(rule)

    def taken(self, shadow: Any, write: Write) -> Any:
        """The adjoints of what a write stored, which are taken out of the shadow."""
        index = write.index if isinstance(write.index, tuple) else (write.index,)
        whole = index if any(part is Ellipsis for part in index) else (*index, ...)
        last = np.moveaxis(shadow.window(write.window), 0, -1)  # behind all others, the batch axis stays where it is
        adjoint = turned(np.copy(np.moveaxis(last[*whole, slice(None)], -1, 0)))
        last[*whole, slice(None)] = 0
        return only_last(write, adjoint)  # that axes of length one are missing in front is seen to with what is given
