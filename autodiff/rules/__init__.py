"""Derivative rules: their declaration and lookup, and the arguments and results of their formulas."""

from .broadcasting import conform, conform_batch, restore_axes, unbroadcast
from .lazy_cotangents import (
    LAZY_COTANGENTS,
    OutputCotangents,
    ScatteredCotangent,
    add_contribution,
    as_view,
    record_getitem,
    scatter,
    scatter_lazily,
)
from .rule import Formula, Rule, SharedFormulas, VariadicFormulas, by_function, push, rule_factories, rule_with_keywords, rules
from .rule_errors import DerivativeWarning, RuleErrors
from .rule_kinds import elementwise, gather, general, linear, moved_positions, multilinear, reduction, weigh_tangent
from .user_rule import rule
from .written_buffers import (
    BatchedDerivativeBuffer,
    DerivativeBuffer,
    OverwrittenValue,
    as_node,
    plain_operands,
    plain_result,
)

__all__ = [
    "LAZY_COTANGENTS", "BatchedDerivativeBuffer", "DerivativeBuffer", "DerivativeWarning", "Formula", "OutputCotangents",
    "OverwrittenValue", "Rule", "RuleErrors", "ScatteredCotangent", "SharedFormulas", "VariadicFormulas", "add_contribution",
    "as_node", "as_view", "by_function", "conform", "conform_batch", "elementwise", "gather", "general",
    "linear", "moved_positions", "multilinear", "plain_operands", "plain_result", "push", "record_getitem", "reduction",
    "restore_axes", "rule", "rule_factories", "rule_with_keywords", "rules", "scatter",
    "scatter_lazily", "unbroadcast", "weigh_tangent",
]  # fmt: skip
