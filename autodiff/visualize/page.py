"""The frames as one HTML page: a drawing, the equations of each frame, and controls. It loads nothing from the network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .equations import plain
from .frames import Frame
from .layout import ROW, Arrow, Box, Layout

HERE = Path(__file__).parent
MARGIN = 12


@cache
def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def page(title: str, layout: Layout, turned: Layout, frames: Sequence[Frame], mode: str, seconds: float) -> str:
    """The text of the whole page; `turned` is for narrow screens, `seconds` is how long each frame stays."""
    parts = {
        "title": html.escape(title),
        "style": _part("page.css"),
        "script": _part("page.js"),
        "drawing": _drawing(title, layout, mode),
        "turned": _drawing(title, turned, mode),
        "steps": "\n".join(_step(frame) for frame in frames),
        "mode": mode,
        "derivative": "adjoint" if mode == "reverse" else "tangent",
        "last": str(len(frames) - 1),
        "data": json.dumps(_data(frames, seconds)).replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html"))


def _data(frames: Sequence[Frame], seconds: float) -> dict[str, Any]:
    """What the page's script needs: for each frame, the operation at work, and what is shown from then on."""
    return {
        "seconds": seconds,
        "frames": [
            {
                "said": str(frame),
                "node": frame.box and frame.box.key,
                "edge": frame.arrow and frame.arrow.key,
                "label": frame.label,
                "target": frame.target and frame.target.key,
                "shown": frame.shown,
            }
            for frame in frames
        ],
    }


def _step(frame: Frame) -> str:
    lines = [
        f'<p class="math" role="math" aria-label="{html.escape(plain(line))}">{"".join(token.html() for token in line)}</p>'
        for line in frame.lines
    ]
    return f'<li><p class="words">{html.escape(frame.words)}</p>{"".join(lines)}</li>'


def _drawing(title: str, layout: Layout, mode: str) -> str:
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    inside = [*(_arrow(a) for a in layout.arrows.values()), *(_box(b, mode) for b in layout.boxes.values())]
    labels = [_label(a) for a in layout.arrows.values()]
    return (
        f'<svg id="drawing" role="img" aria-label="{html.escape(title)}: the graph" style="--width:{width:.0f}px" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:.1f} {height:.1f}">\n' + "\n".join([*inside, *labels]) + "\n</svg>"
    )


def _arrow(arrow: Arrow) -> str:
    (x, y), *rest = arrow.curve
    curve = f"M{x:.1f},{y:.1f} C" + " ".join(f"{px:.1f},{py:.1f}" for px, py in rest)
    # Graphviz's curve ends where the head of the arrow begins, so the head is drawn from there to the tip.
    head = " ".join(f"{px:.1f},{py:.1f}" for px, py in head_of(arrow))
    return f'<g class="edge" id="{arrow.key}"><path d="{curve}"/><path class="flow" d="{curve}"/><polygon points="{head}"/></g>'


def head_of(arrow: Arrow) -> list[tuple[float, float]]:
    """The corners of an arrow's head."""
    (x, y), (tx, ty) = arrow.curve[-1], arrow.tip
    dx, dy = (tx - x) * 0.4, (ty - y) * 0.4
    return [(tx, ty), (x - dy, y + dx), (x + dy, y - dx)]


def _label(arrow: Arrow) -> str:
    x, y = arrow.label
    return f'<text class="label" id="{arrow.key}-label" x="{x:.1f}" y="{y + 2:.1f}"></text>'


def _box(box: Box, mode: str) -> str:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    round_ = 6 if box.kind == "operation" else min(box.height / 2, 22)
    rows = [f'<text class="title" x="{box.x:.1f}" y="{top + 20:.1f}">{html.escape(box.title)}</text>']
    if box.value:
        rows.append(f'<text x="{box.x:.1f}" y="{top + 20 + ROW:.1f}">{html.escape(box.value)}</text>')
    strip = f'x="{left + 7:.1f}" y="{top + box.height - ROW - 7:.1f}" width="{box.width - 14:.1f}" height="{ROW}"'
    if box.slot:
        corner = ROW / 2 if box.kind != "operation" else 3
        rows.append(
            f'<g class="derivative" id="{box.key}-derivative"><rect {strip} rx="{corner}"/>'
            f'<text x="{box.x:.1f}" y="{top + box.height - 12:.1f}"></text></g>'
        )
    return (
        f'<g class="node {box.kind}" id="{box.key}"><title>{html.escape(box.full)}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{round_}"/>{"".join(rows)}</g>'
    )
