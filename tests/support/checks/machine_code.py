"""A case compiled by LLVM, against the executor's NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradients
from compgraph.executor import passes
from tests.support.arguments import Case


def assert_alike(actual: Any, expected: Any) -> None:
    """Same shapes and dtypes, and the numbers up to rounding."""
    for a, e in zip(actual, expected, strict=True):
        assert np.shape(a) == np.shape(e)
        assert np.asarray(a).dtype == np.asarray(e).dtype
        single = np.asarray(e).dtype.itemsize <= 4
        np.testing.assert_allclose(a, e, rtol=1e-4 if single else 1e-9, atol=1e-5 if single else 1e-11)


def check_machine_code(case: Case) -> None:
    """Machine code returns the executor's numbers, also at values different from the recorded ones."""
    from compgraph.compiled.llvm.backend import LLVMBackend  # llvmlite is optional
    from tests.support.machine_code import compiled

    cg.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(passes.BACKENDS, "llvm", LLVMBackend())
        _check(case, compiled)


def _check(case: Case, compiled: Any) -> None:
    args = [np.asarray(x) for x in case.args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        holders = [cg.placeholder(x.shape, x.dtype, example=x) for x in args]
        out = case.function(*holders)
        nodes = [out]
        if out.dtype.kind in "fc":
            nodes += gradients(np.sum(np.real(out)), holders, unused="zero")
        numpy, machine = cg.Executor(nodes), compiled(nodes)
        for change in (lambda x: x, lambda x: np.asarray(x * 0.93 + 0.011, x.dtype)):
            feed = {holder: change(x) for holder, x in zip(holders, args, strict=True)}
            try:
                expected = numpy.run(feed)
            except (cg.GuardError, ValueError) as error:
                with pytest.raises(type(error)):
                    machine.run(feed)
                continue
            assert_alike(machine.run(feed), expected)
