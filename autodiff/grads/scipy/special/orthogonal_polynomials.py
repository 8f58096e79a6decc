"""Rules of SciPy's orthogonal polynomials and hypergeometric functions."""

from __future__ import annotations

import numpy as np
import scipy.special as sc

from .ufunc_rules import special

# Hypergeometric functions
special_hyp0f1_grad = special("hyp0f1", "v", lambda g, out, v, z: g * (sc.hyp0f1(v + 1, z) / v))
special_hyp1f1_grad = special(
    "hyp1f1",
    "a",
    "b",
    lambda g, out, a, b, x: g * (sc.hyp1f1(a + 1, b + 1, x) * (a / b)),
)
special_hyperu_grad = special(
    "hyperu",
    "a",
    "b",
    lambda g, out, a, b, x: -g * (sc.hyperu(a + 1, b + 1, x) * a),
)
special_hyp2f1_grad = special(
    "hyp2f1",
    "a",
    "b",
    "c",
    lambda g, out, a, b, c, z: g * (sc.hyp2f1(a + 1, b + 1, c + 1, z) * (a * b / c)),
)


# Orthogonal polynomials, whose derivatives are polynomials of lower degree, some of another family
special_eval_jacobi_grad = special(
    "eval_jacobi",
    "n",
    "alpha",
    "beta",
    lambda g, out, n, a, b, x: g * (sc.eval_jacobi(n - 1, a + 1, b + 1, x) * (0.5 * (n + a + b + 1))),
)
special_eval_sh_jacobi_grad = special(
    "eval_sh_jacobi",
    "n",
    "p",
    "q",
    lambda g, out, n, p, q, x: g * (sc.eval_jacobi(n - 1, p - q + 1, q, 2 * x - 1) * ((n + p) / sc.binom(2 * n + p - 1, n))),
)
special_eval_legendre_grad = special(
    "eval_legendre", "n", lambda g, out, n, x: g * (sc.eval_jacobi(n - 1, 1, 1, x) * (0.5 * (n + 1)))
)
special_eval_sh_legendre_grad = special(
    "eval_sh_legendre", "n", lambda g, out, n, x: g * (sc.eval_jacobi(n - 1, 1, 1, 2 * x - 1) * (n + 1.0))
)
special_eval_gegenbauer_grad = special(
    "eval_gegenbauer", "n", "alpha", lambda g, out, n, a, x: g * (sc.eval_gegenbauer(n - 1, a + 1, x) * (2.0 * a))
)
special_eval_chebyt_grad = special("eval_chebyt", "n", lambda g, out, n, x: g * (n * sc.eval_chebyu(n - 1, x)))
special_eval_chebyu_grad = special("eval_chebyu", "n", lambda g, out, n, x: g * (2 * sc.eval_gegenbauer(n - 1, 2, x)))
special_eval_chebyc_grad = special("eval_chebyc", "n", lambda g, out, n, x: g * (n * sc.eval_chebyu(n - 1, 0.5 * x)))
special_eval_chebys_grad = special("eval_chebys", "n", lambda g, out, n, x: g * sc.eval_gegenbauer(n - 1, 2, 0.5 * x))
special_eval_sh_chebyt_grad = special(
    "eval_sh_chebyt", "n", lambda g, out, n, x: g * (2.0 * n * sc.eval_chebyu(n - 1, 2 * x - 1))
)
special_eval_sh_chebyu_grad = special(
    "eval_sh_chebyu", "n", lambda g, out, n, x: g * (4 * sc.eval_gegenbauer(n - 1, 2, 2 * x - 1))
)
special_eval_laguerre_grad = special("eval_laguerre", "n", lambda g, out, n, x: -g * sc.eval_genlaguerre(n - 1, 1, x))
special_eval_genlaguerre_grad = special(
    "eval_genlaguerre", "n", "alpha", lambda g, out, n, a, x: -g * sc.eval_genlaguerre(n - 1, a + 1, x)
)
# SciPy's Hermite polynomials do not accept negative degrees.
special_eval_hermite_grad = special(
    "eval_hermite", "n", lambda g, out, n, x: g * (2.0 * n * sc.eval_hermite(np.maximum(n - 1, 0), x))
)
special_eval_hermitenorm_grad = special(
    "eval_hermitenorm", "n", lambda g, out, n, x: g * (1.0 * n * sc.eval_hermitenorm(np.maximum(n - 1, 0), x))
)
special_lpmv_grad = special(
    "lpmv",
    "m",
    "v",
    lambda g, out, m, v, x: g * (((v + 1) * x * out - (v - m + 1) * sc.lpmv(m, v + 1, x)) / (1 - x * x)),
)
