"""The interpreters that process operations: recording, computing without a graph, and what wraps them."""

from .recording import (
    COMPUTING,
    RECORDING,
    Observed,
    Scoped,
    detach_result,
    inert_leaf,
    is_recorded,
    new_scalar,
    on_operation_error,
    on_value_dependent_shape,
)

__all__ = [
    "COMPUTING",
    "RECORDING",
    "Observed",
    "Scoped",
    "detach_result",
    "inert_leaf",
    "is_recorded",
    "new_scalar",
    "on_operation_error",
    "on_value_dependent_shape",
]
