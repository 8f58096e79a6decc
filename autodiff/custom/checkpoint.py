"""Recomputing instead of storing: `checkpoint`, and its schedule for a chain of functions."""

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
from ..operators import as_joint
from ..reverse import SeedSupport, collect, connected_zeros, owned_arrays, sweep, sweep_supports
from ..rules import OutputCotangents
from .call import Opaque, has_node, require_same
from .closure import Closure

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """Checkpoint a function: its intermediate values are not stored, but computed again in the backward pass.

    Parameters
    ----------
    f : callable
        A function of nested arrays that returns nested arrays. It must give the same result when it is called again, and
        write into no array made outside it.

    Returns
    -------
    callable
        The same function. On nodes it is one node of the graph, which keeps the arguments and the result.

    Raises
    ------
    TypeError
        When called: if `f` writes into an array made outside it, or uses one from outside that was written into.
    ValueError
        In the backward pass: if `f` gives another result than the first time, or a node it uses from outside was written
        into since.

    Notes
    -----
    Nodes that `f` uses from outside get their adjoints, as its arguments do. Under ``jvp``, which stores nothing, `f` is
    called as it is. Of a derivative of the derivative the inside is kept. Checkpointing: A. Griewank, "Achieving
    logarithmic growth of temporal and spatial complexity in reverse automatic differentiation", Optimization Methods and
    Software 1 (1992).

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
    require_function("checkpoint", f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))

        def apply_to_leaves(leaves: Sequence[Any]) -> Any:
            args, kwargs = unflatten(structure, leaves)
            return f(*args, **kwargs)

        return _apply_checkpoint(apply_to_leaves, leaves) if is_recording() else f(*args, **kwargs)

    return call


def _apply_checkpoint(f: Function, leaves: list[Any]) -> Any:
    """The result of a function of a list, as one node."""
    if active_levels():
        lifted = LiftedFunction(lambda *elements: f(elements), leaves)
        with outside_vmap():
            return lifted.wrap_results(_apply_checkpoint(lambda elements: lifted(*elements), lifted.arrays))
    level = max((x.level for x in leaves if isinstance(x, Value)), default=0)
    if level:
        return _apply_with_tangents(f, leaves, level)
    positions = [i for i, x in enumerate(leaves) if isinstance(x, Value) and type(x) not in INERT]
    closure = Closure("checkpoint", f, leaves, positions)
    if closure.level:  # an outer value with a tangent is used inside: forward mode stores nothing anyway
        return f(leaves)
    for node in closure.captured:
        if memory_of(node):
            raise TypeError(
                f"checkpoint: the function uses the {describe(node)} from outside, which was written into; pass it as an "
                "argument, or use a copy (np.copy)"
            )
    operands = (*[leaves[i] for i in positions], *closure.captured)
    call = CheckpointCall(f, leaves, positions, closure)
    results = list(closure.results)
    values = tuple([_copy_owned(results[i]) for i in closure.outs])
    if operands and values:
        output = attach(values if len(values) > 1 else values[0], _checkpoint, operands, {"call": call})
        for i, node in zip(closure.outs, output if len(values) > 1 else [output], strict=True):
            results[i] = node
    return unflatten(closure.structure, results)


def _apply_with_tangents(f: Function, leaves: list[Any], level: int) -> Any:
    """The same one level down: tangents of this level are arguments and results of their own."""
    with_tangent = [i for i, x in enumerate(leaves) if isinstance(x, Value) and x.level == level]
    split = [x.primal if i in with_tangent else x for i, x in enumerate(leaves)] + [leaves[i].tangent for i in with_tangent]
    if not any(isinstance(x, Value) for x in split):
        return f(leaves)

    def primals_and_tangents(elements: Sequence[Any]) -> Any:
        joined = list(elements[: len(leaves)])
        for i, tangent in zip(with_tangent, elements[len(leaves) :], strict=True):
            joined[i] = leaves[i].like(joined[i], tangent)
        results, structure = flatten(f(joined))
        pairs = [(x.primal, x.tangent) if isinstance(x, TangentNode) and x.level == level else (x,) for x in results]
        return pairs, Structure(structure)

    pairs, result_structure = _apply_checkpoint(primals_and_tangents, split)
    results = [leaves[with_tangent[0]].like(*p) if len(p) == 2 else p[0] for p in pairs]
    return unflatten(result_structure.structure, results)


class Structure:
    """How results were nested, wrapped so that it is a leaf itself."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure


def _copy_owned(node: Any) -> Any:
    """The value of a node in memory of its own."""
    plain = node.raw_value
    return np.array(plain) if type(plain) is np.ndarray and (plain.base is not None or not node.args) else plain


