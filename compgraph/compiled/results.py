"""What a compiled function returns: how its results nest, which of them a program computes, and whether they are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..bind import stack_object_array
from ..graph import to_values
from ..guards import Shape
from ..trees import flatten, unflatten
from ..values import InertScalarNode, ScalarNode, Value, unwrap_buffer
from .refusals import RefusedError

ndarray = np.ndarray
_NUMBERS = frozenset({int, float, complex, bool})
_TOLERANCE = {2: 1e-1, 4: 1e-3, 8: 1e-6}  # by bytes of a real number; a traced derivative may be computed in another order
_ADDED = 2**12  # by how many roundings of a number a sum of such numbers may differ


class Results:
    """How the results of a function nest, and where each comes from.

    Parameters
    ----------
    returned : object
        What the function returned of stand-ins.
    expected : tuple
        What it gave by NumPy (see `kept`), which tells 0-d arrays from NumPy's scalars.

    Attributes
    ----------
    outputs : list of Node
        Those that are computed.
    """

    def __init__(self, returned: Any, expected: tuple[list[Any], Any]) -> None:
        leaves, structure = flatten(returned)
        if any(isinstance(leaf, Shape) for leaf in leaves):  # tuples, which note what is read of them
            returned = unflatten(structure, [tuple(leaf) if isinstance(leaf, Shape) else leaf for leaf in leaves])
            leaves, structure = flatten(returned)
        self.structure = structure
        others = expected[0] if len(expected[0]) == len(leaves) else leaves
        self.outputs: list[Any] = []
        self._parts: list[tuple[bool, Any]] = []  # whether it is a 0-d array, and its place; or None and a constant
        for found, other in zip(leaves, others, strict=True):
            leaf = as_result(found)
            if isinstance(leaf, Value):
                self._parts.append((leaf.ndim == 0 and isinstance(other, ndarray), len(self.outputs)))
                self.outputs.append(leaf)
            else:
                self._parts.append((None, _constant(leaf)))  # type: ignore[arg-type]

    def computed(self, returned: Any) -> tuple[Any, ...]:
        """What stands in other results where these have what is computed."""
        leaves = flatten(returned)[0]
        return tuple([leaf for leaf, (kind, _) in zip(leaves, self._parts, strict=True) if kind is not None])

    def builder(self) -> Callable[[Sequence[Any]], Any]:
        """What makes the results for the caller of the tuple that a program gives."""
        simple = all(kind is False for kind, _ in self._parts)
        if simple and self.structure.is_leaf():
            return _first
        if simple and len(self._parts) > 1 and self.structure == flatten((0,) * len(self._parts))[1]:
            return tuple
        parts, structure = tuple(self._parts), self.structure

        def built(values: Sequence[Any]) -> Any:
            return unflatten(structure, [_made(kind, part, values) for kind, part in parts])

        return built


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _made(kind: Any, part: Any, values: Sequence[Any]) -> Any:
    if kind is None:
        return part.copy("K") if type(part) is ndarray else part
    return np.asarray(values[part]) if kind else values[part]


def as_result(value: Any) -> Any:
    """A leaf of what a function returned: of arrays that nodes were written into the node."""
    data = None if isinstance(value, ndarray) else getattr(value, "data", None)
    return data if isinstance(data, Value) else unwrap_buffer(stack_object_array(value))


def _constant(value: Any) -> Any:
    """A result that is no node, to be given again in each run."""
    if type(value) is ndarray and value.dtype.kind in "biufc":
        return value.copy("K")
    if type(value) in _NUMBERS or (isinstance(value, np.generic) and value.dtype.kind in "biufc"):
        return value
    raise RefusedError(f"it returns a {type(value).__name__}, which is no number, no array and no tree of these")


def kept(returned: Any) -> tuple[list[Any], Any]:
    """Results to compare with later: the leaves, arrays copied and nodes as their values, and how they nest."""
    leaves, structure = flatten(returned)
    return [leaf.copy("K") if isinstance(leaf, ndarray) else leaf for leaf in map(_value_of, leaves)], structure


def _value_of(leaf: Any) -> Any:
    """The value of a result as NumPy returns it; scalar nodes become scalars."""
    leaf = as_result(leaf)
    if not isinstance(leaf, Value):
        return leaf
    value = to_values(leaf)
    return value[()] if isinstance(leaf, (ScalarNode, InertScalarNode)) and isinstance(value, ndarray) else value


def require_like(returned: Any, expected: tuple[list[Any], Any], what: str, values: Sequence[Any] = ()) -> None:
    """Raise a RefusedError unless results are those that plain NumPy gave for the same arguments, but for rounding.

    Sums that cancel leave nothing but rounding of the numbers that are added, which are taken to be like `values`.
    """
    leaves, structure = flatten(returned)
    others, like = expected
    rounding = _ADDED * max(map(_rounding, map(np.asarray, values)), default=0.0)
    if structure != like:
        raise RefusedError(f"{what} nests as {structure}, what it gave by NumPy as {like}")
    for place, (found, other) in enumerate(zip(leaves, others, strict=True)):
        if type(found) is not type(other):
            raise RefusedError(f"{what} holds a {_kind(found)} where NumPy gave a {_kind(other)}")
        if isinstance(found, (ndarray, np.generic)):
            if found.dtype != other.dtype or found.shape != other.shape:
                raise RefusedError(f"{what} holds {_kind(found)} where NumPy gave {_kind(other)}")
            if not are_close(found, other, rounding):
                raise RefusedError(f"{what} has other values than by NumPy (result {place})")
        elif repr(found) != repr(other):
            raise RefusedError(f"{what} is {found!r} where NumPy gave {other!r}")


def _kind(value: Any) -> str:
    if isinstance(value, (ndarray, np.generic)):
        return f"{type(value).__name__} of shape {value.shape} and dtype {value.dtype}"
    return type(value).__name__


def are_close(found: Any, other: Any, rounding: float = 0.0) -> bool:
    """Whether numbers are equal but for rounding, which may be so large whatever they are; nan equals nan."""
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, other))
    with np.errstate(all="ignore"):
        tolerance = _TOLERANCE.get(found.real.dtype.itemsize, _TOLERANCE[8])
        return bool(np.allclose(found, other, rtol=tolerance, atol=max(tolerance * _largest(other), rounding), equal_nan=True))


def _largest(values: Any) -> float:
    """The greatest absolute value of numbers that are finite."""
    return float(np.abs(values, where=np.isfinite(values), out=np.zeros(np.shape(values))).max(initial=0.0))


def _rounding(values: Any) -> float:
    """By how much one of some numbers may be rounded."""
    kind = values.dtype.kind
    precision = np.finfo(values.dtype if kind in "fc" else np.float64).eps
    return float(precision) * _largest(values) if kind in "biufc" else 0.0
