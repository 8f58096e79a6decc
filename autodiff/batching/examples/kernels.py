"""Convolutions, poolings, and SciPy's transforms and filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.nn import pads_of_signal

from .along import along
from .call import Call, OneByOneError, all_axes, lifted, shift
from .table import own

# A cross-correlation is linear in three arrays, of which each operation computes one from two others. Of a pair of them, the
# axis of the first that lies along an axis of the second, and whether its channels are divided into groups.
SHARED: dict[tuple[str, str], tuple[int, bool]] = {
    ("x", "out"): (0, False),
    ("out", "x"): (0, False),
    ("kernel", "out"): (0, True),
    ("out", "kernel"): (1, True),
    ("kernel", "x"): (1, False),
    ("x", "kernel"): (1, True),
}
CHANNELS = {"x": 1, "out": 1, "kernel": 0}  # the axis of each that is divided into groups


def _folded(batch: Any, axis: int, groups: int) -> Any:
    """The batch axis, put into another axis, within its groups."""
    count, *shape = batch.shape
    split = np.reshape(batch, (count, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, 0, axis + 1), (*shape[:axis], count * shape[axis], *shape[axis + 1 :]))


def _unfolded(found: Any, axis: int, groups: int, count: int) -> Any:
    """The inverse of `_folded`."""
    shape = found.shape
    each = shape[axis] // count
    split = np.reshape(found, (*shape[:axis], groups, count, each // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, axis + 1, 0), (count, *shape[:axis], each, *shape[axis + 1 :]))


def correlation(result: str, *roles: str) -> Any:
    """A cross-correlation: the batch axis is a further batch, further channels, or further groups.

    Parameters
    ----------
    result, *roles : {"x", "kernel", "out"}
        The array that is computed, and the two that it is computed from. A third operand has the shape of the result.
    """

    def way(call: Call) -> Any:
        count = call.count
        if not count:
            raise OneByOneError
        shapes = [np.shape(v)[b:] for v, b in zip(call.values, call.batched, strict=True)]
        values, (in_a, in_b) = call.values[:2], call.batched[:2]
        if len(shapes[0]) == 1:  # a signal
            sized = shapes[2] if result == "kernel" else shapes[1]
            options: dict[str, Any] = {"padding": pads_of_signal(sized[0], **call.options)}
            values = [np.reshape(v, (*v.shape[:b], 1, 1, v.shape[-1])) for v, b in zip(values, (in_a, in_b), strict=True)]
        else:
            options = {}
        groups = call.options.get("groups", 1)
        if in_a and in_b:
            values = [_folded(v, CHANNELS[role], 1) for v, role in zip(values, roles, strict=True)]
            options["groups"], to, within = count * groups, CHANNELS[result], 1
        elif in_a or in_b:
            place = 0 if in_a else 1
            axis, grouped = SHARED[roles[place], result]
            values[place] = _folded(values[place], axis, groups if grouped else 1)
            to, grouped = SHARED[result, roles[place]]
            within = groups if grouped else 1
        else:  # only the shape is batched
            return lifted(bind(call.function, (*call.values[:2], np.empty(shapes[2])), call.options), count)
        likes = [np.broadcast_to(np.zeros(()), (1,) * (values[0].ndim - len(s)) + s) for s in shapes[2:]]
        found = _unfolded(call.run((*values, *likes), **options), to, within, count)
        return np.reshape(found, (count, found.shape[-1])) if len(shapes[0]) == 1 else found

    return way


def pool(call: Call) -> Any:
    """A pooling: windows slide along the last axes, and those in front stay as they are."""
    return call.run(call.all_lifted() if any(call.batched[1:]) else call.values)


def transform(default: Any = None) -> Any:
    """A transform of SciPy's along several axes, by default all, or the last ones."""

    def way(call: Call) -> Any:
        x, ndim = call.first(), call.ndims[0]
        axes, s = call.options.get("axes", default), call.options.get("s")
        if axes is None:
            axes = range(0 if s is None else ndim - np.size(s), ndim)
        return call.on_first(x, axes=shift(tuple(np.atleast_1d(axes).tolist()), ndim))

    return way


def shifted(call: Call) -> Any:
    """``scipy.fft.fftshift`` and its inverse."""
    x, ndim, axes = call.first(), call.ndims[0], call.options.get("axes")
    return call.on_first(x, axes=all_axes(ndim) if axes is None else shift(axes, ndim))


def last_axis(call: Call) -> Any:
    """Along the last axis of the first operand."""
    return call.on_first(call.first())


def lfilter(call: Call) -> Any:
    """``scipy.signal.lfilter`` of batched signals."""
    if call.batched != [False, False, True]:
        raise OneByOneError
    return call.run(call.values, axis=shift(call.options.get("axis", -1), call.ndims[2]))


def times(call: Call) -> Any:
    """A sparse matrix times batched vectors, or dense matrices: one product."""
    x = call.first()
    if call.ndims[0] == 1:
        return np.transpose(call.on_first(np.transpose(x)))
    count, rows, columns = x.shape
    found = call.on_first(np.reshape(np.moveaxis(x, 0, 1), (rows, count * columns)))
    return np.moveaxis(np.reshape(found, (found.shape[0], count, columns)), 1, 0)


_OF_LINES = ("dct", "idct", "dst", "idst", "fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_OF_ARRAYS = ("dctn", "idctn", "dstn", "idstn", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
_OF_PLANES = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
own |= {
    "cross_correlate": correlation("out", "x", "kernel"), "conv": correlation("out", "x", "kernel"),
    "cross_correlate_back": correlation("x", "out", "kernel"), "cross_correlate_kernel": correlation("kernel", "x", "out"),
    **dict.fromkeys(("max_pool", "max_pool_back", "max_pool_along", "mean_pool", "mean_pool_back"), pool),
    **{f"scipy_fft_{name}": along for name in _OF_LINES}, **{f"scipy_fft_{name}": transform() for name in _OF_ARRAYS},
    **{f"scipy_fft_{name}": transform((-2, -1)) for name in _OF_PLANES},
    **dict.fromkeys(("scipy_fft_fftshift", "scipy_fft_ifftshift"), shifted),
    **dict.fromkeys(("scipy_fft_fht", "scipy_fft_ifht"), last_axis),
    **{f"ndimage_{name}": along for name in ("spline_filter1d", "spline_filter1d_back", "extended", "folded")},
    "scipy_signal_lfilter": lfilter, "scipy_sparse_times": times,
}  # fmt: skip
