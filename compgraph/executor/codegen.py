"""A graph as a Python function of NumPy calls, one a line: what runs when a graph is run again.

Nothing is traced, looked up or decided while it runs; the text is what one would write by hand, with the results in buffers
(`storage`) that are used again.
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import linecache
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import operations
from ..graph import Joint, Node, Write, place_in, value_at, window
from ..graph.context import renewed
from .buffer_allocation import Storage
from .fusion import BLOCK, Group, fused, repeated
from .retrace import OtherProgramError, Question

_FILE = "<executor {}>"
# Functions whose result is as long as the values of their operands say.
COUNTING = frozenset(
    {np.nonzero, np.flatnonzero, np.bincount, np.histogram_bin_edges, np.linalg.lstsq, np.polymul, np.polydiv, np.roots}
    | {operations.function_named("unique")}
)
# Functions whose result is complex where the values say so.
TYPED = frozenset(
    {f for name in np.emath.__all__ if callable(f := getattr(np.emath, name))}
    | {np.linalg.eig, np.linalg.eigvals, operations.function_named("roots")}
)


# What these functions come down to, for arrays.
REDUCTIONS = {np.sum: np.add, np.prod: np.multiply, np.max: np.maximum, np.min: np.minimum}


def shortest(function: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The function that NumPy itself calls in the end, where that is known."""
    if function not in REDUCTIONS or not {"axis", "keepdims"}.issuperset(options):
        return function, options
    return REDUCTIONS[function].reduce, {"axis": None, **options}


