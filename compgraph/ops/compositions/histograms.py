"""Histograms of several variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tools import as_array, is_node, record_call


def histogramdd(
    sample: NDArray[Any],
    weights: NDArray[Any] | None = None,
    *,
    bins: tuple[Any, ...],
    range: tuple[Any, ...],
    density: bool | None,
) -> tuple[Any, ...]:
    """``numpy.histogramdd`` of a table, with bins and a range for each column: the counts, then the edges of each column.

    This is the form that is recorded: operands first, options by keyword, outputs in one tuple.
    """
    bin_counts, edges = np.histogramdd(sample, bins, range, density, weights)
    return (bin_counts, *edges)


def _reject_nodes(option: Any, name: str, function: str) -> None:
    """Raise a TypeError if an option is a node or holds one: bins and ranges are plain."""
    if isinstance(option, (list, tuple)):
        for part in option:
            _reject_nodes(part, name, function)
    elif is_node(option):
        raise TypeError(f"np.{function}: {name}= cannot be a node; give node.value")


def _has_length(option: ArrayLike) -> bool:
    return bool(np.ndim(option)) if isinstance(option, np.ndarray) else hasattr(option, "__len__")


def histogramdd_in_steps(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: object = None) -> Any:
    """``numpy.histogramdd``."""
    _reject_nodes(bins, "bins", "histogramdd")
    _reject_nodes(range, "range", "histogramdd")
    if not is_node(sample) and not isinstance(sample, np.ndarray):
        sample = np.stack([as_array(x) for x in sample])
        sample = sample.T if sample.ndim > 1 else np.reshape(sample, (-1, 1))
    elif sample.ndim != 2:
        sample = np.atleast_2d(sample).T
    count = sample.shape[1]
    bins = bins if _has_length(bins) else (bins,) * count
    if len(bins) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    range = (None,) * count if range is None else range
    if len(range) != count:
        raise ValueError("range argument must have one entry per dimension")
    options = {"bins": tuple(bins), "range": tuple(range), "density": density}
    operands = (sample,) if weights is None else (sample, as_array(weights))
    counts_and_edges = record_call(histogramdd, *operands, **options)
    return counts_and_edges[0], list(counts_and_edges[1:])


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """``numpy.histogram2d``."""
    _reject_nodes(bins, "bins", "histogram2d")
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if _has_length(bins) and len(bins) not in (1, 2):
        bins = [np.asarray(bins)] * 2
    bin_counts, edges = histogramdd_in_steps([x, y], bins, range, density, weights)
    return bin_counts, edges[0], edges[1]
