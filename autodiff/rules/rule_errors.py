"""What goes wrong in a rule: in which operation it was, and where the user called that."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.context import run_isolated, run_isolated_once
from compgraph.values import MultiOutput, Value

_AS_EVER = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _passing(called: Any) -> Any:
    """Mark what NumPy calls at an error: it is set for one operation alone; see `compgraph.context.apart`."""
    called.is_passing = True
    return called


class RuleErrors:
    """A context in which rules run: what goes wrong says in which operation, and where the user called it.

    Floating-point errors warn; kinds of error that the user has set to be ignored or raised (``numpy.errstate``) stay so.

    Parameters
    ----------
    function : callable, optional
        What is computed, where there is no node.
    met : list, optional
        Where errors wait until they are told of, with the operations they were met in.
    raising : bool
        Whether those wait too that are to be raised.
    log : list, optional
        Where a sweep puts, for each contribution in their order, the sequence number of its node; 0 if it has none.

    Attributes
    ----------
    at : Node, MultiOutput or None
        The operation whose rule runs.
    reached : list of (int, Node or MultiOutput)
        Where a sweep that is recorded puts the nodes whose rules it asks, each with a sequence number from before; see
        `compgraph.frames.set_lines_of_rules`.
    """

    __slots__ = ("_errstate", "_raised", "at", "function", "log", "met", "reached")

    def __init__(
        self, function: Any = None, met: list[Any] | None = None, raising: bool = False, log: list[int] | None = None
    ) -> None:
        self.at: Any = None
        self.function, self.met, self.log = function, met, log
        self.reached: list[tuple[int, Any]] = []
        set_to = np.geterr()
        self._raised: Sequence[str] = ()
        if set_to == _AS_EVER:  # what follows takes as long as a small rule
            self._errstate: Any = np.errstate(call=self._warn, divide="call", over="call", invalid="call")
            return
        self._raised = [kind for kind, action in set_to.items() if action == "raise"] if raising else ()
        kinds: dict[str, Any] = {k: "call" for k, action in set_to.items() if action == "warn" or k in self._raised}
        self._errstate = np.errstate(call=self._warn, **kinds)

    def __enter__(self) -> RuleErrors:
        self._errstate.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._errstate.__exit__(kind, error, traceback)
        if isinstance(error, Exception) and self.at is not None:
            operands = [a for a in self.at.args if not isinstance(a, MultiOutput)]
            shapes = ", ".join(str(np.shape(a.raw_value if isinstance(a, Value) else a)) for a in operands)
            error.add_note(f"in the derivative of {self.at.opname}, whose operands have shapes {shapes}{self._place()}")
        self.at = self._errstate = None  # it refers to this object, and no graph should wait for the garbage collector

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function within this context."""
        return run_isolated(self._run, function, args)

    def run_once(self, function: Callable[..., Any], *args: Any) -> Any:
        """The same for a single operation."""
        return run_isolated_once(self._run, function, args)

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with self:
            return function(*args)

    @property
    def invalid(self) -> bool:
        """Whether an invalid operation was met."""
        return bool(self.met) and any(error.startswith("invalid") for error, _ in self.met)  # type: ignore[union-attr]

    def tell(self) -> None:
        """Warn of, or raise, the errors that wait."""
        if not self.met:
            return
        for error, at in self.met:
            self.at = at
            if any(error.startswith(kind) for kind in self._raised):
                raise FloatingPointError(self._told(error))
            warnings.warn(self._told(error), RuntimeWarning, stacklevel=4)
        self.at = None

    def _place(self) -> str:
        line = self.at.line if self.at is not None else None
        return f"\n{line}" if line else ""

    @_passing
    def _warn(self, error: str, flag: int) -> None:
        if self.met is not None:
            self.met.append((error, self.at))
        else:
            warnings.warn(self._told(error), RuntimeWarning, stacklevel=2)

    def _told(self, error: str) -> str:
        opname = self.at.opname if self.at is not None else ops.opname_of(self.function)
        if self.at is not None and "of" in self.at.options:  # it is a step in the derivative of another operation
            opname = f"the derivative of {self.at.options['of']}"
        return (
            f"{error} in the derivative of {opname}: it is infinite or undefined at this value. Keep the value away from the "
            f"point, or leave it out of what is differentiated: np.where(safe, f(x), 0), f(x)[safe]{self._place()}"
        )
