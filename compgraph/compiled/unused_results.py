"""Unused results of a trace: a program computes them if the operation may warn or raise, as NumPy does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import ops
from ..context import Setting, collector, is_deriving
from ..executor import SHAPE_ONLY_FUNCTIONS, collect_dependencies, sources_of
from ..guards import EvaluationGuard
from ..interpreters import Observed
from ..storage import window
from ..values import MultiOutput, Value, next_sequence_number

_QUIET = frozenset({ops.copy_as_laid, window})  # own operations that neither warn nor raise
_INTEGERS = "biu"


class UnusedResults:
    """Collects the operations of a trace that may warn or raise.

    Parameters
    ----------
    derives : bool
        True if the function computes derivatives, which need few values of the differentiated function. Then overflows of plain
        arithmetic are not checked: computing all these values would cost too much.
    """

    def __init__(self, derives: bool) -> None:
        self.derives = derives
        self._collected: list[Any] = []

    def collecting(self) -> Setting:
        """A context whose recorded operations are collected, but not those of derivatives."""
        return Setting({collector: self})

    def wrap(self, interpreter: Any) -> Observed:
        """An interpreter whose results are collected."""
        return Observed(interpreter, self.collect)

    def collect(self, result: object) -> None:
        """Collect the nodes of an operation."""
        node = next((part for part in result if part is not None), None) if isinstance(result, (tuple, list)) else result
        if isinstance(node, Value) and not is_deriving() and not self._is_quiet(node):
            self._collected.append(node)

    def _is_quiet(self, node: Any) -> bool:
        item = _item_of(node)
        function = item.function
        while isinstance(function, (ops.Configured, ops.Keyworded)):
            function = function.function
        if isinstance(function, ops.UfuncMethod):
            if function.method not in ("reduce", "accumulate", "outer"):
                return False
            function = function.ufunc
        spec = ops.spec_of(function)
        warns = "maybe" if spec is None else spec.warns
        if warns == "never" or function in _QUIET:
            return True
        kinds = [
            np.asarray(getattr(a, "raw_value", a)).dtype for a in item.args if isinstance(a, (Value, np.ndarray, np.generic))
        ]
        if function is ops.astype:
            return all(np.can_cast(kind, node.dtype) or (kind.kind in _INTEGERS and node.dtype.kind in "biufc") for kind in kinds)
        if function is ops.getitem:
            return bool(item.parent_argnums == (0,))
        if warns == "floats":
            return self.derives or all(kind.kind in _INTEGERS for kind in (*kinds, node.dtype))
        return self.derives and self._warns_of_overflow_only(function, item)

    @staticmethod
    def _warns_of_overflow_only(function: Any, item: Any) -> bool:
        """Return whether a function warns only of overflows and infinite operands, for its plain operand."""
        if function in (np.true_divide, ops.power, np.power) and item.parent_argnums == (0,) and len(item.args) > 1:
            plain = np.asarray(item.args[1])
            if function is np.true_divide:
                return bool(plain.all())
            return bool((plain >= 0).all() and (plain == np.floor(plain)).all())
        is_foreign = type(function) is np.ufunc and getattr(np, function.__name__, None) is not function
        return is_foreign and "O" not in "".join(function.types)  # SciPy's ufuncs do not warn

    def are_all_in(self, items: Iterable[Any], since: float) -> bool:
        """Return whether each node collected from a sequence number on is part of a graph."""
        graph_items = frozenset(items)
        return all(_item_of(node) in graph_items for node in self._collected if node.sequence_number >= since)

    def discard_since(self, since: float) -> None:
        """Drop the nodes collected from a sequence number on."""
        self._collected = [node for node in self._collected if node.sequence_number < since]

    def select_unread(self, ends: Iterable[Any], stop: Iterable[Any]) -> list[Any]:
        """Return the collected nodes that no result depends on."""
        if not self._collected:
            return []
        read = frozenset(collect_dependencies(ends, _sources, stop))
        collected, self._collected = self._collected, []
        unread = [node for node in collected if _item_of(node) not in read]
        if self.derives and unread:
            scatters = [item for item in read if isinstance(item, Value) and item.opname == "scatter"]
            scatter_indices = frozenset(item.args[position] for item in scatters for position in item.parent_argnums)
            unread = [node for node in unread if not _is_indexed_again(node, scatter_indices)]
        return unread


def _is_indexed_again(node: Any, scatter_indices: frozenset[Any]) -> bool:
    """Whether indices are checked elsewhere: a derivative writes where an operation has read."""
    return node.function is ops.getitem and all(
        node.args[position] in scatter_indices for position in node.parent_argnums if position
    )


def _item_of(node: Any) -> Any:
    """Return the operation of a node or of a multi-output operation's result."""
    return node.args[0] if node.args and isinstance(node.args[0], MultiOutput) else node


def _sources(item: object) -> tuple[Any, ...]:
    """Return the operands of an item; none if it depends on a shape alone."""
    is_constant = isinstance(item, Value) and item.function in SHAPE_ONLY_FUNCTIONS and not item.memory
    return () if is_constant else sources_of(item)


def make_evaluation_guard(nodes: list[Any]) -> EvaluationGuard:
    """Return a guard that makes a program compute some nodes."""
    return EvaluationGuard("the errors of unused results", type(None), tuple(nodes), None, None, 0, next_sequence_number())
