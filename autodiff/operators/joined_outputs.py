"""Several results as one multi-output operation, so that one sweep starts from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import attach
from compgraph.values import MultiOutput

from ..rules import Rule, SharedFormulas, rule_factories


class _JoinOutputs:
    """The multi-output operation that joins several results."""

    __name__ = "together"

    def __call__(self, *outs: object) -> tuple[Any, ...]:
        """Replay the operation."""
        return tuple(map(np.asarray, outs))


def join_outputs(outs: Sequence[Any]) -> MultiOutput:
    """Join several nodes in one multi-output operation, whose cotangent is the `OutputCotangents` of theirs."""
    outputs = attach(tuple(np.asarray(out.raw_value) for out in outs), together, tuple(outs))
    multi_output: MultiOutput = outputs[0].args[0]
    return multi_output


def fresh_node(out: NDArray[Any]) -> Any:
    """Return a new node with the value of a node, recorded now.

    Its cotangent is passed on unchanged, in the order in which the readers of the original were recorded.
    """
    multi_output = join_outputs([out])
    return attach(multi_output.raw_value[0], ops.output(0), (multi_output,))


def _cotangents_of_outputs(positions: list[int], adjoints: Any, outs: object, *operands: Any) -> list[Any]:
    pairs = [(adjoints[p], operands[p]) for p in positions]
    return [np.zeros(x.shape, x.dtype)[()] if adjoint is None else adjoint for adjoint, x in pairs]


together = _JoinOutputs()
rule_factories[_JoinOutputs] = lambda function: Rule(
    "together", "linear", SharedFormulas(_cotangents_of_outputs), ()
).moves_elements()
ops.OPNAMES[together] = "together"
