"""Cases of the family compgraph.policies.transforms."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np
from arguments import (
    Function,
    Sketch,
    above,
    binary,
    complexes,
    inside,
    negative,
    optional,
    positive,
    real,
    shifted,
    small_complexes,
    unary,
)

import compgraph as cg

# ------------------------------------------------------------------------------------ Fourier transforms

ALONG_ONE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "vector, even": ((4,), {}),
    "vector, odd": ((5,), {}),
    "axis 0": ((4, 2), {"axis": 0}),
    "axis -2": ((2, 3, 2), {"axis": -2}),
    "cut": ((2, 6), {"n": 3}),
    "cut, even": ((6, 2), {"n": 4, "axis": 0}),
    "padded": ((2, 3), {"n": 6}),
    "padded, odd": ((3, 2), {"n": 7, "axis": 0}),
    "backward": ((4,), {"norm": "backward"}),
    "ortho": ((2, 5), {"norm": "ortho"}),
    "forward": ((4, 2), {"norm": "forward", "axis": 0}),
    "two": ((2,), {}),
    "to one": ((3,), {"n": 1}),
    "zero size": ((0, 3), {}),
}
ALONG_SEVERAL: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "all": ((2, 3), {}),
    "even": ((3, 4), {}),
    "axes": ((2, 3, 4), {"axes": (0, 2)}),
    "axes out of order": ((2, 3, 4), {"axes": (-1, 0)}),
    "one axis": ((3, 4), {"axes": (0,)}),
    "axes twice": ((3, 4), {"axes": (1, 1)}),
    "cut and padded": ((2, 5), {"s": (3, 4), "axes": (0, 1)}),
    "lists": ((2, 5), {"s": [3, -1], "axes": [1, 0]}),
    "backward": ((2, 3), {"norm": "backward"}),
    "ortho": ((2, 3), {"norm": "ortho"}),
    "forward": ((2, 3), {"norm": "forward"}),
    "zero size": ((0, 3, 2), {"axes": (-2, -1)}),
}


def flat_of(found: Any, *chosen: int) -> Any:
    """Some of the results of a function, in one row."""
    return np.concatenate([np.ravel(found[i]) for i in chosen])


def transforms(function: Function, make: Any, options: dict[str, Any]) -> list[Sketch]:
    """A transform with several choices of options; also as real and imaginary parts, which are real."""
    return [
        *((label, partial(function, **kwargs), make(*shape)) for label, (shape, kwargs) in options.items()),
        ("imaginary part", lambda x: np.imag(function(x)), make(2, 4)),
        ("real part of a power", lambda x: np.real(function(x * x) ** 2), make(2, 4)),
    ]


def positional(name: str, make: Any) -> list[Sketch]:
    """Options by position."""
    function = getattr(np.fft, name)
    several = name[-1] in "2n"
    return [
        (
            "by position",
            (lambda x: function(x, (3, 4), (0, 1), "ortho")) if several else (lambda x: function(x, 5, 0)),
            make(4, 3),
        )
    ]


ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "fftn", "ifftn", "rfftn", "irfftn")
REAL_ONLY = ("rfft", "ihfft", "rfftn")
FOURIER: dict[str, list[Sketch]] = {
    **{f"fft_{f}": transforms(getattr(np.fft, f), real, ALONG_ONE) + positional(f, real) for f in ONE},
    **{f"fft_{f}": transforms(getattr(np.fft, f), real, ALONG_SEVERAL) + positional(f, real) for f in SEVERAL},
    **{
        f"fft_{f}": [
            ("vector, even", getattr(np.fft, f), real(4)),
            ("vector, odd", getattr(np.fft, f), real(5)),
            ("all axes", getattr(np.fft, f), real(2, 3)),
            ("axis", partial(getattr(np.fft, f), axes=-1), real(2, 3)),
            ("axes", partial(getattr(np.fft, f), axes=(0, 2)), real(2, 3, 3)),
            ("axes, a list", partial(getattr(np.fft, f), axes=[1]), real(2, 3)),
            ("zero size", getattr(np.fft, f), real(0, 3)),
        ]
        for f in ("fftshift", "ifftshift")
    },
}
COMPLEX_FOURIER: dict[str, list[Sketch]] = {
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, ALONG_ONE) for f in ONE if f not in REAL_ONLY},
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, ALONG_SEVERAL) for f in SEVERAL if f not in REAL_ONLY},
    "fft_fftshift": [("vector", np.fft.fftshift, complexes(3))],
}
COMPOSED_FOURIER: dict[str, list[Sketch]] = {
    "rfft2": transforms(np.fft.rfft2, real, ALONG_SEVERAL),
    "irfft2": transforms(np.fft.irfft2, complexes, ALONG_SEVERAL),
}

# ------------------------------------------------------------------------------- ufuncs, special functions

off_zero = partial(real, low=-2.2, high=1.7)
special: Any = importlib.import_module("scipy.special")


def few(function: Function, make: Any = off_zero) -> list[Sketch]:
    """A function of one argument on a few shapes."""
    return [("vector", function, make(4)), ("number", function, make()), ("zero size", function, make(2, 0))]


def at(function: Function, *orders: float) -> Function:
    """A function of its last argument, with the others given in the precision of that one."""
    return lambda x: function(*[np.asarray(order, x.dtype) for order in orders], x)


def first(function: Function, make: Any = off_zero) -> list[Sketch]:
    """The results of a function of several, alone and together."""
    count = len(function(1.0))
    return [
        *((f"result {k}", lambda x, k=k: function(x)[k], make(2, 2)) for k in range(count)),
        ("all results", lambda x: sum(part * part for part in function(x)), make(3)),
        ("number", lambda x: function(x)[0], make()),
        ("zero size", lambda x: function(x)[0], make(0, 2)),
    ]


UFUNCS: dict[str, list[Sketch]] = {
    "copysign": [*binary(np.copysign, off_zero, shifted), ("Python number", lambda x: np.copysign(x, -1.5), off_zero(3))],
    "ldexp": [
        *unary(lambda x: np.ldexp(x, 3)),
        ("exponents", lambda x: np.ldexp(x, np.array([[1], [-2]])), real(3)),
        ("recorded exponent", lambda x: np.ldexp(x, np.frexp(x)[1]), positive(3)),
    ],
    "frexp": [
        *unary(lambda x: np.frexp(x)[0], off_zero),
        ("mantissa and exponent", lambda x: np.frexp(x)[0] * 2.0 ** np.frexp(x)[1], positive(3)),
        ("exponent alone", lambda x: np.frexp(x)[1] * 1.5 + 0 * x, off_zero(3)),
    ],
    "modf": [
        *unary(lambda x: np.modf(x)[0] ** 2, off_zero),
        ("itself", lambda x: np.modf(x)[0], off_zero(3)),
        ("whole part", lambda x: np.modf(x)[1], off_zero(3)),
        ("both", lambda x: x * (np.modf(x)[0] + np.modf(x)[1]), off_zero(3)),
    ],
    "sinc": [
        *unary(np.sinc),
        ("zero", np.sinc, np.array([0.0, 1e-9, -1e-3])),
        ("near zero", np.sinc, np.array([0.2, -0.3, 0.31, -0.34])),
        ("whole numbers", np.sinc, np.array([-1.0, 1, 2])),
    ],
    "i0": [
        *unary(np.i0),
        ("zero", np.i0, np.array([0.0, 1e-9])),
        ("large", lambda x: np.i0(x) * np.exp(-np.abs(x)), np.array([20.0, -7.9, 9.0])),
        ("at the seam", np.i0, np.array([7.5, 8.5])),
    ],
    "angle": [
        *unary(np.angle),
        ("degrees", partial(np.angle, deg=True), off_zero(3)),
        ("True", lambda x: np.angle(x, True), real(3)),
    ],
}
COMPLEX_UFUNCS: dict[str, list[Sketch]] = {
    "sinc": [("vector", np.sinc, complexes(3)), ("zero", np.sinc, np.array([0j, 0.1j, 0.2 + 0.1j]))],
    "angle": [
        ("vector", np.angle, complexes(3)),
        ("number", np.angle, complexes()),
        ("degrees", lambda x: np.angle(x, deg=True), complexes(2, 2)),
        ("degrees by position", lambda x: np.angle(x, True), complexes(2, 2)),
    ],
}
COMPOSED_UFUNCS: dict[str, list[Sketch]] = {
    f"emath_{f.__name__}": [
        ("positive", f, positive(3)),
        ("negative", f, negative(2, 2)),
        ("both", lambda x, f=f: np.real(f(x)) + np.imag(f(x) ** 2), off_zero(4)),
        ("complex", f, complexes(3)),
        ("number", f, negative()),
    ]
    for f in (np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10)
}

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
    **{f"special_{f}": few(getattr(special, f)) for f in ON_THE_LINE},
    **{f"special_{f}": few(getattr(special, f), positive) for f in ON_POSITIVES},
    **{
        f"special_{f}": [
            ("same shape", getattr(special, f), positive(2, 2), upper(2, 2)),
            ("broadcast", getattr(special, f), positive(3), upper(2, 1)),
            ("numbers", getattr(special, f), positive(), upper()),
            ("zero size", getattr(special, f), positive(0), upper()),
        ]
        for f in TWO_POSITIVES
    },
    **{
        f"special_{f}": [
            *few(partial(getattr(special, f), 1.5), positive),
            *((f"order {v}, real part", lambda x, f=f, v=v: np.real(getattr(special, f)(v, x)), upper(3)) for v in (0, 2, -0.5)),
            ("orders", lambda x, f=f: getattr(special, f)(np.array([[0.0], [1.5]]), x), positive(3)),
        ]
        for f in WITH_ORDER
    },
    **{f"special_{f}": few(at(getattr(special, f), 2), positive) for f in ("yn", "kn")},
    "special_expn": [*few(at(special.expn, 3), positive), ("order 0", partial(special.expn, 0), positive(3))],
    "special_psi": few(special.digamma, positive),
    "special_zeta": [("vector", partial(special.zeta, 3.0), positive(3)), ("zero size", partial(special.zeta, 2.5), positive(0))],
    "special_wofz": [
        ("of a real number", lambda x: np.real(special.wofz(x * np.complex64(1))), off_zero(3)),
        ("itself", special.wofz, off_zero(3)),
        ("zero size", special.wofz, off_zero(0)),
    ],
    "special_binom": [("vector", special.binom, upper(3) + 1, unit(3)), ("zero size", special.binom, upper(0), unit())],
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
        ("zero size", special.huber, np.array(0.9), off_zero(0)),
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
        ("zero size", special.ellipkinc, unit(0), unit(1)),
    ],
    "special_ellipeinc": [
        ("vector", special.ellipeinc, positive(3) / 2, unit(3)),
        ("zero size", special.ellipeinc, unit(0), unit(1)),
    ],
    "special_spence": [*few(special.spence, positive), ("near one", special.spence, np.array([1.0, 1.05, 0.85, 1 + 1e-9]))],
    "special_owens_t": [("vector", special.owens_t, off_zero(3), positive(3)), ("zero size", special.owens_t, unit(0), unit(1))],
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
    "special_sici": first(special.sici, complexes),
    "special_shichi": first(special.shichi, complexes),
    "special_fresnel": first(special.fresnel, small_complexes),
    "special_airy": first(special.airy, complexes),
    "special_hyp0f1": [("vector", partial(special.hyp0f1, 1.5), complexes(3))],
    "special_hyp1f1": [("vector", partial(special.hyp1f1, 1.5, 2.3), complexes(3))],
}

# ------------------------------------------------------------------------------------ polynomials and grids


def _times(points: Any, step: Any) -> Any:
    return points * step


# They divide without rounding: what rounding leaves of a leading zero of the remainder would stay in the result.
DIVIDEND, DIVISOR = np.array([1.5, -2.25, 0.75, 1.0, -0.5]), np.array([2.0, -0.5, 1.5])
POLYNOMIALS: dict[str, list[Sketch]] = {
    "polyval": [
        ("vector", np.polyval, real(3), shifted(4)),
        ("matrix", np.polyval, real(4), shifted(2, 3)),
        ("number", np.polyval, real(4), shifted()),
        ("one coefficient", np.polyval, real(1), shifted(2)),
        ("of constants", lambda x: np.polyval([2, -1.5, 0, 1], x), real(3)),
        ("at a Python number", lambda p: np.polyval(p, 1.5), real(3)),
        ("at zero", lambda p, x: np.polyval(p, x), real(3), np.zeros(2)),
        ("at a list", lambda p: np.polyval(p, [1.5, 2]), real(3)),
        ("coefficients in a list", lambda x: np.polyval([1.5, 1, x], x), shifted()),
        ("arrays of coefficients", np.polyval, real(3, 2), shifted(4, 1)),
        ("keywords", lambda p, x: np.polyval(p=p, x=x), real(3), shifted(2)),
        ("zero size", np.polyval, real(3), shifted(0)),
    ],
    "polymul": [
        ("vectors", np.polymul, real(3), shifted(4)),
        ("longer left", np.polymul, real(4), shifted(2)),
        ("with a list", lambda x: np.polymul(x, [1, 2.5]), real(3)),
        ("from a list", lambda x: np.polymul([1, 2.5], x), real(3)),
        ("numbers", np.polymul, real(), shifted()),
        ("leading zeros left", lambda x, y: np.polymul(np.concatenate([[0, 0], x]), y), real(3), shifted(2)),
        ("leading zeros right", lambda x, y: np.polymul(x, np.concatenate([[0, 0], y])), real(3), shifted(2)),
        ("keywords", lambda x, y: np.polymul(a1=x, a2=y), real(2), shifted(2)),
        ("zero size", lambda x, y: np.polymul(np.concatenate([x, [1.0, 2]]), y), real(0), shifted(2)),
    ],
    "polydiv": [
        ("quotient", lambda u, v: np.polydiv(u, v)[0], real(5), above(3)),
        ("remainder", lambda u, v: np.polydiv(u, v)[1], DIVIDEND, DIVISOR),
        ("both", lambda u, v: np.sum(np.polydiv(u, v)[0] ** 2) * np.polydiv(u, v)[1], DIVIDEND, DIVISOR),
        ("one division", lambda u, v: _times(*np.polydiv(u, v)), DIVIDEND[:4], DIVISOR),
        ("by a list", lambda u: np.polydiv(u, [2, 1.5])[0], real(4)),
        ("of a list", lambda v: np.polydiv([1, 2, 1.5, 3], v)[1], DIVISOR),
        ("by a number", lambda u, v: np.polydiv(u, v)[0], real(3), above()),
        ("by a longer one, quotient", lambda u, v: np.polydiv(u, v)[0] + 0 * u[0] * v[0], real(2), above(3)),
        ("by a longer one, remainder", lambda u, v: np.polydiv(u, v)[1] * v[0], real(2), above(3)),
        ("without remainder", lambda u: np.polydiv(np.polymul(u, [1.0, 2]), [1.0, 2])[0], real(3)),
        ("zero size", lambda x, u, v: np.polydiv(np.concatenate([x, u]), v)[0], real(0), real(3), above(2)),
    ],
    "polyder": [
        *optional(np.polyder, real, {"once": ((4,), {}), "twice": ((4,), {"m": 2}), "not at all": ((3,), {"m": 0})}),
        ("to nothing", lambda x: np.polyder(x, 3), real(2)),
        ("by position", lambda x: np.polyder(x, 2), real(5)),
    ],
    "polyint": [
        *optional(np.polyint, real, {"once": ((3,), {}), "twice": ((3,), {"m": 2}), "not at all": ((3,), {"m": 0})}),
        ("constant", partial(np.polyint, k=1.5), real(3)),
        ("constant a node", lambda p, k: cg.polyint(p, k=k), real(3), shifted()),
        ("constant a node, twice", lambda p, k: cg.polyint(p, m=2, k=k), real(3), shifted()),
        ("constants a node", lambda p, k: cg.polyint(p, 2, k), real(3), shifted(2)),
        ("constants in a list", lambda p, k, c: cg.polyint(p, 2, [k, c]), real(3), shifted(), real()),
        ("more constants than needed", lambda p, k: cg.polyint(p, 2, k), real(3), shifted(3)),
        ("constants", partial(np.polyint, m=2, k=[1.5, -2]), real(3)),
        ("zero size", lambda x: np.polyint(np.concatenate([x, [1.0]])), real(0)),
    ],
    "poly": [
        ("vector", np.poly, real(4)),
        ("two", np.poly, real(2)),
        ("one", np.poly, real(1)),
        ("list", lambda x, y: np.poly([x, 1, y]), real(), shifted()),
        ("zero size", lambda x: np.poly(np.concatenate([x, [1.0, 2]])), real(0)),
        ("of a matrix", np.poly, real(3, 3)),
        ("of a symmetric matrix", lambda x: np.poly(x + x.T), real(3, 3)),
        ("of a matrix of one", np.poly, real(1, 1)),
    ],
    "roots": [
        ("real roots", np.roots, np.array([1.0, -2.5, -1.0, 1.5])),
        ("complex roots", np.roots, np.array([1.5, 2.0, 3.0])),
        ("complex roots, cubic", lambda x: np.sum(np.abs(np.roots(x)) ** 2), np.array([1.5, 2.0, 3.0, -1.0])),
        ("a root of zero", lambda x: np.roots(np.concatenate([x, [0.0]])), np.array([1.0, -2.5, 0.7])),
        ("leading zeros", lambda x: np.roots(np.concatenate([[0.0, 0], x])), np.array([1.0, -2.5, 0.7])),
        ("no roots", np.roots, real(1)),
    ],
    "linspace": [
        ("numbers", partial(np.linspace, num=4), real(), shifted()),
        ("default", np.linspace, real(), shifted()),
        ("vectors", partial(np.linspace, num=3), real(2), shifted(2)),
        ("broadcast", partial(np.linspace, num=3), real(2), shifted(3, 1)),
        ("from a constant", lambda x: np.linspace(0, x, 3), real(2)),
        ("to a constant", lambda x: np.linspace(x, 1.5, 3), real()),
        ("to a list", lambda x: np.linspace(x, [1.5, 2], 3), real()),
        ("open", lambda x, y: np.linspace(x, y, num=3, endpoint=False), real(2), shifted(2)),
        ("axis -1", partial(np.linspace, num=3, axis=-1), real(2), shifted(2)),
        ("axis 1", partial(np.linspace, num=4, axis=1), real(2, 3), shifted(3)),
        ("one", partial(np.linspace, num=1), real(2), shifted(2)),
        ("none", partial(np.linspace, num=0), real(2), shifted(2)),
        ("step", lambda x, y: np.linspace(x, y, 4, retstep=True)[1], real(2), shifted(2)),
        ("points, with the step", lambda x, y: np.linspace(x, y, 3, retstep=True)[0], real(2), shifted(2)),
        ("points times step", lambda x, y: _times(*np.linspace(x, y, 3, retstep=True)), real(2), shifted(2)),
        ("dtype", partial(np.linspace, num=3, dtype=np.float64), real(), shifted()),
    ],
    "geomspace": [
        ("numbers", partial(np.geomspace, num=4), positive(), above()),
        ("vectors", partial(np.geomspace, num=3), positive(2), above(2)),
        ("broadcast", partial(np.geomspace, num=3), positive(2), above(3, 1)),
        ("negative", partial(np.geomspace, num=3), negative(2), -above(2)),
        ("of its precision", lambda x, y: np.geomspace(x, y, 3).astype(x.dtype), positive(2), above(2)),
        ("from a constant", lambda x: np.geomspace(1, x, 3), positive(2)),
        ("to a constant", lambda x: np.geomspace(x, 10.0, 3), positive()),
        ("open", partial(np.geomspace, num=3, endpoint=False), positive(2), above(2)),
        ("axis -1", partial(np.geomspace, num=3, axis=-1), positive(2), above(2)),
        ("axis 1", partial(np.geomspace, num=4, axis=1), positive(2, 3), above(3)),
        ("one", partial(np.geomspace, num=1), positive(2), above(2)),
        ("none", partial(np.geomspace, num=0), positive(2), above(2)),
        ("dtype", partial(np.geomspace, num=3, dtype=np.float64), positive(), above()),
    ],
}
COMPLEX_POLYNOMIALS: dict[str, list[Sketch]] = {
    "polyval": [("vector", np.polyval, complexes(3), complexes(2, seed=1)), ("real", np.polyval, real(3), complexes(2))],
    "polydiv": [
        ("quotient", lambda u, v: np.polydiv(u, v)[0], complexes(4), complexes(2, seed=1)),
        ("remainder", lambda u, v: np.polydiv(u, v)[1], DIVIDEND[1:] * (1 + 0.5j), DIVISOR[:2] * (1 + 1j)),
    ],
    "polymul": [("vectors", np.polymul, complexes(3), complexes(2, seed=1))],
    "polyder": [("vector", np.polyder, complexes(3))],
    "polyint": [("vector", np.polyint, complexes(3))],
    "poly": [
        ("vector", np.poly, complexes(3)),
        ("one of them real", lambda z: np.abs(np.poly(z)), np.array([1 + 1j, 2.0])),
        ("of a matrix", np.poly, complexes(3, 3)),
    ],
    "roots": [("vector", np.roots, complexes(3))],
    "linspace": [("numbers", partial(np.linspace, num=3), complexes(), complexes(seed=1))],
    "geomspace": [("numbers", partial(np.geomspace, num=3), positive() + 0.5j, above() + 1j)],
}
COMPOSED_POLYNOMIALS: dict[str, list[Sketch]] = {
    "polyfit": [
        ("x and y", lambda x, y: np.polyfit(x, y, 2), real(5), shifted(5)),
        ("x alone, several", lambda x: np.polyfit(x, np.cos(np.arange(10.0)).reshape(5, 2), 1), real(5)),
        ("all three", lambda x, y, w: np.polyfit(x, y, 1, w=w), real(5), shifted(5), positive(5)),
        ("weights of several", lambda x, y, w: np.polyfit(x, y, 1, w=w), real(4), shifted(4, 2), positive(4)),
        ("full", lambda x, y: flat_of(np.polyfit(x, y, 1, full=True), 0, 1, 3), real(5), shifted(5)),
        ("cov", lambda x, y: flat_of(np.polyfit(x, y, 1, cov=True), 0, 1), real(5), shifted(5)),
        ("cov of several", lambda x, y: flat_of(np.polyfit(x, y, 1, cov=True), 1), real(5), shifted(5, 2)),
        ("cov unscaled", lambda x, w: flat_of(np.polyfit(x, np.arange(5.0), 1, w=w, cov="unscaled"), 1), real(5), positive(5)),
        ("complex", lambda y: np.polyfit(np.arange(4.0), y, 1), complexes(4)),
        ("line", lambda y: np.polyfit(np.arange(5, dtype=y.dtype), y, 1), real(5)),
        ("of its precision", lambda y: np.polyfit(np.arange(4.0), y, 1).astype(y.dtype), real(4)),
        ("parabola", lambda y: np.polyfit(np.arange(5.0), y, deg=2), real(5)),
        ("several", lambda y: np.polyfit(np.arange(4.0), y, 1), real(4, 2)),
        ("weights", lambda y: np.polyfit(np.arange(4.0), y, 1, w=[1, 2, 0.5, 1]), real(4)),
        ("rcond", lambda y: np.polyfit(np.arange(4.0), y, 2, 1e-10), real(4)),
        ("list", lambda y: np.polyfit([0, 1, 2.5], y=y, deg=1), real(3)),
        ("zero size", lambda y: np.polyfit(np.arange(4.0), y, 1), real(4, 0)),
    ],
    **{
        f.__name__: [
            ("same length", f, real(3), shifted(3)),
            ("shorter left", f, real(2), shifted(4)),
            ("shorter right", f, real(4), shifted(2)),
            ("list right", lambda x, f=f: f(x, [1, 2.5]), real(3)),
            ("list left", lambda x, f=f: f([1, 2.5], x), real(3)),
        ]
        for f in (np.polyadd, np.polysub)
    },
    "logspace": [
        ("numbers", partial(np.logspace, num=4), inside(), real()),
        ("vectors", partial(np.logspace, num=3, base=2), real(2), shifted(2)),
        ("open, axis", partial(np.logspace, num=3, endpoint=False, axis=-1), inside(2), real(2)),
        ("dtype", partial(np.logspace, num=3, dtype=np.float64), inside(), real()),
        ("base", lambda x, y, b: np.logspace(x, y, 3, base=b), inside(), real(), positive()),
    ],
}

# ----------------------------------------------------------------------------------------------------- all

SKETCHES: dict[str, list[Sketch]] = {**FOURIER, **UFUNCS, **SPECIAL, **POLYNOMIALS}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {**COMPLEX_FOURIER, **COMPLEX_UFUNCS, **COMPLEX_SPECIAL, **COMPLEX_POLYNOMIALS}
# The same checks, for functions that NumPy composes of others and that so have no rule of their own.
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {**COMPOSED_FOURIER, **COMPOSED_UFUNCS, **COMPOSED_POLYNOMIALS}
