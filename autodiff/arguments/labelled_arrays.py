"""Labelled arrays of pandas and xarray: functions get their values, and derivatives get their labels.

Neither library is imported; classes are recognized by name. Plain arrays combine by position where labelled ones combine by
label, so arguments whose labels are ordered differently raise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

LABELLED = {("pandas", "Series"), ("pandas", "DataFrame"), ("xarray", "DataArray"), ("xarray", "Dataset")}


@functools.cache
def _labelled_base(kind: Any) -> str | None:
    for base in kind.__mro__:
        if (base.__module__.partition(".")[0], base.__name__) in LABELLED:
            return str(base.__name__)
    return None


def _label_class(value: object) -> str | None:
    """The name of the class of `LABELLED` that a value is an instance of; None for others."""
    kind: Any = type(value)
    return _labelled_base(kind)


def is_labelled(value: object) -> bool:
    """Whether a value is a labelled array."""
    return _label_class(value) is not None


def named_labels(values: Iterable[object]) -> str:
    """The classes of the labelled arrays among some values, for messages: ``a Series``."""
    return " and ".join(dict.fromkeys(f"a {type(value).__name__}" for value in values if is_labelled(value)))


def with_labels(array: Any, like: Any) -> Any:
    """A plain array with the labels of an argument of its shape; others unchanged."""
    kind = _label_class(like)
    if kind is None or type(array) is not np.ndarray or array.shape != like.shape:
        return array
    if kind == "DataArray":
        return like.copy(data=array)
    axes = {"index": like.index, "name": like.name} if kind == "Series" else {"index": like.index, "columns": like.columns}
    return type(like)(array, **axes)


def require_aligned(operator: str, leaves: Iterable[tuple[str, Any]]) -> None:
    """Raise a TypeError for labelled arguments that combine differently by label than by position.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    leaves : iterable of (str, object)
        The names and values of the arguments.
    """
    labelled = [(name, leaf) for name, leaf in leaves if is_labelled(leaf)]
    for name, leaf in labelled:
        if _label_class(leaf) == "Dataset":
            raise TypeError(f"{operator}: {name} is a Dataset, a collection of arrays. Pass a dictionary, dict(x.data_vars)")
    for (name_a, a), (name_b, b) in combinations(labelled, 2):
        for (axis_a, labels_a), (axis_b, labels_b) in product(_labels_of(a), _labels_of(b)):
            if _are_misaligned(labels_a, labels_b):
                raise TypeError(
                    f"{operator}: {name_a} (a {type(a).__name__}, {axis_a}) and {name_b} (a {type(b).__name__}, {axis_b}) have "
                    "the same labels in a different order, or only some labels in common. The function gets plain arrays, which "
                    "combine by position: align the arguments before (a.align(b), b.reindex_like(a)), or pass a.to_numpy() to "
                    "combine by position"
                )
        if _label_class(a) == _label_class(b) == "DataArray" and set(a.dims) == set(b.dims) and a.dims != b.dims:
            raise TypeError(
                f"{operator}: {name_a} has dimensions {a.dims}, but {name_b} has {b.dims}. The function gets plain arrays, "
                "whose axes combine by position: transpose one before, b.transpose(*a.dims)"
            )


def _labels_of(leaf: Any) -> Iterator[tuple[str, Any]]:
    """The name and the labels of each axis that has some."""
    if _label_class(leaf) == "DataArray":
        yield from ((f"dimension {dim!r}", index) for dim, index in leaf.indexes.items())
        return
    yield "index", leaf.index
    if leaf.ndim == 2:
        yield "columns", leaf.columns


def _are_misaligned(a: Any, b: Any) -> bool:
    """Whether two indexes of equal length have labels in common, but are not equal."""
    if a is b or len(a) != len(b) or a.equals(b):
        return False
    return len(a.intersection(b, sort=False)) > 0
