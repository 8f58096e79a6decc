"""Pictures as HTML pages: one template, one style sheet and one script core, with a script for each kind of picture.

A page loads no other file. The script of its kind reads the data, so Python writes no markup.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import fields
from pathlib import Path

from .colors import THEMES, Theme, hex_of
from .dot import escape_unprintable

HERE = Path(__file__).parent
SCRIPTS = {
    "graph": ("page", "layout", "graph"),
    "animation": ("page", "layout", "graph", "animation"),
    "flame": ("page", "flame"),
    "memory": ("page", "memory"),
}


def page_of(kind: str, title: str, data: dict[str, object], theme: str | None = None) -> str:
    """Write a picture as an HTML page.

    Parameters
    ----------
    kind : {"graph", "animation", "flame", "memory"}
        The kind of picture, which selects the scripts.
    title : str
        The title of the page.
    data : dict
        The data that the script of this kind shows; it is written as JSON.
    theme : {"light", "dark"}, optional
        The colors at first. By default the browser's preference decides.

    Returns
    -------
    str
    """
    parts = {
        "THEME": "" if theme is None else f' data-theme="{theme}"',
        "TITLE": html.escape(escape_unprintable(title)),
        "KIND": kind,
        "STYLE": _theme_colors() + _read("page.css"),
        "DATA": _script_data(data),
        "SCRIPT": "".join(_read(f"{name}.js") for name in SCRIPTS[kind]),
    }
    # The template is split once, so that a %% in an inserted text is not taken for a placeholder.
    pieces = _read("page.html").split("%%")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def notebook_frame(page: str, title: str, height: int) -> str:
    """Return the element in which a notebook displays a page."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{height}" style="border:0" sandbox="allow-scripts" '
        f'title="{html.escape(escape_unprintable(title))}"></iframe>'
    )


def require_folder(path: Path) -> None:
    """Raise a `FileNotFoundError` if the folder of a file does not exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")


def require_resolution(dpi: float) -> None:
    """Raise a `ValueError` unless a number of dots per inch is positive and finite."""
    if not 0 < dpi < math.inf:
        raise ValueError(f"dpi must be positive and finite, not {dpi}")


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _script_data(data: object) -> str:
    """Write data as JSON for a script element: no text in it can end the element, and every character can be encoded."""
    text = json.dumps(_escape_strings(data), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escape_strings(data: object) -> object:
    if isinstance(data, str):
        return escape_unprintable(data)
    if isinstance(data, (list, tuple)):
        return [_escape_strings(each) for each in data]
    return {key: _escape_strings(value) for key, value in data.items()} if isinstance(data, dict) else data


def _theme_colors() -> str:
    """CSS properties for the colors of the chosen theme, by default of the one that the browser prefers."""
    light, dark = (_properties(THEMES[name]) for name in ("light", "dark"))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
    )


def _properties(theme: Theme) -> str:
    return " ".join(f"--{field.name.replace('_', '-')}: {hex_of(getattr(theme, field.name))};" for field in fields(theme))
