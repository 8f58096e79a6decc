"""Structural zeros: what was not chosen passes nothing on, whatever its derivative is multiplied by.

The adjoint of what ``np.where``, an index or ``np.nanmean`` left out is zero because nothing hangs on it, not because a
number came out as zero. Where the next rule multiplies it by infinity, or by nan, arithmetic gives nan; zero is meant.
A zero that was computed stays a number, and times infinity it is nan.

The *support* of an adjoint is where it is no structural zero: 1 there, 0 elsewhere. It passes through a graph as adjoints do,
by the very same sweep: only the rules are others (see `supports`), which follow from those of the derivatives. A sweep that
met no invalid operation, and gave no nan, is not bothered. Another is gone through twice more: for the supports, and for
adjoints that are kept within them.

Of derivatives that are recorded, the zeros are in the graph: products of structural zeros, which are to be differentiated
again. If they were recorded without masks, since no number was invalid, the sweep is remembered, and can tell their supports.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.context import active_watcher, recording_derivative, records_for_replay
from compgraph.frames import set_lines_of_rules
from compgraph.storage import Write, root_of
from compgraph.values import Value

from ..rules import Parts, RuleErrors, by_function
from .support_rules import Through, Within, as_support

# once(rules, errors, seed, create_graph) -> {node: adjoint}: one pass over a graph, by the rules of a mapping from functions.
Pass = Callable[[Any, RuleErrors, Any, bool], dict[Any, Any]]
_function_of = attrgetter("function")
CORNERS = frozenset({"over", "cornered"})  # by which rules say that a second derivative does not exist; see `grads.corners`


def swept(once: Pass, nodes: Sequence[Any], seed: Any, create_graph: bool, support: Any = None) -> dict[Any, Any]:
    """The adjoints that a pass over a graph finds; if some are nan, they are kept within their supports.

    Parameters
    ----------
    once : callable
        The pass.
    nodes : sequence of Node
        The graph.
    seed : array, Node or Parts
        The adjoint it starts from.
    create_graph : bool
        Whether what is computed is recorded.
    support : array or True, optional
        The support of the seed; True if all its zeros are structural. It has none by default.

    Returns
    -------
    dict
        As the pass does.
    """
    has_zeros = create_graph and _has_zeros(nodes, support)
    errors = RuleErrors(met=[], log=[] if has_zeros else None)
    found: dict[Any, Any] = {}
    refused = None
    careful = records_for_replay.get() if create_graph else False
    if active_watcher() is not None:  # debugging looks at each contribution as it comes
        careful = True
    if not (careful and (has_zeros or _has_zeros(nodes, support))):
        try:
            found = errors.run(_once, once, by_function, errors, seed, create_graph)
        except FloatingPointError as error:
            refused = error
        has_nan = holds_nan(found.values())
        _drop_corners(errors, has_nan)
        clean = refused is None and not errors.invalid and not has_nan
        if clean or not (has_zeros or _has_zeros(nodes, support)):
            if refused is not None:
                raise refused
            errors.tell()
            _remember(seed, once, nodes, errors.log, support)
            return found
        del found
    zeros, _ = _supports(once, nodes, seed, create_graph, support)
    errors = RuleErrors(met=[], raising=True)
    found = errors.run(_once, once, Within(zeros, errors), errors, seed, create_graph)
    _drop_corners(errors, holds_nan(found.values()))
    errors.tell()
    return found


def _once(once: Pass, rules: Any, errors: RuleErrors, seed: Any, create_graph: bool) -> dict[Any, Any]:
    if not create_graph:
        return once(rules, errors, seed, create_graph)
    with recording_derivative():
        found = once(rules, errors, seed, create_graph)
    if errors.reached:
        set_lines_of_rules(found.values(), errors.reached)
    return found


def _drop_corners(errors: RuleErrors, has_nan: bool) -> None:
    """Say nothing of second derivatives that do not exist at a corner, if no derivative passed there."""
    if errors.met and not has_nan:
        errors.met = [(error, at) for error, at in errors.met if at is None or at.opname not in CORNERS]


def _has_zeros(nodes: Sequence[Any], support: Any) -> bool:
    """Whether a sweep may meet structural zeros."""
    return support is not None or any_selects(nodes) or bool(_earlier and _earlier_of(nodes))


def any_selects(nodes: Sequence[Any]) -> bool:
    """Whether an operation, or a write, leaves out elements."""
    if type(nodes) is not list and any(type(node) is Write for node in nodes):
        return True
    begins = {function: _begins(function) for function in set(map(_function_of, nodes))}
    if True in begins.values():
        return True
    asked = {function: begin for function, begin in begins.items() if begin}
    return bool(asked) and any(node.function in asked and asked[node.function](node) for node in nodes)


def _begins(function: Any) -> Any:
    """What a rule says of beginning structural zeros."""
    if function is None or function in ops.PIECEWISE:
        return False
    try:
        return by_function[function].begins
    except TypeError:  # it has no rule, and no adjoint passes
        return False


def _supports(
    once: Pass, nodes: Sequence[Any], seed: Any, create_graph: bool, support: Any = None
) -> tuple[list[tuple[Any, Any]], dict[Any, Any]]:
    """The supports of all contributions, in the order in which a pass asks for them, None of one that waits to be put together.

    With each stands what `_touched` tells; then come the supports of the adjoints that are found.
    """
    errors = RuleErrors()
    given: list[tuple[Any, Any]] = []
    rules = Through(given, errors, known_zeros(nodes, create_graph))
    found = errors.run(_quietly, once, rules, errors, _of_seed(seed, support), create_graph)
    return given, {node: as_support(s) for node, s in found.items()}


def _quietly(function: Callable[..., Any], *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*args)


def supported(once: Pass, nodes: Sequence[Any], support: Any, create_graph: bool) -> dict[Any, Any]:
    """The supports of the adjoints that a pass finds, from that of its seed."""
    return _supports(once, nodes, support, create_graph, support)[1]


def _of_seed(seed: Any, support: Any) -> Any:
    """The support of an adjoint to start from."""
    if support is True:
        return as_support(seed.raw_value if isinstance(seed, Value) else seed)
    if support is not None:
        return support
    if isinstance(seed, Parts):
        return Parts({k: np.ones(a.shape)[()] for k, a in seed.found.items()})
    return np.ones(seed.shape)[()]


def holds_nan(values: Iterable[Any]) -> bool:
    """Whether adjoints or tangents, of which some may be None, hold what is not a number."""
    for value in values:
        plain = value.raw_value if isinstance(value, Value) else value
        if isinstance(plain, tuple):
            if holds_nan(plain):
                return True
        elif plain is not None and plain.size:
            # Nan if one is, or for complex infinities. Unlike np.dot it looks at no flags: large numbers overflow, unseen.
            total = np.vdot(plain, plain) if plain.ndim else plain
            if total != total:
                return True
    return False


# ------------------------------------------------------------------- derivatives that were recorded without masks


class _Earlier:
    """A recorded sweep that needed no supports, in case that its results are differentiated again and do."""

    def __init__(self, once: Pass, nodes: Sequence[Any], support: Any, log: list[int]) -> None:
        self.once, self.nodes, self.support, self.log = once, nodes, support, log
        self.last = max(log)

    def _is_past(self) -> bool:
        """Whether values that it used were changed since."""
        roots = [root_of(node) for node in self.nodes if isinstance(node, Value)]
        return any(r.sequence_number > self.last or (r.memory and r.memory.log[-1].sequence_number > self.last) for r in roots)

    def supports(self, create_graph: bool) -> dict[int, Any]:
        """The supports of the contributions, by their ticks; none are known if values that it used were changed since."""
        if self._is_past():
            return {}
        given, _ = _supports(self.once, self.nodes, self.support, create_graph, self.support)
        return {
            sequence_number: s
            for sequence_number, (s, _) in zip(self.log, given, strict=True)
            if sequence_number and s is not None
        }


_earlier: dict[int, tuple[Any, list[_Earlier]]] = {}  # by the identity of the node that sweeps started from, while it lives


def _remember(seed: Any, once: Pass, nodes: Sequence[Any], log: list[int] | None, support: Any) -> None:
    """Keep what it takes to find the supports of what a sweep has recorded, for as long as its seed lives."""
    if not log or not any(log):
        return
    start = next((a for a in seed.found.values() if isinstance(a, Value)), None) if isinstance(seed, Parts) else seed
    if not isinstance(start, Value):
        return
    key = id(start)
    if key not in _earlier or _earlier[key][0]() is not start:
        _earlier[key] = weakref.ref(start, lambda _: _earlier.pop(key, None)), []
    _earlier[key][1].append(_Earlier(once, nodes, _of_seed(seed, support), log))


def _earlier_of(nodes: Iterable[Any]) -> list[_Earlier]:
    """The recorded sweeps that are part of a graph."""
    found = [(node, _earlier.get(id(node))) for node in nodes]
    return [sweep for node, entry in found if entry is not None and entry[0]() is node for sweep in entry[1]]


def known_zeros(nodes: Sequence[Any], create_graph: bool) -> dict[int, Any]:
    """The supports of those nodes of a graph that were recorded as derivatives, by their ticks."""
    known: dict[int, Any] = {}
    for sweep in _earlier_of(nodes) if _earlier else ():
        known.update(sweep.supports(create_graph))
    return known
