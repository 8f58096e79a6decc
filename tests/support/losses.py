"""Loss functions of the distributed tests, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.arguments import flatten


def leaves_of(tree: Any) -> list[Any]:
    """The arrays in nested parameters."""
    leaves: list[Any] = flatten(tree)[0]
    return leaves


def squares(params: Any, x: Any, y: Any) -> Any:
    """The mean square of a line's errors."""
    return np.mean((x @ params["w"] + params["b"] - y) ** 2)


def waves(w: Any, x: Any, y: Any) -> Any:
    """A loss with derivatives of all orders."""
    return np.mean(np.sin(x @ w - y) ** 2)


def network(params: Any, x: Any, y: Any) -> Any:
    """A small network for digits."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    return cg.softmax_cross_entropy(hidden @ params["w2"] + params["b2"], y)


def network_parameters(pixels: int = 20, hidden: int = 16, classes: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    """Its parameters."""
    rng = np.random.default_rng(seed)
    return {
        "w1": rng.normal(scale=pixels**-0.5, size=(pixels, hidden)),
        "b1": np.zeros(hidden),
        "w2": rng.normal(scale=hidden**-0.5, size=(hidden, classes)),
        "b2": np.zeros(classes),
    }


@dataclass(frozen=True)
class Line:
    """Parameters as a user-defined class."""

    w: Any
    b: Any


def of_line(params: Line, x: Any, y: Any) -> Any:
    """The mean square of a line's errors."""
    assert type(params) is Line
    return np.mean((x @ params.w + params.b - y) ** 2)


# ------------------------------------------------------------------------------------------------------ errors


class NoSuchWordError(Exception):
    """A user-defined error."""


def raising(params: Any, x: Any, y: Any) -> Any:
    """A loss that raises in a nested call."""
    try:
        return looked_up("word")
    except KeyError as missing:
        raise NoSuchWordError("no such word") from missing


def looked_up(word: str) -> Any:
    """Raise."""
    return {}[word]


def exits(params: Any, x: Any, y: Any) -> Any:
    """A loss that ends the program."""
    raise SystemExit("enough")


def raises_what_does_not_pickle(params: Any, x: Any, y: Any) -> Any:
    """A loss whose error cannot be pickled."""

    class OddError(Exception):
        def __reduce__(self) -> Any:
            raise TypeError

    raise OddError("very odd")


def returns_a_vector(params: Any, x: Any, y: Any) -> Any:
    """A wrong loss: the vector of squares."""
    return (x @ params["w"] - y) ** 2


def returns_an_integer(params: Any, x: Any, y: Any) -> Any:
    """A constant integer."""
    return len(x)


EXPECTED = {
    "exits": (SystemExit, "enough"),
    "raises_what_does_not_pickle": (RuntimeError, "very odd"),
    "returns_a_vector": (ValueError, "scalar"),
    "returns_an_integer": (ValueError, "real scalar"),
}


def warns(params: Any, x: Any, y: Any) -> Any:
    """A loss that warns."""
    warnings.warn("the learning rate is silly", UserWarning, stacklevel=2)
    return squares(params, x, y)


def slowed(folder: Path, params: Any, x: Any, y: Any) -> Any:
    """The network's loss on a slow machine; a file named after its process has the seconds per row."""
    file = folder / str(os.getpid())
    if file.exists():
        time.sleep(float(file.read_text()) * len(x))
    return network(params, x, y)


def slow_once(file: Path, params: Any, x: Any, y: Any) -> Any:
    """The network's loss, which takes a second in the first call after the file was created."""
    with suppress(FileNotFoundError):
        file.unlink()
        time.sleep(1.0)
    return network(params, x, y)


def deadly(params: Any, x: Any, y: Any) -> Any:
    """A loss that exits its process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def sleeping(seconds: Any, x: Any) -> Any:
    """A loss that sleeps for the seconds in its parameter, per shard."""
    time.sleep(float(np.asarray(seconds)))
    return np.mean(x) * seconds
