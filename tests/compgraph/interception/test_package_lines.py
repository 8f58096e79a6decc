"""Errors in packages that receive a tracer name the operation, the user's line, and the package's line that read its numbers."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

X = np.array([1.5, 2.5, 3.5])


def error_of(function: Callable[[Any], Any]) -> Exception:
    """The error that differentiating a function raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  (each test checks class and text)
        ad.grad(lambda x: function(x) * 1.0)(X)
    return caught.value


def text_of(error: Exception) -> str:
    """The message of a LeakError, and its notes."""
    assert isinstance(error, cg.LeakError)
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def require_named(text: str, *names: str, line: Any, package: str | None) -> None:
    """Check that a message has some names, a line of a function of this file, and a line of a package's file, if any."""
    assert all(name in text for name in names), text
    assert re.search(rf'File "{re.escape(__file__)}", line \d+, in {line.__name__}: ', text), text
    if package is None:
        assert "requested at" not in text
    else:
        assert re.search(rf'requested at File "[^"]*{package}', text), text


# ----------------------------------------------------------------------------------------------------- numba


@pytest.fixture(scope="module")
def numba() -> Any:
    return pytest.importorskip("numba", reason="needs numba")


def test_numba_vectorize_names_function_and_lines(numba: Any) -> None:
    doubled = numba.vectorize(["f8(f8)"])(lambda v: v * 2)
    lazy = numba.vectorize(lambda v: v * 2)

    def array(x: Any) -> Any:
        return doubled(x).sum()

    def number(x: Any) -> Any:
        return lazy(x[0])

    def output(x: Any) -> Any:
        return doubled(x, out=np.zeros(3)).sum()

    for function in (array, number, output):
        text = text_of(error_of(function))
        require_named(text, "is not supported on nodes", line=function, package="dufunc.py")
        assert "np.<lambda>" not in text


def test_numba_guvectorize_and_eager_signature_name_lines(numba: Any) -> None:
    @numba.guvectorize(["void(f8[:],f8[:])"], "(n)->()")
    def summed(a: Any, result: Any) -> None:
        result[0] = a.sum()

    @numba.njit("f8(f8[:])")
    def first(a: Any) -> Any:
        return a[0]

    def generalized(x: Any) -> Any:
        return summed(x)

    def eager(x: Any) -> Any:
        return first(x)

    for function, package in ((generalized, "gufunc.py"), (eager, "dispatcher.py")):
        require_named(text_of(error_of(function)), line=function, package=package)


def test_numba_containers_and_classes_name_lines(numba: Any) -> None:
    experimental = pytest.importorskip("numba.experimental", reason="needs numba")

    class Holder:
        def __init__(self, a: Any) -> None:
            self.a = a

    compiled = experimental.jitclass([("a", numba.float64[:])])(Holder)

    def appended(x: Any) -> Any:
        return numba.typed.List([1.0]).append(x[0])

    def constructed(x: Any) -> Any:
        return compiled(x).a

    for function, name, package in (
        (appended, "numba.typed.List.append()", "typedlist.py"),
        (constructed, "Holder()", "jitclass/base.py"),
    ):
        require_named(text_of(error_of(function)), name, line=function, package=package)


def test_numba_stencil_error_gets_a_note(numba: Any) -> None:
    stencil = numba.stencil(lambda a: a[-1] + a[1])

    def smoothed(x: Any) -> Any:
        return stencil(x).sum()

    error = error_of(smoothed)
    assert type(error).__name__ == "NumbaValueError"
    (note,) = error.__notes__
    require_named(note, "x (shape (3,), float64)", "write x.value", line=smoothed, package="stencil.py")


# ----------------------------------------------------------------------------------------------------- h5py


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        yield file.create_dataset("x", data=X)


def test_h5py_low_level_methods_name_method_and_lines(dataset: Any) -> None:
    h5s = pytest.importorskip("h5py.h5s", reason="needs h5py")

    def written(x: Any) -> Any:
        return dataset.id.write(h5s.ALL, h5s.ALL, x)

    def read(x: Any) -> Any:
        return dataset.id.read(h5s.ALL, h5s.ALL, x * 1)

    for function, name in ((written, "write()"), (read, "read()")):
        require_named(text_of(error_of(function)), f"the method {name} of h5py", line=function, package=r"h5py/.*\.pyx")


