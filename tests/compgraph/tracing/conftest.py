"""What tracers do by themselves: names and SciPy's functions mean what they do elsewhere."""

from collections.abc import Iterator

import pytest

import compgraph as cg


@pytest.fixture(autouse=True, scope="module")
def nothing_is_intercepted() -> Iterator[None]:
    """Turn interception off for the tests of this folder."""
    cg.interception(False)
    yield
    cg.interception(True)
