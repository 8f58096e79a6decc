"""Outcomes of programs that are differentiated unchanged: right, loud, warned of, or silently wrong.

``python -m tests.support.programs.harness`` prints the counts of outcomes per corpus and mode, and names programs that are not
right. ``--json now.json`` keeps the outcomes, and ``--before then.json`` names those that have changed.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

import autodiff as ad
from tests.support.programs.autograd import AUTOGRAD
from tests.support.programs.program import Corpus, Program, Reference, flat, fresh, reference
from tests.support.programs.scipy import SCIPY
from tests.support.programs.textbook_python import TEXTBOOK  # the last of three modules that add to it

CORPORA: dict[str, Corpus] = {"textbook": TEXTBOOK, "scipy": SCIPY, "autograd": AUTOGRAD}
KINDS = ("right", "loud", "warned", "silent", "hang")
FROZEN = Path(__file__).with_name("right.json")  # what stays right
PATIENCE = 20  # seconds
TOLERANCE = 1e-5  # relative to the largest derivative
LOOSE = 1e-2  # that of second derivatives, whose differences are less exact
OURS = ("graph", "derivative", "gradient")  # words of warnings about a lost graph


class Outcome(NamedTuple):
    """Outcome of a program.

    Attributes
    ----------
    kind : str
        "right"; "loud": an exception; "warned": wrong numbers, with a warning; "silent": wrong numbers, or
        nan; "hang": nothing in good time.
    message : str
        The exception, the warning, or the wrong numbers.
    """

    kind: str
    message: str = ""

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


class TooLong(BaseException):
    """A program was stopped; no ``except Exception`` of its own holds this up."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise within a block that takes too long."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class ModeInputs(NamedTuple):
    """Inputs of a mode: the program, its reference, the direction of modes that need one."""

    program: Program
    reference: Reference
    directions: tuple[Any, ...]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments for one call."""
        return fresh(self.program.point)

    @property
    def argnums(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(range(len(self.program.point)))

    def total(self, *args: Any) -> Any:
        """The program if it returns a number, otherwise the sum of its result."""
        result = self.program.function(*args)
        return result if self.reference.value.ndim == 0 else np.sum(result)

    def beside(self, *args: Any) -> Any:
        """The same plus a term that keeps its graph, which hides a loss of the first term's graph."""
        penalty = sum(np.sum(a**2) for a in args)  # before the program, which may write into its argument
        return self.total(*args) + penalty


class Compared(NamedTuple):
    """Computed numbers, the expected ones, and the allowed difference."""

    found: Any
    expected: Any
    slack: float


def _row(parts: Any) -> Any:
    """Concatenate arrays of any shape."""
    return np.concatenate([flat(p) for p in parts])


def _compared(actual: Any, expected: Any, beside: Any = 0.0, tolerance: float = TOLERANCE) -> Compared:
    """Compare numbers with those of the program itself, which scale the slack, plus those of the term beside it."""
    expected = np.atleast_1d(expected)
    return Compared(flat(actual), expected + beside, tolerance * float(np.max(np.abs(expected), initial=0)))


def _gradient(case: ModeInputs, f: Callable[..., Any], value: Any, beside: Any) -> list[Compared]:
    primal, gradient = ad.value_and_grad(f, argnums=case.argnums)(*case.arguments)
    return [_compared(primal, np.sum(case.reference.value), value), _compared(_row(gradient), case.reference.gradient, beside)]


def grad(case: ModeInputs) -> list[Compared]:
    """The gradient, of the program alone."""
    return _gradient(case, case.total, 0.0, 0.0)


def grad_beside(case: ModeInputs) -> list[Compared]:
    """The gradient, beside a term that keeps its graph."""
    point = _row(case.program.point)
    return _gradient(case, case.beside, np.sum(point**2), 2 * point)


def jvp(case: ModeInputs) -> list[Compared]:
    """The derivative along a direction, of the program alone."""
    primal, tangent = ad.jvp(case.program.function, case.arguments, case.directions)
    slopes = case.reference.jacobian @ _row(case.directions)
    return [_compared(primal, case.reference.value.ravel()), _compared(tangent, slopes)]


