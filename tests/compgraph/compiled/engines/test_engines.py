"""Programs on JAX, PyTorch and the array API standard, against NumPy. Libraries that are not installed are skipped."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from compgraph.executor import passes
from tests.support.cases import OPERATIONS, cases_of
from tests.support.failures import Failures

X = np.linspace(0.1, 1.0, 10)
# Operations that no library computes: lengths or dtypes that depend on values, bits, sets.
REFUSED = {
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "intersect1d", "logn", "partition", "poly", "polydiv",
    "polymul", "roots", "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
}  # fmt: skip
ERRORS = (NotImplementedError, TypeError, ValueError, RuntimeError, IndexError, cg.GuardError)


@cache
def backend_of(name: str) -> Any:
    if name == "array-api":
        return pytest.importorskip("array_api_strict")
    pytest.importorskip(name)
    if name == "torch":
        pytest.importorskip("array_api_compat")
    return name


@pytest.fixture(params=["array-api", "jax", "torch"])
def backend(request: Any) -> Any:
    return backend_of(request.param)


def compare_case(case: Any) -> bool:
    """Whether a library runs a case; fail if its value or gradient differs from NumPy's."""
    args = [np.asarray(x) for x in case.args]
    cg.reset()
    holders = [cg.placeholder(x.shape, x.dtype, example=x) for x in args]
    out = case.function(*holders)
    nodes = [out, *(gradients(np.sum(np.real(out)), holders, unused="zero") if out.dtype.kind in "fc" else ())]
    feed = dict(zip(holders, args, strict=True))
    expected = cg.Executor(nodes).run(feed)
    executor = cg.Executor(nodes)
    executor._backend = "engine"
    try:
        found = executor.run(feed)
    except ERRORS:
        return False
    for a, e in zip(found, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(e).dtype
        single = np.asarray(e).dtype.itemsize <= 4
        np.testing.assert_allclose(a, e, rtol=1e-4 if single else 1e-8, atol=1e-5 if single else 1e-10)
    return True


def test_operations_are_right_or_raise(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = cg.jit(np.sin, backend=backend)
    monkeypatch.setitem(passes.BACKENDS, "engine", jitted.backend)
    names = [name for name in OPERATIONS if not name.startswith("special_")]
    run = set()
    with warnings.catch_warnings(), Failures("operations") as failures:
        warnings.simplefilter("ignore")
        for name in names:
            with failures.case(name):
                if compare_case(cases_of(name)[0]):
                    run.add(name)
    assert not run & REFUSED
    assert len(run) >= 0.85 * len(names)


def relaxed(x: Any) -> Any:
    """A loop that writes in place, views included."""
    y = np.zeros((3, x.size))
    row = y[1]
    row[1:] = x[1:] ** 2
    for _ in range(3):
        row[1:-1] = 0.5 * (row[:-2] + row[2:])
        y[2, ::2] += row[::2]
    y[[0, 2], 3] = x[0]
    return np.sum(np.tanh(y) * x)


def test_writes_and_their_derivatives(backend: Any) -> None:
    function = cg.jit(ad.value_and_grad(relaxed), backend=backend)
    expected = ad.value_and_grad(relaxed)(X)
    for _ in range(2):  # by NumPy while it is compiled, then by the library
        value, slope = function(X)
        assert isinstance(slope, np.ndarray)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-12)
    slope[0] = 7.0  # results are the caller's
    np.testing.assert_allclose(function(X)[1], expected[1], rtol=1e-12)


def test_branches_on_values_have_their_own_programs(backend: Any) -> None:
    function = cg.jit(lambda x: x * 2 if x[0] > 0 else x * 3, backend=backend)
    for x in (X, -X, X, -X):
        np.testing.assert_allclose(function(x), x * 2 if x[0] > 0 else x * 3)


def test_computed_indices_out_of_range_raise(backend: Any) -> None:
    def f(x: Any, place: Any) -> Any:
        return x[np.asarray(place * 2).astype(int)]

    function = cg.jit(f, backend=backend)
    place = np.array([1.0, 2.0, -3.0])
    for _ in range(2):
        np.testing.assert_array_equal(function(X, place), f(X, place))
    with pytest.raises(IndexError, match="out of bounds"):
        function(X, 10 * place)


def test_values_that_decide_lengths_are_refused_with_the_line(backend: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"x\[mask\] depends on values.*test_engines\.py"):
        cg.jit(lambda x: x[x > 0.5], backend=backend)(X)


def test_what_no_program_repeats_is_refused(backend: Any) -> None:
    with pytest.raises(NotImplementedError, match="random"):
        cg.jit(lambda x: x + np.random.default_rng().normal(), backend=backend)(X)


def test_float32_stays(backend: Any) -> None:
    x = X.astype(np.float32)
    function = cg.jit(ad.grad(lambda x: np.sum(np.exp(x) * 2)), backend=backend)
    for _ in range(2):
        assert function(x).dtype == np.float32
        np.testing.assert_allclose(function(x), 2 * np.exp(x), rtol=1e-6)


def test_calls_on_nodes_are_differentiated(backend: Any) -> None:
    function = cg.jit(lambda x: np.sum(np.sin(x) * x), backend=backend)
    for _ in range(3):
        np.testing.assert_allclose(ad.grad(function)(X), np.sin(X) + X * np.cos(X), rtol=1e-12)


def test_options_of_machine_code_are_refused(backend: Any) -> None:
    with pytest.raises(ValueError, match="options of machine code"):
        cg.jit(np.sin, backend=backend, threads=2)
    with pytest.raises(ValueError, match="options of machine code"):
        cg.jit(np.sin, backend=backend, exact=True)


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(ValueError, match="backend must be one of jax, torch, cupy"):
        cg.jit(np.sin, backend="tensorflow")
    with pytest.raises(TypeError, match="namespace of the array API"):
        cg.jit(np.sin, backend=7)


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_compiled_functions_are_pickled_with_their_backend(name: str) -> None:
    copied = pickle.loads(pickle.dumps(cg.jit(np.tanh, backend=backend_of(name))))
    assert copied.options["backend"] == name
    np.testing.assert_allclose(copied(X), np.tanh(X))


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_arrays_of_the_library_stay_with_it(name: str) -> None:
    library = cg.jit(np.sin, backend=backend_of(name)).library
    function = cg.jit(ad.value_and_grad(relaxed), backend=name)
    with library.context():
        x = library.from_numpy(X)
    for _ in range(3):
        value, slope = function(x)
        assert library.is_array(value)
        assert library.is_array(slope)
        np.testing.assert_allclose(library.to_numpy(slope), ad.grad(relaxed)(X), rtol=1e-12)


def test_to_jax_is_transformed_by_jax() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        x = jax.numpy.asarray(X)
        f = cg.to_jax(relaxed)
        np.testing.assert_allclose(jax.jit(jax.grad(f))(x), ad.grad(relaxed)(X), rtol=1e-12)
        rows = jax.jit(jax.vmap(cg.to_jax(ad.grad(relaxed))))(jax.numpy.stack([x, 2 * x]))
        np.testing.assert_allclose(rows[1], ad.grad(relaxed)(2 * X), rtol=1e-12)
        with pytest.raises(NotImplementedError, match="Python branches on values"):
            cg.to_jax(lambda x: x if x[0] > 0 else -x)(x)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        cg.to_jax(lambda x: x * np.ones(10))(jax.numpy.ones(10, "float32"))


def test_to_torch_is_differentiated_by_torch() -> None:
    backend_of("torch")
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    cg.to_torch(relaxed)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), ad.grad(relaxed)(X), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of PyTorch itself
@pytest.mark.parametrize("name", ["jax", "torch"])
def test_imported_functions_have_derivatives_of_any_order(name: str) -> None:
    library = cg.jit(np.sin, backend=backend_of(name)).library
    xp = library.namespace
    f = (cg.from_jax if name == "jax" else cg.from_torch)(lambda x, y: (xp.sum(xp.sin(x) * y), x * y))

    def g(x: Any) -> Any:
        total, product = f(x, x)
        return total * np.sum(product)

    def plain(x: Any) -> Any:
        return np.sum(np.sin(x) * x) * np.sum(x * x)

    np.testing.assert_allclose(g(X), plain(X), rtol=1e-12)
    np.testing.assert_allclose(ad.grad(g)(X), ad.grad(plain)(X), rtol=1e-12)
    np.testing.assert_allclose(ad.hessian(g)(X[:3]), ad.hessian(plain)(X[:3]), rtol=1e-10)
    np.testing.assert_allclose(ad.jvp(g, (X,), (X,))[1], ad.jvp(plain, (X,), (X,))[1], rtol=1e-12)


def test_imports_need_the_library() -> None:
    with pytest.raises(TypeError, match="from_jax: expected a function"):
        cg.from_jax(3)  # type: ignore[arg-type]
