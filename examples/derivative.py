"""Compute the derivative of ``|sin x| exp(-x / 3)`` from 0 to 12, and compare it with the one by hand."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from shared import BLUE, RED, Array, Whole, new_figure, read_options, save

import compgraph as cg
from autodiff.reverse import gradient

END = 12.0


def function(x: Any) -> Any:
    """The function."""
    return np.abs(np.sin(x)) * np.exp(-x / 3)


def by_hand(x: Array) -> Array:
    """Its derivative; at a corner, where ``sin x`` is 0, the mean of both sides."""
    return np.sign(np.sin(x)) * (np.cos(x) - np.sin(x) / 3) * np.exp(-x / 3)


def main(argv: list[str] | None = None) -> int:
    """Differentiate, compare, draw; return the exit code."""
    options = read_options(argv, __doc__, points=Whole(1000, 2, "at how many points"))
    x = cg.variable(np.linspace(0, END, options.points), "x")
    y = function(x)
    slope = gradient(np.sum(y))["x"]  # each y depends on its own x alone
    print(f"Largest difference from the derivative by hand: {np.max(np.abs(slope - by_hand(x.value))):.1e}")

    figure, axes = new_figure(8, 4.5)
    corners = np.flatnonzero(np.diff(np.sign(np.sin(x.value))) != 0) + 1  # no line is drawn across a jump
    axes.plot(x.value, y.value, color=BLUE, label=r"$|\sin x| \, e^{-x/3}$")
    axes.plot(np.insert(x.value, corners, np.nan), np.insert(slope, corners, np.nan), color=RED, label="its derivative")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(title="A function and its derivative", xlabel="x", xlim=(0, END))
    axes.legend(frameon=False)
    save(figure, options.folder / "derivative.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
