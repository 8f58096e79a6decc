"""Several results as one node, so that one sweep starts from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.graph import Joint, attach

from ..rules import Rule, Shared, makers


class _Together:
    """The function of a joint over several results."""

    __name__ = "together"


def as_joint(outs: Sequence[Any]) -> Joint:
    """One joint over several nodes; its adjoint is the `Parts` of theirs."""
    made = attach(tuple(np.asarray(out.plain) for out in outs), together, tuple(outs))
    joint: Joint = made[0].args[0]
    return joint


def _parts_of(positions: list[int], adjoints: Any, outs: Any, *operands: Any) -> list[Any]:
    found = [(adjoints[p], operands[p]) for p in positions]
    return [np.zeros(x.shape, x.dtype)[()] if adjoint is None else adjoint for adjoint, x in found]


together = _Together()
makers[_Together] = lambda function: Rule("together", "linear", Shared(_parts_of), ()).moving()
operations.OPNAMES[together] = "together"
