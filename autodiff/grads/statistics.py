"""Rules of statistics: spreads, order statistics, reductions that pass over what is not a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import Formula, reduction
from . import reductions
from .cumulative import without_nan

# ---------------------------------------------------------------------- reductions that pass over nan


def _over_nan(weights: Formula, fill: float = 0) -> Formula:
    """The weights of a reduction in which elements that are not numbers take no part."""

    def present(out: Any, x: Any, where: Any = True, **options: Any) -> Any:
        return weights(out, without_nan(x, fill), where=np.logical_and(where, np.logical_not(np.isnan(x))), **options)

    return present


nansum_grad = reduction("nansum", _over_nan(reductions._sum))
nanprod_grad = reduction("nanprod", _over_nan(reductions._prod, 1))
nanmean_grad = reduction("nanmean", _over_nan(reductions._mean))
nanvar_grad = reduction("nanvar", _over_nan(reductions._var))
nanstd_grad = reduction("nanstd", _over_nan(reductions._std))
nanmax_grad = reduction("nanmax", _over_nan(reductions._max))
nanmin_grad = reduction("nanmin", _over_nan(reductions._min))


def _ptp(out: Any, x: Any, axis: Any = None, **_: Any) -> Any:
    ends = (np.max(x, axis=axis, keepdims=True), np.min(x, axis=axis, keepdims=True))
    return reductions._max(ends[0], x, axis) - reductions._min(ends[1], x, axis)


ptp_grad = reduction("ptp", _ptp)
