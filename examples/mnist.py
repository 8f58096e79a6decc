"""Train a small neural network to read handwritten digits, by plain gradient descent.

Without arguments this takes the 1797 digits of 8 x 8 pixels that scikit-learn brings along; with ``--data mnist`` the
70000 of 28 x 28 pixels from openml.org, which are downloaded once. It prints how many digits out of a hundred that the
network was not trained on it reads correctly, and draws the graph of the loss.
"""

from __future__ import annotations

import argparse
import socket
import sys
import warnings
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import compgraph as cg
from autodiff.reverse import gradient
from compgraph.visualizer import FORMATS

Array: TypeAlias = NDArray[Any]
Parameters: TypeAlias = tuple[cg.VariableNode, cg.VariableNode, cg.VariableNode, cg.VariableNode]

HIDDEN, CLASSES = 64, 10
ITERATIONS = {"digits": 5_000, "mnist": 20_000}
RATE = {"digits": 0.8, "mnist": 0.1}  # the gradient grows with the ink of an image, of which MNIST has six times as much


def load_data(data: str, data_home: str | None = None) -> list[Array]:
    """Images for training, images held out, and the labels of both; one image a row, pixels from 0 to 1."""
    if data == "digits":
        images, labels = load_digits(return_X_y=True)
        images = images / 16
    else:
        images, labels = fetch_mnist(data_home)
        images = images / 255
    split: list[Array] = train_test_split(images, labels.astype(int), test_size=0.2, random_state=42)
    return split


def fetch_mnist(data_home: str | None) -> tuple[Array, Array]:
    """The images and labels of MNIST, from scikit-learn's cache or else from openml.org."""
    earlier = socket.getdefaulttimeout()
    socket.setdefaulttimeout(10)  # a server that says nothing for so many seconds is taken to be out of reach
    try:
        with warnings.catch_warnings(action="ignore"):  # what goes wrong on the way is said by the exception
            options = {"return_X_y": True, "as_frame": False, "parser": "liac-arff", "n_retries": 1, "delay": 0.1}
            images, labels = fetch_openml("mnist_784", version=1, data_home=data_home, **options)
    finally:
        socket.setdefaulttimeout(earlier)
    return images, labels


def make_parameters(pixels: int, rng: np.random.Generator) -> Parameters:
    """Random weights, of a size that makes hidden values and logits of the order of one, and biases of zero."""
    w1 = cg.variable(rng.normal(scale=2.4 / np.sqrt(pixels), size=(pixels, HIDDEN)), "w1")
    b1 = cg.variable(np.zeros(HIDDEN), "b1")
    w2 = cg.variable(rng.normal(scale=0.8 / np.sqrt(HIDDEN), size=(HIDDEN, CLASSES)), "w2")
    b2 = cg.variable(np.zeros(CLASSES), "b2")
    return w1, b1, w2, b2


def network(x: Array, parameters: Parameters) -> Any:
    """The logits, a score for each class, of each row of `x`."""
    w1, b1, w2, b2 = parameters
    hidden = cg.relu(x @ w1 + b1)
    return cg.add(hidden @ w2, b2, name="logits")


