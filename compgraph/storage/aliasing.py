"""Memory sharing: the owner of a buffer, the root node of views, and the position of a view in its buffer."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .node_slots import Opaque

ndarray = np.ndarray


def address_of(array: NDArray[Any]) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def owner_of(array: object) -> Any:
    """The object that owns an array's memory: the end of its chain of ``.base``. For a `Buffer`, that of its array."""
    if isinstance(array, Opaque):
        array = array.raw_value
    while True:
        base = getattr(array, "base", None)
        if base is None:
            return array
        array = base


def root_of(node: Any) -> Any:
    """The node that first had the buffer in which the value of `node` lies."""
    plain = node.raw_value
    if type(plain) is not ndarray or plain.base is None:
        return node
    visited: list[Any] = []
    while True:
        operand = viewed_operand(node)
        if operand is None:
            break
        cached = _distant_roots.get(id(node))
        if cached is not None and cached[0]() is node:
            node = cached[1]
            break
        visited.append(node)
        node = operand
    for view in visited[:-ROOT_CACHE_INTERVAL:ROOT_CACHE_INTERVAL]:  # empty if the root is near, which is the common case
        _distant_roots[id(view)] = (weakref.ref(view, functools.partial(_discard_root, id(view))), node)
    return node


ROOT_CACHE_INTERVAL = 16
# The root of every `ROOT_CACHE_INTERVAL`-th view in a long chain of views. Without it, walks to the root take quadratic time.
_distant_roots: dict[int, tuple[weakref.ref[Any], Any]] = {}


def _discard_root(number: int, _: object) -> None:
    _distant_roots.pop(number, None)


def viewed_operand(node: Any) -> Any:
    """The operand that `node` is a view of, or None."""
    plain = node.raw_value
    if type(plain) is not ndarray or plain.base is None:
        return None
    owner = owner_of(plain)
    for position in node.parent_argnums:
        operand = node.args[position]
        if type(operand.raw_value) is ndarray and owner_of(operand.raw_value) is owner:
            return operand
    return None


def layout_of(plain: NDArray[Any], start: int) -> dict[str, Any]:
    """The layout of an array in memory that begins at address `start`: the arguments of `window` without the shape."""
    return {"dtype": plain.dtype, "offset": address_of(plain) - start if plain.size else 0, "strides": plain.strides}


def layout_in(buffer: Any, view: Any) -> dict[str, Any]:
    """The layout of a view in an array: the arguments of `window`."""
    return {"shape": view.shape, **layout_of(view, address_of(buffer))}


def window(buffer: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any], offset: int, strides: tuple[int, ...]) -> Any:
    """A view of given shape, dtype and strides that begins `offset` bytes after the array's first element."""
    if 0 in shape:
        return np.empty(shape, dtype)
    if buffer.flags.c_contiguous and offset >= 0:
        return ndarray(shape, dtype, buffer, offset, strides)
    return np.asarray(_StridedView(buffer, shape, dtype, offset, strides))


class _StridedView:
    """Exposes a part of an array with any strides, including negative ones, by ``__array_interface__``."""

    def __init__(
        self, base: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any], offset: int, strides: tuple[int, ...]
    ) -> None:
        self.base = base
        self.__array_interface__ = {
            "data": (address_of(base) + offset, not base.flags.writeable), "shape": shape, "typestr": dtype.str,
            "strides": strides, "version": 3,
        }  # fmt: skip


def scatter_to_buffer(values: NDArray[Any], count: int, dtype: np.dtype[Any], offset: int, strides: tuple[int, ...]) -> Any:
    """A flat buffer of `count` elements with `values` in the window at `offset` with `strides`, and zeros elsewhere."""
    buffer = np.zeros(count, dtype)
    window(buffer, values.shape, values.dtype, offset, strides)[...] = values
    return buffer


def overlaps_itself(array: NDArray[Any]) -> bool:
    """Whether several elements of an array may share an address, as after broadcasting or in sliding windows."""
    if array.flags.forc and array.size:
        return False
    extent = array.itemsize
    for step, length in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if length > 1:
            if step < extent:
                return True
            extent += step * (length - 1)
    return False


def last_writers(shape: tuple[int, ...], index: NDArray[Any] | tuple[Any, ...]) -> tuple[Any, Any]:
    """For each element of ``a[index]``, the number of the last element at the same position; and its own number."""
    scratch = np.empty(shape, np.intp)  # only the indexed positions are accessed
    numbers = np.arange(scratch[index].size).reshape(np.shape(scratch[index]))
    scratch[index] = numbers
    return scratch[index], numbers
