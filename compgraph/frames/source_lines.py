"""The user's source line: of nodes, of warnings, and in tracebacks.

A node stores the code object and the instruction that made it. File, line and text are looked up when needed.

NumPy's C code attributes a warning to the innermost Python frame, which may be a file of this package. A function of SciPy that
warns at the line of its caller (``stacklevel=2``) may have been called by this package, or by the code that replaces its own.
`warnings` passes each warning that its filters accept to `_showwarnmsg`. The replacement here issues such warnings again, on the
user's line, with the filters and the registry of the user's module.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import warnings
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

# Internal code: compgraph, autodiff, NumPy, and Python's modules that call functions on behalf of others.
_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(__file__))
_AUTODIFF = os.path.join(os.path.dirname(_PACKAGE_FOLDER), "autodiff")
_INTERNAL_FOLDERS = tuple(folder + os.sep for folder in (_PACKAGE_FOLDER, _AUTODIFF, os.path.dirname(np.__file__)))
_SWEEPS = frozenset({os.path.join(_AUTODIFF, "reverse", name) for name in ("replay.py", "sweep.py")})
_CALLING_FILES = frozenset({functools.__file__, contextlib.__file__})


class _InternalFiles(dict[str, bool | None]):
    """Whether a file is internal to the packages, NumPy or Python's calling helpers; None if only some of its functions are."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = is_internal_file = filename.startswith(_INTERNAL_FOLDERS) or filename in _CALLING_FILES
        return is_internal_file


internal = _InternalFiles()


class _WrappingFiles(dict[str, bool]):
    """Whether a file is internal but not of `autodiff`, so that its caller's line is the user's.

    Nodes recorded by derivative rules of `autodiff` get their lines from `set_lines_of_rules`.
    """

    def __missing__(self, filename: str) -> bool:
        self[filename] = is_wrapping_file = bool(internal[filename]) and not filename.startswith(_INTERNAL_FOLDERS[1])
        return is_wrapping_file


may_wrap = _WrappingFiles()


frame_up = sys._getframe  # frame_up(n) is the frame n calls up from the caller; no other module uses sys._getframe


def is_internal(filename: str) -> bool:
    """Whether a file belongs to `compgraph`, `autodiff`, NumPy, `functools` or `contextlib`."""
    return bool(internal[filename])


def is_in_library(filename: str, name: str) -> bool:
    """Whether a file belongs to the imported package `name`; the folder of a user's file may have the same name."""
    library_file = getattr(sys.modules.get(name), "__file__", None)
    return library_file is not None and filename.startswith(os.path.dirname(library_file) + os.sep)


def is_in_packages(filename: str) -> bool:
    """Whether a file belongs to `compgraph` or `autodiff`."""
    return filename.startswith(_INTERNAL_FOLDERS[:2])


# Code in this folder replaces functions of other libraries, so it counts as user code.
_REPLACEMENTS_FOLDER = os.path.join(_PACKAGE_FOLDER, "interception", "")
_replacing_codes: dict[int, CodeType] = {}  # by identity


class _PackageFiles(dict[str, bool]):
    """Whether a file belongs to the packages and does not replace functions of other libraries; cached per file."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = is_package_file = is_in_packages(filename) and not filename.startswith(_REPLACEMENTS_FOLDER)
        return is_package_file


_package_files = _PackageFiles()


def is_package_code(filename: str) -> bool:
    """Whether a file belongs to the packages and does not replace functions of other libraries."""
    return _package_files[filename]


class NoFrame:
    """Replaces a frame while lines are not recorded."""

    f_code = None
    f_lasti = 0


def _no_frame(depth: int, ends: frozenset[str] = frozenset()) -> Any:
    """Replaces ``sys._getframe`` while lines are not recorded."""
    return NoFrame


def walk_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def add_internal_code(code: CodeType) -> None:
    """Treat code that replaces that of a library's function as internal: its caller's line is the user's."""
    _replacing_codes[id(code)] = code
    internal[code.co_filename] = internal[code.co_filename] or None


