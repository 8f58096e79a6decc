"""Matrices with an axis of length zero: NumPy's values, and derivatives of the right shape."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

SHAPES = [(0, 0), (0, 3), (3, 0), (2, 0, 0), (2, 0, 3), (2, 3, 0), (0, 3, 3), (0, 2, 3), (0, 3, 2)]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np.linalg, name) for name in (
        "cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_rank", "norm", "pinv", "qr", "slogdet",
        "svd", "svdvals",
    )},
    **{f"qr, {mode}": lambda a, mode=mode: np.linalg.qr(a, mode) for mode in ("complete", "r", "raw")},
    **{f"norm, {ord}": lambda a, ord=ord: np.linalg.norm(a, ord, axis=(-2, -1)) for ord in ("fro", "nuc", 1, 2, -2, np.inf)},
    **{f"matrix_power, {n}": lambda a, n=n: np.linalg.matrix_power(a, n) for n in (-1, 0, 2)},
    "svd, reduced": lambda a: np.linalg.svd(a, full_matrices=False),
    "svd, values": lambda a: np.linalg.svd(a, compute_uv=False),
    "lstsq": lambda a: np.linalg.lstsq(a, np.ones(np.shape(a)[0]), rcond=None),
    "solve": lambda a: np.linalg.solve(a, np.ones((*np.shape(a)[:-1], 2))),
}  # fmt: skip


def results(result: Any) -> list[Any]:
    """All results of a function, as plain arrays."""
    return [np.asarray(x.value if isinstance(x, cg.Node) else x) for x in (result if isinstance(result, tuple) else [result])]


def floating(f: Callable[..., Any]) -> Callable[..., Any]:
    """The results that have derivatives, in a list."""
    return lambda *args: [x for x in (lambda r: r if isinstance(r, tuple) else (r,))(f(*args)) if x.dtype.kind in "fc"]


def check(f: Callable[..., Any], *args: Any) -> None:
    """Values and dtypes of recorded calls are NumPy's, errors too, and all derivatives can be had."""
    try:
        expected = results(f(*args))
    except (ValueError, np.linalg.LinAlgError) as error:
        with pytest.raises(type(error)):
            f(*map(cg.variable, args))
        return
    for actual, reference in zip(results(f(*map(cg.variable, args))), expected, strict=True):
        assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype)
        assert np.array_equal(actual, reference)
    outs = floating(f)(*args)
    if not outs:
        return
    values, pull = ad.vjp(floating(f), *args)
    for cotangent, x in zip(pull(list(map(np.ones_like, values))), args, strict=True):
        assert (cotangent.shape, cotangent.dtype) == (x.shape, x.dtype)
    _, tangents = ad.jvp(floating(f), args, args)
    for tangent, out in zip(tangents, outs, strict=True):
        assert tangent.shape == out.shape
        assert any(x.size for x in args) or not np.any(tangent)


@for_each("dtype", [float, complex])
@for_each("shape", SHAPES, ids=str)
@for_each("name", FUNCTIONS)
def test_empty_matrix_values_and_derivative_shapes(name: str, shape: tuple[int, ...], dtype: type) -> None:
    check(FUNCTIONS[name], np.ones(shape, dtype))


@for_each("sizes", [s for s in itertools.product([0, 1, 3], repeat=3) if 0 in s], ids=str)
def test_lstsq_of_empty_matrix(sizes: tuple[int, int, int]) -> None:
    """As NumPy's own test has it."""
    m, n, count = sizes
    a, b = np.arange(m * n).reshape(m, n) + 1.0, np.ones((m, count))
    x, residuals, rank, s = np.linalg.lstsq(cg.variable(a), cg.variable(b), rcond=None)
    assert x.shape == (n, count)
    assert residuals.shape == ((count,) if m > n else (0,))
    assert (rank, s.shape) == (np.linalg.matrix_rank(a), (min(m, n),))
    if m > n:
        assert np.allclose(residuals, np.sum((b - a @ x) ** 2, axis=0))
    check(lambda a, b: np.linalg.lstsq(a, b, rcond=None), a, b)
