"""A rule applied to tangents: by its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind

from .formulas import Shared
from .rule import Rule


def push(rule: Rule, tangents: Sequence[Any], out: Any, function: Any, primals: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The tangent of an operation's output, from those of its operands (None where zero), by the rule's kind."""
    if rule.kind == "linear":
        count = len(primals) - len(function.counts) if isinstance(function, ops.Keyworded) else len(primals)
        moved = [_or_zeros(t, x) for t, x in zip(tangents[:count], primals[:count], strict=True)]
        return bind(function, (*moved, *primals[count:]), options)
    if type(rule.tangents) is Shared:
        return rule.tangents.formula(tangents, out, *primals, **options)
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if rule.kind == "multilinear":
            part = bind(function, (*primals[:position], tangent, *primals[position + 1 :]), options)
        else:
            if not len(rule.tangents):
                raise TypeError(f"{rule.opname} has no tangent rule; declare one with autodiff.rule(..., tangents=...)")
            formula = rule.tangents[position]
            if formula is None:
                continue
            part = formula(tangent, out, *primals, **options)
        total = part if total is None else _add(total, part)
    return total


def _or_zeros(tangent: Any, primal: Any) -> Any:
    return np.zeros(np.shape(primal), np.result_type(primal, np.float16)) if tangent is None else tangent


def _add(a: Any, b: Any) -> Any:
    """The sum of two tangents; of an operation with several outputs, part by part."""
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))
    return a + b
