"""SciPy's estimate of a density by kernels, of data that may be nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from ...interception import original_of
from ...values import Value
from .samples import floating


def made(self: Any, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
    """Covariance and weights in recorded steps."""
    self.dataset = floating(dataset)
    if self.dataset.ndim < 2:
        self.dataset = np.reshape(self.dataset, (1, -1))
    if not self.dataset.size > 1:
        raise ValueError("`dataset` input should have multiple elements.")
    self.d, self.n = self.dataset.shape
    if self.d > self.n:
        raise ValueError("Number of dimensions is greater than number of samples: each column of `dataset` is a point")
    if weights is not None:
        weights = floating(weights)
        if weights.shape != (self.n,):
            raise ValueError("`weights` input should be one-dimensional, and of length n")
        self._weights = weights / np.sum(weights)
        self._neff = 1 / np.sum(self._weights**2)
    set_bandwidth(self, bw_method)


def set_bandwidth(self: Any, bw_method: Any = None) -> None:
    """The factor of the covariance of the data, and what follows from it."""
    if isinstance(bw_method, str):
        if bw_method not in ("scott", "silverman"):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        self.covariance_factor = self.scotts_factor if bw_method == "scott" else self.silverman_factor
    elif callable(bw_method) and not isinstance(bw_method, Value):
        self.covariance_factor = lambda: bw_method(self)
    elif bw_method is not None:
        self.covariance_factor = lambda: bw_method
    _covariance(self)


def _covariance(self: Any) -> None:
    away = self.dataset - np.sum(self.dataset * self.weights, axis=1, keepdims=True)
    self.factor = self.covariance_factor()
    free = 1 - np.sum(self.weights**2)
    self._data_covariance = (away * self.weights) @ np.transpose(away) / free
    self.covariance = self._data_covariance * self.factor**2
    self._data_cho_cov = np.linalg.cholesky(self._data_covariance)
    self.cho_cov = self._data_cho_cov * self.factor
    self.log_det = 2 * np.sum(np.log(np.diagonal(self.cho_cov))) + self.d * math.log(2 * math.pi)


def _log_kernels(self: Any, points: Any) -> Any:
    """Of each point of the data at each point, but for the weight."""
    points = floating(points)
    points = points if points.ndim > 1 else np.reshape(points, (1, -1))
    if points.shape[0] != self.d:
        if points.shape != (1, self.d):
            raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
        points = np.reshape(points, (self.d, 1))
    factor = np.linalg.cholesky(self.covariance)
    white, data = np.linalg.solve(factor, points), np.linalg.solve(factor, self.dataset)
    away = data[:, :, None] - white[:, None, :]
    log_det = 2 * np.sum(np.log(np.diagonal(factor))) + self.d * math.log(2 * math.pi)
    return -0.5 * np.sum(away * away, axis=0) - 0.5 * log_det


def _has_nodes(self: Any, *given: Any) -> bool:
    return any(isinstance(x, Value) for x in (self.dataset, self.weights, self.covariance, *given))


def evaluate(self: Any, points: Any) -> Any:
    """The mean of the kernels."""
    if not _has_nodes(self, points):
        return original_of(st.gaussian_kde.evaluate)(self, points)
    return np.sum(self.weights[:, None] * np.exp(_log_kernels(self, points)), axis=0)


def logpdf(self: Any, x: Any) -> Any:
    """Its logarithm."""
    if not _has_nodes(self, x):
        return original_of(st.gaussian_kde.logpdf)(self, x)
    return sc.logsumexp(_log_kernels(self, x), b=self.weights[:, None], axis=0)


def _refusing(name: str, advice: str) -> Any:
    def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _has_nodes(self, *args, *kwargs.values()):
            return original_of(getattr(st.gaussian_kde, name))(self, *args, **kwargs)
        raise TypeError(f"scipy.stats.gaussian_kde.{name}: it is not recorded; use {advice}")

    return refused


def pdf(self: Any, x: Any) -> Any:
    """The estimate, by its other name."""
    return evaluate(self, x)


METHODS = {
    "gaussian_kde": made,
    "gaussian_kde.evaluate": evaluate,
    "gaussian_kde.pdf": pdf,
    "gaussian_kde.logpdf": logpdf,
    "gaussian_kde.set_bandwidth": set_bandwidth,
    "gaussian_kde.resample": _refusing("resample", "plain data (x.value): which points are drawn has no derivative"),
    "gaussian_kde.integrate_gaussian": _refusing(
        "integrate_gaussian", "the sum of scipy.stats.multivariate_normal.pdf of the sum of covariances"
    ),
    "gaussian_kde.integrate_box_1d": _refusing("integrate_box_1d", "differences of scipy.stats.norm.cdf, weighed"),
    "gaussian_kde.integrate_box": _refusing("integrate_box", "a sum of evaluate() at the nodes of a quadrature"),
    "gaussian_kde.integrate_kde": _refusing(
        "integrate_kde", "the sum of scipy.stats.multivariate_normal.pdf of the sum of covariances"
    ),
    "gaussian_kde.marginal": _refusing("marginal", "gaussian_kde of those rows of the data"),
}
ASKED = frozenset(METHODS) - {"gaussian_kde", "gaussian_kde.set_bandwidth"}
