"""Pickling of definitions in notebooks: primitives and their rules, graphs, executors, functions."""

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
from tests.support.failures import Failures

# A notebook: dumped objects are defined in __main__, and named accordingly.
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
    optimizer = Adam({"w": np.ones(2)}, learning_rate=0.1)
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

# Another program, without the notebook. One child process per object, so that none uses objects that another has loaded.
LOADING = """
import os, pickle, sys
import autodiff
import numpy as np
failed = []
for name, path in zip(sys.argv[1::2], sys.argv[2::2]):
    child = os.fork()
    if not child:
        try:
            with open(path, "rb") as file:
                thing, used, expected = pickle.load(file)
            for a, b in zip(used(thing), expected, strict=True):
                assert np.array_equal(a, b), (name, a, b)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
assert not failed, failed
"""


def run(program: str, *arguments: Any) -> None:
    results = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=Path(__file__).parents[3],
    )
    assert results.returncode == 0, results.stderr


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: Any) -> Path:
    """The folder with the pickles of the notebook."""
    folder: Path = tmp_path_factory.mktemp("notebook")
    run(NOTEBOOK, folder)
    return folder


@pytest.mark.slow
def test_pickles_load_in_new_processes(dumped: Path) -> None:
    """Each object returns the results of the notebook in a new process."""
    run(LOADING, *[part for k, name in enumerate(NAMES) for part in (name, dumped / f"{k}.pickle")])


@pytest.mark.slow
def test_unpickling_imports_dependencies(dumped: Path) -> None:
    run("import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))[0](2.0))", dumped / "0.pickle")


DUMPING = """
import sys
import cloudpickle, numpy as np
import autodiff as ad, compgraph as cg
@cg.primitive
def cube(x):
    return x ** 3
ad.rule(cube, lambda g, out, x: g * 3 * x * x)
with open(sys.argv[1], "wb") as file:
    cloudpickle.dump((cube, cube(cg.variable(2.0, "x"))), file)
"""
SAME = "import numpy as np\nimport autodiff" + DUMPING.split("import autodiff")[1].split("with open")[0]


@pytest.mark.slow
def test_joblib_runs_functions() -> None:
    """joblib has its own copy of cloudpickle."""
    run(
        SAME
        + """
from joblib import Parallel, delayed
def slope(x):
    return ad.grad(cube)(x), ad.reverse.gradient(node)["w"]
node = cube(cg.variable(3.0, "w"))
assert Parallel(n_jobs=2)(delayed(slope)(x) for x in (1.0, 2.0)) == [(3.0, 27.0), (12.0, 27.0)]
"""
    )


# ------------------------------------------------------------------------------------------ names that are taken

AGAIN = """
import sys
import numpy as np
import cloudpickle, pickle
import autodiff as ad, compgraph as cg
"""


def test_unpickling_conflicting_function_raises(tmp_path: Path) -> None:
    run(DUMPING, tmp_path / "it")
    run(
        AGAIN
        + """
@cg.primitive
def cube(x):
    return x * x * x + 1
ad.rule(cube, lambda g, out, x: g)
try:
    pickle.load(open(sys.argv[1], "rb"))
except ValueError as error:
    assert "contains the operation 'cube' of __main__, and a different one of that name is defined here" in str(error), error
else:
    raise AssertionError("it was taken")
assert cube(2.0) == 9 and ad.grad(cube)(2.0) == 1
@cg.primitive(opname="another")
def cube(x):
    return x
import gc; gc.collect()
primitive, node = pickle.load(open(sys.argv[1], "rb"))
assert primitive(2.0) == 8 and ad.grad(primitive)(2.0) == 12 and ad.reverse.gradient(node)["x"] == 12
""",
        tmp_path / "it",
    )


@pytest.mark.slow
def test_unpickling_twice_returns_same_function(tmp_path: Path) -> None:
    """The process that pickled a function unpickles the existing one, any number of times."""
    run(
        DUMPING.replace("    cloudpickle.dump", "    cloudpickle.dump")
        + """
import pickle
for _ in range(2):
    primitive, node = pickle.load(open(sys.argv[1], "rb"))
    assert primitive.function is cube.function and node.function is cube.function
    assert ad.grad(primitive)(2.0) == 12
assert pickle.loads(pickle.dumps(node)).function is cube.function  # by its name, as all in this program
assert pickle.loads(pickle.dumps(cube))(2.0) == 8
""",
        tmp_path / "it",
    )
    run(
        """
import pickle, sys
import autodiff as ad
found = [pickle.load(open(sys.argv[1], "rb")) for _ in range(3)]
for primitive, node in found:
    assert primitive.function is node.function
    assert ad.grad(primitive)(2.0) == 12 and ad.reverse.gradient(node)["x"] == 12
""",
        tmp_path / "it",
    )


