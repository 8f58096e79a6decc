"""How the supports of adjoints pass through operations, and how adjoints are kept within them; see `structural_zeros`.

A support is 1 where there is something, and 0 at structural zeros. How it passes follows from the kind of a rule:

============  =============================================================================================
moving        by the formula itself, which adds up ones; of a product, with ones for the other operands
elementwise   as it is
reduction     spread over what was reduced
others        all of an operand, if there is anything at all: what mixes elements ends structural zeros
============  =============================================================================================

What a rule says to take no part (`Rule.selecting`) is zero besides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.values import Value

from ..batching import pad_ndim, pull_batch, pull_batch_several, push_node, reduced_axes
from ..rules import DEFERRED, Formula, Rule, RuleErrors, Shared, by_function, spread, unowned, with_keywords


def as_support(value: Any) -> Any:
    """Ones where there is anything, counts and nan included."""
    if isinstance(value, tuple):
        return tuple([None if part is None else as_support(part) for part in value])
    if isinstance(value, Value):
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
    axes = reduced_axes(x, axis)
    kept = np.reshape(s, (s.shape[0], *[1 if i + 1 in axes else n for i, n in enumerate(x.shape)]))
    return np.broadcast_to(kept, (s.shape[0], *x.shape))


def _carries(rule: Rule, options: dict[str, Any]) -> bool:
    """Whether the formulas of a rule tell where their results have structural zeros."""
    return rule.carries(**options) if callable(rule.carries) else rule.carries


def _pulled(rule: Rule, position: int, batched: bool, g: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    if batched:
        return pull_batch(rule, position, g, out, *operands, **options)
    return rule.formulas[position](g, out, *operands, **options)  # type: ignore[misc]


def _passed(rule: Rule, position: int, batched: bool, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """The support of a contribution, from that of the adjoint of the output."""
    if _carries(rule, options):
        if rule.kind == "multilinear":
            operands = tuple([np.ones(np.shape(x)) for x in operands])
        if rule.opname in ("window", "laid"):  # where a part lies is told in bytes
            s = s.astype(out.dtype)
        return _pulled(rule, position, batched, s, out, operands, options)
    if rule.kind == "elementwise":
        found = s
    elif rule.kind == "reduction":
        lengths = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
        found = _reduced(position, s, rule, batched, out, operands[0], **lengths)
    elif _sweeps_itself(options):
        found = options["call"].supports(position, s, out, *operands)
    else:
        found = _anywhere(s, operands[position], batched)
    if rule.part is not None and position == 0:
        found = found * np.where(rule.part(*operands, **options), 1.0, 0.0)
    return found


def _touched(rule: Rule, position: int, batched: bool, s: Any, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Where a product that adds up has a term that is not finite, and no structural zero in it; None if all are finite."""
    if _sweeps_itself(options):
        return Starting(s)
    if rule.kind != "multilinear" or not rule.carries:
        return None
    ones = [np.ones(np.shape(x)) for x in operands]
    total = None
    for q, operand in enumerate(operands):
        if q != position and not _is_finite(operand):
            terms = [*ones[:q], np.where(np.isfinite(operand), 0.0, 1.0), *ones[q + 1 :]]
            found = as_support(_pulled(rule, position, batched, s, out, terms, options))
            total = found if total is None else total + found
    return total


def _cleaned(operands: Sequence[Any], position: int) -> list[Any]:
    """Operands, all but one, with zeros where they are not finite."""
    return [x if q == position or _is_finite(x) else np.where(np.isfinite(x), x, 0) for q, x in enumerate(operands)]


def _sweeps_itself(options: dict[str, Any]) -> bool:
    """Whether an operation is a call that is swept by itself, one direction after the other."""
    return hasattr(options.get("call"), "supports")


