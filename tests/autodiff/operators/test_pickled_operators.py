"""Functions returned by operators are pickled with the function they differentiate, and run in other processes."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

X = np.array([0.5, 1.5])


def energy(x: Any) -> Any:
    """A function that other processes import."""
    return np.sum(np.sin(x) ** 2)


OPERATORS = ("grad", "value_and_grad", "jacobian", "jacrev", "jacfwd", "hessian", "laplacian", "vmap")


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_operators_give_equal_results(name: str, protocol: int) -> None:
    derived = getattr(ad, name)(energy)
    loaded = pickle.loads(pickle.dumps(derived, protocol))
    results, expected = (each if isinstance(each, tuple) else (each,) for each in (loaded(X), derived(X)))
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_pickled_operators_keep_options_and_nest() -> None:
    derived = ad.jacobian(ad.grad(energy, argnums=0))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(derived))(X), np.diag(2 * np.cos(2 * X)))


def test_local_functions_raise_on_pickling() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"local|lambda"):
        pickle.dumps(ad.grad(lambda x: np.sum(x)))


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_process_pool_maps_grad(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(ad.grad(energy), [X, 2 * X, cg.variable(3 * X)])
    for k, result in enumerate(results, 1):
        np.testing.assert_allclose(np.asarray(result), np.sin(2 * k * X))
