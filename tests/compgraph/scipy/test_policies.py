"""Every public name of SciPy has exactly one policy."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from compgraph.scipy import FAMILIES, opname, policy_of, public_names, register_imported
from tests.support.failures import Failures


def families() -> Iterator[tuple[str, ModuleType, Any]]:
    """The name of each module of SciPy that has a policy, the module, and the policy."""
    for name, family in FAMILIES.items():
        module = importlib.import_module(name)
        yield name, module, policy_of(family)


def test_policies_cover_every_public_name_once() -> None:
    with Failures("policies") as failures:
        for name, module, policy in families():
            with failures.case(name):
                counts = Counter(each for each, _ in policy.kinds())
                assert [each for each, count in counts.items() if count > 1] == []
                assert public_names(module) - {each for each in counts if "." not in each} == set()
                assert policy.always_replaced <= policy.replacements.keys() | policy.own_code


def test_policies_of_unsupported_functions_have_advice() -> None:
    short = [(name, each) for name, _, policy in families() for each, advice in policy.unsupported.items() if len(advice) < 10]
    assert short == []


def test_policies_of_unsupported_functions_raise_for_nodes() -> None:
    """A node among the arguments of a function without derivative raises, and no gradient is lost."""
    checked = 0
    with Failures("unsupported") as failures:
        for name, module, policy in families():
            for each in policy.unsupported:
                if "." in each or not hasattr(module, each):  # other versions of SciPy have others
                    continue
                checked += 1
                function = getattr(module, each)

                def f(x: Any, function: Any = function) -> Any:
                    function(x)
                    return np.sum(x)

                with failures.case(f"{name}.{each}"), pytest.raises((TypeError, ValueError)):
                    ad.grad(f)(np.eye(3))
    assert checked > 300


def test_policies_of_recorded_functions_have_rules() -> None:
    modules = [*families()]
    register_imported()
    missing = [
        (name, each)
        for name, module, policy in modules
        for each in policy.smooth
        if not hasattr(ad.grads, f"{opname(name, each)}_grad") and hasattr(module, each.partition(".")[0])
    ]
    assert missing == []
