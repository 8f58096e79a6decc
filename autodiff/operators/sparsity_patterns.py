"""Sparsity patterns of recorded graphs: the input elements that each element of the result depends on.

For each node, a boolean matrix records the input elements that each of its elements depends on. Elementwise operations,
reductions and operations that move elements propagate it exactly. For other operations, all results depend on all operands, so a
pattern is never too small. It holds for the recorded graph: for the branches and sort orders at this point.

A pattern depends on the operations, their shapes and options, and a few values: indices, sort orders, and zeros of constant
factors. `GraphStructure` collects these without computing the pattern, so that the pattern of an equal graph can be used again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array
from compgraph.guards import guarded_value
from compgraph.ops import PIECEWISE, Keyworded, OnAxes, Output, opname_of, spec_of
from compgraph.storage import BufferCopy, Write, layout_of
from compgraph.values import INERT, ConstantNode, MultiOutput, Value

from ..reverse import Linearization
from ..rules import by_function, plain_operands, plain_result, restore_axes
from .contractions import contraction_of, dependences


class BufferPart(NamedTuple):
    """Elements of a buffer that is written in place, at one moment.

    Attributes
    ----------
    buffer : int
        The number of the buffer.
    positions : array of int
        The positions of the elements in it.
    """

    buffer: int
    positions: Any


class Step(NamedTuple):
    """An operation or a write that depends on the inputs.

    Attributes
    ----------
    node : Node, MultiOutput or None
        The operation; None for a write.
    sources : list
        For each operand that depends on the inputs its number, or a `BufferPart`; else None.
    operands : list
        The operands as plain arrays.
    values : tuple of arrays
        Values that determine the pattern, besides shapes and options; see `_determining_values`.
    target : BufferPart or None
        The written elements.
    """

    node: Any
    sources: list[Any]
    operands: list[Any]
    values: Any
    target: BufferPart | None


class GraphStructure:
    """The part of a graph that determines its sparsity pattern.

    Parameters
    ----------
    linearization : Linearization
        The graph, and the inputs, whose elements are the columns of the pattern.

    Attributes
    ----------
    steps : list of Step
        The operations and writes that depend on the inputs, in order.
    key : tuple
        Graphs with equal keys have the same pattern.
    """

    def __init__(self, linearization: Linearization) -> None:
        self.linearization, self.steps = linearization, list[Step]()
        inputs, out = linearization.inputs, linearization.out
        self._roots: dict[int, Any] = getattr(linearization.nodes, "roots", {})
        self._root_of_log = {root.memory: root for root in self._roots.values() if root is not None and root.memory}
        self._numbers = {id(x): number for number, x in enumerate(inputs)}  # by node id
        self._buffers: dict[Any, tuple[int, Any]] = {}  # by log: the number, and a buffer of the same layout
        self._dependent_buffers: set[int] = set()
        self.buffer_sizes: list[int] = []
        self._is_full = False  # an array is written through a view with another item size
        self._key: list[Any] = [tuple([x.shape for x in inputs])]
        for x in inputs:
            self._store_root(x, self._numbers[id(x)])
        for entry in reversed(linearization.nodes):
            self._add_write(entry) if type(entry) is Write else self._add_node(entry)
        self.result = self._source_of(out)
        self._key += [out.shape, _key_of(self.result)]
        self.key = ("full", self._key[0], out.shape) if self._is_full else tuple(self._key)

    def _source_of(self, node: Value) -> Any:
        """Return the number of a node, or its part of a written buffer; None if it does not depend on the inputs."""
        root = self._roots.get(id(node))
        if root is None or not root.memory:
            return self._numbers.get(id(node))
        part = self._part_of(root, node.raw_value)
        return part if part.buffer in self._dependent_buffers else None

    def _part_of(self, root: Any, plain: NDArray[Any], index: Any = ...) -> BufferPart:
        """Return ``plain[index]`` as a part of a written buffer, of which `plain` is a view."""
        if root.memory not in self._buffers:
            buffer_copy = BufferCopy(root.raw_value)
            self._buffers[root.memory] = len(self.buffer_sizes), buffer_copy
            self.buffer_sizes.append(buffer_copy.count)
        number, buffer_copy = self._buffers[root.memory]
        self._is_full |= plain.dtype.itemsize != buffer_copy.dtype.itemsize
        return BufferPart(number, _positions_in(buffer_copy, plain)[index])

    def _store_root(self, node: Any, source: object) -> None:
        """Add the step that stores a node in the buffer that it allocated, if that is written in place."""
        root: Any = self._roots.get(id(node))
        if root is node and root.memory:
            target = self._part_of(node, node.raw_value)
            self._dependent_buffers.add(target.buffer)
            self._add(None, [source], [node.raw_value], (), target)

    def _add_write(self, write: Write) -> None:
        target = self._part_of(self._root_of_log[write.memory], write.window, write.index)
        source = self._source_of(write.args[0]) if write.parent_argnums and type(write.args[0]) not in INERT else None
        if source is not None or target.buffer in self._dependent_buffers:
            self._dependent_buffers.add(target.buffer)
            self._add(None, [source], [getattr(write.args[0], "raw_value", write.args[0])], (), target)

    def _add_node(self, node: Any) -> None:
        root = self._roots.get(id(node))
        if id(node) in self._numbers or type(node) in INERT or node.function in PIECEWISE:
            return
        if root is not None and root is not node and root.memory:  # a view, which is read in the buffer
            return
        sources = [None] * len(node.args)
        for position in node.parent_argnums:
            sources[position] = self._source_of(node.args[position])
        if all(source is None for source in sources):
            return
        operands = plain_operands(node)
        self._numbers[id(node)] = len(self._numbers)
        self._add(node, sources, operands, self._determining_values(node, operands, sources), None)
        self._store_root(node, self._numbers[id(node)])

    def _add(self, node: Any, sources: list[Any], operands: list[Any], values: object, target: BufferPart | None) -> None:
        self.steps.append(Step(node, sources, operands, values, target))
        description = None if node is None else (node.function, _shape_of(node.raw_value), _key_of(node.options))
        shapes = tuple(map(_shape_of, operands))
        self._key.append((description, tuple(map(_key_of, sources)), shapes, _key_of(values), _key_of(target)))

    def _determining_values(self, node: Any, operands: list[Any], sources: list[Any]) -> Any:
        """Return the values that determine the pattern of an operation; they are guarded if the derivative is recorded."""
        if type(node) is MultiOutput or isinstance(node.function, (Output, Keyworded, OnAxes)):
            return ()
        rule, kind = by_function[node.function], _kind_of(node)
        if kind == "elementwise" or (rule.weights and not any(source is not None for source in sources[1:])):
            return ()
        if kind == "shape" and node.options.get("order", "C") == "C":
            return tuple([guarded_plain(self.linearization, a, x) for a, x in zip(node.args[1:], operands[1:], strict=True)])
        if rule.positions is not None and sources[0] is not None:
            if not self.linearization.create_graph:
                return rule.positions(plain_result(node), *operands, **node.options)
            with self.linearization.recording():
                return guarded_value(rule.positions(node, *node.args, **node.options), "the sparsity pattern of a derivative")
        opname = opname_of(node.function)
        if opname == "scatter":
            return self._scatter_indices(node, operands, sources)
        if opname not in MULTI_OPERAND_PATTERNS and (contraction_of(opname, operands, node.options) is not None):
            return tuple([self._factor(*parts) for parts in zip(node.args, operands, sources, strict=True)])
        return ()

    def _scatter_indices(self, node: Any, operands: list[Any], sources: list[Any]) -> Any:
        """Return the index of each update of a scatter that depends on the inputs."""
        indices, start = [], 1
        for count in node.options["index_counts"]:
            stop = start + 1 + count
            if sources[start] is not None:
                indices.append(
                    tuple(
                        map(
                            functools.partial(guarded_plain, self.linearization),
                            node.args[start + 1 : stop],
                            operands[start + 1 : stop],
                        )
                    )
                )
            start = stop
        return tuple(indices)

    def _factor(self, operand: object, plain: ArrayLike, source: object) -> Any:
        """Return the nonzero elements of a factor; None if it depends on the input, or on nodes outside of the function."""
        is_recorded = self.linearization.create_graph and isinstance(operand, Value) and not isinstance(operand, ConstantNode)
        if source is not None or is_recorded:
            return None
        return np.asarray(plain) != 0

    # ---------------------------------------------------------------------------------------- the pattern

    def pattern(self) -> Any:
        """Return the dependences of the result.

        Returns
        -------
        scipy.sparse.csr_array
            A boolean matrix with a row for each element of the output, and a column for each element of the inputs.
        """
        inputs, out = self.linearization.inputs, self.linearization.out
        sizes = [math.prod(x.shape) for x in inputs]
        patterns = Patterns(sum(sizes))
        starts = np.cumsum([0, *sizes])
        node_patterns = [patterns.identity(start, size) for start, size in zip(starts, sizes, strict=False)]
        if self._is_full:
            return patterns.full_rows(node_patterns, math.prod(out.shape))
        buffers = [BufferPattern(patterns, size) for size in self.buffer_sizes]

        def pattern_of(source: Any) -> Any:
            if source is None:
                return None
            return buffers[source.buffer].read(source.positions) if type(source) is BufferPart else node_patterns[source]

        for step in self.steps:
            operand_patterns = [pattern_of(source) for source in step.sources]
            if step.target is None:
                node_patterns.append(_propagate_pattern(patterns, step, operand_patterns))
            else:
                (pattern,), (stored,), positions = operand_patterns, step.operands, step.target.positions
                if pattern is not None:
                    pattern = patterns.take_rows(pattern, _broadcast_positions(stored, np.shape(positions)))
                buffers[step.target.buffer].write(positions, pattern)
        result = pattern_of(self.result)
        return patterns.empty(math.prod(out.shape)) if result is None else result


def guarded_plain(linearization: Linearization, operand: object, plain: object) -> Any:
    """Return the plain value of an operand, under a guard if the derivative is recorded."""
    if linearization.create_graph and isinstance(operand, Value):
        with linearization.recording():
            guarded_value(operand, "the sparsity pattern of a derivative")
    return plain


def _positions_in(buffer_copy: BufferCopy, plain: NDArray[Any]) -> Any:
    """Return the position in a buffer of each element of a view of it."""
    layout = layout_of(plain, buffer_copy.low)
    total = np.full((1,) * plain.ndim, layout["offset"] // plain.itemsize)
    for axis, (length, stride) in enumerate(zip(plain.shape, layout["strides"], strict=True)):
        along = np.arange(length) * (stride // plain.itemsize)
        total = total + along.reshape([-1 if k == axis else 1 for k in range(plain.ndim)])
    return total if plain.size else np.zeros(plain.shape, int)


def _shape_of(value: ArrayLike) -> Any:
    """Return the shape of a value, or the shapes of several outputs."""
    return tuple(map(np.shape, value)) if isinstance(value, tuple) else np.shape(value)


class _Identity:
    """Compares an object by identity in a key, which keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Identity and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _key_of(value: object) -> Any:
    """Return a hashable key of a value; keys of values that could differ in effect are different."""
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_key_of, value))
    if isinstance(value, dict):
        return tuple([(name, _key_of(part)) for name, part in value.items()])
    if isinstance(value, slice):
        return (slice, _key_of(value.start), _key_of(value.stop), _key_of(value.step))
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return (value.shape, value.dtype.str, np.asarray(value).tobytes())
    if value is None or value is Ellipsis or type(value) in (int, float, bool, str):
        return (type(value), value)
    return _Identity(value)


