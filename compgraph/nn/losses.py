"""Losses: one node of the graph each, computed by plain NumPy, with its rule in `autodiff.grads`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import ops
from ..bind import bind
from ..protocols import primitive
from .activations import _as_array, log_softmax


@primitive
def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Any:
    """The cross-entropy of `softmax(logits)` relative to labels, averaged over the batch.

    Parameters
    ----------
    logits : array_like
        Scores, of shape ``(..., classes)``.
    labels : array_like
        Probabilities or one-hot labels of the shape of `logits`, or integer class numbers of shape ``(...)``.

    Returns
    -------
    scalar
        The mean over the batch of ``-sum(labels * log_softmax(logits))``, in nats. It is finite, and so is its
        gradient, for logits of any finite size.

    Raises
    ------
    ValueError
        If the shapes do not match, or a class number is out of range.
    TypeError
        If class numbers are not integers.

    Notes
    -----
    C. M. Bishop, *Pattern Recognition and Machine Learning*, Springer 2006, eq. (4.108).

    Examples
    --------
    >>> import compgraph as cg
    >>> round(float(cg.softmax_cross_entropy([[1e4, 0.0], [0.0, 0.0]], [0, 1])), 4)
    0.3466
    """
    logits, labels = _as_array(logits), _as_array(labels)
    classes = logits.shape[-1] if logits.ndim else 0
    if labels.shape == logits.shape[:-1] and logits.ndim:
        below = logits - logits.max(axis=-1, keepdims=True)
        below = below if below.ndim == 2 else below.reshape(-1, classes)
        terms = np.log(np.exp(below).sum(axis=-1)) - bind(_of_class, (below, labels))
        return np.add.reduce(terms) / max(1, len(below))
    if labels.shape != logits.shape or not logits.ndim:
        raise ValueError(
            f"softmax_cross_entropy: logits of shape {logits.shape} need labels of that shape, or class numbers of "
            f"shape {logits.shape[:-1]}, not {labels.shape}"
        )
    terms = labels * log_softmax.function(logits)  # type: ignore[attr-defined]
    return -np.sum(terms) / max(1, logits.size // classes)


def _of_class(below: Any, labels: Any) -> Any:
    """From each row of `below` the element of its class, after checks of the labels."""
    classes = below.shape[-1]
    if labels.dtype.kind not in "iu":
        raise TypeError(f"softmax_cross_entropy: class numbers must be integers, not {labels.dtype}")
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        raise ValueError(f"softmax_cross_entropy: class numbers must be from 0 to {classes - 1}")
    return below[np.arange(len(below)), labels.reshape(-1)]


ops.enter_piecewise(_of_class, "of_class")  # the cross-entropy has a rule of its own


@primitive
def sigmoid_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Any:
    """The cross-entropy of `sigmoid(logits)` relative to labels, averaged over all elements.

    Parameters
    ----------
    logits : array_like
        Scores, of any shape.
    labels : array_like
        Probabilities from 0 to 1, of the same shape.

    Returns
    -------
    scalar
        The mean of ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, in nats, without
        overflow.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import compgraph as cg
    >>> round(float(cg.sigmoid_cross_entropy([0.0, 1e4], [1.0, 1.0])), 4)
    0.3466
    """
    logits, labels = np.asarray(logits), np.asarray(labels)
    if labels.shape != logits.shape:
        raise ValueError(f"sigmoid_cross_entropy: logits have shape {logits.shape}, labels {labels.shape}")
    return np.mean(np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits))))


ops.INLINED.add(vars(softmax_cross_entropy)["function"])
