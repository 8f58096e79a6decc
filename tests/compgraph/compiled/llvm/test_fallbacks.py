"""Options and operands that the compiler does not support: the program calls NumPy for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm import backend

X = np.random.default_rng(3).standard_normal((5, 6))
CALLED: dict[str, Callable[[Any], Any]] = {
    "pad by reflection": lambda x: np.pad(x, 1, mode="reflect"),
    "pad by means": lambda x: np.pad(x, 1, mode="mean", stat_length=2),
    "pad by several numbers": lambda x: np.pad(x, 1, constant_values=(1.0, 2.0)),
    "take beyond the end": lambda x: np.take(x, np.array([7, 40]), mode="wrap"),
    "take_along_axis at unsigned": lambda x: np.take_along_axis(x, np.zeros((5, 1), np.uint64), axis=1),
    "norm of order 3": lambda x: np.linalg.norm(x[0], 3),
    "norm of no numbers": lambda x: np.linalg.norm(x[:0], axis=0),
    "ptp along no axes": lambda x: np.ptp(x, axis=()),
    "var along no axes": lambda x: np.var(x, axis=()),
    "flatten in Fortran's order": lambda x: x.flatten("F"),
    "clip with a casting": lambda x: np.clip(x, 0.0, 1.0, casting="same_kind"),
    "trace of no elements": lambda x: np.trace(x[:0]),
    "max_pool of a large window": lambda x: cg.max_pool(np.tile(x, (2, 2)), (10, 10)),
    "mean_pool of a large window": lambda x: cg.mean_pool(np.tile(x, (2, 2)), (10, 10)),
    "gradient of a large window": ad.grad(lambda x: np.sum(cg.max_pool(np.tile(x, (2, 2)), (10, 10)))),
    "tangent of a large window": lambda x: ad.jvp(lambda x: cg.max_pool(np.tile(x, (2, 2)), (10, 10)), (x,), (np.cos(x),))[1],
    "einsum along a path": lambda x: np.einsum("ij,kj->ik", x, X, optimize=True),
    "cumulative_sum from zero": lambda x: np.cumulative_sum(x[0], include_initial=True),
}


def write_with_unit_axis(x: Any) -> Any:
    y = np.zeros(x.shape)
    y[0] = (x[1] * 2.0)[None]
    return y + x


EMPTY: dict[str, Callable[[Any], Any]] = {
    "any of no elements": lambda x: np.any(x[:0], axis=0),
    "all of no elements": lambda x: np.all(x[:0] > 0),
    "max of booleans": lambda x: np.max(x > 0, axis=0),
    "min of booleans": lambda x: np.min(x > 0, axis=1, keepdims=True),
    "a write with an axis of length one": write_with_unit_axis,
}


@for_each(("name", "is_called"), [*((name, True) for name in CALLED), *((name, False) for name in EMPTY)])
def test_fallback_unknown_options_and_operands_call_numpy(name: str, is_called: bool) -> None:
    function = (CALLED if is_called else EMPTY)[name]
    jitted = compiled(function, X)
    assert is_compiled(jitted), jitted.report()
    assert ("calls NumPy" in jitted.report()) == is_called, jitted.report()
    for x in (X, np.asfortranarray(X) * 2.0):
        result, expected = jitted(x), function(x)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-13, strict=True)


def test_fallback_complex_pooling_calls_numpy() -> None:
    x = X[:1] + 1j * X[1:2]
    jitted = compiled(lambda x: cg.mean_pool(x, (1, 2)), x)
    np.testing.assert_allclose(jitted(x), cg.mean_pool(x, (1, 2)), rtol=1e-13, strict=True)


@for_each("reduce", [np.sum, np.prod, np.mean, np.max, np.min, np.any, np.nansum, np.std])
def test_fallback_reduction_along_computed_axis(reduce: Callable[..., Any]) -> None:
    square = np.arange(9.0).reshape(3, 3)
    first, other = np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 0.5])
    x = cg.variable(first, "x")
    executor = cg.Executor(reduce(square * x, axis=np.argmax(x)), jit=True)
    for values in (first, other):
        np.testing.assert_allclose(executor.run({"x": values}), reduce(square * values, axis=np.argmax(values)))


def test_special_functions_raise_as_scipy_is_set(monkeypatch: Any) -> None:
    """Poles are silent by default, and computed by machine code; ``scipy.special.errstate`` is followed."""

    def f(x: Any) -> Any:
        return scipy.special.gammaln(x) * 2

    x = np.array([-1.0, 2.0, 0.5])
    jitted = compiled(f, x)
    assert "NumPy call" not in jitted.report()
    repeated: list[Any] = []
    run_with_numpy = backend.MachineProgram._run_with_numpy

    def note(program: Any, values: Any) -> Any:
        repeated.append(values)
        return run_with_numpy(program, values)

    monkeypatch.setattr(backend.MachineProgram, "_run_with_numpy", note)
    np.testing.assert_allclose(jitted(x), f(x))
    assert not repeated
    with scipy.special.errstate(singular="raise"):
        np.testing.assert_allclose(jitted(x[1:]), f(x[1:]))
        with pytest.raises(scipy.special.SpecialFunctionError, match="singularity"):
            jitted(x)
    np.testing.assert_allclose(jitted(x), f(x))


def reciprocal_distances(x: Any) -> Any:
    """The energy of bodies, as N-body programs write it."""
    distances = np.sqrt((x[:, None] - x) ** 2)
    is_apart = distances > 0
    distances[is_apart] = 1.0 / distances[is_apart]
    return np.sum(np.triu(distances, 1))


MASKED: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: np.where(x > 0, np.sqrt(x), 0).sum(),
    "power": lambda x: np.where(x > 0, x**0.3, 0).sum(),
    "arctan2": lambda x: np.where(x > 0, np.arctan2(x, 2 * x), 0).sum(),
    "arcsin": lambda x: np.where(x < 1, np.arcsin(np.minimum(x, 1)), 0).sum(),
    "norm": lambda x: np.where(x > 0, np.linalg.norm(np.stack([x, x]), axis=0), 0).sum(),
    "division by a selection": lambda x: np.where(x > 0, 1 / np.where(x > 0, x, 1), 0).sum(),
    "logarithm of a selection": lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0).sum(),
    "sinc": lambda x: np.where(x > 1e-12, np.sin(x) / np.where(x == 0, 1, x), 1).sum(),
    "unwrap": lambda x: np.where(x > 0, np.unwrap(x), 0).sum(),
    "reciprocal distances": reciprocal_distances,
}


@for_each("name", MASKED)
@for_each("size", [3, 17])
def test_masked_singularities_do_not_repeat_the_program(name: str, size: int, monkeypatch: Any) -> None:
    f = MASKED[name]
    x = np.linspace(0, 1, size)

    def fail(program: Any, values: Any) -> Any:
        raise AssertionError("the program was run as NumPy")

    for function in (f, ad.grad(f), ad.hessian(f)) if size == 3 else (f, ad.grad(f)):
        expected = function(x)
        jitted = compiled(function, x)
        assert is_compiled(jitted)
        with monkeypatch.context() as patch:
            patch.setattr(backend.MachineProgram, "_run_with_numpy", fail)
            np.testing.assert_allclose(jitted(x), expected, rtol=1e-13, atol=1e-13)


def row_products(values: Any, starts: Any, columns: Any, x: Any) -> Any:
    """A sparse matrix-vector product, row by row."""
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return np.sum(y**2)


def test_bounds_of_slices_are_checked_by_machine_code(monkeypatch: Any) -> None:
    values, x = np.arange(1.0, 8.0), np.array([0.5, 2.0, 1.0])
    starts, columns = np.array([0, 3, 4, 7]), np.array([0, 1, 2, 1, 0, 1, 2])
    gradient = ad.grad(row_products, argnums=(0, 3))
    jitted = compiled(gradient, values, starts, columns, x)
    other_starts = np.array([0, 2, 4, 7])
    expected = [gradient(values, s, columns, x) for s in (starts, other_starts)]
    with monkeypatch.context() as patch:
        patch.setattr(backend.MachineProgram, "_call_numpy", None)
        for result, number in zip(jitted(values, starts, columns, x), expected[0], strict=True):
            np.testing.assert_allclose(result, number, rtol=1e-14)
    for result, number in zip(jitted(values, other_starts, columns, x), expected[1], strict=True):
        np.testing.assert_allclose(result, number, rtol=1e-14)
