"""Memory of cotangent contributions and gradients: new arrays, or views of documented arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from autodiff.batching import pull_batch, rule_operands
from autodiff.reverse import collect, gradient, sweep
from autodiff.rules import SharedFormulas, by_function, plain_operands, plain_result
from compgraph.graph import to_values
from compgraph.values import INERT
from tests.support.arguments import Case
from tests.support.checks.rules import directions, recorded


def parts_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def contributions(node: Any, cotangent: Any) -> list[Any]:
    """The contributions of a node to the cotangents of its operands."""
    formulas, operands, out = by_function[node.function].formulas, plain_operands(node), plain_result(node)
    if isinstance(formulas, SharedFormulas):
        positions = [p for p in node.parent_argnums if p >= formulas.fixed]
        return list(formulas.formula(positions, cotangent, out, *operands, **node.options))
    positions = [p for p in node.parent_argnums if p < len(formulas) and node.args[p].__class__ not in INERT]
    return [formula(cotangent, out, *operands, **node.options) for p in positions if (formula := formulas[p]) is not None]


def in_batch(cotangent: Any) -> Any:
    """A cotangent repeated five times, for each output that has one."""
    if isinstance(cotangent, tuple):
        return tuple(None if part is None else in_batch(part) for part in cotangent)
    return np.stack([cotangent] * 5)


def contributions_in_batch(node: Any, cotangents: Any) -> list[Any]:
    """The contributions of a batch of cotangents."""
    rule, (out, operands) = by_function[node.function], rule_operands(node, False)
    positions = [p for p in node.parent_argnums if p < len(rule.formulas) and node.args[p].__class__ not in INERT]
    return [pull_batch(rule, p, cotangents, out, *operands, **node.options) for p in positions if rule.formulas[p] is not None]


def check_contributions(case: Case) -> None:
    """A contribution is a new array, the cotangent or a view, because the sweep accumulates contributions in place."""
    _, out = recorded(case)
    nodes = collect(out)
    if not isinstance(nodes, list):
        return  # written into
    reached = sweep(nodes, out, directions(case)[0], set(nodes), False)
    for node in nodes:
        if not node.args or node not in reached:
            continue
        batch = in_batch(reached[node])
        cotangents = [c for _ in range(2) for c in contributions(node, reached[node])]
        cotangents += [c for _ in range(2) for c in contributions_in_batch(node, batch)]
        passed = [*parts_of(reached[node]), *parts_of(batch)]
        owned = [c for c in cotangents if isinstance(c, np.ndarray) and c.base is None and not any(c is a for a in passed)]
        arrays = [*plain_operands(node), *parts_of(plain_result(node)), *node.options.values()]
        assert len(set(map(id, owned))) == len(owned), f"{node.opname} returns the same array twice"
        assert not any(c is k for c in owned for k in arrays), f"{node.opname} returns an operand, the result or an option"


def check_memory_of_gradients(case: Case) -> None:
    """Gradients share memory with no value and with no earlier gradient."""
    variables, out = recorded(case)
    u, _ = directions(case)
    first, second = ([gradient(out, variables, adjoint=u)[x] for x in variables] for _ in range(2))
    arrays = [u, *case.args, *[part for node in collect(out) for part in (node.raw_value, *map(to_values, node.args))]]
    for g in (g for g in first if g.ndim and g.size):
        assert g.base is None
        assert g.flags.writeable
        assert not any(np.may_share_memory(g, other) for other in (*arrays, *second) if isinstance(other, np.ndarray))
