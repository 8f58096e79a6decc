"""Rules of special functions, NumPy's and SciPy's.

SciPy's ufuncs are recorded from here on if SciPy is installed, under their own names with the prefix ``special_``.
What is in none of the lines below is refused; a derivative without closed form raises a TypeError.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from compgraph import operations

from ..registry import Formula, Rule, elementwise, general

sc: Any
try:
    sc = importlib.import_module("scipy.special")
except ImportError:  # SciPy is optional
    sc = None

LN2 = math.log(2.0)
LN10 = math.log(10.0)
DEGREE = math.pi / 180
ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2 * math.pi)


def _series(x: Any, coefficients: list[float]) -> Any:
    """The sum of ``coefficients[k] * x**k``, by Horner's scheme."""
    total = 0 * x + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _near(x: Any, radius: float, coefficients: list[float], far: Formula) -> Any:
    """A power series in `x` near 0, where the closed form `far` of a smooth function divides 0 by 0."""
    near = np.abs(x) < radius
    return np.where(near, _series(np.where(near, x, 0), coefficients), far(np.where(near, 0.5, x)))


# ---------------------------------------------------------------------------------------------- NumPy's

# The derivative of sin(t) / t, as t times a series in t squared
_SINC = [(-1) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(12)]


def _sinc(g: Any, out: Any, x: Any) -> Any:
    t = math.pi * x
    near = np.abs(t) < 1
    small, large = np.where(near, t, 0), np.where(near, 1, t)
    closed = (np.cos(large) - np.sin(large) / large) / large
    return g * (math.pi * np.where(near, small * _series(small * small, _SINC), closed))


def _i0(g: Any, out: Any, x: Any) -> Any:
    """The mean of ``cos(angle) exp(x cos(angle))`` over half a turn, exact to rounding with enough angles."""
    size = min(float(np.max(np.abs(x), initial=0, where=np.isfinite(x))), 1000)
    count = 16 + math.ceil(4.5 * math.sqrt(size))
    cosines = np.cos((np.arange(count) + 0.5) * (math.pi / count)).astype(x.dtype)
    return g * np.mean(cosines * np.exp(x[..., None] * cosines), axis=-1)


def _angle(g: Any, out: Any, z: Any, deg: Any = False) -> Any:
    """Im(dz / z), in degrees if wanted; a real number keeps its angle."""
    if z.dtype.kind != "c":
        return np.zeros_like(z) * g
    return g * ((-1j / DEGREE if deg else -1j) / z)


copysign_grad = elementwise("copysign", lambda g, out, x, y: g * (np.sign(x) * np.copysign(1, y)), None)
ldexp_grad = elementwise("ldexp", lambda g, out, x, exponent: np.ldexp(g, exponent), None)
frexp_grad = general(
    "frexp", lambda g, out, x: np.ldexp(g[0], -out[1]) if g[0] is not None else np.zeros_like(x)
).tangent(lambda t, out, x: (np.ldexp(t, -out[1]), None))  # fmt: skip
modf_grad = general("modf", lambda g, out, x: g[0] if g[0] is not None else np.zeros_like(x)).tangent(
    lambda t, out, x: (t, np.zeros_like(t))
)
sinc_grad = elementwise("sinc", _sinc)
i0_grad = elementwise("i0", _i0)
angle_grad = elementwise("angle", _angle)

# ---------------------------------------------------------------------------------------------- SciPy's


def special(name: str, *formulas: Formula | None) -> Rule:
    """Let a ufunc of ``scipy.special`` be recorded, and declare its rule."""
    opname = f"special_{name.strip('_')}"
    _record(name, opname)
    return elementwise(opname, *formulas)


def _record(name: str, opname: str) -> None:
    ufunc = getattr(getattr(sc, "_ufuncs", None) if name.startswith("_") else sc, name, None)
    if ufunc is not None and ufunc not in operations.OPNAMES:
        operations.enter(ufunc, opname)


def _unknown(name: str, argument: str) -> Formula:
    def formula(*_: Any, **__: Any) -> Any:
        raise TypeError(
            f"scipy.special.{name}: the derivative with respect to its argument {argument} has no closed form; "
            "give a plain value for it"
        )

    return formula


