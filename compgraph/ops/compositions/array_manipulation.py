"""Joining, moving, taking, choosing and sorting elements, functions defined piecewise, and sets.

NumPy's own implementations write into a plain array, or convert their argument to a plain array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...array_types import Array
from .tools import as_array, ensure_array, is_node, leaves, record_call, stack_sequence

# ------------------------------------------------------------------------------------- joining, moving


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """``numpy.meshgrid``: each vector along an axis of its own."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    grids: Any = [np.reshape(x, [-1 if i == axis else 1 for i in range(len(xi))]) for x, axis in zip(xi, axes, strict=True)]
    if not sparse:
        grids = np.broadcast_arrays(*grids)
    return tuple([x.copy() for x in grids]) if copy else grids


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: object, **kwargs: object) -> Any:
    """``numpy.apply_along_axis``: a function of vectors, applied to each vector along an axis."""
    rows = np.moveaxis(arr, axis, -1)
    shape = rows.shape[:-1]
    if 0 in shape:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    result = np.stack([stack_sequence(func1d(rows[(*index, ...)], *args, **kwargs)) for index in np.ndindex(shape)])
    inner = result.ndim - 1
    result = np.reshape(result, (*shape, *result.shape[1:]))
    axis %= np.ndim(arr)
    outer = list(range(len(shape)))
    return np.transpose(result, (*outer[:axis], *range(len(shape), len(shape) + inner), *outer[axis:]))


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """``numpy.apply_over_axes``: a function of an array and an axis, applied for one axis after the other."""
    value = a
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        axis = axis + np.ndim(a) if axis < 0 else axis
        result = func(value, axis)
        result = result if result.ndim == value.ndim else np.expand_dims(result, axis)
        if result.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


def nan_to_num(x: Any, **numbers: Any) -> Any:
    """``numpy.nan_to_num`` as it is recorded: without ``copy=False``, which would write into `x`."""
    return np.nan_to_num(x, **numbers)


