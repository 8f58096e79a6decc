"""Labeled arrays of pandas and xarray: functions receive their values, and derivatives get their labels.

Neither library is imported; classes are recognized by name. Plain arrays combine by position, labeled arrays by label.
Therefore, arguments with differently ordered labels raise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from compgraph.array_types import Operand

LABELED = {("pandas", "Series"), ("pandas", "DataFrame"), ("xarray", "DataArray"), ("xarray", "Dataset")}


@functools.cache
def _labeled_base(cls: Any) -> str | None:
    """Return the name of the base class of a class that is in `LABELED`, or None."""
    for base in cls.__mro__:
        if (base.__module__.partition(".")[0], base.__name__) in LABELED:
            return str(base.__name__)
    return None


def _label_class(value: object) -> str | None:
    """Return the name of the class in `LABELED` that a value is an instance of, or None."""
    cls: Any = type(value)
    return _labeled_base(cls)


def is_labeled(value: object) -> bool:
    """Whether a value is a labeled array."""
    return _label_class(value) is not None


def describe_labeled(values: Iterable[object]) -> str:
    """Describe the labeled arrays among some values by their classes: ``a Series``."""
    return " and ".join(dict.fromkeys(f"a {type(value).__name__}" for value in values if is_labeled(value)))


def attach_labels(array: Operand, like: Any) -> Any:
    """Return a plain array with the labels of an argument of the same shape; return other values unchanged."""
    class_name = _label_class(like)
    if class_name is None or type(array) is not np.ndarray or array.shape != like.shape:
        return array
    if class_name == "DataArray":
        return like.copy(data=array)
    axes = {"index": like.index, "name": like.name} if class_name == "Series" else {"index": like.index, "columns": like.columns}
    return type(like)(array, **axes)


def require_aligned(operator: str, leaves: Iterable[tuple[str, Any]]) -> None:
    """Raise a TypeError for labeled arguments that combine differently by label than by position.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    leaves : iterable of (str, object)
        The names and values of the arguments.
    """
    labeled = [(name, leaf) for name, leaf in leaves if is_labeled(leaf)]
    for name, leaf in labeled:
        if _label_class(leaf) == "Dataset":
            raise TypeError(f"{operator}: {name} is a Dataset, a collection of arrays. Pass a dictionary, dict(x.data_vars)")
    for (name_a, a), (name_b, b) in combinations(labeled, 2):
        for (axis_a, labels_a), (axis_b, labels_b) in product(_labels_of(a), _labels_of(b)):
            if _are_misaligned(labels_a, labels_b):
                raise TypeError(
                    f"{operator}: {name_a} (a {type(a).__name__}, {axis_a}) and {name_b} (a {type(b).__name__}, {axis_b}) have "
                    "the same labels in a different order, or only some labels in common. The function gets plain arrays, which "
                    "combine by position: align the arguments first (a.align(b), b.reindex_like(a)), or pass a.to_numpy() to "
                    "combine by position"
                )
        if _label_class(a) == _label_class(b) == "DataArray" and set(a.dims) == set(b.dims) and a.dims != b.dims:
            raise TypeError(
                f"{operator}: {name_a} has dimensions {a.dims}, but {name_b} has {b.dims}. The function gets plain arrays, "
                "whose axes combine by position: transpose one first, b.transpose(*a.dims)"
            )


def _labels_of(leaf: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the labels of each labeled axis."""
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
