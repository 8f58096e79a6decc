"""One run of a function on stand-ins for its arguments, and what it used from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.graph import ACTIVE, InputNode, Joint, Node, attach, input_over, next_tick, record, root_of
from compgraph.graph.context import apart, recording_on, sealed_up_to, wrappers
from compgraph.graph.hollow import Hollowing
from compgraph.operations import input_of

from ..arguments import flatten
from ..reverse import collect, connected_zeros, owned, sweep, sweep_supports
from ..rules import Parts, Rule, Shared, makers

Function = Callable[..., Any]


class Traced:
    """A function that has run on stand-ins for some of its arguments.

    Parameters
    ----------
    f : callable
        A function of a list of leaves that returns nested arrays.
    leaves : sequence
        The arguments, flat.
    positions : sequence of int
        Which of them are differentiated: arrays or nodes. The others are handed on.
    wrapped : tuple of callables
        What wraps the arrays that `f` makes to be written into (see `compgraph.graph.context.modes.wrappers`).

    Attributes
    ----------
    inputs : list of Node
        The stand-ins.
    leaves : list
        What `f` returned, flat.
    structure : optree.PyTreeSpec
        How it was nested.
    outs : list of int
        Which of them depend on something: on an input, or on a node from outside.
    closed : list of Node
        The nodes from outside that were used, beside the arguments.
    """

    def __init__(self, f: Function, leaves: Sequence[Any], positions: Sequence[int], wrapped: Any = None) -> None:
        self.inputs: list[Any] = []
        self.leaves, self.structure = flatten(apart(self._run, f, leaves, positions, wrapped))
        self.outs = [i for i, x in enumerate(self.leaves) if isinstance(x, Node)]
        self.level = max([self.leaves[i].level for i in self.outs], default=0)
        self.closed: list[Any] = [] if self.level else self._closed()

    def _run(self, f: Function, leaves: Sequence[Any], positions: Sequence[int], wrapped: Any) -> Any:
        """Call the function."""
        given = [_read_only(x) for x in leaves]
        with recording_on(), Hollowing():
            for position in positions:
                self.inputs.append(_stand_in(leaves[position]))
                given[position] = self.inputs[-1]
            self.start = next_tick()
            with sealed_up_to(self.start, wrappers.get() if wrapped is None else wrapped):
                return f(given)

    def _closed(self) -> list[Any]:
        """The nodes from outside that the results were computed from."""
        inputs = set(self.inputs)
        queue: list[Any] = [self.leaves[i] for i in self.outs]
        seen: set[Any] = set(queue)
        found: list[Any] = []
        for node in queue:
            if node in inputs:
                continue
            if isinstance(node, (Node, Joint)) and node.tick <= self.start:
                if node.__class__ in ACTIVE:
                    found.append(node)
                continue
            operands = [node.args[position] for position in node.edges]
            if isinstance(node, Node):
                memory = root_of(node).memory
                operands += memory.log if memory else []
            for operand in operands:
                if operand not in seen:
                    seen.add(operand)
                    queue.append(operand)
        return found

    def pull(self, adjoints: Sequence[Any], recorded: bool, support: Any = None) -> list[Any]:
        """The adjoints of the inputs, then of the closed-over nodes, given those of `outs` (None where zero).

        `support` says where they have no structural zeros.
        """
        wanted = [*self.inputs, *self.closed]
        ends = frozenset(wanted)
        together = gathered([self.leaves[i] for i in self.outs])
        nodes = collect(together, stop=ends)
        seed = _parts(adjoints)
        within = None if support is None else _parts(support)
        if not recorded:
            found = owned(sweep(nodes, together, seed, set(wanted), False, ends, within), wanted, *adjoints)
            return [found[x] for x in wanted]
        with recording_on():
            some = next(iter(seed.found.values()))
            found = sweep(nodes, together, seed, set(wanted), True, ends, within)
            return [found[x] if x in found else connected_zeros(x, some) for x in wanted]

    def supports(self, supports: Sequence[Any], recorded: bool) -> list[Any]:
        """The supports of what `pull` returns, from those of the adjoints."""
        wanted = [*self.inputs, *self.closed]
        together = gathered([self.leaves[i] for i in self.outs])
        nodes = collect(together, stop=frozenset(wanted))
        with recording_on() if recorded else nullcontext():
            found = sweep_supports(nodes, together, _parts(supports), set(wanted), recorded, frozenset(wanted))
        return [found[x] if x in found else np.zeros(x.shape) for x in wanted]


def _parts(adjoints: Sequence[Any]) -> Parts:
    """Adjoints of several results, where they are not zero."""
    return Parts({k: a for k, a in enumerate(adjoints) if a is not None})


def _stand_in(argument: Any) -> Any:
    """An input node with the value of an argument, and its history if it is a node."""
    if isinstance(argument, Node):
        return InputNode.of(record(input_of, (argument,)))
    return input_over(argument)


def _read_only(value: Any) -> Any:
    """A plain array that cannot be written into; all else as it is."""
    if value.__class__ is not np.ndarray:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


class _Together:
    """The function of a joint over several results, where a sweep from all of them starts."""

    __name__ = "together"


def gathered(outs: Sequence[Any]) -> Joint:
    """One joint over several nodes; its adjoint is the `Parts` of theirs."""
    made = attach(tuple(np.asarray(out.plain) for out in outs), together, tuple(outs))
    joint: Joint = made[0].args[0]
    return joint


def _parts_of(positions: list[int], adjoints: Any, outs: Any, *operands: Any) -> list[Any]:
    found = [(adjoints[p], operands[p]) for p in positions]
    return [np.zeros(x.shape, x.dtype)[()] if adjoint is None else adjoint for adjoint, x in found]


together = _Together()
makers[_Together] = lambda function: Rule("together", "linear", Shared(_parts_of), ()).moving()
operations.OPNAMES[together] = "together"
