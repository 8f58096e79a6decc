"""Rules of operations that pick elements: by their positions, by their order, by their place in a matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.ops import ensure_array

from ..rules import gather, general, linear, moved, scatter


def numbered(x: Any) -> Any:
    """The positions of all elements, in the shape of `x`."""
    return np.arange(math.prod(x.shape)).reshape(x.shape)


def fetched(t: Any, places: Any) -> Any:
    """The elements at the places, 0 where a place is negative."""
    if not math.prod(np.shape(t)):
        return np.zeros(places.shape, t.dtype)
    return np.where(places >= 0, np.ravel(t)[np.maximum(places, 0)], 0)


def returned(g: Any, x: Any, places: Any) -> Any:
    """The transpose of `fetched`."""
    there = places >= 0
    g = np.real(g) if g.dtype.kind == "c" and np.result_type(x).kind != "c" else g
    return np.reshape(bind(scatter, (np.ravel(x), g[there], places[there]), {"layout": (1,)}), np.shape(x))


# ------------------------------------------------------------------------------------------- positions

take_grad = gather("take", moved(np.take))
take_along_axis_grad = gather("take_along_axis", moved(np.take_along_axis))
repeat_grad = gather("repeat", moved(np.repeat))
delete_grad = gather("delete", moved(np.delete))

# --------------------------------------------------------------------------------------------- sorting


def _reordered(out: Any, x: Any, *, axis: Any = -1, **_: Any) -> Any:
    """Where elements of the same rank stand; equal ones in their order of appearance."""
    if axis is None:
        return _reordered(out, np.ravel(x), axis=0)
    ranks = np.argsort(np.argsort(out, axis=axis, kind="stable"), axis=axis, kind="stable")
    order = np.take_along_axis(np.argsort(x, axis=axis, kind="stable"), ranks, axis)
    return np.take_along_axis(numbered(x), order, axis)


sort_grad = gather("sort", _reordered)
partition_grad = gather("partition", lambda out, x, *, kth, axis=-1, **_: _reordered(out, x, axis=axis))

# ------------------------------------------------------------------------------------------- diagonals

diagonal_grad = gather("diagonal", moved(np.diagonal))
diag_grad = gather("diag", lambda out, x, k=0: np.diag(numbered(x) + 1, k) - 1)
diagflat_grad = gather("diagflat", lambda out, x, k=0: np.diagflat(numbered(x) + 1, k) - 1)


def _traced(g: Any, out: Any, x: Any, *, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, **_: Any) -> Any:
    """The adjoint at every place of the diagonal."""
    places = np.diagonal(numbered(x), offset, axis1, axis2)
    return returned(np.broadcast_to(np.expand_dims(g, -1), places.shape), x, places)


trace_grad = linear("trace", _traced).moving()

# ------------------------------------------------------------------------------------------- inserting


def _inserted(x: Any, obj: Any, values: Any, axis: Any) -> Any:
    """Where each element of the result comes from: from `x` as 0, 1, 2, ..., from `values` as -1, -2, -3, ..."""
    return np.insert(numbered(x), obj, -1 - numbered(ensure_array(values)), axis)


insert_grad = (
    general(
        "insert",
        lambda g, out, x, obj, values, axis=None: returned(g, x, _inserted(x, obj, values, axis)),
        None,
        lambda g, out, x, obj, values, axis=None: returned(g, values, -1 - _inserted(x, obj, values, axis)),
    )
    .tangent(
        lambda t, out, x, obj, values, axis=None: fetched(t, _inserted(x, obj, values, axis)),
        None,
        lambda t, out, x, obj, values, axis=None: fetched(t, -1 - _inserted(x, obj, values, axis)),
    )
    .moving()
)

# --------------------------------------------------------------------------------------------- filling


full_like_grad = (
    general("full_like", None, lambda g, out, a, value, **_: g)
    .tangent(None, lambda t, out, a, value, **_: np.broadcast_to(t, out.shape))
    .moving()
)
