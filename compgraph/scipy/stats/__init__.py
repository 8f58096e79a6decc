"""``scipy.stats``: distributions and statistics, mostly by SciPy's own code."""

from __future__ import annotations

import scipy.stats as st

from ..policy import Policy
from . import distributions, replaced_functions
from .distributions import density as density  # for the rule of `evaluate_numerically`

_STATISTICS = """
    gmean hmean pmean trim_mean moment skew kurtosis describe kstat sem variation gstd iqr median_abs_deviation quantile zmap
    zscore gzscore circmean circvar circstd entropy differential_entropy ttest_1samp ttest_rel ttest_ind ttest_ind_from_stats
    f_oneway pearsonr linregress power_divergence chisquare jarque_bera pointbiserialr wasserstein_distance energy_distance
    boxcox yeojohnson boxcox_llf yeojohnson_llf scoreatpercentile
"""
_METHOD_ADVICE = "omit it, because it resamples"

PIECEWISE = {"rankdata": "a", "tiecorrect": "rankvals"}

# Objects with methods, errors, and classes without numeric arguments.
_PLAIN = """
    rv_continuous rv_discrete multivariate_normal multivariate_t dirichlet wishart invwishart multinomial matrix_normal
    matrix_t dirichlet_multinomial vonmises_fisher normal_inverse_gamma multivariate_hypergeom ortho_group
    special_ortho_group random_correlation random_table uniform_direction unitary_group BootstrapMethod MonteCarloMethod
    PermutationMethod ConstantInputWarning DegenerateDataWarning NearConstantInputWarning FitError make_distribution
    Covariance
"""

_RANK_ADVICE = "plain numbers (x.value), because its statistic depends only on the order of the data"
_SEARCH_ADVICE = "plain numbers (x.value), because it searches; or optimize the likelihood, the sum of logpdf"
_RESAMPLING_ADVICE = "plain numbers (x.value), because it resamples; or the statistic itself"
_TEST_ADVICE = "plain numbers (x.value), because its distribution has no rule; or its statistic, written with NumPy functions"
_COUNT_ADVICE = "plain numbers (x.value), because it counts; or smooth weights of the bins, such as np.exp"
_MASK_ADVICE = "the statistic of x[mask]"
_PLOT_ADVICE = "plain numbers (x.value), because it draws"
_INTERFACE_ADVICE = "the distributions of the older interface, such as scipy.stats.norm"
_DEFINITION_ADVICE = "its definition, written with NumPy functions"


def _advise(names: str, advice: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), advice)


_DRAW_ADVICE = "mean + np.linalg.cholesky(cov) @ z with plain standard normal draws z"
_FIT_ADVICE = "plain data (x.value), or optimize the sum of logpdf"
_UNSUPPORTED_METHODS = {
    "multivariate_normal.rvs": _DRAW_ADVICE,
    "multivariate_t.rvs": _DRAW_ADVICE,
    **_advise(
        "multivariate_normal.cdf multivariate_normal.logcdf multivariate_t.cdf",
        "plain numbers (x.value), because SciPy integrates by random points",
    ),
    **_advise("multivariate_normal.fit rv_continuous.fit rv_continuous.fit_loc_scale", _FIT_ADVICE),
    **_advise("rv_continuous.expect rv_discrete.expect", "the sum of values times pdf or pmf, at the points of a quadrature"),
    "multivariate_t.entropy": _DEFINITION_ADVICE,
    **_advise(
        "dirichlet.rvs wishart.rvs invwishart.rvs multinomial.rvs", "plain parameters (x.value), and weight by logpdf or logpmf"
    ),
    **_advise(
        "wishart.mean wishart.var wishart.mode wishart.entropy invwishart.mean invwishart.var invwishart.mode", _DEFINITION_ADVICE
    ),
    **_advise("invwishart.entropy multinomial.entropy multinomial.cov", _DEFINITION_ADVICE),
    **{
        f"{name}.{method}": _DEFINITION_ADVICE
        for name in ("matrix_normal", "matrix_t", "vonmises_fisher", "normal_inverse_gamma")
        for method in ("pdf", "logpdf", "rvs", "__call__")
    },
    **{
        f"{name}.{method}": _DEFINITION_ADVICE
        for name in ("dirichlet_multinomial", "multivariate_hypergeom")
        for method in ("pmf", "logpmf", "__call__")
    },
}

UNSUPPORTED = {
    **_advise(
        """
        spearmanr spearmanrho kendalltau somersd weightedtau siegelslopes theilslopes mannwhitneyu wilcoxon kruskal
        friedmanchisquare ranksums brunnermunzel ansari mood median_test chatterjeexi page_trend_test bws_test ks_1samp
        ks_2samp kstest cramervonmises cramervonmises_2samp epps_singleton_2samp anderson_ksamp percentileofscore ecdf
        logrank quantile_test fligner
        """,
        _RANK_ADVICE,
    ),
    **_advise("boxcox_normmax yeojohnson_normmax", "plain numbers (x.value), and pass the resulting power by lmbda="),
    **_advise("fit ppcc_max goodness_of_fit expectile", _SEARCH_ADVICE),
    **_advise(
        "bootstrap permutation_test monte_carlo_test power multiscale_graphcorr sobol_indices dunnett tukey_hsd "
        "poisson_means_test",
        _RESAMPLING_ADVICE,
    ),
    **_advise(
        """
        anderson shapiro skewtest kurtosistest normaltest bartlett levene alexandergovern combine_pvalues false_discovery_control
        bayes_mvs mvsdist barnard_exact boschloo_exact fisher_exact chi2_contingency binomtest kstatvar directional_stats
        """,
        _TEST_ADVICE,
    ),
    **_advise(
        "binned_statistic binned_statistic_2d binned_statistic_dd cumfreq relfreq mode rv_histogram CensoredData", _COUNT_ADVICE
    ),
    **_advise("tmean tvar tstd tsem tmin tmax trim1 trimboth sigmaclip", _MASK_ADVICE),
    **_advise("boxcox_normplot yeojohnson_normplot ppcc_plot probplot", _PLOT_ADVICE),
    **_advise("Normal Uniform Logistic Binomial Mixture abs exp log truncate order_statistic estimated_cdf", _INTERFACE_ADVICE),
    **_advise("lmoment obrientransform wasserstein_distance_nd", _DEFINITION_ADVICE),
    **_UNSUPPORTED_METHODS,
}

POLICY = Policy(
    module="scipy.stats",
    piecewise=PIECEWISE,
    own_code=frozenset([*distributions.OWN_CODE, *replaced_functions.OWN_CODE, *_STATISTICS.split()]),
    fixed_options={
        "ttest_ind": {"method": _METHOD_ADVICE},
        "pearsonr": {"method": _METHOD_ADVICE},
        "describe": {"nan_policy": "select elements by an index, x[~np.isnan(x)]"},
    },
    replacements={**distributions.REPLACEMENTS, **replaced_functions.REPLACEMENTS},
    always_replaced=replaced_functions.ALWAYS,
    plain=frozenset(_PLAIN.split())
    | {name for name in st.__all__ if isinstance(getattr(st, name), (st.rv_continuous, st.rv_discrete))},
    unsupported=UNSUPPORTED,
)
