"""NumPy backend: generates one Python function of NumPy calls from a schedule, one call per line.

The generated function does no tracing, lookups or decisions. It reads like hand-written NumPy, with large results in buffers.
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import linecache
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import ops
from ..array_types import Operand
from ..context import reset_after_fork
from ..guards import Guard
from ..storage import Write, layout_in, value_at, window
from ..values import MultiOutput, Value, freeze_operand
from .block_fusion import BLOCK, Group, uniform_value
from .schedule import Schedule

_FILE = "<executor {}>"
# The ufuncs whose `reduce` these functions call.
REDUCTIONS = {function: ufunc for (ufunc, method), function in ops.FOLDS.items() if method == "reduce"}

# Ufuncs for which NumPy deprecates ``out`` by position.
_OUT_BY_KEYWORD = frozenset(spec.function for spec in ops.OPERATIONS if spec.out_by_keyword)


def underlying_call(function: Callable[..., Any], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the function and options that NumPy itself calls for a reduction; other calls are returned unchanged."""
    if function not in REDUCTIONS or not {"axis", "keepdims"}.issuperset(options):
        return function, options
    return REDUCTIONS[function].reduce, {"axis": None, **options}


class NumPyBackend:
    """Compiles schedules to Python functions of NumPy calls; a `Backend`."""

    def compile(self, schedule: Schedule) -> NumPyProgram:
        """Return a function that runs the units in order."""
        return NumPyProgram(*_ProgramWriter(schedule).generate())


class NumPyProgram:
    """A function ``run`` compiled from generated source; a `Program`.

    Parameters
    ----------
    source : str
        The source of a function ``run(v0, v1, ...)``.
    objects : dict
        The values of its global names.
    """

    def __init__(self, source: str, objects: dict[str, Any]) -> None:
        self.source = source
        self.numpy_reason = ""  # why another backend did not compile it
        self._lock = reset_after_fork(threading.Lock())  # one run at a time uses the buffers
        name = _FILE.format(id(self))
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), objects)
        self._run = objects["run"]

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs. No two outputs share memory with each other or with anything else."""
        with self._lock:
            return self._run(*values)  # type: ignore[no-any-return]

    def __del__(self) -> None:
        linecache.cache.pop(_FILE.format(id(self)), None)


class Names(Protocol):
    """How generated code names the items of a graph and other objects."""

    def __getitem__(self, item: object) -> str:
        """Return the name of a defined item."""

    def define(self, item: object) -> str:
        """Assign a name to an item, and return it."""

    def function(self, function: Callable[..., Any]) -> str:
        """Return the name of a function."""

    def literal(self, value: object) -> str:
        """Return the source of a value that is not an item."""

    def index(self, index: object) -> str:
        """Return the source of an index, without brackets."""

    def bind(self, value: object, prefix: str) -> str:
        """Bind an object to a new name that starts with `prefix`, and return the name."""


class CodeWriter:
    """Generates Python, one statement per item of a graph.

    Subclasses choose the form of calls and of leaves: executable programs use the recorded calls and bound names,
    `compgraph.program` uses the user's names, operators and methods.

    Parameters
    ----------
    names : Names
        Names of items and objects.
    items : iterable of Node, MultiOutput and Write
        The items to generate code for.
    """

    def __init__(self, names: Names, items: Iterable[Any]) -> None:
        self.names = names
        self.roots = {id(item.memory): item for item in items if isinstance(item, Value) and item.memory}

    def statement(self, item: Any) -> str:
        """Return the statement of an item: ``v3 = tanh(v2)``, ``b[0] = v1``; for a leaf, its definition."""
        if isinstance(item, Write):
            return f"{self.target(item)}[{self.names.index(item.index)}] = {self.operand(item.args[0], item)}"
        return f"{self.names.define(item)} = {self.operation(item)}" if item.args else self.leaf(item)

    def operation(self, item: Any) -> str:
        """Return the expression of an operation, or of one output of a multi-output operation."""
        if isinstance(item.function, ops.Output):
            return f"{self.operand(item.args[0], item)}[{item.function.index}]"
        return self.call(item)

    def call(self, item: object) -> str:
        """Return the call of the recorded function, with its operands and options."""
        raise NotImplementedError

    def leaf(self, item: object) -> str:
        """Return the statement that defines a leaf; empty if its name is bound already."""
        raise NotImplementedError

    def operand(self, operand: object, item: object) -> str:
        """Return an operand of an item: a name or a literal."""
        return str(
            self.names[operand] if isinstance(operand, (Value, MultiOutput)) else self.names.literal(freeze_operand(operand))
        )

    def target(self, write: Write) -> str:
        """Return the array that a write stores into: the root of the buffer, or a view of it."""
        root = self.roots[id(write.memory)]
        if write.window is root.raw_value:
            return str(self.names[root])
        layout = {name: self.names.literal(value) for name, value in layout_in(root.raw_value, write.window).items()}
        arguments = ", ".join(f"{name}={value}" for name, value in layout.items())
        return f"{self.names.function(window)}({self.names[root]}, {arguments})"


class GlobalNames:
    """Names of an executable program: results are ``v0``, ``v1`` ..., objects are globals of the generated function."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {"np": np}
        self._names: dict[Any, str] = {}
        self._numbers = itertools.count()

    def __contains__(self, item: object) -> bool:
        return item in self._names

    def __getitem__(self, item: object) -> str:
        return self._names[item]

    def define(self, item: object, name: str | None = None) -> str:
        """Assign `name`, by default the next result name, to an item, and return it."""
        self._names[item] = name = f"v{len(self._names)}" if name is None else name
        return name

    def bind(self, value: object, prefix: str) -> str:
        """Return a literal for a simple value, else a new global name."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and np.isfinite(value)):
            return repr(value)
        name = f"{prefix}{next(self._numbers)}"
        self.objects[name] = value
        return name

    def literal(self, value: object) -> str:
        """Return a value as `bind` does."""
        return self.bind(value, "c")

    def index(self, index: object) -> str:
        """Return an index as `bind` does."""
        return self.bind(index, "i")

    def function(self, function: Callable[..., Any]) -> str:
        """Return a function's own name if ``np`` has the function under this name, else a numbered one."""
        ufunc = getattr(function, "__self__", None)
        if isinstance(ufunc, np.ufunc):
            return self.bind(function, f"{_readable_name(ufunc)}_{_readable_name(function)}_")
        name = _readable_name(function)
        if getattr(np, name, None) is not function or name in _RESERVED or _RESULT_NAME.fullmatch(name):
            return self.bind(function, f"{name}_")
        self.objects[name] = function
        return name


