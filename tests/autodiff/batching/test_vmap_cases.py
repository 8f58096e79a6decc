"""`vmap` of every case of the tables, and of its pullback and tangent, against a loop over examples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.arguments import Case
from tests.support.cases.tables import CASES, COMPLEX_CASES, COMPOSED_CASES

COUNT = 3
ALL = [*CASES, *COMPLEX_CASES, *COMPOSED_CASES]


def examples(case: Case) -> list[tuple[Any, ...]]:
    """Arguments like those of the case, a little apart: in its domain, and no two elements nearer than they were."""
    scales = 1 + 0.003 * np.arange(COUNT)
    return [tuple([np.asarray(a * a.dtype.type(s)) for a in case.args]) for s in scales]


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], (tuple, list)):
        return tuple(stacked([r[i] for r in results]) for i in range(len(results[0])))
    return np.stack([np.asarray(r) for r in results])


def require_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            require_same(f, e)
        return
    assert np.shape(found) == np.shape(expected)
    if expected.dtype.kind in "fc":
        assert found.dtype == expected.dtype
    eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 1e-16
    scale = np.max(np.abs(expected), initial=0, where=np.isfinite(expected)) if expected.dtype.kind in "fc" else 1
    np.testing.assert_allclose(found, expected, rtol=1e4 * eps, atol=1e3 * eps * scale)


def looped(f: Any, each: list[tuple[Any, ...]]) -> Any:
    return stacked([f(*args) for args in each])


def arrays(each: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(np.stack([args[i] for args in each]) for i in range(len(each[0])))


def is_refused(error: Exception) -> bool:
    """Whether what vmap says is that it cannot, and what to do instead."""
    return any(word in str(error) for word in ("vmap", "another for each"))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_vmap_is_a_loop(case: Case) -> None:
    each = examples(case)
    expected = looped(case.function, each)
    if case.label in REFUSED.get(case.opname, ()):
        with pytest.raises((TypeError, ValueError)) as caught:
            ad.vmap(case.function)(*arrays(each))
        assert is_refused(caught.value)
        return
    require_same(ad.vmap(case.function)(*arrays(each)), expected)


def pulled(case: Case) -> Any:
    def f(*args: Any) -> Any:
        out, pull = ad.vjp(case.function, *args)
        return pull(np.ones_like(out))

    return f


def pushed(case: Case) -> Any:
    def f(*args: Any) -> Any:
        return ad.jvp(case.function, args, tuple(np.ones_like(a) for a in args))[1]

    return f


@pytest.mark.parametrize("derivative", [pulled, pushed])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_vmap_of_a_derivative_is_a_loop(case: Case, derivative: Any) -> None:
    each = examples(case)
    f = derivative(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = looped(f, each)
        if case.label in REFUSED.get(case.opname, ()):
            with pytest.raises((TypeError, ValueError)) as caught:
                ad.vmap(f)(*arrays(each))
            assert is_refused(caught.value)
            return
        require_same(ad.vmap(f)(*arrays(each)), expected)


# What takes decisions by the numbers of an example, and says so: opname, and the labels of its cases.
REFUSED: dict[str, set[str]] = {
    "choose": {"method"},
    "getitem": {"recorded mask"},
    "piecewise": {"numbers only, a node one of them", "arguments"},
}
