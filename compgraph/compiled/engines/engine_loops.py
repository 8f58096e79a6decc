"""Loop rerolling: repeated steps of a program become loops of the library, such as ``jax.lax.scan``.

The iterations of a run become the body of a loop. A value that later iterations read is carried. If the
values of all iterations are read elsewhere, for instance by a reverse sweep, they are stacked. Constants, indices and earlier
values that differ between iterations are stacked and passed to the loop. Outer loops take precedence.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..loop_periodicity import MIN_TRIP_COUNT, UnrolledLoop, find_candidate_periods, find_unrolled_loops_of_period
from .engine_steps import Call, Expression, Loop, StaticIndex, Step, Variable, leaves_of, replace_leaves, split
from .engine_translation import Translation

MIN_STEPS = 300  # of the smallest program that is rerolled
MIN_LOOP_STEPS = 48  # of the smallest loop, all iterations together
_MAX_DISTANCE = 8  # largest dependence distance within a loop, in iterations


class _Run:
    """A run of iterations. A position is the index of a step within an iteration.

    Attributes
    ----------
    carried_reads : dict
        By position and operand, the position and the distance of the value of an earlier iteration.
    sequences : dict
        By position and operand, the operands of all iterations.
    stacks : dict
        By position, the variable of the values of all iterations, if they are read elsewhere.
    final_positions : set of int
        Positions whose last value is read elsewhere.
    """

    def __init__(self, run: UnrolledLoop) -> None:
        self.start, self.period, self.trip_count = run
        self.rows = range(run.start, run.stop)
        self.carried_reads: dict[tuple[int, int], tuple[int, int]] = {}
        self.sequences: dict[tuple[int, int], list[Any]] = {}
        self.stacks: dict[int, Variable] = {}
        self.final_positions: set[int] = set()

    def locate(self, row: int) -> tuple[int, int]:
        """Return the iteration and the position of a row."""
        return divmod(row - self.start, self.period)

    def carried(self) -> dict[int, int]:
        """Return the largest distance of the reads of each carried position; 0 if only the last value is read."""
        distances = dict.fromkeys(sorted(self.final_positions - self.stacks.keys()), 0)
        for position, distance in self.carried_reads.values():
            distances[position] = max(distances.get(position, 0), distance)
        return distances


class _Table:
    """Steps as a `RowTable`; the integers are the rows of the leaves of their expressions."""

    def __init__(self, steps: Sequence[Step]) -> None:
        numbers: dict[Any, int] = {}
        self.row_of = {step.variable: row for row, step in enumerate(steps)}
        self.leaves: list[list[Any]] = [[] for _ in steps]
        forms = [(split(s.variable, []), split(s.expression, leaves)) for s, leaves in zip(steps, self.leaves, strict=True)]
        self.kinds = np.array([numbers.setdefault(form, len(numbers)) for form in forms])
        self.integers = np.zeros((len(steps), max(map(len, self.leaves), default=0)), np.int64)
        outer = dict[Any, int]()  # numbers of variables from outside, in the order of their first read
        for row, operands in enumerate(self.leaves):
            for k, operand in enumerate(operands):
                if _is_computed(operand):
                    self.integers[row, k] = self.row_of.get(operand, -1 - outer.setdefault(operand, len(outer)))
        self.may_change = np.ones(self.integers.shape, bool)


def _is_computed(leaf: Any) -> bool:
    return isinstance(leaf, Variable) and leaf.array is None


class LoopFinder:
    """Replaces repeated steps by loops.

    Parameters
    ----------
    translation : Translation
        Its constants are extended.
    """

    def __init__(self, translation: Translation) -> None:
        self._library, self._constant, self._add_constant = translation.library, translation.constant, translation.add_constant
        self._new_variable = translation.new_variable
        self._values: dict[Variable, Expression] = {}  # of variables in loops
        self._positions: dict[StaticIndex, Any] = {}
        self._offsets: dict[Any, Any] = {}  # by shape and bytes

    def current(self, expression: Expression) -> Expression:
        """Return an expression with the values of variables that are assigned in loops."""
        if not self._values:
            return expression
        return replace_leaves(expression, iter([self._values.get(leaf, leaf) for leaf in leaves_of(expression)]))

    def reroll(self, steps: Sequence[Step], results: Sequence[Variable]) -> list[Step | Loop]:
        """Return steps with loops; `results` are read afterwards, by `current`."""
        if len(steps) < MIN_STEPS:
            return [Step(step.variable, self.current(step.expression)) for step in steps]
        table = _Table(steps)
        run_of_row = {row: run for run in self._find_runs(table) for row in run.rows}
        reads = [leaf for row, operands in enumerate(table.leaves) if row not in run_of_row for leaf in operands]
        for run in {id(run): run for run in run_of_row.values()}.values():
            reads += self._reads_before(run, steps, table)
        for row in {table.row_of[leaf] for leaf in (*reads, *results) if leaf in table.row_of}:
            if row in run_of_row:
                iteration, position = run_of_row[row].locate(row)
                if iteration == run_of_row[row].trip_count - 1:
                    run_of_row[row].final_positions.add(position)
                else:
                    variable = steps[row].variable
                    run_of_row[row].stacks[position] = self._new_variable(variable.dtype, variable.shape)
        rolled, row = list[Step | Loop](), 0
        while row < len(steps):
            if row in run_of_row:
                rolled.append(self._make_loop(run_of_row[row], steps, table, run_of_row))
                row = run_of_row[row].rows.stop
            else:
                rolled.append(Step(steps[row].variable, self.current(steps[row].expression)))
                row += 1
        return rolled

    def _find_runs(self, table: _Table) -> Iterator[_Run]:
        """Yield disjoint runs in order; the shortest period that covers most steps takes precedence."""
        periods, is_covered, runs = find_candidate_periods(table.kinds), np.zeros(len(table.kinds), bool), list[UnrolledLoop]()
        while True:
            runs_by_period = [list(find_unrolled_loops_of_period(table, p, is_covered, MIN_LOOP_STEPS)) for p in periods]
            coverage = [sum(run.stop - run.start for run in runs_of_period) for runs_of_period in runs_by_period]
            if not any(coverage):
                break
            best = next(r for r, covered in zip(runs_by_period, coverage, strict=True) if covered >= 0.9 * max(coverage))
            for run in best:
                is_covered[run.start : run.stop] = True
            runs += best
        for run in sorted(runs):
            for skipped in range(min(_MAX_DISTANCE, run.trip_count - MIN_TRIP_COUNT) + 1):
                remaining = UnrolledLoop(run.start + skipped * run.period, run.period, run.trip_count - skipped)
                if (analyzed_run := self._analyze(remaining, table)) is not None:
                    yield analyzed_run
                    break

    def _analyze(self, periodic: UnrolledLoop, table: _Table) -> _Run | None:
        """Return a run with its reads; None if an operand is neither invariant, nor carried, nor known before the loop."""
        run, start, period = _Run(periodic), periodic.start, periodic.period
        rows = start + period * np.arange(run.trip_count)
        for position in range(period):
            for k, operand in enumerate(table.leaves[start + position]):
                operands = [table.leaves[row + position][k] for row in rows.tolist()]
                if not _is_computed(operand):
                    if len({*operands}) > 1 and 0 not in operand.shape:
                        run.sequences[position, k] = operands
                    continue
                operand_rows = table.integers[rows + position, k]
                first, step = int(operand_rows[0]), int(operand_rows[1] - operand_rows[0])
                if (step == 0 and first < start) or (step == period and first >= start):
                    continue  # invariant, or of the same iteration
                distance, source = -((first - start) // period), (first - start) % period
                if operand.dtype is None:
                    return None
                if step == period and first >= 0 and distance <= _MAX_DISTANCE:
                    run.carried_reads[position, k] = source, distance
                elif operand_rows.max() < start:
                    run.sequences[position, k] = operands
                else:
                    return None
        return run

    @staticmethod
    def _reads_before(run: _Run, steps: Sequence[Step], table: _Table) -> Iterator[Any]:
        """Yield the operands that a loop reads from before it."""
        for position, distance in run.carried().items():
            yield from (steps[run.start + position - d * run.period].variable for d in range(1, distance + 1))
        for operands in run.sequences.values():
            yield from operands
        for position in range(run.period):
            for k, operand in enumerate(table.leaves[run.start + position]):
                if table.row_of.get(operand, -1) not in run.rows and (position, k) not in run.carried_reads:
                    yield operand

    def _make_loop(self, run: _Run, steps: Sequence[Step], table: _Table, run_of_row: dict[int, _Run]) -> Loop:
        """Return the loop of a run, and record the values of its variables after it."""
        body_variables = [step.variable for step in steps[run.start : run.start + run.period]]
        carried: dict[tuple[int, int], Variable] = {}  # by position and distance
        initial: dict[Variable, Expression] = {}
        for position, max_distance in run.carried().items():
            dtype, shape = body_variables[position].dtype, body_variables[position].shape
            for distance in range(1, max(max_distance, 1) + 1):
                carried[position, distance] = variable = self._new_variable(dtype, shape)
                before = steps[run.start + position - distance * run.period].variable
                initial[variable] = self.current(before) if max_distance else self._constant(np.zeros(shape, dtype))
        inputs: dict[Variable, Expression] = {}  # by variable, the values of all iterations
        body = []
        for position, variable in enumerate(body_variables):
            expression, operands = steps[run.start + position].expression, list(table.leaves[run.start + position])
            for k, operand in enumerate(operands):
                if (position, k) in run.carried_reads:
                    operands[k] = carried[run.carried_reads[position, k]]
                elif (position, k) in run.sequences:
                    values = run.sequences[position, k]
                    if isinstance(operand, StaticIndex):
                        first = self._new_variable(np.dtype(np.int64), ())
                        inputs[first], offsets = self._stack_positions(values)
                        expression = Call(  # the second argument is the only static index
                            self._library.by_position[expression.function],
                            (expression.args[0], first, offsets, *expression.args[2:]),
                        )
                        operands[k] = first
                        continue
                    operands[k] = self._new_variable(operand.dtype, operand.shape)
                    if operand.array is None:
                        inputs[operands[k]] = self._stack(values, table, run_of_row)
                    else:
                        inputs[operands[k]] = self._add_constant(np.stack([value.array for value in values]))
            body.append(Step(variable, replace_leaves(expression, iter(operands))))
        rolled = self.reroll(body, [body_variables[position] for position in (*run.carried(), *run.stacks)])
        following = [self.current(body_variables[position]) if d == 1 else carried[position, d - 1] for position, d in carried]
        stacks = {stack: self.current(body_variables[position]) for position, stack in run.stacks.items()}
        finals = [self._new_variable(body_variables[position].dtype, body_variables[position].shape) for position, _ in carried]
        for row in run.rows:
            iteration, position = run.locate(row)
            if iteration == run.trip_count - 1 and (position, 1) in carried:
                self._values[steps[row].variable] = finals[list(carried).index((position, 1))]
            elif position in run.stacks:
                self._values[steps[row].variable] = Call(operator.getitem, (run.stacks[position], iteration))
        return Loop(self._library.scan, run.trip_count, rolled, initial, following, finals, inputs, stacks)

    def _stack(self, variables: Sequence[Variable], table: _Table, run_of_row: dict[int, _Run]) -> Expression:
        """Return values stacked along a first axis; the values of a loop are stacked already."""
        segments: list[tuple[Expression, list[int]]] = []  # a stack, and iterations of its loop
        for variable in variables:
            row = table.row_of.get(variable, -1)
            iteration, position = run_of_row[row].locate(row) if row in run_of_row else (-1, -1)
            if position < 0 or position not in run_of_row[row].stacks:
                segments.append((Call(self._library.namespace.expand_dims, (self.current(variable), 0)), []))
                continue
            stack = run_of_row[row].stacks[position]
            last = segments[-1] if segments else ("", [])
            is_continued = last[0] is stack and len({*np.diff([*last[1], iteration]).tolist()} - {0}) == 1
            if is_continued and last[1][-1] != iteration:
                last[1].append(iteration)
            else:
                segments.append((stack, [iteration]))
        parts = []
        for source, iterations in segments:
            step = iterations[1] - iterations[0] if len(iterations) > 1 else 1
            stop = iterations[-1] + step if iterations else 0
            selection = slice(iterations[0], stop if stop >= 0 else None, step) if iterations else None
            parts.append(Call(operator.getitem, (source, selection)) if selection else source)
        return parts[0] if len(parts) == 1 else Call(self._library.namespace.concat, (parts,))

    def _stack_positions(self, indices: Sequence[StaticIndex]) -> tuple[Variable, Any]:
        """Return the positions of all iterations: the first of each, and the others relative to it, or None."""
        for index in indices:
            if index not in self._positions:
                self._positions[index] = np.asarray(index.find_positions())
        positions = [self._positions[index] for index in indices]
        firsts = np.array([p.flat[0] for p in positions])
        offsets = positions[0] - firsts[0]
        if any(not np.array_equal(p - first, offsets) for p, first in zip(positions, firsts, strict=True)):
            return self._add_constant(np.stack(positions)), None
        return self._add_constant(firsts), self._offsets.setdefault((offsets.shape, offsets.tobytes()), offsets)