def user_frame(depth: int, ends: frozenset[str] = frozenset()) -> Any:
    """The innermost frame of user code, starting `depth` calls up; `NoFrame` without one up to the files `ends`."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:  # inlined `walk_frames`: this runs for every operation
        filename = frame.f_code.co_filename
        kind = internal[filename]
        if kind is False or (kind is None and id(frame.f_code) not in _replacing_codes):
            return frame
        if filename in ends:
            break
        frame = frame.f_back
    return NoFrame


def format_line(code: CodeType | str | None, instruction: int) -> str | None:
    """File, line, function and text of an instruction; None if unknown. In unpickled graphs `code` is that text."""
    if code is None or isinstance(code, str):
        return code
    line = line_number(code, instruction)
    text = linecache.getline(code.co_filename, line).strip()
    location = f'File "{code.co_filename}", line {line}, in {code.co_name}'
    return f"{location}: {text}" if text else location


def line_number(code: CodeType, instruction: int) -> int:
    """The line number of an instruction."""
    positions = list(code.co_positions())
    line = positions[instruction // 2][0] if instruction // 2 < len(positions) else None
    return code.co_firstlineno if line is None else line


def format_frame(frame: FrameType) -> str | None:
    """File, line, function and text of a frame's current instruction."""
    return format_line(frame.f_code, frame.f_lasti)


def set_line(node: Any) -> None:
    """Store the user's current line in a node; none while a sweep of `autodiff` calls rules, see `set_lines_of_rules`."""
    frame = _user_frame(3, _SWEEPS)
    node.code, node.instruction = frame.f_code, frame.f_lasti


def set_lines_since(result: Any, sequence_number: int, code: Any, instruction: int, scope: tuple[str, ...] = ()) -> None:
    """Assign the line and scope of a call to all nodes behind its result that are younger than `sequence_number`."""
    queue = list(result) if isinstance(result, (tuple, list)) else [result]
    visited = set(map(id, queue))
    for node in queue:
        if getattr(node, "sequence_number", 0) > sequence_number:
            node.code, node.instruction = code, instruction
            if scope:
                node._scope = scope
            parents = [node.args[position] for position in node.parent_argnums]
            queue.extend([parent for parent in parents if id(parent) not in visited])
            visited.update(map(id, parents))


def set_lines_of_rules(results: Iterable[Any], rule_calls: list[tuple[int, Any]]) -> None:
    """Assign to each node of a recorded derivative the line of the node whose rule recorded it.

    `rule_calls` are pairs of a sequence number and the node whose rule was called then, oldest first. Nodes up to the next pair
    belong to that rule. Nodes older than the first pair keep their line.
    """
    sequence_numbers = [sequence_number for sequence_number, _ in rule_calls]
    first = sequence_numbers[0]
    queue = [node for node in results if getattr(node, "sequence_number", 0) > first]
    visited = set(queue)
    for node in queue:
        source_node = rule_calls[bisect(sequence_numbers, node.sequence_number) - 1][1]
        node.code, node.instruction = source_node.code, source_node.instruction
        scope = getattr(source_node, "_scope", None)
        if scope:
            node._scope = scope
        args = node.args
        for position in node.parent_argnums:
            operand = args[position]
            if operand.sequence_number > first and operand not in visited:
                visited.add(operand)
                queue.append(operand)
        for write in node.memory.log if node.memory else ():
            for value in write.args[: len(write.parent_argnums)]:
                if value.sequence_number > first and value not in visited:
                    visited.add(value)
                    queue.append(value)


class SourceLine(NamedTuple):
    """A line of code at which a warning can be issued, also after its frame has ended."""

    filename: str
    line: int
    namespace: dict[str, Any]

    @classmethod
    def of(cls, frame: FrameType) -> SourceLine:
        """The current line of a frame."""
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)


