"""What holds for all tests, and ``--quick``: the part of them that is run on every Python and NumPy (see CONTRIBUTING.md)."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):  # one BLAS thread, so that a run beside other load is not slowed a hundredfold
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from pathlib import Path  # noqa: E402  (after the threads are set, since the rest imports NumPy)
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from autodiff.grads.special_scipy import UNKNOWN  # noqa: E402
from autodiff.rules.rule import rules  # noqa: E402

# The package's own rules; test modules declare others, and those of UNKNOWN only say that no derivative is known.
RULES = {opname: rule for opname, rule in rules.items() if opname not in UNKNOWN}

# What can differ from one Python or NumPy to the next: what looks at the interpreter, what leaves the graph, what a graph
# depends on, what is recorded of each function. Of tables of cases (a parameter `case`), an operation's first is run.
QUICK = {
    *("autodiff/forward/test_jacobian_node", "autodiff/rules/test_rules", "compgraph/arrays/test_patched_numpy"),
    *("compgraph/executor/test_executor", "compgraph/executor/test_executor_rules", "compgraph/graph/context/test_contexts"),
    *("compgraph/graph/interpreter/test_instructions", "compgraph/graph/test_lost_history", "compgraph/graph/test_node"),
    *("compgraph/guards/test_escapes", "compgraph/guards/test_guards", "compgraph/inplace/test_writing"),
    *("compgraph/operations/test_recording", "compgraph/protocols/test_peers", "compgraph/protocols/test_ufunc_methods"),
    *("compgraph/serialization/test_graphs", "compgraph/test_stubs", "programs/test_executor_programs"),
    *("tables/test_escape_table", "tables/test_every_name", "tables/test_layouts", "tables/test_surface", "test_imports"),
}
TESTS = Path(__file__).parent / "tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Enter the option."""
    parser.addoption("--quick", action="store_true", help="the part that can differ from one Python or NumPy to the next")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules that tests share, which hold no examples; and with ``--quick`` what is not of the quick part."""
    if collection_path.is_dir():
        return None
    module = collection_path.relative_to(TESTS).with_suffix("") if collection_path.is_relative_to(TESTS) else None
    if not config.getoption("--quick"):
        return (module is not None and not module.name.startswith("test_")) or None
    return str(module) not in QUICK or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each table, keep an operation's first case, real and complex."""
    if not config.getoption("--quick"):
        return
    seen: set[Any] = set()
    kept, left = [], []
    for item in items:
        group = _group(item)
        (left if group in seen else kept).append(item)
        seen.add(group)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _group(item: pytest.Item) -> Any:
    """What the cases of one operation have in common within a test; an item of no table is alone."""
    given = dict(getattr(getattr(item, "callspec", None), "params", {}))
    case = given.pop("case", None)
    if not hasattr(case, "opname"):
        return item.nodeid
    is_complex = any(map(np.iscomplexobj, case.args))
    return item.nodeid.partition("[")[0], case.opname, is_complex, *map(repr, given.values())
