"""Errors and floating-point warnings in rules, with the operation and the user's line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.context import run_isolated, run_isolated_once
from compgraph.frames import warn_user
from compgraph.values import MultiOutput, Value

_DEFAULT_ERRSTATE = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _mark_as_temporary(callback: Any) -> Any:
    """Mark a NumPy error callback, so that `compgraph.context.run_isolated` does not keep it after an interrupt."""
    callback.is_passing = True
    return callback


class DerivativeWarning(RuntimeWarning):
    """A derivative is infinite, undefined or incomplete at the given values.

    It is issued where a rule divides by zero, overflows or computes nan, and for decompositions (``np.linalg.eigh``, ``svd``) of
    matrices with equal or dependent vectors. The message names the operation and its line. Keep values away from the point, or
    mask them: ``np.where(safe, f(x), 0)``. Floating-point errors that ``numpy.errstate`` ignores or raises do not warn.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import autodiff as ad
    >>> with warnings.catch_warnings():
    ...     warnings.filterwarnings("ignore", category=ad.DerivativeWarning)
    ...     float(ad.grad(np.sqrt)(0.0))
    inf
    """

    __module__ = "autodiff"  # the public module


class RuleErrors:
    """A context in which rules run: errors and warnings name the operation and the user's line.

    Floating-point errors warn, except for the kinds of error that the user ignores or raises by ``numpy.errstate``.

    Parameters
    ----------
    function : callable, optional
        The function that is computed, for calls that have no node.
    pending : list, optional
        Collects the errors, each with its operation, until `report`. By default, each warns when it occurs.
    raising : bool
        Whether kinds of error that ``numpy.errstate`` raises are collected too, and raised by `report`.
    log : list, optional
        For each contribution, a sweep appends the sequence number of its node; 0 for one without a node of its own.

    Attributes
    ----------
    current_node : Node, MultiOutput or None
        The operation whose rule runs.
    rule_calls : list of (int, Node or MultiOutput)
        The nodes whose rules a recorded sweep calls, each with a sequence number from before the call; see
        `compgraph.frames.set_lines_of_rules`.
    """

    __slots__ = ("_errstate", "_raised", "current_node", "function", "log", "pending", "rule_calls")

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        pending: list[Any] | None = None,
        raising: bool = False,
        log: list[int] | None = None,
    ) -> None:
        self.current_node: Any = None
        self.function, self.pending, self.log = function, pending, log
        self.rule_calls: list[tuple[int, Any]] = []
        actions = np.geterr()
        self._raised: Sequence[str] = ()
        if actions == _DEFAULT_ERRSTATE:  # a fast path: the code below takes as long as a small rule
            self._errstate: Any = np.errstate(call=self._warn, divide="call", over="call", invalid="call")
            return
        self._raised = [kind for kind, action in actions.items() if action == "raise"] if raising else ()
        call_actions: dict[str, Any] = {
            kind: "call" for kind, action in actions.items() if action == "warn" or kind in self._raised
        }
        self._errstate = np.errstate(call=self._warn, **call_actions)

    def __enter__(self) -> RuleErrors:
        self._errstate.__enter__()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._errstate.__exit__(kind, error, traceback)
        if isinstance(error, Exception) and self.current_node is not None:
            operands = [a for a in self.current_node.args if not isinstance(a, MultiOutput)]
            shapes = ", ".join(str(np.shape(a.raw_value if isinstance(a, Value) else a)) for a in operands)
            error.add_note(
                f"in the derivative of {self.current_node.opname}, whose operands have shapes {shapes}{self._location()}"
            )
        # Break a reference cycle, so that graphs are freed without the garbage collector.
        self.current_node = self._errstate = None

    def run(self, function: Callable[..., Any], *args: object) -> Any:
        """Call a function within this context."""
        return run_isolated(self._run, function, args)

    def run_once(self, function: Callable[..., Any], *args: object) -> Any:
        """Call a single operation within this context."""
        return run_isolated_once(self._run, function, args)

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with self:
            return function(*args)

    @property
    def has_invalid(self) -> bool:
        """Whether an invalid operation was encountered."""
        return bool(self.pending) and any(error.startswith("invalid") for error, _ in self.pending)  # type: ignore[union-attr]

    def report(self) -> None:
        """Warn of the pending errors, or raise them."""
        if not self.pending:
            return
        for error, node in self.pending:
            self.current_node = node
            if any(error.startswith(kind) for kind in self._raised):
                raise FloatingPointError(self._message(error))
            warn_user(self._message(error), DerivativeWarning)
        self.current_node = None

    def _location(self) -> str:
        line = self.current_node.line if self.current_node is not None else None
        return f"\n{line}" if line else ""

    @_mark_as_temporary
    def _warn(self, error: str, flag: int) -> None:
        if self.pending is not None:
            self.pending.append((error, self.current_node))
        else:
            warn_user(self._message(error), DerivativeWarning)

    def _message(self, error: str) -> str:
        opname = self.current_node.opname if self.current_node is not None else ops.opname_of(self.function)
        if self.current_node is not None and "of" in self.current_node.options:  # a step of the derivative of another operation
            opname = f"the derivative of {self.current_node.options['of']}"
        return (
            f"{error} in the derivative of {opname}: it is infinite or undefined at this value. Keep the value away from the "
            f"point, or mask it: np.where(safe, f(x), 0), f(x)[safe]{self._location()}"
        )
