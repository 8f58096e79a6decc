"""Libraries that read the memory of arrays never read a node's: numba, h5py, joblib, pyFFTW, iminuit, sqlite3."""

from __future__ import annotations

import collections
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

pytestmark = pytest.mark.filterwarnings("ignore:[\\s\\S]*reflected list")  # numba, of lists
X = np.array([1.5, 2.5, 3.5])
Pair = collections.namedtuple("Pair", "a b")


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    """Functions compiled by numba: of an array, of a nest, of numbers, one that writes, and one with a default."""
    numba = pytest.importorskip("numba", reason="needs numba")

    @numba.njit
    def total(a: Any) -> Any:
        accumulator = 0.0
        for value in a.flat:
            accumulator += value
        return accumulator

    @numba.njit
    def of_pair(pair: Any) -> Any:
        return total(pair[0]) * pair[1][0]

    @numba.njit
    def of_number(v: Any) -> Any:
        return v * v

    @numba.njit
    def halved(a: Any) -> Any:
        for i in range(a.size):
            a[i] /= 2
        return a

    @numba.njit
    def scaled(a: Any, factor: Any = 2.0) -> Any:
        return a.sum() * factor

    @numba.njit
    def gathered(*arrays: Any) -> Any:
        return arrays[0][0] + arrays[1].sum()

    @numba.njit("f8(f8[:])")
    def eager(a: Any) -> Any:
        return a[0]

    @numba.vectorize
    def doubled(v: Any) -> Any:
        return v * 2

    @numba.guvectorize(["void(f8[:],f8[:])"], "(n)->()")
    def summed(a: Any, result: Any) -> None:
        result[0] = a.sum()

    return {f.__name__: f for f in (total, of_pair, of_number, halved, scaled, gathered, eager)} | {
        "doubled": doubled,
        "summed": summed,
        "numba": numba,
    }


