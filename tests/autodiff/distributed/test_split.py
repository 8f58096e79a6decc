"""`Split` in one process: bits, shared and written arrays, steps of the optimizer, automatic placement, and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import autodiff.distributed as dist
import compgraph as cg
from autodiff.distributed.split.messages import pack, unpack
from autodiff.optimizers import SGD, Adam, StepController, clip_by_global_norm
from autodiff.reverse import gradients
from tests.support.failures import Failures
from tests.support.for_each import for_each
from tests.support.split_parts import failing, network, rows

TWO = {"first": 0, "second": 1}
RNG = np.random.default_rng(3)


def one_process(output: Any, parameters: list[Any], feed: dict[str, Any]) -> tuple[Any, list[Any]]:
    value, *slopes = cg.Executor([output, *gradients(output, parameters)]).run(feed)
    return value, slopes


def require_same_bits(output: Any, parameters: list[Any], place: Any, feed: dict[str, Any]) -> Any:
    """Compare the value and gradient with those of one process; return the `Split`."""
    net = dist.Split(output, parameters, None, place=place)
    value, actual = net.value_and_grad(feed)
    expected, slopes = one_process(output, parameters, feed)
    assert value.tobytes() == expected.tobytes()
    for mine, other in zip(actual, slopes, strict=True):
        assert (mine.shape, mine.dtype, mine.tobytes()) == (other.shape, other.dtype, other.tobytes())
    return net


def stages_of(net: Any) -> list[tuple[int, int]]:
    return [stage_plan.stage for stage_plan in net._plan.stage_plans]


# ------------------------------------------------------------------------------------- the bits of one process


@pytest.mark.parametrize("count", [1, 2, 33])
def test_split_chain(count: int) -> None:
    loss, parameters = network()
    net = require_same_bits(loss, parameters, TWO, rows(count))
    assert {part for _, part in stages_of(net)} == {0, 1}


def test_split_parallel_branches() -> None:
    x = cg.placeholder((None, 3), name="x")
    u, v, w = (cg.variable(RNG.normal(size=s), n) for s, n in [((3, 4), "u"), ((3, 4), "v"), ((8,), "w")])
    with cg.scope("left"):
        left = cg.tanh(x @ u)
    with cg.scope("right"):
        right = cg.sin(x @ v)
    with cg.scope("top"):
        out = cg.mean((cg.concatenate([left, right], axis=1) @ w) ** 2)
    net = require_same_bits(out, [u, v, w], {"left": 0, "right": 1, "top": 2}, {"x": RNG.normal(size=(7, 3))})
    assert stages_of(net) == [(0, 0), (0, 1), (1, 2)]


def test_split_part_entered_twice() -> None:
    x, u = cg.placeholder((None, 3), name="x"), cg.variable(RNG.normal(size=(3, 3)), "u")
    with cg.scope("outer"):
        a = cg.tanh(x @ u)
    with cg.scope("inner"):
        b = cg.exp(-a * a) @ u
    with cg.scope("outer"):
        out = cg.sum(a * b) + cg.sum(a @ u)
    net = require_same_bits(out, [u], {"outer": 0, "inner": 1}, {"x": RNG.normal(size=(5, 3))})
    assert stages_of(net) == [(0, 0), (1, 1), (2, 0)]


def test_split_value_read_by_alternating_parts() -> None:
    """Cotangents are added in the order of the readers, not of the parts."""
    x, u = cg.placeholder((4,), name="x"), cg.variable(RNG.normal(size=4) * 1e3, "u")
    with cg.scope("first"):
        h = cg.sin(x * u)
    total: Any = 0.0
    for k in range(9):
        with cg.scope("first" if k % 2 else "second"):
            total = total + cg.sum(cg.sin(h * (0.1 + k)) / (k + 0.3)) * h * h
    require_same_bits(cg.sum(total), [u], TWO, {"x": RNG.normal(size=4)})


def random_graph(seed: int) -> tuple[Any, list[Any], dict[str, int], dict[str, Any]]:
    """Return a random graph of about thirty operations in three parts."""
    rng = np.random.default_rng(seed)
    operations: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a @ b.T @ a,
        lambda a, b: cg.maximum(a, b),
        lambda a, b: a - cg.mean(b, axis=0),
        lambda a, b: cg.concatenate([a[:, :2], b[:, 2:]], axis=1),
        lambda a, b: a[:, ::-1] + b.sum(),
        lambda a, b: a[np.array([0, 0, 2, 1, 3])] * b[1],
        lambda a, b: np.linalg.qr(cg.concatenate([a, b]))[0][:5],
    ]
    x = cg.placeholder((5, 4), name="x")
    parameters = [cg.variable(rng.normal(size=(5, 4)), f"p{k}") for k in range(3)]
    pool = [x, *parameters]
    for _ in range(12):
        with cg.scope(f"s{rng.integers(3)}"):
            a, b = (pool[k] for k in rng.integers(len(pool), size=2))
            if rng.random() < 0.15:
                array = cg.zeros((5, 4))
                array[1:] = a[:-1]
                array[0] += b[1]
                array[:, 1] *= b[:, 2]
            else:
                array = operations[rng.integers(len(operations))](a, b)
            pool.append(array / (1 + cg.max(cg.abs(array))))
    out = sum([cg.sum(cg.sin(value)) for value in pool[4:]], cg.sum(pool[-1] * parameters[0] * x))
    order = cg.topological_order([out])
    used_parameters = [p for p in parameters if any(p is node for node in order)]
    scopes = {item.scope[0] for item in order if item.args and item.scope}
    return out, used_parameters, {name: int(name[1]) for name in scopes}, {"x": rng.normal(size=(5, 4))}


@for_each("seed", range(4), rest=range(4, 12))
def test_split_random_graphs_have_same_bits(seed: int) -> None:
    require_same_bits(*random_graph(seed))


def test_split_written_array_read_by_another_part() -> None:
    x, u = cg.placeholder((3,), name="x"), cg.variable([1.0, 2.0, 3.0], "u")
    with cg.scope("first"):
        b = cg.zeros(3)
        b[0] = u[1] * x[0]
    with cg.scope("second"):
        early = cg.sum(b * b)
    with cg.scope("first"):
        b[1:] += u[:2]
        view = b[1:]
        b[2] *= 2.0
    with cg.scope("second"):
        out = early + cg.sum(view * cg.sin(b)[:2])
    require_same_bits(out, [u], TWO, {"x": np.array([0.5, 1.0, 2.0])})


def test_split_preserves_memory_layout() -> None:
    x, u = cg.placeholder((6, 5), name="x"), cg.variable(RNG.normal(size=(5, 6)), "u")
    with cg.scope("first"):
        values = [(x @ u).T, np.broadcast_to(x[:, :1], (6, 5)), (x * u.T)[::-1], x.T[None]]
    with cg.scope("second"):
        out = cg.sum(values[0] @ values[1]) + cg.sum(cg.cumsum(values[2], axis=0)) + cg.sum(values[3].sum(axis=1))
    require_same_bits(out, [u], TWO, {"x": RNG.normal(size=(6, 5))})


PACKED = {
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
    "reversed": np.arange(6.0)[::-1],
    "broadcast": np.broadcast_to(np.arange(3.0)[:, None], (2, 3, 4)),
    "scalar": np.float64(2.0),
    "empty": np.zeros((0, 3)),
    "strided": np.arange(6).reshape(2, 3)[:, ::-2],
}


def test_unpacked_array_has_values_and_layout() -> None:
    with Failures("arrays") as failures:
        for name, array in PACKED.items():
            with failures.case(name):
                check_packing(array)


def check_packing(array: Any) -> None:
    packed = pack(array)
    actual = unpack(packed)
    np.testing.assert_array_equal(actual, array)
    assert actual.dtype == np.asarray(array).dtype
    order = lambda a: [int(np.sign(s)) for s in np.asarray(a).strides]  # noqa: E731
    assert order(actual) == order(array) or not np.size(array)
    assert not np.shares_memory(actual, array)


def test_split_sends_complex_values() -> None:
    x, u = cg.placeholder((4,), complex, name="x"), cg.variable(RNG.normal(size=4) + 1j, "u")
    with cg.scope("first"):
        h = cg.exp(1j * x * u)
    with cg.scope("second"):
        out = cg.sum(cg.abs(h - x) ** 2)
    require_same_bits(out, [u], TWO, {"x": RNG.normal(size=4) + 2j})


def test_split_sends_integers_and_booleans() -> None:
    x, u = cg.placeholder((6,), name="x"), cg.variable(RNG.normal(size=6), "u")
    with cg.scope("first"):
        h = x * u
        order, big = cg.argsort(h), h > 0
    with cg.scope("second"):
        out = cg.sum(cg.where(big, h, 0.1 * h)[order] * np.arange(6.0))
    require_same_bits(out, [u], TWO, {"x": RNG.normal(size=6)})


def test_split_part_without_derivative() -> None:
    x, u, v = cg.placeholder((6,), name="x"), cg.variable(RNG.normal(size=6), "u"), cg.variable(1.0, "v")
    with cg.scope("first"):
        order = cg.argsort(x * u)
    with cg.scope("second"):
        out = cg.sum(x[order] * np.arange(6.0)) * v
    net = dist.Split(out, [u, v], None, place=TWO)
    value, (to_u, to_v) = net.value_and_grad({"x": np.arange(6.0)})
    assert np.array_equal(to_u, np.zeros(6))
    assert value == to_v


def test_split_derivative_within_part() -> None:
    x, u, v = cg.placeholder((4,), name="x"), cg.variable(RNG.normal(size=4), "u"), cg.variable(0.5, "v")
    with cg.scope("first"):
        h = cg.sum(cg.sin(x * u))
        (slope,) = gradients(h, [u])
    with cg.scope("second"):
        out = cg.sum(slope * slope) * v + h
    require_same_bits(out, [u, v], TWO, {"x": RNG.normal(size=4)})


def test_split_structural_zeros_stay_zero() -> None:
    x, u = cg.placeholder((4,), name="x"), cg.variable(np.ones(4), "u")
    with cg.scope("first"):
        h = cg.sqrt(x * u)
        again = cg.sqrt(h)
    with cg.scope("second"):
        out = cg.sum(cg.where(x > 0, again, x) * 2.0) + h[1:].sum()
    feed = {"x": np.array([0.0, 1.0, 4.0, 9.0])}
    with np.errstate(invalid="ignore", divide="ignore"):  # an executor warns of them
        net = require_same_bits(out, [u], TWO, feed)
    assert np.all(np.isfinite(net.value_and_grad(feed)[1][0]))


def test_float32_is_preserved() -> None:
    x, u = cg.placeholder((None, 3), "f4", name="x"), cg.variable(np.ones(3, "f4"), "u")
    with cg.scope("first"):
        h = x * u
    with cg.scope("second"):
        out = cg.mean(h * h)
    net = require_same_bits(out, [u], TWO, {"x": RNG.normal(size=(5, 3)).astype("f4")})
    assert net.value_and_grad({"x": np.ones((4, 3), "f4")})[1][0].dtype == np.float32


# ------------------------------------------------------------------------------------------------- steps


def test_split_steps_equal_one_optimizer() -> None:
    loss, parameters = network()
    start = [p.value.copy() for p in parameters]
    net = dist.Split(loss, parameters, None, place=TWO, optimizer=partial(Adam, learning_rate=0.01))
    run = cg.Executor([loss, *gradients(loss, parameters)]).run
    optimizer = Adam(start, learning_rate=0.01)
    names = [p.name for p in parameters]
    for k in range(5):
        value, *slopes = run(rows(9, k) | dict(zip(names, start, strict=True)))
        assert net.step(rows(9, k)) == value
        optimizer.step(slopes)
    for name, value in optimizer.state_dict().items():
        np.testing.assert_array_equal(net.state_dict()[name], value)
    np.testing.assert_array_equal(net.parameters[2], start[2])
    assert set(net.state_dict()) == set(optimizer.state_dict())


def test_split_micro_batches_weighted_by_rows() -> None:
    loss, parameters = network()
    feed = rows(11)
    net = dist.Split(loss, parameters, None, place=TWO, micro_batches=3)
    value, actual = net.value_and_grad(feed)
    whole, slopes = one_process(loss, parameters, feed)
    np.testing.assert_allclose(value, whole, rtol=1e-13)
    for mine, other in zip(actual, slopes, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-15)
    one = dist.Split(loss, parameters, None, place={"first": 0, "second": 0}, micro_batches=3).value_and_grad(feed)
    assert value == one[0]
    assert [g.tobytes() for g in actual] == [g.tobytes() for g in one[1]]


def test_split_more_micro_batches_than_rows() -> None:
    loss, parameters = network()
    net = dist.Split(loss, parameters, None, place=TWO, micro_batches=8)
    np.testing.assert_allclose(net.run(rows(3)), cg.Executor(loss).run(rows(3)), rtol=1e-14)


def test_split_array_output_is_concatenated() -> None:
    x, u = cg.placeholder((None, 3), name="x"), cg.variable(np.ones((3, 2)), "u")
    with cg.scope("first"):
        out = cg.tanh(x @ u)
    net = dist.Split(out, [u], None, place={"first": 0}, micro_batches=4)
    points = RNG.normal(size=(10, 3))
    np.testing.assert_array_equal(net.run({"x": points}), cg.Executor(out).run({"x": points}))
    with pytest.raises(ValueError, match="only a real scalar has a gradient, not the result of tanh"):
        net.value_and_grad({"x": points})
    with pytest.raises(ValueError, match="only a real scalar has a gradient"):
        dist.Split(out, [u], None, place={"first": 0}, optimizer=partial(SGD, learning_rate=0.1)).step({"x": points})


def test_split_resumes_from_state_dict() -> None:
    loss, parameters = network()
    make = partial(dist.Split, loss, parameters, None, optimizer=partial(Adam, learning_rate=0.01))
    whole, first = make(place=TWO), make(place=TWO, keep_every=4)
    for k in range(6):
        whole.step(rows(9, k))
        if k < 3:
            first.step(rows(9, k))
    other = make(place={"first": 1, "second": 0})
    other.load_state_dict(first.state_dict())
    for k in range(3, 6):
        other.step(rows(9, k))
    assert all(np.array_equal(value, other.state_dict()[name]) for name, value in whole.state_dict().items())
    single = Adam([p.value.copy() for p in parameters], learning_rate=0.01)
    single.load_state_dict(whole.state_dict())
    assert single.steps == 6


def test_split_wrong_state_changes_nothing() -> None:
    loss, parameters = network()
    net = dist.Split(loss, parameters, None, place=TWO, optimizer=partial(Adam, learning_rate=0.01))
    net.step(rows(5))
    before = net.state_dict()
    with pytest.raises(ValueError, match="a different optimizer"):
        net.load_state_dict(before | {"more": 1})
    with pytest.raises(ValueError, match=r"parameter\.1 is missing"):
        dist.Split(loss, parameters, None, place=TWO).load_state_dict({"parameter.0": before["parameter.0"]})
    assert all(np.array_equal(value, net.state_dict()[name]) for name, value in before.items())


def test_split_copies_feeds() -> None:
    loss, parameters = network()
    net = dist.Split(loss, parameters, None, place=TWO, optimizer=partial(SGD, learning_rate=0.1), keep_every=5)
    feed = rows(5)
    net.step(feed)
    stored = [batch[node].copy() for batch in net._unsaved_steps for node in batch]
    feed["x"][...] = 0.0
    assert all(np.array_equal(a, b) for a, b in zip(stored, [b[n] for b in net._unsaved_steps for n in b], strict=True))
    assert np.any(stored[0])


def test_split_failed_step_changes_no_part() -> None:
    x, u, v = cg.placeholder((2,), name="x"), cg.variable([1.0, 1.0], "u"), cg.variable([2.0, 2.0], "v")
    with cg.scope("first"):
        h = cg.sqrt(x) * u
    with cg.scope("second"):
        out = cg.sum(failing(h * v))
    net = dist.Split(out, [u, v], None, place=TWO, optimizer=partial(SGD, learning_rate=0.1), keep_every=3)
    net.step({"x": [1.0, 4.0]})
    before = net.state_dict()
    with pytest.raises(ArithmeticError, match="too large") as caught:
        net.step({"x": [1e9, 1.0]})
    assert "split_parts.py" in str(caught.value.__cause__)
    assert any("which was recorded at" in note and "test_split.py" in note for note in caught.value.__notes__)
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="contains NaN or infinity; nothing was updated"),
    ):
        net.step({"x": [np.nan, 1.0]})
    assert all(np.array_equal(value, net.state_dict()[name]) for name, value in before.items())
    net.step({"x": [1.0, 4.0]})


def test_split_rechecks_guards() -> None:
    x, u = cg.placeholder((2,), name="x", example=[1.0, 1.0]), cg.variable([1.0, 1.0], "u")
    with cg.scope("first"):
        h = x * u
    with cg.scope("second"):
        out = cg.sum(h * 2 if h[0] > 0 else h)
    net = dist.Split(out, [u], None, place=TWO)
    assert net.run({"x": [2.0, 1.0]}) == 6.0
    with pytest.raises(cg.GuardError, match="gave True"):
        net.run({"x": [-2.0, 1.0]})


# --------------------------------------------------------------------------------------------------- auto


def test_partition_linearly_bits_equal_one_process() -> None:
    from autodiff.distributed.split.layout import complete_placement, partition_linearly
    from autodiff.distributed.split.plan import Plan

    loss, parameters = network(width=64)
    net = dist.Split(loss, parameters, None, place="auto")
    value, actual = net.value_and_grad(rows(50))
    expected, slopes = one_process(loss, parameters, rows(50))
    assert value == expected
    assert [g.tobytes() for g in actual] == [g.tobytes() for g in slopes]
    assert list(net.machines) == [0]
    feeds = net._feeds.check(rows(50))
    parts = complete_placement(net._items, partition_linearly(net._items, 3, feeds))
    assert Plan(loss, parameters, net._items, parts).stage_plans


def test_best_cuts_balances_work_and_transfers() -> None:
    from autodiff.distributed.split.layout import _best_cuts

    before = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    free = np.zeros(5)
    assert _best_cuts(before, free, 2) == [0, 2, 4]
    assert _best_cuts(before, np.array([0, 0.1, 9.0, 0.1, 0]), 2) in ([0, 1, 4], [0, 3, 4])
    assert _best_cuts(before, np.array([0, 9.0, 9.0, 9.0, 0]), 3) == [0, 4]
    assert _best_cuts(before, free, 4) == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------------------------------------- errors


WRONG_SETTINGS: list[tuple[dict[str, Any], Any, str]] = [
    (
        {"place": {"first": 0, "third": 1}},
        ValueError,
        "no operation of the graph is in a scope 'third'. The scopes of the graph are 'first'",
    ),
    ({"place": {"first": "a"}}, TypeError, "the part of scope 'first' must be a non-negative integer, not 'a'"),
    ({"place": {"first": -1}}, TypeError, "must be a non-negative integer"),
    ({"place": {}}, TypeError, 'place must be "auto" or a mapping'),
    ({"place": "by hand"}, TypeError, 'place must be "auto" or a mapping'),
    ({"micro_batches": 0}, ValueError, "micro_batches must be an integer of at least 1"),
    ({"keep_every": 1.5}, ValueError, "keep_every must be an integer of at least 1"),
    ({"optimizer": lambda p: p}, TypeError, "optimizer returned a list. Pass a constructor"),
    ({"optimizer": StepController}, TypeError, "whose step takes more than gradients. Pass a constructor"),
    ({"wait": 0}, ValueError, "wait is a positive number of seconds"),
    ({"client": 3}, TypeError, "client must be a dask.distributed.Client"),
]


def test_wrong_settings_raise() -> None:
    loss, parameters = network()
    with Failures("settings") as failures:
        for changes, error, words in WRONG_SETTINGS:
            with failures.case(str(changes)), pytest.raises(error, match=words):
                dist.Split(loss, parameters, **({"client": None, "place": TWO} | changes))


WRONG_FEEDS: list[tuple[Any, Any, str]] = [
    ({"x": np.ones((2, 8))}, ValueError, "no value was fed for the placeholder 'y'"),
    ({"x": np.ones((2, 8)), "y": [0, 1], "z": 1}, KeyError, "no placeholder of the graph is called 'z'. The placeholders are"),
    ({"x": np.ones((3, 8)), "y": [0, 1]}, ValueError, "equally many rows, not 3 of 'x', 2 of 'y'"),
    ({"x": np.ones((0, 8)), "y": np.zeros(0, int)}, ValueError, "have no rows"),
    ({"x": np.ones((2, 7)), "y": [0, 1]}, ValueError, r"shape \(2, 7\) was fed for the placeholder 'x'"),
    ({"x": np.ones((2, 8)), "y": [0.5, 1]}, TypeError, "was fed for the placeholder 'y'"),
    ([1, 2], TypeError, "must be a mapping"),
]


def test_wrong_feeds_raise() -> None:
    loss, parameters = network()
    net = dist.Split(loss, parameters, None, place=TWO, optimizer=partial(SGD, learning_rate=0.1))
    with Failures("feeds") as failures:
        for feed, error, words in WRONG_FEEDS:
            for method in (net.run, net.value_and_grad, net.step):
                with failures.case(f"{method.__name__}: {words}"), pytest.raises(error, match=words):
                    method(feed)
    assert net.run(rows(2)) > 0


def test_wrong_parameters() -> None:
    loss, parameters = network()
    other = cg.variable(1.0, "other")
    for place in (TWO, "auto"):
        with pytest.raises(ValueError, match=r"does not depend on the parameter 'other'\. Leave it out"):
            dist.Split(loss, [*parameters, other], None, place=place)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="passed twice"):
        dist.Split(loss, [parameters[0], parameters[0]], None, place=TWO)
    with pytest.raises(TypeError, match=r"parameters must be variables \(cg.variable\), not a ndarray"):
        dist.Split(loss, [np.ones(3)], None, place=TWO)
    with pytest.raises(TypeError, match="the output must be a result of operations on nodes, not a"):
        dist.Split(np.ones(3), parameters, None, place=TWO)
    with pytest.raises(TypeError, match="step needs optimizer="):
        dist.Split(loss, parameters, None, place=TWO).step(rows(3))


def test_split_updated_variable_raises() -> None:
    loss, parameters = network()
    net = dist.Split(loss, parameters, None, place=TWO)
    net.run(rows(3))
    parameters[1] -= 1.0
    with pytest.raises(RuntimeError, match=r"variable 'v' .* was updated here"):
        net.run(rows(3))


def test_split_clips_gradients_of_all_parts() -> None:
    """`clip` receives the gradients of all parts, in the order of the parameters. Its errors leave all parts unchanged."""
    loss, parameters = network()
    limits = [1.0]

    def clip(gradients: list[Any]) -> Any:
        if limits[0] < 0:
            raise OverflowError("too large to be clipped")
        return clip_by_global_norm(gradients, limits[0] / 4) if len(gradients) == 4 else []

    make = partial(Adam, learning_rate=0.01, clip=clip)
    arrays = [v.value.copy() for v in parameters]
    alone = make(arrays)
    with dist.Split(loss, parameters, None, place=TWO, micro_batches=3, optimizer=make, keep_every=2) as net:
        whole = dist.Split(loss, parameters, None, place={"first": 0, "second": 0}, micro_batches=3, optimizer=make)
        for k in range(4):
            _, slope = net.value_and_grad(rows(10, k))
            assert sum(np.sum(g * g) for g in slope) > 0.25**2  # so that something is clipped
            alone.step(slope)
            assert net.step(rows(10, k)) == whole.step(rows(10, k))
        limits[0] = -1.0
        with pytest.raises(OverflowError, match="too large to be clipped"):
            net.step(rows(10, 4))
        assert [a.tobytes() for a in net.parameters] == [a.tobytes() for a in arrays]
        assert [a.tobytes() for a in whole.parameters] == [a.tobytes() for a in arrays]
    short = dist.Split(loss, parameters, None, place=TWO, optimizer=partial(Adam, clip=lambda g: g[1:]))
    with pytest.raises(ValueError, match="clip returned 3 gradients for 4 parameters"):
        short.step(rows(10))


def test_split_micro_batches_without_rows_raise() -> None:
    x, u = cg.placeholder((2,), name="x"), cg.variable(1.0, "u")
    with cg.scope("first"):
        out = cg.sum(x * u)
    with pytest.raises(ValueError, match="micro_batches divides the first axis of placeholders declared as"):
        dist.Split(out, [u], None, place={"first": 0}, micro_batches=2)


def test_split_alternating_writes_raise() -> None:
    x, u = cg.placeholder((3,), name="x"), cg.variable(2.0, "u")
    with cg.scope("first"):
        b = cg.zeros(3)
        b[0] = x[0] * u
    with cg.scope("second"):
        y = cg.sin(b[0]) * u
    with cg.scope("first"):
        b[1] = y
    with cg.scope("second"):
        out = cg.sum(b * b)
    with pytest.raises(ValueError, match="written into, read in another part, and written into again"):
        dist.Split(out, [u], None, place=TWO)
    require_same_bits(out, [u], {"first": 0, "second": 0}, {"x": np.ones(3)})


def test_split_derivative_through_parts_raises() -> None:
    x, u = cg.placeholder((3,), name="x"), cg.variable(2.0, "u")
    with cg.scope("first"):
        h = cg.sin(x * u)
    with cg.scope("second"):
        value = cg.sum(h * h)
    (slope,) = gradients(value, [u])
    with pytest.raises(ValueError, match=r"passes through several parts\. Place the differentiated"):
        dist.Split(value + slope * slope, [u], None, place=TWO)


def test_split_leaked_value_warns() -> None:
    x, u = cg.placeholder((3,), name="x"), cg.variable(2.0, "u")
    with cg.scope("first"):
        h = cg.sum(x * u)
        out = h * h.value
    with pytest.warns(RuntimeWarning, match="numbers left the graph"):
        dist.Split(out, [u], None, place={"first": 0})
