"""The pictures of a profile: HTML pages that need no other file."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

from ..view import as_script, showable, theme_colors
from .entries import BACKWARD, Entry
from .ledger import Ledger
from .table import REST, duration, size

HERE = Path(__file__).parent
HOLDERS = 12  # rows under the picture of memory


class ProfilePage:
    """A picture of a profile, as one HTML page; it shows itself in a notebook. It holds texts only, and keeps nothing alive."""

    __slots__ = ("_height", "_html", "_title")

    def __init__(self, title: str, text: str, height: int) -> None:
        self._title, self._html, self._height = title, text, height

    def __repr__(self) -> str:
        return f"<{self._title}: a notebook shows it, .save('profile.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self._html)}" width="100%" height="{self._height}" style="border:0" '
            f'sandbox="allow-scripts" title="{html.escape(self._title)}"></iframe>'
        )

    def html(self) -> str:
        """The text of the page."""
        return self._html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced.

        Raises
        ------
        ValueError
            If its name does not end in ``.html``.
        FileNotFoundError
            If the folder does not exist.
        """
        file = Path(path)
        if file.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"a profile is drawn as an HTML page: give a name that ends in .html, not {file.name!r}")
        if not file.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {str(file.parent)!r} to write {file.name!r} into")
        file.write_bytes(self._html.encode())

    def saved(self, path: str | os.PathLike[str] | None) -> ProfilePage:
        """The page itself, written to a file if one is given."""
        if path is not None:
            self.save(path)
        return self


def _page(name: str, title: str, height: int, **parts: str) -> ProfilePage:
    parts |= {"title": html.escape(title), "colors": theme_colors(), "style": _part("page.css"), "script": _part(f"{name}.js")}
    # All is put in at once, so that braces in an inserted text are not taken for a place.
    text = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part(f"{name}.html"))
    return ProfilePage(title, text, height)


def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------- flame graph


def flame_page(root: Entry, seconds: float) -> ProfilePage:
    """The flame graph of all entries within one."""
    whole = _frame("whole", "", "whole")
    whole["seconds"] = seconds
    for entry in root.steps.values():
        frame = _within(whole, entry.direction, "", _kind(entry))
        for name in entry.scope:
            frame = _within(frame, name, f"scope {name}", "scope")
        if entry.code is not None and not isinstance(entry.code, str):
            name = entry.code.co_qualname
            frame = _within(frame, name, f"{name} in {entry.code.co_filename}", "function")
        if entry.line:
            frame = _within(frame, entry.line, entry.place, "line")
        _add(frame, entry)
    rest = _frame(REST, "Python and NumPy between operations, and the search through graphs before sweeps", "rest")
    rest["seconds"] = max(0.0, seconds - sum(entry.seconds for entry in root.steps.values()))
    whole["parts"].append(rest)
    _sum_up(whole)
    depth = _depth(whole)
    return _page("flame", f"Flame graph, {duration(seconds)}", min(220 + 25 * depth, 900), data=as_script(whole))


def _kind(entry: Entry) -> str:
    return "backward" if entry.direction == BACKWARD else "forward"


def _frame(name: str, detail: str, kind: str) -> dict[str, Any]:
    return {"name": name, "detail": detail, "kind": kind, "seconds": 0.0, "calls": 0, "bytes": 0, "parts": []}


def _within(frame: dict[str, Any], name: str, detail: str, kind: str) -> dict[str, Any]:
    """The part of a frame with a name, which is made if there is none yet."""
    for part in frame["parts"]:
        if (part["name"], part["kind"], part["detail"]) == (name, kind, detail):
            return part  # type: ignore[no-any-return]
    made = _frame(name, detail, kind)
    frame["parts"].append(made)
    return made


def _add(frame: dict[str, Any], entry: Entry) -> None:
    """Add an entry and its steps as parts."""
    queue = [(frame, entry)]
    for within, each in queue:
        made = _within(within, each.operation, each.place, f"{_kind(each)} operation")
        made["seconds"] += each.seconds
        made["calls"] += each.calls
        made["bytes"] += each.allocated
        queue.extend([(made, step) for step in each.steps.values()])


