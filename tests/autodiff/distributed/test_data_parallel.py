"""The mean of a loss over machines: the same gradient, the same bits, a node like any other, and clear refusals."""

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


def test_gradient_is_that_of_one_process(there: dist.DataParallel) -> None:
    p = network_parameters()
    with Failures("numbers of rows") as failures:
        for rows in (1, 2, 15, 16, 17, 101):
            with failures.case(f"{rows} rows"):
                value, slope = there.value_and_grad(p, X[:rows], Y[:rows])
                expected, expected_slope = ad.value_and_grad(network)(p, X[:rows], Y[:rows])
                assert abs(value - expected) < 1e-12
                for name in p:
                    assert np.max(np.abs(slope[name] - expected_slope[name])) < 1e-12, name


def test_bits_are_those_of_this_process_alone(there: dist.DataParallel) -> None:
    here, p = dist.DataParallel(network), network_parameters()
    with Failures("numbers of rows") as failures:
        for rows in (1, 7, 64, 101):
            with failures.case(f"{rows} rows"):
                assert bits(there.value_and_grad(p, X[:rows], Y[:rows])) == bits(here.value_and_grad(p, X[:rows], Y[:rows]))


@pytest.mark.parametrize("machines", [1, 3, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_the_bits_do_not_depend_on_the_number_of_machines(machines: int) -> None:
    here, p = dist.DataParallel(network), network_parameters()
    with threads_of(machines) as client, dist.DataParallel(network, client) as loss:
        assert len(loss.machines) == machines
        for _ in range(5):  # shares change, as speeds are measured
            assert bits(loss.value_and_grad(p, X, Y)) == bits(here.value_and_grad(p, X, Y))
        assert len({r.machine for r in loss.log if len(r.rows)}) == machines


def test_layout_and_dtype_of_what_is_given_do_not_change_the_bits(there: dist.DataParallel) -> None:
    here, p = dist.DataParallel(network), network_parameters()
    p["w1"] = np.asfortranarray(p["w1"])
    for x in (np.asfortranarray(X), X[::-1][::-1], np.repeat(X, 2, axis=1)[:, ::2]):
        assert bits(there.value_and_grad(p, x, Y)) == bits(here.value_and_grad(network_parameters(), X, Y))
    single = {name: value.astype(np.float32) for name, value in p.items()}
    value, slope = there.value_and_grad(single, X.astype(np.float32), Y)
    assert value.dtype == np.float32
    assert all(s.dtype == np.float32 for s in slope.values())
    assert bits((value, slope)) == bits(here.value_and_grad(single, X.astype(np.float32), Y))


def test_the_number_of_grains_decides_the_bits_and_nothing_else(client: Client) -> None:
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


def test_parameters_nest_in_any_way(client: Client) -> None:
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


def test_a_type_of_parameters_that_the_machines_know_by_import(client: Client) -> None:
    with dist.DataParallel(losses.of_line, client) as mean:
        slope = mean.value_and_grad(Line(LINE["w"], LINE["b"]), U, V)[1]
    assert isinstance(slope, Line)
    assert np.allclose(slope.w, ad.grad(squares)(LINE, U, V)["w"], rtol=1e-12)


def test_the_batch_nests_too(client: Client) -> None:
    def loss(p: Any, data: Any) -> Any:
        return squares(p, data["x"], data["y"])

    with dist.DataParallel(loss, client) as mean:
        value = mean(LINE, {"x": U, "y": V})
    assert np.isclose(value, squares(LINE, U, V), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- training


def test_training_has_the_same_bits(there: dist.DataParallel) -> None:
    ends = []
    for loss in (there, dist.DataParallel(network)):
        p = network_parameters()
        optimizer = Adam(p, learning_rate=0.01)
        for rows in np.array_split(np.random.default_rng(1).permutation(len(X)), 9):
            optimizer.step(loss.value_and_grad(p, X[rows], Y[rows])[1])
        ends.append(bits(p))
    assert ends[0] == ends[1] != bits(network_parameters())


# ------------------------------------------------------------------------------------------- data left there


def test_data_that_was_left_with_the_machines(there: dist.DataParallel) -> None:
    p, here = network_parameters(), dist.DataParallel(network)
    x, y = there.put(X, Y)
    assert (x.shape, x.dtype, len(y)) == (X.shape, X.dtype, len(Y))
    order = np.random.default_rng(2).permutation(len(X))
    for rows in (slice(None), slice(10, 90, 3), slice(50, None, -1), order[:40], order < 50, [3, -1, 5]):
        assert x[rows].shape == X[rows].shape
        assert bits(there.value_and_grad(p, x[rows], y[rows])) == bits(here.value_and_grad(p, X[rows], Y[rows]))
        assert bits(there.value_and_grad(p, x[rows], Y[rows])) == bits(here.value_and_grad(p, X[rows], Y[rows]))
    again = slice(1, None, 2)
    assert bits(there(p, x[order][again], y[order][again])) == bits(here(p, X[order][again], Y[order][again]))


def test_data_left_is_a_copy_and_works_here_too() -> None:
    here, p, x = dist.DataParallel(network), network_parameters(), X.copy()
    kept = here.put(x)
    x[:] = 0
    assert bits(here(p, kept, Y)) == bits(here(p, X, Y))


def test_what_nobody_refers_to_is_forgotten(client: Client) -> None:
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


@pytest.mark.parametrize("there_or_here", [True, False])
def test_an_error_in_the_loss_comes_back_with_its_traceback(client: Client, there_or_here: bool) -> None:
    with dist.DataParallel(losses.raising, client if there_or_here else None) as loss:
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
        assert len(loss.machines) == (2 if there_or_here else 1)


def test_faulty_losses_raise(client: Client) -> None:
    with Failures("losses") as failures:
        for name, (error, words) in losses.EXPECTED.items():
            with (
                failures.case(name),
                dist.DataParallel(getattr(losses, name), client) as loss,
                pytest.raises(error, match=words),
            ):
                loss.value_and_grad(LINE, U, V)


def test_a_warning_there_is_a_warning_here(client: Client) -> None:
    with dist.DataParallel(losses.warns, client) as loss, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        loss(LINE, U, V)
    assert {str(w.message) for w in found} == {"the learning rate is silly"}
    assert found[0].filename == __file__


def test_a_node_from_outside_is_refused(client: Client) -> None:
    penalty = cg.variable(0.5, "penalty")

    def loss(p: Any, x: Any, y: Any) -> Any:
        return squares(p, x, y) + penalty * np.sum(p["w"] ** 2)

    for where in (client, None):
        with dist.DataParallel(loss, where) as mean:
            with pytest.raises(TypeError, match="uses a node of an enclosing scope"):
                mean.value_and_grad(LINE, U, V)
            with pytest.raises(TypeError, match="uses a node of an enclosing scope"):
                mean(LINE, U, V)


def test_machines_compute_by_another_library(client: Client) -> None:
    """Values, gradients and second derivatives by the option `backend`, here and on the machines."""
    library = pytest.importorskip("array_api_strict")
    value, slope = ad.value_and_grad(squares)(LINE, U, V)
    curvature = ad.hessian(lambda w: squares(LINE | {"w": w}, U, V))(LINE["w"])
    for where in (client, None):
        with dist.DataParallel(squares, where, backend=library, grains=4) as mean:
            for _ in range(2):
                found, found_slope = mean.value_and_grad(LINE, U, V)
                assert found == pytest.approx(value, rel=1e-14)
                np.testing.assert_allclose(found_slope["w"], slope["w"], rtol=1e-13)
            np.testing.assert_allclose(ad.hessian(lambda w: mean(LINE | {"w": w}, U, V))(LINE["w"]), curvature, rtol=1e-12)


def test_what_another_library_cannot_compute_raises(client: Client) -> None:
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
        with dist.DataParallel(with_node, where, backend=library) as mean, pytest.raises(NotImplementedError, match=reason):
            mean.value_and_grad(LINE, U, V)
    with pytest.raises(ValueError, match="backend must be one of"):
        dist.DataParallel(squares, backend="tensorflow")


def test_derivatives_by_the_batch_are_refused(line: dist.DataParallel) -> None:
    with pytest.raises(TypeError, match="derivatives are with respect to the parameters alone"):
        ad.grad(lambda x: line(LINE, x, V))(U)
    with pytest.raises(TypeError, match="derivatives are with respect to the parameters alone"):
        ad.grad(lambda p, x: line(p, x, V), argnums=(0, 1))(LINE, U)


def test_complex_parameters_are_no_nodes(client: Client) -> None:
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


def test_wrong_batches_raise(line: dist.DataParallel) -> None:
    with Failures("batches") as failures:
        for number, (batch, error, words) in enumerate(BATCHES):
            for loss in (line, dist.DataParallel(squares)):
                with failures.case(f"{number}: {words}"), pytest.raises(error, match=words):
                    loss.value_and_grad(LINE, *batch)


def test_a_dask_array_is_sent_elsewhere(line: dist.DataParallel) -> None:
    import dask.array

    with pytest.raises(TypeError, match=r"distributed\.value_and_grad"):
        line(LINE, dask.array.from_array(U, chunks=10), V)


def test_parameters_that_are_none(line: dist.DataParallel) -> None:
    with pytest.raises(TypeError, match="contain no array"):
        line({}, U, V)
    with pytest.raises(TypeError, match="is not differentiable"):
        line({"w": np.arange(3), "b": 0.0}, U, V)


def test_data_of_another_object_is_refused(line: dist.DataParallel) -> None:
    with pytest.raises(ValueError, match="with another object's machines"):
        line(LINE, dist.DataParallel(squares).put(U), V)


def test_wrong_options_raise() -> None:
    wrong: list[dict[str, Any]] = [{"grains": 0}, {"grains": 2.5}, {"patience": 0}, {"wait": -1}]
    with Failures("options") as failures:
        for options in wrong:
            with failures.case(str(options)), pytest.raises(ValueError, match=next(iter(options))):
                dist.DataParallel(squares, **options)
    with pytest.raises(TypeError):
        dist.DataParallel(squares, client="tcp://127.0.0.1:1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a function"):
        dist.DataParallel(3)


def test_it_does_not_pickle_and_says_so() -> None:
    with pytest.raises(TypeError, match="connection"):
        pickle.dumps(dist.DataParallel(squares))


def test_the_loss_as_it_was_when_it_was_given(client: Client) -> None:
    factor = [1.0]

    def loss(p: Any, x: Any) -> Any:
        return np.mean(p * x) * factor[0]

    with dist.DataParallel(loss, client) as mean:
        factor[0] = 100.0
        assert np.isclose(mean(2.0, V), 2 * V.mean(), rtol=1e-12)


def test_a_loss_that_the_machines_cannot_load(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("import numpy as np\ndef loss(p, x):\n    return np.mean(p * x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with dist.DataParallel(only_here.loss, client) as mean, pytest.raises(RuntimeError, match=r"(?s)cannot load.*only_here"):
        mean(2.0, V)


def test_an_interrupted_step_leaves_all_as_it_was(client: Client) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored, where it runs in the background
    with dist.DataParallel(losses.sleeping, client) as loss:
        expected = loss(0.01, V)
        timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            loss(0.25, V)  # two seconds on each machine
        assert time.monotonic() - begun < 1.9
        timer.join()
        assert loss(0.01, V) == expected


# -------------------------------------------------------------------------------------------- what people see


def test_machines_and_the_log(client: Client) -> None:
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


def test_the_bar(line: dist.DataParallel, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(line.machines) == 2
    values = [line(LINE, U[rows], V[rows]) for rows in line.steps(np.array_split(np.arange(37), 4))]
    assert len(values) == 4
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert "step/s" in shown
    assert f"loss={values[-1]:.4g}" in shown
    assert "machines=2" in shown


def test_threads_of_this_process_are_machines_too() -> None:
    with threads_of(2) as client, dist.DataParallel(network, client) as loss:
        p = network_parameters()
        for _ in range(3):
            assert bits(loss.value_and_grad(p, X, Y)) == bits(dist.DataParallel(network).value_and_grad(p, X, Y))
        found = ad.grad(lambda q: loss(q, X, Y) + np.sum(q["w1"] ** 2))(p)
        expected = ad.grad(lambda q: network(q, X, Y) + np.sum(q["w1"] ** 2))(p)
        assert all(np.allclose(found[name], expected[name], rtol=1e-11, atol=1e-14) for name in p)
