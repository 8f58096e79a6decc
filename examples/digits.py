"""Handwritten digits for the examples: sources and batches."""

from __future__ import annotations

import argparse
import socket
import sys
import warnings
from http.client import HTTPException
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.datasets import fetch_openml, load_digits
    from sklearn.model_selection import train_test_split
except ImportError:
    sys.exit('the digits come with scikit-learn: pip install ".[examples]"')

Array: TypeAlias = NDArray[Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the digits."""
    parser.add_argument("--data", choices=["digits", "mnist"], default="digits", help="default: %(default)s")
    parser.add_argument("--data-home", metavar="FOLDER", help="scikit-learn's folder for downloads, with --data mnist")


def load_or_exit(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Array]:
    """Return the result of `load_data`; if it fails, end the program with the reason."""
    if options.data_home is not None and options.data != "mnist":
        parser.error("argument --data-home: the small digits are not downloaded; it belongs with --data mnist")
    try:
        return load_data(options.data, options.data_home)
    except (OSError, HTTPException, ValueError) as error:
        reason = " ".join(str(error).split())
        hint = "the default needs no network: --data digits"
        print(f"{parser.prog}: cannot load {options.data}: {reason}; {hint}", file=sys.stderr)
        raise SystemExit(1) from error


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
    socket.setdefaulttimeout(10)  # timeout of the server, in seconds
    try:
        with warnings.catch_warnings(action="ignore"):  # failures raise
            options = {"return_X_y": True, "as_frame": False, "parser": "liac-arff", "n_retries": 1, "delay": 0.1}
            images, labels = fetch_openml("mnist_784", version=1, data_home=data_home, **options)
    finally:
        socket.setdefaulttimeout(earlier)
    return images, labels


class Batches:
    """Row numbers, `size` at a time, without end: each epoch goes through the rows in a new order.

    `order` and `position`, with the state of `rng`, determine all later batches.
    """

    def __init__(self, count: int, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.order = np.arange(count)
        self.position = count  # as at the end of an epoch: the first batch begins a new one

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Array:
        if self.position + self.size > len(self.order):
            self.order, self.position = self.rng.permutation(len(self.order)), 0
        self.position += self.size
        return self.order[self.position - self.size : self.position]


def shift(images: Array, most: float, rng: np.random.Generator) -> Array:
    """Move each image by up to `most` pixels (at most one) along both axes; new pixels at the edge are blank."""
    side = side_of(images)
    moved = images.reshape(-1, side, side)
    for _ in range(2):  # along the last axis; the loop swaps the axes
        moved = moved.swapaxes(1, 2)
        by = rng.uniform(-most, most, size=(len(images), 1, 1)).astype(images.dtype)
        padded = np.pad(moved, ((0, 0), (0, 0), (1, 1)))
        left, right = padded[..., :-2], padded[..., 2:]
        # Linear interpolation between pixels.
        moved = moved + np.maximum(by, 0) * (left - moved) + np.maximum(-by, 0) * (right - moved)
    return moved.reshape(images.shape)


def side_of(images: Array) -> int:
    """The height and width, in pixels, of square images that are one row each."""
    return round(float(np.sqrt(images.shape[1])))
