"""Lowering of matrix products and tensor contractions, and of systems, inverses, determinants and factors of small matrices.

A contraction (`einsum`, `tensordot` ...) is a sum of products of factors with labeled axes. Factors are multiplied in pairs,
preferably those whose product is summed at once, as matrix products if possible. A label is summed as soon as neither another
factor nor the result has it.

Small matrix products use kernels for known shapes. At 16 to 256 in each length these take 0.25 to 0.5 of the time of OpenBLAS
0.3, in either precision. At 8 and less they take a tenth, because a call of BLAS costs more than the product (measured on one
thread of a processor with AVX-512). The kernels copy only columns of a transposed `b`, which does not pay off for a few rows.
BLAS computes large products, because it blocks for all caches and uses threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .... import ops
from ....values import MultiOutput, Value
from ..buffer_ir import BufferView, Factorization, MatMul, Reduce, c_strides, dense_view
from .lowering_state import EMPTY, EXACT_BITS, UNSUPPORTED, LoweringState
from .reductions import append_reduction

MAX_MULTIPLICATIONS = 1 << 24  # multiplications of a small product: 256 in each length
MAX_OPERAND_SIZE = 1 << 18  # elements of an operand that stay in the cache: 2 MB of doubles
MIN_COPY_ROWS = 8  # rows of `a` for which a copy of `b` pays off
MAX_CHEAP_COPY = 1 << 10  # elements of `b` up to which a copy always pays off
MAX_GROWTH = 4  # maximal ratio of an intermediate product to the factors and the result
PANEL_BYTES = 256  # bytes of a row of a copied panel: the widest tile, of four vectors


def append_matmul(state: LoweringState, a: BufferView, b: BufferView, out: BufferView) -> None:
    """Append the product of matrices or stacks of matrices, whose result has the shape of `out`."""
    stack = out.shape[:-2]
    if not stack and out.shape == (1, 1) and a.shape[1] > 1:
        _append_inner_product(state, a, b, out)
        return
    a, b = (_contiguous_matrix(state, p) for p in (a, b))
    a, b = (p.broadcast((*stack, *p.shape[-2:])) for p in (a, b))
    state.steps.append(_choose_kernel(state, a, b, out))


def _append_inner_product(state: LoweringState, a: BufferView, b: BufferView, out: BufferView) -> None:
    """Append the product of a row and a column as a sum, which is vectorized, with rounding errors as in pairwise summation."""
    shape = (1, 1, a.shape[1])
    left, right = (BufferView(p.buffer, p.offset, shape, (0, 0, p.strides[axis])) for p, axis in ((a, 1), (b, 0)))
    terms = dense_view(out.buffer.dtype, shape)
    state.append_map("multiply", (left, right), terms)
    total = BufferView(out.buffer, out.offset, shape, (*out.strides, 0))
    state.steps.append(Reduce("add", terms, frozenset({2}), total))


def _choose_kernel(state: LoweringState, a: BufferView, b: BufferView, out: BufferView) -> MatMul:
    (m, k), n = a.shape[-2:], b.shape[-1]
    if m * k * n > MAX_MULTIPLICATIONS or max(m * k, k * n) > MAX_OPERAND_SIZE:
        return MatMul((a, b), out)
    if n == 1 and m > 1 and a.strides[-2] == 1:  # a row result is vectorized, a column is not
        a, b, out = b.matrix_transpose(), a.matrix_transpose(), out.matrix_transpose()
        m, n = 1, m
    has_gaps = n > 1 and b.strides[-1] != 1
    if has_gaps and m < MIN_COPY_ROWS and k * n > MAX_CHEAP_COPY:
        return MatMul((a, b), out)
    scratch = (state.scratch(out.buffer.dtype, k * min(n, PANEL_BYTES // out.buffer.dtype.itemsize)),) if has_gaps else ()
    return MatMul((a, b, *scratch), out, is_small=True)


def _contiguous_matrix(state: LoweringState, view: BufferView) -> BufferView:
    """Return matrices whose rows or columns are contiguous, copied if necessary."""
    (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
    if ((t == 1 or n == 1) and (s >= n or m == 1)) or ((s == 1 or m == 1) and (t >= m or n == 1)):
        return view
    return state.copy_of(view, view.buffer.dtype)


Labels = tuple[Hashable, ...]


class Factor(NamedTuple):
    """An array with labeled axes."""

    view: BufferView
    labels: Labels


# --------------------------------------------------------------------------------------------- operations


def _einsum(state: LoweringState, item: Value) -> str:
    if set(item.options) != {"subscripts"} or not isinstance(item.options["subscripts"], str):
        return UNSUPPORTED
    views = state.operand_views(item.args)
    if views is None:
        return UNSUPPORTED
    input_subscripts, arrow, result = item.options["subscripts"].replace(" ", "").partition("->")
    labels = [_parse_labels(text, len(p.shape)) for text, p in zip(input_subscripts.split(","), views, strict=True)]
    if arrow:
        out = _parse_labels(result, np.ndim(item.raw_value))
    else:
        letters = "".join(label for part in labels for label in part if isinstance(label, str))
        once = sorted(letter for letter in letters if letters.count(letter) == 1)
        out = (*range(len(once) - np.ndim(item.raw_value), 0), *once)
    return _contract(state, item, list(map(Factor, views, labels)), out)


def _parse_labels(text: str, count: int) -> Labels:
    """Return the labels of axes: letters, and for an ellipsis negative numbers that end with -1."""
    before, dots, after = text.partition("...")
    return (*before, *range(len(before) + len(after) - count, 0), *after) if dots else tuple(text)


def _tensordot(state: LoweringState, item: Value) -> str:
    views = state.operand_views(item.args)
    if views is None or len(views) != 2 or not {"axes"}.issuperset(item.options):
        return UNSUPPORTED
    if any(prod(p.shape) == 1 for p in views):
        return append_scaling(state, item, views)
    a, b = views
    axes = item.options.get("axes", 2)
    if isinstance(axes, (int, np.integer)):
        axes = list(range(-int(axes), 0)), list(range(int(axes)))
    first, second = ([int(k) % max(len(p.shape), 1) for k in np.ravel(ks)] for ks, p in zip(axes, views, strict=True))
    labels = [[("a", k) for k in range(len(a.shape))], [("b", k) for k in range(len(b.shape))]]
    for i, j in zip(first, second, strict=True):
        labels[1][j] = labels[0][i]
    out = [label for part, other in (labels, labels[::-1]) for label in part if label not in other]
    return _contract(state, item, [Factor(p, tuple(part)) for p, part in zip(views, labels, strict=True)], tuple(out))


def _batched_product(first: str, second: str, result: str) -> Callable[[LoweringState, Any], str]:
    """Return the lowering of a product of two arrays whose last axes have these labels; the leading axes broadcast."""

    def lower(state: LoweringState, item: Value) -> str:
        views = state.operand_views(item.args)
        if views is None or len(views) != 2 or item.options:
            return UNSUPPORTED
        labels = [_parse_labels(f"...{text}", len(p.shape)) for text, p in zip((first, second), views, strict=True)]
        return _contract(state, item, list(map(Factor, views, labels)), _parse_labels(f"...{result}", np.ndim(item.raw_value)))

    return lower


def _dot(state: LoweringState, item: Value) -> str:
    """Lower ``dot`` of more than two axes: along the last axis of the first operand and the second to last of the other."""
    views = state.operand_views(item.args)
    if views is None or len(views) != 2 or item.options or not all(p.shape for p in views):
        return UNSUPPORTED
    a, b = ([(name, k) for k in range(len(p.shape) - 1)] for name, p in zip("ab", views, strict=True))
    labels = (*a, "summed"), (*b[:-1], "summed", *b[-1:])
    return _contract(state, item, list(map(Factor, views, labels)), (*a, *b))


def _inner(state: LoweringState, item: Value) -> str:
    views = state.operand_views(item.args)
    if views is None or len(views) != 2 or item.options:
        return UNSUPPORTED
    if any(prod(p.shape) == 1 for p in views):
        return append_scaling(state, item, views)
    a, b = ([(name, k) for k in range(len(p.shape) - 1)] for name, p in zip("ab", views, strict=True))
    factors = [Factor(p, (*part, "summed")) for p, part in zip(views, (a, b), strict=True)]
    return _contract(state, item, factors, (*a, *b))


def append_scaling(state: LoweringState, item: Value, views: Sequence[BufferView]) -> str:
    """Lower `dot`, `inner` or `tensordot` by a scalar. NumPy calls BLAS, which adds a multiple to zeros; there 0 * inf is 0."""
    dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
    if dtype.kind != "f" or state.is_exact or not prod(shape):
        return f"{item.opname} of {dtype} is not compiled"
    scalar, other = sorted(views, key=lambda view: prod(view.shape))
    number, flat = BufferView(scalar.buffer, scalar.offset, (), ()), state.ravel(other)
    array = BufferView(flat.buffer, flat.offset, shape, c_strides(shape))
    state.views[item] = out = dense_view(dtype, shape, item)
    if flat.shape == (1,):
        state.append_map("multiply", (number, array), out)
        return ""
    is_zero, product, total = dense_view(bool, ()), dense_view(dtype, shape), dense_view(dtype, shape)
    state.append_map("equal", (number, 0.0), is_zero, dtype)
    state.append_map("multiply", (number, array), product)
    state.append_map("add", (product, 0.0), total)
    state.append_map("where", (is_zero, 0.0, total), out)
    return ""


def _vdot(state: LoweringState, item: Value) -> str:
    views = state.operand_views(item.args)
    if views is None or len(views) != 2 or item.options:
        return UNSUPPORTED
    if views[0].shape != views[1].shape:
        views = [state.ravel(p) for p in views]
    return _contract(state, item, [Factor(p, tuple(range(len(p.shape)))) for p in views], ())


# --------------------------------------------------------------------------------------------- steps


def _contract(state: LoweringState, item: Value, factors: Sequence[Factor], out: Labels) -> str:
    """Append the steps of a contraction, whose result has the labels `out`."""
    dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
    if dtype.kind != "f" or state.is_exact:
        return f"{item.opname} of {dtype} is not compiled"
    lengths: dict[Hashable, int] = {}
    for factor in factors:
        for label, n in zip(factor.labels, factor.view.shape, strict=True):
            lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    if 0 in lengths.values() or tuple(lengths.get(label, 0) for label in out) != shape:
        return EMPTY
    if len(factors) == 1 and state.is_mutable(factors[0].view):
        return "the view is not supported"
    max_size = MAX_GROWTH * max(prod(shape), *(prod(f.view.shape) for f in factors))
    remaining = [_merge_repeated_labels(state, f, lengths, dtype) for f in factors]
    while len(remaining) > 1:
        a, b, *remaining = _order_factors(remaining, out)
        needed_labels = {*out, *(label for f in remaining for label in f.labels)}
        if prod(lengths[label] for label in {*a.labels, *b.labels} & needed_labels) > max_size:
            return "an intermediate product would be large"
        remaining = [_contract_pair(state, a, b, needed_labels, out), *remaining]
    product = _sum_labels(state, remaining[0], out)
    summed_labels = lengths.keys() - set(out)
    if (summed_labels or len(factors) > 1) and all(lengths[label] == 1 for label in summed_labels):
        product = _add_zero(state, product)
    strides = dict(zip(product.labels, product.view.strides, strict=True))
    view = BufferView(product.view.buffer, product.view.offset, shape, tuple(strides[label] for label in out))
    state.views[item] = result = dense_view(dtype, shape, item) if item.memory else view
    if item.memory:  # it will be written into
        state.append_map("copy", (view,), result)
    return ""


def _add_zero(state: LoweringState, factor: Factor) -> Factor:
    """Add 0 to a factor, which removes the sign of -0: NumPy's sums of products begin with 0."""
    view, labels = factor
    result = dense_view(view.buffer.dtype, view.shape)
    state.append_map("add", (view, 0.0), result)
    return Factor(result, labels)


