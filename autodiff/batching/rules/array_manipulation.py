"""Batching rules of array manipulation: shapes, transposition, joining, repetition, padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.storage import window

from ..levels import batch_depth, pad_ndim, plain_base
from .call import (
    RULES_BY_KIND,
    RULES_BY_OPNAME,
    BatchRule,
    Call,
    NoBatchRuleError,
    element_axes,
    flatten_elements,
    shift_axis,
)

_DIAGFLAT = np.diagflat  # NumPy's own function, which interception may replace


def _resolve_shape(shape: object, size: int) -> tuple[int, ...]:
    """The new shape of an element of `size` numbers, with -1 replaced by a length."""
    lengths = tuple(np.atleast_1d(np.asarray(shape, int)).tolist())
    known = math.prod(n for n in lengths if n != -1)
    has_unknown = lengths.count(-1) == 1
    if lengths.count(-1) > 1 or (has_unknown and (not known or size % known)) or (not has_unknown and known != size):
        raise ValueError(f"cannot reshape array of size {size} into shape {lengths}")
    return tuple([size // known if n == -1 else n for n in lengths])


def _reshape_elements(x: NDArray[Any], shape: tuple[int, ...], order: object) -> Any:
    if order == "F":
        reversed_axes = np.reshape(np.transpose(x, (0, *range(x.ndim - 1, 0, -1))), (x.shape[0], *shape[::-1]))
        return np.transpose(reversed_axes, (0, *range(len(shape), 0, -1)))
    if order != "C":
        raise NoBatchRuleError
    return np.reshape(x, (x.shape[0], *shape))


def reshape(call: Call) -> Any:
    """``np.reshape``."""
    x = call.first()
    shape = call.options.get("shape", call.options.get("newshape", -1))
    if call.options.get("copy") is not None:
        raise NoBatchRuleError
    return _reshape_elements(x, _resolve_shape(shape, math.prod(x.shape[1:])), call.options.get("order", "C"))


def view(call: Call) -> Any:
    """``x.view(dtype)``, which divides or joins numbers of the last axis."""
    if not call.ndims[0]:
        raise NoBatchRuleError
    return call.on_first(call.first())


def ravel(call: Call) -> Any:
    """``np.ravel``."""
    x = call.first()
    return _reshape_elements(x, (math.prod(x.shape[1:]),), call.options.get("order", "C"))


def flatten(call: Call) -> Any:
    """``x.flatten()``."""
    return np.copy(ravel(call))


def transpose(call: Call) -> Any:
    """``np.transpose``."""
    x, ndim, axes = call.first(), call.ndims[0], call.options.get("axes")
    return np.transpose(x, (0, *shift_axis(tuple(range(ndim))[::-1] if axes is None else tuple(axes), ndim)))


def squeeze(call: Call) -> Any:
    """``np.squeeze``."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is None:
        return np.squeeze(x, tuple([i for i in element_axes(ndim) if x.shape[i] == 1]))
    return np.squeeze(x, shift_axis(axis, ndim) if ndim else ())


def expand_dims(call: Call) -> Any:
    """``np.expand_dims``."""
    axis = call.options["axis"]
    axis = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    return np.expand_dims(call.first(), shift_axis(axis, call.ndims[0] + len(axis)))


def two_axes(*names: str) -> BatchRule:
    """The rule of a function with two parameters for axes, such as ``np.swapaxes``."""

    def rule(call: Call) -> Any:
        x, ndim = call.first(), call.ndims[0]
        axes = {name: call.options.get(name, default) for default, name in enumerate(names)}
        return call.on_first(x, **{name: shift_axis(axis, ndim) for name, axis in axes.items()})

    return rule


def broadcast_to(call: Call) -> Any:
    """``np.broadcast_to``."""
    shape = tuple(np.atleast_1d(np.asarray(call.options["shape"], int)).tolist())
    if len(shape) < call.ndims[0]:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    return np.broadcast_to(pad_ndim(call.first(), len(shape)), (call.batch_size, *shape))


def diag(call: Call) -> Any:
    """``np.diag`` and ``np.diagflat``: the diagonal of a matrix, or a diagonal matrix."""
    x, k = call.first(), call.options.get("k", 0)
    if call.base is _DIAGFLAT:
        x = flatten_elements(x)
    elif call.ndims[0] == 2:
        return np.copy(np.diagonal(x, k, 1, 2))
    elif call.ndims[0] != 1:
        raise NoBatchRuleError
    length = x.shape[1]
    size = length + abs(k)
    positions = np.full(size * size, length)
    positions[np.arange(length) * (size + 1) + (k if k >= 0 else -k * size)] = np.arange(length)
    padded = np.concatenate([x, np.zeros((call.batch_size, 1), x.dtype)], axis=1)
    return np.reshape(padded[:, positions], (call.batch_size, size, size))


