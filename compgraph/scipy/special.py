"""``scipy.special``: the recorded ufuncs, and replacements of functions that SciPy implements in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from ..graph import as_operand
from ..values import INERT, Value
from .policy import Policy


def _as_count(name: str, value: list[Any] | int, function: str) -> Any:
    """A count as an array or an inert node; raise a TypeError for a differentiable node."""
    if isinstance(value, Value) and type(value) not in INERT:
        raise TypeError(f"scipy.special.{function}: {name} is a count, so it has no derivative. Pass a plain number")
    return value if isinstance(value, Value) else np.asarray(value)


def polygamma(n: Any, x: Any) -> Any:
    """``(-1)**(n + 1) gamma(n + 1) zeta(n + 1, x)``, DLMF 25.11.12; psi for order 0."""
    n, x = _as_count("n", n, "polygamma"), as_operand(x)
    return np.where(n == 0, sc.psi(x), (-1.0) ** (n + 1) * sc.gamma(n + 1.0) * sc.zeta(n + 1, x))


def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function: a sum of `d` terms ``gammaln(a - (j - 1) / 2)``; DLMF 35.3.4."""
    a, d = as_operand(a), _as_count("d", d, "multigammaln")
    if d.ndim or np.floor(d) != d:
        raise ValueError("d should be a positive integer (dimension)")
    if np.any(a <= 0.5 * (d - 1)):
        raise ValueError(f"condition a ({a}) > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    constant = d * (d - 1) * 0.25 * math.log(math.pi)
    return constant + sum(sc.gammaln(a - (j - 1.0) / 2) for j in range(1, int(d) + 1))


def _reject_exact(exact: bool, function: str) -> None:
    if exact:
        raise TypeError(f"scipy.special.{function}: exact=True returns integers, which have no derivative. Omit it")


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:  # noqa: N803 - SciPy's name
    """A binomial coefficient; without `repetition`, 0 where ``k > N`` or one of them is negative, as in SciPy."""
    _reject_exact(exact, "comb")
    N, k = as_operand(N), as_operand(k)  # noqa: N806
    if repetition:
        trivial = (k == 0) & (N >= 0)
        return np.where(trivial, 1.0, sc.binom(np.where(trivial, 1.0, N + k - 1), k))
    possible = (k <= N) & (N >= 0) & (k >= 0)
    return np.where(possible, sc.binom(np.where(possible, N, 1.0), np.where(possible, k, 1.0)), 0.0)


def perm(N: Any, k: Any, exact: bool = False) -> Any:  # noqa: N803 - SciPy's name
    """A falling factorial, ``N! / (N - k)!``; 0 where ``k > N`` or one of them is negative, as in SciPy."""
    _reject_exact(exact, "perm")
    N, k = as_operand(N), as_operand(k)  # noqa: N806
    possible = (k <= N) & (N >= 0) & (k >= 0)
    N, k = np.where(possible, N, 1.0), np.where(possible, k, 1.0)  # noqa: N806
    return np.where(possible, sc.poch(N - k + 1, k), 0.0)


def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """``gamma(n + 1)``; with ``extend="zero"`` 0 for negative n."""
    _reject_exact(exact, "factorial")
    n = as_operand(n)
    if extend == "complex":
        return sc.gamma(n + 1.0)
    if extend != "zero":
        raise ValueError(f"argument `extend` must be either 'zero' or 'complex', received: {extend}")
    if n.dtype.kind == "c":
        raise ValueError("In order to use non-integer arguments, you must opt into this by passing extend='complex'.")
    return np.where(n >= 0, sc.gamma(np.where(n >= 0, n, 0) + 1.0), 0.0)


def diric(x: Any, n: Any) -> Any:
    """The Dirichlet kernel ``sin(n x / 2) / (n sin(x / 2))``; nan unless n is a positive integer.

    It is computed from the distance to the nearest multiple of 2 pi, as a ratio of two sinc functions, so that it is smooth
    at these multiples, where both sines are zero.
    """
    x, n = as_operand(x), _as_count("n", n, "diric")
    half = x / 2
    periods = np.round(half / math.pi)
    rest = half / math.pi - periods
    sign = 1 - 2 * np.mod(periods * (n - 1), 2)
    is_valid = (n > 0) & (n == np.floor(n))
    return np.where(is_valid, sign * np.sinc(np.where(is_valid, n, 1) * rest) / np.sinc(rest), np.nan)


def zeta(x: object, q: object = None, out: object = None) -> Any:
    """The zeta function of Riemann, or that of Hurwitz with `q`: two ufuncs of SciPy."""
    if out is not None:
        raise TypeError("scipy.special.zeta: out= is not supported on nodes. Assign the result: y[:] = zeta(x, q)")
    return sc._ufuncs._riemann_zeta(x) if q is None else sc._ufuncs._zeta(x, q)


_COUNT_ADVICE = "a plain count (the results are constants)"
_POLYNOMIAL_ADVICE = "plain parameters (x.value), or {}, whose parameters may be nodes"
_QUADRATURE_ADVICE = "plain parameters (x.value), because the points and weights of a quadrature have no rule"
_SEQUENCE_ADVICE = "{} for each order"

_ZEROS = """
    ai_zeros bei_zeros beip_zeros ber_zeros berp_zeros bi_zeros erf_zeros fresnel_zeros fresnelc_zeros fresnels_zeros jn_zeros
    jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros
    yn_zeros ynp_zeros bernoulli euler stirling2
"""
_POLYNOMIALS = """
    legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer sh_legendre sh_chebyt
    sh_chebyu sh_jacobi
"""
_ROOTS = """
    p_roots t_roots u_roots c_roots s_roots j_roots l_roots la_roots h_roots he_roots cg_roots ps_roots ts_roots us_roots js_roots
"""
_LOWERED = "erf erfc erfinv erfcinv ndtri exp2 expm1 log1p cbrt gamma gammaln psi log_expit logit entr ndtr log_ndtr"
_NUMPY_ADVICE = "NumPy functions for the polynomial"
_MULTI_UFUNCS = {
    "legendre_p": "eval_legendre",
    "legendre_p_all": "eval_legendre for each degree",
    "assoc_legendre_p": _NUMPY_ADVICE,
    "assoc_legendre_p_all": _NUMPY_ADVICE,
    "sph_legendre_p": _NUMPY_ADVICE,
    "sph_legendre_p_all": _NUMPY_ADVICE,
    "sph_harm_y": _NUMPY_ADVICE,
    "sph_harm_y_all": _NUMPY_ADVICE,
}  # objects of SciPy that select a ufunc

# Ufuncs, by family; private ones are called by other functions of SciPy.
_UFUNCS = """
    expit log_expit logit entr rel_entr kl_div xlogy xlog1py huber pseudo_huber exp2 exp10 expm1 log1p cosm1 cbrt sindg cosdg
    tandg cotdg radian exprel exp1 expi expn spence owens_t sici shichi fresnel modfresnelp modfresnelm boxcox boxcox1p
    inv_boxcox inv_boxcox1p powm1 wrightomega tklmbda _lambertw _log1mexp

    ellipk ellipkm1 ellipe ellipkinc ellipeinc ellipj elliprc elliprf elliprd elliprg elliprj agm

    gamma rgamma gammaln loggamma psi digamma _zeta _riemann_zeta poch beta betaln binom zetac gammainc gammaincc gammaincinv
    gammainccinv betainc betaincc betaincinv betainccinv erf erfc erfcx erfi wofz dawsn erfinv erfcinv ndtr log_ndtr ndtri
    ndtri_exp voigt_profile

    hyp0f1 hyp1f1 hyperu hyp2f1 eval_jacobi eval_sh_jacobi eval_legendre eval_sh_legendre eval_gegenbauer eval_chebyt eval_chebyu
    eval_chebyc eval_chebys eval_sh_chebyt eval_sh_chebyu eval_laguerre eval_genlaguerre eval_hermite eval_hermitenorm lpmv

    j0 j1 jn y0 y1 i0 i1 i0e i1e k0 k1 k0e k1e jv yv iv kv yn kn ive jve yve kve hankel1 hankel2 hankel1e hankel2e airy airye
    itairy ber bei ker kei berp beip kerp keip kelvin struve modstruve itj0y0 iti0k0 it2j0y0 it2i0k0 itstruve0 itmodstruve0
    it2struve0 besselpoly wright_bessel log_wright_bessel

    pbdv pbvv pbwa mathieu_a mathieu_b mathieu_cem mathieu_sem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2
    pro_ang1 pro_rad1 pro_rad2 obl_ang1 obl_rad1 obl_rad2 pro_ang1_cv pro_rad1_cv pro_rad2_cv obl_ang1_cv obl_rad1_cv obl_rad2_cv
    pro_cv obl_cv

    bdtr bdtrc bdtri bdtrik bdtrin nbdtr nbdtrc nbdtri nbdtrik nbdtrin pdtr pdtrc pdtri pdtrik btdtria btdtrib chdtr chdtrc chdtri
    chdtriv fdtr fdtrc fdtri fdtridfd stdtr stdtrit stdtridf gdtr gdtrc gdtria gdtrib gdtrix nrdtrimn nrdtrisd chndtr chndtrix
    chndtridf chndtrinc ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtrit nctdtridf nctdtrinc kolmogorov kolmogi
    smirnov smirnovi

    _beta_pdf _beta_ppf _cauchy_ppf _cauchy_isf _ncx2_pdf _ncx2_sf _ncx2_isf _binom_pmf _binom_cdf _binom_sf _nbinom_pmf
    _nbinom_cdf _nbinom_sf _nct_pdf _nct_sf _nct_isf _ncf_pdf _ncf_sf _ncf_isf
"""

# Ufuncs that SymPy has; see `ops.OpSpec`.
_FORMULAS = {
    "expit": "1 / (1 + exp(-x))",
    "log_expit": "-log(1 + exp(-x))",
    "logit": "log(x / (1 - x))",
    "exp10": "power(10, x)",
    "exp2": "power(2, x)",
    "expm1": "exp(x) - 1",
    "log1p": "log(1 + x)",
    "cbrt": "sign(x) * cbrt(Abs(x))",
    "erf": "erf(x)",
    "erfc": "erfc(x)",
    "erfi": "erfi(x)",
    "erfinv": "erfinv(x)",
    "erfcinv": "erfcinv(x)",
    "ndtr": "(1 + erf(x / sqrt(2))) / 2",
    "gamma": "gamma(x)",
    "rgamma": "1 / gamma(x)",
    "gammaln": "log(Abs(gamma(x)))",
    "psi": "digamma(x)",
    "digamma": "digamma(x)",
    "beta": "gamma(x) * gamma(y) / gamma(x + y)",
    "ellipk": "elliptic_k(x)",
    "ellipe": "elliptic_e(x)",
    "jv": "besselj(x, y)",
    "yv": "bessely(x, y)",
    "iv": "besseli(x, y)",
    "kv": "besselk(x, y)",
    **{f"{letter}{order}": f"bessel{letter}({order}, x)" for letter in "jyik" for order in (0, 1)},
}

POLICY = Policy(
    module="scipy.special",
    smooth_ufuncs=frozenset(_UFUNCS.split()),
    piecewise_ufuncs=frozenset({"gammasgn", "round"}),
    lowered={
        "expit": "sigmoid",
        "digamma": "psi",
        **{name: name for name in _LOWERED.split()},
    },
    formulas=_FORMULAS,
    smooth={
        "logsumexp": "a b",
        "softmax": "x",
        "log_softmax": "x",
        "spherical_jn": "z",
        "spherical_yn": "z",
        "spherical_in": "z",
        "spherical_kn": "z",
    },
    replacements={
        "polygamma": polygamma,
        "multigammaln": multigammaln,
        "comb": comb,
        "perm": perm,
        "factorial": factorial,
        "diric": diric,
        "zeta": zeta,
    },
    own_code=frozenset({"assoc_laguerre", "softplus", "sinc", "lambertw", "jvp", "yvp", "kvp", "ivp", "h1vp", "h2vp"}),
    plain=frozenset({"geterr", "seterr", "errstate", "SpecialFunctionWarning", "SpecialFunctionError"}),
    unsupported={
        **dict.fromkeys(_ZEROS.split(), _COUNT_ADVICE),
        **{name: _POLYNOMIAL_ADVICE.format(f"scipy.special.eval_{name}") for name in _POLYNOMIALS.split()},
        **{f"roots_{name}": _QUADRATURE_ADVICE for name in _POLYNOMIALS.split()},
        **dict.fromkeys(_ROOTS.split(), _QUADRATURE_ADVICE),
        **_MULTI_UFUNCS,
        **dict.fromkeys(("factorial2", "factorialk"), "products of powers of scipy.special.gamma"),
        "riccati_jn": _SEQUENCE_ADVICE.format("x * scipy.special.spherical_jn(k, x)"),
        "riccati_yn": _SEQUENCE_ADVICE.format("x * scipy.special.spherical_yn(k, x)"),
        "lmbda": _SEQUENCE_ADVICE.format("gamma(v + 1) * (2 / x)**v * jv(v, x)"),
        "lqmn": _SEQUENCE_ADVICE.format("the recurrence of Legendre functions of the second kind, written with NumPy functions"),
        "lqn": _SEQUENCE_ADVICE.format("the recurrence of Legendre functions of the second kind, written with NumPy functions"),
        "pbdv_seq": _SEQUENCE_ADVICE.format("scipy.special.pbdv"),
        "pbvv_seq": _SEQUENCE_ADVICE.format("scipy.special.pbvv"),
        "pbdn_seq": _SEQUENCE_ADVICE.format("scipy.special.pbdv"),
        "pro_cv_seq": "a plain number for c (characteristic values have no derivative)",
        "obl_cv_seq": "a plain number for c (characteristic values have no derivative)",
        "mathieu_even_coef": "a plain number for q (the coefficients have no derivative)",
        "mathieu_odd_coef": "a plain number for q (the coefficients have no derivative)",
        "ellip_harm": "cg.primitive with your own rule, or a plain argument",
        "ellip_harm_2": "cg.primitive with your own rule, or a plain argument",
        "ellip_normal": "cg.primitive with your own rule, or a plain argument",
    },
)
