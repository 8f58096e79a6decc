"""A backend that writes a schedule as a Python function of NumPy calls, one a line.

While it runs, nothing is traced, looked up or decided. The text is what one would write by hand, with large results in buffers.
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import linecache
import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import operations
from ..context import renewed
from ..guards import Guard
from ..storage import Write, place_in, value_at, window
from ..values import Joint, Value, settled
from .fusion import BLOCK, Group, repeated
from .schedule import Schedule

_FILE = "<executor {}>"
# The ufuncs whose `reduce` these functions call in the end.
REDUCTIONS = {np.sum: np.add, np.prod: np.multiply, np.max: np.maximum, np.min: np.minimum}


def shortest(function: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The function, and its options, that NumPy itself calls in the end for a reduction; for others as given."""
    if function not in REDUCTIONS or not {"axis", "keepdims"}.issuperset(options):
        return function, options
    return REDUCTIONS[function].reduce, {"axis": None, **options}


class NumPyBackend:
    """Makes Python functions of NumPy calls; a `Backend`."""

    def compile(self, schedule: Schedule) -> NumPyProgram:
        """A function that runs the units one after the other."""
        return NumPyProgram(*_Writer(schedule).written())


class NumPyProgram:
    """A function ``run``, compiled from its text; a `Program`.

    Parameters
    ----------
    source : str
        The text of a function ``run(v0, v1, ...)``.
    objects : dict
        What the global names in it stand for.
    """

    def __init__(self, source: str, objects: dict[str, Any]) -> None:
        self.source = source
        self._lock = renewed(threading.Lock())  # the buffers serve one run at a time
        name = _FILE.format(id(self))
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), objects)
        self._run = objects["run"]

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs; no two share memory with each other or with anything."""
        with self._lock:
            return self._run(*values)  # type: ignore[no-any-return]

    def __del__(self) -> None:
        linecache.cache.pop(_FILE.format(id(self)), None)


class _Writer:
    """Writes the text of a schedule, line by line, and names the results, and the objects that it needs."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._names: dict[Any, str] = {}
        self._objects: dict[str, Any] = {"np": np}
        self._numbers = itertools.count()
        self._lines: list[str] = []
        self._given = frozenset(schedule.inputs)
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}

    def written(self) -> tuple[str, dict[str, Any]]:
        """The text, and what its global names stand for."""
        parameters = ", ".join(map(self._new_name, self._schedule.inputs))
        for place, unit in enumerate(self._schedule.units):
            if isinstance(unit, Group):
                self._emit_group(unit)
            else:
                self._emit(unit[0])
            for item in unit:
                self._emit_checks(item)
            self._emit_freed(place)
        self._lines.append(f"return ({', '.join(self._results())},)")
        return "\n    ".join([f"def run({parameters}):", *self._lines]) + "\n", self._objects

    def _results(self) -> list[str]:
        """The outputs, each in memory of its own."""
        taken: set[Any] = set()
        results = []
        for node in self._schedule.outputs:
            own = node not in taken and node.args and node not in self._given and _is_fresh(node)
            results.append(self._names[node] if own else f"np.array({self._names[node]})[()]")
            taken.add(node)
        return results

    # ---------------------------------------------------------------------------------------- the names

    def _bound(self, value: Any, prefix: str) -> str:
        """How the text names an object: a literal for simple ones, else a new global name."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and np.isfinite(value)):
            return repr(value)
        name = f"{prefix}{next(self._numbers)}"
        self._objects[name] = value
        return name

    def _function(self, function: Any) -> str:
        """The name of a function in the text: NumPy's own if it stands in ``np`` under it, else that with a number."""
        ufunc = getattr(function, "__self__", None)
        if isinstance(ufunc, np.ufunc):
            return self._bound(function, f"{_readable(ufunc)}_{_readable(function)}_")
        name = _readable(function)
        if getattr(np, name, None) is not function or name in _TAKEN or _NUMBERED.fullmatch(name):
            return self._bound(function, f"{name}_")
        self._objects[name] = function
        return name

    def _name(self, operand: Any) -> str:
        return self._names[operand] if isinstance(operand, (Value, Joint)) else self._bound(settled(operand), "c")

    def _new_name(self, item: Any) -> str:
        self._names[item] = name = f"v{len(self._names)}"
        return name

    # ---------------------------------------------------------------------------------------- the lines

    def _emit(self, item: Any) -> None:
        if isinstance(item, Guard):
            asked = ", ".join(map(self._name, item.args))
            self._lines.append(f"{self._bound(item.check, 'guard')}({asked})")
        elif isinstance(item, Write):
            target, index = self._target(item), self._bound(item.index, "i")
            self._lines.append(f"{target}[{index}] = {self._name(item.args[0])}")
        elif item in self._given:
            name = self._names[item]
            if item.memory:  # it will be written into
                self._lines.append(f"{name} = {name}.copy()")
        elif not item.args:
            self._emit_leaf(item)
        elif isinstance(item.function, operations.Output):
            joint = self._name(item.args[0])
            self._lines.append(f"{self._new_name(item)} = {joint}[{item.function.index}]")
        else:
            self._lines.append(f"{self._new_name(item)} = {self._call(item)}")

    def _emit_checks(self, item: Any) -> None:
        for require, expected in self._schedule.checks.get(item, ()) if item in self._names else ():
            told = repr(expected) if type(expected) is tuple else self._bound(expected, "c")
            self._lines.append(f"{self._bound(require, f'{require.__name__}_')}({self._names[item]}, {told})")

    def _emit_leaf(self, item: Any) -> None:
        bound = self._bound(item.plain, "c")
        if item.memory:
            self._lines.append(f"{self._new_name(item)} = {bound}.copy()")
            self._objects[bound] = value_at(item, item.tick)
        else:
            self._names[item] = bound

    def _call(self, item: Any) -> str:
        arguments = list(map(self._name, item.args))
        buffer = self._schedule.buffers.get(item)
        if buffer is not None:
            name = self._bound(buffer, "b")
            arguments.append(f"out={name}" if item.function in (np.maximum, np.minimum) else name)  # as NumPy wants it
        function, options = shortest(item.function, item.options)
        if options:
            arguments.append(f"**{self._bound(options, 'o')}")
        return f"{self._function(function)}({', '.join(arguments)})"

    def _target(self, write: Write) -> str:
        root = self._roots[id(write.memory)]
        name = self._names[root]
        if write.window is root.plain:
            return name
        return f"{self._function(window)}({name}, **{self._bound(place_in(root.plain, write.window), 'o')})"

    def _emit_group(self, group: Group) -> None:
        """A loop over blocks of the elements: all operations of the group on one block, then on the next."""
        outside = {x: f"x{k}" for k, x in enumerate(group.read)}
        lines = self._lines
        flat = {x: f"{name}_" for x, name in outside.items()}
        for x, name in flat.items():
            lines.append(f"{name} = {self._names[x]}.reshape(-1)")
        for node in group.kept:
            buffer = self._schedule.buffers.get(node)
            full = self._new_name(node)
            made = f"np.empty({node.shape}, {self._bound(node.dtype, 'd')})" if buffer is None else self._bound(buffer, "b")
            lines += [f"{full} = {made}", f"{full}_ = {full}.reshape(-1)"]
        scratch = {k: self._bound(np.empty(BLOCK, dtype), "s") for k, dtype in enumerate(group.scratch)}
        lines.append(f"for start in range(0, {group.size}, {BLOCK}):")
        inner = [f"stop = min(start + {BLOCK}, {group.size})"]
        inner += [f"{name} = {flat[x]}[start:stop]" for x, name in outside.items()]
        inner += [f"t{k} = {name}[:stop - start]" for k, name in scratch.items()]
        there = dict(outside)
        for node in group:
            arguments = [self._in_block(a, there) for a in node.args]
            there[node] = f"{self._names[node]}_[start:stop]" if node in group.kept else f"t{group.place[node]}"
            if node in group.kept:
                inner.append(f"y{self._names[node]} = {there[node]}")
                there[node] = f"y{self._names[node]}"
            inner.append(f"{self._function(node.function)}({', '.join([*arguments, there[node]])})")
        lines += [f"    {line}" for line in inner]

    def _in_block(self, operand: Any, there: dict[Any, str]) -> str:
        if isinstance(operand, Value) and operand in there:
            return there[operand]
        number = repeated(operand, self._given) if isinstance(operand, Value) else None
        return self._name(operand) if number is None else self._bound(number, "c")

    def _emit_freed(self, place: int) -> None:
        names = [self._names[node] for node in self._schedule.frees.get(place, ()) if self._names.get(node, "").startswith("v")]
        if names:
            self._lines.append(f"del {', '.join(names)}")


# Names that functions cannot have in the text: those it uses itself, Python's, and letters with a number, as results have.
_TAKEN = frozenset({"np", "run", "start", "stop", *dir(builtins), *keyword.kwlist})
_NUMBERED = re.compile(r"[a-z]+\d+_?")


def _readable(function: Any) -> str:
    """The name of a function if it is an ASCII identifier, else "function": Python normalises other letters in source text."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() and name.isascii() else "function"


def _is_fresh(node: Any) -> bool:
    """Whether the value of a node lies in memory that nothing else uses."""
    return type(node.plain) is not np.ndarray or (node.plain.base is None and not node.memory)
