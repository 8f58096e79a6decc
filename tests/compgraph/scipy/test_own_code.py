"""SciPy's own Python code that is run on nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.signal

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.for_each import for_each

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "savgol_filter": lambda x: scipy.signal.savgol_filter(x, 5, 2),
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "rotate": lambda x: scipy.ndimage.rotate(np.reshape(x, (3, 3)), 10.0),
    "toeplitz": scipy.linalg.toeplitz,
}


@for_each("name", FUNCTIONS)
def test_own_code_at_the_top_level_gives_arrays(name: str) -> None:
    """Also where the result is an array that SciPy fills."""
    function, point = FUNCTIONS[name], np.linspace(0.0, 1.0, 9) ** 2
    x = cg.variable(point)
    found = function(x)
    assert isinstance(found, cg.Node)
    assert issubclass(type(found), np.ndarray)
    np.testing.assert_allclose(np.asarray(found), function(point))
    np.testing.assert_allclose(gradient(np.sum(found**2))[x], ad.grad(lambda p: np.sum(function(p) ** 2))(point), atol=1e-12)
