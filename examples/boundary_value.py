"""Solve the equation of a damped oscillator, ``2 y'' + y' + 2 y = 0``, with values given at both ends: y(0) = 1, y(6.1) = 0.1.

The unknowns are values of y at equally spaced points. The loss is the sum of squared residuals of the equation in finite
differences. With 20 points in single precision, ArrayFlow's optimizer minimizes it, by gradient descent with inertia and a fixed
step size. With an adaptive step size (``--optimizer adapted`` and ``printed``) it does not converge. With more points in double
precision, SciPy's trust-region method gets the gradient and the Hessian.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared import BLUE, RED, Array, Whole, new_figure, read_options, save, step_controller, take_step
from tqdm import tqdm

import compgraph as cg
from autodiff.optimizers import SGD, Optimizer, StepController, minimize

OPTIMIZERS = ("stepcontroller", "adapted", "printed", "sgd")
END, FIRST, LAST = 6.1, 1.0, 0.1

# The derivatives as sums of five neighbors, times the distance and its square: at the first two points, in the middle, and
# at the last two points.
SLOPES = np.array([[-25 / 12, 4, -3, 4 / 3, -1 / 4], [1 / 12, -2 / 3, 0, 2 / 3, -1 / 12], [1 / 4, -4 / 3, 3, -4, 25 / 12]])
BENDS = np.array(
    [
        [35 / 12, -26 / 3, 19 / 2, -14 / 3, 11 / 12],
        [-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12],
        [11 / 12, -14 / 3, 19 / 2, -26 / 3, 35 / 12],
    ]
)


class Solution(NamedTuple):
    """Values of y at equal distances, ends included, and their name in the picture."""

    y: Array
    title: str

    @property
    def error(self) -> float:
        """The largest distance from the analytic solution."""
        return float(np.max(np.abs(self.y - analytic(np.linspace(0, END, len(self.y))))))


def analytic(t: Array) -> Array:
    """The solution by hand: a damped cosine and sine, in the proportion that meets the value at the end."""
    frequency = np.sqrt(15) / 4
    share = (LAST * np.exp(END / 4) - np.cos(frequency * END)) / np.sin(frequency * END)
    return np.exp(-t / 4) * (np.cos(frequency * t) + share * np.sin(frequency * t))


def with_ends(inner: Any) -> Any:
    """Values at all points, from those between the ends."""
    return np.concatenate([[FIRST], inner, [LAST]], dtype=inner.dtype)


def loss_of(inner: Any) -> Any:
    """The sum of the squares of ``2 y'' + y' + 2 y``."""
    y = with_ends(inner)
    step = END / (len(y) - 1)
    weights = (2 * BENDS / step**2 + SLOPES / step).astype(y.dtype)
    derivatives = [cg.cross_correlate(part, w) for part, w in zip([y[:6], y, y[-6:]], weights, strict=True)]
    return np.sum((np.concatenate(derivatives) + 2 * y) ** 2)


def first_guess(points: int) -> Array:
    """The initial curve, without its ends."""
    return np.sin(np.linspace(0, END, points)[1:-1] / 1.4) + 1


def make_optimizer(name: str, inner: cg.VariableNode) -> Optimizer:
    """An optimizer of the 18 values between the ends.

    The curvature of the loss ranges from 0.06 to 3e5: the largest limits the step size, the smallest requires the inertia. With
    much inertia the loss oscillates, and each rise would reduce an adaptive step size, as would rounding errors later.
    """
    if name == "stepcontroller":
        return StepController([inner], 0.006, beta=0.002, fixed=True)
    if name == "sgd":  # the same except for the first step: its rate is that step times beta, its momentum 1 - beta
        return SGD([inner], learning_rate=1.2e-5, momentum=0.998)
    return step_controller("stepcontroller" if name == "adapted" else name, [inner], 1e-7)


def in_single_precision(steps: int, name: str = OPTIMIZERS[0]) -> Solution:
    """With 20 points, by gradient descent."""
    inner = cg.variable(first_guess(20), "y", dtype=np.float32)
    optimizer = make_optimizer(name, inner)
    for _ in tqdm(range(steps), desc="20 points"):
        take_step(optimizer, loss_of(inner))
    return Solution(with_ends(inner.value), f"20 points, {inner.dtype}, gradient descent")


def in_double_precision(points: int) -> Solution:
    """With more points, by SciPy."""
    found = minimize(loss_of, first_guess(points), method="trust-exact")
    if not found.success:
        raise RuntimeError(f"minimize did not find the solution: {found.message}")
    return Solution(with_ends(found.x), f"{points} points, {found.x.dtype}, trust region")


def draw(solutions: list[Solution], file: Path) -> None:
    """Draw each solution with the analytic one, and its errors below."""
    figure, axes = new_figure(11, 6, 2, 2, sharex=True, height_ratios=[2, 1])
    smooth = np.linspace(0, END, 300)
    for (above, below), (y, title) in zip(axes.T, solutions, strict=True):
        t = np.linspace(0, END, len(y))
        above.plot(smooth, analytic(smooth), color=RED, label="analytic solution")
        above.plot(t, y, "o", color=BLUE, markersize=2 + 60 / len(y), label="found")
        above.set_title(title)
        above.legend(frameon=False)
        below.plot(t, y - analytic(t), ".-", color=BLUE, linewidth=1)
        below.ticklabel_format(axis="y", scilimits=(0, 0))
        below.set_xlabel("t")
    axes[0, 0].set_ylabel("y")
    axes[1, 0].set_ylabel("error")
    save(figure, file)


def main(argv: list[str] | None = None) -> int:
    """Solve twice, compare, draw; return the exit code."""
    options = read_options(
        argv,
        __doc__,
        OPTIMIZERS,
        steps=Whole(12_000, 1, "how many steps of gradient descent are taken with 20 points"),
        points=Whole(100, 12, "how many points are taken in double precision"),
    )
    solutions = [in_single_precision(options.steps, options.optimizer), in_double_precision(options.points)]
    for solution in solutions:
        print(f"{solution.title}: within {solution.error:.1e} of the analytic solution")
    draw(solutions, options.folder / "boundary-value.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