class CheckpointCall:
    """One call of a checkpointed function, with the data to run it again."""

    def __init__(self, f: Function, leaves: list[Any], positions: list[int], closure: Closure) -> None:
        self.f = f
        self.positions = positions
        self.leaves = [None if i in positions else x for i, x in enumerate(leaves)]
        self.captured = closure.captured
        self.outs = closure.outs
        self.wrappers = wrappers.get()
        self.cached_supports: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cached_supports": None}  # what only one sweep has use for

    def _fill_leaves(self, operands: Sequence[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for i, operand in zip(self.positions, operands, strict=False):
            leaves[i] = operand
        for node, operand in zip(self.captured, operands[len(self.positions) :], strict=True):
            if operand is not node and operand is not node.raw_value:
                np.asarray(operand)  # raises if it is a variable that was updated
                raise ValueError(
                    f"checkpoint: the {describe(node)}, used from outside, has changed since; pass it as an argument"
                )
        return leaves

    def compute(self, *operands: Any) -> Any:
        """The values of the results."""
        with NoGraph():
            results, _ = flatten(self.f(self._fill_leaves(operands)))
        values = tuple(to_values(results[i]) for i in self.outs)
        return values if len(values) > 1 else values[0]

    def pull(self, adjoint: Any, out: Any, *operands: Any) -> list[Any]:
        """The adjoints of the operands: the function runs again, and is swept."""
        support = SeedSupport.take()
        adjoints = adjoint if isinstance(out, tuple) else (adjoint,)
        support = support if isinstance(out, tuple) or support is None else (support,)
        joint, targets = self._recompute(out, operands)
        nodes, seed = collect(joint, stop=targets), _nonzero_cotangents(adjoints)
        seed_support = None if support is None else _nonzero_cotangents(support)
        if not has_node(adjoints, *operands):
            cotangents = owned_arrays(
                sweep(nodes, joint, seed, set(targets), False, frozenset(targets), seed_support), targets, *adjoints
            )
            return [cotangents[x] for x in targets]
        with recording_on():
            any_cotangent = next(iter(seed.cotangents.values()))
            cotangents = sweep(nodes, joint, seed, set(targets), True, frozenset(targets), seed_support)
            return [cotangents[x] if x in cotangents else connected_zeros(x, any_cotangent) for x in targets]

    def supports(self, position: int, s: Any, out: Any, *operands: Any) -> Any:
        """The support of the adjoint of one operand, from that of the result (see `reverse.structural_zeros`)."""
        cached = self.cached_supports
        if cached is None or cached[0] is not s:  # a sweep asks for one operand after the other
            supports = s if isinstance(out, tuple) else (s,)
            joint, targets = self._recompute(out, operands)
            recorded = has_node(supports, *operands)
            with recording_on() if recorded else nullcontext():
                nodes = collect(joint, stop=targets)
                node_supports = sweep_supports(
                    nodes, joint, _nonzero_cotangents(supports), set(targets), recorded, frozenset(targets)
                )
            cached = self.cached_supports = s, [node_supports[x] if x in node_supports else np.zeros(x.shape) for x in targets]
        return cached[1][position]

    def _recompute(self, out: Any, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The results of the function, run again, as one; and the nodes whose adjoints are those of the operands."""
        closure = Closure("checkpoint", self.f, self._fill_leaves(operands), self.positions, self.wrappers)
        results = [closure.results[i] for i in closure.outs]
        outs = out if isinstance(out, tuple) else (out,)
        if closure.outs != self.outs:
            raise ValueError("checkpoint: another part of the result depends on something when the function runs again")
        for current, earlier in zip(results, outs, strict=True):
            require_same("checkpoint", earlier, current)
        earlier, current = set(self.captured), set(closure.captured)
        if earlier - current or any(map(_may_hold_other_values, current - earlier)):
            raise ValueError("checkpoint: the function used other arrays from outside when it ran again; make them arguments")
        return as_joint(results), [*closure.inputs, *self.captured]


def _nonzero_cotangents(adjoints: Sequence[Any]) -> OutputCotangents:
    """Adjoints of several results, where they are not zero."""
    return OutputCotangents({k: a for k, a in enumerate(adjoints) if a is not None})


def _may_hold_other_values(node: Any) -> bool:
    """Whether a node that was not there the first time may hold other numbers; a buffer made of plain numbers does not."""
    return bool(type(node) not in (OperationalNode, BlankNode) or node.args or memory_of(node))


_checkpoint = Opaque("checkpoint")


def checkpointed_chain(steps: Sequence[Function], x: Any, *, levels: int = 1) -> Any:
    """Apply functions sequentially, storing few of the values between them.

    Parameters
    ----------
    steps : sequence of callable
        Functions of one argument, each applied to the result of the one before.
    x : array or nested arrays
        The argument of the first.
    levels : int
        How often a step is computed again at most; 0 stores everything.

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
    With one level, n steps are cut into sqrt(n) segments, each under `checkpoint`: sqrt(n) values between segments and
    the inside of one segment are kept at a time, for one more forward pass. With more levels each segment is cut again:
    about ``(levels + 1) * n ** (1 / (levels + 1))`` values for `levels` more forward passes, as in the binomial schedules
    of A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Trans. Math. Softw. 26 (2000), which are the best
    possible, except for a small factor.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> print(grad(lambda x: checkpointed_chain([np.sin] * 100, x))(1.0).round(6))
    0.003699
    """
    if levels < 0:
        raise ValueError(f"checkpointed_chain: levels must not be negative, {levels} was given")
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
