"""Reductions over axes (sums, extrema, moments, order statistics), cumulative functions, histograms, correlation."""

from __future__ import annotations

import numpy as np

from ..compositions import statistics
from ..spec import OpSpec, composed, piecewise, replaced, rule

_ORDER_STATISTICS = (np.median, np.quantile, np.percentile, np.nanmedian, np.nanquantile, np.nanpercentile)

OPERATIONS: tuple[OpSpec, ...] = (
    # sums and products
    rule(np.sum, "a initial where", kind="reduction", warns="floats", method="sum", fold=(np.add, "reduce")),
    rule(np.prod, "a initial where", kind="reduction", warns="floats", method="prod", fold=(np.multiply, "reduce")),
    rule(np.mean, "a where", kind="reduction", warns="floats", method="mean"),
    rule(np.nansum, "a initial where", kind="reduction"),
    rule(np.nanprod, "a initial where", kind="reduction"),
    rule(np.nanmean, "a where", kind="reduction"),
    rule(np.trace, "a", warns="floats", method="trace"),
    composed(np.average),
    piecewise(np.count_nonzero, "a", kind="reduction", warns="never"),
    # moments
    rule(np.var, "a where mean", kind="reduction", warns="floats", method="var"),
    rule(np.std, "a where mean", kind="reduction", warns="floats", method="std", corner="length"),
    rule(np.nanvar, "a where mean", kind="reduction"),
    rule(np.nanstd, "a where mean", kind="reduction"),
    # extrema and their positions
    rule(
        np.max, "a initial where", kind="reduction", warns="never", method="max", aliases=(np.amax,), fold=(np.maximum, "reduce")
    ),
    rule(
        np.min, "a initial where", kind="reduction", warns="never", method="min", aliases=(np.amin,), fold=(np.minimum, "reduce")
    ),
    rule(np.ptp, "a", kind="reduction"),
    rule(np.nanmax, "a initial where", kind="reduction"),
    rule(np.nanmin, "a initial where", kind="reduction"),
    piecewise(np.argmax, "a", kind="position", warns="never", method="argmax"),
    piecewise(np.argmin, "a", kind="position", warns="never", method="argmin"),
    piecewise(np.nanargmax, "a", kind="position"),
    piecewise(np.nanargmin, "a", kind="position"),
    # logic
    piecewise(np.all, "a where", kind="reduction", warns="never", method="all", fold=(np.logical_and, "reduce")),
    piecewise(np.any, "a where", kind="reduction", warns="never", method="any", fold=(np.logical_or, "reduce")),
    # along an axis
    rule(np.cumsum, "a", kind="cumulative", warns="floats", method="cumsum", fold=(np.add, "accumulate"), returns_buffer=True),
    rule(np.cumprod, "a", kind="cumulative", method="cumprod", fold=(np.multiply, "accumulate"), returns_buffer=True),
    rule(np.cumulative_sum, "x", kind="cumulative"),
    rule(np.cumulative_prod, "x", kind="cumulative"),
    rule(np.nancumsum, "a", kind="cumulative"),
    rule(np.nancumprod, "a", kind="cumulative"),
    composed(np.diff),
    rule(np.ediff1d, "ary to_end to_begin", kind="sequential"),
    composed(np.trapezoid),
    replaced(np.gradient, statistics.gradient, returns_buffer=True),
    # order statistics
    *[rule(statistics.without_overwrite_input(f), "a", aliases=(f,)) for f in _ORDER_STATISTICS],
    # histograms
    rule(np.bincount, "x weights", kind="sequential", shape_depends_on="values"),
    rule(np.histogram, "a weights", kind="sequential", shape_depends_on="values"),
    rule(np.histogram_bin_edges, "a", kind="sequential", shape_depends_on="values"),
    replaced(np.histogram2d, statistics.histogram2d),
    rule(statistics.histogramdd, "sample weights", kind="sequential"),
    replaced(np.histogramdd, statistics.histogramdd_in_steps, lists="unchanged"),
    # correlation
    replaced(np.cov, statistics.cov),
    replaced(np.corrcoef, statistics.corrcoef),
)
