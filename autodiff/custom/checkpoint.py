"""Checkpointing: `checkpoint`, and its schedule for a chain of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

import numpy as np

from compgraph.bind import attach
from compgraph.context import NoGraph, is_recording, recording_on, wrappers
from compgraph.graph import to_values
from compgraph.storage import memory_of
from compgraph.values import INERT, BlankNode, OperationalNode, Value, describe

from ..arguments import flatten, require_function, unflatten
from ..batching import LiftedFunction, active_levels, outside_vmap
from ..forward import TangentNode
from ..operators import join_outputs
from ..reverse import SeedSupport, collect, connected_zeros, owned_arrays, sweep, sweep_supports
from ..rules import OutputCotangents
from .call import CallFunction, has_node, require_same
from .closure import TracedFunction

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """Checkpoint a function: recompute its intermediate values in the backward pass instead of storing them.

    Parameters
    ----------
    f : callable
        A function of nested arrays that returns nested arrays. It must be deterministic, and must not write into arrays made
        outside it.

    Returns
    -------
    callable
        The checkpointed function. A call on nodes is one node of the graph, which stores the arguments and the result.

    Raises
    ------
    TypeError
        When called: if `f` writes into an array made outside it, or captures a node that was written into.
    ValueError
        In the backward pass: if `f` returns a different result, or a captured node was written into since.

    Notes
    -----
    Captured nodes receive cotangents, as arguments do. Under ``jvp``, which stores nothing, `f` is called without
    checkpointing. Derivatives of the derivative store the recomputed intermediate values. Checkpointing: A. Griewank,
    "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation", Optimization
    Methods and Software 1 (1992).

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> w = cg.variable(2.0, "w")
    >>> y = checkpoint(lambda x: np.sin(w * x) ** 2)(0.5)
    >>> print(y.opname, gradient(y)["w"].round(6))
    checkpoint 0.454649
    """
    f = require_function("checkpoint", f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))

        def apply_to_leaves(leaves: Sequence[Any]) -> Any:
            args, kwargs = unflatten(structure, leaves)
            return f(*args, **kwargs)

        return _apply_checkpoint(apply_to_leaves, leaves) if is_recording() else f(*args, **kwargs)

    return call


def _apply_checkpoint(f: Function, leaves: list[Any]) -> Any:
    """Call a function of a list, and return its result as one node of the graph."""
    if active_levels():
        lifted_function = LiftedFunction(lambda *elements: f(elements), leaves)
        with outside_vmap():
            results = _apply_checkpoint(lambda elements: lifted_function(*elements), lifted_function.arrays)
            return lifted_function.wrap_results(results)
    level = max((x.level for x in leaves if isinstance(x, Value)), default=0)
    if level:
        return _apply_with_tangents(f, leaves, level)
    positions = [i for i, x in enumerate(leaves) if isinstance(x, Value) and type(x) not in INERT]
    closure = TracedFunction("checkpoint", f, leaves, positions)
    if closure.level:  # the function captures a value with a tangent, and forward mode stores nothing
        return f(leaves)
    for node in closure.captured:
        if memory_of(node):
            raise TypeError(
                f"checkpoint: the function captures the {describe(node)}, which was written into. Pass it as an argument, or use "
                "a copy (np.copy)"
            )
    operands = (*[leaves[i] for i in positions], *closure.captured)
    call = CheckpointCall(f, leaves, positions, closure)
    results = list(closure.results)
    values = tuple([_own_value(results[i]) for i in closure.output_positions])
    if operands and values:
        output = attach(values if len(values) > 1 else values[0], _checkpoint, operands, {"call": call})
        for i, node in zip(closure.output_positions, output if len(values) > 1 else [output], strict=True):
            results[i] = node
    return unflatten(closure.structure, results)


def _apply_with_tangents(f: Function, leaves: list[Any], level: int) -> Any:
    """Apply the checkpoint one level below: tangents of this level become additional arguments and results."""
    positions = [i for i, x in enumerate(leaves) if isinstance(x, Value) and x.level == level]
    primals = [x.primal if i in positions else x for i, x in enumerate(leaves)]
    tangents = [leaves[i].tangent for i in positions]
    if not any(isinstance(x, Value) for x in (*primals, *tangents)):
        return f(leaves)

    def primals_and_tangents(elements: Sequence[Any]) -> Any:
        arguments = list(elements[: len(leaves)])
        for i, tangent in zip(positions, elements[len(leaves) :], strict=True):
            arguments[i] = leaves[i].like(arguments[i], tangent)
        results, structure = flatten(f(arguments))
        pairs = [(x.primal, x.tangent) if isinstance(x, TangentNode) and x.level == level else (x,) for x in results]
        return pairs, _StructureLeaf(structure)

    pairs, result_structure = _apply_checkpoint(primals_and_tangents, [*primals, *tangents])
    results = [leaves[positions[0]].like(*p) if len(p) == 2 else p[0] for p in pairs]
    return unflatten(result_structure.structure, results)


class _StructureLeaf:
    """Wraps the structure of results, so that `flatten` treats it as a leaf."""

    def __init__(self, structure: object) -> None:
        self.structure = structure


def _own_value(node: Value) -> Any:
    """Return the value of a node, copied if another array shares its memory."""
    value = node.raw_value
    is_shared = type(value) is np.ndarray and (value.base is not None or not node.args)  # a view, or a leaf
    return np.array(value) if is_shared else value


class CheckpointCall:
    """One call of a checkpointed function, with the data for its recomputation."""

    def __init__(self, f: Function, leaves: list[Any], positions: list[int], closure: TracedFunction) -> None:
        self.f = f
        self.positions = positions
        self.leaves = [None if i in positions else x for i, x in enumerate(leaves)]
        self.captured = closure.captured
        self.output_positions = closure.output_positions
        self.wrappers = wrappers.get()
        self.cached_supports: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cached_supports": None}

    def _fill_leaves(self, operands: Sequence[Any]) -> list[Any]:
        """Return the leaves of the arguments with the operands inserted."""
        leaves = list(self.leaves)
        for i, operand in zip(self.positions, operands, strict=False):
            leaves[i] = operand
        for node, operand in zip(self.captured, operands[len(self.positions) :], strict=True):
            if operand is not node and operand is not node.raw_value:
                np.asarray(operand)  # an updated variable raises an error of its own
                raise ValueError(
                    f"checkpoint: the captured {describe(node)} has changed since the function was called. Pass it as an argument"
                )
        return leaves

    def compute(self, *operands: object) -> Any:
        """Return the values of the results."""
        with NoGraph():
            results, _ = flatten(self.f(self._fill_leaves(operands)))
        values = tuple(to_values(results[i]) for i in self.output_positions)
        return values if len(values) > 1 else values[0]

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the operands by recording the function again and sweeping its graph."""
        support = SeedSupport.take()
        seeds = cotangent if isinstance(out, tuple) else (cotangent,)
        support = support if isinstance(out, tuple) or support is None else (support,)
        output, targets = self._recompute(out, operands)
        nodes, seed, ends = collect(output, stop=targets), _nonzero_cotangents(seeds), frozenset(targets)
        seed_support = None if support is None else _nonzero_cotangents(support)
        if not has_node(seeds, *operands):
            cotangents = sweep(nodes, output, seed, set(targets), create_graph=False, ends=ends, support=seed_support)
            cotangents = owned_arrays(cotangents, targets, *seeds)
            return [cotangents[x] for x in targets]
        with recording_on():
            any_cotangent = next(iter(seed.cotangents.values()))
            cotangents = sweep(nodes, output, seed, set(targets), create_graph=True, ends=ends, support=seed_support)
            return [cotangents[x] if x in cotangents else connected_zeros(x, any_cotangent) for x in targets]

    def supports(self, position: int, support: Any, out: Any, *operands: Any) -> Any:
        """Return the support of the cotangent of one operand, given that of the result; see `reverse.structural_zeros`."""
        cached = self.cached_supports
        if cached is None or cached[0] is not support:  # a sweep calls this once per operand
            seeds = support if isinstance(out, tuple) else (support,)
            output, targets = self._recompute(out, operands)
            is_recorded = has_node(seeds, *operands)
            with recording_on() if is_recorded else nullcontext():
                nodes, seed = collect(output, stop=targets), _nonzero_cotangents(seeds)
                node_supports = sweep_supports(
                    nodes, output, seed, set(targets), create_graph=is_recorded, ends=frozenset(targets)
                )
            operand_supports = [node_supports[x] if x in node_supports else np.zeros(x.shape) for x in targets]
            cached = self.cached_supports = support, operand_supports
        return cached[1][position]

    def _recompute(self, out: object, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Record the function again; return its results as one node, and the nodes that represent the operands."""
        closure = TracedFunction("checkpoint", self.f, self._fill_leaves(operands), self.positions, self.wrappers)
        results = [closure.results[i] for i in closure.output_positions]
        outs = out if isinstance(out, tuple) else (out,)
        if closure.output_positions != self.output_positions:
            raise ValueError(
                "checkpoint: when the function was called again, a different part of its result depended on its arguments. Make "
                "the function deterministic"
            )
        for result, earlier_result in zip(results, outs, strict=True):
            require_same("checkpoint", earlier_result, result)
        captured, earlier_captured = set(closure.captured), set(self.captured)
        if earlier_captured - captured or any(map(_may_differ, captured - earlier_captured)):
            raise ValueError(
                "checkpoint: the function captured different arrays when it was called again. Pass them as arguments"
            )
        return join_outputs(results), [*closure.inputs, *self.captured]


def _nonzero_cotangents(cotangents: Sequence[Any]) -> OutputCotangents:
    """Return the cotangents of several results that are not zero."""
    return OutputCotangents({k: g for k, g in enumerate(cotangents) if g is not None})


def _may_differ(node: Value) -> bool:
    """Whether the value of a newly captured node may differ. A buffer of constants cannot."""
    return bool(type(node) not in (OperationalNode, BlankNode) or node.args or memory_of(node))


_checkpoint = CallFunction("checkpoint")


def checkpointed_chain(steps: Sequence[Function], x: object, *, levels: int = 1) -> Any:
    """Apply functions sequentially, storing few of the values between them.

    Parameters
    ----------
    steps : sequence of callable
        Functions of one argument, each applied to the result of the one before.
    x : array or nested arrays
        The argument of the first function.
    levels : int
        The greatest number of recomputations of a step; 0 stores all values.

    Returns
    -------
    array or nested arrays
        ``steps[-1](...steps[1](steps[0](x)))``.

    Raises
    ------
    ValueError
        If `levels` is negative.

    Notes
    -----
    With one level, n steps are divided into sqrt(n) checkpointed segments. The sqrt(n) values between segments and the
    intermediate values of one segment are stored at a time, at the cost of one more forward pass. With more levels, segments
    are divided again: about ``(levels + 1) * n ** (1 / (levels + 1))`` values are stored, at the cost of `levels` forward
    passes. This is optimal up to a small factor (A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Trans. Math.
    Softw. 26 (2000)).

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> print(grad(lambda x: checkpointed_chain([np.sin] * 100, x))(1.0).round(6))
    0.003699
    """
    if levels < 0:
        raise ValueError(f"checkpointed_chain: levels must be at least 0, not {levels}")
    count = len(steps)
    if levels == 0 or count < 4:
        for step in steps:
            x = step(x)
        return x
    length = max(2, round(count ** (levels / (levels + 1))))
    for start in range(0, count, length):
        segment = steps[start : start + length]
        x = checkpoint(functools.partial(checkpointed_chain, segment, levels=levels - 1))(x)
    return x
