"""Programs for plain NumPy, differentiated unchanged: right or an error or warning, and no regression of right ones."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures
from tests.support.programs.harness import CORPORA, FROZEN, MODES, PATIENCE, inputs_of, outcome
from tests.support.programs.program import Corpus, Program

RIGHT: dict[str, dict[str, list[str]]] = json.loads(FROZEN.read_text())  # each program with the modes in which it is not right


def group_programs() -> dict[str, list[tuple[str, Program]]]:
    """One test for each program, and for the calls of each module of SciPy, which are many and short."""
    groups: dict[str, list[tuple[str, Program]]] = {}
    for corpus, programs in CORPORA.items():
        for program in programs:
            name = program.name.partition(".")[0] if corpus == "scipy" else program.name
            groups.setdefault(f"{corpus}-{name}", []).append((corpus, program))
    return groups


TESTS = group_programs()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("programs", TESTS.values(), ids=TESTS)
def test_program_outcomes(programs: list[tuple[str, Program]]) -> None:
    """No mode is silently wrong, and those that were right are."""
    with Failures("programs") as failures:
        for corpus, program in programs:
            others = RIGHT[corpus].get(program.name, [*MODES])
            for mode in MODES:
                with failures.case(f"{program.name}, {mode}"):
                    result = outcome(program, mode)
                    assert result.kind in (("right", "loud", "warned") if mode in others else ("right",)), result
            with failures.case(f"{program.name}, derivative"):
                assert np.max(np.abs(inputs_of(program).reference.gradient)) > 1e-6, "zero derivatives hide leaks"


def test_program_corpora_are_complete() -> None:
    sizes = {name: len(corpus) for name, corpus in CORPORA.items()}
    assert sizes["textbook"] >= 200
    assert sizes["scipy"] >= 300
    assert sizes["autograd"] >= 31
    assert {corpus: {*programs} - {p.name for p in CORPORA[corpus]} for corpus, programs in RIGHT.items()} == {
        corpus: set() for corpus in CORPORA
    }


# Programs with a known end, by which the harness itself is judged.
CORPUS = Corpus()


@CORPUS.at(np.array([1.0, 2.0]))
def right(x: Any) -> Any:
    return np.sum(x**3)


@CORPUS.at(np.array([1.0, 2.0]))
def loud(x: Any) -> Any:
    if isinstance(x, cg.Node):
        raise TypeError("no")
    return np.sum(x**3)


@CORPUS.at(np.array([1.0, 2.0]))
def silent(x: Any) -> Any:
    return x[0] ** 3 + 1e-3 * ad.stop_gradient(x)[1] ** 2


@CORPUS.at(np.array([1.0, 2.0]))
def warned(x: Any) -> Any:
    if isinstance(x, cg.Node):
        warnings.warn("this has no derivative", stacklevel=1)
    return silent(x)


@CORPUS.at(np.array([1.0, 2.0]))
def hang(x: Any) -> Any:
    while isinstance(x, cg.Node):
        pass
    return np.sum(x**3)


@pytest.mark.parametrize("kind", ["right", "loud", "silent", "warned", "hang"])
def test_harness_recognizes(kind: str) -> None:
    patience = 0.1 if kind == "hang" else PATIENCE  # other kinds may be delayed by a garbage collection after earlier tests
    with Failures(kind) as failures:
        for mode in MODES:
            with failures.case(mode):
                assert outcome(CORPUS[kind], mode, patience).kind == kind


def test_harness_ignores_unrelated_warnings() -> None:
    corpus = Corpus()

    @corpus.at(np.array([1.0, 2.0]))
    def program(x: Any) -> Any:
        warnings.warn("it is late", stacklevel=1)
        return silent(x)

    assert outcome(corpus["program"], "grad").kind == "silent"


def test_harness_compares_values() -> None:
    corpus = Corpus()

    @corpus.at(np.array([1.0, 2.0]))
    def program(x: Any) -> Any:
        return np.sum(x**3) + (1.0 if isinstance(x, cg.Node) else 0.0)

    assert outcome(corpus["program"], "grad").kind == "silent"


def test_reference_of_kink_raises() -> None:
    corpus = Corpus()
    for k, kink in enumerate([lambda x: abs(x - 1.0), lambda x: abs(x - 1.0) + 3 * x, lambda x: abs(x - 1.0) ** 0.5]):
        corpus.add(f"kink {k}", kink, 1.0)
        with pytest.raises(ValueError, match=f"kink {k} has no derivative there"):
            inputs_of(corpus[f"kink {k}"])
