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
from compgraph.scipy.policy import register_imported

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


def test_operations_that_move_elements_return_elements() -> None:
    """So that sparsity can follow their positions, for the kind "shape"."""
    arguments = {
        "reshape": (-1,), "expand_dims": (0,), "swapaxes": (0, 1), "moveaxis": (0, 1), "broadcast_to": ((2, 2, 3),), "roll": (1,),
        "getitem": (1,), "tile": (2,), "repeat": (2,), "take": ([1, 5],), "take_along_axis": (np.array([[1], [2]]), 1),
    }  # fmt: skip
    x = np.arange(6).reshape(2, 3) + 100
    assert {spec.function for spec in ops.OPERATIONS if spec.kind == "shape"} <= ops.MOVING_FUNCTIONS
    for spec in ops.OPERATIONS:
        if spec.moves_elements and spec.policy == "rule":
            operand = x[None] if spec.opname == "squeeze" else x
            result = spec.function(operand, *arguments.get(spec.opname, ()))
            assert set(np.ravel(result)) <= set(range(100, 106)), spec.opname


def test_operations_fill_is_value_of_all_elements() -> None:
    for function, value in ops.FILL_VALUES.items():
        assert np.array_equal(function(np.array([2.0, np.nan])), [value, value]), function.__name__


def test_operations_scalar_result_is_type_of_result() -> None:
    """Of a scalar, and of an array without axes."""
    arguments = {np.full_like: (2.0,), np.where: (3.0, 4.0), np.broadcast_to: ((),), ops.astype: (np.float32,), ops.copy: ()}
    expected = {"scalar": (False, False), "like operands": (False, True), "array": (True, True)}
    for spec in ops.OPERATIONS:
        if spec.kind == "elementwise" and type(spec.function) is np.ufunc and spec.function.nin == spec.function.nout == 1:
            assert spec.scalar_result == "scalar"
        elif spec.scalar_result != "scalar":
            results = [spec.function(x, *arguments.get(spec.function, ())) for x in (np.float64(0.5), np.array(0.5))]
            assert tuple(type(each) is np.ndarray for each in results) == expected[spec.scalar_result], spec.opname


def test_operations_are_real_where_the_table_says() -> None:
    conditions = {"x >= 0": lambda x: x >= 0, "abs(x) <= 1": lambda x: abs(x) <= 1}
    for spec in ops.OPERATIONS:
        if spec.real_on in conditions:
            for x in (-2.0, -0.3, 0.4, 2.0):
                with np.errstate(all="ignore"):
                    result = spec.function(x, *[0.5] * (len(spec.operands.split()) - 1))
                assert np.isrealobj(result) == conditions[spec.real_on](x), f"{spec.opname} of {x}"


def test_operations_complex_form_equals_function() -> None:
    z = np.array([1 + 2j, 0, -3j])
    for function, complex_form in ops.COMPLEX_FORMS.items():
        assert np.array_equal(function(z), complex_form(z)), function.__name__


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