def _order_factors(factors: list[Factor], out: Labels) -> list[Factor]:
    """Reorder the factors so that the product of the first two can be summed along a label, if possible."""
    first, *others = factors
    for k, other in enumerate(others):
        elsewhere = {*out, *(label for f in others[:k] + others[k + 1 :] for label in f.labels)}
        if any(label in first.labels and label not in elsewhere for label in other.labels):
            return [first, other, *others[:k], *others[k + 1 :]]
    return factors


def _merge_repeated_labels(state: LoweringState, factor: Factor, lengths: dict[Hashable, int], dtype: np.dtype[Any]) -> Factor:
    """Return a factor with unique labels, without axes of length 1 that broadcast."""
    view, labels = factor
    view = view if view.buffer.dtype == dtype else state.copy_of(view, dtype)
    strides: dict[Hashable, int] = {}
    for label, n, stride in zip(labels, view.shape, view.strides, strict=True):
        if n == lengths[label]:
            strides[label] = strides.get(label, 0) + stride
    shape = tuple(lengths[label] for label in strides)
    return Factor(BufferView(view.buffer, view.offset, shape, tuple(strides.values())), tuple(strides))


def _sum_labels(state: LoweringState, factor: Factor, needed_labels: Collection[Hashable]) -> Factor:
    """Sum a factor along the axes whose labels are not needed."""
    view, labels = factor
    summed_axes = frozenset(k for k, label in enumerate(labels) if label not in needed_labels)
    if any(view.shape[k] != 1 for k in summed_axes):
        view = append_reduction(state, "add", view, summed_axes)
    axes = [k for k in range(len(labels)) if k not in summed_axes]
    shape, strides = tuple(view.shape[k] for k in axes), tuple(view.strides[k] for k in axes)
    return Factor(BufferView(view.buffer, view.offset, shape, strides), tuple(labels[k] for k in axes))


