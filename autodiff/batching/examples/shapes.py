"""Shapes, joining, and copies of elements in other places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.storage import window

from ..values import depth_of, plain_base
from .call import Call, OneByOneError, all_axes, flat, front, shift
from .table import kinds, own

_DIAGFLAT = np.diagflat  # a name that means another function while one is differentiated


def _lengths(shape: Any, size: int) -> tuple[int, ...]:
    """A shape of an example of a size, where -1 is found."""
    shape = tuple(np.atleast_1d(np.asarray(shape, int)).tolist())
    known = math.prod(n for n in shape if n != -1)
    is_open = shape.count(-1) == 1
    if shape.count(-1) > 1 or (is_open and (not known or size % known)) or (not is_open and known != size):
        raise ValueError(f"cannot reshape array of size {size} into shape {shape}")
    return tuple([size // known if n == -1 else n for n in shape])


def _reshaped(x: Any, shape: tuple[int, ...], order: Any) -> Any:
    if order == "F":
        turned = np.reshape(np.transpose(x, (0, *range(x.ndim - 1, 0, -1))), (x.shape[0], *shape[::-1]))
        return np.transpose(turned, (0, *range(len(shape), 0, -1)))
    if order != "C":
        raise OneByOneError
    return np.reshape(x, (x.shape[0], *shape))


def reshape(call: Call) -> Any:
    """``np.reshape``."""
    x = call.first()
    shape = call.options.get("shape", call.options.get("newshape", -1))
    if call.options.get("copy") is not None:
        raise OneByOneError
    return _reshaped(x, _lengths(shape, math.prod(x.shape[1:])), call.options.get("order", "C"))


def ravel(call: Call) -> Any:
    """``np.ravel`` and ``x.flatten()``."""
    x = call.first()
    found = _reshaped(x, (math.prod(x.shape[1:]),), call.options.get("order", "C"))
    return np.copy(found) if call.base is ops.flatten else found


def transpose(call: Call) -> Any:
    """``np.transpose``."""
    x, ndim, axes = call.first(), call.ndims[0], call.options.get("axes")
    return np.transpose(x, (0, *shift(tuple(range(ndim))[::-1] if axes is None else tuple(axes), ndim)))


def squeeze(call: Call) -> Any:
    """``np.squeeze``."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is None:
        return np.squeeze(x, tuple([i for i in all_axes(ndim) if x.shape[i] == 1]))
    return np.squeeze(x, shift(axis, ndim) if ndim else ())


def expand_dims(call: Call) -> Any:
    """``np.expand_dims``."""
    axis = call.options["axis"]
    axis = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    return np.expand_dims(call.first(), shift(axis, call.ndims[0] + len(axis)))


def on_two(*names: str) -> Any:
    """A function of two axes, or of two sequences of axes."""

    def way(call: Call) -> Any:
        x, ndim = call.first(), call.ndims[0]
        given = {name: call.options.get(name, place) for place, name in enumerate(names)}
        return call.on_first(x, **{name: shift(axis, ndim) for name, axis in given.items()})

    return way


def broadcast_to(call: Call) -> Any:
    """``np.broadcast_to``."""
    shape = tuple(np.atleast_1d(np.asarray(call.options["shape"], int)).tolist())
    if len(shape) < call.ndims[0]:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    return np.broadcast_to(front(call.first(), len(shape)), (call.count, *shape))


def diag(call: Call) -> Any:
    """``np.diag`` and ``np.diagflat``: of a matrix its diagonal, of a vector the matrix."""
    x, k = call.first(), call.options.get("k", 0)
    if call.base is _DIAGFLAT:
        x = flat(x)
    elif call.ndims[0] == 2:
        return np.copy(np.diagonal(x, k, 1, 2))
    elif call.ndims[0] != 1:
        raise OneByOneError
    length = x.shape[1]
    size = length + abs(k)
    places = np.full(size * size, length)
    places[np.arange(length) * (size + 1) + (k if k >= 0 else -k * size)] = np.arange(length)
    padded = np.concatenate([x, np.zeros((call.count, 1), x.dtype)], axis=1)
    return np.reshape(padded[:, places], (call.count, size, size))


