"""Where nodes and edges are drawn. Graphviz lays the graph out once, so that nothing moves from frame to frame."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from compgraph.graph import breadth_first, operands_of
from compgraph.values import ConstantNode
from compgraph.view import render

from .names import chosen, named, on_node, short
from .steps import Pass, Step

Point = tuple[float, float]
CHARACTER = 7.4  # the width, in pixels, of a character of a text of 13 pixels
ROW = 20.0  # the height, in pixels, of a line of text in a node


@dataclass(frozen=True)
class Box:
    """A node as it is drawn; lengths in pixels, from the top left.

    Attributes
    ----------
    key : str
        Its id in the page.
    kind : {"variable", "constant", "operation"}
        What is drawn, which decides on shape and color.
    title, value, full : str
        Its name, its value, and both unabridged.
    slot : bool
        Whether an adjoint or tangent will be shown in it.
    x, y : float
        The centre.
    width, height : float
        The size.
    """

    key: str
    kind: str
    title: str
    value: str
    full: str
    slot: bool
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Arrow:
    """An edge as it is drawn.

    Attributes
    ----------
    key : str
        Its id in the page.
    curve : tuple of point
        A starting point, and three more points for each cubic Bézier curve.
    tip : point
        Where the arrow ends.
    label : point
        Where the label lies.
    """

    key: str
    curve: tuple[Point, ...]
    tip: Point
    label: Point


@dataclass(frozen=True)
class Layout:
    """A graph laid out.

    Attributes
    ----------
    width, height : float
        The size of the whole.
    names : dict
        The name of each node.
    boxes : dict
        For each node, how it is drawn.
    arrows : dict
        For each ``(operation, position among its operands)``, how the edge is drawn.
    """

    width: float
    height: float
    names: dict[Any, str]
    boxes: dict[Any, Box]
    arrows: dict[tuple[Any, int], Arrow]

    def arrow(self, step: Step) -> Arrow:
        """The edge of a step."""
        return self.arrows[step.node, _place(step)]


def lay_out(sweep: Pass, direction: str) -> Layout:
    """Lay out the graph of a sweep, with room for what will arrive at nodes and edges."""
    order = breadth_first(sweep.output)
    names = named(order)
    keys = {node: f"n{place}" for place, node in enumerate(order)}
    arriving = _arriving(sweep)
    texts = {node: _texts(node, names[node]) for node in order}
    sizes = {node: _size(texts[node], arriving.get(node)) for node in order}
    edges = [(node, place, operand) for node in order for place, operand in enumerate(operands_of(node))]
    labels = {(step.node, _place(step)): on_node(step.passed) for step in sweep.steps}
    found = json.loads(
        render(
            _dot(
                direction,
                [(keys[node], *sizes[node]) for node in order],
                [(keys[operand], keys[node], labels.get((node, place), "")) for node, place, operand in edges],
            ),
            "json",
        )
    )
    height = float(found["bb"].split(",")[3])

    def point(text: str) -> Point:
        x, y = text.split(",")
        return float(x), height - float(y)

    placed = {thing["name"]: thing for thing in found["objects"]}
    boxes = {}
    for node in order:
        kind, (title, value, full) = _kind(node), texts[node]
        center = point(placed[keys[node]]["pos"])
        boxes[node] = Box(keys[node], kind, title, value, full, node in arriving, *center, *sizes[node])
    arrows = {}
    drawn = {thing["id"]: thing for thing in found.get("edges", ())}
    for count, (node, place, _) in enumerate(edges):
        thing = drawn[f"e{count}"]
        tip, *curve = thing["pos"].removeprefix("e,").split(" ")
        arrows[node, place] = Arrow(thing["id"], tuple(map(point, curve)), point(tip), point(thing.get("lp", "0,0")))
    return Layout(float(found["bb"].split(",")[2]), height, names, boxes, arrows)


def _place(step: Step) -> int:
    """The position of a step's operand among those that are drawn, where plain numbers count as operands too."""
    earlier = sum(step.node.args[k] is step.operand for k in step.node.parent_argnums if k < step.position)
    return [k for k, operand in enumerate(operands_of(step.node)) if operand is step.operand][earlier]


def _arriving(sweep: Pass) -> dict[Any, str]:
    """For each node at which an adjoint or tangent arrives, the longest text that it will show for it."""
    texts = {node: on_node(seed) for node, seed in sweep.start.items()}
    for step in sweep.steps:
        target = step.operand if sweep.mode == "reverse" else step.node
        texts[target] = max(texts.get(target, ""), on_node(step.total), key=len)
    return texts


def _dot(direction: str, nodes: list[tuple[str, float, float]], edges: list[tuple[str, str, str]]) -> str:
    """The graph in DOT, with sizes only: texts are written later. ``ordering=in`` keeps operands in order (x - y, not y - x)."""
    lines = [
        f"digraph {{ rankdir={direction} ordering=in nodesep=0.22 ranksep=0.4 margin=0 dpi=72",
        'node [shape=box fixedsize=true label=""] edge [fontsize=12 fontname=Helvetica arrowsize=0.8]',
    ]
    for key, width, height in nodes:
        lines.append(f"{key} [width={width / 72:.4f} height={height / 72:.4f}]")
    for count, (tail, head, label) in enumerate(edges):
        lines.append(f'{tail} -> {head} [id=e{count} label="{"0" * (len(label) + 2 if label else 0)}"]')
    return "\n".join([*lines, "}"])


def _kind(node: Any) -> str:
    if isinstance(node, ConstantNode):
        return "constant"
    return "variable" if node.function is None else "operation"


def _texts(node: Any, name: str) -> tuple[str, str, str]:
    """The name and the value of a node, as they are drawn, and both unabridged."""
    title = short(f"{node.opname}: {name}") if chosen(node) else name
    value = on_node(node.raw_value)
    full = value if isinstance(node.raw_value, tuple) else np.array2string(np.asarray(node.raw_value), threshold=20)
    if value == title:
        value = ""
    return title, value, f"{title} = {full}"


def _size(texts: tuple[str, str, str], arriving: str | None) -> tuple[float, float]:
    """Width and height of a node: its texts, and below them room for an adjoint or tangent."""
    title, value, _ = texts
    words = max(_length(title) * 1.06, _length(value), 3 if arriving is None else _length(arriving) * 1.06 + 4)
    return words * CHARACTER + 18, 12 + ROW * (1 + bool(value) + (arriving is not None))


def _length(text: str) -> float:
    return sum(1.9 if unicodedata.east_asian_width(x) in "WF" else 0 if unicodedata.combining(x) else 1 for x in text)
