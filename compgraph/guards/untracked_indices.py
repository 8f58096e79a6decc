"""Integer and boolean results that no operation reads. They may have indexed a plain array, where NumPy does not dispatch.

``K[np.argsort(x)]`` of a plain `K`, and ``np.take(K, np.argmax(x))``, return plain numbers, which the graph treats as constants.
Operands of operations and arguments of guards are tracked. Every other integer or boolean result gets an `UntrackedGuard`. A
replay computes the result too, and warns if it differs.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ..frames import warn_user
from ..storage import value_at
from ..values import TRACKED_CLASS_OF, VariableNode, describe, on_untracked_freed, untracked
from .guard import Guard, GuardError, GuardWarning, contents
from .guard_logs import append_to_log, append_without_blocking
from .recipes import sort_recipes


@dataclass(eq=False, slots=True)
class UntrackedGuard(Guard):
    """A guard that warns once instead of raising.

    Attributes
    ----------
    is_read : bool
        Whether an operation has read the node since.
    is_strict : bool
        Whether it raises instead of warning.
    warnings_given : list of bool
        Not empty once it has warned; shared with its copies for other nodes (`Guard.with_args`).
    """

    is_read: bool = False
    is_strict: bool = False
    warnings_given: list[bool] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        """False, because a graph does not depend on values read after its last operation."""
        return False

    def check(self, *values: object) -> None:
        """Compare the recorded value with that for plain values of `args`, and warn or raise if it differs."""
        assert self.function is not None
        if (self.is_strict or not self.warnings_given) and self.function(*values) != self.recorded:
            self.warn_once("it differs from the recorded value")

    def warn_once(self, problem: str) -> None:
        """Warn once that constants of the graph may be wrong for the values of this run; raise if the guard is strict."""
        message = (
            f"no operation of the graph reads {self}, and with these values {problem}. A plain array that was indexed by it "
            "is not indexed again: index a node, as in cg.constant(K)[i]. If the value is only printed, compute it after the "
            "graph is complete"
        )
        if self.is_strict:
            error = GuardError(message)
            error.is_untracked = True
            raise error
        if not self.warnings_given:
            self.warnings_given.append(True)
            warn_user(message, GuardWarning)


@dataclass(eq=False, slots=True)
class UnchangedGuard(Guard):
    """A guard that warns once if variables outside of a graph changed after their numbers left it.

    Attributes
    ----------
    variables : tuple of weakref
        The variables behind the numbers. Freed ones cannot change.
    is_strict : bool
        Whether it raises instead of warning.
    warnings_given : list of bool
        Not empty once it has warned.
    """

    variables: tuple[Any, ...] = ()
    is_strict: bool = False
    warnings_given: list[bool] = field(default_factory=list)

    def check(self, *values: object) -> None:
        """Warn or raise if a variable was written after its numbers left the graph."""
        changed = [
            node for variable in self.variables if (node := variable()) is not None and node.sequence_number > self.recorded
        ]
        if not changed or (self.warnings_given and not self.is_strict):
            return
        message = (
            f"while the graph was recorded, {self} gave numbers of the {describe(changed[0])}, which has changed since. "
            "Uses of these numbers are not repeated. Compute with the node itself, or record the graph again"
        )
        if self.is_strict:
            raise GuardError(message)
        self.warnings_given.append(True)
        warn_user(message, GuardWarning)


def make_unchanged_guard(guard: Guard, is_strict: bool) -> UnchangedGuard | None:
    """Make a guard that the variables behind a leak, which are not in the graph, are unchanged; None if they were freed."""
    leaves = [recipe.node() for recipe in sort_recipes(guard.args) if not recipe.args]
    variables = tuple([weakref.ref(leaf) for leaf in leaves if isinstance(leaf, VariableNode)])
    if not variables:
        return None
    number, line = guard.sequence_number, (guard.code, guard.instruction)
    return UnchangedGuard(guard.description, None, (), number, *line, number, variables=variables, is_strict=is_strict)


def _make_untracked_guard(node: Any) -> UntrackedGuard:
    """Make the guard of an unread node, on its value before any write."""
    value = value_at(node, node.sequence_number) if node.memory else node.raw_value
    description, number = f"the result of {node.opname}", node.sequence_number + 0.25  # between the node and the next operation
    return UntrackedGuard(description, contents, (node,), contents(value), node.code, node.instruction, number)


def log_untracked() -> None:
    """Log guards of all existing nodes that nothing has read yet."""
    for key in tuple(untracked):
        reference = untracked.get(key)
        node = reference() if type(reference) is weakref.ref else None
        if node is not None and hasattr(node, "code") and hasattr(node, "instruction"):  # another thread may still record it
            guard = untracked[key] = _make_untracked_guard(node)
            append_to_log(guard)
            guard.is_read = type(node) not in TRACKED_CLASS_OF  # another thread may have read it meanwhile


def _log_freed(node: NDArray[Any]) -> None:
    if not sys.is_finalizing():
        append_without_blocking(_make_untracked_guard(node))


on_untracked_freed.append(_log_freed)