def _contract_pair(state: LoweringState, a: Factor, b: Factor, needed_labels: Collection[Hashable], out: Labels) -> Factor:
    """Multiply two factors, and sum along the axes whose labels are not needed."""
    a, b = _sum_labels(state, a, {*needed_labels, *b.labels}), _sum_labels(state, b, {*needed_labels, *a.labels})
    common_labels = [label for label in a.labels if label in b.labels]
    summed_labels = [label for label in common_labels if label not in needed_labels]
    first, second = ([label for label in f.labels if label not in common_labels] for f in (a, b))
    stack = [label for label in common_labels if label in needed_labels]
    if summed_labels and (first or second):
        if first and second and first[0] in out and second[0] in out and out.index(second[0]) < out.index(first[0]):
            a, b, first, second = b, a, second, first  # to get the axis order of the result
        return _matrix_product(state, a, b, (stack, first, summed_labels, second))
    labels = (*stack, *summed_labels, *first, *second)
    views = [_align(f, labels) for f in (a, b)]
    shape = tuple(max(n, m) for n, m in zip(*(p.shape for p in views), strict=True))
    product = dense_view(a.view.buffer.dtype, shape)
    state.append_map("multiply", views, product)
    return _sum_labels(state, Factor(product, labels), needed_labels)


def _align(factor: Factor, labels: Labels) -> BufferView:
    """Return a factor with an axis per label, of length 1 where it has none."""
    view = factor.view
    axes = dict(zip(factor.labels, zip(view.shape, view.strides, strict=True), strict=True))
    pairs = [axes.get(label, (1, 0)) for label in labels]
    return BufferView(view.buffer, view.offset, tuple(n for n, _ in pairs), tuple(s for _, s in pairs))


