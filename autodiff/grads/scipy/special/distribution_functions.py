"""Rules of SciPy's distribution functions, whose derivative is a density, of their inverses, and of densities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.array_types import Operand

from ....rules import Formula, Rule
from .gamma_functions import beta_density, betainc_slopes, gamma_density, gammainc_slope
from .ufunc_rules import ROOT_2PI, special

Density = Formula  # ``density(*arguments)``, of all arguments of the distribution function


def _declare_distribution(name: str, parameters: str, density: Density, sign: int = 1) -> Rule:
    """Declare a distribution function, or its complement (`sign` -1), with unknown derivatives with respect to parameters."""
    return special(name, *parameters.split(), lambda g, out, *arguments: sign * g * density(*arguments))


def _declare_inverse(name: str, parameters: str, density: Density, sign: int = 1) -> Rule:
    """Declare the inverse, whose last argument is the probability."""
    return special(name, *parameters.split(), lambda g, out, *arguments: sign * g / density(*arguments[:-1], out))


# Binomial, negative binomial and Poisson distributions, as functions of the probability or the mean; counts are truncated
def _binomial_density(k: Any, n: Any, p: Any) -> Any:
    return beta_density(np.floor(k) + 1, n - np.floor(k), p)


def _negative_binomial_density(k: Any, n: Any, p: Any) -> Any:
    return beta_density(n * 1.0, k + 1.0, p)


def _poisson_density(k: Any, mean: Any) -> Any:
    return gamma_density(np.floor(k) + 1, mean)


special_bdtr_grad = _declare_distribution("bdtr", "k n", _binomial_density, -1)
special_bdtrc_grad = _declare_distribution("bdtrc", "k n", _binomial_density)
special_bdtri_grad = _declare_inverse("bdtri", "k n", _binomial_density, -1)
special_nbdtr_grad = _declare_distribution("nbdtr", "k n", _negative_binomial_density)
special_nbdtrc_grad = _declare_distribution("nbdtrc", "k n", _negative_binomial_density, -1)
special_nbdtri_grad = _declare_inverse("nbdtri", "k n", _negative_binomial_density)
special_pdtr_grad = _declare_distribution("pdtr", "k", _poisson_density, -1)
special_pdtrc_grad = _declare_distribution("pdtrc", "k", _poisson_density)
special_pdtri_grad = _declare_inverse("pdtri", "k", _poisson_density, -1)


# Chi-square, F, gamma and Student's distributions
def _chi_square_density(v: NDArray[Any], x: NDArray[Any]) -> Any:
    return 0.5 * gamma_density(0.5 * v, 0.5 * x)


def _f_density(dfn: Any, dfd: Any, x: NDArray[Any]) -> Any:
    total = dfd + dfn * x
    return beta_density(0.5 * dfn, 0.5 * dfd, dfn * x / total) * (dfn * dfd / total**2)


def _student_density(df: Operand, t: NDArray[Any]) -> Any:
    return np.exp(-sc.betaln(0.5, 0.5 * df) - 0.5 * np.log(df) - 0.5 * (df + 1) * np.log1p(t * t / df))


def _chi_square_slope(v: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the derivative of the distribution function with respect to the degrees of freedom."""
    return 0.5 * gammainc_slope(0.5 * v, 0.5 * x)


