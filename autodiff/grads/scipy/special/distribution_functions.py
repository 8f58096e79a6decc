"""Rules of SciPy's distribution functions: the derivative is a density, of an inverse one over a density."""

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
from .gamma_functions import beta_density, gamma_density
from .parameter_derivatives import betainc_slopes, gammainc_slope
from .ufunc_rules import ROOT_2PI, special

Density = Formula  # of all arguments of the distribution function


def _distribution(name: str, parameters: str, density: Density, sign: int = 1) -> Rule:
    """A distribution function of its last argument, or (`sign` of -1) one minus it."""
    return special(name, *parameters.split(), lambda g, out, *arguments: sign * g * density(*arguments))


def _inverse(name: str, parameters: str, density: Density, sign: int = 1) -> Rule:
    """The inverse of one, which takes the probability in place of the last argument."""
    return special(
        name, *parameters.split(), lambda g, out, *arguments: sign * g / density(*arguments[:-1], out)
    )  # fmt: skip


# Binomial, negative binomial and Poisson, by the probability or the mean; counts are cut to whole numbers
def _binomial(k: Any, n: Any, p: Any) -> Any:
    return beta_density(np.floor(k) + 1, n - np.floor(k), p)


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return beta_density(n * 1.0, k + 1.0, p)


def _poisson(k: Any, mean: Any) -> Any:
    return gamma_density(np.floor(k) + 1, mean)


special_bdtr_grad = _distribution("bdtr", "k n", _binomial, -1)
special_bdtrc_grad = _distribution("bdtrc", "k n", _binomial)
special_bdtri_grad = _inverse("bdtri", "k n", _binomial, -1)
special_nbdtr_grad = _distribution("nbdtr", "k n", _negative_binomial)
special_nbdtrc_grad = _distribution("nbdtrc", "k n", _negative_binomial, -1)
special_nbdtri_grad = _inverse("nbdtri", "k n", _negative_binomial)
special_pdtr_grad = _distribution("pdtr", "k", _poisson, -1)
special_pdtrc_grad = _distribution("pdtrc", "k", _poisson)
special_pdtri_grad = _inverse("pdtri", "k", _poisson, -1)


# Chi square, F, gamma and Student's
def _chi_square(v: NDArray[Any], x: NDArray[Any]) -> Any:
    return 0.5 * gamma_density(0.5 * v, 0.5 * x)


def _f(dfn: Any, dfd: Any, x: NDArray[Any]) -> Any:
    total = dfd + dfn * x
    return beta_density(0.5 * dfn, 0.5 * dfd, dfn * x / total) * (dfn * dfd / total**2)


def _student(df: Any, t: NDArray[Any]) -> Any:
    return np.exp(-sc.betaln(0.5, 0.5 * df) - 0.5 * np.log(df) - 0.5 * (df + 1) * np.log1p(t * t / df))


def _chi_square_degrees(v: NDArray[Any], x: NDArray[Any]) -> Any:
    return 0.5 * gammainc_slope(0.5 * v, 0.5 * x)


