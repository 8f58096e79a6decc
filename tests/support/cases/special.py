"""Cases of SciPy's special functions."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from tests.support.arguments import (
    Function,
    Sketch,
    above,
    complexes,
    inside,
    negative,
    off_zero,
    positive,
    real,
    small_complexes,
)

special: Any = importlib.import_module("scipy.special")


def few(function: Function, make: Any = off_zero) -> list[Sketch]:
    """A function of one argument on a few shapes."""
    return [("vector", function, make(4)), ("number", function, make())]


def at(function: Function, *orders: float) -> Function:
    """A function of its last argument, with the others given in the precision of that one."""
    return lambda x: function(*[np.asarray(order, x.dtype) for order in orders], x)


def first(function: Function, make: Any = off_zero) -> list[Sketch]:
    """The results of a function of several, alone and together."""
    count = len(function(1.0))
    return [
        *((f"result {k}", lambda x, k=k: function(x)[k], make(2, 2)) for k in range(count)),
        ("all results", lambda x: sum(part * part for part in function(x)), make(3)),
        ("zero size", lambda x: function(x)[0], make(0, 2)),
    ]


# fmt: off
ON_THE_LINE = (
    "erf", "erfc", "erfcx", "erfi", "dawsn", "ndtr", "log_ndtr", "expit", "log_expit", "exp2", "exp10", "expm1", "cosm1",
    "cbrt", "sindg", "cosdg", "tandg", "j0", "j1", "i0", "i1", "i0e", "i1e", "expi",
)
ON_POSITIVES = (
    "gamma", "rgamma", "gammaln", "loggamma", "entr", "log1p", "y0", "y1", "k0", "k1", "k0e", "k1e", "exp1",
)
# fmt: on
TWO_POSITIVES = ("beta", "betaln", "poch", "rel_entr", "kl_div", "xlogy", "xlog1py", "pseudo_huber")
WITH_ORDER = ("jv", "yv", "iv", "kv", "ive", "kve", "hankel1", "hankel2", "hankel1e", "hankel2e")
IN_THE_PLANE = ("erf", "erfc", "erfcx", "erfi", "wofz", "dawsn", "expm1", "log1p", "exp1", "expi", "spence")
unit = partial(real, low=0.1, high=0.9)
upper = partial(real, low=1.0, high=4.0)

SPECIAL: dict[str, list[Sketch]] = {
    **{f"special_{f}": few(getattr(special, f))[:1] for f in ON_THE_LINE},
    **{f"special_{f}": few(getattr(special, f), positive)[:1] for f in ON_POSITIVES},
    **{
        f"special_{f}": [
            ("broadcast", getattr(special, f), positive(3), upper(2, 1)),
        ]
        for f in TWO_POSITIVES
    },
    **{
        f"special_{f}": [
            *few(partial(getattr(special, f), 1.5), positive),
            ("order 0, real part", lambda x, f=f: np.real(getattr(special, f)(0, x)), upper(3)),
            ("orders", lambda x, f=f: getattr(special, f)(np.array([[0.0], [1.5]]), x), positive(3)),
        ]
        for f in WITH_ORDER
    },
    **{f"special_{f}": few(at(getattr(special, f), 2), positive) for f in ("yn", "kn")},
    "special_zetac": few(special.zetac, above),
    "special_riemann_zeta": few(lambda s: special.zeta(s), above),
    "special_expn": [*few(at(special.expn, 3), positive), ("order 0", partial(special.expn, 0), positive(3))],
    "special_psi": few(special.digamma, positive),
    "special_zeta": [("vector", partial(special.zeta, 3.0), positive(3))],
    "special_wofz": [
        ("of a real number", lambda x: np.real(special.wofz(x * np.complex64(1))), off_zero(3)),
        ("itself", special.wofz, off_zero(3)),
    ],
    "special_binom": [("vector", special.binom, upper(3) + 1, unit(3))],
    "special_gammainc": few(at(special.gammainc, 1.5), positive),
    "special_gammaincc": few(at(special.gammaincc, 2.5), positive),
    "special_gammaincinv": few(at(special.gammaincinv, 1.5), unit),
    "special_gammainccinv": few(at(special.gammainccinv, 1.5), unit),
    "special_betainc": few(partial(special.betainc, 1.5, 2.5), unit),
    "special_betaincc": few(partial(special.betaincc, 1.5, 2.5), unit),
    "special_betaincinv": few(partial(special.betaincinv, 1.5, 2.5), unit),
    "special_erfinv": few(special.erfinv, inside),
    "special_erfcinv": few(special.erfcinv, unit),
    "special_ndtri": few(special.ndtri, unit),
    "special_ndtri_exp": few(special.ndtri_exp, negative),
    "special_logit": few(special.logit, unit),
    "special_huber": [
        ("vector", special.huber, np.array([0.7, 1.0, 1.2, 0.4]), off_zero(4)),
        ("broadcast", special.huber, np.array(0.9), off_zero(2, 2)),
    ],
    "special_exprel": [*few(special.exprel), ("near zero", special.exprel, np.array([0.0, 1e-8, 0.95, -1.05]))],
    "special_lambertw": [
        *few(special.lambertw, positive),
        ("real part", lambda x: np.real(special.lambertw(x * np.complex64(1), tol=np.asarray(1e-8, x.dtype))), positive(3)),
        ("zero", special.lambertw, np.array([0.0, 0.1])),
    ],
    "special_ellipk": [*few(special.ellipk, inside), ("near zero", special.ellipk, np.array([0.0, 1e-9, 0.09, -0.11]))],
    "special_ellipe": [*few(special.ellipe, inside), ("near zero", special.ellipe, np.array([0.0, 1e-9, 0.09, -0.11]))],
    "special_ellipkm1": [*few(special.ellipkm1, unit), ("near one", special.ellipkm1, np.array([1.0, 0.95, 0.85]))],
    "special_ellipkinc": [
        ("vector", special.ellipkinc, positive(3) / 2, unit(3)),
    ],
    "special_ellipeinc": [
        ("vector", special.ellipeinc, positive(3) / 2, unit(3)),
    ],
    "special_spence": [*few(special.spence, positive), ("near one", special.spence, np.array([1.0, 1.05, 0.85, 1 + 1e-9]))],
    "special_owens_t": [("vector", special.owens_t, off_zero(3), positive(3))],
    "special_hyp0f1": few(partial(special.hyp0f1, 1.5), positive),
    "special_hyp1f1": few(partial(special.hyp1f1, 1.5, 2.3), off_zero),
    "special_hyperu": few(partial(special.hyperu, 1.5, 2.3), positive),
    "special_hyp2f1": few(at(special.hyp2f1, 0.5, 1.5, 2.25), partial(real, low=-0.8, high=0.7)),
    "special_sici": first(special.sici, positive),
    "special_shichi": [
        *first(special.shichi, positive),
        ("near zero", lambda x: special.shichi(x)[0], np.array([1e-9, 0.9, 1.1])),
    ],
    "special_fresnel": first(special.fresnel),
    "special_airy": first(special.airy),
}
COMPLEX_SPECIAL: dict[str, list[Sketch]] = {
    **{f"special_{f}": [("vector", getattr(special, f), 0.6 * complexes(3))] for f in IN_THE_PLANE},
    **{
        f"special_{f}": [("vector", partial(getattr(special, f), 1.5), complexes(3))]
        for f in ("jv", "yv", "iv", "kv", "kve", "hankel1", "hankel2", "hankel1e", "hankel2e")
    },
    "special_lambertw": [("vector", special.lambertw, complexes(3)), ("branch", partial(special.lambertw, k=1), complexes(3))],
    "special_xlogy": [("vector", special.xlogy, complexes(3), complexes(3, seed=1))],
    "special_xlog1py": [("vector", special.xlog1py, complexes(3), complexes(3, seed=1))],
    "special_sici": first(special.sici, complexes)[:-1],
    "special_shichi": first(special.shichi, complexes)[:-1],
    "special_fresnel": first(special.fresnel, small_complexes)[:-1],
    "special_airy": first(special.airy, complexes)[:-1],
    "special_hyp0f1": [("vector", partial(special.hyp0f1, 1.5), complexes(3))],
    "special_hyp1f1": [("vector", partial(special.hyp1f1, 1.5, 2.3), complexes(3))],
}

# ------------------------------------------------------------------------------- powers, integrals, elementary

near_one = partial(real, low=0.6, high=1.4)
degrees = partial(real, low=20, high=80)
EDGES = np.array([0.0, 1e-9, 0.9, -1.1])


def pairs(function: Function, left: Any, right: Any) -> list[Sketch]:
    """A function of two arguments on a few shapes."""
    return [
        ("broadcast", function, left(3), right(2, 1)),
    ]


APART = np.array([0.5, 1.0, 1.6])


def carlson(function: Function, *args: Any) -> list[Sketch]:
    """A symmetric integral of numbers that are not near each other."""
    return [
        ("vector", function, *args),
        ("numbers", function, *[a[0] for a in args]),
    ]


def at_two(function: Function, *orders: float) -> Function:
    """A function of its last two arguments."""
    return lambda x, y: function(*[np.asarray(order, x.dtype) for order in orders], x, y)


def parts(function: Function, *makers: Any) -> list[Sketch]:
    """The results of a function of several arguments."""
    count = len(function(*[make() for make in makers]))
    return [
        *((f"result {k}", lambda *xs, k=k: function(*xs)[k], *[make(3) for make in makers]) for k in range(count)),
        ("all results", lambda *xs: sum(part * part for part in function(*xs)), *[make(2) for make in makers]),
        ("zero size", lambda *xs: function(*xs)[0], *[make(0) for make in makers]),
    ]


def before(function: Function, *parameters: float) -> Function:
    """A function of its first argument."""
    return lambda x: function(x, *[np.asarray(p, x.dtype) for p in parameters])


def at_all(name: str, *orders: float, make: Any = positive) -> dict[str, list[Sketch]]:
    """Cases of a function of its last argument."""
    return {f"special_{name}": few(at(getattr(special, name), *orders), make)}


ELEMENTARY: dict[str, list[Sketch]] = {
    "special_boxcox": [
        *pairs(special.boxcox, positive, off_zero),
        ("exponent near zero", lambda p: special.boxcox(np.asarray(1.7, p.dtype), p), EDGES),
    ],
    "special_boxcox1p": [
        *pairs(special.boxcox1p, positive, off_zero),
        ("exponent near zero", lambda p: special.boxcox1p(np.asarray(0.7, p.dtype), p), EDGES),
    ],
    "special_inv_boxcox": [
        *pairs(special.inv_boxcox, positive, unit),
        ("exponent near zero", lambda p: special.inv_boxcox(np.asarray(0.7, p.dtype), p), EDGES),
        ("seam", lambda p: special.inv_boxcox(np.asarray(0.5, p.dtype), p), np.array([0.19, 0.21, -0.19, -0.21])),
    ],
    "special_inv_boxcox1p": [
        *pairs(special.inv_boxcox1p, positive, unit),
        ("exponent near zero", lambda p: special.inv_boxcox1p(np.asarray(0.7, p.dtype), p), EDGES),
    ],
    "special_powm1": [*pairs(special.powm1, positive, off_zero), ("negative", lambda x: special.powm1(x, 3), negative(3))],
    "special_cotdg": few(special.cotdg, degrees),
    "special_radian": [
        ("vector", special.radian, degrees(2), real(2), positive(2)),
        ("broadcast", special.radian, degrees(2, 1), real(2), positive()),
    ],
    "special_wrightomega": few(special.wrightomega, off_zero),
    "special_tklmbda": [
        *pairs(special.tklmbda, inside, unit),
        ("negative shape", special.tklmbda, off_zero(3), negative(3)),
        ("logistic", lambda x: special.tklmbda(x, np.asarray(0, x.dtype)), off_zero(3)),
        ("uniform, beyond its end", lambda x: special.tklmbda(x, np.asarray(1, x.dtype)), np.array([0.3, 1.5, -2.0])),
    ],
    "special_voigt_profile": [
        ("vector", special.voigt_profile, off_zero(3), near_one(3), unit(3)),
        ("broadcast", special.voigt_profile, off_zero(2), near_one(2, 1), unit()),
        ("Gauss", lambda x: special.voigt_profile(x, np.asarray(1.2, x.dtype), np.asarray(0, x.dtype)), off_zero(3)),
    ],
    "special_betainccinv": few(partial(special.betainccinv, 1.5, 2.5), unit),
}
BESSEL: dict[str, list[Sketch]] = {
    **{f"special_{f}": few(getattr(special, f), off_zero) for f in ("ber", "bei", "berp", "beip")},
    **{f"special_{f}": few(getattr(special, f), positive) for f in ("ker", "kei", "kerp", "keip")},
    **{
        f"special_{f}": [*few(at(getattr(special, f), 1.5), positive), ("order 0", partial(getattr(special, f), 0), upper(3))]
        for f in ("jve", "yve", "struve", "modstruve")
    },
    **{f"special_{f}": few(getattr(special, f), upper) for f in ("itstruve0", "itmodstruve0", "it2struve0")},
    "special_kelvin": parts(special.kelvin, positive),
    "special_airye": [*first(special.airye, positive)],
    **{f"special_{f}": parts(getattr(special, f), upper) for f in ("itj0y0", "iti0k0", "it2j0y0", "it2i0k0")},
    "special_itairy": parts(special.itairy, positive),
    "special_besselpoly": few(before(special.besselpoly, 1.25, 1.5), positive),
    "special_wright_bessel": few(at(special.wright_bessel, 1.25, 1.5), positive),
    "special_log_wright_bessel": few(at(special.log_wright_bessel, 1.25, 1.5), positive),
}
# By a series for small arguments.
BESSEL["special_it2j0y0"].append(("small", lambda x: special.it2j0y0(x)[0], unit(3)))
BESSEL["special_it2i0k0"].append(("small", lambda x: special.it2i0k0(x)[0], unit(3)))
ELLIPTIC: dict[str, list[Sketch]] = {
    "special_ellipj": [
        *parts(special.ellipj, positive, unit),
        ("more than a turn", lambda u: special.ellipj(u, np.asarray(0.4, u.dtype))[3], real(3, low=5, high=20)),
        ("any turn, by m", lambda m: special.ellipj(np.asarray(7.5, m.dtype), m)[3], unit(3)),
    ],
    "special_elliprc": [
        *pairs(special.elliprc, positive, partial(real, low=3.0, high=5.0)),
        ("principal value", special.elliprc, positive(3), negative(3)),
    ],
    "special_elliprd": carlson(special.elliprd, APART, APART + 1.7, APART + 0.6),
    "special_elliprf": carlson(special.elliprf, APART, APART + 1.7, APART + 0.6),
    "special_elliprg": carlson(special.elliprg, APART, APART + 1.7, APART + 0.6),
    "special_elliprj": carlson(special.elliprj, APART, APART + 1.7, APART + 0.6, APART + 2.9),
    "special_agm": [
        *pairs(special.agm, positive, partial(real, low=3.0, high=5.0)),
        ("near each other", special.agm, np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0 + 1e-9, 3.1])),
        ("negative", special.agm, negative(2), negative(2, seed=5)),
    ],
}
# By the degree, in the precision of x
BY_DEGREE = {
    "eval_legendre": (3,),
    "eval_sh_legendre": (3,),
    "eval_chebyt": (4,),
    "eval_chebyu": (3,),
    "eval_chebyc": (4,),
    "eval_chebys": (3,),
    "eval_sh_chebyt": (3,),
    "eval_sh_chebyu": (2,),
    "eval_laguerre": (3,),
    "eval_genlaguerre": (3, 1.25),
    "eval_gegenbauer": (3, 1.25),
    "eval_jacobi": (3, 1.25, 0.75),
    "eval_sh_jacobi": (3, 2.25, 1.75),
}
POLYNOMIALS: dict[str, list[Sketch]] = {
    **{
        f"special_{name}": [
            *few(at(getattr(special, name), *orders), unit)[:1],
            ("degree 0", lambda x, name=name, orders=orders: getattr(special, name)(0, *orders[1:], x), unit(2)),
            ("whole degrees", lambda x, name=name, orders=orders: getattr(special, name)([[1], [5]], *orders[1:], x), unit(2)),
            ("between degrees", lambda x, name=name, orders=orders: getattr(special, name)(1.5, *orders[1:], x), unit(2)),
        ]
        for name, orders in BY_DEGREE.items()
    },
    **{
        f"special_{name}": [
            *few(partial(getattr(special, name), 3), off_zero),
            ("degrees", partial(getattr(special, name), np.array([[0], [1], [4]])), off_zero(2)),
        ]
        for name in ("eval_hermite", "eval_hermitenorm")
    },
    "special_lpmv": [*few(at(special.lpmv, 1, 2.5), unit), ("degree 0", partial(special.lpmv, 0, 0), unit(2))],
}
# Distribution functions of the last argument
DISTRIBUTION_ORDERS = {
    "nbdtr": (2, 5),
    "nbdtrc": (2, 5),
    "nbdtri": (2, 5),
    "pdtr": (2,),
    "pdtrc": (2,),
    "pdtri": (2,),
    "chdtr": (2.5,),
    "chdtrc": (2.5,),
    "chdtri": (2.5,),
    "fdtr": (3.5, 4.5),
    "fdtrc": (3.5, 4.5),
    "fdtri": (3.5, 4.5),
    "stdtr": (2.5,),
    "stdtrit": (2.5,),
    "smirnov": (5,),
    "smirnovi": (5,),
    "kolmogorov": (),
    "kolmogi": (),
}
STATISTICS: dict[str, list[Sketch]] = {
    **{f"special_{name}": few(at(getattr(special, name), *orders), unit)[:1] for name, orders in DISTRIBUTION_ORDERS.items()},
    **{
        f"special_{name}": [
            ("of both", lambda a, x, name=name: getattr(special, name)(a, np.asarray(2.5, x.dtype), x), near_one(3), unit(2, 1)),
        ]
        for name in ("gdtr", "gdtrc", "gdtrix")
    },
    "special_gdtria": [
        ("of both", lambda p, x: special.gdtria(p, np.asarray(2.5, x.dtype), x), unit(3), near_one(2, 1)),
    ],
    "special_nrdtrimn": [
        ("vector", special.nrdtrimn, unit(3), positive(3), real(3)),
    ],
    "special_nrdtrisd": [
        ("vector", special.nrdtrisd, -positive(3), 0.6 + 0.3 * unit(3), positive(3)),
    ],
    **{
        f"special_{name}": [
            (
                "of both",
                lambda x, nc, f=name: getattr(special, f)(x, np.asarray(2.5, x.dtype), nc),
                make(3),
                positive(2, 1),
            ),
        ]
        for name, make in {"chndtr": positive, "chndtrix": unit}.items()
    },
    **{
        f"special_{name}": [
            ("of both", at_two(getattr(special, name), 3.5, 4.5), positive(3), make(2, 1)),
        ]
        for name, make in {"ncfdtr": positive, "ncfdtri": unit}.items()
    },
    **{
        f"special_{name}": [
            ("of both", at_two(getattr(special, name), 3.5), left(3), right(2, 1)),
        ]
        for name, (left, right) in {
            "nctdtr": (off_zero, off_zero),
            "nctdtrit": (off_zero, unit),
            "nctdtrinc": (unit, off_zero),
        }.items()
    },
}
STATISTICS["special_kolmogorov"].append(("both series", special.kolmogorov, np.array([0.3, 0.99, 1.01, 2.5])))
STATISTICS["special_smirnov"].append(("several", partial(special.smirnov, np.array([[3], [17], [60]])), unit(2)))
WAVES: dict[str, list[Sketch]] = {
    **{f"special_{name}": parts(at(getattr(special, name), 1.25), off_zero) for name in ("pbdv", "pbvv")},
    "special_pbwa": parts(at(special.pbwa, 1.25), unit),
}
COMPLEX_NEW: dict[str, list[Sketch]] = {
    "special_wrightomega": [("vector", special.wrightomega, complexes(3))],
    "special_elliprc": [("vector", special.elliprc, positive(3) + 0.5j, positive(3) - 0.7j)],
    "special_elliprd": [("vector", special.elliprd, positive(2) + 0.5j, positive(2) - 0.7j, positive(2) + 1.5)],
    "special_elliprf": [("vector", special.elliprf, positive(2) + 0.5j, positive(2) - 0.7j, positive(2) + 1.5)],
    "special_elliprg": [("vector", special.elliprg, positive(2) + 0.5j, positive(2) - 0.7j, positive(2) + 1.5)],
    "special_eval_legendre": [("vector", partial(special.eval_legendre, 3), complexes(3))],
    "special_eval_chebyt": [("vector", partial(special.eval_chebyt, 3), complexes(3))],
    "special_eval_laguerre": [("vector", partial(special.eval_laguerre, 3), complexes(3))],
    "special_eval_jacobi": [("vector", partial(special.eval_jacobi, 3, 1.25, 0.75), complexes(3))],
}


# ------------------------------------------------------------------------------- densities and quantiles of distributions

ufuncs: Any = importlib.import_module("scipy.special._ufuncs")


def between(function: Function, *parameters: float) -> Function:
    """A function of its first and last arguments, with the others in the precision of the first."""
    return lambda x, z: function(x, *[np.asarray(p, x.dtype) for p in parameters], z)


DISTRIBUTIONS: dict[str, list[Sketch]] = {
    "special_beta_pdf": [("vector", ufuncs._beta_pdf, unit(3), upper(3), upper(3, seed=1))],
    "special_beta_ppf": [("vector", ufuncs._beta_ppf, unit(3), upper(3), upper(3, seed=1))],
    "special_cauchy_ppf": [("vector", ufuncs._cauchy_ppf, unit(3), off_zero(3), positive(3))],
    "special_cauchy_isf": [("vector", ufuncs._cauchy_isf, unit(3), off_zero(3), positive(3))],
    "special_log1mexp": few(ufuncs._log1mexp, negative),
    **{
        f"special_ncx2_{kind}": [("vector", between(getattr(ufuncs, f"_ncx2_{kind}"), 3.5), make(3), positive(3))]
        for kind, make in {"pdf": upper, "sf": upper, "isf": unit}.items()
    },
    **{
        f"special_binom_{kind}": [("vector", at(getattr(ufuncs, f"_binom_{kind}"), 3.0, 7.0), unit(3))]
        for kind in ("pmf", "cdf", "sf")
    },
    **{
        f"special_nbinom_{kind}": [("vector", at_two(getattr(ufuncs, f"_nbinom_{kind}"), 3.0), upper(3), unit(3))]
        for kind in ("pmf", "cdf", "sf")
    },
    **{
        f"special_nct_{kind}": [("vector", between(getattr(ufuncs, f"_nct_{kind}"), 5.5), make(3), positive(3))]
        for kind, make in {"pdf": upper, "sf": upper, "isf": unit}.items()
    },
    **{
        f"special_ncf_{kind}": [("vector", between(getattr(ufuncs, f"_ncf_{kind}"), 4.5, 6.5), make(3), positive(3))]
        for kind, make in {"pdf": positive, "sf": positive, "isf": unit}.items()
    },
}

SKETCHES: dict[str, list[Sketch]] = {
    **SPECIAL,
    **ELEMENTARY,
    **BESSEL,
    **ELLIPTIC,
    **POLYNOMIALS,
    **STATISTICS,
    **WAVES,
    **DISTRIBUTIONS,
}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {**COMPLEX_SPECIAL, **COMPLEX_NEW}
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {}
