"""Sparse Jacobians and Hessians: their values, by few directions.

Columns without a common row get the same color, and one direction computes all columns of a color; likewise rows without a common
column. The coloring is greedy, as in A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices"
(1974): each column, in order, gets the first color without a conflict. The symmetry of Hessians is not used.

A sweep ends at the *selections* of an input: the nodes whose elements are elements of the input, such as ``x[index]``. Rows that
share an element of the input often share no element of a selection, so fewer colors suffice.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.storage import Write
from compgraph.values import INERT, describe

from ..forward import TangentNode
from ..reverse import Linearization, gradient_nodes
from ..rules import plain_operands, scatter
from .sparsity_patterns import GraphStructure, guarded_plain, moves_elements_of_one
from .trace import Trace

MAX_COMPRESSIONS = 8  # patterns kept for one function

# --------------------------------------------------------------------------------------------------- derivatives


class Compression(NamedTuple):
    """The computation of a sparse matrix from few directions.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array
        A matrix with the pattern.
    colors : array of int
        The color of each row, or of each column.
    color_count : int
        The number of colors.
    has_row_colors : bool
        Whether rows are computed together, by cotangents; otherwise columns, by tangents.
    sources : array of int
        For each element of the matrix, its position among the values of all directions.
    targets : array of int or None
        If values are summed, the element of the matrix to which each source is added.
    """

    matrix: Any
    colors: Any
    color_count: int
    has_row_colors: bool
    sources: Any
    targets: Any


class SparseDerivative:
    """Computes sparse matrices of derivatives. Patterns and colors are computed once for equal graphs.

    Attributes
    ----------
    compressions : dict
        By the key of a graph's structure.
    """

    def __init__(self) -> None:
        self.compressions: dict[Any, Compression] = {}

    def jacobian(self, trace: Trace, out: object) -> list[Any]:
        """Return the Jacobian for each input of a trace, as sparse matrices."""
        _require_real(trace, out)
        linearization = trace.linearized(out)
        return [self._compressed_jacobian(linearization, x) for x in linearization.inputs]

    def hessian(self, trace: Trace, out: object) -> Any:
        """Return the Hessian for the only input of a trace, as a sparse matrix."""
        _require_real(trace, out)
        (gradient,) = gradient_nodes(trace.operator, trace.inputs, out)
        return self._compressed_jacobian(trace.linearized(gradient), trace.inputs[0])

    def _compressed_jacobian(self, linearization: Linearization, x: Any) -> Any:
        """Compute the Jacobian for one input, with one direction per color."""
        from scipy.sparse import csr_array

        from compgraph.scipy.sparse import build_matrix

        shape = math.prod(linearization.out.shape), math.prod(x.shape)
        selections, positions = find_selections(linearization, x)
        from_selections = linearization.from_nodes(selections)
        structure = GraphStructure(from_selections)
        key = structure.key, shape, tuple([part.tobytes() for part in positions]), linearization.has_writes
        compression = self.compressions.get(key)
        if compression is None:
            starts = np.cumsum([0, *map(len, positions)])
            compression = compress(structure.pattern(), np.concatenate(positions), starts, shape[1], linearization.has_writes)
            while len(self.compressions) >= MAX_COMPRESSIONS:
                self.compressions.pop(next(iter(self.compressions)), None)
            self.compressions[key] = compression
        is_tall = sum(math.prod(each.shape) for each in linearization.inputs) <= shape[0]
        dtype = np.promote_types((linearization.out if is_tall else x).dtype, np.float32)  # SciPy has no half precision
        if not compression.color_count:
            return csr_array(shape, dtype=dtype)
        values = (
            _row_values(from_selections, compression)
            if compression.has_row_colors
            else _column_values(linearization, x, compression)
        )
        with linearization.recording():
            data = _concatenate([np.reshape(part, (-1,)) for part in values])[compression.sources].astype(dtype, copy=False)
            if compression.targets is not None:
                zeros = np.zeros(compression.matrix.nnz, data.dtype)
                data = bind(scatter, (zeros, data, compression.targets), {"index_counts": (1,)})
        return build_matrix(compression.matrix.copy(), data)


def _concatenate(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _require_real(trace: Trace, out: object) -> None:
    if isinstance(out, TangentNode):
        raise TypeError(f"{trace.operator}: a sparse matrix cannot have tangents of an outer derivative. Leave out sparse=True")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(f"{trace.operator}: sparse=True is for real numbers, not the {describe(node)}. Leave it out")


def find_selections(linearization: Linearization, x: Any) -> tuple[list[Any], list[Any]]:
    """Return the selections of an input that other operations read, and the positions of their elements in the input."""
    out = linearization.out
    roots = getattr(linearization.nodes, "roots", {})
    positions = {id(x): np.arange(math.prod(x.shape)).reshape(x.shape)}
    selections: dict[int, Any] = {}  # those that are read
    for node in reversed(linearization.nodes):
        args = node.args
        active = [position for position in node.parent_argnums if id(args[position]) in positions]
        if not active or type(node) in INERT:
            continue
        is_written = roots.get(id(node)) is not None or roots.get(id(args[0])) is not None
        if active == [0] and type(node) is not Write and not is_written and moves_elements_of_one(node):
            index = [guarded_plain(linearization, *pair) for pair in zip(args[1:], plain_operands(node)[1:], strict=True)]
            positions[id(node)] = node.function(positions[id(args[0])], *index, **node.options)
        else:
            selections.update((id(args[position]), args[position]) for position in active)
    if id(out) in positions or not selections:
        read = out if id(out) in positions else x
        selections[id(read)] = read
    return [*selections.values()], [np.ravel(positions[key]).astype(np.int32) for key in selections]


def compress(pattern: Any, positions: NDArray[Any], starts: NDArray[Any], columns: int, has_writes: bool) -> Compression:
    """Choose the directions that compute a sparse matrix.

    Parameters
    ----------
    pattern : scipy.sparse.csr_array
        The dependences of the results on the selections of an input.
    positions : array of int
        For each column of `pattern`, the number of the element of the input.
    starts : array of int
        The first column of each selection, and the number of columns.
    columns : int
        The number of elements of the input.
    has_writes : bool
        Whether the graph has writes, so that only cotangents can be propagated.
    """
    from scipy.sparse import csr_array

    count = pattern.shape[0]
    rows = np.repeat(np.arange(count), np.diff(pattern.indptr))
    flat, inverse = np.unique(rows * columns + positions[pattern.indices], return_inverse=True)
    indptr = np.searchsorted(flat, np.arange(count + 1) * columns).astype(np.int32)
    indices = (flat % max(columns, 1)).astype(np.int32)
    matrix = csr_array((np.ones(flat.size, bool), indices, indptr), shape=(count, columns))
    if not flat.size:
        return Compression(matrix, None, 0, False, None, None)
    transposed = pattern.T.tocsr()
    if has_writes or longest_row(transposed) < longest_row(matrix):
        colors, color_count = color_columns(transposed)
        selection = np.searchsorted(starts, pattern.indices, side="right") - 1
        start, size = starts[selection], np.diff(starts)[selection]
        sources = color_count * start + colors[rows] * size + pattern.indices - start
        if flat.size < sources.size:
            return Compression(matrix, colors, color_count, True, sources, inverse)
        return Compression(matrix, colors, color_count, True, sources[np.argsort(inverse)], None)
    colors, color_count = color_columns(matrix)
    return Compression(matrix, colors, color_count, False, colors[indices] * count + flat // columns, None)


def _row_values(linearization: Linearization, compression: Compression) -> list[Any]:
    """Return the cotangents of the inputs in all directions."""
    colors, chunks = compression.colors, linearization.chunks(compression.color_count)
    parts = [linearization.pull(_color_directions(colors, chunk, linearization.out), True) for chunk in chunks]
    return [_concatenate(list(of_input)) for of_input in zip(*parts, strict=True)]


def _column_values(linearization: Linearization, x: Any, compression: Compression) -> list[Any]:
    """Return the tangents of the result in all directions of an input."""
    colors, chunks = compression.colors, linearization.chunks(compression.color_count)
    return [_concatenate([linearization.push({x: _color_directions(colors, c, x)}, c.stop - c.start, True) for c in chunks])]


def _color_directions(colors: Array, chunk: slice, like: Array) -> Any:
    """Return the directions for a chunk of colors: ones at the elements of the color."""
    groups = (colors == np.arange(chunk.start, chunk.stop)[:, None]).astype(like.dtype)
    return groups.reshape(-1, *like.shape)


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
    """Assign to each column the first color that no column with a common row has."""
    by_column = pattern.tocsc()
    indices, bounds = by_column.indices.tolist(), by_column.indptr.tolist()
    row_colors = [0] * pattern.shape[0]  # the colors in each row, as bits
    colors = []
    for start, stop in itertools.pairwise(bounds):
        rows, taken = indices[start:stop], 0
        for row in rows:
            taken |= row_colors[row]
        color = ~taken & (taken + 1)  # the lowest bit that is not set
        for row in rows:
            row_colors[row] |= color
        colors.append(color.bit_length() - 1)
    return np.array(colors, int), max(colors, default=-1) + 1
