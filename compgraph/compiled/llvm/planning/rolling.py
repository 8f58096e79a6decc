"""Loops found again: steps that repeat, as a Python loop leaves them, become one `Loop` (a pass).

A run of turns (see `periods`) keeps the order of its steps, so only the memory of what its turns make has to be settled. A value
that nothing reads after its turn has one place for all turns; one that the next turn reads has two; of one that is read later, as
by the sweep back through a loop, all are kept, one behind the other. Loops within loops are found from the inside: a loop is a
step in the next search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...loops import runs_of
from ..steps import Buffer, Counter, Loop, Place, Step
from .columns import Table, columns, dtypes, with_columns
from .distribution import for_all_turns
from .turns import Turns, Within, moving

FEWEST = 300  # steps: fewer compile at once, and are as fast
LEAST = 48  # steps of a loop
DEPTH = 4  # loops within loops


def rolled(steps: Sequence[Step], outputs: Iterable[Place], longest: int = 0) -> list[Step]:
    """The steps of a straight line with their loops.

    Parameters
    ----------
    steps : sequence of Step
        In order.
    outputs : iterable of Place
        Results, which stay where they are.
    longest : int, optional
        Of loops that stand for longer ones, how many turns those have at most.
    """
    found, single = list(steps), [place.buffer for place in outputs]
    least = LEAST
    for _ in range(DEPTH if len(found) >= FEWEST else 0):
        further = _rolled(Table(found, single), least, longest)
        if further is None:
            break
        found, least = further, 1
    return found


def _rolled(table: Table, least: int, longest: int) -> list[Step] | None:
    """The steps of a table with its runs of at least so many steps as loops; None if there are none."""
    within = Within(table, longest)
    for run in runs_of(table, least):
        within.enter(run)
    if not within.all:
        return None
    if not within.settle():
        return None
    steps: list[Step] = []
    place = 0
    for turns in within.all:
        steps += [_moved(table, row, within) for row in range(place, turns.run.start)]
        steps += turns.before(within)
        steps += _pieces(table, turns, within)
        place = turns.run.stop
    return steps + [_moved(table, row, within) for row in range(place, len(table.steps))]


def _moved(table: Table, row: int, within: Within) -> Step:
    """A step of no loop, with places as they are now."""
    found = [within.lying(c) if isinstance(c, Place) else c for c in table.columns[row]]
    return with_columns(table.steps[row], found)


def _pieces(table: Table, turns: Turns, within: Within) -> Iterator[Step]:
    """The steps that take the place of some turns."""
    done = turns.after()
    for piece in turns.pieces:
        counter = Counter(turns.run.turns)
        steps = [_turn(table, turns, within, row, counter) for row in piece.rows]
        if piece.is_vector:
            yield for_all_turns(steps[0], counter)
        else:
            made = {column.buffer for step in steps for column in columns(step) if isinstance(column, Place)}
            yield Loop(counter, steps + [copy for copy in done if copy.out.buffer in made])


def _turn(table: Table, turns: Turns, within: Within, row: int, counter: Counter) -> Step:
    """A step as it is done in each turn."""
    wanted, values = dtypes(table.steps[row]), list[Any]()
    for number, column in enumerate(table.columns[row]):
        if isinstance(column, Place):
            values.append(turns.in_loop(within, counter, row, number))
        else:
            numbers = [table.columns[r][number] for r in range(row, turns.run.stop, turns.run.period)]
            values.append(_number(numbers, wanted[number], counter))
    return with_columns(table.steps[row], values)


def _number(numbers: list[Any], dtype: Any, counter: Counter) -> Any:
    """A number that is the same in all turns, or a place in a table of them."""
    found = np.array([np.asarray(number).astype(dtype) for number in numbers], dtype)
    if len({number.tobytes() for number in found}) == 1:
        return numbers[0]
    return moving(Place(Buffer(found.dtype, found.size, found, is_given=True), 0, (), ()), counter, 1)
