"""Draw the table of `compare.py`: ``python benchmarks/plot.py`` writes ``docs/pictures/benchmarks.svg``.

Each row is a task, each mark the time of a package relative to a gradient written by hand in NumPy. Requires Matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("README.md")
PICTURE = ROOT / "docs" / "pictures" / "benchmarks.svg"
# Columns of the table: label, color and marker.
PACKAGES = {
    "compgraph": ("compgraph, eager", "#2b6cb0", "o"),
    "cg.jit": ("compgraph, cg.jit", "#2b6cb0", "D"),
    "autograd": ("autograd", "#718096", "s"),
    "MyGrad": ("MyGrad", "#a0aec0", "^"),
    "PyTorch": ("PyTorch, eager", "#c53030", "v"),
    "JAX (jit)": ("JAX, jitted", "#2f855a", "P"),
}
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "benchmarks",  # equal figures give equal files
    "legend.frameon": False,
}


def read_table(text: str) -> dict[str, dict[str, float]]:
    """Return the times in microseconds by task and package, of tasks that NumPy and two of the packages computed."""
    table = text.partition("<!-- table: begin -->")[2]
    lines = [line.strip("|") for line in table[table.index("|") :].partition("\n\n")[0].splitlines()]
    header, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    times = {
        task: {name: float(value.replace(",", "")) for name, value in zip(header[1:], values, strict=True) if value != "-"}
        for task, *values in rows
    }
    return {task: row for task, row in times.items() if "NumPy" in row and len(PACKAGES.keys() & row.keys()) > 1}


def draw(rows: dict[str, dict[str, float]]) -> Figure:
    """Draw the times relative to NumPy on a logarithmic axis."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 0.3 * len(rows) + 1.4), layout="constrained")
        axes = figure.subplots()
        positions = range(len(rows))
        for name, (label, color, marker) in PACKAGES.items():
            points = [
                (times[name] / times["NumPy"], y) for y, times in zip(positions, rows.values(), strict=True) if name in times
            ]
            axes.plot(*zip(*points, strict=True), marker, color=color, markersize=5, label=label)
        axes.axvline(1, color="#4a5568", linewidth=0.8)
        axes.set(xscale="log", yticks=positions, yticklabels=list(rows), ylim=(len(rows) - 0.5, -0.5))
        axes.set_xlabel("time relative to a gradient written by hand in NumPy (left is faster)")
        axes.grid(axis="y", color="#e2e8f0")
        axes.set_axisbelow(True)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


if __name__ == "__main__":
    with rc_context(STYLE):
        draw(read_table(TABLE.read_text())).savefig(PICTURE, metadata={"Date": None})
