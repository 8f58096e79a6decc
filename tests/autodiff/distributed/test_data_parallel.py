"""`DataParallel`: gradients, bits, stored arrays, errors, and the log."""

from __future__ import annotations

import pickle
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from distributed import Client, LocalCluster

import autodiff as ad
import autodiff.distributed as dist
import compgraph as cg
from autodiff.optimizers import Adam
from tests.support import losses
from tests.support.clusters import threads_of
from tests.support.failures import Failures
from tests.support.losses import Line, leaves_of, network, network_parameters, squares

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(101, 20)), RNG.integers(0, 4, 101)
LINE = {"w": np.array([0.5, -1.0, 2.0]), "b": np.array(0.25)}
U, V = RNG.normal(size=(37, 3)), RNG.normal(size=37)


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in leaves_of(tree)]


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, direct_to_workers=True) as client:
        yield client


# ------------------------------------------------------------------------------------------- gradients and bits


def test_data_parallel_gradient_equals_one_process(remote_loss: dist.DataParallel) -> None:
    p = network_parameters()
    with Failures("numbers of rows") as failures:
        for rows in (1, 2, 15, 16, 17, 101):
            with failures.case(f"{rows} rows"):
                value, slope = remote_loss.value_and_grad(p, X[:rows], Y[:rows])
                expected, expected_slope = ad.value_and_grad(network)(p, X[:rows], Y[:rows])
                assert abs(value - expected) < 1e-12
                for name in p:
                    assert np.max(np.abs(slope[name] - expected_slope[name])) < 1e-12, name


def test_data_parallel_bits_equal_one_process(remote_loss: dist.DataParallel) -> None:
    local_loss, p = dist.DataParallel(network), network_parameters()
    with Failures("numbers of rows") as failures:
        for rows in (1, 7, 64, 101):
            with failures.case(f"{rows} rows"):
                assert bits(remote_loss.value_and_grad(p, X[:rows], Y[:rows])) == bits(
                    local_loss.value_and_grad(p, X[:rows], Y[:rows])
                )


