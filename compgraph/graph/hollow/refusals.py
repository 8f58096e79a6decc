"""Raises where code that does not know of the graph takes the numbers of a node, or explains the error that came of it.

A `Refusal`, the element of hollow bodies, raises on the spot. NumPy and SciPy often notice first that a body is no array of
floats, and raise errors of their own ("object arrays are not supported"). `explained` recognises these, and says it in our words.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ..context import layered
from ..interpreter import frame_up, is_raised_by, keep_for_ever, outwards, source_lines
from . import copies
from .messages import NAMES, OBJECT, is_library, message, position_of_user

WORDS = "the numbers of a compgraph node"  # the name of the field in bodies of records, so that NumPy's errors show it
# Three kinds of error message: on arrays of objects, which bodies are; on memory and types, which may have other reasons; and
# Python's "'X' object has no attribute", which looks like the first kind and is none.
_OF_OBJECTS = re.compile(
    rf"{WORDS}|Refusal|\bobjects?\b|Object arrays|dtype\('O'\)|'O'|holds references|of references|has no callable|safely coerced"
    r"|structured|'tuple'|[Vv]oid|'\w+Node'|from \w+Node to"
)
_OF_MEMORY = re.compile(
    r"(?<!destination is )read-only|contiguous|No matching signature|data types? (not|in)|Rational instance|string to"
    r"|element with a sequence\.$|format O|[Uu]nsupported type|array of floats|not a float|input type"
)
_OF_PYTHON = re.compile(r"'(?!Refusal)[\w.]+' objects?\b")


class EscapeError(TypeError):
    """Code that does not know of the graph asked for the numbers of a node; a derivative would have been lost."""

    __module__ = "compgraph"  # as users know it, in a traceback

    place: tuple[Any, int] | None = None  # the user's code and instruction, by which an error that C code raises instead is known


class Refusal:
    """The one element of all hollow bodies. What is asked of it raises an EscapeError, but for casts that `copies` follows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<number of a node>"


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Refusal, *args: Any, **kwargs: Any) -> Any:
        raise refused(frame_up(1))

    method.__name__ = name
    return method


# The special methods that an object is asked for by C code and by NumPy's loops, casts and comparisons.
_SPECIAL = (
    "float int complex index bool hash add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod "
    "pow rpow matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rlshift rshift rrshift lt le gt ge eq ne "
    "round trunc floor ceil format reduce reduce_ex iadd isub imul itruediv ifloordiv imod ipow"
)
NAMESD = "conjugate item tolist is_integer as_integer_ratio"
for _name in _SPECIAL.split():
    setattr(Refusal, f"__{_name}__", _refusing(f"__{_name}__"))
for _name in (*NAMESD.split(), *[name for name, value in vars(np).items() if isinstance(value, np.ufunc)]):
    setattr(Refusal, _name, _refusing(_name))
for _name in ("real", "imag"):
    setattr(Refusal, _name, property(_refusing(_name)))


def _number(self: Refusal) -> Any:
    """A NaN that names the node, where NumPy's own cast asks (see `copies`); else raises."""
    frame = frame_up(1)
    if frame.f_code.co_filename == __file__:
        frame = frame_up(2)
    number = copies.number_for(frame, MINE.get() is not None)
    if number is None:
        raise refused(frame)
    return number


Refusal.__float__ = _number  # type: ignore[attr-defined]
Refusal.__complex__ = lambda self: complex(_number(self))  # type: ignore[attr-defined]
REFUSAL = Refusal()
keep_for_ever(REFUSAL)


def refused(frame: FrameType | None, which: str | None = None, text: str | None = None) -> EscapeError:
    """The error for C code, called by a frame, that asks for a node's number; `which` is the node in words, where it is known.

    `text` replaces the message.

    It is entered into the log of the context, or into all logs if the thread has none of its own.
    """
    frames = list(outwards(frame))
    error = EscapeError(text or message(frames, which))
    if frames:
        users = frames[position_of_user(frames)]
        error.place = users.f_code, users.f_lasti
    mine = MINE.get()
    for log in [reference() for reference in tuple(LOGS)] if mine is None else [mine]:  # a thread has a context of its own
        if log is not None:
            log.append(error)
    return error


