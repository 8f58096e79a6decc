"""The log of steps: the work, times and faults of each machine, as records, a table, and a picture."""

from __future__ import annotations

import html
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

_log = logging.getLogger(__name__)
MAX_RECORDS = 100_000  # older ones are dropped
TABLE_ROWS = 20
MIN_LABEL_WIDTH = 0.02  # smallest bar with a label, as a fraction of the width of the picture
_BLUES, _RED, _GREEN, _GREY = ("#2b6cb0", "#90b8de"), "#c53030", "#2f855a", "#718096"

_EVENT_MARKERS = {"joined": ("^", _GREEN), "lost": ("X", _RED), "overtaken": ("D", _GREY)}
_EVENT_LABELS = ("joins", "is lost", "is overtaken")


class Record(NamedTuple):
    """The work of one machine in one step, or an event such as its loss.

    Attributes
    ----------
    step : int
        The number of the step.
    machine : str
        The address of the machine.
    rows : range
        The rows of the batch; empty for an event.
    begin, end : float
        In seconds since the log began.
    fault : str
        The fault or event, such as "joined"; otherwise "".
    """

    step: int
    machine: str
    rows: range
    begin: float
    end: float
    fault: str


class Log:
    """The latest records of the work of machines, oldest first. It prints as a table; `plot` draws it."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._records: deque[Record] = deque(maxlen=MAX_RECORDS)
        self._lock = threading.Lock()
        self._count = 0

    def now(self) -> float:
        """Return the seconds since the log began."""
        return time.monotonic() - self._start

    def add(self, step: int, machine: str, rows: range, begin: float, end: float, fault: str = "") -> None:
        """Add a record, also to the logger: shares at debug level, events at info level, lost machines as warnings."""
        if len(rows):
            milliseconds, outcome = 1e3 * (end - begin), fault or "done"
            _log.debug(
                "step %d: rows %d to %d by %s in %.1f ms: %s", step, rows.start, rows.stop - 1, machine, milliseconds, outcome
            )
        else:
            _log.log(logging.WARNING if fault.startswith("lost") else logging.INFO, "step %d: %s: %s", step, machine, fault)
        with self._lock:
            self._records.append(Record(step, machine, rows, begin, end, fault))
            self._count += 1

    def add_event(self, step: int, machine: str, fault: str) -> None:
        """Add an event of a machine, with the current time."""
        now = self.now()
        self.add(step, machine, range(0), now, now, fault)

    def _snapshot(self) -> list[Record]:
        with self._lock:
            return list(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._snapshot())

    def __getitem__(self, index: Any) -> Any:
        return self._snapshot()[index]

    @property
    def faults(self) -> list[Record]:
        """The records with a fault or an event."""
        return [r for r in self._snapshot() if r.fault]

    # --------------------------------------------------------------------------------------------------- a table

    def _table(self) -> tuple[list[tuple[str, ...]], str]:
        """Return the last records as rows of text, and the number of earlier ones as text."""
        records = self._snapshot()[-TABLE_ROWS:]
        table: list[tuple[str, ...]] = [("step", "machine", "rows", "begin [s]", "took [ms]", "fault")]
        for r in records:
            rows = f"{r.rows.start}–{r.rows.stop - 1}" if len(r.rows) else ""
            milliseconds = f"{(r.end - r.begin) * 1000:.1f}" if len(r.rows) else ""
            table.append((str(r.step), r.machine, rows, f"{r.begin:.3f}", milliseconds, r.fault))
        omitted = self._count - len(records)
        return table, f"{omitted} earlier" if omitted else ""

    def __str__(self) -> str:
        table, omission = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([lines[0], *([f"... {omission}"] if omission else []), *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table, omission = self._table()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table[0])
        body = "".join(_html_row(row) for row in table[1:])
        caption = f"<caption>{html.escape(omission)}</caption>" if omission else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    # -------------------------------------------------------------------------------------------------- a picture

    def plot(self, steps: int | range | None = 20) -> Any:
        """Draw the shares of each machine over time. Needs Matplotlib.

        Parameters
        ----------
        steps : int, range or None
            The number of last steps, or a range of steps; None for all.

        Returns
        -------
        matplotlib.figure.Figure
            A line for each machine, with a blue bar for each share and its number of rows. Consecutive steps have different
            blues. Lost shares are hatched in red, late ones in grey. A triangle marks a machine that joined, a cross a lost
            machine, a diamond a machine that was silent for too long, so that others received its share.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError('Log.plot needs Matplotlib: pip install "compgraph[examples]"') from error
        records = self._select(steps)
        machines = list(dict.fromkeys(r.machine for r in self._snapshot() if r in records))
        figure = Figure(figsize=(10, 1.4 + 0.5 * len(machines)), dpi=120, layout="constrained")
        axes = figure.subplots()
        begin, end = min((r.begin for r in records), default=0.0), max((r.end for r in records), default=1.0)
        for r in records:
            _draw_record(axes, r, machines.index(r.machine), MIN_LABEL_WIDTH * (end - begin))
        axes.set_yticks(range(len(machines)), machines)
        axes.set_ylim(len(machines) - 0.4, -0.6)
        axes.set_xlabel("seconds since the log began")
        axes.spines[["top", "right"]].set_visible(False)
        _add_legend(axes)
        return figure

    def _select(self, steps: int | range | None) -> list[Record]:
        records = self._snapshot()
        if isinstance(steps, int):
            last = max((r.step for r in records), default=0)
            steps = range(max(last - steps + 1, 0), last + 1)
        return [r for r in records if steps is None or r.step in steps]


def _html_row(row: tuple[str, ...]) -> str:
    """Return a row of the table, in red if it has a fault."""
    style = f' style="color: {_RED}"' if row[-1] else ""
    return f"<tr{style}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"


def _draw_record(axes: Any, r: Record, line: int, min_width: float) -> None:
    """Draw one record. Bars shorter than `min_width` seconds have no label."""
    if not len(r.rows):
        marker, color = _EVENT_MARKERS.get(r.fault.partition(":")[0], _EVENT_MARKERS["lost"])
        axes.plot(r.begin, line, marker=marker, color=color, markersize=8, zorder=3)
        return
    color = _RED if r.fault.startswith(("lost", "error")) else _GREY if r.fault else _BLUES[r.step % 2]
    width = r.end - r.begin
    if r.fault:
        axes.barh(line, width, left=r.begin, height=0.6, color="white", edgecolor=color, hatch="////")
    else:
        axes.barh(line, width, left=r.begin, height=0.6, color=color, edgecolor="white", linewidth=0.8)
    if width >= min_width:
        text_color = color if r.fault else "white" if color == _BLUES[0] else "black"
        box = {"color": "white", "pad": 0.5} if r.fault else None
        middle = r.begin + width / 2, line
        axes.annotate(str(len(r.rows)), middle, ha="center", va="center", fontsize=7, color=text_color, clip_on=True, bbox=box)


def _add_legend(axes: Any) -> None:
    """Add a legend to the picture."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = list(zip(_EVENT_MARKERS.values(), _EVENT_LABELS, strict=True))
    hatch_style: dict[str, Any] = {"facecolor": "white", "hatch": "////"}
    axes.legend(
        handles=[
            Patch(color=_BLUES[0], label="a share, and its rows"),
            Patch(edgecolor=_RED, label="lost", **hatch_style),
            Patch(edgecolor=_GREY, label="overtaken, late", **hatch_style),
            *[Line2D([], [], color=c, marker=m, linestyle="", label=f"a machine {s}") for (m, c), s in marks],
        ],
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=6, fontsize=8, frameon=False,
    )  # fmt: skip
