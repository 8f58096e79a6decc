"""Modules that ``import compgraph, autodiff`` loads, and modules that are loaded at their first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import autodiff as ad
import compgraph as cg

pytestmark = pytest.mark.portable

ROOT = Path(__file__).resolve().parent.parent

# Modules that are not loaded to create a variable and compute a gradient.
LATE = [
    *("scipy", "optree", "graphviz", "pygraphviz", "tqdm", "llvmlite", "dask", "sklearn", "matplotlib", "pandas", "xarray"),
    *("compgraph.debugging", "compgraph.view", "compgraph.executor", "compgraph.compiled.jitted", "compgraph.compiled.llvm"),
    *("autodiff.distributed", "autodiff.optimizers", "autodiff.visualize", "autodiff.grads.scipy.special"),
    *("compgraph.printing", "compgraph.profiling.reports", "distributed", "numpy.polynomial", "sympy"),
    *("asyncio", "concurrent.futures", "html", "http", "importlib.resources", "json", "multiprocessing", "pathlib", "subprocess"),
    *("typing_extensions", "unittest", "urllib"),
]
# Imports that a program may do before, and their time.
ORDERS = {
    "before": ("import scipy.linalg, scipy.special", "", ""),
    "before, in part": ("import scipy.linalg", "", "cg.variable(1.0)"),
    "after": ("", "import scipy.linalg, scipy.special", ""),
    "before the first variable": ("", "import scipy.linalg", "cg.variable(1.0)"),
    "after the first variable": ("", "", "cg.variable(1.0)\nimport scipy.linalg"),
    "after the first gradient": ("", "", "ad.grad(np.sin)(1.0)\nimport scipy.special"),
    "in the function": ("", "", ""),
    "scipy alone": ("import scipy", "", "cg.variable(1.0)"),
}


def run(program: str, *options: str) -> str:
    """The output of a program, in a process without earlier imports."""
    call = [sys.executable, "-W", "error", *options, "-c", program]
    process = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_import_loads_no_late_modules() -> None:
    program = """
import sys
import numpy
before = set(sys.modules)
import compgraph, autodiff
print(*sorted(set(sys.modules) - before))
"""
    loaded = run(program).split()
    assert {"compgraph.values.node", "autodiff.reverse.sweep"} < {*loaded}
    assert not [name for name in loaded if any(f"{name}.".startswith(f"{late}.") for late in LATE)]


def test_import_of_compgraph_loads_neither_drawing_nor_profiler() -> None:
    program = """
import sys
import numpy as np
import compgraph as cg
x = cg.variable([1.0, 2.0])
assert cg.Executor(np.sum(x * x)).run() == 5
late = ("autodiff", "compgraph.view", "compgraph.printing", "compgraph.profiling", "compgraph.compiled.jitted")
print([name for name in late if name in sys.modules])
"""
    assert run(program) == "[]\n"


def test_gradient_in_reverse_loads_neither_scipy_nor_optree() -> None:
    program = """
import sys
import numpy as np
import compgraph as cg
from autodiff.reverse import gradient
x = cg.variable([1.0, 2.0])
assert (gradient(np.sum(x * x))[x] == [2, 4]).all()
print([name for name in ("scipy", "optree", "subprocess", "json") if name in sys.modules])
"""
    assert run(program) == "[]\n"


@pytest.mark.parametrize("package", [cg, ad])
def test_public_names_are_available_after_import(package: object) -> None:
    """By attribute, by ``from``, and in `dir`, in a separate process without earlier imports."""
    name = package.__name__  # type: ignore[attr-defined]
    program = f"""
import {name} as package
assert {{*package.__all__}} <= {{*dir(package)}}, {{*package.__all__}} - {{*dir(package)}}
from {name} import *
names = {{*globals()}}
assert {{*package.__all__}} <= names, {{*package.__all__}} - names
for name in package.__all__:
    assert getattr(package, name) is globals()[name], name
assert [name for name in dir(package) if not hasattr(package, name)] == []
try:
    package.nowhere
except AttributeError as error:
    print(error)
"""
    assert run(program) == f"{name} has no 'nowhere'\n"


OTHER_PACKAGES = [pytest.param(package, marks=pytest.mark.exhaustive) for package in ("compiled", "debugging", "view", "nn")]


@pytest.mark.parametrize("package", ["executor", *OTHER_PACKAGES])
def test_packages_are_attributes_after_import(package: str) -> None:
    assert run(f"import compgraph; print(compgraph.{package}.__name__)") == f"compgraph.{package}\n"


def test_late_module_tables_hold_numpy_functions() -> None:
    """They may be imported while ``np.zeros`` is patched, and within the contexts of the function that needs them."""
    program = """
import importlib, pkgutil, sys
import numpy as np
import autodiff as ad, compgraph as cg

