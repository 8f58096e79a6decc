"""Derivatives of ``scipy.linalg``."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.linalg
from arguments import real
from cases_linear_algebra import regular
from scipy_checks import cases, checked

CASES: dict[str, list[tuple[Any, ...]]] = {
    "solve": [
        ("a vector", scipy.linalg.solve, regular(3, 3), real(3, seed=1)),
    ],
}


@pytest.mark.parametrize(("function", "arguments"), cases(CASES))
def test_derivatives(function: Any, arguments: Any) -> None:
    checked(function, arguments)
