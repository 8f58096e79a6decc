"""Rules of functions imported by `compgraph.from_jax` and `compgraph.from_torch`: the derivatives of the other library."""

from __future__ import annotations

from typing import Any

from compgraph.compiled import ImportedFunction, zeros_where_none

from ..rules import Rule, SharedFormulas, VariadicFormulas, rule_factories


def _rule_of(function: ImportedFunction) -> Rule:
    """Return the rule of one function."""

    def cotangents(positions: list[int], cotangent: Any, out: Any, *operands: object) -> list[Any]:
        outputs = len(out) if isinstance(out, tuple) else 0
        output_cotangents = zeros_where_none(cotangent, out) if outputs else [cotangent]
        operand_cotangents = function.pullback(outputs)(*output_cotangents, *operands)
        return [operand_cotangents[position] for position in positions]

    def tangent(position: int, t: object, out: object, *operands: object) -> Any:
        return function.pushforward(position)(t, *operands)

    return Rule(function.__name__, "general", SharedFormulas(cotangents), VariadicFormulas(tangent))


rule_factories[ImportedFunction] = _rule_of
