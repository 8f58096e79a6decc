"""How a derivative is declared and found: rules and their kinds, and what a rule is handed and hands back."""

from .accumulate import DEFERRED, Parts, Scatter, fetched_at, scatter
from .apply import push
from .broadcasting import conform, conform_batch, spread, unbroadcast
from .derivative_buffer import Shadow
from .past_values import Gone, as_node
from .registry import (
    ByFunction,
    Formula,
    Rule,
    Shared,
    Variadic,
    Work,
    by_function,
    elementwise,
    gather,
    general,
    linear,
    makers,
    moved,
    multilinear,
    plain_operands,
    plain_result,
    reduction,
    weighed,
    with_keywords,
)
from .user_rule import rule

__all__ = [
    "DEFERRED",
    "ByFunction",
    "Formula",
    "Gone",
    "Parts",
    "Rule",
    "Scatter",
    "Shadow",
    "Shared",
    "Variadic",
    "Work",
    "as_node",
    "by_function",
    "conform",
    "conform_batch",
    "elementwise",
    "fetched_at",
    "gather",
    "general",
    "linear",
    "makers",
    "moved",
    "multilinear",
    "plain_operands",
    "plain_result",
    "push",
    "reduction",
    "rule",
    "scatter",
    "spread",
    "unbroadcast",
    "weighed",
    "with_keywords",
]
