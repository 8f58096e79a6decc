"""Log records of machines: logger ``autodiff.distributed``. Lost machines are tested in test_lost_machines."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import autodiff.distributed as dist
from autodiff.distributed.cluster import Actor
from autodiff.optimizers import Adam
from tests.support.clusters import threads_of
from tests.support.losses import network, network_parameters
from tests.support.split_parts import network as split_network
from tests.support.split_parts import rows

LOGGER = "autodiff.distributed"
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(101, 20)), RNG.integers(0, 4, 101)


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.startswith(f"{LOGGER}.") and r.levelno == level]


def lose_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Let the next call of a method of an actor raise as for a lost machine."""
    call, pending = Actor.call, [method]

    async def failing(self: Actor, name: str, *args: Any) -> Any:
        if name in pending:
            pending.clear()
            raise ConnectionError("the machine is gone")
        return await call(self, name, *args)

    monkeypatch.setattr(Actor, "call", failing)


def test_data_parallel_logs_shares_and_machines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with threads_of(2) as client, caplog.at_level(logging.DEBUG, LOGGER), dist.DataParallel(network, client) as loss:
        remote_x, remote_y = loss.put(X, Y)
        loss.value_and_grad(network_parameters(), remote_x, remote_y)
        addresses = [machine.address for machine in loss.machines]
        sent = messages(caplog, logging.DEBUG)
        for address in addresses:
            assert sum(text.endswith(f" bytes) is sent to {address}") for text in sent) == 2  # the arrays
            assert any(text.startswith("step 0: rows ") and text.endswith(f" are sent to {address}") for text in sent)
            assert any(text.startswith("step 0: rows ") and f" by {address} in " in text for text in sent)
            assert any(text.endswith(f"{address}: joined") for text in messages(caplog, logging.INFO))
        assert messages(caplog, logging.WARNING) == []
        caplog.clear()
        lose_once(monkeypatch, "compute_sums")
        loss.value_and_grad(network_parameters(), remote_x, remote_y)
        (lost,) = messages(caplog, logging.WARNING)
        assert lost.endswith(": lost: the machine is gone")
        assert any(text.endswith(" are computed by other machines") for text in messages(caplog, logging.INFO))
        caplog.clear()
        loss.close()
        assert any(text.endswith(" machines are released") for text in messages(caplog, logging.INFO))


def test_split_logs_parts_and_lost_machines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    output, parameters = split_network()
    options: dict[str, Any] = {"place": {"first": 0, "second": 1}, "optimizer": partial(Adam, learning_rate=0.01)}
    with threads_of(2) as client, caplog.at_level(logging.DEBUG, LOGGER):
        with dist.Split(output, parameters, client, **options) as net:
            net.step(rows(10, 0))
            homes = net.machines
            for part, address in homes.items():
                assert f"part {part} runs on {address}" in messages(caplog, logging.INFO)
                assert any(text.startswith(f"part {part} (") and address in text for text in messages(caplog, logging.DEBUG))
            assert messages(caplog, logging.WARNING) == []
            lose_once(monkeypatch, "pass_through")
            caplog.clear()
            net.step(rows(10, 1))
            (lost,) = messages(caplog, logging.WARNING)
            assert " is lost, with parts [" in lost
            assert any(text.startswith("all parts load the saved state") for text in messages(caplog, logging.INFO))
            caplog.clear()
        assert {text for text in messages(caplog, logging.INFO) if text.endswith(" is released")}
        assert messages(caplog, logging.WARNING) == []


def test_blocks_log_tasks(caplog: pytest.LogCaptureFixture) -> None:
    with threads_of(1), dask.config.set(scheduler="distributed"), caplog.at_level(logging.DEBUG, LOGGER):
        dist.value_and_grad(lambda w, x: np.mean(x @ w))(np.ones(20), da.from_array(X, chunks=(20, 20)))
    (message,) = messages(caplog, logging.DEBUG)
    assert " tasks are sent to the scheduler at inproc://" in message
