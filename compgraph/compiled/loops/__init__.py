"""Python loops in traces: detected as periodic runs of operations, and truncated to a few iterations."""

from .periodicity import MIN_TRIP_COUNT, PeriodicRun, constant_key, find_candidate_periods, find_runs, find_runs_of_period
from .truncation import TRIP_COUNT_STEP, LoopMismatchError, LoopTruncation

__all__ = [
    "MIN_TRIP_COUNT", "TRIP_COUNT_STEP", "LoopMismatchError", "LoopTruncation", "PeriodicRun", "constant_key",
    "find_candidate_periods", "find_runs", "find_runs_of_period",
]  # fmt: skip