def jvp_beside(case: ModeInputs) -> list[Compared]:
    """The derivative along a direction, beside a term that keeps its tangent."""
    point, direction = _row(case.program.point), _row(case.directions)
    primal, tangent = ad.jvp(case.beside, case.arguments, case.directions)
    value = _compared(primal, np.sum(case.reference.value), np.sum(point**2))
    return [value, _compared(tangent, case.reference.gradient @ direction, 2 * point @ direction)]


def jacobian(case: ModeInputs) -> list[Compared]:
    """All derivatives of all results."""
    blocks = ad.jacobian(case.program.function, argnums=case.argnums)(*case.arguments)
    parts = [np.reshape(part, (case.reference.value.size, -1)) for part in blocks]
    return [_compared(np.concatenate(parts, axis=1), case.reference.jacobian.ravel())]


def grad_of_grad(case: ModeInputs) -> list[Compared]:
    """The second derivative along a direction, of the program beside a term that keeps its graph."""

    def slope(*args: Any) -> Any:
        gradient = ad.grad(case.beside, argnums=case.argnums)(*args)
        return sum(np.sum(g * d) for g, d in zip(gradient, case.directions, strict=True))

    point, direction = _row(case.program.point), _row(case.directions)
    first, gradient = ad.value_and_grad(slope, argnums=case.argnums)(*case.arguments)
    compared = [_compared(first, case.reference.gradient @ direction, 2 * point @ direction)]
    expected, error = second_derivative(case)
    if error <= 1e-3 * max(abs(expected), 1e-2 * abs(case.reference.gradient @ direction)):
        compared.append(_compared(_row(gradient) @ direction, expected, 2 * direction @ direction, LOOSE))
    return compared


def second_derivative(case: ModeInputs) -> tuple[float, float]:
    """The second derivative along the direction by NumPy alone, and by how much it may be off."""
    estimates = []
    for step in (2e-2, 1e-2, 5e-3, 2e-3, 1e-3):
        along = []
        for moved in (-2 * step, -step, 0, step, 2 * step):
            args = [p + moved * d for p, d in zip(fresh(case.program.point), case.directions, strict=True)]
            along.append(float(np.sum(flat(case.program.function(*args)))))
        estimates.append(float(np.dot([-1, 16, -30, 16, -1], along)) / (12 * step**2))
    off, best = min((abs(b - a), b) for a, b in itertools.pairwise(estimates))
    return best, off


MODES: dict[str, Callable[[ModeInputs], list[Compared]]] = {
    f.__name__.replace("_", " "): f for f in (grad, grad_beside, jvp, jvp_beside, jacobian, grad_of_grad)
}


@functools.cache
def inputs_of(program: Program) -> ModeInputs:
    """A program, its reference, and a direction."""
    rng = np.random.default_rng(0)
    sizes = [np.maximum(np.abs(p), 0.1) for p in program.point]  # each element moves in proportion to its size
    directions = [size * rng.uniform(0.5, 1, np.shape(size)) for size in sizes]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ModeInputs(program, reference(program), tuple(float(d) if np.ndim(d) == 0 else d for d in directions))


@functools.cache
def outcome(program: Program, mode: str, patience: float = PATIENCE) -> Outcome:
    """Outcome of a program in one of the modes.

    Parameters
    ----------
    program : Program
        The program.
    mode : str
        A key of `MODES`.
    patience : float
        How many seconds it may take.

    Raises
    ------
    ValueError
        If the program has no derivative by NumPy alone, and so no reference.
    """
    case = inputs_of(program)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with at_most(patience):
                compared = MODES[mode](case)
        except TooLong:
            return Outcome("hang", f"more than {patience} s")
        except Exception as error:
            return Outcome("loud", f"{type(error).__name__}: {error}")
    wrong = _wrong(compared, case.reference)
    if wrong is None:
        return Outcome("right")
    messages = [str(w.message) for w in caught if any(word in str(w.message) for word in OURS)]
    return Outcome("warned", messages[0]) if messages else Outcome("silent", wrong)


def _wrong(compared: list[Compared], reference_derivatives: Reference) -> str | None:
    """The computed and expected numbers, if they differ."""
    inexact = 10 * np.max(np.sum(reference_derivatives.error, axis=0)) + 1e-9
    for actual, expected, slack in compared:
        if actual.shape != expected.shape:
            return f"{actual.size} numbers for {expected.size}"
        if not np.all(np.abs(actual - expected) <= slack + inexact):  # nor if one is nan
            return f"{_shown(actual)} for {_shown(expected)}"
    return None


