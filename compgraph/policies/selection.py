"""Taking, sorting, moving, padding and joining elements.

Some of NumPy's own implementations write into a plain array, or make one of their argument. For these there are
implementations here, of recorded functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compositions import pieces
from .policy import Policy

OURS: dict[Callable[..., Any], Callable[..., Any]] = {}


def instead_of(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let nodes be given to the decorated function where NumPy's is called."""

    def enter(ours: Any) -> Any:
        OURS[function] = ours
        return ours

    return enter


def _record(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Record a function of this module, as a node's protocol does with one of NumPy's."""
    node = next(x for x in operands if hasattr(type(x), "plain"))
    return node.__array_function__(function, (type(node),), operands, options)


def _leaves(value: Any) -> list[Any]:
    """What stands in lists and tuples, however deep."""
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, (list, tuple)) else [value]


def _stacked(value: Any) -> Any:
    """A sequence with nodes in it as one array."""
    return np.stack([_stacked(part) for part in value]) if isinstance(value, (list, tuple)) else value


# ----------------------------------------------------------------------------------------------- taking


@instead_of(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices of `a` where a condition holds."""
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    return _record(np.take, a, np.flatnonzero(condition), axis=axis, out=out)


def compress_method(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """``a.compress(condition)``."""
    return compress(condition, a, axis, out)


@instead_of(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements of `arr` where a condition holds."""
    return compress(np.ravel(condition), np.ravel(arr))


@instead_of(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element of `a`, the element of the choice of that number."""
    if out is not None:
        raise TypeError("np.choose(..., out=) would lose the graph of its result; use result = np.choose(...)")
    index, *parts = np.broadcast_arrays(a, *choices)
    if index.dtype.kind not in "biu":
        raise TypeError(f"np.choose: the numbers of the choices must be integers, not {index.dtype}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    last = len(parts) - 1
    if mode == "raise" and np.any((index < 0) | (index > last)):
        raise ValueError("invalid entry in choice array")
    index = np.clip(index, 0, last) if mode == "clip" else np.remainder(index, last + 1)
    return np.take_along_axis(np.stack(parts), np.expand_dims(index.astype(int), 0), 0)[0]


@instead_of(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The element of the first choice whose condition holds, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    for number, condition in enumerate(condlist):
        if np.result_type(condition).kind != "b":
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    dtype = np.result_type(*[x if isinstance(x, (int, float, complex)) else np.result_type(x) for x in (*choicelist, default)])
    result = default
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        result = np.where(condition, choice, result)
    return result if result.dtype == dtype else result.astype(dtype)


def _as_positions(obj: Any, x: Any, axis: Any) -> Any:
    """A slice of an axis as the positions it means."""
    return np.arange(*obj.indices(np.size(x) if axis is None else np.shape(x)[axis])) if isinstance(obj, slice) else obj


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """``numpy.insert``, which is recorded with positions only."""
    return np.insert(arr, obj, values, axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """``numpy.delete``, which is recorded with positions only."""
    return np.delete(arr, obj, axis)


@instead_of(np.insert)
def insert_at(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """An array with values before the places `obj`."""
    return _record(insert, arr, _as_positions(obj, arr, axis), values, axis=axis)


@instead_of(np.delete)
def delete_at(arr: Any, obj: Any, axis: Any = None) -> Any:
    """An array without the elements at the places `obj`."""
    obj = _as_positions(obj, arr, axis)
    return _record(delete, arr, obj if np.size(obj) else np.zeros(0, int), axis=axis)


@instead_of(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Elements in order, as complex numbers."""
    ordered = np.sort(a)
    if ordered.dtype.kind == "c":
        return ordered
    return ordered.astype({"b": "F", "B": "F", "h": "F", "H": "F", "g": "G"}.get(ordered.dtype.char, "D"))


# ------------------------------------------------------------------------------------------------ sets


def unique(ar: Any, sorted: bool = True, **options: Any) -> Any:
    """``numpy.unique``, of which only the positions are used."""
    found = np.unique(ar, return_index=True, **options)
    if not sorted and len(found) == 2 and options["axis"] is None:  # NumPy has an order of its own
        values = np.unique(ar, equal_nan=options["equal_nan"], sorted=False)
        if values.shape == found[0].shape:
            return values, found[1][np.argsort(np.argsort(values, kind="stable"))]
    return found


@instead_of(np.unique)
def unique_values(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The values that occur, each taken from where it first stands."""
    options = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": axis, "equal_nan": equal_nan}
    _, first, *others = _record(unique, ar, sorted=sorted or return_index, **options)
    values = np.take(ar, first, axis=axis)
    found = (values, *([first] if return_index else []), *others)
    return found if len(found) > 1 else values


@instead_of(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The values of the first array that are not in the second."""
    ar1 = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return compress(np.isin(ar1, ar2, assume_unique=True, invert=True), ar1)


@instead_of(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The values that are in one array only."""
    if not assume_unique:
        ar1, ar2 = np.unique(ar1), np.unique(ar2)
    both = np.concatenate((ar1, ar2), axis=None)
    if both.size == 0:
        return both
    both = np.sort(both)
    flag = np.concatenate(([True], both[1:] != both[:-1], [True]))
    return both[flag[1:] & flag[:-1]]


@instead_of(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The values that are in both arrays, taken from the first."""
    first1: Any = None
    first2: Any = None
    if assume_unique:
        ar1, ar2 = np.ravel(ar1), np.ravel(ar2)
    else:
        ar1, first1 = np.unique(ar1, return_index=True)
        ar2, first2 = np.unique(ar2, return_index=True)
    both = np.concatenate((ar1, ar2))
    order = np.argsort(both, kind="stable")
    both = both[order]
    mask = both[1:] == both[:-1]
    values = both[:-1][mask]
    if not return_indices:
        return values
    place1, place2 = order[:-1][mask], order[1:][mask] - np.size(ar1)
    return (values, place1, place2) if assume_unique else (values, first1[place1], first2[place2])


# ------------------------------------------------------------------------------------- joining, moving


@instead_of(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Each vector along an axis of its own."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    grids: Any = [np.reshape(x, [-1 if i == axis else 1 for i in range(len(xi))]) for x, axis in zip(xi, axes, strict=True)]
    if not sparse:
        grids = np.broadcast_arrays(*grids)
    return tuple([x.copy() for x in grids]) if copy else grids


@instead_of(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of vectors, of all vectors along an axis."""
    rows = np.moveaxis(arr, axis, -1)
    shape = rows.shape[:-1]
    if 0 in shape:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = np.stack([_stacked(func1d(rows[(*place, ...)], *args, **kwargs)) for place in np.ndindex(shape)])
    inner = found.ndim - 1
    found = np.reshape(found, (*shape, *found.shape[1:]))
    axis %= np.ndim(arr)
    outer = list(range(len(shape)))
    return np.transpose(found, (*outer[:axis], *range(len(shape), len(shape) + inner), *outer[axis:]))


@instead_of(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """A function of an array and an axis, one axis after the other."""
    value = a
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        axis = axis + np.ndim(a) if axis < 0 else axis
        found = func(value, axis)
        found = found if found.ndim == value.ndim else np.expand_dims(found, axis)
        if found.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = found
    return value


def nan_to_num(x: Any, **numbers: Any) -> Any:
    """``numpy.nan_to_num``, which never writes into `x`."""
    return np.nan_to_num(x, **numbers)


@instead_of(np.nan_to_num)
def finite(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in place of what is not finite."""
    if not copy:
        raise TypeError("np.nan_to_num(..., copy=False) would write into the node; leave copy out")
    if any(hasattr(type(value), "plain") for value in (nan, posinf, neginf)):
        raise TypeError("np.nan_to_num: nan=, posinf= and neginf= cannot be nodes; use np.where(np.isfinite(x), x, node)")
    return _record(nan_to_num, x, nan=nan, posinf=posinf, neginf=neginf)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """``numpy.pad``, which is recorded with plain options only."""
    return np.pad(array, pad_width, mode, **options)


@instead_of(np.pad)
def pad_ends(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """An array with more elements at its ends."""
    if callable(mode):
        raise TypeError("np.pad: mode= cannot be a function, which writes into an array; use np.concatenate")
    nodes = [k for k, v in options.items() if any(hasattr(type(leaf), "plain") for leaf in _leaves(v))]
    pad_width = dict(pad_width) if isinstance(pad_width, dict) else tuple(pad_width) if isinstance(pad_width, list) else pad_width
    if nodes == ["constant_values"] and mode == "constant":
        axes = np.ndim(array)
        ends = np.pad(np.zeros(np.shape(array), int), pad_width, constant_values=1 + np.arange(2 * axes).reshape(axes, 2))
        values = np.ravel(np.broadcast_to(_stacked(options["constant_values"]), (axes, 2)))
        padded = np.pad(array, pad_width)
        return np.where(ends > 0, values[ends - 1], padded).astype(padded.dtype)
    if nodes:
        raise TypeError(f"np.pad: {nodes[0]}= cannot be a node; give node.value")
    return _record(pad, array, pad_width=pad_width, mode=mode, **options)


@instead_of(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803
    """The powers of a vector as columns, each the one before times the vector."""
    if np.ndim(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    x = x.astype(np.promote_types(x.dtype, int))
    count = np.size(x) if N is None else N
    powers = [np.ones_like(x)]
    while len(powers) < count:
        powers.append(x if len(powers) == 1 else powers[-1] * x)
    powers = powers[:count] if increasing else powers[:count][::-1]
    return np.stack(powers, axis=1) if powers else np.zeros((np.size(x), 0), x.dtype)


@instead_of(np.block)
def block(arrays: Any) -> Any:
    """Nested lists of blocks as one array."""
    depth, inner = 0, arrays
    while isinstance(inner, (list, tuple)):
        if not len(inner):
            raise ValueError("List at arrays cannot be empty")
        depth, inner = depth + 1, inner[0]

    def leaves(part: Any, level: int) -> list[Any]:
        if isinstance(part, (list, tuple)) != (level < depth):
            raise ValueError("List depths are mismatched in np.block")
        return [leaf for p in part for leaf in leaves(p, level + 1)] if level < depth else [part]

    axes = max(depth, *map(np.ndim, leaves(arrays, 0)))

    def joined(part: Any, level: int) -> Any:
        if level == depth:
            return np.reshape(part, (1,) * (axes - np.ndim(part)) + np.shape(part))
        return np.concatenate([joined(p, level + 1) for p in part], axis=level - depth)

    return joined(arrays, 0)


# ----------------------------------------------------------------------------------------------- policy

POLICY = Policy(
    smooth={
        np.take: "a indices",
        np.take_along_axis: "arr indices",
        np.sort: "a",
        np.partition: "a",
        np.roll: "a",
        np.repeat: "a repeats",
        np.tile: "A",
        np.diagonal: "a",
        np.diag: "v",
        np.diagflat: "v",
        np.trace: "a",
        delete: "arr obj",
        insert: "arr obj values",
        np.full_like: "a fill_value",
        nan_to_num: "x",
        np.lib.stride_tricks.sliding_window_view: "x",
        pad: "array",
    },
    piecewise={
        np.argpartition: "a",
        np.lexsort: "keys",
        unique: "ar",
        np.argwhere: "a",
        np.isin: "element test_elements",
        np.unravel_index: "indices",
        np.packbits: "a",
        np.unpackbits: "a",
        np.nanargmax: "a",
        np.nanargmin: "a",
    },
    composed=frozenset(
        {
            np.flip, np.fliplr, np.flipud, np.rot90, np.tril, np.triu, np.resize, np.trim_zeros,
            np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.union1d, np.astype, np.real_if_close,
        }
    ),
    plain=frozenset(
        {np.ix_, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from, np.ravel_multi_index}
    ),
    instead={**OURS, np.piecewise: pieces.piecewise},
    methods={
        "take": np.take,
        "repeat": np.repeat,
        "diagonal": np.diagonal,
        "trace": np.trace,
        "choose": np.choose,
        "compress": compress_method,
        "argpartition": np.argpartition,
    },
)  # fmt: skip
