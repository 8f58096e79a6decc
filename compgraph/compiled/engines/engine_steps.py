"""Intermediate representation of programs for other libraries: assignments of expressions to variables, and their source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..loop_periodicity import constant_key

Expression = Any  # a Variable, a Call, a StaticIndex, a list or tuple of expressions, or a plain object
_LITERALS = frozenset({bool, int, str, type(None)})


@dataclass(eq=False, slots=True)
class Variable:
    """A value of a program, assigned once.

    Attributes
    ----------
    name : str
        The name in the source.
    dtype : dtype or None
        The dtype, or None for several outputs.
    shape : tuple of int
        The shape.
    array : ndarray or None
        The value of a constant.
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    array: Any = None


@dataclass(eq=False, slots=True)
class StaticIndex:
    """An index of known elements of an array.

    Attributes
    ----------
    value : object
        The index, as the library's function takes it.
    shape : tuple of int
        The shape of the selection.
    find_positions : callable
        Returns the positions of the elements in the flattened array.
    """

    value: Any
    shape: tuple[int, ...]
    find_positions: Callable[[], Any]


class Call(NamedTuple):
    """A call of a function with expressions."""

    function: Callable[..., Any]
    args: tuple[Expression, ...]
    options: dict[str, Expression] = {}  # noqa: RUF012  (never written into)


class Step(NamedTuple):
    """The assignment of an expression to a variable."""

    variable: Variable
    expression: Expression


@dataclass(eq=False)
class Loop:
    """The repetition of steps by a library's function, such as ``jax.lax.scan``.

    Attributes
    ----------
    scan : callable
        The function.
    count : int
        The number of iterations.
    body : list of Step and Loop
        The steps of an iteration.
    carried : dict
        Variables that an iteration passes to the next one, with their values before the loop.
    following : list
        The values of these variables at the end of an iteration.
    finals : list of Variable
        The variables that hold these values after the loop.
    inputs : dict
        Variables of an iteration, with their values in all iterations, stacked.
    stacks : dict
        Variables after the loop that hold the stacked values of all iterations, with the value of an iteration.
    """

    scan: Callable[..., Any] | None
    count: int
    body: list[Any]
    carried: dict[Variable, Expression]
    following: list[Expression]
    finals: list[Variable]
    inputs: dict[Variable, Expression]
    stacks: dict[Variable, Expression]


def split(expression: Expression, leaves: list[Any]) -> Any:
    """Append the variables and static indices of an expression to `leaves`, and return a key of the rest.

    The key is equal for expressions that differ only in variables and static indices of equal shapes and dtypes.
    """
    if isinstance(expression, Variable):
        leaves.append(expression)
        return expression.dtype, expression.shape, expression.array is None
    if isinstance(expression, StaticIndex):
        leaves.append(expression)
        return expression.shape
    if isinstance(expression, Call):
        names, values = tuple(expression.options), tuple(expression.options.values())
        return expression.function, split(expression.args, leaves), names, split(values, leaves)
    if type(expression) in (tuple, list):
        return type(expression), *[split(part, leaves) for part in expression]
    return constant_key(expression)


def leaves_of(expression: Expression) -> list[Any]:
    """Return the variables and static indices of an expression in order."""
    leaves: list[Any] = []
    split(expression, leaves)
    return leaves


def replace_leaves(expression: Expression, new_leaves: Iterator[Expression]) -> Expression:
    """Return an expression with other leaves, in the order of `leaves_of`."""
    if isinstance(expression, (Variable, StaticIndex)):
        return next(new_leaves)
    if isinstance(expression, Call):
        args = tuple([replace_leaves(part, new_leaves) for part in expression.args])
        options = {name: replace_leaves(part, new_leaves) for name, part in expression.options.items()}
        return Call(expression.function, args, options)
    if type(expression) in (tuple, list):
        return type(expression)([replace_leaves(part, new_leaves) for part in expression])
    return expression


class SourceWriter:
    """Generates the source of steps; `objects` has the values of its global names."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self._names: dict[Any, str] = {}  # by key of an object

    def lines(self, steps: Iterable[Step | Loop]) -> Iterator[str]:
        """Yield the lines of steps."""
        for step in steps:
            if isinstance(step, Loop):
                yield from self._loop_lines(step)
            else:
                yield f"{step.variable.name} = {self.source(step.expression)}"

    def _loop_lines(self, loop: Loop) -> Iterator[str]:
        name = f"loop_{(*loop.carried, *loop.stacks)[0].name}"

        def text(expressions: Iterable[Expression]) -> str:
            return self.source(tuple(expressions))

        yield f"def {name}(carried, inputs):"
        yield f"    {text(loop.carried)}, {text(loop.inputs)} = carried, inputs"
        yield from (f"    {line}" for line in self.lines(loop.body))
        yield f"    return {text(loop.following)}, {text(loop.stacks.values())}"
        arguments = f"{text(loop.carried.values())}, {text(loop.inputs.values())}, {loop.count}"
        yield f"{text(loop.finals)}, {text(loop.stacks)} = {self._bind(loop.scan)}({name}, {arguments})"

    def source(self, expression: Expression) -> str:
        """Return the source of an expression."""
        if isinstance(expression, Variable):
            return expression.name
        if isinstance(expression, Call):
            options = [f"{name}={self.source(value)}" for name, value in expression.options.items()]
            return f"{self._bind(expression.function)}({', '.join([*map(self.source, expression.args), *options])})"
        if isinstance(expression, StaticIndex):
            return self._bind(expression.value)
        if type(expression) is list:
            return f"[{', '.join(map(self.source, expression))}]"
        if type(expression) is tuple:
            return f"({''.join([f'{self.source(part)}, ' for part in expression])})"
        is_literal = type(expression) in _LITERALS or (type(expression) is float and np.isfinite(expression))
        return repr(expression) if is_literal else self._bind(expression)

    def _bind(self, value: Any) -> str:
        """Bind an object to one global name, and return the name."""
        key = value if callable(value) else constant_key(value)
        if key not in self._names:
            name = getattr(getattr(value, "func", value), "__name__", getattr(value, "name", ""))
            is_free = str(name).isidentifier() and name not in self.objects
            self._names[key] = name = name if is_free else f"o{len(self._names)}"
            self.objects[name] = value
        return self._names[key]
