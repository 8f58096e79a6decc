"""Compute the curve of a hanging rope by gradient descent on its energy.

The rope hangs from two points at distance 1, in segments of equal width; the heights between them are random at first. It is
elastic: the energy is that of gravity, plus the square of its length above 1.1. The result is compared with the catenary, the
parabola and the arc of the same length. ArrayFlow's optimizer adapts the step size for up to about 50 segments; for more use
``--optimizer sgd``, gradient descent with momentum.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from scipy.optimize import brentq
from shared import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    RED,
    Array,
    Whole,
    new_figure,
    read_options,
    save,
    step_controller,
    take_step,
)
from tqdm import tqdm

import compgraph as cg
from autodiff.optimizers import SGD, Optimizer

OPTIMIZERS = ("stepcontroller", "printed", "sgd")
LENGTH = 1.1  # of the rope when nothing pulls at it
FRAMES = 40


def energy(inner: Any) -> Any:
    """The energy of a rope whose heights between its two ends are given."""
    heights = with_ends(inner)
    lengths = np.sqrt((1 / (len(heights) - 1)) ** 2 + cg.cross_correlate(heights, [-1.0, 1.0]) ** 2)
    middles = cg.cross_correlate(heights, [0.5, 0.5])
    return (np.sum(lengths) - LENGTH) ** 2 + np.sum(lengths * middles)


def with_ends(inner: Any) -> Any:
    """The heights of all points: both ends are fixed at 0."""
    return np.concatenate([[0.0], inner, [0.0]])


def make_optimizer(name: str, inner: cg.VariableNode) -> Optimizer:
    """An optimizer of the heights."""
    if name != "sgd":
        return step_controller(name, [inner], 1e-4)
    # Finer segments pull harder at each other, which allows only smaller steps, and asks for more inertia.
    segments = inner.size + 1
    return SGD([inner], learning_rate=0.2 / segments, momentum=1 - 2.5 / (segments + 1))


def hang(segments: int, steps: int, seed: int, name: str = OPTIMIZERS[0]) -> list[Array]:
    """Run the descent by a named optimizer; return the heights before, during and after it."""
    rng = np.random.default_rng(seed)
    inner = cg.variable(-5 / segments * rng.random(segments - 1), "heights")
    optimizer = make_optimizer(name, inner)
    moments = set(np.geomspace(1, steps, FRAMES - 1).astype(int))  # little happens later on
    heights = [with_ends(inner.value)]
    for step in tqdm(range(1, steps + 1), desc="Hanging"):
        take_step(optimizer, energy(inner))
        if step in moments:
            heights.append(with_ends(inner.value))
    return heights


# Each curve of a length goes from (0, 0) down and up to (1, 0).


def catenary(length: float, x: Array) -> Array:
    """The heights at `x` of the catenary: ``cosh``, scaled so that ``sinh(u) / u`` is the length."""
    u = brentq(lambda u: np.sinh(u) / u - length, 1e-6, 50)
    return (np.cosh(2 * u * (x - 0.5)) - np.cosh(u)) / (2 * u)


def parabola(length: float, x: Array) -> Array:
    """The heights at `x` of the parabola."""
    sag = brentq(lambda h: np.sqrt(1 + 16 * h**2) / 2 + np.arcsinh(4 * h) / (8 * h) - length, 1e-6, length)
    return -4 * sag * x * (1 - x)


def arc(length: float, count: int) -> tuple[Array, Array]:
    """Points of the arc of a circle; one longer than half a circle reaches beyond its ends."""
    half = brentq(lambda angle: np.sin(angle) / angle - 1 / length, 1e-6, np.pi)
    radius, angles = length / (2 * half), np.linspace(-half, half, count)
    return 0.5 + radius * np.sin(angles), radius * (np.cos(half) - np.cos(angles))


def length_of(heights: Array) -> float:
    """The length of a rope."""
    return float(np.sum(np.hypot(1 / (len(heights) - 1), np.diff(heights))))


def draw(heights: Array, file: Path) -> None:
    """Draw the rope with three curves of its length, and their heights above the catenary."""
    length, x = length_of(heights), np.linspace(0, 1, 401)
    points = np.linspace(0, 1, len(heights))
    curves = {"parabola": (x, parabola(length, x), GREEN, "--"), "arc of a circle": (*arc(length, 401), ORANGE, "-.")}
    figure, (above, below) = new_figure(8, 7.5, 2, sharex=True, height_ratios=[2, 1])
    above.plot(x, catenary(length, x), color=RED, label="catenary")
    for axes, base in ((above, 0), (below, 1)):
        for name, (at, y, color, dashes) in curves.items():
            axes.plot(at, y - base * catenary(length, at), dashes, color=color, label=name)
        axes.plot(points, heights - base * catenary(length, points), ".", color=BLUE, markersize=7, label="rope")
    below.axhline(0, color=RED, linewidth=1)
    above.set(title=f"A hanging rope, and curves of its length, {length:.4f}", ylabel="height", aspect="equal")
    above.legend(loc="upper center", frameon=False)
    below.set(xlabel="distance", ylabel="height above the catenary")
    save(figure, file)


def animate(heights: list[Array], file: Path) -> None:
    """Animate the descent, one frame per saved state; the last frame is shown longer."""
    x, last = np.linspace(0, 1, len(heights[0])), heights[-1]
    figure, axes = new_figure(6, 4)
    axes.plot(x, catenary(length_of(last), x), "--", color=GRAY, linewidth=1, label="catenary")
    (rope,) = axes.plot(x, last, color=BLUE, linewidth=2.5, label="rope")
    axes.set(title="A rope slides down the gradient of its energy", xlabel="distance", ylabel="height", ylim=(-0.6, 0.03))
    axes.legend(loc="lower left", frameon=False)
    writer = PillowWriter(fps=10)
    with writer.saving(figure, str(file), dpi=90):
        for y in tqdm(heights + [last] * 10, desc="Drawing"):
            rope.set_ydata(y)
            writer.grab_frame()
    print(f"Saved {file}")


def main(argv: list[str] | None = None) -> int:
    """Hang the rope, compare, draw; return the exit code."""
    options = read_options(
        argv,
        __doc__,
        OPTIMIZERS,
        segments=Whole(50, 2, "of how many segments the rope is made"),
        steps=Whole(2000, 1, "how many steps of gradient descent are taken; more segments need more"),
        seed=Whole(0, 0, "for the heights at the beginning"),
    )
    moments = hang(options.segments, options.steps, options.seed, options.optimizer)
    heights = moments[-1]
    length, middle = length_of(heights), np.array([0.5])
    distance = np.max(np.abs(heights - catenary(length, np.linspace(0, 1, len(heights)))))
    print(f"Length: {length:.4f}")
    print(f"Lowest point of the rope: {heights.min():.4f}, of the catenary: {catenary(length, middle)[0]:.4f}", end=", ")
    print(f"of the parabola: {parabola(length, middle)[0]:.4f}, of the arc: {arc(length, 3)[1][1]:.4f}")
    print(f"Largest distance from the catenary: {distance:.1e}")
    draw(heights, options.folder / "catenary.png")
    animate(moments, options.folder / "catenary.gif")
    return 0


if __name__ == "__main__":
    sys.exit(main())
