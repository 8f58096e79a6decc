"""Every public function of the installed NumPy has exactly one policy, so that a new release is noticed."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from compgraph import operations as ops
from compgraph import protocol
from compgraph.policies import rest
from conftest import RULES

MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft, "np.emath": np.emath}

# Recorded by a handler of their own, under a rule of another function or as compositions of others.
SPECIAL = {np.einsum, np.copyto}

SETS: dict[str, set[Any]] = {
    "by rule": {*ops.SMOOTH_UFUNCS, *ops.SMOOTH_FUNCTIONS, *ops.PACKED_FUNCTIONS, np.einsum},
    "composed": set(ops.COMPOSED_FUNCTIONS),
    "piecewise constant": {*ops.PIECEWISE_UFUNCS, *ops.PIECEWISE_FUNCTIONS},
    "plain": set(ops.PLAIN_FUNCTIONS),
    "refused": {*ops.REFUSED_FUNCTIONS, np.copyto},
    "unseen": set(rest.UNSEEN),
    "alias": set(ops.ALIASES),
}


def exported() -> dict[str, Any]:
    """NumPy's public functions, under the names it exports."""
    found = {}
    for place, module in MODULES.items():
        for name in module.__all__:
            function = getattr(module, name)
            hashable = type(function).__hash__ is not None
            if callable(function) and hashable and not isinstance(function, (type, types.ModuleType)):
                found[f"{place}.{name}"] = function
    return found


@pytest.mark.parametrize("name", sorted(exported()))
def test_each_function_is_in_exactly_one_set(name: str) -> None:
    assert [label for label, members in SETS.items() if exported()[name] in members] != []


def test_the_sets_are_disjoint_and_hold_nothing_else() -> None:
    labels = list(SETS)
    for i, one in enumerate(labels):
        for other in labels[i + 1 :]:
            assert not SETS[one] & SETS[other], f"in both {one} and {other}"
    public = set(exported().values()) | {np.lib.stride_tricks.sliding_window_view, np.lib.stride_tricks.as_strided}
    strangers = {f for f in set().union(*SETS.values()) - public if not str(getattr(f, "__name__", "")).startswith("_")}
    assert {f for f in strangers if not (isinstance(f, np.ufunc) and f not in vars(np).values())} == set()


def test_every_alias_leads_to_a_policy() -> None:
    for function, other in ops.ALIASES.items():
        assert other in protocol.HANDLERS, function.__name__


def test_what_is_differentiable_by_rule_has_one() -> None:
    assert {ops.opname_of(f) for f in {*ops.SMOOTH_UFUNCS, *ops.SMOOTH_FUNCTIONS}} <= set(RULES)


@pytest.mark.parametrize("function", ops.REFUSED_FUNCTIONS, ids=lambda f: f.__name__)
def test_refusals_say_what_to_use(function: Any) -> None:
    assert len(ops.REFUSED_FUNCTIONS[function]) > 10
