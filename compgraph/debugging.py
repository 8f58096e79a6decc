"""``with debug():`` raises where the first NaN or infinity appears, and where an array changed without a record in the graph."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from .array_types import Array
from .context import checks, full_tracebacks
from .interpreters import ObservedInterpreter
from .ops import opname_of
from .storage import memory_of, root_of
from .tracing import Strict
from .values import MultiOutput, Value, VariableNode
from .view import GraphPicture, visualize_at


class NonFiniteError(ArithmeticError):
    """A NaN or an infinity appeared under `debug`.

    Attributes
    ----------
    node : Node, MultiOutput or None
        The operation in which it appeared; None in forward mode, which keeps no graph, and in a pickled copy.
    """

    __module__ = "compgraph"  # the public module, for tracebacks

    def __init__(self, message: str, node: Value | MultiOutput | None) -> None:
        super().__init__(message)
        self.node = node

    def __reduce__(self) -> Any:
        return type(self), (*self.args, None)  # without the node, which may be traced

    def picture(self) -> GraphPicture:
        """Draw the graph up to the operation, which is marked.

        Returns
        -------
        GraphPicture

        Raises
        ------
        ValueError
            If the error has no node.
        """
        node = self.node
        if node is None:
            raise ValueError(
                "there is no graph to draw: forward mode and pickled errors keep none. Compute in reverse mode, and draw the "
                "error where it is raised"
            )
        return visualize_at(node if isinstance(node, Value) else node.operands[0], mark=node)


class Debug(Strict):
    """A context in which every operation and every derivative is checked. Created by `debug`."""

    __slots__ = ("_checks", "_full_tracebacks")

    def __init__(self, tracebacks: str = "short") -> None:
        if tracebacks not in ("short", "full"):
            raise ValueError(f'debug: tracebacks must be "short" or "full", not {tracebacks!r}')
        super().__init__()
        self._checks, self._full_tracebacks = Checks(), tracebacks == "full"

    def __enter__(self) -> Debug:
        self._enter_tracing({checks: self._checks, full_tracebacks: self._full_tracebacks})
        return self


class Checks:
    """The checks of `debug`. They are not the context itself, which must not be kept alive by its own settings."""

    __slots__ = ("_checksums",)

    def __init__(self) -> None:
        self._checksums: dict[int, int] = {}

    def wrap(self, interpreter: Any) -> ObservedInterpreter:
        """An interpreter whose results are checked."""
        return ObservedInterpreter(interpreter, self.check_result)

    def check_result(self, result: object) -> None:
        """Check the result of an operation, and store its checksum."""
        for node in result if isinstance(result, (tuple, list)) else (result,):
            if node is None:
                continue
            operation = node.args[0] if node.args and isinstance(node.args[0], MultiOutput) else node
            problem = _describe_nonfinite(node.raw_value)
            if problem:
                raise NonFiniteError(f"the result of {operation.opname} is {problem}{_describe_operands(operation)}", operation)
            self._checksums[node.sequence_number] = _checksum(node.raw_value)

    def check_tangent(self, function: Any, args: tuple[Any, ...], out: object, tangent: object) -> None:
        """Check the result of an operation in forward mode, and its tangent."""
        name = opname_of(function)
        for part, label in ((out, f"the result of {name}"), (tangent, f"the tangent of {name}")):
            for value in part if isinstance(part, (tuple, list)) else (part,):
                problem = "" if value is None else _describe_nonfinite(value.raw_value if isinstance(value, Value) else value)
                if problem:
                    lines = [
                        f"operand {i}: {_describe_operand(a)}" for i, a in enumerate(args) if isinstance(a, (Value, np.ndarray))
                    ]
                    raise NonFiniteError("\n".join([f"{label} is {problem}", *lines]), None)

    def check_cotangent(self, node: Value | MultiOutput, position: int, contribution: Any) -> None:
        """Check the contribution of a rule to the cotangent of an operand."""
        problem = _describe_nonfinite(contribution.raw_value if isinstance(contribution, Value) else contribution)
        if problem:
            message = f"the derivative of {node.opname} with respect to operand {position} is {problem}{_describe_operands(node)}"
            raise NonFiniteError(message, node)

    def check_unchanged(self, node: Value | MultiOutput) -> None:
        """Raise if the result of an operation was changed by a write that the graph did not record."""
        checksum = self._checksums.get(node.sequence_number)
        may_be_written = isinstance(node, MultiOutput) or isinstance(root_of(node), VariableNode) or memory_of(node)
        if checksum is not None and not may_be_written and _checksum(node.raw_value) != checksum:
            raise ValueError(
                f"the result of {node.opname} was changed through a plain array that shares its memory. Write into the node, or "
                f"copy the array first{_describe_operands(node)}"
            )


def debug(*, tracebacks: str = "short") -> Debug:
    """Raise at the first NaN or infinity, forward or backward, and where a value leaves its graph; a context manager.

    Inside, each operation is checked when it is recorded, and each derivative when it is computed. Results have checksums: a
    gradient raises if a result was changed through its memory. New values are tracers, as within `strict`: code that reads their
    values without recording raises.

    Parameters
    ----------
    tracebacks : str
        "short" removes the frames of this package, except the innermost one, from the tracebacks of errors that leave an
        operator (`autodiff.grad`, `autodiff.vmap` ...). "full" keeps all frames.

    Returns
    -------
    Debug
        For use as ``with cg.debug():``, local to the current thread or asyncio task.

    Raises
    ------
    NonFiniteError
        Inside, from the operation or the gradient at fault. It names the operation, the values of its operands and the
        line of code; ``error.picture()`` draws the graph with the operation marked.
    LeakError
        Inside, where code reads the values of a node without recording.
    ValueError
        From a gradient, if an array was changed without a record in the graph; and for other values of `tracebacks`.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> x = cg.variable([1.0, 0.0], "x")
    >>> with np.errstate(divide="ignore"), cg.debug():
    ...     np.sum(np.log(x))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compgraph.NonFiniteError: the result of log is infinite in 1 of 2 elements
    operand 0: var 'x' (shape (2,)): [1. 0.]
    File ...
    """
    return Debug(tracebacks)


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def _describe_nonfinite(value: Array) -> str:
    """Describe the infinite or nan elements of a value; empty if all are finite."""
    values = np.asarray(value)
    if values.dtype.kind not in "fc" or np.all(np.isfinite(values)):
        return ""
    nans, nonfinite = int(np.sum(np.isnan(values))), int(np.sum(~np.isfinite(values)))
    return f"{'NaN' if nans else 'infinite'} in {nans or nonfinite} of {values.size} elements"


def _describe_operands(node: Any) -> str:
    """Describe the operands of an operation, and the line of code that called it, for the end of a message."""
    operands = [a for a in node.args if isinstance(a, (Value, np.ndarray, float, int, complex))]
    lines = [f"operand {i}: {_describe_operand(a)}" for i, a in enumerate(operands)]
    return "\n" + "\n".join([*lines, *([node.line] if node.line else [])])


def _describe_operand(operand: Any) -> str:
    value = operand.raw_value if isinstance(operand, Value) else operand
    text = np.array2string(np.asarray(value), threshold=20, edgeitems=3)
    kind = f"{operand.opname or type(operand).kind} {operand._name!r}" if isinstance(operand, Value) else "plain"
    return f"{kind} (shape {np.shape(value)}): {text}"