def _f_degrees(place: int, dfn: Any, dfd: Any, x: NDArray[Any]) -> Any:
    """Differentiate the incomplete beta function of ``dfn x / (dfd + dfn x)``, by either of the degrees of freedom."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * x
    w = dfn * x / total
    inner = x * dfd if place == 0 else -dfn * x
    return 0.5 * betainc_slopes(a, b, w)[place] + beta_density(a, b, w) * (inner / total**2)


def _student_degrees(df: Any, t: NDArray[Any]) -> Any:
    """Of ``1 - betainc(df / 2, 1 / 2, df / (df + t**2)) / 2``, which is of positive `t`."""
    half = np.full((), 0.5)
    total = df + t * t
    w = df / total
    at = np.where(t == 0, 0.5, w)
    slope = 0.5 * betainc_slopes(0.5 * df, half, at)[0] + beta_density(0.5 * df, half, at) * (t * t / total**2)
    return np.where(t == 0, 0, -0.5 * np.sign(t) * slope)


def _by_all(name: str, densities: Sequence[Density], sign: int = 1) -> Rule:
    """A distribution function whose derivatives by its parameters are known too."""
    return special(name, *[lambda g, out, *at, d=d: sign * g * d(*at) for d in densities])


def _inverse_by_all(name: str, densities: Sequence[Density], sign: int = 1) -> Rule:
    """The inverse of one, by the theorem on implicit functions."""
    *parameters, density = densities
    by = [lambda g, out, *at, d=d: -g * (d(*at[:-1], out) / density(*at[:-1], out)) for d in parameters]
    return special(name, *by, lambda g, out, *at: sign * g / density(*at[:-1], out))


_CHI_SQUARE = (_chi_square_degrees, _chi_square)
_F = (partial(_f_degrees, 0), partial(_f_degrees, 1), _f)
_STUDENT = (_student_degrees, _student)
_GAMMA = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gammainc_slope(b, a * x),
    lambda a, b, x: a * gamma_density(b, a * x),
)

special_chdtr_grad = _by_all("chdtr", _CHI_SQUARE)
special_chdtrc_grad = _by_all("chdtrc", _CHI_SQUARE, -1)
special_chdtri_grad = _inverse_by_all("chdtri", _CHI_SQUARE, -1)
special_fdtr_grad = _by_all("fdtr", _F)
special_fdtrc_grad = _by_all("fdtrc", _F, -1)
special_fdtri_grad = _inverse_by_all("fdtri", _F)
special_stdtr_grad = _by_all("stdtr", _STUDENT)
special_stdtrit_grad = _inverse_by_all("stdtrit", _STUDENT)
special_gdtr_grad = _by_all("gdtr", _GAMMA)
special_gdtrc_grad = _by_all("gdtrc", _GAMMA, -1)
special_gdtrix_grad = _inverse_by_all("gdtrix", _GAMMA)
special_gdtria_grad = special(
    "gdtria",
    lambda g, out, p, b, x: g / (x * gamma_density(b, out * x)),
    lambda g, out, p, b, x: -g * (gammainc_slope(b, out * x) / (x * gamma_density(b, out * x))),
    lambda g, out, p, b, x: -g * (out / x),
)


# Normal: x = mean + deviation * ndtri(p)
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


# Noncentral: by the argument, and by the noncentrality
def _chi_noncentral(x: NDArray[Any], df: Any, nc: Any) -> Any:
    """The density."""
    power = sc.xlogy(0.5 * df - 1, 0.5 * x) - 0.5 * (x + nc) - sc.gammaln(0.5 * df)
    return 0.5 * np.exp(power) * sc.hyp0f1(0.5 * df, 0.25 * nc * x)


def _chi_shift(x: NDArray[Any], df: Operand, nc: object) -> Any:
    return -_chi_noncentral(x, df + 2.0, nc)


def f_noncentral(dfn: Any, dfd: Any, nc: Any, f: Any) -> Any:
    """The density of the noncentral F distribution."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * f
    w = dfn * f / total
    return np.exp(-0.5 * nc) * beta_density(a, b, w) * sc.hyp1f1(a + b, a, 0.5 * nc * w) * (dfn * dfd / total**2)


def f_shift(dfn: Any, dfd: Any, nc: Any, f: Any) -> Any:
    """The derivative of its distribution function by the noncentrality."""
    a, b, total = 0.5 * dfn, 0.5 * dfd, dfd + dfn * f
    w = dfn * f / total
    weight = np.exp(a * np.log(w) + b * np.log(dfd / total) - sc.betaln(a, b) - 0.5 * nc)
    return -0.5 * (weight / a * sc.hyp1f1(a + b, a + 1, 0.5 * nc * w))


def t_moment(order: Any, df: Any, nc: Any, t: NDArray[Any]) -> Any:
    """The mean of ``s**(order - df) normal_density(t s / sqrt(df) - nc)``, of `s` distributed by chi with `df`."""
    a, b = 1 + t * t / df, nc * t / np.sqrt(df)
    z = b * b / (2 * a)
    even = sc.hyp1f1(0.5 * order, 0.5, z) * np.exp(sc.gammaln(0.5 * order) - sc.gammaln(0.5 * df))
    odd = sc.hyp1f1(0.5 * order + 0.5, 1.5, z) * np.exp(sc.gammaln(0.5 * order + 0.5) - sc.gammaln(0.5 * df))
    scale = np.exp(-0.5 * nc * nc) / ROOT_2PI * 2 ** (0.5 * (order - df)) * a ** (-0.5 * order)
    return scale * (even + b * np.sqrt(2 / a) * odd)


def t_noncentral(df: Operand, nc: object, t: NDArray[Any]) -> Any:
    """The density of the noncentral t distribution."""
    return t_moment(df + 1.0, df, nc, t) / np.sqrt(df)


def t_shift(df: Operand, nc: object, t: NDArray[Any]) -> Any:
    """The derivative of its distribution function by the noncentrality."""
    return -t_moment(df, df, nc, t)


