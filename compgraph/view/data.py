"""What is drawn, as plain data: entries, arrows between them, and boxes around them.

A drawing holds texts and no nodes: it shows the graph as it was when the drawing was made, and keeps none of it alive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REST = -1  # in the place of an entry: the nodes that are not drawn


@dataclass
class Entry:
    """A node as it is drawn; `label` is the text on it, `details` what the HTML page shows of it on demand.

    The first line of the label is written larger where it is a `sign`, as ``+``.
    """

    kind: str
    label: str
    details: dict[str, str]
    box: int | None = None
    marked: bool = False
    sign: bool = False


@dataclass
class Arrow:
    """From an operand to the operation that uses it; `again` if it leads from one part of a fold to the next."""

    source: int
    target: int
    label: str = ""
    again: bool = False


@dataclass
class Box:
    """A scope, or (`count` more than 1) one part of the graph, drawn for several equal ones."""

    title: str
    parent: int | None
    count: int = 1
    closed: bool = False


@dataclass
class Drawing:
    """The whole picture; `rest` counts the nodes that are left out, `unseen` the arrows that are left out."""

    entries: list[Entry] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    rest: int = 0
    unseen: int = 0

    @property
    def more(self) -> str:
        """The label that counts what is left out; empty if nothing is."""
        parts = [f"{self.rest} more"] if self.rest else []
        parts += [f"{self.unseen} more {'arrow' if self.unseen == 1 else 'arrows'}"] if self.unseen else []
        return "… " + ", ".join(parts) if parts else ""
