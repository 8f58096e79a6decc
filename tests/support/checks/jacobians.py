"""Batched directions through a recorded graph, against one direction at a time."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.forward import jvp
from autodiff.reverse import gradient
from autodiff.reverse.linearization import push_through
from autodiff.reverse.replay import Tape
from autodiff.reverse.sweep import collect, sweep, sweep_batch
from tests.support.arguments import Case

Array = np.ndarray[Any, Any]
COUNT = 5  # a length that cases rarely have, so that their axes are not mistaken for the batch axis


def near(actual: Any, expected: Any, what: str, rtol: float = 1e-12) -> None:
    """Fail unless `actual` has the shape and dtype of `expected` and is near it."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), f"{what}: {actual.shape} {actual.dtype}"
    size = 1 + np.max(np.abs(expected), initial=0)
    error = np.max(np.abs(actual - expected), initial=0)
    assert error <= rtol * size, f"{what} is off by {error / size:.2g}"


def random_batch(array: Any, rng: np.random.Generator, count: int = COUNT) -> Array:
    """Random numbers for `count` directions, of the dtype of an array."""
    array = np.asarray(array)
    numbers = rng.normal(size=(count, *array.shape))
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(size=numbers.shape)
    return np.asarray(numbers, array.dtype)


def check_together(case: Case, order: int = 1, rtol: float = 1e-12) -> None:
    """Compare batched directions with one direction at a time, for a case or its gradient."""
    rng = np.random.default_rng(zlib.crc32(f"{case.opname}: {case.label}".encode()))
    variables = [cg.variable(x) for x in case.args]
    out: Any = case.function(*variables)
    if order == 1:
        check_graph(out, variables, rng, rtol)
        return
    gradients = gradient(out, variables, adjoint=random_batch(out, rng, 1)[0], create_graph=True)
    for x in variables:
        check_graph(gradients[x], variables, rng)


def check_graph(out: Any, variables: list[Any], rng: np.random.Generator, rtol: float = 1e-12) -> None:
    """Directions through the graph of a node, in both modes, at first and at higher order.

    The first direction is zero, which detects formulas that branch on the first one for the whole batch.
    """
    nodes = collect(out)
    if isinstance(nodes, Tape):
        return  # a graph with writes passes each direction by itself
    seeds, targets = random_batch(out, rng), set(variables)
    tangents = {x: random_batch(x, rng) for x in variables}
    for batch in (seeds, *tangents.values()):
        batch[0] = 0
    pulled = [sweep(nodes, out, seed, targets, False) for seed in seeds]
    pushed = [push_through(nodes, {x: t[i] for x, t in tangents.items()}, out, False, None) for i in range(COUNT)]
    for count, create_graph in ((COUNT, False), (COUNT, True), (1, False)):
        some = slice(COUNT - count, COUNT)
        together = sweep_batch(nodes, out, seeds[some], targets, create_graph)
        for x in variables:
            zeros = np.zeros((count, *x.shape), x.dtype)
            expected = np.reshape([s.get(x, zeros[0]) for s in pulled[some]], zeros.shape)
            near(together.get(x, zeros), expected, f"cotangents of {count}", rtol)
        tangent = push_through(nodes, {x: t[some] for x, t in tangents.items()}, out, create_graph, count)
        zeros = np.zeros_like(seeds[some])
        expected = [zeros[0] if t is None else t for t in pushed[some]]
        near(zeros if tangent is None else tangent, np.reshape(expected, zeros.shape), f"tangents of {count}", rtol)


def check_one_tangent(case: Case) -> None:
    """A tangent pushed through the recorded graph equals the one of forward mode."""
    rng = np.random.default_rng(1)
    variables = [cg.variable(x) for x in case.args]
    out: Any = case.function(*variables)
    nodes = collect(out)
    if not isinstance(nodes, Tape):
        tangents = {x: random_batch(x, rng, 1)[0] for x in variables}
        pushed = push_through(nodes, tangents, out, False, None)
        expected = jvp(case.function, case.args, list(tangents.values()))[1]
        near(np.zeros_like(out.raw_value) if pushed is None else pushed, expected, "tangent")


def check_together_in_both_precisions(case: Case) -> None:
    """First derivatives along many directions, in double and in single precision."""
    check_one_tangent(case)
    check_together(case)
    args = tuple(x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in case.args)
    check_together(Case(case.opname, case.label, case.function, args), rtol=1e-4)


def check_together_on_gradients(case: Case) -> None:
    """Derivatives of the gradient along many directions."""
    check_together(case, order=2)
