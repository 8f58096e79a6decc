"""Log records of compilation: logger ``compgraph.compiled``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

pytest.importorskip("llvmlite")

X = np.array([1.0, -2.0, 0.5])
LOGGER = "compgraph.compiled"


def affine(x: Any) -> Any:
    return x * 2 + 1


def noisy(x: Any) -> Any:
    return x + np.random.default_rng().normal()


def records(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Messages of one level, after checking that the package logged them."""
    assert all(record.name.startswith(f"{LOGGER}.") for record in caplog.records)
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_logging_compiled_program(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        cg.jit(affine, cache=False).compile(X)
    (message,) = records(caplog, logging.INFO)
    assert message.startswith("compiled affine(float64[3]): 3 operations, traced in ")
    assert message.endswith(" s")


def test_logging_program_of_compiler_thread(caplog: pytest.LogCaptureFixture) -> None:
    f = cg.jit(affine, cache=False)
    with caplog.at_level(logging.INFO, LOGGER):
        for _ in range(3):
            f(X)
        assert f.wait()
    assert len(records(caplog, logging.INFO)) == 1
    assert caplog.records[0].threadName == "compgraph compiler"


def test_logging_rejection(caplog: pytest.LogCaptureFixture) -> None:
    f = cg.jit(noisy)
    with caplog.at_level(logging.INFO, LOGGER):
        f.compile(X)
        f(X)
    (message,) = records(caplog, logging.INFO)
    assert message.startswith("noisy(float64[3]) runs as NumPy: it draws random numbers")


def test_logging_reason_without_signature_once(caplog: pytest.LogCaptureFixture) -> None:
    f = cg.jit(lambda x, n: x * n)
    with caplog.at_level(logging.INFO, LOGGER):
        for n in range(20):
            f(X, n)
    (message,) = records(caplog, logging.INFO)
    assert "runs as NumPy: static arguments had more than 16 values" in message


def test_logging_disk_cache(caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("COMPGRAPH_CACHE", str(folder))
    with caplog.at_level(logging.DEBUG, LOGGER):
        cg.jit(affine).compile(X)
        cg.jit(affine).compile(X)
    missed, hit = records(caplog, logging.DEBUG)
    assert missed.startswith("object code was not in the cache; stored ")
    assert hit.endswith(f" bytes of object code from the cache in {folder}")
    caplog.clear()
    monkeypatch.setenv("COMPGRAPH_CACHE", "/proc/compgraph")
    with caplog.at_level(logging.DEBUG, LOGGER):
        cg.jit(affine).compile(X)
    assert "could not store" in records(caplog, logging.DEBUG)[0]


def test_logging_is_silent_for_operations_and_matching_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    f = cg.jit(affine, cache=False).compile(X)

    def fail(*args: Any) -> Any:
        raise AssertionError("a logger was called")

    monkeypatch.setattr(logging.Logger, "isEnabledFor", fail)
    np.testing.assert_array_equal(f(X), affine(X))
    x = cg.variable(X)
    ad.reverse.gradient(np.sum(f(x) * x))
    ad.grad(lambda x: np.sum(x * x))(X)
    with pytest.raises(AssertionError, match="a logger was called"):
        cg.jit(affine, cache=False).compile(X)


def test_logging_configures_no_handler() -> None:
    for name in ("compgraph", LOGGER, f"{LOGGER}.specializations", "autodiff", "autodiff.distributed"):
        assert logging.getLogger(name).handlers == []
        assert logging.getLogger(name).level == logging.NOTSET
