"""Arrays with labels, pandas' and xarray's: they go in as their numbers, and derivatives come out with their labels.

Neither library is imported: a class is known by its name. What a function is given are plain arrays, which meet by position,
where labelled ones would meet by label. So arguments whose labels call for another order are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

LABELLED = {("pandas", "Series"), ("pandas", "DataFrame"), ("xarray", "DataArray"), ("xarray", "Dataset")}


@functools.cache
def _kind_of(kind: Any) -> str | None:
    for base in kind.__mro__:
        if (base.__module__.partition(".")[0], base.__name__) in LABELLED:
            return str(base.__name__)
    return None


def kind_of(value: Any) -> str | None:
    """The name of the class of labelled arrays that a value is of; None for others."""
    kind: Any = type(value)
    return _kind_of(kind)


def is_labelled(value: Any) -> bool:
    """Whether a value is an array with labels."""
    return kind_of(value) is not None


def named_labels(values: Iterable[Any]) -> str:
    """The classes of the labelled arrays among some values, for messages: ``a Series``."""
    return " and ".join(dict.fromkeys(f"a {type(value).__name__}" for value in values if is_labelled(value)))


def labelled(array: Any, like: Any) -> Any:
    """A plain array with the labels of an argument, if it has one's shape; else, or where no labels are, the array itself."""
    kind = kind_of(like)
    if kind is None or type(array) is not np.ndarray or array.shape != like.shape:
        return array
    if kind == "DataArray":
        return like.copy(data=array)
    axes = {"index": like.index, "name": like.name} if kind == "Series" else {"index": like.index, "columns": like.columns}
    return type(like)(array, **axes)


def require_aligned(operator: str, leaves: Iterable[tuple[str, Any]]) -> None:
    """Raise a TypeError for arguments that would meet in another order by their labels than by position.

    Parameters
    ----------
    operator : str
        Who asks, for messages.
    leaves : iterable of (str, object)
        The arguments, and what to call them.
    """
    found = [(name, leaf) for name, leaf in leaves if is_labelled(leaf)]
    for name, leaf in found:
        if kind_of(leaf) == "Dataset":
            raise TypeError(f"{operator}: {name} is a Dataset, of several arrays; pass a dictionary of them, dict(x.data_vars)")
    for (one, a), (other, b) in combinations(found, 2):
        for (which, first), (another, second) in product(_axes(a), _axes(b)):
            if _differ(first, second):
                raise TypeError(
                    f"{operator}: {one} (a {type(a).__name__}, {which}) and {other} (a {type(b).__name__}, {another}) have the "
                    "same labels in another order, or some of them. The function is given their numbers as plain arrays, "
                    "which meet by position: align them before (a.align(b), b.reindex_like(a)), or pass a.to_numpy() where "
                    "position is meant"
                )
        if kind_of(a) == kind_of(b) == "DataArray" and set(a.dims) == set(b.dims) and a.dims != b.dims:
            raise TypeError(
                f"{operator}: {one} has dimensions {a.dims}, {other} {b.dims}. The function is given their numbers as plain "
                "arrays, whose axes meet by position: transpose one before, b.transpose(*a.dims)"
            )


def _axes(leaf: Any) -> Iterator[tuple[str, Any]]:
    """The labels of each axis that has some, and what to call the axis."""
    if kind_of(leaf) == "DataArray":
        yield from ((f"dimension {dim!r}", index) for dim, index in leaf.indexes.items())
        return
    yield "index", leaf.index
    if leaf.ndim == 2:
        yield "columns", leaf.columns


def _differ(one: Any, other: Any) -> bool:
    """Whether two rows of labels, as long as each other, share some and are not the same."""
    if one is other or len(one) != len(other) or one.equals(other):
        return False
    return len(one.intersection(other, sort=False)) > 0
