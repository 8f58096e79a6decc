"""Rules of ``reduce``, ``accumulate`` and ``reduceat`` of any ufunc of two operands.

A fold is ``r_0 = x_0``, ``r_i = f(r_(i-1), x_i)``. Backwards, the adjoint of each result is split by the ufunc's own two
formulas; forwards, tangents follow the results. What is recorded is NumPy's own value; where the fold gives another
(some of NumPy's vectorised loops do not fold), there is no derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.ops import NO_VALUE, UfuncMethod, ensure_array

from ..rules import Rule, by_function, makers, scatter


class Fold:
    """The steps of a fold along the first axis.

    Attributes
    ----------
    ufunc : ufunc
        What is folded.
    elements : array or Node
        What it is folded over.
    results : list
        ``r_0, r_1, ...``; begins with `start` if there is one.
    steps : list
        For each result but the first, what the ufunc gave and what it was given.
    begins : bool
        Whether the fold began with `start`, not with the first element.
    masks : list
        Where each element takes part; True for everywhere.
    """

    def __init__(self, function: Any, elements: Any, start: Any = None, masks: Any = None) -> None:
        begins = start is not None
        self.ufunc, self.elements = function, elements
        self.results = [
            np.broadcast_to(ensure_array(start).astype(elements.dtype), elements.shape[1:]) if begins else elements[0]
        ]
        self.begins = begins
        self.steps: list[tuple[Any, ...]] = [()]
        self.masks: list[Any] = [True]
        for i in range(0 if begins else 1, len(elements)):
            mask = True if masks is None else masks[i]
            previous = self.results[-1]
            further = function(previous, elements[i])
            self.results.append(further if mask is True else np.where(mask, further, previous))
            self.steps.append((further, previous, elements[i]))
            self.masks.append(mask)

    def back(self, rule: Rule, adjoints: list[Any]) -> tuple[Any, list[Any]]:
        """The adjoints of the start and of the elements, given those of the results (None for zero)."""
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
        return g, found[::-1]

    def along(self, rule: Rule, tangents: Any, start: Any = None) -> list[Any]:
        """The tangents of the results, given those of the elements and of the start (None for zero)."""
        moving = list(tangents)
        zero = np.zeros_like(self.results[0])
        found = [moving.pop(0) if not self.begins else zero if start is None else zero + start]
        for i, t in enumerate(moving, 1):
            total = _formula(rule.tangents, 0, found[-1], self.steps[i]) + _formula(rule.tangents, 1, t, self.steps[i])
            mask = self.masks[i]
            found.append(total if mask is True else np.where(mask, total, found[-1]))
        return found

    def checked(self, method: str, value: Any, by_numpy: Any) -> Fold:
        """The fold, if NumPy's value is what it comes to within rounding."""
        value, by_numpy = np.asarray(to_values(value)), np.asarray(to_values(by_numpy))
        eps = np.finfo(value.dtype).eps
        sizes = np.abs(np.asarray(to_values([*self.elements, self.results[0]])))
        rounding = 1e3 * eps * np.max(sizes, initial=0, where=np.isfinite(sizes))
        if not np.allclose(value, by_numpy, rtol=float(np.sqrt(eps)), atol=float(rounding), equal_nan=True):
            name = f"np.{self.ufunc.__name__}"
            raise RuntimeError(
                f"the value of {name}.{method} is not that of its steps one by one, so its derivative is not known: NumPy's "
                f"vectorised loops give wrong values here on some machines; use {name}.accumulate(x, axis), whose last value "
                "is the reduction"
            )
        return self


def _formula(formulas: Any, position: int, g: Any, step: tuple[Any, ...]) -> Any:
    formula = formulas[position]
    return np.zeros_like(g) if formula is None else formula(g, *step)


class _Reduction:
    """A reduction as a fold: its axes made one, which comes first.

    Attributes
    ----------
    fold : Fold
        The steps.
    """

    def __init__(
        self, rule: Rule, f: Any, out: Any, x: Any, axis: Any = 0, keepdims: bool = False,
        initial: Any = NO_VALUE, where: Any = True, **_: Any,
    ) -> None:  # fmt: skip
        self.axes = tuple(i % x.ndim for i in (range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)))
        self.shape = x.shape
        self.kept = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape)) if keepdims else None
        start = f.identity if initial is NO_VALUE else initial
        masks = None if where is True else self.in_steps(np.broadcast_to(where, x.shape))
        self.fold = Fold(f, self.in_steps(x.astype(out.dtype)), start, masks)
        last = self.fold.results[-1]
        self.fold.checked("reduce", last, np.reshape(out, last.shape))

    def in_steps(self, x: Any) -> Any:
        """The elements of an array in the order of the fold."""
        moved = np.moveaxis(x, self.axes, range(len(self.axes)))
        return np.reshape(moved, (math.prod(moved.shape[: len(self.axes)]), *moved.shape[len(self.axes) :]))

    def out_of_steps(self, x: Any) -> Any:
        """What `in_steps` undoes."""
        moved = np.reshape(x, (*[self.shape[i] for i in self.axes], *x.shape[1:]))
        return np.moveaxis(moved, range(len(self.axes)), self.axes)

    def back(self, rule: Rule, g: Any) -> tuple[Any, Any]:
        """The adjoints of the start and of the elements."""
        results = self.fold.results
        start, elements = self.fold.back(rule, [None] * (len(results) - 1) + [np.reshape(g, results[-1].shape)])
        found = np.stack(elements) if elements else np.zeros((0, *results[-1].shape), results[-1].dtype)
        return start, self.out_of_steps(found)

    def along(self, rule: Rule, t: Any, start: Any) -> Any:
        """The tangent of the result, given that of the elements or that of the start."""
        moving = self.in_steps(np.zeros(self.shape, self.fold.results[-1].dtype) if t is None else t)
        last = self.fold.along(rule, moving, start)[-1]
        return last if self.kept is None else np.reshape(last, self.kept)