def f(x):
    table = np.zeros(2)
    table[0] = x
    assert np.zeros.is_differentiation_patch
    import scipy.fft, scipy.integrate, scipy.interpolate, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.signal, scipy.stats
    for name in ("view", "executor", "compiled", "trees"):
        package = getattr(cg, name, None) or importlib.import_module(f"compgraph.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"compgraph.{name}."):
            if not found.name.startswith("compgraph.compiled.llvm") or importlib.util.find_spec("llvmlite"):
                importlib.import_module(found.name)
    cg.debugging, ad.optimizers
    return np.sum(table * table)

at_first = set(sys.modules)
assert ad.grad(f)(3.0) == 6

def held(value, depth=3):
    if depth and isinstance(value, (dict, list, tuple, set, frozenset)):
        for each in (*value, *(value.values() if isinstance(value, dict) else ())):
            yield each
            yield from held(each, depth - 1)

for name in sorted(set(sys.modules) - at_first):
    if name.startswith(("compgraph.", "autodiff.")):
        print(name)
        for key, value in vars(sys.modules[name]).items():
            wrong = [x for x in (value, *held(value)) if type(x).__name__ in ("Buffer", "CarrierBuffer", "Borrowed")]
            wrong += [x for x in held(value) if callable(x) and getattr(x, "is_differentiation_patch", False)]
            assert key == "__builtins__" or not wrong, (name, key, wrong)
"""
    late = run(program).split()
    assert {"compgraph.view.dot", "compgraph.executor.cse", "autodiff.optimizers.rules", "compgraph.scipy.linalg"} <= {*late}


USUAL_ORDERS = ("before", "after the first gradient", "in the function")


@pytest.mark.parametrize(
    "order", [pytest.param(order, marks=[] if order in USUAL_ORDERS else pytest.mark.exhaustive) for order in ORDERS]
)
def test_scipy_dispatches_to_nodes_in_any_import_order(order: str) -> None:
    """Before the package, after it, after a variable was made, or in the function itself."""
    before, between, after = ORDERS[order]
    program = f"""
{before}
import numpy as np
import compgraph as cg, autodiff as ad
{between}
{after}
def f(x):
    import scipy.linalg
    import scipy.special as sc
    return np.sum(sc.expit(x)) + np.sum(scipy.linalg.solve(np.diag([2.0, 4.0]), x**2))
x = np.array([0.3, 0.5])
y = cg.variable(x)
s = 1 / (1 + np.exp(-x))
expected = s * (1 - s) + x * [1.0, 0.5]
assert np.allclose(ad.grad(f)(x), expected)
assert np.allclose(ad.jacfwd(f)(x), expected)
assert np.allclose(ad.reverse.gradient(f(y))[y], expected)
"""
    run(program)


def test_calls_with_placeholders_alone_are_recorded() -> None:
    """SciPy and NumPy's constructors are patched before the first placeholder as well, if no variable was made."""
    program = """
import numpy as np
import scipy.linalg
import compgraph as cg
x = cg.placeholder((2,), example=[1.0, 2.0])
a = np.array([[x[0], 1.0], [0.0, x[1]]])
run = cg.Executor(scipy.linalg.solve(a, [1.0, 4.0])).run
assert np.allclose(run({x: [1.0, 4.0]}), [0.0, 1.0])
"""
    run(program)


@pytest.mark.parametrize(
    "first", ["compgraph.scipy.special", "compgraph.scipy.linalg", "autodiff.grads.scipy.special.bessel_functions"]
)
def test_import_of_policy_or_rule_before_scipy(first: str) -> None:
    """SciPy is patched completely, even if a module of the packages is the first to import it."""
    program = f"""
import compgraph as cg, autodiff as ad
x = cg.variable(0.5)
import {first}
import numpy as np
import scipy.linalg
import scipy.special
assert np.isclose(ad.reverse.gradient(scipy.special.erf(x))[x], 2 / np.sqrt(np.pi) * np.exp(-0.25))
assert isinstance(scipy.linalg.inv(np.eye(2) * x), cg.Node)
"""
    run(program)


@pytest.mark.parametrize(
    "call",
    [
        "cg.Executor([y])",
        *[pytest.param(call, marks=pytest.mark.exhaustive) for call in ("y", "cg.conv(y, np.ones(1))", "ad.optimizers.Adam(x)")],
    ],
)
def test_pickles_load_in_fresh_process(call: str, tmp_path: Path) -> None:
    import pickle

    program = f"""
import pickle, sys
import numpy as np
import autodiff as ad, compgraph as cg
x = cg.variable([1.0, 2.0], "x")
y = np.tanh(x) * 2
with open(sys.argv[1], "wb") as file:
    pickle.dump({call}, file)
"""
    path = tmp_path / "pickled"
    process = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    kind = run(f"import pickle; print(type(pickle.load(open({str(path)!r}, 'rb'))).__name__)", "-W", "ignore::ResourceWarning")
    assert kind.strip() == type(pickle.loads(path.read_bytes())).__name__