def tile(call: Call) -> Any:
    """``np.tile``."""
    if "reps" not in call.options:  # they are batched
        raise NoBatchRuleError
    reps = tuple(np.atleast_1d(np.asarray(call.options["reps"], int)).tolist())
    return np.tile(pad_ndim(call.first(), len(reps)), (1, *reps))


def rearrange(call: Call) -> Any:
    """A function that rearranges elements: along given axes, or else as it rearranges an array of positions."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is not None:
        return call.on_first(x, axis=shift_axis(axis, ndim))
    if call.options.get("order", "C") != "C":  # depends on the memory layout of each element
        raise NoBatchRuleError
    positions = np.arange(math.prod(x.shape[1:])).reshape(x.shape[1:])
    positions = call.function(positions, *map(plain_base, call.values[1:]), **call.options)
    return np.reshape(flatten_elements(x)[:, np.ravel(positions)], (call.batch_size, *positions.shape))


def repeat(call: Call) -> Any:
    """``np.repeat``; without an axis, of flattened elements."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    return call.on_first(flatten_elements(x), axis=1) if axis is None else call.on_first(x, axis=shift_axis(axis, ndim))


def pad(call: Call) -> Any:
    """``np.pad``, without padding along the batch axis."""
    x, ndim = call.first(), call.ndims[0]
    options = {k: v for k, v in call.options.items() if k in ("constant_values", "end_values", "stat_length")}
    width = call.options["pad_width"]
    if not ndim or isinstance(width, dict) or any(v is not None and np.ndim(v) for v in options.values()):
        raise NoBatchRuleError
    pairs = np.broadcast_to(width, (ndim, 2)).tolist()
    return call.on_first(x, pad_width=((0, 0), *map(tuple, pairs)))


def sliding_windows(call: Call) -> Any:
    """``np.lib.stride_tricks.sliding_window_view``."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    return call.on_first(x, axis=element_axes(ndim) if axis is None else shift_axis(axis, ndim))


def concatenate(call: Call) -> Any:
    """``np.concatenate``; without an axis, of flattened elements."""
    axis, values = call.options.get("axis", 0), call.all_batched()
    if axis is None:
        return call.run([flatten_elements(v) for v in values], axis=1)
    if len(set(call.ndims)) > 1:
        raise NoBatchRuleError
    return call.run(values, axis=shift_axis(axis, call.ndims[0]))


def stack(call: Call) -> Any:
    """``np.stack``."""
    return call.run(call.all_batched(), axis=shift_axis(call.options.get("axis", 0), call.ndims[0] + 1))


def linspace(call: Call) -> Any:
    """``np.linspace`` and ``np.geomspace``."""
    if call.options.get("retstep"):
        raise NoBatchRuleError
    ndim = max(call.ndims)
    samples = call.run(call.aligned(), axis=0)
    return np.moveaxis(samples, (1, 0), (0, shift_axis(call.options.get("axis", 0), ndim + 1)))


def buffer_window(call: Call) -> Any:
    """A view of a part of the buffer of each element, by strides."""
    x: Any = call.first()
    row = plain_base(x).strides[batch_depth(x)]
    shape, strides = call.options["shape"], call.options["strides"]
    return call.on_first(x, shape=(call.batch_size, *shape), strides=(row, *strides))


RULES_BY_KIND["shape"] = rearrange
RULES_BY_OPNAME |= {
    "reshape": reshape, "ravel": ravel, "flatten": flatten, "transpose": transpose, "squeeze": squeeze,
    "expand_dims": expand_dims, "swapaxes": two_axes("axis1", "axis2"), "moveaxis": two_axes("source", "destination"),
    "diagonal": two_axes("axis1", "axis2"), "trace": two_axes("axis1", "axis2"), "broadcast_to": broadcast_to, "diag": diag,
    "diagflat": diag, "tile": tile, "repeat": repeat, "pad": pad, "sliding_window_view": sliding_windows,
    "concatenate": concatenate, "stack": stack, "linspace": linspace, "geomspace": linspace,
    ops.opname_of(window): buffer_window, "view": view,
}  # fmt: skip
