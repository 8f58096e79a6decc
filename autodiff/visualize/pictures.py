"""The frames as pictures, drawn by Matplotlib: single PNGs, or one GIF."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .equations import plain
from .frames import Frame
from .layout import ROW, Arrow, Box, Layout
from .page import MARGIN, head_of

FILLS = {"variable": "#add8e6", "constant": "#ffa500", "operation": "#7d26cd"}
ACTIVE, DERIVATIVE, LINE, SOFT = "#1a7f37", "#116329", "#6b7480", "#57606a"
TEXT_ROW = 27  # pixels from one equation to the next
SCALE, WIDEST = 1.5, 1800  # a picture has 1.5 pixels for one of the layout, but is at most so many pixels wide
FONT: Any = {"font.family": "DejaVu Sans", "text.usetex": False, "path.sketch": None}  # instead of the user's settings


def draw(title: str, layout: Layout, frames: Sequence[Frame], mode: str) -> Iterator[Any]:
    """Each frame as a ``PIL.Image.Image``, all of the same size."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "pictures of frames are drawn by Matplotlib: pip install matplotlib; a page, .html, needs nothing"
        ) from error
    rows = max(len(frame.lines) for frame in frames)
    longest = max(len(text) for frame in frames for text in (frame.words, *map(plain, frame.lines)))
    width = max(layout.width, min(longest * 8.4, 1100)) + 2 * MARGIN
    height = layout.height + 2 * MARGIN + 40 + TEXT_ROW * (rows + 1) + 12
    for count in range(len(frames)):
        with rc_context(FONT), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in letters that the font lacks
            figure = Figure(figsize=(width / 100, height / 100), dpi=min(100 * SCALE, 100 * WIDEST / width))
            canvas = FigureCanvasAgg(figure)
            axes = figure.add_axes((0, 0, 1, 1))
            axes.set(xlim=(0, width), ylim=(height, 0))
            axes.axis("off")
            painter = _Painter(axes, (width - layout.width) / 2, 40 + MARGIN)
            painter.frame(title, layout, frames[: count + 1], f"{count + 1} of {len(frames)}", width)
            drawn: Any = canvas.print_to_buffer()  # type: ignore[no-untyped-call]
        yield Image.frombuffer("RGBA", drawn[1], drawn[0]).convert("RGB")


def save_gif(path: Path, title: str, layout: Layout, frames: Sequence[Frame], mode: str, seconds: float) -> None:
    """All frames in one GIF, which begins again at its end."""
    first, *rest = [picture.quantize(128, dither=0) for picture in draw(title, layout, frames, mode)]
    lasting = [round(1000 * seconds)] * len(frames)
    lasting[-1] *= 2
    first.save(path, save_all=True, append_images=rest, duration=lasting, loop=0, disposal=1)


class _Painter:
    """Draws into a picture. Coordinates are pixels of the layout, whose top left corner stands at (`left`, `top`)."""

    def __init__(self, axes: Any, left: float, top: float) -> None:
        self.axes, self.left, self.top = axes, left, top

    def frame(self, title: str, layout: Layout, frames: Sequence[Frame], count: str, width: float) -> None:
        """Draw the state after the last of `frames`."""
        now = frames[-1]
        labels = {frame.arrow: frame.label for frame in frames if frame.arrow}
        derivatives = {frame.target: frame.shown for frame in frames if frame.target}
        self.axes.text(MARGIN, 24, title, fontsize=12, weight="bold", va="center", parse_math=False)
        self.axes.text(width - MARGIN, 24, count, fontsize=9, ha="right", va="center", color=SOFT)
        for arrow in layout.arrows.values():
            self.arrow(arrow, labels.get(arrow), arrow is now.arrow)
        for box in layout.boxes.values():
            self.box(box, derivatives.get(box), box is now.box, box is now.target)
        y = self.top + layout.height + MARGIN + TEXT_ROW
        self.axes.text(MARGIN, y, now.words, fontsize=9.5, color=SOFT, va="center", parse_math=False)
        for row, line in enumerate(now.lines, 1):
            text = plain(line)
            size = 11.5 if row == 1 else 10
            fits = min(1.0, (width - 2 * MARGIN) / (len(text) * size * 0.9))
            self.axes.text(MARGIN, y + row * TEXT_ROW, text, fontsize=size * fits, va="center", parse_math=False)

    def text(self, x: float, y: float, words: str, **style: Any) -> None:
        """Draw words, centered at a point."""
        self.axes.text(self.left + x, self.top + y, words, ha="center", va="center", parse_math=False, **style)

    def arrow(self, arrow: Arrow, label: str | None, active: bool) -> None:
        """Draw an edge, with what has passed along it."""
        from matplotlib.patches import PathPatch, Polygon
        from matplotlib.path import Path as Curve

        def moved(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
            return [(self.left + x, self.top + y) for x, y in points]

        color = LINE if label is None else ACTIVE
        codes = [Curve.MOVETO, *[Curve.CURVE4] * (len(arrow.curve) - 1)]
        width = 2.2 if active else 0.9
        self.axes.add_patch(PathPatch(Curve(moved(arrow.curve), codes), fill=False, edgecolor=color, linewidth=width))
        self.axes.add_patch(Polygon(moved(head_of(arrow)), facecolor=color, edgecolor="none"))
        if label is not None:
            weight = "bold" if active else "normal"
            plate = {"facecolor": "white", "edgecolor": "none", "pad": 0.1}
            x, y = arrow.label
            self.text(x, y - 2, label, fontsize=7.6, color=DERIVATIVE, weight=weight, bbox=plate)

    def box(self, box: Box, derivative: str | None, active: bool, target: bool) -> None:
        """Draw a node, with its adjoint or tangent if one has arrived."""
        from matplotlib.patches import FancyBboxPatch

        def rectangle(x: float, y: float, width: float, height: float, corner: float, **style: Any) -> None:
            place = (self.left + x + corner, self.top + y + corner)
            shape = f"round,pad={corner},rounding_size={corner}"
            self.axes.add_patch(FancyBboxPatch(place, width - 2 * corner, height - 2 * corner, boxstyle=shape, **style))

        left, top = box.x - box.width / 2, box.y - box.height / 2
        corner = 6 if box.kind == "operation" else min(box.height / 2, 22)
        edge = {"edgecolor": ACTIVE if target else "none", "linewidth": 2.2}
        rectangle(left, top, box.width, box.height, corner, facecolor=ACTIVE if active else FILLS[box.kind], **edge)
        color = "white" if active or box.kind == "operation" else "black"
        self.text(box.x, top + 16, box.title, fontsize=8.4, weight="bold", color=color)
        if box.value:
            self.text(box.x, top + 16 + ROW, box.value, fontsize=8.4, color=color)
        if box.slot:
            y = top + box.height - ROW - 7
            slot: Any = {"facecolor": "white", "edgecolor": "none" if derivative is None else ACTIVE}
            alpha = 0.25 if derivative is None else 1
            rectangle(left + 7, y, box.width - 14, ROW, 3 if box.kind == "operation" else ROW / 2, alpha=alpha, **slot)
            if derivative is not None:
                self.text(box.x, y + ROW / 2, f"∂ {derivative}", fontsize=8, weight="bold", color=DERIVATIVE)
