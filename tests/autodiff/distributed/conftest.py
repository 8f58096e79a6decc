"""A cluster of processes, and losses on the machines of the `client` fixture of each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster

import autodiff.distributed as dist
from tests.support.clusters import processes_of
from tests.support.losses import network, squares


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    """A cluster of two processes, for all modules whose tests do not disturb it."""
    with processes_of(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def remote_loss(client: Client) -> Iterator[dist.DataParallel]:
    """The loss of a network, on the machines."""
    with dist.DataParallel(network, client) as loss:
        yield loss


@pytest.fixture(scope="module")
def mean_squares(client: Client) -> Iterator[dist.DataParallel]:
    """The loss of a line, on the machines."""
    with dist.DataParallel(squares, client) as loss:
        yield loss
