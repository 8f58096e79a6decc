"""Sums and products that accumulate, statistics, differences, interpolation."""

from __future__ import annotations

import numpy as np

from .policy import Policy

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
        np.nanvar: "a where",
        np.nanstd: "a where",
    },
    composed=frozenset({np.diff, np.average, np.trapezoid}),
    methods={"cumsum": np.cumsum, "cumprod": np.cumprod},
)
