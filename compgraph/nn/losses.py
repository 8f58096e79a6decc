"""Losses, and one-hot encoding.

The cross-entropies are one node of the graph each, computed by plain NumPy, with a rule in `autodiff.grads`. The other functions
record operations of NumPy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import ops
from ..array_types import Operand
from ..bind import bind
from ..graph import as_operands
from ..protocols import accept_name, primitive
from ..values import Value
from .activations import _as_array, log_softmax

_mean, _where = accept_name(np.mean), accept_name(np.where)  # NumPy's functions, whose names are replaced within operators


@primitive
def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Any:
    """The cross-entropy of `softmax(logits)` relative to labels, averaged over the batch.

    Parameters
    ----------
    logits : array_like
        Scores, of shape ``(..., classes)``.
    labels : array_like
        Probabilities or one-hot labels of the shape of `logits`, or integer class indices of shape ``(...)``.

    Returns
    -------
    scalar
        The mean over the batch of ``-sum(labels * log_softmax(logits))``, in nats. It and its gradient are finite for all
        finite logits.

    Raises
    ------
    ValueError
        If the shapes do not match, or a class index is out of range.
    TypeError
        If class indices are not integers.

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
        shifted = logits - logits.max(axis=-1, keepdims=True)
        shifted = shifted if shifted.ndim == 2 else shifted.reshape(-1, classes)
        terms = np.log(np.exp(shifted).sum(axis=-1)) - bind(_select_class, (shifted, labels))
        return np.add.reduce(terms) / max(1, len(shifted))
    if labels.shape != logits.shape or not logits.ndim:
        raise ValueError(
            f"softmax_cross_entropy: logits of shape {logits.shape} need labels of that shape, or class indices of "
            f"shape {logits.shape[:-1]}, not {labels.shape}"
        )
    terms = labels * log_softmax.function(logits)  # type: ignore[attr-defined]
    return -np.sum(terms) / max(1, logits.size // classes)


def _select_class(shifted: NDArray[Any], labels: NDArray[Any]) -> Any:
    """Check the labels, and select the element of each row's class."""
    _require_classes("softmax_cross_entropy", labels, shifted.shape[-1])
    return shifted[np.arange(len(shifted)), labels.reshape(-1)]


def _require_classes(name: str, labels: NDArray[Any], classes: int) -> None:
    if labels.dtype.kind not in "iu":
        raise TypeError(f"{name}: class indices must be integers, not {labels.dtype}")
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        raise ValueError(f"{name}: class indices must be from 0 to {classes - 1}")


ops.register_piecewise(_select_class, "of_class", kind="sequential")  # the cross-entropy has a rule of its own


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
        raise ValueError(f"sigmoid_cross_entropy: logits have shape {logits.shape}, labels {labels.shape}. Pass equal shapes")
    return np.mean(np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits))))


ops.register_operation(vars(softmax_cross_entropy)["function"], "softmax_cross_entropy", kind="sequential", is_inlined=True)


def mse(predictions: ArrayLike, targets: ArrayLike, *, name: str | None = None) -> Any:
    """The mean squared error of predictions relative to targets.

    Parameters
    ----------
    predictions, targets : array_like
        Real, of the same shape, or one shape broadcasts to the other.
    name : str, optional
        A name for the node.

    Returns
    -------
    scalar
        The mean over all elements, of the dtype of the difference; float64 for integers and booleans.

    Raises
    ------
    ValueError
        If neither shape broadcasts to the other, as for shapes ``(n,)`` and ``(n, 1)``.
    TypeError
        If an argument is complex.

    Notes
    -----
    ``mean((predictions - targets)**2)``. C. M. Bishop, *Pattern Recognition and Machine Learning*, Springer 2006, section 1.1,
    has half the sum of squares. For zero elements it is nan, with NumPy's warning.

    Examples
    --------
    >>> import compgraph as cg
    >>> float(cg.mse([1.0, 2.0], [1.0, 4.0]))
    2.0
    """
    return _mean(np.square(_difference("mse", predictions, targets)), name=name)


