"""Waiting for results of Dask, with limits for the absence of workers or the scheduler."""

from __future__ import annotations

import logging
import time
from concurrent.futures import CancelledError
from typing import Any

from dask.base import get_scheduler
from distributed import Client, wait

from .cluster import Roll

_log = logging.getLogger(__name__)
_LOOK = 1.0  # seconds between looks at who is there
_WHO, _LOST = "distributed.value_and_grad", "The running computation is lost. Call again with another cluster"


def result_of(task: Any, patience: float) -> Any:
    """Compute a task with the scheduler that Dask would use, and return its result.

    Parameters
    ----------
    task : dask.delayed.Delayed
        The task.
    patience : float
        With a distributed client: the seconds without a worker after which to give up.

    Raises
    ------
    TimeoutError
        If there was no worker for so long.
    ConnectionError
        If the scheduler is lost.
    """
    client: Any = getattr(get_scheduler(collections=[task]), "__self__", None)
    if not isinstance(client, Client):
        return task.compute()
    where = str(getattr(client.scheduler, "address", "an address that is gone"))
    _log.debug("%d tasks are sent to the scheduler at %s", len(task.dask), where)
    future = client.compute(task)
    try:
        _wait(client, future, patience, where)
        return future.result()
    except CancelledError as lost:
        raise ConnectionError(f"{_WHO}: the scheduler at {where} does not answer any more. {_LOST}") from lost
    finally:
        future.release()


def _wait(client: Any, future: Any, patience: float, where: str) -> None:
    roll, seen = Roll(client, _WHO, _LOST), time.monotonic()
    while not future.done():
        try:
            wait([future], timeout=_LOOK)
        except TimeoutError:
            if client.status not in ("closed", "closing"):
                client.sync(roll.look)
            roll.require_scheduler()
            if roll.workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > patience:
                future.cancel()
                raise TimeoutError(
                    f"{_WHO}: no machine has been at work for {patience:g} seconds with the scheduler at {where}"
                ) from None
