"""Derivatives of the statistics of ``scipy.stats``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import autodiff as ad
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, checked, functions

sample = real(7)
other = real(7, seed=4) + 0.5
table = real(6, 4, seed=5)
positive = np.exp(real(6, 3, seed=6))
weights = np.exp(real(6, 3, seed=7))


def of(name: str, **options: Any) -> Any:
    return lambda *arrays: getattr(st, name)(*arrays, **options)


def axes(name: str, x: Any, **options: Any) -> list[tuple[Any, ...]]:
    """A statistic along each kind of axes."""
    return [
        ("along 0", of(name, axis=0, **options), x),
        ("along the last, kept", of(name, axis=-1, keepdims=True, **options), np.swapaxes(x, 0, -1)),
        ("of all", of(name, axis=None, **options), x),
        ("along two", of(name, axis=(0, 1), **options), x),
        ("nan raises", of(name, axis=0, nan_policy="raise", **options), x),
    ]


CASES: dict[str, list[tuple[Any, ...]]] = {
    "gmean": [*axes("gmean", positive), ("weights", lambda a, w: st.gmean(a, weights=w), positive, weights)],
    "hmean": [*axes("hmean", positive), ("weights", lambda a, w: st.hmean(a, axis=1, weights=w), positive, weights)],
    "pmean": [
        *axes("pmean", positive, p=2.5),
        ("of 0", of("pmean", p=0), positive),
        ("weights", lambda a, w: st.pmean(a, 3, weights=w), positive, weights),
    ],
    "trim_mean": axes("trim_mean", table, proportiontocut=0.2),
    "scoreatpercentile": [
        *[(f"along {axis}", of("scoreatpercentile", per=30, axis=axis), table) for axis in (None, 0, -1)],
        ("lower", of("scoreatpercentile", per=30, interpolation_method="lower"), table),
        ("several, within limits", lambda a: st.scoreatpercentile(a, [20, 75], limit=(0.1, 9.0)), table),
    ],
    "moment": [
        *axes("moment", table, order=3),
        ("orders", of("moment", order=[0, 1, 2, 4]), table),
        ("a centre", of("moment", order=3, center=0.4), table),
        ("the first", of("moment", order=1), table),
    ],
    "skew": [*axes("skew", table), ("unbiased", of("skew", bias=False), table)],
    "kurtosis": [*axes("kurtosis", table), ("unbiased", of("kurtosis", bias=False, fisher=False), table)],
    "describe": [
        ("", lambda a: st.describe(a)[2:], table),
        ("all", lambda a: st.describe(a, axis=None, ddof=0, bias=False)[2:], table),
        ("ends", lambda a: st.describe(a).minmax, table),
    ],
    "kstat": [("", of("kstat", n=n), table) for n in (1, 2, 3, 4)] + axes("kstat", table, n=3),
    "sem": [*axes("sem", table), ("ddof", of("sem", ddof=0), table)],
    "variation": [*axes("variation", positive), ("ddof", of("variation", ddof=1), positive)],
    "gstd": [("", of("gstd"), positive), ("along 1", of("gstd", axis=1, ddof=0, keepdims=True), positive)],
    "iqr": [*axes("iqr", table), ("a range", of("iqr", rng=(10, 70), scale="normal"), table)],
    "median_abs_deviation": [*axes("median_abs_deviation", table), ("scaled", of("median_abs_deviation", scale="normal"), table)],
    "zscore": [("", of("zscore"), table), ("all", of("zscore", axis=None, ddof=1), table)],
    "zmap": [("", of("zmap"), table, real(5, 4, seed=9)), ("along 1", of("zmap", axis=1), table, real(6, 5, seed=9))],
    "gzscore": [("", of("gzscore"), positive)],
    "circmean": axes("circmean", table),
    "circvar": axes("circvar", table),
    "circstd": [*axes("circstd", table), ("a period", of("circstd", high=10, low=-10, normalize=True), table)],
    "entropy": [
        *axes("entropy", positive),
        ("a base", of("entropy", base=2, axis=1), positive),
        ("of two", of("entropy", axis=0), positive, weights),
        ("of two, all", of("entropy", axis=None, base=10), positive, weights),
    ],
    "differential_entropy": [
        *axes("differential_entropy", real(12, 3)),
        *[
            (method, of("differential_entropy", method=method), real(12, 2))
            for method in ("vasicek", "van es", "ebrahimi", "correa")
        ],
        ("a window", of("differential_entropy", window_length=2, base=2), real(12)),
    ],
    "ttest_1samp": [
        *[
            (side, lambda a, m, side=side: st.ttest_1samp(a, m, alternative=side)[:2], table, 0.3)
            for side in ("two-sided", "less", "greater")
        ],
        ("all, kept", lambda a: st.ttest_1samp(a, 0.3, axis=None, keepdims=True)[:2], table),
        ("its means", lambda a, m: st.ttest_1samp(a, m[None])[:2], table, real(4, seed=3)),
    ],
    "ttest_rel": [("", lambda a, b: st.ttest_rel(a, b, alternative="less")[:2], table, real(6, 4, seed=8))],
    "ttest_ind": [
        ("", lambda a, b: st.ttest_ind(a, b)[:2], table, real(5, 4, seed=8)),
        ("Welch's", lambda a, b: st.ttest_ind(a, b, equal_var=False, alternative="greater")[:2], table, real(5, 4, seed=8)),
        ("degrees", lambda a, b: st.ttest_ind(a, b, equal_var=False).df, table, real(5, 4, seed=8)),
        ("all", lambda a, b: st.ttest_ind(a, b, axis=None, keepdims=True)[:2], table, real(5, 4, seed=8)),
        ("trimmed", lambda a, b: st.ttest_ind(a, b, trim=0.2)[:2], table, real(5, 4, seed=8)),
        ("trimmed, Welch's", lambda a, b: st.ttest_ind(a, b, trim=0.2, equal_var=False)[:2], table, real(5, 4, seed=8)),
    ],
    "ttest_ind_from_stats": [
        ("", lambda m, s, n, t: st.ttest_ind_from_stats(m, s, 7, n, t, 9), 0.5, 1.2, -0.3, 0.8),
        ("Welch's", lambda m, s, n, t: st.ttest_ind_from_stats(m, s, 7, n, t, 9, equal_var=False), 0.5, 1.2, -0.3, 0.8),
    ],
    "f_oneway": [
        ("", of("f_oneway"), sample, other, real(5, seed=9)),
        ("along 1, kept", of("f_oneway", axis=1, keepdims=True), table, real(6, 5, seed=9)),
        ("Welch's", of("f_oneway", equal_var=False), table, real(5, 4, seed=9), real(3, 4, seed=10)),
    ],
    "pearsonr": [
        *[(side, of("pearsonr", alternative=side), sample, other) for side in ("two-sided", "less", "greater")],
        ("along 1", of("pearsonr", axis=1), table, real(6, 4, seed=9)),
        ("of all", of("pearsonr", axis=None), table, real(6, 4, seed=9)),
    ],
    "pointbiserialr": [("", lambda y: st.pointbiserialr([1, 0, 0, 1, 1, 0, 1], y), sample)],
    "linregress": [
        ("", of("linregress"), sample, other),
        ("one side", of("linregress", alternative="less"), sample, other),
        ("the intercept's error", lambda x, y: st.linregress(x, y).intercept_stderr, sample, other),
        ("along 1", of("linregress", axis=1), table, real(6, 4, seed=9)),
    ],
    "chisquare": [
        ("", of("chisquare"), positive),
        ("expected", lambda o, e: st.chisquare(o, e * (np.sum(o) / np.sum(e)), ddof=1), positive[:, 0], weights[:, 0]),
    ],
    "power_divergence": [
        (str(power), of("power_divergence", lambda_=power, axis=1), positive)
        for power in ("log-likelihood", "freeman-tukey", "mod-log-likelihood", "neyman", "cressie-read", 0.7)
    ],
    "jarque_bera": [("", of("jarque_bera"), table), ("along 0", of("jarque_bera", axis=0), table)],
    "wasserstein_distance": [
        ("", of("wasserstein_distance"), sample, other),
        ("weights", st.wasserstein_distance, sample, other[:5], np.exp(sample), np.exp(other[:5])),
    ],
    "energy_distance": [
        ("", of("energy_distance"), sample, other),
        ("weights", st.energy_distance, sample, other[:5], np.exp(sample), np.exp(other[:5])),
    ],
    "boxcox": [("", st.boxcox, positive, 0.4), ("of 0", st.boxcox, positive, 0.0)],
    "yeojohnson": [(f"of {p}", lambda x, p: st.yeojohnson(x, p), table, p) for p in (0.4, 0.0, 2.0)],
    "boxcox_llf": [
        ("", st.boxcox_llf, 0.4, positive),
        ("of 0", lambda lmb, x: st.boxcox_llf(lmb, x), 0.0, positive),
        ("all", of("boxcox_llf", axis=None, keepdims=True), 0.4, positive),
    ],
    "yeojohnson_llf": [
        *[(f"of {p}", st.yeojohnson_llf, p, table) for p in (0.4, 0.0, 2.0)],
        ("along 1", of("yeojohnson_llf", axis=1), 0.4, table),
    ],
    "quantile": [("", lambda x: st.quantile(x, np.array([0.2, 0.7])), sample)],
    "gaussian_kde": [
        ("", lambda data, x: st.gaussian_kde(data)(x), sample, real(3, seed=11)),
        ("points", lambda x: st.gaussian_kde(sample)(x), real(3, seed=11)),
        ("its logarithm", lambda x: st.gaussian_kde(table.T).logpdf(x), real(4, 2, seed=11)),
        ("vectors", lambda data, x: st.gaussian_kde(data).pdf(x), real(2, 7, seed=11), real(2, 3, seed=12)),
        ("weights", lambda data, w, x: st.gaussian_kde(data, weights=w)(x), sample, np.exp(other), real(3, seed=11)),
        (
            "its logarithm, weights",
            lambda w, x: st.gaussian_kde(sample, "silverman", w).logpdf(x),
            np.exp(other),
            real(3, seed=11),
        ),
        ("a factor", lambda data, h, x: st.gaussian_kde(data, h[()])(x), sample, 0.6, real(3, seed=11)),
        ("a factor of plain data", lambda h: st.gaussian_kde(sample, h[()])([0.3, 0.4]), 0.6),
        ("a function", lambda data: st.gaussian_kde(data, lambda k: k.n**-0.3)([0.3, 0.4]), sample),
        ("another width", lambda data: another_width(data)([0.3, 0.4]), sample),
        ("within bounds", lambda data, low: st.gaussian_kde(data).integrate_box_1d(low, 1.5), sample, -0.2),
        ("times a normal", lambda data, m: st.gaussian_kde(data).integrate_gaussian(m, 0.7), sample, 0.3),
        ("times another", lambda data, x: st.gaussian_kde(data).integrate_kde(st.gaussian_kde(x)), sample, real(5, seed=11)),
    ],
}


def another_width(data: Any) -> Any:
    estimate = st.gaussian_kde(data)
    estimate.set_bandwidth(0.4)
    return estimate


@pytest.mark.parametrize("rows", functions(CASES))
def test_stats_functions_derivatives(rows: Rows) -> None:
    rows.check(jacobians=True)


UNSUPPORTED = {
    "masked elements": (lambda x: st.describe(x, nan_policy="omit")[3], "nan_policy"),
    "an estimated power": (lambda x: st.boxcox(np.exp(x)), "lmbda"),
    "an estimated power of both signs": (lambda x: st.yeojohnson(x), "lmbda"),
    "a resampled test": (lambda x: st.ttest_ind(x, x + 1, method=st.PermutationMethod()), "method="),
    "a resampled correlation": (lambda x: st.pearsonr(x, x**2, method=st.PermutationMethod()), "method="),
    "ranks": (lambda x: st.spearmanr(x, x**2), "order of the data"),
    "draws from an estimate": (lambda x: st.gaussian_kde(x).resample(3), "resample"),
}


@for_each("name", UNSUPPORTED)
def test_stats_functions_unsupported_results_raise(name: str) -> None:
    function, message = UNSUPPORTED[name]
    with pytest.raises(TypeError, match=message):
        ad.grad(lambda x: np.sum(function(x)[0] + x))(sample)


def test_rankdata_has_zero_derivative() -> None:
    assert np.array_equal(ad.grad(lambda x: np.sum(st.rankdata(x) * x))(sample), st.rankdata(sample))


@for_each("alternative", ["sideways", ""])
def test_stats_functions_unknown_alternative_raises(alternative: str) -> None:
    with pytest.raises(ValueError, match="alternative"):
        ad.grad(lambda x: st.ttest_1samp(x, 0.0, alternative=alternative).statistic)(sample)


def test_linear_regression_and_normality_test() -> None:
    """A line, its residuals, and whether they are normal."""

    def program(x: Any, y: Any) -> Any:
        line = st.linregress(x, y)
        rest = y - (line.slope * x + line.intercept)
        return st.jarque_bera(rest).statistic + line.rvalue**2 + st.entropy(np.exp(rest)) + np.sum(x * y)

    checked(program, (sample, other))


def test_nan_policy_raise_and_propagate() -> None:
    x = np.array([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="nan"):
        ad.grad(lambda x: st.skew(x, nan_policy="raise"))(x)
    assert np.isnan(ad.value_and_grad(lambda x: st.sem(x))(x)[0])


@for_each("name", ["skew", "kurtosis", "gmean", "moment", "sem", "iqr", "entropy", "kstat", "zmap", "circmean"])
def test_nan_policy_omit_derivatives(name: str) -> None:
    """With nan_policy="omit" the derivative at nan is 0, and elsewhere equal to that without the nan."""
    arguments = (np.arange(3.0),) if name == "zmap" else ()
    statistic = lambda x, **options: getattr(st, name)(x, *arguments, **options)  # noqa: E731
    x = np.array([1.0, 0.3, np.nan, 2.0, 0.7])
    value, slope = ad.value_and_grad(lambda x: np.nansum(statistic(x, nan_policy="omit")))(x)
    present = ~np.isnan(x)
    expected, slopes = ad.value_and_grad(lambda x: np.sum(statistic(x)))(x[present])
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(slope[present], slopes, rtol=1e-12, atol=1e-15)
    assert slope[~present] == 0
