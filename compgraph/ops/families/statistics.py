"""Order statistics, histograms, correlation."""

from __future__ import annotations

import numpy as np

from ..compositions import histograms, statistics
from ..spec import OpSpec, rule, steps

_ORDER = (np.median, np.quantile, np.percentile, np.nanmedian, np.nanquantile, np.nanpercentile)

OPERATIONS: tuple[OpSpec, ...] = (
    # order statistics
    *[rule(statistics.without_overwrite_input(f), "a", aliases=(f,)) for f in _ORDER],
    # histograms
    rule(np.bincount, "x weights", kind="sequential", length="values"),
    rule(np.histogram, "a weights", kind="sequential", length="values"),
    rule(np.histogram_bin_edges, "a", kind="sequential", length="values"),
    steps(np.histogram2d, histograms.histogram2d),
    rule(histograms.histogramdd, "sample weights", kind="sequential"),
    steps(np.histogramdd, histograms.histogramdd_in_steps),
    # correlation
    steps(np.cov, statistics.cov),
    steps(np.corrcoef, statistics.corrcoef),
)
