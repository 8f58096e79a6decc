"""Sparse Jacobians and Hessians: their sparsity pattern, from the recorded graph, and their values, by few directions.

For each node, a boolean matrix records the input elements that each of its elements depends on. Elementwise operations,
reductions and operations that move elements propagate it exactly. For other operations, all results depend on all operands, so a
pattern is never too small. It holds for the recorded graph: for the branches and sort orders at this point.

Columns without a common row get the same color, and one direction computes all columns of a color. The coloring is greedy, as in
A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices" (1974): each column, in order, gets the
first color without a conflict. The symmetry of Hessians is not used.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.ops import Keyworded, OnAxes, Output, opname_of, spec_of
from compgraph.values import MultiOutput, describe

from ..batching import propagate
from ..forward import TangentNode
from ..reverse import Linearization, gradient_nodes
from ..rules import by_function, plain_operands, restore_axes
from .contractions import contraction_of, dependences
from .trace import Trace

# --------------------------------------------------------------------------------------------------- derivatives


def sparse_jacobian(trace: Trace, out: object) -> list[Any]:
    """Return the Jacobian for each input of a trace, as sparse matrices."""
    _require_real(trace, out)
    linearization = trace.linearized(out)
    _require_plain_derivatives(linearization)
    return [_compressed_jacobian(linearization, i) for i in range(len(trace.inputs))]


def sparse_hessian(trace: Trace, out: object) -> Any:
    """Return the Hessian for the only input of a trace, as a sparse matrix."""
    _require_real(trace, out)
    (gradient,) = gradient_nodes(trace.operator, trace.inputs, out)
    linearization = trace.linearized(gradient)
    _require_plain_derivatives(linearization)
    return _compressed_jacobian(linearization, 0)


def _require_real(trace: Trace, out: object) -> None:
    if isinstance(out, TangentNode):
        raise TypeError(f"{trace.operator}: a sparse matrix cannot have tangents of an outer derivative. Leave out sparse=True")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(f"{trace.operator}: sparse=True is for real numbers, not the {describe(node)}. Leave it out")


def _require_plain_derivatives(linearization: Linearization) -> None:
    if linearization.create_graph:
        raise TypeError(
            f"{linearization.operator}: the function depends on nodes recorded outside of it, and a sparse matrix cannot be a "
            "node of their graph. Leave out sparse=True, or pass the values of these nodes"
        )


def _compressed_jacobian(linearization: Linearization, i: int) -> Any:
    """Compute the Jacobian for one input, with one direction per color."""
    from scipy.sparse import csr_array

    x, out = linearization.inputs[i], linearization.out
    shape = (math.prod(out.shape), math.prod(x.shape))
    if linearization.has_writes or not all(shape):
        return csr_array(np.reshape(linearization.rows()[i], shape))
    pattern = sparsity_pattern(linearization, x)
    transposed = pattern.T.tocsr()
    rows = np.repeat(np.arange(shape[0]), np.diff(pattern.indptr))
    if longest_row(transposed) < longest_row(pattern):
        colors, count = color_columns(transposed)
        values = np.concatenate(
            [linearization.pull(_color_directions(colors, c, out))[i].reshape(-1, shape[1]) for c in linearization.chunks(count)]
        )
        data = values[colors[rows], pattern.indices]
    else:
        colors, count = color_columns(pattern)
        pushed = [linearization.push({x: _color_directions(colors, c, x)}, c.stop - c.start) for c in linearization.chunks(count)]
        values = np.concatenate([p.reshape(-1, shape[0]) for p in pushed])
        data = values[colors[pattern.indices], rows]
    return csr_array((data, pattern.indices, pattern.indptr), shape=shape)


def _color_directions(colors: Array, chunk: slice, like: Any) -> Any:
    """Return the directions for a chunk of colors: ones at the elements of the color."""
    groups = (colors == np.arange(chunk.start, chunk.stop)[:, None]).astype(like.dtype)
    return groups.reshape(-1, *like.shape)


# -------------------------------------------------------------------------------------------- patterns of graphs


def sparsity_pattern(linearization: Linearization, x: Any) -> Any:
    """Return the dependences of the elements of a node on those of an input.

    Parameters
    ----------
    linearization : Linearization
        The nodes between them; without in-place writes.
    x : Node
        The input.

    Returns
    -------
    scipy.sparse.csr_array
        A boolean matrix with a row for each element of the output, and a column for each element of the input.
    """
    patterns = Patterns(math.prod(x.shape))
    node_patterns = propagate(
        reversed(linearization.nodes), {x: patterns.identity()}, functools.partial(_propagate_pattern, patterns)
    )
    pattern = node_patterns.get(linearization.out)
    return patterns.empty(math.prod(linearization.out.shape)) if pattern is None else pattern


def _propagate_pattern(patterns: Patterns, node: Any, operand_patterns: list[Any]) -> Any:
    """Return the dependences of a node's elements from those of its operands."""
    if type(node) is MultiOutput:
        return patterns.full_rows(operand_patterns, 1)
    size = math.prod(node.shape)
    if isinstance(node.function, (Output, Keyworded, OnAxes)):
        return patterns.full_rows(operand_patterns, size)
    rule, operands = by_function[node.function], plain_operands(node)
    spec = spec_of(node.function)
    kind = rule.kind if spec is None or spec.kind == "own" else spec.kind
    if kind == "elementwise":
        return patterns.union(
            [
                None if g is None else patterns.take_rows(g, _broadcast_positions(x, node.shape))
                for g, x in zip(operand_patterns, operands, strict=True)
            ]
        )
    if rule.weights and operand_patterns[0] is not None and not any(g is not None for g in operand_patterns[1:]):
        return patterns.scatter_rows(operand_patterns[0], _reduced_positions(node, operands[0], **node.options), size)
    if kind == "shape" and operand_patterns[0] is not None and node.options.get("order", "C") == "C":  # else by memory layout
        return patterns.take_rows(operand_patterns[0], node.function(_positions(operands[0]), *operands[1:], **node.options))
    if rule.positions is not None and operand_patterns[0] is not None:
        return patterns.take_rows(operand_patterns[0], rule.positions(node.raw_value, *operands, **node.options))
    pattern_function = MULTI_OPERAND_PATTERNS.get(opname_of(node.function))
    pattern = (pattern_function or _product_pattern)(patterns, node, operand_patterns, operands)
    return patterns.full_rows(operand_patterns, size) if pattern is None else pattern


