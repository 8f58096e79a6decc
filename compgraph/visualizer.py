"""Pictures of a graph: nodes -> DOT, Graphviz's language -> SVG, PNG or PDF."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .graph import GraphNode, breadth_first, operands_of
from .memory import Write
from .nodes import ConstantNode, Joint, Node, require_history

# The graphviz package is imported where it is used: it would add a sixth to the time `import compgraph` takes.

FORMATS = ("svg", "png", "pdf", "dot")
DIRECTIONS = ("LR", "TB")

# ordering=in: the arrows reach an operation in the order of its operands, so that x - y is told from y - x.
GRAPH_STYLE = {"ordering": "in", "nodesep": "0.2", "ranksep": "0.4", "margin": "0.05"}
NODE_STYLE = {
    "fontname": "Helvetica,Arial,sans-serif",
    "fontsize": "12",
    "height": "0.4",
    "width": "0.5",
    "margin": "0.12,0.06",
    "penwidth": "0",
    "style": "filled",
}
EDGE_STYLE = {"arrowsize": "0.7", "color": "gray40"}
VARIABLE_STYLE = {"shape": "ellipse", "fillcolor": "lightblue"}
CONSTANT_STYLE = {"shape": "ellipse", "fillcolor": "orange"}
OPERATION_STYLE = {"shape": "box", "fillcolor": "purple3", "fontcolor": "white"}
WRITE_STYLE = {**OPERATION_STYLE, "style": "filled,dashed"}
MARKED_STYLE = {"penwidth": "4", "color": "red"}
REST_STYLE = {"shape": "plaintext", "style": ""}

# Characters that SVG cannot hold, that end the text in C, or that would break the line.
UNSHOWABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")

# The renderer in pygraphviz's wheel is a library. It is run in a process of its own because it writes warnings about
# fonts to stderr, cannot be interrupted, and would take the caller along if it crashed.
BUNDLED_RENDERER = """
import sys
import pygraphviz
graph = pygraphviz.AGraph()
graph.from_string(sys.stdin.buffer.read().decode())
sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog="dot"))
"""


class GraphPicture:
    """A picture of a graph; it shows itself in a notebook.

    Attributes
    ----------
    source : str
        The graph in DOT, Graphviz's language.
    """

    __slots__ = ("source",)

    def __init__(self, source: str) -> None:
        self.source = source

    def __repr__(self) -> str:
        return "<GraphPicture: a notebook shows it, .save('graph.svg') writes it to a file>"

    def _repr_svg_(self) -> str:
        return _render(self.source, "svg").decode()

    def save(self, filename: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        filename : str or path
            The file; an existing one is replaced.
        format : {"svg", "png", "pdf", "dot"}, optional
            The file's format; if not given, what follows the last dot of `filename`.

        Raises
        ------
        ValueError
            If the format is none of these.
        FileNotFoundError
            If the folder does not exist.
        """
        path = Path(filename)
        chosen = _checked_format(path, format)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
        path.write_bytes(self.source.encode() if chosen == "dot" else _render(self.source, chosen))


def visualize_at(
    node: np.ndarray[Any, Any],
    filename: str | os.PathLike[str] | None = None,
    format: str | None = None,
    direction: str = "LR",
    *,
    limit: int | None = 1000,
    mark: GraphNode | None = None,
) -> GraphPicture:
    r"""Draw the graph that ends at a node.

    Variables are light blue, constants orange, operations purple; an arrow leads from each operand to the operation
    that uses it.

    Parameters
    ----------
    node : Node
        The result whose computation is drawn.
    filename : str or path, optional
        A file to write the picture to as well.
    format : {"svg", "png", "pdf", "dot"}, optional
        The file's format; if not given, what follows the last dot of `filename`.
    direction : {"LR", "TB"}
        From left to right, or from top to bottom.
    limit : int or None
        How many nodes to draw, those nearest to `node` first; the others are one entry that counts them, because
        the layout of large graphs takes minutes. None draws them all.
    mark : Node, optional
        A node to draw with a red frame.

    Returns
    -------
    GraphPicture
        It shows itself in a notebook; ``.source`` is its DOT text, ``.save(filename)`` writes it to a file.

    Raises
    ------
    TypeError
        If `node` is not a node.
    ValueError
        If the direction or the format is unknown, or the limit less than 1.
    FileNotFoundError
        If the folder of `filename` does not exist.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.visualizer import visualize_at
    >>> x = cg.variable(3.0, "x")
    >>> picture = visualize_at(cg.OperationalNode.create_using(9.0, "mul", x, x, name="square"))
    >>> print(picture.source)  # doctest: +ELLIPSIS
    digraph {
        ...
        n0 [label="mul\nsquare" fillcolor=purple3 fontcolor=white id="node-0" shape=box]
        n1 [label=x fillcolor=lightblue id="node-1" shape=ellipse]
        n1 -> n0 [id="edge-0"]
        n1 -> n0 [id="edge-1"]
    }
    """
    _require_drawable(node, direction, limit)
    if format is not None and filename is None:
        raise ValueError(f"format={format!r} is the format of a file; give a filename too")
    picture = identified_picture(node, direction, limit=limit, mark=mark)[0]
    if filename is not None:
        picture.save(filename, format)
    return picture


