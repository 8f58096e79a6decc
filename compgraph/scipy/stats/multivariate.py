"""SciPy's multivariate distributions: frozen distributions with nodes, and replacements in their own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.stats as st
from scipy.stats import _multivariate
from scipy.stats._covariance import CovViaPSD

from ...values import Value
from ..own_code import replace_functions

# -------------------------------------------------------------------------------------------- replaced functions


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

# -------------------------------------------------------------------------------------------- methods


class FrozenDistribution:
    """A distribution some of whose parameters are nodes.

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
OWN_CODE = [f"{name}.{log}{method}" for name, (method, _) in _DENSITIES.items() for log in ("", "log")] + _OTHERS.split()
REPLACEMENTS: dict[str, Callable[..., Any]] = {
    **{f"{name}.__call__": _freeze for name in _DENSITIES},
    **{
        f"_multivariate.{name}_frozen.{log}{method}": _frozen_method(name, log + method, *parameters.split())
        for name, (method, parameters) in _DENSITIES.items()
        for log in ("", "log")
    },
}
