"""Checks of results for nan, which derivatives without masks for structural zeros may cause.

Such derivatives are shorter. If a result of a program has nan, the derivatives are recorded again with masks. If the program
itself uses a derivative and its result may hide nan, as that of ``np.fmax`` does, the derivative is an additional output.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import ops
from ..values import Value
from .schedule import sources_of


def has_nan(results: Iterable[Any]) -> bool:
    """Return whether results contain nan. The short form of a derivative may cause it; the nan-safe form does not."""
    return any(_contains_nan(result) for result in results)


def _contains_nan(result: Any) -> bool:
    if result.dtype.kind != "f":
        return result.dtype.kind == "c" and bool(np.isnan(result).any())
    total = np.vdot(result, result) if result.ndim else result  # nan only if an element is: a sum of squares, perhaps infinite
    return bool(total != total)


def select_hidden(unmasked: Iterable[Any], items: Iterable[Any]) -> list[Any]:
    """Return the derivatives whose nan may be absent from the results, because other items depend on them; see `_keeps_nan`."""
    leaves = [leaf for derivative in unmasked for leaf in (derivative if isinstance(derivative, tuple) else (derivative,))]
    derivatives = dict.fromkeys(_base_primal(leaf) for leaf in leaves if isinstance(leaf, Value))
    dependents, is_hidden = set[Any](), False
    for item in items:
        if item in derivatives:
            dependents.add(item)
        elif dependents and any(source in dependents for source in sources_of(item)):
            dependents.add(item)
            is_hidden = is_hidden or not _keeps_nan(item)
    return [node for node in derivatives if node in dependents] if is_hidden else []


def _base_primal(node: Any) -> Any:
    """Return the primal of a node below all trace levels."""
    while node.level:
        node = node.primal
    return node


def _keeps_nan(item: Any) -> bool:
    """Return whether an operation propagates nan, or only moves or drops elements."""
    function = getattr(item, "function", None)
    if isinstance(function, np.ufunc):
        return _ufunc_keeps_nan(function)
    spec = None if function is None else ops.spec_of(function)
    return spec is not None and spec.moves_elements


@functools.cache
def _ufunc_keeps_nan(function: np.ufunc) -> bool:
    """Try nan with typical other operands, such as 0, where a power is 1, and infinity, where `hypot` is infinite."""
    numbers = (-math.inf, -1.0, 0.0, 0.5, 1.0, math.inf)
    if function.signature is not None:
        return False
    with np.errstate(all="ignore"):
        try:
            for position in range(function.nin):
                for others in itertools.product(numbers, repeat=function.nin - 1):
                    operands = [*others[:position], math.nan, *others[position:]]
                    if not np.all(np.isnan(np.asarray(function(*operands), float))):
                        return False
        except TypeError:
            return False
    return True
