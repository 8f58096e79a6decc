"""Unused results of a trace: a program computes them only if their operation may warn or raise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import ops
from ..context import Setting, collector, is_deriving
from ..executor import collect_dependencies, sources_of
from ..guards import EvaluationGuard
from ..interpreters import Observed
from ..storage import window
from ..values import MultiOutput, Value, next_sequence_number

_SILENT_FUNCTIONS = frozenset({ops.copy_as_laid, window})  # own operations that neither warn nor raise
_INTEGERS = "biu"


class UnusedResults:
    """Collects the operations of a trace that may warn or raise.

    Parameters
    ----------
    uses_autodiff : bool
        Whether the function computes derivatives. They read few values of the differentiated function, and computing the others
        is expensive, so their arithmetic is not checked for overflow.
    """

    def __init__(self, uses_autodiff: bool) -> None:
        self.uses_autodiff = uses_autodiff
        self._collected: list[Any] = []

    def collecting(self) -> Setting:
        """Return a context whose recorded operations are collected, except those of derivatives."""
        return Setting({collector: self})

    def wrap(self, interpreter: Any) -> Observed:
        """Return an interpreter whose results are collected."""
        return Observed(interpreter, self.collect)

    def collect(self, result: object) -> None:
        """Collect the nodes of an operation."""
        node = result
        if not isinstance(result, Value) and isinstance(result, (tuple, list)):
            node = next((part for part in result if part is not None), None)
        if isinstance(node, Value) and not is_deriving() and not self._never_warns(node):
            self._collected.append(node)

    def _never_warns(self, node: Any) -> bool:
        item = _operation_of(node)
        function = item.function
        while isinstance(function, (ops.Configured, ops.Keyworded)):
            function = function.function
        if isinstance(function, ops.UfuncMethod):
            if function.method not in ("reduce", "accumulate", "outer"):
                return False
            function = function.ufunc
        spec = ops.spec_of(function)
        warns = "maybe" if spec is None else spec.warns
        if warns == "never" or function in _SILENT_FUNCTIONS:
            return True
        dtypes = [
            np.asarray(getattr(a, "raw_value", a)).dtype for a in item.args if isinstance(a, (Value, np.ndarray, np.generic))
        ]
        if warns == "casts":
            return all(np.can_cast(t, node.dtype) or (t.kind in _INTEGERS and node.dtype.kind in "biufc") for t in dtypes)
        if warns == "indices":
            return bool(item.parent_argnums == (0,))
        if warns == "floats":
            return self.uses_autodiff or all(dtype.kind in _INTEGERS for dtype in (*dtypes, node.dtype))
        return self.uses_autodiff and self._warns_of_overflow_only(function, "" if spec is None else spec.quiet_with, item)

    @staticmethod
    def _warns_of_overflow_only(function: Any, quiet_with: str, item: Any) -> bool:
        """Return whether a function with this constant operand warns only of overflow and infinite operands."""
        if quiet_with and item.parent_argnums == (0,) and len(item.args) > 1:
            plain = np.asarray(item.args[1])
            if quiet_with == "nonzero":
                return bool(plain.all())
            return bool(plain.dtype.kind != "c" and (plain >= 0).all() and (plain == np.floor(plain)).all())
        is_ufunc_of_scipy = type(function) is np.ufunc and getattr(np, function.__name__, None) is not function
        return is_ufunc_of_scipy and "O" not in "".join(function.types)  # these do not warn

    def are_all_in(self, items: Iterable[Any], since: float) -> bool:
        """Return whether a graph contains all nodes collected since a sequence number."""
        graph_items = frozenset(items)
        return all(_operation_of(node) in graph_items for node in self._collected if node.sequence_number >= since)

    def discard_since(self, since: float) -> None:
        """Discard the nodes collected since a sequence number."""
        self._collected = [node for node in self._collected if node.sequence_number < since]

    def select_unused(self, ends: Iterable[Any], stop: Iterable[Any]) -> list[Any]:
        """Return the collected nodes that no result depends on."""
        if not self._collected:
            return []
        used = frozenset(collect_dependencies(ends, _dependencies, stop))
        collected, self._collected = self._collected, []
        unused = [node for node in collected if _operation_of(node) not in used]
        if self.uses_autodiff and unused:
            scatters = [item for item in used if isinstance(item, Value) and _is_scatter(item.function)]
            scatter_indices = frozenset(item.args[position] for item in scatters for position in item.parent_argnums)
            unused = [node for node in unused if not _is_checked_by_scatter(node, scatter_indices)]
        return unused


def _is_scatter(function: object) -> bool:
    """Return whether a function adds at indices."""
    return function is not ops.getitem and function in ops.INDEXING_FUNCTIONS


def _is_checked_by_scatter(node: Any, scatter_indices: frozenset[Any]) -> bool:
    """Return whether a scatter of a derivative checks the indices of an indexing operation."""
    return node.function is ops.getitem and all(
        node.args[position] in scatter_indices for position in node.parent_argnums if position
    )


def _operation_of(node: Any) -> Any:
    """Return the multi-output operation of one of its results; for another node, the node."""
    return node.args[0] if node.args and type(node.args[0]) is MultiOutput else node


def _dependencies(item: object) -> tuple[Any, ...]:
    """Return the operands of an item; none if it depends on a shape alone."""
    is_constant = isinstance(item, Value) and item.function in ops.FILL_VALUES and not item.memory
    return () if is_constant else sources_of(item)


def make_evaluation_guard(nodes: list[Any]) -> EvaluationGuard:
    """Return a guard that makes a program compute some nodes."""
    return EvaluationGuard("the errors of unused results", type(None), tuple(nodes), None, None, 0, next_sequence_number())
