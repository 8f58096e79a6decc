"""The sweep back through writes with a batch of adjoints: as `writes`, with a batch axis in front."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.graph import INERT, Node, OperationalNode, Write, last_places, leaf, overlaps_itself

from ..batching import batch_like, pull_batch
from ..forward import Layers
from ..rules import DEFERRED, RuleErrors, Scatter, conform_batch
from .structural_zeros import swept
from .writes import Events, Past, sweep_with, turned


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


class BatchedPast(Past):
    """What the buffers held, and a batch of adjoints, at the moment to which the sweep has come back."""

    def __init__(self, events: Events, create_graph: bool, rules: Any, errors: RuleErrors, count: int) -> None:
        super().__init__(events, create_graph, rules, errors)
        self.count = count

    def settled(self, adjoint: Any, node: Any) -> Any:
        """An adjoint put together."""
        return adjoint.settle(batch_like(node, self.count)) if adjoint.__class__ in DEFERRED else adjoint

    def give(self, node: Any, contribution: Any) -> None:
        """Add contributions to the adjoints of a node."""
        root = self.roots.get(node)
        if root is None or not root.memory:
            earlier = self.adjoints.get(node)
            if contribution.__class__ not in DEFERRED:
                contribution = conform_batch(contribution, node.plain, self.count)
            self.adjoints[node] = contribution if earlier is None else earlier + contribution
        elif overlaps_itself(node.plain):  # its adjoint has no place in the shadow, that of its operand has
            contribution = conform_batch(self.settled(contribution, node), node.plain, self.count)
            self.pass_on(node, contribution, [a if not isinstance(a, Node) else a.plain for a in node.args])
        else:
            if root not in self.shadows:
                self.shadows[root] = BatchedShadow(root.plain, self.count, self.create_graph)
            place = self.shadows[root].window(node.plain)
            if contribution.__class__ is Scatter:
                Scatter.of([(turned(piece), index) for piece, index in contribution.pieces]).add_to(place)
                contribution = contribution.dense
            if contribution is not None:
                place += turned(conform_batch(contribution, node.plain, self.count))

    def pass_on(self, node: Any, adjoint: Any, operands: list[Any], out: Any = None, needed: Any = None) -> None:
        """Ask the rule of a node for the contributions to its operands."""
        rule = self.rules[node.function]
        before, self.errors.at = self.errors.at, node
        out = node.plain if out is None else out
        for position in node.edges:
            operand = node.args[position]
            if operand.__class__ in INERT or (needed is not None and operand not in needed) or rule.formulas[position] is None:
                continue
            contribution = pull_batch(rule, position, adjoint, out, operands, node.options)
            if self.errors.log is not None:
                self.errors.log.append(0 if contribution is adjoint else getattr(contribution, "tick", 0))
            if contribution.__class__ is np.ndarray and contribution.base is not None:
                contribution = contribution.copy()  # it may be a window of what is undone later
            self.give(operand, contribution)
        self.errors.at = before

    def adjoint_of(self, write: Write) -> Any:
        """The adjoints of what a write stored, which are taken out of the shadow; or None."""
        shadow = self.shadows.get(self.root_with[write.memory])
        if shadow is None:
            return None
        index = write.index if isinstance(write.index, tuple) else (write.index,)
        whole = index if any(part is Ellipsis for part in index) else (*index, ...)
        last = np.moveaxis(shadow.window(write.window), 0, -1)  # behind all others, the batch axis stays where it is
        adjoint = turned(np.copy(np.moveaxis(last[*whole, slice(None)], -1, 0)))
        last[*whole, slice(None)] = 0
        if any(isinstance(part, np.ndarray) and part.dtype.kind in "iu" for part in index):
            places, numbers = last_places(write.window.shape, write.index)
            adjoint = np.where(places == numbers, adjoint, 0)  # of several values for one place, the last stays
        extra = np.ndim(write.args[0]) - (adjoint.ndim - 1)
        return adjoint if extra <= 0 else np.reshape(adjoint, (self.count, *(1,) * extra, *adjoint.shape[1:]))
