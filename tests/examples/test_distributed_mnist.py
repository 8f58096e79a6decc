"""The example that trains on several machines: results equal those of one process bit for bit, also if a machine is killed."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import distributed_mnist
import numpy as np
import pytest
from digits import load_data

from autodiff.distributed import DataParallel
from tests.support.clusters import threads_of

SCRIPT = Path(__file__).parents[2] / "examples" / "distributed_mnist.py"


@pytest.mark.slow
def test_distributed_training_has_bits_of_one_process(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--plot", str(tmp_path / "log.png")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    match = re.fullmatch(r"Accuracy: (\d\d\.\d\d)%\nMachines lost: 1\nThe same bits as in one process\n", run.stdout)
    assert match, run.stdout
    assert float(match[1]) > 93
    assert "100/100" in run.stderr
    assert "Traceback" not in run.stderr
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")


def test_distributed_training_on_threads_has_bits_of_one_process() -> None:
    images, _, labels, _ = load_data("digits")
    options = argparse.Namespace(iterations=3, batch_size=64, seed=0)
    with threads_of(2) as client, DataParallel(distributed_mnist.loss, client) as mean:
        there = distributed_mnist.train(mean, images, labels, options, lambda step: None)
    here = distributed_mnist.train(DataParallel(distributed_mnist.loss), images, labels, options, lambda step: None)
    start = distributed_mnist.dense_parameters(64, np.random.default_rng(0))
    for name, value in here.items():
        assert value.tobytes() == there[name].tobytes()
        assert not np.array_equal(value, start[name].value)


@pytest.mark.parametrize("options", [["--machines", "0"], ["--batch-size", "5000"], ["--seed", "-1"], ["--plot", "x.txt"]])
def test_distributed_training_bad_options_exit(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        distributed_mnist.main(options)
    assert f"argument {options[0]}" in capsys.readouterr().err
