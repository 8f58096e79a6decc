"""What may stand among the operands of an operation, and how the graph keeps it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import ops
from ..bind import stack_object_array
from ..values import ACTIVE, INERT, TRACEABLE, USED, Value, require_computed, require_history, require_unbatched

ndarray = np.ndarray
# Not complex: where it meets a float64 scalar, Python divides, and raises where NumPy gives infinity.
NUMBERS: frozenset[Any] = frozenset({float, int, bool, np.float64, np.float32, np.int64})
RAW = NUMBERS | {ndarray}
FAMILIAR = RAW | ACTIVE | INERT | USED.keys() | {type(None), complex, np.bool_}


def as_operand(value: Any) -> Any:
    """An operand as the graph keeps it: a sequence becomes an array, or one node if there are nodes in it."""
    if value is None or isinstance(value, (Value, int, float, complex)):
        return value
    value = stack_nested(value)
    if isinstance(value, Value):
        return value
    if type(value) in TRACEABLE and value.dtype.kind in "biufc":
        return value
    kind: Any = type(value)
    if isinstance(value, ndarray) and kind is not ndarray and has_operators(kind):
        raise TypeError(f"a {kind.__name__} has operators of its own, which a node cannot follow; pass np.asarray(value)")
    require_computed(value, "an operand")
    if kind.__module__ == "fractions":
        return float(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a node computes with numbers, not with a {type(value).__name__} of dtype {array.dtype}; convert it to a "
            "floating dtype, or compute with node.value"
        )
    return value if isinstance(value, np.generic) else array


@functools.cache
def has_operators(kind: Any) -> bool:
    """Whether a class of arrays has operators of its own, as matrices and masked arrays have."""
    names = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul", "pow", "rpow")
    return any(getattr(kind, f"__{name}__") is not getattr(ndarray, f"__{name}__") for name in names)


def as_operands(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each of several operands as the graph keeps it; the tuple itself if all are so already."""
    for value in values:
        if type(value) not in FAMILIAR or (type(value) is ndarray and value.dtype.kind == "O"):
            return tuple(map(as_operand, values))
    return values


def stack_nested(value: Any) -> Any:
    """A list or tuple with nodes in it as one node; NumPy's own conversion would lose their history. Others as they are."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Value) for v in flatten_sequences(value)):
        return np.stack([as_operand(v) for v in value])
    return stack_object_array(value)


def flatten_sequences(value: Any) -> tuple[Any, ...]:
    """What stands in lists and tuples, however deep."""
    if isinstance(value, (list, tuple)):
        return tuple([leaf for part in value for leaf in flatten_sequences(part)])
    return (value,)


def to_values(value: Any) -> Any:
    """`value` with the plain value in place of each node, also inside tuples, lists and dicts."""
    if isinstance(value, Value):
        require_history(value)
        if value.level:
            require_unbatched("a use of the numbers that is not recorded", value)
        return value.raw_value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(to_values, value))
    if isinstance(value, dict):
        return {k: to_values(v) for k, v in value.items()}
    return value


def overrides_protocol(operand: Any, protocol: str) -> bool:
    """Whether an operand's class, no node's, has a `protocol` of its own, so that NumPy must ask it; a lazy array raises."""
    theirs = getattr(type(operand), protocol, None)
    if isinstance(operand, Value) or type(operand) in TRACEABLE or theirs is None or theirs is getattr(ndarray, protocol):
        return False
    require_computed(operand, "an operand")
    return True


def full_name(function: Any) -> str:
    """The name of a function of NumPy's or SciPy's as users write it."""
    if isinstance(function, ops.Packed):
        function = function.function
    if function in ops.PUBLIC_NAMES:
        return ops.PUBLIC_NAMES[function]
    module = "np" if isinstance(function, ops.UfuncMethod) else function.__module__.replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"
