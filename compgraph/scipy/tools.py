"""Tools for replacements of SciPy's functions: conversion of arguments, values and derivative orders of nodes, classes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import ops
from ..array_types import Array
from ..bind import bind
from ..graph import as_operand, stack_nested, to_values
from ..values import Value


def array(x: object) -> Any:
    """Convert an argument to an array; a node, or a nested list that contains nodes, to a node."""
    x = stack_nested(x)
    return x if isinstance(x, Value) else np.asarray(as_operand(x))


def floating(x: Any) -> Any:
    """As `array`, with the dtype float64 or complex128."""
    x = array(x)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return x if x.dtype == wide else x.astype(wide)


def plain(x: object) -> Any:
    """The plain values of an array or a node."""
    return np.asarray(to_values(x))


def column(x: Any, ndim: int) -> Any:
    """Reshape a vector to ``(n, 1, ..., 1)``, with `ndim` axes."""
    return np.reshape(x, (-1,) + (1,) * (ndim - 1))


def _zeros(x: Array, order: int, what: str) -> Any:
    return np.zeros_like(x)[()]


ops.register_operation(_zeros, "zero_to_order")


def zero_to_order(x: Any, order: int, what: str) -> Any:
    """Zeros like `x`, with zero derivatives up to `order`; a derivative of higher order raises a TypeError that names `what`."""
    return bind(_zeros, (x,), {"order": order, "what": what}) if isinstance(x, Value) else _zeros(x, order, what)


def limit_order(order: int, what: str, node: object) -> Any:
    """The value of `node`; a derivative of higher order than `order` raises a TypeError that names `what`."""
    if not isinstance(node, Value):
        return node
    return node + zero_to_order(node, order, what)


def pin_value(node: Any, value: Any) -> Any:
    """Return a node with `value`, from which its own differs by rounding or the tolerance of a solver."""
    own_value = to_values(node)
    return node if np.array_equal(own_value, value) else node + (np.asarray(value) - own_value)[()]


@functools.cache
def class_with_mixin(mixin: type, kind: type) -> Any:
    """The subclass of `kind`, of the same name, with the recording methods of `mixin`."""
    return kind if issubclass(kind, mixin) else type(kind.__name__, (mixin, kind), {"__module__": kind.__module__})


def add_mixin(self: Any, mixin: type) -> None:
    """Change the class of an object that contains nodes, so that it has the recording methods of `mixin`."""
    kind: Any = type(self)
    self.__class__ = class_with_mixin(mixin, kind)
