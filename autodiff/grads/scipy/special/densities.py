"""Rules of ufuncs that SciPy keeps for its distributions: densities and quantiles with their parameters behind."""

from __future__ import annotations

import math

import numpy as np

from .entering import sc, special
from .gamma import beta_density
from .parameters import betainc_slopes

special_beta_pdf_grad = special(
    "_beta_pdf",
    lambda g, out, x, a, b: g * (out * ((a - 1) / x - (b - 1) / (1 - x))),
    lambda g, out, x, a, b: g * (out * (np.log(x) - sc.psi(a) + sc.psi(a + b))),
    lambda g, out, x, a, b: g * (out * (np.log1p(-x) - sc.psi(b) + sc.psi(a + b))),
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


# The noncentral chi square distribution is a mixture, by Poisson's weights, of chi square ones of 2 degrees of freedom more each,
# so that its derivative by the noncentrality is half the difference to that of 2 more.
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

# Of the counts no derivative is known; the real parameter of the negative binomial distribution has one.
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
