"""Loop rerolling: repeated statements of a program become loops of the library, such as ``jax.lax.scan``.

Each statement assigns to a new variable. The iterations of a run become the body of a loop. A value that later iterations read is
carried; values of all iterations that are read elsewhere, for instance by a reverse sweep, are stacked. Constants, indices and
earlier values that differ between iterations are stacked and passed to the loop. Outer loops take precedence.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..loops import MIN_TRIP_COUNT, PeriodicRun, find_candidate_periods, find_runs_of_period

MIN_STATEMENTS = 300  # of the smallest program that is rerolled
MIN_LOOP_STATEMENTS = 48  # of the smallest loop, all iterations together
_MAX_DISTANCE = 8  # largest dependence distance within a loop, in iterations
_NAMES = re.compile(r"\b[vgrcki]\d+\b")  # values, operands of guards, conditions, constants, small constants, indices
_FUNCTION = re.compile(r"\w+\($")
# Functions of the elements at an index, and those of the elements at computed positions of the flattened array.
_BY_POSITIONS = {
    **dict.fromkeys(("np_getitem", "np_window"), "read_positions"),
    **dict.fromkeys(("set_item", "set_window", "set_at_positions"), "set_positions"),
    "add_item": "add_positions",
}


class ValueType(NamedTuple):
    """The dtype and shape of a variable; dtype "tuple" for several outputs."""

    dtype: str
    shape: tuple[int, ...]


class Statement(NamedTuple):
    """An assignment to a new variable.

    Attributes
    ----------
    variable : int
        The number of the variable.
    pieces : tuple of str
        The source around the operands.
    operands : tuple of int and str
        Numbers of variables, and names of constants and of indices.
    """

    variable: int
    pieces: tuple[str, ...]
    operands: tuple[Any, ...]


class _Loop:
    """A run of iterations. Positions are those of statements within an iteration.

    Attributes
    ----------
    carried_reads : dict
        By position and operand, the position and the distance of the value of an earlier iteration.
    sequences : dict
        By position and operand, the operands of all iterations.
    stacks : dict
        By position, the source of the values of all iterations, if they are read elsewhere.
    final : set of int
        Positions whose last value is read elsewhere.
    """

    def __init__(self, run: PeriodicRun) -> None:
        self.run = run
        self.carried_reads: dict[tuple[int, int], tuple[int, int]] = {}
        self.sequences: dict[tuple[int, int], list[Any]] = {}
        self.stacks: dict[int, str] = {}
        self.final: set[int] = set()

    def locate(self, row: int) -> tuple[int, int]:
        """Return the iteration and the position of a row."""
        return divmod(row - self.run.start, self.run.period)

    def carried(self) -> dict[int, int]:
        """Return the largest distance of the reads of each carried position; 0 if only the last value is read."""
        distances = dict.fromkeys(sorted(self.final - self.stacks.keys()), 0)
        for position, distance in self.carried_reads.values():
            distances[position] = max(distances.get(position, 0), distance)
        return distances


class LoopWriter:
    """Generates the source of statements, with loops.

    Parameters
    ----------
    types : dict
        By name, the `ValueType` of a value or operand.
    arrays : dict
        By name, the constants of the program.
    positions : dict
        By name of an index, a function that returns the positions of its elements in the flattened array.
    add_constant : callable
        Adds an array to the arguments of the program, and returns its source.
    bind : callable
        Binds an object to a new global name.
    """

    def __init__(
        self,
        types: dict[str, ValueType],
        arrays: dict[str, Any],
        positions: dict[str, Callable[[], Any]],
        add_constant: Callable[[Any], str],
        bind: Callable[[Any, str], str],
    ) -> None:
        self._types, self._arrays, self._position_functions = types, arrays, positions
        self._add_constant, self._bind = add_constant, bind
        self._numbers = itertools.count()
        self._positions_by_name: dict[str, Any] = {}
        self._offsets: dict[Any, str] = {}  # by shape and bytes, names of positions relative to the first
        self._sources: dict[int, str] = {}  # by variable
        self._type_of: dict[int, ValueType] = {}  # by variable

    def write(self, parameters: Iterable[str], lines: Iterable[str], results: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return lines ``name = expression`` as lines with loops, and the sources of results."""
        variables = {name: self._new_variable(self._types[name], name) for name in parameters}
        statements = []
        for line in lines:
            target, expression = line.split(" = ", 1)
            pieces, operands, end = [], list[Any](), 0
            for match in _NAMES.finditer(expression):
                name = match[0]
                if name in variables or name in self._arrays or name in self._position_functions:
                    pieces.append(expression[end : match.start()])
                    operands.append(variables.get(name, name))
                    end = match.end()
            variables[target] = self._new_variable(self._types[target])
            statements.append(Statement(variables[target], (*pieces, expression[end:]), tuple(operands)))
        output = [variables.get(name, name) for name in results]
        written = self._write_statements(statements, output)
        return written, [self._source(operand) for operand in output]

    def _new_variable(self, type_: ValueType, source: str = "") -> int:
        variable = next(self._numbers)
        self._sources[variable], self._type_of[variable] = source or f"t{variable}", type_
        return variable

    def _source(self, operand: Any) -> str:
        return self._sources[operand] if isinstance(operand, int) else operand

    def _positions(self, name: str) -> Any:
        if name not in self._positions_by_name:
            self._positions_by_name[name] = np.asarray(self._position_functions[name]())
        return self._positions_by_name[name]

    def _array(self, name: str) -> Any:
        """Return a constant, or the positions of an index."""
        return self._arrays[name] if name in self._arrays else self._positions(name)

    def _kind(self, statement: Statement) -> Any:
        """Return a key that is equal for statements that may have the same position in two iterations."""
        operands = [
            self._type_of[operand] if isinstance(operand, int) else (self._array(operand).dtype.char, self._array(operand).shape)
            for operand in statement.operands
        ]
        return self._type_of[statement.variable], statement.pieces, *operands

    # ------------------------------------------------------------------------------------------------ loops

    def _write_statements(self, statements: Sequence[Statement], results: Sequence[Any]) -> list[str]:
        """Return the source of statements; `results` are read afterwards."""
        row_of = {statement.variable: row for row, statement in enumerate(statements)}
        loops = list(self._find_loops(statements, row_of)) if len(statements) >= MIN_STATEMENTS else []
        owners = {row: loop for loop in loops for row in range(loop.run.start, loop.run.stop)}
        reads = [operand for row, s in enumerate(statements) if row not in owners for operand in s.operands]
        for loop in loops:
            reads += self._reads_before(loop, statements)
        for row in {row_of[operand] for operand in (*reads, *results) if operand in row_of}:
            if row in owners:
                iteration, position = owners[row].locate(row)
                if iteration == owners[row].run.trip_count - 1:
                    owners[row].final.add(position)
                else:
                    owners[row].stacks[position] = f"s{row_of[statements[row].variable]}_{next(self._numbers)}"
        lines, row = list[str](), 0
        while row < len(statements):
            if row in owners:
                lines += self._write_loop(owners[row], statements, row_of, owners)
                row = owners[row].run.stop
                continue
            sources = [*map(self._source, statements[row].operands), ""]
            expression = "".join(itertools.chain(*zip(statements[row].pieces, sources, strict=True)))
            lines.append(f"{self._sources[statements[row].variable]} = {expression}")
            row += 1
        return lines

    def _find_loops(self, statements: Sequence[Statement], row_of: dict[int, int]) -> Iterator[_Loop]:
        """Yield disjoint loops in order; the shortest period that covers most statements takes precedence."""
        table = _Table(list(map(self._kind, statements)), statements, row_of)
        periods, is_covered, runs = find_candidate_periods(table.kinds), np.zeros(len(statements), bool), list[PeriodicRun]()
        while True:
            runs_by_period = [list(find_runs_of_period(table, p, is_covered, MIN_LOOP_STATEMENTS)) for p in periods]
            coverage = [sum(run.stop - run.start for run in runs_of_period) for runs_of_period in runs_by_period]
            if not any(coverage):
                break
            best = next(r for r, covered in zip(runs_by_period, coverage, strict=True) if covered >= 0.9 * max(coverage))
            for run in best:
                is_covered[run.start : run.stop] = True
            runs += best
        for run in sorted(runs):
            for skipped in range(min(_MAX_DISTANCE, run.trip_count - MIN_TRIP_COUNT) + 1):
                rest = PeriodicRun(run.start + skipped * run.period, run.period, run.trip_count - skipped)
                if (loop := self._analyze(rest, statements, table)) is not None:
                    yield loop
                    break

    def _analyze(self, run: PeriodicRun, statements: Sequence[Statement], table: _Table) -> _Loop | None:
        """Return the loop of a run; None if an operand is neither invariant, nor carried, nor known before the loop."""
        loop, start, period = _Loop(run), run.start, run.period
        rows = start + period * np.arange(run.trip_count)
        for position in range(period):
            for k, operand in enumerate(statements[start + position].operands):
                operands = [statements[row + position].operands[k] for row in rows.tolist()]
                if not isinstance(operand, int):
                    if len({*operands}) > 1 and self._array(operand).size:
                        loop.sequences[position, k] = operands
                    continue
                operand_rows = table.integers[rows + position, k]
                first, step = int(operand_rows[0]), int(operand_rows[1] - operand_rows[0])
                if (step == 0 and first < start) or (step == period and first >= start):
                    continue  # invariant, or of the same iteration
                distance, source = -((first - start) // period), (first - start) % period
                if self._type_of[operand].dtype == "tuple":
                    return None
                if step == period and first >= 0 and distance <= _MAX_DISTANCE:
                    loop.carried_reads[position, k] = source, distance
                elif operand_rows.max() < start:
                    loop.sequences[position, k] = operands
                else:
                    return None
        return loop

    @staticmethod
    def _reads_before(loop: _Loop, statements: Sequence[Statement]) -> Iterator[Any]:
        """Yield the operands that a loop reads from before it."""
        run = loop.run
        body = statements[run.start : run.start + run.period]
        for position, distance in loop.carried().items():
            yield from (statements[run.start + position - d * run.period].variable for d in range(1, distance + 1))
        for operands in loop.sequences.values():
            yield from operands
        own = {statement.variable for statement in body}
        for position, statement in enumerate(body):
            for k, operand in enumerate(statement.operands):
                if operand not in own and (position, k) not in loop.carried_reads:
                    yield operand

    def _write_loop(
        self, loop: _Loop, statements: Sequence[Statement], row_of: dict[int, int], owners: dict[int, _Loop]
    ) -> list[str]:
        """Return the definition of a loop body and the call of the loop."""
        run, body = loop.run, list(statements[loop.run.start : loop.run.start + loop.run.period])
        own = [statement.variable for statement in body]
        carried: dict[tuple[int, int], int] = {}  # by position and distance, the variable
        initial_values: list[str] = []
        for position, farthest in loop.carried().items():
            type_ = self._type_of[own[position]]
            for distance in range(1, max(farthest, 1) + 1):
                before = run.start + position - distance * run.period
                initial_values.append(
                    self._sources[statements[before].variable] if farthest else f"xp.zeros({type_.shape}, '{type_.dtype}')"
                )
                carried[position, distance] = self._new_variable(type_)
        inputs: dict[int, str] = {}  # by variable, the values of all iterations
        for row, statement in enumerate(body):
            operands, pieces = list(statement.operands), list(statement.pieces)
            for k in range(len(operands)):
                if (row, k) in loop.carried_reads:
                    operands[k] = carried[loop.carried_reads[row, k]]
                elif (row, k) in loop.sequences:
                    values = loop.sequences[row, k]
                    if isinstance(values[0], int):
                        type_, source = self._type_of[values[0]], self._stack(values, row_of, owners)
                    elif values[0] in self._arrays:
                        type_ = ValueType(self._arrays[values[0]].dtype.name, self._arrays[values[0]].shape)
                        source = self._add_constant(np.stack([self._arrays[name] for name in values]))
                    else:
                        type_ = ValueType("int64", ())
                        source, offsets = self._stack_positions([self._positions(name) for name in values])
                        function = _FUNCTION.search(pieces[k - 1])
                        assert function is not None
                        pieces[k - 1] = pieces[k - 1][: function.start()] + _BY_POSITIONS[function[0][:-1]] + "("
                        pieces[k], pieces[k + 1] = ", ", f", {offsets}{pieces[k + 1]}"
                    operands[k] = self._new_variable(type_)
                    inputs[operands[k]] = source
            body[row] = Statement(statement.variable, tuple(pieces), tuple(operands))
        lines = self._write_statements(body, [own[position] for position in (*loop.carried(), *loop.stacks)])
        name = f"loop{next(self._numbers)}"
        following = [own[position] if d == 1 else carried[position, d - 1] for position, d in carried]
        finals = {position: f"{self._sources[variable]}_{d}" for (position, d), variable in carried.items() if d == 1}
        results = [finals[position] if d == 1 else "_" for position, d in carried]
        definition = [
            f"def {name}(carried, inputs):",
            f"    {_tuple(map(self._source, carried.values()))} = carried",
            f"    {_tuple(map(self._source, inputs))} = inputs",
            *[f"    {line}" for line in lines],
            f"    return {_tuple(map(self._source, following))}, {_tuple(self._source(own[p]) for p in loop.stacks)}",
            f"{_tuple(results)}, {_tuple(loop.stacks.values())} = "
            f"scan({name}, {_tuple(initial_values)}, {_tuple(inputs.values())}, {run.trip_count})",
        ]
        for row in range(run.start, run.stop):
            iteration, position = loop.locate(row)
            if iteration == run.trip_count - 1 and position in finals:
                self._sources[statements[row].variable] = finals[position]
            elif position in loop.stacks:
                self._sources[statements[row].variable] = f"{loop.stacks[position]}[{iteration}]"
        return definition

    def _stack(self, variables: Sequence[int], row_of: dict[int, int], owners: dict[int, _Loop]) -> str:
        """Return the source of values stacked along a first axis; those of a loop are stacked already."""
        segments: list[tuple[str, list[int]]] = []  # a source, and iterations of a loop
        for variable in variables:
            row = row_of.get(variable, -1)
            iteration, position = owners[row].locate(row) if row in owners else (-1, -1)
            if position < 0 or position not in owners[row].stacks:
                segments.append((f"{self._sources[variable]}[None]", []))
                continue
            stack = owners[row].stacks[position]
            last = segments[-1] if segments else ("", [])
            is_continued = last[0] == stack and len({*np.diff([*last[1], iteration]).tolist()} - {0}) == 1
            if is_continued and last[1][-1] != iteration:
                last[1].append(iteration)
            else:
                segments.append((stack, [iteration]))
        sources = []
        for source, iterations in segments:
            step = iterations[1] - iterations[0] if len(iterations) > 1 else 1
            stop = iterations[-1] + step if iterations else 0
            sources.append(f"{source}[{iterations[0]}:{stop if stop >= 0 else ''}:{step}]" if iterations else source)
        return sources[0] if len(sources) == 1 else f"xp.concat({_tuple(sources)})"

    def _stack_positions(self, positions: Sequence[Any]) -> tuple[str, str]:
        """Return the sources of positions of all iterations: the first of each, and the others relative to it, or None."""
        firsts = np.array([p.flat[0] for p in positions])
        offsets = positions[0] - firsts[0]
        if any(not np.array_equal(p - first, offsets) for p, first in zip(positions, firsts, strict=True)):
            return self._add_constant(np.stack(positions)), "None"
        key = offsets.shape, offsets.tobytes()
        if key not in self._offsets:
            self._offsets[key] = self._bind(offsets, "i")
        return self._add_constant(firsts), self._offsets[key]


class _Table:
    """Statements as a `RowTable`; the integers are the rows of the operands."""

    def __init__(self, kinds: Sequence[Any], statements: Sequence[Statement], row_of: dict[int, int]) -> None:
        numbers: dict[Any, int] = {}
        self.kinds = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds])
        self.integers = np.zeros((len(statements), max(len(s.operands) for s in statements)), np.int64)
        for row, statement in enumerate(statements):
            for k, operand in enumerate(statement.operands):
                if isinstance(operand, int):
                    self.integers[row, k] = row_of.get(operand, -1 - operand)
        self.may_change = np.ones(self.integers.shape, bool)


def _tuple(sources: Iterable[str]) -> str:
    return f"({''.join(f'{source}, ' for source in sources)})"
