"""Rules of what wraps a function, made from the function's own; see `compgraph.ops.callables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph import ops

from .accumulate import Parts
from .formulas import Formula, Variadic
from .rule import Rule, by_function, makers


def with_keywords(rule: Rule, function: ops.Keyworded) -> Rule:
    """The rule of a call whose last operands were given by keyword; those are options to the formulas."""
    parameters = ops.operand_names(function.function)

    def among(formulas: Sequence[Formula | None]) -> Sequence[Formula | None]:
        def call(position: int, adjoint: Any, out: Any, *operands: Any, **options: Any) -> Any:
            cut = len(operands) - len(function.names)
            name = function.names[position - cut] if position >= cut else ""
            place = parameters.index(name) if name in parameters else position
            formula = formulas[place] if place < len(formulas) and (not name or name in parameters) else None
            if formula is None and position >= cut:
                raise TypeError(f"{rule.opname}: the derivative with respect to {name} is not known; give a plain value")
            if formula is None:
                return np.zeros_like(out if formulas is rule.tangents else operands[position])
            return formula(adjoint, out, *operands[:cut], **function.named(operands[cut:]), **options)

        return Variadic(call)

    made = Rule(rule.opname, rule.kind, among(rule.formulas), among(rule.tangents) if len(rule.tangents) else ())
    made.carries, made.begins, made.part = rule.carries, rule.begins, rule.part
    return made.batchable() if rule.is_batchable else made


def _output_rule(function: ops.Output) -> Rule:
    """The rule of one output of several: its adjoint is gathered with those of the others."""
    index = function.index
    rule = Rule("output", "linear", [lambda adjoint, out, outputs: Parts({index: adjoint})], ()).moving()
    return rule.batched(lambda position, g, out, outputs: Parts({index: g}), lambda tangents, out, outputs: tangents[0][index])


makers[ops.Configured] = lambda function: by_function[function.function]
makers[ops.Keyworded] = lambda function: with_keywords(by_function[function.function], function)
makers[ops.Output] = _output_rule
