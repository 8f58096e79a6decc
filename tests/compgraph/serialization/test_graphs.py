"""Graphs stay complete when they are pickled, deep-copied or sent to other processes."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import rule
from autodiff.forward import jvp
from autodiff.operators.grad import grad
from autodiff.reverse import gradient, gradients
from compgraph import ops
from compgraph.serialization.moved import RENAMED_OPERATIONS
from compgraph.serialization.pickled_functions import pickled_form, resolve_function
from compgraph.storage import root_of

pytestmark = pytest.mark.portable


def through_joblib(value: Any) -> Any:
    file = io.BytesIO()
    joblib = pytest.importorskip("joblib", reason="pip install joblib")
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "old protocol": lambda value: pickle.loads(pickle.dumps(value, 0)),
    "pickle in Python": lambda value: pickle._loads(pickle._dumps(value)),  # type: ignore[attr-defined]
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@cg.primitive
def pickled_cube(x: Any) -> Any:
    return x**3


rule(pickled_cube, lambda g, out, x: 3 * g * x**2, kind="elementwise")


def assert_same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    assert np.array_equal(actual, expected, equal_nan=True)


# --------------------------------------------------------------------------------------- preserved state


@every_way
def test_graph_copy_keeps_values_and_gradients(way: Callable[[Any], Any]) -> None:
    x, w = cg.variable([1.0, 2.0, 3.0], "x"), cg.variable(np.eye(3, order="F") + 1, "w")
    hidden = cg.sin(w @ x, name="hidden")
    loss = np.sum(hidden * [1.0, 2.0, 3.0]) + pickled_cube(x[1]) + np.linalg.slogdet(w)[1]
    loss.name = "loss"
    expected = gradient(loss)
    loaded = way({"loss": loss, "parts": (x, hidden, [w, w])})
    root, (x2, hidden2, (w2, w3)) = loaded["loss"], loaded["parts"]
    assert w2 is w3
    assert (root.name, x2.name, hidden2.name, root.line, root.opname) == ("loss", "x", "hidden", loss.line, "add")
    assert [type(n) for n in (root, x2, hidden2)] == [type(n) for n in (loss, x, hidden)]
    assert_same(root, loss.value)
    assert w2.value.flags.f_contiguous
    g = gradient(root, [x2, w2, hidden2])
    assert_same(g[x2], expected[x])
    assert_same(g[w2], expected["w"])
    assert not np.shares_memory(x2.value, x.value)
    (second,) = gradients(np.sum(gradients(root, [x2])[0] ** 2), [x2])
    (reference,) = gradients(np.sum(gradients(loss, [x])[0] ** 2), [x])
    assert_same(second.value, reference.value)


@every_way
def test_graph_copy_keeps_kinds_of_leaves(way: Callable[[Any], Any]) -> None:
    nodes = (
        cg.variable(1.5, "s"), cg.variable(np.float32([1, 2]), "f"), cg.variable(1j, "c"), cg.constant([1, 2], "k"),
        cg.variable(np.zeros((0, 3)), "none"), cg.variable(np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0), "t"),
        cg.zeros(2, name="b"), cg.variable(2.0) ** 2, cg.variable([1.0, 2.0]) > 1.5,
    )  # fmt: skip
    for node, loaded in zip(nodes, way(nodes), strict=True):
        assert type(loaded) is type(node)
        assert type(loaded.raw_value) is type(node.raw_value)
        assert_same(loaded.value, node.value)
        assert loaded._name == node._name
        assert loaded.strides == node.strides or not node.size
    assert not way(nodes)[3].value.flags.writeable
    way(nodes)[1].value[0] = 7


@every_way
def test_graph_copy_keeps_sequence_numbers(way: Callable[[Any], Any]) -> None:
    x = cg.variable([1.0, 2.0], "x")
    y = x * x
    x += 1.0  # younger than y
    x2, y2 = way((x, y))
    with pytest.raises(ValueError, match="updated in place after mul"):
        gradient(y2)
    z = y2 + x2  # younger than all that was loaded
    assert z.sequence_number > x2.sequence_number > y2.sequence_number
    x2 += 1.0
    with pytest.raises(ValueError, match="updated in place after mul"):
        gradient(x2 * x2 + z)


def test_pickle_resolves_every_function() -> None:
    for function in [*ops.OPNAMES, *ops.PACKED_FUNCTIONS.values()]:
        if getattr(function, "__module__", "").split(".")[0] in ("numpy", "scipy", "compgraph", "autodiff"):
            assert resolve_function(pickle.loads(pickle.dumps(pickled_form(function)))) is function


@pytest.mark.parametrize(
    ("opname", "old", "new"), [("scatter", "layout", "index_counts"), ("scatter_add", "places", "positions")]
)
def test_pickle_of_earlier_version_has_renamed_options(opname: str, old: str, new: str) -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")
    if opname == "scatter":
        (result,) = gradients(np.sum(x[1:] ** 2), [x])
    else:
        result = np.zeros_like(x) + x
        np.add.at(result, [0, 0, 2], x)
    (node,) = [n for n in cg.topological_order([result]) if getattr(n, "opname", None) == opname]
    expected = result.value.copy()
    node.options = {old if key == new else key: value for key, value in node.options.items()}
    loaded = pickle.loads(pickle.dumps(result))
    (node,) = [n for n in cg.topological_order([loaded]) if getattr(n, "opname", None) == opname]
    assert new in node.options
    assert np.array_equal(cg.Executor(loaded).run({"x": [1.0, 2.0, 3.0]}), expected)


@pytest.mark.parametrize(("old", "new"), RENAMED_OPERATIONS.items())
def test_pickle_of_earlier_version_has_renamed_operation(old: str, new: str) -> None:
    assert resolve_function(old) is resolve_function(new) is ops.function_by_opname(new)


@every_way
def test_gradient_pickle_is_indexed_by_variable(way: Callable[[Any], Any]) -> None:
    x = cg.variable([1.0, 2.0], "x")
    x2, mapping = way((x, gradient(np.sum(x * x))))
    assert np.array_equal(mapping[x2], [2, 4])


# ------------------------------------------------------------------------------------- views and writes


@every_way
def test_graph_copy_views_share_memory_with_base(way: Callable[[Any], Any]) -> None:
    x = cg.variable([1.0, 2.0, 3.0, 4.0], "x")
    base = x * 2
    views = (base[1:3], base[::-2], np.reshape(base, (2, 2)).T, np.broadcast_to(base, (3, 4)))
    loaded, *others = way((base, *views))
    loaded[1] = 50.0
    base[1] = 50.0
    for ours, theirs in zip(views, others, strict=True):
        assert np.shares_memory(loaded.value, theirs.value)
        assert np.array_equal(ours, theirs)
        assert ours.value.flags.writeable == theirs.value.flags.writeable
    others[0][0] = x[0]  # another graph's node is as good as any
    assert loaded.value[1] == 1


@every_way
def test_graph_copy_views_of_unordered_layouts(way: Callable[[Any], Any]) -> None:
    z = cg.variable(np.arange(24.0).reshape(2, 3, 4) * (1 + 1j), "z")
    base = np.copy(z.transpose(1, 2, 0), order="K")
    real, base2 = way((base.real[1:, ::2], base))
    assert np.shares_memory(real.value, base2.value)
    assert np.array_equal(base2, base)
    real[...] = 0.0
    assert not base2.value.real[1:, ::2].any()
    assert np.array_equal(base2.value.imag, base.value.imag)


def fill_buffers(x: Any) -> tuple[Any, Any, Any]:
    """Buffers and views that are written into, and values computed in between."""
    b = cg.zeros(3)
    view = b[1:]
    b[0] = x[0] * x[1]
    before = np.sum(b**2)
    view *= x[2]
    view[1] = b[0] ** 2
    b += x
    b[[0, 0]] = x[1:] ** 3
    return b, view, before + np.sum(view * x[0]) + np.prod(b)


@every_way
def test_graph_copy_keeps_write_logs(way: Callable[[Any], Any]) -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")
    b, view, loss = fill_buffers(x)
    expected = gradient(loss)["x"]
    assert_same(expected, grad(lambda x: fill_buffers(x)[2])(x.value))
    for order in (lambda *n: n, lambda *n: n[::-1]):
        x2, b2, view2, loss2 = order(*way(order(x, b, view, loss)))
        assert_same(gradient(loss2)[x2], expected)
        assert root_of(view2) is b2
        assert_same(gradient(b2)[x2], gradient(np.sum(b))[x])
        view2[0] = x2[0] * 10
        assert b2.value[1] == 10
        assert_same(gradient(b2 * [0.0, 1.0, 0.0])[x2], np.array([10.0, 0, 0]))
        assert_same(gradient(loss2)[x2], expected)
    assert_same(gradient(way(view))["x"], gradient(view)["x"])
    for create_graph in (False, True):
        assert_same(gradient(loss, create_graph=create_graph)["x"] + 0.0, expected)


@every_way
def test_graph_copy_written_outputs_of_one_operation(way: Callable[[Any], Any]) -> None:
    a = cg.variable([[2.0, 1.0], [1.0, 3.0]], "a")
    q, r = np.linalg.qr(a)
    r[0, 0] = a[0, 1]
    loss = np.sum(q * r)
    assert_same(gradient(way(loss))["a"], gradient(loss)["a"])


# -------------------------------------------------------------------------------- one pickler and several


def test_pickle_of_node_list_is_linear() -> None:
    x = cg.variable(1.0, "x")
    steps = [x]
    for _ in range(5_000):
        steps.append(steps[-1] * 1.0001)
    copies = pickle.loads(pickle.dumps(steps))
    assert len(pickle.dumps(steps)) < 200 * len(steps)
    assert all(b.args[0] is a for a, b in pairwise(copies))


def test_pickle_of_several_live_picklers_is_complete() -> None:
    """Picklers that have dumped other nodes still dump the whole graph, with the logs of its buffers."""
    x = cg.variable([1.0, 2.0, 3.0], "x")
    b, view, loss = fill_buffers(x)
    expected = gradient(loss)["x"]
    files = [io.BytesIO() for _ in range(3)]
    picklers = [pickle.Pickler(file) for file in files]
    for node in (x, b, view, loss, loss * 2):
        for pickler in picklers:
            pickler.dump(node)
        assert_same(gradient(pickle.loads(pickle.dumps(loss)))["x"], expected)
    for file in files:
        file.seek(0)
        unpickler = pickle.Unpickler(file)
        x2, b2, view2, loss2, twice = [unpickler.load() for _ in range(5)]
        assert_same(gradient(loss2)[x2], expected)
        assert_same(gradient(twice)[x2], 2 * expected)
        assert root_of(view2) is b2


def test_pickle_of_younger_nodes_by_one_pickler() -> None:
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    x = cg.variable(2.0, "x")
    pickler.dump(x)
    y = x
    for _ in range(10):
        y = y * x
    pickler.dump(y)
    file.seek(0)
    unpickler = pickle.Unpickler(file)
    x2, y2 = unpickler.load(), unpickler.load()
    z = y2 * x2
    assert z.sequence_number > y2.sequence_number > x2.sequence_number
    assert gradient(z)[x2] == 12 * 2.0**11


def test_pickle_in_concurrent_threads() -> None:
    wrong = []

    def work(number: int) -> None:
        x = cg.variable(np.arange(3.0) + number, "x")
        loss = fill_buffers(x)[2]
        expected = gradient(loss)["x"]
        for _ in range(20):
            copies = pickle.loads(pickle.dumps((loss, x)))
            if not np.array_equal(gradient(copies[0])[copies[1]], expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("way", [WAYS["pickle"], WAYS["deepcopy"]], ids=["pickle", "deepcopy"])
def test_graph_copy_of_long_chains(way: Callable[[Any], Any]) -> None:
    x = y = cg.variable(1.0, "x")
    for _ in range(30_000):
        y = y * 1.00001
    b = cg.zeros(3_000)
    b[0] = x
    for k in range(1, 3_000):
        b[k] = b[k - 1] * 1.0001
    for node in (y, b, b[-1]):
        assert gradient(way(node))["x"] == gradient(node)["x"]


# --------------------------------------------------------------------------------------------- refusals


def test_pickle_of_local_function_raises() -> None:
    nameless = cg.primitive(opname="nameless")(lambda x: x * 2)
    node = nameless(cg.variable(1.0))
    with pytest.raises(TypeError, match=r"nameless cannot be pickled.*top level of a module"):
        pickle.dumps(node)
    assert copy.deepcopy(node).function is node.function  # in the same process


def test_pickle_within_operator_raises_and_deepcopy_works() -> None:
    messages = []

    def f(x: Any) -> Any:
        y = x * x
        with pytest.raises(TypeError, match="cannot be pickled") as error:
            pickle.dumps(y)
        messages.append(str(error.value))
        return y * copy.deepcopy(y) * copy.deepcopy(x)

    assert grad(f)(2.0) == 5 * 2.0**4
    assert jvp(f, (2.0,), (1.0,))[1] == 5 * 2.0**4
    assert "argument" in messages[0]
    assert "tangents" in messages[1]


def test_pickle_of_node_without_history_raises() -> None:
    lost = np.ndarray.__new__(cg.VariableNode, 3)
    with pytest.raises(TypeError, match="history is lost"):
        pickle.dumps(lost)


# ------------------------------------------------------------------------------------- other processes, files

LOADING = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    x, loss = pickle.load(file)
from autodiff.reverse import gradient
print(gradient(loss)[x].tolist(), loss.line)
"""


