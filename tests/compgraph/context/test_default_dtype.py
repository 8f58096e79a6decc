"""The default precision: which arrays use it, which keep their dtype, and its scope."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    with cg.default_dtype(np.float64):
        yield


def test_default_dtype_applies_to_new_arrays() -> None:
    with cg.default_dtype(np.float32):
        arrays = [
            cg.variable(1.0), cg.variable([1, 2]), cg.variable(np.arange(2)), cg.constant([1.0]), cg.zeros(2), cg.ones(2),
            cg.empty(2), cg.full(2, 1.5), cg.array([1.0, 2.0]), cg.variable([[1.0], [2.0]]),
        ]  # fmt: skip
        assert {x.dtype for x in arrays} == {np.dtype(np.float32)}
        assert cg.variable(1j).dtype == np.complex64
        assert (cg.variable(2.0) * 3.0 + 1).dtype == np.float32
        assert ad.grad(np.sin)(1.0).dtype == ad.jvp(np.sin, (1.0,), (1.0,))[1].dtype == np.float32
    assert cg.variable(1.0).dtype == cg.zeros(1).dtype == ad.grad(np.sin)(1.0).dtype == np.float64


def test_default_dtype_keeps_existing_dtypes() -> None:
    with cg.default_dtype(np.float32):
        for value in (np.ones(2), np.float64(1), [np.float64(1)], [np.ones(2)]):
            assert cg.variable(value).dtype == cg.constant(value).dtype == np.float64
        assert cg.constant(2).dtype == cg.full(2, 3).dtype == np.int64
        assert cg.variable(1.0, dtype=float).dtype == cg.zeros(2, float).dtype == cg.full(2, 1.0, float).dtype == np.float64


def test_default_dtype_call_holds_until_next_call() -> None:
    cg.default_dtype(np.float32)
    assert cg.zeros(1).dtype == np.float32
    with cg.default_dtype("f8"):
        assert cg.zeros(1).dtype == np.float64
    assert cg.zeros(1).dtype == np.float32
    dtypes: list[Any] = []
    thread = threading.Thread(target=lambda: dtypes.append(cg.zeros(1).dtype))
    thread.start()
    thread.join()
    assert dtypes == [np.float64]


@pytest.mark.parametrize("dtype", [int, complex, bool, None, "U3"])
def test_default_dtype_of_other_kinds_raises(dtype: Any) -> None:
    with pytest.raises(TypeError, match="default_dtype"):
        cg.default_dtype(dtype)
    assert cg.zeros(1).dtype == np.float64


def test_default_dtype_broadcasts_scalar_distribution_parameters() -> None:
    t, u = np.linspace(0, 1, 5), np.arange(5.0)
    for dtype in (np.float32, np.float64):
        with cg.default_dtype(dtype):
            a, b = cg.variable(0.5, "a"), cg.variable(-2, "b")
            gradients = gradient(np.exp(a * t.astype(dtype)) * b, adjoint=u)
        assert a.dtype == b.dtype == gradients["a"].dtype == dtype
        np.testing.assert_allclose(gradients["a"], np.sum(u * t * np.exp(0.5 * t) * -2), rtol=1e-6)
        np.testing.assert_allclose(gradients["b"], np.sum(u * np.exp(0.5 * t)), rtol=1e-6)
        assert gradients["a"].shape == gradients["b"].shape == ()