# ------------------------------------------------------------------------------------------ rules of operations


def _kind_of(node: Any) -> str:
    """Return the kind of an operation, or that of its rule."""
    spec = spec_of(node.function)
    return by_function[node.function].kind if spec is None or spec.kind == "own" else spec.kind


def moves_elements_of_one(node: Any) -> bool:
    """Return whether a result consists of elements of the first operand, at positions independent of its values."""
    return (
        type(node) is not MultiOutput
        and not isinstance(node.function, (Output, Keyworded, OnAxes))
        and _kind_of(node) == "shape"
        and node.options.get("order", "C") == "C"  # else by memory layout
    )


def _propagate_pattern(patterns: Patterns, step: Step, operand_patterns: list[Any]) -> Any:
    """Return the dependences of the elements of a result from those of its operands."""
    node, operands, values = step.node, step.operands, step.values
    if type(node) is MultiOutput:
        return patterns.full_rows(operand_patterns, 1)
    size = math.prod(node.shape)
    if isinstance(node.function, (Output, Keyworded, OnAxes)):
        return patterns.full_rows(operand_patterns, size)
    rule = by_function[node.function]
    if _kind_of(node) == "elementwise":
        return patterns.union(
            [
                None if g is None else patterns.take_rows(g, _broadcast_positions(x, node.shape))
                for g, x in zip(operand_patterns, operands, strict=True)
            ]
        )
    if rule.weights and operand_patterns[0] is not None and not any(g is not None for g in operand_patterns[1:]):
        return patterns.scatter_rows(operand_patterns[0], _reduced_positions(node, operands[0], **node.options), size)
    if moves_elements_of_one(node) and operand_patterns[0] is not None:
        return patterns.take_rows(operand_patterns[0], node.function(_positions(operands[0]), *values, **node.options))
    if rule.positions is not None and operand_patterns[0] is not None:
        return patterns.take_rows(operand_patterns[0], values)
    pattern_function = MULTI_OPERAND_PATTERNS.get(opname_of(node.function), _product_pattern)
    pattern = pattern_function(patterns, step, operand_patterns)
    return patterns.full_rows(operand_patterns, size) if pattern is None else pattern