def _sum_up(whole: dict[str, Any]) -> None:
    """Give frames that are no operations the sums of their parts; the whole has its own time."""
    order = [whole]
    for frame in order:
        order.extend(frame["parts"])
    for frame in reversed(order):
        for part in frame["parts"]:
            frame["bytes"] += part["bytes"]
            if frame["calls"] == 0 and frame is not whole:
                frame["seconds"] += part["seconds"]


def _depth(whole: dict[str, Any]) -> int:
    depth, level = 0, [whole]
    while level:
        depth, level = depth + 1, [part for frame in level for part in frame["parts"]]
    return depth


# ------------------------------------------------------------------------------------------------------ memory


def memory_page(ledger: Ledger) -> ProfilePage:
    """The picture of the bytes alive over time."""
    curve, peak = ledger.curve, max(ledger.peak, 1)
    end = max(curve[-1][0] if curve else 0.0, 1e-9)
    held = ledger.held()
    parts = {
        "peak": size(ledger.peak),
        "at": duration(ledger.peak_at),
        "peakleft": f"{100 * ledger.peak_at / end:.2f}",
        "side": "left" if ledger.peak_at < end / 2 else "right",
        "named": html.escape(showable(f"{held[0].operation} at {held[0].line}" if held and held[0].line else _first(held))),
        "area": _area(curve, end, peak),
        "sweeps": "".join(
            f'<rect class="sweep" x="{1000 * a / end:.2f}" y="0" width="{max(1000 * (b - a) / end, 0.5):.2f}" height="1000"/>'
            for a, b in ledger.sweeps
        ),
        "ticks": _ticks(end),
        "levels": "".join(
            f'<span class="level" style="bottom:{level / 1.1:.2f}%">{size(peak * level / 100)}</span>' for level in (0, 50, 100)
        ),
        "holders": "".join(map(_holder, [(h, ledger.peak) for h in held[:HOLDERS]])) + _others(held[HOLDERS:], ledger.peak),
        "data": as_script([[at / end, total] for at, total in curve]),
        "end": repr(end),
    }
    return _page("memory", f"Memory over time, peak {size(ledger.peak)}", 640, **parts)


def _first(held: list[Any]) -> str:
    return held[0].operation if held else "nothing was allocated"


def _area(curve: list[tuple[float, int]], end: float, peak: int) -> str:
    """The curve as the outline of an area: bytes stay as they are until the next point."""
    steps, before = ["M0,1000"], 0
    for at, total in curve:
        x, y = 1000 * at / end, 1000 - 1000 * total / (1.1 * peak)
        steps.append(f"L{x:.2f},{1000 - 1000 * before / (1.1 * peak):.2f} L{x:.2f},{y:.2f}")
        before = total
    return " ".join([*steps, "L1000,1000 Z"])


def _ticks(end: float) -> str:
    return "".join(
        f'<span class="tick" style="left:{left}%;transform:translateX(-{left}%)">{duration(end * left / 100)}</span>'
        for left in (0, 50, 100)
    )


def _holder(each: tuple[Any, int]) -> str:
    holder, peak = each
    share = holder.bytes / peak
    where = f"{holder.line} in scope {holder.scope}" if holder.scope else holder.line
    kind = "backward" if f"({BACKWARD})" in holder.operation else "forward"
    code = holder.place.partition(": ")[2] if ", in " in holder.place else ""
    return (
        f'<li><span class="bar {kind}" style="width:{100 * share:.2f}%"></span><span class="share">{size(holder.bytes)}, '
        f'{_percent(share)}</span><b>{html.escape(showable(holder.operation))}</b> <span class="where" '
        f'title="{html.escape(showable(holder.place))}">{html.escape(showable(where))}</span>'
        f"<code>{html.escape(showable(code))}</code></li>"
    )


def _others(held: list[Any], peak: int) -> str:
    if not held:
        return ""
    total = sum(holder.bytes for holder in held)
    return (
        f'<li><span class="bar" style="width:{100 * total / peak:.2f}%"></span><span class="share">{size(total)}, '
        f"{_percent(total / peak)}</span>{len(held)} more</li>"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "&lt; 1 %"
