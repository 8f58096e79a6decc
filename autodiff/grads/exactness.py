"""The order to which derivatives of what was found by a few exact steps are right."""

from __future__ import annotations

from typing import Any

from compgraph.scipy import zero_to_order

from ..rules import elementwise


def _one_order_less(g: Any, out: Any, x: Any, order: int, what: str) -> Any:
    if order == 0:
        raise TypeError(f"{what} has no derivatives of a higher order than this: its steps are exact to this one alone")
    return g * zero_to_order(x, order - 1, what)


zero_to_order_grad = elementwise("zero_to_order", _one_order_less)
