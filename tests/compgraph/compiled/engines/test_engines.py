"""Programs on JAX, PyTorch and the array API standard, against NumPy. Libraries that are not installed are skipped."""

from __future__ import annotations

import enum
import pickle
import runpy
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from compgraph.compiled.engines import engine_loops
from compgraph.executor import passes
from tests.support.cases import OPERATIONS, cases_of
from tests.support.failures import Failures
from tests.support.random_slices import program_of_slices

X = np.linspace(0.1, 1.0, 10)
# Operations that no library computes: lengths or dtypes that depend on values, bits, sets.
UNSUPPORTED = {
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "intersect1d", "logn", "partition", "poly", "polydiv",
    "polymul", "roots", "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
}  # fmt: skip
# Operations whose first case a library cannot compute: eigenvalues whose dtype depends on values, masks, complex comparisons.
LACKING = {
    "jax": {"linalg_eig", "linalg_eigvals", "piecewise"},
    "torch": {"linalg_eig", "linalg_eigvals", "piecewise", "cov"},
    "array-api": {"linalg_eig", "linalg_eigvals", "piecewise", "cov", "i0"},
}
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
        outputs = executor.run(feed)
    except ERRORS:
        return False
    for a, e in zip(outputs, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(e).dtype
        single = np.asarray(e).dtype.itemsize <= 4
        np.testing.assert_allclose(a, e, rtol=1e-4 if single else 1e-8, atol=1e-5 if single else 1e-10)
    return True


def test_engines_operations_match_numpy_or_raise(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert set(names) - run == UNSUPPORTED | LACKING[jitted.library.name]


def test_engines_table_of_operations_is_current() -> None:
    for name in ("array-api", "jax", "torch"):
        backend_of(name)
    docs = Path(cg.__file__).parent.parent / "docs"
    table = runpy.run_path(str(docs / "make_engine_table.py"))
    text, current = (docs / "engine_operations.md").read_text(), table["page"]()
    if text.partition(" with ")[2].partition(". ")[0] == current.partition(" with ")[2].partition(". ")[0]:
        assert text == current, "run python docs/make_engine_table.py"
    else:  # other versions of the libraries have a few other functions
        rows, current_rows = ({line for line in page.splitlines() if line.startswith("| `")} for page in (text, current))
        assert len(rows ^ current_rows) < 0.05 * len(rows)


def run_twice(f: Any, backend: Any, first: tuple[Any, ...], *others: tuple[Any, ...]) -> Any:
    """Compile a function at the first arguments, and compare its results at all of them with NumPy's."""
    function = cg.jit(f, backend=backend)
    for args in (first, first, *others):
        output, expected = function(*args), f(*args)
        assert np.asarray(output).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(output, expected, rtol=1e-6 if np.asarray(expected).dtype.itemsize <= 4 else 1e-12)
    return function


def test_engines_branches_see_arrays_before_later_writes(backend: Any) -> None:
    """Python decides by an element of a view that is written into later."""

    def f(x: Any) -> Any:
        y = np.zeros(4)
        part = y[1:3]
        part[:] = x[:2]
        factor = 2.0 if part[0] > 0 else 3.0
        part[:] = -1.0
        return factor * x

    run_twice(f, backend, (X,), (-X,), (X,))


def test_engines_check_computed_indices_of_writes(backend: Any) -> None:
    """The derivative of `x[i]` adds at computed indices, negative ones included."""

    def f(x: Any, place: Any) -> Any:
        index = np.asarray(place * 2).astype(int)
        return np.sum(x[index] ** 2) + np.sum(np.take(x, index) * np.take_along_axis(x, index, 0))

    slope = run_twice(ad.grad(f), backend, (X, np.array([1.0, 2.0, -3.0, 1.0])), (X, np.array([-5.0, 4.5, 0.0, 0.0])))
    for outside in (5.0, -5.5):
        with pytest.raises(IndexError, match="out of bounds"):
            slope(X, np.array([1.0, 2.0, -3.0, outside]))


def test_engines_computed_indices_beside_masks(backend: Any) -> None:
    table, mask = np.arange(60.0).reshape(3, 4, 5), np.array([True, False, True])

    def f(x: Any) -> Any:
        rows = np.asarray(x[:2] * 4).astype(int)
        return np.sum((table + x[1])[mask, rows] * x[1]) + np.sum((x[:8].reshape(2, 2, 2))[..., rows % 2, None])

    run_twice(f, backend, (X,), (X[::-1].copy() / 2,))
    run_twice(ad.grad(f), backend, (X,), (X[::-1].copy() / 2,))


def test_engines_dtype_option(backend: Any) -> None:
    """The option `dtype` sets the dtype in which a ufunc or a reduction computes."""
    small, large = (X * 250).astype(np.uint8), X * 1e10
    for f, x in [
        (lambda x: np.add(x, 1, dtype=np.int64), small),
        (lambda x: np.multiply(x, x, dtype=np.float32), small),
        (lambda x: np.add(x, 1.0, dtype=np.float32), large),
        (lambda x: np.sum(x, dtype=np.uint8), small),
        (lambda x: np.sum(x * 25, dtype=np.int64), X),  # each is truncated
        (lambda x: np.cumsum(x, dtype=np.float32), large),
        (lambda x: np.mean(x, dtype=np.float32), large),
        (lambda x: np.sum(x, initial=0.1), X.astype(np.float32)),
        (lambda x: np.max(x, initial=3), small),
        (lambda x: np.sum(x, where=np.arange(10) % 2 == 0, initial=1), X),
        (lambda x: np.var(x, mean=np.mean(X)), X),
        (lambda x: np.gradient(x.reshape(2, 5) // 2)[1], small.astype(int)),
    ]:
        run_twice(f, backend, (x,), (x[::-1].copy(),))


def test_engines_copy_arrays_of_caller(backend: Any) -> None:
    """Neither arguments nor results are parts of a program."""
    function, x = cg.jit(lambda x: (np.copy(x), np.positive(x), np.ones(3)), backend=backend), X.copy()
    for _ in range(3):
        for output in function(x):
            output[:] = 7.0
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(function(x)[2], np.ones(3))


class Method(enum.Enum):
    SINE, COSINE = 1, 2


def test_engines_static_arguments_beside_library_arrays(backend: Any) -> None:
    def f(x: Any, method: Method, factor: int = 2) -> Any:
        return factor * (np.sin(x) if method is Method.SINE else np.cos(x))

    function = cg.jit(f, backend=backend, static_argnames=("factor",))
    library = function.library
    with library.context():
        x = library.from_numpy(X)
    for _ in range(3):
        np.testing.assert_allclose(library.to_numpy(function(x, Method.SINE)), 2 * np.sin(X))
        np.testing.assert_allclose(library.to_numpy(function(x, method=Method.COSINE, factor=3)), 3 * np.cos(X))


def test_engines_library_integers_are_not_constants(backend: Any) -> None:
    function = cg.jit(lambda x, n: x * n, backend=backend)
    library = function.library
    with library.context():
        x, numbers = library.from_numpy(X), [library.from_numpy(np.asarray(n)) for n in (2, 3)]
    for number in numbers:
        with pytest.raises(NotImplementedError, match="pass a Python number"):
            function(x, number)


def test_engines_results_share_no_memory(backend: Any) -> None:
    function = cg.jit(np.positive, backend=backend)
    library = function.library
    with library.context():
        x = library.from_numpy(X)
    for _ in range(3):
        result = function(x)
        if library.name != "jax":  # whose arrays are immutable
            result[:] = library.namespace.zeros_like(result)
        np.testing.assert_array_equal(library.to_numpy(x), X)
        np.testing.assert_array_equal(library.to_numpy(function(x)), X)


def test_engines_computed_axes_raise(backend: Any) -> None:
    with pytest.raises(NotImplementedError, match="an axis that is computed"):
        cg.jit(lambda x: np.sum(x.reshape(2, 5), axis=np.asarray(x[0] * 0).astype(int)), backend=backend)(X)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(60))
def test_engines_random_programs_of_slices(seed: int, backend: Any) -> None:
    f, x, y = program_of_slices(seed)
    function = cg.jit(ad.value_and_grad(f), backend=backend)
    function(x)
    for actual, expected in zip(function(y), ad.value_and_grad(f)(y), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


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


def test_engines_writes_and_derivatives(backend: Any) -> None:
    function = cg.jit(ad.value_and_grad(relaxed), backend=backend)
    expected = ad.value_and_grad(relaxed)(X)
    for _ in range(2):  # by NumPy while it is compiled, then by the library
        value, slope = function(X)
        assert isinstance(slope, np.ndarray)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-12)
    slope[0] = 7.0  # results are the caller's
    np.testing.assert_allclose(function(X)[1], expected[1], rtol=1e-12)


def test_engines_branches_have_separate_programs(backend: Any) -> None:
    function = cg.jit(lambda x: x * 2 if x[0] > 0 else x * 3, backend=backend)
    for x in (X, -X, X, -X):
        np.testing.assert_allclose(function(x), x * 2 if x[0] > 0 else x * 3)


def test_engines_computed_indices_out_of_range_raise(backend: Any) -> None:
    def f(x: Any, place: Any) -> Any:
        return x[np.asarray(place * 2).astype(int)]

    function = cg.jit(f, backend=backend)
    place = np.array([1.0, 2.0, -3.0])
    for _ in range(2):
        np.testing.assert_array_equal(function(X, place), f(X, place))
    with pytest.raises(IndexError, match="out of bounds"):
        function(X, 10 * place)


def test_engines_value_dependent_lengths_raise_with_line(backend: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"x\[mask\] depends on values.*test_engines\.py"):
        cg.jit(lambda x: x[x > 0.5], backend=backend)(X)


def test_engines_uncompilable_function_raises(backend: Any) -> None:
    with pytest.raises(NotImplementedError, match="random"):
        cg.jit(lambda x: x + np.random.default_rng().normal(), backend=backend)(X)


def test_engines_keep_float32(backend: Any) -> None:
    x = X.astype(np.float32)
    function = cg.jit(ad.grad(lambda x: np.sum(np.exp(x) * 2)), backend=backend)
    for _ in range(2):
        assert function(x).dtype == np.float32
        np.testing.assert_allclose(function(x), 2 * np.exp(x), rtol=1e-6)


def test_engines_calls_on_nodes_are_differentiable(backend: Any) -> None:
    function = cg.jit(lambda x: np.sum(np.sin(x) * x), backend=backend)
    for _ in range(3):
        np.testing.assert_allclose(ad.grad(function)(X), np.sin(X) + X * np.cos(X), rtol=1e-12)


def test_engines_llvm_options_raise(backend: Any) -> None:
    with pytest.raises(ValueError, match="options of machine code"):
        cg.jit(np.sin, backend=backend, threads=2)
    with pytest.raises(ValueError, match="options of machine code"):
        cg.jit(np.sin, backend=backend, exact=True)


def test_engines_unknown_backend_raises() -> None:
    with pytest.raises(ValueError, match="backend must be one of jax, torch, cupy"):
        cg.jit(np.sin, backend="tensorflow")
    with pytest.raises(TypeError, match="namespace of the array API"):
        cg.jit(np.sin, backend=7)


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_engines_pickles_keep_backend(name: str) -> None:
    copied = pickle.loads(pickle.dumps(cg.jit(np.tanh, backend=backend_of(name))))
    assert copied.options["backend"] == name
    np.testing.assert_allclose(copied(X), np.tanh(X))


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_engines_arrays_stay_in_library(name: str) -> None:
    library = cg.jit(np.sin, backend=backend_of(name)).library
    function = cg.jit(ad.value_and_grad(relaxed), backend=name)
    with library.context():
        x = library.from_numpy(X)
    for _ in range(3):
        value, slope = function(x)
        assert library.is_array(value)
        assert library.is_array(slope)
        np.testing.assert_allclose(library.to_numpy(slope), ad.grad(relaxed)(X), rtol=1e-12)


def test_to_jax_supports_jax_transformations() -> None:
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


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_to_jax_checked_integer_results_raise(name: str) -> None:
    """Integers have no nan that could mark an index out of range."""
    library = cg.jit(np.sin, backend=backend_of(name)).library
    export = cg.to_jax if name == "jax" else cg.to_torch

    def item(x: Any) -> Any:
        return x[np.asarray(x[:2] * 3).astype(int)]

    with library.context():
        x, outside = library.from_numpy(X), library.from_numpy(100 * X)
        np.testing.assert_array_equal(library.to_numpy(export(item)(x)), item(X))
        assert np.isnan(library.to_numpy(export(item, examples=(X,))(outside))).all()
        with pytest.raises(NotImplementedError, match="a result is an integer or boolean"):
            export(lambda x: np.argmax(item(x)))(x)


def test_to_torch_is_differentiable_by_torch() -> None:
    backend_of("torch")
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    cg.to_torch(relaxed)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), ad.grad(relaxed)(X), rtol=1e-12)


def test_to_torch_of_gradient_with_corners_has_no_guard() -> None:
    backend_of("torch")
    torch = pytest.importorskip("torch")
    x = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True)
    result = cg.to_torch(ad.grad(lambda x: np.sum(np.maximum(x, 0) ** 2 + np.abs(x) * x)))(x)
    np.testing.assert_allclose(result.detach().numpy(), [8.0, 4.0])
    np.testing.assert_allclose(torch.autograd.grad(result.sum(), x)[0].numpy(), [4.0, 4.0])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # of PyTorch itself