def _positions(x: Array, start: int = 0) -> Any:
    return np.arange(start, start + math.prod(np.shape(x))).reshape(np.shape(x))


def _broadcast_positions(x: Array, shape: tuple[int, ...]) -> Any:
    """Return the operand position of each element of a broadcast result; None without broadcasting."""
    if np.shape(x) == shape:
        return None
    extra = np.ndim(x) - len(shape)  # a stored value may have further axes of length one
    return np.broadcast_to(_positions(x).reshape(np.shape(x)[max(extra, 0) :]), shape)


def _reduced_positions(node: Any, x: Any, axis: int | None = None, keepdims: bool = False, **_: object) -> Any:
    """Return the result position of each element of a reduced array."""
    return np.broadcast_to(restore_axes(_positions(node.raw_value), x, axis, keepdims), x.shape)


def _concatenated_pattern(patterns: Patterns, step: Step, operand_patterns: list[Any]) -> Any:
    node, operands = step.node, step.operands
    sizes = np.cumsum([0, *(math.prod(np.shape(x)) for x in operands)]).tolist()
    parts = [patterns.empty(math.prod(np.shape(x))) if g is None else g for g, x in zip(operand_patterns, operands, strict=True)]
    options = {name: value for name, value in node.options.items() if name == "axis"}
    return patterns.take_rows(patterns.stack_rows(parts), node.function(*map(_positions, operands, sizes), **options))


