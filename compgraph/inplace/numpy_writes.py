"""NumPy functions and methods that write into an array. Each of them calls `stores.store`.

A function with the name of a NumPy function takes the same arguments. Its target is a node, and values may be nodes too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from ..bind import bind
from ..context import is_recording, trace_guards
from ..frames import source_lines
from ..graph import as_operand, full_name, stack_nested, to_values
from ..guards import guarded_value, note_guard
from ..storage import last_writers, root_of
from ..values import ClassViews, Value, VariableNode, require_history, require_unbatched
from .out_arguments import are_integer_arrays, copy_mask, make_plain_target_error
from .stores import assign, move_elements, overlaps, require_cast, require_writeable, store, store_computed, store_number

ndarray = np.ndarray
_ELEMENT_INDEX_TYPES = frozenset({int, np.int64})  # the types of an index, or of its parts, that selects one element


def copy_index(index: object) -> Any:
    """Return an index without nodes, with copies of its arrays, so that no later write changes it."""
    if isinstance(index, tuple):
        return tuple(map(copy_index, index))
    if isinstance(index, Value):
        if index.trace_kind == "batch":
            return index
        return np.array(guarded_value(index, "the index of a write"))
    if not isinstance(index, (list, ndarray)) or not len(np.shape(index)):
        return index
    array = np.array(index)
    return array.astype(np.intp) if isinstance(index, list) and not array.size else array  # an empty list selects nothing


def set_item(target: Any, index: Any, value: Any) -> None:
    """``target[index] = value``."""
    if isinstance(value, ClassViews):
        value = value._traced
    cls = type(index)
    is_element = cls in _ELEMENT_INDEX_TYPES or (cls is tuple and _ELEMENT_INDEX_TYPES.issuperset(map(type, index)))
    if is_element and store_number(target, index, value):
        return
    if not (isinstance(index, Value) and index.dtype == np.bool_ and store_at_mask(target, index, stack_nested(value))):
        assign(target, copy_index(index), stack_nested(value))


def store_at_mask(target: Any, mask: Value, value: Any) -> bool:
    """Record ``target[mask] = value`` as a choice between `value` and the target, so that other masks need no new trace.

    This applies in traces for replays, such as those of ``cg.jit``. Return False if the write must be recorded at the indices.
    """
    if trace_guards.get() is None or not is_recording() or any(isinstance(v, Value) and v.level for v in (target, mask, value)):
        return False
    if target.is_scalar or isinstance(root_of(target), VariableNode) or not _is_cast_silently(value, target.dtype):
        return False
    shape, ndim = np.shape(target), np.ndim(mask)
    if not ndim or 0 in shape or np.shape(mask) != shape[:ndim]:
        return False
    if np.ndim(value):  # one element, or row, for each true element of the mask
        count = int(np.count_nonzero(mask.raw_value))
        if not count or np.shape(value) != (count, *shape[ndim:]):
            return False
        mask_sum = np.sum(mask.astype(int))
        note_guard("the number of elements of a mask", int, (mask_sum,), count, source_lines.user_frame(2))
        positions = np.maximum(np.cumsum(np.ravel(mask)) - 1, 0)
        value = bind(ops.getitem, (value, np.reshape(positions, np.shape(mask))))
    value = value.astype(target.dtype) if hasattr(value, "dtype") else target.dtype.type(value)
    assign(target, ..., np.where(np.reshape(mask, np.shape(mask) + (1,) * (len(shape) - ndim)), value, target))
    return True


def _is_cast_silently(value: object, dtype: np.dtype[Any]) -> bool:
    """Whether a cast to a dtype gives no warning: it goes neither from complex to real, nor from float to integer."""
    kind = value.dtype.kind if hasattr(value, "dtype") else _KINDS.get(type(value), "")
    return kind in _SILENT_CASTS.get(dtype.kind, "") and bool(kind)


_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
_SILENT_CASTS = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}  # the kinds that each kind of target takes


# ---------------------------------------------------------------------------------------------- functions


def write_into_plain(function: Callable[..., Any], advice: str, *args: object, **options: object) -> None:
    """Call a NumPy function that writes into a plain array, if nothing is recorded, or into integers, which have no derivative.

    Otherwise raise a TypeError whose message contains `advice`.
    """
    if is_recording() and are_integer_arrays(args[:1]):
        description = f"an argument of {full_name(function)}"
        args = guarded_value(args, description)
        options = {name: guarded_value(value, description) for name, value in options.items()}
    elif is_recording():
        raise make_plain_target_error(full_name(function), advice)
    function(*to_values(args), **to_values(options))


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: object = True) -> None:
    """``numpy.copyto``."""
    if not isinstance(dst, Value):
        write_into_plain(np.copyto, "use np.copy(node)", dst, src, casting=casting, where=where)
        return
    src = as_operand(src)
    if where is True:
        assign(dst, ..., src, casting)
        return
    require_history(dst, src)
    require_cast(src, dst, casting, "np.copyto")
    mask = copy_mask(where, dst.shape, "np.copyto")
    if overlaps(dst, src):
        move_elements(dst, (src,), lambda array, source: np.copyto(array, source, where=mask))
        return
    extra = np.ndim(src) - dst.ndim
    if extra > 0 and set(np.shape(src)[:extra]) == {1}:  # NumPy drops leading axes of length 1
        src = np.reshape(src, np.shape(src)[extra:])
    store_computed(dst, lambda: np.broadcast_to(src, dst.shape)[mask], (src,), mask)


def put(a: object, ind: ArrayLike | Callable[..., Any], v: object, mode: str = "raise") -> None:
    """``numpy.put``: stores at positions counted along the flattened array."""
    if not isinstance(a, Value):
        write_into_plain(np.put, "use np.where", a, ind, v, mode=mode)
        return
    require_history(a)
    positions = np.ravel(guarded_value(ind, "the indices of np.put")).astype(np.intp)
    if mode == "wrap":
        positions = positions % a.size
    elif mode == "clip":
        positions = np.clip(positions, 0, a.size - 1)
    elif mode != "raise":
        raise ValueError(f"np.put: mode must be one of 'clip', 'raise', or 'wrap', not {mode!r}")
    v = _as_castable_operand(v, a, "unsafe", "np.put")
    if overlaps(a, v):
        move_elements(a, (v,), lambda array, source: np.put(array, positions, source))
    else:
        set_flat(a, positions, v)


def set_flat(a: Any, positions: Any, values: Any) -> None:
    """Store values, repeated as often as needed, at positions counted along the flattened array."""
    require_writeable(a)
    is_out_of_bounds = (positions < -a.size) | (positions >= a.size)
    if np.any(is_out_of_bounds):
        raise IndexError(f"index {positions[is_out_of_bounds][0]} is out of bounds for size {a.size}")
    values = as_operand(values)
    if np.size(positions) and np.size(values):
        if not a.ndim:  # the last value is stored
            store_computed(a, lambda: _repeat_to(values, np.size(positions))[-1], (values,))
            return
        index = np.unravel_index(positions % a.size, a.shape)
        store_computed(a, lambda: _repeat_to(values, np.size(positions)).reshape(np.shape(positions)), (values,), index)


def _as_castable_operand(values: Any, target: Any, casting: str, name: str) -> Any:
    """Return values as an operand; raise a TypeError where NumPy's conversion to the dtype of `target` does.

    NumPy casts arrays by `casting`, and scalars without a check. It does not convert Python's complex numbers to real ones.
    """
    operand = as_operand(values)
    if isinstance(values, ndarray):
        if not getattr(values, "is_scalar", False):
            require_cast(values, target, casting, name)
    elif not isinstance(values, np.generic) and np.iscomplexobj(operand):
        require_cast(1j, target, "same_kind", name)
    return operand


def _repeat_to(values: Any, count: int) -> Any:
    """Flatten values and repeat them cyclically to `count` elements."""
    flat = np.ravel(values)
    return flat if flat.size == count else flat[np.arange(count) % flat.size]


def place(arr: object, mask: object, vals: Any) -> None:
    """``numpy.place``: store the values in order at the positions where the mask is true."""
    if not isinstance(arr, Value):
        write_into_plain(np.place, "use np.where", arr, mask, vals)
        return
    require_history(arr)
    mask = np.asarray(guarded_value(mask, "the mask of np.place"))
    positions = np.flatnonzero(mask)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if positions.size and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    vals = _as_castable_operand(vals, arr, "safe", "np.place")
    if overlaps(arr, vals):
        move_elements(arr, (vals,), lambda array, source: np.place(array, mask, source))
    else:
        set_flat(arr, positions, vals)


def putmask(a: object, mask: object, values: Any) -> None:
    """``numpy.putmask``: where the mask is true, store the value at the same position among the (repeated) values."""
    if not isinstance(a, Value):
        write_into_plain(np.putmask, "use np.where", a, mask, values)
        return
    require_history(a)
    plain_mask = np.asarray(guarded_value(mask, "the mask of np.putmask")).astype(bool)
    if plain_mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    plain_mask = plain_mask.reshape(a.shape)
    values = _as_castable_operand(values, a, "safe", "np.putmask")
    if overlaps(a, values):
        move_elements(a, (values,), lambda array, source: np.putmask(array, plain_mask, source))
    elif np.size(values):
        store_computed(a, lambda: _repeat_to(values, a.size)[np.flatnonzero(plain_mask)], (values,), plain_mask)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``numpy.put_along_axis``, by NumPy's own implementation, which assigns to items of the node."""
    if not isinstance(arr, Value):
        write_into_plain(np.put_along_axis, "use np.where", arr, indices, values, axis)
        return
    indices = guarded_value(indices, "the indices of np.put_along_axis")
    if axis is None:
        set_flat(arr, indices, values)
        return
    ops.implementation(np.put_along_axis)(arr, indices, stack_nested(values), axis)


