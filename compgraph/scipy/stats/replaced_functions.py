"""Replacements in the rebound code of ``scipy.stats``: statistics, kernel density estimates, multivariate distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special as sc
import scipy.stats as st
from scipy.stats import _multivariate
from scipy.stats._axis_nan_policy import _axis_nan_policy_factory
from scipy.stats._covariance import CovViaPSD
from scipy.stats._stats_py import _validate_distribution

from ...array_types import Operand
from ...interception import unpatched
from ...values import Value
from ..own_code import contains_node, rebind, replace_functions


def _yeojohnson_transform(x: Any, lmbda: Any, xp: object = None) -> Any:
    """As in SciPy, whose formula at the powers 0 and 2 has no derivative with respect to the power."""
    is_positive = x >= 0
    size, power = np.where(is_positive, x, -x), np.where(is_positive, lmbda, 2 - lmbda)
    return np.where(is_positive, 1.0, -1.0) * sc.boxcox1p(size, power)


def _boxcox_llf(data: Any, axis: int = 0, *, lmb: Any) -> Any:
    """As in SciPy, whose formula at the power 0 has no derivative with respect to the power."""
    variance = np.var(sc.boxcox(data, lmb), axis=axis)
    return (lmb - 1) * np.sum(np.log(data), axis=axis) - data.shape[axis] / 2 * np.log(variance)


_validate: Any = rebind(_validate_distribution)


def _cdf_distance(p: int, u_values: object, v_values: object, u_weights: object = None, v_weights: object = None) -> Any:
    """As in SciPy, which calls the method ``searchsorted`` with a node; that of a plain array converts the node."""
    (u, u_weights), (v, v_weights) = _validate(u_values, u_weights), _validate(v_values, v_weights)
    points = np.sort(np.concatenate([u, v]))
    difference = np.abs(_empirical_cdf(u, u_weights, points[:-1]) - _empirical_cdf(v, v_weights, points[:-1]))
    return np.sum(difference**p * np.diff(points)) ** (1 / p)


def _empirical_cdf(values: Any, weights: Any, points: Operand) -> Any:
    """The empirical distribution function of a weighted sample, at `points`."""
    order = np.argsort(values)
    counts = np.searchsorted(values[order], points, side="right")
    if weights is None:
        return counts / values.size
    total = np.concatenate([np.zeros(1), np.cumsum(weights[order])])
    return total[counts] / total[-1]


_along_axis = _axis_nan_policy_factory(lambda x: x, n_outputs=1, default_axis=0, result_to_tuple=lambda x, _: (x,))

# -------------------------------------------------------------------------------------------- kernel density estimates


class _KernelEstimate:
    """Replacement of the Cython functions ``gaussian_kernel_estimate`` and its logarithm, which SciPy indexes by a dtype."""

    def __init__(self, is_log: bool) -> None:
        self.is_log = is_log

    def __getitem__(self, dtype: str) -> Callable[..., Any]:
        return self.estimate

    def estimate(self, points: Any, values: object, xi: Any, cho_cov: Any, dtype: object = None) -> Any:
        """Return a weighted sum of the kernels at `points`, of shape (n, d), for each of `xi`, of shape (m, d)."""
        white, data = np.linalg.solve(cho_cov, np.transpose(xi)), np.linalg.solve(cho_cov, np.transpose(points))
        square = np.sum((data[:, :, None] - white[:, None, :]) ** 2, axis=0)
        log_scale = np.sum(np.log(np.diagonal(cho_cov))) + 0.5 * xi.shape[1] * math.log(2 * math.pi)
        logs = -0.5 * square - log_scale
        sums = sc.logsumexp(logs, b=values, axis=0) if self.is_log else np.sum(values * np.exp(logs), axis=0)
        return sums[:, None]


replace_functions({
    "_yeojohnson_transform": _yeojohnson_transform,
    "_boxcox_llf": rebind(_along_axis(_boxcox_llf)),
    "_cdf_distance": _cdf_distance,
    "gaussian_kernel_estimate": _KernelEstimate(False),
    "gaussian_kernel_estimate_log": _KernelEstimate(True),
})  # fmt: skip


def _raising_method(name: str, advice: str) -> Callable[..., Any]:
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        if any(map(contains_node, (self, *args, *kwargs.values()))):
            raise TypeError(f"scipy.stats.gaussian_kde.{name} is not recorded. Use {advice}")
        return unpatched(getattr(st.gaussian_kde, name))(self, *args, **kwargs)

    return method


_KERNEL_UNSUPPORTED = {
    "resample": "plain data (x.value), because draws have no derivative",
    "integrate_box": "the sum of evaluate() at the points of a quadrature",
    "marginal": "gaussian_kde of these rows of the data",
}
_KERNEL_METHODS = "evaluate pdf logpdf set_bandwidth integrate_gaussian integrate_box_1d integrate_kde"
_KERNEL_CODE = [f"gaussian_kde.{name}" for name in _KERNEL_METHODS.split()]
_KERNEL_REPLACEMENTS = {f"gaussian_kde.{name}": _raising_method(name, advice) for name, advice in _KERNEL_UNSUPPORTED.items()}

# -------------------------------------------------------------------------------------------- multivariate distributions


class _CholeskyFactor:
    """Replacement of SciPy's ``_PSD`` and ``CovViaPSD`` for a matrix that is a node, by its Cholesky factor.

    SciPy uses eigenvectors, which have no derivative where two eigenvalues are equal.
    """

    def __init__(self, matrix: Any) -> None:
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(
                "The covariance matrix is not positive definite, and a singular one has no derivative. Add a small multiple of "
                "np.eye(n)."
            ) from error
        self.covariance = self._M = matrix
        self.rank = np.asarray(matrix.shape[-1])
        self.log_pdet = 2 * np.sum(np.log(np.diagonal(factor)))
        self.U = np.transpose(np.linalg.inv(factor))

    def whiten(self, x: Any) -> Any:
        """Return vectors, along the last axis, whose covariance is the identity."""
        return x @ self.U

    def _support_mask(self, x: object) -> bool:
        return True


def _factorize(matrix: object, **options: object) -> Any:
    return _CholeskyFactor(matrix) if isinstance(matrix, Value) else _multivariate._PSD(matrix, **options)


def _covariance_of(factor: object) -> Any:
    return factor if isinstance(factor, _CholeskyFactor) else CovViaPSD(factor)


def _get_blas_funcs(names: str, arrays: tuple[Any, ...] = ()) -> Any:
    """As `scipy.linalg.get_blas_funcs`; for nodes, replace ``trsm``, which solves a triangular system."""
    if names != "trsm" or not any(isinstance(a, Value) for a in arrays):
        return scipy.linalg.get_blas_funcs(names, arrays)
    return lambda alpha, a, b, side=0, lower=0: alpha * scipy.linalg.solve_triangular(a, b, lower=bool(lower))


replace_functions({"_PSD": _factorize, "CovViaPSD": _covariance_of, "get_blas_funcs": _get_blas_funcs})


class FrozenDistribution:
    """A frozen distribution with nodes among its parameters.

    Parameters
    ----------
    distribution : object
        The distribution of SciPy, ``scipy.stats.multivariate_normal``.
    args, kwargs : tuple, dict
        The parameters, as its methods take them.
    """

    def __init__(self, distribution: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kwargs.pop("seed", None)
        self._distribution, self._args, self._kwargs = distribution, args, kwargs

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self._distribution), name, None)
        if not callable(method) or name.startswith("_"):
            raise AttributeError(f"a frozen {type(self._distribution).__name__} of nodes has no attribute {name!r}")
        takes_point = name in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf")

        def call(*args: object, **kwargs: object) -> Any:
            point = args[:1] if takes_point else ()
            return method(self._distribution, *point, *self._args, *args[len(point) :], **{**self._kwargs, **kwargs})

        return call


def _freeze(self: Any, *args: object, **kwargs: object) -> Any:
    return FrozenDistribution(self, args, kwargs)


def _frozen_method(distribution: str, method: str, *names: str) -> Callable[..., Any]:
    """Return a method of a distribution frozen with plain parameters, for a point that is a node."""
    return lambda self, x: getattr(getattr(st, distribution), method)(x, *[getattr(self, name) for name in names])


_DENSITIES = {  # each with the attributes of the frozen distribution that are its parameters
    "multivariate_normal": ("pdf", "mean cov_object"),
    "multivariate_t": ("pdf", "loc shape df"),
    "dirichlet": ("pdf", "alpha"),
    "wishart": ("pdf", "df scale"),
    "invwishart": ("pdf", "df scale"),
    "multinomial": ("pmf", "n p"),
}
_OTHERS = "multivariate_normal.entropy dirichlet.mean dirichlet.var dirichlet.cov dirichlet.entropy Covariance.whiten"
OWN_CODE = ["gaussian_kde", *_KERNEL_CODE, *_OTHERS.split()]
OWN_CODE += [f"{name}.{log}{method}" for name, (method, _) in _DENSITIES.items() for log in ("", "log")]
REPLACEMENTS: dict[str, Callable[..., Any]] = {
    **_KERNEL_REPLACEMENTS,
    **{f"{name}.__call__": _freeze for name in _DENSITIES},
    **{
        f"_multivariate.{name}_frozen.{log}{method}": _frozen_method(name, log + method, *parameters.split())
        for name, (method, parameters) in _DENSITIES.items()
        for log in ("", "log")
    },
}
ALWAYS = frozenset([*_KERNEL_CODE, *_KERNEL_REPLACEMENTS]) - {"gaussian_kde.set_bandwidth"}
