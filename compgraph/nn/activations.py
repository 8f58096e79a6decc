"""Activation functions, `logsumexp` and `softmax`.

Each is a `primitive`: one node of the graph, computed by plain NumPy, with its rule in `autodiff.grads`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import ops
from ..protocols import primitive
from ..values import Value


def _as_array(x: ArrayLike) -> np.ndarray[Any, Any]:
    """Convert to an array; return a node unchanged, so that steps can be recorded (see `ops.OpSpec.is_inlined`)."""
    return x if isinstance(x, Value) else np.asarray(x)


@primitive
def relu(x: ArrayLike) -> Any:
    """The rectified linear unit, ``max(x, 0)``, element by element.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        Of the shape and dtype of `x`. The derivative at 0 is taken to be 0.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.relu([-1.0, 2.0])
    array([0., 2.])
    """
    return np.maximum(x, 0)


@primitive
def sigmoid(x: ArrayLike) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        Of the shape of `x` and, if that is floating, of its dtype; between 0 and 1.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.sigmoid([-1000.0, 0.0, 1000.0])
    array([0. , 0.5, 1. ])
    """
    x = np.asarray(x)
    decay = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1, decay) / (1 + decay))[()]


@primitive
def softplus(x: ArrayLike) -> Any:
    """A smooth relu, ``log(1 + exp(x))``, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.

    Returns
    -------
    array
        Of the shape of `x` and, if that is floating, of its dtype.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.softplus([-1000.0, 0.0, 1000.0]).round(4).tolist()
    [0.0, 0.6931, 1000.0]
    """
    return np.logaddexp(x, 0)


@primitive
def logsumexp(x: ArrayLike, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes to sum over; all by default.
    keepdims : bool
        Whether the summed axes stay, with length one.

    Returns
    -------
    array
        ``log(sum(exp(x)))``, of the shape of `x` without the summed axes and, if that is floating, of its dtype.

    Examples
    --------
    >>> import compgraph as cg
    >>> float(cg.logsumexp([1000.0, 1000.0]).round(4))
    1000.6931
    """
    x = _as_array(x)
    maximum = np.max(x, axis=axis, keepdims=True)
    maximum = np.where(np.isfinite(maximum), maximum, 0)
    total = np.log(np.sum(np.exp(x - maximum), axis=axis, keepdims=True)) + maximum
    return total if keepdims else np.squeeze(total, axis=axis)[()]


@primitive
def softmax(x: ArrayLike, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Exponentials divided by their sum, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes along which the results sum to one; the last by default.

    Returns
    -------
    array
        Of the shape of `x` and, if that is floating, of its dtype.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.softmax([1000.0, 1000.0])
    array([0.5, 0.5])
    """
    x = _as_array(x)
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


@primitive
def log_softmax(x: ArrayLike, *, axis: int | tuple[int, ...] | None = -1) -> Any:
    """The logarithm of `softmax`, without overflow.

    Parameters
    ----------
    x : array_like
        Of any shape.
    axis : int, tuple of int, or None
        The axes along which the exponentials sum to one; the last by default.

    Returns
    -------
    array
        Of the shape of `x` and, if that is floating, of its dtype.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.log_softmax([10000.0, 0.0])
    array([     0., -10000.])
    """
    x = _as_array(x)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


for _composite in (softmax, log_softmax, logsumexp):
    ops.register_operation(vars(_composite)["function"], _composite.__name__, is_inlined=True)
for _function, _formula in ((relu, "Max(x, 0)"), (sigmoid, "1 / (1 + exp(-x))"), (softplus, "log(1 + exp(x))")):
    ops.register_operation(
        vars(_function)["function"], _function.__name__, kind="elementwise", lowering=_function.__name__, real_formula=_formula
    )
