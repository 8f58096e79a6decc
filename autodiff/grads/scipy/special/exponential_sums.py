"""Rules of functions that ``scipy.special`` implements in Python: sums of exponentials, spherical Bessel functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
from numpy.typing import NDArray

from compgraph.array_types import Array, Axis

from ....rules import Rule, elementwise, general, restore_axes
from ...neural_networks import pull_log_softmax, push_log_softmax, softmax_product

# -------------------------------------------------------------------------------------------- sums of exponentials


def _weights(out: NDArray[Any], a: NDArray[Any], axis: Axis, keepdims: bool, return_sign: bool) -> Any:
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
    share = _weights(out, a, axis, keepdims, return_sign)
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
    share = _weights(out, np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)), axis, keepdims, return_sign)
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
    share = _weights(out, a, axis, keepdims, return_sign)
    share = share if b is None else np.where(b == 0, 0, b * share)
    return _with_sign(return_sign, np.sum(t * share, axis=axis, keepdims=bool(keepdims)))


def _push_weights(
    t: Array, out: Any, a: NDArray[Any], b: NDArray[Any], axis: Axis = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    share = _weights(out, np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)), axis, keepdims, return_sign)
    return _with_sign(return_sign, np.sum(t * share, axis=axis, keepdims=bool(keepdims)))


scipy_special_logsumexp_grad = general("scipy_special_logsumexp", _pull_terms, _pull_weights).tangent(_push_terms, _push_weights)


def _over_all(formula: Callable[..., Any]) -> Any:
    """Return a formula with None as the default of `axis`."""
    return functools.partial(formula, axis=None)


scipy_special_softmax_grad = general("scipy_special_softmax", _over_all(softmax_product)).tangent(_over_all(softmax_product))
scipy_special_log_softmax_grad = general("scipy_special_log_softmax", _over_all(pull_log_softmax)).tangent(
    _over_all(push_log_softmax)
)


# -------------------------------------------------------------------------------------------- spherical Bessel functions


def _spherical_bessel(name: str, below: int, above: int) -> Rule:
    """Declare a rule by ``(2 n + 1) f_n' = below n f_(n-1) + above (n + 1) f_(n+1)``, DLMF 10.51.2 and 10.51.5.

    The formula does not divide by the argument, so it is valid at 0.
    """

    def formula(g: NDArray[Any], out: NDArray[Any], z: NDArray[Any], n: object, derivative: bool = False) -> Any:
        function = getattr(sc, name)
        if not derivative:
            return g * function(n, z, True)
        n = np.asarray(n)
        lower, upper = function(np.maximum(n - 1, 0), z, True), function(n + 1, z, True)
        return g * ((below * n * lower + above * (n + 1) * upper) / (2 * n + 1))

    return elementwise(f"scipy_special_{name}", formula)


scipy_special_spherical_jn_grad = _spherical_bessel("spherical_jn", 1, -1)
scipy_special_spherical_yn_grad = _spherical_bessel("spherical_yn", 1, -1)
scipy_special_spherical_in_grad = _spherical_bessel("spherical_in", 1, 1)
scipy_special_spherical_kn_grad = _spherical_bessel("spherical_kn", -1, -1)
