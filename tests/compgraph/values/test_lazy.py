"""Lazy arrays, such as Dask's, are not computed silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient
from tests.support.failures import Failures


class Lazy:
    """An array in chunks that is computed on demand."""

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


USES: dict[str, Callable[[Any], Any]] = {
    "variable": cg.variable,
    "variable, shared": lambda d: cg.variable(d, copy=False),
    "in a list": lambda d: cg.variable([d, [1.0, 2.0, 3.0]]),
    "constant": cg.constant,
    "placeholder": lambda d: cg.placeholder((3,), example=d),
    "cg.array": cg.array,
    "cg.relu": cg.relu,
    "operand": lambda d: np.dot(cg.variable(np.ones(3)), np.ones(3)) * cg.relu(d),
    "run": lambda d: cg.Executor([cg.variable(np.ones(3), "x") * 2]).run({"x": d}),
    "written": lambda d: cg.zeros(3).__setitem__(slice(None), d),
    "update": lambda d: cg.variable(np.ones(3)).__setitem__(slice(None), d),
    "grad": lambda d: ad.grad(np.sum)(d),
    "grad, nested": lambda d: ad.grad(lambda p: np.sum(p["a"]))({"a": d}),
    "jacobian": lambda d: ad.jacobian(np.sin)(d),
    "jvp": lambda d: ad.jvp(np.sin, (d,), (np.ones(3),)),
    "tangent": lambda d: ad.jvp(np.sin, (np.ones(3),), (d,)),
    "vjp": lambda d: ad.vjp(np.sin, np.ones(3))[1](d),
    "forward": ad.forward.variables,
    "cotangent": lambda d: gradient(np.sin(cg.variable(np.ones(3))), adjoint=d),
    "rule": lambda d: ad.grads.exp_grad(d, np.exp(cg.variable(np.ones(3)))),
    "minimize": lambda d: ad.optimizers.minimize(np.sum, d),
    "check_gradient": lambda d: check_gradient(np.sum, [d]),
    "check_grads": lambda d: ad.check_grads(np.sum, [d]),
}


def test_lazy_array_raises() -> None:
    with Failures("uses") as failures:
        for what in USES:
            with failures.case(what):
                for lazy in lazies():
                    with pytest.raises(
                        TypeError, match=r"is not computed yet and would be loaded completely\. Use value\.compute"
                    ):
                        USES[what](lazy)


def test_lazy_array_message_names_argument_and_class() -> None:
    with pytest.raises(TypeError, match="grad: argument 0 is a tests Lazy, which is not computed yet"):
        ad.grad(np.sum)(Lazy())


def test_lazy_array_that_is_computed_is_accepted() -> None:
    assert np.array_equal(cg.variable(Graph(None)).value, [0, 1, 2])
    assert np.array_equal(ad.grad(lambda x: np.sum(x**2))(Graph(None)), [0, 2, 4])
    assert np.array_equal(cg.variable(Lazy().compute()).value, [0, 1, 2])


def node() -> Any:
    return cg.variable(np.arange(1.0, 4.0)) * 1


# An array of Dask's beside a node: on either side of an operator, in functions of NumPy's and of Dask's.
MEETING: dict[str, Callable[[Any], Any]] = {
    "node + dask": lambda d: node() + d,
    "dask + node": lambda d: d + node(),
    "dask * number": lambda d: d * node()[0],
    "number * dask": lambda d: node()[0] * d,
    "dask @ node": lambda d: d @ node(),
    "node > dask": lambda d: node() > d,
    "dask > node": lambda d: d > node(),
    "node += dask": lambda d: node().__iadd__(d),
    "ufunc": lambda d: np.maximum(node(), d),
    "ufunc of dask": lambda d: np.maximum(d, node()),
    "outer": lambda d: np.subtract.outer(node(), d),
    "out=": lambda d: np.sin(node(), out=d),
    "function": lambda d: np.dot(node(), d),
    "function of dask": lambda d: np.dot(d, node()),
    "concatenate": lambda d: np.concatenate([node(), d]),
    "concatenate dask": lambda d: np.concatenate([d, node()]),
    "where": lambda d: np.where(d > 0, node(), 0),
    "einsum": lambda d: np.einsum("i,i", node(), d),
    "put": lambda d: np.put(node(), [0, 1, 2], d),
    "copyto": lambda d: np.copyto(node(), d),
    "interp": lambda d: np.interp(node(), d, d),
    "interp at dask": lambda d: np.interp(d, np.arange(3.0), node()),
    "interp at dask, in grad": lambda d: ad.grad(lambda p: np.sum(np.interp(d, np.arange(3.0), p)))(np.ones(3)),
    "keyword of a function that Dask does not have": lambda d: np.cross(d, b=node()),
    "index": lambda d: node()[d.astype(int)],
    "part of an index": lambda d: cg.variable(np.ones((3, 3)))[0, d.astype(int)],
    "written into dask": lambda d: d.copy().__setitem__(slice(0, 3), node()),
    "from_array": lambda d: __import__("dask.array").array.from_array(node()),
    "an argument beside": lambda d: ad.grad(lambda p, x: np.sum(p * x))(np.ones(3), d),
    "closure": lambda d: ad.grad(lambda p: (d * p).sum())(np.ones(3)),
    "closure, a number": lambda d: ad.grad(lambda p: np.sum(d * p))(2.0),
    "closure, in blocks": lambda d: ad.grad(lambda p: d.map_blocks(lambda block: block * p[0]).sum().compute())(np.ones(3)),
}
NAMED = r"[Uu]se value\.compute\(\).*autodiff\.distributed\.value_and_grad"


@pytest.mark.filterwarnings("ignore")
def test_dask_array_raises() -> None:
    with Failures("uses of Dask's arrays") as failures:
        for what in [*USES, *MEETING]:
            with failures.case(what):
                check_dask(what)


def check_dask(what: str) -> None:
    """Use an array of Dask: it raises, the error names what works, and no block is loaded."""
    da = pytest.importorskip("dask.array")
    sizes: list[int] = []

    def load(block: Any) -> Any:
        if block.size:  # Dask infers the type of the result from an empty block
            sizes.append(block.size)
        return block * 1.0

    array = da.arange(3.0, chunks=2).map_blocks(load, dtype=float, meta=np.array(()))
    with pytest.raises(TypeError, match=NAMED):
        {**USES, **MEETING}[what](array)
    assert not sizes, "it was loaded"


def test_dask_names_of_nodes_are_distinct() -> None:
    """Nodes with equal numbers have different histories, so their tasks are not merged."""
    dask = pytest.importorskip("dask")
    first, second = cg.variable(2.0), cg.variable([2.0, 3.0])
    assert len({dask.base.tokenize(n) for n in (first, first * 1, second, second * 1)}) == 4
    assert dask.delayed(np.sin, pure=True)(second).compute(scheduler="synchronous").opname == "sin"


def test_dask_index_of_node_is_not_lazy() -> None:
    x = cg.variable([3.0, 4.0, 5.0])
    assert np.array_equal(x[np.argsort(-x)], [5, 4, 3])
    assert np.array_equal(x[[0, 2]], [3, 5])
    assert np.array_equal(x[x > 3], [4, 5])


class Quantity:
    """An object that delegates the protocol of Dask to the library, which is not installed."""

    def __init__(self, magnitude: Any) -> None:
        self.magnitude = magnitude

    def __dask_graph__(self) -> Any:
        return None.Array  # type: ignore[attr-defined]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        numbers = [x.magnitude if isinstance(x, Quantity) else x for x in inputs]
        return Quantity(getattr(ufunc, method)(*numbers, **options))


def test_object_whose_dask_protocol_raises_is_not_lazy() -> None:
    np.testing.assert_allclose(ad.grad(lambda x: (x * Quantity(3.0)).magnitude)(2.0), 3.0)
