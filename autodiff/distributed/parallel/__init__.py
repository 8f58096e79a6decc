"""Data-parallel steps: the assignment of shards to machines, the order of the sums, and the log."""

from .actor import FailureReport, LossActor, Request, ShareRequest, process_name, serialize
from .batch import Batch, RemoteArray
from .log import Log, Record
from .pool import ActorPool
from .shards import combine_sums, shard_bounds
from .step import Step

__all__ = [
    "ActorPool", "Batch", "FailureReport", "Log", "LossActor", "Record", "RemoteArray", "Request", "ShareRequest", "Step",
    "combine_sums", "process_name", "serialize", "shard_bounds",
]  # fmt: skip
