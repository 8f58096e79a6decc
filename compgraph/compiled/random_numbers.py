"""Draws of random numbers within a function that is traced: a program would draw the same ones for ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..interception import UNSEEDED, Watching, asking_for_draws, generators_behind, state_of
from .refusals import RefusedError

_REFUSED = "it draws random numbers ({}); draw outside, and pass the numbers as an argument"


def refusing_draws() -> dict[Any, Any]:
    """The changes of a context in which draws that ask raise a RefusedError."""
    return asking_for_draws(_refuse)


def _refuse(name: str, draw: Any, args: Any, kwargs: Any) -> Any:
    raise RefusedError(_REFUSED.format(name if name == UNSEEDED else f"random.{name}"))


class Drawn(Watching):
    """The states of generators that ask nobody, to see whether a function has drawn from them."""

    def __init__(self, f: Any, arguments: Iterable[Any]) -> None:
        self._generators = generators_behind(f, arguments)
        self._before: list[Any] = []
        self._drawn: Any = None

    def begin(self) -> None:
        """Take their states as they are."""
        self._before = [state_of(generator) for generator in self._generators]

    def settle(self) -> None:
        """Remember one that was drawn from since."""
        if self._drawn is None:
            pairs = zip(self._generators, self._before, strict=True)
            self._drawn = next((generator for generator, state in pairs if state_of(generator) != state), None)

    def require_none(self) -> None:
        """Raise a RefusedError if one was drawn from; perhaps by another thread, so that another try may do."""
        if self._drawn is not None:
            raise RefusedError(_REFUSED.format(f"from a {type(self._drawn).__name__}"), is_lasting=False)
