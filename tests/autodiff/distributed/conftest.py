"""A small cluster for the tests of processes, and losses on the machines of each module's `client`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster

import autodiff.distributed as dist
from tests.support.clusters import processes_of
from tests.support.losses import network, squares


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    """Two machines, processes of this one, for all modules whose tests leave them as they are."""
    with processes_of(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def there(client: Client) -> Iterator[dist.DataParallel]:
    """A network's loss."""
    with dist.DataParallel(network, client) as loss:
        yield loss


@pytest.fixture(scope="module")
def line(client: Client) -> Iterator[dist.DataParallel]:
    """A line's loss."""
    with dist.DataParallel(squares, client) as loss:
        yield loss
