"""Every public function of the installed NumPy has exactly one policy, so functions of a new release fail a test."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import scipy

from compgraph import ops
from compgraph.protocols import functions
from tests.support.package_rules import RULES

pytestmark = pytest.mark.portable

DOCS = Path(__file__).resolve().parents[3] / "docs"
TABLES = runpy.run_path(str(DOCS / "make_tables.py"))
EXPORTED: dict[str, Any] = TABLES["exported"]()
POLICIES: dict[str, set[Any]] = TABLES["POLICIES"]


def test_policies_cover_each_function_once() -> None:
    policies = {name: TABLES["policies_of"](function) for name, function in EXPORTED.items()}
    assert {name: sources for name, sources in policies.items() if len(sources) != 1} == {}


def test_policies_are_disjoint() -> None:
    labels = [*POLICIES]
    for i, one in enumerate(labels):
        for other in labels[i + 1 :]:
            assert not POLICIES[one] & POLICIES[other], f"in both {one} and {other}"
    assert not set(ops.ALIASES) & set().union(*POLICIES.values())


def test_policies_cover_every_alias() -> None:
    for function, other in ops.ALIASES.items():
        assert other in functions.HANDLERS or other in ops.OPNAMES, function.__name__


def test_policies_of_differentiable_functions_have_rules() -> None:
    opnames = {ops.opname_of(f) for f in {*ops.SMOOTH_UFUNCS, *ops.SMOOTH_FUNCTIONS}}
    assert {name for name in opnames if not name.startswith("scipy_")} <= set(RULES)  # those of SciPy: test_policies


def test_policies_of_unsupported_functions_give_replacement() -> None:
    assert {function.__name__: text for function, text in ops.UNSUPPORTED_FUNCTIONS.items() if len(text) <= 10} == {}


def test_policies_table_is_current() -> None:
    assert (DOCS / "numpy.md").read_text() == TABLES["table"]()


def test_policies_table_of_scipy_is_current() -> None:
    text = (DOCS / "scipy.md").read_text()
    rows = {f"| `{name}` | {kind} |" for rows in TABLES["scipy_rows"]().values() for name, kind in rows}
    page = {line for line in text.splitlines() if line.startswith("| `")}
    if f"with SciPy {scipy.__version__.rpartition('.')[0]}." in text:
        assert text == TABLES["scipy_table"](), "run python docs/make_tables.py"
    else:  # another SciPy has a few other names; what both have is treated alike
        assert len(rows ^ page) < 0.05 * len(page)
