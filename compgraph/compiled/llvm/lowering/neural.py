"""Operations of neural networks as steps: convolutions with their adjoints, and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import operations
from . import convolutions, pooling
from .placing import Placing

_CONVOLUTIONS = {
    "cross_correlate": convolutions.forward,
    "conv": convolutions.convolved,
    "cross_correlate_back": convolutions.back,
    "cross_correlate_kernel": convolutions.kernel,
}
_POOLING = {
    "max_pool": pooling.largest,
    "max_pool_back": pooling.largest_back,
    "max_pool_along": pooling.largest_along,
    "mean_pool": pooling.mean,
    "mean_pool_back": pooling.mean_back,
}

# What appends the steps of an item, or says why it has none.
KINDS: dict[Any, Callable[[Placing, Any], str]] = {
    operations.function_named(name): lower for name, lower in {**_CONVOLUTIONS, **_POOLING}.items()
}
