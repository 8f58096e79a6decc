"""Masks in every form that NumPy accepts: values and gradients equal those of plain NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff import numeric
from autodiff.reverse import gradient
from tests.support.failures import Failures

A, B, OLD = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.5, 20.5, 30.5, 41.0]), np.array([5.0, 6.0, 7.0, 8.0])
FORMS: dict[str, Any] = {
    "booleans": [True, False, False, True],
    "array of booleans": np.array([True, False, False, True]),
    "integers": [1, 0, 0, 1],
    "tuple": (1, 0, 0, 1),
    "integers that are places": [2, 0, 0, -1],
    "floats": [1.0, 0.0, 0.0, 0.5],
    "one": 1,
    "none": 0,
    "numpy.bool": np.True_,
    "numpy.int64": np.int64(1),
    "0-d": np.array(False),
    "length one": [1],
    "row": [[1, 0, 0, 1]],
    "too short": [1, 0, 1],
    "array of integers": np.array([1, 0, 0, 1]),
    "array of floats": np.array([1.0, 0.0, 0.0, 1.0]),
    "0-d integer": np.array(1),
}


def written(write: Callable[[Any, Any, Any, Any], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    """A function that returns the target of a write."""

    def result(a: Any, b: Any, old: Any, mask: Any) -> Any:
        target = np.copy(old)
        write(a, b, target, mask)
        return target

    return result


USES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": written(lambda a, b, out, mask: np.add(a, b, out=out, where=mask)),
    "exp": written(lambda a, b, out, mask: np.exp(a, out=out, where=mask)),
    "divmod": written(lambda a, b, out, mask: np.divmod(b, a, out=(np.copy(a), out), where=mask)),
    "copyto": written(lambda a, b, out, mask: np.copyto(out, a * b, where=mask)),
    "place": written(lambda a, b, out, mask: np.place(out, mask, a * b)),
    "putmask": written(lambda a, b, out, mask: np.putmask(out, mask, a * b)),
    "where": lambda a, b, old, mask: np.where(mask, a * b, old),
    "select": lambda a, b, old, mask: np.select([mask], [a * b], old),
    "select, of lists": lambda a, b, old, mask: np.select([mask, A > 2], [[1, 2, 3, 4], old * a], 7),
    "extract": lambda a, b, old, mask: np.extract(mask, a * b),
    "compress": lambda a, b, old, mask: np.compress(mask, a * b),
    "sum": lambda a, b, old, mask: np.sum(a * b, where=mask),
    "sum, out": written(lambda a, b, out, mask: np.sum((a * b)[None], axis=0, out=out, where=mask)),
    "mean": lambda a, b, old, mask: np.mean(a * b, axis=0, where=mask),
    "var": lambda a, b, old, mask: np.var(a * b, where=mask),
    "prod": lambda a, b, old, mask: np.prod(a * b, where=mask),
    "max": lambda a, b, old, mask: np.max(a * b, where=mask, initial=-5.0),
    "nansum": lambda a, b, old, mask: np.nansum(a * b, where=mask),
    "nanvar": lambda a, b, old, mask: np.nanvar(a * b, where=mask),
    "logaddexp.reduce": lambda a, b, old, mask: np.logaddexp.reduce(a * b, where=mask, initial=0.0),
}


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, or the name of its error."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(f(*args))
    except (TypeError, ValueError, IndexError) as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:Mean of empty slice", "ignore:invalid value", "ignore:divide by")
@pytest.mark.parametrize("use", USES)
def test_mask_of_any_form_matches_numpy(use: str) -> None:
    with Failures(use) as failures:
        for form in FORMS:
            with failures.case(form):
                check_mask(use, form)


def check_mask(use: str, form: str) -> None:
    """Compare value, error, and derivative with plain NumPy's."""

    def f(*args: Any) -> Any:
        return USES[use](*args, FORMS[form])

    expected = outcome(f, A, B, OLD)
    result = outcome(f, *map(cg.variable, (A, B, OLD)))
    if isinstance(expected, str):
        assert result in ("TypeError", "ValueError", "IndexError")
        return
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected, equal_nan=True)
    counted = use in ("mean", "var") and form in ("integers that are places", "floats")
    if counted:
        with pytest.raises(ValueError, match="contains numbers other than 0 and 1, which NumPy adds to the count"):
            ad.jacobian(f)(A, B, OLD)
    elif np.all(np.isfinite(expected)):
        weights = np.arange(1.0, 1 + expected.size).reshape(expected.shape)
        references = numeric.gradient(f, [A, B, OLD], weights=weights)
        slopes = ad.grad(lambda *args: np.sum(weights * f(*args)) + 0 * sum(map(np.sum, args)), (0, 1, 2))(A, B, OLD)
        for ours, theirs in zip(slopes, references, strict=True):
            assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6)


MASKS_OF_NODES: dict[str, Callable[[Any], Any]] = {
    "comparison": lambda a: a > 1.5,
    "list": lambda a: [a[0] > 5, a[1] > 1, 0, True],
    "array": lambda a: np.asarray([1, 0, 1, 0], bool),
}


def test_mask_made_of_nodes() -> None:
    with Failures("masks") as failures:
        for use, mask in itertools.product(["add", "copyto", "putmask", "where", "sum", "mean"], MASKS_OF_NODES):
            with failures.case(f"{use}, {mask}"):
                check_mask_of_nodes(use, MASKS_OF_NODES[mask])


def check_mask_of_nodes(use: str, mask: Callable[[Any], Any]) -> None:
    """Compare the gradient with differences."""

    def f(a: Any, b: Any, old: Any) -> Any:
        return np.sum(np.square(USES[use](a, b, old, mask(a))))

    slopes = ad.grad(f, (0, 1, 2))(A, B, OLD)
    for ours, theirs in zip(slopes, numeric.gradient(f, [A, B, OLD]), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_mask_changed_later_is_kept() -> None:
    x, mask = cg.variable(A), [1, 0, 0, 1]
    array, out = np.array([True, False, True, False]), np.copy(x)
    np.multiply(x, x, out=out, where=array)
    np.copyto(out, -x, where=mask)
    array[:], mask[:] = True, [0, 0, 0, 0]
    assert np.array_equal(gradient(out)[x], [-1, 1, 6, -1])


@pytest.mark.parametrize("write", [lambda t, m: np.add(t, 1.0, out=t, where=m), lambda t, m: np.copyto(t, 1.0, where=m)])
def test_mask_of_wrong_dtype_or_shape_raises(write: Callable[[Any, Any], Any]) -> None:
    target = cg.zeros(4)
    with pytest.raises(TypeError, match=r"where= is an array of int64, not of booleans. Pass mask.astype\(bool\)"):
        write(target, np.array([1, 0, 0, 1]))
    with pytest.raises(ValueError, match=r"where= has shape \(3,\), which does not broadcast to \(4,\)"):
        write(target, [1, 0, 1])
