"""Rules of histograms, with respect to weights and to samples that determine the edges of the bins.

The number of samples in a bin is piecewise constant. Evenly spaced edges depend on the least and the greatest sample. Densities
depend on them too, because the density of a bin decreases with its width.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.ops import ensure_array

from ..rules import general, record_getitem, scatter
from . import reductions

bincount_grad = general("bincount", None, lambda g, out, x, weights, **_: record_getitem(g, ensure_array(x))).tangent(
    None, lambda t, out, x, weights, **_: np.bincount(ensure_array(x), t, minlength=out.shape[0])
)

# ----------------------------------------------------------------------------------------------- edges


def _edges_depend_on_samples(bins: list[Any] | int, range: object) -> bool:
    """Whether the edges of bins depend on the least and the greatest sample."""
    return range is None and (isinstance(bins, str) or np.ndim(bins) == 0)


def _pull_edges(
    g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], bins: list[Any] | int = 10, range: object = None, **_: object
) -> Any:
    """Return the cotangent of the samples from that of evenly spaced edges."""
    if not _edges_depend_on_samples(bins, range) or not a.size:
        return np.zeros_like(a)
    share = np.linspace(0, 1, g.shape[0])
    least, greatest = reductions._min(np.min(a), a), reductions._max(np.max(a), a)
    return least * np.sum(g * (1 - share)) + greatest * np.sum(g * share)


def _push_edges(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], bins: Any = 10, range: Any = None, **_: object) -> Any:
    if not _edges_depend_on_samples(bins, range) or not a.size:
        return np.zeros_like(out)
    share = np.linspace(0, 1, out.shape[0])
    least, greatest = reductions._min(np.min(a), a), reductions._max(np.max(a), a)
    return np.sum(t * least) * (1 - share) + np.sum(t * greatest) * share


histogram_bin_edges_grad = general("histogram_bin_edges", _pull_edges).tangent(_push_edges)

# ------------------------------------------------------------------------------------------------ bins
# The outputs are the bins and the edges along each axis. A column holds the samples along one axis.


def _bin_indices(columns: Sequence[Any], edges: Sequence[Any]) -> tuple[Any, Any]:
    """Return the flat index of the bin of each sample, and whether the sample is in a bin."""
    bin_indices, inside = 0, True
    for column, axis_edges in zip(map(ensure_array, columns), map(ensure_array, edges), strict=True):
        bin_index = np.where(
            column == axis_edges[-1], axis_edges.shape[0] - 2, np.searchsorted(axis_edges, column, side="right") - 1
        )
        bin_indices = bin_indices * (axis_edges.shape[0] - 1) + bin_index
        inside = (column >= axis_edges[0]) & (column <= axis_edges[-1]) & inside
    return np.where(inside, bin_indices, 0), inside


def _reshape_along(values: NDArray[Any], axis: int, count: int) -> Any:
    """Reshape a vector to an array of `count` axes along one of them."""
    return np.reshape(values, (-1, *[1] * (count - 1 - axis)))


def _bin_volumes(edges: Sequence[Any]) -> Any:
    """Return the volume of each bin: the product of its widths along all axes."""
    widths = [_reshape_along(np.diff(edge), axis, len(edges)) for axis, edge in enumerate(edges)]
    return functools.reduce(operator.mul, widths)


def _pull_columns(
    g: tuple[Any, ...],
    out: tuple[Any, ...],
    columns: Sequence[Any],
    density: bool | None,
    bins: Sequence[Any],
    range: Sequence[Any],
) -> list[Any]:
    """Return the cotangent of each column from those of the bins and edges."""
    cotangents = []
    for axis, (column, axis_edges) in enumerate(zip(columns, out[1:], strict=True)):
        edges_cotangent = np.zeros(axis_edges.shape, axis_edges.dtype) if g[1 + axis] is None else g[1 + axis]
        if density and g[0] is not None:
            others = tuple([i for i, _ in enumerate(columns) if i != axis])
            # the density of a bin falls as it widens: as its right edge rises or its left edge falls
            decrease, zero = np.sum(g[0] * out[0], axis=others) / np.diff(axis_edges), np.zeros(1)
            edges_cotangent = edges_cotangent + np.concatenate([decrease, zero]) - np.concatenate([zero, decrease])
        cotangents.append(_pull_edges(edges_cotangent, axis_edges, column, bins[axis], range[axis]))
    return cotangents


def _push_columns(
    t: Sequence[Any],
    out: tuple[Any, ...],
    columns: Sequence[Any],
    density: bool | None,
    bins: Sequence[Any],
    range: Sequence[Any],
) -> tuple[Any, ...]:
    """Return the tangents of the bins and edges from those of the columns."""
    edge_tangents = [_push_edges(t[i], out[1 + i], x, bins[i], range[i]) for i, x in enumerate(columns)]
    if not density:
        return (None, *edge_tangents)
    relative_width_tangents = [
        _reshape_along(np.diff(edge_tangent) / np.diff(edge), i, len(edge_tangents))
        for i, (edge_tangent, edge) in enumerate(zip(edge_tangents, out[1:], strict=True))
    ]
    return (-out[0] * functools.reduce(operator.add, relative_width_tangents), *edge_tangents)


def _pull_weights(g: Any, out: Any, columns: Sequence[Any], weights: Any, density: bool | None) -> Any:
    """Return the cotangent of the weights from that of the bins."""
    if g[0] is None:
        return np.zeros_like(weights)
    bin_indices, inside = _bin_indices(columns, out[1:])
    bin_cotangent = g[0]
    if density:
        bin_cotangent = (g[0] / _bin_volumes(out[1:]) - np.sum(g[0] * out[0])) / np.sum(np.where(inside, weights, 0))
    return np.where(inside, record_getitem(np.ravel(bin_cotangent), bin_indices), 0)


def _push_weights(
    t: NDArray[Any], out: tuple[Any, ...], columns: Sequence[Any], weights: NDArray[Any], density: object
) -> tuple[Any, ...]:
    """Return the tangent of the bins from that of the weights."""
    bin_indices, inside = _bin_indices(columns, out[1:])
    weight_tangent = np.where(inside, t, 0)
    like = np.zeros(math.prod(out[0].shape), weight_tangent.dtype)
    bin_tangent = np.reshape(
        bind(scatter, (like, np.ravel(weight_tangent), np.ravel(bin_indices)), {"index_counts": (1,)}), out[0].shape
    )
    if density:
        bin_tangent = (bin_tangent / _bin_volumes(out[1:]) - out[0] * np.sum(weight_tangent)) / np.sum(
            np.where(inside, weights, 0)
        )
    return (bin_tangent, *[None for _ in columns])


# The weights of a histogram are recorded as a keyword argument.
histogram_grad = general(
    "histogram",
    lambda g, out, a, bins=10, range=None, density=None, **_: _pull_columns(g, out, [a], density, [bins], [range])[0],
    lambda g, out, a, *, weights, density=None, **_: _pull_weights(g, out, [a], weights, density),
).tangent(
    lambda t, out, a, bins=10, range=None, density=None, **_: _push_columns([t], out, [a], density, [bins], [range]),
    lambda t, out, a, *, weights, density=None, **_: _push_weights(t, out, [a], weights, density),
)


def _split_columns(sample: Any) -> list[Any]:
    return list(np.unstack(sample, axis=1))


histogramdd_grad = general(
    "histogramdd",
    lambda g, out, sample, *_, bins, range, density: np.stack(
        _pull_columns(g, out, _split_columns(sample), density, bins, range), axis=1
    ),
    lambda g, out, sample, weights, *, density, **_: _pull_weights(g, out, _split_columns(sample), weights, density),
).tangent(
    lambda t, out, sample, *_, bins, range, density: _push_columns(
        _split_columns(t), out, _split_columns(sample), density, bins, range
    ),
    lambda t, out, sample, weights, *, density, **_: _push_weights(t, out, _split_columns(sample), weights, density),
)
