"""``scipy.sparse.linalg``: linear systems, norms, exponentials and eigenvalues of sparse matrices with nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph import stack_nested
from ...policy import Policy
from . import systems_and_functions

__all__ = ["POLICY", "systems_and_functions"]

_ITERATIVE = "bicg bicgstab cg cgs gcrotmk gmres lgmres minres qmr tfqmr"


def _linear_operator_method(name: str) -> Any:
    """Return a method of LinearOperator for nodes: it calls the method `name`, by which a user or SciPy defines the product."""

    def apply(self: Any, x: Any) -> Any:
        x = stack_nested(x)
        input_length = self.shape[0] if name.startswith("_r") else self.shape[1]
        if x.shape[0] != input_length:
            raise ValueError("dimension mismatch")
        if "vec" not in name:
            return stack_nested(getattr(self, name)(x))
        result = stack_nested(getattr(self, name)(x))
        output_length = self.shape[1] if name.startswith("_r") else self.shape[0]
        return np.reshape(result, (output_length,) if x.ndim == 1 else (output_length, 1))

    return apply


def _product(self: Any, x: object) -> Any:
    x = stack_nested(x)
    if not hasattr(x, "ndim") or x.ndim not in (1, 2):
        raise TypeError("a LinearOperator cannot be scaled by a node. Scale its result")
    return self.matvec(x) if x.ndim == 1 else self.matmat(x)


POLICY = Policy(
    module="scipy.sparse.linalg",
    replacements={
        "spsolve": systems_and_functions.spsolve,
        "spsolve_triangular": systems_and_functions.spsolve_triangular,
        "splu": systems_and_functions.splu,
        "spilu": systems_and_functions.spilu,
        "factorized": systems_and_functions.factorized,
        **{name: systems_and_functions.replace_iterative_solver(name) for name in _ITERATIVE.split()},
        "norm": systems_and_functions.norm,
        "inv": systems_and_functions.inv,
        "matrix_power": systems_and_functions.matrix_power,
        "expm_multiply": systems_and_functions.expm_multiply,
        "eigsh": systems_and_functions.eigsh,
        "svds": systems_and_functions.svds,
        **{f"LinearOperator.{name}": _linear_operator_method(f"_{name}") for name in ("matvec", "rmatvec", "matmat", "rmatmat")},
        **{f"LinearOperator.{name}": _product for name in ("dot", "__matmul__", "__mul__", "__call__")},
    },
    always_replaced=frozenset({"splu", "spilu", "factorized"}),
    plain=frozenset(
        {"ArpackError", "ArpackNoConvergence", "MatrixRankWarning", "SuperLU", "LinearOperator", "use_solver"}
        | {"LaplacianNd", "is_sptriangular", "spbandwidth"}
    ),
    unsupported={
        "aslinearoperator": "the matrix itself (a LinearOperator cannot hold nodes)",
        "expm": "scipy.linalg.expm(A.toarray()), or expm_multiply",
        "funm_multiply_krylov": "expm_multiply, or scipy.linalg.funm",
        "eigs": "np.linalg.eig(A.toarray()), or eigsh where the matrix is symmetric",
        "lobpcg": "scipy.sparse.linalg.eigsh",
        "lsqr": "scipy.sparse.linalg.spsolve(A.T @ A, A.T @ b)",
        "lsmr": "scipy.sparse.linalg.spsolve(A.T @ A, A.T @ b)",
        "onenormest": "scipy.sparse.linalg.norm(A, 1)",
    },
)