def test_h5py_read_direct_names_the_method(dataset: Any) -> None:
    def read(x: Any) -> Any:
        return dataset.read_direct(x)

    require_named(text_of(error_of(read)), "h5py.Dataset.read_direct()", line=read, package=None)


def test_h5py_reads_into_arrays_made_inside(dataset: Any) -> None:
    def read(x: Any) -> Any:
        out = np.zeros(3)
        dataset.read_direct(out)
        return np.sum(out * x)

    assert np.allclose(ad.grad(read)(X), X)


def test_h5py_datasets_are_operands(dataset: Any) -> None:
    assert np.allclose(ad.grad(lambda x: np.sum(dataset * x))(X), X)
    assert np.allclose(ad.grad(lambda x: np.sum(x / dataset))(X), 1 / X)


# ----------------------------------------------------------------------------------------------------- pandas, scikit-learn


def test_pandas_cython_functions_name_lines() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    algos = pytest.importorskip("pandas._libs.algos", reason="needs pandas")

    def rolled(x: Any) -> Any:
        return pandas.Series(x).rolling(2).sum().iloc[2]

    def cast(x: Any) -> Any:
        return algos.nancorr(np.outer(x, x)).sum()

    def fused(x: Any) -> Any:
        return algos.kth_smallest(x, 1)

    for function, name, package in (
        (rolled, "pandas.core.window.Rolling.sum()", r"pandas/core/window/\w+.py"),
        (cast, "nancorr()", r"pandas/_libs/algos\.pyx"),
        (fused, "kth_smallest()", r"pandas/_libs/algos\.pyx"),
    ):
        require_named(text_of(error_of(function)), name, line=function, package=package)


def test_cython_memoryviews_name_lines() -> None:
    utils = pytest.importorskip("sklearn.manifold._utils", reason="needs scikit-learn")

    def searched(x: Any) -> Any:
        return utils._binary_search_perplexity(np.outer(x, x).astype(np.float32), 2.0, 0)

    require_named(text_of(error_of(searched)), "_binary_search_perplexity()", line=searched, package=r"_utils\.pyx")


# ----------------------------------------------------------------------------------------------------- packages not in the extra


def test_pyfftw_plans_and_utilities_name_lines() -> None:
    pyfftw = pytest.importorskip("pyfftw", reason="needs pyFFTW, which is not in the extra `test`")
    plan = pyfftw.FFTW(np.zeros(3, complex), np.zeros(3, complex))

    def planned(x: Any) -> Any:
        return plan(x + 0j)

    def updated(x: Any) -> Any:
        return plan.update_arrays(x + 0j, np.zeros(3, complex))

    def packed(x: Any) -> Any:
        return pyfftw.interfaces.scipy_fftpack.fft(x)

    for function, name, package in (
        (planned, "pyfftw.FFTW()", None),
        (updated, "pyfftw.FFTW.update_arrays()", None),
        (packed, "pyfftw.interfaces.scipy_fftpack.fft()", "scipy_fftpack.py"),
    ):
        require_named(text_of(error_of(function)), name, line=function, package=package)

    def aligned(x: Any) -> Any:
        return pyfftw.byte_align(x)

    (note,) = error_of(aligned).__notes__
    require_named(note, "pyfftw.byte_align()", "x (shape (3,), float64)", line=aligned, package=r"utils\.pxi")


