"""Rules of SciPy's private ufuncs for distributions: densities, distribution functions and quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from .distribution_functions import ncf_density, ncf_slope, nct_density, nct_slope, t_moment
from .gamma_functions import beta_density
from .parameter_derivatives import betainc_slopes
from .ufunc_rules import special


def _pull_beta(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
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
    _pull_beta,
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
# freedom each. Its derivative with respect to the noncentrality is half the difference to the one with 2 more.
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
def _t_slope(t: NDArray[Any], df: NDArray[Any], nc: object) -> Any:
    """Return the derivative of the density with respect to `t`; see `t_moment`."""
    root = np.sqrt(df)
    return (nc / root * t_moment(df + 2.0, df, nc, t) - t / df * t_moment(df + 3.0, df, nc, t)) / root


def _f_parts(x: NDArray[Any], dfn: NDArray[Any], dfd: NDArray[Any], nc: Any) -> tuple[Any, Any, Any]:
    """Return ``w = dfn x / (dfd + dfn x)``, its derivative, and the density with hyp1f1 replaced by its derivative."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * x
    w, slope = dfn * x / total, dfn * dfd / total**2
    factor = np.exp(-0.5 * nc) * beta_density(a, b, w) * slope * ((a + b) / a)
    return w, slope, factor * sc.hyp1f1(a + b + 1, a + 1, 0.5 * nc * w)


def _pull_f(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], dfn: Any, dfd: Any, nc: Any) -> Any:
    w, slope, inner_slope = _f_parts(x, dfn, dfd, nc)
    log_slope = (0.5 * dfn - 1) / w - (0.5 * dfd - 1) / (1 - w)
    return g * (out * (log_slope * slope - 2 * dfn / (dfd + dfn * x)) + 0.5 * nc * slope * inner_slope)


def _pull_f_nc(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], dfn: NDArray[Any], dfd: NDArray[Any], nc: object) -> Any:
    w, _, inner_slope = _f_parts(x, dfn, dfd, nc)
    return g * (0.5 * (w * inner_slope - out))


special_nct_pdf_grad = special(
    "_nct_pdf",
    lambda g, out, x, df, nc: g * _t_slope(x, df, nc),
    "df",
    lambda g, out, x, df, nc: g * (x / df * t_moment(df + 2.0, df, nc, x) - nc * out),
)
special_nct_sf_grad = special(
    "_nct_sf", lambda g, out, x, df, nc: -g * nct_density(df, nc, x), "df", lambda g, out, x, df, nc: -g * nct_slope(df, nc, x)
)
special_nct_isf_grad = special(
    "_nct_isf",
    lambda g, out, p, df, nc: -g / nct_density(df, nc, out),
    "df",
    lambda g, out, p, df, nc: -g * (nct_slope(df, nc, out) / nct_density(df, nc, out)),
)
special_ncf_pdf_grad = special("_ncf_pdf", _pull_f, "dfn", "dfd", _pull_f_nc)
special_ncf_sf_grad = special(
    "_ncf_sf",
    lambda g, out, x, dfn, dfd, nc: -g * ncf_density(dfn, dfd, nc, x),
    "dfn",
    "dfd",
    lambda g, out, x, dfn, dfd, nc: -g * ncf_slope(dfn, dfd, nc, x),
)
special_ncf_isf_grad = special(
    "_ncf_isf",
    lambda g, out, p, dfn, dfd, nc: -g / ncf_density(dfn, dfd, nc, out),
    "dfn",
    "dfd",
    lambda g, out, p, dfn, dfd, nc: -g * (ncf_slope(dfn, dfd, nc, out) / ncf_density(dfn, dfd, nc, out)),
)