def _scattered_pattern(patterns: Patterns, step: Step, operand_patterns: list[Any]) -> Any:
    like = step.operands[0]
    numbers, updates = _positions(like), [g for g in operand_patterns[1:] if g is not None]
    if not updates:  # the stored values depend on nothing
        return patterns.empty(math.prod(like.shape))
    positions = [np.ravel(numbers[index[0] if len(index) == 1 else index]) for index in step.values]
    return patterns.scatter_rows(patterns.stack_rows(updates), np.concatenate(positions), math.prod(like.shape))


def _product_pattern(patterns: Patterns, step: Step, operand_patterns: list[Any]) -> Any:
    """Return the pattern of a product; zero coefficients add no dependence. None for other operations and large products."""
    opname = opname_of(step.node.function)
    operands = [np.asarray(x) for x in step.operands]
    contraction = contraction_of(opname, operands, step.node.options)
    if contraction is None:
        return None
    nonzeros = [np.ones(x.shape, bool) if value is None else value for x, value in zip(operands, step.values, strict=True)]
    a, *others = nonzeros
    if opname in ("matmul", "dot") and operand_patterns[0] is None and (a.ndim, others[0].ndim) == (2, 1):
        return patterns.matrix_product(a, operand_patterns[1])
    if opname in ("matmul", "dot") and operand_patterns[1] is None and (a.ndim, others[0].ndim) == (1, 2):
        return patterns.matrix_product(others[0].T, operand_patterns[0])
    positions = dependences(contraction, nonzeros, [g is not None for g in operand_patterns])
    if positions is None:
        return None
    active = [g for g in operand_patterns if g is not None]
    rows = math.prod(step.node.shape)
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

    def identity(self, start: int, size: int) -> Any:
        """Return the pattern of `size` elements, each of which depends on one column, from `start` on."""
        return self._csr(np.arange(start, start + size, dtype=np.int32), np.arange(size + 1, dtype=np.int32))

    def empty(self, rows: int) -> Any:
        """Return the pattern without dependences."""
        return self._csr(np.zeros(0, np.int32), np.zeros(rows + 1, np.int32))

    def full_rows(self, patterns: Sequence[Any], rows: int) -> Any:
        """Return a pattern whose rows each have all dependences of some patterns."""
        columns = np.unique(np.concatenate([g.indices for g in patterns if g is not None]))
        return self._csr(np.tile(columns, rows), np.arange(rows + 1) * len(columns))

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
        sources = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return self._csr(pattern.indices[sources], indptr)

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
        """Return the pattern of the product of a boolean matrix with values of a pattern."""
        product = self._make(matrix) @ pattern
        product.sort_indices()
        return product


