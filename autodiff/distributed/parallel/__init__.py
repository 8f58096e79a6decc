"""Data-parallel steps: the assignment of rows to machines, the order of the sums, and the log."""

from .grains import assembled, cuts
from .log import Log, Record
from .machine import Failed, Machine, Request, Share, packed, process
from .machines import Machines
from .mean import both_at, mean_at
from .resident import Kept, Rows
from .step import Step

__all__ = [
    "Failed", "Kept", "Log", "Machine", "Machines", "Record", "Request", "Rows", "Share", "Step", "assembled", "both_at", "cuts",
    "mean_at", "packed", "process",
]  # fmt: skip
