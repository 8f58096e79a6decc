"""A pickled graph."""

from __future__ import annotations

import pickle

import numpy as np

import compgraph as cg
from autodiff.reverse import gradient
from tests.support.arguments import Case


def check_pickle(case: Case) -> None:
    """A loaded graph has the function, the value and the gradient of the dumped one."""
    variables = [cg.variable(a) for a in case.args]
    out = case.function(*variables)
    copies = pickle.loads(pickle.dumps((out, variables)))
    assert copies[0].opname == out.opname
    assert np.array_equal(copies[0].value, out.value, equal_nan=out.dtype.kind in "fc")
    ones = np.ones(out.shape, out.dtype)
    expected, cotangents = gradient(out, variables, ones), gradient(*copies, ones)
    for ours, theirs in zip(expected._cotangents.values(), cotangents._cotangents.values(), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)
