"""How nodes were computed, kept so that a guard about them can be asked when they are gone.

A `Lineage` holds a node weakly and the lineages of its operands, down to the leaves, so that what was only computed to be
asked about is free to die and can still be computed again. A node keeps its lineage: each is made once, whatever is asked
later.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..graph import ConstantNode, Joint, Node, attach, walk

HEAVY = 2**20  # bytes of an array that a lineage holds strongly; a larger one has to live elsewhere


class GoneError(Exception):
    """What a guard was about cannot be computed again."""


class Lineage:
    """How a node or joint was computed.

    Attributes
    ----------
    node : callable
        Gives the node while it lives, else None.
    function, args, options, tick
        Those of the node; nodes among the arguments as lineages, large arrays weakly. A leaf has no function.
    value : array or None
        Of a leaf that no operation can write into, its array.
    root : Lineage or None
        Of a view, that of what it is a view of; see `rooted`.
    log : Log
        Where guards about it stand.
    buffer : Buffer or None
        What was written into the buffer of a root.
    """

    __slots__ = ("args", "buffer", "function", "log", "node", "options", "root", "tick", "value")

    args: tuple[Any, ...]
    buffer: Buffer | None
    function: Any
    log: Any
    node: Callable[[], Any]
    options: dict[str, Any]
    root: Lineage | None
    tick: float
    value: Any

    def rooted(self) -> Lineage:
        """The lineage of the node that first had the buffer."""
        root = self
        while root.root is not None:
            root = root.root
        view = self
        while view.root is not None and view.root is not root:
            view.root, view = root, view.root
        return root

    def sources(self) -> list[Lineage]:
        """What the value hangs on: operands, and what was stored in the buffer; readers of a buffer may be among it."""
        stored = () if self.buffer is None else self.buffer.stored
        return [a for a in (*self.args, *stored) if a.__class__ is Lineage]


class Buffer:
    """The writes into a buffer, as far as they were looked at: how many, when the first was, and lineages of what was stored."""

    __slots__ = ("seen", "stored", "written")

    def __init__(self, written: float) -> None:
        self.seen, self.written = 0, written
        self.stored: list[Lineage] = []


def gathered_up(
    lineages: Iterable[Any], leaf: Callable[[Lineage], Any], together: Callable[[Iterable[Any]], Any]
) -> dict[int, Any]:
    """For lineages and all behind them, by identity, what is said of the leaves behind each, put together by `together`."""
    ordered = in_order(lineages)
    found = {id(lineage): leaf(lineage) for lineage in ordered}
    buffers = any(lineage.buffer for lineage in ordered)
    changed = True
    while changed:  # what was stored in a buffer is younger than it, so once more for each buffer behind another
        changed = False
        for lineage in ordered:
            sources = lineage.sources()
            if sources:
                now = together([found[id(lineage)], *[found[id(a)] for a in sources]])
                changed = changed or (buffers and now != found[id(lineage)])
                found[id(lineage)] = now
    return found


def in_order(lineages: Iterable[Any]) -> list[Lineage]:
    """Lineages and those of all that lies behind them, operands first."""
    return sorted(walk([a for a in lineages if a.__class__ is Lineage], Lineage.sources), key=_leaves_first)


def _leaves_first(lineage: Lineage) -> tuple[bool, float]:
    return lineage.function is not None, lineage.tick


# ------------------------------------------------------------------------------------------- computed again


class Reviver:
    """Makes nodes of lineages: the node itself if it lives, else one computed again from what does."""

    def __init__(self) -> None:
        # By the identity of lineages, which the guards hold: nodes, and when buffers that are gone were written into.
        self._made: dict[int, Any] = {}
        self._until: dict[int, float] = {}

    def revived(self, kept: Any, tick: float) -> Any:
        """An operand of a guard that was made at a tick; raises a GoneError if there is no way."""
        if kept.__class__ is not Lineage:
            return self._operand(kept)
        behind = list(walk([kept], self._needed))
        gone = [lineage for lineage in behind if id(lineage) not in self._made]
        for lineage in sorted(gone, key=_leaves_first):
            written = np.inf if lineage.buffer is None else lineage.buffer.written
            until = min([self._until[id(a)] for a in lineage.args if a.__class__ is Lineage], default=np.inf)
            made = self._again(lineage)
            self._made[id(lineage)], self._until[id(lineage)] = made, min(written, until)
        if self._until[id(kept)] < tick:
            raise GoneError
        return self._made[id(kept)]

    def _needed(self, lineage: Lineage) -> list[Lineage]:
        """What a node that is gone is computed from."""
        if id(lineage) not in self._made:
            node = lineage.node()
            if node is None:
                return [a for a in lineage.args if a.__class__ is Lineage]
            self._made[id(lineage)], self._until[id(lineage)] = node, np.inf
        return []

    def _again(self, lineage: Lineage) -> Any:
        if lineage.function is None:
            if lineage.value is None:
                raise GoneError
            return ConstantNode.hold(lineage.value)
        args = tuple([self._operand(a) for a in lineage.args])
        values = [a.plain if isinstance(a, (Node, Joint)) else a for a in args]
        try:
            with np.errstate(all="ignore"):
                value = lineage.function(*values, **lineage.options)
        except Exception as error:
            raise GoneError from error
        if isinstance(value, (tuple, list)):
            made = next(part for part in attach(value, lineage.function, args, lineage.options) if part is not None).args[0]
        else:
            made = attach(value, lineage.function, args, lineage.options)
        made.tick = lineage.tick
        return made

    def _operand(self, kept: Any) -> Any:
        if kept.__class__ is Lineage:
            return self._made[id(kept)]
        if isinstance(kept, weakref.ref):
            kept = kept()
            if kept is None:
                raise GoneError
        return kept
