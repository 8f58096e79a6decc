"""`visualize_at`: a picture of a graph, shown in a notebook or written to a file."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..graph import GraphNode
from ..values import Value, require_history
from .colors import LIGHT, THEMES
from .dot import can_render, dot_of, render
from .drawing import Drawing, Shown, traced_drawing
from .page import page_of
from .write_history import Item

FORMATS = ("svg", "png", "pdf", "dot", "html")
DIRECTIONS = ("LR", "TB")
LIMIT = 300  # Graphviz takes about half a second for so many nodes, and minutes for thousands


class GraphPicture:
    """A picture of a graph; it shows itself in a notebook.

    It holds texts only: it shows the graph as it was when the picture was made, and does not keep the graph alive.

    Attributes
    ----------
    source : str
        The graph in DOT, Graphviz's language.
    """

    __slots__ = ("_drawing", "_page_options", "source")

    def __init__(self, source: str, drawing: Drawing | None = None, **page_options: Any) -> None:
        self.source = source
        self._drawing = drawing
        self._page_options = page_options

    def __repr__(self) -> str:
        return "<GraphPicture: a notebook shows it, .save('graph.svg') writes it to a file>"

    def _repr_svg_(self) -> str | None:
        return render(self.source, "svg").decode() if can_render() or self._drawing is None else None

    def _repr_html_(self) -> str | None:
        """Where Graphviz is not installed: the page, in a frame of its own."""
        if can_render() or self._drawing is None:
            return None
        return f'<iframe srcdoc="{html.escape(self.html())}" style="width: 100%; height: 480px; border: 0"></iframe>'

    def html(self) -> str:
        """The picture as one HTML page that needs no other file, in which one can move, search, open and close boxes.

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
        return page_of(self._drawing, **self._page_options)

    def save(self, filename: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        filename : str or path
            The file; an existing one is replaced.
        format : {"svg", "png", "pdf", "dot", "html"}, optional
            The file's format; if not given, what follows the last dot of `filename`.

        Raises
        ------
        ValueError
            If the format is none of these.
        FileNotFoundError
            If the folder does not exist.
        ModuleNotFoundError
            If the format is SVG, PNG or PDF, and Graphviz is not installed.
        """
        path = Path(filename)
        chosen = _checked_format(path, format)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
        if chosen in ("dot", "html"):
            path.write_bytes((self.source if chosen == "dot" else self.html()).encode())
        else:
            path.write_bytes(render(self.source, chosen))


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
) -> GraphPicture:
    r"""Draw the graph that ends at a node, or a compiled program.

    Variables are light blue, constants orange, operations purple; an arrow leads from each operand to the operation
    that uses it. Operations show their sign, and the name if they were given one; a variable without a name has that of the
    Python variable it was assigned to; a constant shows its number. Names are written as on paper: ``W_1`` with a subscript,
    ``alpha`` as a Greek letter. A write, as ``y[0] =``, leads from the array before it to those that read the array later.

    Of a compiled function the program that was made last is drawn. Operations that are done together, in one pass through memory,
    stand in a box that says for how many elements. A box with a thick border is a loop, and says how many turns it has; dashed
    arrows lead from a turn to the next. What is left to NumPy is not filled.

    Parameters
    ----------
    node : Node, or function made by `compgraph.jit`, or Executor with ``jit=True``
        The result whose computation is drawn, or what was compiled.
    filename : str or path, optional
        A file to write the picture to as well.
    format : {"svg", "png", "pdf", "dot", "html"}, optional
        The file's format; if not given, what follows the last dot of `filename`. HTML is one page that needs no other
        file and no network: in it one can move and zoom, search, open and close boxes, and look at each node's formula,
        value, adjoint and line of code.
    direction : {"LR", "TB"}
        From left to right, or from top to bottom.
    limit : int or None
        How many nodes to draw, those nearest to `node` first; one entry counts the others. The layout of large graphs takes
        minutes. With a limit, more than 8 arrows from one entry to another are drawn as one that counts them, and there are
        at most ``8 * limit`` arrows and `limit` boxes. None draws all.
    mark : Node, optional
        A node to draw with a red frame.
    values, shapes, dtypes, lines : bool
        What to write on the nodes besides operation and name: their values (of large arrays the corners; what was written
        into them later is not in them), shapes, dtypes, and the lines of code that made them.
    adjoints : mapping from nodes to adjoints, optional
        Derivatives to draw, as ``autodiff.reverse.gradient(node, wrt=[...])`` returns them. An adjoint is written on the
        arrow out of its node; on the node itself, as ``∂ =``, if several arrows leave the node, since the adjoint is the sum
        over them, or if none does.
    scopes : {"open", "closed"} or iterable of str
        Whether the boxes of `compgraph.scope` are drawn open, with what is in them, or closed, as one node each; or the names
        of those that are closed (``["encoder/layer1"]``).
    fold : bool, optional
        Whether equal parts in a row (layers, steps of a loop) are drawn once, in a box that counts them; a dashed arrow
        leads from one part to the next. The box shows the last part, or the one with `mark`. By default graphs of more
        than 60 nodes are folded. Of a compiled program: whether boxes of operations that are done together are closed.
    theme : {"light", "dark"}, optional
        The colors. By default light; an HTML page then follows the browser's setting.

    Returns
    -------
    GraphPicture
        It shows itself in a notebook; ``.source`` is its DOT text, ``.save(filename)`` writes it to a file.

    Raises
    ------
    TypeError
        If `node` is not a node.
    ValueError
        If the direction, the format, the theme or a scope is unknown, the limit less than 1, or none of the adjoints belongs
        to the graph; if no machine code was made of a compiled function, or something is asked that a program has not.
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
    is_compiled = not isinstance(node, np.ndarray) and hasattr(node, "programs_made")
    if is_compiled:
        _require_options(direction, limit, theme)
    else:
        _require_drawable(node, direction, limit, theme)
    if format is not None and filename is None:
        raise ValueError(f"format={format!r} is the format of a file; give a filename too")
    if is_compiled:
        options = ProgramOptions(limit, shapes, dtypes, scopes, fold)  # type: ignore[arg-type]
        drawing = drawing_of_program(node, options, mark=mark, values=values, lines=lines, adjoints=adjoints)  # type: ignore[arg-type]
    else:
        shown = Shown(values, shapes, dtypes, lines)
        drawing = traced_drawing(node, limit, mark, shown, adjoints, scopes, fold).drawing  # type: ignore[arg-type]
    picture = _picture(drawing, direction, theme)
    if filename is not None:
        picture.save(filename, format)
    return picture


def identified_picture(
    node: np.ndarray[Any, Any],
    direction: str = "LR",
    *,
    limit: int | None = LIMIT,
    mark: GraphNode | None = None,
    values: bool = False,
    shapes: bool = False,
    theme: str | None = None,
) -> tuple[GraphPicture, dict[Item, str], dict[tuple[Item, int], str]]:
    """A picture as by `visualize_at`, and the ids of the elements of its SVG, for programs that color or animate them.

    Every node drawn has an element of its own: nothing is folded, and all boxes are open.

    Parameters
    ----------
    node, direction, limit, mark, values, shapes, theme
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
    >>> from compgraph.view.visualize import identified_picture
    >>> x = cg.variable(3.0, "x")
    >>> y = cg.sin(x)
    >>> picture, nodes, edges = identified_picture(y)
    >>> nodes[x], edges[y, 0]
    ('node-1', 'edge-0')
    """
    _require_drawable(node, direction, limit, theme)
    traced = traced_drawing(node, limit, mark, Shown(values, shapes), None, "open", False)  # type: ignore[arg-type]
    nodes = {each: f"node-{place}" for each, place in traced.places.items()}
    return _picture(traced.drawing, direction, theme), nodes, {use: f"edge-{number}" for use, number in traced.arrows.items()}


def _picture(drawing: Drawing, direction: str, theme: str | None) -> GraphPicture:
    source = dot_of(drawing, direction, LIGHT if theme is None else THEMES[theme])
    return GraphPicture(source, drawing, direction=direction, theme=theme)


def _require_drawable(node: object, direction: str, limit: int | None, theme: str | None) -> None:
    require_history(node)
    # The signature takes an array, because to a type checker x * 3 is one: so the class is checked here.
    if not isinstance(node, Value):
        raise TypeError(f"visualize_at draws a node, not a {type(node).__name__}; only what is computed from nodes has a graph")
    _require_options(direction, limit, theme)


def _require_options(direction: str, limit: int | None, theme: str | None) -> None:
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None to draw all nodes, not {limit}")
    if theme is not None and theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, not {theme!r}")


def _checked_format(path: Path, format: str | None) -> str:
    if not isinstance(format, (str, type(None))):
        raise TypeError(f"format is one of {', '.join(FORMATS)}, not a {type(format).__name__}")
    chosen = (format if format is not None else path.suffix[1:]).lower()
    if chosen not in FORMATS:
        origin = "" if format is not None else f", taken from the end of {path.name!r},"
        raise ValueError(f"format {chosen!r}{origin} is not one of {', '.join(FORMATS)}")
    return chosen


@dataclass(frozen=True)
class ProgramOptions:
    """Those arguments of `visualize_at` that are about programs too; `fold` closes the boxes of steps that are done together."""

    limit: int | None
    shapes: bool
    dtypes: bool
    scopes: str
    fold: bool | None


class Compiled(Protocol):
    """A function, or a graph, of which programs were made."""

    def programs_made(self) -> Iterable[tuple[Any, Sequence[str]]]:
        """The programs that exist, the latest first, each with the names of its inputs. Those of machine code can be drawn."""


def drawing_of_program(compiled: Compiled, options: ProgramOptions, **others: Any) -> Drawing:
    """The drawing of a compiled program; an error if something else is asked of it that only graphs have."""
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"a compiled program has no {', no '.join(given)} that could be drawn; draw a node of the graph")
    if options.scopes not in ("open", "closed"):
        raise ValueError(f"of a compiled program, scopes must be 'open' or 'closed', not {options.scopes!r}")
    for program, names in compiled.programs_made():
        if hasattr(program, "drawing"):
            drawing: Drawing = program.drawing(options, names)
            return drawing
    raise ValueError(
        "there is no machine code to draw: of a compiled function, call compile(*args) first, and see report(); an Executor is "
        "drawn once it has run with jit=True; of a graph, draw a node"
    )
