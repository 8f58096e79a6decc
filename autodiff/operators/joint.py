"""Several results as one node, so that one sweep starts from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import attach
from compgraph.values import MultiOutput

from ..rules import Rule, SharedFormulas, rule_factories


class _Together:
    """The operation of a node that joins several results."""

    __name__ = "together"

    def __call__(self, *outs: Any) -> tuple[Any, ...]:
        """Replay the operation."""
        return tuple(map(np.asarray, outs))


def as_joint(outs: Sequence[Any]) -> MultiOutput:
    """One multi-output node over several nodes. Its cotangent is the `Parts` of theirs."""
    outputs = attach(tuple(np.asarray(out.raw_value) for out in outs), together, tuple(outs))
    joint: MultiOutput = outputs[0].args[0]
    return joint


def fresh_node(out: Any) -> Any:
    """The value of a node as a new node, so that its readers are recorded now.

    Cotangents pass unchanged, and are added to those of the node's other readers in the order in which they were recorded.
    """
    joint = as_joint([out])
    return attach(joint.raw_value[0], ops.output(0), (joint,))


def _parts_of(positions: list[int], adjoints: Any, outs: Any, *operands: Any) -> list[Any]:
    pairs = [(adjoints[p], operands[p]) for p in positions]
    return [np.zeros(x.shape, x.dtype)[()] if adjoint is None else adjoint for adjoint, x in pairs]


together = _Together()
rule_factories[_Together] = lambda function: Rule("together", "linear", SharedFormulas(_parts_of), ()).moves_elements()
ops.OPNAMES[together] = "together"
