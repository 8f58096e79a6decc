"""Structural zeros: unselected elements have a cotangent of zero, even if the next derivative is infinite or nan.

The cotangent of elements that ``np.where``, an index or ``np.nanmean`` excludes is zero because the result does not depend on
them, not because a computed number was zero. If the next rule multiplies it by infinity or nan, arithmetic gives nan, but the
correct result is zero. A computed zero is a number, and its product with infinity is nan.

The *support* of a cotangent is 0 at its structural zeros and 1 elsewhere. Supports propagate through a graph by the same sweep
as cotangents, with other rules (see `support_rules`), which are derived from the derivative rules. A sweep without invalid
operations and without nan is final. Otherwise two more passes follow: one for supports, one for cotangents masked by them.

The structural zeros of recorded derivatives are in the graph, as factors of products that may be differentiated again. If they
were recorded without masks, because no number was invalid, the sweep is stored for a later computation of their supports.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.array_types import Array
from compgraph.context import active_checks, recording_derivative, records_for_replay, trace_guards, unmasked_derivatives
from compgraph.frames import set_lines_of_rules
from compgraph.storage import Write, root_of
from compgraph.values import Value

from ..rules import OutputCotangents, RuleErrors, by_function
from .support_rules import MaskedRules, RecordingSupportRules, as_support, in_both_parts

# single_pass(rules, errors, seed, create_graph) -> {node: cotangent}: one pass over a graph; `rules` maps functions to rules.
Pass = Callable[[Any, RuleErrors, Any, bool], dict[Any, Any]]
_function_of = attrgetter("function")


def run_sweep(
    single_pass: Pass, nodes: Sequence[Any], seed: object, create_graph: bool, support: bool | None = None
) -> dict[Any, Any]:
    """Return the cotangents that a pass over a graph computes, masked by their supports if some are nan.

    Parameters
    ----------
    single_pass : callable
        The pass.
    nodes : sequence of Node
        The graph.
    seed : array, Node or OutputCotangents
        The cotangent of the output.
    create_graph : bool
        Whether computations are recorded.
    support : array or True, optional
        The support of the seed; True if all its zeros are structural. By default it has no structural zeros.

    Returns
    -------
    dict
        The result of the pass.
    """
    has_zeros = create_graph and _has_zeros(nodes, support)
    errors = RuleErrors(pending=[], log=[] if has_zeros else None)
    cotangents: dict[Any, Any] = {}
    deferred_error = None
    masks_first = records_for_replay.get() if create_graph else False
    if active_checks() is not None:  # which inspect each contribution
        masks_first = True
    if not (masks_first and (has_zeros or _has_zeros(nodes, support))):
        guards = trace_guards.get()
        guard_count = len(guards or ())
        try:
            cotangents = errors.run(_run_pass, single_pass, by_function, errors, seed, create_graph)
        except FloatingPointError as error:
            deferred_error = error
        has_nan = contains_nan(cotangents.values())
        _drop_corner_warnings(errors, has_nan)
        is_clean = deferred_error is None and not errors.has_invalid and not has_nan
        if is_clean or not (has_zeros or _has_zeros(nodes, support)):
            if deferred_error is not None:
                raise deferred_error
            errors.report()
            _record_for_supports(seed, single_pass, nodes, errors.log, support)
            if has_zeros and (support is not None or _has_inner_zeros(nodes)):
                report_unmasked(cotangents.values())
            return cotangents
        del cotangents
        if guards:
            del guards[guard_count:]  # otherwise compiled programs would repeat the discarded pass
    zeros, _ = _compute_supports(single_pass, nodes, seed, create_graph, support)
    errors = RuleErrors(pending=[], raising=True)
    cotangents = errors.run(_run_pass, single_pass, MaskedRules(zeros, errors), errors, seed, create_graph)
    _drop_corner_warnings(errors, contains_nan(cotangents.values()))
    errors.report()
    return cotangents


def report_unmasked(derivatives: Iterable[Any]) -> None:
    """Report derivatives that were recorded without masks for structural zeros to the trace of a compiled function."""
    unmasked = unmasked_derivatives.get()
    if unmasked is not None:
        unmasked += derivatives


def _run_pass(single_pass: Pass, rules: object, errors: RuleErrors, seed: object, create_graph: bool) -> dict[Any, Any]:
    if not create_graph:
        return single_pass(rules, errors, seed, create_graph)
    with recording_derivative():
        cotangents = single_pass(rules, errors, seed, create_graph)
    if errors.rule_calls:
        set_lines_of_rules(cotangents.values(), errors.rule_calls)
    return cotangents


def _drop_corner_warnings(errors: RuleErrors, has_nan: bool) -> None:
    """Drop warnings of second derivatives that do not exist at a corner, if none of them reached a result."""
    if errors.pending and not has_nan:
        errors.pending = [(error, node) for error, node in errors.pending if node is None or not _marks_corner(node.function)]


def _marks_corner(function: Callable[..., Any]) -> bool:
    """Whether an operation marks an undefined second derivative; see `grads.corners`."""
    spec = ops.spec_of(function)
    return spec is not None and spec.corner == "undefined"


def _has_zeros(nodes: Sequence[Any], support: object) -> bool:
    """Whether a sweep may encounter structural zeros."""
    return support is not None or any_selects(nodes) or has_recorded_sweeps(nodes)


def _has_inner_zeros(nodes: Sequence[Any]) -> bool:
    """Whether a rule may receive structural zeros: not if they occur only in cotangents of leaves."""
    if any(type(node) is Write for node in nodes) or has_recorded_sweeps(nodes):
        return True
    return any_selects([node for node in nodes if any(isinstance(x, Value) and x.function is not None for x in node.args)])


def any_selects(nodes: Sequence[Any]) -> bool:
    """Whether an operation, or a write, selects elements."""
    if type(nodes) is not list and any(type(node) is Write for node in nodes):
        return True
    makes_zeros = {function: _makes_zeros(function) for function in set(map(_function_of, nodes))}
    if True in makes_zeros.values():
        return True
    predicates = {function: predicate for function, predicate in makes_zeros.items() if predicate}
    return bool(predicates) and any(node.function in predicates and predicates[node.function](node) for node in nodes)


def _makes_zeros(function: Callable[..., Any] | None) -> Any:
    """Return the `makes_zeros` attribute of the rule of a function: a bool, or a predicate of nodes."""
    if function is None or function in ops.PIECEWISE:
        return False
    try:
        return by_function[function].makes_zeros
    except TypeError:  # no rule, so no cotangent
        return False


def _compute_supports(
    single_pass: Pass, nodes: Sequence[Any], seed: object, create_graph: bool, support: object = None
) -> tuple[list[tuple[Any, Any]], dict[Any, Any]]:
    """Return the supports of all contributions in the order of a pass, and the supports of its results.

    The support of a lazy contribution is None. Each support is paired with the result of `_nonfinite_terms`.
    """
    errors = RuleErrors()
    contribution_supports: list[tuple[Any, Any]] = []
    rules = RecordingSupportRules(contribution_supports, errors, known_supports(nodes, create_graph))
    node_supports = errors.run(_run_quietly, single_pass, rules, errors, _support_of_seed(seed, support), create_graph)
    return contribution_supports, {node: as_support(s) for node, s in node_supports.items()}


def _run_quietly(function: Callable[..., Any], *args: object) -> Any:
    """Call a function with floating-point warnings off."""
    with np.errstate(all="ignore"):
        return function(*args)


def sweep_support(single_pass: Pass, nodes: Sequence[Any], support: OutputCotangents, create_graph: bool) -> dict[Any, Any]:
    """Return the supports of the cotangents that a pass computes, given the support of its seed."""
    return _compute_supports(single_pass, nodes, support, create_graph, support)[1]


def _support_of_seed(seed: Any, support: object) -> Any:
    """Return the support of the cotangent that a sweep starts from."""
    if support is True:
        return in_both_parts(as_support(seed.raw_value if isinstance(seed, Value) else seed), seed)
    if support is not None:
        return support
    if isinstance(seed, OutputCotangents):
        return OutputCotangents({k: in_both_parts(np.ones(a.shape)[()], a) for k, a in seed.cotangents.items()})
    return in_both_parts(np.ones(seed.shape)[()], seed)


def contains_nan(values: Iterable[Any]) -> bool:
    """Whether any of some cotangents or tangents, which may be None, contains nan."""
    for value in values:
        plain = value.raw_value if isinstance(value, Value) else value
        if isinstance(plain, tuple):
            if contains_nan(plain):
                return True
        elif plain is not None and plain.size:
            # Nan if any element is, or for complex infinities. Unlike np.dot, vdot ignores overflow.
            total = np.vdot(plain, plain) if plain.ndim else plain
            if total != total:
                return True
    return False


# ------------------------------------------------------------------- derivatives that were recorded without masks


class _RecordedSweep:
    """A sweep that was recorded without masks, in case its results are differentiated again and need them."""

    def __init__(self, single_pass: Pass, nodes: Sequence[Any], support: Array, log: list[int]) -> None:
        self.single_pass, self.nodes, self.support, self.log = single_pass, nodes, support, log
        self.last_sequence_number = max(log)

    def _is_stale(self) -> bool:
        """Whether values that the sweep used have changed since."""
        roots = [root_of(node) for node in self.nodes if isinstance(node, Value)]
        return any(
            r.sequence_number > self.last_sequence_number
            or (r.memory and r.memory.log[-1].sequence_number > self.last_sequence_number)
            for r in roots
        )

    def supports(self, create_graph: bool) -> dict[int, Any]:
        """Return the supports of the contributions by sequence number; empty if values that the sweep used have changed."""
        if self._is_stale():
            return {}
        contribution_supports, _ = _compute_supports(self.single_pass, self.nodes, self.support, create_graph, self.support)
        return {
            sequence_number: s
            for sequence_number, (s, _) in zip(self.log, contribution_supports, strict=True)
            if sequence_number and s is not None
        }


_sweeps_by_seed: dict[int, tuple[Any, list[_RecordedSweep]]] = {}  # by the id of the seed node, while it lives


def _record_for_supports(
    seed: object, single_pass: Pass, nodes: Sequence[Any], log: list[int] | None, support: bool | None
) -> None:
    """Keep the data for the supports of a recorded sweep as long as its seed lives."""
    if not log or not any(log):
        return
    nodes_of_seed = seed.cotangents.values() if isinstance(seed, OutputCotangents) else [seed]
    seed_node = next((a for a in nodes_of_seed if isinstance(a, Value)), None)
    if seed_node is None:
        return
    key = id(seed_node)
    if key not in _sweeps_by_seed or _sweeps_by_seed[key][0]() is not seed_node:
        _sweeps_by_seed[key] = weakref.ref(seed_node, lambda _: _sweeps_by_seed.pop(key, None)), []
    _sweeps_by_seed[key][1].append(_RecordedSweep(single_pass, nodes, _support_of_seed(seed, support), log))


def _recorded_sweeps(nodes: Iterable[Any]) -> list[_RecordedSweep]:
    """Return the recorded sweeps whose seeds are among some nodes."""
    node_entries = [(node, _sweeps_by_seed.get(id(node))) for node in nodes]
    return [sweep for node, entry in node_entries if entry is not None and entry[0]() is node for sweep in entry[1]]


def has_recorded_sweeps(nodes: Iterable[Any]) -> bool:
    """Whether some nodes contain derivatives that were recorded without masks."""
    return bool(_sweeps_by_seed and _recorded_sweeps(nodes))


def known_supports(nodes: Sequence[Any], create_graph: bool) -> dict[int, Any]:
    """Return the supports of nodes that were recorded as derivatives, by sequence number."""
    supports: dict[int, Any] = {}
    for sweep in _recorded_sweeps(nodes) if _sweeps_by_seed else ():
        supports.update(sweep.supports(create_graph))
    return supports
