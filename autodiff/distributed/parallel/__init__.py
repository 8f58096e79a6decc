"""How the rows of a batch are shared among machines: who is asked, what is added in which order, what is noted."""

from .grains import assembled, cuts
from .log import Log, Record
from .machine import Failed, Machine, Request, packed, process
from .machines import Machines
from .mean import mean_at, slopes_at
from .resident import Kept, Rows
from .step import Step

__all__ = [
    "Failed", "Kept", "Log", "Machine", "Machines", "Record", "Request", "Rows", "Step", "assembled", "cuts", "mean_at", "packed",
    "process", "slopes_at",
]  # fmt: skip
