"""`animate`, and the `Animation` that it returns: its frames, and images of them.

Graphviz lays the graph out once; Matplotlib draws the state of each frame.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from compgraph.graph import breadth_first, operands_of
from compgraph.view import (
    DIRECTIONS,
    LIGHT,
    Drawing,
    GraphDrawing,
    dot_of,
    draw_graph,
    hex_of,
    notebook_frame,
    page_of,
    render,
    require_resolution,
)

from ..numeric import require_differentiable
from .equations import Line, Writer, has_chosen_name, node_text, plain_text, truncate, unique_names, unused_letter
from .sweep_steps import Step, Sweep, backward, forward

MARGIN, TITLE_HEIGHT, ROW = 14, 26, 20  # points; a row of text below the graph
RESOLUTION, MAX_WIDTH = 150, 1800  # dots per inch, or less: no image is wider than this number of pixels
TEXT_SCALE, BOLD_SCALE = 0.86, 0.76  # DejaVu Sans is wider than Helvetica, for which Graphviz reserves space
FONT: Any = {"font.family": "DejaVu Sans", "text.usetex": False, "path.sketch": None}  # overrides the user's settings
ACTIVE, DERIVATIVE, MUTED = LIGHT.active, LIGHT.cotangent, LIGHT.muted

Operations = Sequence[Mapping[str, Any]]  # Graphviz's drawing operations, as its format "json" has them


@dataclass(frozen=True)
class Frame:
    """One picture of an animation; ``str(frame)`` describes it.

    Attributes
    ----------
    words : str
        A sentence that describes the step.
    lines : list of Line
        The equations.
    node : int or None
        The entry of the current operation.
    arrow : int or None
        The arrow along which a cotangent or tangent passes.
    target : int or None
        The entry at which it arrives.
    derivative_text : str
        The cotangent or tangent of the target after this frame.
    """

    words: str
    lines: list[Line]
    node: int | None = None
    arrow: int | None = None
    target: int | None = None
    derivative_text: str = ""

    def __str__(self) -> str:
        return ". ".join([self.words, *map(plain_text, self.lines)])

    def page_data(self) -> dict[str, object]:
        """Return the data that the page shows."""
        lines = [{"text": plain_text(line), "tokens": [(t.kind, t.text, t.below) for t in line]} for line in self.lines]
        numbers = {"node": self.node, "arrow": self.arrow, "target": self.target}
        return {"description": str(self), "words": self.words, "lines": lines, "derivative": self.derivative_text, **numbers}


@dataclass(frozen=True)
class Layout:
    """Graphviz's layout of a drawing: the size in points, and the drawing operations of boxes, nodes and edges by their ids."""

    width: float
    height: float
    boxes: list[Mapping[str, Any]]
    nodes: dict[str, Mapping[str, Any]]
    edges: dict[str, Mapping[str, Any]]


def compute_layout(drawing: Drawing, direction: str) -> Layout:
    """Lay out a drawing, with space for the derivatives and labels that arrive later."""
    entries = [replace(e, label=f"{e.label}\n∂ {e.slot}  ") if e.slot else e for e in drawing.entries]
    layout = json.loads(render(dot_of(replace(drawing, entries=entries), direction, LIGHT), "json"))
    width, height = map(float, layout["bb"].split(",")[2:])
    objects = layout.get("objects", ())
    nodes = {each["id"]: each for each in objects if "pos" in each}
    return Layout(width, height, [o for o in objects if "pos" not in o], nodes, {e["id"]: e for e in layout.get("edges", ())})


