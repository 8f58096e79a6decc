"""`Executor`: feeds, guards, shared nodes, and generated programs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient, gradients
from compgraph.debugging import NonFiniteError
from compgraph.executor.retrace import GuardError

pytestmark = pytest.mark.portable

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _forget() -> None:
    cg.reset()


def network() -> tuple[Any, ...]:
    """A small network: its placeholders, variables and nodes."""
    x, y = cg.placeholder((None, 3), name="X"), cg.placeholder((None,), int, name="y")
    w, b = cg.variable(rng.normal(size=(3, 4)), "W"), cg.variable(np.zeros(4), "b")
    scores = x @ w + b
    loss = cg.softmax_cross_entropy(scores, y)
    return x, y, w, b, [loss, *gradients(loss, [w, b]), scores]


def by_eager(x: Any, y: Any, w: Any, b: Any) -> list[Any]:
    """The same, computed as it comes."""
    w, b = cg.variable(w), cg.variable(b)
    scores = x @ w + b
    loss = cg.softmax_cross_entropy(scores, y)
    slopes = gradient(loss)
    return [loss.value, slopes[w], slopes[b], scores.value]


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_executor_bits_are_equal_for_every_batch_size(batch: int, fuse: bool, simplify: bool) -> None:
    x, _, _, b, nodes = network()
    run = cg.Executor(nodes, simplify=simplify, fuse=fuse).run
    for _ in range(3):
        images, labels, weights = rng.normal(size=(batch, 3)), rng.integers(4, size=batch), rng.normal(size=(3, 4))
        result = run({x: images, "y": labels, "W": weights})
        for a, e in zip(result, by_eager(images, labels, weights, b.value), strict=True):
            np.testing.assert_array_equal(a, e)


def test_executor_reads_current_values_of_variables() -> None:
    x = cg.placeholder((), name="x")
    w = cg.variable(2.0, "w")
    executor = cg.Executor(x * w)
    assert executor.run({x: 3.0}) == 6
    w += 1
    assert executor.run({x: 3.0}) == 9
    assert executor.run({x: 3.0, w: 0.5}) == 1.5
    assert w == 3


def test_executor_feeds_any_node() -> None:
    x, w = cg.placeholder((None,), name="x"), cg.variable([1.0, 2.0], "w")
    hidden = cg.multiply(x, w, name="hidden")
    out = np.sum(np.exp(hidden))
    (dw,) = gradients(out, [w])
    executor = cg.Executor([out, dw])
    value, slope = executor.run({"hidden": [0.0, 1.0], "x": [3.0, 5.0]})
    np.testing.assert_allclose(value, 1 + np.e)
    np.testing.assert_allclose(slope, [3.0, 5 * np.e])
    assert cg.Executor(out).run({"hidden": [0.0, 0.0]}) == 2  # its operands are not needed


def test_executor_outputs_share_no_memory() -> None:
    x, w = cg.placeholder((4,), name="x"), cg.variable(np.ones(4), "w")
    view = x[1:3]
    executor = cg.Executor([x, w, view, x * 2, x * 2, view])
    point = np.arange(4.0)
    first = executor.run({x: point})
    arrays = [*first, point, w.value, *executor.run({x: point})]
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[i + 1 :])
    copies = [a.copy() for a in first]
    executor.run({x: -point})
    for a, b in zip(first, copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_executor_repeats_writes_in_place() -> None:
    x = cg.placeholder((5,), name="x", example=np.arange(5.0))
    a = cg.zeros(5)
    before = a[1:4] * 1
    for i in range(5):
        a[i] = x[i] ** 2
    a[1:3] *= a[2:4]
    out = np.sum(a * np.arange(5.0))
    (dx,) = gradients(out, [x])
    executor = cg.Executor([out, a, before, dx])
    for _ in range(2):
        point = rng.normal(size=5)
        v = cg.variable(point)
        c = cg.zeros(5)
        for i in range(5):
            c[i] = v[i] ** 2
        c[1:3] *= c[2:4]
        eager = np.sum(c * np.arange(5.0))
        outputs = executor.run({x: point})
        for a_, b_ in zip(outputs, [eager.value, c.value, np.zeros(3), gradient(eager)[v]], strict=True):
            np.testing.assert_array_equal(a_, b_)


def test_executor_second_derivatives() -> None:
    x = cg.placeholder((None,), name="x")
    (first,) = gradients(np.sum(np.sin(x) * x), [x])
    (second,) = gradients(np.sum(first**2), [x])
    point = rng.normal(size=6)
    s, c = np.sin(point), np.cos(point)
    np.testing.assert_allclose(cg.Executor(second).run({x: point}), 2 * (s + point * c) * (2 * c - point * s))


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("feed", "error", "message"),
    [
        ({}, ValueError, "no value was fed for the placeholder 'X'"),
        ({"X": np.ones((2, 3))}, ValueError, "placeholder 'y'"),
        ({"X": np.ones((2, 3)), "y": [0, 1], "z": 1}, KeyError, "called 'z'"),
        ({"X": np.ones((2, 4)), "y": [0, 1]}, ValueError, r"\(2, 4\) was fed for the placeholder 'X'"),
        ({"X": np.ones(3), "y": [0, 1]}, ValueError, r"\(3,\) was fed"),
        ({"X": np.ones((2, 3), complex), "y": [0, 1]}, TypeError, "complex128 was fed for the placeholder 'X'"),
        ({"X": np.ones((2, 3)), "y": [0.0, 1.0]}, TypeError, "float64 was fed for the placeholder 'y'"),
        ({"X": np.ones((2, 3)), "y": [0, 1, 2]}, ValueError, "cannot be computed with the fed shapes"),
        ({"X": np.ones((2, 3)), "y": [0, 1], "W": np.ones((3, 5))}, ValueError, "variable 'W'"),
    ],
)
def test_executor_wrong_feeds_raise(feed: dict[Any, Any], error: type[Exception], message: str) -> None:
    *_, nodes = network()
    with pytest.raises(error, match=message):
        cg.Executor(nodes).run(feed)


def test_executor_ambiguous_and_duplicate_keys_raise() -> None:
    a, b = cg.variable(1.0, "a"), cg.variable(2.0, "a")
    executor = cg.Executor(a + b)
    with pytest.raises(KeyError, match="2 nodes of the graph are called 'a'"):
        executor.run({"a": 1.0})
    with pytest.raises(KeyError, match="not part of the graph"):
        executor.run({cg.variable(1.0): 1.0})
    x = cg.variable(1.0, "x")
    with pytest.raises(KeyError, match="fed twice"):
        cg.Executor(x * 2).run({x: 1.0, "x": 1.0})
    with pytest.raises(TypeError, match="runs nodes"):
        cg.Executor([np.ones(2)])


# ------------------------------------------------------------------------------------------------- guards


def branch_by_bool(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else -x


def branch_by_int(x: Any) -> Any:
    return x * int(x.sum())


def branch_by_index(x: Any) -> Any:
    return x * [5.0, 7.0][np.argmax(x)]


def branch_by_range(x: Any) -> Any:
    return sum(x * i for i in range(np.argmax(x)))


def branch_by_comparison(x: Any) -> Any:
    return x * 2 if np.allclose(x, [1.0, 2.0]) else x * 3


@pytest.mark.parametrize("function", [branch_by_bool, branch_by_int, branch_by_index, branch_by_range, branch_by_comparison])
@pytest.mark.parametrize("leaf", ["placeholder", "variable"])
def test_executor_different_branch_raises_and_names_line(function: Any, leaf: str) -> None:
    example = np.array([1.0, 2.0])
    x = cg.placeholder((2,), name="x", example=example) if leaf == "placeholder" else cg.variable(example, "x")
    executor = cg.Executor(function(x))
    np.testing.assert_array_equal(executor.run({x: example}), function(example))
    with pytest.raises(cg.GuardError, match=rf"{__file__}.*in {function.__name__}"):
        executor.run({x: np.array([-1.0, -4.0])})
    np.testing.assert_array_equal(executor.run({x: example}), function(example))  # nothing was lost


@pytest.mark.parametrize(
    ("length", "what"),
    [
        (lambda x: x.shape[0], r"\.shape\[0\]"),
        (lambda x: (x * 2).shape[0], r"\.shape\[0\]"),
        (lambda x: len(x), r"len\(\)"),
        (lambda x: x.size, r"\.size"),
        (lambda x: np.size(x), r"np\.size"),
        (lambda x: np.shape(x)[0], r"np\.shape"),
        (lambda x: len(list(x)), "rows"),
    ],
)
def test_executor_read_length_is_a_guard(length: Any, what: str) -> None:
    x = cg.placeholder((None, 3), name="x")
    mean = np.sum(x) / length(x)
    executor = cg.Executor(mean)
    assert executor.run({x: np.ones((2, 3))}) == 6 / length(np.ones((2, 3)))
    with pytest.raises(cg.GuardError, match=what):
        executor.run({x: np.ones((5, 3))})


def test_executor_read_of_one_axis_binds_that_axis_only() -> None:
    x = cg.placeholder((None, 3), name="x")
    mean = np.sum(x) / x.shape[1]
    assert cg.Executor(mean).run({x: np.ones((5, 3))}) == 5


def test_executor_value_dependent_lengths() -> None:
    x = cg.placeholder((None,), name="x", example=[1.0, -1.0, 2.0, 3.0])
    selection = x[x > 0]
    out = np.mean(selection**2) + np.sum(np.unique(x))
    (dx,) = gradients(out, [x])
    executor = cg.Executor([out, dx, selection])
    for point in ([1.0, -1.0, 2.0, 3.0], [-1.0, -1.0, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0, 3.0]):
        v = cg.variable(point)
        positive = v[v > 0]
        eager = np.mean(positive**2) + np.sum(np.unique(v))
        for a, b in zip(executor.run({x: np.array(point)}), [eager.value, gradient(eager)[v], positive.value], strict=True):
            np.testing.assert_array_equal(a, b)


def test_executor_warns_of_numbers_that_left_graph() -> None:
    x = cg.variable(2.0, "x")
    out = x * float(x)
    with pytest.warns(RuntimeWarning, match=r"float\(\).*test_executor_warns_of_numbers_that_left_graph") as caught:
        executor = cg.Executor(out)
    assert len(caught) == 1
    assert len(executor.leaks) == 1
    assert executor.run({x: 3.0}) == 6
    with pytest.raises(cg.GuardError, match=r"float\(\)"):
        cg.Executor(out, strict=True)
    y = cg.variable(1.0)
    assert cg.Executor(y * 2, strict=True).leaks == []


def test_executor_escapes_warns_of_new_name() -> None:
    executor = cg.Executor(cg.variable(1.0) * 2)
    with pytest.warns(DeprecationWarning, match=r"Executor\.leaks"):
        assert executor.escapes is executor.leaks


def test_executor_branch_on_output_is_a_guard() -> None:
    x = cg.variable(2.0, "x")
    out, other = x * 3, x * -1
    out = out if out > 0 else other
    executor = cg.Executor(out)
    assert executor.run({x: 1.0}) == 3
    with pytest.raises(cg.GuardError, match="out if out > 0"):
        executor.run({x: -2.0})
    assert float(out) == 6
    with pytest.warns(RuntimeWarning, match=r"float\(\)"):
        cg.Executor(out)


@pytest.mark.parametrize("is_reset", [True, False])
def test_executor_ignores_branches_after_its_creation(is_reset: bool) -> None:
    x = cg.variable(2.0, "x")
    out = x * 3
    executor = cg.Executor(out)
    assert out > 0
    assert float(out) == 6
    if is_reset:
        cg.reset()
        executor = cg.Executor(out, strict=True)
    assert executor.run({x: -2.0}) == -6


def test_executor_logs_release_eager_graphs() -> None:
    import gc
    import weakref

    w = cg.variable(np.ones(1000))
    alive = []
    for _ in range(50):
        loss = np.sum((w * 2) ** 2)
        alive.append(weakref.ref(loss))
        if loss > 1:
            w -= 0.01 * gradient(loss)[w]
    del loss
    gc.collect()
    assert not any(ref() is not None for ref in alive)


# ------------------------------------------------------------------------------------------- smaller graphs


def names(node: Any) -> list[str]:
    """The operations of a graph, in order."""
    return [n.opname for n in cg.topological_order([node]) if n.opname]


def test_executor_computes_common_subexpressions_once() -> None:
    x = cg.variable(0.5, "x")
    f = np.sin(x) ** np.sin(x)
    assert names(f) == ["sin", "sin", "pow"]
    small = cg.simplify(f)
    assert names(small) == ["sin", "pow"]
    assert small == f
    assert names(f) == ["sin", "sin", "pow"]  # the other is as it was
    assert cg.visualize_at(small).source.count("sin") < cg.visualize_at(f).source.count("sin")
    np.testing.assert_allclose(gradient(small)[x], gradient(f)[x], rtol=1e-15)


def test_executor_folds_constants_and_keeps_signed_zeros() -> None:
    x, c = cg.variable([1.0, 2.0], "x"), cg.constant(3.0, "c")
    assert names(cg.simplify(x * (c * 2 + 1))) == ["mul"]
    both = cg.simplify([x * 0.0, x * -0.0, x * 0.0])
    assert both[0] is both[2]
    assert both[0] is not both[1]
    options = cg.simplify([np.sum(x, keepdims=True), np.sum(x)])
    assert options[0].shape == (1,)


def test_executor_keeps_values_read_before_a_write() -> None:
    a = cg.zeros(2)
    x = cg.variable(1.0)
    first = a[0] * 1
    a[0] = x
    second = a[0] * 1
    one, two = cg.Executor([first, second]).run({x: 5.0})
    assert (one, two) == (0, 5)


def test_executor_program_reads_like_numpy() -> None:
    x, w = cg.placeholder((2000,), name="x"), cg.variable(np.ones(2000), "w")
    executor = cg.Executor(np.sum(np.exp(x * w) * np.exp(x * w)))
    source = executor.source({x: np.ones(2000)})
    assert source.count("exp(") == 1
    assert source.count("multiply(") == 2


@pytest.mark.parametrize("size", [10, 5000, 20_000, 40_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_executor_fused_blocks_match_numpy(size: int, dtype: Any) -> None:
    x, s = cg.placeholder((None,), dtype, name="x"), cg.variable(dtype(0.5), "s", dtype=dtype)
    v = x
    for _ in range(4):
        v = np.tanh(v * s) + np.where(v > 0, v, 0.1 * v) * 0.3
    out = np.sum(v)
    nodes = [out, v, *gradients(out, [x, s])]
    point = rng.normal(size=size).astype(dtype)
    plain, together = cg.Executor(nodes).run({x: point}), cg.Executor(nodes, fuse=True).run({x: point})
    for a, b in zip(plain, together, strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=1e-5 if dtype is np.float32 else 1e-13)


def test_executor_accepts_other_memory_layouts() -> None:
    x = cg.placeholder((None, None), name="x")
    out = np.sum(np.exp(x) * 2, axis=0)
    executor = cg.Executor([out, np.exp(x)])
    base = rng.normal(size=(60, 80))
    for point in (base, base.T, base[::2], np.asfortranarray(base), base[:, ::-1]):
        for a, b in zip(executor.run({x: point}), [np.sum(np.exp(point) * 2, axis=0), np.exp(point)], strict=True):
            np.testing.assert_array_equal(a, b)


def test_executor_is_shared_by_threads() -> None:
    x = cg.placeholder((3000,), name="x")
    executor = cg.Executor(np.sum(np.sin(x) * np.exp(np.sin(x)) + x))
    points = [rng.normal(size=3000) for _ in range(8)]
    expected = [executor.run({x: p}) for p in points]
    outputs: dict[int, list[Any]] = {}

    def work(k: int) -> None:
        outputs[k] = [executor.run({x: points[k]}) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(set(outputs[k]) == {expected[k]} for k in range(8))


def test_placeholder_shape_dtype_and_errors() -> None:
    x = cg.placeholder((None, 2), np.float32, "x")
    assert (x.shape, x.dtype, x.name) == ((2, 2), np.float32, "x")
    assert len(np.unique(x.value)) == 4
    with pytest.raises(TypeError, match="never changes"):
        x[0, 0] = 1
    with pytest.raises(TypeError, match="is not numeric"):
        cg.placeholder((), "U3")
    with pytest.raises(ValueError, match="example has shape"):
        cg.placeholder((3,), example=[1.0, 2.0])
    assert cg.placeholder(3).shape == (3,)
    assert cg.Node.shape is not np.ndarray.shape


# ------------------------------------------------------------------------------------- what must not be quietly wrong


@pytest.mark.parametrize("dtype", [np.float32, bool, np.int8, ">f8"])
def test_executor_repeats_conversions_in_each_run(dtype: Any) -> None:
    x = cg.placeholder((None,), name="x")
    executor = cg.Executor([x / 3, x + x])
    for value in (np.ones(2, dtype), np.zeros(2, dtype)):
        for actual, expected in zip(executor.run({"x": value}), [value.astype(float) / 3, value.astype(float) * 2], strict=True):
            assert actual.dtype == float
            np.testing.assert_array_equal(actual, expected)


def test_executor_length_read_without_placeholder_is_bound() -> None:
    x = cg.variable(np.ones(2), "x")
    y = cg.multiply(x, 2, name="y")
    mean = np.sum(y) / y.shape[0]
    assert cg.Executor(mean).run({"y": np.zeros(2)}) == 0
    with pytest.raises(ValueError, match=r"shape \(4,\) was fed for the result of mul 'y'"):
        cg.Executor(mean).run({"y": np.ones(4)})


@pytest.mark.parametrize(
    "derivative",
    [
        ad.grad(lambda t: np.sum(np.sin(t) * t)),
        ad.jacrev(lambda t: t**2),
        ad.jacfwd(lambda t: t**2),
        ad.hessian(lambda t: np.sum(t**3)),
        lambda x: ad.hvp(lambda t: np.sum(t**3))(x, x),
        lambda x: ad.vjp(lambda t: t**2, x)[1](x)[0],
        lambda x: ad.jvp(np.mean, (x,), (x,))[1],
        lambda x: ad.taylor(lambda t: np.sum(t**2), x, 1, x)[1],
        lambda x: ad.grad(lambda w: np.mean(x * w))(cg.variable(2.0)),
        lambda x: gradient(x * x, [x], adjoint=x, create_graph=True)[x],
        lambda x: ad.root(lambda y, a: y * y - a, x * 0 + 1.5, x),
    ],
)
def test_executor_derivatives_without_rules_bind_shapes(derivative: Any) -> None:
    x = cg.placeholder((None,), name="x")
    executor = cg.Executor(derivative(x))
    point = np.array([0.3, 0.9])
    np.testing.assert_allclose(executor.run({x: point}), derivative(cg.variable(point)).value)
    for other in (np.ones(1), np.ones(3)):
        with pytest.raises((GuardError, ValueError)):
            executor.run({x: other})


@pytest.mark.parametrize("copied", [cg.simplify, copy.deepcopy, lambda nodes: pickle.loads(pickle.dumps(nodes))])
@pytest.mark.parametrize(
    "function", [np.mean, np.sum, lambda x: np.sum(np.ones_like(x) * 3), lambda x: np.sum(cg.softmax(x) ** 2)]
)
def test_executor_copied_graph_accepts_other_lengths(function: Any, copied: Any) -> None:
    x = cg.placeholder((None,), name="x")
    total = function(x)
    nodes = copied([total, *gradients(total * x[0], [x])])
    for length in (1, 2, 3):
        v = cg.variable(rng.normal(size=length))
        out = function(v)
        outputs = cg.Executor(nodes).run({"x": v.value})
        np.testing.assert_array_equal(outputs[0], out.value)
        np.testing.assert_array_equal(outputs[1], gradient(out * v[0], [v])[v])
    with pytest.raises(ValueError, match=r"declared with shape \(None,\)"):
        cg.Executor(nodes).run({"x": 1.0})


def test_executor_fed_argument_of_derivative_is_bound() -> None:
    x = cg.placeholder((None,), name="x")
    h = cg.multiply(x, 2, name="h")
    executor = cg.Executor(ad.grad(lambda t: np.mean(t * t))(h))
    np.testing.assert_array_equal(executor.run({"h": np.ones(2)}), np.ones(2))
    with pytest.raises(GuardError, match="shape"):
        executor.run({"h": np.ones(1)})


def test_executor_round_is_a_guard() -> None:
    x = cg.placeholder((), name="x", example=1.4)
    executor = cg.Executor(x * round(x))
    assert executor.run({x: 0.8}) == 0.8
    with pytest.raises(GuardError, match=r"round\(\)"):
        executor.run({x: 1.9})


@pytest.mark.parametrize("read", [lambda x: x.item(), lambda x: x.value, lambda x: x.tolist()])
def test_executor_reports_conversions_of_placeholder(read: Any) -> None:
    x = cg.placeholder((), name="x")
    y = x * read(x)
    with pytest.warns(RuntimeWarning, match="numbers left the graph"):
        assert cg.Executor(y).leaks


def test_executor_run_within_debug_checks_values() -> None:
    x = cg.placeholder((None,), name="x")
    executor = cg.Executor([np.sum(np.log(x)), x * 2])
    good = executor.run({x: np.ones(2)})
    with np.errstate(divide="ignore"), cg.debug():
        for a, b in zip(executor.run({x: np.ones(2)}), good, strict=True):
            np.testing.assert_array_equal(a, b)
        with pytest.raises(NonFiniteError, match="the result of log is infinite"):
            executor.run({x: np.zeros(2)})


def two_layers() -> tuple[Any, ...]:
    x, w, v = cg.placeholder((None, 3), name="x"), cg.variable(np.arange(6.0).reshape(3, 2) / 9, "w"), cg.variable(np.eye(2), "v")
    hidden = np.tanh(x @ w)
    return x, w, v, hidden, np.mean((hidden @ v) ** 2)


def test_executor_feeds_cotangents() -> None:
    """Also with another shape, for nodes that depend on it or not, and for derivatives."""
    x, w, v, hidden, out = two_layers()
    dh, dv = gradients(out, [hidden, v])
    cotangent = np.random.default_rng(0).normal(size=(5, 2))
    run = cg.Executor([dh * 2, np.mean(dh), np.sum(np.var(dh, axis=0))]).run
    for feed in ({dh: cotangent}, {dh: cotangent, x: np.ones((5, 3))}):
        doubled, mean, spread = run(feed)
        assert np.array_equal(doubled, cotangent * 2)
        assert np.allclose([mean, spread], [cotangent.mean(), cotangent.var(axis=0).sum()], rtol=1e-14)
    (second,) = gradients(np.sum(dh * dh), [v])
    outputs = cg.Executor(second).run({x: np.ones((5, 3)), dh: cotangent})
    values = hidden_values = np.tanh(np.ones((5, 3)) @ w.value)
    # of sum(dh * dh) with dh = 2 / 10 * hidden v v', where dh was fed
    outer = 2 * cotangent * 2 / values.size
    assert np.allclose(outputs, hidden_values.T @ outer @ v.value + outer.T @ hidden_values @ v.value, rtol=1e-12)
    assert np.allclose(cg.Executor(dv).run({x: np.ones((5, 3))}), 2 / values.size * values.T @ values @ v.value)


def test_executor_skips_unneeded_derivatives() -> None:
    """One derivative may need fewer nodes than the others: here only the second layer, whose input is fed."""
    x, w, v, hidden, out = two_layers()
    values = np.random.default_rng(0).normal(size=(5, 2))
    together, alone = gradients(out, [w, x, v])[2], gradients(out, [v])[0]
    feed = {hidden: values}
    assert np.array_equal(cg.Executor(together).run(feed), cg.Executor(alone).run(feed))
    assert np.allclose(cg.Executor(together).run(feed), 2 / values.size * values.T @ values @ v.value, rtol=1e-14)
    for several in ([w, x, v], [w]):  # that of the first layer's weights is of its input, which is not guessed
        with pytest.raises(ValueError, match="no value was fed for the placeholder 'x'"):
            cg.Executor(gradients(out, several)[0]).run({hidden: values[:2]})


def test_executor_runs_unused_derivatives() -> None:
    x, _w, v, _hidden, out = two_layers()
    other = cg.variable([1.0, 2.0], "other")
    dv, zero = gradients(out, [v, other], unused="zero")
    feed = {x: np.ones((4, 3))}
    for executor in (cg.Executor([dv, zero]), pickle.loads(pickle.dumps(cg.Executor([dv, zero])))):
        outputs = executor.run({"x": feed[x]})
        assert np.array_equal(outputs[0], cg.Executor(gradients(out, [v])).run(feed)[0])
        assert np.array_equal(outputs[1], [0.0, 0.0])
    with pytest.raises(ValueError, match="does not depend on the variable 'other'"):
        gradients(out, [v, other])
    with pytest.raises(ValueError, match="unused is 'raise' or 'zero'"):
        gradients(out, [v, other], unused="none")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_executor_copy_keeps_settings_and_compiles_again(copied: Any) -> None:
    """It has the settings and the nodes, and programs of its own."""
    x, w = cg.placeholder((None,), name="x"), cg.variable(2.0, "w")
    executor = cg.Executor([np.exp(x * w), *gradients(cg.sum(x * w), [w])], fuse=True)
    feed = {"x": np.linspace(0, 1, 5)}
    expected = executor.run(feed)
    clone = copied(executor)
    assert clone is not executor
    assert all(np.array_equal(a, b) for a, b in zip(clone.run(feed), expected, strict=True))
    assert np.array_equal(copied(clone).run(feed)[1], expected[1])
    single = copied(cg.Executor(x * w))
    assert np.array_equal(single.run(feed), feed["x"] * 2)
    with pytest.raises(ValueError, match="no value was fed for the placeholder 'x'"):
        clone.run()


def decided() -> cg.Executor:
    """An executor of a graph with a guard on a length, a guard on a deleted node, and a value that left the graph."""
    x, k = cg.placeholder((None,), name="x", example=np.arange(1.0, 4.0)), cg.constant(2)
    n = x.shape[0]
    return cg.Executor((cg.sum(x) / n if cg.sum(x * x) > 1 else -x) * x[int(k)])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_executor_copy_keeps_guards(copied: Any) -> None:
    executor = decided()
    clone = copied(copied(executor))
    assert len(clone._guards) == len(executor._guards) >= 2
    assert clone.leaks == executor.leaks == []
    for values in ([1.0, 2.0, 3.0], [3.0, 5.0, 7.0]):
        assert clone.run({"x": values}) == executor.run({"x": values})
    for values in ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0, 4.0]):
        messages = []
        for each in (executor, clone):
            with pytest.raises(GuardError, match=r"test_executor\.py") as caught:
                each.run({"x": values})
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_executor_pickle_keeps_guards(tmp_path: Path) -> None:
    """Several executors in one pickle, with nodes that were made between them."""
    first, second = decided(), decided()
    file = tmp_path / "executors"
    file.write_bytes(pickle.dumps((first, [cg.variable(1.0) * 2, second], first)))
    code = f"""