def test_polars_constructors_and_operators_name_lines() -> None:
    pl = pytest.importorskip("polars", reason="needs polars, which is not in the extra `test`")

    def series(x: Any) -> Any:
        return pl.Series(x).sum()

    def scaled(x: Any) -> Any:
        return pl.Series(X) * x[0]

    def multiplied(x: Any) -> Any:
        return pl.Series(X) * x

    def filled(x: Any) -> Any:
        return pl.Series([1.0, None]).fill_null(x[0])

    for function, name in (
        (series, "polars.Series()"),
        (scaled, "an operator of polars's"),
        (multiplied, "an operator of polars's"),
        (filled, "polars.Series.fill_null()"),
    ):
        require_named(text_of(error_of(function)), name, line=function, package=r"polars/.*\.py")

    def objects(x: Any) -> Any:
        return pl.Series([x[0], x[1]]).sum()

    def reflected(x: Any) -> Any:
        return x * pl.Series(X)

    for function in (objects, reflected):
        error = error_of(function)
        note = next(note for note in error.__notes__ if "differentiated" in note)
        require_named(note, "x (shape (3,), float64)", line=function, package=r"polars/.*\.py")


MODULE = """
import numpy as np
cimport numpy as cnp
cnp.import_array()

def view(double[:] a):
    return a[0]

def buffer(cnp.ndarray[double, ndim=1] a):
    return a[0]

def checked(a):
    cdef cnp.ndarray b = <cnp.ndarray?>a
    return b.shape[0]

def number(double v):
    return v

def filled(double[::1] out, const double[::1] values):
    out[:] = values

def assigned(double[::1] out, value):
    out[0] = value

def computed(a):
    return a * 2.0 + a.sum()
"""
BUILD = """
from setuptools import Extension, setup
from Cython.Build import cythonize
import numpy
setup(ext_modules=cythonize([Extension("compiled_by_cython", ["compiled_by_cython.pyx"], include_dirs=[numpy.get_include()])]))
"""


def test_cython_module_names_function_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Cython", reason="needs Cython and a C compiler, which are not in the extra `test`")
    (tmp_path / "compiled_by_cython.pyx").write_text(MODULE)
    (tmp_path / "setup.py").write_text(BUILD)
    subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.syspath_prepend(tmp_path)
    c = pytest.importorskip("compiled_by_cython", reason="needs Cython")
    target = np.zeros(3)

    def view(x: Any) -> Any:
        return c.view(x)

    def buffer(x: Any) -> Any:
        return c.buffer(x)

    def checked(x: Any) -> Any:
        return c.checked(x)

    def number(x: Any) -> Any:
        return c.number(x[0])

    def filled(x: Any) -> Any:
        return c.filled(target, x * x)

    def written(x: Any) -> Any:
        return c.filled(x * x, target)

    def assigned(x: Any) -> Any:
        return c.assigned(np.zeros(3), x[0])

    for function, package in (
        (view, "cython.pyx"), (buffer, None), (checked, "cython.pyx"), (number, "cython.pyx"), (filled, "cython.pyx"),
        (written, "cython.pyx"), (assigned, "cython.pyx"),
    ):  # fmt: skip
        name = "filled" if function is written else function.__name__
        require_named(text_of(error_of(function)), f"compiled_by_cython.{name}()", line=function, package=package)
    assert ad.grad(lambda x: c.computed(x).sum())(X).tolist() == [5.0] * 3


# ----------------------------------------------------------------------------------------------------- notes


def test_ctypes_error_gets_a_note() -> None:
    converted = ctypes.pythonapi.PyFloat_FromDouble

    def called(x: Any) -> Any:
        return converted(x[0])

    error = error_of(called)
    assert isinstance(error, ctypes.ArgumentError)
    (note,) = error.__notes__
    require_named(note, "x (shape (3,), float64)", line=called, package=None)


def test_error_without_tracer_gets_no_note() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")

    def missing(x: Any) -> Any:
        element = pandas.Series([1.0])["missing"]
        return element * x

    def own(x: Any) -> Any:
        raise ValueError(f"of my own, with {x.shape}")

    for function in (missing, own, lambda x: np.zeros(2).reshape(5) * x):
        assert not hasattr(error_of(function), "__notes__")


def test_note_is_added_once_by_nested_operators() -> None:
    converted = ctypes.pythonapi.PyFloat_FromDouble

    def inner(x: Any) -> Any:
        return converted(x[0])

    def outer(x: Any) -> Any:
        return ad.grad(inner)(x).sum()

    assert len(error_of(outer).__notes__) == 1
