"""Programs of other libraries: a schedule as one Python function over a library's namespace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...executor import Schedule
from ...tracing import without_tracing
from ...values import Value
from .array_api import has_nan
from .engine_loops import LoopFinder
from .engine_steps import Call, SourceWriter
from .engine_translation import Translation
from .libraries import Library

MAX_STATEMENTS = 20_000  # of one program, without repeated iterations of loops


class EngineBackend:
    """Compiles schedules for a library; a `Backend` of the executor."""

    skipped_passes = frozenset({"fuse", "allocate"})

    def __init__(self, library: Library) -> None:
        self.library = library

    def __str__(self) -> str:
        return self.library.name

    def compile(self, schedule: Schedule) -> EngineProgram:
        """Return a program; raise a NotImplementedError that names the operation and the line if one has no counterpart."""
        return EngineProgram(schedule, self.library)


class Results(tuple[Any, ...]):
    """The outputs of a program, with a flag on the device: whether one of them contains nan."""

    has_nan: Any

    def __new__(cls, outputs: Iterable[Any], has_nan: object) -> Results:
        """Return the outputs with the flag."""
        instance = super().__new__(cls, outputs)
        instance.has_nan = has_nan
        return instance


class EngineProgram:
    """A function of a library's arrays; a `Program`.

    Attributes
    ----------
    source : str
        The Python source.
    run : callable
        ``run(*arrays)`` takes a library's arrays. It returns a tuple of the outputs, a tuple of the operands of guards, whether
        all conditions hold (None without conditions), and whether an output contains nan.
    guards : list of Guard
        The guards that each run checks.
    has_double_precision : bool
        Whether 64-bit floating-point numbers occur.
    has_conditions : bool
        Whether each run checks that computed indices are in range, or another condition on values.
    """

    numpy_calls = 0

    def __init__(self, schedule: Schedule, library: Library) -> None:
        dtypes = {np.asarray(item.raw_value).dtype.char for item in schedule.items if isinstance(item, Value)}
        self.has_double_precision = not dtypes.isdisjoint("dD")
        translation = Translation(schedule, library)
        self.guards, self.has_conditions, self._library = translation.guards, translation.condition is not None, library
        writer = SourceWriter()
        self.source = _write_source(translation, writer)
        with library.context(), without_tracing():
            writer.objects |= {constant.name: library.from_numpy(constant.array) for constant in translation.inline_constants}
            self._constants = [library.from_numpy(constant.array) for constant in translation.constants]
        exec(compile(self.source, f"<{library.name} program>", "exec"), writer.objects)
        run: Callable[..., Any] = writer.objects["run"]
        self.run: Callable[..., Any] = lambda *arrays: run(*arrays, *self._constants)
        self._compiled = library.compile(run)

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs: arrays of the library if an input is one, else NumPy arrays."""
        library, are_arrays = self._library, list(map(self._library.is_array, values))
        if values and all(are_arrays):
            return self._run(values, library.copy_result)
        convert = library.from_numpy if any(are_arrays) else library.borrow  # results in NumPy's memory are awaited
        with library.context(), without_tracing():  # otherwise NumPy's names in the library's code are patched within operators
            values = [v if is_array else convert(np.asarray(v)) for v, is_array in zip(values, are_arrays, strict=True)]
            return self._run(values, library.copy_result if any(are_arrays) else library.to_numpy)

    def _run(self, arrays: Sequence[Any], convert: Callable[[Any], Any]) -> Results:
        outputs, guard_values, conditions_hold, has_nan = self._compiled(*arrays, *self._constants)
        if conditions_hold is not None and not self._library.is_true(conditions_hold):
            raise IndexError("a computed index is out of range. Call the function without cg.jit, which names the line")
        remaining_values = iter(guard_values)
        for guard in self.guards:
            guard.check(*[self._library.to_numpy(next(remaining_values)) if isinstance(a, Value) else a for a in guard.args])
        return Results(map(convert, outputs), has_nan)


def _write_source(translation: Translation, writer: SourceWriter) -> str:
    """Return the source of a translated schedule, with loops if the library has them."""
    library, outputs, condition = translation.library, translation.outputs, translation.condition
    is_nan: Any = Call(functools.partial(has_nan, library.namespace), tuple(o for o in outputs if o.dtype.kind in "fc"))
    results: Any = ((*outputs,), (*translation.guard_operands,), condition, is_nan if is_nan.args else False)
    steps: Any = translation.steps
    if library.scan is not None:
        finder = LoopFinder(translation)
        steps = finder.reroll(steps, [*outputs, *translation.guard_operands, *([condition] if condition else [])])
        results = finder.current(results)
    lines = list(writer.lines(steps))
    if len(lines) > MAX_STATEMENTS:
        raise NotImplementedError(
            f"the program has {len(lines)} operations (at most {MAX_STATEMENTS}), because {library.name} repeats no "
            "iterations of such loops; make the loop shorter, or vectorize it"
        )
    parameters = [variable.name for variable in (*translation.inputs, *translation.constants)]
    return "\n    ".join([f"def run({', '.join(parameters)}):", *lines, f"return {writer.source(results)}"]) + "\n"


@functools.cache
def backend_of(library: Library) -> EngineBackend:
    """Return the backend of a library."""
    return EngineBackend(library)
