"""Cases of Fourier transforms, convolutions, interpolation and polynomials."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import (
    Function,
    Sketch,
    above,
    binary,
    complexes,
    inside,
    negative,
    off_zero,
    optional,
    positive,
    real,
    shifted,
    small_complexes,
    unary,
)

# ------------------------------------------------------------------------------------ Fourier transforms

ALONG_ONE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "axis -2": ((2, 3, 2), {"axis": -2}),
    "cut": ((2, 6), {"n": 3}),
    "cut, even": ((6, 2), {"n": 4, "axis": 0}),
    "padded, odd": ((3, 2), {"n": 7, "axis": 0}),
    "ortho": ((2, 5), {"norm": "ortho"}),
    "forward": ((4, 2), {"norm": "forward", "axis": 0}),
    "to one": ((3,), {"n": 1}),
    "zero size": ((0, 3), {}),
}
ALONG_SEVERAL: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "axes out of order": ((2, 3, 4), {"axes": (-1, 0)}),
    "all": ((2, 3), {}),
    "axes twice": ((3, 4), {"axes": (1, 1)}),
    "cut and padded": ((2, 5), {"s": (3, 4), "axes": (0, 1)}),
    "lists": ((2, 5), {"s": [3, -1], "axes": [1, 0]}),
    "ortho": ((2, 3), {"norm": "ortho"}),
    "forward": ((2, 3), {"norm": "forward"}),
    "zero size": ((0, 3, 2), {"axes": (-2, -1)}),
}
# Complex arguments, and functions of the same transforms
SOME_ALONG_ONE = {label: ALONG_ONE[label] for label in ("axis -2", "padded, odd")}
SOME_ALONG_SEVERAL = {label: ALONG_SEVERAL[label] for label in ("axes out of order", "lists")}


def flat_of(outputs: Any, *chosen: int) -> Any:
    """Some of the results of a function, in one row."""
    return np.concatenate([np.ravel(outputs[i]) for i in chosen])


def transforms(function: Function, make: Any, options: dict[str, Any]) -> list[Sketch]:
    """A transform with several choices of options; of real arguments also as real and imaginary parts, which are real."""
    sketches = [(label, partial(function, **kwargs), make(*shape)) for label, (shape, kwargs) in options.items()]
    if make is not real:
        return sketches
    return [
        *sketches,
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
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, SOME_ALONG_ONE) for f in ONE if f not in REAL_ONLY},
    **{f"fft_{f}": transforms(getattr(np.fft, f), complexes, SOME_ALONG_SEVERAL) for f in SEVERAL if f not in REAL_ONLY},
    "fft_fftshift": [("vector", np.fft.fftshift, complexes(3))],
}
COMPOSED_FOURIER: dict[str, list[Sketch]] = {
    "rfft2": transforms(np.fft.rfft2, real, SOME_ALONG_SEVERAL),
    "irfft2": transforms(np.fft.irfft2, complexes, SOME_ALONG_SEVERAL),
}

# -------------------------------------------------------------------------------------------------- ufuncs

UFUNCS: dict[str, list[Sketch]] = {
    "logn": [
        ("positive", np.emath.logn, above(3), positive(3)),
        ("negative x", lambda x: np.emath.logn(3, x), negative(2, 2)),
        ("negative n", np.emath.logn, -above(3), positive(3)),
        ("both negative", np.emath.logn, -above(3), negative(2, 3)),
        ("plain x", lambda n: np.emath.logn(n, [0.5, 2.0]), above()),
        ("either side", lambda x: np.real(np.emath.logn(2, x) ** 2), off_zero(4)),
        ("zero size", np.emath.logn, above(0, 2), positive(2)),
    ],
    "copysign": [*binary(np.copysign, off_zero, shifted), ("Python number", lambda x: np.copysign(x, -1.5), off_zero(3))],
    "ldexp": [
        *unary(lambda x: np.ldexp(x, 3), zero_size=True),
        ("exponents", lambda x: np.ldexp(x, np.array([[1], [-2]])), real(3)),
        ("recorded exponent", lambda x: np.ldexp(x, np.frexp(x)[1]), positive(3)),
    ],
    "frexp": [
        *unary(lambda x: np.frexp(x)[0], off_zero, zero_size=True),
        ("mantissa and exponent", lambda x: np.frexp(x)[0] * 2.0 ** np.frexp(x)[1], positive(3)),
        ("exponent alone", lambda x: np.frexp(x)[1] * 1.5 + 0 * x, off_zero(3)),
    ],
    "modf": [
        *unary(lambda x: np.modf(x)[0] ** 2, off_zero, zero_size=True),
        ("itself", lambda x: np.modf(x)[0], off_zero(3)),
        ("whole part", lambda x: np.modf(x)[1], off_zero(3)),
        ("both", lambda x: x * (np.modf(x)[0] + np.modf(x)[1]), off_zero(3)),
    ],
    "sinc": [
        *unary(np.sinc),
        ("zero", np.sinc, np.array([0.0, 1e-9, -1e-3])),
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
    "logn": [("both", np.emath.logn, complexes(3), complexes(3, seed=1)), ("real n", np.emath.logn, above(), complexes(3))],
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
for f in (np.emath.arccos, np.emath.arcsin, np.emath.arctanh):
    COMPOSED_UFUNCS[f"emath_{f.__name__}"] = [
        ("inside", f, inside(3)),
        ("above", f, above(2, 2)),
        ("below", f, -above(3)),
        ("both", lambda x, f=f: np.real(f(x) ** 2) + np.imag(f(x)), off_zero(5)),
        ("complex", f, small_complexes(3)),
        ("number", f, above()),
        ("zero size", f, real(0, 2)),
    ]
COMPOSED_UFUNCS["emath_power"] = [
    ("positive", np.emath.power, positive(2, 3), shifted(3)),
    ("negative", np.emath.power, negative(3), shifted(3)),
    ("both", lambda x, p: np.real(np.emath.power(x, p) * 1j) + np.abs(np.emath.power(x, p)), off_zero(4), shifted(4)),
    ("a whole number", lambda x: np.emath.power(x, -2), off_zero(4)),
    ("numbers", lambda x: np.emath.power(x, [-1, 0.5, 2]), off_zero(3)),
    ("of a number", lambda p: np.emath.power(-1.5, p), shifted(3)),
    ("of whole numbers", lambda p: np.emath.power([2, -3], p), shifted(2)),
    ("complex", np.emath.power, complexes(3), complexes(3, seed=1)),
    ("keywords", lambda x: np.emath.power(x=x, p=1.5), negative()),
]
# The sides of the branch cuts, selected by the sign of a zero.
for f, make in ((np.arccos, above), (np.arcsin, above), (np.arctanh, above), (np.arccosh, inside)):
    COMPOSED_UFUNCS[f"{f.__name__}_cut"] = [
        ("over the right", lambda x, f=f: f(x.astype(complex)), make(3)),
        ("under the right", lambda x, f=f: f(np.conjugate(x.astype(complex))), make(3)),
        ("over the left", lambda x, f=f: f((-x).astype(complex)), make(3)),
        ("under the left", lambda x, f=f: f(np.conjugate((-x).astype(complex))), make(3)),
    ]
COMPOSED_UFUNCS["arcsinh_cut"] = [
    ("up", lambda x: np.arcsinh(x * 1j), above(3)),
    ("down", lambda x: np.arcsinh(x * -1j), above(3)),
]

# ------------------------------------------------------------------------------------ polynomials and grids


def _times(points: Any, step: Any) -> Any:
    return points * step


# They divide without rounding: what rounding leaves of a leading zero of the remainder would stay in the result.
DIVIDEND, DIVISOR = np.array([1.5, -2.25, 0.75, 1.0, -0.5]), np.array([2.0, -0.5, 1.5])
POLYNOMIALS: dict[str, list[Sketch]] = {
    "polyval": [
        ("vector", np.polyval, real(3), shifted(4)),
        ("number", np.polyval, real(4), shifted()),
        ("one coefficient", np.polyval, real(1), shifted(2)),
        ("of constants", lambda x: np.polyval([2, -1.5, 0, 1], x), real(3)),
        ("at a Python number", lambda p: np.polyval(p, 1.5), real(3)),
        ("at zero", lambda p, x: np.polyval(p, x), real(3), np.zeros(2)),
        ("coefficients in a list", lambda x: np.polyval([1.5, 1, x], x), shifted()),
        ("arrays of coefficients", np.polyval, real(3, 2), shifted(4, 1)),
        ("zero size", np.polyval, real(3), shifted(0)),
    ],
    "polymul": [
        ("vectors", np.polymul, real(3), shifted(4)),
        ("with a list", lambda x: np.polymul(x, [1, 2.5]), real(3)),
        ("numbers", np.polymul, real(), shifted()),
        ("leading zeros left", lambda x, y: np.polymul(np.concatenate([[0, 0], x]), y), real(3), shifted(2)),
        ("leading zeros right", lambda x, y: np.polymul(x, np.concatenate([[0, 0], y])), real(3), shifted(2)),
        ("zero size", lambda x, y: np.polymul(np.concatenate([x, [1.0, 2]]), y), real(0), shifted(2)),
    ],
    "polydiv": [
        ("quotient", lambda u, v: np.polydiv(u, v)[0], real(5), above(3)),
        ("remainder", lambda u, v: np.polydiv(u, v)[1], DIVIDEND, DIVISOR),
        ("both", lambda u, v: np.sum(np.polydiv(u, v)[0] ** 2) * np.polydiv(u, v)[1], DIVIDEND, DIVISOR),
        ("one division", lambda u, v: _times(*np.polydiv(u, v)), DIVIDEND[:4], DIVISOR),
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
        ("constant a node", lambda p, k: cg.polyint(p, k=k), real(3), shifted()),
        ("constants a node", lambda p, k: cg.polyint(p, 2, k), real(3), shifted(2)),
        ("three constants", lambda p, k: cg.polyint(p, 3, k), real(3), shifted(3)),
        ("constants in a list", lambda p, k, c: cg.polyint(p, 2, [k, c]), real(3), shifted(), real()),
        ("more constants than needed", lambda p, k: cg.polyint(p, 2, k), real(3), shifted(3)),
        ("zero size", lambda x: np.polyint(np.concatenate([x, [1.0]])), real(0)),
    ],
    "poly": [
        ("vector", np.poly, real(4)),
        ("one", np.poly, real(1)),
        ("list", lambda x, y: np.poly([x, 1, y]), real(), shifted()),
        ("zero size", lambda x: np.poly(np.concatenate([x, [1.0, 2]])), real(0)),
        ("of a matrix", np.poly, real(3, 3)),
        ("of a symmetric matrix", lambda x: np.poly(x + x.T), real(3, 3)),
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
        ("broadcast", partial(np.linspace, num=3), real(2), shifted(3, 1)),
        ("from a constant", lambda x: np.linspace(0, x, 3), real(2)),
        ("to a list", lambda x: np.linspace(x, [1.5, 2], 3), real()),
        ("axis 1", partial(np.linspace, num=4, axis=1), real(2, 3), shifted(3)),
        ("none", partial(np.linspace, num=0), real(2), shifted(2)),
        ("step", lambda x, y: np.linspace(x, y, 4, retstep=True)[1], real(2), shifted(2)),
        ("points, with the step", lambda x, y: np.linspace(x, y, 3, retstep=True)[0], real(2), shifted(2)),
        ("points times step", lambda x, y: _times(*np.linspace(x, y, 3, retstep=True)), real(2), shifted(2)),
    ],
    "geomspace": [
        ("numbers", partial(np.geomspace, num=4), positive(), above()),
        ("broadcast", partial(np.geomspace, num=3), positive(2), above(3, 1)),
        ("of its precision", lambda x, y: np.geomspace(x, y, 3).astype(x.dtype), positive(2), above(2)),
        ("from a constant", lambda x: np.geomspace(1, x, 3), positive(2)),
        ("axis 1", partial(np.geomspace, num=4, axis=1), positive(2, 3), above(3)),
        ("none", partial(np.geomspace, num=0), positive(2), above(2)),
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
        ("weights", lambda y: np.polyfit(np.arange(4.0), y, 1, w=[1, 2, 0.5, 1]), real(4)),
        ("rcond", lambda y: np.polyfit(np.arange(4.0), y, 2, 1e-10), real(4)),
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

SKETCHES: dict[str, list[Sketch]] = {**FOURIER, **UFUNCS, **POLYNOMIALS}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {**COMPLEX_FOURIER, **COMPLEX_UFUNCS, **COMPLEX_POLYNOMIALS}
# The same checks, for functions that NumPy composes of others and that so have no rule of their own.
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {**COMPOSED_FOURIER, **COMPOSED_UFUNCS, **COMPOSED_POLYNOMIALS}
