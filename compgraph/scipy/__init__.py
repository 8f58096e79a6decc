"""Calls of SciPy's functions with nodes: a policy for each public function.

For each module of SciPy (a family, such as ``scipy.linalg``), a module here has its policy, and replacements of functions. Rules
are in `autodiff.grads.scipy`. The policy of a family is registered after that module of SciPy has been imported.
"""

from . import banded_matrices
from .policy import (
    FAMILIES,
    Policy,
    on_registration,
    opname,
    policy_of,
    public_names,
    register_imported,
    register_replacement,
    ufunc_opname,
)
from .tools import limit_order, pin_value, zero_to_order

__all__ = [
    "FAMILIES", "Policy", "banded_matrices", "limit_order", "on_registration", "opname", "pin_value", "policy_of", "public_names",
    "register_imported", "register_replacement", "ufunc_opname", "zero_to_order",
]  # fmt: skip
