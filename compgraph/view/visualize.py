"""`visualize_at`: a picture of a graph or of a compiled program, displayed in a notebook or written to a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..graph import GraphNode
from ..values import Value, require_history
from .colors import LIGHT, THEMES
from .dot import add_tooltips, can_render, dot_of, render
from .drawing import Drawing, ExtraTexts, draw_graph
from .page import notebook_frame, page_of, require_folder, require_resolution

FORMATS = ("svg", "png", "pdf", "dot", "html")
DIRECTIONS = ("LR", "TB")
LIMIT = 300  # Graphviz takes about half a second for so many nodes, and minutes for thousands
TITLE = "Computation graph"


class GraphPicture:
    """A picture of a graph, which a notebook displays.

    It holds texts only: it shows the graph at the time the picture was made, and does not keep the graph alive.

    Attributes
    ----------
    source : str
        The graph in DOT, Graphviz's language.
    """

    __slots__ = ("_direction", "_drawing", "_legend", "_theme", "source")

    def __init__(
        self,
        source: str,
        drawing: Drawing | None = None,
        direction: str = "LR",
        theme: str | None = None,
        legend: bool | None = None,
    ) -> None:
        if not isinstance(source, str) or not isinstance(drawing, Drawing | None):
            raise TypeError("GraphPicture takes DOT text. Use visualize_at(node) for the picture of a node.")
        self.source = source
        self._drawing, self._direction, self._theme, self._legend = drawing, direction, theme, legend

    def __repr__(self) -> str:
        return "<GraphPicture: a notebook shows it, .save('graph.svg') writes it to a file>"

    def _repr_svg_(self) -> str | None:
        return self._render("svg").decode() if can_render() or self._drawing is None else None

    def _repr_html_(self) -> str | None:
        """The HTML page in an inline frame, if Graphviz is missing."""
        return None if can_render() or self._drawing is None else notebook_frame(self.html(), TITLE, 480)

    def html(self) -> str:
        """Return the picture as one HTML page that needs no other file. In it one can pan, zoom, search, open and close boxes.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the picture was made from DOT text alone.
        """
        if self._drawing is None:
            raise ValueError("a picture made from DOT text alone has no HTML page; make it with visualize_at")
        data = self._drawing.page_data(self._direction, self._legend is not False)
        return page_of("graph", TITLE, data, self._theme)

    def _render(self, format: str, dpi: float | None = None) -> bytes:
        picture = render(self.source, format, dpi)
        return add_tooltips(picture, self._drawing) if format == "svg" and self._drawing is not None else picture

    def save(self, filename: str | os.PathLike[str], format: str | None = None, *, dpi: float | None = None) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        filename : str or path
            The file; an existing one is replaced.
        format : {"svg", "png", "pdf", "dot", "html"}, optional
            The format of the file; by default the suffix of `filename`.
        dpi : float, optional
            The resolution of a PNG, in dots per inch; by default 96.

        Raises
        ------
        ValueError
            If the format is unknown, or `dpi` does not apply to it, is not positive, or is too large for Graphviz.
        FileNotFoundError
            If the folder does not exist.
        ModuleNotFoundError
            If the format is SVG, PNG or PDF, and Graphviz is not installed.
        """
        path = Path(filename)
        chosen = _resolve_format(path, format)
        if dpi is not None:
            if chosen != "png":
                raise ValueError(f"dpi is the resolution of a PNG; {chosen.upper()} has none and is drawn sharply at each size")
            require_resolution(dpi)
        require_folder(path)
        if chosen in ("dot", "html"):
            path.write_bytes((self.source if chosen == "dot" else self.html()).encode())
        else:
            path.write_bytes(self._render(chosen, dpi))


