"""Closure conversion: tracing a function on input nodes finds the nodes that it captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.context import sealing, wrappers
from compgraph.graph import walk
from compgraph.storage import root_of
from compgraph.values import ACTIVE, MultiOutput, Value, next_sequence_number

from ..arguments import find_shared_positions
from ..operators import Trace


class TracedFunction:
    """A function of a list, traced on input nodes in place of some elements. It serves as the arguments of a `Trace`.

    Parameters
    ----------
    operator : str
        The calling operator, for messages.
    f : callable
        A function of a list that returns nested arrays. It cannot write into arrays made outside it.
    elements : sequence
        The list.
    positions : sequence of int
        The positions of elements that become input nodes: arrays or nodes. The others are passed unchanged.
    wrapped : tuple of callables, optional
        Wrappers of the buffers that `f` creates (see `compgraph.context.settings.wrappers`); by default the current ones.

    Attributes
    ----------
    inputs : list of Node
        The tracers of the arguments.
    results, structure : list, PyTreeSpec
        The flat results of the function, and their structure.
    output_positions : list of int
        The positions of results that depend on an argument, or on a captured node.
    level : int
        The highest level of the tangents of these results.
    captured : list of Node
        The captured nodes that these results depend on; empty if results have tangents.
    """

    def __init__(
        self, operator: str, f: Callable[..., Any], elements: Sequence[Any], positions: Sequence[int], wrapped: Any = None
    ) -> None:
        self.operator, self.f, self.positions = operator, f, positions
        self.leaves = [elements[i] for i in positions]
        self.shared_positions = find_shared_positions(self.leaves)
        self._elements = [_as_read_only(x) for x in elements]
        self._wrapped = wrappers.get() if wrapped is None else wrapped
        trace = Trace(self)  # not stored: it refers to this object, and the cycle would keep the graph alive
        self.inputs, self.results, self.structure = trace.inputs, trace.leaves, trace.structure
        self.output_positions = [i for i, x in enumerate(self.results) if isinstance(x, Value)]
        self.level = max([self.results[i].level for i in self.output_positions], default=0)
        self.captured: list[Any] = [] if self.level else self._find_captured()

    def arrays(self) -> list[Any]:
        """The arguments."""
        return self.leaves

    def values(self) -> Sequence[Any]:
        """Return all elements, read-only."""
        return self._elements

    def constants(self) -> Sequence[Any]:
        """Return nothing: the outer operator has checked these values already."""
        return ()

    def __call__(self, *inputs: Any) -> Any:
        """Call the function with inputs in place of its arguments."""
        elements = list(self._elements)
        for position, x in zip(self.positions, inputs, strict=True):
            elements[position] = x
        self._start = next_sequence_number()
        with sealing(self._start, self._wrapped):
            return self.f(elements)

    def _find_captured(self) -> list[Any]:
        """Return the nodes made outside the function from which its results were computed."""
        inputs = set(self.inputs)
        results = [self.results[i] for i in self.output_positions]

        def operands_inside(node: Any) -> list[Any]:
            if node in inputs or self._is_outside(node):
                return []
            operands = [node.args[position] for position in node.parent_argnums]
            memory = root_of(node).memory if isinstance(node, Value) else None
            return operands + memory.log if memory else operands

        return [n for n in walk(results, operands_inside) if type(n) in ACTIVE and n not in inputs and self._is_outside(n)]

    def _is_outside(self, node: object) -> bool:
        return isinstance(node, (Value, MultiOutput)) and node.sequence_number <= self._start


def _as_read_only(value: object) -> Any:
    """Return a read-only view of a plain array; other values unchanged."""
    if type(value) is not np.ndarray:
        return value
    view = value.view()
    view.flags.writeable = False
    return view
