"""Every public name of SciPy's stands in exactly one place of a policy."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from compgraph.scipy import FAMILIES, enter_imported, opname, policy_of, public_names
from tests.support.for_each import for_each


@for_each("module", FAMILIES)
def test_every_public_name_is_classified(module: str) -> None:
    policy = policy_of(FAMILIES[module])
    known = Counter(name for name, _ in policy.kinds())
    assert [name for name, count in known.items() if count > 1] == []
    named = {name for name in known if "." not in name}
    there = public_names(importlib.import_module(module))
    assert named >= there, f"not classified: {sorted(there - named)}"
    assert policy.calling <= policy.instead.keys()


@for_each("module", FAMILIES)
def test_what_is_refused_says_what_to_use(module: str) -> None:
    policy = policy_of(FAMILIES[module])
    assert [name for name, advice in policy.refused.items() if len(advice) < 10] == []


@for_each(
    ("module", "name"),
    [
        (module, name)
        for module in FAMILIES
        for name in policy_of(FAMILIES[module]).refused
        if "." not in name and hasattr(importlib.import_module(module), name)  # other versions have others
    ],
)
def test_refused_scipy_function_raises(module: str, name: str) -> None:
    """A node among the arguments of what has no derivative is no node's number lost: it raises."""
    function: Any = getattr(importlib.import_module(module), name, None)
    if function is None:
        pytest.skip("this SciPy has no such function")

    def f(x: Any) -> Any:
        function(x)
        return np.sum(x)

    with pytest.raises((TypeError, ValueError)):
        ad.grad(f)(np.eye(3))


@for_each("module", FAMILIES)
def test_what_is_recorded_has_a_rule(module: str) -> None:
    importlib.import_module(module)
    enter_imported()
    missing = [name for name in policy_of(FAMILIES[module]).smooth if not hasattr(ad.grads, f"{opname(module, name)}_grad")]
    assert [name for name in missing if hasattr(importlib.import_module(module), name.partition(".")[0])] == []
