"""Two small networks that classify digits: fully connected, and convolutional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from digits import Array, side_of

import compgraph as cg

Parameters: TypeAlias = dict[str, cg.VariableNode]

CLASSES = 10
HIDDEN = 64
CHANNELS = 16, 32


def dense_parameters(pixels: int, rng: np.random.Generator) -> Parameters:
    """Random weights, of a size that makes hidden values and logits of the order of one, and biases of zero."""
    values = {
        "w1": rng.normal(scale=2.4 / np.sqrt(pixels), size=(pixels, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(scale=0.8 / np.sqrt(HIDDEN), size=(HIDDEN, CLASSES)),
        "b2": np.zeros(CLASSES),
    }
    return variables(values)


def dense(images: Array, p: Parameters) -> Any:
    """The logits, a score for each class, of each row of `images`."""
    hidden = cg.relu(images @ p["w1"] + p["b1"])
    return cg.add(hidden @ p["w2"], p["b2"], name="logits")


def cnn_parameters(pixels: int, rng: np.random.Generator) -> Parameters:
    """Random kernels and weights in single precision, of a size that keeps the size of their inputs, and biases of zero."""
    first, second = CHANNELS
    features = second * (round(float(np.sqrt(pixels))) // 2) ** 2
    values = {
        "k1": rng.normal(scale=np.sqrt(2 / 9), size=(first, 1, 3, 3)),
        "c1": np.zeros((first, 1, 1)),
        "k2": rng.normal(scale=np.sqrt(2 / (9 * first)), size=(second, first, 3, 3)),
        "c2": np.zeros((second, 1, 1)),
        "w": rng.normal(scale=np.sqrt(1 / features), size=(features, CLASSES)),
        "b": np.zeros(CLASSES),
    }
    return variables({name: value.astype(np.float32) for name, value in values.items()})


def cnn(images: Array, p: Parameters) -> Any:
    """The logits of each row of `images`, by two layers of 3 x 3 kernels, the largest of each 2 x 2 pixels, and weights."""
    side = side_of(images)
    x = images.reshape(-1, 1, side, side)
    x = cg.relu(cg.cross_correlate(x, p["k1"], padding="same") + p["c1"])
    x = cg.relu(cg.cross_correlate(x, p["k2"], padding="same") + p["c2"])
    x = cg.max_pool(x, (2, 2))
    return cg.add(x.reshape(len(images), -1) @ p["w"], p["b"], name="logits")


def variables(values: dict[str, Array]) -> Parameters:
    """Make a variable of each array, with its name."""
    return {name: cg.variable(value, name) for name, value in values.items()}


class Model(NamedTuple):
    """A network: its initial parameters by the number of pixels, its function, and its precision."""

    parameters: Callable[[int, np.random.Generator], Parameters]
    logits: Callable[[Array, Parameters], Any]
    dtype: type


MODELS = {"dense": Model(dense_parameters, dense, np.float64), "cnn": Model(cnn_parameters, cnn, np.float32)}
