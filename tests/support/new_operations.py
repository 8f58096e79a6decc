"""A program that adds three operations as CONTRIBUTING describes, by a table entry and a rule, and runs every transform.

It needs a separate process (``python -m tests.support.new_operations``), because other tests compare the tables of the
current one with NumPy's names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff as ad
import compgraph as cg
from autodiff import rules
from autodiff.numeric import gradient as differences
from compgraph import ops
from compgraph.bind import bind


def squared_sine(x: Any) -> Any:
    """A new elementwise function of plain arrays."""
    return np.sin(x) ** 2


def upside_down(x: Any) -> Any:
    """A new operation that permutes elements."""
    return np.copy(x[::-1])


def total(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """A new reduction."""
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


ops.register_operation(squared_sine, "squared_sine", kind="elementwise")
ops.register_operation(upside_down, "upside_down", kind="shape", warns="never")
ops.register_operation(total, "total", kind="reduction")
rules.elementwise("squared_sine", lambda g, out, x: g * np.sin(2 * x))
rules.linear("upside_down", lambda g, out, x: bind(upside_down, (g,)))
rules.reduction("total", lambda out, x, **options: None)

X = np.linspace(0.1, 1.3, 12).reshape(4, 3)
CALLS: dict[str, Callable[[Any], Any]] = {
    "squared_sine": lambda x: bind(squared_sine, (x,)),
    "upside_down": lambda x: bind(upside_down, (x,)),
    "total": lambda x: bind(total, (x,), {"axis": 0}),
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "squared_sine": squared_sine,
    "upside_down": upside_down,
    "total": lambda x: total(x, axis=0),
}


def check(name: str) -> None:
    """Compare an operation in every transform with NumPy and differences."""
    call, plain = CALLS[name], PLAIN[name]
    weights = np.cos(np.arange(plain(X).size)).reshape(plain(X).shape)

    def loss(x: Any) -> Any:
        return np.sum(weights * call(x) ** 2)

    gradient = differences(lambda x: np.sum(weights * plain(x) ** 2), [X])[0]
    assert np.allclose(ad.grad(loss)(X), gradient, rtol=1e-6), "reverse mode"
    assert np.allclose(ad.jvp(loss, (X,), (weights.sum() + X,))[1], np.sum(gradient * (weights.sum() + X)), rtol=1e-6), "forward"
    second = differences(lambda x: np.sum(X * ad.grad(loss)(x)), [X])[0]
    assert np.allclose(ad.grad(lambda x: np.sum(X * ad.grad(loss)(x)))(X), second, rtol=1e-6), "second order"
    batch = np.stack([X, 2 * X, X - 0.3])
    with np.errstate(all="raise"):
        assert np.array_equal(ad.vmap(call)(batch), np.stack([plain(x) for x in batch])), "vmap"
    assert np.allclose(ad.vmap(ad.grad(loss))(batch), np.stack([ad.grad(loss)(x) for x in batch])), "vmap of a gradient"
    compiled = cg.jit(ad.value_and_grad(loss)).compile(X)
    assert np.allclose(compiled(X)[0], loss(X)), "jit"
    assert np.allclose(compiled(X)[1], ad.grad(loss)(X)), "jit of a gradient"
    dense = ad.jacobian(call)(X).reshape(plain(X).size, X.size)
    sparse = ad.jacobian(lambda x: np.reshape(call(np.reshape(x, X.shape)), (-1,)), sparse=True)(X.ravel())
    assert np.array_equal(sparse.toarray(), dense), "sparse"
    assert sparse.nnz == X.size, "the kind tells where a Jacobian is zero"
    x = cg.variable(X, name="x")
    out = call(x)
    assert name in str(cg.program(out)), "printing"
    assert name in cg.visualize_at(out).source, "drawing"


if __name__ == "__main__":
    for name in CALLS:
        check(name)
        print(name)