class Starting:
    """A context in which a call that is swept by itself starts from an adjoint with structural zeros.

    Parameters
    ----------
    support : array, Node or tuple
        The support of the adjoint.
    """

    _now: ContextVar[Any] = ContextVar("starting", default=None)

    def __init__(self, support: Any) -> None:
        self.support = support

    def __enter__(self) -> None:
        self._token = self._now.set(self.support)

    def __exit__(self, *exception: object) -> None:
        self._now.reset(self._token)

    @classmethod
    def taken(cls) -> Any:
        """The support, for the call at work and none inside it; None where there are no structural zeros."""
        support = cls._now.get()
        cls._now.set(None)
        return support


class _Each(Sequence[Formula | None]):
    """For each operand with a derivative, what is made of its position."""

    def __init__(self, rule: Rule, make: Callable[[int], Formula]) -> None:
        self.rule, self.make = rule, make

    def __len__(self) -> int:
        return len(self.rule.formulas)

    def __getitem__(self, position: Any) -> Any:
        return None if self.rule.formulas[position] is None else self.make(position)


def _like(rule: Rule, single: Callable[[int], Formula], batch: Formula, several: Formula) -> Rule:
    """A rule for the operands of another; `several` answers for several of them in one call, where that does."""
    theirs = rule.formulas
    if type(theirs) is Shared:
        batched = theirs.batched or rule.is_batchable
        return Rule(rule.opname, "general", Shared(several, theirs.fixed, batched), ()).batched(batch)
    return Rule(rule.opname, "general", _Each(rule, single), ()).batched(batch)


