"""The cost of writes in place grows linearly, or as the mathematics requires.

Steps are counted, not timed: calls of Python and C functions, by `sys.setprofile`;
and elements that are copied. A sweep of many directions gives the results of one sweep per direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autodiff import grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, vjp
from autodiff.reverse import replay
from compgraph.values import snapshot
from tests.programs.test_in_place_programs import run, starting
from tests.support.failures import Failures
from tests.support.growth import calls

Array = np.ndarray[Any, Any]


def fill(x: Any) -> Any:
    b = np.zeros_like(x)
    for i in range(len(x)):
        b[i] = np.sin(x[i])
    return b


def recurrence(x: Any) -> Any:
    b = np.zeros_like(x)
    b[0] = x[0]
    for i in range(1, len(x)):
        b[i] = np.sin(b[i - 1]) * x[i]
    return np.sum(b)


def nested_views(x: Any) -> Any:
    y = np.zeros_like(x)
    v = y
    for i in range(len(x)):
        v = v[:]
        v[i] = np.sin(x[i])
    return np.sum(y * y)


def nested_reads(x: Any) -> Any:
    y = np.sin(x)
    views = [y]
    for _ in range(len(x)):
        views.append(views[-1][:])
    y[0] = x[1]
    total = 0.0
    for v in reversed(views):
        total = total + v[0]
    return total


def shrinking(x: Any) -> Any:
    y = x * 2
    total = 0.0
    for i in range(len(x) - 1):
        y[0] *= x[i]
        total = total + y[0]
        y = y[1:]
    return total


def alternating(x: Any) -> Any:
    a, b = np.zeros_like(x), np.zeros_like(x)
    for i in range(1, len(x)):
        a[i] = np.sin(b[i - 1]) + x[i]
        b[i] = a[i] * x[i - 1]
    return np.sum(b)


def point(n: int) -> Array:
    return np.linspace(0.1, 1, n)


def forward(f: Callable[[Any], Any]) -> Callable[[Array], Any]:
    return lambda x: jvp(f, [x], [np.ones_like(x)])


LOOPS = {f.__name__: f for f in (recurrence, nested_views, nested_reads, shrinking, alternating)}
MODES: dict[str, Callable[[Any], Callable[[Array], Any]]] = {
    "grad": grad,
    "forward": forward,
    "hvp": lambda f: lambda x: hvp(f)(x, np.ones_like(x)),
    "hessian": hessian,
}


@pytest.mark.parametrize("mode", MODES)
def test_writes_calls_are_linear(mode: str) -> None:
    size = 12 if mode == "hessian" else 40
    with Failures(mode) as failures:
        for name, loop in LOOPS.items():
            with failures.case(name):
                derive = MODES[mode](loop)
                for _ in range(3):  # the first imports modules, which the others patch
                    derive(point(5))
                counted = [calls(lambda n=n, derive=derive: derive(point(n))) for n in (size, 2 * size, 4 * size)]  # type: ignore[misc]
                first, second = counted[1] - counted[0], counted[2] - counted[1]
                assert second < 2.2 * first, counted


@pytest.mark.parametrize("derive", [jacobian, jacrev, jacfwd, lambda f: jacobian(f, sparse=True)])
def test_jacobian_of_filled_array_is_linear(derive: Any) -> None:
    for _ in range(3):  # the first call imports modules, which the others patch
        derive(fill)(point(20))
    counted = [calls(lambda n=n: derive(fill)(point(n))) for n in (20, 40, 80)]
    assert counted[2] - counted[1] < 2.2 * (counted[1] - counted[0]), counted
    table = derive(fill)(point(7))
    assert np.allclose(table.toarray() if hasattr(table, "toarray") else table, np.diag(np.cos(point(7))))


@pytest.mark.parametrize("loop", ["recurrence", "alternating"])
def test_second_derivative_copies_are_linear(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of an element do not copy the array."""
    copied = 0

    def counting(node: Any, sequence_number: float, value: Any = None) -> Any:
        nonlocal copied
        copied += np.size(value)
        return snapshot(node, sequence_number, value)

    monkeypatch.setattr(replay, "snapshot", counting)
    counts = []
    for n in (20, 40, 80):
        copied = 0
        hvp(LOOPS[loop])(point(n), np.ones(n))
        counts.append(copied)
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0]), counts


# ------------------------------------------------------------------------------- many directions together


def program_of(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """A random program; see `test_in_place_programs`."""
    bounds = (5, 12, 12, 64, 8)
    return [tuple(int(rng.integers(b)) for b in bounds) for _ in range(rng.integers(2, 9))]


def smooth(values: list[Any]) -> Any:
    """The sines of all held values, concatenated."""
    return np.concatenate([np.ravel(np.sin(v)) for v in values])


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered", "ignore:jacrev", "ignore:hessian")
@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(2, 6)]])
def test_jacobian_of_writes_equals_single_directions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(9):
        program = program_of(rng)
        (x,) = starting([[(3,), (2, 3), (3, 3)][rng.integers(3)]])

        def f(x: Any, program: Any = program) -> Any:
            return smooth(run(program, (x,))[0])

        def total(x: Any, f: Any = f) -> Any:
            out = f(x)
            return np.sum(out * np.linspace(1, 2, out.size))

        with np.errstate(all="ignore"):
            values = f(x.copy())
            if not np.all(np.isfinite(values)) or values.size > 120:
                continue
            pull = vjp(f, x)[1]
            rows = np.array([pull(unit)[0] for unit in np.eye(values.size)])
            np.testing.assert_allclose(jacrev(f)(x), rows, rtol=1e-10, atol=1e-12)
            units = np.eye(x.size).reshape(-1, *x.shape)
            second = np.array([hvp(total)(x, unit) for unit in units]).reshape(*x.shape, *x.shape)
            matrix = hessian(total)(x)
            np.testing.assert_allclose(matrix, second, rtol=1e-8, atol=1e-9 * (1 + np.max(np.abs(second), initial=0)))
        compared += 1
    assert compared > 2


def test_jacobian_of_writes_complex_and_outer_nodes() -> None:
    z = np.array([0.3 + 0.2j, -0.5 + 1j, 0.9 - 0.4j])

    def f(z: Any) -> Any:
        b = np.zeros_like(z)
        b[1:] = z[:-1] * z[1:]
        b[::2] *= z[::2]
        return b

    step = 1e-6
    columns = [(f(z + step * e) - f(z - step * e)) / (2 * step) for e in np.eye(3)]
    assert np.allclose(jacrev(f)(z), np.stack(columns, -1), atol=1e-8)

    def outer(s: Any) -> Any:
        return np.sum(jacrev(lambda x: fill(x * s))(point(4)) ** 2)

    assert np.isclose(grad(outer)(1.5), (outer(1.5 + 1e-6) - outer(1.5 - 1e-6)) / 2e-6)
