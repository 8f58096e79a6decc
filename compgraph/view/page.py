"""A drawing as one HTML page that needs no other file; the browser lays it out, anew when a box is opened or closed."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from .colors import THEMES, Theme, hex_of
from .dot import showable
from .drawing import Drawing

HERE = Path(__file__).parent


def page_of(drawing: Drawing, direction: str, theme: str | None) -> str:
    """A drawing as the text of an HTML page.

    Parameters
    ----------
    drawing : Drawing
        What the page shows.
    direction : {"LR", "TB"}
        From left to right, or from top to bottom.
    theme : {"light", "dark"} or None
        The colors to begin with; None leaves it to the reader's browser.

    Returns
    -------
    str
    """
    parts = {
        "THEME": "" if theme is None else f' data-theme="{theme}"',
        "COLORS": theme_colors(),
        "STYLE": _part("page.css"),
        "DATA": as_script({**asdict(drawing), "more": drawing.more, "direction": direction}),
        "LAYOUT": _part("layout.js"),
        "SCRIPT": _part("page.js"),
    }
    # The template is split once, so that a %% in an inserted text is not taken for a placeholder.
    pieces = _part("page.html").split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def as_script(data: Any) -> str:
    """Data as JSON for a script element: no text in it can end the element, and every character can be encoded."""
    text = json.dumps(_showable(data), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _showable(data: Any) -> Any:
    if isinstance(data, str):
        return showable(data)
    if isinstance(data, list):
        return [_showable(each) for each in data]
    return {key: _showable(value) for key, value in data.items()} if isinstance(data, dict) else data


def theme_colors() -> str:
    """CSS that defines the colors of the chosen theme, or else of the theme that the browser prefers."""
    light, dark = (_properties(THEMES[name]) for name in ("light", "dark"))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}"
    )


def _properties(theme: Theme) -> str:
    return " ".join(f"--{field.name.replace('_', '-')}: {hex_of(getattr(theme, field.name))};" for field in fields(theme))
