"""SciPy's distributions of vectors and matrices: densities, in steps of linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from .samples import floating

_LOG_2PI = math.log(2 * math.pi)


# -------------------------------------------------------------------------------------------- parameters


def _factor(matrix: Any, what: str) -> Any:
    """The Cholesky factor, of the lower triangle, as SciPy reads it."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"{what} is not positive definite; of a singular one no derivative is known: add a small multiple of np.eye(n)"
        ) from error


def _log_det(factor: Any) -> Any:
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _location(mean: Any, cov: Any) -> tuple[Any, Any]:
    """A vector and a matrix of one size; a number stands for so many equal variances, a vector for variances."""
    if isinstance(cov, st.Covariance):
        cov = cov.covariance
    cov = floating(1.0 if cov is None else cov)
    size = 1 if mean is None else np.size(mean)
    if mean is None and cov.ndim == 2:
        size = cov.shape[0]
    elif mean is None and cov.ndim == 1:
        size = cov.size
    mean = np.reshape(floating(np.zeros(size) if mean is None else mean), (-1,))
    if cov.ndim == 0:
        cov = cov * np.eye(size)
    elif cov.ndim == 1:
        cov = np.diag(cov)
    if cov.shape != (size, size):
        raise ValueError(f"Array 'cov' must be square if it is two dimensional, of size {size}, but cov.shape = {cov.shape}.")
    return mean, cov


def _rows(x: Any, size: int) -> Any:
    x = floating(x)
    if x.ndim == 0:
        return np.reshape(x, (1,))
    return x if x.ndim > 1 else x[:, None] if size == 1 else x[None, :]


def _squeezed(value: Any) -> Any:
    return np.squeeze(value)


def _distance(x: Any, mean: Any, cov: Any, what: str) -> tuple[Any, Any, int]:
    """The square of Mahalanobis's, the logarithm of the determinant, and the size."""
    factor, size = _factor(cov, what), mean.shape[0]
    away = np.reshape(_rows(x, size) - mean, (-1, size))
    white = np.linalg.solve(factor, np.transpose(away))
    return np.reshape(np.sum(white * white, axis=0), np.shape(_rows(x, size))[:-1]), _log_det(factor), size


# -------------------------------------------------------------------------------------------- densities


