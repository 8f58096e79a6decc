"""The example that separates 0 from 1: its accuracy, output, plots and pictures, and the correctness of its steps."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import logistic_regression as example
import numpy as np
import pytest

import compgraph as cg
from tests.support.failures import Failures
from tests.support.openml_cache import write_cache

SCRIPT = Path(example.__file__)
ROOT = SCRIPT.parents[1]
OUTPUT = re.compile(r"(?:Epoch \d+: loss \d\.\d{4}\n)*Accuracy: (\d{1,3}\.\d\d)% of (\d+)\n")
FILES = ["logistic-regression-graph.svg", "logistic-regression.png"]


@pytest.fixture(autouse=True)
def current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_output(capsys: pytest.CaptureFixture[str]) -> tuple[float, int, list[float]]:
    """The accuracy, of how many, and the losses; nothing else may be on stdout."""
    output = capsys.readouterr().out
    match = OUTPUT.fullmatch(output)
    assert match, output
    return float(match[1]), int(match[2]), [float(loss) for loss in re.findall(r"loss (.*)", output)]


@pytest.mark.slow
def test_script_classifies_all_held_out_digits(current_folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert not process.stderr
    match = OUTPUT.fullmatch(process.stdout)
    assert match
    assert match[1] == "100.00"
    assert process.stdout.count("Epoch") == 10
    assert sorted(path.name for path in current_folder.iterdir()) == FILES
    assert Path("logistic-regression.png").read_bytes().startswith(b"\x89PNG")
    graph = Path("logistic-regression-graph.svg").read_text().replace("&#160;", " ").replace("\u00a0", " ")
    for name in ("images", "labels", "weights", "bias", "logits", "loss", "d loss / d weights"):
        assert f">{name}<" in graph


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(1, 5))])
def test_script_every_seed_reaches_100_percent_in_ten_epochs(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(["--seed", str(seed), "--no-plot", "--graph", "g.dot"]) == 0
    accuracy, count, losses = read_output(capsys)
    assert (accuracy, count, len(losses)) == (100, 61, 10)
    assert losses == sorted(losses, reverse=True)


def test_training_matches_gradient_descent_by_hand() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.random((10, 6)), np.arange(10) % 2
    graph = example.make_graph(6)
    options = argparse.Namespace(rate=0.7, epochs=3, batch_size=4, seed=5)
    losses = example.train(graph, images, labels, options)

    w, b, expected = np.zeros(6), 0.0, []
    rng = np.random.default_rng(5)
    for _ in range(3):
        order = rng.permutation(10)
        for rows in (order[:4], order[4:8]):
            x, y = images[rows], labels[rows]
            p = 1 / (1 + np.exp(-(x @ w + b)))
            expected.append(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
            w, b = w - 0.7 * x.T @ (p - y) / 4, b - 0.7 * np.mean(p - y)
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    np.testing.assert_allclose(graph.weights.value, w, rtol=1e-12)
    np.testing.assert_allclose(graph.bias.value, b, rtol=1e-12)


def test_probabilities_use_current_weights() -> None:
    graph = example.make_graph(3)
    run = cg.Executor(graph.probabilities).run
    assert run({graph.images: np.ones((2, 3))}).tolist() == [0.5, 0.5]
    weights = graph.weights
    weights += 1
    np.testing.assert_allclose(run({graph.images: np.ones((4, 3))}), np.full(4, 1 / (1 + np.exp(-3))))


def test_training_without_epochs_keeps_initial_weights(capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(["--epochs", "0"]) == 0
    accuracy, count, losses = read_output(capsys)
    assert (count, losses) == (61, [])
    assert 40 < accuracy < 60


def test_mnist_is_read_from_the_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cache(tmp_path)
    home = ["--data", "mnist", "--data-home", str(tmp_path)]
    assert example.main([*home, "--batch-size", "8", "--rate", "0.02"]) == 0
    accuracy, count, _ = read_output(capsys)
    assert count < 20
    assert accuracy == 100
    assert Path("logistic-regression.png").exists()


def test_mnist_unavailable_exits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no way")

    monkeypatch.setattr("digits.fetch_openml", refuse)
    with pytest.raises(SystemExit) as stopped:
        example.main(["--data", "mnist", "--data-home", str(tmp_path)])
    assert stopped.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("no way; the default needs no network: --data digits")


def test_plot_without_matplotlib_exits_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], current_folder: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as stopped:
        example.main([])
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert not output.out
    assert output.err.splitlines()[-1].endswith('needs Matplotlib (pip install ".[examples]"); --no-plot does without')
    assert not list(current_folder.iterdir())
    assert example.main(["--no-plot"]) == 0
    assert [path.name for path in current_folder.iterdir()] == ["logistic-regression-graph.svg"]


def test_script_help_names_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        example.main(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for option in ["--data", "--data-home", "--epochs", "--batch-size", "--rate", "--seed", "--graph", "--plot", "--no-plot"]:
        assert f" {option} " in shown


WRONG = [
    (["--epochs", "-1"], "argument --epochs: must not be negative"),
    (["--batch-size", "0"], "argument --batch-size: must be at least 1"),
    (["--batch-size", "300"], "argument --batch-size: must be at most 299"),
    (["--rate", "0"], "argument --rate: must be positive and finite"),
    (["--rate", "nan"], "argument --rate: must be positive and finite"),
    (["--seed", "-1"], "argument --seed: must not be negative"),
    (["--data-home", "."], "argument --data-home: the small digits are not downloaded; it belongs with --data mnist"),
    (
        ["--graph", "graph.gif"],
        "argument --graph: the name must end in one of .svg, .png, .pdf, .dot, .html, not 'graph.gif'",
    ),
    (["--plot", "plot"], "argument --plot: the name must end in one of .png, .svg, .pdf, not 'plot'"),
    (["--plot", "missing/plot.png"], "argument --plot: cannot write 'missing/plot.png': No such file"),
]


def test_script_wrong_options_exit_before_training(current_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Failures("wrong options") as failures:
        for options, message in WRONG:
            with failures.case(" ".join(options)):
                with pytest.raises(SystemExit) as stopped:
                    example.main(options)
                assert stopped.value.code == 2
                output = capsys.readouterr()
                assert message in output.err.splitlines()[-1]
                assert not output.out
                assert not list(current_folder.iterdir())
