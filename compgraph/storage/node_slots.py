"""The slots of nodes, tracers and buffers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

# The attributes of a node, which `Value` documents.
SLOTS = (
    "_name", "_operands", "_scope", "args", "code", "function", "instruction", "memory", "options", "origin", "parent_argnums",
    "raw_value", "recipe", "sequence_number", "untracked_read",
)  # fmt: skip
# Further attributes of values under a transform: tangents or a batch; see `autodiff.forward` and `autodiff.batching`.
TRANSFORM_SLOTS = (
    "_primal", "_root_values", "_tangent", "_tangent_buffer", "_values", "_wrappers", "borrows_values", "inputs", "is_scalar",
    "level", "root",
)  # fmt: skip


def _raise_on_set_shape(self: Any, shape: tuple[int, ...]) -> None:
    raise TypeError("setting .shape of a node in place would bypass its graph; use np.reshape(node, shape)")


TRACERS: dict[type[Any], Any] = {}  # the tracer class of each node class; filled by `node_kinds`


class Layout(np.ndarray):
    """An array with a slot for each attribute of a node."""

    __slots__ = SLOTS
    shape: Any = property(np.ndarray.shape.__get__, _raise_on_set_shape)


class Opaque:
    """An object without exposed memory. C code that treats it as an array calls ``__array__``, which records or raises.

    It has the attributes of arrays that `Value` otherwise inherits from ``np.ndarray``; `raw_value` is the array they describe.
    """

    __slots__ = (*SLOTS, "__weakref__")
    raw_value: Any

    ndim: Any = property(operator.attrgetter("raw_value.ndim"))
    size: Any = property(operator.attrgetter("raw_value.size"))
    shape: Any = property(operator.attrgetter("raw_value.shape"), _raise_on_set_shape)
    device = "cpu"

    def __len__(self) -> int:
        if not self.raw_value.ndim:
            raise TypeError("len() of unsized object")
        return int(self.raw_value.shape[0])

    def __iter__(self: Any) -> Any:
        if not self.raw_value.ndim:
            raise TypeError("iteration over a 0-d array")
        return map(self.__getitem__, range(self.raw_value.shape[0]))

    def __delitem__(self, index: object) -> None:
        raise ValueError("cannot delete array elements")

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return np.empty(0).__array_namespace__(api_version=api_version)

    def __dlpack_device__(self) -> Any:
        return np.empty(0).__dlpack_device__()


class OpaqueTransform(Opaque):
    """An Opaque with slots for a tangent or a batch."""

    __slots__ = TRANSFORM_SLOTS
    _wrappers: Any


set_class: Any = object.__dict__["__class__"].__set__  # for objects whose ``__class__`` is a property