def caught(refusals: list[EscapeError]) -> None:
    """Warn, when a context is left, of refusals whose error was caught, after which code went on."""
    place = source_lines.users_frame(2)
    source_lines.warn_at(
        place, f"numbers were refused to code that caught the error; what it gave may lack a derivative: {refusals[0]}"
    )


class Log(list["EscapeError"]):
    """The refusals within one context."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


MINE: ContextVar[Log | None] = layered("refusals", None)
# The logs of all open contexts, in all threads. They are weak, so that one whose closing an interrupt prevented vanishes as well.
LOGS: set[weakref.ref[Log]] = set()


def explained(error: Exception, log: list[EscapeError]) -> EscapeError | None:
    """An EscapeError for an error that came of a hollow body; None if it is one already, or has another cause.

    `log` holds the refusals there were: C code may have put an error of its own in the place of one.
    """
    if isinstance(error, EscapeError):
        return None
    for cause in _causes(error):
        if isinstance(cause, EscapeError):
            return EscapeError(*cause.args)
    trace = _trace_of(error)
    if not trace:
        return None
    frames = [part.tb_frame for part in trace]
    code = frames[0].f_code
    if not is_library(code.co_filename) and is_raised_by(code, trace[0].tb_lasti):  # the user's own
        return None
    places = {(part.tb_frame.f_code, part.tb_lasti) for part in trace}
    for refusal in reversed(log):
        if refusal.place in places:
            return EscapeError(*refusal.args)
    said = _OF_PYTHON.sub("", str(error))
    if _OF_OBJECTS.search(said):
        is_of_body = any(_holds_body(value) for frame in frames for value in frame.f_locals.values())
    else:
        is_of_body = (
            bool(_OF_MEMORY.search(said)) and not source_lines.is_ours(frames[0].f_code.co_filename) and _is_given_body(frames)
        )
    return EscapeError(message(frames)) if is_of_body else None


def _is_given_body(frames: list[FrameType]) -> bool:
    """Whether the user's line names a hollow node, or a library that it calls holds one."""
    position = position_of_user(frames)
    users = frames[position]
    named = set(NAMES.findall(source_lines.line_of(users) or ""))
    given = [value for name, value in users.f_locals.items() if name in named]
    inner = [value for frame in frames[:position] for value in frame.f_locals.values()]
    found = (value for value in (*given, *inner) if value is REFUSAL or issubclass(type(value), np.ndarray))
    return any(value is REFUSAL or is_body(_plain_view(value)) for value in found)


def unused_copy(is_an_error: bool) -> EscapeError | None:
    """The error for a copy of a node that NumPy made, and that was used as an array of numbers; None if there is none."""
    place = copies.unused(is_alone=not LOGS)
    if place is None or is_an_error:
        return None
    where = source_lines.described(*place)
    return EscapeError(
        f"a copy that np.asanyarray made of a node{'' if where is None else f' ({where})'} was used without its graph: the "
        "derivative would be lost. Use cg.asarray; where the plain numbers are meant, give x.value or cg.stop_gradient(x)"
    )


def is_body(array: Any) -> bool:
    """Whether a plain array is the body of a node, or a part or copy of one."""
    if array.dtype is OBJECT or array.dtype == OBJECT:
        return any(element is REFUSAL for element in array.ravel().tolist())
    return WORDS in (array.dtype.names or ())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _trace_of(error: BaseException) -> list[TracebackType]:
    """The traceback of an error, the innermost entry first, up to where it is caught."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found[::-1]


def raised_at(error: BaseException) -> str | None:
    """The innermost line of the user's that an error came through; None if it came through none."""
    frames = [part.tb_frame for part in _trace_of(error)]
    frame = frames[position_of_user(frames)] if frames else None
    return None if frame is None or source_lines.internal[frame.f_code.co_filename] else source_lines.line_of(frame)


def _holds_body(value: Any) -> bool:
    """Whether a value is a node, a part or copy of a body, or the refusal itself."""
    if issubclass(type(value), np.ndarray):  # not isinstance, which raises for a dead weak proxy
        return hasattr(value, "plain") or is_body(value)
    return value is REFUSAL


def _plain_view(array: Any) -> Any:
    """An array as a plain one: of a hollow node this shows the body, not the value."""
    return np.ndarray.view(array, np.ndarray)
