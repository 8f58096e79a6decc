"""What is defined in a notebook arrives on other machines: primitives and their rules, graphs, executors, functions."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient

# A notebook: what is dumped is defined in __main__, and named so.
NOTEBOOK = """
import dataclasses, functools, sys
import cloudpickle
import numpy as np
import autodiff as ad
import compgraph as cg
from autodiff.optimizers import Adam
from typing import Any

POWER = 3

@cg.primitive
def cube(x):
    return x ** POWER

ad.rule(cube, lambda g, out, x: g * POWER * x * x, kind="elementwise")

@cg.primitive
def bell(x):
    return np.exp(-x * x)

ad.rule(bell, derivative=lambda x: -2 * x * bell(x), check=True)  # refers to itself

@cg.primitive(opname="mixed")
def mix(a, b, *, weight=0.5):
    return weight * a + (1 - weight) * b * b

ad.rule(mix, lambda g, out, a, b, *, weight=0.5: g * weight, lambda g, out, a, b, *, weight=0.5: g * (1 - weight) * 2 * b,
        kind="general", tangents=[lambda t, out, a, b, *, weight=0.5: t * weight,
                                  lambda t, out, a, b, *, weight=0.5: t * (1 - weight) * 2 * b])

part = cg.primitive(functools.partial(np.power, 2.0), opname="two_to_the")
ad.rule(part, lambda g, out, x: g * out * np.log(2.0))

@ad.custom_gradient
def clipped(x):
    return np.exp(x), lambda g: 10 * g * np.exp(x)

@ad.checkpoint
def block(x):
    return np.sin(x) ** 2

kept = ad.checkpoint(lambda x, w: w * np.sin(x) ** 2)
K = cg.constant([10.0, 20.0], name="K")
W = cg.variable([1.0, 2.0], "w")

@dataclasses.dataclass
class Pair:
    a: Any
    b: Any

X = cg.placeholder((None,), name="x")

def loss(w):
    return np.sum(K * cube(w) + block(w))

def of_pair(pair):
    return np.sum(cube(pair.a) * pair.b)

def adam():
    optimizer = Adam({"w": np.ones(2)}, rate=0.1)
    optimizer.step({"w": np.array([1.0, -1.0])})
    return optimizer

@ad.checkpoint
def blocked(pair):
    return pair.a * np.sin(pair.b)

THINGS = {
    "primitive": lambda: cube,
    "rule of itself": lambda: ad.grad(lambda x: np.sum(ad.grad(lambda x: np.sum(bell(x)))(x))),
    "options": lambda: ad.grad(lambda x: np.sum(mix(x, x, weight=0.25))),
    "forward": lambda: lambda x: ad.jvp(lambda x: mix(cube(x), x), (x,), (x,))[1],
    "callable": lambda: ad.grad(lambda x: np.sum(part(x))),
    "constant": lambda: ad.grad(loss),
    "custom_gradient": lambda: ad.grad(lambda x: np.sum(clipped(x))),
    "checkpoint": lambda: ad.grad(lambda x: np.sum(block(x))),
    "graph": lambda: np.sum(cube(W) * mix(W, bell(W))),
    "graph of a callable": lambda: part(W),
    "graph of custom_gradient": lambda: clipped(W),
    "graph of checkpoint": lambda: np.sum(kept(W, W[0]) + kept(1.0, W)),
    "graph of a dataclass": lambda: blocked(Pair(W, W * 2)),
    "executor": lambda: cg.Executor([cube(X * 2), cg.sum(bell(X))]),
    "executor in a function": lambda: (lambda run: lambda x: run.run({"x": x}))(cg.Executor(cube(X))),
    "executor of derivatives": lambda: cg.Executor(ad.reverse.gradients(cg.sum(cube(X)), [X])),
    "optimizer": adam,
}
VALUE = np.array([0.5, 1.5])

def used(thing):
    if isinstance(thing, cg.Executor):
        return thing.run({"x": VALUE})
    if isinstance(thing, cg.Node):
        return ad.reverse.gradient(thing)["w"]
    if not callable(thing):
        thing.step({"w": np.array([0.5, 0.5])})
        return thing.parameters["w"]
    return thing(VALUE)

if __name__ == "__main__":
    for k, (name, make) in enumerate(THINGS.items()):
        with open(f"{sys.argv[1]}/{k}.pickle", "wb") as file:
            cloudpickle.dump((make(), used, used(make())), file)
"""
NAMES = [line.split('"')[1] for line in NOTEBOOK[NOTEBOOK.index("THINGS") : NOTEBOOK.index("VALUE")].splitlines()[1:-1]]

# Another program, which knows nothing of the notebook.
LOADING = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    thing, used, expected = pickle.load(file)
found = used(thing)
for a, b in zip(found, expected, strict=True):
    assert np.array_equal(a, b), (found, expected)
"""


def run(program: str, *arguments: Any, folder: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=100, cwd=Path(__file__).parents[2]
    )
    assert found.returncode == 0, found.stderr


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: Any) -> Path:
    """A folder of what the notebook dumped."""
    folder: Path = tmp_path_factory.mktemp("notebook")
    run(NOTEBOOK, folder, folder=folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_program_loads_it(name: str, dumped: Path) -> None:
    run(LOADING, dumped / f"{NAMES.index(name)}.pickle", folder=dumped)
