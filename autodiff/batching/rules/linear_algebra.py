"""Batching rules of products (of vectors and matrices, convolutions), linear systems and norms."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.nn import signal_padding

from ..levels import broadcast_batch, pad_ndim
from .call import RULES_BY_OPNAME, BatchRule, Call, NoBatchRuleError, flatten_elements, shift_axis


def matrix_product(a: NDArray[Any], b: NDArray[Any], batched: Sequence[bool], ndims: Sequence[int]) -> Any:
    """``a @ b`` for each batch element; as one matrix product where that is possible.

    Parameters
    ----------
    a, b : array
        The operands.
    batched : (bool, bool)
        Which of them have a batch axis.
    ndims : (int, int)
        Their numbers of axes without it.
    """
    (a_batched, b_batched), (na, nb) = batched, ndims
    if not na or not nb:
        raise ValueError("matmul: an operand has no axes, but needs at least one; use * instead")
    if a_batched and not b_batched and (na == 1 or nb <= 2):
        if na == nb == 2:
            size, rows, columns = a.shape
            return np.reshape(np.matmul(np.reshape(a, (size * rows, columns)), b), (size, rows, b.shape[1]))
        product = np.matmul(a, b)
        return product if na > 1 or nb <= 2 else np.moveaxis(product, -2, 0)
    if b_batched and not a_batched and na == 1 and nb > 1:
        return np.matmul(a, b)
    if b_batched and not a_batched and nb == 1:
        product = np.matmul(b, np.swapaxes(a, -1, -2)) if na > 1 else np.matmul(b, a)
        return product if na <= 2 else np.moveaxis(product, -2, 0)
    left = np.expand_dims(a, -2) if na == 1 else a
    right = np.expand_dims(b, -1) if nb == 1 else b
    ndim = max(na, nb, 2)
    left, right = pad_ndim(left, ndim) if a_batched else left, pad_ndim(right, ndim) if b_batched else right
    product = bind(ops.stacked_matmul if a_batched and b_batched else np.matmul, (left, right))
    dropped = tuple([axis for axis, n in ((-2, na), (-1, nb)) if n == 1])
    return np.squeeze(product, dropped) if dropped else product


def matmul(call: Call) -> Any:
    """``a @ b``."""
    if call.function is not call.base:  # with options
        raise NoBatchRuleError
    a, b = call.values
    return matrix_product(a, b, call.has_batch_axis, call.ndims)


def dot(call: Call) -> Any:
    """``np.dot``; of more than two axes, over the last axis of `a` and the second last of `b`."""
    na, nb = call.ndims
    if not na or not nb:
        return np.multiply(*call.aligned())
    if na <= 2 and nb <= 2:
        return matrix_product(call.values[0], call.values[1], call.has_batch_axis, call.ndims)
    first, second = string.ascii_lowercase[: na - 1], string.ascii_uppercase[:nb]
    summed = "z" if nb == 1 else f"{second[: nb - 2]}z{second[nb - 1]}"
    return _batched_einsum(call, f"{first}z", summed, first + summed.replace("z", ""))


def inner(call: Call) -> Any:
    """``np.inner``, over the last axes."""
    na, nb = call.ndims
    if not na or not nb:
        return np.multiply(*call.aligned())
    first, second = string.ascii_lowercase[: na - 1], string.ascii_uppercase[: nb - 1]
    return _batched_einsum(call, f"{first}z", f"{second}z", first + second)


def _batched_einsum(call: Call, first: str, second: str, result: str) -> Any:
    """``np.einsum`` of two operands, with the subscript "y" for the batch axis."""
    a, b = ["y" * is_batched for is_batched in call.has_batch_axis]
    return bind(ops.einsum, tuple(call.values), {"subscripts": f"{a}{first},{b}{second}->y{result}"})


def einsum(call: Call) -> Any:
    """``np.einsum``, with an unused subscript for the batch axis."""
    subscripts = call.options["subscripts"].replace(" ", "")
    terms, _, result = subscripts.partition("->")
    if "->" not in subscripts:
        letters = terms.replace(",", "").replace(".", "")
        result = ("..." if "..." in terms else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    letter = next(c for c in string.ascii_letters if c not in subscripts)
    parts = [letter + t if is_batched else t for t, is_batched in zip(terms.split(","), call.has_batch_axis, strict=True)]
    return call.run(call.values, subscripts=f"{','.join(parts)}->{letter}{result}")


def outer(call: Call) -> Any:
    """``np.outer``, of flattened elements."""
    (a, b), (a_batched, b_batched) = call.values, call.has_batch_axis
    a = np.expand_dims(flatten_elements(a), 2) if a_batched else np.reshape(a, (-1, 1))
    b = np.expand_dims(flatten_elements(b), 1) if b_batched else np.reshape(b, (1, -1))
    return a * b


def vdot(call: Call) -> Any:
    """``np.vdot``, of flattened elements."""
    pairs = zip(call.values, call.has_batch_axis, strict=True)
    a, b = [flatten_elements(v) if is_batched else np.ravel(v) for v, is_batched in pairs]
    return np.vecdot(a, b)


def tensordot(call: Call) -> Any:
    """``np.tensordot``, by `numpy.einsum`."""
    (na, nb), axes = call.ndims, call.options.get("axes", 2)
    if isinstance(axes, (int, np.integer)):
        axes = list(range(na - axes, na)), list(range(axes))
    axes_a, axes_b = [[part] if isinstance(part, (int, np.integer)) else list(part) for part in axes]
    letters = iter(c for c in string.ascii_letters if c != "y")
    first, second = [[next(letters) for _ in range(n)] for n in (na, nb)]
    for i, j in zip(axes_a, axes_b, strict=True):
        second[j] = first[i]
    summed = {first[i] for i in axes_a}
    result = [c for c in (*first, *second) if c not in summed]
    return _batched_einsum(call, "".join(first), "".join(second), "".join(result))


def kron(call: Call) -> Any:
    """``np.kron``: an outer product, whose axes of the two operands are interleaved and merged."""
    ndim = max(call.ndims)
    parts = []
    for position, (value, is_batched, n) in enumerate(zip(call.values, call.has_batch_axis, call.ndims, strict=True)):
        value = pad_ndim(value, ndim) if is_batched else np.reshape(value, (1, *(1,) * (ndim - n), *np.shape(value)))
        pairs = [(length, 1) if position == 0 else (1, length) for length in value.shape[1:]]
        parts.append((value.shape[1:], np.reshape(value, (value.shape[0], *[length for pair in pairs for length in pair]))))
    (shape_a, a), (shape_b, b) = parts
    return np.reshape(a * b, (call.batch_size, *[m * n for m, n in zip(shape_a, shape_b, strict=True)]))


def gufunc(*core_ndims: int) -> BatchRule:
    """The rule of a generalized ufunc, whose operands have some core axes and broadcast over the others."""

    def rule(call: Call) -> Any:
        loops = max(n - core for n, core in zip(call.ndims, core_ndims, strict=True))
        triples = zip(call.values, call.has_batch_axis, core_ndims, strict=True)
        return call.run([pad_ndim(v, loops + core) if is_batched else v for v, is_batched, core in triples])

    return rule


def linalg_vecdot(call: Call) -> Any:
    """``np.linalg.vecdot``, along the last axis."""
    if call.options.get("axis", -1) != -1:
        raise NoBatchRuleError
    return gufunc(1, 1)(call)


def solve(call: Call) -> Any:
    """``np.linalg.solve``, whose right side is a vector only if it has one axis."""
    (a, b), (a_batched, b_batched), (na, nb) = call.values, call.has_batch_axis, call.ndims
    if nb == 2 and na == 2 and b_batched and not a_batched:  # one factorization for the whole batch
        columns = np.moveaxis(b, 0, 1)
        solution = np.linalg.solve(a, np.reshape(columns, (columns.shape[0], columns.shape[1] * columns.shape[2])))
        return np.moveaxis(np.reshape(solution, columns.shape), 1, 0)
    if nb != 1:
        return np.linalg.solve(*call.aligned())
    if b_batched and not a_batched and na == 2:
        return np.swapaxes(np.linalg.solve(a, np.swapaxes(b, 0, 1)), 0, 1)
    columns = np.expand_dims(b, -1)
    return np.squeeze(np.linalg.solve(a, pad_ndim(columns, na) if b_batched else columns), -1)


def norm(call: Call) -> Any:
    """``np.linalg.norm``: of vectors, of matrices, or of all numbers of an element."""
    x, ndim = call.first(), call.ndims[0]
    axis, order, keepdims = call.options.get("axis"), call.options.get("ord"), call.options.get("keepdims", False)
    if not ndim:
        raise NoBatchRuleError
    if axis is not None:
        return call.on_first(x, axis=shift_axis(axis, ndim))
    if order is None:
        norms = np.linalg.norm(flatten_elements(x), axis=1)
        return np.reshape(norms, (call.batch_size, *(1,) * ndim)) if keepdims else norms
    if ndim > 2:
        raise NoBatchRuleError
    return call.on_first(x, axis=1 if ndim == 1 else (1, 2))


def cross(call: Call) -> Any:
    """``np.cross``, of vectors along the last axis."""
    if any(call.options.get(name, -1) not in (None, -1) for name in ("axisa", "axisb", "axisc", "axis")):
        raise NoBatchRuleError
    return call.run(call.aligned())


def multi_dot(call: Call) -> Any:
    """``np.linalg.multi_dot``, from left to right."""
    factors = [[v, b, n] for v, b, n in zip(call.values, call.has_batch_axis, call.ndims, strict=True)]

    def multiply(left: list[Any], right: list[Any]) -> Any:
        (a, a_batched, na), (b, b_batched, nb) = left, right
        product = matrix_product(a, b, [a_batched, b_batched], [na, nb]) if a_batched or b_batched else np.matmul(a, b)
        return [product, a_batched or b_batched, na + nb - 2]

    return functools.reduce(multiply, factors)[0]


def on_axes(call: Call) -> Any:
    """A generalized ufunc with ``axes=``; computed by the fallback loop."""
    raise NoBatchRuleError


def sparse_product(call: Call) -> Any:
    """A sparse matrix times batched vectors or dense matrices, as one product."""
    x = call.first()
    if call.ndims[0] == 1:
        return np.transpose(call.on_first(np.transpose(x)))
    size, rows, columns = x.shape
    product = call.on_first(np.reshape(np.moveaxis(x, 0, 1), (rows, size * columns)))
    return np.moveaxis(np.reshape(product, (product.shape[0], size, columns)), 1, 0)


RULES_BY_OPNAME |= {
    "matmul": matmul, "dot": dot, "inner": inner, "outer": outer, "vdot": vdot, "einsum": einsum, "tensordot": tensordot,
    "kron": kron, "vecdot": gufunc(1, 1), "linalg_vecdot": linalg_vecdot, "matvec": gufunc(2, 1), "vecmat": gufunc(1, 2),
    "stacked_matmul": gufunc(2, 2), "linalg_solve": solve, "linalg_norm": norm, "cross": cross, "linalg_multi_dot": multi_dot,
    "multi_dot": multi_dot, "on_axes": on_axes, "scipy_sparse_times": sparse_product,
}  # fmt: skip


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