def require_shape(found: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a result has the shape that all that follows was written for."""
    if np.shape(found) != shape:
        raise OtherProgramError


def require_dtype(found: Any, dtype: Any) -> None:
    """Raise unless a result has the dtype that all that follows was written for."""
    if found.dtype != dtype:
        raise OtherProgramError


def require_same(found: Any, kept: Any) -> None:
    """Raise unless a result is what all that follows was written for."""
    if not np.array_equal(found, kept):
        raise OtherProgramError


class Program:
    """What computes some nodes from the values of others.

    Parameters
    ----------
    items : list
        The graph, as `replay.recipe` gives it; all lengths are those of the arrays that will be given.
    inputs : sequence of Node
        What is given.
    outputs : sequence of Node
        What is computed.
    fuse : bool
        Whether operations element by element are done together, block by block.

    Attributes
    ----------
    source : str
        The text of the function.
    """

    def __init__(self, items: list[Any], inputs: Sequence[Any], outputs: Sequence[Any], fuse: bool) -> None:
        self._names: dict[Any, str] = {}
        self._objects: dict[str, Any] = {"np": np}
        self._numbers = itertools.count()
        self._lines: list[str] = []
        self._inputs = list(inputs)
        self._given = frozenset(inputs)
        units = fused(items, self._given, outputs) if fuse else [[item] for item in items]
        self._storage = Storage(units, outputs, self._given)
        self._roots = {id(item.memory): item for item in items if isinstance(item, Node) and item.memory}
        for node in self._inputs:
            self._new_name(node)
        for place, unit in enumerate(units):
            self._emit_unit(unit)
            self._emit_freed(place)
        self._lock = renewed(threading.Lock())  # the buffers serve one run at a time
        self.source = self._text(outputs)
        self._run = self._compiled()

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs; no two share memory with each other or with anything."""
        with self._lock:
            return self._run(*values)  # type: ignore[no-any-return]

    # ---------------------------------------------------------------------------------------- the text

    def _text(self, outputs: Sequence[Any]) -> str:
        parameters = ", ".join(self._names[node] for node in self._inputs)
        taken: set[Any] = set()
        results = []
        for node in outputs:
            own = node not in taken and node.args and node not in self._given and _is_fresh(node)
            results.append(self._names[node] if own else f"np.array({self._names[node]})[()]")
            taken.add(node)
        body = [*self._lines, f"return ({', '.join(results)},)"]
        return "\n    ".join([f"def run({parameters}):", *body]) + "\n"

    def _compiled(self) -> Callable[..., Any]:
        name = _FILE.format(id(self))
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        exec(compile(self.source, name, "exec"), self._objects)
        return self._objects["run"]  # type: ignore[no-any-return]

    def __del__(self) -> None:
        linecache.cache.pop(_FILE.format(id(self)), None)

    def _bound(self, value: Any, prefix: str) -> str:
        """The name under which the function finds an object."""
        if value is None or value.__class__ in (bool, int, str) or (value.__class__ is float and np.isfinite(value)):
            return repr(value)
        name = f"{prefix}{next(self._numbers)}"
        self._objects[name] = value
        return name

    def _function(self, function: Any) -> str:
        """The name of a function in the text: that which NumPy has for it, or a number of its own after its name."""
        ufunc = getattr(function, "__self__", None)
        if isinstance(ufunc, np.ufunc):
            return self._bound(function, f"{_readable(ufunc)}_{_readable(function)}_")
        name = _readable(function)
        if getattr(np, name, None) is not function or name in _TAKEN or _NUMBERED.fullmatch(name):
            return self._bound(function, f"{name}_")
        self._objects[name] = function
        return name

    def _name(self, operand: Any) -> str:
        return self._names[operand] if isinstance(operand, (Node, Joint)) else self._bound(operand, "c")

    def _new_name(self, item: Any) -> str:
        self._names[item] = name = f"v{len(self._names)}"
        return name

    # ---------------------------------------------------------------------------------------- the lines

    def _emit_unit(self, unit: list[Any]) -> None:
        if isinstance(unit, Group):
            self._emit_group(unit)
        else:
            self._emit(unit[0])

    def _emit(self, item: Any) -> None:
        if isinstance(item, Question):
            asked = ", ".join(map(self._name, item.args))
            self._lines.append(f"{self._bound(item.ask, 'ask')}({asked})")
        elif isinstance(item, Write):
            target, index = self._target(item), self._bound(item.index, "i")
            self._lines.append(f"{target}[{index}] = {self._name(item.args[0])}")
        elif item in self._given:
            name = self._names[item]
            if item.memory:  # it will be written into
                self._lines.append(f"{name} = {name}.copy()")
            self._emit_same(item)
        elif not item.args:
            self._leaf(item)
        elif isinstance(item.function, operations.Output):
            joint = self._name(item.args[0])
            self._lines.append(f"{self._new_name(item)} = {joint}[{item.function.index}]")
            self._emit_check(item, item.args[0])
        else:
            self._lines.append(f"{self._new_name(item)} = {self._call(item)}")
            self._emit_check(item, item)

    def _emit_same(self, item: Any) -> None:
        """Make sure of indices and masks where something is written: the derivative was taken with these."""
        if self._roots and item.plain.dtype.kind in "biu":
            kept = self._bound(np.array(item.plain), "c")
            self._lines.append(f"{self._bound(require_same, 'require_same_')}({self._names[item]}, {kept})")

    def _emit_check(self, item: Any, operation: Any) -> None:
        """Make sure of the length of a result that may hang on values."""
        if isinstance(item, Node):
            self._emit_same(item)
        if isinstance(item, Joint) or isinstance(operation.function, np.ufunc):
            return
        if operation.function in TYPED or getattr(operation.function, "function", None) in TYPED:
            self._lines.append(
                f"{self._bound(require_dtype, 'require_dtype_')}({self._names[item]}, {self._bound(item.dtype, 'd')})"
            )
        chosen = any(a.plain.dtype.kind in "biu" for p in operation.edges if isinstance(a := operation.args[p], Node))
        if chosen or operation.function in COUNTING:
            self._lines.append(f"{self._bound(require_shape, 'require_shape_')}({self._names[item]}, {item.plain.shape})")

    def _leaf(self, item: Any) -> None:
        bound = self._bound(item.plain, "c")
        if item.memory:
            self._lines.append(f"{self._new_name(item)} = {bound}.copy()")
            self._objects[bound] = value_at(item, item.tick)
        else:
            self._names[item] = bound

    def _call(self, item: Any) -> str:
        arguments = list(map(self._name, item.args))
        buffer = self._storage.buffer.get(item)
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
        """Operations element by element, a block of all of them after the other."""
        outside = {x: f"x{k}" for k, x in enumerate(group.read)}
        lines = self._lines
        flat = {x: f"{name}_" for x, name in outside.items()}
        for x, name in flat.items():
            lines.append(f"{name} = {self._names[x]}.reshape(-1)")
        for node in group.kept:
            buffer = self._storage.buffer.get(node)
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
        if isinstance(operand, Node) and operand in there:
            return there[operand]
        number = repeated(operand, self._given) if isinstance(operand, Node) else None
        return self._name(operand) if number is None else self._bound(number, "c")

    def _emit_freed(self, place: int) -> None:
        names = [self._names[node] for node in self._storage.freed.get(place, ()) if self._names.get(node, "").startswith("v")]
        if names:
            self._lines.append(f"del {', '.join(names)}")


# Names that the text has for other things: of its own, of Python, and those that are a letter and a number.
_TAKEN = frozenset({"np", "run", "start", "stop", *dir(builtins), *keyword.kwlist})
_NUMBERED = re.compile(r"[a-z]+\d+_?")


def _readable(function: Any) -> str:
    """The name of a function, if it can stand in the text: Python takes some letters for others there."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() and name.isascii() else "function"


def _is_fresh(node: Any) -> bool:
    """Whether the value of a node lies in memory that nothing else has."""
    return node.plain.__class__ is not np.ndarray or (node.plain.base is None and not node.memory)
