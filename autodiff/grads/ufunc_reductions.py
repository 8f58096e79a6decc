"""Rules of ``reduce``, ``accumulate`` and ``reduceat`` of any ufunc of two operands.

A fold is ``r_0 = x_0``, ``r_i = f(r_(i-1), x_i)``. In reverse mode, the two formulas of the ufunc split the cotangent of each
result; in forward mode, tangents are pushed from result to result. The recorded value is NumPy's own. If the fold gives a
different value (some of NumPy's vectorized loops do not fold), the derivative raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.ops import NO_VALUE, UfuncMethod, ensure_array

from ..rules import Rule, by_function, rule_factories, scatter


class Fold:
    """The steps of a fold along the first axis.

    Attributes
    ----------
    ufunc : ufunc
        The folded function.
    elements : array or Node
        The elements.
    results : list
        ``r_0, r_1, ...``, including `start` as the first if it is not None.
    steps : list
        For each result, the value and the operands of the ufunc; empty for the first.
    has_start : bool
        Whether the fold began with `start` instead of the first element.
    masks : list
        The mask of each step; True selects all.
    """

    def __init__(self, ufunc: Any, elements: Any, start: Any = None, masks: Any = None) -> None:
        has_start = start is not None
        self.ufunc, self.elements = ufunc, elements
        self.results = [
            np.broadcast_to(ensure_array(start).astype(elements.dtype), elements.shape[1:]) if has_start else elements[0]
        ]
        self.has_start = has_start
        self.steps: list[tuple[Any, ...]] = [()]
        self.masks: list[Any] = [True]
        for i in range(0 if has_start else 1, len(elements)):
            mask = True if masks is None else masks[i]
            previous = self.results[-1]
            value = ufunc(previous, elements[i])
            self.results.append(value if mask is True else np.where(mask, value, previous))
            self.steps.append((value, previous, elements[i]))
            self.masks.append(mask)

    def pull(self, rule: Rule, cotangents: list[Any]) -> tuple[Any, list[Any]]:
        """Return the cotangents of the start and of the elements, given those of the results (None for zero)."""
        element_cotangents: list[Any] = []
        g = cotangents[-1]
        for i in range(len(self.results) - 1, 0, -1):
            to_result, to_element = (_apply_formula(rule.formulas, k, g, self.steps[i]) for k in (0, 1))
            mask = self.masks[i]
            element_cotangents.append(to_element if mask is True else np.where(mask, to_element, 0))
            g = to_result if mask is True else np.where(mask, to_result, g)
            g = g if cotangents[i - 1] is None else g + cotangents[i - 1]
        if not self.has_start:
            element_cotangents.append(g)
        return g, element_cotangents[::-1]

    def push(self, rule: Rule, tangents: Any, start: object = None) -> list[Any]:
        """Return the tangents of the results, given those of the elements and of the start (None for zero)."""
        element_tangents = list(tangents)
        zero = np.zeros_like(self.results[0])
        result_tangents = [element_tangents.pop(0) if not self.has_start else zero if start is None else zero + start]
        for i, t in enumerate(element_tangents, 1):
            total = _apply_formula(rule.tangents, 0, result_tangents[-1], self.steps[i]) + _apply_formula(
                rule.tangents, 1, t, self.steps[i]
            )
            mask = self.masks[i]
            result_tangents.append(total if mask is True else np.where(mask, total, result_tangents[-1]))
        return result_tangents

    def verify(self, method: str, value: Any, numpy_result: Any) -> Fold:
        """Return the fold if its value equals that of NumPy up to rounding; otherwise raise."""
        value, numpy_result = np.asarray(to_values(value)), np.asarray(to_values(numpy_result))
        eps = np.finfo(value.dtype).eps
        sizes = np.abs(np.asarray(to_values([*self.elements, self.results[0]])))
        rounding = 1e3 * eps * np.max(sizes, initial=0, where=np.isfinite(sizes))
        if not np.allclose(value, numpy_result, rtol=float(np.sqrt(eps)), atol=float(rounding), equal_nan=True):
            name = f"np.{self.ufunc.__name__}"
            raise RuntimeError(
                f"the value of {name}.{method} differs from that of its steps, so its derivative is unknown. NumPy's "
                f"vectorized loops give wrong values here on some machines. Use {name}.accumulate(x, axis), whose last value "
                "is the reduction"
            )
        return self


def _apply_formula(formulas: Any, position: int, g: NDArray[Any], step: tuple[Any, ...]) -> Any:
    formula = formulas[position]
    return np.zeros_like(g) if formula is None else formula(g, *step)


class ReductionFold:
    """A reduction as a fold, with its axes merged into a first one.

    Attributes
    ----------
    fold : Fold
        The steps.
    """

    def __init__(
        self, ufunc: Any, out: NDArray[Any], x: NDArray[Any], axis: int = 0, keepdims: bool = False,
        initial: Any = NO_VALUE, where: bool = True, **_: object,
    ) -> None:  # fmt: skip
        axes = range(x.ndim) if axis is None or not x.ndim else axis if isinstance(axis, tuple) else (axis,)
        self.axes = tuple(i % x.ndim for i in axes)
        self.shape = x.shape
        self.result_shape = tuple(1 if i in self.axes else n for i, n in enumerate(x.shape)) if keepdims else None
        start = ufunc.identity if initial is NO_VALUE else initial
        masks = None if where is True else self.to_steps(np.broadcast_to(where, x.shape))
        self.fold = Fold(ufunc, self.to_steps(x.astype(out.dtype)), start, masks)
        last = self.fold.results[-1]
        self.fold.verify("reduce", last, np.reshape(out, last.shape))

    def to_steps(self, x: NDArray[Any]) -> Any:
        """Merge the reduced axes of an array into a first one, in the order of the fold."""
        transposed = np.moveaxis(x, self.axes, range(len(self.axes)))
        return np.reshape(transposed, (math.prod(transposed.shape[: len(self.axes)]), *transposed.shape[len(self.axes) :]))

    def from_steps(self, x: NDArray[Any]) -> Any:
        """Undo `to_steps`."""
        split = np.reshape(x, (*[self.shape[i] for i in self.axes], *x.shape[1:]))
        return np.moveaxis(split, range(len(self.axes)), self.axes)

    def pull(self, rule: Rule, g: NDArray[Any]) -> tuple[Any, Any]:
        """Return the cotangents of the start and of the elements."""
        results = self.fold.results
        start, elements = self.fold.pull(rule, [None] * (len(results) - 1) + [np.reshape(g, results[-1].shape)])
        element_cotangents = np.stack(elements) if elements else np.zeros((0, *results[-1].shape), results[-1].dtype)
        return start, self.from_steps(element_cotangents)

    def push(self, rule: Rule, t: NDArray[Any], start: object) -> Any:
        """Return the tangent of the result, given that of the elements or that of the start."""
        tangents = self.to_steps(np.zeros(self.shape, self.fold.results[-1].dtype) if t is None else t)
        last = self.fold.push(rule, tangents, start)[-1]
        return last if self.result_shape is None else np.reshape(last, self.result_shape)


def reduce_formulas(rule: Rule, ufunc: Any) -> tuple[Any, Any]:
    """Return the formulas and the tangent formulas of ``reduce``, for the elements and the initial value."""

    def fold(out: NDArray[Any], x: NDArray[Any], **options: Any) -> Any:
        return ReductionFold(ufunc, out, x, **options)

    formulas = [
        lambda g, *arguments, **options: fold(*arguments, **options).pull(rule, g)[1],
        lambda g, *arguments, **options: fold(*arguments, **options).pull(rule, g)[0],
    ]
    tangents = [
        lambda t, *arguments, **options: fold(*arguments, **options).push(rule, t, None),
        lambda t, *arguments, **options: fold(*arguments, **options).push(rule, None, t),
    ]
    return formulas, tangents


def _fold_accumulate(ufunc: Callable[..., Any], out: NDArray[Any], x: NDArray[Any], axis: int) -> Fold:
    fold = Fold(ufunc, np.moveaxis(x.astype(out.dtype), axis, 0))
    return fold.verify("accumulate", fold.results, np.moveaxis(out, axis, 0))


def accumulate_formulas(rule: Rule, ufunc: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the formula and the tangent formula of ``accumulate``."""

    def pull(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: int = 0, **_: object) -> Any:
        if not x.shape[axis]:
            return np.zeros_like(x)
        cotangents = list(np.moveaxis(g, axis, 0))
        return np.stack(_fold_accumulate(ufunc, out, x, axis).pull(rule, cotangents)[1], axis=axis)

    def push(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], axis: int = 0, **_: object) -> Any:
        if not x.shape[axis]:
            return np.zeros_like(out)
        return np.stack(_fold_accumulate(ufunc, out, x, axis).push(rule, np.moveaxis(t, axis, 0)), axis=axis)

    return [pull], [push]


