"""Which vmaps are at work around the code that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from compgraph.context import Setting, layered_variable, scope_change, wrappers
from compgraph.context import next_level as next_level

# (level, how many examples), the outermost first.
vmaps: ContextVar[tuple[tuple[int, int], ...]] = layered_variable("vmaps", ())
_alive: list[int] = []  # the levels of the vmaps, of all threads, that have not returned; as often as they were stepped into


class Alive:
    """A context in which values of vmaps of some levels may be computed with: until these return, or are stepped into again."""

    __slots__ = ("_levels",)

    def __init__(self, levels: Iterable[int]) -> None:
        self._levels = tuple(levels)

    def __enter__(self) -> None:
        _alive.extend(self._levels)  # one step, which no other thread divides

    def __exit__(self, *exception: object) -> None:
        for level in self._levels:
            _alive.remove(level)


def require_alive(level: int) -> None:
    """Raise for a value of a vmap that has returned, which means nothing any more."""
    if level not in _alive:
        raise TypeError(
            "vmap: a value of a vmap that has returned is used here; a function given to vmap must not keep values for later (in "
            "a list, an attribute, a cache), but return them"
        )


def setting(title: str, level: int, count: int, wrap: Callable[[Any], Any], draws: dict[ContextVar[Any], Any]) -> Setting:
    """The context in which a function runs for many examples: arrays that it makes are wrapped, and pictures draw a box.

    `draws` are the changes by which somebody is asked where the function draws random numbers.
    """
    changes: dict[ContextVar[Any], Any] = {vmaps: (*vmaps.get(), (level, count)), wrappers: (*wrappers.get(), wrap)}
    return Setting({**changes, **scope_change(title), **draws})


def only_around(depth: int) -> Setting:
    """The context of the outermost vmaps around alone."""
    return Setting({vmaps: vmaps.get()[:depth]})


def one_of(level: int) -> Setting:
    """The context in which one example of a vmap is computed by itself: arrays that are made are not others for each."""
    return Setting({vmaps: (), wrappers: tuple([w for w in wrappers.get() if getattr(w, "level", None) != level])})


def outside() -> Setting:
    """The context in which arrays with the axis of examples are arrays like others."""
    return Setting({vmaps: ()})
