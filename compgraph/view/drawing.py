"""What is drawn of a graph: its entries, the arrows between them, and the boxes around them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..graph import GraphNode
from ..storage import Write
from ..values import ConstantNode, Node, Value
from . import short_texts
from .labels import Labels, is_array_to_fill, merged
from .repeats import Fold, folds_of, shared
from .write_history import Item, Steps, Uses, steps_behind, value_then

FOLDED_FROM = 60  # nodes; smaller graphs are drawn as they are unless folding is asked for
SIDE_BY_SIDE = 8  # arrows from one entry to another; more are drawn as one that counts them
ARROWS = 8  # at most so many for each node of the limit, on average: a dense graph of n nodes has about n**2

Path: TypeAlias = tuple[str | int, ...]  # the boxes around an entry, outermost first: names of scopes, numbers of folds


@dataclass
class Traced:
    """A drawing; the entry of each node in it, and the arrow of each ``(operation, position of the operand)``."""

    drawing: Drawing
    places: dict[Item, int]
    arrows: dict[tuple[Item, int], int]


def traced_drawing(
    output: Node,
    limit: int | None,
    mark: GraphNode | None,
    shown: Shown,
    adjoints: Mapping[Any, Any] | None,
    scopes: str | Iterable[str],
    fold: bool | None,
) -> Traced:
    """Decide what is drawn of the graph that ends at `output`; the arguments are those of `visualize_at`."""
    steps = steps_behind(output)
    uses = steps.uses
    folds = folds_of(uses) if fold or (fold is None and len(uses) > FOLDED_FROM) else []
    parts = [_drawn_part(each, mark) for each in folds]
    images = {
        node: drawn for each, part in zip(folds, parts, strict=True) for other in each.parts if other is not part
        for node, drawn in zip(other, part, strict=True)
    }  # fmt: skip
    visible = [node for node in uses if node not in images]
    places = {node: place for place, node in enumerate(visible[:limit])}
    drawing = Drawing(rest=len(visible) - len(places))
    drawing.entries = entries_of(places, steps, shown, mark, _like(folds, parts, places))
    paths = _paths(places, folds, parts)
    _add_boxes(drawing, paths, folds, _closed(scopes, visible), limit)
    arrows = _add_arrows(drawing, uses, places, images, folds, limit)
    if adjoints is not None:
        _add_adjoints(drawing, uses, places, arrows, adjoints)
    return Traced(drawing, places, arrows)


def _drawn_part(fold: Fold, mark: GraphNode | None) -> list[Item]:
    """The part that is drawn: the one with the marked node, or the last."""
    return next((part for part in fold.parts if mark in part), fold.parts[-1]) if mark is not None else fold.parts[-1]


def _like(folds: list[Fold], parts: list[list[Item]], places: dict[Item, int]) -> dict[Item, list[Item]]:
    """For each item of a drawn part those that it stands for, its like in each part."""
    pairs = [(node, like) for fold, part in zip(folds, parts, strict=True) for node, *like in zip(part, *fold.parts, strict=True)]
    return {node: like for node, like in pairs if node in places}


# ------------------------------------------------------------------------------------------------ boxes


def _paths(places: dict[Item, int], folds: list[Fold], parts: list[list[Item]]) -> dict[int, Path]:
    """For each entry in a box, the boxes around it; a fold stands inside the scopes that all of its parts are in."""
    paths: dict[int, Path] = {place: node.scope for node, place in places.items() if node.scope}
    for number, (fold, part) in enumerate(zip(folds, parts, strict=True)):
        scopes = [node.scope for each in fold.parts for node in each]
        common = shared(min(scopes), max(scopes))
        for node in part:
            if node in places:
                paths[places[node]] = (*node.scope[:common], number, *node.scope[common:])
    return paths


def _add_boxes(drawing: Drawing, paths: dict[int, Path], folds: list[Fold], closed: set[str] | bool, limit: int | None) -> None:
    """Number the boxes, outer ones first, and put the entries into them. Beyond `limit` boxes, inner ones are left out."""
    numbers: dict[Path, int] = {}
    for place, path in sorted(paths.items()):
        for depth in range(1, len(path) + 1):
            if path[:depth] in numbers:
                continue
            if limit is not None and len(numbers) >= limit:
                path = path[: depth - 1]
                break
            last, parent = path[depth - 1], numbers.get(path[: depth - 1])
            numbers[path[:depth]] = len(drawing.boxes)
            if isinstance(last, int):
                count = len(folds[last].parts)
                drawing.boxes.append(Box(f"× {count}", parent, count))
            else:
                name = "/".join(each for each in path[:depth] if isinstance(each, str))
                drawing.boxes.append(Box(last, parent, closed=closed if isinstance(closed, bool) else name in closed))
        drawing.entries[place].box = numbers.get(path)


def _closed(scopes: str | Iterable[str], visible: list[Item]) -> set[str] | bool:
    """The names of the scopes that are closed; True if all are, False if none is."""
    if isinstance(scopes, str):
        if scopes not in ("open", "closed"):
            raise ValueError(f"scopes must be 'open', 'closed', or a list of the scopes that are closed, not {scopes!r}")
        return scopes == "closed"
    known = {"/".join(node.scope[:depth]) for node in visible for depth in range(1, len(node.scope) + 1)}
    closed = set(scopes)
    if closed - known:
        raise ValueError(
            f"no scope is called {', '.join(map(repr, sorted(closed - known)))}; those in the picture: "
            f"{', '.join(map(repr, sorted(known))) or 'none'}. Equal scopes in a row are drawn once, unless fold=False"
        )
    return closed


# ----------------------------------------------------------------------------------------------- arrows


def _add_arrows(
    drawing: Drawing,
    uses: Uses,
    places: dict[Item, int],
    images: dict[Item, Item],
    folds: list[Fold],
    limit: int | None,
) -> dict[tuple[Item, int], int]:
    """Add an arrow for each use of an operand.

    Nodes of parts that are not drawn are replaced by their counterparts (`images`) in the drawn one; equal arrows are added once.
    """
    part_of = {node: (number, k) for number, fold in enumerate(folds) for k, part in enumerate(fold.parts) for node in part}
    arrows: dict[tuple[Item, int], int] = {}
    known: set[tuple[int, int, bool]] = set()
    most = math.inf if limit is None else ARROWS * limit
    for node, place in places.items():
        found = [_arrow(node, operand, place, places, images, part_of) for operand in uses[node]]
        numbers: dict[int, int] = {}
        for position, arrow in enumerate(found if limit is None else _side_by_side(found)):
            known.add((arrow.source, arrow.target, arrow.again))
            if id(arrow) in numbers:
                arrows[node, position] = numbers[id(arrow)]
            elif len(drawing.arrows) < most:
                arrows[node, position] = numbers[id(arrow)] = len(drawing.arrows)
                drawing.arrows.append(arrow)
            else:
                drawing.unseen += 1
    for node, image in images.items():
        for operand in uses[node] if image in places else ():
            if operand in part_of and part_of[operand] == part_of[node]:
                continue  # within a part: the drawn part has the same arrow
            arrow = _arrow(node, operand, places[image], places, images, part_of)
            if (arrow.source, arrow.target, arrow.again) not in known:
                known.add((arrow.source, arrow.target, arrow.again))
                if len(drawing.arrows) < most:
                    drawing.arrows.append(arrow)
                else:
                    drawing.unseen += 1
    return arrows


def _side_by_side(found: list[Arrow]) -> list[Arrow]:
    """The arrows to one entry; more than `SIDE_BY_SIDE` from the same entry are replaced by one that counts them."""
    counts = Counter((arrow.source, arrow.again) for arrow in found)
    one: dict[tuple[int, bool], Arrow] = {}
    for arrow in found:
        way = arrow.source, arrow.again
        if counts[way] > SIDE_BY_SIDE:
            one.setdefault(way, arrow).label = f"× {counts[way]}"
    return [one.get((arrow.source, arrow.again), arrow) for arrow in found]


def _arrow(
    node: Item,
    operand: Item,
    place: int,
    places: dict[Item, int],
    images: dict[Item, Item],
    part_of: dict[Item, tuple[int, int]],
) -> Arrow:
    here, there = part_of.get(node), part_of.get(operand)
    again = here is not None and there is not None and here[0] == there[0] and here[1] != there[1]
    return Arrow(places.get(images.get(operand, operand), REST), place, again=again)


def _add_adjoints(
    drawing: Drawing,
    uses: Uses,
    places: dict[Item, int],
    arrows: dict[tuple[Item, int], int],
    adjoints: Mapping[Any, Any],
) -> None:
    """Write each adjoint on the one arrow out of its node, or on the node itself if no arrow or several leave it."""
    known = {node: adjoints[node] for node in uses if isinstance(node, Value) and node in adjoints}
    if not known:
        raise ValueError("none of the adjoints belongs to a node of this graph; give a mapping from nodes to adjoints")
    ways: dict[Item, list[tuple[Item, int]]] = {}
    for node, operands in uses.items():
        for position, operand in enumerate(operands):
            ways.setdefault(operand, []).append((node, position))
    for node, adjoint in known.items():
        value = adjoint.value if isinstance(adjoint, Value) else adjoint
        if node in places:
            drawing.entries[places[node]].details["adjoint"] = short_texts.shown(value, elements=24, digits=6)
        out = ways.get(node, [])
        if len(out) == 1 and out[0] in arrows and node in places:
            drawing.arrows[arrows[out[0]]].label = short_texts.brief(value)
        elif node in places:
            drawing.entries[places[node]].label += f"\n∂ = {short_texts.brief(value)}"


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


@dataclass(frozen=True)
class Shown:
    """What is written on the entries besides operation and name."""

    values: bool = False
    shapes: bool = False
    dtypes: bool = False
    lines: bool = False


def entries_of(
    places: dict[Item, int], steps: Steps, shown: Shown, mark: GraphNode | None, like: dict[Item, list[Item]]
) -> list[Entry]:
    """An entry for each step that is drawn; the label of one that stands for several (`like`) says so."""
    labels = Labels(steps)
    # Automatic names get their numbers when they are first asked for: the oldest first, so that they follow the computation.
    texts = {item: labels.label(item) for item in sorted(places, key=lambda item: item.sequence_number)}
    for item, others in like.items():
        lines = [labels.label(other).split("\n") for other in others]
        if len({len(each) for each in lines}) == 1:
            texts[item] = "\n".join(merged(list(each)) for each in zip(*lines, strict=True))
    return [_entry(item, texts[item], labels, shown, item is mark) for item in places]


def _entry(item: Item, label: str, labels: Labels, shown: Shown, marked: bool) -> Entry:
    value = value_then(item)
    details = {
        "title": labels.title(item),
        "name": (short_texts.chosen_name(item) or "") if isinstance(item, Value) else "",
        "opname": item.opname or "",
        "formula": labels.formula(item),
        "value": "" if value is None else short_texts.shown(value, elements=24, digits=6),
        "shape": "" if value is None else str(getattr(value, "shape", ())),
        "dtype": "" if value is None else str(getattr(value, "dtype", type(value).__name__)),
        "line": short_texts.place_of(item.line),
        "code": short_texts.code_of(item.line),
    }
    extra = [short_texts.shown(value)] if shown.values and value is not None else []
    extra += [details["shape"]] if shown.shapes else []
    extra += [details["dtype"]] if shown.dtypes else []
    extra += [details["line"]] if shown.lines else []
    lines = [label, *(each for each in extra if each and each != label)]
    return Entry(_kind(item), "\n".join(lines), details, marked=marked, sign=labels.is_sign(item))


def _kind(item: Item) -> str:
    if isinstance(item, ConstantNode) or (isinstance(item, Value) and is_array_to_fill(item)):
        return "constant"
    if isinstance(item, Write):
        return "write"
    return "operation" if item.opname is not None else "variable"
