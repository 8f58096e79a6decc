"""``scipy.linalg``."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy(
    module="scipy.linalg",
    smooth={"solve": "a b"},
    plain=frozenset({"LinAlgError", "LinAlgWarning", "find_best_blas_type", "get_blas_funcs", "get_lapack_funcs"}),
)