def huber(predictions: ArrayLike, targets: ArrayLike, delta: float = 1.0, *, name: str | None = None) -> Any:
    """The Huber loss of predictions relative to targets, which is less sensitive to outliers than `mse`.

    Parameters
    ----------
    predictions, targets : array_like
        As for `mse`.
    delta : float
        The absolute difference above which the loss is linear; positive.
    name : str, optional
        A name for the node.

    Returns
    -------
    scalar
        The mean over all elements, of the dtype of the difference; float64 for integers and booleans.

    Raises
    ------
    ValueError, TypeError
        As for `mse`; also if `delta` is not a positive number.

    Notes
    -----
    The mean of ``d**2 / 2`` where ``abs(d) <= delta``, and of ``delta * (abs(d) - delta / 2)`` elsewhere, for the differences d.
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

    Examples
    --------
    >>> import compgraph as cg
    >>> float(cg.huber([0.5, 3.0], [0.0, 0.0]))
    1.3125
    """
    delta = as_plain_number("huber", "delta", delta)
    if not 0 < delta < np.inf:
        raise ValueError(f"huber: delta must be positive and finite, not {delta}")
    difference = _difference("huber", predictions, targets)
    clipped = np.clip(difference, -delta, delta)
    return _mean(clipped * (difference - clipped / 2), name=name)


def _difference(opname: str, predictions: Any, targets: Any) -> Any:
    """Subtract two real arrays; raise if neither has the broadcast shape."""
    predictions, targets = as_operands((predictions, targets))
    dtype = np.result_type(*(getattr(x, "dtype", x) for x in (predictions, targets)))
    if dtype.kind not in "biuf":
        raise TypeError(f"{opname}: numbers of dtype {dtype} have no real difference. Compare real and imaginary parts")
    shapes = np.shape(predictions), np.shape(targets)
    try:
        is_ambiguous = np.broadcast_shapes(*shapes) not in shapes
    except ValueError:
        is_ambiguous = True
    if is_ambiguous:
        raise ValueError(
            f"{opname}: predictions have shape {shapes[0]}, targets {shapes[1]}, and neither broadcasts to the other. Reshape "
            "one of them"
        )
    return np.subtract(predictions * 1.0 if dtype.kind in "biu" else predictions, targets)


def as_plain_number(opname: str, parameter: str, value: float) -> float:
    """Convert a parameter to a Python number; raise for nodes, arrays and text."""
    if (
        isinstance(value, Value)
        or not hasattr(value, "__float__")
        or np.shape(value)
        or np.asarray(value).dtype.kind not in "biufO"
    ):
        raise TypeError(f"{opname}: {parameter} must be a plain number, not {value!r}")
    return float(value)


def one_hot(labels: ArrayLike, classes: int, *, dtype: DTypeLike = float, name: str | None = None) -> Any:
    """One-hot encoding: class indices as unit vectors.

    Parameters
    ----------
    labels : array_like
        Integers from 0 to ``classes - 1``, of any shape.
    classes : int
        The number of classes.
    dtype : dtype
        The dtype of the result.
    name : str, optional
        A name for the node.

    Returns
    -------
    array
        Of shape ``(*labels.shape, classes)``: 1 at the class of each label, and 0 elsewhere.

    Raises
    ------
    ValueError
        If `classes` is not positive, or a label is out of range, also when a graph is run again with other labels.
    TypeError
        If labels are not integers.

    Notes
    -----
    ``result[..., k] = (labels == k)``: the 1-of-K coding scheme of C. M. Bishop, *Pattern Recognition and Machine Learning*,
    Springer 2006, section 4.1. Its derivative is zero.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    classes = operator.index(classes)
    if classes < 1:
        raise ValueError(f"one_hot: the number of classes must be positive, not {classes}")
    labels = bind(_check_class_indices, as_operands((labels,)), {"classes": classes})
    one = np.ones((), dtype)
    return _where(np.expand_dims(labels, -1) == np.arange(classes), one, np.zeros_like(one), name=name)


def _check_class_indices(labels: Operand, *, classes: int) -> Any:
    """Check the labels, and return them."""
    labels = np.array(labels)
    _require_classes("one_hot", labels, classes)
    return labels[()]


ops.register_piecewise(_check_class_indices, "class_numbers", kind="elementwise")
