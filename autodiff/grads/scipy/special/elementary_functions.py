"""Rules of SciPy's functions made of exponentials and logarithms, and of sums of exponentials."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.array_types import Array, Axis

from ....rules import Rule, general, restore_axes
from ...elementwise_functions import series_near_zero, to_dtype_of
from ...neural_networks import pull_log_softmax, push_log_softmax, softmax_product
from .ufunc_rules import DEGREE, ROOT_2PI, special, special_multi_output

LN2 = math.log(2.0)
LN10 = math.log(10.0)

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
    "xlogy",
    lambda g, out, x, y: g * np.log(to_dtype_of(y, out)),
    lambda g, out, x, y: g * (x / np.where((x == 0) & (y == 0), 1, y)),
)
special_xlog1py_grad = special(
    "xlog1py",
    lambda g, out, x, y: g * np.log1p(to_dtype_of(y, out)),
    lambda g, out, x, y: g * (x / np.where((x == 0) & (y == -1), 1, 1 + y)),
)
special_huber_grad = special(
    "huber",
    lambda g, out, delta, r: g * np.maximum(np.abs(r) - delta, 0),
    lambda g, out, delta, r: g * np.clip(r, -delta, delta),
)


def _pseudo_huber_root(delta: Any, r: Any) -> Any:
    return np.sqrt(1 + (r / delta) ** 2)


special_pseudo_huber_grad = special(
    "pseudo_huber",
    lambda g, out, delta, r: g * (2 * out / delta - r * r / (delta * _pseudo_huber_root(delta, r))),
    lambda g, out, delta, r: g * (r / _pseudo_huber_root(delta, r)),
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


_EXPREL_SLOPE = [(k + 1) / math.factorial(k + 2) for k in range(19)]


def exprel_slope(x: NDArray[Any]) -> Any:
    """Return the derivative of ``expm1(x) / x``."""
    return series_near_zero(x, 1, _EXPREL_SLOPE, lambda far: (np.exp(far) - sc.exprel(far)) / far)


special_exprel_grad = special("exprel", lambda g, out, x: g * exprel_slope(x))

# Exponential and other integrals
special_exp1_grad = special("exp1", lambda g, out, x: -g * (np.exp(-x) / x))
special_expi_grad = special("expi", lambda g, out, x: g * (np.exp(x) / x))
special_expn_grad = special("expn", "n", lambda g, out, n, x: -g * ((np.exp(-x) - (n - 1) * out) / x))
special_spence_grad = special(
    "spence",
    lambda g, out, z: -g * series_near_zero(1 - z, 0.1, [1 / k for k in range(1, 19)], lambda far: -np.log(1 - far) / far),
)
special_owens_t_grad = special(
    "owens_t",
    lambda g, out, h, a: -g * (np.exp(-0.5 * h * h) * sc.erf(a * h / math.sqrt(2)) / (2 * ROOT_2PI)),
    lambda g, out, h, a: g * (np.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))),
)


def _sinh_over(x: NDArray[Any]) -> Any:
    """Compute ``sinh(x) / x``, an even function."""
    coefficients = [1 / math.factorial(2 * k + 1) for k in range(12)]
    return series_near_zero(x * x, 1, coefficients, lambda square: np.sinh(np.sqrt(square)) / np.sqrt(square))


special_sici_grad = special_multi_output("sici", (lambda out, x: np.sinc(x / math.pi), lambda out, x: np.cos(x) / x))
special_shichi_grad = special_multi_output("shichi", (lambda out, x: _sinh_over(x), lambda out, x: np.cosh(x) / x))
special_fresnel_grad = special_multi_output(
    "fresnel", (lambda out, x: np.sin(math.pi / 2 * x * x), lambda out, x: np.cos(math.pi / 2 * x * x))
)


def _modified_fresnel(name: str, sign: int) -> Rule:
    """Declare the rule of the integral of ``exp(sign i t**2)`` from x to infinity, and of its scaled form."""
    factor = complex(np.exp(-sign * 0.25j * math.pi) / math.sqrt(math.pi))
    return special_multi_output(
        name, (lambda out, x: -np.exp(sign * 1j * x * x), lambda out, x: -sign * 2j * x * out[1] - factor)
    )


special_modfresnelp_grad = _modified_fresnel("modfresnelp", 1)
special_modfresnelm_grad = _modified_fresnel("modfresnelm", -1)

# Powers and their inverses
_LOG_SLOPE = [(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(18)]


def _boxcox_slope(log: Any, exponent: Any) -> Any:
    """Return the derivative of ``expm1(exponent * log) / exponent`` with respect to the exponent."""
    return log * log * exprel_slope(exponent * log)


def _inverse_boxcox_slope(y: NDArray[Any], exponent: object) -> Any:
    """Return the derivative of ``log1p(exponent * y) / exponent`` with respect to the exponent."""
    return y * y * series_near_zero(exponent * y, 0.1, _LOG_SLOPE, lambda far: (far / (1 + far) - np.log1p(far)) / (far * far))


special_boxcox_grad = special(
    "boxcox", lambda g, out, x, p: g * x ** (p - 1), lambda g, out, x, p: g * _boxcox_slope(np.log(x), p)
)  # fmt: skip
special_boxcox1p_grad = special(
    "boxcox1p",
    lambda g, out, x, p: g * np.exp((p - 1) * np.log1p(x)),
    lambda g, out, x, p: g * _boxcox_slope(np.log1p(x), p),
)
special_inv_boxcox_grad = special(
    "inv_boxcox",
    lambda g, out, y, p: g * (out / (1 + p * y)),
    lambda g, out, y, p: g * (out * _inverse_boxcox_slope(y, p)),
)
special_inv_boxcox1p_grad = special(
    "inv_boxcox1p",
    lambda g, out, y, p: g * ((out + 1) / (1 + p * y)),
    lambda g, out, y, p: g * ((out + 1) * _inverse_boxcox_slope(y, p)),
)
special_powm1_grad = special(
    "powm1", lambda g, out, x, y: g * (y * x ** (y - 1)), lambda g, out, x, y: g * ((out + 1) * np.log(x))
)  # fmt: skip
special_cotdg_grad = special("cotdg", lambda g, out, x: -g * ((1 + out * out) * DEGREE))
special_radian_grad = special(
    "radian",
    lambda g, out, d, m, s: g * DEGREE,
    lambda g, out, d, m, s: g * (DEGREE / 60),
    lambda g, out, d, m, s: g * (DEGREE / 3600),
)
special_wrightomega_grad = special("wrightomega", lambda g, out, z: g * (out / (1 + out)))


# Tukey's lambda distribution, by the inverse function theorem: its quantiles are boxcox(p) - boxcox(1 - p).
def _tukey_density(out: NDArray[Any], x: NDArray[Any], shape: Any) -> Any:
    """Return the density, 0 outside of the range of the quantiles."""
    is_outside = np.abs(x) * shape >= 1
    p = np.where(is_outside, 0.5, out)
    return np.where(is_outside, 0, 1 / (p ** (shape - 1) + (1 - p) ** (shape - 1)))


def _pull_tukey_shape(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], shape: object) -> Any:
    p = np.where(np.abs(x) * shape >= 1, 0.5, out)
    slope = _boxcox_slope(np.log(p), shape) - _boxcox_slope(np.log1p(-p), shape)
    return -g * (_tukey_density(out, x, shape) * slope)


special_tklmbda_grad = special("tklmbda", lambda g, out, x, shape: g * _tukey_density(out, x, shape), _pull_tukey_shape)

# Sums of exponentials, which SciPy implements in Python


def _shares(out: NDArray[Any], a: NDArray[Any], axis: Axis, keepdims: bool, return_sign: bool) -> Any:
    """Return the share of each term in the sum, without its weight."""
    if return_sign and np.result_type(a).kind == "c":
        raise TypeError("scipy.special.logsumexp: return_sign=True is not analytic for complex numbers. Omit it")
    log, sign = out if return_sign else (out, None)
    log = restore_axes(log, a, axis, keepdims)
    share = np.exp(a - np.where(log == -np.inf, 0, log))
    return share if sign is None else share * restore_axes(sign, a, axis, keepdims)


def _restore_cotangent(g: Any, a: NDArray[Any], axis: Axis, keepdims: bool, return_sign: object) -> Any:
    return restore_axes(g[0] if return_sign else g, a, axis, keepdims)


def _with_sign(return_sign: bool, log: object) -> Any:
    """Return the tangent of the result, given that of the logarithm; the sign is constant."""
    return (log, np.zeros_like(log)) if return_sign else log


def _pull_terms(
    g: Any,
    out: NDArray[Any],
    a: NDArray[Any],
    b: NDArray[Any] | tuple[Any, ...] | None = None,
    axis: Axis = None,
    keepdims: bool = False,
    return_sign: Any = False,
) -> Any:
    if return_sign and g[0] is None:
        return None
    share = _shares(out, a, axis, keepdims, return_sign)
    share = share if b is None else np.where(b == 0, 0, b * share)
    return _restore_cotangent(g, share, axis, keepdims, return_sign) * share


def _pull_weights(
    g: NDArray[Any] | tuple[Any, ...],
    out: NDArray[Any],
    a: NDArray[Any],
    b: NDArray[Any],
    axis: Axis = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    if return_sign and g[0] is None:
        return None
    share = _shares(out, np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)), axis, keepdims, return_sign)
    return _restore_cotangent(g, share, axis, keepdims, return_sign) * share


def _push_terms(
    t: NDArray[Any],
    out: NDArray[Any],
    a: NDArray[Any],
    b: NDArray[Any] | tuple[Any, ...] | None = None,
    axis: Axis = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    share = _shares(out, a, axis, keepdims, return_sign)
    share = share if b is None else np.where(b == 0, 0, b * share)
    return _with_sign(return_sign, np.sum(t * share, axis=axis, keepdims=bool(keepdims)))


def _push_weights(
    t: Array, out: Any, a: NDArray[Any], b: NDArray[Any], axis: Axis = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    share = _shares(out, np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)), axis, keepdims, return_sign)
    return _with_sign(return_sign, np.sum(t * share, axis=axis, keepdims=bool(keepdims)))


scipy_special_logsumexp_grad = general("scipy_special_logsumexp", _pull_terms, _pull_weights).tangent(_push_terms, _push_weights)


def _along_all_axes(formula: Callable[..., Any]) -> Any:
    """Return a formula with None as the default of `axis`."""
    return functools.partial(formula, axis=None)


scipy_special_softmax_grad = general("scipy_special_softmax", _along_all_axes(softmax_product)).tangent(
    _along_all_axes(softmax_product)
)
scipy_special_log_softmax_grad = general("scipy_special_log_softmax", _along_all_axes(pull_log_softmax)).tangent(
    _along_all_axes(push_log_softmax)
)
