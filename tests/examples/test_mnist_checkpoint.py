"""Interrupted training resumes from its checkpoint, and ends with the same bits as an uninterrupted run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mnist
import numpy as np
import pytest
import training

from tests.support.failures import Failures
from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-W", "error", str(ROOT / "examples" / "mnist.py"), "--graph", "g.dot"]


def contents(file: Path) -> dict[str, Any]:
    with np.load(file) as stored:
        return dict(stored)


def assert_same_bits(file: Path, other: Path) -> None:
    one, two = contents(file), contents(other)
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert (value.dtype, value.shape, value.tobytes()) == (two[name].dtype, two[name].shape, two[name].tobytes()), name


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *options], cwd=folder, env=environment, **pipes)


# --------------------------------------------------------------------------------------------- processes


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("--model cnn --iterations 400", marks=pytest.mark.slow),
        pytest.param("--optimizer adam --iterations 3000", marks=pytest.mark.exhaustive),
    ],
)
def test_checkpoint_resumes_killed_process_with_equal_bits(options: str, tmp_path: Path) -> None:
    command_options = [*options.split(), "--checkpoint", "c.npz"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kills = 0
    for _ in range(2):  # once in the middle, and once more after it resumed
        before = len(contents(killed / "c.npz")["losses"]) if kills else 0
        process = start(killed, *command_options)
        while process.poll() is None:
            if (killed / "c.npz").exists() and len(contents(killed / "c.npz")["losses"]) > before:
                process.kill()
                kills += 1
                break
            time.sleep(0.01)
        process.communicate()
        assert process.returncode != 0
    count = len(contents(killed / "c.npz")["losses"])
    assert 0 < count < int(options.split()[-1])

    resumed, uninterrupted = start(killed, *command_options), start(whole, *command_options)
    output, errors = resumed.communicate()
    assert (resumed.returncode, uninterrupted.communicate()[0]) == (0, output)
    assert f"Continuing from c.npz, after {count} iterations" in errors
    assert_same_bits(killed / "c.npz", whole / "c.npz")
    assert (killed / "g.dot").read_text() == (whole / "g.dot").read_text()
    assert sorted(path.name for path in killed.iterdir()) in (["c.npz", "g.dot"], ["c.npz", "c.npz.part", "g.dot"])


# ----------------------------------------------------------------------------------------- in one process


@pytest.fixture(autouse=True)
def current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def interrupt_after(steps: int, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """Start a training that fails after so many steps."""
    step, countdown = training.Training.step, iter(range(steps))

    def failing(self: training.Training) -> None:
        if next(countdown, None) is None:
            raise KeyboardInterrupt
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(training.Training, "step", failing)
        with pytest.raises(KeyboardInterrupt):
            mnist.main([*options])


BEFORE, AFTER = 50, 150  # steps, where the first checkpoint is written after 100
RUNS = [
    (name, schedule, steps)
    for name in training.OPTIMIZERS
    for schedule in ("constant", "cosine")
    for steps in (BEFORE, AFTER)
    if (name, schedule) != ("stepcontroller", "cosine")  # which is an error
]
SAMPLE = [
    (name, "cosine" if k % 2 else "constant", AFTER) for k, name in enumerate(training.OPTIMIZERS) if name != "stepcontroller"
]
SAMPLE += [("stepcontroller", "constant", AFTER), ("sgd", "cosine", BEFORE)]


@for_each(("optimizer", "schedule", "steps"), SAMPLE, rest=[run for run in RUNS if run not in SAMPLE])
def test_checkpoint_resumed_training_has_equal_bits(
    optimizer: str, schedule: str, steps: int, current_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (optimizer, schedule, steps) in RUNS
    options = ["--optimizer", optimizer, "--schedule", schedule, "--iterations", "170", "--shift", "0.3", "--graph", "g.dot"]
    stopped, whole = (Path(f"{kind} {optimizer} {schedule} {steps}.npz") for kind in ("stopped", "whole"))
    interrupt_after(steps, monkeypatch, *options, "--checkpoint", str(stopped))
    assert stopped.exists() == (steps == AFTER)
    for file in (stopped, whole):
        assert mnist.main([*options, "--checkpoint", str(file)]) == 0
    assert_same_bits(stopped, whole)


def test_checkpoint_does_not_change_training(capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = np.random.default_rng(0).random((64, 64)), np.arange(64) % 10
    usual = training.Settings("digits", "dense", "adam", "cosine", 0.01, 120, 16, 0.5, 0)
    plain, written = (training.Training(usual, images, labels) for _ in range(2))
    plain.run()
    written.run(Path("c.npz"), every=7)
    for name, parameter in plain.parameters.items():
        assert np.array_equal(parameter.value, written.parameters[name].value)
    assert plain.losses == written.losses


def test_checkpoint_of_finished_training_is_not_continued(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--iterations", "120", "--checkpoint", "c.npz", "--graph", "g.dot"]
    assert mnist.main(options) == 0
    first, before = capsys.readouterr().out, contents(Path("c.npz"))
    monkeypatch.delattr(training.Training, "step")
    assert mnist.main(options) == 0
    assert capsys.readouterr().out == first
    assert before.keys() == contents(Path("c.npz")).keys()


def test_checkpoint_write_failure_keeps_earlier_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    training.write_checkpoint(Path("c.npz"), {"made_with": "one"})

    def full(file: Any, **state: Any) -> None:
        file.write(b"half of it")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(training.np, "savez", full)
        with pytest.raises(OSError, match="No space"):
            training.write_checkpoint(Path("c.npz"), {"made_with": "two"})
    assert training.read_checkpoint(Path("c.npz")) == {"made_with": "one"}
    training.write_checkpoint(Path("c.npz"), {"made_with": "three"})
    assert training.read_checkpoint(Path("c.npz")) == {"made_with": "three"}
    assert [path.name for path in Path().iterdir()] == ["c.npz"]


# ------------------------------------------------------------------------------------------------ errors


OTHER_SETTINGS = [
    ("--rate", "0.5", "rate 0.8, not 0.5"),
    ("--iterations", "3", "iterations 2, not 3"),
    ("--model", "cnn", "model dense, not cnn"),
    ("--optimizer", "adam", "optimizer sgd, not adam"),
    ("--schedule", "cosine", "schedule constant, not cosine"),
    ("--batch-size", "16", "batch size 32, not 16"),
    ("--shift", "0.5", "shift 0.0, not 0.5"),
    ("--seed", "1", "seed 0, not 1"),
]


def test_checkpoint_of_other_settings_raises(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--iterations", "2", "--checkpoint", "c.npz", "--graph", "g.dot"]
    assert mnist.main(options) == 0
    before = Path("c.npz").read_bytes()
    with Failures("other settings") as failures:
        for option, value, words in OTHER_SETTINGS:
            with failures.case(f"{option} {value}"):
                with pytest.raises(SystemExit) as stopped:
                    mnist.main([*options, option, value])
                assert stopped.value.code == 2
                message = capsys.readouterr().err.splitlines()[-1]
                assert "argument --checkpoint: cannot continue from 'c.npz': it was made with" in message
                assert words in message or option in ("--model", "--optimizer")
                assert "delete it to begin anew" in message
                assert Path("c.npz").read_bytes() == before


def test_checkpoint_of_other_images_raises() -> None:
    images, labels = np.random.default_rng(0).random((64, 64)), np.arange(64) % 10
    usual = training.Settings("mnist", "dense", "sgd", "constant", 0.1, 3, 16, 0.0, 0)
    state = training.Training(usual, images, labels).state()
    training.Training(usual, np.asfortranarray(images), labels).load_state(state)
    for other, names in [(images[::-1], labels), (images, labels[::-1])]:
        with pytest.raises(ValueError, match="checksum of the data"):
            training.Training(usual, other, names).load_state(state)


def an_array(file: Path) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.zeros(3))


def other_arrays(file: Path) -> None:
    with file.open("wb") as stream:
        np.savez(stream, x=np.zeros(3))


def half(file: Path) -> None:
    training.write_checkpoint(file, {"made_with": np.zeros(1000)})
    file.write_bytes(file.read_bytes()[:3000])


DAMAGES: dict[str, Any] = {
    "empty": Path.touch,
    "text": lambda file: file.write_text("text"),
    "array": an_array,
    "other arrays": other_arrays,
    "half": half,
    "folder": Path.mkdir,
}


def test_checkpoint_invalid_file_raises_and_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with Failures("files") as failures:
        for name, damage in DAMAGES.items():
            with failures.case(name):
                file = Path(f"{name}.npz")
                damage(file)
                before = None if file.is_dir() else file.read_bytes()
                with pytest.raises(SystemExit) as stopped:
                    mnist.main(["--iterations", "2", "--checkpoint", str(file), "--graph", "g.dot"])
                assert stopped.value.code == 2
                message = capsys.readouterr().err.splitlines()[-1]
                assert f"argument --checkpoint: cannot continue from '{file}': " in message
                assert before is None or file.read_bytes() == before
