"""Graphs to be split, and operations that sleep to simulate work."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np

import autodiff
import compgraph as cg


@cg.primitive
def resting(x: Any, *, seconds: float) -> Any:
    """Return x after a delay; the cotangent takes twice as long."""
    time.sleep(seconds)
    return np.array(x)


def _rested(g: Any, out: Any, x: Any, *, seconds: float) -> Any:
    time.sleep(2 * seconds)
    return g


autodiff.rule(resting, _rested, kind="general")


@cg.primitive
def failing(x: Any) -> Any:
    """Return x, or raise if it is large."""
    if np.max(x) > 100:
        raise ArithmeticError("too large for this function")
    return np.array(x)


autodiff.rule(failing, lambda g, out, x: g, kind="elementwise")


@cg.primitive
def dying(x: Any, *, path: str) -> Any:
    """Return x; if the file exists, remove it and exit the process."""
    if os.path.exists(path):
        os.remove(path)
        os.kill(os.getpid(), signal.SIGKILL)
    return np.array(x)


autodiff.rule(dying, lambda g, out, x, *, path: g, kind="elementwise")


def network(seed: int = 0, width: int = 16) -> tuple[Any, list[Any]]:
    """A loss with a shared parameter, values read by several parts, and a term outside of scopes."""
    rng = np.random.default_rng(seed)
    x, y = cg.placeholder((None, 8), name="x"), cg.placeholder((None,), int, name="y")

    def variable(name: str, *shape: int) -> Any:
        return cg.variable(rng.normal(size=shape) * 0.5, name)

    u, v, w, b = variable("u", 8, width), variable("v", width, width), variable("w", width, 4), variable("b", 4)
    with cg.scope("first"):
        h = cg.tanh(x @ u)
        h = cg.tanh(h @ v) + h
    with cg.scope("second"):
        logits = (cg.relu(h @ v) * h) @ w + b
    return cg.softmax_cross_entropy(logits, y) + 1e-3 * (cg.sum(u * u) + cg.sum(w * w)), [u, v, w, b]


def rows(count: int, seed: int = 1) -> dict[str, Any]:
    """The feed of `network`."""
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(count, 8)), "y": rng.integers(0, 4, count)}
