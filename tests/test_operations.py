"""Every operation: its cases by the checks of rules and of all transforms."""

from __future__ import annotations

import random
from itertools import cycle, islice

import pytest

from tests.support.arguments import Case
from tests.support.cases import OPERATIONS, cases_of
from tests.support.checks.every_check import CHECKS, RULE_CHECKS, TRANSFORMS, run_checks

pytestmark = [
    pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:equal (eigen|singular )values:RuntimeWarning"),
]

Pairs = list[tuple[Case, str]]
CASE_TRANSFORMS, SPECIAL_TRANSFORMS = 1, 6  # transforms per run: of a further case, of the first case of a special function
# The mechanism tests (tests/autodiff/rules/test_mechanisms.py) vary dtypes and layouts.
OF_RULES = RULE_CHECKS.keys() - {"single precision", "layouts"}


def pairs_of(operation: str) -> tuple[Pairs, Pairs, Pairs]:
    """Pairs of a case and a check: for the first case of each kind, for other cases in every run, and the rest.

    The first case of each kind runs all checks, except for ufuncs of ``scipy.special``, which every transform treats alike: these
    run some transforms, cyclically. Other cases run the checks of values and derivatives, `vmap`, which is cheap and depends on
    the arguments, and one transform, cyclically.
    """
    first: Pairs = []
    others: Pairs = []
    rest: Pairs = []
    kinds = set()
    transforms = cycle(TRANSFORMS)
    for _ in range(OPERATIONS.index(operation) % len(TRANSFORMS)):  # operations of few cases begin with different ones
        next(transforms)
    for case in cases_of(operation):
        if case.kind not in kinds:
            kinds.add(case.kind)
            of_first = (
                {*RULE_CHECKS, *islice(transforms, SPECIAL_TRANSFORMS)} if operation.startswith("special_") else CHECKS.keys()
            )
            for name in CHECKS:
                (first if name in of_first else rest).append((case, name))
            continue
        chosen = {*OF_RULES, "vmap", *islice(transforms, CASE_TRANSFORMS)}
        for name in CHECKS:
            (others if name in chosen else rest).append((case, name))
    return first, others, rest


@pytest.mark.portable
@pytest.mark.parametrize("operation", OPERATIONS)
def test_op(operation: str, first_cases: bool) -> None:
    first, others, _ = pairs_of(operation)
    run_checks(operation, first if first_cases else first + others)


@pytest.mark.exhaustive
@pytest.mark.parametrize("operation", OPERATIONS)
def test_op_cross_product(operation: str, share: float, seed: int) -> None:
    """The rest of the cross product, or a random share of it: ``--share 0.1 --seed 7``."""
    _, _, rest = pairs_of(operation)
    if share < 1:
        rest = random.Random(f"{seed} {operation}").sample(rest, round(share * len(rest)))
    if rest:  # operations with one case of each kind have none
        run_checks(operation, rest)


def test_operation_failures_are_all_reported() -> None:
    """A group has one error for each check that fails, with the names of case and check."""
    cases = [Case("sin", label, lambda x: x, ()) for label in ("first", "second")]
    with pytest.raises(ExceptionGroup, match="sin: sin: first, check of reverse; sin: second, check of vmap") as caught:
        run_checks("sin", [(cases[0], "reverse"), (cases[1], "vmap")])
    assert len(caught.value.exceptions) == 2