class BufferPattern:
    """The pattern of a buffer that is written in place.

    Rows are appended for each write; reads take the current row of each element.

    Parameters
    ----------
    patterns : Patterns
        The operations of patterns.
    size : int
        The number of elements.
    """

    def __init__(self, patterns: Patterns, size: int) -> None:
        self.patterns = patterns
        self._rows = np.full(size, -1)  # for each element, its row in the stacked parts; -1 without dependences
        self._parts: list[Any] = []
        self._starts = [0]

    def write(self, positions: NDArray[Any], pattern: Any) -> None:
        """Replace the rows at some positions; None without dependences. The last row at a position remains."""
        if pattern is None:
            self._rows[positions] = -1
            return
        self._rows[positions] = np.arange(self._starts[-1], self._starts[-1] + pattern.shape[0]).reshape(np.shape(positions))
        self._parts.append(pattern)
        self._starts.append(self._starts[-1] + pattern.shape[0])

    def read(self, positions: NDArray[Any]) -> Any:
        """Return the rows at some positions."""
        rows = np.ravel(self._rows[positions])
        numbers = np.searchsorted(self._starts, rows, side="right") - 1  # of the parts
        used_numbers = np.unique(numbers[rows >= 0])
        if not used_numbers.size:
            return self.patterns.empty(rows.size)
        starts = np.asarray(self._starts)
        sizes = starts[used_numbers + 1] - starts[used_numbers]
        new_starts = np.zeros(len(self._starts), int)
        new_starts[used_numbers] = np.cumsum(sizes) - sizes
        rows = np.where(rows < 0, -1, rows - starts[numbers] + new_starts[numbers])
        return self.patterns.take_rows(self.patterns.stack_rows([self._parts[number] for number in used_numbers]), rows)
