"""SciPy modules imported late, for example within a differentiated function, are patched at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = {
    "attribute, in a graph": """
        x = cg.variable([0.3, 0.5])
        out = np.sum(x) + np.sum(scipy.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), x**2))
        gradient = ad.reverse.gradient(out, [x])[x]
    """,
    "attribute, in a function": """
        gradient = ad.grad(lambda x: np.sum(x) + np.sum(scipy.linalg.solve(np.diag([2.0, 4.0]), x**2)))(np.array([0.3, 0.5]))
    """,
    "import in the function": """
        def f(x):
            from scipy.linalg import solve
            return np.sum(x) + np.sum(solve(np.diag([2.0, 4.0]), x**2))
        gradient = ad.grad(f)(np.array([0.3, 0.5]))
    """,
    "import within vmap": """
        def f(x):
            from scipy import stats  # which draws random numbers for its documentation
            from scipy.linalg import solve
            return np.sum(x) + np.sum(solve(np.diag([2.0, 4.0]), x**2))
        gradient = ad.vmap(ad.grad(f))(np.array([[0.3, 0.5]]))[0]
    """,
    "by another module of SciPy": """
        def f(x):
            import scipy.stats
            import scipy.linalg
            assert abs(ad.grad(lambda v: scipy.stats.norm.logpdf(v))(0.5) + 0.5) < 1e-12
            return np.sum(x) + np.sum(scipy.linalg.solve(np.diag([2.0, 4.0]), x**2))
        gradient = ad.grad(f)(np.array([0.3, 0.5]))
    """,
}


USUAL = ("attribute, in a function", "import within vmap")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in USUAL else pytest.mark.exhaustive) for name in PROGRAMS])
def test_import_hook_patches_modules_imported_later(name: str) -> None:
    """In a process that has not imported them: the derivative is right the first time."""
    lines = [
        "import numpy as np, scipy, sys",
        "import compgraph as cg, autodiff as ad",
        "cg.variable(1.0)",
        "assert 'scipy.linalg' not in sys.modules",
        *[line[8:] for line in PROGRAMS[name].splitlines()],
        "assert np.allclose(gradient, [1.3, 1.25]), gradient",
        "module = sys.modules['scipy.linalg']",
        "assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == 'SourceFileLoader'",
    ]
    process = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.slow
def test_import_hook_with_threads_does_not_deadlock() -> None:
    """Threads that create variables while modules are imported do not deadlock."""
    program = """
import importlib, threading
import numpy as np
import autodiff as ad, compgraph as cg
import scipy
cg.variable(1.0)
done = threading.Event()
def compute():
    while not done.wait(0.001):
        cg.variable(1.0)
        assert ad.grad(lambda x: x * x)(2.0) == 4
threads = [threading.Thread(target=compute) for _ in range(4)]
[t.start() for t in threads]
for name in ["linalg", "stats", "special", "signal", "sparse.linalg", "optimize", "spatial.distance"]:
    importlib.import_module(f"scipy.{name}")
done.set()
[t.join() for t in threads]
assert np.allclose(ad.grad(lambda x: scipy.stats.norm.logpdf(x) + scipy.linalg.norm(x * np.ones(2)))(0.5), -0.5 + 2**0.5)
"""
    call = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
