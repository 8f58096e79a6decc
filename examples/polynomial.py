"""Fit the coefficients of a polynomial to 20 of its values, by gradient descent with an adaptive step size."""

from __future__ import annotations

import sys

import numpy as np
from shared import BLUE, RED, Whole, new_figure, read_options, save, step_controller, take_step
from tqdm import tqdm

import compgraph as cg
from autodiff.optimizers import StepController

COEFFICIENTS = np.array([0.5, 1.8, 2.3, -0.6])
t = np.linspace(0, 5, 20)
POWERS = np.vander(t, 4, increasing=True)


def fit(steps: int, name: str = "stepcontroller") -> tuple[cg.VariableNode, StepController]:
    """Return the coefficients, and the optimizer with its history."""
    w = cg.variable(np.zeros(4), "w")
    optimizer = step_controller(name, [w], 1e-5)
    for _ in tqdm(range(steps), desc="Fitting"):
        loss = np.sqrt(np.mean((POWERS @ w - POWERS @ COEFFICIENTS) ** 2))
        take_step(optimizer, loss)
    return w, optimizer


def main(argv: list[str] | None = None) -> int:
    """Fit, compare, draw; return the exit code."""
    steps = Whole(20_000, 1, "how many steps of gradient descent are taken")
    options = read_options(argv, __doc__, ("stepcontroller", "printed"), steps=steps)
    w, optimizer = fit(options.steps, options.optimizer)
    print("Coefficients:", ", ".join(f"{c:.5f}" for c in w.value))
    print(f"Largest difference: {np.max(np.abs(w.value - COEFFICIENTS)):.1e}")

    figure, (curve, loss, rate) = new_figure(12, 4, 1, 3)
    smooth = np.linspace(0, 5, 200)
    curve.plot(smooth, np.vander(smooth, 4, increasing=True) @ w.value, color=BLUE, label="found")
    curve.plot(t, POWERS @ COEFFICIENTS, "o", color=RED, markersize=4, label="given")
    curve.set(title="The polynomial", xlabel="t", ylabel="y")
    curve.legend(frameon=False)
    optimizer.plot((loss, rate))
    loss.set(title="The loss", xlabel="step")
    rate.set(title="The size of the steps")
    save(figure, options.folder / "polynomial.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
