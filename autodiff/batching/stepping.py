"""Stepping out of vmaps, for what knows nothing of them: it sees arrays with the axes of examples in front, or one example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.graph import DiffersError
from compgraph.graph.context import Setting, wrappers

from ..arguments import flatten, unflatten
from .active import outside, vmaps
from .examples import stacked
from .lifting import levels_around, put_back, taken_out
from .values import is_batch


class SteppedOut:
    """A function of arrays, called within vmaps, as one that can be called outside of them.

    It takes those of its arguments that differ between examples with the axes of examples in front, and steps into the vmaps again
    to call the function.

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
        self._is_array = [d and not getattr(x, "is_scalar", not np.ndim(x)) for x, d in zip(leaves, self.differs, strict=True)]
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
        """The arrays in what the function returns, with the axes of examples."""
        return self.run(self._f, bases)

    def run(self, f: Callable[..., Any], bases: Sequence[Any]) -> list[Any]:
        """The same of another function."""
        with self.within():
            found, structure = flatten(f(*self.seen(bases)))
            marks = [x.is_scalar if is_batch(x) else None for x in found]
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
        with self.within():
            given = tuple([a if m is None else put_back(a, self.levels, is_array=not m) for a, m in pairs])
            found = [taken_out(a, self.levels) for a in pull(given)]
        axes = tuple(range(len(self.levels)))
        return [a if d else np.sum(a, axis=axes) for a, d in zip(found, self.differs, strict=True)]


def each_example(name: str, f: Callable[..., Any], *args: Any) -> Any:
    """What a function gives for one example after the other, stacked; its arguments may nest, and do not all differ."""
    leaves, structure = flatten(args)
    level = max(x.level for x in leaves if is_batch(x))
    places = [i for i, x in enumerate(leaves) if is_batch(x) and x.level == level]
    if not leaves[places[0]].count:
        raise DiffersError(f"vmap: {name} runs for one example after the other, and is not supported without any")
    found = []
    with outside():
        for k in range(leaves[places[0]].count):
            one = list(leaves)
            for i in places:
                one[i] = leaves[i].values[k]
            found.append(f(*unflatten(structure, one)))
        results = [flatten(one) for one in found]
        parts = [stacked(list(each), name) for each in zip(*[leaves for leaves, _ in results], strict=True)]
    return unflatten(results[0][1], [put_back(np.asarray(part) if np.isscalar(part) else part, [level]) for part in parts])


def any_differs(*values: Any) -> bool:
    """Whether an array among nested values differs between examples."""
    return any(map(is_batch, flatten(values)[0]))
