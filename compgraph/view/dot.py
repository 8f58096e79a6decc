"""Drawings in DOT, Graphviz's language, and their rendering as SVG, PNG or PDF."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from .colors import Theme
from .drawing import OMITTED, Arrow, Box, Drawing, Entry

# pad, not margin: the background fills it.
GRAPH_STYLE = {"nodesep": "0.22", "ranksep": "0.42", "margin": "0", "pad": "0.12"}
# Limits Graphviz's search for a layout, which takes a minute for hundreds of nodes with a common operand.
FAST_LAYOUT = {"nslimit": "1", "nslimit1": "2"}
FAST_LAYOUT_FROM = 100  # entries
# Draws arrows straight: to route arrows across many layers around the nodes takes Graphviz minutes.
STRAIGHT_ARROWS = {"splines": "line", "mclimit": "0.05"}
MAX_CROSSED_LAYERS = 4000  # layers that all arrows cross, in total
FONT = "Helvetica,Arial,sans-serif"
NODE_STYLE = {
    "fontname": FONT,
    "fontsize": "13",
    "height": "0.46",
    "width": "0.54",
    "margin": "0.13,0.06",
    "penwidth": "0",
    "style": "filled",
}
EDGE_STYLE = {"arrowsize": "0.7", "penwidth": "1.2", "fontname": FONT, "fontsize": "11"}
LABEL_STYLE = {"shape": "plaintext", "style": "", "fontsize": "11", "width": "0", "height": "0.2", "margin": "0.04,0.01"}
BOX_STYLE = {"style": "rounded,filled", "fontname": FONT, "fontsize": "12", "labeljust": "l", "margin": "10"}
ELLIPTIC = ("variable", "placeholder", "constant", "result")  # kinds of entries that are ellipses if their text is short
MAX_ELLIPSE_LABEL = 12  # characters
FILLS = {"write": "operation", "placeholder": "variable"}  # of kinds without a color of their own
OUTLINED = {"called": "operation", "result": "variable"}  # entries that are not filled, and the color of their frames
SYMBOL_SIZE = "19"
MAX_PORTS = 4  # operations with more operands have no ports; Graphviz orders their operands as far as possible
PORTED_SIZE = 32  # points: the least height and width of an operation with ports

SVG_TITLE = re.compile(r'(<g id="([^"]*)" class="\w+"[^>]*>\n)<title>.*?</title>\n', re.DOTALL)
# Characters that SVG cannot hold, that end a C string, or that would break the line.
UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def dot_of(drawing: Drawing, direction: str, theme: Theme, legend: bool = False) -> str:
    """Write a drawing in DOT. DOT nodes are named by entry numbers, because names of graph nodes need not be unique."""
    import graphviz

    style = {"rankdir": direction, **GRAPH_STYLE, **({} if theme.background == "white" else {"bgcolor": theme.background})}
    if len(drawing.entries) > FAST_LAYOUT_FROM:
        style |= FAST_LAYOUT
        style |= STRAIGHT_ARROWS if _count_crossed_layers(drawing) > MAX_CROSSED_LAYERS else {}
    style |= {"label": _legend(drawing, direction, theme), "fontname": FONT, "fontsize": "11"} if legend else {}
    edge_style = {**EDGE_STYLE, "color": theme.arrow, "fontcolor": theme.cotangent}
    dot = graphviz.Digraph(graph_attr=style, node_attr=NODE_STYLE, edge_attr=edge_style)
    writer = _Writer(drawing, direction, theme)
    writer.add_inside(dot, None, 0)
    if drawing.omission_label:
        dot.node("rest", drawing.omission_label, id="rest", shape="plaintext", style="", fontcolor=theme.text)
    for source, target, attributes in writer.edges:
        dot.edge(source, target, **attributes)
    return str(dot.source)


class _Writer:
    """Declares nodes and boxes; `edges` has the source, the target and the attributes of each arrow."""

    def __init__(self, drawing: Drawing, direction: str, theme: Theme) -> None:
        self._drawing, self._direction, self._theme = drawing, direction, theme
        self._dot_nodes = _dot_nodes(drawing)
        self._operands = Counter(arrow.target for arrow in drawing.arrows if not arrow.loop_carried)
        self._labels: list[tuple[int | None, str, str]] = []  # of arrows: the box, the name, the text
        self.edges = list(self._edges())

    def add_inside(self, dot: Any, box: int | None, depth: int) -> None:
        """Declare the entries directly in a box (None: outside of boxes), and the boxes in it.

        Graphviz finds better layouts if earlier operations are declared first.
        """
        for entry_number, entry in reversed(list(enumerate(self._drawing.entries))):
            if entry.box == box:
                label = _label(entry, self._operands[entry_number], self._direction)
                dot.node(f"n{entry_number}", **label, **_style(entry, self._theme), id=f"node-{entry_number}")
        for label_box, name, text in self._labels:
            if label_box == box:
                dot.node(name, escape_label(text), **LABEL_STYLE, fontcolor=self._theme.cotangent, id=name)
        for number, inner in reversed(list(enumerate(self._drawing.boxes))):
            if inner.parent != box:
                continue
            if inner.closed:
                self._add_closed(dot, number, inner)
                continue
            with dot.subgraph(name=f"cluster_{number}") as cluster:
                style = BOX_STYLE | _box_style(inner, self._theme, depth)
                cluster.attr(label=escape_label(inner.title), id=f"box-{number}", **style)
                self.add_inside(cluster, number, depth + 1)

    def _add_closed(self, dot: Any, number: int, box: Box) -> None:
        """Declare a closed box: one node, whose label counts its entries."""
        count = sum(number in _enclosing_boxes(self._drawing, entry.box) for entry in self._drawing.entries)
        label = escape_label(f"{box.title}\n{count} {'node' if count == 1 else 'nodes'}")
        colors = {"fillcolor": self._theme.inner_box, "color": self._theme.box_line, "fontcolor": self._theme.text}
        dot.node(f"box{number}", label, id=f"box-{number}", shape="box", style="rounded,filled", penwidth="2", **colors)

    def _edges(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield the arrows. A closed box has one arrow to or from each neighbor, and none inside.

        Arrows to an operation with few operands end at its ports, which distinguishes ``x - y`` from ``y - x``. A label is a node
        in the middle of its arrow, because Graphviz draws nothing over nodes.
        """
        ends = [("rest" if arrow.source == OMITTED else self._dot_nodes[arrow.source], self._dot_nodes[arrow.target])
                for arrow in self._drawing.arrows]  # fmt: skip
        counts = Counter(ends)
        drawn_ends: set[tuple[str, str]] = set()
        ports_in_use: Counter[int] = Counter()
        for number, (arrow, (source, target)) in enumerate(zip(self._drawing.arrows, ends, strict=True)):
            ends_at_box = "box" in source + target
            if ends_at_box and (source == target or (source, target) in drawn_ends):
                continue
            drawn_ends.add((source, target))
            end = target if arrow.loop_carried else self._port(arrow.target, ports_in_use)
            style = {"id": f"edge-{number}", **({"style": "dashed", "constraint": "false"} if arrow.loop_carried else {})}
            style |= self._weight(arrow)
            if not arrow.label or (ends_at_box and counts[source, target] > 1):
                yield source, end, style
            elif arrow.loop_carried:
                yield source, end, {**style, "label": escape_label(arrow.label)}
            else:
                middle = f"label{number}"
                self._labels.append((self._common_box(arrow), middle, arrow.label))
                yield source, middle, {**style, "dir": "none"}
                yield middle, end, {**style, "id": f"edge-{number}-end"}

    def _weight(self, arrow: Arrow) -> dict[str, str]:
        """Return an edge weight that keeps a read element next to its use, and writes in one rank."""
        source = None if arrow.source == OMITTED else self._drawing.entries[arrow.source]
        if source is None or arrow.loop_carried:
            return {}
        if source.details.get("opname") == "getitem":
            return {"weight": "3"}
        return {"weight": "8"} if source.kind == self._drawing.entries[arrow.target].kind == "write" else {}

    def _port(self, entry_number: int, ports_in_use: Counter[int]) -> str:
        """Return the end of the next arrow to an entry."""
        name = self._dot_nodes[entry_number]
        if name != f"n{entry_number}" or not 2 <= self._operands[entry_number] <= MAX_PORTS:
            return name
        port, ports_in_use[entry_number] = ports_in_use[entry_number], ports_in_use[entry_number] + 1
        return f"{name}:i{port}:{'w' if self._direction == 'LR' else 'n'}"

    def _common_box(self, arrow: Arrow) -> int | None:
        """Return the innermost open box around both ends of an arrow."""
        ends = [None if end == OMITTED else self._drawing.entries[end].box for end in (arrow.source, arrow.target)]
        outer = [_enclosing_boxes(self._drawing, box) for box in ends]
        common = [box for box in outer[0] if box in outer[1]]
        closed = [depth for depth, box in enumerate(common) if self._drawing.boxes[box].closed]
        return next(iter(common[closed[-1] + 1 :] if closed else common), None)