def _matrix_product(
    state: LoweringState, a: Factor, b: Factor, groups: tuple[list[Any], list[Any], list[Any], list[Any]]
) -> Factor:
    """Multiply two factors as matrices or stacks of matrices, whose rows, sums and columns combine several axes."""
    stack, first, summed_labels, second = groups
    lengths = dict(zip((*a.labels, *b.labels), (*a.view.shape, *b.view.shape), strict=True))
    left, right = _as_matrices(state, a, stack, first, summed_labels), _as_matrices(state, b, stack, summed_labels, second)
    labels = (*stack, *first, *second)
    product = dense_view(left.buffer.dtype, tuple(lengths[label] for label in labels))
    full_shape = (*left.shape[:-1], right.shape[-1])
    append_matmul(state, left, right, BufferView(product.buffer, 0, full_shape, c_strides(full_shape)))
    return Factor(product, labels)


def _as_matrices(state: LoweringState, factor: Factor, stack: list[Any], rows: list[Any], columns: list[Any]) -> BufferView:
    """Return a factor as matrices, copied if axes cannot be collapsed."""
    view = _align(factor, (*stack, *rows, *columns))
    ends = len(stack), len(stack) + len(rows)
    parts = (slice(ends[0], ends[1]), slice(ends[1], None))
    if not all(_is_collapsible(view.shape[part], view.strides[part]) for part in parts):
        view = state.copy_of(view, view.buffer.dtype)
    shape = tuple(prod(view.shape[part]) for part in parts)
    strides = tuple(_collapsed_stride(view.shape[part], view.strides[part]) for part in parts)
    return BufferView(view.buffer, view.offset, (*view.shape[: ends[0]], *shape), (*view.strides[: ends[0]], *strides))


