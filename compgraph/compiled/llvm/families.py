"""Programs of loops with so many turns that only some with few are recorded: see `executor.Family`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...executor import Family, Schedule
from .lowering import Lowered
from .planning import Steps, grown, rolled


class Rolled(NamedTuple):
    """A schedule as steps with loops.

    Attributes
    ----------
    steps : Steps
        What is done, the buffers of inputs, and the places of those results that are computed.
    results : list of (Place or None, Node)
        As of `Lowered`.
    """

    steps: Steps
    results: list[tuple[Any, Any]]

    @classmethod
    def of(cls, schedule: Schedule, longest: int = 0) -> Rolled:
        """The steps of a schedule, whose loops may stand for some of so many turns."""
        lowered = Lowered(schedule, is_exact=bool(schedule.options.get("exact", False)))
        results = lowered.results()
        outputs = [place for place, _ in results if place is not None]
        inputs = [lowered.given[node].buffer if node in lowered.given else None for node in schedule.inputs]
        return cls(Steps(rolled(lowered.steps, outputs, longest), inputs, outputs), results)


def foretold(family: Family) -> Rolled:
    """The steps with all turns; a NotImplementedError if those with few do not foretell them."""
    found = [Rolled.of(schedule, max(family.wanted)) for schedule in family.schedules]
    steps = grown([each.steps for each in found], family.turns, family.wanted)
    places = iter(steps.outputs)
    return Rolled(steps, [(None if place is None else next(places), node) for place, node in found[0].results])


class LongProgram:
    """A program that is given tables of numbers besides the values of a call.

    Parameters
    ----------
    program : object
        The program.
    family : Family
        What it was made of.
    """

    def __init__(self, program: Any, family: Family) -> None:
        self._program, self._given = program, family.given
        self.source, self.llvm, self.report = program.source, program.llvm, program.report

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of a call."""
        found: tuple[Any, ...] = self._program([*values, *self._given])
        return found

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """What `visualize_at` draws."""
        tables = [f"table {number}" for number in range(1, 1 + len(self._given))]
        return self._program.drawing(options, [*names, *tables])
