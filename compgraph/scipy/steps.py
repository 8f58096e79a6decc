"""What functions that are written in steps begin with: the arrays that users gave, and the objects that hold nodes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import operations
from ..graph import Node, as_operand, gathered, record, to_plain


def array(x: Any) -> Any:
    """An array or a node, of what the user gave."""
    x = gathered(x)
    return x if isinstance(x, Node) else np.asarray(as_operand(x))


def floating(x: Any) -> Any:
    """An array or a node of float64 or complex128."""
    x = array(x)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return x if x.dtype == wide else x.astype(wide)


def plain(x: Any) -> Any:
    """The numbers of an array or a node."""
    return np.asarray(to_plain(x))


def column(x: Any, ndim: int) -> Any:
    """A vector whose axis comes first among `ndim`."""
    return np.reshape(x, (-1,) + (1,) * (ndim - 1))


def _zeros(x: Any, order: int, what: str) -> Any:
    return np.zeros_like(x)[()]


operations.enter(_zeros, "zero_to_order")


def zero_to_order(x: Any, order: int, what: str) -> Any:
    """Zero, whose derivatives by x are zero to an order, and raise beyond."""
    return record(_zeros, (x,), {"order": order, "what": what}) if isinstance(x, Node) else _zeros(x, order, what)


def exact_to(order: int, what: str, node: Any) -> Any:
    """A node of which derivatives to an order are right; those beyond raise a TypeError that names what it is."""
    if not isinstance(node, Node):
        return node
    return node + zero_to_order(node, order, what)


class Held:
    """An attribute that an object keeps as it is, whatever else its class makes of what is given by that name."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, held_by: Any, owner: Any = None) -> Any:
        return self if held_by is None else held_by.__dict__[self.name]

    def __set__(self, held_by: Any, value: Any) -> None:
        held_by.__dict__[self.name] = value


@functools.cache
def holding_nodes(mixin: Any, kind: Any) -> Any:
    """The class of an object that holds nodes: that of the user, with methods that record."""
    return kind if issubclass(kind, mixin) else type(kind.__name__, (mixin, kind), {"__module__": kind.__module__})


def hold_nodes(self: Any, mixin: Any) -> None:
    """Let an object's methods be those that record."""
    kind: Any = type(self)
    self.__class__ = holding_nodes(mixin, kind)