def _is_collapsible(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether some axes can be collapsed to one."""
    long_axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return all(s == m * t for (_, s), (m, t) in pairwise(long_axes))


def _collapsed_stride(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the stride of collapsed axes."""
    return next((s for n, s in zip(reversed(shape), reversed(strides), strict=True) if n != 1), 0)


MAX_LENGTH = 16  # rows of a matrix; LAPACK is faster for larger ones
MAX_COLUMNS = 64  # of a right-hand side
_TOO_LARGE = f"matrices of more than {MAX_LENGTH} rows are not compiled"


def _matrix_view(state: LoweringState, operand: object, dtype: np.dtype[Any]) -> BufferView | str:
    """Return the view of small square matrices, converted to a floating-point dtype; or the reason if it is unsupported."""
    view = state.view(operand)
    if view is None or dtype.kind != "f" or len(view.shape) < 2 or 0 in view.shape:
        return UNSUPPORTED
    if view.shape[-1] > MAX_LENGTH:
        return _TOO_LARGE
    if state.is_exact:
        return EXACT_BITS
    return view if view.buffer.dtype == dtype else state.copy_of(view, dtype)


def _append_factorization(state: LoweringState, operation: str, operands: Sequence[BufferView], out: BufferView) -> None:
    stack = out.shape[:-2]
    state.steps.append(Factorization(operation, tuple(v.broadcast((*stack, *v.shape[-2:])) for v in operands), out))


def _solve(state: LoweringState, item: Value) -> str:
    dtype = np.asarray(item.raw_value).dtype
    a, b = _matrix_view(state, item.args[0], dtype), state.view(item.args[1])
    if isinstance(a, str):
        return a
    if b is None or item.options or 0 in b.shape:
        return UNSUPPORTED
    b, out = b if b.buffer.dtype == dtype else state.copy_of(b, dtype), state.allocate_result(item)
    if len(b.shape) == 1:
        b = BufferView(b.buffer, b.offset, (*b.shape, 1), (*b.strides, 0))
        out = BufferView(out.buffer, 0, (*out.shape, 1), (*out.strides, 0))
    if b.shape[-1] > MAX_COLUMNS:
        del state.views[item]
        return f"systems with more than {MAX_COLUMNS} right-hand sides are not compiled"
    _append_factorization(state, "solve", (a, b), out)
    return ""


def _inv(state: LoweringState, item: Value) -> str:
    dtype = np.asarray(item.raw_value).dtype
    a = _matrix_view(state, item.args[0], dtype)
    if isinstance(a, str):
        return a
    _append_factorization(state, "solve", (a, state.constant(np.eye(a.shape[-1], dtype=dtype))), state.allocate_result(item))
    return ""


def _append_slogdet(state: LoweringState, operand: object, dtype: np.dtype[Any]) -> tuple[BufferView, BufferView] | str:
    """Append the computation of the sign of a determinant and the logarithm of its absolute value; return their views."""
    a = _matrix_view(state, operand, dtype)
    if isinstance(a, str):
        return a
    pair = dense_view(dtype, (*a.shape[:-2], 1, 2))
    _append_factorization(state, "slogdet", (a,), pair)
    stack, strides = a.shape[:-2], pair.strides[:-2]
    return BufferView(pair.buffer, 0, stack, strides), BufferView(pair.buffer, 1, stack, strides)


def _det(state: LoweringState, item: Value) -> str:
    dtype = np.asarray(item.raw_value).dtype
    parts = _append_slogdet(state, item.args[0], dtype)
    if isinstance(parts, str):
        return parts
    sign, logarithm = parts
    magnitude = dense_view(dtype, sign.shape)
    state.append_map("exp", (logarithm,), magnitude)
    state.append_map("multiply", (sign, magnitude), state.allocate_result(item))
    return ""


def lower_slogdet(state: LoweringState, item: MultiOutput, readers: Sequence[Any]) -> bool:
    """Lower ``slogdet`` to the views of its two outputs; return False if it is unsupported."""
    parts = _append_slogdet(state, item.args[0], np.asarray(item.raw_value[0]).dtype)
    if isinstance(parts, str):
        return False
    for reader in readers:
        state.views[reader] = parts[reader.function.index]
    return True


def _cholesky(state: LoweringState, item: Value) -> str:
    a = _matrix_view(state, item.args[0], np.asarray(item.raw_value).dtype)
    if isinstance(a, str):
        return a
    if not {"upper"}.issuperset(item.options) or len(item.args) > 1:
        return UNSUPPORTED
    out = state.allocate_result(item)
    if item.options.get("upper"):
        a, out = a.matrix_transpose(), out.matrix_transpose()
    _append_factorization(state, "cholesky", (a,), out)
    return ""


numpy = ops.NUMPY
LOWERINGS: dict[Any, Any] = {
    ops.einsum: _einsum, numpy.tensordot: _tensordot, numpy.inner: _inner, numpy.vdot: _vdot, numpy.dot: _dot,
    numpy.vecdot: _batched_product("i", "i", ""), numpy.matvec: _batched_product("ij", "j", "i"),
    numpy.vecmat: _batched_product("i", "ij", "j"),
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.det: _det,
    np.linalg.cholesky: _cholesky,
}  # fmt: skip
