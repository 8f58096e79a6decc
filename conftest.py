"""What holds for all tests, and the parts of them that are run by name: ``-m quick`` and ``-m portable`` (CONTRIBUTING.md)."""

import gc
import itertools
import os
import tempfile

for library in ("OMP", "OPENBLAS", "MKL"):  # one BLAS thread, so that a run beside other load is not slowed a hundredfold
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Programs that tests compile are kept apart from the user's.
os.environ.setdefault("COMPGRAPH_CACHE", os.path.join(tempfile.gettempdir(), f"compgraph-tests-{getattr(os, 'getuid', int)()}"))

from pathlib import Path  # noqa: E402  (after the threads are set, since the rest imports NumPy)
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from tests.support.package_rules import RULES  # noqa: E402

TESTS = Path(__file__).parent / "tests"
# The modules of each part. Of tables of cases (a parameter `case`) the first is run: of an operation, or in the quick part of a
# kind of rule.
PARTS = {
    # What can differ from one Python or NumPy to the next: what looks at the interpreter, what leaves the graph, what a
    # graph depends on, what is recorded of each function.
    "portable": {
        *("autodiff/forward/test_jacobian_node", "autodiff/rules/test_rules", "autodiff/test_jit_under_derivatives"),
        *("compgraph/arrays/test_patched_numpy", "compgraph/compiled/test_jit", "compgraph/compiled/test_jit_captured"),
        *("compgraph/executor/test_executor", "compgraph/executor/test_executor_rules", "compgraph/graph/context/test_contexts"),
        *("compgraph/graph/interpreter/test_instructions", "compgraph/graph/test_lost_history", "compgraph/graph/test_node"),
        *("compgraph/guards/test_escapes", "compgraph/guards/test_guards", "compgraph/guards/test_raising"),
        "compgraph/inplace/test_writing",
        *("compgraph/operations/test_recording", "compgraph/protocols/test_peers", "compgraph/protocols/test_ufunc_methods"),
        *("compgraph/serialization/test_graphs", "compgraph/test_stubs", "programs/test_executor_programs"),
        *("tables/test_escape_table", "tables/test_every_name", "tables/test_layouts", "tables/test_surface", "test_start"),
    },
    # Something of each room, for those who edit, in less than a minute.
    "quick": {
        *("autodiff/arguments/test_pytrees", "autodiff/custom/test_custom_gradient", "autodiff/grads/test_repeated"),
        *("autodiff/numeric/test_verification", "autodiff/operators/test_fields"),
        *("autodiff/operators/test_grad", "autodiff/optimizers/test_optimizers"),
        *("autodiff/reverse/test_gradient", "autodiff/rules/test_rules", "autodiff/test_checks"),
        *("compgraph/arrays/test_joining", "compgraph/arrays/test_patched_numpy", "compgraph/drawing/test_visualize"),
        *("compgraph/executor/test_executor", "compgraph/graph/context/test_scopes", "compgraph/graph/hollow/test_hollow"),
        *("compgraph/graph/test_lazy", "compgraph/graph/test_node", "compgraph/guards/test_escapes"),
        *("compgraph/guards/test_guards", "compgraph/inplace/test_writing", "compgraph/nn/test_functions"),
        *("compgraph/operations/test_counts", "compgraph/protocols/test_peers", "compgraph/protocols/test_ufunc_methods"),
        *("compgraph/serialization/test_graphs", "test_imports", "test_public_names"),
    },
}


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "portable: the part that can differ from one Python or NumPy to the next")
    config.addinivalue_line("markers", "quick: something of each room, for those who edit")
    config.addinivalue_line("markers", "slow: a test that takes about a second or more, which the quick part leaves out")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules that tests share, which hold no examples; and what is not of the part asked for, to save time."""
    module = _module(collection_path)
    modules = PARTS.get(config.option.markexpr)
    if collection_path.is_dir():  # one that holds nothing of the part may need what is not installed
        is_apart = modules is not None and module is not None and not any(m.startswith(f"{module}/") for m in modules)
        return (is_apart and module != ".") or None
    if modules is not None:
        return module not in modules or None
    return (module is not None and not Path(module).name.startswith("test_")) or None


@pytest.hookimpl(tryfirst=True)  # before pytest looks for the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the parts: of each table the first case, real and complex, of an operation or of a kind of rule."""
    if not config.option.markexpr:
        return
    for part, modules in PARTS.items():
        seen: set[Any] = set()
        for item in items:
            if part == "quick" and item.get_closest_marker("slow"):
                continue
            if _module(item.path) in modules and (group := _group(item, part)) not in seen:
                item.add_marker(part)
                seen.add(group)


def pytest_collection_finish() -> None:
    """Spare the tests themselves."""
    spare_what_stands()


@pytest.hookimpl(trylast=True)  # when the test has ended
def pytest_runtest_teardown() -> None:
    """Spare what tests leave behind too: modules that they import, what is remembered for the report."""
    if next(_FINISHED) % 500 == 0:
        spare_what_stands()


def spare_what_stands() -> None:
    """Let the collector of garbage pass over what stands until the end, thousands of tests: a collection within one is quick."""
    gc.collect()
    gc.freeze()


_FINISHED = itertools.count(1)


def _module(path: Path) -> str | None:
    """Where a module of tests stands."""
    return path.relative_to(TESTS).with_suffix("").as_posix() if path.is_relative_to(TESTS) else None


def _group(item: pytest.Item, part: str) -> Any:
    """What the cases have in common of which a part takes the first; an item of no table is alone."""
    given = dict(getattr(getattr(item, "callspec", None), "params", {}))
    case = given.pop("case", None)
    if not hasattr(case, "opname"):
        return item.nodeid
    is_complex = any(map(np.iscomplexobj, case.args))
    what = RULES[case.opname].kind if part == "quick" and case.opname in RULES else case.opname
    return item.nodeid.partition("[")[0], what, is_complex, *map(repr, given.values())