def _positions(x: Array, start: int = 0) -> Any:
    return np.arange(start, start + math.prod(np.shape(x))).reshape(np.shape(x))


def _broadcast_positions(x: Array, shape: tuple[int, ...]) -> Any:
    """Return the operand position of each element of a broadcast result; None without broadcasting."""
    return None if np.shape(x) == shape else np.broadcast_to(_positions(x), shape)


def _reduced_positions(node: Any, x: Any, axis: int | None = None, keepdims: bool = False, **_: object) -> Any:
    """Return the result position of each element of a reduced array."""
    return np.broadcast_to(restore_axes(_positions(node.raw_value), x, axis, keepdims), x.shape)


def _concatenated_pattern(patterns: Patterns, node: Any, operand_patterns: list[Any], operands: list[Any]) -> Any:
    sizes = np.cumsum([0, *(math.prod(np.shape(x)) for x in operands)]).tolist()
    parts = [patterns.empty(math.prod(np.shape(x))) if g is None else g for g, x in zip(operand_patterns, operands, strict=True)]
    options = {name: value for name, value in node.options.items() if name == "axis"}
    return patterns.take_rows(patterns.stack_rows(parts), node.function(*map(_positions, operands, sizes), **options))


def _scattered_pattern(patterns: Patterns, node: Any, operand_patterns: list[Any], operands: list[Any]) -> Any:
    like, *flat = operands
    numbers = _positions(like)
    parts, positions, start = [], [], 0
    for count in node.options["index_counts"]:
        if operand_patterns[1 + start] is not None:
            index = flat[start + 1 : start + 1 + count]
            parts.append(operand_patterns[1 + start])
            positions.append(np.ravel(numbers[index[0] if count == 1 else tuple(index)]))
        start += 1 + count
    if not parts:  # the stored values depend on nothing
        return patterns.empty(math.prod(like.shape))
    return patterns.scatter_rows(patterns.stack_rows(parts), np.concatenate(positions), math.prod(like.shape))