def identified_picture(
    node: np.ndarray[Any, Any], direction: str = "LR", *, limit: int | None = 1000, mark: GraphNode | None = None
) -> tuple[GraphPicture, dict[GraphNode, str], dict[tuple[GraphNode, int], str]]:
    """As `visualize_at`, with the ids that the elements of the SVG have, for programs that color or animate them.

    Parameters
    ----------
    node, direction, limit, mark
        As in `visualize_at`.

    Returns
    -------
    picture : GraphPicture
        In its SVG, nodes and edges are ``<g>`` elements with these ids.
    nodes : dict
        From each node drawn to its id, ``"node-0"``, ``"node-1"``, ...
    edges : dict
        From ``(operation, position among its operands)`` to the edge's id, ``"edge-0"``, ``"edge-1"``, ...

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.visualizer import identified_picture
    >>> x = cg.variable(3.0, "x")
    >>> y = cg.sin(x)
    >>> picture, nodes, edges = identified_picture(y)
    >>> nodes[x], edges[y, 0]
    ('node-1', 'edge-0')
    """
    _require_drawable(node, direction, limit)
    import graphviz

    order = breadth_first(node)
    shown = order[:limit]
    places = {each: f"n{place}" for place, each in enumerate(shown)}
    # Automatic names are numbered as they are asked for; so that they follow the computation, the oldest is asked first.
    labels = {each: _label(each) for each in sorted(shown, key=lambda node: node.tick)}
    dot = graphviz.Digraph(graph_attr={"rankdir": direction, **GRAPH_STYLE}, node_attr=NODE_STYLE, edge_attr=EDGE_STYLE)
    ids = {each: f"node-{place}" for place, each in enumerate(shown)}
    for each, place in places.items():
        dot.node(place, _escaped(labels[each]), **_style(each), **(MARKED_STYLE if each is mark else {}), id=ids[each])
    if len(order) > len(shown):
        dot.node("rest", f"… {len(order) - len(shown)} more", **REST_STYLE)
    edges: dict[tuple[GraphNode, int], str] = {}
    for each, place in places.items():
        for position, operand in enumerate(operands_of(each)):
            edges[each, position] = f"edge-{len(edges)}"
            dot.edge(places.get(operand, "rest"), place, id=edges[each, position])
    return GraphPicture(str(dot.source)), ids, edges


def _require_drawable(node: object, direction: str, limit: int | None) -> None:
    require_history(node)
    # To a type checker x * 3 is an array; what has no graph is found out here.
    if not isinstance(node, Node):
        raise TypeError(f"visualize_at draws a node, not a {type(node).__name__}; only what is computed from nodes has a graph")
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None to draw all nodes, not {limit}")


def _label(node: GraphNode) -> str:
    """The words on a node: its operation and its name; of a leaf its name."""
    if isinstance(node, (Joint, Write)):
        return node.opname
    return f"{node.opname}\n{node.name}" if node.opname else str(node.name)


def _style(node: GraphNode) -> dict[str, str]:
    if isinstance(node, ConstantNode):
        return CONSTANT_STYLE
    if isinstance(node, Write):
        return WRITE_STYLE
    return VARIABLE_STYLE if node.function is None else OPERATION_STYLE


def _escaped(text: str) -> str:
    """Text as a DOT label that shows it literally; what cannot be shown appears as Python would write it."""
    import graphviz

    text = UNSHOWABLE.sub(lambda match: repr(match[0])[1:-1], text)
    # graphviz.escape sees to backslashes, quotes and <...>, but DOT also reads &lt; as <, and needs \n for a new line.
    label: str = graphviz.nohtml(graphviz.escape(text).replace("&", "&amp;").replace("\n", r"\n"))
    return label


def _checked_format(path: Path, format: str | None) -> str:
    chosen = (format if format is not None else path.suffix[1:]).lower()
    if chosen not in FORMATS:
        origin = "" if format is not None else f", taken from the end of {path.name!r},"
        raise ValueError(f"format {chosen!r}{origin} is not one of {', '.join(FORMATS)}")
    return chosen


def _render(source: str, format: str) -> bytes:
    """The picture of a DOT text, by an installed ``dot`` or else by the renderer in pygraphviz's wheel."""
    if shutil.which("dot") is not None:
        import graphviz

        picture: bytes = graphviz.pipe("dot", format, source.encode(), quiet=True)
        return picture
    # -P and PYTHONPATH: the renderer is found where this process would find it, and nothing in the current folder is.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", BUNDLED_RENDERER, format]
    done = subprocess.run(command, input=source.encode(), capture_output=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"pygraphviz could not draw the graph: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
