"""Train a small neural network to read handwritten digits.

By default the program trains a network of one hidden layer on the 1797 digits of 8 x 8 pixels of scikit-learn, by gradient
descent. ``--model cnn`` selects a network of convolutions, ``--data mnist`` the 70000 digits of 28 x 28 pixels from openml.org,
which are downloaded once. The program prints the percentage of held-out digits that are classified correctly, and draws the graph
of the loss.

With ``--checkpoint FILE`` the program can be killed at any moment; started again with the same options, it continues from
the file, and ends with the same numbers, bit for bit, as if it had never stopped.

With ``--jit`` the loss and its gradients are compiled to machine code before the first step. On one core the whole run of the
network of convolutions then takes 3 to 4 seconds instead of 6, that of the other 2.4 instead of 2.7. The numbers differ in their
last bits, so a checkpoint requires the same setting.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import numpy as np
from digits import Array, add_options, load_or_exit, side_of
from networks import MODELS, Model, Parameters
from options import require_picture, require_plot, require_writable
from training import OPTIMIZERS, Settings, Training, part_of, read_checkpoint

import compgraph as cg

ITERATIONS = {"dense": {"digits": 5_000, "mnist": 20_000}, "cnn": {"digits": 1_500, "mnist": 5_000}}
OPTIMIZER = {"dense": "sgd", "cnn": "adam"}
RATE = {"sgd": 0.1, "adagrad": 0.02, "rmsprop": 0.001, "adam": 0.003, "adamw": 0.003, "stepcontroller": 0.5}
RATE_OF_DENSE_DIGITS = 0.8  # by sgd: the gradient grows with the ink of an image; MNIST has six times as much
SCHEDULE = {"dense": "constant", "cnn": "cosine"}
SHIFT = {"dense": 0.0, "cnn": 0.5}
MISREAD = 12  # number of plotted images
CHUNK = 500  # images per batch of predictions


@cg.no_graph()
def guesses(model: Model, parameters: Parameters, images: Array) -> Array:
    """The class with the highest logit, for each image."""
    chunks = (slice(start, start + CHUNK) for start in range(0, len(images), CHUNK))
    logits = [model.logits(images[chunk].astype(model.dtype), parameters) for chunk in chunks]
    guessed: Array = np.argmax(np.concatenate(logits), axis=-1)
    return guessed


def draw_graph(model: Model, parameters: Parameters, images: Array, labels: Array, filename: Path) -> None:
    """Write a picture of the graph of a batch's loss."""
    logits = model.logits(cg.constant(images.astype(model.dtype), "x"), parameters)
    loss = cg.softmax_cross_entropy(logits, cg.constant(labels, "labels"))
    loss.name = "loss"
    cg.visualize_at(loss, filename=filename)


