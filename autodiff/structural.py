"""Structural zeros: what was not chosen passes nothing on, whatever its derivative is multiplied by.

The adjoint of what ``np.where``, an index or ``np.nanmean`` left out is zero because nothing hangs on it, not because a
number came out as zero. Where the next rule multiplies it by infinity, or by nan, arithmetic gives nan; zero is meant.
A zero that was computed stays a number, and times infinity it is nan.

The *support* of an adjoint is where it is no structural zero: 1 there, 0 elsewhere. It passes through a graph as adjoints do,
by the very same sweep: only the rules are others, which follow from the kinds of those of the derivatives, and from what
these say of themselves (`Rule.moving`, `Rule.selecting`). A sweep that met no invalid operation, and gave no nan, is not
bothered. Another is gone through twice more: for the supports, and for adjoints that are kept within them.

Of derivatives that are recorded, the zeros are in the graph: products of structural zeros, which are to be differentiated
again. If they were recorded without masks, since no number was invalid, the sweep is remembered, and can tell their supports.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.memory import Write
from compgraph.nodes import Node, watched

from .batching import padded
from .broadcasting import spread
from .deferred import DEFERRED, Parts
from .following import pull_batch, pushed_on
from .registry import Formula, Rule, Work, _ByFunction, _with_keywords, by_function

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
    if watched() is None or not _has_zeros(nodes, support):  # debugging looks at each contribution as it comes
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
    zeros = _supports(once, nodes, seed, create_graph, support)
    work = Work(met=[], raising=True)
    with work:
        found = once(_Within(zeros, work), work, seed, create_graph)
    work.tell()
    return found


def _has_zeros(nodes: Sequence[Any], support: Any) -> bool:
    """Whether a sweep may meet structural zeros."""
    return support is not None or any(map(_selects, nodes)) or bool(_earlier and _earlier_of(nodes))


def _selects(node: Any) -> bool:
    """Whether an operation, or a write, leaves out elements. (No rule of an operation that was swept is missing.)"""
    if node.__class__ is Write:
        return True
    rule = by_function.get(node.function) if node.args else None
    return rule is not None and (rule.begins(node) if callable(rule.begins) else rule.begins)


def _supports(once: Pass, nodes: Sequence[Any], seed: Any, create_graph: bool, support: Any = None) -> list[tuple[Any, Any]]:
    """The supports of all contributions, in the order in which a pass asks for them, None of one that waits to be put together.

    With each stands what `_touched` tells.
    """
    work = Work()
    given: list[tuple[Any, Any]] = []
    rules = _Through(given, work, known_zeros(nodes, create_graph))
    with work, np.errstate(all="ignore"):
        once(rules, work, _full(seed) if support is None else support, create_graph)
    return given


def _full(seed: Any) -> Any:
    """The support of an adjoint without structural zeros."""
    if isinstance(seed, Parts):
        return Parts({k: np.ones(np.shape(a))[()] for k, a in seed.found.items()})
    return np.ones(np.shape(seed))[()]


# ---------------------------------------------------------------------------------------- how supports pass


def _as_support(value: Any) -> Any:
    """Ones where there is anything, counts and nan included."""
    if isinstance(value, tuple):
        return tuple([None if part is None else _as_support(part) for part in value])
    if isinstance(value, Node):
        return np.where(value != 0, 1.0, 0.0)
    return (np.asarray(value) != 0).astype(float)[()]


def _anywhere(s: Any, operand: Any, batched: bool) -> Any:
    """The support of what mixes elements: all of an operand, if there is anything at all."""
    if isinstance(s, tuple):
        found = [_anywhere(part, operand, batched) for part in s if part is not None]
        return sum(found[1:], start=found[0])
    axes = tuple(range(int(batched), np.ndim(s)))
    some = np.where(np.any(s, axis=axes), 1.0, 0.0)
    shape = np.shape(operand)
    if not batched:
        return np.broadcast_to(some, shape)
    return np.broadcast_to(np.reshape(some, (s.shape[0], *[1] * len(shape))), (s.shape[0], *shape))


def _reduced(position: int, s: Any, rule: Rule, batched: bool, out: Any, x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The support of what a reduction was made of."""
    if position == rule.initial:
        return s
    if not batched:
        return np.broadcast_to(spread(s, x, axis, keepdims), x.shape)
    axes = range(x.ndim) if axis is None else [i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))] if x.ndim else ()
    kept = np.reshape(s, (s.shape[0], *[1 if i in axes else n for i, n in enumerate(x.shape)]))
    return np.broadcast_to(kept, (s.shape[0], *x.shape))


