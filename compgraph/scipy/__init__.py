"""Handlers for calls of SciPy's functions with nodes, defined by one policy per SciPy module.

Each module of SciPy (a family, such as ``scipy.linalg``) has a module here with its policy and its replacement functions. The
policy is registered after SciPy's module has been imported. Derivative rules are in `autodiff.grads.scipy`.
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
