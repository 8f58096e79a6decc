"""Files of the user whose names or folders are those of a library: they are user code."""

from __future__ import annotations

import functools
import inspect
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from compgraph.frames import is_in_library, is_internal
from compgraph.interception.callers import RECEIVES_BUFFERS, RECEIVES_PATCHES, runs_on_nodes

PROGRAM = """
import numpy as np
import autodiff as ad
import compgraph as cg

classes = []

def f(x):
    classes.append(x.__class__)
    buffer = np.zeros(2)
    buffer[0] = x
    return buffer.sum() * x

slope = ad.grad(f)(3.0)
variable = cg.variable(2.0)
node = np.array([variable, 1.0])
line = node.line
is_node = isinstance(node, cg.Node)
"""


@pytest.mark.parametrize("name", ["dask/main.py", "numba/main.py", "scipy/main.py", "polynomial/main.py", "functools.py"])
def test_user_file_named_as_a_library_is_user_code(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM, encoding="utf-8")
    names = runpy.run_path(str(path))
    assert names["slope"] == 6.0
    assert {*names["classes"]} == {float}
    assert names["is_node"]
    assert str(path) in str(names["line"])
    assert not is_internal(str(path))


def test_files_of_libraries_are_recognized(tmp_path: Path) -> None:
    decompositions = sys.modules[scipy.linalg.svd.__module__].__file__ or ""
    assert is_in_library(decompositions, "scipy")
    assert not RECEIVES_PATCHES[decompositions]
    assert is_internal(functools.__file__)
    assert RECEIVES_PATCHES[functools.__file__]
    polyfit = inspect.unwrap(np.polyfit).__code__.co_filename
    assert runs_on_nodes(np.polynomial.chebyshev.__file__)
    assert runs_on_nodes(polyfit)
    assert RECEIVES_BUFFERS[np.polynomial.chebyshev.__file__]
    assert not is_in_library(str(tmp_path / "dask" / "main.py"), "dask")
    assert not is_in_library(str(tmp_path / "nowhere.py"), "a package that is not imported")
