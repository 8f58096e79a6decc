"""`import autodiff.compat.autograd` makes ``import autograd`` import this package. Each test runs a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import autodiff

ROOT = Path(autodiff.__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "howto" / "replace_autograd.md"


def run(arguments: list[str], directory: Path, is_failing: bool = False) -> str:
    """The output of Python, run in a directory of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    process = subprocess.run([sys.executable, *arguments], cwd=directory, env=environment, text=True, capture_output=True)
    assert (process.returncode != 0) is is_failing, process.stderr + process.stdout
    return process.stderr if is_failing else process.stdout


def program(text: str, directory: Path) -> str:
    """The output of a program that imports the names first."""
    return run(["-c", f"import autodiff.compat.autograd\n{text}"], directory)


def test_autograd_numpy_is_numpy_itself(tmp_path: Path) -> None:
    text = """
import sys, numpy, scipy.special, scipy.stats, numpy.linalg
before = numpy.linalg.__spec__
import autograd, autograd.numpy as anp, autograd.scipy.special as special, autograd.scipy.stats.norm as norm
import autograd.numpy.linalg as linalg, autograd.numpy.random, autograd.scipy.stats
from autograd.numpy.fft import rfft
from autograd import numpy as again
from autograd.scipy.stats import poisson
assert anp is again is autograd.numpy is numpy
assert special is scipy.special and norm is scipy.stats.norm and poisson is scipy.stats.poisson
assert linalg is numpy.linalg and numpy.linalg.__spec__ is before and rfft is numpy.fft.rfft
assert autograd.numpy.random is numpy.random and numpy.__name__ == "numpy"
assert not [name for name in vars(numpy) if name.startswith("numpy_")]
try:
    import autograd.numpy.nowhere
except ModuleNotFoundError as error:
    print(error)
try:
    import autograd.nowhere
except ModuleNotFoundError as error:
    print(error)
"""
    output = program(text, tmp_path)
    assert output == "No module named 'autograd.numpy.nowhere'\nNo module named 'autograd.nowhere'\n"


def test_autograd_names_can_be_imported(tmp_path: Path) -> None:
    text = """
from autograd import (checkpoint, deriv, dict, elementwise_grad, grad, grad_and_aux, grad_named, hessian, isinstance, jacobian,
    hessian_tensor_product, hessian_vector_product, holomorphic_grad, list, make_ggnvp, make_hvp, make_jvp, make_vjp,
    multigrad_dict, primitive, tensor_jacobian_product, tuple, type, value_and_grad, vector_jacobian_product)
from autograd.builtins import DictBox, DictVSpace, ListVSpace, NamedTupleVSpace, SequenceBox, TupleVSpace
from autograd.core import VSpace, make_vjp, make_jvp, primitive_jvps, primitive_vjps, vspace, getval, isbox
from autograd.differential_operators import make_jvp_reversemode, unary_to_nary
from autograd.extend import (Box, JVPNode, SparseObject, VJPNode, VSpace, def_linear, defjvp, defjvp_argnum, defjvp_argnums,
    defvjp, defvjp_argnum, defvjp_argnums, notrace_primitive, primitive, register_notrace, vspace)
from autograd.misc import const_graph, flatten
from autograd.misc.fixed_points import fixed_point
from autograd.misc.flatten import flatten, flatten_func
from autograd.misc.optimizers import adam, rmsprop, sgd, unflatten_optimizer
from autograd.misc.tracers import const_graph
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vjps import match_complex, replace_zero, unbroadcast, unbroadcast_f
from autograd.numpy.numpy_vspaces import ArrayVSpace, ComplexArrayVSpace
from autograd.numpy.numpy_wrapper import make_diagonal, sin
from autograd.scipy.signal import convolve, convolve2d
from autograd.test_util import check_equivalent, check_grads, check_jvp, check_vjp, combo_check, scalar_close
from autograd.tracer import Box, getval, isbox, notrace_primitive, primitive
from autograd.util import subval, subvals
from autograd.wrap_util import unary_to_nary
from autograd_gamma import betainc, betaincln, gammainc, gammaincc, gammainccln, gammaincln, gammaln
print(subval((1, 2, 3), 1, 5), subvals((1, 2), [(0, 7)]))
"""
    assert program(text, tmp_path) == "(1, 5, 3) (7, 2)\n"


