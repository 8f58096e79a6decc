"""Rules of ``scipy.ndimage``'s linear filters: a line is extended, and correlated with the weights where they overlap wholly.

So the transpose is the transposed correlation, and what it gives beyond the ends is folded back to where that came from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.nn import cross_correlate_back, cross_correlate_kernel
from compgraph.scipy.ndimage import kernels

from ....rules import general, linear


def _ends(size: int, origin: int) -> dict[str, int]:
    """How far a line is extended for weights of a size."""
    return {"before": size // 2 + origin, "after": size - size // 2 - 1 - origin}


def _lines(x: Any, axis: int) -> Any:
    """All lines along an axis, each with its only channel."""
    moved = np.moveaxis(x, axis, -1)
    return np.reshape(moved, (-1, 1, moved.shape[-1]))


def _constant(x: Any, axis: int, ends: dict[str, int], mode: int, cval: float) -> Any:
    """An extended array, with its constant where that is one."""
    found = kernels.extended(x, axis=axis, mode=mode, **ends)
    if mode not in (kernels.CONSTANT, kernels.GRID_CONSTANT) or not cval:
        return found
    outside = kernels.positions(x.shape[axis], ends["before"], ends["after"], mode) < 0
    return np.where(np.reshape(outside, (-1, *[1] * (x.ndim - 1 - axis % x.ndim))), cval, found)


def _back1d(g: Any, weights: Any, axis: int, mode: int, origin: int) -> Any:
    """The transpose of a correlation along an axis."""
    ends = _ends(weights.shape[0], origin)
    length = g.shape[axis] + weights.shape[0] - 1
    lines = cross_correlate_back(_lines(g, axis), weights[None, None], np.zeros((1, 1, length)))
    moved = np.reshape(lines, (*np.moveaxis(g, axis, -1).shape[:-1], length))
    return kernels.folded(np.moveaxis(moved, -1, axis), axis=axis, mode=mode, **ends)


def _weights1d(g: Any, out: Any, x: Any, weights: Any, axis: int, mode: int, cval: float, origin: int, dtype: Any) -> Any:
    whole = _constant(x, axis, _ends(weights.shape[0], origin), mode, cval)
    return cross_correlate_kernel(_lines(whole, axis), _lines(g, axis), np.zeros((1, 1, weights.shape[0])))[0, 0]


def _changed(t: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options for a tangent, in which there is no constant."""
    return {**options, "cval": 0.0, "dtype": t.dtype}


ndimage_correlate1d_grad = general(
    "ndimage_correlate1d",
    lambda g, out, x, w, axis, mode, cval, origin, dtype: _back1d(g, w, axis, mode, origin),
    _weights1d,
).tangent(
    lambda t, out, x, w, **options: kernels.correlate1d(t, w, **_changed(t, options)),
    lambda t, out, x, w, **options: kernels.correlate1d(x, t, **{**options, "dtype": t.dtype}),
)


def _uniform(g: Any, out: Any, x: Any, size: int, axis: int, mode: int, cval: float, origin: int, dtype: Any) -> Any:
    return _back1d(g, np.full(size, 1 / size, g.dtype), axis, mode, origin)


ndimage_uniform_filter1d_grad = general("ndimage_uniform_filter1d", _uniform).tangent(
    lambda t, out, x, **options: kernels.uniform_filter1d(t, **_changed(t, options))
)


def _back(g: Any, out: Any, x: Any, weights: Any, mode: int, cval: float, origins: Any, dtype: Any) -> Any:
    lengths = [n + m - 1 for n, m in zip(g.shape, weights.shape, strict=True)]
    found = cross_correlate_back(g[None, None], weights[None, None], np.zeros((1, 1, *lengths)))[0, 0]
    for axis in range(g.ndim):
        found = kernels.folded(found, axis=axis, mode=mode, **_ends(weights.shape[axis], origins[axis]))
    return found


def _weights(g: Any, out: Any, x: Any, weights: Any, mode: int, cval: float, origins: Any, dtype: Any) -> Any:
    for axis in range(g.ndim):
        x = _constant(x, axis, _ends(weights.shape[axis], origins[axis]), mode, cval)
    return cross_correlate_kernel(x[None, None], g[None, None], np.zeros((1, 1, *weights.shape)))[0, 0]


ndimage_correlate_grad = general("ndimage_correlate", _back, _weights).tangent(
    lambda t, out, x, w, **options: kernels.correlate(t, w, **_changed(t, options)),
    lambda t, out, x, w, **options: kernels.correlate(x, t, **{**options, "dtype": t.dtype}),
)

# ------------------------------------------------------------------------------------------------ ends


ndimage_extended_grad = linear("ndimage_extended", lambda g, out, x, **options: kernels.folded(g, **options))
ndimage_folded_grad = linear("ndimage_folded", lambda g, out, x, **options: kernels.extended(g, **options))