def replace_nonfinite(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``numpy.nan_to_num``: replace values that are not finite by numbers, which may be nodes."""
    numbers = {"nan": nan, "posinf": posinf, "neginf": neginf}
    result = record_call(nan_to_num, x, **{name: 0.0 if is_node(value) else value for name, value in numbers.items()})
    for name, test in (("nan", np.isnan), ("posinf", np.isposinf), ("neginf", np.isneginf)):
        if not is_node(value := numbers[name]):
            continue
        if result.dtype.kind == "c" or not np.can_cast(value.dtype, result.dtype, "same_kind"):
            raise TypeError(
                f"np.nan_to_num: {name}= is a node of {value.dtype}, which cannot replace elements of x, {result.dtype}. Use "
                "np.where(np.isfinite(x), x, node)"
            )
        result = np.where(test(x), value, result).astype(result.dtype)
    return result[()] if result.ndim == 0 else result


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: object) -> Any:
    """``numpy.pad`` as it is recorded: no option is a node."""
    return np.pad(array, pad_width, mode, **options)


def pad_with_nodes(array: Any, pad_width: Any, mode: NDArray[Any] | list[Any] | str = "constant", **options: object) -> Any:
    """``numpy.pad``, whose `constant_values` may be nodes: they are selected by position. Other calls are recorded as `pad`."""
    if callable(mode):
        raise TypeError("np.pad: mode= cannot be a function, because it would write into a plain array. Use np.concatenate")
    widths = list(pad_width.values()) if isinstance(pad_width, dict) else [pad_width]
    noninteger_nodes = [leaf for leaf in leaves(widths) if is_node(leaf) and leaf.dtype.kind not in "iu"]
    if noninteger_nodes:
        raise TypeError(f"np.pad: pad_width= must contain integers, not a node of {noninteger_nodes[0].dtype}. Use int(node)")
    array = stack_sequence(array)  # NumPy would dispatch a list of nodes to this function again, in an infinite recursion
    node_options = [k for k, v in options.items() if any(is_node(leaf) for leaf in leaves(v))]
    pad_width = dict(pad_width) if isinstance(pad_width, dict) else tuple(pad_width) if isinstance(pad_width, list) else pad_width
    if node_options == ["constant_values"] and mode == "constant":
        axes = np.ndim(array)
        # 0 within the array; in the padding, 1 plus the position of its value in `values`
        pad_numbers = np.pad(np.zeros(np.shape(array), int), pad_width, constant_values=1 + np.arange(2 * axes).reshape(axes, 2))
        values = np.ravel(np.broadcast_to(stack_sequence(options["constant_values"]), (axes, 2)))
        padded = np.pad(array, pad_width)
        return np.where(pad_numbers > 0, values[pad_numbers - 1], padded).astype(padded.dtype)
    if node_options:
        raise TypeError(f"np.pad: {node_options[0]}= cannot be a node; pass node.value")
    return record_call(pad, array, pad_width=pad_width, mode=mode, **options)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803
    """``numpy.vander``: the powers of a vector as columns, each the product of the preceding one and the vector."""
    if np.ndim(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    x = x.astype(np.promote_types(x.dtype, int))
    count = np.size(x) if N is None else N
    powers = [np.ones_like(x)]
    while len(powers) < count:
        powers.append(x if len(powers) == 1 else powers[-1] * x)
    powers = powers[:count] if increasing else powers[:count][::-1]
    return np.stack(powers, axis=1) if powers else np.zeros((np.size(x), 0), x.dtype)


def block(arrays: NDArray[Any] | Sequence[Any]) -> Any:
    """``numpy.block``: nested lists of blocks as one array."""
    depth, inner = 0, arrays
    while isinstance(inner, list):
        if not inner:
            raise ValueError("List at arrays cannot be empty")
        depth, inner = depth + 1, inner[0]

    def collect_blocks(part: Any, level: int) -> list[Any]:
        if isinstance(part, tuple):
            raise TypeError("np.block takes lists, not tuples. Write the blocks as nested lists.")
        if isinstance(part, list) != (level < depth):
            raise ValueError("List depths are mismatched in np.block")
        return [leaf for p in part for leaf in collect_blocks(p, level + 1)] if level < depth else [part]

    axes = max(depth, *map(np.ndim, collect_blocks(arrays, 0)))

    def join_blocks(part: Any, level: int) -> Any:
        if level == depth:
            return np.reshape(part, (1,) * (axes - np.ndim(part)) + np.shape(part))
        return np.concatenate([join_blocks(p, level + 1) for p in part], axis=level - depth)

    return join_blocks(arrays, 0)


# ----------------------------------------------------------------------------------------------- taking


def compress(condition: Any, a: Any, axis: int | tuple[int, ...] | None = None, out: Any = None) -> Any:
    """The slices of `a` where a condition holds."""
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    return record_call(np.take, a, np.flatnonzero(condition), axis=axis, out=out)


def compress_method(
    a: object, condition: NDArray[Any] | list[Any], axis: int | tuple[int, ...] | None = None, out: object = None
) -> Any:
    """``a.compress(condition)``."""
    return compress(condition, a, axis, out)


def extract(condition: Any, arr: Any) -> Any:
    """The elements of `arr` where a condition holds."""
    return compress(np.ravel(condition), np.ravel(arr))


def choose(a: Any, choices: Any, out: NDArray[Any] | None = None, mode: str = "raise") -> Any:
    """``numpy.choose``: each element of `a` is the number of the array from which an element is taken."""
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


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The element of the first choice whose condition holds, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    condlist, choicelist, default = (
        list(map(_as_array_or_number, condlist)),
        list(map(_as_array_or_number, choicelist)),
        _as_array_or_number(default),
    )
    for number, condition in enumerate(condlist):
        if np.result_type(condition).kind != "b":
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    dtype = np.result_type(*[x if isinstance(x, (int, float, complex)) else np.result_type(x) for x in (*choicelist, default)])
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    return result if result.dtype == dtype else result.astype(dtype)


def _as_array_or_number(value: object) -> Any:
    """Convert a value to an array or node, except a Python number, which has no dtype."""
    return value if type(value) in (int, float, complex) else as_array(value)


def _as_positions(obj: Any, x: Any, axis: int | tuple[int, ...] | None) -> Any:
    """Convert a slice to the positions along an axis, and a list with nodes to one node; return other values unchanged."""
    if isinstance(obj, list) and any(map(is_node, leaves(obj))):
        return stack_sequence(obj)
    return np.arange(*obj.indices(np.size(x) if axis is None else np.shape(x)[axis])) if isinstance(obj, slice) else obj


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """``numpy.insert`` in its recorded form: `obj` are positions, not a slice."""
    return np.insert(arr, obj, values, axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """``numpy.delete`` in its recorded form: `obj` are positions, not a slice."""
    return np.delete(arr, obj, axis)


def insert_at(arr: object, obj: object, values: object, axis: int | tuple[int, ...] | None = None) -> Any:
    """``numpy.insert``: an array with values put in before the positions `obj`."""
    return record_call(insert, arr, _as_positions(obj, arr, axis), values, axis=axis)


def delete_at(arr: Any, obj: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """``numpy.delete``: an array without the elements at the positions `obj`."""
    obj = _as_positions(obj, arr, axis)
    return record_call(delete, arr, obj if np.size(obj) else np.zeros(0, int), axis=axis)


def sort_complex(a: Any) -> Any:
    """Elements in order, as complex numbers."""
    sorted_elements = np.sort(a)
    if sorted_elements.dtype.kind == "c":
        return sorted_elements
    return sorted_elements.astype({"b": "F", "B": "F", "h": "F", "H": "F", "g": "G"}.get(sorted_elements.dtype.char, "D"))


# ------------------------------------------------------------------------------------------- piecewise


def piecewise(x: Any, condlist: ArrayLike, funclist: Any, *args: object, **kw: object) -> Any:
    """``numpy.piecewise``: each function is called on the elements where its condition holds."""
    x = ensure_array(x)
    conditions = _condition_arrays(x, condlist)
    if len(conditions) == len(funclist) - 1:
        conditions.append(~np.any(np.stack(conditions), axis=0))
    if len(conditions) != len(funclist):
        count = len(conditions)
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    result = np.where(False, x, np.zeros_like(x))  # zeros that depend on x: a node even if no condition holds
    for condition, function in zip(conditions, funclist, strict=True):
        selected_elements = x[condition]
        if not callable(function):
            result = _assign_where(result, condition, selected_elements.shape, function)
        elif selected_elements.size:
            result = _assign_where(result, condition, selected_elements.shape, function(selected_elements, *args, **kw))
    return result


def _condition_arrays(x: Any, condlist: Any) -> list[Any]:
    """Convert conditions to boolean arrays; NumPy accepts a single condition in several forms."""
    if _is_scalar(condlist) or (x.ndim != 0 and (_is_scalar(condlist[0]) or not isinstance(condlist[0], (list, np.ndarray)))):
        condlist = [condlist]
    return [_as_boolean(condition) for condition in condlist]


def _is_scalar(condition: NDArray[Any] | list[Any]) -> bool:
    return bool(np.isscalar(condition) or getattr(condition, "is_scalar", False))


def _as_boolean(condition: Any) -> Any:
    condition = as_array(condition)
    return condition if condition.dtype == bool else condition.astype(bool)


def _assign_where(array: Any, condition: Array, shape: tuple[int, ...], values: Any) -> Any:
    """``array[condition] = values`` as a new array; `shape` is that of ``array[condition]``."""
    values = _cast_for_assignment(values, array.dtype)
    if values.ndim > len(shape) and values.shape[: values.ndim - len(shape)] == (1,) * (values.ndim - len(shape)):
        values = np.reshape(values, values.shape[values.ndim - len(shape) :])
    mask = np.broadcast_to(np.reshape(condition, condition.shape + (1,) * (array.ndim - condition.ndim)), array.shape)
    if not values.ndim:
        return np.where(mask, values, array)
    values = np.ravel(np.broadcast_to(values, shape))
    if not values.shape[0]:
        return array
    positions = np.reshape(np.cumsum(mask) - 1, array.shape)
    return np.where(mask, values[np.maximum(positions, 0)], array)


def _cast_for_assignment(values: Any, dtype: DTypeLike | None) -> Any:
    """Convert values to a dtype as an assignment into an array of that dtype does."""
    values = as_array(values) if any(map(is_node, leaves(values))) else values
    if is_node(values):
        return values if values.dtype == dtype else values.astype(dtype)
    converted = np.empty(np.shape(values), dtype)
    converted[...] = values
    return converted


# ------------------------------------------------------------------------------------------------ sets


def unique(ar: ArrayLike, sorted: bool = True, **options: Any) -> Any:
    """``numpy.unique`` with ``return_index=True`` as it is recorded, piecewise constant: `unique_values` uses its positions."""
    outputs = np.unique(ar, return_index=True, **options)
    if not sorted and len(outputs) == 2 and options["axis"] is None:  # in the order of NumPy's hash table
        values = np.unique(ar, equal_nan=options["equal_nan"], sorted=False)
        if values.shape == outputs[0].shape:
            return values, outputs[1][np.argsort(np.argsort(values, kind="stable"))]
    return outputs


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
    """``numpy.unique``: each value that occurs, taken from its first position."""
    options = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": axis, "equal_nan": equal_nan}
    _, first, *others = record_call(unique, ar, sorted=sorted or return_index, **options)
    values = np.take(ar, first, axis=axis)
    outputs = (values, *([first] if return_index else []), *others)
    return outputs if len(outputs) > 1 else values


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The values of the first array that are not in the second."""
    ar1 = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return compress(np.isin(ar1, ar2, assume_unique=True, invert=True), ar1)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The values that are in one array only."""
    if not assume_unique:
        ar1, ar2 = np.unique(ar1), np.unique(ar2)
    merged_values = np.concatenate((ar1, ar2), axis=None)
    if merged_values.size == 0:
        return merged_values
    merged_values = np.sort(merged_values)
    is_boundary = np.concatenate(([True], merged_values[1:] != merged_values[:-1], [True]))
    return merged_values[is_boundary[1:] & is_boundary[:-1]]


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The values that are in both arrays, taken from the first."""
    first1: Any = None
    first2: Any = None
    if assume_unique:
        ar1, ar2 = np.ravel(ar1), np.ravel(ar2)
    else:
        ar1, first1 = np.unique(ar1, return_index=True)
        ar2, first2 = np.unique(ar2, return_index=True)
    merged_values = np.concatenate((ar1, ar2))
    order = np.argsort(merged_values, kind="stable")
    merged_values = merged_values[order]
    is_repeated = merged_values[1:] == merged_values[:-1]
    values = merged_values[:-1][is_repeated]
    if not return_indices:
        return values
    index1, index2 = order[:-1][is_repeated], order[1:][is_repeated] - np.size(ar1)
    return (values, index1, index2) if assume_unique else (values, first1[index1], first2[index2])


def trim_zeros(filt: object, trim: Any = "fb", axis: int | tuple[int, ...] | None = None) -> Any:
    """``numpy.trim_zeros``: the part of an array within its outermost zeros."""
    x = as_array(filt)
    np.trim_zeros(np.zeros((0,) * x.ndim), trim, axis)  # raises for invalid options
    axes = range(x.ndim) if axis is None else [i % x.ndim for i in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    nonzero_masks = [np.any(x != 0, axis=tuple([k for k in range(x.ndim) if k != i])) for i in axes]
    index: list[Any] = [slice(None)] * x.ndim
    for i, mask in zip(axes, nonzero_masks, strict=True):
        first, last = 0, 0
        if np.any(mask):
            positions = np.flatnonzero(mask)
            first, last = int(positions[0]), int(positions[-1]) + 1
        index[i] = slice(first if "f" in trim.lower() else None, last if "b" in trim.lower() or not last else None)
    return x[(..., *index)]