def _normal(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    square, log_det, size = _distance(x, *_location(mean, cov), "the covariance matrix")
    return _squeezed(-0.5 * (size * _LOG_2PI + log_det + square))


def _normal_entropy(self: Any, mean: Any = None, cov: Any = 1) -> Any:
    mean, cov = _location(mean, cov)
    return 0.5 * (mean.shape[0] * (_LOG_2PI + 1) + _log_det(_factor(cov, "the covariance matrix")))


def _student(self: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    square, log_det, size = _distance(x, *_location(loc, shape), "the shape matrix")
    df = floating(df)
    if np.all(np.isinf(df)):
        return _squeezed(-0.5 * (size * _LOG_2PI + log_det + square))
    half = 0.5 * (df + size)
    scale = sc.gammaln(half) - sc.gammaln(0.5 * df) - 0.5 * size * np.log(df * math.pi) - 0.5 * log_det
    return _squeezed(scale - half * np.log1p(square / df))


def _whole(x: Any, alpha: Any) -> tuple[Any, Any]:
    """Shares that sum to one, of which the last may be left out."""
    x, alpha = floating(x), floating(alpha)
    if np.any(alpha <= 0):
        raise ValueError("All parameters must be greater than 0")
    if x.shape[0] + 1 == alpha.shape[0]:
        x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
    elif x.shape[0] != alpha.shape[0]:
        raise ValueError("Vector 'x' must have either the same number of entries as, or one entry fewer than, parameter vector 'a'.")
    if np.any(x < 0) or np.any(x > 1) or np.any(np.abs(np.sum(x, axis=0) - 1) > 1e-9):
        raise ValueError("The input vector 'x' must lie within the normal simplex.")
    return x, alpha


def _log_beta(alpha: Any) -> Any:
    return np.sum(sc.gammaln(alpha)) - sc.gammaln(np.sum(alpha))


def _dirichlet(self: Any, x: Any, alpha: Any) -> Any:
    x, alpha = _whole(x, alpha)
    column = np.reshape(alpha, (-1,) + (1,) * (x.ndim - 1))
    return _squeezed(np.sum(sc.xlogy(column - 1, x), axis=0) - _log_beta(alpha))


def _dirichlet_mean(self: Any, alpha: Any) -> Any:
    alpha = floating(alpha)
    return _squeezed(alpha / np.sum(alpha))


def _dirichlet_var(self: Any, alpha: Any) -> Any:
    alpha = floating(alpha)
    total = np.sum(alpha)
    return _squeezed(alpha * (total - alpha) / (total * total * (total + 1)))


def _dirichlet_cov(self: Any, alpha: Any) -> Any:
    alpha = floating(alpha)
    total = np.sum(alpha)
    share = alpha / total
    return (np.diag(share) - share[:, None] * share) / (total + 1)


def _dirichlet_entropy(self: Any, alpha: Any) -> Any:
    alpha = floating(alpha)
    total = np.sum(alpha)
    inner = (total - alpha.shape[0]) * sc.psi(total) - np.sum((alpha - 1) * sc.psi(alpha))
    return _squeezed(_log_beta(alpha) + inner)


def _matrices(x: Any, scale: Any) -> tuple[Any, Any, int]:
    """Matrices one after another, as SciPy has them along the last axis; a number is a matrix of one."""
    x, scale = floating(x), floating(scale)
    scale = np.reshape(scale, (1, 1)) if scale.ndim == 0 else np.diag(scale) if scale.ndim == 1 else scale
    size = scale.shape[0]
    if x.ndim == 0:
        x = x * np.eye(size)[:, :, None]
    elif x.ndim == 1:
        x = np.reshape(x, (1, 1, -1)) if size == 1 else np.diag(x)[:, :, None]
    elif x.ndim == 2:
        x = x[:, :, None]
    return np.moveaxis(x, -1, 0), scale, size


def _solved(factor: Any, right: Any) -> Any:
    """The system of the matrix that has this Cholesky factor."""
    return np.linalg.solve(np.swapaxes(factor, -1, -2), np.linalg.solve(factor, right))


def _trace(x: Any) -> Any:
    return np.sum(np.diagonal(x, axis1=-2, axis2=-1), axis=-1)


def _wishart(self: Any, x: Any, df: Any, scale: Any) -> Any:
    x, scale, size = _matrices(x, scale)
    df, factor = floating(df), _factor(scale, "scale")
    log_x = _log_det(_factor(x, "x"))
    constant = 0.5 * df * (size * math.log(2) + _log_det(factor)) + sc.multigammaln(0.5 * df, size)
    return _squeezed(0.5 * (df - size - 1) * log_x - 0.5 * _trace(_solved(factor, x)) - constant)


def _invwishart(self: Any, x: Any, df: Any, scale: Any) -> Any:
    x, scale, size = _matrices(x, scale)
    df, factor = floating(df), _factor(x, "x")
    log_scale = _log_det(_factor(scale, "scale"))
    constant = 0.5 * df * (size * math.log(2) - log_scale) + sc.multigammaln(0.5 * df, size)
    trace = _trace(_solved(factor, np.broadcast_to(scale, x.shape)))
    return _squeezed(-0.5 * (df + size + 1) * _log_det(factor) - 0.5 * trace - constant)


def _multinomial(self: Any, x: Any, n: Any, p: Any) -> Any:
    """The last share is what the others leave."""
    x, n, p = floating(x), floating(n), floating(p)
    p = np.concatenate([p[..., :-1], 1 - np.sum(p[..., :-1], axis=-1, keepdims=True)], axis=-1)
    if np.any(p < 0) or np.any(p > 1) or np.any(np.sum(x, axis=-1) != n) or np.any(x < 0):
        raise TypeError("scipy.stats.multinomial: of counts that are not a sample of n, or no shares, give plain numbers (x.value)")
    return sc.gammaln(n + 1) + np.sum(sc.xlogy(x, p) - sc.gammaln(x + 1), axis=-1)


# -------------------------------------------------------------------------------------------- methods


def _raised(log: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: np.exp(log(*args, **kwargs))


def _of_frozen(distribution: str, method: str, *names: str) -> Callable[..., Any]:
    """A method of what was made of plain parameters, for nodes."""

    def called(self: Any, x: Any) -> Any:
        return getattr(getattr(st, distribution), method)(x, *[_parameter(self, name) for name in names])

    return called


def _parameter(frozen: Any, name: str) -> Any:
    return getattr(frozen, name)


class Frozen:
    """A distribution with parameters of which some are nodes.

    Parameters
    ----------
    distribution : object
        SciPy's.
    args, kwargs
        As its methods take them.
    """

    def __init__(self, distribution: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kwargs.pop("seed", None)
        self._distribution, self._args, self._kwargs = distribution, args, kwargs

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self._distribution), name, None)
        if not callable(method) or name.startswith("_"):
            raise AttributeError(f"{type(self._distribution).__name__} of nodes has no {name!r}")
        takes_point = name in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf")

        def called(*args: Any, **kwargs: Any) -> Any:
            point = args[:1] if takes_point else ()
            return method(self._distribution, *point, *self._args, *args[len(point) :], **{**self._kwargs, **kwargs})

        return called


def _freezing(self: Any, *args: Any, **kwargs: Any) -> Any:
    return Frozen(self, args, kwargs)


_DENSITIES: dict[str, tuple[Callable[..., Any], str, tuple[str, ...]]] = {
    "multivariate_normal": (_normal, "pdf", ("mean", "cov_object")),
    "multivariate_t": (_student, "pdf", ("loc", "shape", "df")),
    "dirichlet": (_dirichlet, "pdf", ("alpha",)),
    "wishart": (_wishart, "pdf", ("df", "scale")),
    "invwishart": (_invwishart, "pdf", ("df", "scale")),
    "multinomial": (_multinomial, "pmf", ("n", "p")),
}

METHODS: dict[str, Callable[..., Any]] = {
    "multivariate_normal.entropy": _normal_entropy,
    "dirichlet.mean": _dirichlet_mean,
    "dirichlet.var": _dirichlet_var,
    "dirichlet.cov": _dirichlet_cov,
    "dirichlet.entropy": _dirichlet_entropy,
}
for _name, (_log, _plain, _names) in _DENSITIES.items():
    METHODS[f"{_name}.log{_plain}"], METHODS[f"{_name}.{_plain}"] = _log, _raised(_log)
    METHODS[f"{_name}.__call__"] = _freezing
    for _method in (_plain, f"log{_plain}"):
        METHODS[f"_multivariate.{_name}_frozen.{_method}"] = _of_frozen(_name, _method, *_names)
