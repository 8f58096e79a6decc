"""Environment, options and markers of all tests."""

import itertools
import os
import random
import tempfile

for library in ("OMP", "OPENBLAS", "MKL"):  # one BLAS thread: with more, other load may slow a run a hundredfold
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Tests have their own cache of compiled programs.
os.environ.setdefault("COMPGRAPH_CACHE", os.path.join(tempfile.gettempdir(), f"compgraph-tests-{getattr(os, 'getuid', int)()}"))

import pytest  # noqa: E402  (after the threads are set, since the rest imports NumPy)

from tests.support.garbage import freeze_existing_objects  # noqa: E402

# Tests import modules that redirect imports of other packages in separate processes. pytest would set the attribute
# `compgraph.autodiff` to a module that is not `autodiff`.
collect_ignore = ["tests/support", "tests/mutation.py", "autodiff/compat/autograd.py", "autodiff/compat/autograd_plugin.py"]
collect_ignore += ["compgraph/autodiff"]
_FINISHED = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that select a part of the tests."""
    group = parser.getgroup("parts of the tests")
    group.addoption("--share", type=float, default=1.0, help="run a random share of the exhaustive tests, such as 0.1")
    group.addoption("--seed", type=int, default=0, help="the seed by which that share is chosen")
    group.addoption("--first-cases", action="store_true", help="run the first cases of each operation only, by all checks")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "portable: depends on the version of Python or NumPy; runs on all that are supported")
    config.addinivalue_line("markers", "slow: takes about a second or more for little coverage; not in the default run")
    config.addinivalue_line("markers", "exhaustive: a cross product that the default run samples; not in the default run")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Print the share of the exhaustive tests and its seed, so that a run can be repeated."""
    share, seed = config.option.share, config.option.seed
    return f"exhaustive tests: share {share}, seed {seed}" if share < 1 else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect exhaustive tests that are not in the share. A test with the fixture `share` chooses among its own cases."""
    share, seed = config.option.share, config.option.seed
    deselected = [
        item
        for item in items
        if share < 1
        and item.get_closest_marker("exhaustive")
        and "share" not in getattr(item, "fixturenames", ())
        and random.Random(f"{seed} {item.nodeid}").random() >= share
    ]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        deselected_items = {*deselected}
        items[:] = [item for item in items if item not in deselected_items]


@pytest.fixture
def share(request: pytest.FixtureRequest) -> float:
    """The share of the exhaustive tests that runs."""
    return float(request.config.option.share)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed by which the share is chosen."""
    return int(request.config.option.seed)


@pytest.fixture
def first_cases(request: pytest.FixtureRequest) -> bool:
    """Whether only the first cases of each operation run."""
    return bool(request.config.option.first_cases)


def pytest_collection_finish() -> None:
    """Freeze the objects created by collection."""
    freeze_existing_objects()


@pytest.hookimpl(trylast=True)  # when the test has ended
def pytest_runtest_teardown() -> None:
    """Freeze objects that tests leave behind: imported modules, captured reports."""
    if next(_FINISHED) % 500 == 0:
        freeze_existing_objects()
