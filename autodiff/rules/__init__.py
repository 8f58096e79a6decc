"""How a derivative is declared and found: rules and their kinds, and what a rule is handed and hands back."""

from .broadcasting import conform, conform_batch, spread, unbroadcast
from .corner_slope import found_by, limit_value, slope_at_corner
from .lazy_cotangents import DEFERRED, Parts, Scatter, added, fetched, fetched_at, scatter
from .rule import Rule, by_function, makers, push, rules, with_keywords
from .rule_errors import RuleErrors
from .rule_kinds import elementwise, gather, general, linear, moved, multilinear, reduction, weighed
from .user_rule import rule
from .variadic_formulas import Formula, Shared, Variadic, unowned
from .written_buffers import BatchedShadow, Gone, Shadow, as_node, plain_operands, plain_result

__all__ = [
    "DEFERRED", "BatchedShadow", "Formula", "Gone", "Parts", "Rule", "RuleErrors", "Scatter", "Shadow", "Shared", "Variadic",
    "added", "as_node", "by_function", "conform", "conform_batch", "elementwise", "fetched", "fetched_at", "found_by", "gather",
    "general", "limit_value", "linear", "makers", "moved", "multilinear", "plain_operands", "plain_result", "push", "reduction",
    "rule", "rules", "scatter", "slope_at_corner", "spread", "unbroadcast", "unowned", "weighed", "with_keywords",
]  # fmt: skip