@pytest.mark.parametrize("name", ["jax", "torch"])
def test_from_library_functions_have_derivatives_of_any_order(name: str) -> None:
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


def euler_steps(p: Any, count: int) -> Any:
    """A buffer that is written element by element, with constants that differ between steps."""
    y = np.zeros(count + 1)
    y[0] = p[0]
    for i in range(count):
        y[i + 1] = y[i] + 0.05 * (-p[1] * y[i] + np.sin(0.05 * i))
    return np.sum(y[::3]) * y[-1]


def table_steps(p: Any, count: int) -> Any:
    """Rows of a table, read again two steps later."""
    table = np.zeros((count + 2, p.size))
    table[0], table[1] = p, 0.5 * p
    for i in range(count):
        table[i + 2] = 0.3 * np.sin(table[i]) + 0.6 * table[i + 1] * table[i + 1, ::-1]
    return np.sum(np.tanh(table))


def fibonacci(p: Any, count: int) -> Any:
    """A recurrence of two values, whose results are collected in a list."""
    before, now, values = p, 0.9 * p, []
    for i in range(count):
        before, now = now, np.sin(now) + 0.1 * before * (i % 3)
        values.append(now[0])
    return np.sum(np.array(values) ** 2) + np.sum(now)


def sweeps(p: Any, count: int) -> Any:
    """Nested loops of Gauss and Seidel, and shrinking rows, which remain unrolled."""
    u = np.zeros(12)
    u[0] = p[0]
    for _ in range(count):
        for i in range(1, 11):
            u[i] = 0.5 * (u[i - 1] + u[i + 1]) + 0.01 * p[1]
    for i in range(11):
        u[i + 1 :] = u[i + 1 :] - 0.1 * u[i] * p[1]
    return np.sum(u**2)


