"""Rules of ``reduce``, ``accumulate`` and ``reduceat`` of any ufunc of two operands.

A fold is ``r_0 = x_0``, ``r_i = f(r_(i-1), x_i)``. Backwards, the adjoint of each result is split by the ufunc's own two
formulas; forwards, tangents follow the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.operations import UfuncMethod

from ..registry import Rule, by_function, makers


class Fold:
    """The steps of a fold along one axis.

    Attributes
    ----------
    results : list
        ``r_0, r_1, ...``; begins with `initial` if there is one.
    steps : list
        For each result but the first, what the ufunc gave and what it was given.
    begins : bool
        Whether the fold began with `initial` or the ufunc's identity, not with the first element.
    masks : list
        Where each element takes part; True for everywhere.
    """

    def __init__(self, function: Any, x: Any, axis: int, initial: Any = None, where: Any = True) -> None:
        steps = np.moveaxis(x, axis, 0)
        masks = None if where is True else np.moveaxis(np.broadcast_to(where, x.shape), axis, 0)
        begins = initial is not None or masks is not None
        start = function.identity if initial is None else initial
        self.results = [np.broadcast_to(start, steps.shape[1:]) if begins else steps[0]]
        self.begins = begins
        self.steps: list[tuple[Any, ...]] = [()]
        self.masks: list[Any] = [True]
        for i in range(0 if begins else 1, len(steps)):
            mask = True if masks is None else masks[i]
            previous = self.results[-1]
            further = function(previous, steps[i])
            self.results.append(further if mask is True else np.where(mask, further, previous))
            self.steps.append((further, previous, steps[i]))
            self.masks.append(mask)

    def back(self, rule: Rule, adjoints: list[Any]) -> list[Any]:
        """The adjoints of the elements, given those of the results (None for zero)."""
        found: list[Any] = []
        g = adjoints[-1]
        for i in range(len(self.results) - 1, 0, -1):
            to_result, to_element = (_formula(rule.formulas, k, g, self.steps[i]) for k in (0, 1))
            mask = self.masks[i]
            found.append(to_element if mask is True else np.where(mask, to_element, 0))
            g = to_result if mask is True else np.where(mask, to_result, g)
            g = g if adjoints[i - 1] is None else g + adjoints[i - 1]
        if not self.begins:
            found.append(g)
        return found[::-1]

    def along(self, rule: Rule, tangents: Any) -> list[Any]:
        """The tangents of the results, given those of the elements."""
        moving = list(tangents)
        found = [np.zeros_like(moving[0])] if self.begins else [moving.pop(0)]
        for i, t in enumerate(moving, 1):
            total = _formula(rule.tangents, 0, found[-1], self.steps[i]) + _formula(rule.tangents, 1, t, self.steps[i])
            mask = self.masks[i]
            found.append(total if mask is True else np.where(mask, total, found[-1]))
        return found


def _formula(formulas: Any, position: int, g: Any, step: tuple[Any, ...]) -> Any:
    formula = formulas[position]
    return np.zeros_like(g) if formula is None else formula(g, *step)


def _one_axis(axis: Any, ndim: int) -> int:
    """The axis of a reduction, which for such ufuncs NumPy takes one at a time."""
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != 1:
        raise TypeError(f"the derivative of a fold along several axes ({axis}) is not known; fold along one at a time")
    return int(axes[0]) % ndim


def _reduce_back(
    rule: Rule, f: Any, g: Any, x: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None, where: Any = True, **_: Any
) -> Any:
    along = _one_axis(axis, x.ndim)
    fold = Fold(f, x, along, initial, where)
    g = np.moveaxis(g, along, 0)[0] if keepdims else g
    return np.stack(fold.back(rule, [None] * (len(fold.results) - 1) + [g]), axis=along)


def _reduce_along(
    rule: Rule, f: Any, t: Any, x: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None, where: Any = True, **_: Any
) -> Any:
    along = _one_axis(axis, x.ndim)
    last = Fold(f, x, along, initial, where).along(rule, np.moveaxis(t, along, 0))[-1]
    return np.expand_dims(last, along) if keepdims else last


def _accumulate_back(rule: Rule, f: Any, g: Any, x: Any, axis: int = 0, **_: Any) -> Any:
    return np.stack(Fold(f, x, axis).back(rule, list(np.moveaxis(g, axis, 0))), axis=axis)


def _accumulate_along(rule: Rule, f: Any, t: Any, x: Any, axis: int = 0, **_: Any) -> Any:
    return np.stack(Fold(f, x, axis).along(rule, np.moveaxis(t, axis, 0)), axis=axis)


def _segments(indices: Any, length: int) -> list[slice]:
    """What each index of ``reduceat`` begins: up to the next, or one element if that is not greater."""
    starts = np.asarray(indices).tolist()
    return [slice(a, b if b > a else a + 1) for a, b in zip(starts, [*starts[1:], length], strict=True)]


def _reduceat_back(rule: Rule, f: Any, g: Any, x: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
    steps = np.moveaxis(x, axis, 0)
    total = 0 * steps
    for part, piece in zip(_segments(indices, len(steps)), np.moveaxis(g, axis, 0), strict=True):
        middle = _reduce_back(rule, f, piece, steps[part])
        before, after = np.zeros_like(steps[: part.start]), np.zeros_like(steps[part.stop :])
        total = total + np.concatenate([before, middle, after])
    return np.moveaxis(total, 0, axis)


def _reduceat_along(rule: Rule, f: Any, t: Any, x: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
    steps, moving = np.moveaxis(x, axis, 0), np.moveaxis(t, axis, 0)
    parts = [_reduce_along(rule, f, moving[part], steps[part]) for part in _segments(indices, len(steps))]
    return np.moveaxis(np.stack(parts), 0, axis)


FOLDS: dict[str, tuple[Any, Any]] = {
    "reduce": (_reduce_back, _reduce_along),
    "accumulate": (_accumulate_back, _accumulate_along),
    "reduceat": (_reduceat_back, _reduceat_along),
}


def folding_rule(function: UfuncMethod) -> Rule:
    """The rule of a method of a ufunc, from the rule of the ufunc."""
    back, along = FOLDS[function.method]
    rule, ufunc = by_function[function.ufunc], function.ufunc
    return Rule(
        f"{rule.opname}_{function.method}",
        "general",
        [lambda g, out, x, **options: back(rule, ufunc, g, x, **options)],
        [lambda t, out, x, **options: along(rule, ufunc, t, x, **options)],
    )


makers[UfuncMethod] = folding_rule
