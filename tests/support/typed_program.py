"""A typical user program. Type checkers accept it and infer the types that it asserts; see `test_types`."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import autodiff as ad
import compgraph as cg
from autodiff.optimizers import Adam
from compgraph import Node, OperationalNode, VariableNode

Array = NDArray[np.float64]


def loss(w: Array, x: Array, scale: float = 1.0) -> np.float64:
    residual = np.tanh(x @ w) - 1.0
    return np.sum(residual * residual) * np.float64(scale)


@cg.jit
def step(w: Array, rate: float) -> Array:
    slope: Array = ad.grad(loss)(w, np.eye(3), scale=2.0)
    return w - rate * slope


v = cg.variable(np.ones(3), "v")
assert_type(v, VariableNode)
assert_type(v * 2, OperationalNode)
assert_type(2 * v - np.ones(3), OperationalNode)
assert_type(-(v[0] ** 2), OperationalNode)
assert_type(v > 0, OperationalNode)
node: Node = v @ v
gradient: Array = ad.gradient(node)[v]

value, slope = ad.value_and_grad(loss)(np.ones(3), np.eye(3))
assert_type(value, np.float64)
curvature: Array = ad.hessian(loss, argnum=0)(np.ones(3), np.eye(3), scale=1.0)
out, pull = ad.vjp(loss, np.ones(3), np.eye(3))
assert_type(out, np.float64)
assert_type(ad.jvp(loss, (np.ones(3), np.eye(3)), (np.ones(3), np.eye(3))), tuple[np.float64, np.float64])
assert_type(step(np.ones(3), 0.1), Array)
second: Any = ad.grad(ad.grad(lambda t: t**3))(2.0)
optimizer = Adam([v], learning_rate=0.1)
optimizer.step(ad.gradient(node))
