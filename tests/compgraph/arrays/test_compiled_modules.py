"""Compiled modules look up NumPy's own functions under names that are patched for Python code."""

from __future__ import annotations

import builtins
import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.arrays.patched_numpy import OriginalModule, is_compiled

pytestmark = pytest.mark.portable

GENERATORS = importlib.import_module("numpy.random._generator")  # in Cython: its functions cast what ``np.empty`` returns


def kinds(x: Any) -> tuple[type, ...]:
    """The classes of the arrays that Python code and a compiled module get by the same names."""
    numpy: Any = GENERATORS.np  # type: ignore[attr-defined]
    arrays = np.zeros(2), numpy.zeros(2), np.fft.fftfreq(3), numpy.fft.fftfreq(3), numpy.random.normal(size=2)
    return tuple([builtins.type(array) for array in arrays])


def test_compiled_module_gets_plain_arrays_within_an_operator() -> None:
    kind_lists: list[Any] = []
    ad.grad(lambda x: kind_lists.append(kinds(x)) or x)(1.0)
    assert kind_lists[0][0] is kind_lists[0][2] is not np.ndarray
    assert {*kind_lists[0][1:2], *kind_lists[0][3:]} == {np.ndarray}
    assert set(kinds(1.0)) == {np.ndarray}


def test_compiled_module_gets_plain_arrays_within_patched_numpy() -> None:
    cg.variable(1.0)
    with cg.patched_numpy():
        first, second = kinds(1.0)[:2]
    assert first is not second is np.ndarray


def test_compiled_module_raises_for_tracers() -> None:
    """Its own ``np.asarray`` calls ``__array__``."""
    with pytest.raises(cg.LeakError):
        ad.grad(lambda x: np.sum(GENERATORS.np.asarray(x)))(np.ones(2))  # type: ignore[attr-defined]


def test_original_function_has_attributes_of_its_module() -> None:
    ad.grad(lambda x: np.zeros(2)[0] + x)(1.0)
    numpy: Any = GENERATORS.np  # type: ignore[attr-defined]
    assert type(numpy) is OriginalModule
    assert isinstance(numpy, ModuleType)
    assert numpy.float64 is np.float64
    assert numpy.linalg is np.linalg
    assert type(numpy.random) is OriginalModule
    with pytest.raises(AttributeError, match="nothing"):
        _ = numpy.nothing


def test_python_modules_keep_numpy() -> None:
    ad.grad(lambda x: np.zeros(2)[0] + x)(1.0)
    modules = [m for m in list(sys.modules.values()) if isinstance(m, ModuleType) and not is_compiled(m)]
    assert not [m.__name__ for m in modules if any(type(value) is OriginalModule for value in list(vars(m).values()))]


CALLED_BY_C = """
import builtins
import numpy as np, autodiff as ad

def f(x):
    generator = np.random.Generator(np.random.PCG64(0))
    y = np.zeros(3)
    y[0] = x
    drawn = [*map(generator.random, [3]), max(map(generator.random, [3]), key=len), generator.random(3)]
    assert {builtins.type(d) for d in drawn} == {np.ndarray}
    return y.sum() * drawn[0].sum()

assert ad.grad(f)(3.0) == np.random.Generator(np.random.PCG64(0)).random(3).sum()
"""


def test_compiled_function_called_by_c_code_gets_plain_arrays() -> None:
    """C code would overwrite memory of an argument that is not an array, and crash."""
    subprocess.run([sys.executable, "-c", CALLED_BY_C], check=True)


IMPORTED_LATER = """
import builtins, sys
import numpy as np, autodiff as ad

def f(x):
    assert "scipy.spatial._ckdtree" not in sys.modules
    import scipy.spatial._ckdtree as compiled
    y = np.zeros(2)
    y[0] = x
    assert builtins.type(compiled.np.zeros(2)) is np.ndarray is not builtins.type(y)
    return y.sum()

assert ad.grad(f)(3.0) == 1
"""


def test_compiled_module_imported_within_an_operator_gets_plain_arrays() -> None:
    pytest.importorskip("scipy")
    subprocess.run([sys.executable, "-c", IMPORTED_LATER], check=True)