def user_source_line() -> SourceLine:
    """The innermost line of user code; without any, as in a thread of the packages, the outermost line."""
    for frame in walk_frames(sys._getframe(1)):
        if not _runs_for_user(frame):
            break
    return SourceLine.of(frame)


def _runs_for_user(frame: FrameType) -> bool:
    """Whether a frame runs internal code, or code that replaces a library function, on behalf of the user."""
    filename = frame.f_code.co_filename
    return bool(internal[filename]) or _is_own_code(filename) or id(frame.f_code) in _replacing_codes


def warn_at(source_line: SourceLine, message: str | Warning, category: type[Warning]) -> None:
    """Issue a warning at a line, with the filters for its module, once per line and text."""
    registry = source_line.namespace.setdefault("__warningregistry__", {})
    module = source_line.namespace.get("__name__", "<unknown>")
    warnings.warn_explicit(message, category, source_line.filename, source_line.line, module, registry)


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line of user code, once per line and text."""
    warn_at(user_source_line(), message, category)


def user_line() -> tuple[Any, int]:
    """The user's current code object and instruction; the code is None while lines are not recorded."""
    frame = _user_frame(2)
    return frame.f_code, frame.f_lasti


# Two ways to find the user's frame: `caller` counts calls, `_user_frame` checks the files of frames.
caller: Callable[[int], Any] = sys._getframe
_user_frame: Callable[..., Any] = user_frame


def record_lines(on: bool = True) -> None:
    """Enable or disable recording of source lines in nodes, for the whole process.

    Parameters
    ----------
    on : bool
        Whether nodes store the line that made them. This is the default, and costs a few percent of the smallest operations.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.record_lines(False)
    >>> (cg.variable(2.0) * 3).line
    >>> cg.record_lines()
    """
    global caller, _user_frame
    caller, _user_frame = (sys._getframe, user_frame) if on else (_no_frame, _no_frame)


def _at_users_line(show: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(show)
    def show_warning(message: Any) -> None:
        location = (message.filename, message.lineno)
        frames = walk_frames(sys._getframe(1))
        source = next((frame for frame in frames if (frame.f_code.co_filename, frame.f_lineno) == location), None)
        is_own = source is not None and (_is_own_code(message.filename) or id(source.f_code) in _replacing_codes)
        user = next((frame for frame in frames if not _runs_for_user(frame)), None) if is_own else None
        if source is None or user is None or issubclass(message.category, DeprecationWarning):
            show(message)
        else:
            source.f_globals["__warningregistry__"] = None  # Python shows every warning then; the user's registry filters
            warn_at(SourceLine.of(user), message.message, message.category)

    return show_warning


def _is_own_code(filename: str) -> bool:
    return filename.startswith("<executor ") or is_package_code(filename)


def show_at_users_line() -> None:
    """Show warnings from the packages, except deprecations, on the user's line."""
    show: Any = warnings._showwarnmsg  # type: ignore[attr-defined]
    if getattr(show, "__wrapped__", None) is None:
        warnings._showwarnmsg = _at_users_line(show)  # type: ignore[attr-defined]


def is_called_by_packages(frame: FrameType) -> bool:
    """Whether a caller of a frame belongs to the packages, so that the frame is not that of the outermost call."""
    return any(is_in_packages(caller.f_code.co_filename) for caller in walk_frames(frame.f_back))


def shorten_traceback(error: BaseException) -> None:
    """Remove the entries of the packages from the traceback of an error, except the one in which it was raised.

    Examples
    --------
    >>> import traceback
    >>> import compgraph as cg
    >>> def f():
    ...     cg.variable([1.0, 2.0]).reshape(3)
    >>> try:
    ...     f()
    ... except ValueError as error:
    ...     shorten_traceback(error)
    ...     print([entry.name for entry in traceback.extract_tb(error.__traceback__)][:2])
    ['<module>', 'f']
    """
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    short: TracebackType | None = None
    for entry in reversed(entries):
        if short is None or not is_in_packages(entry.tb_frame.f_code.co_filename):
            short = TracebackType(short, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = short