def _legend(drawing: Drawing, direction: str, theme: Theme) -> str:
    """Return the legend as a label below the graph: one row from left to right, or one column."""
    cells = []
    for kind, name in drawing.legend.items():
        if kind == "cotangent":
            swatch = f'<td><font color="{theme.cotangent}"><b>∂</b></font></td>'
        else:
            outline = getattr(theme, OUTLINED[kind]) if kind in OUTLINED else theme.box_line
            fill = theme.background if kind in OUTLINED else getattr(theme, FILLS.get(kind, kind))
            style = "rounded,dashed" if kind == "placeholder" else "rounded"
            swatch = (
                f'<td><table border="1" cellborder="0" cellspacing="0" cellpadding="0" style="{style}" color="{outline}" '
                f'bgcolor="{fill}"><tr><td width="12" height="10"></td></tr></table></td>'
            )
        cells.append(f'{swatch}<td align="left"><font color="{theme.text}">{name}&#160;&#160;</font></td>')
    rows = ["".join(cells)] if direction == "LR" else cells
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{table}</table>>'


def add_tooltips(svg: bytes, drawing: Drawing) -> bytes:
    """Give each element of Graphviz's SVG its tooltip as title, and remove the names that Graphviz wrote there."""

    def replace_title(match: re.Match[str]) -> str:
        number = re.fullmatch(r"node-(\d+)", html.unescape(match[2]))
        tooltip = drawing.entries[int(number[1])].tooltip if number else ""
        return match[1] + (f"<title>{html.escape(escape_unprintable(tooltip), quote=False)}</title>\n" if tooltip else "")

    return SVG_TITLE.sub(replace_title, svg.decode()).encode()


