"""The steps of an animated sweep: numbers, products and words."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.forward import jvp
from autodiff.reverse import gradient
from autodiff.visualize.equations import Writer, plain_text, unique_names
from autodiff.visualize.sweep_steps import backward, forward
from compgraph.graph import breadth_first
from compgraph.values import MultiOutput
from tests.support.arguments import Case
from tests.support.checks.rules import with_argument


def waves(array: Any, phase: float = 0.0) -> Any:
    """Return numbers in the shape of an array."""
    return np.cos(np.arange(np.size(array)).reshape(np.shape(array)) + phase)


def check_animation(case: Case) -> None:
    """Every step of both modes has the numbers of the sweep, and a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # poles, which other tests cover
        check_cotangents(case)
        for k in range(len(case.args)):
            check_tangents(case, k)
        check_steps(case)


def check_cotangents(case: Case) -> None:
    """Cotangents are those of `gradient` bit for bit, and the steps before add up to them."""
    variables = [cg.variable(a, f"x{k}") for k, a in enumerate(case.args)]
    out = case.function(*variables)
    seed = waves(out)
    expected = gradient(out, variables, adjoint=seed)
    sweep = backward(out, variables, seed)
    last = {step.operand: step.total for step in sweep.steps}
    sums: dict[Any, Any] = {}
    for step in sweep.steps:
        if not isinstance(step.operand, MultiOutput):
            sums[step.operand] = sums.get(step.operand, 0) + step.contribution
            np.testing.assert_allclose(step.total, sums[step.operand], rtol=1e-12, atol=1e-12)
    for x in variables:
        assert np.array_equal(sweep.result[x], expected[x], equal_nan=True)
        assert sweep.result[x].dtype == expected[x].dtype
        if x is not out:
            assert np.array_equal(last.get(x, np.zeros_like(x.value)), expected[x], equal_nan=True)


def check_tangents(case: Case, position: int) -> None:
    """The tangent along one operand is that of forward mode."""
    variables = [cg.variable(a, f"x{j}") for j, a in enumerate(case.args)]
    argument = case.args[position]
    direction = waves(argument, position)
    out = case.function(*variables)
    sweep = forward(out, variables[position], direction)
    expected = jvp(lambda x: with_argument(case, position, x), (argument,), (direction,))[1]
    # Forward mode computes with 0-d arrays, the sweep with scalars. Complex scalars round differently.
    np.testing.assert_allclose(sweep.result[out], expected, rtol=1e-14, atol=1e-15)


def check_steps(case: Case) -> None:
    """A product of cotangent and derivative is shown only where it is the number that was passed; each step has a text."""
    variables = [cg.variable(a) for a in case.args]
    out = case.function(*variables)
    sweeps = [backward(out, variables, None), *(forward(out, x, None) for x in variables)]
    for step in sweeps[0].steps:
        if step.local_derivative is not None:
            assert np.shape(step.local_derivative) == step.node.shape
            product = np.sum(step.incoming * step.local_derivative)
            product = product if np.iscomplexobj(step.contribution) else np.real(product)
            np.testing.assert_allclose(product, np.sum(step.contribution), rtol=1e-6, atol=1e-9)
    names = unique_names(breadth_first(out))
    for sweep in sweeps:
        writer = Writer(names, "f", sweep.mode)
        for step in sweep.steps:
            first = plain_text(writer.step(step)[0])
            assert re.search(r" \+= .*∂.* = ", first), first
            assert names[step.node] in writer.describe(step)
