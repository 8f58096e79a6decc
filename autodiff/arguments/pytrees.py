"""Arguments and results that nest: lists, tuples, dictionaries, named tuples, dataclasses, None."""

from __future__ import annotations

from typing import Any

from compgraph.trees import flatten as flatten
from compgraph.trees import unflatten as unflatten


def with_aux(operator: str, result: Any) -> tuple[Any, Any]:
    """The value and the rest of what a function with auxiliary results returned."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"{operator}: has_aux=True, but the function returned a {type(result).__name__}, not a pair (value, aux)")
    return result[0], result[1]
