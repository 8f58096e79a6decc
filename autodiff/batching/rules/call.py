"""A batched call of an operation, and the selection of its batching rule.

A batching rule takes a `Call` and returns the results with the batch axis first. It is registered by opname
(`RULES_BY_OPNAME`) or for all operations of a kind of `compgraph.ops.OpSpec` (`RULES_BY_KIND`). A rule that does not cover a
call raises `NoBatchRuleError`; the fallback loop computes it then, element by element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.values import NO_OPTIONS

from ...rules import Rule, VariadicFormulas, by_function
from ..levels import broadcast_batch, pad_ndim


class NoBatchRuleError(Exception):
    """Raised by a batching rule for a call that it does not cover."""


class Call:
    """A call of an operation with batched operands.

    Parameters
    ----------
    function : callable
        The operation.
    values : list
        The operands; batched ones with the batch axis first.
    batched : list of bool
        Which operands are batched.
    options : dict
        The options of the operation.
    batch_size : int
        The length of the batch axis.

    Attributes
    ----------
    base : callable
        The function without wrappers for keywords and configured ufuncs.
    names : tuple of str
        The names of the last operands, if they are passed by keyword.
    ndims : list of int
        The number of axes of each operand, without the batch axis.
    """

    __slots__ = ("base", "batch_size", "batched", "function", "names", "ndims", "options", "values")

    def __init__(self, function: Any, values: list[Any], batched: list[bool], options: dict[str, Any], batch_size: int) -> None:
        self.function, self.values, self.batched, self.options = function, values, batched, options
        self.batch_size = batch_size
        self.ndims = [_ndim(v) - is_batched for v, is_batched in zip(values, batched, strict=True)]
        self.names = function.names if type(function) is ops.Keyworded else ()
        base = function.function if self.names else function
        self.base = base.function if type(base) is ops.Configured else base

    def run(self, values: Sequence[NDArray[Any]], **options: object) -> Any:
        """Call the function with other operands, and some options replaced."""
        return bind(self.function, tuple(values), {**self.options, **options} or NO_OPTIONS)

    def first(self) -> Any:
        """The first operand; raises `NoBatchRuleError` unless it alone is batched."""
        if not self.batched[0] or any(self.batched[1:]):
            raise NoBatchRuleError
        return self.values[0]

    def on_first(self, value: NDArray[Any], **options: object) -> Any:
        """Call the function with another first operand, and some options replaced."""
        return self.run((value, *self.values[1:]), **options)

    def aligned(self) -> list[Any]:
        """The operands, padded to a common number of axes per element."""
        ndim = max(self.ndims)
        return [pad_ndim(v, ndim) if is_batched else v for v, is_batched in zip(self.values, self.batched, strict=True)]

    def all_batched(self) -> list[Any]:
        """The operands, each with a batch axis."""
        return [
            v if is_batched else broadcast_batch(v, self.batch_size)
            for v, is_batched in zip(self.values, self.batched, strict=True)
        ]


def _ndim(value: Any) -> int:
    if hasattr(value, "ndim"):
        return int(value.ndim)
    return 0 if value is None or isinstance(value, (tuple, slice)) or value is Ellipsis else np.ndim(value)


def shift_axis(axis: Any, ndim: int) -> Any:
    """Axes of one element, an integer or a sequence, as axes of the batched array."""
    if isinstance(axis, (tuple, list, range)) or (isinstance(axis, np.ndarray) and axis.ndim):
        return tuple([shift_axis(a, ndim) for a in axis])
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim)
    return axis % ndim + 1


def element_axes(ndim: int) -> tuple[int, ...]:
    """All axes but the batch axis."""
    return tuple(range(1, ndim + 1))


def flatten_elements(values: NDArray[Any]) -> Any:
    """Reshape each element to a vector."""
    size = 1
    for length in values.shape[1:]:
        size *= length
    return np.reshape(values, (values.shape[0], size))


# --------------------------------------------------------------------------------------------- selection of rules

BatchRule = Callable[[Call], Any]
RULES_BY_KIND: dict[str, BatchRule] = {}  # "sequential" is the fallback loop
RULES_BY_OPNAME: dict[str, BatchRule] = {}
_cache: dict[Any, BatchRule] = {}


def find_rule(function: Any) -> BatchRule:
    """The batching rule of a function without wrappers (`Call.base`)."""
    if type(function) is ops.OnAxes:
        return RULES_BY_OPNAME["on_axes"]
    if type(function) is ops.UfuncMethod:
        return RULES_BY_OPNAME["folded"]
    opname = ops.opname_of(function)
    if opname in RULES_BY_OPNAME:
        return RULES_BY_OPNAME[opname]
    spec = ops.spec_of(function)
    if spec is not None and spec.kind in RULES_BY_KIND:
        return RULES_BY_KIND[spec.kind]
    is_elementwise = ops.is_elementwise(function) or has_elementwise_derivative(function)
    return RULES_BY_KIND["elementwise" if is_elementwise else "sequential"]


def has_elementwise_derivative(function: object) -> bool:
    """Whether the derivative rule of a function declares it elementwise."""
    try:
        rule = by_function[function]
    except TypeError:  # no rule
        return False
    return is_elementwise_rule(rule)


def is_elementwise_rule(rule: Rule) -> bool:
    """Whether the formulas of a rule are elementwise, and thus accept a batch axis."""
    return rule.kind == "elementwise" and type(rule.formulas) is not VariadicFormulas


def apply_batch_rule(call: Call) -> Any:
    """The result of a batched call, with the batch axis first; a tuple for several outputs."""
    rule = _cache.get(call.base)
    if rule is None:
        rule = find_rule(call.base)
        if not isinstance(ops.get_attached(call.base, "opname"), str):  # functions of users are not cached, so they can be freed
            _cache[call.base] = rule
    try:
        return rule(call)
    except NoBatchRuleError:
        return RULES_BY_KIND["sequential"](call)
