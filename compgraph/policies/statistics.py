"""Sums and products that accumulate, statistics, differences, interpolation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .policy import Function, Policy


def _sparing(function: Function) -> Function:
    """The function without ``overwrite_input=``, which would sort the elements of a node."""

    @functools.wraps(function)
    def spared(*args: Any, overwrite_input: Any = False, **options: Any) -> Any:
        if overwrite_input:
            raise TypeError(
                f"np.{function.__name__}: overwrite_input= would write into a node, which the graph needs as it is; leave it out"
            )
        return function(*args, **options)

    return spared


_ORDER = {f: _sparing(f) for f in (np.median, np.quantile, np.percentile, np.nanmedian, np.nanquantile, np.nanpercentile)}

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
        np.ediff1d: "ary to_end to_begin",
        np.unwrap: "p",
        np.convolve: "a v",
        np.correlate: "a v",
        np.interp: "x xp fp left right",
        **dict.fromkeys(_ORDER.values(), "a"),
    },
    composed=frozenset({np.diff, np.average, np.trapezoid}),
    aliases={**_ORDER},
    methods={"cumsum": np.cumsum, "cumprod": np.cumprod},
)