@pytest.mark.slow
def test_pickle_loads_in_another_process(tmp_path: Path) -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")
    special = pytest.importorskip("scipy.special")
    loss = fill_buffers(x)[2] + np.sum(special.gammaln(x)) + np.sum(x, where=x > 1) + np.hypot.reduce(x)
    (tmp_path / "graph").write_bytes(pickle.dumps((x, loss)))
    command = [sys.executable, "-c", LOADING, str(tmp_path / "graph")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert output == f"{gradient(loss)['x'].tolist()} {loss.line}"


def test_np_save_stores_plain_values(tmp_path: Path) -> None:
    x = cg.variable([1.0, 2.0], "x")
    np.save(tmp_path / "x.npy", x * 2)
    array = np.load(tmp_path / "x.npy")
    assert type(array) is np.ndarray
    assert np.array_equal(array, [2, 4])


def test_copy_copy_is_a_recorded_copy() -> None:
    x = cg.variable([1.0, 2.0], "x")
    y = copy.copy(x)
    assert y.opname == "copy"
    assert y.operand_a is x


def test_pickle_of_graph_through_operator() -> None:
    """The arguments of a function that has been differentiated are connected to those it was called with."""
    x = cg.variable([1.0, 2.0], "x")
    y = grad(lambda x: np.sum(written_cube(x)))(x) * x
    assert np.array_equal(gradient(pickle.loads(pickle.dumps(y)))["x"], 9 * x.value**2)
    assert np.array_equal(gradient(copy.deepcopy(y))["x"], 9 * x.value**2)


def written_cube(x: Any) -> Any:
    b = np.zeros_like(x)
    b += x
    b *= x
    return b * x
