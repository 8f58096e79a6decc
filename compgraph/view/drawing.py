"""Drawings: the entries of a graph, the arrows between them and the boxes around them, as plain data.

A drawing holds texts and no nodes. It shows the graph at the time the drawing was made, and keeps none of it alive. Equal
consecutive parts of a graph (layers, iterations of a loop) can be drawn once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..graph import GraphNode
from ..storage import Write
from ..values import ConstantNode, Node, PlaceholderNode, Value
from .labels import (
    Labels,
    chosen_name,
    format_array,
    format_brief,
    is_array_to_fill,
    merge_labels,
    short_location,
    source_text,
)
from .write_history import Item, Steps, Uses, steps_behind, value_at_creation

MAX_LENGTH = 200  # operations in a part
MIN_PARTS = 3  # parts of a fold
MAX_SEARCHED = 50_000  # nodes, those nearest to the output


@dataclass
class Fold:
    """Consecutive equal parts, which are drawn once: for each part its nodes, in the same order."""

    parts: list[list[Item]]


def find_folds(uses: Uses) -> list[Fold]:
    """Return the consecutive equal parts of a graph. Of overlapping folds, the one that hides most nodes is chosen.

    Two parts are equal if they have the same operations, in the order in which they were recorded, with results of the same
    shape and dtype, and if each operand was recorded the same number of operations before, or is the same node. A leaf belongs
    to the part that uses it first, unless its uses are more than 200 operations apart.

    Parameters
    ----------
    uses : dict
        The nodes of the graph and their operands, the nearest to the output first.

    Returns
    -------
    list of Fold
    """
    near = list(uses)[:MAX_SEARCHED]
    operations = sorted((node for node in near if uses[node]), key=lambda node: node.sequence_number)
    positions = {node: position for position, node in enumerate(operations)}
    first_uses, last_uses = _use_spans(operations, positions, uses)
    local_nodes = {node for node in first_uses if last_uses[node] - first_uses[node] <= MAX_LENGTH}
    # In a short loop, a leaf that all iterations use is near all of its uses, but belongs to none of them.
    operands = [operand for node in operations for operand in uses[node]]
    counts = Counter(operand for operand in operands if operand in local_nodes and operand not in positions)
    shared_leaves = {leaf for leaf, count in counts.items() if count >= MIN_PARTS}
    candidates = [
        _FoldSearch(uses, operations, positions, first_uses, nodes).folds()
        for nodes in ([local_nodes, local_nodes - shared_leaves] if shared_leaves else [local_nodes])
    ]
    return max(candidates, key=lambda folds: sum(len(part) for fold in folds for part in fold.parts[1:]))


def _use_spans(operations: list[Item], positions: dict[Item, int], uses: Uses) -> tuple[dict[Item, int], ...]:
    """For each node, return two positions among the operations: creation (for a leaf, first use) and last use."""
    first_uses, last_uses = dict(positions), dict(positions)
    for position, node in enumerate(operations):
        for operand in uses[node]:
            first_uses.setdefault(operand, position)
            last_uses[operand] = position
    return first_uses, last_uses


@dataclass(frozen=True)
class _FoldSearch:
    """A search for consecutive equal parts. Nodes in `local_nodes` belong to one part; all parts share the other nodes."""

    uses: Uses
    operations: list[Item]
    positions: dict[Item, int]
    first_uses: dict[Item, int]
    local_nodes: set[Item]

    def folds(self) -> list[Fold]:
        """Return the folds; they do not overlap."""
        codes: dict[Any, int] = {}
        keys = np.array([codes.setdefault(self._equality_key(node), len(codes)) for node in self.operations], dtype=np.int64)
        folds = []
        for start, period, count in _find_repetitions(keys, [getattr(node, "scope", ()) for node in self.operations]):
            parts = [self.operations[start + k * period : start + (k + 1) * period] for k in range(count)]
            folds.append(Fold([self._with_leaves(part) for part in parts]))
        return folds

    def _equality_key(self, node: Item) -> Any:
        """Return a key that equal operations share; see `find_folds`."""
        operands = []
        for operand in self.uses[node]:
            distance = self.positions[node] - self.first_uses[operand]
            operands.append((operand in self.positions, distance) if operand in self.local_nodes else id(operand))
        return node.opname, *_part_kind(node), *operands, *map(_part_kind, self.uses[node])

    def _with_leaves(self, part: list[Item]) -> list[Item]:
        """Return the operations of a part, each after the leaves that it uses first."""
        items: dict[Item, None] = {}
        for node in part:
            for operand in self.uses[node]:
                is_local_leaf = operand in self.local_nodes and operand not in self.positions
                if is_local_leaf and self.first_uses[operand] == self.positions[node]:
                    items[operand] = None
            items[node] = None
        return list(items)


def _part_kind(node: Item) -> tuple[Any, ...]:
    return type(node), getattr(node, "shape", None), getattr(node, "dtype", None)


def _find_repetitions(keys: np.ndarray[Any, Any], scopes: list[Any]) -> list[tuple[int, int, int]]:
    """Return start, period and count of repetitions that do not overlap."""
    candidates = []
    for period in range(1, min(MAX_LENGTH, len(keys) // MIN_PARTS) + 1):
        for start, length in _true_runs(keys[period:] == keys[:-period], period * (MIN_PARTS - 1)):
            start, count = _align_repetition(start, length + period, period, scopes)
            if count >= MIN_PARTS:
                candidates.append(((count - 1) * period, -period, start, count))
    is_covered = np.zeros(len(keys), dtype=bool)
    repetitions = []
    for _, negative_period, start, count in sorted(candidates, reverse=True):
        span = slice(start, start - negative_period * count)
        if not is_covered[span].any():
            is_covered[span] = True
            repetitions.append((start, -negative_period, count))
    return repetitions


def _true_runs(is_equal: np.ndarray[Any, Any], min_length: int) -> Iterator[tuple[int, int]]:
    """Yield start and length of the runs of True of at least `min_length`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_equal, [False]]).astype(np.int8)))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    long = lengths >= min_length
    yield from zip(starts[long].tolist(), lengths[long].tolist(), strict=True)


