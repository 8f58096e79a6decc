"""`debug`: unrecorded writes into the memory of nodes."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg


def test_debug_detects_write_into_result() -> None:
    """Is named by the gradient that reads it."""
    x = cg.variable([1.0, 2.0])
    with cg.debug():
        y = np.exp(x)
        z = np.sum(y * y)
        ad.reverse.gradient(z)
        y.value[0] = 5.0
        with pytest.raises(ValueError, match="the result of exp was changed"):
            ad.reverse.gradient(z)


def test_debug_copies_operand_before_write() -> None:
    """The recorded operand is a copy that is never written into."""
    x, a = cg.variable([1.0, 2.0], "x"), np.array([3.0, 4.0])
    with cg.debug():
        z = np.sum(x * a)
        a[...] = 0.0
        np.testing.assert_array_equal(ad.reverse.gradient(z)["x"], [3.0, 4.0])
