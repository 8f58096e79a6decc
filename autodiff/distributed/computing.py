"""Waiting for what Dask computes: never without a bound."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import Any

from dask.base import get_scheduler
from distributed import Client, wait

_LOOK = 1.0  # seconds between looks at who is there


def result_of(task: Any, patience: float) -> Any:
    """The result of a task, by the scheduler that Dask would take.

    Parameters
    ----------
    task : dask.delayed.Delayed
        What is to be computed.
    patience : float
        With a distributed client: for how many seconds there may be no machine.

    Raises
    ------
    TimeoutError
        If there was no machine for so long.
    ConnectionError
        If the scheduler is lost.
    """
    client = getattr(get_scheduler(collections=[task]), "__self__", None)
    if not isinstance(client, Client):
        return task.compute()
    where = str(getattr(client.scheduler, "address", "an address that is gone"))
    future = client.compute(task)
    try:
        _wait(client, future, patience, where)
        return future.result()
    except CancelledError as lost:
        raise ConnectionError(f"the scheduler at {where} is lost, and what was being computed with it") from lost
    finally:
        future.release()


def _wait(client: Any, future: Any, patience: float, where: str) -> None:
    seen = time.monotonic()
    while not future.done():
        try:
            wait([future], timeout=_LOOK)
        except TimeoutError:
            if _machines(client, where):
                seen = time.monotonic()
            elif time.monotonic() - seen > patience:
                future.cancel()
                raise TimeoutError(
                    f"no machine has been at work for {patience:g} seconds with the scheduler at {where}"
                ) from None


def _machines(client: Any, where: str) -> int:
    """How many machines there are."""
    if client.status != "running":
        raise ConnectionError(f"the scheduler at {where} is lost, and what was being computed with it")
    return len(client.nthreads())