def _product_pattern(patterns: Patterns, node: Any, operand_patterns: list[Any], operands: list[Any]) -> Any:
    """Return the pattern of a product; zero coefficients add no dependence. None for other operations and large products."""
    opname = opname_of(node.function)
    a, *others = map(np.asarray, operands)
    if opname in ("matmul", "dot") and operand_patterns[0] is None and (a.ndim, others[0].ndim) == (2, 1):
        return patterns.matrix_product(a, operand_patterns[1])
    if opname in ("matmul", "dot") and operand_patterns[1] is None and (a.ndim, others[0].ndim) == (1, 2):
        return patterns.matrix_product(others[0].T, operand_patterns[0])
    contraction = contraction_of(opname, operands, node.options)
    if contraction is None:
        return None
    positions = dependences(contraction, operands, [g is not None for g in operand_patterns])
    if positions is None:
        return None
    active = [g for g in operand_patterns if g is not None]
    rows = math.prod(node.shape)
    return patterns.union([patterns.map_rows(g, *pair, rows) for g, pair in zip(active, positions, strict=True)])


MULTI_OPERAND_PATTERNS = {
    "concatenate": _concatenated_pattern, "stack": _concatenated_pattern, "scatter": _scattered_pattern,
}  # fmt: skip


# ---------------------------------------------------------------------------------------- operations of patterns


