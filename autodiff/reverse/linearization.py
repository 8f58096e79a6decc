"""The graph between inputs and a result, as a linear map: cotangents propagate back, tangents forward."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.context import active_checks, active_profiler, recording_on, records_for_replay
from compgraph.frames import set_lines_since
from compgraph.graph import to_values
from compgraph.guards import note_input_shapes
from compgraph.tracing import after_trace
from compgraph.values import Value, constant_operand, is_operator_tracer, next_sequence_number

from ..batching import propagate, push_node
from ..forward import TangentNode
from ..rules import RuleErrors
from .profiled_sweeps import profile_step
from .replay import Tape
from .structural_zeros import contains_nan, has_recorded_sweeps, known_supports, report_unmasked
from .support_rules import as_support, mask_tangent, push_support
from .sweep import collect, connected_zeros, depends_on_outer_tracers, depends_on_outside, ids_on_paths, sweep, sweep_batch


def push_through(
    nodes: list[Any], tangents: dict[Any, Any], output: object, create_graph: bool, count: int | None, support: bool | None = None
) -> Any:
    """Propagate tangents forward through a graph to its output.

    Parameters
    ----------
    nodes : list
        The graph, as `collect` returns it, without writes.
    tangents : dict
        The tangents of the inputs, of shape ``(count, *node.shape)``, or of the shape of the node if `count` is None.
    output : Node
        The node whose tangents are returned.
    create_graph : bool
        Whether rules receive nodes, so that their computations are recorded.
    count : int or None
        The batch size; None for a single direction without a batch axis.
    support : True, optional
        Whether all zeros of the tangents are structural; see `structural_zeros`.

    Returns
    -------
    array, Node or None
        None if the output does not depend on the inputs.
    """
    has_zeros = (support is not None and count is not None) or has_recorded_sweeps(nodes)
    if not (has_zeros and create_graph and records_for_replay.get()):
        output_tangents = _forward(nodes, tangents, output, create_graph, count, {}, {})
        has_nan = contains_nan(output_tangents if isinstance(output_tangents, tuple) else (output_tangents,))
        if not (has_zeros and has_nan):
            if has_zeros and create_graph:
                report_unmasked([output_tangents])
            return output_tangents
    supports_by_number = known_supports(nodes, create_graph)
    supports = {} if support is None or count is None else _compute_supports(nodes, tangents, create_graph, count)
    return _forward(nodes, tangents, output, create_graph, count, supports_by_number, supports)


def _compute_supports(nodes: list[Any], tangents: dict[Any, Any], create_graph: bool, count: int) -> dict[Any, Any]:
    """Return the supports of the tangents of all nodes, given those of the inputs."""
    supports = {x: as_support(t.raw_value if isinstance(t, Value) else t) for x, t in tangents.items()}
    with np.errstate(all="ignore"):
        return propagate(
            reversed(nodes), supports, lambda node, operand_supports: push_support(node, operand_supports, create_graph, count)
        )


def _forward(
    nodes: list[Any],
    tangents: dict[Any, Any],
    output: object,
    create_graph: bool,
    count: int | None,
    supports_by_number: dict[int, Any],
    supports: dict[Any, Any],
) -> Any:
    """Make one forward pass; tangents are masked by supports, given by sequence number or by node."""
    node_tangents = dict(tangents)
    last_uses = _last_uses(nodes, {*tangents, output})
    errors = RuleErrors()

    def step(node: Value, operand_tangents: list[Any]) -> Any:
        errors.current_node = node
        before = next_sequence_number() if create_graph else 0
        tangent = push_node(node, operand_tangents, create_graph, count)
        support = supports_by_number.get(node.sequence_number)
        if support is not None and np.shape(support) == np.shape(node.raw_value):
            tangent = mask_tangent(tangent, support)
        if node in supports:
            tangent = mask_tangent(tangent, supports[node])
        if tangent is not None and create_graph:
            set_lines_since(tangent, before, node.code, node.instruction, node.scope)
        return tangent

    profiler = active_profiler()
    profiled_step = step if profiler is None else profile_step(profiler, step)
    errors.run(propagate, reversed(nodes), node_tangents, profiled_step, last_uses)
    return node_tangents.get(output)


def _last_uses(nodes: list[Any], retained: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return for each node the operands that no younger node uses, except those in `retained`."""
    operands_by_node: dict[Any, list[Any]] = {}
    visited = set(retained)
    for node in nodes:
        for position in node.parent_argnums:
            operand = node.args[position]
            if operand not in visited:
                visited.add(operand)
                operands_by_node.setdefault(node, []).append(operand)
    return operands_by_node