def images_of(title: str, drawing: Drawing, direction: str, frames: Sequence[Frame], dpi: float | None = None) -> Iterator[Any]:
    """Draw each frame as a ``PIL.Image.Image``, all of the same size."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            'images of frames are drawn by Matplotlib: pip install "compgraph[examples]"; a page, .html, needs no package'
        ) from error
    layout = compute_layout(drawing, direction)
    rows = 1 + max(len(frame.lines) for frame in frames)
    longest = max(len(text) for frame in frames for text in (title, frame.words, *map(plain_text, frame.lines)))
    width = max(layout.width, min(longest * 6.2, 800)) + 2 * MARGIN
    below = 2 * MARGIN + ROW * rows
    height = layout.height + TITLE_HEIGHT + 2 * MARGIN + below
    dpi = min(RESOLUTION, 72 * MAX_WIDTH / width) if dpi is None else dpi
    for count in range(1, len(frames) + 1):
        with rc_context(FONT), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in letters that the font lacks
            figure = Figure(figsize=(width / 72, height / 72), dpi=dpi)
            canvas = FigureCanvasAgg(figure)
            axes = figure.add_axes((0, 0, 1, 1))
            left = (width - layout.width) / 2
            axes.set(xlim=(-left, width - left), ylim=(-below, height - below))
            axes.axis("off")
            painter = _Painter(axes)
            painter.draw_state(drawing, layout, frames[:count])
            painter.draw_text(MARGIN - left, height - below - MARGIN, title, 9, ha="left", weight="bold")
            painter.draw_text(
                width - left - MARGIN, height - below - MARGIN, f"{count} of {len(frames)}", 7, ha="right", color=MUTED
            )
            lines = [frames[count - 1].words, *map(plain_text, frames[count - 1].lines)]
            for row, line in enumerate(lines, 1):
                size = (7.5, 9, *[8] * rows)[row - 1]
                fitting = min(1.0, (width - 2 * MARGIN) / (len(line) * size * 0.66))
                painter.draw_text(
                    MARGIN - left, -row * ROW, line, size * fitting, ha="left", color=MUTED if row == 1 else "black"
                )
            buffer: Any = canvas.print_to_buffer()  # type: ignore[no-untyped-call]
        yield Image.frombuffer("RGBA", buffer[1], buffer[0]).convert("RGB")


def save_gif(path: Path, images: Iterator[Any], seconds: float) -> None:
    """Write images to one GIF, which repeats; the last image is displayed twice as long."""
    first, *others = [image.quantize(128, dither=0) for image in images]
    durations = [round(1000 * seconds)] * len(others) + [round(2000 * seconds)]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, disposal=1)


class _Painter:
    """Draws Graphviz's drawing operations with Matplotlib; coordinates are Graphviz's points, upwards."""

    def __init__(self, axes: Any) -> None:
        self.axes = axes

    def draw_state(self, drawing: Drawing, layout: Layout, frames: Sequence[Frame]) -> None:
        """Draw the graph after the last of `frames`."""
        now = frames[-1]
        passed = {frame.arrow for frame in frames}
        derivatives = {frame.target: frame.derivative_text for frame in frames}
        for box in layout.boxes:
            self.draw_shapes(box.get("_draw_", ()))
            self.draw_texts(box.get("_ldraw_", ()))
        for key, edge in layout.edges.items():
            number = int(re.sub(r"\D", "", key))
            style: dict[str, Any] = {"color": DERIVATIVE} if number in passed else {}
            style |= {"width": 2.4} if number == now.arrow else {}
            self.draw_shapes([*edge.get("_draw_", ()), *edge.get("_hdraw_", ())], **style)
            if key.endswith("end") and number not in passed:  # the label between the halves is not there yet
                half = layout.edges[key.removesuffix("-end")]
                ends = zip(half["_draw_"][-1]["points"][-1], edge["_draw_"][-1]["points"][0], strict=True)
                self.axes.plot(*ends, color=hex_of(LIGHT.arrow), linewidth=1.2)
        for key, node in layout.nodes.items():
            number = int(re.sub(r"\D", "", key))
            if key.startswith("label"):
                if number in passed:
                    self.draw_texts(node["_ldraw_"], weight="bold" if number == now.arrow else "normal")
                continue
            fill = ACTIVE if number == now.node else None
            self.draw_shapes(node["_draw_"], fill=fill, outline=DERIVATIVE if number == now.target else None)
            slot = bool(drawing.entries[number].slot)
            self.draw_texts(node["_ldraw_"], 1 if slot else 0, color=LIGHT.active_text if fill else None)
            if slot:
                self.draw_slot(node, derivatives.get(number))

    def draw_shapes(
        self,
        operations: Operations,
        fill: str | None = None,
        outline: str | None = None,
        color: str | None = None,
        width: float = 0,
    ) -> None:
        """Draw lines and filled shapes; `fill`, `outline`, `color` (of both) and `width` override Graphviz's."""
        from matplotlib.patches import Ellipse, PathPatch
        from matplotlib.path import Path as Curve

        pen, brush, thickness = "none", "none", 1.0
        for each in operations:
            kind = each["op"]
            if kind == "c":
                pen = each["color"]
            elif kind == "C":
                brush = each["color"]
            elif kind == "S" and each["style"].startswith("setlinewidth"):
                thickness = float(each["style"][13:-1])
            elif kind in "EePpBb":
                edge = outline or color or (pen if thickness else "none")
                # Lower-case letters are unfilled shapes, upper-case letters filled ones.
                style: Any = {"facecolor": (fill or color or brush) if kind.isupper() else "none", "edgecolor": edge}
                style["linewidth"] = 2.2 if outline else width or thickness
                if kind in "Ee":
                    x, y, half_width, half_height = each["rect"]
                    self.axes.add_patch(Ellipse((x, y), 2 * half_width, 2 * half_height, **style))
                    continue
                points = each["points"] if kind in "Bb" else [*each["points"], each["points"][0]]
                codes = [Curve.MOVETO, *[Curve.CURVE4 if kind in "Bb" else Curve.LINETO] * (len(points) - 1)]
                self.axes.add_patch(PathPatch(Curve(points, codes), **style))

    def draw_texts(self, operations: Operations, omitted: int = 0, color: str | None = None, weight: str = "normal") -> None:
        """Write texts, without the last `omitted` ones."""
        size, pen, text_operations = 0.0, "black", [each for each in operations if each["op"] in "FcT"]
        count = sum(each["op"] == "T" for each in text_operations) - omitted
        for each in text_operations:
            if each["op"] == "F":
                size = each["size"]
            elif each["op"] == "c":
                pen = each["color"]
            elif count > 0:
                count -= 1
                (x, y), half = each["pt"], each["width"] / 2
                x += {"l": half, "c": 0, "r": -half}[each["align"]]
                scale = TEXT_SCALE if weight == "normal" else BOLD_SCALE
                self.draw_text(x, y + 0.3 * size, each["text"], size * scale, color=color or pen, weight=weight)

    def draw_slot(self, node: Mapping[str, Any], derivative: str | None) -> None:
        """Draw the slot of a node, with its derivative if one has arrived."""
        from matplotlib.patches import FancyBboxPatch

        text = [each for each in node["_ldraw_"] if each["op"] == "T"][-1]
        x, y, width, height = float(node["pos"].split(",")[0]), text["pt"][1] + 4, 72 * float(node["width"]) - 14, 14
        shape: Any = {"facecolor": hex_of(LIGHT.background), "edgecolor": "none" if derivative is None else DERIVATIVE}
        corner = FancyBboxPatch((x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=5", **shape)
        corner.set_alpha(0.3 if derivative is None else 1)
        self.axes.add_patch(corner)
        if derivative is not None:
            self.draw_text(x, y, f"∂ {derivative}", 13 * BOLD_SCALE, color=DERIVATIVE, weight="bold")

    def draw_text(self, x: float, y: float, words: str, size: float, ha: str = "center", **style: Any) -> None:
        """Write text, centered at a height."""
        self.axes.text(x, y, words, fontsize=size, ha=ha, va="center", parse_math=False, **style)


FORMATS = ("html", "gif")
EDGES_PER_NODE = 4  # the maximum, times `limit`
MAX_LISTED = 4  # variables in a title, at most


class Animation:
    """The frames of a sweep of a derivative through a graph, which a notebook displays.

    Attributes
    ----------
    sweep : Sweep
        The steps, as data.
    frames : list of Frame
        The start, each step, and the result. ``str(frame)`` describes the frame.
    """

    __slots__ = ("_direction", "_drawing", "_title", "frames", "sweep")

    def __init__(self, sweep: Sweep, direction: str) -> None:
        self.sweep, self._direction = sweep, direction
        graph = draw_graph(sweep.output)
        names = unique_names(list(graph.numbers))
        _label_entries(graph, sweep, names)
        self._drawing = graph.drawing
        self._title, self.frames = _frames_of(sweep, graph, names)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<Animation of {len(self)} frames: a notebook shows it, .save('sweep.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return notebook_frame(self.html(), self._title, 720)

    def html(self, seconds: float = 1.5) -> str:
        """Return the animation as one self-contained page. On a narrow screen the graph is rotated if it can be drawn larger.

        Parameters
        ----------
        seconds : float
            The duration of a frame while the animation plays.

        Returns
        -------
        str
        """
        _require_positive(seconds)
        frames = [frame.page_data() for frame in self.frames]
        data = {**self._drawing.page_data(self._direction), "frames": frames, "seconds": seconds, "mode": self.sweep.mode}
        return page_of("animation", self._title, data)

    def save(self, filename: str | os.PathLike[str], seconds: float = 1.5, *, dpi: float | None = None) -> None:
        """Write the animation to a file: a page with controls, or a GIF.

        Parameters
        ----------
        filename : str or path
            The file, which ends in ``.html`` or ``.gif``; an existing one is replaced.
        seconds : float
            The duration of a frame while the animation plays.
        dpi : float, optional
            The resolution of a GIF, in dots per inch; by default 150, or less for wide graphs.

        Raises
        ------
        ValueError
            If the file has a different ending, or the duration or `dpi` is not positive; if `dpi` is set for a page.
        ImportError
            For a GIF, if Matplotlib is not installed.
        """
        path = Path(filename)
        ending = path.suffix[1:].lower()
        if ending not in FORMATS:
            raise ValueError(f"an animation is saved as .html or .gif, not {path.name!r}; single pictures by save_frames(folder)")
        if ending == "html":
            if dpi is not None:
                raise ValueError("dpi is the resolution of a GIF or of frames; a page has none and is drawn sharply at each size")
            path.write_text(self.html(seconds), encoding="utf-8")
        else:
            _require_positive(seconds)
            save_gif(path, self._images(dpi), seconds)

    def save_frames(self, folder: str | os.PathLike[str], *, dpi: float | None = None) -> list[Path]:
        """Write each frame as a PNG.

        Parameters
        ----------
        folder : str or path
            The folder to write into, which is created if needed.
        dpi : float, optional
            The resolution, in dots per inch; by default 150, or less for wide graphs.

        Returns
        -------
        list of Path
            The files, ``frame-000.png`` and so on.

        Raises
        ------
        ValueError
            If `dpi` is not positive.
        ImportError
            If Matplotlib is not installed.
        """
        images = self._images(dpi)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for count, image in enumerate(images):
            paths.append(folder / f"frame-{count:03d}.png")
            image.save(paths[-1])
        return paths

    def _images(self, dpi: float | None = None) -> Iterator[Any]:
        if dpi is not None:
            require_resolution(dpi)
        return images_of(self._title, self._drawing, self._direction, self.frames, dpi)


def animate(
    node: np.ndarray[Any, Any],
    wrt: object = None,
    *,
    mode: str = "reverse",
    seed: Any = None,
    direction: str = "LR",
    limit: int = 60,
) -> Animation:
    """Animate the propagation of a derivative through a graph, one edge at a time.

    In each frame the current operation is green. In reverse mode it passes a contribution to the cotangent of one operand, and
    the operand sums its contributions. In forward mode the operation receives the contribution of one operand to its tangent.
    The chain rule of the step, with its numbers, is below the graph.

    Parameters
    ----------
    node : Node
        The node to differentiate; for an array, the sum of its elements, weighted by `seed`.
    wrt : Node, str, or sequence of them, optional
        The variables, as in `autodiff.reverse.gradient`; by default all. In forward mode one node, where the tangent starts.
    mode : {"reverse", "forward"}
        Whether cotangents pass from the result to the variables, or a tangent from a variable to the result.
    seed : array_like, optional
        The cotangent of `node` to start from, or in forward mode the tangent of `wrt`, of its shape; ones by default.
    direction : {"LR", "TB"}
        Whether the graph is drawn from left to right or from top to bottom.
    limit : int
        The maximal number of nodes, with at most four times as many edges. The layout of large graphs takes minutes.

    Returns
    -------
    Animation
        A notebook displays it; ``.save("sweep.html")`` and ``.save("sweep.gif")`` write it to a file, ``.save_frames(folder)``
        writes a PNG for each frame.

    Raises
    ------
    TypeError
        If `node` is not a node, or an operation between it and `wrt` has no derivative.
    ValueError
        If the mode or the direction is unknown, the graph is too large, an array in it was written in place, the shape of the
        seed is wrong, `node` does not depend on `wrt`, or in forward mode `wrt` is not one node.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.visualize import animate
    >>> x = cg.variable(3.0, "x")
    >>> for frame in animate(cg.multiply(x, 5.0, name="f")).frames:
    ...     print(frame)
    The cotangent of the result is the start. ∂f/∂f = 1
    f passes its cotangent back to its first operand, x. ∂f/∂x += ∂f/∂f · ∂f/∂x = 1 × 5 = 5. with ∂f/∂x = 5
    The gradient is complete. ∂f/∂x = 5
    """
    if mode not in ("reverse", "forward"):
        raise ValueError(f"mode must be 'reverse' or 'forward', not {mode!r}")
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    require_differentiable("animate", node)
    nodes = breadth_first(node)  # type: ignore[arg-type]
    size, uses = len(nodes), sum(len(operands_of(each)) for each in nodes)
    if size <= limit < uses / EDGES_PER_NODE:
        raise ValueError(
            f"the graph has {uses} edges, and an animation with limit={limit} shows at most {EDGES_PER_NODE * limit}. Animate "
            "a smaller case, or pass a larger limit. visualize_at draws large graphs"
        )
    if size > limit:
        raise ValueError(
            f"the graph has {size} nodes, and an animation shows at most {limit}. Animate a smaller case or a node nearer "
            "to the variables, or pass limit=. visualize_at draws large graphs"
        )
    return Animation((backward if mode == "reverse" else forward)(node, wrt, seed), direction)


def _require_positive(seconds: float) -> None:
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, not {seconds}")


# ------------------------------------------------------------------------------------------ the frames


def _label_entries(graph: GraphDrawing, sweep: Sweep, names: dict[Any, str]) -> None:
    """Label the entries with names and values, and reserve space for the cotangents or tangents that arrive."""
    entries, arrows = graph.drawing.entries, graph.drawing.arrows
    for node, number in graph.numbers.items():
        title = truncate(f"{node.opname}: {names[node]}") if has_chosen_name(node) else names[node]
        value = node_text(node.raw_value)  # type: ignore[union-attr]  # no writes: `backward` and `forward` raise for them
        entries[number].label = title if value == title else f"{title}\n{value}"
        entries[number].has_symbol = False
        entries[number].details["title"] = names[node]
    arriving = [(node, seed) for node, seed in sweep.start.items()]
    for step in sweep.steps:
        arriving.append((step.operand if sweep.mode == "reverse" else step.node, step.total))
        arrows[graph.arrows[step.node, _position(step)]].label = node_text(step.derivative_on_edge)
    for node, value in arriving:
        entry = entries[graph.numbers[node]]
        entry.slot = max(entry.slot, node_text(value), key=len)


def _position(step: Step) -> int:
    """Return the position of a step's operand among the drawn ones, which include plain numbers."""
    earlier = sum(step.node.args[k] is step.operand for k in step.node.parent_argnums if k < step.position)
    return [k for k, operand in enumerate(operands_of(step.node)) if operand is step.operand][earlier]


def _frames_of(sweep: Sweep, graph: GraphDrawing, names: dict[Any, str]) -> tuple[str, list[Frame]]:
    """Return the title and the frames of a sweep."""
    is_reverse, output = sweep.mode == "reverse", sweep.output
    result = names[output] if has_chosen_name(output) or not output.opname else unused_letter("f", names)
    writer = Writer(names, result if is_reverse else unused_letter("t", names), sweep.mode)
    ((first, seed),) = sweep.start.items()
    words = "The cotangent of the result is the start" if is_reverse else f"The tangent of {names[first]} is the start"
    frames = [Frame(words, [writer.start(sweep)], target=graph.numbers[first], derivative_text=node_text(seed))]
    for step in sweep.steps:
        operation, target = graph.numbers[step.node], graph.numbers[step.operand if is_reverse else step.node]
        arrow = graph.arrows[step.node, _position(step)]
        frames.append(Frame(writer.describe(step), writer.step(step), operation, arrow, target, node_text(step.total)))
    frames.append(Frame("The gradient is complete" if is_reverse else "The tangent has arrived", writer.result(sweep)))
    if is_reverse:
        return f"Reverse mode: {_name_derivative(result, [names[node] for node in sweep.result])}", frames
    return f"Forward mode: {result} as {names[first]} moves", frames


def _name_derivative(result: str, names: list[str]) -> str:
    """Name the derivative that is computed, with its variables if they are few."""
    if len(names) > MAX_LISTED:
        return f"the gradient of {result}"
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"the {'gradient' if others else 'derivative'} of {result} with respect to {listed}"
