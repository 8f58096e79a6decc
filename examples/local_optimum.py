"""Gradient descent into a local optimum, and from another start to the global one.

Gradient descent looks for a, b, c of ``exp(a t) sin(b t + c)`` from given values. From (0, 0, 0) it ends in a
local minimum far from a fit; from (-0.1, 1.2, 1.2) it finds a solution.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared import BLUE, GRAY, RED, Array, Whole, new_figure, read_options, save, step_controller, take_step
from tqdm import tqdm

import compgraph as cg
from autodiff.optimizers import SGD

OPTIMIZERS = ("stepcontroller", "printed", "sgd")
STARTS: dict[tuple[float, ...], str] = {(0.0, 0.0, 0.0): RED, (-0.1, 1.2, 1.2): BLUE}
SOLVED = 1e-6  # the loss, a root, has no derivative at 0 itself
t = np.linspace(0, 5, 100)
TARGET = np.exp(-0.5 * t) * np.sin(4 * t + 3)


class Descent(NamedTuple):
    """The path of a descent, one row of a, b, c per step after the start, and its final loss."""

    path: Array
    loss: float

    @property
    def verdict(self) -> str:
        """The outcome: "solved" if the final loss is small, otherwise "stuck"."""
        return "solved" if self.loss < 1e-3 else "stuck"


def curve(a: Any, b: Any, c: Any) -> Any:
    """The function, along a last axis."""
    return np.exp(a * t) * np.sin(b * t + c)


def loss_of(a: Any, b: Any, c: Any) -> Any:
    """The root mean square of the residuals."""
    return np.sqrt(np.mean((curve(a, b, c) - TARGET) ** 2, axis=-1))


def descend(start: tuple[float, ...], steps: int, name: str = OPTIMIZERS[0]) -> Descent:
    """Descend from a start, for at most so many steps."""
    parameters = [cg.variable(value, name) for value, name in zip(start, "abc", strict=True)]
    optimizer = SGD(parameters, learning_rate=0.01) if name == "sgd" else step_controller(name, parameters, 1e-4)
    path = [start]
    for _ in tqdm(range(steps), desc=f"From {start}"):
        loss = loss_of(*parameters)
        if loss < SOLVED:
            break
        take_step(optimizer, loss)
        path.append(tuple(float(p.value) for p in parameters))
    return Descent(np.array(path), float(loss_of(*path[-1])))


def landscape(a: Array, b: Array) -> Array:
    """The loss for each b (rows) and a (columns), with the best of 24 values of c."""
    best = np.full((len(b), len(a)), np.inf)
    for c in tqdm(np.linspace(0, 2 * np.pi, 24, endpoint=False), desc="Landscape"):
        best = np.minimum(best, loss_of(a[:, None], b[:, None, None], c))
    return best


def draw(descents: dict[tuple[float, ...], Descent], file: Path) -> None:
    """Draw the loss over (a, b) with both paths, and the final curves."""
    a, b = np.linspace(-3.25, 0.5, 101), np.linspace(-1, 6, 141)
    figure, (left, right) = new_figure(13, 5.2, 1, 2)
    losses = left.contourf(a, b, landscape(a, b), levels=np.linspace(0, 0.6, 31), cmap="viridis", extend="max")
    figure.colorbar(losses, ax=left, label="loss with the best c", ticks=np.linspace(0, 0.6, 7))
    right.plot(t, TARGET, color=GRAY, linewidth=6, alpha=0.5, label="given")
    for start, (path, loss) in descents.items():
        color, name = STARTS[start], f"from {start}"
        left.plot(*path[:, :2].T, color="white", linewidth=3.5)
        left.plot(*path[:, :2].T, color=color, linewidth=2, label=name)
        left.plot(*path[0, :2], "o", color=color, markeredgecolor="white")
        left.plot(*path[-1, :2], "X", color=color, markeredgecolor="white", markersize=9)
        right.plot(t, curve(*path[-1]), color=color, label=f"{name}: loss {loss:.1e}")
    left.plot(-0.5, 4, "*", color="white", markersize=13, markeredgecolor="black", linestyle="none", label="solution")
    left.set(title="The loss, and two ways down (from dot to cross)", xlabel="a", ylabel="b")
    left.grid(visible=False)
    left.legend(loc="lower left")
    right.set(title=r"$e^{at} \sin(bt + c)$ where they ended", xlabel="t")
    right.legend(frameon=False)
    save(figure, file)


def main(argv: list[str] | None = None) -> int:
    """Descend from both starts, compare, draw; return the exit code."""
    steps = Whole(3000, 1, "how many steps of gradient descent are taken at most")
    options = read_options(argv, __doc__, OPTIMIZERS, steps=steps)
    descents = {start: descend(start, options.steps, options.optimizer) for start in STARTS}
    for start, descent in descents.items():
        a, b, c = descent.path[-1]
        print(f"From {start}: {descent.verdict} at a = {a:.4f}, b = {b:.4f}, c = {c:.4f} with loss {descent.loss:.1e}")
    draw(descents, options.folder / "local-optimum.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
