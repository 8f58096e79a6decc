"""The flame graph of a profile and its memory over time, as data for HTML pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

from ..view import notebook_frame, page_of, require_folder
from .entries import BACKWARD, Entry, Holder, Ledger
from .table import REST_LABEL, format_bytes, format_duration

MAX_HOLDERS = 12  # rows below the picture of memory
Frame: TypeAlias = dict[str, Any]  # a frame of a flame graph, with its parts; its keys are those of `_frame`


class ProfilePage:
    """A picture of a profile as one HTML page, which a notebook displays. It holds texts only."""

    __slots__ = ("_height", "_html", "_title")

    def __init__(self, kind: str, title: str, data: dict[str, object], height: int) -> None:
        self._title, self._html, self._height = title, page_of(kind, title, data), height

    def __repr__(self) -> str:
        return f"<{self._title}: a notebook shows it, .save('profile.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return notebook_frame(self._html, self._title, self._height)

    def html(self) -> str:
        """Return the text of the page."""
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
        require_folder(file)
        file.write_bytes(self._html.encode())

    def save_if(self, path: str | os.PathLike[str] | None) -> ProfilePage:
        """Write the page to a file unless `path` is None, and return the page."""
        if path is not None:
            self.save(path)
        return self


# ------------------------------------------------------------------------------------------------- flame graph


def flame_page(root: Entry, seconds: float) -> ProfilePage:
    """Return the flame graph of all entries below `root`."""
    whole = _frame("whole", "", "whole")
    whole["seconds"] = seconds
    for entry in root.steps.values():
        frame = _child_frame(whole, entry.direction, "", _kind(entry))
        for name in entry.scope:
            frame = _child_frame(frame, name, f"scope {name}", "scope")
        if entry.code is not None and not isinstance(entry.code, str):
            name = entry.code.co_qualname
            frame = _child_frame(frame, name, f"{name} in {entry.code.co_filename}", "function")
        if entry.line:
            frame = _child_frame(frame, entry.line, entry.place, "line")
        _add_entry(frame, entry)
    rest = _frame(REST_LABEL, "Python and NumPy between operations, and the search through graphs before sweeps", "rest")
    rest["seconds"] = max(0.0, seconds - sum(entry.seconds for entry in root.steps.values()))
    whole["parts"].append(rest)
    depth = _add_sums(whole)
    return ProfilePage("flame", f"Flame graph, {format_duration(seconds)}", whole, min(240 + 25 * depth, 900))


def _kind(entry: Entry) -> str:
    return "backward" if entry.direction == BACKWARD else "forward"


def _frame(name: str, detail: str, kind: str) -> Frame:
    return {"name": name, "detail": detail, "kind": kind, "seconds": 0.0, "calls": 0, "bytes": 0, "parts": []}


def _child_frame(frame: Frame, name: str, detail: str, kind: str) -> Frame:
    """Return the child of a frame with a name, which is added if needed."""
    for part in frame["parts"]:
        if (part["name"], part["kind"], part["detail"]) == (name, kind, detail):
            existing: Frame = part
            return existing
    part = _frame(name, detail, kind)
    frame["parts"].append(part)
    return part


def _add_entry(frame: Frame, entry: Entry) -> None:
    """Add an entry and its steps as children of a frame."""
    queue = [(frame, entry)]
    for outer, each in queue:
        part = _child_frame(outer, each.operation, each.place, f"{_kind(each)} own")
        part["seconds"] += each.seconds
        part["calls"] += each.calls
        part["bytes"] += each.allocated
        queue.extend([(part, step) for step in each.steps.values()])


def _add_sums(whole: Frame) -> int:
    """Sum time and bytes of children in the frames of lines, functions and scopes; return the depth of the graph."""
    levels = [[whole]]
    while levels[-1]:
        levels.append([part for frame in levels[-1] for part in frame["parts"]])
    for frame in reversed([frame for level in levels for frame in level]):
        for part in frame["parts"]:
            frame["bytes"] += part["bytes"]
            if frame["calls"] == 0 and frame is not whole:
                frame["seconds"] += part["seconds"]
    return len(levels) - 1


# ------------------------------------------------------------------------------------------------------ memory


def memory_page(ledger: Ledger) -> ProfilePage:
    """Return the picture of the live bytes over time."""
    holders = ledger.peak_holders()
    rows = [_holder_row(each) for each in holders[:MAX_HOLDERS]]
    if len(holders) > MAX_HOLDERS:
        others = holders[MAX_HOLDERS:]
        rows.append(_row(f"{len(others)} more", sum(holder.bytes for holder in others)))
    data = {
        "curve": ledger.curve,
        "end": max(ledger.curve[-1][0] if ledger.curve else 0.0, 1e-9),
        "peak": ledger.peak,
        "peak_at": ledger.peak_at,
        "sweeps": ledger.sweeps,
        "holders": rows,
        "largest": _holder_text(holders[0]) if holders else "nothing was allocated",
    }
    return ProfilePage("memory", f"Memory over time, peak {format_bytes(ledger.peak)}", data, 640)


def _holder_text(holder: Holder) -> str:
    return f"{holder.operation} at {holder.line}" if holder.line else holder.operation


def _holder_row(holder: Holder) -> dict[str, object]:
    where = f"{holder.line} in scope {holder.scope}" if holder.scope else holder.line
    kind = "backward" if f"({BACKWARD})" in holder.operation else "forward"
    code = holder.place.partition(": ")[2] if ", in " in holder.place else ""
    return _row(holder.operation, holder.bytes, where, holder.place, code, kind)


def _row(name: str, count: int, where: str = "", place: str = "", code: str = "", kind: str = "") -> dict[str, object]:
    return {"name": name, "bytes": count, "where": where, "place": place, "code": code, "kind": kind}