def visualize_at(
    node: np.ndarray[Any, Any] | Compiled,
    filename: str | os.PathLike[str] | None = None,
    format: str | None = None,
    direction: str = "LR",
    *,
    limit: int | None = LIMIT,
    mark: GraphNode | None = None,
    values: bool = False,
    shapes: bool = False,
    dtypes: bool = False,
    lines: bool = False,
    adjoints: Mapping[Any, Any] | None = None,
    scopes: str | Iterable[str] = "open",
    fold: bool | None = None,
    theme: str | None = None,
    legend: bool | None = None,
    dpi: float | None = None,
) -> GraphPicture:
    r"""Draw the graph that ends at a node, or a compiled program.

    Variables are light blue, placeholders light blue with a dashed border, constants orange, operations purple. An arrow leads
    from each operand to the operation that uses it. Operations are labeled with their symbol or opname, and the user's name
    if there is one. A variable without a name has the name of the Python variable it was assigned to; a constant shows its
    number. Names are typeset: ``W_1`` with a subscript, ``alpha`` as a Greek letter. A write, as ``y[0] =``, leads from the
    array before it to later readers of the array. In SVG and HTML, each node has a tooltip: its formula, shape, dtype,
    value and line of code.

    For a compiled function, the program compiled last is drawn. Operations of one pass through memory share a box, whose title
    is the number of elements. A box with a thick border is a loop, titled with its number of iterations; dashed arrows lead from
    one iteration to the next. Operations that are left to NumPy are not filled.

    Parameters
    ----------
    node : Node, or function made by `compgraph.jit`, or Executor with ``jit=True``
        The result whose computation is drawn, or the compiled function.
    filename : str or path, optional
        A file to write the picture to as well.
    format : {"svg", "png", "pdf", "dot", "html"}, optional
        The format of the file; by default the suffix of `filename`. HTML is one page that needs no other file and no network.
        In it one can pan, zoom, search, open and close boxes, and read each node's formula, value, cotangent and line of code.
    direction : {"LR", "TB"}
        From left to right, or from top to bottom.
    limit : int or None
        The number of nodes to draw, those nearest to `node` first; one entry counts the others. The layout of large graphs
        takes minutes. With a limit, more than 8 arrows from one entry to another are drawn as one with a count, and there are
        at most ``8 * limit`` arrows and `limit` boxes. None draws all.
    mark : Node, optional
        A node to draw with a red frame.
    values, shapes, dtypes, lines : bool
        Further texts on the nodes: their values (the corners of large arrays, without later writes), shapes, dtypes, and the
        lines of code that made them.
    adjoints : mapping from nodes to cotangents, optional
        Derivatives to draw, as ``autodiff.reverse.gradient(node, wrt=[...])`` returns them. A cotangent is written on the
        arrow out of its node. It is written on the node itself, as ``∂ =``, if no arrow leaves the node, or several do, because
        the cotangent is the sum over them.
    scopes : {"open", "closed"} or iterable of str
        Whether the boxes of `compgraph.scope` are drawn open, or closed as one node each; or the names of the closed ones
        (``["encoder/layer1"]``).
    fold : bool, optional
        Whether equal consecutive parts (layers, steps of a loop) are drawn once, in a box that counts them; a dashed arrow
        leads from one part to the next. The box shows the last part, or the one with `mark`. By default graphs of more
        than 60 nodes are folded. For a compiled program: whether boxes of operations of one pass are closed.
    theme : {"light", "dark"}, optional
        The colors. By default light; an HTML page then follows the browser's setting.
    legend : bool, optional
        Whether a legend of the colors is drawn below the graph. By default only HTML pages have one.
    dpi : float, optional
        The resolution of a PNG, in dots per inch; by default 96.

    Returns
    -------
    GraphPicture
        A notebook displays it; ``.source`` is its DOT text, ``.save(filename)`` writes it to a file.

    Raises
    ------
    TypeError
        If `node` is not a node.
    ValueError
        If the direction, the format, the theme or a scope is unknown, the limit is less than 1, or none of the cotangents belongs
        to the graph; if `dpi` is not positive, or the file is not a PNG; if a compiled function has no machine code, or an option
        does not apply to programs.
    FileNotFoundError
        If the folder of `filename` does not exist.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.view.visualize import visualize_at
    >>> x = cg.variable(3.0, "x")
    >>> picture = visualize_at(cg.exp(x, name="growth"))
    >>> print(picture.source)  # doctest: +ELLIPSIS
    digraph {
        ...
        n1 [label=x fillcolor=lightblue id="node-1" shape=ellipse]
        n0 [label="exp\ngrowth" fillcolor=purple3 fontcolor=white id="node-0" shape=box style="rounded,filled"]
        n1 -> n0 [id="edge-0"]
    }
    """
    is_compiled = not isinstance(node, np.ndarray) and hasattr(node, "compiled_programs")
    if not is_compiled:
        require_history(node)
        # To a type checker x * 3 is an array, so the signature takes one and the class is checked here.
        if not isinstance(node, Value):
            advice = (
                "the node comes first, visualize_at(node, path)"
                if isinstance(filename, Value)
                else "only results of nodes have a graph"
            )
            raise TypeError(f"visualize_at draws a node, not a {type(node).__name__}; {advice}")
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None to draw all nodes, not {limit}")
    if theme is not None and theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, not {theme!r}")
    if format is not None and filename is None:
        raise ValueError(f"format={format!r} is the format of a file; pass a filename too")
    if dpi is not None and filename is None:
        raise ValueError(f"dpi={dpi!r} is the resolution of a PNG file; pass a filename too, or call save(filename, dpi=)")
    if is_compiled:
        options = ProgramOptions(limit, shapes, dtypes, scopes, fold)  # type: ignore[arg-type]
        drawing = drawing_of_program(node, options, mark=mark, values=values, lines=lines, adjoints=adjoints)  # type: ignore[arg-type]
    else:
        drawing = draw_graph(node, limit, mark, ExtraTexts(values, shapes, dtypes, lines), adjoints, scopes, fold).drawing  # type: ignore[arg-type]
    source = dot_of(drawing, direction, LIGHT if theme is None else THEMES[theme], legend=bool(legend))
    picture = GraphPicture(source, drawing, direction, theme, legend)
    if filename is not None:
        picture.save(filename, format, dpi=dpi)
    return picture


