"""Rules by which the supports of cotangents propagate, and cotangents are masked by them; see `structural_zeros`.

A support is 0 at structural zeros and 1 elsewhere. Its propagation follows from the kind of a rule:

============  =============================================================================================
maps_zeros    by the formula itself, applied to the support; for a product, with ones in place of the other operands
elementwise   unchanged
reduction     broadcast to the reduced array
others        1 for all elements of an operand, if any element of the output has 1
============  =============================================================================================

Elements that a rule does not select (`Rule.selection_mask`) are 0 in addition.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.values import Value

from ..batching import pad_ndim, pull_batch, pull_batch_shared, push_node, reduced_axes
from ..rules import (
    LAZY_COTANGENTS,
    Formula,
    Rule,
    RuleErrors,
    ScatteredCotangent,
    SharedFormulas,
    as_view,
    by_function,
    restore_axes,
    rule_with_keywords,
)


def as_support(value: Array) -> Any:
    """Return an array with 1 for each nonzero element, nan included, and 0 elsewhere."""
    if isinstance(value, tuple):
        return tuple([None if part is None else as_support(part) for part in value])
    if isinstance(value, Value):
        return np.where(value != 0, 1.0, 0.0)
    return (np.asarray(value) != 0).astype(float)[()]


def in_both_parts(support: Array, like: NDArray[Any]) -> Any:
    """Return a support of complex numbers as a complex array, nonzero in both parts.

    A write into the real part of a buffer then clears that part alone.
    """
    dtype = getattr(like, "dtype", None)  # an operation with several outputs has none
    return support * (1 + 1j) if dtype is not None and dtype.kind == "c" else support


def _support_of_mixed(s: Array | tuple[Any, ...], operand: Array, batched: bool) -> Any:
    """Return the support of an operand whose elements are mixed: all of it, if any element of the output is in the support."""
    if isinstance(s, tuple):
        part_supports = [_support_of_mixed(part, operand, batched) for part in s if part is not None]
        return sum(part_supports[1:], start=part_supports[0])
    axes = tuple(range(int(batched), np.ndim(s)))
    is_any_supported = np.where(np.any(s, axis=axes), 1.0, 0.0)
    shape = np.shape(operand)
    if not batched:
        return np.broadcast_to(is_any_supported, shape)
    return np.broadcast_to(np.reshape(is_any_supported, (s.shape[0], *[1] * len(shape))), (s.shape[0], *shape))


def _support_of_reduced(
    position: int,
    s: Array,
    rule: Rule,
    batched: bool,
    out: Array,
    x: NDArray[Any],
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the support of the operand of a reduction."""
    if position == rule.initial:
        return s
    if not batched:
        return np.broadcast_to(restore_axes(s, x, axis, keepdims), x.shape)
    axes = reduced_axes(x, axis)
    reshaped = np.reshape(s, (s.shape[0], *[1 if i + 1 in axes else n for i, n in enumerate(x.shape)]))
    return np.broadcast_to(reshaped, (s.shape[0], *x.shape))


