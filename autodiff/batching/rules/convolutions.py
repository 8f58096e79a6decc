"""Batching rules of convolutions, cross-correlations and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.nn import signal_padding

from ..levels import broadcast_batch
from .call import RULES_BY_OPNAME, BatchRule, Call, NoBatchRuleError

_CORRELATE = np.correlate  # NumPy's own function, which interception may replace
# The numbers of zeros before and after the longer operand, for a shorter operand of length n.
_PADDING: dict[str, Callable[[int], tuple[int, int]]] = {
    "full": lambda n: (n - 1, n - 1),
    "same": lambda n: (n - 1 - (n - 1) // 2, (n - 1) // 2),
    "valid": lambda n: (0, 0),
}


def convolve(call: Call) -> Any:
    """``np.convolve`` and ``np.correlate``, as matrix products with sliding windows of the longer operand."""
    a, v = call.values
    is_correlation = call.base is _CORRELATE
    mode = call.options.get("mode", "valid" if is_correlation else "full")
    if call.ndims != [1, 1] or mode not in _PADDING:
        raise NoBatchRuleError
    m, n = a.shape[-1], v.shape[-1]
    if not min(m, n) or (is_correlation and n > m):
        raise NoBatchRuleError
    if is_correlation:
        v = np.conj(v[..., ::-1])
    elif n > m:
        a, v, m, n = v, a, n, m
    before, after = _PADDING[mode](n)
    padded = np.concatenate([np.zeros((*a.shape[:-1], before), a.dtype), a, np.zeros((*a.shape[:-1], after), a.dtype)], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, n, axis=-1)
    return np.matmul(windows, np.expand_dims(v[..., ::-1], -1))[..., 0]


# A cross-correlation is linear in three arrays, and each of its operations computes one of them from the two others. For each
# pair: the axis of the first that corresponds to an axis of the second, and whether the channels there are divided into groups.
CORRESPONDING_AXES: dict[tuple[str, str], tuple[int, bool]] = {
    ("x", "out"): (0, False),
    ("out", "x"): (0, False),
    ("kernel", "out"): (0, True),
    ("out", "kernel"): (1, True),
    ("kernel", "x"): (1, False),
    ("x", "kernel"): (1, True),
}
CHANNEL_AXES = {"x": 1, "out": 1, "kernel": 0}  # the axis of each array that is divided into groups


def _fold_batch(batch: NDArray[Any], axis: int, groups: int) -> Any:
    """Merge the batch axis into another axis, within its groups."""
    size, *shape = batch.shape
    split = np.reshape(batch, (size, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, 0, axis + 1), (*shape[:axis], size * shape[axis], *shape[axis + 1 :]))


def _unfold_batch(folded: NDArray[Any], axis: int, groups: int, size: int) -> Any:
    """The inverse of `_fold_batch`."""
    shape = folded.shape
    each = shape[axis] // size
    split = np.reshape(folded, (*shape[:axis], groups, size, each // groups, *shape[axis + 1 :]))
    return np.reshape(np.moveaxis(split, axis + 1, 0), (size, *shape[:axis], each, *shape[axis + 1 :]))


def cross_correlation(result: str, *roles: str) -> BatchRule:
    """The rule of an operation of a cross-correlation: the batch axis becomes part of the batch, the channels or the groups.

    Parameters
    ----------
    result, *roles : {"x", "kernel", "out"}
        The array that is computed, and the two operands. A third operand has the shape of the result.
    """

    def rule(call: Call) -> Any:
        size = call.batch_size
        if not size:
            raise NoBatchRuleError
        shapes = [np.shape(v)[is_batched:] for v, is_batched in zip(call.values, call.has_batch_axis, strict=True)]
        values, (a_batched, b_batched) = call.values[:2], call.has_batch_axis[:2]
        is_signal = len(shapes[0]) == 1
        options: dict[str, Any] = {}
        if is_signal:
            signal_shape = shapes[2] if result == "kernel" else shapes[1]
            options["padding"] = signal_padding(signal_shape[0], **call.options)
            values = [
                np.reshape(v, (*v.shape[:is_batched], 1, 1, v.shape[-1]))
                for v, is_batched in zip(values, (a_batched, b_batched), strict=True)
            ]
        groups = call.options.get("groups", 1)
        if a_batched and b_batched:  # each batch element is a group of its own
            values = [_fold_batch(v, CHANNEL_AXES[role], 1) for v, role in zip(values, roles, strict=True)]
            options["groups"], axis, result_groups = size * groups, CHANNEL_AXES[result], 1
        elif a_batched or b_batched:
            position = 0 if a_batched else 1
            operand_axis, is_grouped = CORRESPONDING_AXES[roles[position], result]
            values[position] = _fold_batch(values[position], operand_axis, groups if is_grouped else 1)
            axis, is_grouped = CORRESPONDING_AXES[result, roles[position]]
            result_groups = groups if is_grouped else 1
        else:  # only the operand for the shape is batched
            return broadcast_batch(bind(call.function, (*call.values[:2], np.empty(shapes[2])), call.options), size)
        likes = [np.broadcast_to(np.zeros(()), (1,) * (values[0].ndim - len(s)) + s) for s in shapes[2:]]
        unfolded = _unfold_batch(call.run((*values, *likes), **options), axis, result_groups, size)
        return np.reshape(unfolded, (size, unfolded.shape[-1])) if is_signal else unfolded

    return rule


def pool(call: Call) -> Any:
    """Pooling, whose windows slide along the last axes; the batch axis is one of the others."""
    return call.run(call.all_batched() if any(call.has_batch_axis[1:]) else call.values)


RULES_BY_OPNAME |= {
    "convolve": convolve, "correlate": convolve,
    "cross_correlate": cross_correlation("out", "x", "kernel"), "conv": cross_correlation("out", "x", "kernel"),
    "cross_correlate_back": cross_correlation("x", "out", "kernel"),
    "cross_correlate_kernel": cross_correlation("kernel", "x", "out"),
    **dict.fromkeys(("max_pool", "max_pool_back", "max_pool_along", "mean_pool", "mean_pool_back"), pool),
}  # fmt: skip
