"""The active levels of `vmap`, and the batch axes of values.

Each call of `vmap` has a level; inner calls have higher ones. A batched value of a level is a `BatchNode`, whose `values` have
the batch axis first and may themselves be batched at an outer level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.context import Setting, layered_variable, scope_change, wrappers
from compgraph.context import next_level as next_level
from compgraph.storage import address_of
from compgraph.values import Value

# (level, batch size) of the vmaps around the current code, the outermost first.
vmaps: ContextVar[tuple[tuple[int, int], ...]] = layered_variable("vmaps", ())
_live_levels: list[int] = []  # of all threads, one entry per open `LiveLevels` context


class LiveLevels:
    """A context in which batched values of some levels may be used; they are invalid once all such contexts have ended."""

    __slots__ = ("_levels",)

    def __init__(self, levels: Iterable[int]) -> None:
        self._levels = tuple(levels)

    def __enter__(self) -> None:
        _live_levels.extend(self._levels)  # atomic, so no other thread sees a part of it

    def __exit__(self, *exception: object) -> None:
        for level in self._levels:
            _live_levels.remove(level)


def require_live(level: int) -> None:
    """Raise a TypeError for a batched value whose `vmap` has returned."""
    if level not in _live_levels:
        raise TypeError(
            "vmap: a batched value is used after its vmap has returned. A function under vmap must return its results, and not "
            "store them in a list, an attribute or a cache"
        )


def vmap_scope(
    title: str, level: int, size: int, wrap: Callable[[NDArray[Any]], object], draw_changes: dict[ContextVar[Any], Any]
) -> Setting:
    """The context in which a function under `vmap` runs.

    Parameters
    ----------
    title : str
        The title of the box around the recorded nodes in drawings.
    level, size : int
        The level and the batch size.
    wrap : callable
        Wraps the arrays that the function makes.
    draw_changes : dict
        Changes of context variables that intercept random draws.
    """
    changes: dict[ContextVar[Any], Any] = {vmaps: (*vmaps.get(), (level, size)), wrappers: (*wrappers.get(), wrap)}
    return Setting({**changes, **scope_change(title), **draw_changes})


def outermost_levels(depth: int) -> Setting:
    """The context of the `depth` outermost of the active levels."""
    return Setting({vmaps: vmaps.get()[:depth]})


def single_element(level: int) -> Setting:
    """The context in which one batch element of a level is computed: new arrays are not batched at that level."""
    return Setting({vmaps: (), wrappers: tuple([w for w in wrappers.get() if getattr(w, "level", None) != level])})


def outside_vmap() -> Setting:
    """The context in which no level is active: batch axes are ordinary axes."""
    return Setting({vmaps: ()})


# ------------------------------------------------------------------------------------------- batched values


def is_batch(value: object) -> TypeGuard[Any]:
    """Whether a value is batched: a `BatchNode` of any level."""
    return isinstance(value, Value) and value.trace_kind == "batch"


def base_of(value: object) -> Any:
    """The array or node behind a batched value, with the batch axes of all levels in front; other values unchanged."""
    while is_batch(value):
        value = value.values
    return value


def plain_base(value: object) -> Any:
    """The plain array behind a value, with the batch axes of all levels in front."""
    value = base_of(value)
    return value.raw_value if isinstance(value, Value) else value


def batch_depth(value: object) -> int:
    """The number of levels at which a value is batched."""
    depth = 0
    while is_batch(value):
        value, depth = value.values, depth + 1
    return depth


# ------------------------------------------------------------------------------------------------ batch axes


def pad_ndim(values: NDArray[Any], ndim: int) -> Any:
    """Insert axes of length one after the batch axis, until each element has `ndim` axes.

    NumPy then broadcasts the elements against arrays of `ndim` axes as it would without the batch axis.
    """
    missing = ndim + 1 - values.ndim
    return values if missing <= 0 else np.reshape(values, (values.shape[0], *(1,) * missing, *values.shape[1:]))


def broadcast_batch(value: ArrayLike, size: int) -> Any:
    """Add a batch axis to a value that all elements share; a view, without copies."""
    return np.broadcast_to(value, (size, *np.shape(value)))


# ------------------------------------------------------------------------------------- buffers and dummy arrays

dummy_arrays: dict[tuple[tuple[int, ...], Any], Any] = {}  # by shape and dtype; see `dummy_array`
_MAX_DUMMIES = 4096


def dummy_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return the `raw_value` of batched values: an array of one element's shape, filled with nan or the least integer."""
    if len(dummy_arrays) >= _MAX_DUMMIES:
        dummy_arrays.clear()
    fill: Any = np.nan if dtype.kind in "fc" else np.iinfo(dtype).min if dtype.kind in "iu" else False
    array = dummy_arrays[shape, dtype] = np.ndarray(shape, dtype, np.full((), fill, dtype), 0, (0,) * len(shape))
    return array


def copy_values(values: NDArray[Any]) -> Any:
    """A copy of an array or node."""
    return bind(ops.copy, (values,)) if isinstance(values, Value) else np.array(values)


def broadcast_buffer(buffer: NDArray[Any], size: int) -> Any:
    """Repeat a buffer (an array or node) for each batch element, each copy with the memory layout of the original."""
    shape = (size, *buffer.shape)
    if isinstance(buffer, Value):
        return bind(ops.copy, (np.broadcast_to(buffer, shape),))
    low, high = np.lib.array_utils.byte_bounds(buffer) if buffer.size else (0, 0)
    length = -(-(high - low) // buffer.itemsize)
    rows = np.empty((size, length), buffer.dtype)
    if not rows.size:
        return np.empty(shape, buffer.dtype)
    repeated: Any = np.ndarray(shape, buffer.dtype, rows, address_of(buffer) - low, (rows.strides[0], *buffer.strides))
    repeated[...] = buffer
    return repeated
