"""Captured state: the values that a function reads besides its arguments, as of its trace.

A program is valid for the traced values of globals, closures, default values and attributes. Before each run these are
compared: named values by identity, arrays and containers by their contents. `state_search` collects them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..context import default_float
from ..interception import generator_state
from .compile_errors import NotCompilableError
from .snapshots import VALUES, ContentSnapshot, Location, compile_comparison, is_unchanged
from .state_search import StateSearch


class CapturedState:
    """Snapshot of the state that some functions, and the values passed to them, can read.

    Parameters
    ----------
    roots : iterable
        The functions and static arguments, each with its name in messages.

    Attributes
    ----------
    rejection : str or None
        Why a function that reads this state is not compiled.
    uses_autodiff : bool
        Whether the state includes functions of `autodiff`.
    default_dtype : dtype or None
        The dtype of Python's numbers (`cg.default_dtype`), if the state includes functions of the two packages.
    """

    def __init__(self, roots: Iterable[tuple[Any, str]]) -> None:
        search = StateSearch(roots)
        self.rejection, self.uses_autodiff, self.default_dtype = search.rejection, search.uses_autodiff, search.default_dtype
        self._locations: dict[Any, Location] = search.locations
        self._contents: list[ContentSnapshot] = search.contents
        self._generator_states: list[tuple[Any, Any, str]] = search.generator_states
        self._compare_locations = compile_comparison(list(self._locations.values()) if self.rejection is None else [])

    def __bool__(self) -> bool:
        return bool(self._locations or self._contents or self.default_dtype is not None)

    def is_current(self) -> bool:
        """Return whether all captured state is unchanged."""
        try:
            is_same = self._compare_locations()
        except (KeyError, AttributeError, ValueError):  # a name was deleted
            is_same = False
        if not is_same and not all(location.is_unchanged() for location in self._locations.values()):
            return False
        for contents in self._contents:
            if not contents.is_current():
                return False
        return self.default_dtype is None or self.default_dtype == default_float()

    def find_change(self, strictly: bool = False) -> str | None:
        """Return the label of the first changed value, or None. If `strictly`, an equal number counts as a change."""
        for location in self._locations.values():
            current_value = location.read()
            if current_value is not location.value and (
                not is_unchanged(current_value, location.value) or (strictly and type(current_value) in VALUES)
            ):
                return location.label
        if self.default_dtype is not None and self.default_dtype != default_float():
            return "cg.default_dtype"
        return next((contents.label for contents in self._contents if not contents.is_current()), None)

    def find_drawn_generator(self) -> str | None:
        """Return the label of a random generator that was drawn from, or None."""
        return next((label for generator, state, label in self._generator_states if generator_state(generator) != state), None)


def require_unchanged(captured: CapturedState, when: str) -> None:
    """Raise a NotCompilableError if a function has changed its captured state."""
    label = captured.find_change(strictly=True)
    if label is not None:
        raise NotCompilableError(f"{label} was changed {when}; side effects are not compiled, so return the new value")
    label = captured.find_drawn_generator()
    if label is not None:  # perhaps by another thread, so another attempt may succeed
        raise NotCompilableError(f"it draws random numbers (from {label}); draw outside, and pass the numbers", is_lasting=False)
