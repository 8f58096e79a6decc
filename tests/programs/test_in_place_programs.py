"""Random programs that read, view and write in place: values as NumPy's bit for bit, derivatives that agree in all modes.

A program is a list of small numbers, which the interpreter takes modulo whatever there is to choose from, so any list
is a program, and runs on arrays and on nodes alike. A longer run by hand:
``HYPOTHESIS_PROFILE=long python -m pytest -m "" tests/programs/test_in_place_programs.py -n 0``.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import compgraph as cg
from autodiff import grad, jvp
from autodiff.forward import JacobianNode, variables
from tests.support.failures import Failures

Array = np.ndarray[Any, Any]
Program = list[tuple[int, ...]]

SEARCHES = 24  # each with a seed of its own, so that processes share them
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
FORM = settings(
    max_examples=(5000 if IS_LONG else 3000) // SEARCHES,
    deadline=None,
    derandomize=not IS_LONG,
    suppress_health_check=list(HealthCheck),
)

# ------------------------------------------------------------------------------------------- the language


def buffer_like(v: Any) -> Any:
    """Zeros to be written into; NumPy's ``like=`` does not make them carry a Jacobian."""
    return np.zeros_like(v, shape=(3,)) if isinstance(v, JacobianNode) else np.zeros(3, like=v[...])


VIEWS: list[Callable[[Any], Any]] = [
    lambda v: v[1:],
    lambda v: v[::-1],
    lambda v: v[::2],
    lambda v: v[..., 0],
    lambda v: v[0],
    lambda v: v[None],
    lambda v: v[...],
    lambda v: v[:, 1:],
    lambda v: v.T,
    lambda v: v.reshape(-1),
    lambda v: np.ravel(v),
    lambda v: np.swapaxes(v, 0, -1),
    lambda v: np.flip(v),
    lambda v: np.squeeze(v),
    lambda v: v.astype(float, copy=False),
    lambda v: np.broadcast_to(v, (2, *v.shape)),
    lambda v: np.diagonal(v),
    lambda v: np.expand_dims(v, -1),
    lambda v: np.lib.stride_tricks.sliding_window_view(v, 2, axis=0),
    lambda v: np.real(v),
    lambda v: np.moveaxis(v, 0, -1),
    lambda v: np.split(v, [1])[1],
    lambda v: np.reshape(v, (v.size, 1)),
]


def numbers(v: Any) -> Any:
    """The numbers of an array or node, to decide by."""
    return np.asarray(v.value if isinstance(v, cg.Node) else v)


READS: list[Callable[[Any, Any], Any]] = [
    lambda v, w: np.sin(v),
    lambda v, w: np.tanh(v * w),
    lambda v, w: v * np.cos(w),
    lambda v, w: v + w,
    lambda v, w: v - 2 * w,
    lambda v, w: np.sum(v, axis=0),
    lambda v, w: np.mean(v),
    lambda v, w: v.copy(),
    lambda v, w: np.copy(v)[::-1],
    lambda v, w: np.concatenate([v, v[:1]]),
    lambda v, w: np.stack([v, v]),
    lambda v, w: np.zeros_like(v),
    lambda v, w: buffer_like(v),
    lambda v, w: np.take(v, [0, 0]),
    lambda v, w: v[[0, -1, 0]],
    lambda v, w: v[v > 0],
    lambda v, w: np.where(v > 0.1, v, w),
    lambda v, w: np.cumsum(v),
    lambda v, w: np.tanh(np.dot(v, w)),
    lambda v, w: np.tanh(np.outer(v, w)),
    lambda v, w: np.sort(v, axis=0),
    lambda v, w: np.exp(-v * v),
]

INDICES: list[Callable[[Any], Any]] = [
    lambda v: 0,
    lambda v: -1,
    lambda v: slice(1, None),
    lambda v: slice(None, None, -2),
    lambda v: ...,
    lambda v: (..., 0),
    lambda v: (None, slice(None)),
    lambda v: [0, -1],
    lambda v: [0, 0],
    lambda v: np.array([[0], [-1]]),
    lambda v: numbers(v) > 0,
    lambda v: (slice(None), 0),
    lambda v: ([0, -1], [0, 0]),
    lambda v: (slice(None), [0, 0]),
    lambda v: (0, slice(None, 2)),
    lambda v: np.arange(len(v))[::-1],
]