def _f_slope(position: int, dfn: Any, dfd: Any, x: NDArray[Any]) -> Any:
    """Return the derivative of the distribution function, ``betainc`` of ``w``, with respect to dfn (0) or dfd (1)."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * x
    w = dfn * x / total
    w_slope = (x * dfd if position == 0 else -dfn * x) / total**2
    return 0.5 * betainc_slopes(a, b, w)[position] + beta_density(a, b, w) * w_slope


def _student_slope(df: Any, t: NDArray[Any]) -> Any:
    """Return the derivative of the distribution function with respect to df.

    For positive `t` the function is ``1 - betainc(df / 2, 1 / 2, w) / 2`` with ``w = df / (df + t**2)``.
    """
    half = np.full((), 0.5)
    total = df + t * t
    w = np.where(t == 0, 0.5, df / total)
    slope = 0.5 * betainc_slopes(0.5 * df, half, w)[0] + beta_density(0.5 * df, half, w) * (t * t / total**2)
    return np.where(t == 0, 0, -0.5 * np.sign(t) * slope)


def _declare_full(name: str, slopes: Sequence[Density], sign: int = 1) -> Rule:
    """Declare a distribution function by its derivatives with respect to all arguments; the last is the density."""
    return special(name, *[lambda g, out, *arguments, slope=slope: sign * g * slope(*arguments) for slope in slopes])


def _declare_full_inverse(name: str, slopes: Sequence[Density], sign: int = 1) -> Rule:
    """Declare the inverse, by the implicit function theorem."""
    *parameter_slopes, density = slopes

    def pull_parameter(slope: Density) -> Formula:
        return lambda g, out, *arguments: -g * (slope(*arguments[:-1], out) / density(*arguments[:-1], out))

    formulas = map(pull_parameter, parameter_slopes)
    return special(name, *formulas, lambda g, out, *arguments: sign * g / density(*arguments[:-1], out))


_CHI_SQUARE = (_chi_square_slope, _chi_square_density)
_F = (partial(_f_slope, 0), partial(_f_slope, 1), _f_density)
_STUDENT = (_student_slope, _student_density)
_GAMMA = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gammainc_slope(b, a * x),
    lambda a, b, x: a * gamma_density(b, a * x),
)

special_chdtr_grad = _declare_full("chdtr", _CHI_SQUARE)
special_chdtrc_grad = _declare_full("chdtrc", _CHI_SQUARE, -1)
special_chdtri_grad = _declare_full_inverse("chdtri", _CHI_SQUARE, -1)
special_fdtr_grad = _declare_full("fdtr", _F)
special_fdtrc_grad = _declare_full("fdtrc", _F, -1)
special_fdtri_grad = _declare_full_inverse("fdtri", _F)
special_stdtr_grad = _declare_full("stdtr", _STUDENT)
special_stdtrit_grad = _declare_full_inverse("stdtrit", _STUDENT)
special_gdtr_grad = _declare_full("gdtr", _GAMMA)
special_gdtrc_grad = _declare_full("gdtrc", _GAMMA, -1)
special_gdtrix_grad = _declare_full_inverse("gdtrix", _GAMMA)
special_gdtria_grad = special(
    "gdtria",
    lambda g, out, p, b, x: g / (x * gamma_density(b, out * x)),
    lambda g, out, p, b, x: -g * (gammainc_slope(b, out * x) / (x * gamma_density(b, out * x))),
    lambda g, out, p, b, x: -g * (out / x),
)


# Normal distribution: x = mean + deviation * ndtri(p)
def _quantile_slope(p: object) -> Any:
    return np.exp(0.5 * sc.ndtri(p) ** 2) * ROOT_2PI


special_nrdtrimn_grad = special(
    "nrdtrimn",
    lambda g, out, p, deviation, x: -g * (deviation * _quantile_slope(p)),
    lambda g, out, p, deviation, x: -g * sc.ndtri(p),
    lambda g, out, p, deviation, x: g,
)
special_nrdtrisd_grad = special(
    "nrdtrisd",
    lambda g, out, mean, p, x: -g / sc.ndtri(p),
    lambda g, out, mean, p, x: -g * (out * _quantile_slope(p) / sc.ndtri(p)),
    lambda g, out, mean, p, x: g / sc.ndtri(p),
)


# Noncentral distributions: densities, and derivatives of distribution functions with respect to the noncentrality
def _ncx2_density(x: NDArray[Any], df: Any, nc: Any) -> Any:
    power = sc.xlogy(0.5 * df - 1, 0.5 * x) - 0.5 * (x + nc) - sc.gammaln(0.5 * df)
    return 0.5 * np.exp(power) * sc.hyp0f1(0.5 * df, 0.25 * nc * x)


def _ncx2_slope(x: NDArray[Any], df: Operand, nc: object) -> Any:
    return -_ncx2_density(x, df + 2.0, nc)


def _ncf_density(dfn: Any, dfd: Any, nc: Any, f: Any) -> Any:
    """Return the density of the noncentral F distribution."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * f
    w = dfn * f / total
    return np.exp(-0.5 * nc) * beta_density(a, b, w) * sc.hyp1f1(a + b, a, 0.5 * nc * w) * (dfn * dfd / total**2)