def _psi(g: Any, out: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("scipy.special.psi: SciPy has no trigamma function of complex numbers, which is its derivative")
    return g * sc.zeta(2, x)


# Gamma functions
special_gamma_grad = special("gamma", lambda g, out, x: g * (out * sc.psi(x)))
special_rgamma_grad = special("rgamma", lambda g, out, x: -g * (out * sc.psi(x)))
special_gammaln_grad = special("gammaln", lambda g, out, x: g * sc.psi(x))
special_loggamma_grad = special("loggamma", lambda g, out, x: g * sc.psi(x))
special_psi_grad = special("psi", _psi)
special_zeta_grad = special("_zeta", _unknown("zeta", "x"), lambda g, out, s, q: -g * (s * sc.zeta(s + 1, q)))
special_poch_grad = special(
    "poch",
    lambda g, out, z, m: g * (out * (sc.psi(z + m) - sc.psi(z))),
    lambda g, out, z, m: g * (out * sc.psi(z + m)),
)
special_beta_grad = special(
    "beta",
    lambda g, out, a, b: g * (out * (sc.psi(a) - sc.psi(a + b))),
    lambda g, out, a, b: g * (out * (sc.psi(b) - sc.psi(a + b))),
)
special_betaln_grad = special(
    "betaln",
    lambda g, out, a, b: g * (sc.psi(a) - sc.psi(a + b)),
    lambda g, out, a, b: g * (sc.psi(b) - sc.psi(a + b)),
)
special_binom_grad = special(
    "binom",
    lambda g, out, n, k: g * (out * (sc.psi(n + 1) - sc.psi(n - k + 1))),
    lambda g, out, n, k: g * (out * (sc.psi(n - k + 1) - sc.psi(k + 1))),
)


def _gamma_density(a: Any, x: Any) -> Any:
    return np.exp(sc.xlogy(a - 1, x) - x - sc.gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - sc.betaln(a, b))


special_gammainc_grad = special("gammainc", _unknown("gammainc", "a"), lambda g, out, a, x: g * _gamma_density(a, x))
special_gammaincc_grad = special("gammaincc", _unknown("gammaincc", "a"), lambda g, out, a, x: -g * _gamma_density(a, x))
special_gammaincinv_grad = special("gammaincinv", _unknown("gammaincinv", "a"), lambda g, out, a, y: g / _gamma_density(a, out))
special_gammainccinv_grad = special(
    "gammainccinv", _unknown("gammainccinv", "a"), lambda g, out, a, y: -g / _gamma_density(a, out)
)
special_betainc_grad = special(
    "betainc", _unknown("betainc", "a"), _unknown("betainc", "b"), lambda g, out, a, b, x: g * _beta_density(a, b, x)
)
special_betaincc_grad = special(
    "betaincc", _unknown("betaincc", "a"), _unknown("betaincc", "b"), lambda g, out, a, b, x: -g * _beta_density(a, b, x)
)
special_betaincinv_grad = special(
    "betaincinv", _unknown("betaincinv", "a"), _unknown("betaincinv", "b"),
    lambda g, out, a, b, y: g / _beta_density(a, b, out),
)  # fmt: skip

# Error functions
special_erf_grad = special("erf", lambda g, out, x: g * (np.exp(-x * x) * (2 / ROOT_PI)))
special_erfc_grad = special("erfc", lambda g, out, x: -g * (np.exp(-x * x) * (2 / ROOT_PI)))
special_erfcx_grad = special("erfcx", lambda g, out, x: g * (2 * x * out - 2 / ROOT_PI))
special_erfi_grad = special("erfi", lambda g, out, x: g * (np.exp(x * x) * (2 / ROOT_PI)))
special_wofz_grad = special("wofz", lambda g, out, z: g * (2j / ROOT_PI - 2 * z * out))
special_dawsn_grad = special("dawsn", lambda g, out, x: g * (1 - 2 * x * out))
special_erfinv_grad = special("erfinv", lambda g, out, x: g * (np.exp(out * out) * (ROOT_PI / 2)))
special_erfcinv_grad = special("erfcinv", lambda g, out, x: -g * (np.exp(out * out) * (ROOT_PI / 2)))
special_ndtr_grad = special("ndtr", lambda g, out, x: g * (np.exp(-0.5 * x * x) / ROOT_2PI))
special_log_ndtr_grad = special("log_ndtr", lambda g, out, x: g * (np.exp(-0.5 * x * x - out) / ROOT_2PI))
special_ndtri_grad = special("ndtri", lambda g, out, x: g * (np.exp(0.5 * out * out) * ROOT_2PI))
special_ndtri_exp_grad = special("ndtri_exp", lambda g, out, x: g * (np.exp(0.5 * out * out + x) * ROOT_2PI))

# Logistic functions, entropies, losses
special_expit_grad = special("expit", lambda g, out, x: g * (out * sc.expit(-x)))
special_log_expit_grad = special("log_expit", lambda g, out, x: g * sc.expit(-x))
special_logit_grad = special("logit", lambda g, out, x: g / (x * (1 - x)))
special_entr_grad = special("entr", lambda g, out, x: -g * (np.log(x) + 1))
special_rel_entr_grad = special(
    "rel_entr", lambda g, out, x, y: g * (np.log(x / y) + 1), lambda g, out, x, y: -g * (x / y)
)  # fmt: skip
special_kl_div_grad = special("kl_div", lambda g, out, x, y: g * np.log(x / y), lambda g, out, x, y: g * (1 - x / y))
special_xlogy_grad = special(
    "xlogy", lambda g, out, x, y: g * np.log(y), lambda g, out, x, y: g * (x / np.where((x == 0) & (y == 0), 1, y))
)
special_xlog1py_grad = special(
    "xlog1py",
    lambda g, out, x, y: g * np.log1p(y),
    lambda g, out, x, y: g * (x / np.where((x == 0) & (y == -1), 1, 1 + y)),
)
special_huber_grad = special(
    "huber",
    lambda g, out, delta, r: g * np.maximum(np.abs(r) - delta, 0),
    lambda g, out, delta, r: g * np.clip(r, -delta, delta),
)


def _slant(delta: Any, r: Any) -> Any:
    return np.sqrt(1 + (r / delta) ** 2)


special_pseudo_huber_grad = special(
    "pseudo_huber",
    lambda g, out, delta, r: g * (2 * out / delta - r * r / (delta * _slant(delta, r))),
    lambda g, out, delta, r: g * (r / _slant(delta, r)),
)

# Elementary functions
special_exp2_grad = special("exp2", lambda g, out, x: g * (out * LN2))
special_exp10_grad = special("exp10", lambda g, out, x: g * (out * LN10))
special_expm1_grad = special("expm1", lambda g, out, x: g * (out + 1))
special_log1p_grad = special("log1p", lambda g, out, x: g / (1 + x))
special_cosm1_grad = special("cosm1", lambda g, out, x: -g * np.sin(x))
special_cbrt_grad = special("cbrt", lambda g, out, x: g / (3 * out * out))
special_sindg_grad = special("sindg", lambda g, out, x: g * (sc.cosdg(x) * DEGREE))
special_cosdg_grad = special("cosdg", lambda g, out, x: -g * (sc.sindg(x) * DEGREE))
special_tandg_grad = special("tandg", lambda g, out, x: g * ((1 + out * out) * DEGREE))
special_lambertw_grad = special(
    "_lambertw", lambda g, out, z, k, tol: g / (np.exp(out) * (1 + out)), None, None
)  # fmt: skip

special_exprel_grad = special(
    "exprel",
    lambda g, out, x: (
        g * _near(x, 1, [(k + 1) / math.factorial(k + 2) for k in range(19)], lambda far: (np.exp(far) - sc.exprel(far)) / far)
    ),
)

# Bessel functions
special_j0_grad = special("j0", lambda g, out, x: -g * sc.j1(x))
special_j1_grad = special("j1", lambda g, out, x: g * (0.5 * (sc.j0(x) - sc.jv(2, x))))
special_y0_grad = special("y0", lambda g, out, x: -g * sc.y1(x))
special_y1_grad = special("y1", lambda g, out, x: g * (0.5 * (sc.y0(x) - sc.yv(2, x))))
special_i0_grad = special("i0", lambda g, out, x: g * sc.i1(x))
special_i1_grad = special("i1", lambda g, out, x: g * (0.5 * (sc.i0(x) + sc.iv(2, x))))
special_i0e_grad = special("i0e", lambda g, out, x: g * (sc.i1e(x) - np.sign(x) * out))
special_i1e_grad = special("i1e", lambda g, out, x: g * (0.5 * (sc.i0e(x) + sc.ive(2, x)) - np.sign(x) * out))
special_k0_grad = special("k0", lambda g, out, x: -g * sc.k1(x))
special_k1_grad = special("k1", lambda g, out, x: -g * (0.5 * (sc.k0(x) + sc.kv(2, x))))
special_k0e_grad = special("k0e", lambda g, out, x: g * (out - sc.k1e(x)))
special_k1e_grad = special("k1e", lambda g, out, x: g * (out - 0.5 * (sc.k0e(x) + sc.kve(2, x))))


def _ive(g: Any, out: Any, v: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("scipy.special.ive: of complex numbers it is not analytic; use iv")
    return g * (0.5 * (sc.ive(v - 1, x) + sc.ive(v + 1, x)) - np.sign(x) * out)


def _bessel(name: str, minus: int, plus: int, own: complex = 0, neighbour: str = "") -> Rule:
    """``minus`` and ``plus`` halves of the functions of the orders below and above, and `own` times itself."""
    neighbour = neighbour or name

    def formula(g: Any, out: Any, v: Any, x: Any) -> Any:
        function = getattr(sc, neighbour)
        slope = 0.5 * (minus * function(v - 1, x) + plus * function(v + 1, x))
        return g * (slope + own * out if own else slope)

    return special(name, _unknown(name, "v"), formula)


special_jv_grad = _bessel("jv", 1, -1)
special_yv_grad = _bessel("yv", 1, -1)
special_iv_grad = _bessel("iv", 1, 1)
special_kv_grad = _bessel("kv", -1, -1)
special_yn_grad = _bessel("yn", 1, -1, neighbour="yv")
special_kn_grad = _bessel("kn", -1, -1, neighbour="kv")
special_ive_grad = special("ive", _unknown("ive", "v"), _ive)
special_kve_grad = _bessel("kve", -1, -1, 1)
special_hankel1_grad = _bessel("hankel1", 1, -1)
special_hankel2_grad = _bessel("hankel2", 1, -1)
special_hankel1e_grad = _bessel("hankel1e", 1, -1, -1j)
special_hankel2e_grad = _bessel("hankel2e", 1, -1, 1j)

# Elliptic integrals, with power series of the complete ones in their parameter
_BINOMIALS = [(math.comb(2 * n, n) / 4**n) ** 2 * math.pi / 2 for n in range(20)]
_K_SLOPE = [n * _BINOMIALS[n] for n in range(1, 20)]
_E_SLOPE = [n * _BINOMIALS[n] / (1 - 2 * n) for n in range(1, 20)]


def _k_slope(m: Any) -> Any:
    return _near(m, 0.1, _K_SLOPE, lambda far: (sc.ellipe(far) / (1 - far) - sc.ellipk(far)) / (2 * far))


def _slope_of_sine(phi: Any, m: Any) -> Any:
    return np.sqrt(1 - m * np.sin(phi) ** 2)


special_ellipk_grad = special("ellipk", lambda g, out, m: g * _k_slope(m))
special_ellipkm1_grad = special("ellipkm1", lambda g, out, p: -g * _k_slope(1 - p))
special_ellipe_grad = special(
    "ellipe", lambda g, out, m: g * _near(m, 0.1, _E_SLOPE, lambda far: (sc.ellipe(far) - sc.ellipk(far)) / (2 * far))
)
special_ellipkinc_grad = special(
    "ellipkinc",
    lambda g, out, phi, m: g / _slope_of_sine(phi, m),
    lambda g, out, phi, m: (
        g * ((sc.ellipeinc(phi, m) / m - np.sin(2 * phi) / (2 * _slope_of_sine(phi, m))) / (2 * (1 - m)) - out / (2 * m))
    ),
)
special_ellipeinc_grad = special(
    "ellipeinc",
    lambda g, out, phi, m: g * _slope_of_sine(phi, m),
    lambda g, out, phi, m: g * ((out - sc.ellipkinc(phi, m)) / (2 * m)),
)

# Exponential and other integrals
special_exp1_grad = special("exp1", lambda g, out, x: -g * (np.exp(-x) / x))
special_expi_grad = special("expi", lambda g, out, x: g * (np.exp(x) / x))
special_expn_grad = special("expn", _unknown("expn", "n"), lambda g, out, n, x: -g * ((np.exp(-x) - (n - 1) * out) / x))
special_spence_grad = special(
    "spence", lambda g, out, z: -g * _near(1 - z, 0.1, [1 / k for k in range(1, 19)], lambda far: -np.log(1 - far) / far)
)
special_owens_t_grad = special(
    "owens_t",
    lambda g, out, h, a: -g * (np.exp(-0.5 * h * h) * sc.erf(a * h / math.sqrt(2)) / (2 * ROOT_2PI)),
    lambda g, out, h, a: g * (np.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))),
)

