"""Values and derivatives of the integrals of samples of ``scipy.integrate``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
from scipy.integrate import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)

import autodiff as ad
import compgraph as cg
from compgraph.interception import unpatched
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

WRONG = "shape|operands|length|initial|increasing|power of 2"


def places(*shape: int) -> Any:
    """Samples at unequal distances, along the last axis."""
    return np.cumsum(0.5 + np.abs(real(*shape, seed=5)), axis=-1)


SAMPLES: dict[str, list[tuple[Any, ...]]] = {
    "trapezoid": [
        ("samples", trapezoid, real(5)),
        ("places", trapezoid, real(2, 5), places(5)),
        ("places of each", lambda y, x: trapezoid(y, x), real(2, 5), places(2, 5)),
        ("an axis", lambda y: trapezoid(y, dx=0.3, axis=0), real(4, 2)),
        ("a distance", lambda y, d: trapezoid(y, dx=d), real(4), real(1)[0]),
        ("complex", trapezoid, real(4) + 1j * real(4, seed=2)),
        ("a list", lambda y: trapezoid([y[0], y[1] * y[0], 2.0], x=[0.0, y[1] ** 2, 9.0]), real(2)),
        ("two samples", trapezoid, real(2)),
    ],
    "cumulative_trapezoid": [
        ("samples", cumulative_trapezoid, real(5)),
        ("places", lambda y, x: cumulative_trapezoid(y, x, initial=0), real(2, 5), places(5)),
        ("an axis", lambda y: cumulative_trapezoid(y, dx=0.3, axis=0), real(4, 2)),
        ("places of each", lambda y, x: cumulative_trapezoid(y, x), real(2, 5), places(2, 5)),
    ],
    "simpson": [
        ("odd", simpson, real(5)),
        ("even", simpson, real(6)),
        ("two", simpson, real(2)),
        ("odd, places", lambda y, x: simpson(y, x=x), real(2, 5), places(5)),
        ("even, places", lambda y, x: simpson(y, x=x), real(2, 6), places(6)),
        ("two, places", lambda y, x: simpson(y, x=x), real(2, 2), places(2)),
        ("places of each", lambda y, x: simpson(y, x), real(2, 6), places(2, 6)),
        ("an axis", lambda y, d: simpson(y, dx=d, axis=0), real(6, 2), real(1)[0]),
    ],
    "cumulative_simpson": [
        ("odd", cumulative_simpson, real(5)),
        ("even", lambda y: cumulative_simpson(y, dx=0.5, initial=0.0), real(6)),
        ("three", cumulative_simpson, real(3)),
        ("two", cumulative_simpson, real(2)),
        ("places", lambda y, x: cumulative_simpson(y, x=x), real(2, 6), places(6)),
        ("places of each", lambda y, x: cumulative_simpson(y, x=x, initial=1.0), real(2, 5), places(2, 5)),
        ("an axis", lambda y, d: cumulative_simpson(y, dx=d, axis=0), real(5, 2), real(1)[0]),
    ],
    "romb": [
        ("samples", romb, real(9)),
        ("an axis", lambda y, d: romb(y, dx=d, axis=0), real(5, 2), real(1)[0]),
        ("two", romb, real(2)),
    ],
}


@pytest.mark.parametrize("rows", functions(SAMPLES))
def test_sample_integrals_derivatives(rows: Rows) -> None:
    rows.check()


@for_each("name", ["trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson", "romb"])
@for_each("y", [np.arange(5), real(3, 5), real(5, 3).T, real(2, 3).astype(np.float32)], ids=str)
def test_sample_integrals_values_equal_scipy(name: str, y: Any) -> None:
    """In the graph there are SciPy's own numbers, of its shapes and dtypes."""
    function = getattr(scipy.integrate, name)
    ad.grad(lambda x: trapezoid(x * np.ones(3)))(1.0)  # the family is entered
    expected = unpatched(function)(y)
    result = function(cg.constant(y))
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.value, expected, rtol=3 * np.finfo(expected.dtype).eps, atol=1e-15)


@for_each(
    "wrong",
    [
        lambda y: trapezoid(y, x=np.arange(3.0)),
        lambda y: cumulative_trapezoid(y, x=np.arange(3.0)),
        lambda y: cumulative_trapezoid(y, initial=1.0),
        lambda y: simpson(y, x=np.arange(3.0)),
        lambda y: cumulative_simpson(y, x=np.zeros(6)),
        lambda y: cumulative_simpson(y, x=np.arange(3.0)),
        lambda y: romb(y),
    ],
)
def test_sample_integrals_errors_equal_scipy(wrong: Any) -> None:
    """Samples that SciPy rejects raise."""
    with pytest.raises(ValueError, match=WRONG):
        wrong(np.ones(6))
    with pytest.raises(ValueError, match=WRONG):
        ad.grad(lambda y: np.sum(wrong(y)))(np.ones(6))
