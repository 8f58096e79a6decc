"""The benchmark script computes the stated functions, and prints its table. Nothing here depends on run times."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from autodiff.reverse import check_gradient
from tests.support.garbage import freeze_existing_objects

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def compare() -> Iterator[Any]:
    """The script as a module; the environment it sets for itself is restored."""
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("compare")
    gc.unfreeze()  # objects that the import has frozen
    freeze_existing_objects()


@pytest.fixture(scope="module")
def tasks(compare: Any) -> list[Any]:
    """The tasks, small."""
    make = importlib.import_module("tasks")
    return [
        make.chain(1),
        make.chain(5),
        make.network(fused=False, sizes=(6, 5, 3), batch=4),
        make.network(fused=True, sizes=(6, 5, 3), batch=4),
        make.layers(9, checkpointed=False, size=5),
        make.layers(9, checkpointed=True, size=5),
        make.loop(7),
        make.loop(9, peers=("compgraph",)),
    ]


@pytest.fixture(scope="module")
def further(compare: Any) -> list[Any]:
    """The tasks that a compiler gains by, small."""
    make = importlib.import_module("loops")
    return [make.recurrence(6), make.heat(7, 4), make.pairs(4), importlib.import_module("tasks").loop(7)]


@pytest.fixture(scope="module")
def peers(compare: Any) -> dict[str, Any]:
    """The peers that are always there."""
    available: dict[str, Any] = compare.available(["numpy", "compgraph"])[0]
    return available


def test_benchmark_reference_gradients_match_differences(tasks: list[Any], further: list[Any]) -> None:
    """The reference gradients of the tasks agree with central differences."""
    for task in [*tasks, *further]:
        _, gradients = task.by_hand(*task.parameters, *task.data)
        assert check_gradient(lambda *p, t=task: t.by_hand(*p, *t.data)[0], task.parameters, gradients), task.name


def test_benchmark_values_and_gradients_match_numpy(
    compare: Any, tasks: list[Any], further: list[Any], peers: dict[str, Any]
) -> None:
    """Values and gradients of this package equal those by hand in NumPy."""
    for task in [*tasks, *further]:
        compare.check(task, "compgraph", peers["compgraph"], peers["numpy"])


def test_benchmark_compiled_values_match_numpy(compare: Any, tasks: list[Any], further: list[Any], peers: dict[str, Any]) -> None:
    """The same compiled, with training steps, second derivatives, and two threads."""
    pytest.importorskip("llvmlite")
    make, compiled = importlib.import_module("tasks"), compare.available(["jit"])[0]["jit"]
    convolution = make.convolution(batch=2, channels=2, results=2, side=4)
    for task in [*tasks, *further, convolution, make.rosenbrock(6, "hessian"), make.chain(5, threads=2)]:
        compare.check(task, "jit", compiled, peers["numpy"])


def test_benchmark_task_names_are_unique(compare: Any) -> None:
    """Tasks with threads are only for peers whose number of threads can be set."""
    tasks = compare.all_tasks()
    assert len({task.name for task in tasks}) == len(tasks)
    assert {name for task in tasks if task.threads > 1 for name in task.peers} == {"jit", "torch"}


def test_benchmark_measures_compilation(compare: Any, peers: dict[str, Any]) -> None:
    """The seconds of compiling, and of how many operations."""
    pytest.importorskip("llvmlite")
    compiling = importlib.import_module("compiling")
    function = compiling.irregular(peers["numpy"], operations=10)
    seconds, operations = compiling.by_jit(function, np.ones(3))
    assert seconds > 0
    assert operations > 10


@pytest.mark.parametrize("operator", ["gradient", "hvp", "hessian", "sparse hessian"])
def test_benchmark_other_derivatives_match_references(compare: Any, peers: dict[str, Any], operator: str) -> None:
    """Derivatives of the package equal those by hand, which equal differences."""
    make = importlib.import_module("tasks")
    chain = [make.chain_derivative(5, operator, ("numpy", "compgraph"))] if operator in ("gradient", "hvp") else []
    for task in (make.rosenbrock(6, operator), make.vector_map(5), *chain):
        compare.check(task, "compgraph", peers["compgraph"], peers["numpy"])
    task = make.rosenbrock(6, "gradient")
    (x,) = task.parameters
    assert check_gradient(task.function(peers["numpy"]), [x], [task.by_hand(x)[0]])


def test_benchmark_forward_mode_matches_reference(compare: Any, peers: dict[str, Any]) -> None:
    """The tangent of the chain is that by hand, and the value alone is that of the chain."""
    make = importlib.import_module("tasks")
    compare.check(make.chain_derivative(5, "jvp", ()), "compgraph", peers["compgraph"], peers["numpy"])
    (x,) = make.chain(5).parameters
    assert make.chain_derivative(5, "forward", ()).by_hand(x)[0] == make.chain(5).by_hand(x)[0]


def test_benchmark_steps_update_parameters(tasks: list[Any], peers: dict[str, Any]) -> None:
    """A second call starts from the parameters that the first has changed."""
    for name, peer in peers.items():
        run = tasks[2].start(name, peer)
        assert float(run()[0]) > float(run()[0])


@pytest.mark.parametrize(("spoilt", "message"), [("gradient", "gradient 1 .* at first"), ("rate", "value .* after one step")])
def test_benchmark_wrong_peer_raises(compare: Any, tasks: list[Any], peers: dict[str, Any], spoilt: str, message: str) -> None:
    """A peer with a wrong gradient, or that takes a wrong step, is an error."""

    def prepare(function: Any, parameters: Any, data: Any, rate: float) -> Any:
        def wrong(*args: Any) -> Any:
            value, gradients = function(*args)
            gradients[1] = gradients[1] * 1.0001
            return value, gradients

        prepare = peers["numpy"].prepare
        return prepare(wrong, parameters, data, rate) if spoilt == "gradient" else prepare(function, parameters, data, 2 * rate)

    bad = dataclasses.replace(peers["numpy"], prepare=prepare)
    with pytest.raises(ValueError, match=message):
        compare.check(tasks[2], "numpy", bad, peers["numpy"])


def test_benchmark_table_has_row_per_task(compare: Any, tasks: list[Any], peers: dict[str, Any]) -> None:
    """Every task has a row, every measured target a verdict, and omissions are named."""
    raced = [*tasks[2:4], *tasks[6:]]  # networks and loops
    titles = {task.name: task.title for task in raced}
    times = compare.race(raced, peers, rounds=2, shortest=0.0)
    assert all(np.isfinite(list(row.values())).all() for row in times.values())
    assert set(times["loop-7"]) == {"numpy", "compgraph"}
    assert set(times["loop-9"]) == {"compgraph"}
    header, *rows = compare.time_table(times, titles)
    assert header == ["task", "NumPy", "compgraph", "compgraph / NumPy"]
    assert [row[0] for row in rows] == list(titles.values())
    assert rows[-1][1] == "-"
    targets = compare.target_table(times, titles)
    assert [row[-1] in {"yes", "no"} for row in targets[1:]] == [True] * 2  # the two networks, against NumPy
    text = compare.report(times, titles, ["jax"], rounds=2, markdown=True)
    assert text.count("\n|") == len(rows) + len(targets) + 3
    assert "left out: JAX" in text


def test_benchmark_targets_compare_peers_or_tasks(compare: Any) -> None:
    """A target compares with a peer on the same task, or with the package itself on another."""
    times = {
        "loop-2000": {"compgraph": 10.0, "torch": 20.0},
        "loop-4000": {"compgraph": 20.0},
        "jvp-chain-1000000": {"compgraph": 6.0, "numpy": 5.0},
        "forward-chain-1000000": {"numpy": 2.0},
    }
    titles = {"loop-2000": "two", "loop-4000": "four", "jvp-chain-1000000": "jvp", "forward-chain-1000000": "value"}
    assert compare.target_table(times, titles)[1:] == [
        ["two: compgraph / PyTorch", "0.4", "0.500", "no"],
        ["four: compgraph / itself, two", "2.5", "2.00", "yes"],
        ["jvp: compgraph / NumPy, value", "2.5", "3.00", "no"],
    ]


def test_benchmark_missing_peer_is_omitted(compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that is not installed is left out."""

    def missing() -> None:
        raise ImportError("not here")

    monkeypatch.setitem(compare.PEERS, "torch", (missing, "PyTorch"))
    available, left_out = compare.available(["numpy", "torch"])
    assert (list(available), left_out) == (["numpy"], ["torch"])


def test_benchmark_update_replaces_table_between_markers(compare: Any, tmp_path: Path) -> None:
    """The table is written between the markers of the README, repeatedly."""
    begin, end = compare.MARKERS
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{begin}\n{end}\nafter", encoding="utf-8")
    for table in ("| old |", "| new |"):
        compare.update(table, readme)
    assert readme.read_text(encoding="utf-8") == f"before\n{begin}\n\n| new |\n\n{end}\nafter"
    assert all(compare.README.read_text(encoding="utf-8").count(marker) == 1 for marker in (begin, end))


def test_benchmark_command_line_prints_markdown(compare: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One task between two peers, as Markdown."""
    compare.main(["--only", "chain-1", "--rounds", "1", "--peers", "numpy,compgraph", "--markdown"])
    assert "| chain of 51 operations on 1 |" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["--peers fortran", "--rounds 0", "--only nothing", "--update --peers numpy"])
def test_benchmark_command_line_bad_options_raise(compare: Any, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    """Invalid options raise before anything runs."""
    with pytest.raises(SystemExit):
        compare.main(wrong.split())
    assert "error" in capsys.readouterr().err
