"""Parts of the installed NumPy's and SciPy's own test suites, run after this package has patched their functions."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Runs before the tests: imports and patches SciPy, and computes a derivative, which installs the other patches.
PLUGIN = """
import numpy as np
import scipy.fft, scipy.integrate, scipy.interpolate, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.signal
import scipy.sparse.linalg, scipy.spatial, scipy.special, scipy.stats

import autodiff as ad


def filled(x):
    a = np.zeros(2)
    a[0] = scipy.linalg.norm(x)
    return np.sum(a)


assert ad.grad(filled)(np.array([3.0, 4.0])).tolist() == [0.6, 0.8]
"""

PARTS = {
    "numpy": "lib/tests/test_polynomial.py lib/tests/test_shape_base.py lib/tests/test_index_tricks.py polynomial/tests "
    "lib/tests/test_twodim_base.py fft/tests ma/tests/test_extras.py",
    "scipy": "linalg/tests/test_basic.py linalg/tests/test_special_matrices.py linalg/tests/test_matfuncs.py "
    "special/tests/test_logsumexp.py fft/tests/test_helper.py signal/tests/test_windows.py ndimage/tests/test_interpolation.py "
    "interpolate/tests/test_polyint.py sparse/tests/test_construct.py spatial/transform/tests/test_rotation.py "
    "sparse/linalg/_isolve/tests/test_lsqr.py stats/tests/test_variation.py stats/tests/test_contingency.py",
    # These take functions as arguments, and are intercepted in every call.
    "scipy's solvers": "optimize/tests/test_minpack.py optimize/tests/test_zeros.py optimize/tests/test__root.py "
    "optimize/tests/test_slsqp.py optimize/tests/test_cobyla.py optimize/tests/test_nonlin.py optimize/tests/test_tnc.py "
    "integrate/tests/test_quadpack.py integrate/tests/test_bvp.py integrate/tests/test_integrate.py integrate/_ivp/tests",
}


@pytest.mark.slow
@pytest.mark.parametrize("which", PARTS)
def test_upstream_tests_pass(which: str, tmp_path: Path) -> None:
    spec = importlib.util.find_spec(which.split("'")[0])
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    parts = [str(home / part) for part in PARTS[which].split() if (home / part).exists()]
    assert len(parts) > 5  # wheels contain the tests
    (tmp_path / "after_a_derivative.py").write_text(PLUGIN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-p", "after_a_derivative"]
    run = subprocess.run(
        [*command, "-m", "not slow", *parts], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
