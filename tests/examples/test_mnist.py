"""The example on handwritten digits: accuracy, output, pictures, options, and MNIST without internet access.

Checkpoints are tested in test_mnist_checkpoint.
"""

from __future__ import annotations

import gzip
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import digits
import mnist
import networks
import numpy as np
import pytest
import training
from matplotlib.figure import Figure
from scipy.ndimage import shift
from scipy.signal import correlate2d

import compgraph as cg
from tests.support.failures import Failures
from tests.support.openml_cache import write_cache

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "mnist.py"
SVG = "{http://www.w3.org/2000/svg}"
ACCURACY = re.compile(r"Accuracy: (\d{1,3}\.\d\d)%\n")


@pytest.fixture(autouse=True)
def current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def timeouts(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """No name of a server is found; the timeouts that were set when one was looked for."""
    values: list[float | None] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        values.append(socket.getdefaulttimeout())
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return values


def printed_accuracy(capsys: pytest.CaptureFixture[str]) -> float:
    """The accuracy printed, which is all that may be on stdout."""
    output = capsys.readouterr().out
    match = ACCURACY.fullmatch(output)
    assert match, output
    return float(match[1])


def texts(svg: bytes) -> set[str | None]:
    root = ElementTree.fromstring(svg)
    assert root.tag == SVG + "svg"
    return {element.text for element in root.iter(SVG + "text")}


# -------------------------------------------------------------------------------------------- accuracy


OTHER_OPTIMIZERS = ("adagrad", "rmsprop", "adam", "adamw", "stepcontroller")
SHORT = {
    "--iterations 400": 96.0,
    "--model cnn --iterations 60": 89.0,
    **{f"--optimizer {name} --iterations 150": 92.0 for name in OTHER_OPTIMIZERS},
}
FULL = {"--seed 0": 97.0, "--model cnn --seed 0": 98.5}
OTHERS = {
    **{f"--seed {seed}": 97.0 for seed in range(1, 5)},
    "--model cnn --seed 1": 98.5,
    **{f"--optimizer {name} --iterations 1500": 93.0 for name in OTHER_OPTIMIZERS},
}


@pytest.mark.parametrize(
    "trainings",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(FULL, id="full", marks=pytest.mark.slow),
        pytest.param(OTHERS, id="others", marks=pytest.mark.exhaustive),
    ],
)
def test_training_reaches_accuracy(trainings: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    with Failures("trainings") as failures:
        for options, percent in trainings.items():
            with failures.case(options):
                capsys.readouterr()
                assert mnist.main([*options.split(), "--graph", "g.dot"]) == 0
                assert printed_accuracy(capsys) >= percent


@pytest.mark.slow
def test_script_without_renderer_on_path(tmp_path: Path, current_folder: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    environment = {**os.environ, "PATH": str(nothing), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(SCRIPT), "--iterations", "20"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert ACCURACY.fullmatch(process.stdout)
    assert "20/20" in process.stderr
    assert "w1" in texts((current_folder / "mnist-graph.svg").read_bytes())


def test_split_holds_out_fixed_fifth() -> None:
    images, held_out_images, labels, held_out_labels = digits.load_data("digits")
    assert images.shape == (1437, 64)
    assert held_out_images.shape == (360, 64)
    assert (len(labels), len(held_out_labels)) == (1437, 360)
    assert (images.min(), images.max()) == (0, 1)
    assert held_out_labels[:5].tolist() == [6, 9, 3, 7, 2]


def test_prediction_is_class_of_highest_logit() -> None:
    parameters = networks.dense_parameters(64, np.random.default_rng(0))
    images, *_ = digits.load_data("digits")
    w1, b1, w2, b2 = (p.value for p in parameters.values())
    by_hand = (np.maximum(images @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)
    assert len(images) > 2 * mnist.CHUNK
    assert len(set(by_hand)) > 5
    assert np.array_equal(mnist.guesses(networks.MODELS["dense"], parameters, images), by_hand)


def test_convolutional_logits_match_scipy() -> None:
    rng = np.random.default_rng(0)
    parameters = networks.cnn_parameters(64, rng)
    p = {name: rng.normal(scale=0.3, size=v.shape).astype(np.float32) for name, v in parameters.items()}
    image = rng.random((8, 8))

    def layer(x: Any, kernels: Any, biases: Any) -> Any:
        sums = [sum(correlate2d(a, k, mode="same") for a, k in zip(x, ks, strict=True)) for ks in kernels]
        return np.maximum(np.array(sums) + biases, 0)

    x = layer(layer([image], p["k1"], p["c1"]), p["k2"], p["c2"])
    expected = x.reshape(-1, 4, 2, 4, 2).max(axis=(2, 4)).reshape(-1) @ p["w"] + p["b"]
    images = np.stack([np.zeros(64), image.reshape(-1)]).astype(np.float32)
    logits = networks.cnn(images, networks.variables(p))
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits.value[1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", networks.MODELS)
def test_prediction_records_no_graph(name: str) -> None:
    kinds = []

    def spy(*args: Any) -> Any:
        logits = networks.MODELS[name].logits(*args)
        kinds.append(type(logits))
        return logits

    model = networks.MODELS[name]._replace(logits=spy)
    parameters = model.parameters(64, np.random.default_rng(0))
    mnist.guesses(model, parameters, np.ones((3, 64)))
    spy(np.ones((3, 64)), parameters)
    assert kinds == [np.ndarray, cg.OperationalNode]


# ----------------------------------------------------------------------------------------- how it learns


def settings(**changes: Any) -> training.Settings:
    usual: dict[str, Any] = {"data": "digits", "model": "dense", "optimizer": "sgd", "schedule": "constant", "rate": 0.5}
    return training.Settings(**usual | {"iterations": 60, "batch_size": 32, "shift": 0.0, "seed": 3} | changes)


def train(images: Any, labels: Any, **changes: Any) -> training.Training:
    session = training.Training(settings(**changes), images, labels)
    session.run()
    return session


def test_training_step_matches_gradient_descent_by_hand() -> None:
    images, labels = np.random.default_rng(1).random((4, 64)), np.array([3, 1, 4, 1])
    w1, b1, w2, b2 = (p.value for p in train(images, labels, iterations=0).parameters.values())
    after = [p.value for p in train(images, labels, iterations=1, batch_size=4).parameters.values()]

    hidden = np.maximum(images @ w1 + b1, 0)
    raised = np.exp(hidden @ w2 + b2)
    d_logits = (raised / raised.sum(axis=1, keepdims=True) - np.eye(10)[labels]) / 4
    d_hidden = (d_logits @ w2.T) * (hidden > 0)
    steps = [images.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_logits, d_logits.sum(axis=0)]
    for value, before, step in zip(after, [w1, b1, w2, b2], steps, strict=True):
        assert np.abs(step).max() > 1e-3
        np.testing.assert_allclose(value, before - 0.5 * step, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        ("dense", "sgd"),
        pytest.param("dense", "stepcontroller", marks=pytest.mark.slow),
        pytest.param("cnn", "adam", marks=pytest.mark.slow),
    ],
)
def test_training_compiled_has_equal_losses(model: str, optimizer: str) -> None:
    pytest.importorskip("llvmlite")
    images, _, labels, _ = digits.load_data("digits")
    plain, compiled, again = (
        train(images, labels, model=model, optimizer=optimizer, rate=0.01, iterations=12, jit=jit) for jit in (False, True, True)
    )
    assert "program 1" in compiled.compiled.report()
    assert "runs as NumPy" not in compiled.compiled.report()
    np.testing.assert_allclose(compiled.losses, plain.losses, rtol=1e-3 if model == "cnn" else 1e-9)
    assert compiled.losses == again.losses  # whichever program each step ran by, it was there in time


def test_epoch_uses_each_row_at_most_once_in_new_order() -> None:
    rows = digits.Batches(10, 3, np.random.default_rng(0))
    first, second = (np.concatenate([next(rows) for _ in range(3)]).tolist() for _ in range(2))
    assert len(set(first)) == len(set(second)) == 9
    assert set(first + second) <= set(range(10))
    assert first != second


@pytest.mark.parametrize("model", networks.MODELS)
def test_seed_determines_training(model: str) -> None:
    images, _, labels, _ = digits.load_data("digits")
    runs = [train(images, labels, model=model, rate=0.1, iterations=10, seed=seed, shift=0.5).parameters for seed in (3, 3, 4)]
    for first, again, other in zip(*(run.values() for run in runs), strict=True):
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_augmentation_shifts_match_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = rng.random((20, 64)).astype(np.float32)
    moved = digits.shift(images, 0.7, np.random.default_rng(5))
    again = np.random.default_rng(5)
    across, down = (again.uniform(-0.7, 0.7, size=20), again.uniform(-0.7, 0.7, size=20))
    expected = [
        shift(image.reshape(8, 8), offsets, order=1, mode="grid-constant").reshape(-1)
        for image, *offsets in zip(images, across, down, strict=True)
    ]
    assert moved.dtype == np.float32
    assert np.abs(moved - images).max() > 0.1
    np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_options_shift_is_passed_to_augmentation(monkeypatch: pytest.MonkeyPatch) -> None:
    shifts: list[float] = []

    def spy(images: Any, most: float, rng: np.random.Generator) -> Any:
        shifts.append(most)
        return images

    monkeypatch.setattr(training, "shift", spy)
    for options in ["", "--shift 0.25", "--model cnn", "--model cnn --shift 0"]:
        assert mnist.main([*options.split(), "--iterations", "1", "--graph", "g.dot"]) == 0
    assert shifts == [0.25, 0.5]


def test_schedule_option_sets_learning_rate() -> None:
    images, labels = np.random.default_rng(1).random((40, 64)), np.arange(40) % 10
    constant, cosine = (training.Training(settings(schedule=name), images, labels) for name in ("constant", "cosine"))
    for run in (constant, cosine):
        for _ in range(30):
            run.step()
    assert constant.optimizer.learning_rate == 0.5
    assert cosine.optimizer.learning_rate == pytest.approx(0.25)
    for _ in range(30):
        cosine.step()
    assert cosine.optimizer.learning_rate == pytest.approx(0)


def test_progress_bar_shows_average_loss(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.random((40, 4)), rng.integers(10, size=40)
    losses = train(images, labels, iterations=1250, batch_size=8, rate=0.1).losses
    shown = re.findall(r"1250/1250 .*loss=([\d.]+)", capsys.readouterr().err)
    assert len(losses) == 1250
    assert shown[-1] == f"{np.mean(losses[250:]):.4f}"
    assert shown[-1] != f"{np.mean(losses):.4f}"


# ------------------------------------------------------------------------------------------- the picture


def test_graph_picture_shows_named_loss_of_one_batch(current_folder: Path) -> None:
    assert mnist.main(["--iterations", "1"]) == 0
    assert [path.name for path in current_folder.iterdir()] == ["mnist-graph.svg"]
    shown = texts((current_folder / "mnist-graph.svg").read_bytes())
    assert {"x", "w1", "b1", "w2", "b2", "logits", "labels", "loss"} <= shown


def test_graph_picture_of_convolutions(tmp_path: Path) -> None:
    assert mnist.main(["--iterations", "1", "--model", "cnn"]) == 0
    shown = texts(Path("mnist-graph.svg").read_bytes())
    assert {"x", "k1", "c1", "k2", "c2", "w", "b", "cross_correlate", "max_pool", "logits", "loss"} <= shown


@pytest.mark.parametrize("iterations", ["0", pytest.param("1", marks=pytest.mark.exhaustive), "150"])
def test_plot_shows_loss_and_misclassified_digits(iterations: str, current_folder: Path) -> None:
    assert mnist.main(["--iterations", iterations, "--plot", "p.svg", "--graph", "g.dot"]) == 0
    assert "</svg>" in Path("p.svg").read_text()


@pytest.mark.parametrize("count", [0, pytest.param(3, marks=pytest.mark.exhaustive), 50])
def test_plot_counts_misclassified_digits(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = []
    saved = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *args: (figures.append(figure), saved(figure, *args)))
    labels = np.arange(60) % 10
    guessed = np.where(np.arange(60) < count, (labels + 1) % 10, labels)
    mnist.plot([2.0, 1.0, 0.5], np.random.default_rng(0).random((60, 64)), labels, guessed, Path("p.png"))
    left, right = figures[0].subfigs
    assert right.get_suptitle().startswith(f"{count} of 60 misread")
    titles = [place.get_title() for place in right.axes if place.images]
    assert titles == [f"{i % 10} read as {(i + 1) % 10}" for i in range(min(count, 12))]
    assert list(left.axes[0].lines[0].get_ydata()) == [2, 1, 0.5]
    np.testing.assert_allclose(left.axes[0].lines[1].get_ydata(), [3.5 / 3])


def test_plot_without_matplotlib_exits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert mnist.main(["--iterations", "1"]) == 0
    with pytest.raises(SystemExit) as stopped:
        mnist.main(["--iterations", "1", "--plot", "p.png"])
    assert stopped.value.code == 2
    assert 'argument --plot: a plot needs Matplotlib (pip install ".[examples]")' in capsys.readouterr().err


def test_picture_without_graphviz_exits_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], current_folder: Path
) -> None:
    monkeypatch.setattr("options.can_render", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        mnist.main(["--iterations", "1"])
    assert stopped.value.code == 2
    message = """argument --graph: 'mnist-graph.svg' needs Graphviz (pip install ".[pictures]"); a name in .html does without"""
    assert message in capsys.readouterr().err
    assert not list(current_folder.iterdir())
    assert mnist.main(["--iterations", "1", "--graph", "g.html"]) == 0


def test_graph_option_sets_file_and_format(tmp_path: Path, current_folder: Path) -> None:
    formats = {"g.dot": b"digraph", "g.png": b"\x89PNG", "g.PDF": b"%PDF", "g.svg": b"<?xml"}
    with Failures("pictures") as failures:
        for name, start in formats.items():
            with failures.case(name):
                assert mnist.main(["--iterations", "1", "--graph", str(tmp_path / name)]) == 0
                assert (tmp_path / name).read_bytes().startswith(start)
                assert not list(current_folder.iterdir())


def test_picture_file_is_replaced_unless_error(tmp_path: Path) -> None:
    picture = tmp_path / "g.svg"
    picture.write_text("older")
    with pytest.raises(SystemExit):
        mnist.main(["--batch-size", "1438", "--graph", str(picture)])
    assert picture.read_text() == "older"
    assert mnist.main(["--iterations", "1", "--graph", str(picture)]) == 0
    assert "w1" in texts(picture.read_bytes())


# ------------------------------------------------------------------------------------------- the options


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[training.Settings]:
    """The settings of each training; none takes place."""
    settings_list: list[training.Settings] = []
    monkeypatch.setattr(training.Training, "run", lambda self, checkpoint: settings_list.append(self.settings))
    return settings_list


def test_options_are_passed_to_training(trainings: list[training.Settings]) -> None:
    names = "--model cnn --optimizer adamw --schedule constant --shift 1"
    for options in ["", "--iterations 7", "--batch-size 1437", "--rate 0.25", "--seed 9", names]:
        assert mnist.main([*options.split(), "--graph", "g.dot"]) == 0
    default, *others = trainings
    assert default == settings(iterations=5000, rate=0.8, seed=0)
    changes: list[dict[str, Any]] = [{"iterations": 7}, {"batch_size": 1437}, {"rate": 0.25}, {"seed": 9}]
    changes.append({"model": "cnn", "optimizer": "adamw", "shift": 1.0, "rate": 0.003, "iterations": 1500})
    assert others == [replace(default, **change) for change in changes]


def test_options_defaults_fit_model_and_optimizer(trainings: list[training.Settings]) -> None:
    for options in ["--model cnn", "--optimizer adam", "--model cnn --optimizer stepcontroller", "--model cnn --optimizer sgd"]:
        assert mnist.main([*options.split(), "--graph", "g.dot"]) == 0
    assert [(t.optimizer, t.schedule, t.rate, t.iterations) for t in trainings] == [
        ("adam", "cosine", 0.003, 1500),
        ("adam", "constant", 0.003, 5000),
        ("stepcontroller", "constant", 0.5, 1500),
        ("sgd", "cosine", 0.1, 1500),
    ]


def test_training_without_iterations_keeps_initial_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert mnist.main(["--iterations", "0", "--graph", "g.dot"]) == 0
    untrained = printed_accuracy(capsys)
    assert mnist.main(["--iterations", "20", "--rate", "1e-15", "--graph", "g.dot"]) == 0
    assert printed_accuracy(capsys) == untrained < 30


def test_script_help_names_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        mnist.main(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    options = "--data --data-home --model --optimizer --rate --schedule --iterations --batch-size --shift --seed --checkpoint"
    for option in [*options.split(), "--graph", "--plot"]:
        assert f" {option} " in shown
    assert "with dense 5000 for digits, 20000 for mnist" in shown


WRONG: list[tuple[list[str], str]] = [
    (["--data", "letters"], "argument --data: invalid choice"),
    (["--iterations", "-1"], "argument --iterations: must not be negative"),
    (["--iterations", "many"], "argument --iterations: invalid int value"),
    (["--batch-size", "0"], "argument --batch-size: must be at least 1"),
    (["--batch-size", "1438"], "argument --batch-size: must be at most 1437"),
    (["--rate", "0"], "argument --rate: must be positive and finite"),
    (["--rate", "-1"], "argument --rate: must be positive and finite"),
    (["--rate", "nan"], "argument --rate: must be positive and finite"),
    (["--rate", "inf"], "argument --rate: must be positive and finite"),
    (["--seed", "-1"], "argument --seed: must not be negative"),
    (["--data-home", "."], "argument --data-home: the small digits are not downloaded; it belongs with --data mnist"),
    (["--model", "rnn"], "argument --model: invalid choice"),
    (["--optimizer", "newton"], "argument --optimizer: invalid choice"),
    (["--schedule", "linear"], "argument --schedule: invalid choice"),
    (
        ["--optimizer", "stepcontroller", "--schedule", "cosine"],
        "argument --schedule: stepcontroller adapts its learning rate",
    ),
    (["--shift", "1.5"], "argument --shift: must be from 0 to 1"),
    (["--shift", "nan"], "argument --shift: must be from 0 to 1"),
    (["--plot", "plot.gif"], "argument --plot: the name must end in one of .png, .svg, .pdf, not 'plot.gif'"),
    (["--plot", "missing/plot.png"], "argument --plot: cannot write 'missing/plot.png': No such file"),
    (["--checkpoint", "missing/c.npz"], "argument --checkpoint: cannot write 'missing/c.npz.part': No such file"),
    (["--graph", "graph"], "argument --graph: the name must end in one of .svg, .png, .pdf, .dot, .html, not 'graph'"),
    (["--graph", "graph.gif"], "argument --graph: the name must end in one of"),
    (["--graph", "missing/graph.svg"], "argument --graph: cannot write 'missing/graph.svg': No such file"),
    (["--graph", "folder.svg"], "argument --graph: cannot write 'folder.svg': Is a directory"),
    (["--graph", "g" * 300 + ".svg"], "File name too long"),
]


def test_script_wrong_options_exit_before_training(
    trainings: list[training.Settings], current_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (current_folder / "folder.svg").mkdir()
    with Failures("wrong options") as failures:
        for options, message in WRONG:
            with failures.case(" ".join(options)):
                with pytest.raises(SystemExit) as stopped:
                    mnist.main(options)
                assert stopped.value.code == 2
                output = capsys.readouterr()
                assert message in output.err.splitlines()[-1]
                assert not output.out
                assert not trainings
                assert [path.name for path in current_folder.iterdir()] == ["folder.svg"]


# ------------------------------------------------------------------------------------------ the real MNIST


@pytest.fixture
def openml(tmp_path: Path) -> Path:
    write_cache(tmp_path)
    return tmp_path


def test_mnist_is_read_from_cache(openml: Path, timeouts: list[float | None]) -> None:
    images, held_out_images, labels, held_out_labels = digits.load_data("mnist", str(openml))
    assert (images.shape, held_out_images.shape) == ((160, 784), (40, 784))
    assert (images.min(), images.max()) == (0, 1)
    assert labels.dtype.kind == held_out_labels.dtype.kind == "i"
    assert set(labels) == set(range(10))
    assert not timeouts


@pytest.mark.slow
def test_mnist_training_reaches_accuracy(openml: Path, timeouts: list[float | None], capsys: pytest.CaptureFixture[str]) -> None:
    assert mnist.main(["--data", "mnist", "--data-home", str(openml), "--iterations", "400"]) == 0
    assert printed_accuracy(capsys) >= 85
    cnn = ["--model", "cnn", "--iterations", "60", "--plot", "p.png"]
    assert mnist.main(["--data", "mnist", "--data-home", str(openml), *cnn]) == 0
    assert printed_accuracy(capsys) >= 70
    assert not timeouts


def test_mnist_has_its_own_settings(openml: Path, trainings: list[training.Settings], capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--data", "mnist", "--data-home", str(openml), "--graph", "g.dot"]
    assert mnist.main(home) == 0
    assert mnist.main([*home, "--iterations", "3", "--rate", "0.5"]) == 0
    assert [(t.iterations, t.batch_size, t.rate) for t in trainings] == [(20_000, 32, 0.1), (3, 32, 0.5)]
    with pytest.raises(SystemExit) as stopped:
        mnist.main([*home, "--batch-size", "161"])
    assert stopped.value.code == 2
    assert "argument --batch-size: must be at most 160" in capsys.readouterr().err.splitlines()[-1]


def leave_nothing(cache: Path) -> None:
    for path in cache.rglob("*.gz"):
        path.unlink()


def leave_half(cache: Path) -> None:
    for name in ["554.gz", "mnist_784.arff.gz"]:
        for path in cache.rglob(name):
            path.unlink()


def corrupt(cache: Path) -> None:
    (path,) = cache.rglob("mnist_784.arff.gz")
    path.write_bytes(gzip.compress(b"something else"))


@pytest.mark.parametrize("damage", [leave_nothing, leave_half, corrupt])
def test_mnist_without_network_prints_one_line(
    damage: Any,
    openml: Path,
    timeouts: list[float | None],
    current_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(openml)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with pytest.raises(SystemExit) as stopped:
        mnist.main(["--data", "mnist", "--data-home", str(openml)])
    assert stopped.value.code == 1
    output = capsys.readouterr()
    assert not output.out
    (line,) = output.err.splitlines()
    assert "cannot load mnist" in line
    assert "Temporary failure in name resolution" in line
    assert "--data digits" in line
    assert not list(current_folder.iterdir())
    assert timeouts
    assert set(timeouts) == {10}
    assert socket.getdefaulttimeout() is None
    assert sum(slept) <= (0.2 if damage is leave_nothing else 5)
