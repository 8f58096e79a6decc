"""The cotangent of an element that was not selected is a structural zero, even when multiplied by nan or infinity.

Programs are compared with central differences of plain NumPy, which only see the branch that is taken.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient, gradients, structural_zeros
from autodiff.visualize.sweep_steps import backward
from tests.support.failures import Failures
from tests.support.for_each import for_each, sampled

Program = Callable[[Any], Any]
OBSERVED = np.array([1.0, np.nan, 3.0])
TABLE = np.array([[1.0, 2.0, 3.0], [np.nan, 1.0, np.inf]])
MASK = np.array([False, True, True])
X = np.array([0.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[MASK] = np.log(x)[MASK]
    return np.sum(np.sin(y))


def overwrite_selection(x: Any) -> Any:
    y = np.log(x) * x
    y[~MASK] = 2.0 * x[~MASK]
    return np.sum(y)


def copy_selection(x: Any) -> Any:
    y = np.zeros_like(x)
    np.copyto(y, np.log(x), where=MASK)
    return np.sum(y * y)


def add_in_place(x: Any) -> Any:
    y = np.ones_like(x)
    y += np.where(MASK, np.sqrt(x), x)
    y *= np.where(MASK, np.log(x), 1.0)
    return np.sum(y)


def loop_over_elements(x: Any) -> Any:
    """A loop over elements, as a page of a textbook has it."""
    roots = np.sqrt(x)
    return sum(np.exp(roots[i]) * x[i] for i in range(3) if MASK[i])


SELECTING: dict[str, Program] = {
    "where": lambda x: np.sum(np.where(MASK, np.log(x), 0.0)),
    "where of a comparison": lambda x: np.sum(np.where(x > 1, np.log(x), 3 * x)),
    "where, other branch": lambda x: np.sum(np.where(~MASK, x * x, np.sqrt(x) * np.exp(np.sqrt(x)))),
    "where of a number": lambda x: np.where(x[1] > 0.1, np.sqrt(x[1]), 0.0) + np.where(x[0] > 0.1, np.sqrt(x[0]), 0.0),
    "where within where": lambda x: np.sum(np.where(MASK, np.where(x > 2.5, 1 / x, np.log(x)), x)),
    "where, one condition for all": lambda x: np.sum(np.where(np.sum(x) > 10, np.log(x), x**2)),
    "norm at a row": lambda x: np.sum(np.where(MASK, np.sqrt(np.sum(np.stack([x, 2 * x], 1) ** 2, axis=1)), 0.0)),
    "mask": lambda x: np.sum(np.log(x)[MASK]),
    "mask of a comparison": lambda x: np.sum(np.log(x)[x > 1] ** 2),
    "slice": lambda x: np.sum(np.log(x)[1:]),
    "integer": lambda x: np.sqrt(x)[2] * x[0],
    "fancy": lambda x: np.sum(np.log(x)[[1, 2, 1]]),
    "rows": lambda x: np.sum(np.log(np.stack([x, x + 1]))[:, [1, 2]]),
    "loop": loop_over_elements,
    "take": lambda x: np.sum(np.take(np.log(x), [2, 1])),
    "extract": lambda x: np.sum(np.extract(MASK, np.log(x))),
    "compress": lambda x: np.sum(np.compress(MASK, np.log(x))),
    "delete": lambda x: np.sum(np.delete(np.log(x), 0)),
    "choose": lambda x: np.sum(np.choose([0, 1, 1], [x, np.log(x)])),
    "select": lambda x: np.sum(np.select([MASK, ~MASK], [np.log(x), 2 * x])),
    "piecewise": lambda x: np.sum(np.piecewise(x, [MASK, ~MASK], [lambda z: np.log(z), lambda z: 2 * z])),
    "maximum": lambda x: np.sum(np.maximum(np.cbrt(x), 1.0)),
    "minimum": lambda x: np.sum(np.minimum(-np.cbrt(x), -1.0)),
    "fmax": lambda x: np.sum(np.fmax(np.log(x), -1.0)),
    "clip": lambda x: np.sum(np.clip(np.cbrt(x), 1.0, 1.3)),
    "relu": lambda x: np.sum(cg.relu(np.cbrt(x) - 1)),
    "max": lambda x: np.max(np.cbrt(x)),
    "max pool": lambda x: np.sum(cg.max_pool(np.cbrt(np.concatenate([x, x[1:2] / 2])), 2)),
    "ptp": lambda x: np.ptp(np.concatenate([np.cbrt(x), [-1.0]])),
    "median": lambda x: np.median(np.cbrt(x)),
    "sort": lambda x: np.sum(np.sort(np.cbrt(x))[1:] ** 3),
    "sum(where=)": lambda x: np.sum(np.log(x), where=MASK),
    "add.reduce(where=)": lambda x: np.add.reduce(np.log(x), where=MASK),
    "mean(where=)": lambda x: np.mean(np.log(x), where=MASK),
    "var(where=)": lambda x: np.var(np.log(x), where=MASK),
    "std(where=)": lambda x: np.std(np.log(x), where=MASK),
    "prod(where=)": lambda x: np.prod(np.sqrt(x), where=MASK),
    "max(where=)": lambda x: np.max(np.sqrt(x), where=MASK, initial=-1.0),
    "log(where=, out=)": lambda x: np.sum(np.log(x, where=MASK, out=np.zeros_like(x)) * x),
    "nansum": lambda x: np.nansum((OBSERVED - x) ** 2),
    "nanmean": lambda x: np.nanmean((OBSERVED - x) ** 2),
    "nanmean along an axis": lambda x: np.sum(np.nanmean((TABLE[:, :2] - x[:2]) ** 3, axis=0)),
    "nanvar": lambda x: np.nanvar((OBSERVED - x) ** 2),
    "nanstd": lambda x: np.nanstd((OBSERVED - x) ** 3),
    "nanprod": lambda x: np.nanprod((OBSERVED - x) ** 2),
    "nanmax": lambda x: np.nanmax(OBSERVED * x),
    "nanmin": lambda x: np.nanmin(OBSERVED * np.cos(x)),
    "nanmedian": lambda x: np.nanmedian(OBSERVED * np.cos(x)),
    "nanquantile": lambda x: np.nanquantile(OBSERVED * np.cos(x), 0.3),
    "nanpercentile": lambda x: np.nanpercentile(OBSERVED * np.cos(x), [20, 70]).sum(),
    "nancumsum": lambda x: np.sum(np.nancumsum(OBSERVED * x) ** 2),
    "nancumprod": lambda x: np.sum(np.nancumprod(OBSERVED * (x + 1))),
    "nan_to_num": lambda x: np.sum(np.nan_to_num(OBSERVED * x * x)),
    "written": written,
    "overwritten": overwrite_selection,
    "copyto": copy_selection,
    "added in place": add_in_place,
    "reshaped": lambda x: np.sum(np.where(MASK.reshape(3, 1), np.reshape(np.log(x), (3, 1)) * x, 0.0)),
    "turned": lambda x: np.sum(np.stack([np.log(x), np.sqrt(x)], axis=1).T[:, 1:] ** 2),
    "rolled": lambda x: np.sum(np.roll(np.log(x), 1)[[0, 2]] ** 2),
    "repeated": lambda x: np.sum(np.where(np.repeat(MASK, 2), np.repeat(np.log(x), 2), 0.0)),
    "accumulated": lambda x: np.sum(np.where([True, True, False], np.cumsum(np.log(x)[::-1]), 0.0)),
    "padded": lambda x: np.sum(np.pad(np.log(x), (2, 1))[3:] ** 2),
    "concatenated": lambda x: np.sum(np.concatenate([np.log(x), x])[1:] ** 2),
    "broadcast": lambda x: np.sum(np.where(MASK, np.log(x) * np.array([[1.0], [2.0]]), x)),
    "power": lambda x: np.sum(np.where(MASK, x**-1.0 + x**0.5, 0.0)),
    "power of the second derivative": lambda x: np.sum(np.where(MASK, x**1.5, 0.0)),
    "division": lambda x: np.sum(np.where(MASK, np.sin(x) / x, 1.0)),
    "arctan2": lambda x: np.sum(np.where(MASK, np.arctan2(x * x, x), 0.0)),
    "rows of a product": lambda x: np.sum((TABLE @ x)[[0]] ** 2),
    "columns of a product": lambda x: np.sum(np.einsum("ij,j->i", TABLE, x * x)[:1]),
    "a product of selected": lambda x: np.dot(np.log(x)[1:], x[:2]),
    "checkpoint": lambda x: np.sum(np.where(MASK, ad.checkpoint(np.log)(np.sqrt(x)), 0.0)),
    "within a checkpoint": lambda x: np.sum(ad.checkpoint(lambda z: np.where(MASK, np.log(z), z))(x) ** 2),
}


def difference(f: Program, x: Any, h: float = 1e-6) -> Any:
    """Central differences of a function of plain arrays, a row for each element of its result."""
    with cg.no_graph():
        columns = [(np.asarray(f(x + h * e)) - np.asarray(f(x - h * e))) / (2 * h) for e in basis(x)]
    return np.moveaxis(np.array(columns), 0, -1).reshape(*np.shape(columns[0]), *x.shape)


def basis(x: Any) -> Any:
    return np.eye(x.size).reshape(-1, *x.shape)


def along_each(f: Program, x: Any) -> Any:
    tangents = np.stack([f(e) for e in basis(x)])
    return np.reshape(tangents, (*x.shape, *tangents.shape[1:]))


FIRST: dict[str, Callable[[Program, Any], Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "vjp": lambda f, x: ad.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f, x: along_each(lambda e: ad.jvp(f, (x,), (e,))[1], x),
    "jacrev": lambda f, x: ad.jacrev(f)(x),
    "jacfwd": lambda f, x: ad.jacfwd(f)(x),
    "gradient": lambda f, x: (lambda v: gradient(f(v), v)[v])(cg.variable(x)),
    "gradients": lambda f, x: (lambda v: gradients(f(v), [v])[0].value)(cg.variable(x)),
    "linearize": lambda f, x: along_each(ad.linearize(f, x)[1], x),
}
SECOND: dict[str, Callable[[Program, Any], Any]] = {
    "hessian": lambda f, x: ad.hessian(f)(x),
    "hvp": lambda f, x: along_each(lambda e: ad.hvp(f)(x, e), x),
    "jacrev of grad": lambda f, x: ad.jacrev(ad.grad(f))(x),
    "jacfwd of grad": lambda f, x: ad.jacfwd(ad.grad(f))(x),
    "grad of jvp": lambda f, x: along_each(lambda e: ad.grad(lambda z: ad.jvp(f, (z,), (e,))[1])(x), x),
    "jvp of grad": lambda f, x: along_each(lambda e: ad.jvp(ad.grad(f), (x,), (e,))[1], x),
    "jvp of jvp": lambda f, x: along_each(
        lambda e: along_each(lambda d: ad.jvp(lambda z: ad.jvp(f, (z,), (e,))[1], (x,), (d,))[1], x), x
    ),
    "grad of grad": lambda f, x: along_each(lambda e: ad.grad(lambda z: np.sum(ad.grad(f)(z) * e))(x), x),
}


def point(name: str) -> Any:
    return np.array([0.5, 1.0, 2.0]) if name.startswith("nan") else X


class TestSelections:
    @sampled
    @for_each("how", FIRST)
    @for_each("name", SELECTING)
    def test_selection_first_derivative_matches_difference(self, name: str, how: str) -> None:
        f, x = SELECTING[name], point(name)
        derivative = FIRST[how](f, x)
        assert np.shape(derivative) == x.shape
        np.testing.assert_allclose(derivative, difference(f, x), rtol=1e-5, atol=1e-7)

    @sampled
    @for_each("how", SECOND)
    @for_each("name", SELECTING)
    def test_selection_second_derivative_matches_difference(self, name: str, how: str) -> None:
        f, x = SELECTING[name], point(name)
        np.testing.assert_allclose(SECOND[how](f, x), difference(ad.grad(f), x), rtol=1e-4, atol=1e-5)

    @for_each("name", ["where", "slice", "nansum", "written", "sum(where=)", "power of the second derivative"])
    def test_selection_third_derivative_matches_difference(self, name: str) -> None:
        f, x = SELECTING[name], point(name)
        third = ad.jacrev(ad.hessian(f))(x)
        np.testing.assert_allclose(third, difference(ad.hessian(f), x), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ad.jacrev(ad.jacrev(ad.grad(f)))(x), third)

    @for_each("name", SELECTING)
    def test_selection_keeps_float32(self, name: str) -> None:
        f, x = SELECTING[name], point(name)
        derivative = ad.grad(f)(x.astype(np.float32))
        assert derivative.dtype == np.float32
        np.testing.assert_allclose(derivative, ad.grad(f)(x), rtol=2e-4, atol=1e-5)

    def test_selection_jacobian_matches_difference(self) -> None:
        def f(x: Any) -> Any:
            return np.where(MASK, np.log(x), x[::-1])

        for jacobian in (ad.jacrev, ad.jacfwd, ad.jacobian):
            np.testing.assert_allclose(jacobian(f)(X), difference(f, X), rtol=1e-6)
        np.testing.assert_allclose(ad.jacobian(f, sparse=True)(X).toarray(), difference(f, X), rtol=1e-6)

    def test_selection_of_empty_and_scalar_arrays(self) -> None:
        def f(x: Any) -> Any:
            return np.sum(np.where(x > 0, np.log(x), 0.0))

        assert ad.grad(f)(np.zeros((0, 3))).shape == (0, 3)
        assert ad.grad(f)(0.0) == 0
        assert ad.grad(ad.grad(f))(np.float64(0)) == 0
        assert ad.grad(lambda x: np.nansum(x * np.full((2, 0), np.nan)) + np.where(x > 0, np.sqrt(x), x))(0.0) == 1

    def test_selection_of_complex_numbers(self) -> None:
        def f(z: Any) -> Any:
            return np.sum(np.abs(np.where(MASK, np.log(z), 0) ** 2))

        def safe(z: Any) -> Any:
            return np.sum(np.abs(np.where(MASK, np.log(np.where(MASK, z, 1)), 0) ** 2))

        z = X + 0j
        np.testing.assert_allclose(ad.grad(f)(z), ad.grad(safe)(z))

    def test_nanmean_without_nan_equals_mean(self) -> None:
        assert ad.grad(lambda x: np.nanmean((x - 1.0) ** 2))(X).tolist() == ad.grad(lambda x: np.mean((x - 1.0) ** 2))(X).tolist()

    def test_nanmean_of_all_nan_keeps_shape(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of an empty slice
            derivative = ad.grad(lambda x: np.nanmean(np.full(3, np.nan) * x))(X)
        assert derivative.shape == (3,)


GENUINE: dict[str, tuple[Program, list[float]]] = {
    "exp(log)": (lambda x: np.sum(np.exp(np.log(x))), [0.0, 2.0]),
    "0 * log": (lambda x: np.sum(x * np.log(x) * 0.0), [0.0, 2.0]),
    "a bool times": (lambda x: np.sum((x > 0) * np.log(x)), [0.0, 2.0]),
    "sqrt of a square": (lambda x: np.sum(np.sqrt(x * x)), [0.0, 2.0]),
    "0 * infinity": (lambda x: np.sum(np.where(x >= 0, x * np.inf * 0.0, 0.0)), [0.0, 2.0]),
    "nan in the branch that is taken": (lambda x: np.sum(np.where(x >= 0, np.exp(np.log(x)), 0.0)), [0.0, 2.0]),
    "both branches reach it": (lambda x: (lambda y: np.sum(np.where(x > 0, y, 2 * y)))(np.exp(np.log(x))), [0.0, 2.0]),
    "reached by another way too": (lambda x: (lambda y: np.sum(np.where(x > 0, y, 0) + np.exp(y)))(np.log(x)), [0.0, 2.0]),
    "selected": (lambda x: np.sum(np.exp(np.log(x))[[0, 1]]), [0.0, 2.0]),
    "selected by one, not by another": (lambda x: (lambda y: np.sum(y[1:]) + y[0])(np.exp(np.log(x))), [0.0, 2.0]),
    "selected zeros times": (lambda x: np.sum(np.where(x > 0, x, 0.0) * np.log(x)), [0.0, 2.0]),
    "maximum of it": (lambda x: np.sum(np.maximum(np.exp(np.log(x)), -1.0)), [0.0, 2.0]),
    "sum without nan": (lambda x: np.nansum(np.exp(np.log(x))), [0.0, 2.0]),
    "square of zero": (lambda x: np.sum(np.where(x < 5, np.sqrt(x**2), 0.0)), [0.0, 2.0]),
    "mixed by a product": (lambda x: np.sum((np.array([[1.0, np.nan], [1.0, 1.0]]) @ x)[:1]), [1.0, 2.0]),
    "a written zero": (lambda x: (lambda y: np.sum(np.exp(y)))(np.log(x).copy()), [0.0, 2.0]),
    "zero cotangent": (lambda x: np.sum(np.array([0.0, 1.0]) * np.sqrt(x)), [0.0, 4.0]),
    "variance of equal elements": (lambda x: np.sum(np.sqrt(np.nanvar(np.stack([x, x]), axis=0))), [1.0, 2.0]),
    "difference of equal losses": (lambda x: np.sum(np.diff(np.sqrt(x)[[0, 0]])) + x[1], [0.0, 4.0]),
}


class TestGenuine:
    """Computed zeros that are used follow floating-point arithmetic."""

    @for_each("how", ["grad", "gradient", "gradients"])
    @for_each("name", GENUINE)
    def test_genuine_nan_stays(self, name: str, how: str) -> None:
        f, x = GENUINE[name]
        derivative = FIRST[how](f, np.array(x))
        assert np.isnan(derivative).any(), derivative

    def test_genuine_infinity_stays(self) -> None:
        assert ad.grad(lambda x: np.sum(np.where(x >= 0, np.sqrt(x), 0.0)))(np.array([0.0, 4.0])).tolist() == [np.inf, 0.25]

    def test_structural_zero_affects_unselected_element_only(self) -> None:
        derivative = ad.grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)) + np.exp(np.log(x[2])))(np.array([0.0, 2.0, 0.0]))
        assert derivative[:2].tolist() == [0.0, 0.5]
        assert np.isnan(derivative[2])

    def test_zero_in_user_cotangent_is_genuine(self) -> None:
        _, pull = ad.vjp(np.sqrt, np.array([0.0, 4.0]))
        (cotangent,) = pull(np.array([0.0, 1.0]))
        assert np.isnan(cotangent[0])
        assert cotangent[1] == 0.25
        _, tangent = ad.jvp(np.sqrt, (np.array([0.0, 4.0]),), (np.array([0.0, 1.0]),))
        assert np.isnan(tangent[0])

    def test_jacobian_basis_zeros_are_structural(self) -> None:
        for jacobian in (ad.jacrev, ad.jacfwd, ad.jacobian):
            assert jacobian(np.sqrt)(np.array([0.0, 4.0])).tolist() == [[np.inf, 0.0], [0.0, 0.25]]
        x = cg.variable([0.0, 4.0])
        assert ad.reverse.jacobian(np.sqrt(x), x).tolist() == [[np.inf, 0.0], [0.0, 0.25]]

        def buffered(x: Any) -> Any:
            y = np.zeros_like(x)
            y[:] = np.sqrt(x)
            return y

        assert ad.jacrev(buffered)(np.array([0.0, 4.0])).tolist() == [[np.inf, 0.0], [0.0, 0.25]]

    def test_relu_slope_at_corner_is_genuine(self) -> None:
        assert np.isnan(ad.grad(lambda x: cg.relu(np.sqrt(x)))(0.0))

    def test_selected_rows_keep_nan(self) -> None:
        def f(w: Any) -> Any:
            return np.sum((TABLE @ w)[1:])

        assert np.isnan(ad.grad(f)(X)[0])
        assert np.isinf(ad.grad(f)(X)[2])


class TestHowItIsDone:
    def test_sweep_without_nan_computes_no_supports(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(structural_zeros, "_compute_supports", lambda *args: pytest.fail("supports were computed"))
        x = np.array([1.0, 2.0, 3.0])
        for name, f in SELECTING.items():
            if not name.startswith("nan") and "product" not in name and name != "relu":
                assert np.isfinite(ad.grad(f)(x)).all()

    def test_unselected_element_does_not_warn(self) -> None:
        with np.errstate(all="ignore"):
            x = cg.variable(X)
            y = np.sum(np.where(MASK, np.log(x) * np.sqrt(x), 0.0))
        with np.errstate(all="warn"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(gradient(y)[x]).all()
        with np.errstate(all="raise"):
            assert np.isfinite(gradient(y)[x]).all()

    def test_selected_element_warns(self) -> None:
        x = cg.variable(X)
        y = np.sum(np.where(~MASK, np.sqrt(x), np.log(x)))
        with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match="divide by zero in the derivative of sqrt"):
            assert gradient(y)[x][0] == np.inf
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            gradient(y)
        z = np.sum(np.where(x >= 0, np.exp(np.log(x)), np.sqrt(x)))
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="invalid value in the derivative of"):
            gradient(z)

    def test_debug_accepts_structural_zeros(self) -> None:
        with cg.debug():
            derivative = ad.grad(lambda x: np.sum(np.where(MASK, np.sqrt(x), 0.0)))(X)
        np.testing.assert_allclose(derivative, [0, 0.5 / np.sqrt(2), 0.5 / np.sqrt(3)])

    def test_recorded_sweep_is_freed_with_graph(self) -> None:
        gc.collect()
        before = len(structural_zeros._sweeps_by_seed)
        x = cg.variable(X + 1)
        g = gradient(np.sum(np.log(x)[1:]), x, create_graph=True)[x]
        assert len(structural_zeros._sweeps_by_seed) == before + 1
        del g, x
        gc.collect()
        assert len(structural_zeros._sweeps_by_seed) == before

    def test_structural_zeros_of_element_loop_are_linear(self) -> None:
        """Supports of pieces are put together as pieces are."""

        def f(x: Any) -> Any:
            roots = np.sqrt(x)
            return sum(roots[i] for i in range(1, x.size))

        x = np.arange(3000.0)
        np.testing.assert_allclose(ad.grad(f)(x), [0, *(0.5 / np.sqrt(x[1:]))])


class TestReplay:
    @for_each("recorded_at", [[1.0, 2.0], [0.0, 2.0]])
    def test_executor_replays_structural_zeros(self, recorded_at: list[float]) -> None:
        x = cg.variable(recorded_at, "x")
        f = np.sum(np.where(x > 0, np.sqrt(x) * np.log(x), 0.0))
        (g,) = gradients(f, [x])
        (h,) = gradients(g, [x])
        run = cg.Executor([g, h]).run
        for values in ([1.0, 2.0], [0.0, 2.0], [3.0, 0.0], [0.0, 0.0], [3.0, 4.0]):
            first, second = run({x: np.array(values)})
            z = np.array(values)
            safe = np.where(z > 0, z, 1)
            np.testing.assert_allclose(first, np.where(z > 0, (np.log(safe) / 2 + 1) / np.sqrt(safe), 0))
            np.testing.assert_allclose(second, np.where(z > 0, -np.log(safe) / (4 * safe**1.5), 0), atol=1e-15)

    def test_executor_replays_genuine_nan(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        (g,) = gradients(np.sum(np.exp(np.log(x))[:1]) + np.sum(np.log(x)[1:]), [x])
        outputs = cg.Executor(g).run({x: np.array([0.0, 2.0])})
        assert np.isnan(outputs[0])
        assert outputs[1] == 0.5

    def test_executor_placeholders_and_checkpoints(self) -> None:
        x = cg.placeholder((None,), name="x")
        (g,) = gradients(np.sum(np.where(x > 0, ad.checkpoint(np.log)(np.sqrt(x)), 0.0)), [x])
        run = cg.Executor(g).run
        for values in ([1.0, 2.0], [0.0, 2.0], [4.0, 0.0, 1.0]):
            z = np.array(values)
            np.testing.assert_allclose(run({x: z}), np.where(z > 0, 0.5 / np.where(z > 0, z, 1), 0))


# ------------------------------------------------------------------------------------- random programs

SINGULAR: list[Program] = [
    np.log, np.sqrt, lambda x: x**-1.0, lambda x: x**0.5, lambda x: 1 / x, lambda x: np.sin(x) / x, lambda x: np.log(x) * x,
    lambda x: np.arctan2(x, x * x), lambda x: np.sqrt(x * x), lambda x: np.abs(x) ** 0.3, lambda x: x**1.5, lambda x: np.log2(x),
    lambda x: np.hypot(x, 0.0) / x, lambda x: np.cbrt(x), lambda x: np.float_power(x, 0.7), lambda x: np.reciprocal(x),
]  # fmt: skip
SMOOTH: list[Program] = [
    np.sin, lambda x: np.exp(-x * x), lambda x: x * 1.5 + 0.5, np.tanh, lambda x: x / (1 + x * x), lambda x: -x, np.arctan,
    lambda x: np.sqrt(x * x + 1), lambda x: np.square(x) * 0.1, lambda x: x.astype(x.dtype),
]  # fmt: skip
MOVES: list[Program] = [
    lambda a: a, lambda a: a[::-1], lambda a: np.reshape(a, (-1,)), lambda a: np.stack([a, a], axis=-1), np.transpose,
    lambda a: np.roll(a, 1), lambda a: np.concatenate([a, a[:1]]), lambda a: np.repeat(a, 2, axis=0), lambda a: a[..., None],
    lambda a: np.broadcast_to(a, (2, *a.shape)), lambda a: np.tile(a, 2), lambda a: np.expand_dims(a, 0), np.ravel,
]  # fmt: skip


def _write(bad: Any, mask: Any, good: Any) -> Any:
    array = np.zeros_like(bad)
    array[mask] = bad[mask]
    array[~mask] += good[~mask]
    return array


def _overwrite(bad: Any, mask: Any, good: Any) -> Any:
    array = bad * 1.0
    array[~mask] = good[~mask]
    return array


CHOICES: list[Callable[[Any, Any, Any], Any]] = [
    lambda bad, mask, good: np.where(mask, bad, good),
    lambda bad, mask, good: np.where(~mask, good, bad),
    lambda bad, mask, good: bad[mask] if mask.any() else good,
    lambda bad, mask, good: np.sum(bad, where=mask) * np.sum(good),
    lambda bad, mask, good: np.nansum(np.where(mask, bad, np.nan), axis=0) + np.sum(good),
    lambda bad, mask, good: np.compress(np.ravel(mask), bad) if mask.any() else good,
    lambda bad, mask, good: np.select([mask], [bad], 0.0) + good,
    lambda bad, mask, good: np.take(bad, np.flatnonzero(mask)) if mask.any() else good,
    _write,
    _overwrite,
]  # fmt: skip


def random_program(seed: int) -> tuple[Program, Any]:
    """A program with operations that are singular at elements which are not selected."""
    rng = np.random.default_rng(seed)

    def pick(options: list[Any]) -> Any:
        return options[rng.integers(len(options))]

    shape = [(3,), (2, 2), (4,), (1, 3)][rng.integers(4)]
    x = rng.uniform(0.5, 2.0, shape)
    mask = rng.random(shape) < 0.6
    x[~mask] = 0.0
    singular, choice, move = pick(SINGULAR), pick(CHOICES), pick(MOVES)
    before, between, after, other = pick(SMOOTH[3:7]), pick(SMOOTH), pick(SMOOTH), pick(SMOOTH)
    twice = rng.random() < 0.4
    odd = rng.random() < 0.3
    moved_mask = np.array(move(mask))

    def f(x: Any) -> Any:
        zero = np.tanh(x) if before in (np.tanh, np.arctan) else x
        bad = between(singular(zero))
        bad = move(bad * np.sqrt(x) if odd else bad)
        bad = between(bad) if twice else bad
        chosen = choice(bad, moved_mask, move(other(x)))
        return np.sum(after(chosen)) + np.sum(np.sin(x))

    return f, x


class TestRandomPrograms:
    @pytest.mark.parametrize("first", [0, *[pytest.param(k, marks=pytest.mark.exhaustive) for k in range(20, 240, 20)]])
    def test_random_programs_first_and_second_derivatives(self, first: int) -> None:
        with Failures("random programs") as failures:
            for seed in range(first, first + 20):
                with failures.case(f"seed {seed}"):
                    self.check(seed)

    def check(self, seed: int) -> None:
        f, x = random_program(seed)
        expected = difference(f, x)
        for how in ("grad", "jacrev", "gradients", "jvp"):
            np.testing.assert_allclose(FIRST[how](f, x), expected, rtol=1e-4, atol=1e-6, err_msg=how)
        expected = difference(ad.grad(f), x)
        for how in ("hessian", "hvp", "jacfwd of grad", "grad of jvp"):
            np.testing.assert_allclose(SECOND[how](f, x), expected, rtol=1e-3, atol=1e-4, err_msg=how)


def test_animate_shows_no_nan_of_structural_zeros() -> None:
    with np.errstate(all="ignore"):
        x = cg.variable([0.0, 2.0], "x")
        y = np.sum(np.where(x > 0, np.sqrt(x), 0.0))
        steps = backward(y, None, None).steps
    assert all(np.isfinite(step.contribution).all() for step in steps)


@for_each("scale", [1e200, 1e-200])
def test_nan_search_sets_no_floating_point_flags(scale: float) -> None:
    x = np.ones(3)
    with np.errstate(all="raise"):
        assert np.array_equal(ad.grad(lambda x: np.sum(x) * scale)(x), np.full(3, scale))
        assert np.array_equal(ad.jacobian(lambda x: x * scale)(x), np.eye(3) * scale)
        assert np.array_equal(ad.jacfwd(lambda x: x * scale)(x), np.eye(3) * scale)
        assert np.array_equal(ad.hessian(lambda x: np.sum(x * x) * scale)(x), np.eye(3) * 2 * scale)
        assert np.array_equal(ad.vmap(ad.grad(lambda x: x * scale))(x), np.full(3, scale))


@for_each("value", [np.nan, complex(1, np.nan), np.float16(np.nan)])
def test_nan_search_detects_every_shape(value: Any) -> None:
    for shape in ((3,), (2, 3), (1, 2, 2)):
        array = np.full(shape, 1e4, np.asarray(value).dtype)
        assert not structural_zeros.contains_nan([None, array, array.T])
        array[(..., -1)] = value
        assert structural_zeros.contains_nan([None, array.T])
        assert structural_zeros.contains_nan([(array, np.zeros(2))])
    assert structural_zeros.contains_nan([np.asarray(value)])


def real_part_overwritten(z: Any) -> Any:
    y = z * 1
    y.real[...] = 3.0
    return (y * y).imag.sum()


def imaginary_part_computed(z: Any) -> Any:
    y = z * 1
    y.imag = z.real
    return (y * y * z).imag.sum()


def parts_of_elements(z: Any) -> Any:
    y = np.zeros(3, complex)
    y[:2] = z[:2]
    y.real[1] = z[2].imag
    return (np.abs(y) ** 2).sum()


def parts_by_views(z: Any) -> Any:
    y = z * 1
    real = y.real
    real[0] = z[1].real * 2
    y[2] = y[0] * y[1]
    y.imag[1:] *= 3
    return (y**3).real.sum()


def parts_gathered(z: Any) -> Any:
    y = z * 1
    y.imag[:] = 0
    return y[np.array([0, 1, 1])].real.sum() + (y.imag * z.real).sum()


def parts_of_slices(z: Any) -> Any:
    y = z * (1 + 1j)
    y.real = 0
    return (y[0] * y[1] * y[2]).real + (y[::2] ** 2).imag.sum()


@for_each(
    "program",
    [real_part_overwritten, imaginary_part_computed, parts_of_elements, parts_by_views, parts_gathered, parts_of_slices],
)
def test_structural_zeros_of_one_part_keep_the_other(program: Program) -> None:
    """A write into one part of complex numbers clears no cotangent of the other."""
    rng = np.random.default_rng(1)
    z, direction = (rng.standard_normal(3) + 1j * rng.standard_normal(3) for _ in range(2))

    def with_masked_infinity(z: Any) -> Any:
        return program(z) + np.where(z.real > 50, np.sqrt(z.real - z.real), 0).sum()

    expected = np.zeros(3, complex)
    for k in range(3):
        for unit in (1, 1j):
            step = 1e-6 * unit * (np.arange(3) == k)
            expected[k] += (program(z + step) - program(z - step)) / 2e-6 / unit
    np.testing.assert_allclose(ad.grad(program)(z), expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ad.grad(with_masked_infinity)(z), expected, rtol=1e-7, atol=1e-8)
    jitted = cg.jit(ad.grad(with_masked_infinity), cache=False).compile(z)
    assert "program 1" in jitted.report(), jitted.report()
    np.testing.assert_allclose(jitted(z), expected, rtol=1e-7, atol=1e-8)
    forward = ad.jvp(with_masked_infinity, (z,), (direction,))[1]
    np.testing.assert_allclose(forward, (expected * direction).real.sum(), rtol=1e-7)
    second = ad.jvp(ad.grad(with_masked_infinity), (z,), (direction,))[1]
    step = 1e-6 * direction
    differences = (ad.grad(program)(z + step) - ad.grad(program)(z - step)) / 2e-6
    np.testing.assert_allclose(second, differences, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("hide", [lambda g, x: np.fmax(g, -9.0), lambda g, x: np.nansum(g), lambda g, x: np.where(g < x, g, x)])
def test_executor_checks_derivatives_whose_nan_is_hidden(hide: Callable[[Any, Any], Any], jit: bool) -> None:
    """At the last point, the derivative in its short form is nan, which the result does not show."""

    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0.3, np.sqrt(x - 0.3), x**2))

    x = cg.variable([0.5, 0.6], "x")
    (slope,) = gradients(f(x), [x])
    executor = cg.Executor(hide(slope, x), jit=jit)
    with np.errstate(all="ignore"):
        for point in ([0.5, 0.7], [0.6, 0.7], [0.5, -1.0]):
            expected = hide(ad.grad(f)(np.array(point)), np.array(point))
            np.testing.assert_allclose(executor.run({"x": np.array(point)}), expected, rtol=1e-12)
