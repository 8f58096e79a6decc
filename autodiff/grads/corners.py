"""Second derivatives at corners: lengths and ``abs`` at 0, and ties.

The derivative of a length is a direction, which is undefined at 0. The rules give 0, the mean of all directions. A function of
a length can be smooth nevertheless: the cotangent `g` of ``norm(x)`` in ``norm(x)**2`` vanishes at 0, linearly in the length.
There ``g * x / length`` is ``x`` times the slope of `g` with respect to the length.

A recorded sweep computes the slope from the graph of `g` (see `autodiff.reverse.corner_slopes`). The slope is valid if `g`
depends only on the length. Otherwise, and in forward mode, where `g` is unknown, the second derivative divides by zero, which
warns.

The search for slopes is slow, and its guards re-check values on every replay. Programs therefore omit the corners of choices
(see `without_slope`). They are traced again, with corners, if such a contribution is differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array, Axis
from compgraph.bind import bind
from compgraph.context import guards_corners, higher_derivatives
from compgraph.graph import to_values
from compgraph.guards import guarded_value, strip_transforms
from compgraph.protocols import stop_gradient
from compgraph.values import Value

from ..batching import base_of, pull_reduction, push_reduction, reduced_axes
from ..rules import Rule, elementwise, linear, restore_axes

# Choices whose corners are rare. Others have many, because padding, buffers of zeros and inactive units are ties of constants;
# their second derivatives are the mean of both sides.
RARE_CORNERS = frozenset({"abs", "fabs"})

# finder(g, out, corner) returns the mask where g is 0 at a corner, and the slope of g with respect to out, None if unknown.
SlopeFinder = Callable[[Any, Any, Any], tuple[Any, Any]]
_registered_finder: list[SlopeFinder] = []


def register_slope_finder(finder: SlopeFinder) -> None:
    """Set the function that finds the slope of a cotangent with respect to the value it belongs to."""
    _registered_finder[:] = [finder]


def limit_value(x: Array) -> Any:
    """Return `x`; in a graph, this operation marks a slope that is the limit of a quotient 0 / 0."""
    return x


def without_slope(contribution: Array, value: Array) -> Any:
    """Return the contribution of a choice without its corners. If it or `value` is differentiated, the trace is repeated."""
    return contribution if isinstance(contribution, Value) else contribution.copy()  # not a view, which has no rule


ops.register_operation(limit_value, "limit_value", kind="sequential")
ops.register_operation(without_slope, "without_slope", kind="elementwise", formula="x", is_inlined=True)


def slope_at_corner(g: object, out: object, corner: Array) -> tuple[Any, Any]:
    """Return where the cotangent is 0 at a corner, and its slope with respect to `out` there; None if it is unknown."""
    if not _has_slope(g, out) or not _registered_finder:
        return False, None
    return _registered_finder[0](g, out, corner)


def _has_slope(g: object, out: object) -> bool:
    """Whether a cotangent and its value are recorded outside of forward mode and vmap."""
    return isinstance(g, Value) and isinstance(out, Value) and not g.level and not out.level


def over(x: NDArray[Any], length: Array, of: str) -> Any:
    """Compute ``x / length``, and 0 where the length is 0. `of` is the opname of the differentiated operation."""
    return x / np.where(length == 0, 1, length)


def cornered(t: NDArray[Any], z: NDArray[Any], of: str) -> Any:
    """Return zeros that mark a corner at ``z == 0``. Their derivative is nan there, unless the tangent `t` of `z` is 0."""
    return np.zeros(np.broadcast_shapes(np.shape(t), np.shape(z)), np.result_type(t, z))[()]


ops.register_operation(over, "over", formula="x / y", corner="undefined")
ops.register_operation(cornered, "cornered", corner="undefined")
over_grad = elementwise("over", lambda g, out, x, length, of: g / length, lambda g, out, x, length, of: -g * out / length)


def _identity(y: NDArray[Any]) -> Any:
    return y


def is_zero(x: NDArray[Any], *_: object) -> Any:
    """Return where `x` is 0."""
    return x == 0


def corner_mask(is_corner: Callable[..., Any], *operands: object) -> NDArray[Any]:
    """Return where operands have a corner, as an array. In a trace with corners, the mask is a guard."""
    mask = np.asarray(is_corner(*[np.asarray(to_values(x)) for x in operands]))
    if guards_corners.get():
        recorded_mask = strip_transforms(is_corner(*operands))
        if isinstance(recorded_mask, Value) and np.any(recorded_mask):  # the truth of a node is a guard
            guarded_value(recorded_mask, "which elements have a corner")
    return mask


def _undefined(is_corner: Callable[..., Any], *operands: object) -> Any:
    """Return nan where `is_corner` holds, with a warning by NumPy, and 0 elsewhere."""
    return np.divide(0.0, np.where(is_corner(*operands), 0.0, 1.0))


def _pull_corner_marker(h: Array, out: NDArray[Any], t: NDArray[Any], z: NDArray[Any], of: str) -> Any:
    """Return nan at a corner where the cotangent `h` is 0: the second derivative may exist, but is unknown."""
    return _undefined(lambda h, t, z: (z == 0) & (t != 0) & (h == 0), h, t, z)


def _push_corner_marker(s: NDArray[Any], out: NDArray[Any], t: NDArray[Any], z: NDArray[Any], of: str) -> Any:
    return _undefined(lambda s, t, z: (z == 0) & (t != 0) & (s != 0), s, t, z)


cornered_grad = elementwise("cornered", None, _pull_corner_marker).tangent(None, _push_corner_marker)
limit_value_grad = linear("limit_value", lambda g, out, x: bind(limit_value, (g,), {}))


def _note_higher_derivative(h: Array, out: object, contribution: object, value: object) -> Any:
    """Return `h`, and request another trace, because a slope at a corner contributes to this derivative."""
    log = higher_derivatives.get()
    assert log is not None, "without_slope is recorded only within a trace, but none is active"
    log.append("without_slope")
    return h


without_slope_grad = elementwise("without_slope", _note_higher_derivative, _note_higher_derivative).moves_elements()


def _any_recorded(*values: object) -> bool:
    return any(isinstance(value, Value) for value in values)


# ------------------------------------------------------------------------------------------------- lengths


def safe_quotient(x: NDArray[Any], length: Any, of: str) -> Any:
    """Compute ``x / length``, and 0 where the length is 0; recorded so that its derivative at 0 is undefined."""
    return bind(over, (x, length), {"of": of}) if _any_recorded(x, length) else over(x, length, of)


def norm_formula(g: Any, out: NDArray[Any], x: NDArray[Any], of: str, broadcast: Any = _identity, length: Any = _identity) -> Any:
    """Compute ``g * x / out``, the cotangent of `x` from that of its length.

    `broadcast` expands an array of the shape of `out` to that of `x`. `length` replaces lengths that are 0 for all `x` by 1.
    """
    if not isinstance(g, Value):  # first derivatives of plain arrays, and tangents
        return broadcast(g) * safe_quotient(x, length(broadcast(out)), of)
    corner = np.asarray(to_values(out)) == 0
    is_known, slope = slope_at_corner(g, out, corner) if np.any(corner) else (False, None)
    if slope is None:
        return broadcast(g) * safe_quotient(x, length(broadcast(out)), of)
    is_known = broadcast(is_known)
    divisor = np.where(is_known, 1, length(broadcast(out)))
    return np.where(is_known, x * broadcast(slope), broadcast(g) * safe_quotient(x, divisor, of))


# ------------------------------------------------------------------------------------------------- choices


def choice_formula(
    contribution: object,
    g: object,
    out: NDArray[Any],
    is_corner: Callable[..., Any],
    operands: tuple[Any, ...],
    deviation: Callable[..., Any],
    of: str,
) -> Any:
    """Return the contribution of a choice, including its change at a tie.

    Parameters
    ----------
    contribution : array or Node
        The cotangent times the share, which jumps at the corner; there it is the mean of both sides.
    g : array or Node
        The cotangent.
    out : array or Node
        The value it belongs to.
    is_corner : callable
        ``is_corner(*operands)`` returns where there is a corner.
    operands : tuple
        Arrays or nodes.
    deviation : callable
        Returns a value that is 0 at the corner and changes as the deviation of the share from its mean.
    of : str
        The opname.
    """
    if not isinstance(g, Value):
        return contribution
    if higher_derivatives.get() is not None:
        return bind(without_slope, (contribution, out), {})
    mask = corner_mask(lambda g, *operands: (g == 0) & is_corner(*operands), g, *operands)
    if not np.any(mask):
        return contribution
    is_zero, slope = slope_at_corner(g, out, mask)
    if slope is not None:
        return contribution + np.where(is_zero, slope * deviation(), 0)
    if of not in RARE_CORNERS or not np.any(is_zero):
        return contribution
    deviation_value = deviation()
    return contribution + np.where(is_zero, g * bind(over, (deviation_value, np.zeros_like(deviation_value)), {"of": of}), 0)


def choice_tangent(
    contribution: Any,
    t: Any,
    out: Any,
    is_corner: Callable[..., Any],
    operands: tuple[Any, ...],
    deviation: Callable[..., Any],
    of: str,
    reduce: Callable[..., Any] = _identity,
) -> Any:
    """Return the tangent of a choice, with corners marked; `reduce` sums the marks of the elements of a reduction."""
    if not (isinstance(contribution, Value) or isinstance(t, Value)):
        return contribution
    if higher_derivatives.get() is not None:
        return bind(without_slope, (contribution, out), {})
    if not np.any(corner_mask(is_corner, *operands)):
        return contribution
    return contribution + reduce(bind(cornered, (t, deviation()), {"of": of}))


def mark_unknown(
    contribution: object,
    g: NDArray[Any],
    out: object,
    is_corner: Callable[..., Any],
    operands: tuple[Any, ...],
    deviation: Callable[..., Any],
    of: str,
) -> Any:
    """Return a contribution whose own derivative is undefined, and divides by zero, where `g` is 0 at a corner."""
    if not isinstance(base_of(g), Value):
        return contribution
    if higher_derivatives.get() is not None:
        return bind(without_slope, (contribution, out), {})
    mask = corner_mask(lambda g, *operands: (g == 0) & is_corner(*operands), g, *operands)
    if not np.any(mask):
        return contribution
    deviation_value = deviation()
    return contribution + np.where(mask, g * bind(over, (deviation_value, np.zeros_like(deviation_value)), {"of": of}), 0)


# ---------------------------------------------------------------------------------------------- reductions


class _ReductionCorners:
    """The corners of a reduction.

    Attributes
    ----------
    rule : Rule
        The reduction.
    shares : callable
        ``shares(out, x, axis=, **options)``, its partial derivatives: the mean of all sides at a corner.
    corner : callable or None
        ``corner(out, x, shares, axis=, **options)``: the mask of elements at a corner. By default, those that share the
        result with others.
    """

    def __init__(self, rule: Rule, shares: Callable[..., Any], corner: Callable[..., Any] | None) -> None:
        self.rule, self.shares, self.corner = rule, shares, corner
        self.weighted_formula: Any = rule.formulas[0]
        self.weighted_tangent: Any = rule.tangents[0]

    def is_corner(self, out: Any, x: Any, axis: Axis, options: dict[str, Any]) -> Any:
        """Return where elements are at a corner; `out` has its reduced axes."""
        share = self.shares(out, x, axis=axis, **options)
        if self.corner is not None:
            return self.corner(out, x, share, axis=axis, **options)
        is_selected = share != 0
        return is_selected & (np.sum(is_selected, axis=axis, keepdims=True) > 1)

    def find_corners(self, out: Any, x: Any, axis: Axis, options: dict[str, Any], g: Any = None) -> NDArray[Any]:
        """Return the mask of elements at a corner, only where `g` is 0 if it is passed; `out` and `g` have their reduced axes."""
        if g is None:
            return corner_mask(lambda out, x: self.is_corner(out, x, axis, options), out, x)
        return corner_mask(lambda out, x, g: (g == 0) & self.is_corner(out, x, axis, options), out, x, g)

    def pull_elements(
        self, g: Array, out: Array, x: NDArray[Any], *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        """Return the cotangent of the elements."""
        cotangent = self.weighted_formula(g, out, x, *others, axis=axis, keepdims=keepdims, **options)
        if others or not (isinstance(g, Value) and isinstance(out, Value)):
            return cotangent
        if higher_derivatives.get() is not None:
            return bind(without_slope, (cotangent, x), {})
        full_out, full_g = (restore_axes(y, x, axis, keepdims) for y in (out, g))
        at_corner = self.find_corners(full_out, x, axis, options, full_g)
        if not np.any(at_corner):
            return cotangent
        corner = np.reshape(np.logical_or.reduce(at_corner, axis=axis, keepdims=True), out.shape)
        if self.corner is not None:
            is_zero, slope = corner & (g.raw_value == 0), None
        else:
            is_zero, slope = slope_at_corner(g, out, corner)
        at_corner = at_corner & restore_axes(is_zero, x, axis, keepdims)
        if not np.any(at_corner):
            return cotangent
        if slope is not None:
            share = np.asarray(self.shares(*to_values((full_out, x)), axis=axis, **to_values(options)))
            return cotangent + np.where(at_corner, restore_axes(slope, x, axis, keepdims) * share * (x - full_out), 0)
        if self.corner is None:  # the mean of both sides; see `RARE_CORNERS`
            return cotangent
        deviation = np.where(at_corner, x - full_out, 0)
        return cotangent + np.where(
            at_corner,
            full_g * safe_quotient(deviation, np.zeros_like(deviation), self.rule.opname),
            0,
        )

    def push_elements(
        self, t: Array, out: Array, x: NDArray[Any], *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        """Return the tangent of the result."""
        tangent = self.weighted_tangent(t, out, x, *others, axis=axis, keepdims=keepdims, **options)
        if others or not _any_recorded(t, out, x):
            return tangent
        full_out = restore_axes(out, x, axis, keepdims)

        def is_corner(out: Any, x: Any) -> Any:
            return self.is_corner(out, x, axis, options)

        def deviation() -> Any:
            return np.where(is_corner(full_out, x), x - stop_gradient(x), 1)

        total = functools.partial(np.sum, axis=axis, keepdims=bool(keepdims))
        return choice_tangent(tangent, t, out, is_corner, (full_out, x), deviation, self.rule.opname, total)

    def pull_batch(self, position: int, g: Any, out: NDArray[Any], x: NDArray[Any], *others: Any, **options: Any) -> Any:
        """Return the cotangents of a batch, or NotImplemented if a corner is recorded."""
        is_recorded = position == 0 and not others and isinstance(g, Value)
        return self._compute_batch(
            is_recorded, out, x, options, x, lambda: pull_reduction(self.rule, position, g, out, x, *others, **options)
        )

    def push_batch(self, tangents: Any, out: NDArray[Any], x: NDArray[Any], *others: Any, **options: Any) -> Any:
        """Return the tangents of a batch, or NotImplemented if a corner is recorded."""
        is_recorded = not others and _any_recorded(out, x)
        return self._compute_batch(
            is_recorded, out, x, options, out, lambda: push_reduction(self.rule, tangents, out, x, *others, **options)
        )

    def _compute_batch(
        self, is_recorded: bool, out: Any, x: Any, options: dict[str, Any], value: Any, compute: Callable[[], Any]
    ) -> Any:
        """Call `compute`, which ignores corners, unless a corner is recorded. `value` is an operand of `without_slope`."""
        if not is_recorded:
            return compute()
        if higher_derivatives.get() is not None:
            return bind(without_slope, (compute(), value), {})
        return NotImplemented if self._has_corner(out, x, **options) else compute()

    def _has_corner(
        self, out: NDArray[Any], x: NDArray[Any], axis: Axis = None, keepdims: bool = False, **options: object
    ) -> bool:
        return bool(np.any(self.find_corners(restore_axes(out, x, axis, keepdims), x, axis, options)))


def with_corners(rule: Rule, shares: Callable[..., Any], corner: Callable[..., Any] | None = None) -> Rule:
    """Declare that a reduction has corners; see `_ReductionCorners`."""
    corners = _ReductionCorners(rule, shares, corner)
    rule.formulas = [corners.pull_elements, *rule.formulas[1:]]
    rule.tangents = [corners.push_elements, *rule.tangents[1:]]
    return rule.not_batchable().batched(corners.pull_batch, corners.push_batch)


def as_norm(rule: Rule, numerator: Callable[..., Any], length: Callable[..., Any] = lambda out, *_, **__: out) -> Rule:
    """Declare that a reduction is a length: its partial derivatives are ``numerator(x, *others, axis=, **options) / out``.

    `numerator` returns None if the options select another function. ``length(out, x, axis=, **options)`` returns `out`, with 1
    where that is always 0.
    """
    weighted_formula: Any = rule.formulas[0]
    weighted_pull, push = rule.batched_pull, rule.batched_push

    def formula(
        g: Array, out: Any, x: NDArray[Any], *others: object, axis: Axis = None, keepdims: bool = False, **options: object
    ) -> Any:
        if _any_recorded(g, out):
            parts = numerator(x, *others, axis=axis, **options)
            if parts is not None:
                length_of = functools.partial(length, x=x, axis=axis, **options)
                return norm_formula(g, out, parts, rule.opname, lambda y: restore_axes(y, x, axis, keepdims), length_of)
        return weighted_formula(g, out, x, *others, axis=axis, keepdims=keepdims, **options)

    def pull(
        position: int,
        g: NDArray[Any],
        out: NDArray[Any],
        x: NDArray[Any],
        *others: object,
        axis: Axis = None,
        keepdims: bool = False,
        **options: object,
    ) -> Any:
        parts = numerator(x, *others, axis=axis, **options) if position == 0 and _any_recorded(g, out) else None
        if parts is None:
            pull_batch = weighted_pull or functools.partial(pull_reduction, rule)
            return pull_batch(position, g, out, x, *others, axis=axis, keepdims=keepdims, **options)
        axes = reduced_axes(x, axis)

        def broadcast(y: NDArray[Any]) -> Any:
            if y.ndim <= out.ndim:  # no batch axis
                return restore_axes(y, x, axis, keepdims)
            shape = tuple([1 if i + 1 in axes else n for i, n in enumerate(x.shape)])
            return y if keepdims or not x.ndim else np.reshape(y, (y.shape[0], *shape))

        return norm_formula(g, out, parts, rule.opname, broadcast, functools.partial(length, x=x, axis=axis, **options))

    rule.formulas = [formula, *rule.formulas[1:]]
    return rule.batched(pull, push)