def _ncf_slope(dfn: Operand, dfd: Operand, nc: Operand, f: Operand) -> Any:
    """Return the derivative of the noncentral F distribution function with respect to the noncentrality."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * f
    w = dfn * f / total
    weight = np.exp(a * np.log(w) + b * np.log(dfd / total) - sc.betaln(a, b) - 0.5 * nc)
    return -0.5 * (weight / a * sc.hyp1f1(a + b, a + 1, 0.5 * nc * w))


def _nct_moment(order: Any, df: Any, nc: Any, t: NDArray[Any]) -> Any:
    """Return the mean of ``s**(order - df) normal_density(t s / sqrt(df) - nc)``, where `s` has a chi distribution with `df`."""
    a, b = 1 + t * t / df, nc * t / np.sqrt(df)
    z = b * b / (2 * a)
    even = sc.hyp1f1(0.5 * order, 0.5, z) * np.exp(sc.gammaln(0.5 * order) - sc.gammaln(0.5 * df))
    odd = sc.hyp1f1(0.5 * order + 0.5, 1.5, z) * np.exp(sc.gammaln(0.5 * order + 0.5) - sc.gammaln(0.5 * df))
    scale = np.exp(-0.5 * nc * nc) / ROOT_2PI * 2 ** (0.5 * (order - df)) * a ** (-0.5 * order)
    return scale * (even + b * np.sqrt(2 / a) * odd)


def _nct_density(df: Operand, nc: object, t: NDArray[Any]) -> Any:
    """Return the density of the noncentral t distribution."""
    return _nct_moment(df + 1.0, df, nc, t) / np.sqrt(df)


def _nct_slope(df: Operand, nc: object, t: NDArray[Any]) -> Any:
    """Return the derivative of the noncentral t distribution function with respect to the noncentrality."""
    return -_nct_moment(df, df, nc, t)


special_chndtr_grad = special(
    "chndtr",
    lambda g, out, x, df, nc: g * _ncx2_density(x, df, nc),
    "df",
    lambda g, out, x, df, nc: g * _ncx2_slope(x, df, nc),
)
special_chndtrix_grad = special(
    "chndtrix",
    lambda g, out, p, df, nc: g / _ncx2_density(out, df, nc),
    "df",
    lambda g, out, p, df, nc: -g * (_ncx2_slope(out, df, nc) / _ncx2_density(out, df, nc)),
)
special_chndtrinc_grad = special(
    "chndtrinc",
    lambda g, out, x, df, p: -g * (_ncx2_density(x, df, out) / _ncx2_slope(x, df, out)),
    "df",
    lambda g, out, x, df, p: g / _ncx2_slope(x, df, out),
)
special_ncfdtr_grad = special(
    "ncfdtr",
    "dfn",
    "dfd",
    lambda g, out, dfn, dfd, nc, f: g * _ncf_slope(dfn, dfd, nc, f),
    lambda g, out, dfn, dfd, nc, f: g * _ncf_density(dfn, dfd, nc, f),
)
special_ncfdtri_grad = special(
    "ncfdtri",
    "dfn",
    "dfd",
    lambda g, out, dfn, dfd, nc, p: -g * (_ncf_slope(dfn, dfd, nc, out) / _ncf_density(dfn, dfd, nc, out)),
    lambda g, out, dfn, dfd, nc, p: g / _ncf_density(dfn, dfd, nc, out),
)
special_nctdtr_grad = special(
    "nctdtr",
    "df",
    lambda g, out, df, nc, t: g * _nct_slope(df, nc, t),
    lambda g, out, df, nc, t: g * _nct_density(df, nc, t),
)
special_nctdtrit_grad = special(
    "nctdtrit",
    "df",
    lambda g, out, df, nc, p: -g * (_nct_slope(df, nc, out) / _nct_density(df, nc, out)),
    lambda g, out, df, nc, p: g / _nct_density(df, nc, out),
)
special_nctdtrinc_grad = special(
    "nctdtrinc",
    "df",
    lambda g, out, df, p, t: g / _nct_slope(df, out, t),
    lambda g, out, df, p, t: -g * (_nct_density(df, out, t) / _nct_slope(df, out, t)),
)


# The distributions of Kolmogorov and Smirnov
def _kolmogorov_slope(x: NDArray[Any]) -> Any:
    """Return the derivative, by a series for large arguments, and by its transform by theta functions for small ones."""
    is_small = x < 1
    large, small = np.where(is_small, 1, x), np.where(is_small, np.maximum(x, 0.01), 1)
    large_sum = sum((-1) ** k * k * k * np.exp(-2 * k * k * large * large) for k in range(1, 6)) * (8 * large)
    rates = [(2 * k - 1) ** 2 * math.pi**2 / 8 for k in range(1, 5)]
    small_sum = sum((2 * rate / small**2 - 1) * np.exp(-rate / (small * small)) for rate in rates)
    return np.where(x <= 0, 0, np.where(is_small, -ROOT_2PI * small_sum / (small * small), large_sum))


def _smirnov_slope(n: Operand, x: NDArray[Any]) -> Any:
    """Return the sum over j of the derivatives of ``comb(n, j) x (1 - x - j / n)**(n - j) (x + j / n)**(j - 1)``."""
    j = np.arange(int(np.max(n, initial=0)) + 1)
    n = (0 * x + np.floor(n))[..., None]
    above, below = 1 - x[..., None] - j / n, x[..., None] + j / n
    inside = above > 0
    above = np.where(inside, above, 1)
    log_binomial = sc.gammaln(n + 1) - sc.gammaln(j + 1) - sc.gammaln(np.maximum(n - j, 0) + 1)
    factor = np.exp(log_binomial + (n - j - 1) * np.log(above) + (j - 2) * np.log(below))
    slope = above * below + x[..., None] * ((j - 1) * above - (n - j) * below)
    return np.sum(np.where(inside, factor * slope, 0), axis=-1)


special_kolmogorov_grad = special("kolmogorov", lambda g, out, x: g * _kolmogorov_slope(x))
special_kolmogi_grad = special("kolmogi", lambda g, out, p: g / _kolmogorov_slope(out))
special_smirnov_grad = special("smirnov", "n", lambda g, out, n, x: g * _smirnov_slope(n, x))
special_smirnovi_grad = special("smirnovi", "n", lambda g, out, n, p: g / _smirnov_slope(n, out))

# --------------------------------------------------------------- private ufuncs of scipy.stats
# Their parameters follow the argument.


def _pull_beta_pdf(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Return the cotangent of x. At the ends, where the density may be 0 although its slope is not, powers give the slope."""
    inside = (x > 0) & (x < 1)
    y = np.where(inside, x, 0.5)
    left, right = np.where(inside, 1.0, x), np.where(inside, 1.0, 1 - x)  # powers of 0 are computed only at the ends
    below, above = np.where(inside, 2, a), np.where(inside, 2, b)
    ends = (a - 1) * left ** (below - 2) * right ** (above - 1) - (b - 1) * left ** (below - 1) * right ** (above - 2)
    slope = out * ((a - 1) / y - (b - 1) / (1 - y))
    return g * np.where(inside, slope, ends * np.exp(-sc.betaln(a, b)))