def _resolve_format(path: Path, format: str | None) -> str:
    if not isinstance(format, (str, type(None))):
        raise TypeError(f"format is one of {', '.join(FORMATS)}, not a {type(format).__name__}")
    chosen = (format if format is not None else path.suffix[1:]).lower()
    if chosen not in FORMATS:
        origin = "" if format is not None else f", the suffix of {path.name!r},"
        advice = "" if chosen else f". Write a path such as '{path.name}.svg'"
        raise ValueError(f"format {chosen!r}{origin} is not one of {', '.join(FORMATS)}{advice}")
    return chosen


# --------------------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class ProgramOptions:
    """The arguments of `visualize_at` that apply to programs; `fold` closes the boxes of steps of one pass through memory."""

    limit: int | None
    shapes: bool
    dtypes: bool
    scopes: str
    fold: bool | None


class Compiled(Protocol):
    """A compiled function or graph."""

    def compiled_programs(self) -> Iterable[tuple[object, Sequence[str]]]:
        """Return the existing programs, latest first, each with its input names. Those of machine code can be drawn."""


def drawing_of_program(compiled: Compiled, options: ProgramOptions, **others: object) -> Drawing:
    """Draw a compiled program. Raise a ValueError if one of the `others`, which apply to graphs only, is set."""
    unusable = [name for name, value in others.items() if value is not None and value is not False]
    if unusable:
        raise ValueError(f"a compiled program has no {', no '.join(unusable)} that could be drawn; draw a node of the graph")
    if options.scopes not in ("open", "closed"):
        raise ValueError(f"of a compiled program, scopes must be 'open' or 'closed', not {options.scopes!r}")
    for program, names in compiled.compiled_programs():
        if hasattr(program, "drawing"):
            drawing: Drawing = program.drawing(options, names)
            return drawing
    raise ValueError(
        "there is no machine code to draw. Call compile(*args) of a compiled function (see report()), or run an Executor with "
        "jit=True. For a graph, draw a node"
    )
