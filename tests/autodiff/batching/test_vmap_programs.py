"""Random programs with views and writes in place under `vmap`, and their gradients, against a loop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.programs.test_in_place_programs import SHAPES, run, total

COUNT = 3
PROGRAMS = 60  # of each search
MAX_STEPS = 12


def draw_program(rng: Any) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """A random program, and the shapes of its arguments."""
    program = [tuple(int(rng.integers(0, most)) for most in (5, 12, 12, 64, 8)) for _ in range(rng.integers(1, MAX_STEPS))]
    shapes = [SHAPES[rng.integers(len(SHAPES))] for _ in range(rng.integers(1, 4))]
    return program, shapes


def compare_with_loop(program: Any, shapes: Any, rng: Any) -> bool:
    """Hold `vmap` of a program, and of its gradient, to a loop; False if it raises for examples alone, or for all of them."""
    each = [[rng.uniform(-1.2, 1.2, shape) for shape in shapes] for _ in range(COUNT)]
    stacked = [np.stack(parts) for parts in zip(*each, strict=True)]
    originals = [x.copy() for x in stacked]
    alone = [run(program, tuple(x.copy() for x in args)) for args in each]
    if any(raised != alone[0][1] for _, raised in alone) or any(np.max(np.abs(v), initial=0) > 1e3 for h, _ in alone for v in h):
        return False
    failures: list[Any] = []

    def f(*xs: Any) -> Any:
        values, raised = run(program, xs)
        failures.append(raised)
        return total(values)

    expected = np.stack([f(*[x.copy() for x in args]) for args in each])
    result = ad.vmap(f)(*stacked)
    if (
        failures[-1] != alone[0][1]
    ):  # vmap raised where control flow depends on values, and the program continued without that step
        return False
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    positions = tuple(range(len(shapes)))
    gradient = ad.grad(f, positions)
    each_gradient = [gradient(*args) for args in each]
    if failures[-1] != alone[0][1]:
        return False
    for part, reference in zip(ad.vmap(gradient)(*stacked), zip(*each_gradient, strict=True), strict=True):
        np.testing.assert_allclose(part, np.stack(reference), rtol=1e-8, atol=1e-8)
    outside = ad.grad(lambda *xs: np.sum(ad.vmap(f)(*xs)), positions)(*stacked)
    for part, reference in zip(outside, zip(*each_gradient, strict=True), strict=True):
        np.testing.assert_allclose(part, np.stack(reference), rtol=1e-8, atol=1e-8)
    assert all(np.array_equal(x, k) for x, k in zip(stacked, originals, strict=True))
    return True


@pytest.mark.parametrize("search", [0, *[pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2, 3)]])
def test_vmap_random_programs_match_loop(search: int) -> None:
    rng = np.random.default_rng(search)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = sum(compare_with_loop(*draw_program(rng), rng) for _ in range(PROGRAMS))
    assert count > PROGRAMS // 3