class Patterns:
    """Boolean sparse matrices with a common number of columns, and their operations.

    Most operations of a graph preserve the pattern. A result that equals an operand is the same object, where that needs no
    comparison, and unions are cached by the identity of their operands.

    Parameters
    ----------
    columns : int
        The number of elements of the input.
    """

    def __init__(self, columns: int) -> None:
        from scipy.sparse import csr_array

        self._make = csr_array
        self.columns = columns
        self._unions: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def _csr(self, indices: NDArray[Any], indptr: NDArray[Any]) -> Any:
        return self._make((np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, self.columns))

    def identity(self) -> Any:
        """Return the pattern in which each element depends on itself."""
        return self._csr(np.arange(self.columns, dtype=np.int32), np.arange(self.columns + 1, dtype=np.int32))

    def empty(self, rows: int) -> Any:
        """Return the pattern without dependences."""
        return self._csr(np.zeros(0, np.int32), np.zeros(rows + 1, np.int32))

    def full_rows(self, patterns: Sequence[Any], rows: int) -> Any:
        """Return a pattern whose rows each have all dependences of some patterns."""
        used = np.unique(np.concatenate([g.indices for g in patterns if g is not None]))
        return self._csr(np.tile(used, rows), np.arange(rows + 1) * len(used))

    def union(self, patterns: Sequence[Any]) -> Any:
        """Return the union of dependences."""
        first, *others = [g for g in patterns if g is not None]
        for other in others:
            first = self._pair_union(first, other)
        return first

    def _pair_union(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        key = (id(a), id(b)) if id(a) < id(b) else (id(b), id(a))
        if key not in self._unions:
            union = a + b
            union = a if union.nnz == a.nnz else b if union.nnz == b.nnz else union
            self._unions[key] = (union, a, b)  # kept alive, so that their ids stay unique
        return self._unions[key][0]

    def take_rows(self, pattern: Any, positions: Array | None) -> Any:
        """Return the rows at some positions, empty ones for negative positions; the pattern itself if `positions` is None."""
        if positions is None:
            return pattern
        positions = np.ravel(positions)
        size = pattern.shape[0]
        if len(positions) == size and np.array_equal(positions, np.arange(size)):
            return pattern
        if (positions < 0).any():
            pattern = self._csr(pattern.indices, np.append(pattern.indptr, pattern.indptr[-1]))
            positions = np.where(positions < 0, size, positions)
        starts, counts = pattern.indptr[positions], np.diff(pattern.indptr)[positions]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return self._csr(pattern.indices[within], indptr)

    def scatter_rows(self, pattern: Any, positions: Array, rows: int) -> Any:
        """Scatter rows to positions; rows at the same position are united."""
        positions = np.ravel(positions)
        counts = np.diff(pattern.indptr)
        if rows == 1:
            return self.full_rows([pattern], 1)
        if len(positions) == 1 or (np.diff(positions) > 0).all():  # each position occurs once, in order
            row_counts = np.zeros(rows + 1, pattern.indptr.dtype)
            row_counts[positions + 1] = counts
            return self._csr(pattern.indices, np.cumsum(row_counts))
        coordinates = np.repeat(positions, counts), pattern.indices
        union = self._make((np.ones(pattern.nnz, bool), coordinates), shape=(rows, self.columns))
        union.sum_duplicates()
        return union

    def stack_rows(self, patterns: Sequence[Any]) -> Any:
        """Stack the rows of patterns."""
        if len(patterns) == 1:
            return patterns[0]
        counts = np.concatenate([np.diff(g.indptr) for g in patterns])
        return self._csr(np.concatenate([g.indices for g in patterns]), np.concatenate([[0], np.cumsum(counts)]))

    def map_rows(self, pattern: Any, positions: NDArray[Any], sources: NDArray[Any], rows: int) -> Any:
        """Unite at each position the rows of `pattern` that are its sources; positions may repeat."""
        selection = self._make((np.ones(positions.size, bool), (positions, sources)), shape=(rows, pattern.shape[0]))
        product = selection @ pattern
        product.sort_indices()
        return product

    def matrix_product(self, matrix: NDArray[Any], pattern: object) -> Any:
        """Return the pattern of the product of a matrix with values of a pattern."""
        product = self._make(matrix != 0) @ pattern
        product.sort_indices()
        return product


# ------------------------------------------------------------------------------------------------------ coloring


def color_columns(pattern: Any) -> tuple[Any, int]:
    """Color the columns, so that no two columns of one color have an element in the same row.

    Parameters
    ----------
    pattern : scipy.sparse.csr_array
        A matrix that is true where elements are.

    Returns
    -------
    colors : numpy.ndarray
        The color of each column, from 0.
    count : int
        The number of colors.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> colors, count = color_columns(scipy.sparse.csr_array(np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool)))
    >>> colors.tolist(), count
    ([0, 1, 0, 1], 2)
    """
    columns = pattern.shape[1]
    pattern = pattern if pattern.has_sorted_indices else pattern.sorted_indices()
    max_colors = longest_row(pattern)
    if max_colors <= 1:
        return np.zeros(columns, int), min(columns, 1)
    width = _bandwidth(pattern)
    if width <= max_colors:  # a full band, for which fewer colors do not suffice
        return np.arange(columns) % width, width
    colors, count = _color_greedily(pattern) if max_colors < columns else (np.arange(columns), columns)
    return (colors, count) if count <= width else (np.arange(columns) % width, width)


def longest_row(pattern: Any) -> int:
    """Return the length of the longest row, which is the minimal number of colors."""
    return int(np.max(np.diff(pattern.indptr), initial=0))


def _bandwidth(pattern: Any) -> int:
    """Return the maximum distance between the first and the last element of a row."""
    rows = np.flatnonzero(np.diff(pattern.indptr))
    return int(np.max(pattern.indices[pattern.indptr[rows + 1] - 1] - pattern.indices[pattern.indptr[rows]], initial=-1)) + 1


def _color_greedily(pattern: Any) -> tuple[Any, int]:
    """Give each column the first color that no column with a common row has."""
    by_column = pattern.tocsc()
    indices, bounds = by_column.indices.tolist(), by_column.indptr.tolist()
    used = [0] * pattern.shape[0]  # the colors in each row, as bits
    colors = []
    for start, stop in itertools.pairwise(bounds):
        rows, taken = indices[start:stop], 0
        for row in rows:
            taken |= used[row]
        color = ~taken & (taken + 1)  # the lowest bit that is not set
        for row in rows:
            used[row] |= color
        colors.append(color.bit_length() - 1)
    return np.array(colors, int), max(colors, default=-1) + 1
