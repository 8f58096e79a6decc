"""The programs of one key: each for what Python decided by the values, and for what the function reached then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from ..executor import MISFITS, compiled, compiled_family, compiles_families, hold_nan
from ..guards import GuardError
from ..tracing import Tracing, user_line_of
from . import worker
from .arguments import Call, Given, Static, copied, names_of, require_numbers
from .captured import Captured, require_unchanged
from .loops import NotAlikeError
from .refusals import RefusedError
from .results import kept, require_like
from .tracing import Traced, traced

LONG = 3000  # operations of a trace that is not made twice to know whether nan may come of its short form
FIRST = 2  # calls of a key that run as NumPy before a program is made
VARIANTS, CHANGES, TRIES = 16, 8, 3
UNFIT = (GuardError, *MISFITS, ArithmeticError, Warning)  # what a program raises for values of another program, or of NumPy


class Variant:
    """One program of a key.

    Attributes
    ----------
    program : callable
        What takes the values, and gives the tuple of the outputs.
    build : callable
        What makes of that tuple what the function returns.
    captured : Captured or None
        What has to be compared before a run; None if nothing has.
    runs, timed, seconds : int, int, float
        How often it ran, how many runs were timed, and how long these took together.
    times : dict
        How long its making took, by step.
    """

    __slots__ = ("build", "captured", "program", "runs", "seconds", "size", "timed", "times", "watches_nan")

    def __init__(self, program: Any, build: Any, captured: Captured, size: int, watches_nan: bool, times: dict[str, float]):
        self.program, self.build, self.size, self.times = program, build, size, times
        self.captured = captured if captured else None
        self.watches_nan = watches_nan
        self.runs = self.timed = 0
        self.seconds = 0.0


class Programs:
    """What is known of one key of a compiled function.

    Parameters
    ----------
    jitted : Jitted
        The function.
    call : Call
        A call with that key; its values are not kept.

    Attributes
    ----------
    variants : tuple of Variant
        The one that ran last comes first.
    refusal : str or None
        Why this key runs as NumPy for ever.
    is_eager : bool
        Whether further programs are made at once, as by `Jitted.compile`.
    """

    def __init__(self, jitted: Any, call: Call) -> None:
        self.jitted, self.title = jitted, _title(call)
        self._dynamic = call.dynamic
        self._blank = call.with_values([None] * len(call.dynamic))
        self._are_arrays = all(type(value) is np.ndarray for value in call.values())
        self._statics = call.statics()  # alive, since the key may hold their ids
        self.variants: tuple[Variant, ...] = ()
        self.refusal: str | None = None
        self.notes: list[str] = []
        self.is_eager = False
        self.calls = self.misses = self._changes = self._tries = 0
        self._careful = False
        self._pending: int | None = None  # the generation of the process that has a job under way

    # ------------------------------------------------------------------------------------------ runs

    def found(self, values: Sequence[Any]) -> tuple[Variant, Any] | None:
        """The first variant that holds for some values, and what its program gives; None if none does."""
        for variant in self.variants:
            if variant.captured is not None and not variant.captured.is_current():
                continue
            variant.runs += 1
            try:
                if variant.runs & 15 == 1:
                    begun = time.perf_counter()
                    results = variant.program(values)
                    variant.seconds += time.perf_counter() - begun
                    variant.timed += 1
                else:
                    results = variant.program(values)
            except UNFIT:
                variant.runs -= 1
                continue
            if variant.watches_nan and hold_nan(results):
                self._drop(variant)
                return None
            if variant is not self.variants[0]:
                self._to_front(variant)
            return variant, results
        return None

    def names(self) -> list[str]:
        """What the values of a program are called."""
        return names_of(self._blank, self.jitted.__wrapped__)

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """The values of a program among the leaves of a call, as arrays."""
        if self._are_arrays:
            return [leaves[place] for place in self._dynamic]
        return [np.asarray(leaves[place]) for place in self._dynamic]

    def missed(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function because no program holds; compile a program, now or in the background, if one is due.

        The function is called once, with `args` and `kwargs`. They are those of `call`, or nodes with these values.
        """
        if not self._is_due():
            return self.jitted.__wrapped__(*args, **kwargs)
        return self._begun(call, args, kwargs)

    def _is_due(self) -> bool:
        self.calls += 1
        return self.refusal is None and self._pending != worker.generation and (self.is_eager or self.calls > FIRST)

    def _begun(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives by NumPy, from which a program is made at once or in the background."""
        try:
            self._require_few()
            prepared = self.prepare(call)
        except RefusedError as error:
            self.refuse(error)
            return self.jitted.__wrapped__(*args, **kwargs)
        result, job = prepared(args, kwargs)
        if job is not None and self.is_eager:
            job()
        elif job is not None:
            self._pending = worker.generation
            worker.submit(copy_context(), job)
        return result

    def prepare(self, call: Call) -> Callable[..., tuple[Any, Any]]:
        """What runs the function by NumPy, and gives the result, and the job that makes a program of this call."""
        require_numbers(call)
        captured = Captured(self.jitted.roots(call))
        if captured.refusal is not None:
            raise RefusedError(captured.refusal)
        own = call.with_values(map(copied, call.values()))

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
            before = Given.of(args, kwargs, self.jitted.names)
            result = self.jitted.__wrapped__(*args, **kwargs)
            try:
                require_unchanged(captured, "by a call")
                _require_unwritten(before, Given.of(args, kwargs, self.jitted.names), own)
                expected = kept(result)
            except RefusedError as error:
                self.refuse(error)
                return result, None
            return result, lambda: self._do(own, captured, expected)

        return prepared

    def _require_few(self) -> None:
        if len(self.variants) >= VARIANTS:
            raise RefusedError(
                f"Python decides by the values of the arguments (if x > 0, int(x)) in more than {VARIANTS} ways; choose by "
                "np.where, np.minimum, x * (x > 0)"
            )
        stale = [label for v in self.variants if v.captured is not None and (label := v.captured.changed()) is not None]
        if stale and len(stale) == len(self.variants):
            self._changes += 1
            if self._changes > CHANGES:
                raise RefusedError(f"{stale[0]} was changed more than {CHANGES} times between calls; make it an argument")

    # ------------------------------------------------------------------------------------------ made

    def _do(self, call: Call, captured: Captured, expected: Any) -> None:
        """Make a program, or note why none can be made."""
        try:
            with worker.tracing, worker.collecting_later():
                variant = self._made(call, captured, expected)
        except RefusedError as error:
            self.refuse(error)
        except Exception as error:
            self.refuse(RefusedError(_told(error)))
        else:
            self._tries = 0
            self.variants = (variant, *self.variants)
        finally:
            self._pending = None

    def _made(self, call: Call, captured: Captured, expected: Any) -> Variant:
        if (label := captured.changed()) is not None:
            raise RefusedError(f"{label} was changed before the call could be traced", is_lasting=False)
        with worker.importing:
            backend = self.jitted.backend
        if not self._careful and compiles_families(backend):
            try:
                return self._traced(call, captured, expected, True)
            except NotAlikeError:
                pass  # with all turns it may be done, or it is told why not
        return self._traced(call, captured, expected, False)

    def _traced(self, call: Call, captured: Captured, expected: Any, cuts_loops: bool) -> Variant:
        """A program made of a trace; a NotAlikeError if its loops were cut, and that was no help."""
        begun = time.perf_counter()
        trace = traced(self.jitted.__wrapped__, call, captured, expected, self._careful, cuts_loops)
        watches_nan = captured.derives and not self._careful
        if watches_nan and trace.size < LONG:
            careful = traced(self.jitted.__wrapped__, call, captured, expected, True)
            watches_nan = careful.size != trace.size
            del careful
        traced_at = time.perf_counter()
        try:
            program = self._program(trace)
            values = self.values(call.leaves)
            if program is not _nothing:
                with np.errstate(all="ignore"):
                    require_like(trace.build(program(values)), expected, "what its program gives", values)
        except Exception as error:
            if trace.family is None:
                raise
            raise NotAlikeError from error
        if hasattr(program, "give_up_values"):
            program.give_up_values()
        times = {"trace": traced_at - begun, "compile": time.perf_counter() - traced_at}
        return Variant(program, trace.build, captured, trace.size, watches_nan, times)

    def _program(self, trace: Traced) -> Any:
        """The program of a trace."""
        if trace.is_constant:
            return _nothing
        options, backend = self.jitted.options, self.jitted.backend
        with Tracing(compiles=True):  # whose nodes can give up their values, as those whose own memory they are cannot
            if trace.family is not None:
                return compiled_family(trace.family, options, backend)
            return compiled(trace.schedule, options, backend)

    def refuse(self, error: RefusedError) -> None:
        """Note why a call is not compiled; if another try would end the same way, run as NumPy for ever."""
        self._tries += 1
        if error.is_lasting or self._tries >= TRIES:
            self.refusal = str(error)
        else:
            self.notes.append(str(error))

    def _drop(self, variant: Variant) -> None:
        """Forget a program whose derivatives gave nan; those after it are recorded with more care."""
        self._careful = True
        self.variants = tuple([other for other in self.variants if other is not variant and not other.watches_nan])

    def _to_front(self, variant: Variant) -> None:
        others = [other for other in self.variants if other is not variant]
        if len(others) < len(self.variants):
            self.variants = (variant, *others)

    def compile(self, call: Call) -> None:
        """Make a program that holds for a call, now, unless there is one."""
        self.is_eager = True
        while self._pending == worker.generation:
            time.sleep(0.001)
        if self.refusal is not None or self.found(self.values(call.leaves)) is not None:
            return
        known = len(self.variants)
        while self.refusal is None and len(self.variants) <= known:
            own = call.with_values(map(copied, call.values()))  # the caller's arrays stay as they are, whatever the function does
            try:
                self._require_few()
                prepared = self.prepare(own)
            except RefusedError as error:
                self.refuse(error)
                return
            _, job = prepared(*own.arguments())
            if job is not None:
                job()


def _require_unwritten(before: Given, after: Given, own: Call) -> None:
    """Raise a RefusedError if a function has written into its arguments, lists and dictionaries among them.

    `own` is the call with copies of its arrays.
    """
    if before.structure != after.structure or before.orders != after.orders:
        raise RefusedError("it changes a list, a dictionary or an object that is an argument, which a program does not repeat")
    for position, (place, copy) in enumerate(zip(own.dynamic, own.values(), strict=True)):
        value = before.leaves[place]
        if after.leaves[place] is not value:
            raise RefusedError("it replaces a value in a list, a dictionary or an object that is an argument")
        is_plain = type(value) is np.ndarray
        if before.writes[place] != after.writes[place] or (is_plain and value.tobytes() != copy.tobytes()):
            raise RefusedError(f"it writes into an argument (array {position}), which a program does not repeat; copy it first")


def _nothing(values: Sequence[Any]) -> tuple[Any, ...]:
    return ()


def _told(error: Exception) -> str:
    """An error of a trace, which plain NumPy does not raise, in words."""
    place = user_line_of(error)
    where = f" ({place})" if place is not None and place not in str(error) else ""
    return f"tracing it raised {type(error).__name__}: {error}{where}"


def _title(call: Call) -> str:
    """The arguments in a few words: dtypes, shapes, static values."""
    told = []
    for position, leaf in enumerate(call.leaves):
        if position in call.dynamic:
            told.append(f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, np.ndarray) else type(leaf).__name__)
        else:
            value = leaf.value if type(leaf) is Static else leaf
            kind = type(value)
            text = repr(value) if kind.__module__ in ("builtins", "numpy") else kind.__name__  # no user code runs
            told.append(text if len(text) <= 40 else f"{text[:37]}...")
    return ", ".join(told) or "no arguments"