special_beta_pdf_grad = special(
    "_beta_pdf",
    _pull_beta_pdf,
    lambda g, out, x, a, b: g * (sc.xlogy(out, x) + out * (sc.psi(a + b) - sc.psi(a))),
    lambda g, out, x, a, b: g * (sc.xlog1py(out, -x) + out * (sc.psi(a + b) - sc.psi(b))),
)
special_beta_ppf_grad = special(
    "_beta_ppf",
    lambda g, out, p, a, b: g / beta_density(a, b, out),
    lambda g, out, p, a, b: -g * (betainc_slopes(a, b, out)[0] / beta_density(a, b, out)),
    lambda g, out, p, a, b: -g * (betainc_slopes(a, b, out)[1] / beta_density(a, b, out)),
)
special_cauchy_ppf_grad = special(
    "_cauchy_ppf",
    lambda g, out, p, loc, scale: g * (math.pi * (scale + (out - loc) ** 2 / scale)),
    lambda g, out, p, loc, scale: g,
    lambda g, out, p, loc, scale: g * ((out - loc) / scale),
)
special_cauchy_isf_grad = special(
    "_cauchy_isf",
    lambda g, out, p, loc, scale: -g * (math.pi * (scale + (out - loc) ** 2 / scale)),
    lambda g, out, p, loc, scale: g,
    lambda g, out, p, loc, scale: g * ((out - loc) / scale),
)
special_log1mexp_grad = special("_log1mexp", lambda g, out, x: -g * np.exp(x - out))