import pickle, compgraph as cg
first, (node, second), again = pickle.load(open({str(file)!r}, "rb"))
assert again is first and float((node * 3).value) == 6
for executor in (first, second):
    print(executor.run({{"x": [3.0, 5.0, 7.0]}}))
    try:
        executor.run({{"x": [0.1, 0.2, 0.3]}})
    except cg.GuardError as error:
        print("test_executor.py" in str(error))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == [str(first.run({"x": [3.0, 5.0, 7.0]})), "True"] * 2


def test_executor_pickle_keeps_leaks() -> None:
    x = cg.variable(2.0, "x")
    y = x * float(x)
    with pytest.warns(RuntimeWarning, match="numbers left the graph"):
        executor = cg.Executor(y)
    assert executor.leaks
    assert pickle.loads(pickle.dumps(executor)).leaks[: len(executor.leaks)] == executor.leaks  # and no further warning


def test_executor_bad_arguments_raise() -> None:
    x = cg.variable(1.0, "x")
    executor = cg.Executor(x * 2)
    for wrong in (3, None, x.value, [x.value]):
        with pytest.raises(TypeError, match="an Executor runs nodes, not a"):
            cg.Executor(wrong)
    with pytest.raises(ValueError, match="at least one node"):
        cg.Executor([])
    with pytest.raises(TypeError, match="a mapping of nodes or names to values, not a list"):
        executor.run([1.0])  # type: ignore[arg-type]