def _segments(indices: NDArray[Any], length: int) -> list[slice]:
    """Return the segment of each index of ``reduceat``: up to the next index; one element if the next index is not greater."""
    starts = np.asarray(to_values(indices)).tolist()
    return [slice(a, b if b > a else a + 1) for a, b in zip(starts, [*starts[1:], length], strict=True)]


def _fold_segment(ufunc: object, elements: Any, numpy_result: Any) -> Fold:
    fold = Fold(ufunc, elements.astype(numpy_result.dtype))
    return fold.verify("reduceat", fold.results[-1], numpy_result)


def reduceat_formulas(rule: Rule, ufunc: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the formula and the tangent formula of ``reduceat``."""

    def pull(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], indices: NDArray[Any], axis: int = 0, **_: object) -> Any:
        elements, cotangents, results = (np.moveaxis(y, axis, 0) for y in (x, g, out))
        updates: list[Any] = []
        for i, segment in enumerate(_segments(indices, len(elements))):
            fold = _fold_segment(ufunc, elements[segment], results[i])
            updates += [np.stack(fold.pull(rule, [None] * (len(fold.results) - 1) + [cotangents[i]])[1]), segment]
        like = np.zeros(elements.shape, out.dtype)
        total = bind(scatter, (like, *updates), {"index_counts": (1,) * (len(updates) // 2)}) if updates else like
        return np.moveaxis(total, 0, axis)

    def push(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], indices: NDArray[Any], axis: int = 0, **_: object) -> Any:
        elements, element_tangents, results = (np.moveaxis(y, axis, 0) for y in (x, t, out))
        tangents = [
            _fold_segment(ufunc, elements[segment], result).push(rule, element_tangents[segment])[-1]
            for segment, result in zip(_segments(indices, len(elements)), results, strict=True)
        ]
        return np.moveaxis(np.stack(tangents) if tangents else np.zeros_like(results), 0, axis)

    return [pull], [push]


METHODS: dict[str, Any] = {"reduce": reduce_formulas, "accumulate": accumulate_formulas, "reduceat": reduceat_formulas}


def ufunc_method_rule(function: UfuncMethod) -> Rule:
    """Return the rule of a method of a ufunc, derived from the rule of the ufunc."""
    if function.ufunc is np.floor_divide:  # piecewise constant, so the ufunc has no rule
        rule = Rule("floor_divide", "elementwise", (None, None), (None, None))
    else:
        rule = by_function[function.ufunc]
    formulas, tangents = METHODS[function.method](rule, function.ufunc)
    return Rule(f"{rule.opname}_{function.method}", "general", formulas, tangents).batchable()


rule_factories[UfuncMethod] = ufunc_method_rule
