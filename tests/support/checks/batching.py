"""`vmap` of a case, of its pullback and of its tangent, against a loop over batch elements."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.arguments import Case

COUNT = 3
# Functions that branch on the numbers of a batch element, and raise: opname, and the labels of its cases.
UNSUPPORTED: dict[str, set[str]] = {
    "choose": {"method"},
    "getitem": {"recorded mask"},
    "piecewise": {"numbers only, a node one of them", "arguments"},
}


def batch_elements(case: Case) -> list[tuple[Any, ...]]:
    """Arguments near those of the case: in its domain, with elements at least as far apart."""
    scales = 1 + 0.003 * np.arange(COUNT)
    return [tuple([np.asarray(a * a.dtype.type(s)) for a in case.args]) for s in scales]


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], (tuple, list)):
        return tuple(stacked([r[i] for r in results]) for i in range(len(results[0])))
    return np.stack([np.asarray(r) for r in results])


def require_same(actual: Any, expected: Any) -> None:
    """Fail unless two results have the same parts, shapes, dtypes, and the same numbers up to rounding."""
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for f, e in zip(actual, expected, strict=True):
            require_same(f, e)
        return
    assert np.shape(actual) == np.shape(expected)
    if expected.dtype.kind in "fc":
        assert actual.dtype == expected.dtype
    eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 1e-16
    scale = np.max(np.abs(expected), initial=0, where=np.isfinite(expected)) if expected.dtype.kind in "fc" else 1
    np.testing.assert_allclose(actual, expected, rtol=1e4 * eps, atol=1e3 * eps * scale)


def require_loop(f: Callable[..., Any], case: Case) -> None:
    """Fail unless `vmap` of a function gives the results of a loop, or raises for a case in UNSUPPORTED."""
    elements = batch_elements(case)
    batch = tuple(np.stack([args[i] for args in elements]) for i in range(len(elements[0])))
    expected = stacked([f(*args) for args in elements])
    if case.label not in UNSUPPORTED.get(case.opname, ()):
        require_same(ad.vmap(f)(*batch), expected)
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        ad.vmap(f)(*batch)
    assert any(words in str(caught.value) for words in ("vmap", "another for each"))


def check_vmap(case: Case) -> None:
    """`vmap` of the function is a loop."""
    require_loop(case.function, case)


def check_vmap_of_pullback(case: Case) -> None:
    """`vmap` of the derivative in reverse mode is a loop."""

    def pulled(*args: Any) -> Any:
        out, pull = ad.vjp(case.function, *args)
        return pull(np.ones_like(out))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require_loop(pulled, case)


def check_vmap_of_tangent(case: Case) -> None:
    """`vmap` of the derivative in forward mode is a loop."""

    def pushed(*args: Any) -> Any:
        return ad.jvp(case.function, args, tuple(np.ones_like(a) for a in args))[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require_loop(pushed, case)