def plot(losses: list[float], images: Array, labels: Array, guessed: Array, filename: Path) -> None:
    """Write a picture of the loss during training, and of misclassified held-out images."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False)[0]
    axes = left.subplots()
    axes.semilogy(losses, linewidth=0.5, alpha=0.5, label="loss of a batch")
    window = min(100, max(len(losses), 1))
    mean = np.convolve(losses or [np.nan], np.full(window, 1 / window), "valid")
    axes.semilogy(np.arange(len(mean)) + window - 1, mean, label=f"mean of the last {window}")
    axes.set_xlabel("iteration")
    axes.legend()

    wrong = np.flatnonzero(guessed != labels)
    right.suptitle(f"{len(wrong)} of {len(labels)} misread" + (f", {MISREAD} of them" if len(wrong) > MISREAD else ""))
    for place, row in zip(right.subplots(3, 4).flat, [*wrong[:MISREAD], *[None] * MISREAD], strict=False):
        place.axis("off")
        if row is not None:
            place.imshow(images[row].reshape(side_of(images), -1), cmap="gray_r")
            place.set_title(f"{labels[row]} read as {guessed[row]}", fontsize="small")
    figure.savefig(filename)


def read_options(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line; a wrong one ends the program with an error."""
    add_options(parser)
    parser.add_argument("--model", choices=MODELS, default="dense", help="default: %(default)s")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, help=f"default: {format_defaults(OPTIMIZER)}")
    parser.add_argument("--rate", type=float, help=f"the size of a step; default: {RATE_OF_DENSE_DIGITS} for dense, "
                        f"digits and sgd, else {format_defaults(RATE)}")  # fmt: skip
    parser.add_argument("--schedule", choices=["constant", "cosine"], help="whether the rate stays, or falls to 0 in the end; "
                        f"default: {format_defaults(SCHEDULE)}, constant for stepcontroller")  # fmt: skip
    parser.add_argument("--iterations", type=int, metavar="N", help="default: "
                        + "; ".join(f"with {model} {format_defaults(n)}" for model, n in ITERATIONS.items()))  # fmt: skip
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="default: %(default)s")
    parser.add_argument("--shift", type=float, metavar="PIXELS", help="by up to how much each image is moved before the network "
                        f"learns from it, 0 to 1; default: {format_defaults(SHIFT)}")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers; default: %(default)s")
    parser.add_argument("--jit", action="store_true", help="compile the loss and its gradients to machine code; needs llvmlite")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="where to write the state of the training now and then, "
                        "and to continue from if the file exists")  # fmt: skip
    parser.add_argument("--graph", type=Path, default=Path("mnist-graph.svg"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where to plot the loss and misread digits; needs Matplotlib")
    options = parser.parse_args(argv)
    fill_in(options)
    check(parser, options)
    return options


def format_defaults(defaults: Mapping[str, object]) -> str:
    """Describe defaults that depend on other options."""
    return ", ".join(f"{value} for {case}" for case, value in defaults.items())


def fill_in(options: argparse.Namespace) -> None:
    """Choose missing options by the model, the data and the optimizer."""
    options.optimizer = options.optimizer or OPTIMIZER[options.model]
    options.schedule = options.schedule or ("constant" if options.optimizer == "stepcontroller" else SCHEDULE[options.model])
    if options.rate is None:
        is_usual = (options.model, options.data, options.optimizer) == ("dense", "digits", "sgd")
        options.rate = RATE_OF_DENSE_DIGITS if is_usual else RATE[options.optimizer]
    if options.iterations is None:
        options.iterations = ITERATIONS[options.model][options.data]
    if options.shift is None:
        options.shift = SHIFT[options.model]


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the program if an option is out of its range, or a file cannot be written."""
    if options.iterations < 0:
        parser.error("argument --iterations: must not be negative")
    if options.batch_size < 1:
        parser.error("argument --batch-size: must be at least 1")
    if not 0 < options.rate < np.inf:
        parser.error("argument --rate: must be positive and finite")
    if not 0 <= options.shift <= 1:
        parser.error("argument --shift: must be from 0 to 1")
    if options.seed < 0:
        parser.error("argument --seed: must not be negative")
    if options.optimizer == "stepcontroller" and options.schedule != "constant":
        parser.error("argument --schedule: stepcontroller adapts its learning rate; leave it constant, or use another optimizer")
    require_picture(parser, "--graph", options.graph)
    if options.plot:
        require_plot(parser, "--plot", options.plot, "leave the option out")
    if options.checkpoint:
        require_writable(parser, "--checkpoint", part_of(options.checkpoint))


def resume(parser: argparse.ArgumentParser, training: Training, checkpoint: Path) -> None:
    """Continue from a checkpoint if it exists."""
    if not checkpoint.exists():
        return
    try:
        training.load_state(read_checkpoint(checkpoint))
    except (OSError, ValueError) as error:
        parser.error(f"argument --checkpoint: cannot continue from {str(checkpoint)!r}: {error}; delete it to begin anew")
    print(f"Continuing from {checkpoint}, after {len(training.losses)} iterations", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Load, train, evaluate, draw; return the exit code."""
    parser = argparse.ArgumentParser(description="Train a small neural network to read handwritten digits, and draw its graph.")
    options = read_options(parser, argv)
    images, held_out_images, labels, held_out_labels = load_or_exit(parser, options)
    if options.batch_size > len(images):
        parser.error(f"argument --batch-size: must be at most {len(images)}, the number of images to train on")

    settings = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    training = Training(settings, images, labels)
    if options.checkpoint:
        resume(parser, training, options.checkpoint)
    training.run(options.checkpoint)
    guessed = guesses(training.model, training.parameters, held_out_images)
    print(f"Accuracy: {np.mean(guessed == held_out_labels):.2%}")
    batch = slice(options.batch_size)
    draw_graph(training.model, training.parameters, images[batch], labels[batch], options.graph)
    if options.plot:
        plot(training.losses, held_out_images, held_out_labels, guessed, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