class _ProgramWriter(CodeWriter):
    """Generates the source of a schedule: statements, fused groups, checks and ``del`` statements."""

    names: GlobalNames

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(GlobalNames(), schedule.items)
        self._schedule = schedule
        self._lines: list[str] = []
        self._inputs = frozenset(schedule.inputs)

    def generate(self) -> tuple[str, dict[str, Any]]:
        """Return the source, and the values of its global names."""
        parameters = ", ".join(map(self.names.define, self._schedule.inputs))
        for position, unit in enumerate(self._schedule.units):
            if isinstance(unit, Group):
                self._emit_group(unit)
            else:
                self._emit(unit[0])
            for item in unit:
                self._emit_checks(item)
            self._emit_del(position)
        self._lines.append(f"return ({', '.join(self._result_expressions())},)")
        return "\n    ".join([f"def run({parameters}):", *self._lines]) + "\n", self.names.objects

    def _result_expressions(self) -> list[str]:
        """Return the expressions of the outputs; those that share memory are copied."""
        earlier_outputs: set[Any] = set()
        results = []
        for node in self._schedule.outputs:
            is_unshared = node not in earlier_outputs and node.args and node not in self._inputs and _has_unshared_memory(node)
            results.append(self.names[node] if is_unshared else f"np.array({self.names[node]})[()]")
            earlier_outputs.add(node)
        return results

    # ---------------------------------------------------------------------------------------- lines

    def _emit(self, item: Any) -> None:
        if isinstance(item, Guard):
            arguments = ", ".join(self.operand(operand, item) for operand in item.args)
            self._lines.append(f"{self.names.bind(item.check, 'guard')}({arguments})")
        elif item in self._inputs:
            name = self.names[item]
            if item.memory:  # writes follow
                self._lines.append(f"{name} = {name}.copy()")
        elif statement := self.statement(item):
            self._lines.append(statement)

    def _emit_checks(self, item: object) -> None:
        for require, expected in self._schedule.checks.get(item, ()) if item in self.names else ():
            expected_literal = repr(expected) if type(expected) is tuple else self.names.literal(expected)
            self._lines.append(f"{self.names.bind(require, f'{require.__name__}_')}({self.names[item]}, {expected_literal})")

    def leaf(self, item: Any) -> str:
        """Return the definition of a leaf that is written into, a copy of a global; empty for other leaves, which are globals."""
        global_name = self.names.literal(item.raw_value)
        if not item.memory:
            self.names.define(item, global_name)
            return ""
        self.names.objects[global_name] = value_at(item, item.sequence_number)
        return f"{self.names.define(item)} = {global_name}.copy()"

    def call(self, item: Any) -> str:
        """Return the recorded call, which writes into a buffer if the schedule has one."""
        arguments = [self.operand(operand, item) for operand in item.args]
        buffer = self._schedule.buffers.get(item)
        if buffer is not None:
            name = self.names.bind(buffer, "b")
            arguments.append(f"out={name}" if item.function in _OUT_BY_KEYWORD else name)
        function, options = underlying_call(item.function, item.options)
        if options:
            arguments.append(f"**{self.names.bind(options, 'o')}")
        return f"{self.names.function(function)}({', '.join(arguments)})"

    def _emit_group(self, group: Group) -> None:
        """Generate a loop over blocks of elements that runs all operations of the group on each block."""
        operand_names = {x: f"x{k}" for k, x in enumerate(group.operands)}
        lines = self._lines
        flat = {x: f"{name}_" for x, name in operand_names.items()}
        for x, name in flat.items():
            lines.append(f"{name} = {self.names[x]}.reshape(-1)")
        for node in group.outputs:
            buffer = self._schedule.buffers.get(node)
            full = self.names.define(node)
            dtype = self.names.bind(node.dtype, "d") if buffer is None else ""
            allocation = f"np.empty({node.shape}, {dtype})" if buffer is None else self.names.bind(buffer, "b")
            lines += [f"{full} = {allocation}", f"{full}_ = {full}.reshape(-1)"]
        scratch = {k: self.names.bind(np.empty(BLOCK, dtype), "s") for k, dtype in enumerate(group.scratch_dtypes)}
        lines.append(f"for start in range(0, {group.size}, {BLOCK}):")
        loop_body = [f"stop = min(start + {BLOCK}, {group.size})"]
        loop_body += [f"{name} = {flat[x]}[start:stop]" for x, name in operand_names.items()]
        loop_body += [f"t{k} = {name}[:stop - start]" for k, name in scratch.items()]
        block_names = dict(operand_names)
        for node in group:
            arguments = [self._block_operand(a, block_names) for a in node.args]
            if node in group.outputs:
                block_names[node] = f"y{self.names[node]}"
                loop_body.append(f"{block_names[node]} = {self.names[node]}_[start:stop]")
            else:
                block_names[node] = f"t{group.scratch_index[node]}"
            loop_body.append(f"{self.names.function(node.function)}({', '.join([*arguments, block_names[node]])})")
        lines += [f"    {line}" for line in loop_body]

    def _block_operand(self, operand: Operand, block_names: dict[Any, str]) -> str:
        if isinstance(operand, Value) and operand in block_names:
            return block_names[operand]
        number = uniform_value(operand, self._inputs) if isinstance(operand, Value) else None
        return self.operand(operand, None) if number is None else self.names.bind(number, "c")

    def _emit_del(self, position: int) -> None:
        freed = [node for node in self._schedule.frees.get(position, ()) if node in self.names]
        names = [name for name in map(self.names.__getitem__, freed) if name.startswith("v")]
        if names:
            self._lines.append(f"del {', '.join(names)}")


# Names reserved in generated code: its own, Python's, and letters with a number, which name results.
_RESERVED = frozenset({"np", "run", "start", "stop", *dir(builtins), *keyword.kwlist})
_RESULT_NAME = re.compile(r"[a-z]+\d+_?")


def _readable_name(function: object) -> str:
    """Return a function's name if it is an ASCII identifier, else "function", because Python normalizes other letters."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() and name.isascii() else "function"


def _has_unshared_memory(node: Any) -> bool:
    """Return whether no view or buffer shares the memory of a node."""
    return type(node.raw_value) is not np.ndarray or (node.raw_value.base is None and not node.memory)