def fill_diagonal(a: object, val: object, wrap: bool = False) -> None:
    """``numpy.fill_diagonal``, by NumPy's own implementation, which assigns to ``a.flat``."""
    if not isinstance(a, Value):
        write_into_plain(np.fill_diagonal, "use np.where", a, val, wrap)
        return
    ops.implementation(np.fill_diagonal)(a, stack_nested(val), wrap)


def nan_to_num(
    x: object, copy: object = True, nan: ArrayLike = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """``numpy.nan_to_num``, which writes into its operand with ``copy=False``."""
    compute = functools.partial(ops.REPLACED_FUNCTIONS[np.nan_to_num], x, nan=nan, posinf=posinf, neginf=neginf)
    if ops.resolve_copy_option(copy):
        return compute()
    if not isinstance(x, Value):
        raise make_plain_target_error("np.nan_to_num(..., copy=False)", "leave copy out")
    store_computed(x, compute)
    return x


# ------------------------------------------------------------------------------------------- array methods


def fill(a: Any, value: Any) -> None:
    """``a.fill(value)``."""
    if np.ndim(value):
        raise ValueError(f"fill takes a single number, not an array of shape {np.shape(value)}")
    store(a, ..., as_operand(value))


def sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None, **options: Any) -> None:
    """``a.sort()``, with NumPy's check of the options."""
    store_computed(a, lambda: np.sort(a, axis=axis, kind=kind, order=order, **options))


