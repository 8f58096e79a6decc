"""A batched call of an operation, the selection of its batching rule, and the fallback loop.

A batching rule takes a `Call` and returns the results with the batch axis first. It is registered by opname
(`RULES_BY_OPNAME`) or for all operations of a kind of `compgraph.ops.OpSpec` (`RULES_BY_KIND`). A rule that does not cover a
call raises `NoBatchRuleError`. The fallback loop then computes the batch elements one after the other, and stacks the results.
"""

from __future__ import annotations

import collections
import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import bind
from compgraph.values import NO_OPTIONS, BatchedValueError

from ...arguments import flatten, unflatten
from ...rules import Rule, VariadicFormulas, by_function
from ..levels import broadcast_batch, is_batch, outside_vmap, pad_ndim, single_element


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
    has_batch_axis : list of bool
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

    __slots__ = ("base", "batch_size", "function", "has_batch_axis", "names", "ndims", "options", "values")

    def __init__(
        self, function: Any, values: list[Any], has_batch_axis: list[bool], options: dict[str, Any], batch_size: int
    ) -> None:
        self.function, self.values, self.has_batch_axis, self.options = function, values, has_batch_axis, options
        self.batch_size = batch_size
        self.ndims = [_ndim(v) - is_batched for v, is_batched in zip(values, has_batch_axis, strict=True)]
        self.names = function.names if type(function) is ops.Keyworded else ()
        base = function.function if self.names else function
        self.base = base.function if type(base) is ops.Configured else base

    def run(self, values: Sequence[NDArray[Any]], **options: object) -> Any:
        """Call the function with other operands, and some options replaced."""
        return bind(self.function, tuple(values), {**self.options, **options} or NO_OPTIONS)

    def first(self) -> Any:
        """The first operand; raises `NoBatchRuleError` unless it alone is batched."""
        if not self.has_batch_axis[0] or any(self.has_batch_axis[1:]):
            raise NoBatchRuleError
        return self.values[0]

    def on_first(self, value: NDArray[Any], **options: object) -> Any:
        """Call the function with another first operand, and some options replaced."""
        return self.run((value, *self.values[1:]), **options)

    def aligned(self) -> list[Any]:
        """The operands, padded to a common number of axes per element."""
        ndim = max(self.ndims)
        return [pad_ndim(v, ndim) if is_batched else v for v, is_batched in zip(self.values, self.has_batch_axis, strict=True)]

    def all_batched(self) -> list[Any]:
        """The operands, each with a batch axis."""
        return [
            v if is_batched else broadcast_batch(v, self.batch_size)
            for v, is_batched in zip(self.values, self.has_batch_axis, strict=True)
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


def find_rule(function: Callable[..., Any]) -> BatchRule:
    """The batching rule of a function without wrappers (`Call.base`)."""
    if type(function) is ops.OnAxes:
        return RULES_BY_OPNAME["on_axes"]
    if type(function) is ops.UfuncMethod:
        return RULES_BY_OPNAME["ufunc_method"]
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


LOOP_COUNTS: collections.Counter[str] = collections.Counter()  # by opname, calls that used the fallback loop; for tests
_NUMBERS = (bool, int, float, complex)


# ------------------------------------------------------------------------------------------------- operations


def loop_over_elements(call: Call) -> Any:
    """Call an operation for each batch element, and stack the results."""
    LOOP_COUNTS[ops.opname_of(call.function)] += 1
    if not call.batch_size:
        return _empty_batch(call)
    results = []
    with outside_vmap():
        for i in range(call.batch_size):
            values = [v[i] if is_batched else v for v, is_batched in zip(call.values, call.has_batch_axis, strict=True)]
            results.append(bind(call.function, tuple(values), call.options))
        return stack_results(results, ops.opname_of(call.function))


RULES_BY_KIND["sequential"] = loop_over_elements


def _empty_batch(call: Call) -> Any:
    """The results for a batch of size 0; their shapes are those of the results for ones."""
    ones = [
        np.ones(v.shape[1:], v.dtype)[()] if is_batched else v
        for v, is_batched in zip(call.values, call.has_batch_axis, strict=True)
    ]
    with outside_vmap(), np.errstate(all="ignore"):
        result = bind(call.function, tuple(ones), call.options)
    source = next(v for v, is_batched in zip(call.values, call.has_batch_axis, strict=True) if is_batched)

    def empty(one: Any) -> Any:
        if one is None:
            return None
        if isinstance(one, (tuple, list)):
            return _rebuild(one, [empty(part) for part in one])
        connected = np.reshape(source, (-1,))[:0]  # depends on the operand, if that is a node
        return np.reshape(np.broadcast_to(connected, (*np.shape(one), 0)), (0, *np.shape(one))).astype(one.dtype)

    return empty(result)


def stack_results(results: Sequence[Any], name: str) -> Any:
    """Stack the results of all elements along a new first axis; a TypeError for different shapes."""
    first = results[0]
    if first is None:
        return None
    if isinstance(first, (tuple, list)):
        lengths = [len(result) for result in results]
        if len(set(lengths)) > 1:
            raise _shape_error(name, lengths)
        return _rebuild(first, [stack_results(parts, name) for parts in zip(*results, strict=True)])
    shapes = [np.shape(result) for result in results]
    if len(set(shapes)) > 1:
        raise _shape_error(name, shapes)
    return np.stack(results)


def _rebuild(result: Sequence[Any], parts: list[Any]) -> Any:
    """A tuple, list or named tuple of the type of `result`, of other parts."""
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)  # type: ignore[call-arg]