class _OfSupports(dict[Any, Rule]):
    """How supports pass, by the function a node carries."""

    def __missing__(self, function: Any) -> Rule:
        if isinstance(function, ops.Keyworded):
            made = with_keywords(self[function.function], function)
        else:
            rule = by_function[function]

            def batch(position: int, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
                return _passed(rule, position, True, s, out, *operands, **options)

            def several(positions: list[int], s: Any, out: Any, *operands: Any, **options: Any) -> Any:
                batched = rule.is_batchable and np.ndim(s) > np.ndim(out)
                if _carries(rule, options):
                    pulled = functools.partial(pull_batch_several, rule) if batched else rule.formulas.formula  # type: ignore[attr-defined]
                    return pulled(positions, s, out, *operands, **options)
                return [_passed(rule, position, batched, s, out, *operands, **options) for position in positions]

            made = _like(rule, lambda position: functools.partial(_passed, rule, position, False), batch, several)
        self[function] = made
        return made


class Through(dict[Any, Rule]):
    """The rules of a pass that finds supports.

    Parameters
    ----------
    given : list
        Where they are put, in order.
    errors : RuleErrors
        Knows at which node the pass is.
    known : dict
        By sequence number, the supports of nodes that were recorded as derivatives.
    """

    def __init__(self, given: list[tuple[Any, Any]], errors: RuleErrors, known: dict[int, Any]) -> None:
        self.given, self.errors, self.known = given, errors, known
        self.passed = _OfSupports()
        self.last: tuple[Any, Any] = (None, None)

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
            if _sweeps_itself(options):
                return NotImplemented
            s = self._of_node(s)
            touched = _touched(by_function[function], position, True, s, out, operands, options)
            return self._noted(pull_batch(rule, position, s, out, *operands, **options), touched)

        def several(positions: list[int], s: Any, out: Any, *operands: Any, **options: Any) -> Any:
            s = self._of_node(s)
            touched = Starting(s) if _sweeps_itself(options) else None  # what is shared is no product
            found = rule.formulas.formula(positions, s, out, *operands, **options)  # type: ignore[attr-defined]
            return [self._noted(each, touched) for each in found]

        self[function] = made = _like(rule, single, batch, several)
        return made

    def _of_node(self, s: Any) -> Any:
        if s is self.last[0]:  # that of the operand before
            return self.last[1]
        at, found = self.errors.at, as_support(s)
        known = self.known.get(at.sequence_number)
        if known is not None and np.shape(known) == np.shape(at.raw_value):
            found = found * known
        self.last = s, found
        return found

    def _noted(self, found: Any, touched: Any) -> Any:
        if type(found) in DEFERRED:
            self.given.append((None, None))
            return found
        found = as_support(found)
        self.given.append((found, touched))
        return unowned(found)


class Within(dict[Any, Rule]):
    """The rules of a pass whose contributions are kept within supports."""

    def __init__(self, zeros: list[tuple[Any, Any]], errors: RuleErrors) -> None:
        self.next, self.errors = iter(zeros).__next__, errors

    def __missing__(self, function: Any) -> Rule:
        rule = by_function[function]

        def single(position: int) -> Formula:
            formula: Any = rule.formulas[position]

            def call(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
                return self._kept(lambda *xs: formula(g, out, *xs, **options), operands, position, 0)

            return call

        def batch(position: int, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
            if _sweeps_itself(options):
                return NotImplemented
            return self._kept(lambda *xs: pull_batch(rule, position, g, out, *xs, **options), operands, position, 1)

        def several(positions: list[int], g: Any, out: Any, *operands: Any, **options: Any) -> Any:
            zeros = [self.next() for _ in positions]
            before = len(self.errors.met or ())
            axes = np.ndim(g) - np.ndim(out) if rule.is_batchable else 0
            pulled = functools.partial(pull_batch_several, rule) if axes else rule.formulas.formula  # type: ignore[attr-defined]
            with zeros[0][1] if isinstance(zeros[0][1], Starting) else nullcontext():
                found = pulled(positions, g, out, *operands, **options)
            return [self._masked(each, support, axes, before) for each, (support, _) in zip(found, zeros, strict=True)]

        self[function] = made = _like(rule, single, batch, several)
        return made

    def _kept(self, formula: Callable[..., Any], operands: Sequence[Any], position: int, axes: int) -> Any:
        """What a formula gives, and zero outside the support; errors met there alone are none."""
        support, touched = self.next()
        before = len(self.errors.met or ())
        with touched if isinstance(touched, Starting) else nullcontext():
            found = formula(*operands)
        changed = False
        if touched is not None and not isinstance(touched, Starting):
            found, changed = np.where(touched != 0, found, formula(*_cleaned(operands, position))), True
        return self._masked(found, support, axes, before, changed)

    def _masked(self, found: Any, support: Any, axes: int, before: int, changed: bool = False) -> Any:
        """What a formula gave, and zero outside the support; errors met since `before` are none if only zeros met them."""
        met: Any = self.errors.met
        if support is not None and (isinstance(support, Value) or not np.all(support)):
            missing = np.ndim(found) - np.ndim(support)  # broadcasting is undone later
            if axes and missing > 0:
                support = np.reshape(support, (support.shape[0], *[1] * missing, *support.shape[1:]))
            found, changed = np.where(support != 0, found, 0)[()], True
        if changed and len(met) > before and _is_finite(found):
            del met[before:]
        return found


def _is_finite(value: Any) -> bool:
    return bool(np.all(np.isfinite(value.raw_value if isinstance(value, Value) else value)))


# ------------------------------------------------------------------------------------------ forward
# Where a tangent is not chosen, the rules of choosing forget it. But zeros that a tangent starts with, one of a basis, are
# structural, and so are those of adjoints in a gradient that is differentiated along a direction.


def pushed_support(node: Any, given: list[Any], create_graph: bool, count: int) -> Any:
    """The support of a batch of tangents of a node, from those of its operands, None where these are zero."""
    given = [None if s is None else as_support(s) for s in given]
    function, plain = node.function, node.raw_value
    rule = None if isinstance(function, ops.Output) else by_function[function]
    if rule is None or (rule.kind != "multilinear" and _carries(rule, node.options)):
        return push_node(node, given, create_graph, count)
    if rule.kind == "elementwise":
        parts = [pad_ndim(s, plain.ndim) for s in given if s is not None]
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