def partition(a: Any, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
    """``a.partition(kth)``."""
    store_computed(a, lambda: np.partition(a, kth, axis=axis, kind=kind, order=order))


# ---------------------------------------------------------------------------------------------- ufunc.at


def ufunc_at(ufunc: np.ufunc, target: Any, index: Any, *others: Any) -> None:
    """``ufunc.at(target, index, other)``: repeated elements of the index change repeatedly."""
    name = f"np.{ufunc.__name__}.at"
    if not isinstance(target, Value):
        if is_recording() and not are_integer_arrays((target,)):
            raise make_plain_target_error(name, f"use {name} on it")
        ufunc.at(target, *guarded_value((index, *others), f"an argument of {name}"))
        return
    require_history(target)
    if trace_guards.get() is not None and isinstance(index, Value) and index.dtype == np.bool_ and index.trace_kind != "batch":
        value = ufunc(target[index], *others)  # a mask selects each element once
        require_cast(value, target, "same_kind", name)
        set_item(target, index, value)
        return
    index = copy_index(index)
    require_unbatched(f"{name} at an index", *(index if isinstance(index, tuple) else (index,)))
    last_writes, own_writes = last_writers(target.shape, index)
    others = tuple(map(as_operand, others))

    def compute_at(region_index: NDArray[Any] | tuple[Any, ...], selection: Any = ...) -> Any:
        region = target[region_index]
        operands = [np.broadcast_to(x, last_writes.shape)[selection] for x in others]
        value = ufunc(region, *operands)
        require_cast(value, target, "same_kind", name)
        return value

    if np.array_equal(last_writes, own_writes):  # no element is repeated
        store_computed(target, lambda: compute_at(index), others, index)
    elif (sign := ops.INFIX.get(ufunc)) in ("+", "-"):
        increments = np.broadcast_to(others[0] if sign == "+" else _negate(others[0], target.dtype), last_writes.shape)
        store_computed(
            target, lambda: bind(ops.scatter_add, (target[index], increments), {"positions": last_writes}), others, index
        )
    else:
        flat = np.arange(target.size).reshape(target.shape)[index]
        occurrences = _count_earlier_occurrences(last_writes)
        for occurrence in range(occurrences.max() + 1):
            selection = occurrences == occurrence
            region_index = np.unravel_index(flat[selection], target.shape)
            store_computed(target, functools.partial(compute_at, region_index, selection), others, region_index)


def _negate(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``-value``; integers are first converted to the dtype in which they would be subtracted from `dtype`."""
    if np.result_type(value).kind in "biu":
        value = np.asarray(value) if not hasattr(value, "astype") else value
        value = value.astype(np.result_type(dtype, value.dtype))
    return np.negative(value)


def _count_earlier_occurrences(values: NDArray[Any]) -> Any:
    """Count, for each element, the equal elements before it."""
    order = np.argsort(values, axis=None, kind="stable")
    sorted_values = values.ravel()[order]
    counts = np.empty(values.size, np.intp)
    counts[order] = np.arange(values.size) - np.searchsorted(sorted_values, sorted_values)
    return counts.reshape(values.shape)