Programs = dict[str, Callable[[Any, Any], Any]]
RIGHT: Programs = {
    "array": lambda of, x: of["total"](x) + of["total"](np.outer(x, x).T),
    "complex array": lambda of, x: of["scaled"](x * 1j).imag,
    "float32": lambda of, x: of["scaled"](x.astype(np.float32)) * 1.0,
    "tuple": lambda of, x: of["of_pair"]((x, x * x)) * of["of_pair"](Pair(x, x)),
    "list": lambda of, x: of["of_pair"]([x, x * x]),
    "number": lambda of, x: of["of_number"](x[0]) + of["of_number"](np.sum(x)),
    "written into": lambda of, x: np.sum(of["halved"](x * x)),
    "defaults and keywords": lambda of, x: of["scaled"](x) + of["scaled"](a=x, factor=x[1]),
    "any number of arguments": lambda of, x: of["gathered"](x, x * x),
    "indices": lambda of, x: of["total"](np.argsort(x)) * x[0],
    "plain data": lambda of, x: of["total"](np.ones(3)) * x[0] + of["doubled"](np.ones(2)).sum() + of["summed"](np.ones(3)),
}
LOUD: Programs = {
    "eager": lambda of, x: of["eager"](x),
    "vectorize": lambda of, x: of["doubled"](x).sum(),
    "guvectorize": lambda of, x: of["summed"](x),
    "typed list": lambda of, x: of["numba"].typed.List([x, x])[0].sum(),
    "typed list, later": lambda of, x: of["numba"].typed.List.empty_list(of["numba"].float64[:]).append(x) or x.sum(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_numba_functions_keep_graph(compiled: Any, name: str) -> None:
    def f(x: Any) -> Any:
        return RIGHT[name](compiled, x) + np.sum(x)

    for _ in range(2):  # compiled for the plain array meanwhile
        value, slope = ad.value_and_grad(f)(X)
        assert np.allclose(value, f(X.copy()))
    tolerance = 1e-2 if name == "float32" else 1e-6
    assert np.allclose(ad.jvp(f, (X,), (np.ones(3),))[1], slope.sum())
    assert np.allclose(ad.vmap(f)(np.stack([X, X + 1])), [f(X.copy()), f(X + 1)])
    with cg.strict():
        assert np.allclose(f(cg.variable(X)).value, value)
    step = 1e-3 if name == "float32" else 1e-6
    differences = [(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(3)]
    assert np.allclose(slope, differences, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", LOUD)
def test_numba_functions_that_cannot_run_as_python_raise(compiled: Any, name: str) -> None:
    with pytest.raises(TypeError):
        ad.grad(lambda x: LOUD[name](compiled, x) * 1.0)(X)


EARLY = """
import numba
import numpy as np, autodiff as ad

@numba.njit
def halved(a):
    for i in range(a.size):
        a[i] /= 2
    return a

assert halved(np.ones(2)).tolist() == [0.5, 0.5]
for _ in range(5):
    assert ad.grad(lambda x: np.sum(halved(x * x)))(np.ones(3)).tolist() == [1, 1, 1]
"""


@pytest.mark.slow
def test_numba_imported_first_is_patched() -> None:
    pytest.importorskip("numba", reason="needs numba")
    subprocess.run([sys.executable, "-c", EARLY], check=True)


STORES: dict[str, Callable[[Any, Any], None]] = {
    "item": lambda file, x: file.__setitem__("x", x * 2),
    "create_dataset": lambda file, x: file.create_dataset("x", data=x * 2),
    "slice": lambda file, x: file.create_dataset("x", (3,), "f8").__setitem__(slice(None), x * 2),
    "write_direct": lambda file, x: file.create_dataset("x", (3,), "f8").write_direct(x * 2),
    "list": lambda file, x: file.__setitem__("x", [x[0] * 2, x[1] * 2, x[2] * 2]),
    "float32": lambda file, x: file.__setitem__("x", x.astype(np.float32) * 2),
    "require_dataset": lambda file, x: file.require_dataset("x", (3,), "f8", data=x * 2),
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("operator", [ad.grad, ad.jacfwd])
def test_h5py_storage_of_traced_values_raises(name: str, operator: Any, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:

        def f(x: Any) -> Any:
            STORES[name](file, x)
            return np.sum(x * x)

        with pytest.raises(cg.LeakError, match="h5py"):
            operator(f)(X)
        assert "x" not in file or not np.any(file["x"][...])


def test_h5py_attributes_and_reads(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        data = file.create_dataset("x", data=X)

        def attribute(x: Any) -> Any:
            file.attrs["loss"] = np.sum(x)
            return np.sum(x * x)

        with pytest.raises(cg.LeakError, match="h5py"):
            ad.grad(attribute)(X)
        assert "loss" not in file.attrs
        with pytest.raises(cg.LeakError):
            ad.grad(lambda x: data.read_direct(x) or np.sum(x))(X)
        x = cg.variable(X)  # at the top level a node is an array
        file["y"] = x
        assert np.array_equal(file["y"][...], X)


def test_h5py_stores_buffers_of_an_operator(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:

        def f(x: Any) -> Any:
            file["grid"] = np.linspace(0.0, 1.0, 3)
            return np.sum(x * file["grid"])

        assert ad.grad(f)(X).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("kind", ["variable", "operation"])
def test_files_store_values_of_nodes(kind: str, tmp_path: Path) -> None:
    """At the top level nodes are arrays; the files need no compgraph to be read."""
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    x: Any = cg.variable(X) if kind == "variable" else cg.variable(X / 2) * 2
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.attrs["x"], file["item"], file["scalar"] = x, x, np.sum(x)
        file.create_dataset("compressed", data=x, compression="gzip", chunks=True)
        file.create_dataset("single", data=x, dtype="f4")
        part = file.create_dataset("part", (3,), "f8")
        part[:2], part[2] = x[:2], x[2]
        for name in ("item", "compressed", "single", "part"):
            assert np.array_equal(file[name][()], X), name
        assert np.array_equal(file.attrs["x"], X)
        assert file["scalar"][()] == 7.5
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "list.npy", [x, 2 * x])
    np.savez(tmp_path / "x.npz", x, total=np.sum(x))
    np.savez_compressed(tmp_path / "compressed.npz", x=x)
    loaded = np.load(tmp_path / "x.npy", allow_pickle=False)
    assert type(loaded) is np.ndarray
    assert np.array_equal(loaded, X)
    assert np.array_equal(np.load(tmp_path / "list.npy", allow_pickle=False), [X, 2 * X])
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert np.array_equal(file["arr_0"], X)
        assert file["total"] == 7.5
    with np.load(tmp_path / "compressed.npz", allow_pickle=False) as file:
        assert np.array_equal(file["x"], X)


SAVES: dict[str, Callable[[Path, Any], object]] = {
    "save": lambda path, x: np.save(path / "x.npy", x),
    "savez": lambda path, x: np.savez(path / "x.npz", x=x),
    "savez_compressed": lambda path, x: np.savez_compressed(path / "x.npz", x=x),
    "savetxt": lambda path, x: np.savetxt(path / "x.txt", x),
    "list": lambda path, x: np.save(path / "x.npy", [x[0], x[1]]),
    "tofile": lambda path, x: x.tofile(path / "x.bin"),
}


@pytest.mark.parametrize("name", SAVES)
@pytest.mark.parametrize("operator", [ad.grad, ad.jacfwd])
def test_storage_of_traced_value_raises(name: str, operator: Any, tmp_path: Path) -> None:
    def save(x: Any) -> Any:
        SAVES[name](tmp_path, x)
        return np.sum(x * x)

    def save_values(x: Any) -> Any:
        SAVES[name](tmp_path, x.value)
        SAVES[name](tmp_path, cg.stop_gradient(x))
        return np.sum(x * x)

    with pytest.raises(cg.errors.LeakError, match=r"writes the .* to a file.*test_library_adapters.* Write x.value"):
        operator(save)(X)
    assert np.allclose(operator(save_values)(X), 2 * X)
    with pytest.raises((cg.errors.LeakError, cg.errors.BatchedValueError)):
        ad.vmap(save)(np.stack([X, X]))


@pytest.mark.parametrize("operator", [ad.grad, ad.jacfwd])
def test_joblib_dump_of_a_traced_value_raises(operator: Any, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    with pytest.raises(TypeError, match="cannot be pickled"):
        operator(lambda x: joblib.dump(x, tmp_path / "x.pkl") and np.sum(x))(X)
    x = joblib.load(joblib.dump(cg.variable(X, "x"), tmp_path / "x.pkl")[0])
    assert x.name == "x"
    assert np.array_equal(x, X)


# -------------------------------------------------------------------------------------------------- pandas


SERIES: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda pandas, x: np.sum(pandas.Series([x[0], x[1], 2.0]) ** 2 * x[2]),
    "tuple": lambda pandas, x: np.sum(pandas.Series((x[0] * x[1], 3)) ** 2),
    "labels": lambda pandas, x: pandas.Series([x[0], x[1]], index=["a", "b"], name="s")["b"] ** 2,
    "dictionary": lambda pandas, x: np.sum(pandas.Series({"a": x[0], "b": x[1] * x[2]}) ** 2),
    "generator": lambda pandas, x: np.sum(pandas.Series(e * e for e in x)),
    "frame": lambda pandas, x: np.sum(np.sum(pandas.DataFrame({"a": [x[0], x[1]], 0: [1.0, 2.0]}) ** 2)),
}


@pytest.mark.parametrize("name", SERIES)
def test_pandas_series_of_scalars(name: str) -> None:
    """pandas 3 made arrays of objects."""
    pandas = pytest.importorskip("pandas", reason="needs pandas")

    def f(x: Any) -> Any:
        return SERIES[name](pandas, x)

    step = 1e-6 * np.eye(3)
    differences = np.array([(f(X + d) - f(X - d)) / 2e-6 for d in step])
    assert np.allclose(ad.grad(f)(X), differences, rtol=1e-6)
    assert np.allclose(ad.jacfwd(f)(X), differences, rtol=1e-6)


def test_pandas_series_of_scalars_at_top_level() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    x = cg.variable(X)
    series = pandas.Series([x[0], x[1], 1])
    assert series.dtype == float
    assert np.array_equal(series, [X[0], X[1], 1])
    assert pandas.Series([x[0], "text"]).dtype == object


@pytest.mark.parametrize("labels", [None, ["a", "b", "c"], ["a", "b", "b"]])
@pytest.mark.parametrize("axes", [1, 2])
def test_pandas_frames_of_nodes_have_all_columns(axes: int, labels: Any) -> None:
    """pandas 2 made a frame of an array with a name by that name, and other columns were empty."""
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    shape = (2, 3) if axes == 2 else (3,)
    labels = labels if axes == 2 or labels is None else labels[:1]

    def f(x: Any) -> Any:
        frame = pandas.DataFrame(x.reshape(shape) ** 2, columns=labels)
        return np.sum(frame.iloc[:, 0]) * 2 + np.sum(frame.iloc[:, -1])

    x = np.arange(1.0, 1.0 + np.prod(shape))
    factors = np.array([[2, 0, 1]] * 2 if axes == 2 else [3] * 3).ravel()
    assert np.allclose(ad.grad(f)(x), 2 * x * factors)
    assert np.allclose(ad.jacfwd(f)(x), 2 * x * factors)
    plain = pandas.DataFrame(x.reshape(shape), columns=labels)
    assert pandas.DataFrame(cg.variable(x, "x").reshape(shape), columns=labels).equals(plain)
    with pytest.raises(ValueError, match=r"[Ll]ength|[Ss]hape"):
        ad.grad(lambda x: pandas.DataFrame(x.reshape(shape), columns=["a"] * 4).sum().sum())(x)


# -------------------------------------------------------------------------------------------------- joblib


def test_joblib_hash_of_nodes_depends_on_their_values() -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    x: Any = cg.variable(X, "x")
    assert joblib.hash(x) == joblib.hash(x) == joblib.hash(cg.variable(X)) == joblib.hash(x * 1.0)
    assert joblib.hash({"a": [x, 2 * x]}) == joblib.hash({"a": [x, x + x]})
    assert joblib.hash(x[0]) == joblib.hash(x[0])
    different = [joblib.hash(each) for each in (x, 2 * x, x[:2], x.astype(np.float32), x[0], X, 2 * X, [x, x])]
    assert len(set(different)) == len(different)


def test_joblib_hash_of_a_traced_value_raises() -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    with pytest.raises(cg.LeakError, match=r"joblib\.hash\(\)"):
        ad.grad(lambda x: len(joblib.hash(x)) * np.sum(x))(X)
    with pytest.raises(cg.LeakError, match=r"joblib\.hash\(\)"):
        ad.grad(lambda x: len(joblib.hash({"x": [x]})) * np.sum(x))(X)


class Model:
    """Holds a node in an attribute."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights


def energy(x: Any, options: Any = None) -> Any:
    """The function that is cached."""
    CALLS.append(1)
    x = x.weights if isinstance(x, Model) else x["x"][0] if isinstance(x, dict) else x
    return np.sum(np.sin(x) ** 2)


CALLS: list[int] = []


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"x": [x]}, Model], ids=["node", "nest", "attribute"])
def test_joblib_memory_does_not_cache_calls_with_nodes(wrap: Any, tmp_path: Path) -> None:
    """A stored result would have variables of its own, and the derivative would lack its part."""
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    cached = joblib.Memory(tmp_path, verbose=0).cache(energy)
    x: Any = cg.variable(X, "x")
    for _ in range(2):
        CALLS.clear()
        total = cached(wrap(x), options=len) + cached(wrap(x), len) + np.sum(x)
        assert len(CALLS) == 2
        assert np.allclose(ad.reverse.gradient(total)[x], 2 * np.sin(2 * X) + 1)
    assert not cached.check_call_in_cache(wrap(x), len)
    assert np.allclose(ad.reverse.gradient(cached.call_and_shelve(wrap(x)).get())[x], np.sin(2 * X))


def test_joblib_memory_in_operators_and_on_arrays(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    memory = joblib.Memory(tmp_path, verbose=0)
    cached, derivative = memory.cache(energy), memory.cache(ad.grad(energy))
    assert np.allclose(ad.grad(lambda x: cached(x) * 2)(X), 2 * np.sin(2 * X))
    CALLS.clear()
    assert cached(X) == cached(X) == energy(X)
    assert len(CALLS) == 2  # once by the cache, and once without it
    assert np.allclose(derivative(X), np.sin(2 * X))
    assert np.allclose(derivative(X), np.sin(2 * X))


def test_pyfftw_interfaces_keep_graph_and_plans_raise() -> None:
    pyfftw = pytest.importorskip("pyfftw", reason="needs pyFFTW, which is not in the extra `test`")
    by_numpy, by_scipy = pyfftw.interfaces.numpy_fft, pyfftw.interfaces.scipy_fft
    for f in (
        lambda x: np.sum(np.abs(by_numpy.rfft(x, threads=1)) ** 2 * np.arange(2)),
        lambda x: np.sum(np.abs(by_numpy.fft(x, 8, norm="ortho")) ** 2 * np.arange(8)),
        lambda x: np.sum(by_scipy.dct(x, workers=1) ** 2 * np.arange(3)),
    ):
        differences = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        assert np.allclose(ad.grad(f)(X), differences)
    plan = pyfftw.FFTW(np.zeros(3, complex), np.zeros(3, complex))
    built = pyfftw.builders.fft(np.zeros(3))
    assert isinstance(built, pyfftw.FFTW)
    for g in (
        plan,
        built,
        pyfftw.builders.fft,
        pyfftw.interfaces.scipy_fftpack.fft,
        lambda z: pyfftw.FFTW(z, np.zeros(3, complex)),
    ):
        with pytest.raises(cg.LeakError):
            ad.grad(lambda x, g=g: np.abs(g(x + 0j)).sum())(X)


def test_iminuit_costs_keep_graph() -> None:
    cost = pytest.importorskip("iminuit.cost", reason="needs iminuit, which is not in the extra `test`")
    for c in (
        cost.LeastSquares(np.arange(3.0), np.arange(3.0) + 1, 0.1, lambda t, a: a * t),
        cost.UnbinnedNLL(X, lambda t, a: np.exp(-t / a) / a),
        cost.BinnedNLL([10, 20, 30], [0.0, 1, 2, 3], lambda t, a: 1 - np.exp(-t / a)),
    ):
        ad.check_grads(c, [1.5])


def test_sqlite_stores_values() -> None:
    connection = sqlite3.connect(":memory:")
    values: list[Any] = []

    def f(x: Any) -> Any:
        values.append(connection.execute("select ?", (x[0],)).fetchone()[0])
        return np.sum(x * x)

    with pytest.warns(RuntimeWarning, match=r"tolist"):
        ad.grad(f)(X)
    x = cg.variable(X)
    assert [*values, connection.execute("select ?", (x[1],)).fetchone()[0]] == [1.5, 2.5]
    connection.close()
