"""Example by example, for what is done to one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compgraph.graph import DiffersError

from ..arguments import flatten, unflatten
from .active import outside
from .examples import stacked
from .values import is_batch


def any_differs(*values: Any) -> bool:
    """Whether an array among nested values differs between examples."""
    return any(map(is_batch, flatten(values)[0]))


def each_example(name: str, f: Callable[..., Any], args: Any, options: Any = None) -> Any:
    """``f(*args, **options)`` for one example after the other, stacked; the arguments may nest, and some of them differ."""
    leaves, structure = flatten((args, options or {}))
    level = max(x.level for x in leaves if is_batch(x))
    places = [i for i, x in enumerate(leaves) if is_batch(x) and x.level == level]
    some = leaves[places[0]]
    if not some.count:
        raise DiffersError(f"vmap: {name} goes by the numbers of each example, and is not supported without any")
    found = []
    with outside():
        for k in range(some.count):
            one = list(leaves)
            for i in places:
                one[i] = leaves[i].values[k]
            given, named = unflatten(structure, one)
            found.append(flatten(f(*given, **named)))
        parts = [stacked(list(each), name) for each in zip(*[results for results, _ in found], strict=True)]
    return unflatten(found[0][1], [None if part is None else some.create_using(part, level) for part in parts])
