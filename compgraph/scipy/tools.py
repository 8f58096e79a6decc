"""Helpers of the replacements of SciPy: argument conversion, limits of the derivative order, recording mixins."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import ops
from ..array_types import Array
from ..bind import bind
from ..graph import as_operand, stack_nested, to_values
from ..values import Value


def to_array(x: object) -> Any:
    """Convert an argument to an array; a node, or a nested list that contains nodes, to a node."""
    x = stack_nested(x)
    return x if isinstance(x, Value) else np.asarray(as_operand(x))


def to_double(x: Any) -> Any:
    """Convert an argument as `to_array` does, to float64 or complex128."""
    x = to_array(x)
    double_dtype = np.complex128 if x.dtype.kind == "c" else np.float64
    return x if x.dtype == double_dtype else x.astype(double_dtype)


def to_numpy(x: object) -> Any:
    """Return the values of an array or a node."""
    return np.asarray(to_values(x))


def to_column(x: Any, ndim: int) -> Any:
    """Reshape a vector to ``(n, 1, ..., 1)``, with `ndim` axes."""
    return np.reshape(x, (-1,) + (1,) * (ndim - 1))


def _zeros(x: Array, order: int, description: str) -> Any:
    return np.zeros_like(x)[()]


ops.register_operation(_zeros, "zero_to_order")


def zero_to_order(x: Any, order: int, description: str) -> Any:
    """Return zeros like `x`, whose derivatives up to `order` are zero and whose higher ones raise a TypeError."""
    if not isinstance(x, Value):
        return _zeros(x, order, description)
    return bind(_zeros, (x,), {"order": order, "description": description})


def limit_order(node: Any, order: int, description: str) -> Any:
    """Return a node with the value of `node`, whose derivatives of an order above `order` raise a TypeError.

    `description` is the beginning of the message.
    """
    return node + zero_to_order(node, order, description) if isinstance(node, Value) else node


def pin_value(node: Any, value: Any) -> Any:
    """Return `node` with its value replaced by `value`, which differs by rounding or the tolerance of a solver."""
    own_value = to_values(node)
    return node if np.array_equal(own_value, value) else node + (np.asarray(value) - own_value)[()]


@functools.cache
def class_with_mixin(mixin: type, cls: type) -> Any:
    """Return the subclass of `cls`, of the same name, with the recording methods of `mixin`."""
    return cls if issubclass(cls, mixin) else type(cls.__name__, (mixin, cls), {"__module__": cls.__module__})


def add_mixin(instance: object, mixin: type) -> None:
    """Change the class of an object that contains nodes, so that it has the recording methods of `mixin`."""
    cls: Any = type(instance)
    instance.__class__ = class_with_mixin(mixin, cls)
