"""Teach a small network to tell histograms of normally distributed numbers (class 1) from others (class 0); then fool it.

The network cross-correlates a histogram with three kernels, pools, and applies two linear layers. Fooling it takes the gradient
with respect to a histogram of class 0 instead of the weights, and moves the histogram until the network classifies it as class 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared import BLUE, GRAY, RED, Array, Whole, new_figure, read_options, save, step_controller, take_step
from tqdm import tqdm

import compgraph as cg
from autodiff.optimizers import Adam
from autodiff.reverse import gradient

NUMBERS, BINS, BATCH = 500, 16, 40
OPTIMIZERS = ("stepcontroller", "printed", "adam")
STEP = 0.001  # of the hacking: how far a histogram is moved at once
CERTAIN = 3.0  # the logit at which the hacking ends: the network is 95 % sure
t = np.linspace(0, 1, NUMBERS)


def other_numbers(rng: np.random.Generator) -> Array:
    """Numbers whose histogram is of class 0: values of a polynomial, an exponential or a sine, or uniformly distributed."""
    kind = rng.integers(7)
    if kind == 0:
        return np.sin(t * rng.uniform(0.1, 1.1))
    if kind == 1:
        return np.exp(t * rng.uniform(1, 3))
    if kind == 2:
        return rng.random(NUMBERS)
    a, b, c = rng.integers(1, 5, 3)
    return a * t**3 - b * t**2 + c * t


def histograms(rows: Array) -> Array:
    """The share of each row's numbers that falls into each of 16 bins between the least and the largest of the row."""
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    bins = np.minimum((rows - low) / (high - low) * BINS, BINS - 1).astype(int)
    counts = np.bincount((bins + BINS * np.arange(len(rows))[:, None]).ravel(), minlength=BINS * len(rows))
    return counts.reshape(len(rows), BINS) / rows.shape[1]


def make_examples(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """New histograms, one a row, and their classes: 0, 1, 0, 1 ..."""
    classes = np.arange(count) % 2
    rows = [rng.standard_normal(NUMBERS) if c else other_numbers(rng) for c in classes]
    return histograms(np.stack(rows)), classes


class Network(NamedTuple):
    """The weights of the network."""

    kernels: Any
    w1: Any
    b1: Any
    w2: Any

    def logits(self, x: Any) -> Any:
        """The logit of class 1 for each row of `x`: positive for class 1, negative for class 0."""
        pooled = cg.max_pool(cg.cross_correlate(cg.expand(x, 1), self.kernels), 2)
        return (np.reshape(pooled, (len(x), -1)) @ self.w1 + self.b1) @ self.w2


def make_network(rng: np.random.Generator) -> Network:
    """Random weights."""
    shapes = {"kernels": (3, 1, 5), "w1": (18, 7), "b1": (7,), "w2": (7,)}
    return Network(*(cg.variable(rng.standard_normal(shape), name) for name, shape in shapes.items()))


def train(network: Network, steps: int, rng: np.random.Generator, name: str = OPTIMIZERS[0]) -> list[float]:
    """Update the weights in place, by new examples in each step; returns the losses."""
    # New examples make the loss noisy, so the step size soon stops growing and shrinks: the first must be large.
    optimizer = Adam(network, learning_rate=0.03) if name == "adam" else step_controller(name, network, 0.5, window=100)
    losses = []
    for _ in tqdm(range(steps), desc="Training"):
        x, classes = make_examples(BATCH, rng)
        loss = np.mean(cg.sigmoid_cross_entropy(network.logits(x), classes))
        take_step(optimizer, loss)
        losses.append(float(loss))
    return losses


@cg.no_graph()
def accuracy(network: Network, x: Array, classes: Array) -> float:
    """The fraction of correctly classified histograms."""
    return float(np.mean((network.logits(x) > 0) == classes))


def hack(network: Network, histogram: Array) -> tuple[Array, Array]:
    """Move the histogram up the gradient until its class is 1; return it and the direction of the first step."""
    x, first = cg.variable(histogram[None], "x"), None
    for _ in tqdm(range(1000), desc="Hacking"):
        logit = network.logits(x)[0]
        if logit > CERTAIN:
            break
        uphill = gradient(logit, wrt=[x])[x]
        first = uphill if first is None else first
        x += STEP * uphill / np.linalg.norm(uphill)
    return x.value[0], np.zeros(BINS) if first is None else first[0]


@cg.no_graph()
def logit_of(network: Network, histogram: Array) -> float:
    """The logit of class 1 for a histogram."""
    return float(network.logits(histogram[None])[0])


def probability(network: Network, histogram: Array) -> float:
    """The probability of class 1 for a histogram."""
    return float(cg.sigmoid(logit_of(network, histogram)))


def draw(examples: Array, losses: list[float], network: Network, hacked: Array, uphill: Array, file: Path) -> None:
    """An example of each class and the losses; below, the first example, the gradient, and the example after the steps."""
    figure, axes = new_figure(12, 7, 2, 3)
    axes[1, 0].sharey(axes[1, 2])
    zero, one = examples
    panels = {
        "Class 0": (axes[0, 0], zero, BLUE),
        "Class 1": (axes[0, 1], one, RED),
        f"Before: class 1 with probability {probability(network, zero):.2%}": (axes[1, 0], zero, BLUE),
        "Uphill: the gradient of the logit of class 1": (axes[1, 1], uphill, GRAY),
        f"After: class 1 with probability {probability(network, hacked):.2%}": (axes[1, 2], hacked, RED),
    }
    for title, (place, heights, color) in panels.items():
        place.bar(range(BINS), heights, color=color, width=0.9)
        place.set(title=title, xlabel="bin", xticks=range(0, BINS, 5), ylabel="" if heights is uphill else "share")
    axes[0, 2].plot(losses, color=GRAY, linewidth=1)
    axes[0, 2].set(title="The loss in training", xlabel="step", yscale="log")
    save(figure, file)


def main(argv: list[str] | None = None) -> int:
    """Train, evaluate, hack, draw; return the exit code."""
    options = read_options(
        argv,
        __doc__,
        OPTIMIZERS,
        steps=Whole(500, 1, f"how many steps of training, with {BATCH} new examples each"),
        seed=Whole(0, 0, "for the weights and the examples"),
    )
    rng = np.random.default_rng(options.seed)
    network = make_network(rng)
    losses = train(network, options.steps, rng, options.optimizer)
    fresh, classes = make_examples(1000, rng)
    print(f"Accuracy on 1000 fresh examples: {accuracy(network, fresh, classes):.1%}")
    before = fresh[0]
    after, uphill = hack(network, before)
    print(f"A histogram of class 0 is moved by {np.linalg.norm(after - before):.3f}: its logit was", end=" ")
    print(f"{logit_of(network, before):.2f} and is {logit_of(network, after):.2f}. Probability of class 1:", end=" ")
    print(f"{probability(network, before):.2%} before, {probability(network, after):.2%} after")
    draw(fresh[:2], losses, network, after, uphill, options.folder / "histograms.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