@pytest.mark.parametrize("machines", [1, 3, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_bits_do_not_depend_on_machine_count(machines: int) -> None:
    local_loss, p = dist.DataParallel(network), network_parameters()
    with threads_of(machines) as client, dist.DataParallel(network, client) as loss:
        assert len(loss.machines) == machines
        for _ in range(5):  # shares change, as speeds are measured
            assert bits(loss.value_and_grad(p, X, Y)) == bits(local_loss.value_and_grad(p, X, Y))
        assert len({r.machine for r in loss.log if len(r.rows)}) == machines


def test_argument_layout_does_not_change_bits(remote_loss: dist.DataParallel) -> None:
    local_loss, p = dist.DataParallel(network), network_parameters()
    p["w1"] = np.asfortranarray(p["w1"])
    for x in (np.asfortranarray(X), X[::-1][::-1], np.repeat(X, 2, axis=1)[:, ::2]):
        assert bits(remote_loss.value_and_grad(p, x, Y)) == bits(local_loss.value_and_grad(network_parameters(), X, Y))
    single = {name: value.astype(np.float32) for name, value in p.items()}
    value, slope = remote_loss.value_and_grad(single, X.astype(np.float32), Y)
    assert value.dtype == np.float32
    assert all(s.dtype == np.float32 for s in slope.values())
    assert bits((value, slope)) == bits(local_loss.value_and_grad(single, X.astype(np.float32), Y))


def test_bits_depend_on_grains_alone(client: Client) -> None:
    p = network_parameters()
    for grains in (1, 3, 40):
        with dist.DataParallel(network, client, grains=grains) as loss:
            assert bits(loss.value_and_grad(p, X, Y)) == bits(dist.DataParallel(network, grains=grains).value_and_grad(p, X, Y))


# --------------------------------------------------------------------------------------------------- nesting


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass
class Nested:
    lines: list[Any]
    nothing: None = None


def test_parameters_nested(client: Client) -> None:
    def loss(p: Any, x: Any, y: Any) -> Any:
        first, (second, _) = p.lines
        return np.mean((x @ first.w + first.b - y) ** 2) + np.sum(second["k"] ** 2)

    p = Nested([Pair(LINE["w"], 0.25), ({"k": np.ones(2)}, None)])
    with dist.DataParallel(loss, client) as mean:
        value, slope = mean.value_and_grad(p, U, V)
    expected, expected_slope = ad.value_and_grad(loss)(p, U, V)
    assert isinstance(slope, Nested)
    assert isinstance(slope.lines[0], Pair)
    assert isinstance(slope.lines[0].b, np.float64)
    assert np.isclose(value, expected, rtol=1e-12)
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(leaves_of(slope), leaves_of(expected_slope), strict=True))


def test_parameters_of_imported_class(client: Client) -> None:
    with dist.DataParallel(losses.of_line, client) as mean:
        slope = mean.value_and_grad(Line(LINE["w"], LINE["b"]), U, V)[1]
    assert isinstance(slope, Line)
    assert np.allclose(slope.w, ad.grad(squares)(LINE, U, V)["w"], rtol=1e-12)


def test_batch_nested(client: Client) -> None:
    def loss(p: Any, data: Any) -> Any:
        return squares(p, data["x"], data["y"])

    with dist.DataParallel(loss, client) as mean:
        value = mean(LINE, {"x": U, "y": V})
    assert np.isclose(value, squares(LINE, U, V), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- training


def test_training_bits_equal_one_process(remote_loss: dist.DataParallel) -> None:
    ends = []
    for loss in (remote_loss, dist.DataParallel(network)):
        p = network_parameters()
        optimizer = Adam(p, learning_rate=0.01)
        for rows in np.array_split(np.random.default_rng(1).permutation(len(X)), 9):
            optimizer.step(loss.value_and_grad(p, X[rows], Y[rows])[1])
        ends.append(bits(p))
    assert ends[0] == ends[1] != bits(network_parameters())


# ------------------------------------------------------------------------------------------- data left there


def test_put_rows_equal_indexed_arrays(remote_loss: dist.DataParallel) -> None:
    p, local_loss = network_parameters(), dist.DataParallel(network)
    x, y = remote_loss.put(X, Y)
    assert (x.shape, x.dtype, len(y)) == (X.shape, X.dtype, len(Y))
    order = np.random.default_rng(2).permutation(len(X))
    for rows in (slice(None), slice(10, 90, 3), slice(50, None, -1), order[:40], order < 50, [3, -1, 5]):
        assert x[rows].shape == X[rows].shape
        assert bits(remote_loss.value_and_grad(p, x[rows], y[rows])) == bits(local_loss.value_and_grad(p, X[rows], Y[rows]))
        assert bits(remote_loss.value_and_grad(p, x[rows], Y[rows])) == bits(local_loss.value_and_grad(p, X[rows], Y[rows]))
    odd_rows = slice(1, None, 2)
    assert bits(remote_loss(p, x[order][odd_rows], y[order][odd_rows])) == bits(
        local_loss(p, X[order][odd_rows], Y[order][odd_rows])
    )


def test_put_copies_arrays() -> None:
    local_loss, p, x = dist.DataParallel(network), network_parameters(), X.copy()
    remote_array = local_loss.put(x)
    x[:] = 0
    assert bits(local_loss(p, remote_array, Y)) == bits(local_loss(p, X, Y))


def test_put_array_is_deleted_with_last_reference(client: Client) -> None:
    with dist.DataParallel(squares, client) as loss:
        x, y = loss.put(U, V)
        loss(LINE, x, y)
        half = x[:20]
        key = y.key
        del x, y
        assert list(loss._arrays) == [half.key]  # rows of this array are still in use
        assert loss(LINE, half, V[:20]) == dist.DataParallel(squares)(LINE, U[:20], V[:20])
        assert all(key not in member.stored_keys for member in loss._pool.members.values())


def test_remote_array_index_other_than_rows_raises() -> None:
    with Failures("indices") as failures:
        for index in (3, (slice(None), 0), np.zeros((2, 2), int), [0.5], "x"):
            with failures.case(repr(index)), pytest.raises(IndexError, match="by rows"):
                dist.DataParallel(squares).put(U)[index]
    with pytest.raises(IndexError, match="out of bounds"):
        dist.DataParallel(squares).put(U)[[100]]


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("is_remote", [True, False])
def test_loss_error_keeps_traceback(client: Client, is_remote: bool) -> None:
    with dist.DataParallel(losses.raising, client if is_remote else None) as loss:
        with pytest.raises(losses.NoSuchWordError, match="no such word") as raised:
            loss.value_and_grad(LINE, U, V)
        assert raised.traceback[-1].name == "raising"
        assert raised.traceback[-1].path.name == "losses.py"
        assert "raised by the loss on" in raised.value.__notes__[0]
        assert "in looked_up" in raised.value.__notes__[1]  # where it came from
        assert "KeyError: 'word'" in raised.value.__notes__[1]
        assert any(r.fault.startswith("error") for r in loss.log)
        with pytest.raises(losses.NoSuchWordError):  # and again: nothing hangs, no machine was lost
            loss(LINE, U, V)
        assert len(loss.machines) == (2 if is_remote else 1)


def test_faulty_losses_raise(client: Client) -> None:
    with Failures("losses") as failures:
        for name, (error, words) in losses.EXPECTED.items():
            with (
                failures.case(name),
                dist.DataParallel(getattr(losses, name), client) as loss,
                pytest.raises(error, match=words),
            ):
                loss.value_and_grad(LINE, U, V)


def test_loss_warning_is_issued_at_caller(client: Client) -> None:
    with dist.DataParallel(losses.warns, client) as loss, warnings.catch_warnings(record=True) as actual:
        warnings.simplefilter("always")
        loss(LINE, U, V)
    assert {str(w.message) for w in actual} == {"the learning rate is silly"}
    assert actual[0].filename == __file__


def test_enclosing_node_raises(client: Client) -> None:
    penalty = cg.variable(0.5, "penalty")

    def loss(p: Any, x: Any, y: Any) -> Any:
        return squares(p, x, y) + penalty * np.sum(p["w"] ** 2)

    for where in (client, None):
        with dist.DataParallel(loss, where) as mean:
            with pytest.raises(TypeError, match="uses a node of an enclosing scope"):
                mean.value_and_grad(LINE, U, V)
            with pytest.raises(TypeError, match="uses a node of an enclosing scope"):
                mean(LINE, U, V)


def test_backend_derivatives(client: Client) -> None:
    """Values, gradients and second derivatives with the option `backend`, locally and on machines."""
    library = pytest.importorskip("array_api_strict")
    value, slope = ad.value_and_grad(squares)(LINE, U, V)
    curvature = ad.hessian(lambda w: squares(LINE | {"w": w}, U, V))(LINE["w"])
    for where in (client, None):
        with dist.DataParallel(squares, where, backend=library, grains=4) as mean:
            for _ in range(2):
                actual, found_slope = mean.value_and_grad(LINE, U, V)
                assert actual == pytest.approx(value, rel=1e-14)
                np.testing.assert_allclose(found_slope["w"], slope["w"], rtol=1e-13)
            np.testing.assert_allclose(ad.hessian(lambda w: mean(LINE | {"w": w}, U, V))(LINE["w"]), curvature, rtol=1e-12)


def test_backend_unsupported_operation_raises(client: Client) -> None:
    library = pytest.importorskip("array_api_strict")

    def loss(p: Any, x: Any, y: Any) -> Any:
        return np.sum(np.unique(x)) * np.sum(p["w"]) + 0 * np.sum(y)

    penalty = cg.variable(0.5, "penalty")
    reason = "with_node does not run on .*penalty.* is a node of a graph"

    def with_node(p: Any, x: Any, y: Any) -> Any:
        return squares(p, x, y) + penalty * np.sum(p["w"] ** 2)

    for where in (client, None):
        with dist.DataParallel(loss, where, backend=library) as mean, pytest.raises(NotImplementedError, match="unique"):
            mean.value_and_grad(LINE, U, V)
        with (
            dist.DataParallel(with_node, where, backend=library) as mean,
            pytest.raises(NotImplementedError, match=reason),
        ):
            mean.value_and_grad(LINE, U, V)
    with pytest.raises(ValueError, match="backend must be one of"):
        dist.DataParallel(squares, backend="tensorflow")


def test_active_batch_raises(mean_squares: dist.DataParallel) -> None:
    with pytest.raises(TypeError, match="derivatives are with respect to the parameters alone"):
        ad.grad(lambda x: mean_squares(LINE, x, V))(U)
    with pytest.raises(TypeError, match="derivatives are with respect to the parameters alone"):
        ad.grad(lambda p, x: mean_squares(p, x, V), argnums=(0, 1))(LINE, U)


def test_complex_parameter_node_raises(client: Client) -> None:
    loss = dist.DataParallel(lambda p, x: np.mean(np.abs(p * x) ** 2))
    with pytest.raises(TypeError, match="real and imaginary"):
        ad.grad(lambda p: loss(p, V))(1j)


BATCHES: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    ((U[:0], V[:0]), ValueError, "no rows"),
    ((U, V[:5]), ValueError, "equally many rows"),
    ((U, 1.0), TypeError, "made of NumPy arrays"),
    ((U, np.array(1.0)), ValueError, r"shape \(\)"),
    ((U, np.ma.masked_array(V, V > 0)), TypeError, "made of NumPy arrays"),
    ((), TypeError, "the batch is missing"),
]


def test_wrong_batches_raise(mean_squares: dist.DataParallel) -> None:
    with Failures("batches") as failures:
        for number, (batch, error, words) in enumerate(BATCHES):
            for loss in (mean_squares, dist.DataParallel(squares)):
                with failures.case(f"{number}: {words}"), pytest.raises(error, match=words):
                    loss.value_and_grad(LINE, *batch)


def test_dask_array_raises(mean_squares: dist.DataParallel) -> None:
    import dask.array

    with pytest.raises(TypeError, match=r"distributed\.value_and_grad"):
        mean_squares(LINE, dask.array.from_array(U, chunks=10), V)


def test_empty_or_integer_parameters_raise(mean_squares: dist.DataParallel) -> None:
    with pytest.raises(TypeError, match="contain no array"):
        mean_squares({}, U, V)
    with pytest.raises(TypeError, match="is not differentiable"):
        mean_squares({"w": np.arange(3), "b": 0.0}, U, V)


def test_remote_array_of_another_object_raises(mean_squares: dist.DataParallel) -> None:
    with pytest.raises(ValueError, match="was stored by another DataParallel"):
        mean_squares(LINE, dist.DataParallel(squares).put(U), V)


def test_wrong_options_raise() -> None:
    wrong_options: list[dict[str, Any]] = [{"grains": 0}, {"grains": 2.5}, {"patience": 0}, {"wait": -1}]
    with Failures("options") as failures:
        for options in wrong_options:
            with failures.case(str(options)), pytest.raises(ValueError, match=next(iter(options))):
                dist.DataParallel(squares, **options)
    with pytest.raises(TypeError):
        dist.DataParallel(squares, client="tcp://127.0.0.1:1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a function"):
        dist.DataParallel(3)


def test_pickle_raises() -> None:
    with pytest.raises(TypeError, match="connection"):
        pickle.dumps(dist.DataParallel(squares))


def test_loss_is_pickled_at_construction(client: Client) -> None:
    factor = [1.0]

    def loss(p: Any, x: Any) -> Any:
        return np.mean(p * x) * factor[0]

    with dist.DataParallel(loss, client) as mean:
        factor[0] = 100.0
        assert np.isclose(mean(2.0, V), 2 * V.mean(), rtol=1e-12)


def test_loss_not_importable_on_machines_raises(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("import numpy as np\ndef loss(p, x):\n    return np.mean(p * x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with dist.DataParallel(only_here.loss, client) as mean, pytest.raises(RuntimeError, match=r"(?s)cannot load.*only_here"):
        mean(2.0, V)


def test_interrupted_step_changes_nothing(client: Client) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored, where it runs in the background
    with dist.DataParallel(losses.sleeping, client) as loss:
        expected = loss(0.01, V)
        timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            loss(0.25, V)  # two seconds on each machine
        assert time.monotonic() - start < 1.9
        timer.join()
        assert loss(0.01, V) == expected


# -------------------------------------------------------------------------------------------- what people see


def test_log_records_shares_and_machines(client: Client) -> None:
    with dist.DataParallel(squares, client, patience=1e9) as loss:
        assert [m.speed for m in loss.machines] == [None, None]
        for _ in range(3):
            loss(LINE, U, V)
        machines = loss.machines
        assert len(machines) == 2
        assert all(m.address.startswith("tcp://127.0.0.1") and m.speed > 0 and m.is_free for m in machines)
        done = [r for r in loss.log if len(r.rows)]
        assert {r.step for r in done} == {0, 1, 2}
        for step in range(3):
            assert sorted(row for r in done if r.step == step for row in r.rows) == list(range(37))
        assert all(r.begin < r.end and not r.fault for r in done)
        assert [r.fault for r in loss.log.faults] == ["joined", "joined"]
        assert str(loss.log).splitlines()[0].split() == ["step", "machine", "rows", "begin", "[s]", "took", "[ms]", "fault"]
        assert loss.log._repr_html_().count("<tr") == len(loss.log) + 1
        figure = loss.log.plot()
        assert {label.get_text() for label in figure.axes[0].get_yticklabels()} == {m.address for m in machines}


def test_steps_progress_bar(mean_squares: dist.DataParallel, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(mean_squares.machines) == 2
    values = [mean_squares(LINE, U[rows], V[rows]) for rows in mean_squares.steps(np.array_split(np.arange(37), 4))]
    assert len(values) == 4
    output = capsys.readouterr().err
    assert "4/4" in output
    assert "step/s" in output
    assert f"loss={values[-1]:.4g}" in output
    assert "machines=2" in output


def test_threads_as_machines() -> None:
    with threads_of(2) as client, dist.DataParallel(network, client) as loss:
        p = network_parameters()
        for _ in range(3):
            assert bits(loss.value_and_grad(p, X, Y)) == bits(dist.DataParallel(network).value_and_grad(p, X, Y))
        actual = ad.grad(lambda q: loss(q, X, Y) + np.sum(q["w1"] ** 2))(p)
        expected = ad.grad(lambda q: network(q, X, Y) + np.sum(q["w1"] ** 2))(p)
        assert all(np.allclose(actual[name], expected[name], rtol=1e-11, atol=1e-14) for name in p)