special_chndtr_grad = special(
    "chndtr",
    lambda g, out, x, df, nc: g * _chi_noncentral(x, df, nc),
    "df",
    lambda g, out, x, df, nc: g * _chi_shift(x, df, nc),
)
special_chndtrix_grad = special(
    "chndtrix",
    lambda g, out, p, df, nc: g / _chi_noncentral(out, df, nc),
    "df",
    lambda g, out, p, df, nc: -g * (_chi_shift(out, df, nc) / _chi_noncentral(out, df, nc)),
)
special_chndtrinc_grad = special(
    "chndtrinc",
    lambda g, out, x, df, p: -g * (_chi_noncentral(x, df, out) / _chi_shift(x, df, out)),
    "df",
    lambda g, out, x, df, p: g / _chi_shift(x, df, out),
)
special_ncfdtr_grad = special(
    "ncfdtr",
    "dfn",
    "dfd",
    lambda g, out, dfn, dfd, nc, f: g * f_shift(dfn, dfd, nc, f),
    lambda g, out, dfn, dfd, nc, f: g * f_noncentral(dfn, dfd, nc, f),
)
special_ncfdtri_grad = special(
    "ncfdtri",
    "dfn",
    "dfd",
    lambda g, out, dfn, dfd, nc, p: -g * (f_shift(dfn, dfd, nc, out) / f_noncentral(dfn, dfd, nc, out)),
    lambda g, out, dfn, dfd, nc, p: g / f_noncentral(dfn, dfd, nc, out),
)
special_nctdtr_grad = special(
    "nctdtr",
    "df",
    lambda g, out, df, nc, t: g * t_shift(df, nc, t),
    lambda g, out, df, nc, t: g * t_noncentral(df, nc, t),
)
special_nctdtrit_grad = special(
    "nctdtrit",
    "df",
    lambda g, out, df, nc, p: -g * (t_shift(df, nc, out) / t_noncentral(df, nc, out)),
    lambda g, out, df, nc, p: g / t_noncentral(df, nc, out),
)
special_nctdtrinc_grad = special(
    "nctdtrinc",
    "df",
    lambda g, out, df, p, t: g / t_shift(df, out, t),
    lambda g, out, df, p, t: -g * (t_noncentral(df, out, t) / t_shift(df, out, t)),
)


# Kolmogorov's and Smirnov's
def _kolmogorov_slope(x: NDArray[Any]) -> Any:
    """One series for large arguments, its transform by theta functions for small ones."""
    small = x < 1
    large, little = np.where(small, 1, x), np.where(small, np.maximum(x, 0.01), 1)
    far = sum((-1) ** k * k * k * np.exp(-2 * k * k * large * large) for k in range(1, 6)) * (8 * large)
    steps = [(2 * k - 1) ** 2 * math.pi**2 / 8 for k in range(1, 5)]
    near = sum((2 * step / little**2 - 1) * np.exp(-step / (little * little)) for step in steps)
    return np.where(x <= 0, 0, np.where(small, -ROOT_2PI * near / (little * little), far))


def _smirnov_slope(n: Operand, x: NDArray[Any]) -> Any:
    """The sum of the derivatives of ``comb(n, j) x (1 - x - j / n)**(n - j) (x + j / n)**(j - 1)``."""
    j = np.arange(int(np.max(n, initial=0)) + 1)
    n = (0 * x + np.floor(n))[..., None]
    above, below = 1 - x[..., None] - j / n, x[..., None] + j / n
    inside = above > 0
    above = np.where(inside, above, 1)
    ways = sc.gammaln(n + 1) - sc.gammaln(j + 1) - sc.gammaln(np.maximum(n - j, 0) + 1)
    size = np.exp(ways + (n - j - 1) * np.log(above) + (j - 2) * np.log(below))
    slope = above * below + x[..., None] * ((j - 1) * above - (n - j) * below)
    return np.sum(np.where(inside, size * slope, 0), axis=-1)


special_kolmogorov_grad = special("kolmogorov", lambda g, out, x: g * _kolmogorov_slope(x))
special_kolmogi_grad = special("kolmogi", lambda g, out, p: g / _kolmogorov_slope(out))
special_smirnov_grad = special("smirnov", "n", lambda g, out, n, x: g * _smirnov_slope(n, x))
special_smirnovi_grad = special("smirnovi", "n", lambda g, out, n, p: g / _smirnov_slope(n, out))

# What solves for a parameter by which the derivative is not known has no known derivative at all. (SciPy solves for
# that of ncfdtrinc to six digits only, too few to check a derivative of it.)
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
