"""The table of a profile; its flame graph and its memory over time, as data for HTML pages."""

from __future__ import annotations

import html
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..view import notebook_frame, page_of, require_folder
from .entries import BACKWARD, Entry, Holder, Ledger

REST_LABEL = "between operations"
_COLUMNS = ("calls", "time", "own", "share", "bytes")
MAX_HOLDERS = 12  # rows below the picture of memory
Frame: TypeAlias = dict[str, Any]  # a frame of a flame graph, with its parts; its keys are those of `_frame`


class Row(NamedTuple):
    """A row: `time` (with all steps) and `own` (without them) in seconds, `share` of `own` in the whole time."""

    name: str
    calls: int
    time: float
    own: float
    share: float
    bytes: int


class Table:
    """The rows of a profile, which can be printed, and which a notebook displays.

    Attributes
    ----------
    rows : list of Row
        All rows, in order.
    seconds : float
        The total time.
    rest : float
        The time between operations, in seconds.
    """

    def __init__(self, by: str, rows: list[Row], seconds: float, rest: float, limit: int | None) -> None:
        self.by, self.rows, self.seconds, self.rest, self.limit = by, rows, seconds, rest, limit

    def _cells(self) -> list[tuple[str, ...]]:
        rows = self.rows if self.limit is None else self.rows[: self.limit]
        cells: list[tuple[str, ...]] = [(self.by, *_COLUMNS)]
        cells += [
            (r.name, f"{r.calls:,}", format_duration(r.time), format_duration(r.own), _percent(r.share), format_bytes(r.bytes))
            for r in rows
        ]
        if len(rows) < len(self.rows):
            others = self.rows[len(rows) :]
            own, share = sum(r.own for r in others), sum(r.share for r in others)
            cells += [(f"... {len(others)} more", "", "", format_duration(own), _percent(share), "")]
        rest = self.rest / self.seconds if self.seconds else 0.0
        cells += [(REST_LABEL, "", "", format_duration(self.rest), _percent(rest), "")]
        cells += [("whole", "", format_duration(self.seconds), "", "", "")]
        return cells

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *[c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]]).rstrip()
            for row in cells
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        right = ' style="text-align:right"'
        rows = [
            "".join(f"<t{kind}{right if column else ''}>{html.escape(cell)}</t{kind}>" for column, cell in enumerate(row))
            for kind, row in [("h", head), *[("d", row) for row in body]]
        ]
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def table_of(root: Entry, seconds: float, sort: str, by: str, limit: int | None) -> Table:
    """Return the table of all entries below `root`; see `Profile.table`."""
    if by not in ("operation", "line", "scope"):
        raise ValueError(f"by must be 'operation', 'line' or 'scope', not {by!r}")
    if sort not in ("time", "own", "calls", "bytes", "name"):
        raise ValueError(f"sort must be 'time', 'own', 'calls', 'bytes' or 'name', not {sort!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None, not {limit}")
    sums: dict[str, list[float]] = {}
    for entry, outer in root.walk():
        enclosing_names = {name for parent in outer for name in _names(parent, by)}
        for name in _names(entry, by):
            total = sums.setdefault(name, [0, 0.0, 0.0, 0])
            is_outermost = name not in enclosing_names
            if is_outermost or by == "operation":
                total[0] += entry.calls
            if is_outermost:
                total[1] += entry.seconds
            total[2] += entry.own
            total[3] += entry.allocated
    short_names = _abbreviate_paths(list(sums)) if by == "line" else {}
    rows = [
        Row(short_names.get(name, name), int(calls), time, own, own / seconds if seconds else 0.0, int(allocated))
        for name, (calls, time, own, allocated) in sums.items()
    ]
    if sort == "name":
        rows.sort(key=lambda row: row.name)
    else:
        rows.sort(key=lambda row: getattr(row, sort), reverse=True)
    rest = max(0.0, seconds - sum(entry.seconds for entry in root.steps.values()))
    return Table(by, rows, seconds, rest, limit)


def _names(entry: Entry, by: str) -> list[str]:
    """Return the rows that an entry belongs to: one, or all enclosing scopes."""
    if by == "operation":
        return [entry.operation]
    if by == "line":
        return [entry.full_line or "(line not known)"]
    if not entry.scope:
        return ["(no scope)"]
    return ["/".join(entry.scope[:depth]) for depth in range(1, len(entry.scope) + 1)]


def _abbreviate_paths(names: list[str]) -> dict[str, str]:
    """Shorten lines to the names of their files, unless two files share a name."""
    short_names = {name: os.path.basename(name) for name in names}
    count = Counter(short_names.values())
    return {name: other if count[other] == 1 else name for name, other in short_names.items()}


def format_duration(seconds: float) -> str:
    """Format a time: ``1.23 ms``."""
    return _in_units(seconds, ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def format_bytes(count: float) -> str:
    """Format a number of bytes: ``1.23 MB``, by powers of 1000."""
    return _in_units(count, ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def _in_units(value: float, *units: tuple[str, float]) -> str:
    unit, scale = next(((unit, scale) for unit, scale in units if value >= scale), units[-1])
    is_integer = value / scale >= 999.5 or (unit, scale) == units[-1]
    return (f"{value / scale:.0f} {unit}" if is_integer else f"{value / scale:.3g} {unit}") if value else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# ----------------------------------------------------------------------------------------------- pages


class ProfilePage:
    """A picture of a profile as one HTML page, which a notebook displays. It stores text, no arrays."""

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
            raise ValueError(f"a profile is drawn as an HTML page: pass a name that ends in .html, not {file.name!r}")
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
    for outer, inner in queue:
        part = _child_frame(outer, inner.operation, inner.place, f"{_kind(inner)} own")
        part["seconds"] += inner.seconds
        part["calls"] += inner.calls
        part["bytes"] += inner.allocated
        queue.extend([(part, step) for step in inner.steps.values()])


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
    rows = [_holder_row(holder) for holder in holders[:MAX_HOLDERS]]
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
