"""Rules of activations, losses, convolutions and pooling.

The inner product of a cross-correlation with its cotangent is linear in input, kernel and cotangent. ``cross_correlate``,
``cross_correlate_back`` and ``cross_correlate_kernel`` are its derivatives with respect to cotangent, input and kernel, so the
rule of each calls the other two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.nn import (
    conv,
    cross_correlate,
    cross_correlate_back,
    cross_correlate_kernel,
    kernel_axes,
    log_softmax,
    max_pool_along,
    max_pool_back,
    mean_pool_back,
    pooled_mean,
    sigmoid,
    softmax,
)
from compgraph.ops import ensure_array

from ..rules import Formula, Rule, elementwise, general, reduction
from .corners import choice_formula, choice_tangent, is_zero


def _relu(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return g above 0 and at nan, 0 at and below 0."""
    return choice_formula(g * ~(out <= 0), g, out, is_zero, (x,), lambda: 0.5 * x, "relu")


def _relu_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return t above 0 and at nan, 0 at and below 0 even for an infinite tangent."""
    return choice_tangent(np.where(out <= 0, 0, t), t, out, is_zero, (x,), lambda: x, "relu")


relu_grad = (
    elementwise("relu", _relu)
    .tangent(_relu_tangent)
    .selects_elements(lambda x: np.logical_not(x < 0))  # at 0 the derivative is 0, not a structural zero
)
sigmoid_grad = elementwise("sigmoid", lambda g, out, x: g * (out * (1 - out))).with_formula("y * (1 - y)")
softplus_grad = elementwise("softplus", lambda g, out, x: g * sigmoid(x)).with_formula("1 / (1 + exp(-a))")

logsumexp_grad = reduction("logsumexp", lambda out, x, axis=None: np.exp(x - np.where(out == -np.inf, 0, out))).with_formula(
    "exp(a - y)"
)


def softmax_product(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: int = -1) -> Any:
    """Multiply by the Jacobian ``diag(p) - p p^T`` for p = `out`. It is symmetric, so the formula serves both modes."""
    return out * (g - np.sum(g * out, axis=axis, keepdims=True))


def pull_log_softmax(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: int = -1) -> Any:
    """Multiply by the transpose of the Jacobian ``I - 1 p^T``, where ``p = exp(out)`` and 1 is a vector of ones."""
    return g - np.exp(out) * np.sum(g, axis=axis, keepdims=True)


def push_log_softmax(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: int = -1) -> Any:
    """Multiply by the Jacobian; see `pull_log_softmax`."""
    return t - np.sum(np.exp(out) * t, axis=axis, keepdims=True)


softmax_grad = general("softmax", softmax_product).tangent(softmax_product)
log_softmax_grad = general("log_softmax", pull_log_softmax).tangent(push_log_softmax)


def _batch_size(x: NDArray[Any], rank: int) -> int:
    """Return the number of samples over which a loss is averaged: the size of all axes except the last `rank`."""
    count: int = math.prod(x.shape[: x.ndim - rank])
    return max(1, count)


def _logit_gradient(logits: Any, labels: Any) -> Any:
    """Compute ``sum(labels) softmax(logits) - labels``; the sum of labels need not be one."""
    predicted, labels = softmax(logits), ensure_array(labels)
    if labels.ndim < logits.ndim:
        return predicted - (labels[..., None] == np.arange(logits.shape[-1]))
    return predicted * np.sum(labels, axis=-1, keepdims=True) - labels


softmax_cross_entropy_grad = general(
    "softmax_cross_entropy",
    lambda g, out, logits, labels: _logit_gradient(logits, labels) * (g / _batch_size(logits, 1)),
    lambda g, out, logits, labels: log_softmax(logits) * (-g / _batch_size(logits, 1)),
).tangent(
    lambda t, out, logits, labels: np.sum(_logit_gradient(logits, labels) * t) / _batch_size(logits, 1),
    lambda t, out, logits, labels: -np.sum(log_softmax(logits) * t) / _batch_size(logits, 1),
)
sigmoid_cross_entropy_grad = reduction(
    "sigmoid_cross_entropy",
    lambda out, logits, labels, axis=None: (sigmoid(logits) - labels) / _batch_size(logits, 0),
    lambda out, logits, labels, axis=None: logits / -_batch_size(logits, 0),
)


def _conjugate_if_complex(kernel: NDArray[Any]) -> Any:
    """Return the kernel, conjugated if complex as in `cross_correlate`."""
    return np.conjugate(kernel) if kernel.dtype.kind == "c" else kernel


def _cross_correlate_unconjugated(x: NDArray[Any], kernel: Any, **options: Any) -> Any:
    """Cross-correlate without conjugation."""
    return cross_correlate(x, _conjugate_if_complex(kernel), **options)


def _flip_kernel(kernel: NDArray[Any]) -> Any:
    return np.flip(kernel, kernel_axes(kernel))


def _trilinear(compute: Formula, position: int, *others: int) -> Formula:
    """Return a formula that calls `compute` with the operands `others`, and the cotangent or tangent inserted at `position`."""

    def formula(g: NDArray[Any], out: NDArray[Any], *operands: object, **options: object) -> Any:
        selected = [operands[i] for i in others]
        return compute(*selected[:position], g, *selected[position:], **options)

    return formula


cross_correlate_grad = general(
    "cross_correlate",
    _trilinear(lambda g, k, x, **o: cross_correlate_back(g, _conjugate_if_complex(k), x, **o), 0, 1, 0),
    _trilinear(lambda x, g, k, **o: _conjugate_if_complex(cross_correlate_kernel(x, g, k, **o)), 1, 0, 1),
).tangent(_trilinear(cross_correlate, 0, 1), _trilinear(cross_correlate, 1, 0))
conv_grad = general(
    "conv",
    _trilinear(lambda g, k, x, **o: cross_correlate_back(g, _flip_kernel(k), x, **o), 0, 1, 0),
    _trilinear(lambda x, g, k, **o: _flip_kernel(cross_correlate_kernel(x, g, k, **o)), 1, 0, 1),
).tangent(_trilinear(conv, 0, 1), _trilinear(conv, 1, 0))
cross_correlate_back_grad = general(
    "cross_correlate_back", _trilinear(_cross_correlate_unconjugated, 0, 1), _trilinear(cross_correlate_kernel, 0, 0, 1), None
).tangent(_trilinear(cross_correlate_back, 0, 1, 2), _trilinear(cross_correlate_back, 1, 0, 2), None)
cross_correlate_kernel_grad = general(
    "cross_correlate_kernel", _trilinear(cross_correlate_back, 1, 1, 0), _trilinear(_cross_correlate_unconjugated, 1, 0), None
).tangent(_trilinear(cross_correlate_kernel, 0, 1, 2), _trilinear(cross_correlate_kernel, 1, 0, 2), None)


def _max_pool(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **options: Any) -> Any:
    return max_pool_back(g, x, out, **options)


def _max_pool_tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **options: Any) -> Any:
    return max_pool_along(t, x, out, **options)


def _max_pool_back(h: Any, out: NDArray[Any], g: NDArray[Any], x: NDArray[Any], maxima: Any, **options: Any) -> Any:
    return max_pool_along(h, x, maxima, **options)


def _max_pool_along(g: NDArray[Any], out: NDArray[Any], t: NDArray[Any], x: NDArray[Any], maxima: Any, **options: Any) -> Any:
    return max_pool_back(g, x, maxima, **options)


def _mean_pool(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **options: object) -> Any:
    return mean_pool_back(g, x, **options)


def _mean_pool_back(h: Array, out: NDArray[Any], g: NDArray[Any], like: NDArray[Any], **options: object) -> Any:
    return pooled_mean(h, **options)


def _declare_for_first(opname: str, count: int, pull: Formula, push: Formula) -> Rule:
    """Declare the derivative with respect to the first of `count` operands; those of the others are zero."""
    others = [None] * (count - 1)
    return general(opname, pull, *others).tangent(push, *others)


max_pool_grad = _declare_for_first("max_pool", 1, _max_pool, _max_pool_tangent).selects_elements()
max_pool_back_grad = _declare_for_first(
    "max_pool_back", 3, _max_pool_back, lambda t, out, g, x, maxima, **o: max_pool_back(t, x, maxima, **o)
).moves_elements()
max_pool_along_grad = _declare_for_first(
    "max_pool_along", 3, _max_pool_along, lambda s, out, t, x, maxima, **o: max_pool_along(s, x, maxima, **o)
).moves_elements()
mean_pool_grad = _declare_for_first("mean_pool", 1, _mean_pool, lambda t, out, x, **o: pooled_mean(t, **o)).moves_elements()
mean_pool_back_grad = _declare_for_first(
    "mean_pool_back", 2, _mean_pool_back, lambda t, out, g, like, **o: mean_pool_back(t, like, **o)
).moves_elements()