def test_autograd_import_of_packages_installs_nothing(tmp_path: Path) -> None:
    text = """
import importlib.util, sys
before = [*sys.meta_path]
import autodiff, compgraph, autodiff.compat, autodiff.compat.hips
print([name for name in sys.modules if name.startswith("autograd")], "autodiff.compat.autograd" in sys.modules)
print([finder for finder in sys.meta_path if "compat" in type(finder).__module__])
"""
    assert run(["-c", text], tmp_path) == "[] False\n[]\n"


def test_autograd_imported_earlier_raises(tmp_path: Path) -> None:
    (tmp_path / "autograd.py").write_text("")
    text = "import autograd\nimport autodiff.compat.autograd"
    assert "ImportError: autograd was imported before autodiff.compat.autograd" in run(["-c", text], tmp_path, is_failing=True)
    assert program("import autograd\nprint(autograd.grad.__module__)", tmp_path) == "autodiff.compat.hips.operators\n"


def test_autograd_iterators_of_arrays_are_stacked(tmp_path: Path) -> None:
    text = """
import numpy, autograd.numpy as np
from autograd import jacobian
before = numpy.stack
print(jacobian(lambda x: np.stack(map(np.sin, x)))(np.zeros(2)))
print(np.stack((np.ones(2) * k for k in range(2)), axis=1), np.vstack(iter([np.ones(1)] * 2)).shape, np.stack is before)
try:
    np.stack(3)
except TypeError as error:
    print("TypeError")
"""
    expected = "[[1. 0.]\n [0. 1.]]\n[[0. 1.]\n [0. 1.]] (2, 1) True\nTypeError\n"
    assert program(text, tmp_path) == expected


def test_autograd_boxes_are_tracers(tmp_path: Path) -> None:
    text = """
import autograd.numpy as np
from autograd import grad
from autograd.builtins import isinstance as is_instance, type as type_of
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, getval, isbox
def f(x):
    assert isinstance(x, ArrayBox) and isinstance(x, Box) and isbox(x) and not isbox(x > 0) and not isbox(1.0)
    assert is_instance(x, float) is (x.ndim == 0) and type_of(x) is (np.ndarray if x.ndim else float)
    assert isinstance(getval(x), (float, np.ndarray)) and not isinstance(getval(x), Box)
    value = x
    while isinstance(value, ArrayBox):
        value = value._value
    assert np.all(value == getval(x))
    return np.sum(x * value)
print(grad(f)(3.0), grad(f)(np.ones(2)), isinstance(np.ones(2), ArrayBox))
"""
    assert program(text, tmp_path) == "3.0 [1. 1.] False\n"


def test_command_runs_script_with_arguments(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "helper.py").write_text("import autograd.numpy as np\ndef f(x):\n    return np.sum(x**2)\n")
    (below / "script.py").write_text(
        "import sys\nfrom autograd import grad\nfrom helper import f\nimport autodiff.compat.autograd\n"
        "print(__name__, sys.argv[1:], sys.argv[0].endswith('script.py'), grad(f)(3.0))\n"
    )
    output = run(["-m", "autodiff.compat.autograd", "below/script.py", "-a", "b"], tmp_path)
    assert output == "__main__ ['-a', 'b'] True 6.0\n"


def test_command_runs_module_with_arguments(tmp_path: Path) -> None:
    (tmp_path / "a_module.py").write_text(
        "import sys, autograd\nprint(__name__, sys.argv[1:], autograd.grad(lambda x: x * x)(1.0))\n"
    )
    assert run(["-m", "autodiff.compat.autograd", "-m", "a_module", "-x"], tmp_path) == "__main__ ['-x'] 2.0\n"


def test_command_prints_usage(tmp_path: Path) -> None:
    for arguments in ([], ["--help"], ["-m"]):
        assert run(["-m", "autodiff.compat.autograd", *arguments], tmp_path, is_failing=True).startswith("usage: ")


def test_pytest_plugin_installs_autograd_names(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import autograd.numpy as np\nfrom autograd import grad\n\n\ndef test_gradient():\n    assert grad(np.sin)(0.0) == 1.0\n"
    )
    options = ["-p", "autodiff.compat.autograd_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    output = run(["-m", "pytest", *options, "test_it.py"], tmp_path)
    assert "autograd: autodiff.compat.autograd" in output
    assert "1 passed" in output


def test_documentation_page_code_runs(tmp_path: Path) -> None:
    blocks = PAGE.read_text().split("```py\n")[1:]
    code = "\n".join(block.partition("```")[0] for block in blocks)
    assert "import autodiff.compat.autograd" in code
    run(["-c", code], tmp_path)
