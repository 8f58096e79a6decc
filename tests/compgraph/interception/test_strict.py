"""Within cg.strict, and operators, code that reads the memory of nodes raises, and lists of nodes are recorded."""

import hashlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

POINT = np.array([2.0, 3.0])

OF_LISTS = {
    "imag": lambda z: np.sum(np.array([z[0] + 1j * z[1], 2j]).imag ** 2),
    "np.real": lambda z: np.sum(np.real(np.array([z[0] + 1j * z[1], 2j])) ** 2),
    "angle": lambda z: np.sum(np.angle(np.array([z[0] + 1j * z[1], 2j]))),
    "fft": lambda z: np.sum(np.abs(np.fft.fft(np.array([z[0] + 1j * z[1], 2j]))) ** 2),
    "dtype": lambda z: np.sum(np.abs(np.array([z[0] + 1j * z[1], 2j], dtype=complex)) ** 2),
    "asarray": lambda z: np.sum(np.asarray([z * 1j, z]).imag ** 2),
    "real": lambda z: np.sum(np.exp(np.array([z[0], z[1] * 2]))),
}


@pytest.mark.parametrize("f", OF_LISTS.values(), ids=OF_LISTS)
def test_strict_records_lists_of_complex_elements(f):
    slopes = [(f(POINT + h) - f(POINT - h)) / 2e-6 for h in np.eye(2) * 1e-6]
    with cg.strict():
        z = cg.variable(POINT, "z")
        gradient = ad.reverse.gradient(f(z))["z"]
        within = ad.grad(f)(POINT)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)
    np.testing.assert_allclose(within, slopes, rtol=1e-6)


KEYS = {
    "sha1": lambda v: hashlib.sha1(v).hexdigest(), "md5": lambda v: hashlib.md5(v).digest(), "crc32": lambda v: zlib.crc32(v),
    "sha256 of a copy": lambda v: hashlib.sha256(np.ascontiguousarray(v)).hexdigest(),
    "new": lambda v: hashlib.new("sha256", v).digest(),
    "frombuffer": lambda v: np.frombuffer(v).tobytes(),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_cache_keyed_by_the_memory_of_a_node_raises(key):
    cache = {}

    def f(x):
        total = 0.0
        for k in range(2):
            part = x[k : k + 1] * 1.0
            total = total + cache.setdefault(key(part), np.sum(part * part))
        return total

    with pytest.raises((cg.LeakError, TypeError)):
        ad.grad(f)(POINT)
    cache.clear()
    with pytest.raises((cg.LeakError, TypeError)):
        ad.jvp(f, (POINT,), (POINT,))


def test_frombuffer_in_numpy_only_function_raises():
    def f(x):
        return np.frombuffer(x[0])[0] * x[1]

    with pytest.raises(cg.LeakError, match="frombuffer"):
        ad.grad(f)(POINT)


def test_strict_names_the_line_of_the_user_where_numpy_lies_in_another_folder(tmp_path):
    package, packages = Path(np.__file__).parent, tmp_path / "packages"
    packages.mkdir()
    for folder in (package, package.with_name("numpy.libs")):
        if folder.exists():
            (packages / folder.name).symlink_to(folder)
    program = tmp_path / "program"
    program.write_text(
        """
import numpy as np
import pandas
import compgraph as cg
assert np.__file__.startswith(PATH)
x = cg.variable([1.0, 2.0])
with cg.strict():
    try:
        pandas.DataFrame({"a": x * 2})
    except cg.LeakError as error:
        print(error)
""".replace("PATH", repr(str(packages)))
    )
    pytest.importorskip("pandas", reason="pandas is optional")
    path = os.pathsep.join([str(packages), *filter(None, sys.path)])
    result = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert result.stdout.startswith("pandas.DataFrame() takes the numbers of")
    assert f'{program}", line 9' in result.stdout
