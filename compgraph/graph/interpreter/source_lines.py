"""Where in the user's code a node was made.

A node keeps the code object and the instruction that was at work, which costs little; file, line and text are looked up
when somebody asks.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

# What lies here is not the user's: the two packages and NumPy; nor are Python's own modules that call functions.
_OURS = Path(__file__).parents[2]
_HOMES = tuple(str(home) + os.sep for home in (_OURS, _OURS.with_name("autodiff"), Path(np.__file__).parent))
_CALLERS = {"functools.py", "contextlib.py"}


class _Internal(dict[str, bool]):
    """Whether a file belongs to the packages or to NumPy; looked up for every node, so found out once."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = filename.startswith(_HOMES) or os.path.basename(filename) in _CALLERS
        return answer


internal = _Internal()


class _Wrapping(dict[str, bool]):
    """Whether a file has functions that users call and that call NumPy for them; what rules record gets its line later."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = internal[filename] and not filename.startswith(_HOMES[1])
        return answer


wrapping = _Wrapping()


frame_up = sys._getframe  # the frame so many calls up from who asks, which is looked up only here


def is_internal(filename: str) -> bool:
    """Whether a file belongs to the packages or to NumPy."""
    return internal[filename]


# What stands in for functions of others there: who asks a node in it asks for a user.
_STANDING_IN = str(_OURS / "interception") + os.sep


def is_ours(filename: str) -> bool:
    """Whether a file belongs to the packages themselves, and does not stand in for functions of others."""
    return filename.startswith(_HOMES[:2]) and not filename.startswith(_STANDING_IN)


class Nowhere:
    """What stands for a frame while lines are not recorded."""

    f_code = None
    f_lasti = 0


def nowhere(depth: int) -> Any:
    """As ``sys._getframe``, while lines are not recorded."""
    return Nowhere


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def users_frame(depth: int) -> Any:
    """The innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:  # as `outwards`, but for every operation
        if not internal[frame.f_code.co_filename]:
            return frame
        frame = frame.f_back
    return Nowhere


def described(code: CodeType | str | None, instruction: int) -> str | None:
    """File, line, function and text of an instruction; None if it is not known. Loaded graphs have the text itself."""
    if code is None or isinstance(code, str):
        return code
    positions = list(code.co_positions())
    line = positions[instruction // 2][0] if instruction // 2 < len(positions) else None
    line = code.co_firstlineno if line is None else line
    text = linecache.getline(code.co_filename, line).strip()
    place = f'File "{code.co_filename}", line {line}, in {code.co_name}'
    return f"{place}: {text}" if text else place


def line_of(frame: FrameType) -> str | None:
    """File, line, function and text of what a frame does."""
    return described(frame.f_code, frame.f_lasti)


def made_at(node: Any) -> None:
    """Let a node know the user's line at work."""
    frame = _users_frame(3)
    node.code, node.instruction = frame.f_code, frame.f_lasti


def made_since(result: Any, tick: int, code: Any, instruction: int, scope: tuple[str, ...] = ()) -> None:
    """Let all that went into a result since a tick know one line, and scope: that of the call which made them step by step."""
    queue = list(result) if isinstance(result, (tuple, list)) else [result]
    seen = set(map(id, queue))
    for node in queue:
        if getattr(node, "tick", 0) > tick:
            node.code, node.instruction = code, instruction
            if scope:
                node._scope = scope
            steps = [node.args[position] for position in node.edges]
            queue.extend([step for step in steps if id(step) not in seen])
            seen.update(map(id, steps))


def made_for(results: Iterable[Any], reached: list[tuple[int, Any]]) -> None:
    """Let all that went into results know the line of the node they were made for: the last that was reached before.

    `reached` holds ticks and nodes, in their order; what is older than the first keeps its line.
    """
    ticks = [tick for tick, _ in reached]
    first = ticks[0]
    queue = [node for node in results if getattr(node, "tick", 0) > first]
    seen = set(queue)
    for node in queue:
        at = reached[bisect(ticks, node.tick) - 1][1]
        node.code, node.instruction = at.code, at.instruction
        scope = getattr(at, "_scope", None)
        if scope:
            node._scope = scope
        args = node.args
        for position in node.edges:
            operand = args[position]
            if operand.tick > first and operand not in seen:
                seen.add(operand)
                queue.append(operand)


def warn_at(frame: Any, message: str) -> None:
    """Warn of something on the line at work in a frame: as Python does, once for each line and text unless told otherwise."""
    if frame.f_code is not None:
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__", "<unknown>")
        warnings.warn_explicit(message, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)


def users_line() -> tuple[Any, int]:
    """The user's code and instruction at work; no code while lines are not recorded."""
    frame = _users_frame(2)
    return frame.f_code, frame.f_lasti


# Where the user's code is found: in the commonest case, two calls up; else by a look at the files.
caller: Callable[[int], Any] = sys._getframe
_users_frame: Callable[[int], Any] = users_frame


def record_lines(on: bool = True) -> None:
    """Choose whether nodes remember the line of code that made them, for the whole process.

    Parameters
    ----------
    on : bool
        Whether they do. It is on from the start and costs a few percent of the smallest operations.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.record_lines(False)
    >>> (cg.variable(2.0) * 3).line
    >>> cg.record_lines()
    """
    global caller, _users_frame
    caller, _users_frame = (sys._getframe, users_frame) if on else (nowhere, nowhere)
