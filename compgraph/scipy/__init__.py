"""The treatment of each public function of SciPy for nodes among its arguments.

For each module of SciPy (a family: ``scipy.linalg``) a module here has its policy, and the functions that run instead of
SciPy's own; rules are in `autodiff.grads.scipy`. The policy of a family is entered once that module of SciPy was imported.
"""

from . import banded_matrices
from .entering import opname, public_names, ufunc_opname
from .families import FAMILIES, answer_by, enter_imported, policy_of, when_entered
from .policy import Policy
from .steps import exact_to, zero_to_order

__all__ = [
    "FAMILIES", "Policy", "answer_by", "banded_matrices", "enter_imported", "exact_to", "opname", "policy_of", "public_names",
    "ufunc_opname", "when_entered", "zero_to_order",
]  # fmt: skip
