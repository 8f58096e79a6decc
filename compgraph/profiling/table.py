"""The table of a profile."""

from __future__ import annotations

import html
import os
from collections import Counter
from typing import NamedTuple

from .entries import Entry

REST_LABEL = "between operations"
_COLUMNS = ("calls", "time", "own", "share", "bytes")


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
        enclosing = {name for each in outer for name in _names(each, by)}
        for name in _names(entry, by):
            total = sums.setdefault(name, [0, 0.0, 0.0, 0])
            is_outermost = name not in enclosing
            if is_outermost or by == "operation":
                total[0] += entry.calls
            if is_outermost:
                total[1] += entry.seconds
            total[2] += entry.own
            total[3] += entry.allocated
    short = _abbreviate_paths(list(sums)) if by == "line" else {}
    rows = [
        Row(short.get(name, name), int(calls), time, own, own / seconds if seconds else 0.0, int(allocated))
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
    short = {name: os.path.basename(name) for name in names}
    count = Counter(short.values())
    return {name: other if count[other] == 1 else name for name, other in short.items()}


def format_duration(seconds: float) -> str:
    """Format a time: ``1.23 ms``."""
    return _in_units(seconds, ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def format_bytes(count: float) -> str:
    """Format a number of bytes: ``1.23 MB``, by powers of 1000."""
    return _in_units(count, ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def _in_units(value: float, *units: tuple[str, float]) -> str:
    unit, scale = next((each for each in units if value >= each[1]), units[-1])
    is_long = value / scale >= 999.5 or (unit, scale) == units[-1]
    return (f"{value / scale:.0f} {unit}" if is_long else f"{value / scale:.3g} {unit}") if value else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
