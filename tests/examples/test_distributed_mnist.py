"""The example that trains on several machines, of which one is killed on the way."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import distributed_mnist
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "distributed_mnist.py"


@pytest.mark.slow
def test_it_ends_with_the_bits_of_one_process(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--plot", str(tmp_path / "log.png")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    found = re.fullmatch(r"Accuracy: (\d\d\.\d\d)%\nMachines lost: 1\nThe same bits as in one process\n", run.stdout)
    assert found, run.stdout
    assert float(found[1]) > 93
    assert "100/100" in run.stderr
    assert "Traceback" not in run.stderr
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["--machines", "0"], ["--batch-size", "5000"], ["--seed", "-1"], ["--plot", "x.txt"]])
def test_options_that_are_of_no_use(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        distributed_mnist.main(options)
    assert f"argument {options[0]}" in capsys.readouterr().err
