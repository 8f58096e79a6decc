"""The example that learns to read digits: what it reaches, prints and draws, its options, and MNIST without a network."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_digits

import compgraph as cg

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "mnist.py"
SVG = "{http://www.w3.org/2000/svg}"
ACCURACY = re.compile(r"Accuracy: (\d{1,3}\.\d\d)%\n")


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mnist_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mnist = load_example()


@pytest.fixture(autouse=True)
def current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def timeouts(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """No name of a server is found; the timeouts that were set when one was looked for."""
    seen: list[float | None] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        seen.append(socket.getdefaulttimeout())
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return seen


def printed_accuracy(capsys: pytest.CaptureFixture[str]) -> float:
    """The accuracy printed, which is all that may be on stdout."""
    output = capsys.readouterr().out
    found = ACCURACY.fullmatch(output)
    assert found, output
    return float(found[1])


def texts(svg: bytes) -> set[str | None]:
    root = ElementTree.fromstring(svg)
    assert root.tag == SVG + "svg"
    return {element.text for element in root.iter(SVG + "text")}


# ------------------------------------------------------------------------------------- what it reaches


@pytest.mark.parametrize("seed", range(5))
def test_default_settings_reach_97_percent(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert mnist.main(["--seed", str(seed)]) == 0
    assert printed_accuracy(capsys) >= 97


def test_a_script_without_a_renderer_on_the_path(tmp_path: Path, current_folder: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    environment = {**os.environ, "PATH": str(nothing), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(SCRIPT), "--iterations", "20"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ACCURACY.fullmatch(done.stdout)
    assert "20/20" in done.stderr
    assert "w1" in texts((current_folder / "mnist-graph.svg").read_bytes())


def test_the_held_out_part_is_a_fifth_that_no_seed_changes() -> None:
    images, held_out_images, labels, held_out_labels = mnist.load_data("digits")
    assert images.shape == (1437, 64)
    assert held_out_images.shape == (360, 64)
    assert (len(labels), len(held_out_labels)) == (1437, 360)
    assert (images.min(), images.max()) == (0, 1)
    assert held_out_labels[:5].tolist() == [6, 9, 3, 7, 2]


def test_accuracy_counts_the_images_whose_highest_logit_is_right() -> None:
    parameters = mnist.make_parameters(64, np.random.default_rng(0))
    images, *_ = mnist.load_data("digits")
    w1, b1, w2, b2 = (p.value for p in parameters)
    guesses = (np.maximum(images @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)
    assert mnist.accuracy(parameters, images, guesses) == 1
    guesses[:100] = (guesses[:100] + 1) % 10
    assert mnist.accuracy(parameters, images, guesses) == pytest.approx(1 - 100 / len(images))


def test_accuracy_makes_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = mnist.make_parameters(64, np.random.default_rng(0))
    network, kinds = mnist.network, []

    def spy(*args: Any) -> Any:
        logits = network(*args)
        kinds.append(type(logits))
        return logits

    monkeypatch.setattr(mnist, "network", spy)
    mnist.accuracy(parameters, np.ones((3, 64)), np.zeros(3, int))
    spy(np.ones((3, 64)), parameters)
    assert kinds == [np.ndarray, cg.OperationalNode]


# ----------------------------------------------------------------------------------------- how it learns


def test_one_step_is_that_of_gradient_descent_by_hand() -> None:
    rng = np.random.default_rng(1)
    images, labels = rng.random((4, 64)), np.array([3, 1, 4, 1])
    parameters = mnist.make_parameters(64, rng)
    w1, b1, w2, b2 = (p.value.copy() for p in parameters)
    mnist.train(parameters, images, labels, 1, 4, 0.5, rng)

    hidden = np.maximum(images @ w1 + b1, 0)
    raised = np.exp(hidden @ w2 + b2)
    d_logits = (raised / raised.sum(axis=1, keepdims=True) - np.eye(10)[labels]) / 4
    d_hidden = (d_logits @ w2.T) * (hidden > 0)
    steps = [images.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_logits, d_logits.sum(axis=0)]
    for parameter, before, step in zip(parameters, [w1, b1, w2, b2], steps, strict=True):
        assert np.abs(step).max() > 1e-3
        np.testing.assert_allclose(parameter.value, before - 0.5 * step, rtol=1e-12, atol=1e-14)


def test_every_epoch_takes_each_row_at_most_once_in_a_new_order() -> None:
    rows = mnist.batches(10, 3, np.random.default_rng(0))
    first, second = (np.concatenate([next(rows) for _ in range(3)]).tolist() for _ in range(2))
    assert len(set(first)) == len(set(second)) == 9
    assert set(first + second) <= set(range(10))
    assert first != second


def test_the_seed_decides_everything() -> None:
    def trained(seed: int) -> list[Any]:
        images, _, labels, _ = mnist.load_data("digits")
        rng = np.random.default_rng(seed)
        parameters = mnist.make_parameters(64, rng)
        mnist.train(parameters, images, labels, 60, 32, 0.5, rng)
        return [p.value for p in parameters]

    for first, again, other in zip(trained(3), trained(3), trained(4), strict=True):
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_the_bar_shows_the_average_loss_of_the_last_1000_iterations(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    losses: list[float] = []
    cross_entropy = cg.softmax_cross_entropy

    def spy(*args: Any) -> Any:
        loss = cross_entropy(*args)
        losses.append(float(loss))
        return loss

    rng = np.random.default_rng(0)
    monkeypatch.setattr(mnist.cg, "softmax_cross_entropy", spy)
    mnist.train(mnist.make_parameters(5, rng), rng.random((40, 5)), rng.integers(10, size=40), 1250, 8, 0.1, rng)
    shown = re.findall(r"1250/1250 .*loss=([\d.]+)", capsys.readouterr().err)
    assert len(losses) == 1250
    assert shown[-1] == f"{np.mean(losses[250:]):.4f}"
    assert shown[-1] != f"{np.mean(losses):.4f}"


# ------------------------------------------------------------------------------------------- the picture


def test_the_picture_shows_the_loss_of_one_batch_by_names(current_folder: Path) -> None:
    assert mnist.main(["--iterations", "1"]) == 0
    assert [path.name for path in current_folder.iterdir()] == ["mnist-graph.svg"]
    shown = texts((current_folder / "mnist-graph.svg").read_bytes())
    assert {"x", "w1", "b1", "w2", "b2", "logits", "labels", "loss"} <= shown


@pytest.mark.parametrize(
    ("name", "start"), [("g.dot", b"digraph"), ("g.png", b"\x89PNG"), ("g.PDF", b"%PDF"), ("g.svg", b"<?xml")]
)
def test_the_picture_goes_where_it_is_wanted(name: str, start: bytes, tmp_path: Path, current_folder: Path) -> None:
    assert mnist.main(["--iterations", "1", "--graph", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)
    assert not list(current_folder.iterdir())


def test_an_older_picture_is_replaced_but_not_by_an_error(tmp_path: Path) -> None:
    picture = tmp_path / "g.svg"
    picture.write_text("older")
    with pytest.raises(SystemExit):
        mnist.main(["--batch-size", "1438", "--graph", str(picture)])
    assert picture.read_text() == "older"
    assert mnist.main(["--iterations", "1", "--graph", str(picture)]) == 0
    assert "w1" in texts(picture.read_bytes())


# ------------------------------------------------------------------------------------------- the options


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, float, int]]:
    """Iterations, batch size, rate, and a number that tells the seed, of each training; none takes place."""
    seen = []

    def spy(parameters: Any, images: Any, labels: Any, iterations: int, size: int, rate: float, rng: np.random.Generator) -> None:
        seen.append((iterations, size, rate, int(rng.integers(10**6))))

    monkeypatch.setattr(mnist, "train", spy)
    return seen


def test_options_reach_the_training(trainings: list[tuple[int, int, float, int]]) -> None:
    for options in ["", "--iterations 7", "--batch-size 1437", "--rate 0.25", "--seed 9"]:
        assert mnist.main([*options.split(), "--graph", "g.dot"]) == 0
    default, *others = trainings
    assert default[:3] == (5000, 32, 0.8)
    assert others[0] == (7, *default[1:])
    assert others[1] == (default[0], 1437, *default[2:])
    assert others[2] == (*default[:2], 0.25, default[3])
    assert others[3][:3] == default[:3]
    assert others[3][3] != default[3]


def test_no_iterations_leave_the_weights_as_they_were_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert mnist.main(["--iterations", "0", "--graph", "g.dot"]) == 0
    untrained = printed_accuracy(capsys)
    assert mnist.main(["--iterations", "20", "--rate", "1e-15", "--graph", "g.dot"]) == 0
    assert printed_accuracy(capsys) == untrained < 30


def test_help_names_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        mnist.main(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for option in ["--data", "--data-home", "--iterations", "--batch-size", "--rate", "--seed", "--graph"]:
        assert f" {option} " in shown
    assert "default: 5000 for digits, 20000 for mnist" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
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
        (["--graph", "graph"], "argument --graph: the name must end in one of .svg, .png, .pdf, .dot, not 'graph'"),
        (["--graph", "graph.gif"], "argument --graph: the name must end in one of"),
        (["--graph", "missing/graph.svg"], "argument --graph: cannot write 'missing/graph.svg': No such file"),
        (["--graph", "folder.svg"], "argument --graph: cannot write 'folder.svg': Is a directory"),
        (["--graph", "g" * 300 + ".svg"], "File name too long"),
    ],
)
def test_wrong_options_end_it_before_training(
    options: list[str],
    message: str,
    trainings: list[tuple[int, int, float, int]],
    current_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (current_folder / "folder.svg").mkdir()
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
    """scikit-learn's cache with a data set of the form of MNIST: 200 of the small digits, enlarged to 28 x 28 pixels."""
    digits = load_digits()
    images = np.pad(np.kron(digits.images[:200], np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))).reshape(200, 784)
    rows = np.column_stack([images * 255 // 16, digits.target[:200]]).astype(int)
    pixels = [f"pixel{i}" for i in range(1, 785)]
    lines = [
        "@RELATION mnist_784",
        *(f"@ATTRIBUTE {name} REAL" for name in pixels),
        "@ATTRIBUTE class {0,1,2,3,4,5,6,7,8,9}",
        "@DATA",
        *(",".join(map(str, row)) for row in rows.tolist()),
    ]
    arff = "\n".join(lines).encode()

    def feature(index: int, name: str, kind: str, is_target: str) -> dict[str, str]:
        flags = {"is_target": is_target, "is_ignore": "false", "is_row_identifier": "false"}
        return {"index": str(index), "name": name, "data_type": kind, "number_of_missing_values": "0", **flags}

    features = [feature(i, name, "numeric", "false") for i, name in enumerate(pixels)]
    features.append(feature(784, "class", "nominal", "true"))
    description = {
        "id": "554",
        "name": "mnist_784",
        "version": "1",
        "description": "Enlarged digits",
        "format": "ARFF",
        "status": "active",
        "url": "https://api.openml.org/data/v1/download/52667/mnist_784.arff",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }
    answers: dict[str, Any] = {
        "data/list/data_name/mnist_784/limit/2/data_version/1": {"data": {"dataset": [{"did": 554, "version": 1}]}},
        "data/554": {"data_set_description": description},
        "data/features/554": {"data_features": {"feature": features}},
        "data/qualities/554": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "200.0"}]}},
    }
    files = {f"api/v1/json/{path}.gz": json.dumps(answer).encode() for path, answer in answers.items()}
    files["data/v1/download/52667/mnist_784.arff.gz"] = arff
    for name, content in files.items():
        path = tmp_path / "openml" / "openml.org" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content))
    return tmp_path


