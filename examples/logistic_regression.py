"""Distinguish the handwritten digits 0 and 1 by logistic regression, as a graph that is recorded once and run many times.

The images and labels are placeholders, the derivatives of the loss are nodes of the same graph, and an executor computes
both for one batch after the other. By default the program uses the digits of 8 x 8 pixels of scikit-learn;
with ``--data mnist`` those of 28 x 28 pixels from openml.org, which are downloaded once. It prints the loss of each epoch
and the percentage of held-out digits that it distinguishes, plots the learned weights, and draws the graph.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digits import Array, Batches, add_options, load_or_exit, side_of
from options import require_picture, require_plot

import compgraph as cg
from autodiff.optimizers import SGD
from autodiff.reverse import gradients


class Regression(NamedTuple):
    """The nodes of the graph that are fed, updated and computed."""

    images: cg.Node
    labels: cg.Node
    weights: cg.VariableNode
    bias: cg.VariableNode
    probabilities: Any
    loss: Any
    derivatives: list[Any]  # of the loss, with respect to weights and bias


def make_graph(pixels: int) -> Regression:
    """The probability that an image is a 1, the loss, and its derivatives, for any number of images; all weights are zero."""
    images = cg.placeholder((None, pixels), name="images")
    labels = cg.placeholder((None,), name="labels")
    weights = cg.variable(np.zeros(pixels), "weights")
    bias = cg.variable(0.0, "bias")
    logits = cg.add(images @ weights, bias, name="logits")
    loss = cg.sigmoid_cross_entropy(logits, labels)
    loss.name = "loss"
    derivatives = gradients(loss, [weights, bias])
    derivatives[0].name, derivatives[1].name = "d loss / d weights", "d loss / d bias"
    return Regression(images, labels, weights, bias, cg.sigmoid(logits, name="probabilities"), loss, derivatives)


def train(graph: Regression, images: Array, labels: Array, options: argparse.Namespace) -> list[float]:
    """Update weights and bias, epoch by epoch; return the loss of each batch."""
    executor = cg.Executor([graph.loss, *graph.derivatives])
    optimizer = SGD([graph.weights, graph.bias], learning_rate=options.rate)
    batches = Batches(len(images), options.batch_size, np.random.default_rng(options.seed))
    losses: list[float] = []
    for epoch in range(1, options.epochs + 1):
        for _ in range(len(images) // options.batch_size):
            rows = next(batches)
            loss, *derivatives = executor.run({graph.images: images[rows], graph.labels: labels[rows]})
            optimizer.step(derivatives)
            losses.append(float(loss))
        print(f"Epoch {epoch}: loss {np.mean(losses[-(len(images) // options.batch_size) :]):.4f}")
    return losses


def plot(losses: list[float], graph: Regression, probabilities: Array, labels: Array, filename: Path) -> None:
    """Write a picture of the loss, the weights as an image, and the probabilities of the held-out digits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.5), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.semilogy(losses)
    left.set(xlabel="batch", title="Loss")
    weights = graph.weights.value.reshape(side_of(graph.images), -1)
    most = np.abs(weights).max() or 1.0
    figure.colorbar(middle.imshow(weights, cmap="RdBu_r", vmin=-most, vmax=most), ax=middle)
    middle.set(title="Weights: ink that speaks for a 1 is red", xticks=[], yticks=[])
    bins = np.linspace(0, 1, 21)
    right.hist([probabilities[labels == 0], probabilities[labels == 1]], bins, stacked=True, label=["0", "1"], color=["C0", "C3"])
    right.set(xlabel="probability of a 1", title="Held-out digits")
    right.legend()
    figure.savefig(filename)


def read_options(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line; a wrong one ends the program with an error."""
    add_options(parser)
    parser.add_argument("--epochs", type=int, default=10, metavar="N", help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=0.1, help="the size of a step; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="for the order of batches; default: %(default)s")
    files = {"--graph": Path("logistic-regression-graph.svg"), "--plot": Path("logistic-regression.png")}
    for option, file in files.items():
        parser.add_argument(option, type=Path, default=file, metavar="FILE", help="default: %(default)s")
    parser.add_argument(
        "--no-plot", action="store_const", const=None, dest="plot", help="plot nothing, which needs no Matplotlib"
    )
    options = parser.parse_args(argv)
    if options.epochs < 0:
        parser.error("argument --epochs: must not be negative")
    if options.batch_size < 1:
        parser.error("argument --batch-size: must be at least 1")
    if not 0 < options.rate < np.inf:
        parser.error("argument --rate: must be positive and finite")
    if options.seed < 0:
        parser.error("argument --seed: must not be negative")
    require_picture(parser, "--graph", options.graph)
    if options.plot:
        require_plot(parser, "--plot", options.plot, "--no-plot does without")
    return options


def main(argv: list[str] | None = None) -> int:
    """Load, train, evaluate, plot and draw; return the exit code."""
    parser = argparse.ArgumentParser(description="Tell the handwritten digits 0 and 1 apart, by a graph that is run many times.")
    options = read_options(parser, argv)
    images, held_out_images, labels, held_out_labels = load_or_exit(parser, options)
    images, labels = images[labels < 2], labels[labels < 2]
    held_out_images, held_out_labels = held_out_images[held_out_labels < 2], held_out_labels[held_out_labels < 2]
    if options.batch_size > len(images):
        parser.error(f"argument --batch-size: must be at most {len(images)}, the number of images to train on")

    graph = make_graph(images.shape[1])
    losses = train(graph, images, labels, options)
    probabilities = cg.Executor(graph.probabilities).run({graph.images: held_out_images})
    print(f"Accuracy: {np.mean((probabilities > 0.5) == held_out_labels):.2%} of {len(held_out_labels)}")
    cg.visualize_at(graph.derivatives[0], filename=options.graph)
    if options.plot:
        plot(losses, graph, probabilities, held_out_labels, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
