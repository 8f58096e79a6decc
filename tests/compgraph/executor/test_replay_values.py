"""Replays with new values of the same shape: choices that depend on values are made again, or guarded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.reverse import gradients
from compgraph import GuardError
from tests.support.for_each import for_each, sampled


def total(z: Any) -> Any:
    """A real number; of complex numbers, of both parts."""
    return np.sum(np.real(z)) + 2 * np.sum(np.imag(z)) if np.iscomplexobj(z) else np.sum(z)


def fill_buffer(x: Any) -> Any:
    y = np.zeros_like(x)
    positive = x > 0
    y[positive] = np.log(x[positive])
    return y


def place_elements(x: Any) -> Any:
    y = x * 1
    y[np.argsort(x)[0]] = np.sqrt(np.abs(x[0]))
    return y * np.arange(3.0)


VECTORS = [[1.0, 2.0, 3.0], [3.0, 1.0, -2.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0], [2.0, 2.0, 1.0]]
SQUARE = [[[2.0, 1.0], [1.0, 3.0]], [[2.0, 1.0], [-1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]
TALL = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 0.0], [0.0, 1e-3], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]]
B = np.array([1.0, 2.0, 4.0])
W = np.arange(6.0).reshape(3, 2)
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{
        f"emath.{name}": (getattr(np.emath, name), [[0.1, 0.2], [-0.1, 2.0], [2.0, 3.0]])
        for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh")
    },
    "emath.power": (lambda x: np.emath.power(x, 1.5), [[1.0, 2.0], [-1.0, 2.0]]),
    "emath.logn": (lambda x: np.emath.logn(2.0, x), [[1.0, 2.0], [-1.0, 2.0]]),
    "eigvals": (lambda m: np.linalg.eigvals(m) ** 2, SQUARE),
    "eig": (lambda m: np.linalg.eig(m).eigenvalues[0], SQUARE),
    "eigh": (lambda m: np.linalg.eigh(m).eigenvalues ** 2, SQUARE),
    "eigenvectors": (lambda m: np.linalg.eigh(m).eigenvectors ** 2 * W[:2], SQUARE),
    "roots": (lambda c: np.roots(c) ** 2, [[1.0, -3.0, 2.0], [1.0, 2.0, 5.0], [0.0, -3.0, 2.0], [1.0, -3.0, 0.0]]),
    "pinv": (lambda m: np.linalg.pinv(m, rtol=0.01), TALL),
    "lstsq": (lambda m: np.linalg.lstsq(m, B, rcond=0.01)[0], TALL),
    "residuals": (lambda m: np.linalg.lstsq(m, B, rcond=0.01)[1], TALL),
    "svd": (lambda m: np.linalg.svd(m, full_matrices=False)[0] ** 2 * W, TALL),
    "singular values": (lambda m: np.linalg.svd(m, compute_uv=False) ** 3, TALL),
    "nuclear norm": (lambda m: np.linalg.norm(m, "nuc"), TALL),
    "det": (np.linalg.det, SQUARE),
    "norm": (np.linalg.norm, VECTORS),
    "trim_zeros": (np.trim_zeros, VECTORS),
    "piecewise": (lambda x: np.piecewise(x, [x > 1], [lambda t: t**2, lambda t: t * 3]), VECTORS),
    "polymul": (lambda x: np.polymul(x, [1.0, 2.0]) ** 2, VECTORS),
    "polydiv": (lambda x: np.polydiv(np.append(x, [1.0, 2.0]), [1.0, 2.0])[0] ** 2, VECTORS),
    "unique": (lambda x: np.unique(x) ** 2, VECTORS),
    "mask": (lambda x: np.log(x[x > 0]), VECTORS),
    "where": (lambda x: np.where(x > 0, np.log(x), 0.0), VECTORS),
    "select": (lambda x: np.select([x > 1, x > 0], [np.sqrt(x - 1), np.log(x)], x), VECTORS),
    "nan_to_num": (lambda x: np.nan_to_num(1 / x), VECTORS),
    "filled": (fill_buffer, VECTORS),
    "placed": (place_elements, VECTORS),
    "median": (np.median, VECTORS),
    "max": (lambda x: np.max(x, initial=1.5), VECTORS),
}


def with_derivatives(program: Callable[[Any], Any], x: Any) -> list[Any]:
    """A number, its gradient, and its second derivative if there are variables."""
    out = total(program(x))
    (slope,) = gradients(out, [x])
    weights = np.cos(np.arange(slope.size)).reshape(slope.shape)
    try:
        return [out, slope, *gradients(np.sum(slope * weights), [x])]
    except (TypeError, ValueError):
        return [out, slope]


@sampled
@for_each("name", PROGRAMS)
@for_each("options", [{}, {"fuse": True, "simplify": False}])
def test_replay_with_other_values_matches_eager_or_raises(name: str, options: dict[str, Any]) -> None:
    warnings.simplefilter("ignore")
    program, points = PROGRAMS[name]
    equal = 0
    for k in range(len(points)):
        cg.reset()
        x = cg.variable(points[k], "x")
        try:
            executor = cg.Executor(with_derivatives(program, x), **options)
        except np.linalg.LinAlgError:
            continue
        for point in 2 * (points[k:] + points[:k]):
            try:
                outputs = executor.run({x: point})
            except (GuardError, np.linalg.LinAlgError):
                continue
            eager = with_derivatives(program, cg.variable(point))
            for a, b in zip(outputs, eager, strict=True):
                np.testing.assert_allclose(a, b.value, rtol=1e-6, atol=1e-9)
            equal += 1
    assert equal >= len(points)


# ------------------------------------------------------------------------------------------------- random programs


def step(rng: np.random.Generator, v: Any, x: Any) -> Any:
    """A random step: an operation, a decision, an index by nodes, a write, or something that follows the layout."""
    kind = int(rng.integers(22))
    c = float(rng.normal())
    if kind == 0:
        v = np.sin(v) * 1.3 if np.sum(v) > c else np.cos(v) + 0.3
    elif kind == 1:
        s = v
        for _ in range(6):
            s = s * 0.9 + 0.1
        v = v + 1 if np.mean(s) > c else v * 2
    elif kind == 2:
        v = v * (1 + int(np.argmax(v)))
    elif kind == 3:
        v = v[np.argsort(v[:, 0])]
    elif kind == 4:
        v = np.where(v > c, v * v, v - 1)
    elif kind == 5:
        v = v * np.mean(v[v > c]) if np.any(v > c) else v - 0.5
    elif kind == 6:
        v = v * np.reshape(v.ravel("K"), v.shape)
    elif kind == 7:
        v = v + np.reshape(v, v.shape[::-1], order="A").T
    elif kind == 8:
        w = v * 1
        w[0] = v[1] * c
        v = w + v
    elif kind == 9:
        w = v * 1
        w.reshape(-1)[:2] = c
        v = w * v
    elif kind == 10:
        w = v * 1
        w[np.argmax(v[:, 0])] = v[0]
        v = w
    elif kind == 11:
        with cg.no_graph():
            decided = bool(np.max(x) > c)
        v = v * 2 if decided else v * 3
    elif kind == 12:
        v = np.sort(v, axis=0) * v
    elif kind == 13:
        (slope,) = gradients(np.sum(np.sin(v)), [x])
        v = v + slope
    elif kind == 14:
        big = cg.constant(c)
        v = v - big if np.min(v) < big else v + big
    elif kind == 15:
        while np.max(np.abs(v)) > 4:
            v = v / 2
    elif kind == 16:
        v = v * (2 if v.flags.c_contiguous else 3)
    elif kind == 17:
        q = np.linalg.eigh(np.matmul(v, v.T) + np.eye(len(v)))[0]
        v = v + 1 if q[-1] > 5 else v - 1
    elif kind == 18:
        v = np.clip(v, -2.0, c + 2)
    elif kind == 19:
        v = np.transpose(np.transpose(v) * 1.5)
    elif kind == 20:
        v = v * round(np.sum(v) % 3)
    else:
        buffer = cg.zeros(v.shape)
        buffer += v
        v = v * 2 if np.sum(buffer) > c else v * 0.5
    return v


def run_program(seed: int, x: Any) -> list[Any]:
    rng = np.random.default_rng(seed)
    v = x * 1.0 if rng.integers(2) else x
    for _ in range(int(rng.integers(1, 6))):
        v = step(rng, v, x)
        v = np.tanh(v) * 2 if rng.integers(3) == 0 else v
    out = np.sum(v * np.cos(np.arange(float(v.size))).reshape(v.shape))
    other = np.sum(v * v)
    chosen = out if rng.integers(2) or out > 0 else other
    return [chosen, *gradients(chosen, [x])]


def feed_values(rng: np.random.Generator) -> Any:
    point = rng.normal(size=(3, 4)) * rng.choice([0.3, 1.0, 3.0])
    return [point, np.asfortranarray(point), np.repeat(point, 2, axis=1)[:, ::2], point[::-1]][int(rng.integers(4))]


def outcomes(seed: int) -> list[str]:
    """The results of a random program in runs with other values and layouts."""
    rng = np.random.default_rng([seed, 1])
    cg.reset()
    recorded = feed_values(rng)
    is_variable = bool(rng.integers(2))
    x = cg.variable(recorded, "x", copy=False) if is_variable else cg.placeholder((3, 4), name="x", example=recorded)
    options = {"fuse": bool(rng.integers(2)), "simplify": bool(rng.integers(2)), "strict": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            executor = cg.Executor(run_program(seed, x), **options)
        except GuardError:
            return ["refused"]
        labels = []
        for _ in range(6):
            point = feed_values(rng)
            try:
                results = executor.run({x: point})
            except GuardError:
                labels.append("guarded")
                continue
            eager = run_program(seed, cg.variable(point, copy=False))
            same = all(np.allclose(a, b.value, rtol=1e-7, atol=1e-9, equal_nan=True) for a, b in zip(results, eager, strict=True))
            labels.append("equal" if same else "wrong")
    return labels


@for_each("first", [0], rest=range(40, 400, 40))
def test_replay_of_random_programs_matches_eager_or_raises(first: int) -> None:
    labels = {seed: outcomes(seed) for seed in range(first, first + 40)}
    assert not [seed for seed, each in labels.items() if "wrong" in each]
    assert sum(each.count("equal") for each in labels.values()) > 20
