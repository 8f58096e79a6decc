"""What is done with each public function of SciPy's when a node is among its arguments.

A module for each of SciPy's families holds its policy, and the functions that run instead of SciPy's own; the rules of those
with a rule stand in `autodiff.grads.scipy`. A family is entered once the module of SciPy's that it is about was imported.
"""

from . import bands
from .entering import opname, public_names
from .families import FAMILIES, answer_by, enter_imported, policy_of, when_entered
from .policy import Policy
from .steps import exact_to, zero_to_order

__all__ = [
    "FAMILIES", "Policy", "answer_by", "bands", "enter_imported", "exact_to", "opname", "policy_of", "public_names",
    "when_entered", "zero_to_order",
]  # fmt: skip
