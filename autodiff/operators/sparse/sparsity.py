"""Sparsity patterns of Jacobians, computed from the recorded graph, and Jacobians by few directions.

For each node, a boolean matrix records the input elements that each of its elements depends on. Elementwise operations,
reductions and operations that move elements propagate it exactly. For other operations, all results depend on all operands, so a
pattern is never too small. It holds for the recorded graph: for the branches and sort orders at this point.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.ops import Keyworded, Output, opname_of, spec_of
from compgraph.values import MultiOutput, describe

from ...batching import propagate
from ...forward import TangentNode
from ...reverse import Linearization, gradient_nodes
from ...rules import by_function, plain_operands, restore_axes
from ..trace import Trace
from .coloring import color_columns, longest_row
from .patterns import Patterns


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
    if isinstance(node.function, (Output, Keyworded)):
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
    if kind == "shape" and operand_patterns[0] is not None and node.options.get("order", "C") == "C":  # others go by the layout
        return patterns.take_rows(operand_patterns[0], node.function(_positions(operands[0]), *operands[1:], **node.options))
    if rule.positions is not None and operand_patterns[0] is not None:
        return patterns.take_rows(operand_patterns[0], rule.positions(node.raw_value, *operands, **node.options))
    pattern_function = MULTI_OPERAND_PATTERNS.get(opname_of(node.function))
    pattern = None if pattern_function is None else pattern_function(patterns, node, operand_patterns, operands)
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
    parts, places, start = [], [], 0
    for count in node.options["layout"]:
        if operand_patterns[1 + start] is not None:
            index = flat[start + 1 : start + 1 + count]
            parts.append(operand_patterns[1 + start])
            places.append(np.ravel(numbers[index[0] if count == 1 else tuple(index)]))
        start += 1 + count
    if not parts:  # the stored values depend on nothing
        return patterns.empty(math.prod(like.shape))
    return patterns.scatter_rows(patterns.stack_rows(parts), np.concatenate(places), math.prod(like.shape))


def _product_pattern(patterns: Patterns, node: object, operand_patterns: list[Any], operands: list[Any]) -> Any:
    """Return the pattern of a product of a matrix and a vector; zero coefficients add no dependence."""
    a, b = map(np.asarray, operands)
    if operand_patterns[0] is None and (a.ndim, b.ndim) == (2, 1):
        return patterns.matrix_product(a, operand_patterns[1])
    if operand_patterns[1] is None and (a.ndim, b.ndim) == (1, 2):
        return patterns.matrix_product(b.T, operand_patterns[0])
    return None


MULTI_OPERAND_PATTERNS = {
    "concatenate": _concatenated_pattern, "stack": _concatenated_pattern, "scatter": _scattered_pattern,
    "matmul": _product_pattern, "dot": _product_pattern,
}  # fmt: skip


# ------------------------------------------------------------------------------------------ derivatives


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
        raise TypeError(f"{trace.operator}: a sparse matrix cannot carry tangents of an outer derivative; leave out sparse=True")
    for node in (out, *trace.inputs):
        if node.dtype.kind == "c":
            raise TypeError(f"{trace.operator}: sparse=True is for real numbers, not the {describe(node)}; leave it out")


def _require_plain_derivatives(linearization: Linearization) -> None:
    if linearization.live:
        raise TypeError(
            f"{linearization.operator}: the function depends on nodes recorded outside, of whose graph a sparse matrix cannot "
            "be part; leave out sparse=True, or give those nodes' values"
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