def _operand_at(rule: Rule, position: int, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return an operand of a call; one that was passed by keyword is among the options."""
    if position < len(operands):
        return operands[position]
    return options[ops.operand_names(ops.function_by_opname(rule.opname))[position]]


def _propagates_zeros(rule: Rule, options: dict[str, Any]) -> bool:
    """Whether the formulas of a rule map structural zeros to structural zeros."""
    return rule.maps_zeros(**options) if callable(rule.maps_zeros) else rule.maps_zeros


def _pull(rule: Rule, position: int, batched: bool, g: Array, out: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return the contribution of a rule to the cotangent of one operand."""
    if batched:
        return pull_batch(rule, position, g, out, *operands, **options)
    return rule.formulas[position](g, out, *operands, **options)  # type: ignore[misc]


def _propagate(rule: Rule, position: int, batched: bool, s: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """Return the support of a contribution, given that of the cotangent of the output."""
    if _propagates_zeros(rule, options):
        if rule.kind == "multilinear":
            operands = tuple([np.ones(np.shape(x)) for x in operands])
        if options.keys() >= {"offset", "strides"}:  # in bytes
            s = s.astype(out.dtype)
        return _pull(rule, position, batched, s, out, operands, options)
    if rule.kind == "elementwise":
        support = s
    elif rule.kind == "reduction":
        axis_options = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
        support = _support_of_reduced(position, s, rule, batched, out, operands[0], **axis_options)
    elif _has_own_sweep(options):
        support = options["call"].supports(position, s, out, *operands)
    else:
        support = _support_of_mixed(s, _operand_at(rule, position, operands, options), batched)
    if rule.selection_mask is not None and position == 0:
        support = support * np.where(rule.selection_mask(*operands, **options), 1.0, 0.0)
    return support


def _nonfinite_terms(
    rule: Rule, position: int, batched: bool, s: Any, out: object, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Return where a sum of products has a term that is not finite and no structural zero; None if all operands are finite.

    For a call that runs a separate sweep, return a `SeedSupport`.
    """
    if _has_own_sweep(options):
        return SeedSupport(s)
    if rule.kind != "multilinear" or not rule.maps_zeros:
        return None
    ones = [np.ones(np.shape(x)) for x in operands]
    total = None
    for q, operand in enumerate(operands):
        if q != position and not _is_finite(operand):
            terms = [*ones[:q], np.where(np.isfinite(operand), 0.0, 1.0), *ones[q + 1 :]]
            term_support = as_support(_pull(rule, position, batched, s, out, terms, options))
            total = term_support if total is None else total + term_support
    return total


def _replace_nonfinite(operands: Sequence[Any], position: int) -> list[Any]:
    """Return the operands, all but one with zeros in place of elements that are not finite."""
    return [x if q == position or _is_finite(x) else np.where(np.isfinite(x), x, 0) for q, x in enumerate(operands)]


def _has_own_sweep(options: dict[str, Any]) -> bool:
    """Whether an operation is a call that runs a separate sweep per direction."""
    return hasattr(options.get("call"), "supports")


class SeedSupport:
    """A context in which a call with a separate sweep starts from a cotangent with structural zeros.

    Parameters
    ----------
    support : array, Node or tuple
        The support of the cotangent.
    """

    _current: ContextVar[Any] = ContextVar("seed_support", default=None)

    def __init__(self, support: NDArray[Any] | tuple[Any, ...]) -> None:
        self.support = support

    def __enter__(self) -> None:
        self._token = self._current.set(self.support)

    def __exit__(self, *exception: object) -> None:
        self._current.reset(self._token)

    @classmethod
    def take(cls) -> Any:
        """Return the support for the current call, and clear it for inner calls; None without structural zeros."""
        support = cls._current.get()
        cls._current.set(None)
        return support


class _FormulasByPosition(Sequence[Formula | None]):
    """Formulas constructed from the position, for each operand with a derivative."""

    def __init__(self, rule: Rule, make: Callable[[int], Formula]) -> None:
        self.rule, self.make = rule, make

    def __len__(self) -> int:
        return len(self.rule.formulas)

    def __getitem__(self, position: Any) -> Any:
        return None if self.rule.formulas[position] is None else self.make(position)


def _rule_like(rule: Rule, make_formula: Callable[[int], Formula], batch: Formula, shared: Formula) -> Rule:
    """Return a rule for the operands of another.

    `make_formula` returns the formula of a position, `shared` replaces formulas that one call evaluates (`SharedFormulas`), and
    `batch` is the formula for batches.
    """
    formulas = rule.formulas
    if type(formulas) is SharedFormulas:
        batched = formulas.batched or rule.is_batchable
        return Rule(rule.opname, "general", SharedFormulas(shared, formulas.fixed, batched), ()).batched(batch)
    return Rule(rule.opname, "general", _FormulasByPosition(rule, make_formula), ()).batched(batch)


class _SupportRules(dict[Any, Rule]):
    """The propagation of supports, as rules by the function of a node."""

    def __missing__(self, function: object) -> Rule:
        if isinstance(function, ops.Keyworded):
            support_rule = rule_with_keywords(self[function.function], function)
        else:
            rule = by_function[function]

            def batch(position: int, s: Array, out: Array, *operands: Any, **options: object) -> Any:
                return _propagate(rule, position, True, s, out, *operands, **options)

            def shared(positions: list[int], s: Array, out: Array, *operands: Any, **options: object) -> Any:
                batched = rule.is_batchable and np.ndim(s) > np.ndim(out)
                if _propagates_zeros(rule, options):
                    pulled = functools.partial(pull_batch_shared, rule) if batched else rule.formulas.formula  # type: ignore[attr-defined]
                    return pulled(positions, s, out, *operands, **options)
                return [_propagate(rule, position, batched, s, out, *operands, **options) for position in positions]

            support_rule = _rule_like(rule, lambda position: functools.partial(_propagate, rule, position, False), batch, shared)
        self[function] = support_rule
        return support_rule


class RecordingSupportRules(dict[Any, Rule]):
    """The rules of a pass that computes supports.

    Parameters
    ----------
    supports : list
        Collects the supports in order.
    errors : RuleErrors
        Holds the current node of the pass.
    known : dict
        By sequence number, the supports of nodes that were recorded as derivatives.
    """

    def __init__(self, supports: list[tuple[Any, Any]], errors: RuleErrors, known: dict[int, Any]) -> None:
        self.supports, self.errors, self.known = supports, errors, known
        self.support_rules = _SupportRules()
        self.cached: tuple[Any, Any] = (None, None)

    def __missing__(self, function: object) -> Rule:
        rule = self.support_rules[function]

        def make_formula(position: int) -> Formula:
            formula: Any = rule.formulas[position]

            def call(s: Array, out: object, *operands: object, **options: object) -> Any:
                s = self._support_at_node(s)
                nonfinite = _nonfinite_terms(by_function[function], position, False, s, out, operands, options)
                return self._record(formula(s, out, *operands, **options), nonfinite, position)

            return call

        def batch(position: int, s: Array, out: Array, *operands: Any, **options: object) -> Any:
            if _has_own_sweep(options):
                return NotImplemented
            s = self._support_at_node(s)
            nonfinite = _nonfinite_terms(by_function[function], position, True, s, out, operands, options)
            return self._record(pull_batch(rule, position, s, out, *operands, **options), nonfinite, position)

        def shared(
            positions: list[int], s: NDArray[Any] | tuple[NDArray[Any], ...], out: object, *operands: object, **options: object
        ) -> Any:
            s = self._support_at_node(s)
            nonfinite = SeedSupport(s) if _has_own_sweep(options) else None  # shared formulas are not products
            contributions = rule.formulas.formula(positions, s, out, *operands, **options)  # type: ignore[attr-defined]
            return [self._record(each, nonfinite, p) for p, each in zip(positions, contributions, strict=True)]

        self[function] = recording_rule = _rule_like(rule, make_formula, batch, shared)
        return recording_rule

    def _support_at_node(self, s: Any) -> Any:
        """Return the support of the cotangent of the current node, restricted to the known support of the node."""
        if s is self.cached[0]:  # the same cotangent as for the previous operand
            return self.cached[1]
        node, support = self.errors.current_node, as_support(s)
        known_support = self.known.get(node.sequence_number)
        if known_support is not None and np.shape(known_support) == np.shape(node.raw_value):
            support = support * known_support
        self.cached = s, support
        return support

    def _record(self, contribution: Any, nonfinite: object, position: int) -> Any:
        """Collect the support of a contribution to an operand, and return it for the pass."""
        operand = self.errors.current_node.args[position]
        if type(contribution) in LAZY_COTANGENTS:
            self.supports.append((None, None))
            if type(contribution) is ScatteredCotangent:
                contribution.updates = [in_both_parts(update, operand) for update in contribution.updates]
            return contribution
        contribution = as_support(contribution)
        self.supports.append((contribution, nonfinite))
        return as_view(in_both_parts(contribution, operand))


class MaskedRules(dict[Any, Rule]):
    """The rules of a pass whose contributions are masked by supports."""

    def __init__(self, supports: list[tuple[Any, Any]], errors: RuleErrors) -> None:
        self.next_support, self.errors = iter(supports).__next__, errors

    def __missing__(self, function: object) -> Rule:
        rule = by_function[function]

        def make_formula(position: int) -> Formula:
            formula: Any = rule.formulas[position]

            def call(g: object, out: object, *operands: object, **options: object) -> Any:
                support, nonfinite = self.next_support()
                out, *operands = _replace_at_zeros(function, support, (out, *operands))  # type: ignore[assignment]
                return self._mask_formula(lambda *xs: formula(g, out, *xs, **options), operands, position, 0, support, nonfinite)

            return call

        def batch(position: int, g: Array, out: Array, *operands: Any, **options: object) -> Any:
            if _has_own_sweep(options):
                return NotImplemented
            support, nonfinite = self.next_support()
            out, *operands = _replace_at_zeros(function, support, (out, *operands), batched=True)  # type: ignore[assignment]
            pull = functools.partial(pull_batch, rule, position, g, out, **options)
            return self._mask_formula(pull, operands, position, 1, support, nonfinite)

        def shared(positions: list[int], g: Array, out: Array, *operands: Any, **options: object) -> Any:
            supports = [self.next_support() for _ in positions]
            before = len(self.errors.pending or ())
            axes = np.ndim(g) - np.ndim(out) if rule.is_batchable else 0
            pulled = functools.partial(pull_batch_shared, rule) if axes else rule.formulas.formula  # type: ignore[attr-defined]
            with supports[0][1] if isinstance(supports[0][1], SeedSupport) else nullcontext():
                contributions = pulled(positions, g, out, *operands, **options)
            return [self._mask(each, support, axes, before) for each, (support, _) in zip(contributions, supports, strict=True)]

        self[function] = masked_rule = _rule_like(rule, make_formula, batch, shared)
        return masked_rule

    def _mask_formula(
        self, formula: Callable[..., Any], operands: Sequence[Any], position: int, axes: int, support: Any, nonfinite: object
    ) -> Any:
        """Return the value of a formula, zero outside its support."""
        before = len(self.errors.pending or ())
        with nonfinite if isinstance(nonfinite, SeedSupport) else nullcontext():
            contribution = formula(*operands)
        is_masked = False
        if nonfinite is not None and not isinstance(nonfinite, SeedSupport):
            contribution, is_masked = (
                np.where(nonfinite != 0, contribution, formula(*_replace_nonfinite(operands, position))),
                True,
            )
        return self._mask(contribution, support, axes, before, is_masked)

    def _mask(self, contribution: Any, support: Any, axes: int, before: int, is_masked: bool = False) -> Any:
        """Mask the value of a formula by a support; drop errors that were recorded since `before`, if all elements are finite."""
        pending: Any = self.errors.pending
        if support is not None and (isinstance(support, Value) or not np.all(support)):
            missing = np.ndim(contribution) - np.ndim(support)  # axes of broadcasting
            if axes and missing > 0:
                support = np.reshape(support, (support.shape[0], *[1] * missing, *support.shape[1:]))
            contribution, is_masked = np.where(support != 0, contribution, 0)[()], True
        if is_masked and len(pending) > before and _is_finite(contribution):
            del pending[before:]
        return contribution


def _replace_at_zeros(function: object, support: Any, arrays: Sequence[Any], batched: bool = False) -> Sequence[Any]:
    """Return the result and the operands of a function; if they are recorded, a regular number replaces structural zeros."""
    out, *operands = arrays
    if support is None or not isinstance(out, Value):
        return arrays
    number = _regular_number(function, *[x if isinstance(x, (int, float)) else None for x in operands])
    if number is None:
        return arrays
    mask = np.any(support != 0, axis=0) if batched else support != 0

    def replace(x: Array) -> Any:
        is_number = isinstance(x, (int, float)) or x.dtype.kind not in "fc"
        return x if is_number else np.where(mask, x, number)[()]

    return list(map(replace, arrays)) if isinstance(mask, Value) or not np.all(mask) else arrays


@functools.lru_cache(1024)
def _regular_number(function: Callable[..., Any], *numbers: float | None) -> float | None:
    """Return a number where a function is differentiable, if its derivative is singular somewhere in its domain; else None.

    The formulas of structural zeros, such as ``0 / 0`` for ``sqrt``, are computed at this number, so that the recorded
    operations raise no floating-point error when they run again. `numbers` are the operands that are Python numbers; None stands
    for arrays.
    """
    spec = ops.spec_of(function)
    if spec is None or spec.kind != "elementwise" or by_function[function].kind != "elementwise":
        return None

    def candidates(*values: float) -> Iterable[tuple[np.float64, ...]]:
        return itertools.product(*[[np.float64(v) for v in (values if number is None else (number,))] for number in numbers])

    if all(_is_differentiable(function, *xs) for xs in candidates(0, 1, -1) if _is_regular(function, *xs)):
        return None
    return next((x for x in (0.5, 2.0) if all(_is_differentiable(function, *xs) for xs in candidates(x))), None)


def _is_regular(function: Callable[..., Any], *operands: object) -> bool:
    """Whether a function is computed without a floating-point error."""
    with np.errstate(all="raise", under="ignore"):
        try:
            return _is_finite(function(*operands))
        except (FloatingPointError, TypeError):  # a ufunc of integers
            return False


def _is_differentiable(function: Callable[..., Any], *operands: np.float64) -> bool:
    """Whether the formulas of a function are computed without a floating-point error."""
    formulas = [formula for formula in by_function[function].formulas if formula is not None]
    with np.errstate(all="ignore"):
        out = function(*operands)
    return all(_is_regular(formula, np.float64(0.0), out, *operands) for formula in formulas)


def _is_finite(value: Array) -> bool:
    return bool(np.all(np.isfinite(value.raw_value if isinstance(value, Value) else value)))


# ------------------------------------------------------------------------------------------ forward mode
# Rules of selections drop the tangents of unselected elements. Structural zeros are therefore only those of basis tangents, and
# of cotangents in a recorded gradient.


def push_support(node: Value, supports: list[Any], create_graph: bool, count: int) -> Any:
    """Return the support of a batch of tangents of a node, given those of its operands, None where these are zero."""
    supports = [None if s is None else as_support(s) for s in supports]
    function, plain = node.function, node.raw_value
    rule = None if isinstance(function, ops.Output) else by_function[function]
    if rule is None or (rule.kind != "multilinear" and _propagates_zeros(rule, node.options)):
        return push_node(node, supports, create_graph, count)
    if rule.kind == "elementwise":
        parts = [pad_ndim(s, plain.ndim) for s in supports if s is not None]
        return np.broadcast_to(sum(parts[1:], start=parts[0]), (count, *plain.shape))
    contributions = [
        _support_of_mixed(s, out, True)
        for s in supports
        if s is not None
        for out in (plain if isinstance(plain, tuple) else (plain,))
    ]
    if isinstance(plain, tuple):
        return tuple([sum(contributions[k :: len(plain)]) for k in range(len(plain))])
    return sum(contributions[1:], start=contributions[0])


def mask_tangent(tangent: NDArray[Any] | tuple[Any, ...], support: NDArray[Any] | tuple[NDArray[Any], ...]) -> Any:
    """Return tangents with zeros outside their support."""
    if isinstance(tangent, tuple):
        supports = support if isinstance(support, tuple) else (support,) * len(tangent)
        return tuple([None if t is None else mask_tangent(t, s) for t, s in zip(tangent, supports, strict=True)])
    return tangent if tangent is None or support is None else np.where(support != 0, tangent, 0)[()]
