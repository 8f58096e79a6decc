"""The structure of a Jacobian, against the Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autodiff.arguments import Arguments
from autodiff.operators.sparsity_patterns import GraphStructure
from autodiff.operators.trace import Trace
from autodiff.reverse.linearization import Linearization
from tests.support.arguments import Case

Function = Callable[..., Any]


def traced(f: Function, *args: Any) -> Linearization:
    """The graph of a function."""
    trace = Trace(Arguments("jacobian", f, args, {}, range(len(args))))
    (out,) = trace.outs()
    return trace.linearized(out)


def sparsity_pattern(linearization: Linearization, x: Any) -> Any:
    """The pattern for one input."""
    return GraphStructure(linearization.from_nodes([x])).pattern()


def check_sparsity(case: Case) -> None:
    """The sparsity pattern contains every nonzero element."""
    recorded = traced(case.function, *case.args)
    complex_ = any(node.dtype.kind == "c" for node in (recorded.out, *recorded.inputs))
    if complex_ or not recorded.out.size:
        return
    for x, rows in zip(recorded.inputs, recorded.rows(), strict=True):
        if x.size:
            pattern = sparsity_pattern(recorded, x)
            dense = np.reshape(rows, (recorded.out.size, x.size)) != 0
            assert pattern.shape == dense.shape
            assert pattern.has_canonical_format
            assert not np.any(dense & ~pattern.toarray()), f"{pattern.toarray().astype(int)} lacks parts of {dense.astype(int)}"