def test_executor_warns_once_of_changed_variables() -> None:
    x, w, k = cg.placeholder((2,), name="x"), cg.variable([1.0, 2.0], "w"), cg.variable(2.0, "k")
    assert float(w[0]) == 1
    out = x * float(k)
    executor, strict = cg.Executor(out), cg.Executor(out, strict=True)
    again = pickle.loads(pickle.dumps(executor))
    assert executor.leaks == []
    for runner in (executor, strict):
        np.testing.assert_array_equal(runner.run({x: [1.0, 2.0]}), [2, 4])
    k += 1
    with pytest.warns(
        RuntimeWarning, match=r"float\(\) at .*test_executor_warns_once_of_changed_variables.* gave numbers of the variable 'k'"
    ) as caught:
        executor.run({x: [1.0, 2.0]})
    assert len(caught) == 1
    executor.run({x: [1.0, 2.0]})
    again.run({"x": [1.0, 2.0]})
    with pytest.raises(cg.GuardError, match="variable 'k'"):
        strict.run({x: [1.0, 2.0]})
    del k
    strict.run({x: [1.0, 2.0]})


def test_simplify_of_number_raises() -> None:
    with pytest.raises(TypeError, match="simplify takes nodes, not a float"):
        cg.simplify([2.0])


def test_simplify_keeps_operands_of_other_layout() -> None:
    x, in_c_order = cg.variable(1.0, "x"), np.arange(6.0).reshape(2, 3)
    results = [np.ravel(x + operand, order="K") for operand in (in_c_order, np.asfortranarray(in_c_order))]
    for value, node in zip(cg.Executor(results).run(), results, strict=True):
        np.testing.assert_array_equal(value, node.value)