def _count_crossed_layers(drawing: Drawing) -> int:
    """Return the number of layers that the arrows cross, in total."""
    uses: dict[int, list[int]] = defaultdict(list)
    missing: Counter[int] = Counter()
    arrows = [arrow for arrow in drawing.arrows if not arrow.loop_carried and arrow.source != OMITTED]
    for arrow in arrows:
        uses[arrow.source].append(arrow.target)
        missing[arrow.target] += 1
    layers = dict.fromkeys((number for number in range(len(drawing.entries)) if not missing[number]), 0)
    ready = list(layers)
    for number in ready:
        for target in uses[number]:
            layers[target] = max(layers.get(target, 0), layers[number] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return sum(layers[arrow.target] - layers[arrow.source] for arrow in arrows if {arrow.source, arrow.target} <= layers.keys())


def _dot_nodes(drawing: Drawing) -> list[str]:
    """Return the DOT node of each entry: its own, or that of the outermost closed box around it."""
    outermost: list[int | None] = []
    for box in drawing.boxes:  # outer boxes come first
        above = None if box.parent is None else outermost[box.parent]
        outermost.append(above if above is not None else (len(outermost) if box.closed else None))
    closed = [None if entry.box is None else outermost[entry.box] for entry in drawing.entries]
    return [f"n{number}" if box is None else f"box{box}" for number, box in enumerate(closed)]


def _enclosing_boxes(drawing: Drawing, box: int | None) -> list[int]:
    """Return a box and the boxes around it, from the inside out."""
    boxes = []
    while box is not None:
        boxes.append(box)
        box = drawing.boxes[box].parent
    return boxes


def _box_style(box: Box, theme: Theme, depth: int) -> dict[str, str]:
    fill = theme.inner_box if depth % 2 else theme.box
    # A thick border distinguishes a box of several equal parts from a scope.
    lines = {"peripheries": "1", "penwidth": "2.5"} if box.count > 1 else {"penwidth": "1"}
    return {"fillcolor": fill, "color": theme.box_line, "fontcolor": theme.text, **lines}


def _label(entry: Entry, count: int, direction: str) -> dict[str, str]:
    """Return the label of an entry, and its size. An operation with few operands has one port per operand, in order."""
    is_single_line = "\n" not in entry.label
    order = {"ordering": "in"} if count > 1 else {}
    if not 2 <= count <= MAX_PORTS:
        label = escape_label(entry.label) if is_single_line or not entry.has_symbol else f"<{_html_lines(entry)}>"
        size = {"fontsize": SYMBOL_SIZE, "margin": "0"} if entry.has_symbol and is_single_line else {}
        return {"label": label, **size, **order}
    is_sideways = direction == "LR"
    width, height = (1, PORTED_SIZE // count) if is_sideways else (PORTED_SIZE // count, 1)
    ports = [f'<td port="i{k}" width="{width}" height="{height}"></td>' for k in range(count)]
    span = f'{"rowspan" if is_sideways else "colspan"}="{count}"'
    padding = 4 if entry.has_symbol and is_single_line else 8
    text = f'<td {span} width="{PORTED_SIZE}" cellpadding="{padding}">{_html_lines(entry)}</td>'
    # An empty cell opposite the ports centers the text.
    rows = [f'{ports[0]}{text}<td {span} width="1"></td>', *ports[1:]]
    rows = rows if is_sideways else ["".join(ports), text, f'<td {span} height="1"></td>']
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    return {
        "label": f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{table}</table>>',
        "margin": "0",
        **order,
    }


def _html_lines(entry: Entry) -> str:
    """Return the label of an entry in Graphviz's HTML; a symbol on the first line is larger."""
    # Graphviz collapses other spaces, and rejects an empty line. Backslashes are escaped as in other labels.
    text = html.escape(escape_unprintable(entry.label)).replace(" ", "&#160;").replace("\\", "\\\\")
    lines = [line or "&#160;" for line in text.split("\n")]
    first, *others = lines
    return "<br/>".join([f'<font point-size="{SYMBOL_SIZE}">{first}</font>' if entry.has_symbol else first, *others])


def _style(entry: Entry, theme: Theme) -> dict[str, str]:
    is_round = entry.kind in ELLIPTIC and "\n" not in entry.label and len(entry.label) <= MAX_ELLIPSE_LABEL
    shape = {"shape": "ellipse"} if is_round else {"shape": "box", "style": "rounded,filled"}
    if entry.kind in OUTLINED:
        frame = {"color": getattr(theme, OUTLINED[entry.kind]), "penwidth": "2"}
        return {**shape, "fillcolor": theme.background, "fontcolor": theme.text, **frame}
    kind = FILLS.get(entry.kind, entry.kind)
    style = {**shape, "fillcolor": getattr(theme, kind)}
    if entry.kind == "placeholder":
        style |= {"style": f"{shape.get('style', 'filled')},dashed", "penwidth": "1.5", "color": theme.box_line}
    if getattr(theme, f"{kind}_text") != "black":
        style["fontcolor"] = getattr(theme, f"{kind}_text")
    return {**style, "penwidth": "4", "color": theme.mark} if entry.marked else style


def escape_label(text: str) -> str:
    """Return a DOT label that shows a text literally; unprintable characters are escaped as in Python."""
    import graphviz

    text = escape_unprintable(text)
    # graphviz.escape handles backslashes, quotes and <...>, but DOT also reads &lt; as <, and needs \n for a new line.
    label: str = graphviz.nohtml(graphviz.escape(text).replace("&", "&amp;").replace("\n", r"\n"))
    return label


def escape_unprintable(text: str) -> str:
    """Escape the unprintable characters of a text as Python does."""
    return UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


# The renderer in pygraphviz's wheel is a library. It runs in a process of its own, because it writes warnings about fonts to
# stderr, cannot be interrupted, and would end this process if it crashed.
BUNDLED_RENDERER = """
import sys
import pygraphviz
graph = pygraphviz.AGraph()
graph.from_string(sys.stdin.buffer.read().decode())
if len(sys.argv) > 2:
    graph.graph_attr["dpi"] = sys.argv[2]
sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog="dot"))
"""


def can_render() -> bool:
    """Whether Graphviz is installed, as its program ``dot`` or in pygraphviz's wheel."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def render(source: str, format: str, dpi: float | None = None) -> bytes:
    """Render a DOT text as the bytes of a file, in one of Graphviz's formats (``"svg"``, ``"png"``, ``"pdf"``, ``"json"``).

    Raises
    ------
    ModuleNotFoundError
        If Graphviz is not installed.
    ValueError
        If the picture at this `dpi` is larger than Graphviz draws.
    """
    import graphviz

    resolution = [] if dpi is None else [f"{dpi:g}"]
    if shutil.which("dot") is not None:
        command = ["dot", "-Kdot", f"-T{format}", *[f"-Gdpi={each}" for each in resolution]]
        process = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
        if process.returncode:
            raise graphviz.CalledProcessError(process.returncode, command, process.stdout, process.stderr)
    elif not can_render():
        raise ModuleNotFoundError(
            f"{'the layout' if format == 'json' else format.upper()} is made by Graphviz, which is not installed: pip install "
            '"compgraph[pictures]", or install Graphviz\'s program dot (apt install graphviz, brew install graphviz). Without it '
            "a graph is drawn as an HTML page: visualize_at(node, 'graph.html')"
        )
    else:
        # -P and PYTHONPATH: the same modules as in this process, and none from the current folder.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", "-c", BUNDLED_RENDERER, format, *resolution]
        process = subprocess.run(command, input=source.encode(), capture_output=True, env=environment, check=False)
        if process.returncode:
            raise RuntimeError(f"pygraphviz could not draw the graph: {process.stderr.decode(errors='replace').strip()}")
    if dpi is not None and b"too large" in process.stderr:
        raise ValueError(f"at dpi={dpi:g} the picture has more pixels than Graphviz draws; use a smaller dpi, or SVG")
    return process.stdout
