"""Graphs pickled by version 0.1.0, before its modules were grouped in packages, load with the same meaning."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradient
from tests.support.failures import Failures


def load_graphs() -> dict[str, Any]:
    """Load the graphs."""
    path = Path(__file__).parent / "data/written_before_rooms.pickle.gz"
    loaded: dict[str, Any] = pickle.loads(gzip.decompress(path.read_bytes()))
    return loaded


def test_old_pickles_of_every_operation_load() -> None:
    graphs = load_graphs()["graphs"]
    assert len(graphs) > 380
    with Failures("old pickles") as failures:
        for name, out, variables, value, cotangents in graphs:
            with failures.case(name):
                assert np.array_equal(out.value, value, equal_nan=True)
                gradients = gradient(out, variables, np.ones(out.shape, out.dtype))
                for variable, expected in zip(variables, cotangents, strict=True):
                    assert expected is not None
                    assert np.allclose(gradients[variable], expected, rtol=1e-12, equal_nan=True)


def test_old_pickles_keep_writes_scopes_and_guards() -> None:
    written = load_graphs()["written"]
    x, loss = written["x"], written["loss"]
    assert loss.value == written["value"]
    assert np.array_equal(gradient(loss)[x], written["gradient"])
    assert written["view"].base is not None
    assert np.shares_memory(written["view"].value, written["buffer"].value)
    assert any("eigen" in node.scope for node in cg.topological_order([loss]) if isinstance(node, cg.Node))
    with pytest.warns(RuntimeWarning, match=r"decisions about the variable 'x'.*which its copy lacks: bool\(\)"):
        cg.Executor(loss)
    assert cg.Executor(written["fed"]).run({written["p"]: np.array([1.0, -1.0])}) == -1
    assert isinstance(written["c"], cg.ConstantNode)
    assert np.array_equal(written["gradients"]["x"], 2 * x.value)
    assert [type(error) for error in written["errors"]] == [cg.LeakError, cg.GuardError]


def test_old_pickles_of_optimizers_continue_with_equal_bits() -> None:
    optimizers = load_graphs()["written"]["optimizers"]
    assert len(optimizers) > 1
    with Failures("optimizers") as failures:
        for name, (blob, after) in optimizers.items():
            with failures.case(name):
                t, optimizer = pickle.loads(blob)
                optimizer.step([2 * t.value])
                assert np.array_equal(t.value, after)
