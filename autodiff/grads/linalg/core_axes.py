"""Rules of products of vectors and matrices that lie along other axes than the last: ``np.vecdot(a, b, axis=0)``.

The axes move to the end, where the rule of the product wants them, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.ops import OnAxes, ensure_array

from ...rules import Formula, Rule, by_function, makers, unbroadcast


def _last(axes: tuple[int, ...]) -> tuple[int, ...]:
    """As many axes, at the end."""
    return tuple(range(-len(axes), 0))


def on_axes_rule(function: OnAxes) -> Rule:
    """The rule of a product along other axes, from the rule of the product."""
    rule = by_function[function.function]

    def formula_of(position: int) -> Formula:
        def formula(g: Any, out: Any, *operands: Any) -> Any:
            *places, to = function.places(len(operands))
            moved = [np.moveaxis(ensure_array(x), at, _last(at)) for x, at in zip(operands, places, strict=True)]
            g, out = (np.moveaxis(y, to, _last(to)) for y in (g, out))
            if function.options.get("keepdims", False):
                g, out = g[..., 0], out[..., 0]
            formula: Any = rule.formulas[position]
            found = unbroadcast(formula(g, out, *moved), moved[position].shape)
            return np.moveaxis(found, _last(places[position]), places[position])

        return formula

    return Rule(rule.opname, "multilinear", [formula_of(0), formula_of(1)], ()).batchable()


makers[OnAxes] = on_axes_rule
