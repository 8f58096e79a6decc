"""Rules of what networks need and NumPy lacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.graph import to_values
from compgraph.nn import log_softmax, sigmoid, softmax
from compgraph.ops import ensure_array

from ...rules import elementwise, general, reduction
from ..corners import choosing, choosing_tangent


def _relu(g: Any, out: Any, x: Any) -> Any:
    """All above 0, where nan is taken to be; at 0 nothing."""
    return choosing(g * ~(out <= 0), g, out, lambda: np.asarray(to_values(x)) == 0, lambda: 0.5 * x, "relu")


def _relu_tangent(t: Any, out: Any, x: Any) -> Any:
    """At 0 and below nothing, whatever the tangent is."""
    return choosing_tangent(np.where(out <= 0, 0, t), t, lambda: np.asarray(to_values(x)) == 0, lambda: x, "relu")


relu_grad = (
    elementwise("relu", _relu)
    .tangent(_relu_tangent)
    .selecting(lambda x: np.logical_not(x < 0))  # at 0 the derivative is a number, 0
)
sigmoid_grad = elementwise("sigmoid", lambda g, out, x: g * (out * (1 - out))).said("y * (1 - y)")
softplus_grad = elementwise("softplus", lambda g, out, x: g * sigmoid(x)).said("1 / (1 + exp(-a))")

logsumexp_grad = reduction("logsumexp", lambda out, x, axis=None: np.exp(x - np.where(out == -np.inf, 0, out))).said("exp(a - y)")


def _softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    """The Jacobian diag(p) - p p^T is symmetric, so it serves both modes."""
    return out * (g - np.sum(g * out, axis=axis, keepdims=True))


def _log_softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    return g - np.exp(out) * np.sum(g, axis=axis, keepdims=True)


def _log_softmax_tangent(t: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    return t - np.sum(np.exp(out) * t, axis=axis, keepdims=True)


softmax_grad = general("softmax", _softmax).tangent(_softmax)
log_softmax_grad = general("log_softmax", _log_softmax).tangent(_log_softmax_tangent)


def _batch(x: Any, rank: int) -> int:
    """How many examples a loss is averaged over: all axes but the last `rank`."""
    count: int = math.prod(x.shape[: x.ndim - rank])
    return max(1, count)


def _excess(logits: Any, labels: Any) -> Any:
    """sum(labels) softmax(logits) - labels, where the labels of one example need not sum to one."""
    predicted, labels = softmax(logits), ensure_array(labels)
    if labels.ndim < logits.ndim:
        return predicted - (labels[..., None] == np.arange(logits.shape[-1]))
    return predicted * np.sum(labels, axis=-1, keepdims=True) - labels


softmax_cross_entropy_grad = general(
    "softmax_cross_entropy",
    lambda g, out, logits, labels: _excess(logits, labels) * (g / _batch(logits, 1)),
    lambda g, out, logits, labels: log_softmax(logits) * (-g / _batch(logits, 1)),
).tangent(
    lambda t, out, logits, labels: np.sum(_excess(logits, labels) * t) / _batch(logits, 1),
    lambda t, out, logits, labels: -np.sum(log_softmax(logits) * t) / _batch(logits, 1),
)
sigmoid_cross_entropy_grad = reduction(
    "sigmoid_cross_entropy",
    lambda out, logits, labels, axis=None: (sigmoid(logits) - labels) / _batch(logits, 0),
    lambda out, logits, labels, axis=None: logits / -_batch(logits, 0),
)
