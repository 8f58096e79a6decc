"""Which way an operation computes many examples, and the last resort: one by one."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind

from ...rules import Variadic, by_function
from ..active import outside
from .call import Call, OneByOneError

Way = Callable[[Call], Any]
kinds: dict[str, Way] = {}  # by the kinds of `ops.OpSpec`
own: dict[str, Way] = {}  # by opname
LOOPED: collections.Counter[str] = collections.Counter()  # what was computed one by one, for tests
_found: dict[Any, Way] = {}


def way_of(function: Any) -> Way:
    """How a function without its settings is batched."""
    if type(function) is ops.OnAxes:
        return own["on_axes"]
    if type(function) is ops.UfuncMethod:
        return own["folded"]
    opname = ops.opname_of(function)
    if opname in own:
        return own[opname]
    spec = ops.spec_of(function)
    if spec is not None and spec.kind in kinds:
        return kinds[spec.kind]
    return kinds["elementwise" if ops.is_elementwise(function) or _has_elementwise_rule(function) else "sequential"]


def _has_elementwise_rule(function: Any) -> bool:
    try:
        rule = by_function[function]
    except TypeError:  # it has none
        return False
    return rule.kind == "elementwise" and type(rule.formulas) is not Variadic


def of_examples(call: Call) -> Any:
    """What a call gives, with the axis of examples first; of several results a tuple."""
    way = _found.get(call.base)
    if way is None:
        way = way_of(call.base)
        if not isinstance(ops.kept(call.base, "opname"), str):  # those of users are free to go
            _found[call.base] = way
    try:
        return way(call)
    except OneByOneError:
        return one_by_one(call)


def one_by_one(call: Call) -> Any:
    """The results of the examples, stacked."""
    LOOPED[ops.opname_of(call.function)] += 1
    if not call.count:
        return _of_none(call)
    found = []
    with outside():
        for i in range(call.count):
            values = [v[i] if b else v for v, b in zip(call.values, call.batched, strict=True)]
            found.append(bind(call.function, tuple(values), call.options))
        return stacked(found, ops.opname_of(call.function))


kinds["sequential"] = one_by_one
# Steps of rules and of compositions, whose operands are of forms of their own.
own |= dict.fromkeys(("of_class", "limit_value", "together", "diagonal_matrix", "row_weights", "laid"), one_by_one)


def _of_none(call: Call) -> Any:
    """Of no examples results of the shapes that one of ones has, with no rows."""
    ones = [np.ones(v.shape[1:], v.dtype)[()] if b else v for v, b in zip(call.values, call.batched, strict=True)]
    with outside(), np.errstate(all="ignore"):
        found = bind(call.function, tuple(ones), call.options)
    source = next(v for v, b in zip(call.values, call.batched, strict=True) if b)

    def rows(one: Any) -> Any:
        if one is None:
            return None
        if isinstance(one, (tuple, list)):
            return _like(one, [rows(part) for part in one])
        none = np.reshape(source, (-1,))[:0]  # keeps the graph, if there is one
        return np.reshape(np.broadcast_to(none, (*np.shape(one), 0)), (0, *np.shape(one))).astype(one.dtype)

    return rows(found)


def stacked(found: list[Any], name: str) -> Any:
    """The results of examples, along a first axis."""
    first = found[0]
    if first is None:
        return None
    if isinstance(first, (tuple, list)):
        if len({len(f) for f in found}) > 1:
            raise _other_shapes(name)
        return _like(first, [stacked(list(parts), name) for parts in zip(*found, strict=True)])
    if len({np.shape(f) for f in found}) > 1:
        raise _other_shapes(name)
    return np.stack(found)


def _like(result: Any, parts: list[Any]) -> Any:
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


def _other_shapes(name: str) -> TypeError:
    return TypeError(
        f"vmap: {name} gives a result of another shape for each example; use np.where, or what has the same shape for all"
    )
