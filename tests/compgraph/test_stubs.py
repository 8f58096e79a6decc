"""The stub file matches the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph import _stubs, ops

pytestmark = pytest.mark.portable


def test_stub_file_of_package_is_current() -> None:
    assert Path(cg.__file__).with_suffix(".pyi").read_text() == _stubs.stub_text()


def test_stub_file_of_rules_is_current() -> None:
    assert Path(ad.grads.__file__).with_suffix(".pyi").read_text() == _stubs.rules_stub_text()


def test_rules_are_public() -> None:
    assert ad.grads.__all__ == sorted(name for name in dir(ad.grads) if name.endswith("_grad"))
    assert {"sin_grad", "special_exp2_grad", "cornered_grad"} < set(ad.grads.__all__)


@pytest.mark.parametrize("module", _stubs.MODULES)
def test_stub_files_of_modules_are_current(module: str) -> None:
    assert (Path(cg.__file__).parent / f"{module}.pyi").read_text() == _stubs.module_stub_text(module)


def test_public_functions_are_callable_and_listed() -> None:
    names = set(ops.public_functions())
    assert {name for name in names if callable(getattr(cg, name, None))} == names
    assert names - {*dir(cg)} == set()


def test_unknown_name_raises() -> None:
    with pytest.raises(AttributeError, match="no 'sine'"):
        getattr(cg, "si" + "ne")
    assert np.sin is not cg.sin
