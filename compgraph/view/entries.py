"""The entries of a drawing: for each step its kind, its texts, and what the page tells of it on demand."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph import GraphNode
from ..storage import Write
from ..values import ConstantNode, Value
from . import words
from .drawing import Entry
from .labels import Labels, is_array_to_fill, merged
from .writes import Item, Steps, value_then


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
    texts = {item: labels.label(item) for item in sorted(places, key=lambda item: item.tick)}
    for item, others in like.items():
        lines = [labels.label(other).split("\n") for other in others]
        if len({len(each) for each in lines}) == 1:
            texts[item] = "\n".join(merged(list(each)) for each in zip(*lines, strict=True))
    return [_entry(item, texts[item], labels, shown, item is mark) for item in places]


def _entry(item: Item, label: str, labels: Labels, shown: Shown, marked: bool) -> Entry:
    value = value_then(item)
    details = {
        "title": labels.title(item),
        "name": (words.chosen_name(item) or "") if isinstance(item, Value) else "",
        "opname": item.opname or "",
        "formula": labels.formula(item),
        "value": "" if value is None else words.shown(value, elements=24, digits=6),
        "shape": "" if value is None else str(getattr(value, "shape", ())),
        "dtype": "" if value is None else str(getattr(value, "dtype", type(value).__name__)),
        "line": words.place_of(item.line),
        "code": words.code_of(item.line),
    }
    extra = [words.shown(value)] if shown.values and value is not None else []
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
