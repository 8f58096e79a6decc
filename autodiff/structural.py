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
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.memory import Write, root_of
from compgraph.modes import guarding
from compgraph.nodes import Node, watched

from .deferred import Parts
from .registry import Work, by_function
from .supports import Through, Within, as_support

# once(rules, work, seed, create_graph) -> {node: adjoint}: one pass over a graph, by the rules of a mapping from functions.
Pass = Callable[[Any, Work, Any, bool], dict[Any, Any]]


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
    support : array, optional
        The support of the seed; it has no structural zeros by default.

    Returns
    -------
    dict
        As the pass does.
    """
    work = Work(met=[], log=[] if create_graph else None)
    refused = None
    found: dict[Any, Any] = {}
    guarded = watched() is not None or (create_graph and guarding.get())  # debugging looks at each contribution as it comes
    if not (guarded and _has_zeros(nodes, support)):
        try:
            with work:
                found = once(by_function, work, seed, create_graph)
            if not work.met and not holds_nan(tuple(found.values())):
                _remember(seed, once, nodes, work.log, support)
                return found
        except FloatingPointError as error:
            refused = error
        if not (refused or work.invalid or holds_nan(tuple(found.values()))) or not _has_zeros(nodes, support):
            if refused is not None:
                raise refused
            work.tell()
            _remember(seed, once, nodes, work.log, support)
            return found
    del found
    zeros, _ = _supports(once, nodes, seed, create_graph, support)
    work = Work(met=[], raising=True)
    with work:
        found = once(Within(zeros, work), work, seed, create_graph)
    work.tell()
    return found


def _has_zeros(nodes: Sequence[Any], support: Any) -> bool:
    """Whether a sweep may meet structural zeros."""
    return support is not None or any(map(_selects, nodes)) or bool(_earlier and _earlier_of(nodes))


def _selects(node: Any) -> bool:
    """Whether an operation, or a write, leaves out elements."""
    if node.__class__ is Write:
        return True
    function = node.function if node.args else None
    if function is None or function in operations.PIECEWISE:
        return False
    try:
        rule = by_function[function]
    except TypeError:  # it has none, and no adjoint passes
        return False
    return rule.begins(node) if callable(rule.begins) else rule.begins


def _supports(
    once: Pass, nodes: Sequence[Any], seed: Any, create_graph: bool, support: Any = None
) -> tuple[list[tuple[Any, Any]], dict[Any, Any]]:
    """The supports of all contributions, in the order in which a pass asks for them, None of one that waits to be put together.

    With each stands what `_touched` tells; then come the supports of the adjoints that are found.
    """
    work = Work()
    given: list[tuple[Any, Any]] = []
    rules = Through(given, work, known_zeros(nodes, create_graph))
    with work, np.errstate(all="ignore"):
        found = once(rules, work, _full(seed) if support is None else support, create_graph)
    return given, {node: as_support(s) for node, s in found.items()}


def supported(once: Pass, nodes: Sequence[Any], support: Any, create_graph: bool) -> dict[Any, Any]:
    """The supports of the adjoints that a pass finds, from that of its seed."""
    return _supports(once, nodes, support, create_graph, support)[1]


def _full(seed: Any) -> Any:
    """The support of an adjoint without structural zeros."""
    if isinstance(seed, Parts):
        return Parts({k: np.ones(np.shape(a))[()] for k, a in seed.found.items()})
    return np.ones(np.shape(seed))[()]


def holds_nan(value: Any) -> bool:
    """Whether a tangent, or several, or None, hold what is not a number."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(v is not None and bool(np.isnan(v.plain if isinstance(v, Node) else v).any()) for v in parts)


# ------------------------------------------------------------------- derivatives that were recorded without masks


class _Earlier:
    """A recorded sweep that needed no supports, in case that its results are differentiated again and do."""

    def __init__(self, once: Pass, nodes: Sequence[Any], support: Any, log: list[int]) -> None:
        self.once, self.nodes, self.support, self.log = once, nodes, support, log
        self.last = max(log)

    def _is_past(self) -> bool:
        """Whether values that it used were changed since."""
        roots = [root_of(node) for node in self.nodes if isinstance(node, Node)]
        return any(r.tick > self.last or (r.memory and r.memory.log[-1].tick > self.last) for r in roots)

    def supports(self, create_graph: bool) -> dict[int, Any]:
        """The supports of the contributions, by their ticks; none are known if values that it used were changed since."""
        if self._is_past():
            return {}
        given, _ = _supports(self.once, self.nodes, self.support, create_graph, self.support)
        return {tick: s for tick, (s, _) in zip(self.log, given, strict=True) if tick and s is not None}


_earlier: dict[int, tuple[Any, list[_Earlier]]] = {}  # by the identity of the node that sweeps started from, while it lives


def _remember(seed: Any, once: Pass, nodes: Sequence[Any], log: list[int] | None, support: Any) -> None:
    """Keep what it takes to find the supports of what a sweep has recorded, for as long as its seed lives."""
    if log is None or not any(log) or not _has_zeros(nodes, support):
        return
    start = next((a for a in seed.found.values() if isinstance(a, Node)), None) if isinstance(seed, Parts) else seed
    if not isinstance(start, Node):
        return
    key = id(start)
    if key not in _earlier or _earlier[key][0]() is not start:
        _earlier[key] = weakref.ref(start, lambda _: _earlier.pop(key, None)), []
    _earlier[key][1].append(_Earlier(once, nodes, _full(seed) if support is None else support, log))


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
