"""Which callable the instruction at work in a frame calls, and with what: read off positions in the source.

Instructions differ from one Python to the next, so what can be told by positions (which line and column of the source an
instruction stands for; the source itself is not needed) is told by them. Answers are found once for each instruction; where
one cannot be told, that is the answer.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Sequence
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final, NamedTuple

from .positions import Remembered, at_work, span_of

_CALLS = frozenset(code for name, code in dis.opmap.items() if "CALL" in name and "INTRINSIC" not in name)
ATTRIBUTES = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)
_VARIABLES, _GLOBAL = frozenset([*dis.haslocal, *dis.hasfree]), dis.opmap["LOAD_GLOBAL"]
_LOADS = {code for name, code in dis.opmap.items() if name.startswith("LOAD_") and "ATTR" not in name} - ATTRIBUTES
_LOADS &= _VARIABLES.union(dis.hasname)  # of a name, not of a constant
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


class _Unknown:
    """What stands for a callable that cannot be told."""

    def __repr__(self) -> str:
        return "unknown"


unknown: Final = _Unknown()


_callees = Remembered()
_arguments = Remembered()


class _Path(NamedTuple):
    """How the callable of a call was reached: a name, and attributes of what it stands for."""

    opcode: int
    name: str
    attributes: tuple[str, ...]


def callee(frame: FrameType) -> Any:
    """The callable that a frame is calling, where that is written as a name or as attributes of one.

    What is asked for is what the name stands for *now*. Where the call's own arguments assign to the name (``f(f := g)``),
    the answer is `unknown`; a function called for an argument that binds a global name or an attribute anew is not seen.

    Parameters
    ----------
    frame : frame
        A frame at work: usually the one that called a special method such as ``__float__``, by way of code in C.

    Returns
    -------
    callable or None or unknown
        None where the frame is at no call: an operator, a subscript, a loop. `unknown` where it is, but of what cannot be
        told: a call of a result, of an element, of what a property gives; code without positions (``-X no_debug_ranges``).

    Examples
    --------
    >>> import math, sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(callee(sys._getframe(1)))
    ...         return 1.0
    >>> x = Number()
    >>> y = float(x), math.sin(x), "%.1f" % x, [math.sin][0](x)
    <class 'float'>
    <built-in function sin>
    None
    unknown
    """
    found = _called(frame)
    if found is None or found is unknown:
        return found
    # Had it been written in Python, its own frame would be at work: the name must have been bound anew.
    is_python = type(found.__func__ if type(found) is MethodType else found) is FunctionType
    return unknown if is_python or not callable(found) else found


def is_calling(frame: FrameType, function: Any) -> bool:
    """Whether a frame is calling a function of Python's by name, and not code in C that calls the function.

    False too where it cannot be told.
    """
    return _called(frame) is function


def _called(frame: FrameType) -> Any:
    """What the callable of the call that a frame is at stands for now; None where it is at no call, unknown if it is not told."""
    code, at = frame.f_code, frame.f_lasti
    known = _callees.get((id(code), at))
    path = known[1] if known is not None else _callees.put(code, at, _path(code, at))
    if path.__class__ is not _Path:
        return path
    found = _named(frame, path)
    for name in path.attributes:
        found = _attribute(found, name)
    return found


def method_called(frame: FrameType) -> str | None:
    """The name of the attribute that a frame is calling, of whatever it is one; None where it calls none.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(method_called(sys._getframe(1)))
    ...         return 1.0
    >>> _ = [0.0].append(float(Number())), "{:f}".format(0.0), [0.0, 1.0].index(1.0)
    None
    """
    instructions, call = at_work(frame.f_code, frame.f_lasti)
    found = _pushes_callable(instructions, call) if instructions[call].opcode in _CALLS else None
    is_attribute = found is not None and instructions[found].opcode in ATTRIBUTES
    return str(instructions[found].argval) if is_attribute and found is not None else None


def first_argument(frame: FrameType) -> Any:
    """The first argument of the call a frame is at, where that is written as the name of a variable; else `unknown`.

    As in `callee`, the answer is what the name stands for now.
    """
    code, at = frame.f_code, frame.f_lasti
    known = _arguments.get((id(code), at))
    path = known[1] if known is not None else _arguments.put(code, at, _argument_path(code, at))
    return path if path is unknown else _named(frame, path)


def _argument_path(code: CodeType, at: int) -> _Path | _Unknown:
    """The name that is the first argument of the call at an instruction."""
    instructions, call = at_work(code, at)
    found = _pushes_callable(instructions, call) if instructions[call].opcode in _CALLS else None
    if found is None or not _has_positional(code, instructions, call):
        return unknown
    first, *rest = [i for i in instructions[found + 1 : call + 1] if i.opname != "PUSH_NULL"]
    is_two = isinstance(first.argval, tuple) and first.opname.startswith("LOAD_FAST")
    name, span = first.argval[0] if is_two else first.argval, span_of(first)
    if span is None or not isinstance(name, str) or not (is_two or first.opcode in _LOADS):
        return unknown
    # What holds the name's span is an expression of which it is a part; a jump is a choice between arguments.
    holding = [s for i in rest[:-1] if (s := span_of(i)) is not None and s[0] <= span[0] and span[1] <= s[1]]
    whole = span_of(instructions[call])
    if any(s != whole for s in holding) or any(i.opcode in _JUMPS or name in _stored(i) for i in rest):
        return unknown
    return _Path(dis.opmap["LOAD_FAST"] if is_two else first.opcode, name, ())


def _has_positional(code: CodeType, instructions: Sequence[dis.Instruction], call: int) -> bool:
    """Whether a call has an argument without a keyword, and none of unknown number (``*args``)."""
    last = next(i for i in reversed(instructions[:call]) if i.opname != "PRECALL")
    is_named = last.opname == "KW_NAMES" or instructions[call].opname == "CALL_KW"
    names = code.co_consts[last.arg or 0] if is_named else ()
    count = instructions[call].arg
    return instructions[call].opname != "CALL_FUNCTION_EX" and count is not None and count > len(names)


def _path(code: CodeType, at: int) -> _Path | _Unknown | None:
    """The path to the callable of the call at an instruction; None if it is no call."""
    instructions, call = at_work(code, at)
    if instructions[call].opcode not in _CALLS:
        return None
    found = _pushes_callable(instructions, call)
    if found is None:
        return unknown
    path = _reached(instructions, found)
    if path is None or any(path.name in _stored(i) for i in instructions[found + 1 : call]):
        return unknown
    return path


def _pushes_callable(instructions: Sequence[dis.Instruction], at: int) -> int | None:
    """Which instruction before a call leaves the callable on the stack: the last whose expression begins where the call does.

    All instructions of a call's expression stand in one piece, the callable's first, and then those of the arguments.
    """
    call, following = span_of(instructions[at]), None
    for k in range(at - 1, -1, -1):
        i = instructions[k]
        span = span_of(i)
        if span is None or call is None:
            return None
        if i.opname == "KW_NAMES" or (i.opname == "LOAD_CONST" and span[0] == call[0]):
            continue  # the names of keywords, which have the span of a method that is called with them
        if not (call[0] <= span[0] and span[1] <= call[1]):  # out of the expression, and no such instruction
            is_merged = following is not None and following.opname == "PUSH_NULL" and _loads_second(i)
            return k if is_merged else None
        if span[0] == call[0] and span[1] < call[1] and i.opname != "PUSH_NULL":
            # An attribute on a line of its own begins there, so it may still be taken of what this instruction gives.
            return None if following is not None and following.opcode in ATTRIBUTES else k
        following = i
    return None


def _reached(instructions: Sequence[dis.Instruction], k: int) -> _Path | None:
    """The path whose last step is an instruction; None where it is no chain of attributes from a name."""
    attributes: list[str] = []
    while instructions[k].opcode in ATTRIBUTES and not instructions[k].is_jump_target and k:
        attributes.append(instructions[k].argval)
        k -= 1
    i, steps = instructions[k], tuple(reversed(attributes))
    if _loads_second(i):
        return _Path(dis.opmap["LOAD_FAST"], i.argval[1], steps)
    if i.opcode in _LOADS and isinstance(i.argval, str):
        return _Path(i.opcode, i.argval, steps)
    return None


def _loads_second(i: dis.Instruction) -> bool:
    """Whether two instructions on local variables were made one, of which the second is a load (from Python 3.13 on)."""
    return isinstance(i.argval, tuple) and len(i.argval) == 2 and i.opname.endswith(("_LOAD_FAST", "_LOAD_FAST_BORROW"))


def _stored(i: dis.Instruction) -> tuple[Any, ...]:
    """Names that an instruction may assign to."""
    if "STORE_" not in i.opname and "DELETE_" not in i.opname:
        return ()
    return i.argval if isinstance(i.argval, tuple) else (i.argval,)


def _named(frame: FrameType, path: _Path) -> Any:
    """What a name stands for, by the rule of the instruction that looked it up."""
    name = path.name
    is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
    if path.opcode in _VARIABLES:  # a local variable; of a comprehension in a class or module, locals do not tell
        return frame.f_locals.get(name, unknown) if is_function else unknown
    if path.opcode != _GLOBAL:
        found = frame.f_locals.get(name, unknown)
        if found is not unknown:
            return found
    return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins.get(name, unknown)


# Kinds of attributes of a class whose binding to an instance runs nobody's code.
_SAFE = (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GetSetDescriptorType, MemberDescriptorType,
    MethodDescriptorType, WrapperDescriptorType, classmethod, staticmethod,
)  # fmt: skip


def _attribute(owner: Any, name: str) -> Any:
    """An attribute, where reading it once more runs nobody's code: no property, no ``__getattr__``."""
    kind = type(owner)
    if kind is ModuleType:
        return owner.__dict__.get(name, unknown)
    if owner is unknown or type(kind.__getattribute__) is not WrapperDescriptorType:
        return unknown
    static = inspect.getattr_static(owner, name, unknown)
    if static is unknown or (hasattr(type(static), "__get__") and not isinstance(static, _SAFE)):
        return unknown
    return getattr(owner, name, unknown)
