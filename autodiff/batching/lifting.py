"""Lifting: moves the batch axes of `vmap` out of values and back, for code that must run outside of it.

Derivatives are computed outside of vmap, on arrays whose first axes are the batch axes of all active levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.context import Setting, wrappers

from ..arguments import flatten, unflatten
from .batch_node import BatchNode
from .levels import LiveLevels, broadcast_batch, is_batch, vmaps


def active_levels() -> list[int]:
    """The levels of the vmaps around the current code, the outermost first."""
    return [level for level, _ in vmaps.get()]


def levels_of(value: object) -> list[int]:
    """The levels at which a value is batched, the outermost first."""
    levels: list[int] = []
    while is_batch(value):
        levels.insert(0, value.level)
        value = value.values
    return levels


def lift_to_active_levels(value: Any) -> Any:
    """Batch a value at all active levels; missing batch axes are broadcast, without copies."""
    for level, size in vmaps.get():
        value = _lift_to(value, level, size)
    return value


def _lift_to(value: NDArray[Any], level: int, size: int) -> Any:
    """Batch a value at one level; the batch axes of higher levels stay outside of the new one."""
    if not is_batch(value) or value.level < level:
        return BatchNode.create_using(broadcast_batch(value, size), level)
    if value.level == level:
        return value
    return BatchNode.create_using(_lift_to(value.values, level, size), value.level, is_array=not value.is_scalar)


def wrap_batch(value: NDArray[Any], levels: Sequence[int], is_array: bool = False, borrows_values: bool = False) -> Any:
    """Wrap an array whose first axes are the batch axes of some levels, the outermost first; inverse of `unwrap_batch`.

    If `borrows_values`, it is copied before a write.
    """
    for level in levels:
        value = BatchNode.create_using(value, level, is_array=is_array)
        value.borrows_values = borrows_values
    return value


def unwrap_batch(value: object, levels: Sequence[int]) -> Any:
    """Lift a value to all active levels, and return the array behind it, with the batch axes of some levels first."""
    value = lift_to_active_levels(value)
    for level in reversed(levels):
        if not is_batch(value) or value.level != level:
            raise TypeError(
                "vmap: a batched value is used after its vmap has returned, or in another thread. Return it from the function "
                "under vmap instead of storing it"
            )
        value = value.values
    return value


def is_broadcast(value: object, depth: int) -> bool:
    """Whether one of the first `depth` axes of a plain array is a broadcast one, so that elements share their memory."""
    if type(value) is not np.ndarray or value.ndim == depth or not all(value.shape[:depth]):
        return False
    return bool(0 in value.strides[:depth] and value[(0,) * depth].flags.c_contiguous)


class LiftedFunction:
    """A function that is called under vmap, as a function of arrays with batch axes that can be called outside of it.

    Parameters
    ----------
    f : callable
        A function of arrays that returns nested arrays.
    leaves : sequence
        Its arguments, batched or not.
    lifts_all : bool
        Whether arguments that are not batched get batch axes as well.

    Attributes
    ----------
    arrays : list
        The arguments, with the batched ones as arrays with the batch axes first.
    has_batch_axes : list of bool
        Which arguments have batch axes.
    levels : list of int
        The levels of the batch axes, the outermost first.
    """

    def __init__(self, f: Callable[..., Any], leaves: Sequence[Any], lifts_all: bool = False) -> None:
        self._f, self._vmaps, self._wrappers = f, vmaps.get(), wrappers.get()
        self.levels = active_levels()
        self.has_batch_axes = [lifts_all or is_batch(x) for x in leaves]
        self._is_array = [is_batched and not _is_scalar(x) for x, is_batched in zip(leaves, self.has_batch_axes, strict=True)]
        self.arrays = [
            unwrap_batch(x, self.levels) if is_batched else x for x, is_batched in zip(leaves, self.has_batch_axes, strict=True)
        ]
        self._structure: Any = None  # of the results of the last call
        self._scalars: list[bool | None] = []  # whether each of these is a scalar; None if it is not batched

    def scope(self) -> Setting:
        """The context of the vmaps around the construction, also after these have returned."""
        current = wrappers.get()
        is_within = current[: len(self._wrappers)] == self._wrappers
        return Setting({vmaps: self._vmaps, wrappers: current if is_within else (*self._wrappers, *current)})

    def wrap(self, arrays: Sequence[Any]) -> list[Any]:
        """Wrap arguments as the function under vmap takes them."""
        triples = zip(arrays, self.has_batch_axes, self._is_array, strict=True)
        return [wrap_batch(x, self.levels, is_array=is_array) if is_batched else x for x, is_batched, is_array in triples]

    def __call__(self, *arrays: object) -> list[Any]:
        """Call the function; returns the leaves of its result, batched ones with the batch axes first."""
        return self.run(self._f, arrays)

    def run(self, f: Callable[..., Any], arrays: Sequence[Any], lifts_all: bool = False) -> list[Any]:
        """Call another function of the same arguments; if `lifts_all`, all leaves of its result get batch axes."""
        with LiveLevels(self.levels), self.scope():
            leaves, self._structure = flatten(f(*self.wrap(arrays)))
            self._scalars = [_is_scalar(x) if lifts_all or is_batch(x) else None for x in leaves]
            pairs = zip(leaves, self._scalars, strict=True)
            return [x if is_scalar is None else unwrap_batch(x, self.levels) for x, is_scalar in pairs]

    def _wrap_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        pairs = zip(leaves, self._scalars, strict=True)
        return [x if s is None else wrap_batch(x, self.levels, is_array=not s) for x, s in pairs]

    def wrap_results(self, leaves: Sequence[Any]) -> Any:
        """Wrap the leaves of a result, and nest them as in the last call."""
        return unflatten(self._structure, self._wrap_leaves(leaves))

    def pull(self, pull: Callable[..., Any], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments from those of the results, by a function `pull` that runs under vmap."""
        with LiveLevels(self.levels), self.scope():
            argument_cotangents = [unwrap_batch(a, self.levels) for a in pull(tuple(self._wrap_leaves(cotangents)))]
        axes = tuple(range(len(self.levels)))
        return [
            a if is_batched else np.sum(a, axis=axes)
            for a, is_batched in zip(argument_cotangents, self.has_batch_axes, strict=True)
        ]


def _is_scalar(x: NDArray[Any]) -> bool:
    return bool(getattr(x, "is_scalar", not np.ndim(x)))