AUGMENTED: list[Callable[[Any, Any], Any]] = [
    lambda v, w: operator.iadd(v, w),
    lambda v, w: operator.isub(v, np.sin(w)),
    lambda v, w: operator.imul(v, np.cos(w)),
    lambda v, w: operator.itruediv(v, 1.5 + np.tanh(w)),
    lambda v, w: operator.imul(v, 0.5),
    lambda v, w: operator.ipow(v, 2) if np.all(np.abs(numbers(v)) < 2) else v,
]


def as_region(value: Any, shape: tuple[int, ...]) -> Any:
    """A value that fits into a region: as it is, or one element of it."""
    try:
        np.broadcast_to(np.zeros(np.shape(value)), shape)
    except ValueError:
        return np.sin(np.ravel(value)[0]) if np.size(value) else 0.25
    return value


def assign(v: Any, w: Any, index: Any, how: int) -> None:
    """One of the forms of writing into a part of an array."""
    if how in (4, 5) and not v.flags.writeable:
        raise ValueError("NumPy's ufunc.at writes into read-only arrays")
    region = np.zeros(v.shape)[index]
    value = as_region(w, region.shape)
    if how == 0:
        v[index] = value
    elif how == 1:
        v[index] += value
    elif how == 2:
        v[index] *= np.cos(value)
    elif how == 3:
        v[index] = 0.7
    elif how == 4:
        np.add.at(v, index, value)
    elif how == 5:
        np.multiply.at(v, index, np.cos(value))
    elif how == 6:
        v[index] = v[index] * value
    else:
        v[index][...] = value  # of a copy where the index is of arrays