_memory = attrgetter("memory")
MAX_BATCH_BYTES = 64_000_000  # bytes of the cotangents of one node in one batch


class Linearization:
    """The graph between some nodes and a result computed from them.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    inputs : list of Node
        The nodes to differentiate with respect to.
    out : Node
        The result of a function of the inputs, or of its gradient; without a tangent.
    create_graph : bool, optional
        Whether derivatives are nodes. By default, they are if `is_recorded_outside` and the graph has other leaves than inputs.
    is_recorded_outside : bool, optional
        Whether operations outside of the function are recorded.
    depth : int, optional
        The number of leading batch axes of the inputs and of `out`: within that many vmaps, there is one Jacobian per batch
        element.

    Attributes
    ----------
    nodes : list
        The graph, as `collect` returns it.
    create_graph : bool
        Whether derivatives are nodes.
    """

    def __init__(
        self,
        operator: str,
        inputs: list[Any],
        out: Any,
        create_graph: bool | None = None,
        is_recorded_outside: bool = False,
        depth: int = 0,
    ) -> None:
        self.operator, self.inputs, self.out, self.depth = operator, inputs, out, depth
        self.nodes, self._stop = collect(out, stop=inputs), inputs
        self._is_after_trace = False
        if create_graph is None:
            create_graph = is_recorded_outside and depends_on_outside(self.nodes, inputs)
            self._is_after_trace = create_graph and not depends_on_outer_tracers(self.nodes, inputs)
        self.create_graph = create_graph
        if self.create_graph:
            note_input_shapes(f"a derivative by autodiff.{operator}", out)

    def from_nodes(self, inputs: list[Any]) -> Linearization:
        """Return the linearization of the same result at nodes between the inputs and the result."""
        linearization = copy.copy(self)
        linearization.__dict__.pop("needed_ids", None)
        linearization.inputs, linearization._stop = inputs, [*inputs, *self._stop]
        linearization.nodes = collect(self.out, stop=linearization._stop)
        return linearization

    @property
    def has_writes(self) -> bool:
        """Whether arrays of the graph were written in place, also after they were recorded. Forward mode is unavailable then."""
        return type(self.nodes) is Tape or any(map(_memory, self.nodes))

    @functools.cached_property
    def needed_ids(self) -> set[int]:
        """The ids of the nodes on paths to the inputs."""
        return ids_on_paths(self.nodes, self.out, set(self.inputs))

    def recording(self, directions: Iterable[object] = ()) -> AbstractContextManager[Any]:
        """Return the context in which derivatives along `directions` are computed."""
        if not self.create_graph:
            return nullcontext()
        return after_trace() if self._is_after_trace and not any(map(is_operator_tracer, directions)) else recording_on()

    def pull(self, seeds: NDArray[Any], support: bool | None = None) -> list[Any]:
        """Return the cotangents of the inputs, of shape ``(count, *input.shape)``, given plain ones of the output.

        `support` is the support of the seeds, or True if all their zeros are structural; see `structural_zeros`.
        """
        inputs = self.inputs
        if self.has_writes and active_checks() is not None:  # which inspect each contribution
            per_seed = [self.pull_one(seed, support) for seed in seeds]
            return [np.stack(parts) for parts in zip(*per_seed, strict=True)]
        with self.recording():
            start = constant_operand(seeds) if self.create_graph else seeds
            nodes, needed_ids = (collect(self.out, stop=self._stop), None) if self.has_writes else (self.nodes, self.needed_ids)
            cotangents = sweep_batch(nodes, self.out, start, set(inputs), self.create_graph, needed_ids, support, inputs)
            return [cotangents[x] if x in cotangents else self._zeros(x, seeds.shape[0]) for x in inputs]

    def pull_one(self, seed: NDArray[Any], support: object = None) -> list[Any]:
        """Return the cotangents of the inputs, given a plain one of the output; the graph may have writes."""
        inputs = self.inputs
        with self.recording():
            start = constant_operand(seed) if self.create_graph else seed
            nodes = collect(self.out, stop=self._stop) if self.has_writes else self.nodes
            cotangents = sweep(nodes, self.out, start, set(inputs), self.create_graph, support=support)
            return [cotangents[x] if x in cotangents else self._zeros(x, None) for x in inputs]

    def push(self, tangents: dict[Any, Any], count: int | None, support: bool | None = None) -> Any:
        """Return the tangents of the output, given those of inputs: a batch of `count`, or a single one if `count` is None.

        `support` is True if all zeros of the tangents are structural; see `structural_zeros`.
        """
        with self.recording(tangents.values()):
            if self.create_graph:
                tangents = {x: t if isinstance(t, Value) else constant_operand(t) for x, t in tangents.items()}
            output_tangents = push_through(self.nodes, tangents, self.out, self.create_graph, count, support)
            return self._zeros(self.out, count) if output_tangents is None else output_tangents

    def _zeros(self, node: Any, count: int | None) -> Any:
        """Return a zero derivative of the shape of `node`, or a batch of them."""
        shape = node.shape if count is None else (count, *node.shape)
        if not self.create_graph:
            return np.zeros(shape, node.dtype)[()]
        return np.broadcast_to(connected_zeros(node, np.ones_like(self.out)), shape)

    def chunks(self, size: int) -> Iterator[slice]:
        """Split the directions 0, ..., size - 1 into batches of bounded memory."""
        largest = max((n.raw_value.nbytes for n in self.nodes if isinstance(n, Value)), default=1)
        step = max(1, MAX_BATCH_BYTES // max(1, largest))
        return (slice(start, min(start + step, size)) for start in range(0, size, step))

    # ------------------------------------------------------------------------------------- Jacobians

    def rows(self) -> list[Any]:
        """Return the Jacobian for each input, of shape ``out.shape + input.shape``, by a batch of cotangents of all results."""
        jacobians = self._all_rows(1)
        if self.out.dtype.kind == "c":
            with self.recording():
                triples = zip(self.inputs, jacobians, self._all_rows(-1j), strict=True)
                jacobians = [complex_jacobian(self.operator, x, a + 1j * b, a - 1j * b) for x, a, b in triples]
        return jacobians

    def _all_rows(self, unit: complex) -> list[Any]:
        """Return, for each input, the pullback of all cotangents that have `unit` at one element and 0 elsewhere."""
        out, inputs, depth = self.out, self.inputs, self.depth
        shapes = [(*out.shape, *x.shape[depth:]) for x in inputs]
        parts = [self.pull(basis(out, chunk, unit, depth), True) for chunk in self.chunks(math.prod(out.shape[depth:]))]
        if not parts:
            return [self._reshape(self._zeros(x, 0), shape) for x, shape in zip(inputs, shapes, strict=True)]
        with self.recording():
            returned_ids: set[int] = set()
            jacobians = [_concatenate_owned([part[i] for part in parts], returned_ids) for i in range(len(inputs))]
            return [self._reshape(np.moveaxis(a, 0, depth) if depth else a, s) for a, s in zip(jacobians, shapes, strict=True)]

    def diagonal(self, position: int) -> Any:
        """Return the diagonal of the Jacobian for an input of the shape of `out`; at any time, memory holds one batch of rows."""
        x, depth = self.inputs[position], self.depth
        batch, size = x.shape[:depth], math.prod(x.shape[depth:])
        parts = []
        for chunk in self.chunks(size):
            rows = self.pull(basis(self.out, chunk, 1, depth), True)[position]
            with self.recording():
                k = np.arange(chunk.stop - chunk.start)
                parts.append(np.reshape(rows, (len(k), *batch, size))[k, ..., k + chunk.start])
        if not parts:
            return self._reshape(self._zeros(x, None), x.shape)
        with self.recording():
            return self._reshape(np.moveaxis(_concatenate_owned(parts, set()), 0, -1), x.shape)

    def columns(self) -> list[Any]:
        """Return the Jacobians as `rows` does, by a batch of tangents of all elements of each input."""
        if self.has_writes:
            return self.rows()
        jacobians = []
        with self.recording():
            for x in self.inputs:
                imaginary_columns = self._all_columns(x, 1j) if x.dtype.kind == "c" else None
                jacobians.append(self.combine_columns(x, self._all_columns(x, 1), imaginary_columns))
        return jacobians

    def combine_columns(self, x: NDArray[Any], real_columns: Any, imaginary_columns: Any) -> Any:
        """Return the Jacobian for an input, given its columns; for a complex input also those in the imaginary directions."""
        if imaginary_columns is None:
            return real_columns
        holomorphic_part, antiholomorphic_part = real_columns - 1j * imaginary_columns, real_columns + 1j * imaginary_columns
        if self.out.dtype.kind != "c":
            return holomorphic_part
        return complex_jacobian(self.operator, x, holomorphic_part, antiholomorphic_part)

    def _all_columns(self, x: NDArray[Any], unit: complex) -> Any:
        """Return the pushforward of all tangents of an input that have `unit` at one element and 0 elsewhere."""
        depth = self.depth
        shape = (*self.out.shape, *x.shape[depth:])
        chunks = self.chunks(math.prod(x.shape[depth:]))
        parts = [self.push({x: basis(x, c, unit, depth)}, c.stop - c.start, True) for c in chunks]
        if not parts:
            return self._reshape(self._zeros(self.out, 0), shape)
        columns = np.moveaxis(_concatenate_owned(parts, set()), 0, -1)
        return self._reshape(columns if self.create_graph else np.ascontiguousarray(columns), shape)

    def _reshape(self, array: NDArray[Any], shape: tuple[int, ...]) -> Any:
        return np.reshape(array, shape) if self.create_graph else np.reshape(array, shape)[()]


def basis(like: Any, chunk: slice, unit: complex = 1, depth: int = 0) -> Any:
    """Return a batch of unit vectors of the shape of `like`, the same for each element along `depth` leading batch axes."""
    count, batch_shape, shape = chunk.stop - chunk.start, like.shape[:depth], like.shape[depth:]
    size = math.prod(shape)
    vectors = np.zeros((count, *batch_shape, size), like.dtype)
    if depth:
        vectors[np.arange(count), ..., np.arange(chunk.start, chunk.stop)] = unit
    else:
        vectors.reshape(-1)[chunk.start :: size + 1] = unit
    return vectors.reshape(count, *batch_shape, *shape)


def _concatenate_owned(parts: list[Any], returned_ids: set[int]) -> Any:
    """Concatenate parts to an array that shares memory with no other; `returned_ids` has the ids of arrays that were returned."""
    if len(parts) > 1:
        return np.concatenate(parts)
    (part,) = parts
    if type(part) is np.ndarray:
        if part.base is not None or not part.flags.writeable or id(part) in returned_ids:
            part = part.copy()
        returned_ids.add(id(part))
    return part


def complex_jacobian(operator: str, x: Any, holomorphic_part: NDArray[Any], antiholomorphic_part: NDArray[Any]) -> Any:
    """Return the Jacobian of a complex result with respect to z, given twice its derivatives by z and by the conjugate of z.

    For a real `x`, `holomorphic_part` is the Jacobian. For a complex `x`, raise unless `antiholomorphic_part` is 0 up to
    rounding.
    """
    if x.dtype.kind != "c":
        return holomorphic_part
    by_z, by_conjugate = map(np.asarray, map(to_values, (holomorphic_part, antiholomorphic_part)))
    if np.max(np.abs(by_conjugate), initial=0) > 1e3 * np.finfo(by_conjugate.dtype).eps * np.max(np.abs(by_z), initial=0):
        raise TypeError(
            f"{operator}: the complex function is not analytic, so no complex matrix is its Jacobian. Differentiate its real "
            "and imaginary part, or use vjp and jvp"
        )
    return holomorphic_part / 2


def gradient_nodes(operator: str, inputs: list[Any], out: object) -> list[Any]:
    """Return the gradient of a scalar, as nodes of the graph."""
    nodes = collect(out, stop=inputs)
    note_input_shapes(f"a derivative by autodiff.{operator}", out)
    with recording_on():
        seed = np.ones_like(out)
        cotangents = sweep(nodes, out, seed, set(inputs), True)
        return [cotangents[x] if x in cotangents else connected_zeros(x, seed) for x in inputs]


def with_tangents(out: Any, directions: list[Any], apply: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """Apply a map that is linear in a result and in directions, which may have tangents of outer derivatives.

    Parameters
    ----------
    out : Node or array
        The result; an array does not depend on the inputs.
    directions : list
        The directions; `apply` is linear in all of them together.
    apply : callable
        ``apply(out, directions)``, for a result without a tangent, returns a list.
    """
    level = max((x.level for x in (out, *directions) if type(x) is TangentNode), default=0)
    if not level:
        return apply(out, directions)
    value, tangent = _split(out, level)
    split_directions = [_split(v, level) for v in directions]
    primals, tangents = [p for p, _ in split_directions], [t for _, t in split_directions]
    results = with_tangents(value, primals, apply)
    result_tangents: list[Any] = [None] * len(results)
    if isinstance(tangent, Value):
        result_tangents = with_tangents(tangent, primals, apply)
    if any(t is not None for t in tangents):
        tangent_directions = [np.zeros(p.shape, p.dtype)[()] if t is None else t for p, t in zip(primals, tangents, strict=True)]
        direction_terms = with_tangents(value, tangent_directions, apply)
        if result_tangents[0] is None:
            result_tangents = direction_terms
        else:
            result_tangents = [a + b for a, b in zip(result_tangents, direction_terms, strict=True)]
    return [_attach_tangent(level, *pair) for pair in zip(results, result_tangents, strict=True)]


def _split(x: NDArray[Any] | None, level: int) -> tuple[Any, Any]:
    """Return a value without its tangent at a level, and that tangent, or None for a zero one."""
    return (x.primal, x.derivative()) if isinstance(x, TangentNode) and x.level == level else (x, None)


def _attach_tangent(level: int, value: Any, tangent: Any) -> Any:
    """Return a value with a tangent at a level; tangents of inner derivatives, which have higher levels, stay outermost.

    A tangent of the tangent at such a level is mixed: it becomes the tangent of the inner tangent.
    """
    inner = max((x for x in (value, tangent) if isinstance(x, TangentNode)), key=attrgetter("level"), default=None)
    if inner is None or inner.level < level:
        return TangentNode.create_using(value, tangent, level)
    (value, inner_tangent), (tangent, mixed) = _split(value, inner.level), _split(tangent, inner.level)
    if inner_tangent is None and mixed is not None:
        inner_tangent = np.zeros(mixed.shape, mixed.dtype)
    if inner_tangent is not None:
        inner_tangent = TangentNode.create_using(inner_tangent, mixed, level)
    return inner.like(_attach_tangent(level, value, tangent), inner_tangent)


def without_tangents(out: object) -> list[Any]:
    """Return the tangent-free results to which `with_tangents` applies its map."""
    if isinstance(out, TangentNode):
        return without_tangents(out.primal) + without_tangents(out.tangent)
    return [out] if isinstance(out, Value) else []
