"""How a derivative is declared and found: rules and their kinds, and what a rule is handed and hands back."""

from .accumulate import DEFERRED, Parts, Scatter, added, fetched, fetched_at, scatter
from .apply import push
from .broadcasting import conform, conform_batch, spread, unbroadcast
from .callables import with_keywords
from .corners import found_by, limit_value, slope_at_corner
from .derivative_buffer import BatchedShadow, Shadow
from .errors import RuleErrors
from .formulas import Formula, Shared, Variadic, unowned
from .kinds import elementwise, gather, general, linear, moved, multilinear, reduction, weighed
from .past_values import Gone, as_node, plain_operands, plain_result
from .rule import Rule, by_function, makers, rules
from .user_rule import rule

__all__ = [
    "DEFERRED", "BatchedShadow", "Formula", "Gone", "Parts", "Rule", "RuleErrors", "Scatter", "Shadow", "Shared", "Variadic",
    "added", "as_node", "by_function", "conform", "conform_batch", "elementwise", "fetched", "fetched_at", "found_by", "gather",
    "general", "limit_value", "linear", "makers", "moved", "multilinear", "plain_operands", "plain_result", "push", "reduction",
    "rule", "rules", "scatter", "slope_at_corner", "spread", "unbroadcast", "unowned", "weighed", "with_keywords",
]  # fmt: skip