WHOLE: list[Callable[[Any, Any], Any]] = [
    lambda v, w: v.sort(axis=0),
    lambda v, w: v.sort(),
    lambda v, w: v.partition(v.shape[-1] // 2),
    lambda v, w: np.sin(w, out=v),
    lambda v, w: np.add(v, w, out=v),
    lambda v, w: np.multiply(v, 0.5, out=v, where=numbers(v) > 0),
    lambda v, w: np.add(w, 0.1, out=v, where=np.arange(v.shape[-1]) % 2 == 0),
    lambda v, w: np.sum(v, axis=0, out=v[0]),
    lambda v, w: np.cumsum(v, axis=0, out=v),
    lambda v, w: np.clip(v, -0.8, 0.9, out=v),
    lambda v, w: np.copyto(v, w),
    lambda v, w: np.copyto(v, w, where=numbers(v) > 0),
    lambda v, w: np.put(v, [0, -1, 0], w),
    lambda v, w: np.place(v, numbers(v) < 0, np.sin(w)),
    lambda v, w: np.putmask(v, numbers(v) > 0.2, w),
    lambda v, w: np.fill_diagonal(v, np.sin(w)),
    lambda v, w: v.fill(np.ravel(w)[0]),
    lambda v, w: operator.setitem(v.flat, slice(None, None, 2), np.sin(w)),
    lambda v, w: setattr(v, "flat", np.cos(w)),
    lambda v, w: setattr(v, "real", as_region(w, v.shape)),
    lambda v, w: np.modf(w, out=(v, None)),
    lambda v, w: np.concatenate([np.sin(w[1:]), w[:1] * 2], out=v),
    lambda v, w: np.add.accumulate(v, out=v),
    lambda v, w: np.maximum.reduce(v, axis=0, out=v[-1]),
    lambda v, w: np.negative(v, out=v[::-1]),
    lambda v, w: np.put_along_axis(v, np.argsort(numbers(v), axis=-1)[..., :1], as_region(w, (1,)), -1),
    lambda v, w: operator.setitem(v, slice(1, None), v[:-1]),
    lambda v, w: operator.setitem(v, [0, 1], v[[1, 0]]),
    lambda v, w: [operator.setitem(v, i, np.sin(v[i - 1]) + v[i]) for i in range(1, len(v))],
    lambda v, w: np.einsum("i,i->i", v, w, out=v),
    lambda v, w: np.add(v[1:], v[:-1], out=v[1:]),
    lambda v, w: np.take(w, [0] * len(v), axis=0, out=v),
]


def select(choices: Any, number: int) -> Any:
    return choices[number % len(choices)]


def step(values: list[Any], kind: int, a: int, b: int, c: int, d: int) -> None:
    """Run one instruction on the held values."""
    v, w = select(values, a), select(values, b)
    if kind == 0:
        values.append(select(VIEWS, c)(v))
    elif kind == 1:
        values.append(select(READS, c)(v, w))
    elif kind == 2:
        assign(v, w, select(INDICES, c)(v), d % 8)
    elif kind == 3:
        values[a % len(values)] = select(AUGMENTED, c)(v, w)
    elif isinstance(v, np.generic) or getattr(v, "is_scalar", False):
        raise TypeError("NumPy lets scalars be filled, and nothing changes")
    elif v is w and not v.flags.writeable:
        raise ValueError("NumPy copies nothing onto itself, and does not look whether it may")
    else:
        select(WHOLE, c)(v, w)


ERRORS = (ValueError, TypeError, IndexError, AttributeError)


def run(program: Program, inputs: tuple[Any, ...]) -> tuple[list[Any], list[int]]:
    """The values held at the end, and the instructions that raised."""
    values, raised = list(inputs), []
    for number, instruction in enumerate(program):
        try:
            step(values, *instruction)
        except ERRORS:
            raised.append(number)
    return values, raised


def total(values: list[Any]) -> Any:
    """A number that depends on everything held, on each element by its own weight."""
    out = 0.0
    for position, v in enumerate(values):
        out = out + np.sum(np.sin(v) * np.linspace(1, 2 + position, np.size(v)).reshape(np.shape(v)))
    return out


# ------------------------------------------------------------------------------------------- the tests

SHAPES: list[tuple[int, ...]] = [(3,), (4,), (2, 3), (3, 3), (1, 2), (2, 2, 2)]
instructions = st.tuples(st.integers(0, 4), st.integers(0, 11), st.integers(0, 11), st.integers(0, 63), st.integers(0, 7))
programs = st.lists(instructions, min_size=1, max_size=12)
shapes = st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)


def starting(shapes: list[tuple[int, ...]]) -> list[Array]:
    rng = np.random.default_rng(len(shapes))
    return [rng.uniform(-1.2, 1.2, shape) for shape in shapes]


def along(f: Callable[..., Any], args: list[Array], directions: list[Array], size: float) -> Any:
    """The difference quotient along a direction."""
    return (f(*[a + size * d for a, d in zip(args, directions, strict=True)]) - f(*args)) / size


def smooth_slope(f: Callable[..., Any], args: list[Array], directions: list[Array]) -> float | None:
    """The slope along a direction by central differences; None near a kink, or where the two sides disagree."""
    sides = [along(f, args, directions, size) for size in (1e-5, -1e-5, 2e-5, -2e-5)]
    here, there = (sides[0] + sides[1]) / 2, (sides[2] + sides[3]) / 2
    bound = 1e-3 * (1 + abs(here))
    if not np.isfinite(here) or abs(sides[0] - sides[1]) > bound or abs(here - there) > 1e-6 * (1 + abs(here)):
        return None
    return float(here)


def close(a: Any, b: Any, tolerance: float) -> bool:
    a, b = float(a), float(b)
    return abs(a - b) <= tolerance * (1 + abs(a) + abs(b)) or (np.isnan(a) and np.isnan(b))


