"""``scipy.stats``: distributions, whose formulas are run in recorded steps, and statistics, written in such."""

from __future__ import annotations

import scipy.stats as st

from ..policy import Policy
from . import continuous, discrete, distances, hypotheses, kernels, moments, multivariate, summaries
from .names import PIECEWISE, PLAIN, REFUSED
from .pieces import apply_where, lazyselect

_SUMMARIES = """
    gmean hmean pmean trim_mean moment skew kurtosis describe kstat sem variation gstd iqr median_abs_deviation zmap zscore gzscore
    circmean circvar circstd entropy differential_entropy
"""
_HYPOTHESES = """
    ttest_1samp ttest_rel ttest_ind ttest_ind_from_stats f_oneway pearsonr linregress power_divergence chisquare jarque_bera
    pointbiserialr
"""
_DISTANCES = "wasserstein_distance energy_distance boxcox yeojohnson boxcox_llf yeojohnson_llf"

POLICY = Policy(
    module="scipy.stats",
    piecewise=PIECEWISE,
    instead={
        **{f"rv_continuous.{name}": method for name, method in (continuous.METHODS | moments.METHODS).items()},
        **{f"rv_discrete.{name}": method for name, method in discrete.METHODS.items()},
        "rv_discrete.rvs": moments.rvs,
        "rv_discrete.entropy": moments.entropy,
        "_continuous_distns.xpx.apply_where": apply_where,
        "_continuous_distns._lazyselect": lazyselect,
        **multivariate.METHODS,
        **kernels.METHODS,
        **{name: getattr(summaries, name) for name in _SUMMARIES.split()},
        **{name: getattr(hypotheses, name) for name in _HYPOTHESES.split()},
        **{name: getattr(distances, name) for name in _DISTANCES.split()},
    },
    calling=kernels.ASKED,
    plain=PLAIN | {name for name in st.__all__ if isinstance(getattr(st, name), (st.rv_continuous, st.rv_discrete))},
    refused=REFUSED,
)
