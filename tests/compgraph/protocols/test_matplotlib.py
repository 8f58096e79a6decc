"""Nodes are drawn as the arrays they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compgraph as cg

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is optional")

matplotlib.use("Agg")


def plotted(axes: Any, x: Any, y: Any) -> Any:
    """The numbers of a line."""
    (line,) = axes.plot(x, y)
    return line.get_xydata()


DRAWN = {
    "plot": plotted,
    "scatter": lambda axes, x, y: axes.scatter(x, y).get_offsets(),
    "a point": lambda axes, x, y: plotted(axes, x[1], y[1]),
    "hist": lambda axes, x, y: axes.hist(y)[0],
    "bar": lambda axes, x, y: [b.get_height() for b in axes.bar(x, y)],
    "fill_between": lambda axes, x, y: axes.fill_between(x, y, y[0]).get_paths()[0].vertices,
    "errorbar": lambda axes, x, y: axes.errorbar(x, y, yerr=np.abs(y))[0].get_xydata(),
    "axhline": lambda axes, x, y: axes.axhline(y[2]).get_ydata(),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_nodes_are_drawn_as_arrays(kind: str) -> None:
    from matplotlib.figure import Figure

    x = cg.variable(np.linspace(0.5, 2, 7))
    y = np.sin(x)
    found = []
    for a, b in ((x, y), (x.value, y.value)):
        figure = Figure()
        found.append(np.asarray(DRAWN[kind](figure.subplots(), a, b), float))
        figure.canvas.draw()
    np.testing.assert_array_equal(*found)