def _pulled(rule: Rule, position: int, batched: bool, g: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    if batched:
        return pull_batch(rule, position, g, out, list(operands), options)
    return rule.formulas[position](g, out, *operands, **options)  # type: ignore[misc]


def _passed(rule: Rule, position: int, batched: bool, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """The support of a contribution, from that of the adjoint of the output."""
    if rule.carries:
        if rule.kind == "multilinear":
            operands = tuple([np.ones(np.shape(x)) for x in operands])
        return _pulled(rule, position, batched, s, out, operands, options)
    if rule.kind == "elementwise":
        found = s
    elif rule.kind == "reduction":
        lengths = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
        found = _reduced(position, s, rule, batched, out, operands[0], **lengths)
    else:
        found = _anywhere(s, operands[position], batched)
    if rule.part is not None and position == 0:
        found = found * np.where(rule.part(*operands, **options), 1.0, 0.0)
    return found


def _touched(
    rule: Rule, position: int, batched: bool, s: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Where a product that adds up has a term that is not finite, and no structural zero in it; None if all are finite."""
    if not (rule.carries and rule.kind == "multilinear"):
        return None
    ones = [np.ones(np.shape(x)) for x in operands]
    total = None
    for q, operand in enumerate(operands):
        if q != position and not _is_finite(operand):
            terms = [*ones[:q], np.where(np.isfinite(operand), 0.0, 1.0), *ones[q + 1 :]]
            found = _as_support(_pulled(rule, position, batched, s, out, terms, options))
            total = found if total is None else total + found
    return total


def _cleaned(operands: Sequence[Any], position: int) -> list[Any]:
    """Operands, all but one, with zeros where they are not finite."""
    return [x if q == position or _is_finite(x) else np.where(np.isfinite(x), x, 0) for q, x in enumerate(operands)]


class _Each(Sequence[Formula | None]):
    """For each operand with a derivative, what is made of its position."""

    def __init__(self, rule: Rule, make: Callable[[int], Formula]) -> None:
        self.rule, self.make = rule, make

    def __len__(self) -> int:
        return len(self.rule.formulas)

    def __getitem__(self, position: Any) -> Any:
        return None if self.rule.formulas[position] is None else self.make(position)


def _like(rule: Rule, single: Callable[[int], Formula], batch: Formula) -> Rule:
    """A rule for the operands of another."""
    made = Rule(rule.opname, "general", _Each(rule, single), ())
    return made.batched(batch)


class _OfSupports(_ByFunction):
    """How supports pass, by the function a node carries."""

    def __missing__(self, function: Any) -> Rule:
        if isinstance(function, operations.Keyworded):
            made = _with_keywords(self[function.function], function)
        else:
            rule = by_function[function]

            def batch(position: int, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
                return _passed(rule, position, True, s, out, *operands, **options)

            made = _like(rule, lambda position: functools.partial(_passed, rule, position, False), batch)
        self[function] = made
        return made


class _Through(dict[Any, Rule]):
    """The rules of a pass that finds supports.

    Parameters
    ----------
    given : list
        Where they are put, in order.
    work : Work
        Knows which node is at work.
    known : dict
        By tick, the supports of nodes that were recorded as derivatives.
    """

    def __init__(self, given: list[tuple[Any, Any]], work: Work, known: dict[int, Any]) -> None:
        self.given, self.work, self.known = given, work, known
        self.passed = _OfSupports()

    def __missing__(self, function: Any) -> Rule:
        rule = self.passed[function]

        def single(position: int) -> Formula:
            formula: Any = rule.formulas[position]

            def call(s: Any, out: Any, *operands: Any, **options: Any) -> Any:
                s = self._of_node(s)
                touched = _touched(by_function[function], position, False, s, out, operands, options)
                return self._noted(formula(s, out, *operands, **options), touched)

            return call

        def batch(position: int, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
            s = self._of_node(s)
            touched = _touched(by_function[function], position, True, s, out, operands, options)
            return self._noted(pull_batch(rule, position, s, out, list(operands), options), touched)

        self[function] = made = _like(rule, single, batch)
        return made

    def _of_node(self, s: Any) -> Any:
        s = _as_support(s)
        at = self.work.at
        known = self.known.get(at.tick)
        return s if known is None or np.shape(known) != np.shape(at.plain) else s * known

    def _noted(self, found: Any, touched: Any) -> Any:
        if found.__class__ in DEFERRED:
            self.given.append((None, None))
            return found
        found = _as_support(found)
        self.given.append((found, touched))
        return found


class _Within(dict[Any, Rule]):
    """The rules of a pass whose contributions are kept within supports."""

    def __init__(self, zeros: list[tuple[Any, Any]], work: Work) -> None:
        self.next, self.work = iter(zeros).__next__, work

    def __missing__(self, function: Any) -> Rule:
        rule = by_function[function]

        def single(position: int) -> Formula:
            formula: Any = rule.formulas[position]

            def call(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
                return self._kept(lambda *xs: formula(g, out, *xs, **options), operands, position, 0)

            return call

        def batch(position: int, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
            return self._kept(lambda *xs: pull_batch(rule, position, g, out, list(xs), options), operands, position, 1)

        self[function] = made = _like(rule, single, batch)
        return made

    def _kept(self, formula: Callable[..., Any], operands: Sequence[Any], position: int, axes: int) -> Any:
        """What a formula gives, and zero outside the support; errors met there alone are none."""
        support, touched = self.next()
        met = self.work.met
        before = len(met)
        found = formula(*operands)
        if touched is not None:
            found = np.where(touched != 0, found, formula(*_cleaned(operands, position)))
        if support is None or (not isinstance(support, Node) and np.all(support)):
            if touched is not None and len(met) > before and _is_finite(found):
                del met[before:]
            return found
        missing = np.ndim(found) - np.ndim(support)  # broadcasting is undone later
        if axes and missing > 0:
            support = np.reshape(support, (support.shape[0], *[1] * missing, *support.shape[1:]))
        found = np.where(support != 0, found, 0)[()]
        if len(met) > before and _is_finite(found):
            del met[before:]
        return found


def _is_finite(value: Any) -> bool:
    return bool(np.all(np.isfinite(value.plain if isinstance(value, Node) else value)))


# ------------------------------------------------------------------------------------------ forward
# Where a tangent is not chosen, the rules of choosing forget it. But zeros that a tangent starts with, one of a basis, are
# structural, and so are those of adjoints in a gradient that is differentiated along a direction.


def holds_nan(value: Any) -> bool:
    """Whether a tangent, or several, or None, hold what is not a number."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(v is not None and bool(np.isnan(v.plain if isinstance(v, Node) else v).any()) for v in parts)


def pushed_support(node: Any, given: list[Any], create_graph: bool, count: int) -> Any:
    """The support of the tangents of a node in many directions, from those of its operands, None where these are zero."""
    given = [None if s is None else _as_support(s) for s in given]
    function, plain = node.function, node.plain
    rule = None if isinstance(function, operations.Output) else by_function[function]
    if rule is None or (rule.carries and rule.kind != "multilinear"):
        return pushed_on(node, given, create_graph, count)
    if rule.kind == "elementwise":
        parts = [padded(s, plain.ndim) for s in given if s is not None]
        return np.broadcast_to(sum(parts[1:], start=parts[0]), (count, *plain.shape))
    found = [_anywhere(s, out, True) for s in given if s is not None for out in (plain if isinstance(plain, tuple) else (plain,))]
    if isinstance(plain, tuple):
        return tuple([sum(found[k :: len(plain)]) for k in range(len(plain))])
    return sum(found[1:], start=found[0])


def kept(tangent: Any, support: Any) -> Any:
    """Tangents, and zero outside their support."""
    if isinstance(tangent, tuple):
        supports = support if isinstance(support, tuple) else (support,) * len(tangent)
        return tuple([None if t is None else kept(t, s) for t, s in zip(tangent, supports, strict=True)])
    return tangent if tangent is None or support is None else np.where(support != 0, tangent, 0)[()]


# ------------------------------------------------------------------- derivatives that were recorded without masks


class _Earlier:
    """A recorded sweep that needed no supports, in case that its results are differentiated again and do."""

    def __init__(self, once: Pass, nodes: Sequence[Any], support: Any, log: list[int]) -> None:
        self.once, self.nodes, self.support, self.log = once, nodes, support, log

    def supports(self, create_graph: bool) -> dict[int, Any]:
        """The supports of the contributions, by their ticks."""
        given = _supports(self.once, self.nodes, self.support, create_graph, self.support)
        return {tick: s for tick, (s, _) in zip(self.log, given, strict=True) if tick and s is not None}


_earlier: dict[int, tuple[Any, _Earlier]] = {}  # by the identity of the node a sweep started from, while that lives


def _remember(seed: Any, once: Pass, nodes: Sequence[Any], log: list[int] | None, support: Any = None) -> None:
    """Keep what it takes to find the supports of what a sweep has recorded, for as long as its seed lives."""
    if log is None or not any(log) or not (support is not None or any(map(_selects, nodes))):
        return
    start = next((a for a in seed.found.values() if isinstance(a, Node)), None) if isinstance(seed, Parts) else seed
    if isinstance(start, Node):
        key = id(start)
        _earlier[key] = weakref.ref(start, lambda _: _earlier.pop(key, None)), _Earlier(once, nodes, _full(seed) if support is None else support, log)


def _earlier_of(nodes: Iterable[Any]) -> list[_Earlier]:
    """The recorded sweeps that are part of a graph."""
    found = [(node, _earlier.get(id(node))) for node in nodes]
    return [entry[1] for node, entry in found if entry is not None and entry[0]() is node]


def known_zeros(nodes: Sequence[Any], create_graph: bool) -> dict[int, Any]:
    """The supports of those nodes of a graph that were recorded as derivatives, by their ticks."""
    known: dict[int, Any] = {}
    for sweep in _earlier_of(nodes) if _earlier else ():
        known.update(sweep.supports(create_graph))
    return known
