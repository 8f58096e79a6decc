"""Derivatives of the functions that ``scipy.special`` implements in Python."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.special

import autodiff as ad
from tests.support.arguments import real
from tests.support.scipy_checks import Rows, functions

sc: Any = importlib.import_module("scipy.special")
above = 1.5 + np.abs(real(3, seed=2))

CASES: dict[str, list[tuple[Any, ...]]] = {
    "logsumexp": [
        ("all", sc.logsumexp, real(2, 3)),
        ("a number", sc.logsumexp, real()),
        ("an axis", lambda a: sc.logsumexp(a, axis=0), real(2, 3)),
        ("axes, kept", lambda a: sc.logsumexp(a, axis=(0, -1), keepdims=True), real(2, 3, 2)),
        ("weights", lambda a, b: sc.logsumexp(a, 1, np.exp(b)), real(2, 3), real(2, 3, seed=1)),
        ("weights, broadcast", lambda a, b: sc.logsumexp(a, b=np.exp(b), axis=1), real(2, 1), real(3, seed=1)),
        ("signs", lambda a, b: sc.logsumexp(a, axis=1, b=b - 3, return_sign=True)[0], real(2, 3), real(2, 3, seed=1)),
        ("complex", lambda a: sc.logsumexp(a, axis=0), real(3, 2) + 0.5j * real(3, 2, seed=1)),
        ("a list", lambda a, b: sc.logsumexp([a, b]), real(), real(seed=1)),
        ("nothing of weight 0", lambda a: sc.logsumexp(a, b=[1.0, 0.0, 2.0]), real(3)),
    ],
    "softmax": [
        ("all", sc.softmax, real(2, 3)),
        ("an axis", lambda x: sc.softmax(x, axis=-1), real(2, 3)),
        ("axes", lambda x: sc.softmax(x, axis=(0, 2)), real(2, 3, 2)),
        ("a number", sc.softmax, real()),
    ],
    "log_softmax": [
        ("all", sc.log_softmax, real(2, 3)),
        ("an axis", lambda x: sc.log_softmax(x, axis=0), real(2, 3)),
        ("one axis of one", lambda x: sc.log_softmax(x, 0), real(3)),
    ],
    "softplus": [("", sc.softplus, real(2, 3))],
    "sinc": [("", sc.sinc, real(2, 3))],
    "polygamma": [
        ("trigamma", lambda x: sc.polygamma(1, x), above),
        ("digamma", lambda x: sc.polygamma(0, x), above),
        ("orders", lambda x: sc.polygamma([[0], [1], [3]], x), above),
    ],
    "multigammaln": [
        ("", lambda a: sc.multigammaln(a, 3), above),
        ("a number", lambda a: sc.multigammaln(a, 2), 2.5),
        ("dimension 1", lambda a: sc.multigammaln(a, 1), above),
    ],
    "comb": [
        ("both", sc.comb, above + 3, above),
        ("none to choose", lambda n: sc.comb(n, [1, 9, 2]), above + 3),
        ("with repetition", lambda n, k: sc.comb(n, k, repetition=True), above + 3, above),
    ],
    "perm": [("both", sc.perm, above + 3, above), ("none to choose", lambda n: sc.perm(n, [1, 9, 2]), above + 3)],
    "factorial": [
        ("", sc.factorial, above),
        ("negative", sc.factorial, np.array([-1.5, 0.5, 2.5])),
        ("extended", lambda x: sc.factorial(x, extend="complex"), np.array([-1.5, 0.3, 2.5])),
    ],
    "zeta": [
        ("Riemann", sc.zeta, above),
        ("Riemann, below 1", sc.zeta, np.array([0.3, -0.7, -3.2])),
        ("Hurwitz", sc.zeta, above, above[::-1].copy()),
    ],
    "gammainc": [(f.__name__, f, [0.1, 1.5, 40.0], [[0.2], [1.2], [30.0]]) for f in (sc.gammainc, sc.gammaincc)],
    "gammaincinv": [(f.__name__, f, [0.5, 1.5, 4.0], [[0.2], [0.7]]) for f in (sc.gammaincinv, sc.gammainccinv)],
    "betainc": [(f.__name__, f, [0.3, 1.5, 4.0], [2.5, 0.4, 7.0], [[0.2], [0.7]]) for f in (sc.betainc, sc.betaincc)],
    "betaincinv": [(f.__name__, f, [0.8, 1.5, 4.0], [2.5, 0.9, 7.0], [[0.2], [0.7]]) for f in (sc.betaincinv, sc.betainccinv)],
    "stdtr": [("", sc.stdtr, [0.8, 1.5, 40.0], [[-1.2], [0.7]]), ("in the middle", lambda df: sc.stdtr(df, 0.0), above)],
    "stdtrit": [("", sc.stdtrit, [1.8, 2.5, 40.0], [[0.2], [0.7]])],
    "fdtr": [(f.__name__, f, [1.8, 2.5, 4.0], [3.0, 2.0, 9.0], [[0.4], [1.7]]) for f in (sc.fdtr, sc.fdtrc)],
    "fdtri": [("", sc.fdtri, [1.8, 2.5, 4.0], [3.0, 2.0, 9.0], [[0.4], [0.7]])],
    "chdtr": [(f.__name__, f, [1.8, 2.5, 4.0], [[0.4], [0.7]]) for f in (sc.chdtr, sc.chdtrc, sc.chdtri)],
    "gdtr": [(f.__name__, f, [1.8, 2.5, 4.0], [1.4, 2.2, 0.7], [[0.4], [0.7]]) for f in (sc.gdtr, sc.gdtrc, sc.gdtrix)],
    "diric": [
        ("odd", lambda x: sc.diric(x, 5), real(4) * 3),
        ("even", lambda x: sc.diric(x, 4), real(4) * 5),
        ("at multiples of 2 pi", lambda x: sc.diric(x, [[4], [5]]), np.array([0.0, 2 * np.pi])),
    ],
    "assoc_laguerre": [("", lambda x: sc.assoc_laguerre(x, 3, 1.5), above)],
    "lambertw": [("", lambda x: sc.lambertw(x).real, above), ("a branch", lambda x: sc.lambertw(x, k=1), above + 0.5j)],
    "jvp": [("", lambda z: sc.jvp(1.5, z), above), ("order 0", lambda z: sc.jvp(1.5, z, 0), above)],
    "yvp": [("", lambda z: sc.yvp(1.5, z, 2), above)],
    "ivp": [("", lambda z: sc.ivp(1.5, z), above)],
    "kvp": [("", lambda z: sc.kvp(1.5, z), above)],
    "h1vp": [("", lambda z: sc.h1vp(1.5, z), above)],
    "h2vp": [("", lambda z: sc.h2vp(1.5, z), above)],
    **{
        f"spherical_{kind}n": [
            ("order 0", lambda z, f=f: f(0, z), above),
            ("orders", lambda z, f=f: f(np.array([[1], [2]]), z), above),
            ("the derivative", lambda z, f=f: f(2, z, derivative=True), above),
            ("complex", lambda z, f=f: f(1, z), above + 0.5j),
            ("negative", lambda z, f=f: f(1, z, True), -above),
        ]
        for kind in "jyik"
        for f in [getattr(sc, f"spherical_{kind}n")]
    },
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_special_python_functions_derivatives(rows: Rows) -> None:
    rows.check(jacobians=True)


def test_mathieu_characteristic_values_raise() -> None:
    for function in (scipy.special.mathieu_a, scipy.special.mathieu_b):
        with pytest.raises(TypeError, match="no derivative with respect to its argument q is known"):
            ad.grad(lambda q, function=function: function(2, q))(1.5)
