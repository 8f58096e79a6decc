"""A drawing in DOT, Graphviz's language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .colors import Theme
from .drawing import REST, Arrow, Box, Drawing, Entry

# The graphviz package is imported where it is used: it would add a sixth to the time `import compgraph` takes.

# ordering=in: the arrows reach an operation in the order of its operands, so that x - y is told from y - x.
# pad, not margin: the background fills it.
GRAPH_STYLE = {"ordering": "in", "nodesep": "0.2", "ranksep": "0.4", "margin": "0", "pad": "0.1"}
# For larger graphs Graphviz's search for a layout is cut short: where hundreds of nodes share an operand, it takes a minute.
HASTE = {"nslimit": "1", "nslimit1": "2"}
MANY = 100  # drawings of more entries are laid out with HASTE
FONT = "Helvetica,Arial,sans-serif"
NODE_STYLE = {
    "fontname": FONT,
    "fontsize": "12",
    "height": "0.4",
    "width": "0.5",
    "margin": "0.12,0.06",
    "penwidth": "0",
    "style": "filled",
}
EDGE_STYLE = {"arrowsize": "0.7", "fontname": FONT, "fontsize": "10"}
BOX_STYLE = {"style": "rounded,filled", "fontname": FONT, "fontsize": "11", "labeljust": "l", "margin": "10"}
SHAPES = {"operation": "box", "write": "box", "called": "box"}  # leaves and results are ellipses
OUTLINED = {"called": "operation", "result": "variable"}  # entries that are not filled, and the color of their frames

# Characters that SVG cannot hold, that end a C string, or that would break the line.
UNSHOWABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def dot_of(drawing: Drawing, direction: str, theme: Theme) -> str:
    """The drawing in DOT. DOT nodes are named by the number of their entry, since names of nodes need not be unique."""
    import graphviz

    style = {"rankdir": direction, **GRAPH_STYLE, **({} if theme.background == "white" else {"bgcolor": theme.background})}
    style |= HASTE if len(drawing.entries) > MANY else {}
    edge_style = {**EDGE_STYLE, "color": theme.arrow, "fontcolor": theme.adjoint}
    dot = graphviz.Digraph(graph_attr=style, node_attr=NODE_STYLE, edge_attr=edge_style)
    names = _names(drawing)
    _add_inside(dot, drawing, None, theme, 0)
    if drawing.more:
        dot.node("rest", drawing.more, shape="plaintext", style="", fontcolor=theme.text)
    for source, target, attributes in _edges(drawing, names):
        dot.edge(source, target, **attributes)
    return str(dot.source)


def _names(drawing: Drawing) -> list[str]:
    """For each entry the DOT node that stands for it: itself, or the outermost closed box around it."""
    outermost: list[int | None] = []
    for box in drawing.boxes:  # outer boxes come first
        above = None if box.parent is None else outermost[box.parent]
        outermost.append(above if above is not None else (len(outermost) if box.closed else None))
    closed = [None if entry.box is None else outermost[entry.box] for entry in drawing.entries]
    return [f"n{place}" if box is None else f"box{box}" for place, box in enumerate(closed)]


def _add_inside(dot: Any, drawing: Drawing, box: int | None, theme: Theme, depth: int) -> None:
    """Declare the entries that stand directly in a box (None: in no box), and the boxes in it."""
    for place, entry in enumerate(drawing.entries):
        if entry.box == box:
            dot.node(f"n{place}", escaped(entry.label), **_style(entry, theme), id=f"node-{place}")
    for number, inner in enumerate(drawing.boxes):
        if inner.parent != box:
            continue
        if inner.closed:
            _add_closed(dot, drawing, number, inner, theme)
            continue
        with dot.subgraph(name=f"cluster_{number}") as cluster:
            cluster.attr(label=escaped(inner.title), id=f"box-{number}", **BOX_STYLE, **_box_style(inner, theme, depth))
            _add_inside(cluster, drawing, number, theme, depth + 1)


def _box_style(box: Box, theme: Theme, depth: int) -> dict[str, str]:
    fill = theme.inner_box if depth % 2 else theme.box
    # A thick border tells a box that stands for several equal parts from a scope.
    lines = {"peripheries": "1", "penwidth": "2.5"} if box.count > 1 else {"penwidth": "1"}
    return {"fillcolor": fill, "color": theme.box_line, "fontcolor": theme.text, **lines}


def _add_closed(dot: Any, drawing: Drawing, number: int, box: Box, theme: Theme) -> None:
    """Declare a closed box: one node, whose label counts what is in it."""
    count = sum(number in _around(drawing, entry.box) for entry in drawing.entries)
    label = escaped(f"{box.title}\n{count} {'node' if count == 1 else 'nodes'}")
    style = {"shape": "box", "style": "rounded,filled", "penwidth": "2"}
    dot.node(f"box{number}", label, id=f"box-{number}", **style, **_closed_colors(theme))


def _closed_colors(theme: Theme) -> dict[str, str]:
    return {"fillcolor": theme.inner_box, "color": theme.box_line, "fontcolor": theme.text}


def _around(drawing: Drawing, box: int | None) -> Iterator[int]:
    """A box, and the boxes around it, from the inside out."""
    while box is not None:
        yield box
        box = drawing.boxes[box].parent


def _edges(drawing: Drawing, names: list[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The arrows: source, target, attributes. A closed box has one arrow to or from each neighbour, and none inside."""
    known: set[tuple[str, str]] = set()
    for number, arrow in enumerate(drawing.arrows):
        source = "rest" if arrow.source == REST else names[arrow.source]
        target = names[arrow.target]
        if "box" in source + target:
            if source == target or (source, target) in known:
                continue
            known.add((source, target))
        yield source, target, {"id": f"edge-{number}", **_edge_style(arrow)}


def _edge_style(arrow: Arrow) -> dict[str, str]:
    style = {"style": "dashed", "constraint": "false"} if arrow.again else {}
    return {**style, "label": escaped(arrow.label)} if arrow.label else style


def _style(entry: Entry, theme: Theme) -> dict[str, str]:
    if entry.kind in OUTLINED:
        frame = {"color": getattr(theme, OUTLINED[entry.kind]), "penwidth": "2"}
        return {"shape": SHAPES.get(entry.kind, "ellipse"), "fillcolor": theme.background, "fontcolor": theme.text, **frame}
    kind = "operation" if entry.kind == "write" else entry.kind
    style = {"shape": SHAPES.get(entry.kind, "ellipse"), "fillcolor": getattr(theme, kind)}
    if getattr(theme, f"{kind}_text") != "black":
        style["fontcolor"] = getattr(theme, f"{kind}_text")
    if entry.kind == "write":
        style["style"] = "filled,dashed"
    return {**style, "penwidth": "4", "color": theme.mark} if entry.marked else style


def escaped(text: str) -> str:
    """Text as a DOT label that shows it literally; characters that cannot be shown are escaped as in Python."""
    import graphviz

    text = showable(text)
    # graphviz.escape handles backslashes, quotes and <...>, but DOT also reads &lt; as <, and needs \n for a new line.
    label: str = graphviz.nohtml(graphviz.escape(text).replace("&", "&amp;").replace("\n", r"\n"))
    return label


def showable(text: str) -> str:
    """Text in which characters that cannot be shown are escaped as in Python."""
    return UNSHOWABLE.sub(lambda match: repr(match[0])[1:-1], text)