def _reduce(rule: Rule, f: Any) -> tuple[Any, Any]:
    """The formulas and tangents of the elements and of what the fold begins with."""

    def steps(out: Any, x: Any, **options: Any) -> Any:
        return _Reduction(rule, f, out, x, **options)

    formulas = [lambda g, *given, **options: steps(*given, **options).back(rule, g)[1]]
    formulas += [lambda g, *given, **options: steps(*given, **options).back(rule, g)[0]]
    tangents = [lambda t, *given, **options: steps(*given, **options).along(rule, t, None)]
    tangents += [lambda t, *given, **options: steps(*given, **options).along(rule, None, t)]
    return formulas, tangents


def _accumulated(rule: Rule, f: Any, out: Any, x: Any, axis: int) -> Fold:
    fold = Fold(f, np.moveaxis(x.astype(out.dtype), axis, 0))
    return fold.checked("accumulate", fold.results, np.moveaxis(out, axis, 0))


def _accumulate(rule: Rule, f: Any) -> tuple[Any, Any]:
    def back(g: Any, out: Any, x: Any, axis: int = 0, **_: Any) -> Any:
        if not x.shape[axis]:
            return np.zeros_like(x)
        adjoints = list(np.moveaxis(g, axis, 0))
        return np.stack(_accumulated(rule, f, out, x, axis).back(rule, adjoints)[1], axis=axis)

    def along(t: Any, out: Any, x: Any, axis: int = 0, **_: Any) -> Any:
        if not x.shape[axis]:
            return np.zeros_like(out)
        return np.stack(_accumulated(rule, f, out, x, axis).along(rule, np.moveaxis(t, axis, 0)), axis=axis)

    return [back], [along]


def _segments(indices: Any, length: int) -> list[slice]:
    """What each index of ``reduceat`` begins: up to the next, or one element if that is not greater."""
    starts = np.asarray(to_values(indices)).tolist()
    return [slice(a, b if b > a else a + 1) for a, b in zip(starts, [*starts[1:], length], strict=True)]


def _segment(rule: Rule, f: Any, elements: Any, by_numpy: Any) -> Fold:
    fold = Fold(f, elements.astype(by_numpy.dtype))
    return fold.checked("reduceat", fold.results[-1], by_numpy)


def _reduceat(rule: Rule, f: Any) -> tuple[Any, Any]:
    def back(g: Any, out: Any, x: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
        steps, adjoints, results = (np.moveaxis(y, axis, 0) for y in (x, g, out))
        pieces: list[Any] = []
        for i, part in enumerate(_segments(indices, len(steps))):
            fold = _segment(rule, f, steps[part], results[i])
            pieces += [np.stack(fold.back(rule, [None] * (len(fold.results) - 1) + [adjoints[i]])[1]), part]
        like = np.zeros(steps.shape, out.dtype)
        total = bind(scatter, (like, *pieces), {"layout": (1,) * (len(pieces) // 2)}) if pieces else like
        return np.moveaxis(total, 0, axis)

    def along(t: Any, out: Any, x: Any, indices: Any, axis: int = 0, **_: Any) -> Any:
        steps, moving, results = (np.moveaxis(y, axis, 0) for y in (x, t, out))
        parts = _segments(indices, len(steps))
        found = [_segment(rule, f, steps[part], results[i]).along(rule, moving[part])[-1] for i, part in enumerate(parts)]
        return np.moveaxis(np.stack(found) if found else np.zeros_like(results), 0, axis)

    return [back], [along]


FOLDS: dict[str, Any] = {"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat}


def folding_rule(function: UfuncMethod) -> Rule:
    """The rule of a method of a ufunc, from the rule of the ufunc."""
    flat = function.ufunc is np.floor_divide
    rule = Rule("floor_divide", "elementwise", (None, None), (None, None)) if flat else by_function[function.ufunc]
    formulas, tangents = FOLDS[function.method](rule, function.ufunc)
    return Rule(f"{rule.opname}_{function.method}", "general", formulas, tangents).batchable()


makers[UfuncMethod] = folding_rule
