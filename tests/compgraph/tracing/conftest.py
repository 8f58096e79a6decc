"""Tests of tracers without interception: names and SciPy's functions behave as with interception."""

from collections.abc import Iterator

import pytest

import compgraph as cg


@pytest.fixture(autouse=True, scope="module")
def without_interception() -> Iterator[None]:
    """Turn interception off for the tests of this folder."""
    cg.interception(False)
    yield
    cg.interception(True)
