"""Example by example, for what is done to one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.values import BatchedValueError

from ..arguments import flatten, unflatten
from .active import one_of
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
        raise BatchedValueError(f"vmap: {name} goes by the numbers of each example, and is not supported without any")
    found = []
    with one_of(level):
        for k in range(some.count):
            one = list(leaves)
            for i in places:
                one[i] = leaves[i].values[k]
            given, named = unflatten(structure, one)
            found.append(f(*given, **named))
        return _joined(found, name, lambda values: some.create_using(values, level))


def _joined(found: list[Any], name: str, together: Callable[[Any], Any]) -> Any:
    """The results of examples as one, nested as they are; what is no array must be the same in all."""
    first = found[0]
    if isinstance(first, (np.ndarray, np.generic)):
        if any(map(is_batch, found)) and together(first).level <= max(x.level for x in found if is_batch(x)):
            raise BatchedValueError(
                f"vmap: {name} runs for one example after the other, and uses a value that differs between them, but not as "
                "an argument (but in a function that it calls, or an object); pass it as one, or loop over the examples in Python"
            )
        return together(stacked(found, name))
    if isinstance(first, dict):
        return _joined_fields(found, name, together)
    if isinstance(first, (tuple, list)):
        parts = [_joined([one[k] for one in found], name, together) for k in range(len(first))]
        return _made(type(first), *parts) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, _NUMBERS) and any(one != first for one in found):
        return together(np.array(found))
    if isinstance(first, str):
        return first if all(one == first for one in found) else tuple(found)
    if any(one is not first and not (type(one) is type(first) and isinstance(one, _NUMBERS) and one == first) for one in found):
        raise BatchedValueError(f"vmap: {name} gives a {type(first).__name__} for each example, which cannot be put together")
    return first


def _made(kind: Any, *parts: Any) -> Any:
    try:
        return kind(*parts)
    except TypeError as error:  # it takes more than its fields
        raise BatchedValueError(f"vmap: a {kind.__name__} of each example cannot be put together; return its fields") from error


def _joined_fields(found: list[Any], name: str, together: Callable[[Any], Any]) -> Any:
    """Dictionaries as one, without what cannot be put together; fields that are refused (SciPy's results have such) stay so."""
    first = found[0]
    made = _made(type(first))
    refused: frozenset[str] = frozenset() if type(first) is dict else getattr(first, "refused", frozenset())
    for key, value in dict.items(first):
        if key in refused:
            made[key] = value
            continue
        with contextlib.suppress(BatchedValueError):
            made[key] = _joined([one[key] for one in found], name, together)
    if refused:
        object.__setattr__(made, "refused", refused)
    return made


_NUMBERS = (bool, int, float, complex)