def checked(p: Any, count: int) -> Any:
    """Computed indices, which each run checks."""
    total = p[0] * 0.0
    for _ in range(count):
        total = total + p[np.asarray(total * 3).astype(int) % 2] * np.cos(total)
    return total


def rotations(p: Any, count: int) -> Any:
    """A decomposition in each step, whose results are several arrays."""
    a = p[0] * np.eye(2) + np.array([[0.0, 0.3], [0.3, 0.2]]) * p[1]
    for _ in range(count):
        q, r = np.linalg.qr(a)
        a = r @ q
    return a[0, 0] * a[1, 1]


def elements(p: Any, count: int) -> Any:
    """A different element of a new array in each step; its derivative adds at a different index."""
    x = np.linspace(0.1, 1.0, count) * p[0]
    for i in range(count):
        y = np.sin(x) * p[1]
        x = x + 0.1 * y[i] + y[i] ** 2
    return np.sum(x)


@pytest.mark.parametrize("program", [euler_steps, table_steps, fibonacci, sweeps, checked, rotations, elements])
def test_jax_loops_match_numpy(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated iterations become loops, in programs of values, of gradients and of second derivatives."""
    pytest.importorskip("jax")
    monkeypatch.setattr(engine_loops, "MIN_STEPS", 40)
    p, other = np.array([0.7, 0.4]), np.array([0.72, 0.41])

    def loss(p: Any) -> Any:
        return program(p, 12)

    def second(p: Any) -> Any:
        return ad.grad(lambda p: ad.jvp(loss, (p,), (np.array([1.0, -0.5]),))[1])(p)

    for f in (loss, ad.grad(loss), second):
        function = cg.jit(f, backend="jax")
        function(p)
        np.testing.assert_allclose(function(other), f(other), rtol=1e-9)
        (specialization,) = specializations_of(function)
        assert "scan(" in specialization.program.source
    differences = [(loss(p + step) - loss(p - step)) / 2e-6 for step in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(ad.grad(loss)(p), differences, rtol=1e-6, atol=1e-9)


def specializations_of(function: Any) -> list[Any]:
    """The programs of a compiled function."""
    return [each for cache in function._caches_by_signature.values() for each in cache.specializations]


@pytest.mark.parametrize("program", [euler_steps, table_steps, fibonacci])
def test_jax_loops_keep_programs_short(program: Any) -> None:
    """The source does not grow with the number of iterations."""
    pytest.importorskip("jax")
    lengths = []
    for count in (60, 120):
        function = cg.jit(ad.grad(lambda p, count=count: program(p, count)), backend="jax")
        function(np.array([0.7, 0.4]))
        lengths.append(len(specializations_of(function)[0].program.source.splitlines()))
    assert lengths[1] <= lengths[0] + 5


def textbook_outcome(case: Any, backend: Any) -> str:
    """Outcome of value and gradient of a program that is called twice, the second time by a library: "right", or an error."""
    function = cg.jit(ad.value_and_grad(case.total, argnums=case.argnums), backend=backend)
    try:
        function(*case.arguments)
        primal, gradient = function(*case.arguments)
    except (NotImplementedError, ad.LostGraphError, cg.LeakError) as error:
        return type(error).__name__
    assert sum(each.runs for each in specializations_of(function)) > 0
    slack = 1e-5 * np.max(np.abs(case.reference.gradient)) + 10 * np.max(np.sum(case.reference.error, axis=0)) + 1e-9
    np.testing.assert_allclose(primal, np.sum(case.reference.value), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(np.concatenate([np.ravel(part) for part in gradient]), case.reference.gradient, rtol=0, atol=slack)
    return "right"


@pytest.mark.parametrize(
    "name", [pytest.param("array-api", marks=pytest.mark.slow), pytest.param("jax", marks=pytest.mark.exhaustive)]
)
def test_engines_textbook_programs(name: str) -> None:
    """Programs run unchanged with the right value and gradient, or raise; most of them run."""
    pytest.importorskip("pandas")
    from tests.support.programs.harness import CORPORA, inputs_of

    backend, outcomes = backend_of(name), []
    with warnings.catch_warnings(), Failures("programs") as failures:
        warnings.simplefilter("ignore")
        for program in CORPORA["textbook"]:
            with failures.case(program.name):
                outcomes.append(textbook_outcome(inputs_of(program), backend))
    assert outcomes.count("right") >= 150


def test_jax_loops_keep_windows_static() -> None:
    """Reads and writes of the same elements in each iteration are slices, not gathers at computed positions."""
    pytest.importorskip("jax")

    def heat(u: Any) -> Any:
        u = u.copy()
        for _ in range(20):
            u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return np.sum(u**2)

    function, u = cg.jit(ad.grad(heat), backend="jax"), np.sin(np.arange(48.0)).reshape(6, 8)
    function(u)
    (specialization,) = specializations_of(function)
    assert specialization.program.source.count("scan(") == 2
    assert "_positions(" not in specialization.program.source
    np.testing.assert_allclose(function(u / 2), ad.grad(heat)(u / 2), rtol=1e-10)


def test_from_library_requires_function_and_library() -> None:
    with pytest.raises(TypeError, match="from_jax: expected a function"):
        cg.from_jax(3)  # type: ignore[arg-type]
