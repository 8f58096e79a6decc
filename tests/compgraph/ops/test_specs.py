"""The table of operations: entries are complete, agree with each other, and reach every back end."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import autodiff as ad
import compgraph as cg
from compgraph import ops
from compgraph.scipy.families import register_imported

pytestmark = pytest.mark.portable


def test_operations_functions_are_unique() -> None:
    counts = Counter(spec.function for spec in ops.OPERATIONS)
    assert [function for function, count in counts.items() if count > 1] == []
    methods = Counter(spec.method for spec in ops.OPERATIONS if spec.method)
    assert [method for method, count in methods.items() if count > 1] == []


def test_operations_fold_equals_function() -> None:
    x = np.array([[1.0, 2.0], [0.0, -3.0]])
    for (ufunc, method), function in ops.FOLDS.items():
        assert np.array_equal(getattr(ufunc, method)(x, axis=0), function(x, axis=0)), function.__name__


def test_operations_shape_kind_moves_elements() -> None:
    """Functions of the kind "shape" return elements of their operand, so that sparsity can follow their positions."""
    arguments = {
        "reshape": (-1,), "expand_dims": (0,), "swapaxes": (0, 1), "moveaxis": (0, 1), "broadcast_to": ((2, 2, 3),), "roll": (1,),
        "getitem": (1,),
    }  # fmt: skip
    x = np.arange(6).reshape(2, 3) + 100
    for spec in ops.OPERATIONS:
        if spec.kind == "shape":
            operand = x[None] if spec.opname == "squeeze" else x
            result = spec.function(operand, *arguments.get(spec.opname, ()))
            assert set(np.ravel(result)) <= set(range(100, 106)), spec.opname


def test_spec_of_options_equals_spec_of_function() -> None:
    configured = ops.configured(np.add, (("dtype", np.float32),))
    assert ops.spec_of(configured) is ops.SPECS[np.add]
    assert ops.spec_of(ops.PACKED_FUNCTIONS[np.stack]) is ops.SPECS[np.stack]
    assert ops.spec_of(lambda x: x) is None


def test_enter_sets_kind_of_scipy_ufuncs() -> None:
    register_imported()
    spec = ops.spec_of(scipy.special.erf)
    assert spec is not None
    assert (spec.policy, spec.kind, spec.opname, spec.lowering) == ("rule", "elementwise", "special_erf", "erf")


def test_lowering_of_every_compiled_function_is_reachable() -> None:
    """A function that the LLVM back end has by hand is the lowering of an operation.

    The trigamma function is ``zeta(2, x)``, which `lowering.special_functions` recognizes.
    """
    mathematics = pytest.importorskip("compgraph.compiled.llvm.mathematics", reason='pip install "compgraph[jit]"')
    register_imported()
    cg.relu(cg.variable(1.0))  # imports the activations
    named = {spec.lowering for spec in ops.SPECS.values()} | {"trigamma"}
    assert mathematics.NAMES - named == set()


def test_jit_compiles_functions_of_scipy() -> None:
    pytest.importorskip("llvmlite", reason='pip install "compgraph[jit]"')
    x = np.linspace(-6.0, 6.0, 1001)

    def f(x: np.ndarray) -> np.ndarray:
        return scipy.special.erf(x) + scipy.special.erfc(x / 2) * scipy.special.expit(x)

    compiled = cg.jit(f).compile(x)
    assert "calls NumPy" not in compiled.report()
    assert np.allclose(compiled(x), f(x), rtol=1e-14, atol=0)
    loss = lambda x: np.sum(f(x))  # noqa: E731
    assert np.allclose(cg.jit(ad.grad(loss)).compile(x)(x), ad.grad(loss)(x), rtol=1e-13, atol=1e-300)


def test_jit_compiles_activations() -> None:
    pytest.importorskip("llvmlite", reason='pip install "compgraph[jit]"')
    x = np.linspace(-40.0, 40.0, 1001)
    for function in (cg.relu, cg.sigmoid, cg.softplus):
        compiled = cg.jit(lambda x, f=function: 2 * f(x)).compile(x)
        assert "calls NumPy" not in compiled.report(), function.opname
        assert np.allclose(compiled(x), 2 * function(x), rtol=1e-14, atol=0)


def test_new_operation_of_two_entries_works_in_every_transform() -> None:
    pytest.importorskip("llvmlite", reason='pip install "compgraph[jit]"')
    command = [sys.executable, "-W", "error", "-m", "tests.support.new_operations"]
    process = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert process.stdout.split() == ["squared_sine", "upside_down", "total"], process.stderr
