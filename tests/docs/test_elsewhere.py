"""The pages for users of other packages: side-by-side programs agree, and the names in the tables exist."""

from __future__ import annotations

import contextvars
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

PAGES = {path.stem: path.read_text() for path in sorted(Path(__file__).resolve().parents[2].glob("docs/elsewhere/*.md"))}
PACKAGES = {"autograd": "autograd", "pytorch": "torch", "jax": "jax", "mygrad": "mygrad"}
FENCED = re.compile(r"^```(py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def results_of(page: str, word: str) -> list[Any]:
    """The answers of the programs of one side of a page, run sequentially."""
    names: dict[str, Any] = {"__name__": page}
    results = []
    for fence, program in FENCED.findall(PAGES[page]):
        if fence == word:
            exec(program, names)
            results.append(np.asarray(names["answer"]))
    return results


@pytest.mark.parametrize("page", PACKAGES)
def test_comparison_programs_give_equal_results(page: str) -> None:
    cg.reset()
    ours = contextvars.Context().run(results_of, page, "python")
    assert len(ours) == 2
    try:
        importlib.import_module(PACKAGES[page])
    except ImportError:
        pytest.skip(f"{PACKAGES[page]} is not installed: its own side is not run")
    theirs = results_of(page, "py")
    assert len(theirs) == 2
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_comparison_table_names_exist() -> None:
    with Failures("tables") as failures:
        for page in PACKAGES:
            with failures.case(page):
                rows = [line.split(" | ") for line in PAGES[page].splitlines() if line.startswith("| `")]
                assert len(rows) > 10
                named = re.findall(r"\b(cg|ad)\.(\w+)", " ".join(row[1] for row in rows))
                assert len(named) > 5
                assert [name for package, name in named if not hasattr({"cg": cg, "ad": ad}[package], name)] == []
