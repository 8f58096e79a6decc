"""Compute Dask tasks, with time limits for missing workers and a lost scheduler."""

from __future__ import annotations

import logging
import time
from concurrent.futures import CancelledError
from typing import Any

from dask.base import get_scheduler
from distributed import Client, wait

from .cluster import WorkerRegistry

_log = logging.getLogger(__name__)
_POLL_INTERVAL = 1.0  # seconds between updates of the list of workers
_CALLER, _ADVICE = "distributed.value_and_grad", "Its computation is lost. Call again with a client of another cluster"


def compute_task(task: Any, timeout: float) -> Any:
    """Compute a task with Dask's current scheduler and return the result.

    Parameters
    ----------
    task : dask.delayed.Delayed
        The task.
    timeout : float
        With a distributed client: the seconds without a worker after which to give up.

    Raises
    ------
    TimeoutError
        If there was no worker for `timeout` seconds.
    ConnectionError
        If the scheduler is lost.
    """
    client: Any = getattr(get_scheduler(collections=[task]), "__self__", None)
    if not isinstance(client, Client):
        return task.compute()
    where = str(getattr(client.scheduler, "address", "an unknown address"))
    _log.debug("%d tasks are sent to the scheduler at %s", len(task.dask), where)
    future = client.compute(task)
    try:
        _wait(client, future, timeout, where)
        return future.result()
    except CancelledError as error:
        raise ConnectionError(f"{_CALLER}: the scheduler at {where} does not answer. {_ADVICE}") from error
    finally:
        future.release()


def _wait(client: Any, future: Any, timeout: float, where: str) -> None:
    registry, last_alive = WorkerRegistry(client, _CALLER, _ADVICE), time.monotonic()
    while not future.done():
        try:
            wait([future], timeout=_POLL_INTERVAL)
        except TimeoutError:
            if client.status not in ("closed", "closing"):
                client.sync(registry.refresh)
            registry.require_scheduler()
            if registry.workers:
                last_alive = time.monotonic()
            elif time.monotonic() - last_alive > timeout:
                future.cancel()
                raise TimeoutError(
                    f"{_CALLER}: the scheduler at {where} had no machine for {timeout:g} seconds. Start workers, then call again."
                ) from None
