"""The printed source of a recorded program, executed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import Case


def again(listing: cg.Listing) -> Any:
    """The results of a program's text."""
    names = dict(listing.names)
    exec(str(listing), names)
    return eval(listing.result, names)


def same(result: Any, node: Any) -> bool:
    """Whether two results are the same array, to the last bit."""
    result, expected = np.asarray(result), np.asarray(node.value)
    return (result.shape, result.dtype) == (expected.shape, expected.dtype) and np.array_equal(
        result, expected, equal_nan=expected.dtype.kind in "fc"
    )


def check_program(case: Case) -> None:
    """The text runs and reproduces the recorded bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = case.function(*[cg.variable(a, f"x_{i}") for i, a in enumerate(case.args)])
        listing = cg.program(output, limit=None, fold=False)
        results = again(listing)
    assert listing.is_whole
    results, nodes = (results, output) if isinstance(output, (list, tuple)) else ([results], [output])
    assert len(results) == len(nodes)
    assert all(map(same, results, nodes))