def _align_repetition(start: int, length: int, period: int, scopes: list[Any]) -> tuple[int, int]:
    """Return start and count of a repetition whose parts begin with a scope: the outermost that begins in the first part."""
    best, fewest = 0, math.inf
    for shift in range(min(period, length) if start else 0):
        here, before = scopes[start + shift], scopes[start + shift - 1]
        if here != before and common_length(here, before) < fewest:
            best, fewest = shift, common_length(here, before)
    return start + best, (length - best) // period


def common_length(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of outermost names that two scopes share."""
    differing = (i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))


# Names of the kinds of entries in legends and tooltips. Writes are drawn as operations.
KINDS = {
    "variable": "variable", "placeholder": "placeholder", "constant": "constant", "operation": "operation",
    "write": "write in place", "called": "left to NumPy", "result": "result", "cotangent": "cotangent",
}  # fmt: skip
OMITTED = -1  # as the source of an arrow: the nodes that are not drawn
FOLDED_FROM = 60  # nodes; smaller graphs are folded only on request
MAX_PARALLEL = 8  # arrows from one entry to another; more are drawn as one with a count
ARROWS_PER_NODE = 8  # of the limit, on average: a dense graph of n nodes has about n**2

Path: TypeAlias = tuple[str | int, ...]  # the boxes around an entry, outermost first: names of scopes, numbers of folds


@dataclass
class Entry:
    """A drawn node.

    Attributes
    ----------
    kind : str
        A key of `KINDS`, except for "cotangent".
    label : str
        The text on it.
    details : dict
        Further texts, which a page shows on demand.
    box : int or None
        The number of the box around it.
    marked : bool
        Whether it has a red frame.
    has_symbol : bool
        Whether the first line of the label is a symbol such as ``+``, which is written larger.
    slot : str
        The longest text for which an animation reserves space below the label.
    """

    kind: str
    label: str
    details: dict[str, str]
    box: int | None = None
    marked: bool = False
    has_symbol: bool = False
    slot: str = ""

    @property
    def tooltip(self) -> str:
        """The title, shape and dtype, value and line of code, one below the other."""
        title, shape, dtype, value, line, code = (
            self.details.get(key, "") for key in ("title", "shape", "dtype", "brief", "line", "code")
        )
        texts = title, f"{shape} {dtype}".strip(), value if value != title else "", f"{line}: {code}" if code else line
        return "\n".join(filter(None, texts))


@dataclass
class Arrow:
    """An arrow from an operand to an operation. A `loop_carried` one leads from one part of a fold to the next."""

    source: int
    target: int
    label: str = ""
    loop_carried: bool = False


@dataclass
class Box:
    """A scope, or one part of the graph that represents `count` equal parts."""

    title: str
    parent: int | None
    count: int = 1
    closed: bool = False


@dataclass
class Drawing:
    """The entries, arrows and boxes of a picture, with the counts of omitted nodes and arrows."""

    entries: list[Entry] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    omitted_nodes: int = 0
    omitted_arrows: int = 0

    @property
    def omission_label(self) -> str:
        """The label that counts the omitted nodes and arrows; empty if none."""
        nodes, arrows = self.omitted_nodes, self.omitted_arrows
        parts = [f"{nodes} more"] if nodes else []
        parts += [f"{arrows} more {'arrow' if arrows == 1 else 'arrows'}"] if arrows else []
        return "… " + ", ".join(parts) if parts else ""

    @property
    def legend(self) -> dict[str, str]:
        """The kinds that are drawn, and their names, in the order of `KINDS`."""
        kinds = {"operation" if entry.kind == "write" else entry.kind for entry in self.entries}
        kinds |= {"cotangent" for entry in self.entries if entry.details.get("cotangent")}
        return {kind: name for kind, name in KINDS.items() if kind in kinds}

    def page_data(self, direction: str, legend: bool = True) -> dict[str, object]:
        """Return the data of an HTML page of the kind "graph"."""
        data = {**asdict(self), "tooltips": [entry.tooltip for entry in self.entries], "more": self.omission_label}
        return {**data, "direction": direction, "kinds": KINDS, "legend": list(self.legend) if legend else []}


@dataclass(frozen=True)
class ExtraTexts:
    """Additional texts on entries, besides operation and name."""

    values: bool = False
    shapes: bool = False
    dtypes: bool = False
    lines: bool = False


@dataclass
class GraphDrawing:
    """A drawing, with the entry number of each node, and the arrow number of each ``(operation, operand position)``."""

    drawing: Drawing
    numbers: dict[Item, int]
    arrows: dict[tuple[Item, int], int]


def draw_graph(
    output: Node,
    limit: int | None = None,
    mark: GraphNode | None = None,
    extra_texts: ExtraTexts = ExtraTexts(),
    cotangents: Mapping[Any, Any] | None = None,
    scopes: str | Iterable[str] = "open",
    fold: bool | None = False,
) -> GraphDrawing:
    """Draw the graph that ends at `output`; the arguments are those of `visualize_at`."""
    steps = steps_behind(output)
    uses = steps.uses
    folds = find_folds(uses) if fold or (fold is None and len(uses) > FOLDED_FROM) else []
    parts = [_select_drawn_part(each, mark) for each in folds]
    counterparts = {
        node: drawn for each, part in zip(folds, parts, strict=True) for other in each.parts if other is not part
        for node, drawn in zip(other, part, strict=True)
    }  # fmt: skip
    visible = [node for node in uses if node not in counterparts]
    numbers = {node: number for number, node in enumerate(visible[:limit])}
    entries = _entries(numbers, steps, extra_texts, mark, _represented_items(folds, parts, numbers))
    drawing = Drawing(entries, omitted_nodes=len(visible) - len(numbers))
    _add_boxes(drawing, _box_paths(numbers, folds, parts), folds, _closed_scopes(scopes, visible), limit)
    arrows = _add_arrows(drawing, uses, numbers, counterparts, folds, limit)
    if cotangents is not None:
        _add_cotangents(drawing, uses, numbers, arrows, cotangents)
    return GraphDrawing(drawing, numbers, arrows)


def _select_drawn_part(fold: Fold, mark: GraphNode | None) -> list[Item]:
    """Return the part that is drawn: the one with the marked node, or the last."""
    return next((part for part in fold.parts if mark in part), fold.parts[-1]) if mark is not None else fold.parts[-1]


def _represented_items(folds: list[Fold], parts: list[list[Item]], numbers: dict[Item, int]) -> dict[Item, list[Item]]:
    """For each item of a drawn part, return the items that it represents: its counterpart in each part."""
    pairs = [
        (node, equal) for fold, part in zip(folds, parts, strict=True) for node, *equal in zip(part, *fold.parts, strict=True)
    ]
    return {node: equal for node, equal in pairs if node in numbers}


# ---------------------------------------------------------------------------------------------- entries


def _entries(
    numbers: dict[Item, int], steps: Steps, extra_texts: ExtraTexts, mark: GraphNode | None, represented: dict[Item, list[Item]]
) -> list[Entry]:
    """Return an entry for each drawn step. A step that represents several has a merged label."""
    labels = Labels(steps)
    # Automatic names are numbered on first use: in the order of computation, the oldest first.
    texts = {item: labels.label(item) for item in sorted(numbers, key=lambda item: item.sequence_number)}
    for item, others in represented.items():
        lines = [labels.label(other).split("\n") for other in others]
        if len({len(each) for each in lines}) == 1:
            texts[item] = "\n".join(merge_labels(list(each)) for each in zip(*lines, strict=True))
    return [_entry(item, texts[item], labels, extra_texts, item is mark) for item in numbers]


def _entry(item: Item, label: str, labels: Labels, extra_texts: ExtraTexts, is_marked: bool) -> Entry:
    value = value_at_creation(item)
    details = {
        "title": labels.title(item),
        "name": (chosen_name(item) or "") if isinstance(item, Value) else "",
        "opname": item.opname or "",
        "formula": labels.formula(item),
        "value": "" if value is None else format_array(value, elements=24, digits=6),
        "brief": "" if value is None else format_array(value),
        "shape": "" if value is None else str(getattr(value, "shape", ())),
        "dtype": "" if value is None else str(getattr(value, "dtype", type(value).__name__)),
        "line": short_location(item.line),
        "code": source_text(item.line),
    }
    extra = [format_array(value)] if extra_texts.values and value is not None else []
    extra += [details["shape"]] if extra_texts.shapes else []
    extra += [details["dtype"]] if extra_texts.dtypes else []
    extra += [details["line"]] if extra_texts.lines else []
    lines = [label, *(each for each in extra if each and each != label)]
    return Entry(_kind(item), "\n".join(lines), details, marked=is_marked, has_symbol=labels.is_symbol(item))


def _kind(item: Item) -> str:
    if isinstance(item, ConstantNode) or (isinstance(item, Value) and is_array_to_fill(item)):
        return "constant"
    if isinstance(item, Write):
        return "write"
    if isinstance(item, PlaceholderNode):
        return "placeholder"
    return "operation" if item.opname is not None else "variable"


# ------------------------------------------------------------------------------------------------ boxes


def _box_paths(numbers: dict[Item, int], folds: list[Fold], parts: list[list[Item]]) -> dict[int, Path]:
    """For each entry in a box, return the boxes around it. A fold is inside the scopes that contain all of its parts."""
    paths: dict[int, Path] = {number: node.scope for node, number in numbers.items() if node.scope}
    for fold_number, (fold, part) in enumerate(zip(folds, parts, strict=True)):
        scopes = [node.scope for each in fold.parts for node in each]
        common = common_length(min(scopes), max(scopes))
        for node in part:
            if node in numbers:
                paths[numbers[node]] = (*node.scope[:common], fold_number, *node.scope[common:])
    return paths


def _add_boxes(drawing: Drawing, paths: dict[int, Path], folds: list[Fold], closed: set[str] | bool, limit: int | None) -> None:
    """Number the boxes, outer ones first, and put the entries into them. Beyond `limit` boxes, inner ones are left out."""
    boxes: dict[Path, int] = {}
    for number, path in sorted(paths.items()):
        for depth in range(1, len(path) + 1):
            if path[:depth] in boxes:
                continue
            if limit is not None and len(boxes) >= limit:
                path = path[: depth - 1]
                break
            last, parent = path[depth - 1], boxes.get(path[: depth - 1])
            boxes[path[:depth]] = len(drawing.boxes)
            if isinstance(last, int):
                count = len(folds[last].parts)
                drawing.boxes.append(Box(f"× {count}", parent, count))
            else:
                name = "/".join(each for each in path[:depth] if isinstance(each, str))
                drawing.boxes.append(Box(last, parent, closed=closed if isinstance(closed, bool) else name in closed))
        drawing.entries[number].box = boxes.get(path)


def _closed_scopes(scopes: str | Iterable[str], visible: list[Item]) -> set[str] | bool:
    """Return the names of the closed scopes, or whether all are closed."""
    if isinstance(scopes, str):
        if scopes not in ("open", "closed"):
            raise ValueError(f"scopes must be 'open', 'closed', or a list of the scopes that are closed, not {scopes!r}")
        return scopes == "closed"
    scope_names = {"/".join(node.scope[:depth]) for node in visible for depth in range(1, len(node.scope) + 1)}
    closed = set(scopes)
    if closed - scope_names:
        raise ValueError(
            f"no scope is called {', '.join(map(repr, sorted(closed - scope_names)))}; those in the picture: "
            f"{', '.join(map(repr, sorted(scope_names))) or 'none'}. Consecutive equal scopes are drawn once, unless fold=False"
        )
    return closed


# ----------------------------------------------------------------------------------------------- arrows


def _add_arrows(
    drawing: Drawing, uses: Uses, numbers: dict[Item, int], counterparts: dict[Item, Item], folds: list[Fold], limit: int | None
) -> dict[tuple[Item, int], int]:
    """Add an arrow for each use of an operand.

    Nodes of parts that are not drawn are replaced by their `counterparts` in the drawn one. Equal arrows are added once.
    """
    part_of = {node: (number, k) for number, fold in enumerate(folds) for k, part in enumerate(fold.parts) for node in part}
    arrows: dict[tuple[Item, int], int] = {}
    drawn_arrows: set[tuple[int, int, bool]] = set()
    max_arrows = math.inf if limit is None else ARROWS_PER_NODE * limit

    def arrow_to(node: Item, operand: Item, target: int) -> Arrow:
        part, operand_part = part_of.get(node), part_of.get(operand)
        is_same_fold = part is not None and operand_part is not None and part[0] == operand_part[0]
        loop_carried = is_same_fold and part != operand_part
        return Arrow(numbers.get(counterparts.get(operand, operand), OMITTED), target, loop_carried=loop_carried)

    def add(arrow: Arrow) -> int | None:
        drawn_arrows.add((arrow.source, arrow.target, arrow.loop_carried))
        if len(drawing.arrows) < max_arrows:
            drawing.arrows.append(arrow)
            return len(drawing.arrows) - 1
        drawing.omitted_arrows += 1
        return None

    for node, number in numbers.items():
        incoming = [arrow_to(node, operand, number) for operand in uses[node]]
        added: dict[int, int | None] = {}
        for position, arrow in enumerate(incoming if limit is None else _merge_parallel(incoming)):
            if id(arrow) not in added:
                added[id(arrow)] = add(arrow)
            index = added[id(arrow)]
            if index is not None:
                arrows[node, position] = index
    for node, counterpart in counterparts.items():
        for operand in uses[node] if counterpart in numbers else ():
            if operand in part_of and part_of[operand] == part_of[node]:
                continue  # within a part: the drawn part has the same arrow
            arrow = arrow_to(node, operand, numbers[counterpart])
            if (arrow.source, arrow.target, arrow.loop_carried) not in drawn_arrows:
                add(arrow)
    return arrows


def _merge_parallel(incoming: list[Arrow]) -> list[Arrow]:
    """Replace more than `MAX_PARALLEL` arrows from one entry to another by one that counts them."""
    counts = Counter((arrow.source, arrow.loop_carried) for arrow in incoming)
    one: dict[tuple[int, bool], Arrow] = {}
    for arrow in incoming:
        key = arrow.source, arrow.loop_carried
        if counts[key] > MAX_PARALLEL:
            one.setdefault(key, arrow).label = f"× {counts[key]}"
    return [one.get((arrow.source, arrow.loop_carried), arrow) for arrow in incoming]


def _add_cotangents(
    drawing: Drawing, uses: Uses, numbers: dict[Item, int], arrows: dict[tuple[Item, int], int], cotangents: Mapping[Any, Any]
) -> None:
    """Write each cotangent on the arrow out of its node, or on the node itself unless exactly one arrow leaves it."""
    drawn_cotangents = {node: cotangents[node] for node in uses if isinstance(node, Value) and node in cotangents}
    if not drawn_cotangents:
        raise ValueError("none of the cotangents belongs to a node of this graph; pass a mapping from nodes to cotangents")
    outgoing: dict[Item, list[tuple[Item, int]]] = {}
    for node, operands in uses.items():
        for position, operand in enumerate(operands):
            outgoing.setdefault(operand, []).append((node, position))
    for node, cotangent in drawn_cotangents.items():
        value = cotangent.value if isinstance(cotangent, Value) else cotangent
        if node not in numbers:
            continue
        drawing.entries[numbers[node]].details["cotangent"] = format_array(value, elements=24, digits=6)
        out = outgoing.get(node, [])
        if len(out) == 1 and out[0] in arrows:
            drawing.arrows[arrows[out[0]]].label = format_brief(value)
        else:
            drawing.entries[numbers[node]].label += f"\n∂ = {format_brief(value)}"
