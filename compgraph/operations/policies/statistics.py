"""Sums and products that accumulate, statistics, differences, interpolation."""

from __future__ import annotations

import numpy as np

from ..compositions import histograms, statistics
from .policy import Policy

_ORDER = {
    f: statistics.sparing(f) for f in (np.median, np.quantile, np.percentile, np.nanmedian, np.nanquantile, np.nanpercentile)
}

POLICY = Policy(
    smooth={
        np.cumsum: "a",
        np.cumprod: "a",
        np.cumulative_sum: "x",
        np.cumulative_prod: "x",
        np.nancumsum: "a",
        np.nancumprod: "a",
        np.ptp: "a",
        np.nansum: "a initial where",
        np.nanprod: "a initial where",
        np.nanmax: "a initial where",
        np.nanmin: "a initial where",
        np.nanmean: "a where",
        np.nanvar: "a where mean",
        np.nanstd: "a where mean",
        np.ediff1d: "ary to_end to_begin",
        np.unwrap: "p",
        np.convolve: "a v",
        np.correlate: "a v",
        np.bincount: "x weights",
        np.histogram: "a weights",
        histograms.histogramdd: "sample weights",
        np.histogram_bin_edges: "a",
        np.interp: "x xp fp left right",
        **dict.fromkeys(_ORDER.values(), "a"),
    },
    composed=frozenset({np.diff, np.average, np.trapezoid}),
    instead={
        np.gradient: statistics.gradient,
        np.cov: statistics.cov,
        np.corrcoef: statistics.corrcoef,
        np.histogram2d: histograms.histogram2d,
        np.histogramdd: histograms.histogramdd_of,
    },
    aliases=_ORDER,
    methods={"cumsum": np.cumsum, "cumprod": np.cumprod},
)