@pytest.mark.slow
def test_redefined_function_replaces_earlier(tmp_path: Path) -> None:
    """A changed cell of a notebook runs again, and the new function is sent to the machines."""
    run(DUMPING, tmp_path / "first")
    run(DUMPING.replace("x ** 3", "x ** 5").replace("3 * x * x", "5 * x ** 4"), tmp_path / "second")
    run(
        """
import pickle, sys
import autodiff as ad
first = pickle.load(open(sys.argv[1], "rb"))[0]
second = pickle.load(open(sys.argv[2], "rb"))[0]
assert ad.grad(first)(2.0) == 12 and ad.grad(second)(2.0) == 80
""",
        tmp_path / "first",
        tmp_path / "second",
    )


def test_closures_are_pickled_separately() -> None:
    """Functions with the same code and different closure values are different."""

    def power(exponent: int) -> Any:
        @cg.primitive(opname="raised")
        def raised(x: Any) -> Any:
            return x**exponent

        ad.rule(raised, lambda g, out, x: g * exponent * x ** (exponent - 1))
        return raised

    square = power(2)
    sent = cloudpickle.dumps(square)
    cube = power(3)
    arrived = pickle.loads(sent)
    assert (arrived(2.0), cube(2.0)) == (4, 8)
    assert (ad.grad(arrived)(2.0), ad.grad(cube)(2.0)) == (4, 12)


@pytest.mark.slow
def test_module_primitives_are_pickled_by_name(tmp_path: Path) -> None:
    module = DUMPING.split("with open")[0].split("import cloudpickle, numpy as np")[1]
    (tmp_path / "operations_of_mine.py").write_text("import numpy as np" + module)
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import cloudpickle, pickle
import compgraph as cg
from operations_of_mine import cube
assert b"x ** 3" not in cloudpickle.dumps(cube) and len(cloudpickle.dumps(cube)) < 100
assert pickle.loads(cloudpickle.dumps(cube)) is cube is pickle.loads(pickle.dumps(cube))
assert pickle.loads(cloudpickle.dumps(cube(cg.variable(2.0)))).function is cube.function
import operations_of_mine
cloudpickle.register_pickle_by_value(operations_of_mine)
assert len(cloudpickle.dumps(cube)) > 300
"""
    run(program, tmp_path)


# ------------------------------------------------------------------------------------------------- machines


@dataclasses.dataclass
class Pair:
    """Parameters of a class that is not importable."""

    a: Any
    b: Any


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        yield client


def defined_here() -> dict[str, Any]:
    """Return functions that, like those of a notebook, cannot be imported by name."""

    @cg.primitive
    def swish(x: Any) -> Any:
        return x / (1 + np.exp(-x))

    ad.rule(swish, derivative=lambda x: (1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2, check=True)
    K = cg.constant([2.0, 3.0])  # noqa: N806
    x = cg.placeholder((None,), name="x")
    executor = cg.Executor([swish(x), cg.sum(x * 2)])
    block = ad.checkpoint(lambda p: np.sum(swish(p.a) * np.sin(p.b)))
    return {
        "rule": ad.value_and_grad(lambda x: np.sum(K * swish(x))),
        "executor": lambda x: executor.run({"x": x}),
        "checkpoint": lambda x: dataclasses.astuple(ad.grad(block)(Pair(x, x))),
    }


def test_functions_run_on_machines(client: Any) -> None:
    value = np.array([0.5, 1.5])
    with Failures("functions") as failures:
        for name, function in defined_here().items():
            for _ in range(2):
                with failures.case(name):
                    results = client.run(function, value)
                    assert len(results) == 2
                    for remote_node in results.values():
                        assert all(np.array_equal(a, b) for a, b in zip(remote_node, function(value), strict=True))


def test_nodes_are_sent_with_their_graphs(client: Any) -> None:
    """Dask's serialization of arrays would lose the graph."""
    first, second = client.scheduler_info()["workers"]

    def make_node(factor: float) -> Any:
        x = cg.variable(np.arange(3.0), "x")
        return np.broadcast_to(np.sum(x * x) * factor, (2,))

    def used(node: Any) -> Any:
        return gradient(node)["x"]

    expected = used(make_node(3.0))
    assert np.array_equal(used(client.submit(make_node, 3.0).result()), expected)
    assert np.array_equal(used(client.submit(lambda: [make_node(3.0)[0]] * 2).result()[1]), expected / 2)
    assert np.array_equal(client.submit(used, make_node(3.0)).result(), expected)
    assert np.array_equal(client.submit(used, client.scatter(make_node(3.0))).result(), expected)
    remote_node = client.submit(make_node, 3.0, workers=first)
    assert np.array_equal(client.submit(used, remote_node, workers=second).result(), expected)


def test_nodes_with_equal_values_are_different_tasks(client: Any) -> None:
    x = cg.variable(np.ones(2), "x")
    results = [client.submit(lambda node: gradient(node)["x"], node) for node in (x**2, x**3)]
    assert [f.result().tolist() for f in results] == [[2, 2], [3, 3]]