def _shown(numbers: Any) -> str:
    return np.array2string(np.asarray(numbers), precision=6, separator=", ", threshold=6, max_line_width=10**6).replace("\n", "")


def measured(corpora: list[str], modes: list[str]) -> dict[str, dict[str, dict[str, Outcome]]]:
    """The outcome of each program of each corpus in each mode."""
    outcomes_by_mode: dict[str, dict[str, dict[str, Outcome]]] = {}
    for mode in modes:
        start = time.perf_counter()
        outcomes_by_mode[mode] = {c: {p.name: outcome(p, mode) for p in CORPORA[c]} for c in corpora}
        print(f"{mode}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return outcomes_by_mode


def main() -> None:
    """Measure, print, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", choices=[[], *CORPORA], help="all of them, unless named")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--quiet", action="store_true", help="only the counts")
    parser.add_argument("--json", type=Path, help="where the outcomes are kept")
    parser.add_argument("--freeze", action="store_true", help=f"write into {FROZEN.name} what is right")
    parser.add_argument("--before", type=Path, help="outcomes of another run to compare with")
    options = parser.parse_args()
    outcomes_by_mode = measured(options.corpora or list(CORPORA), options.modes)
    print_counts(outcomes_by_mode)
    if not options.quiet:
        print_named(outcomes_by_mode)
    if options.json:
        about = {"python": sys.version.split()[0], "numpy": np.__version__, "scipy": scipy.__version__}
        options.json.write_text(json.dumps({**about, "modes": outcomes_by_mode}, indent=1))
    if options.freeze:
        FROZEN.write_text(json.dumps(right_somewhere(outcomes_by_mode), indent=1) + "\n")
    if options.before:
        print_changed(json.loads(options.before.read_text())["modes"], outcomes_by_mode)


def right_somewhere(outcomes_by_mode: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The programs of each corpus that are right in any mode, each with the modes in which it is not."""
    frozen: dict[str, dict[str, list[str]]] = {}
    for corpus, outcomes in next(iter(outcomes_by_mode.values())).items():
        others = {
            name: [mode for mode in outcomes_by_mode if outcomes_by_mode[mode][corpus][name].kind != "right"] for name in outcomes
        }
        frozen[corpus] = {name: modes for name, modes in others.items() if len(modes) < len(outcomes_by_mode)}
    return frozen


def print_counts(outcomes_by_mode: dict[str, Any]) -> None:
    """A line for each mode and corpus."""
    print(f"{'mode':14}{'corpus':10}{'of':>5}" + "".join(f"{kind:>8}" for kind in KINDS))
    for mode, corpora in outcomes_by_mode.items():
        for corpus, outcomes in corpora.items():
            counts = Counter(o.kind for o in outcomes.values())
            print(f"{mode:14}{corpus:10}{len(outcomes):5}" + "".join(f"{counts[kind]:8}" for kind in KINDS))


def print_named(outcomes_by_mode: dict[str, Any]) -> None:
    """Each program that is not right, and why."""
    for mode, corpora in outcomes_by_mode.items():
        for corpus, outcomes in corpora.items():
            for kind in reversed(KINDS[1:]):
                for name, what in outcomes.items():
                    if what.kind == kind:
                        print(f"{mode} | {corpus} | {kind.upper() if kind == 'silent' else kind} | {name}: {what.first_line}")


def print_changed(before: dict[str, Any], outcomes_by_mode: dict[str, Any]) -> None:
    """Print each program whose outcome has changed, grouped by old and new outcome."""
    lines = []
    for mode, corpora in outcomes_by_mode.items():
        for corpus, outcomes in corpora.items():
            then = before.get(mode, {}).get(corpus, {})
            for name, now in outcomes.items():
                if name in then and then[name][0] != now.kind:
                    lines.append(f"{then[name][0]} -> {now.kind} | {mode} | {corpus} | {name}: {now.first_line}")
    print(f"\n{len(lines)} changed", *sorted(lines), sep="\n")


if __name__ == "__main__":
    main()
