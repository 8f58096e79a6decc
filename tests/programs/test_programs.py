"""Programs that know nothing of us, differentiated as they stand: right or loud, and what was right stays right."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.programs.harness import CORPORA, FROZEN, MODES, PATIENCE, given_of, outcome
from tests.support.programs.program import Corpus

NAMES = [pytest.param(corpus, p.name, id=f"{corpus}-{p.name}") for corpus in CORPORA for p in CORPORA[corpus]]
FOUND_RIGHT = {(c, n): but for c, names in json.loads(FROZEN.read_text()).items() for n, but in names.items()}
RIGHT = [pytest.param(c, n, but, id=f"{c}-{n}") for (c, n), but in FOUND_RIGHT.items()]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(("corpus", "name"), NAMES)
def test_is_never_silently_wrong(corpus: str, name: str) -> None:
    program = CORPORA[corpus][name]
    outcomes = {mode: outcome(program, mode) for mode in MODES}
    assert {mode: what.message for mode, what in outcomes.items() if what.kind in ("silent", "hang")} == {}


@pytest.mark.parametrize(("corpus", "name", "but"), RIGHT)
def test_stays_right(corpus: str, name: str, but: list[str]) -> None:
    program = CORPORA[corpus][name]
    outcomes = {mode: outcome(program, mode) for mode in MODES if mode not in but}
    assert {mode: what for mode, what in outcomes.items() if what.kind != "right"} == {}


@pytest.mark.parametrize(("corpus", "name"), NAMES)
def test_has_a_derivative_to_lose(corpus: str, name: str) -> None:
    assert np.max(np.abs(given_of(CORPORA[corpus][name]).known.gradient)) > 1e-6


def test_corpora_are_as_large_as_they_were() -> None:
    assert {name: len(corpus) >= size for (name, corpus), size in zip(CORPORA.items(), (200, 300, 31), strict=True)} == {
        "textbook": True,
        "scipy": True,
        "autograd": True,
    }


# Programs with a known end, by which the harness itself is judged.
MADE = Corpus()


@MADE.at(np.array([1.0, 2.0]))
def right(x: Any) -> Any:
    return np.sum(x**3)


@MADE.at(np.array([1.0, 2.0]))
def loud(x: Any) -> Any:
    if isinstance(x, cg.Node):
        raise TypeError("no")
    return np.sum(x**3)


@MADE.at(np.array([1.0, 2.0]))
def silent(x: Any) -> Any:
    return x[0] ** 3 + 1e-3 * ad.stop_gradient(x)[1] ** 2


@MADE.at(np.array([1.0, 2.0]))
def warned(x: Any) -> Any:
    if isinstance(x, cg.Node):
        warnings.warn("this has no derivative", stacklevel=1)
    return silent(x)


@MADE.at(np.array([1.0, 2.0]))
def hang(x: Any) -> Any:
    while isinstance(x, cg.Node):
        pass
    return np.sum(x**3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["right", "loud", "silent", "warned", "hang"])
def test_the_harness_tells(kind: str, mode: str) -> None:
    patience = 0.2 if kind == "hang" else PATIENCE  # others may wait for a collection of what tests before left
    assert outcome(MADE[kind], mode, patience).kind == kind


def test_a_warning_of_something_else_is_no_excuse() -> None:
    made = Corpus()

    @made.at(np.array([1.0, 2.0]))
    def program(x: Any) -> Any:
        warnings.warn("it is late", stacklevel=1)
        return silent(x)

    assert outcome(made["program"], "grad").kind == "silent"


def test_a_wrong_value_is_no_right_program() -> None:
    made = Corpus()

    @made.at(np.array([1.0, 2.0]))
    def program(x: Any) -> Any:
        return np.sum(x**3) + (1.0 if isinstance(x, cg.Node) else 0.0)

    assert outcome(made["program"], "grad").kind == "silent"


@pytest.mark.parametrize("kink", [lambda x: abs(x - 1.0), lambda x: abs(x - 1.0) + 3 * x, lambda x: abs(x - 1.0) ** 0.5])
def test_a_kink_is_no_program(kink: Any) -> None:
    made = Corpus()
    made.add("kink", kink, 1.0)
    with pytest.raises(ValueError, match="kink has no derivative there"):
        given_of(made["kink"])