# Hypergeometric functions
special_hyp0f1_grad = special("hyp0f1", _unknown("hyp0f1", "v"), lambda g, out, v, z: g * (sc.hyp0f1(v + 1, z) / v))
special_hyp1f1_grad = special(
    "hyp1f1",
    _unknown("hyp1f1", "a"),
    _unknown("hyp1f1", "b"),
    lambda g, out, a, b, x: g * (sc.hyp1f1(a + 1, b + 1, x) * (a / b)),
)
special_hyperu_grad = special(
    "hyperu",
    _unknown("hyperu", "a"),
    _unknown("hyperu", "b"),
    lambda g, out, a, b, x: -g * (sc.hyperu(a + 1, b + 1, x) * a),
)
special_hyp2f1_grad = special(
    "hyp2f1",
    _unknown("hyp2f1", "a"),
    _unknown("hyp2f1", "b"),
    _unknown("hyp2f1", "c"),
    lambda g, out, a, b, c, z: g * (sc.hyp2f1(a + 1, b + 1, c + 1, z) * (a * b / c)),
)

# Several results


def several(name: str, *slopes: Formula) -> Rule:
    """The same for a ufunc of one argument and several results, by ``(out, x) -> derivative`` of each."""
    opname = f"special_{name}"
    _record(name, opname)

    def formula(g: Any, out: Any, x: Any) -> Any:
        return sum(adjoint * slope(out, x) for adjoint, slope in zip(g, slopes, strict=True) if adjoint is not None)

    return general(opname, formula).tangent(lambda t, out, x: tuple([t * slope(out, x) for slope in slopes]))


def _sinh_over(x: Any) -> Any:
    """``sinh(x) / x``, an even function."""
    inverse = [1 / math.factorial(2 * k + 1) for k in range(12)]
    return _near(x * x, 1, inverse, lambda square: np.sinh(np.sqrt(square)) / np.sqrt(square))


special_sici_grad = several("sici", lambda out, x: np.sinc(x / math.pi), lambda out, x: np.cos(x) / x)
special_shichi_grad = several("shichi", lambda out, x: _sinh_over(x), lambda out, x: np.cosh(x) / x)
special_fresnel_grad = several(
    "fresnel", lambda out, x: np.sin(math.pi / 2 * x * x), lambda out, x: np.cos(math.pi / 2 * x * x)
)  # fmt: skip
special_airy_grad = several(
    "airy", lambda out, x: out[1], lambda out, x: x * out[0], lambda out, x: out[3], lambda out, x: x * out[2]
)
