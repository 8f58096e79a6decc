"""Joining, moving and padding elements.

NumPy's own implementations write into a plain array, or convert their argument to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tools import is_node, leaves, record_call, stack_sequence

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
    floating = [leaf for leaf in leaves(widths) if is_node(leaf) and leaf.dtype.kind not in "iu"]
    if floating:
        raise TypeError(f"np.pad: pad_width= must contain integers, not a node of {floating[0].dtype}. Use int(node)")
    array = stack_sequence(array)  # otherwise NumPy would dispatch a list of nodes to this function endlessly
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
