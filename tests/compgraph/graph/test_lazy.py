"""Lazy arrays, of Dask and its like, are not loaded without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient


class Lazy:
    """An array in chunks that is computed when it is asked for."""

    shape, dtype, ndim, chunks = (3,), np.dtype(float), 1, ((2, 1),)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("it was loaded")

    def compute(self) -> Any:
        return np.arange(3.0)


class Graph(Lazy):
    """A collection as Dask describes one; as xarray's arrays, it may hold plain numbers."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def __dask_graph__(self) -> Any:
        return self.graph

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        assert self.graph is None, "it was loaded"
        return np.arange(3.0)


def lazies() -> list[Any]:
    return [Lazy(), Graph({"key": "task"})]


X = cg.placeholder((3,), name="x")
TAKEN: dict[str, Callable[[Any], Any]] = {
    "variable": cg.variable,
    "variable, shared": lambda d: cg.variable(d, copy=False),
    "in a list": lambda d: cg.variable([d, [1.0, 2.0, 3.0]]),
    "constant": cg.constant,
    "placeholder": lambda d: cg.placeholder((3,), example=d),
    "cg.array": cg.array,
    "cg.relu": cg.relu,
    "operand": lambda d: np.dot(cg.variable(np.ones(3)), np.ones(3)) * cg.relu(d),
    "run": lambda d: cg.Executor([X * 2]).run({X: d}),
    "written": lambda d: cg.zeros(3).__setitem__(slice(None), d),
    "update": lambda d: cg.variable(np.ones(3)).__setitem__(slice(None), d),
    "grad": lambda d: ad.grad(np.sum)(d),
    "grad, nested": lambda d: ad.grad(lambda p: np.sum(p["a"]))({"a": d}),
    "jacobian": lambda d: ad.jacobian(np.sin)(d),
    "jvp": lambda d: ad.jvp(np.sin, (d,), (np.ones(3),)),
    "tangent": lambda d: ad.jvp(np.sin, (np.ones(3),), (d,)),
    "vjp": lambda d: ad.vjp(np.sin, np.ones(3))[1](d),
    "forward": ad.forward.variables,
    "adjoint": lambda d: gradient(np.sin(cg.variable(np.ones(3))), adjoint=d),
    "rule": lambda d: ad.grads.exp_grad(d, np.exp(cg.variable(np.ones(3)))),
    "minimize": lambda d: ad.optimizers.minimize(np.sum, d),
    "check_gradient": lambda d: check_gradient(np.sum, [d]),
    "check_grads": lambda d: ad.check_grads(np.sum, [d]),
}


@pytest.mark.parametrize("what", TAKEN)
def test_they_are_refused(what: str) -> None:
    for lazy in lazies():
        with pytest.raises(TypeError, match=r"is not computed yet and would be loaded whole; give value\.compute\(\)"):
            TAKEN[what](lazy)


def test_the_message_names_argument_and_class() -> None:
    with pytest.raises(TypeError, match="grad: argument 0 is a tests Lazy, which is not computed yet"):
        ad.grad(np.sum)(Lazy())


def test_computed_ones_are_taken() -> None:
    assert np.array_equal(cg.variable(Graph(None)).value, [0, 1, 2])
    assert np.array_equal(ad.grad(lambda x: np.sum(x**2))(Graph(None)), [0, 2, 4])
    assert np.array_equal(cg.variable(Lazy().compute()).value, [0, 1, 2])


@pytest.mark.parametrize("what", TAKEN)
@pytest.mark.filterwarnings("ignore")
def test_of_dask(what: str) -> None:
    array = pytest.importorskip("dask.array").arange(3.0, chunks=2)
    with pytest.raises(TypeError, match="is a dask Array, which is not computed yet"):
        TAKEN[what](array)