def batches(count: int, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Row numbers, `size` at a time, without end: each epoch goes through the rows in a new order."""
    while True:
        order = rng.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]


def train(
    parameters: Parameters, images: Array, labels: Array, iterations: int, size: int, rate: float, rng: np.random.Generator
) -> None:
    """Update the parameters in place, by gradient descent on one batch after the other."""
    w1, b1, w2, b2 = parameters
    losses: list[float] = []
    bar = tqdm(zip(range(iterations), batches(len(images), size, rng), strict=False), total=iterations, desc="Training")
    for iteration, rows in bar:
        loss = cg.softmax_cross_entropy(network(images[rows], parameters), labels[rows])
        grads = gradient(loss)
        w1 -= rate * grads["w1"]
        b1 -= rate * grads["b1"]
        w2 -= rate * grads["w2"]
        b2 -= rate * grads["b2"]
        losses.append(float(loss))
        if iteration % 100 == 99 or iteration == iterations - 1:
            bar.set_postfix(loss=f"{np.mean(losses[-1000:]):.4f}", refresh=False)


@cg.no_graph()
def accuracy(parameters: Parameters, images: Array, labels: Array) -> float:
    """The fraction of images whose highest logit is that of their label."""
    return float(np.mean(np.argmax(network(images, parameters), axis=-1) == labels))


def draw_graph(parameters: Parameters, images: Array, labels: Array, filename: Path) -> None:
    """Write a picture of how the loss of a batch is computed."""
    logits = network(cg.constant(images, "x"), parameters)
    loss = cg.softmax_cross_entropy(logits, cg.constant(labels, "labels"))
    loss.name = "loss"
    cg.visualize_at(loss, filename=filename)


def listed(defaults: dict[str, Any]) -> str:
    """Defaults that depend on the data, in words."""
    return ", ".join(f"{value} for {data}" for data, value in defaults.items())


def read_options(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line; a wrong one ends the program with a line that says so."""
    parser.add_argument("--data", choices=["digits", "mnist"], default="digits", help="default: %(default)s")
    parser.add_argument("--data-home", metavar="FOLDER", help="scikit-learn's folder for downloads, of use with --data mnist")
    parser.add_argument("--iterations", type=int, metavar="N", help=f"default: {listed(ITERATIONS)}")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="default: %(default)s")
    parser.add_argument("--rate", type=float, help=f"the size of a step; default: {listed(RATE)}")
    parser.add_argument("--seed", type=int, default=0, help="for the weights and the order of batches; default: %(default)s")
    parser.add_argument("--graph", type=Path, default=Path("mnist-graph.svg"), metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(argv)
    if options.iterations is None:
        options.iterations = ITERATIONS[options.data]
    if options.rate is None:
        options.rate = RATE[options.data]
    if options.iterations < 0:
        parser.error("argument --iterations: must not be negative")
    if options.batch_size < 1:
        parser.error("argument --batch-size: must be at least 1")
    if not 0 < options.rate < np.inf:
        parser.error("argument --rate: must be positive and finite")
    if options.seed < 0:
        parser.error("argument --seed: must not be negative")
    if options.graph.suffix[1:].lower() not in FORMATS:
        parser.error(f"argument --graph: the name must end in one of .{', .'.join(FORMATS)}, not {options.graph.name!r}")
    try:
        is_new = not options.graph.exists()
        options.graph.open("ab").close()
        if is_new:
            options.graph.unlink()
    except OSError as error:
        parser.error(f"argument --graph: cannot write {str(options.graph)!r}: {error.strerror}")
    return options


def main(argv: list[str] | None = None) -> int:
    """Load, train, evaluate, draw; return the exit code."""
    parser = argparse.ArgumentParser(description="Train a small neural network to read handwritten digits, and draw its graph.")
    options = read_options(parser, argv)
    try:
        images, held_out_images, labels, held_out_labels = load_data(options.data, options.data_home)
    except (OSError, HTTPException, ValueError) as error:
        reason = " ".join(str(error).split())
        hint = "the default needs no network: --data digits"
        print(f"{parser.prog}: cannot load {options.data}: {reason}; {hint}", file=sys.stderr)
        return 1
    if options.batch_size > len(images):
        parser.error(f"argument --batch-size: must be at most {len(images)}, the number of images to train on")

    rng = np.random.default_rng(options.seed)
    parameters = make_parameters(images.shape[1], rng)
    train(parameters, images, labels, options.iterations, options.batch_size, options.rate, rng)
    print(f"Accuracy: {accuracy(parameters, held_out_images, held_out_labels):.2%}")
    draw_graph(parameters, images[: options.batch_size], labels[: options.batch_size], options.graph)
    return 0


if __name__ == "__main__":
    sys.exit(main())