def _shape_error(name: str, shapes: Sequence[object]) -> TypeError:
    different = " and ".join([*dict.fromkeys(map(str, shapes))][:2])
    return TypeError(
        f"vmap: {name} returns results of different shapes for different batch elements ({different}), which cannot be stacked. "
        "Use np.where, or another function whose result shape does not depend on values"
    )


# ------------------------------------------------------------------------------------------------- functions


def any_batched(*trees: object) -> bool:
    """Whether any leaf of some trees is batched."""
    return any(map(is_batch, flatten(trees)[0]))


def map_elements(name: str, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """Call a function for each batch element of the innermost level among its arguments, and stack the results.

    Parameters
    ----------
    name : str
        The name of the function, for messages.
    f : callable
        Called as ``f(*args, **kwargs)`` with one element of each batched leaf.
    args, kwargs : sequence, dict
        The nested arguments, with some batched leaves.
    """
    leaves, structure = flatten((args, kwargs or {}))
    level = max(x.level for x in leaves if is_batch(x))
    positions = [i for i, x in enumerate(leaves) if is_batch(x) and x.level == level]
    batch = leaves[positions[0]]
    if not batch.batch_size:
        raise BatchedValueError(
            f"vmap: {name} runs once for each batch element, and the batch is empty, so the shape of its result is unknown. "
            "Handle the empty batch before vmap"
        )
    results = []
    with single_element(level):
        for k in range(batch.batch_size):
            element = list(leaves)
            for i in positions:
                element[i] = leaves[i].values[k]
            element_args, element_kwargs = unflatten(structure, element)
            results.append(f(*element_args, **element_kwargs))
        return _join(results, name, lambda values: batch.create_using(values, level))


def _join(results: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join the results of all elements: arrays are stacked, other leaves must be equal."""
    first = results[0]
    if isinstance(first, (np.ndarray, np.generic)):
        if any(map(is_batch, results)) and wrap(first).level <= max(x.level for x in results if is_batch(x)):
            raise BatchedValueError(
                f"vmap: {name} runs once for each batch element, but uses a batched value that is not an argument (a variable "
                "of an enclosing function, or an attribute). Pass that value as an argument, or replace vmap by a Python loop"
            )
        return wrap(stack_results(results, name))
    if isinstance(first, dict):
        return _join_fields(results, name, wrap)
    if isinstance(first, (tuple, list)):
        parts = [_join([result[k] for result in results], name, wrap) for k in range(len(first))]
        return _join_named_tuples(results, parts, name, wrap) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, _NUMBERS) and any(result != first for result in results):
        return wrap(np.array(results))
    if isinstance(first, str):
        return first if all(result == first for result in results) else tuple(results)
    if not all(x is first or (type(x) is type(first) and isinstance(x, _NUMBERS) and x == first) for x in results):
        raise BatchedValueError(
            f"vmap: {name} returns a different {type(first).__name__} for each batch element, which cannot be stacked. Return "
            "arrays or numbers"
        )
    return first


def _join_named_tuples(results: list[Any], parts: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join named tuples, given their joined fields. SciPy's have more attributes; those that cannot be joined are left out."""
    first = results[0]
    joined: Any = tuple.__new__(type(first), parts)
    for key in getattr(first, "__dict__", ()):
        with contextlib.suppress(BatchedValueError, AttributeError):
            vars(joined)[key] = _join([vars(result)[key] for result in results], name, wrap)
    return joined


def _construct(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:  # a constructor with other parameters than the fields
        raise BatchedValueError(
            f"vmap: a {cls.__name__} cannot be constructed from the stacked fields of all batch elements. Return its fields "
            "as a tuple"
        ) from error


def _join_fields(results: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join dictionaries. Values that cannot be joined are omitted; fields without a derivative still raise when they are read."""
    first = results[0]
    joined = _construct(type(first))
    excluded: frozenset[str] = frozenset() if type(first) is dict else getattr(first, "fields_without_derivative", frozenset())
    for key, value in dict.items(first):
        if key in excluded:
            joined[key] = value
            continue
        with contextlib.suppress(BatchedValueError):
            joined[key] = _join([result[key] for result in results], name, wrap)
    if excluded:
        object.__setattr__(joined, "fields_without_derivative", excluded)
    return joined
