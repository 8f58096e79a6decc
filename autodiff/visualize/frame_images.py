"""The frames of an animation, and images of them. Graphviz lays the graph out once; Matplotlib draws the state of each frame."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compgraph.view import LIGHT, Drawing, dot_of, hex_of, render

from .equations import Line, plain_text

MARGIN, TITLE_HEIGHT, ROW = 14, 26, 20  # points; a row of text below the graph
RESOLUTION, MAX_WIDTH = 150, 1800  # dots per inch, or less: no image is wider than this number of pixels
TEXT_SCALE, BOLD_SCALE = 0.86, 0.76  # DejaVu Sans is wider than Helvetica, for which Graphviz reserves space
FONT: Any = {"font.family": "DejaVu Sans", "text.usetex": False, "path.sketch": None}  # overrides the user's settings
ACTIVE, DERIVATIVE, MUTED = LIGHT.active, LIGHT.adjoint, LIGHT.muted

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
        The arrow along which an adjoint or tangent passes.
    target : int or None
        The entry at which it arrives.
    derivative_text : str
        The adjoint or tangent of the target after this frame.
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
