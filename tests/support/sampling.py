"""Cross products of cases, of which the default run has a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.failures import Failures

Cases = list[tuple[Any, ...]]


def sample_and_rest(*axes: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test that goes through the cases of a cross product.

    The first is a sample, which has every value of every axis. The second, marked ``exhaustive``, has all other cases.
    """
    values = [list(axis) for axis in axes]
    sizes = list(map(len, values))
    # Axes of the same length are shifted against each other after each cycle.
    sample = [tuple((k + (k // n**j if j else 0)) % n for j, n in enumerate(sizes)) for k in range(max(sizes))]
    rest = [indices for indices in product(*map(range, sizes)) if indices not in set(sample)]
    return split(*([tuple(v[i] for v, i in zip(values, indices, strict=True)) for indices in part] for part in (sample, rest)))


def split(sample: Cases, rest: Cases) -> list[Any]:
    """Return the parameters of a test that goes through cases: of the default run, and of an exhaustive one."""
    return [pytest.param(sample, id="sample"), pytest.param(rest, id="rest", marks=pytest.mark.exhaustive)]


def random_seeds(few: int, many: int) -> list[Any]:
    """Return the parameters of a test that goes through random programs: the first seeds, and all others."""
    return split([(seed,) for seed in range(few)], [(seed,) for seed in range(few, many)])


def check_each(check: Callable[..., None], cases: Iterable[Sequence[Any]]) -> None:
    """Check all cases, each with an empty graph, and raise one group of all failures."""
    with Failures(check.__name__) as failures:
        for case in cases:
            cg.reset()
            with failures.case(", ".join(map(_name, case))), np.errstate():
                check(*case)


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", value))
