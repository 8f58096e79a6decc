"""Closure conversion: a trace of a function finds the nodes that it captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.context import sealing, wrappers
from compgraph.graph import GraphNode, walk
from compgraph.storage import root_of
from compgraph.values import ACTIVE, MultiOutput, Value, next_sequence_number

from ..arguments import find_shared_positions
from ..operators import Trace


class TracedFunction:
    """A function of a list, traced on argument tracers in place of some elements. A `Trace` calls it like an `Arguments`.

    Parameters
    ----------
    operator : str
        The calling operator, for messages.
    f : callable
        A function of a list that returns nested arrays. It cannot write into arrays made outside it.
    elements : sequence
        The list.
    positions : sequence of int
        The positions of the elements that are traced: arrays or nodes. The others are passed unchanged.
    buffer_wrappers : tuple of callables, optional
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
        The captured nodes that these results depend on; not searched, and empty, if results have tangents.
    """

    def __init__(
        self, operator: str, f: Callable[..., Any], elements: Sequence[Any], positions: Sequence[int], buffer_wrappers: Any = None
    ) -> None:
        self.operator, self.f, self.positions = operator, f, positions
        self.leaves = [elements[i] for i in positions]
        self.shared_positions = find_shared_positions(self.leaves)
        self._elements = [_as_read_only(x) for x in elements]
        self._buffer_wrappers = wrappers.get() if buffer_wrappers is None else buffer_wrappers
        self._start = 0.0
        trace = Trace(self)  # not stored: it refers to this object, and the cycle would keep the graph alive
        self.inputs, self.results, self.structure = trace.inputs, trace.leaves, trace.structure
        self.output_positions = [i for i, x in enumerate(self.results) if isinstance(x, Value)]
        self.level = max([self.results[i].level for i in self.output_positions], default=0)
        self.captured: list[Any] = [] if self.level else self._find_captured()

    def arrays(self) -> list[Any]:
        """Return the elements that are traced."""
        return self.leaves

    def values(self) -> Sequence[Any]:
        """Return all elements, read-only."""
        return self._elements

    def constants(self) -> Sequence[Any]:
        """Return no constants: the outer operator has checked the elements."""
        return ()

    def __call__(self, *inputs: Any) -> Any:
        """Call the function with inputs in place of its arguments."""
        elements = list(self._elements)
        for position, x in zip(self.positions, inputs, strict=True):
            elements[position] = x
        self._start = next_sequence_number()
        with sealing(self._start, self._buffer_wrappers):
            return self.f(elements)

    def _find_captured(self) -> list[Any]:
        """Return the nodes recorded outside the function that its results depend on."""
        inputs = set(self.inputs)
        results = [self.results[i] for i in self.output_positions]

        def operands_of(node: GraphNode) -> list[Any]:
            if node in inputs or self._is_outside(node):
                return []
            operands = [node.args[position] for position in node.parent_argnums]
            memory = root_of(node).memory if isinstance(node, Value) else None
            return [*operands, *memory.log] if memory else operands

        return [n for n in walk(results, operands_of) if type(n) in ACTIVE and n not in inputs and self._is_outside(n)]

    def _is_outside(self, node: object) -> bool:
        return isinstance(node, (Value, MultiOutput)) and node.sequence_number <= self._start


def _as_read_only(value: object) -> Any:
    """Return a read-only view of a plain array; other values unchanged."""
    if type(value) is not np.ndarray:
        return value
    view = value.view()
    view.flags.writeable = False
    return view