def check(program: Program, shapes: list[tuple[int, ...]]) -> None:
    """Run a program on arrays, on nodes in both modes, and, some of them, for second derivatives."""
    args = starting(shapes)
    rng = np.random.default_rng(1)
    directions = [rng.uniform(-1, 1, a.shape) for a in args]
    originals = [a.copy() for a in args]
    expected, expected_raised = run(program, tuple(a.copy() for a in args))
    if not all(np.all(np.isfinite(e)) and np.max(np.abs(e), initial=0) < 1e3 for e in expected):
        return

    def f(*xs: Any) -> Any:
        values, raised = run(program, xs)
        assert raised == expected_raised
        for number, (actual, reference) in enumerate(zip(values, expected, strict=True)):
            assert np.shape(actual) == np.shape(reference)
            assert np.array_equal(actual, reference), number
        return total(values)

    def plain(*xs: Any) -> Any:
        return total(run(program, tuple(x.copy() for x in xs))[0])

    positions = tuple(range(len(args)))
    cotangents = grad(f, positions)(*args)
    reverse = sum(float(np.sum(g * d)) for g, d in zip(cotangents, directions, strict=True))
    value, tangent = jvp(f, args, directions)
    assert float(value) == float(plain(*args))
    assert close(reverse, tangent, 1e-10), (reverse, float(tangent))
    for carried, cotangent in zip(jacobians(f, args), cotangents, strict=True):
        size = 1e-10 * (1 + np.max(np.abs(cotangent), initial=0))
        np.testing.assert_allclose(carried, cotangent, rtol=0, atol=size)
    slope = smooth_slope(plain, args, directions)
    assert slope is None or close(reverse, slope, 1e-5), (reverse, slope)
    assert all(np.array_equal(a, k) for a, k in zip(args, originals, strict=True))
    if sum(sum(i) for i in program) % 4 == 0:
        check_second(program, args, directions)


def jacobians(f: Callable[..., Any], args: Any) -> list[Any]:
    """The derivatives of a number that are carried along."""
    if len(args) == 1:
        return [f(variables(*args)).jacobian]
    return f(*variables(*args)).jacobian  # type: ignore[no-any-return]


def check_second(program: Program, args: list[Array], directions: list[Array]) -> None:
    """The second derivative along a direction, in all mixtures of modes."""
    positions = tuple(range(len(args)))

    def f(*xs: Any) -> Any:
        return total(run(program, xs)[0])

    def dotted(vectors: Any) -> Any:
        return sum(np.sum(g * d) for g, d in zip(vectors, directions, strict=True))

    def reverse(*xs: Any) -> Any:
        return dotted(grad(f, positions)(*xs))

    def forward(*xs: Any) -> Any:
        return jvp(f, xs, directions)[1]

    def carried(*xs: Any) -> Any:
        return dotted(jacobians(f, xs))

    curvatures = {
        "forward over carried": jvp(carried, args, directions)[1],
        "reverse over carried": dotted(grad(carried, positions)(*args)),
        "forward over forward": jvp(forward, args, directions)[1],
        "forward over reverse": jvp(reverse, args, directions)[1],
        "reverse over forward": dotted(grad(forward, positions)(*args)),
        "reverse over reverse": dotted(grad(reverse, positions)(*args)),
    }
    numbers = {k: float(v) for k, v in curvatures.items()}
    first = next(iter(numbers.values()))
    assert all(close(first, n, 1e-9) for n in numbers.values()), numbers
    slope = smooth_slope(lambda *xs: float(forward(*xs)), args, directions)
    assert slope is None or close(first, slope, 1e-4), (numbers, slope)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
@pytest.mark.parametrize("search", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(1, SEARCHES))])
def test_in_place_random_programs(search: int) -> None:
    @FORM
    @given(programs, shapes)
    def whatever(program: Program, shapes: list[tuple[int, ...]]) -> None:
        with np.errstate(all="ignore"):
            check(program, shapes)

    (whatever if IS_LONG else seed(search)(whatever))()


def test_in_place_instructions_run_on_some_shape() -> None:
    with Failures("instructions") as failures:
        for kind, choices in ((0, VIEWS), (1, READS), (2, INDICES), (3, AUGMENTED), (4, WHOLE)):
            for number in range(len(choices)):
                for how in range(8 if kind == 2 else 1):
                    with failures.case(f"{(kind, number, how)}"):
                        assert any(not run([(kind, 0, 1, number, how)], tuple(starting([s, s])))[1] for s in SHAPES)
    assert isinstance(run([(0, 0, 0, 0, 0)], (cg.variable([1.0, 2.0]),))[0][1], cg.Node)