# The noncentral chi-square distribution is a mixture, with Poisson weights, of chi-square distributions with 2 more degrees of
# freedom each. Its derivative with respect to the noncentrality is half the difference between df + 2 and df degrees.
special_ncx2_pdf_grad = special(
    "_ncx2_pdf",
    lambda g, out, x, df, nc: g * (out * ((0.5 * df - 1) / x - 0.5) + 0.5 * nc / x * sc._ufuncs._ncx2_pdf(x, df + 2.0, nc)),
    "df",
    lambda g, out, x, df, nc: g * (0.5 * (sc._ufuncs._ncx2_pdf(x, df + 2.0, nc) - out)),
)
special_ncx2_sf_grad = special(
    "_ncx2_sf",
    lambda g, out, x, df, nc: -g * sc._ufuncs._ncx2_pdf(x, df, nc),
    "df",
    lambda g, out, x, df, nc: g * sc._ufuncs._ncx2_pdf(x, df + 2.0, nc),
)
special_ncx2_isf_grad = special(
    "_ncx2_isf",
    lambda g, out, p, df, nc: -g / sc._ufuncs._ncx2_pdf(out, df, nc),
    "df",
    lambda g, out, p, df, nc: g * (sc._ufuncs._ncx2_pdf(out, df + 2.0, nc) / sc._ufuncs._ncx2_pdf(out, df, nc)),
)

# The derivatives with respect to counts are unknown. The parameter n of the negative binomial distribution is real.
special_binom_pmf_grad = special("_binom_pmf", "k", "n", lambda g, out, k, n, p: g * (out * ((k - n * p) / (p * (1 - p)))))
special_binom_cdf_grad = special("_binom_cdf", "k", "n", lambda g, out, k, n, p: -g * beta_density(k + 1.0, n - k * 1.0, p))
special_binom_sf_grad = special("_binom_sf", "k", "n", lambda g, out, k, n, p: g * beta_density(k + 1.0, n - k * 1.0, p))
special_nbinom_pmf_grad = special(
    "_nbinom_pmf",
    "k",
    lambda g, out, k, n, p: g * (out * (sc.psi(n + k) - sc.psi(n) + np.log(p))),
    lambda g, out, k, n, p: g * (out * (n / p - k / (1 - p))),
)
special_nbinom_cdf_grad = special(
    "_nbinom_cdf",
    "k",
    lambda g, out, k, n, p: g * betainc_slopes(n, k + 1.0, p)[0],
    lambda g, out, k, n, p: g * beta_density(n, k + 1.0, p),
)
special_nbinom_sf_grad = special(
    "_nbinom_sf",
    "k",
    lambda g, out, k, n, p: -g * betainc_slopes(n, k + 1.0, p)[0],
    lambda g, out, k, n, p: -g * beta_density(n, k + 1.0, p),
)


# The noncentral t and F distributions, with respect to the argument and the noncentrality
def _nct_density_slope(t: NDArray[Any], df: NDArray[Any], nc: object) -> Any:
    """Return the derivative of the density with respect to `t`; see `_nct_moment`."""
    root = np.sqrt(df)
    return (nc / root * _nct_moment(df + 2.0, df, nc, t) - t / df * _nct_moment(df + 3.0, df, nc, t)) / root