def tile(call: Call) -> Any:
    """``np.tile``."""
    if "reps" not in call.options:  # they differ
        raise OneByOneError
    reps = tuple(np.atleast_1d(np.asarray(call.options["reps"], int)).tolist())
    return np.tile(front(call.first(), len(reps)), (1, *reps))


def moved(call: Call) -> Any:
    """A function that moves elements: along the axes it is given, or to where it moves numbers in place of elements."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is not None:
        return call.on_first(x, axis=shift(axis, ndim))
    if call.options.get("order", "C") != "C":  # which depends on how each element of the batch lies in memory
        raise OneByOneError
    numbers = np.arange(math.prod(x.shape[1:])).reshape(x.shape[1:])
    positions = call.function(numbers, *map(plain_base, call.values[1:]), **call.options)
    return np.reshape(flat(x)[:, np.ravel(positions)], (call.count, *positions.shape))


def repeat(call: Call) -> Any:
    """``np.repeat``; without an axis the flattened example."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    return call.on_first(flat(x), axis=1) if axis is None else call.on_first(x, axis=shift(axis, ndim))


def pad(call: Call) -> Any:
    """``np.pad``, with nothing before and after the examples."""
    x, ndim = call.first(), call.ndims[0]
    options = {k: v for k, v in call.options.items() if k in ("constant_values", "end_values", "stat_length")}
    width = call.options["pad_width"]
    if not ndim or isinstance(width, dict) or any(v is not None and np.ndim(v) for v in options.values()):
        raise OneByOneError
    pairs = np.broadcast_to(width, (ndim, 2)).tolist()
    return call.on_first(x, pad_width=((0, 0), *map(tuple, pairs)))


def windows(call: Call) -> Any:
    """``sliding_window_view``."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    return call.on_first(x, axis=all_axes(ndim) if axis is None else shift(axis, ndim))


def concatenate(call: Call) -> Any:
    """``np.concatenate``; without an axis of flattened arrays."""
    axis, values = call.options.get("axis", 0), call.all_lifted()
    if axis is None:
        return call.run([flat(v) for v in values], axis=1)
    if len(set(call.ndims)) > 1:
        raise OneByOneError
    return call.run(values, axis=shift(axis, call.ndims[0]))


def stack(call: Call) -> Any:
    """``np.stack``."""
    return call.run(call.all_lifted(), axis=shift(call.options.get("axis", 0), call.ndims[0] + 1))


def spaced(call: Call) -> Any:
    """``np.linspace`` and ``np.geomspace``."""
    if call.options.get("retstep"):
        raise OneByOneError
    ndim = max(call.ndims)
    found = call.run(call.aligned(), axis=0)
    return np.moveaxis(found, (1, 0), (0, shift(call.options.get("axis", 0), ndim + 1)))


def window_of(call: Call) -> Any:
    """A part of a buffer that each example has, by how it lies in memory."""
    x: Any = call.first()
    row = plain_base(x).strides[depth_of(x)]
    shape, strides = call.options["shape"], call.options["strides"]
    return call.on_first(x, shape=(call.count, *shape), strides=(row, *strides))


kinds["shape"] = moved
own |= {
    "reshape": reshape, "ravel": ravel, "flatten": ravel, "transpose": transpose, "squeeze": squeeze,
    "expand_dims": expand_dims, "swapaxes": on_two("axis1", "axis2"), "moveaxis": on_two("source", "destination"),
    "diagonal": on_two("axis1", "axis2"), "trace": on_two("axis1", "axis2"), "broadcast_to": broadcast_to, "diag": diag,
    "diagflat": diag, "tile": tile, "repeat": repeat, "pad": pad, "sliding_window_view": windows,
    "concatenate": concatenate, "stack": stack, "linspace": spaced, "geomspace": spaced, ops.opname_of(window): window_of,
}  # fmt: skip