def test_mnist_is_read_from_the_cache_and_learnt(
    openml: Path, timeouts: list[float | None], capsys: pytest.CaptureFixture[str]
) -> None:
    images, held_out_images, labels, held_out_labels = mnist.load_data("mnist", str(openml))
    assert (images.shape, held_out_images.shape) == ((160, 784), (40, 784))
    assert (images.min(), images.max()) == (0, 1)
    assert labels.dtype.kind == held_out_labels.dtype.kind == "i"
    assert set(labels) == set(range(10))
    assert mnist.main(["--data", "mnist", "--data-home", str(openml), "--iterations", "400"]) == 0
    assert printed_accuracy(capsys) >= 85
    assert not timeouts


def test_mnist_has_settings_of_its_own(
    openml: Path, trainings: list[tuple[int, int, float, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    home = ["--data", "mnist", "--data-home", str(openml), "--graph", "g.dot"]
    assert mnist.main(home) == 0
    assert mnist.main([*home, "--iterations", "3", "--rate", "0.5"]) == 0
    assert [training[:3] for training in trainings] == [(20_000, 32, 0.1), (3, 32, 0.5)]
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
def test_without_a_network_one_line_says_so(
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
    assert mnist.main(["--data", "mnist", "--data-home", str(openml)]) == 1
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