def _ncf_parts(x: NDArray[Any], dfn: NDArray[Any], dfd: NDArray[Any], nc: Any) -> tuple[Any, Any, Any]:
    """Return ``w = dfn x / (dfd + dfn x)``, its derivative, and the density with hyp1f1 replaced by its derivative."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * x
    w, slope = dfn * x / total, dfn * dfd / total**2
    factor = np.exp(-0.5 * nc) * beta_density(a, b, w) * slope * ((a + b) / a)
    return w, slope, factor * sc.hyp1f1(a + b + 1, a + 1, 0.5 * nc * w)


def _pull_ncf(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], dfn: Any, dfd: Any, nc: Any) -> Any:
    w, slope, inner_slope = _ncf_parts(x, dfn, dfd, nc)
    log_slope = (0.5 * dfn - 1) / w - (0.5 * dfd - 1) / (1 - w)
    return g * (out * (log_slope * slope - 2 * dfn / (dfd + dfn * x)) + 0.5 * nc * slope * inner_slope)


def _pull_ncf_nc(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], dfn: NDArray[Any], dfd: NDArray[Any], nc: object) -> Any:
    w, _, inner_slope = _ncf_parts(x, dfn, dfd, nc)
    return g * (0.5 * (w * inner_slope - out))


special_nct_pdf_grad = special(
    "_nct_pdf",
    lambda g, out, x, df, nc: g * _nct_density_slope(x, df, nc),
    "df",
    lambda g, out, x, df, nc: g * (x / df * _nct_moment(df + 2.0, df, nc, x) - nc * out),
)
special_nct_sf_grad = special(
    "_nct_sf", lambda g, out, x, df, nc: -g * _nct_density(df, nc, x), "df", lambda g, out, x, df, nc: -g * _nct_slope(df, nc, x)
)
special_nct_isf_grad = special(
    "_nct_isf",
    lambda g, out, p, df, nc: -g / _nct_density(df, nc, out),
    "df",
    lambda g, out, p, df, nc: -g * (_nct_slope(df, nc, out) / _nct_density(df, nc, out)),
)
special_ncf_pdf_grad = special("_ncf_pdf", _pull_ncf, "dfn", "dfd", _pull_ncf_nc)
special_ncf_sf_grad = special(
    "_ncf_sf",
    lambda g, out, x, dfn, dfd, nc: -g * _ncf_density(dfn, dfd, nc, x),
    "dfn",
    "dfd",
    lambda g, out, x, dfn, dfd, nc: -g * _ncf_slope(dfn, dfd, nc, x),
)
special_ncf_isf_grad = special(
    "_ncf_isf",
    lambda g, out, p, dfn, dfd, nc: -g / _ncf_density(dfn, dfd, nc, out),
    "dfn",
    "dfd",
    lambda g, out, p, dfn, dfd, nc: -g * (_ncf_slope(dfn, dfd, nc, out) / _ncf_density(dfn, dfd, nc, out)),
)


# ---------------------------------------------------------------------------------- unknown
# Most of these functions solve for a parameter, so they need the derivative of the distribution function with respect to it,
# which is unknown. SciPy computes ncfdtrinc to six digits only, too few to check a derivative.
for _name, _arguments in {
    "bdtrik": "y n p",
    "bdtrin": "k y p",
    "btdtria": "p b x",
    "btdtrib": "a p x",
    "chdtriv": "p x",
    "chndtridf": "x p nc",
    "fdtridfd": "dfn p x",
    "gdtrib": "a p x",
    "nbdtrik": "y n p",
    "nbdtrin": "k y p",
    "ncfdtridfd": "dfn p nc f",
    "ncfdtridfn": "p dfd nc f",
    "ncfdtrinc": "dfn dfd p f",
    "nctdtridf": "p nc t",
    "pdtrik": "p m",
    "stdtridf": "p t",
}.items():
    special(_name, *_arguments.split())
