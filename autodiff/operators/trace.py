"""The trace of a function: one call on argument tracers, and the recorded graph. All operators begin with it.

The arguments that a function is differentiated by are replaced by argument tracers, the function is called once, and the
recorded graph is swept. If an argument is a node, or the function uses an outer variable, the derivatives are nodes connected
to it; that is how operators nest. Values with tangents of an outer `jvp` keep them: because differentiation is linear, the
gradient of a result with a tangent is the gradient of its primal, with the gradient of its tangent as tangent
(`with_tangents`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import attach, bind, to_concrete
from compgraph.context import call_function, is_recording, no_graph, recording_on, run_isolated
from compgraph.graph import to_values
from compgraph.guards import collecting_leaks, note_input_shapes
from compgraph.interception import intercept
from compgraph.scipy import register_imported
from compgraph.tracing import Tracing, after_trace, retracing
from compgraph.values import (
    ArgumentNode,
    ClassViews,
    MultiOutput,
    Value,
    describe,
    is_operator_tracer,
    is_python_arithmetic,
    mark_python_number,
    new_argument,
    new_leaf,
    next_sequence_number,
    unwrap_buffer,
)

from ..arguments import (
    Arguments,
    as_constant,
    as_result,
    call_with_read_only,
    find_class_check,
    flatten,
    is_read_only_tracer,
    lost_graph_error,
    make_read_only,
    require_class_independence,
    require_label_independence,
    split_aux,
    unflatten,
    warn_zero_derivative,
)
from ..batching import (
    active_levels,
    base_of,
    is_batch,
    is_broadcast,
    levels_of,
    lift_to_active_levels,
    outermost_levels,
    outside_vmap,
    unwrap_batch,
    wrap_batch,
)
from ..forward import TangentNode, require_no_jacobian
from ..reverse import (
    Linearization,
    collect,
    connected_zeros,
    depends_on_outer_tracers,
    depends_on_outside,
    owned_arrays,
    owned_nodes,
    sweep,
    with_tangents,
)
from ..rules import Rule, SharedFormulas, rule_factories

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class Trace:
    """One call of a function on argument tracers, and the recorded graph.

    Parameters
    ----------
    arguments : Arguments
        The function and its arguments, or an object with the same interface.
    has_aux : bool
        Whether the function returns a pair ``(value, aux)``.

    Attributes
    ----------
    inputs : list of Node
        The argument tracers, without tangents of outer derivatives and without batch axes.
    points : list of Node
        The argument tracers as passed to the function: with tangents of outer derivatives, and batched under vmap.
    result, aux : object
        The value and the auxiliary data.
    leaves, structure : list, PyTreeSpec
        The arrays in the value, and their nesting.
    leaks : list
        The detected conversions of nodes to plain numbers.
    is_recorded_outside : bool
        Whether operations outside this trace are recorded, so that derivatives may have to be nodes.
    levels : list of int
        The active levels of vmap. Their batch axes are the first axes of the inputs, outside of all derivatives.
    """

    def __init__(self, arguments: Any, has_aux: bool = False) -> None:
        self.arguments, self.operator, self.has_aux = arguments, arguments.operator, has_aux
        self.is_recorded_outside = is_recording()
        self.inputs: list[Any]
        self.aux: Any = None
        # By the id of an output: the output, and whether its graph has outer nodes.
        self._outer_by_id: dict[int, tuple[Any, bool]] = {}
        self.levels = active_levels()
        views_before = ClassViews.count
        retracing(lambda: run_isolated(self._run))
        has_views = ClassViews.count != views_before
        if getattr(arguments, "has_labels", False):
            require_label_independence(self.operator, arguments.leaves, self.function, self.leaves)
        if not self.levels:
            require_class_independence(self.operator, arguments.f, arguments.leaves, self.function, self.leaves, has_views)
        elif has_views or find_class_check(arguments.f)[0]:
            points, leaves = ([*map(first_batch_element, values)] for values in (self.points, self.leaves))
            require_class_independence(self.operator, arguments.f, points, self.function, leaves, has_views)

    @property
    def depth(self) -> int:
        """The number of batch axes of the inputs."""
        return len(self.levels)

    def linearized(self, out: object) -> Linearization:
        """Return the linearization at the inputs of a node that depends on them: a result, or a gradient."""
        return Linearization(self.operator, self.inputs, out, is_recorded_outside=self.is_recorded_outside, depth=self.depth)

    def _run(self) -> None:
        """Call the function on argument tracers."""
        self.points: list[Any] = []
        self.inputs = []
        register_imported()
        with Tracing(records=True):
            for position, (argument, leaf) in enumerate(zip(self.arguments.arrays(), self.arguments.leaves, strict=True)):
                require_no_jacobian(self.operator, argument)
                argument = lift_to_active_levels(argument) if self.levels else argument
                is_node_needed = self.is_recorded_outside or self.levels
                self.points.append(make_argument_tracer(argument if is_node_needed else to_values(argument)))
                if position in self.arguments.shared_positions or is_read_only_tracer(argument):
                    make_read_only(self.points[-1])
                self.inputs.append(strip_tracers(self.points[-1]))
                if is_python_arithmetic(leaf):
                    mark_python_number(self.points[-1])
            with (
                intercept(self.arguments.f, self.arguments.values(), unchanged=self.arguments.constants()) as interception,
                collecting_leaks() as self.leaks,
            ):
                leaves, points = self.arguments.leaves, self.points
                call = functools.partial(call_function, self.arguments, points)
                self.result: Any = call_with_read_only(
                    self.operator, self.arguments.shared_positions, leaves, points, interception.captured, call
                )
            if self.has_aux:
                self.result, self.aux = split_aux(self.operator, self.result)
            self.leaves, self.structure = flatten(self.result)
            self.leaves = [*map(as_result, self.leaves)]

    def function(self, *leaves: object) -> Any:
        """Call the function with other leaves of its arguments; return the value without auxiliary data."""
        result = self.arguments(*leaves)
        return result[0] if self.has_aux else result

    def gradient_at(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the gradient at other leaves, as plain arrays."""
        with no_graph():
            trace = Trace(Arguments(self.operator, self.function, leaves, {}, range(len(leaves))))
            return trace.pull(trace.scalar(""))

    def outs(self) -> list[Any]:
        """Return the leaves of the value as nodes; raise for one that is not differentiable."""
        if not self.leaves and self.result is not None:
            raise TypeError(f"{self.operator}: the function returned {self.result!r}, which contains no array")
        self.leaves = [as_constant(leaf, self.leaks) for leaf in self.leaves]
        for position, out in enumerate(self.leaves or [self.result]):
            require_no_jacobian(self.operator, out)
            if isinstance(out, ClassViews):
                raise TypeError(
                    f"{self.operator}: the function returned an array of the class {type(out).__name__}, whose derivative has no "
                    "class. Return the numbers alone, for example result.view(np.ndarray)"
                )
            if not isinstance(base_of(out), Value):
                paths = self.structure.accessors()
                path = paths[position].codify(", result") if paths and paths[position] else ""
                raise lost_graph_error(self.operator + path, out, self.leaks, self.arguments.f, self.arguments.advice)
            if out.dtype.kind not in "fc":
                raise TypeError(
                    f"{self.operator}: the {describe(out)} that the function returned is not floating "
                    "or complex, so it has no derivative"
                )
        return self.leaves

    def scalar(self, advice: str) -> Any:
        """Return the value; raise unless it is a real scalar, with `advice` in the message."""
        if self.leaves and not self.structure.is_leaf():
            raise TypeError(
                f"{self.operator}: the function returned a {type(self.result).__name__}, not a scalar. {advice}. For a pair "
                "(value, aux), pass has_aux=True"
            )
        (out,) = self.outs()
        if out.shape != ():
            raise ValueError(f"{self.operator}: the function returned shape {out.shape}, not a scalar. {advice}")
        if out.dtype.kind == "c":
            raise TypeError(
                f"{self.operator}: the function returned a complex number, {describe(out)}, which has no gradient. "
                "Take its real part (np.real) or absolute value, or use autodiff.jacobian, whose elements are complex"
            )
        return out

    def map_leaves(self, derive: Callable[[Any], Sequence[Any]]) -> Any:
        """Apply `derive` to each leaf of the value. The results nest like the value, and each like the arguments."""
        return unflatten(self.structure, [self.arguments.nest(derive(out)) for out in self.outs()])

    def with_aux(self, *results: object) -> Any:
        """Return the results of an operator, with the auxiliary data if `has_aux`."""
        if self.has_aux:
            results = (*results, self.convert_results(self.aux))
        return results if len(results) > 1 else results[0]

    def pull(self, out: object, cotangent: Array | None = None) -> list[Any]:
        """Return the cotangents of the inputs, given that of `out` (ones by default)."""
        require_no_jacobian(self.operator, cotangent)
        if is_batch(cotangent) and cotangent.level not in self.levels:  # a vmap around the call of a pullback alone
            return self._pull_batched(out, cotangent)
        return self.apply_linear(out, [cotangent], lambda o, cotangents: self.sweep_cotangents(o, *cotangents))

    def apply_linear(self, out: object, directions: list[Any], apply: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """Apply a function that is linear in a result and directions, without the batch axes of vmap and without tangents.

        Both are attached to the results; see `with_tangents`.
        """
        if not self.levels:
            return with_tangents(out, directions, apply)
        if self.levels != active_levels()[: self.depth]:
            raise TypeError(
                f"{self.operator}: a pullback made under vmap is called after that vmap has returned. Call it under that vmap"
            )
        with outermost_levels(self.depth):
            unbatched = [None if d is None else unwrap_batch(d, self.levels) for d in directions]
            result = unwrap_batch(out, self.levels)
        with outside_vmap():
            derivatives = with_tangents(result, unbatched, apply)
        return [wrap_batch(part, self.levels) for part in derivatives]

    def _pull_batched(self, out: object, cotangent: Any) -> list[Any]:
        """Pull back cotangents that are batched by a further vmap, if possible in one sweep."""
        seeds, level, depth = cotangent.values, cotangent.level, self.depth
        with outermost_levels(depth):
            result, unbatched = unwrap_batch(out, self.levels), unwrap_batch(seeds, self.levels)
            if (
                type(unbatched) is np.ndarray
                and unbatched.size
                and not isinstance(result, TangentNode)
                and isinstance(result, Value)
            ):
                with outside_vmap():
                    cotangents = self.linearized(result).pull(np.moveaxis(unbatched, depth, 0).astype(result.dtype))
                    cotangents = [np.moveaxis(part, 0, depth) for part in cotangents]
                return [wrap_batch(part, [*self.levels, level]) for part in cotangents]
            per_element = [self.pull(out, seed) for seed in seeds]
            if per_element:
                cotangents = [np.stack(parts) for parts in zip(*per_element, strict=True)]
            else:
                cotangents = [np.zeros((0, *x.shape), x.dtype) for x in self.points]
        return [wrap_batch(part, [level]) for part in cotangents]

    def sweep_cotangents(self, out: object, cotangent: Array | None) -> list[Any]:
        """Return the cotangents of the inputs, given that of `out`, which have neither tangents nor batch axes."""
        if not isinstance(out, Value):  # it does not depend on the inputs
            return [np.zeros(x.shape, x.dtype)[()] for x in self.inputs]
        nodes = collect(out, stop=self.inputs)
        has_outer_nodes = self.has_outer_nodes(nodes)
        self._outer_by_id[id(out)] = out, has_outer_nodes
        if not has_outer_nodes and not (isinstance(cotangent, Value) and self.is_recorded_outside):
            seed = np.ones_like(out.raw_value)[()] if cotangent is None else np.asarray(cotangent)
            input_cotangents = sweep(nodes, out, seed, set(self.inputs), False)
            self.warn_zero_derivative(input_cotangents)
            cotangents = owned_arrays(input_cotangents, self.inputs, seed)
            return [cotangents[x] for x in self.inputs]
        note_input_shapes(f"a derivative by autodiff.{self.operator}", out)
        is_traced_outside = is_operator_tracer(cotangent) or depends_on_outer_tracers(nodes, self.inputs)
        with recording_on() if is_traced_outside else after_trace():
            since = next_sequence_number()
            seed = np.ones_like(out) if cotangent is None else np.ones_like(out) * cotangent
            reached = sweep(nodes, out, seed, set(self.inputs), True)
            self.warn_zero_derivative(reached)
            cotangents = {x: reached[x] if x in reached else connected_zeros(x, seed) for x in self.inputs}
            return list(owned_nodes(cotangents, since).values())

    def warn_zero_derivative(self, reached: Container[Any]) -> None:
        """Warn if no cotangent reached an argument, and values have left the graph."""
        if self.leaks and not all(leak.is_text for leak in self.leaks):
            names = zip(self.arguments.names, self.inputs, strict=True)
            unreached = [name for name, x in names if x not in reached]
            if unreached:
                warn_zero_derivative(self.operator, ", ".join(unreached), self.leaks)

    def has_outer_nodes(self, nodes: list[Any]) -> bool:
        """Whether a graph depends on nodes recorded outside of this trace, so that derivatives must be nodes."""
        return self.is_recorded_outside and depends_on_outside(nodes, self.inputs)

    def convert_result(self, out: Any) -> Any:
        """Convert a result for the caller: to a plain array, or a node if it depends on nodes recorded outside."""
        if is_batch(out):
            return wrap_batch(self.convert_result(out.values), [out.level], is_array=not out.is_scalar)
        if issubclass(type(out), TangentNode):
            return out.like(self.convert_result(out.primal), out.tangent)
        if not isinstance(out, Value):
            return unwrap_buffer(out)
        entry = self._outer_by_id.get(id(out))  # present if it was differentiated, so that its graph is walked once
        has_outer_nodes = self.has_outer_nodes(collect(out, stop=self.inputs)) if entry is None else entry[1]
        return to_concrete(out) if has_outer_nodes else out.raw_value

    def convert_results(self, results: object) -> Any:
        """Convert nested results for the caller."""
        leaves, structure = flatten(results)
        return unflatten(structure, list(map(self.convert_result, leaves)))


def make_argument_tracer(value: Any) -> Any:
    """Make the tracer of an argument, with the history of a node, tangents and batch axes."""
    if is_batch(value):
        base, levels = base_of(value), levels_of(value)
        if is_broadcast(base, len(levels)):
            return wrap_batch(new_leaf(base, ArgumentNode, None), levels, is_array=not value.is_scalar, borrows_values=True)
        return wrap_batch(make_argument_tracer(base), levels, is_array=not value.is_scalar)
    if issubclass(type(value), TangentNode):
        return TangentNode.create_using(make_argument_tracer(value.primal), value.tangent, value.level)
    if isinstance(value, Value):
        return ArgumentNode.of(bind(ops.input_of, (value,)))
    return new_argument(value)


def first_batch_element(value: NDArray[Any]) -> Any:
    """Return the plain value of the first batch element."""
    base = base_of(value)
    plain = base.raw_value if isinstance(base, Value) else base
    return plain[(0,) * len(levels_of(value))] if is_batch(value) else plain


def strip_tracers(value: Any) -> Any:
    """Remove batch axes and tangents from a value."""
    value = base_of(value)
    while issubclass(type(value), TangentNode):
        value = value.primal
    return value


# ------------------------------------------------------------------------------------- several results as one


def concatenate_raveled(parts: Sequence[Any]) -> Any:
    """Return several arrays as one vector; a single array unchanged."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.ravel(p) for p in parts])


def join_outputs(outs: Sequence[Any]) -> MultiOutput:
    """Join several nodes in one multi-output operation, so that one graph and one sweep contain all of them.

    Its cotangent is the `OutputCotangents` of theirs.
    """
    outputs = attach(tuple(np.asarray(out.raw_value) for out in outs), together, tuple(outs))
    multi_output: MultiOutput = outputs[0].args[0]
    return multi_output


def fresh_node(out: NDArray[Any]) -> Any:
    """Return a new node with the value of a node, recorded now.

    A sweep adds its cotangent to that of the original at the position of the new node, not at those of its readers.
    """
    multi_output = join_outputs([out])
    return attach(multi_output.raw_value[0], ops.output(0), (multi_output,))


class _JoinOutputs:
    """The operation of `join_outputs`."""

    __name__ = "together"

    def __call__(self, *outs: object) -> tuple[Any, ...]:
        """Replay the operation."""
        return tuple(map(np.asarray, outs))


def _pull_joined(positions: list[int], cotangents: Any, outs: object, *operands: Any) -> list[Any]:
    """Return the cotangent of each operand, which is that of the output at its position."""
    pairs = [(cotangents[p], operands[p]) for p in positions]
    return [np.zeros(x.shape, x.dtype)[()] if cotangent is None else cotangent for cotangent, x in pairs]


together = _JoinOutputs()
rule_factories[_JoinOutputs] = lambda function: Rule("together", "linear", SharedFormulas(_pull_joined), ()).moves_elements()
ops.register_operation(together, "together", kind="sequential")
