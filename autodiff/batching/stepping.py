"""Stepping out of vmaps, for what knows nothing of them: it sees arrays with the axes of examples in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.context import Setting, wrappers

from ..arguments import flatten, unflatten
from .active import Alive, vmaps
from .lifting import levels_around, put_back, taken_out
from .values import is_batch


class SteppedOut:
    """A function of arrays, called within vmaps, as one that can be called outside of them.

    It takes those of its arguments that differ between examples with the axes of examples in front, and steps into the vmaps
    again to call the function.

    Parameters
    ----------
    f : callable
        A function of arrays that returns nested arrays.
    leaves : sequence
        What it is called with.
    lifts : bool
        Whether arrays that are the same for all examples get the axes of examples as well.

    Attributes
    ----------
    bases : list
        Its arguments outside of the vmaps.
    differs : list of bool
        Which of them have the axes of examples.
    """

    def __init__(self, f: Callable[..., Any], leaves: Sequence[Any], lifts: bool = False) -> None:
        self._f, self._around, self._wrapped = f, vmaps.get(), wrappers.get()
        self.levels = levels_around()
        self.differs = [lifts or is_batch(x) for x in leaves]
        self._is_array = [d and not _is_scalar(x) for x, d in zip(leaves, self.differs, strict=True)]
        self.bases = [taken_out(x, self.levels) if d else x for x, d in zip(leaves, self.differs, strict=True)]
        self._results: Any = None

    def within(self) -> Setting:
        """The context of the vmaps, also when they have returned."""
        now = wrappers.get()
        known = now[: len(self._wrapped)] == self._wrapped
        return Setting({vmaps: self._around, wrappers: now if known else (*self._wrapped, *now)})

    def seen(self, bases: Sequence[Any]) -> list[Any]:
        """Arguments as one example sees them."""
        triples = zip(bases, self.differs, self._is_array, strict=True)
        return [put_back(x, self.levels, is_array=is_array) if d else x for x, d, is_array in triples]

    def __call__(self, *bases: Any) -> list[Any]:
        """The arrays in what the function returns, with the axes of examples where they differ."""
        return self.run(self._f, bases)

    def run(self, f: Callable[..., Any], bases: Sequence[Any], lifts: bool = False) -> list[Any]:
        """The same of another function, and if it `lifts` with these axes for all."""
        with Alive(self.levels), self.within():
            found, structure = flatten(f(*self.seen(bases)))
            marks = [_is_scalar(x) if lifts or is_batch(x) else None for x in found]
            self._results = structure, marks
            return [x if mark is None else taken_out(x, self.levels) for x, mark in zip(found, marks, strict=True)]

    def back(self, found: Sequence[Any]) -> Any:
        """Results as one example sees them, nested as the function returned them last."""
        structure, marks = self._results
        pairs = zip(found, marks, strict=True)
        return unflatten(structure, [x if m is None else put_back(x, self.levels, is_array=not m) for x, m in pairs])

    def adjoints(self, pull: Callable[..., Any], adjoints: Sequence[Any]) -> list[Any]:
        """The adjoints of the arguments from those of the results, where `pull` gives those of one example."""
        _, marks = self._results
        pairs = zip(adjoints, marks, strict=True)
        with Alive(self.levels), self.within():
            given = tuple([a if m is None else put_back(a, self.levels, is_array=not m) for a, m in pairs])
            found = [taken_out(a, self.levels) for a in pull(given)]
        axes = tuple(range(len(self.levels)))
        return [a if d else np.sum(a, axis=axes) for a, d in zip(found, self.differs, strict=True)]


def _is_scalar(x: Any) -> bool:
    return bool(getattr(x, "is_scalar", not np.ndim(x)))
