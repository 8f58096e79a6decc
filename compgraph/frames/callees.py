"""Which callable the instruction at work in a frame calls, and with what: read off positions in the source.

Instructions differ from one Python to the next; positions (the lines and columns of the source that an instruction stands for)
differ less, so they are used where they suffice. The source itself is not needed. An answer is found once for each instruction;
where it cannot be found, it is `unknown`.
"""

from __future__ import annotations

import dis
import functools
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


class _Unknown:
    """What stands for a callable that cannot be told."""

    def __repr__(self) -> str:
        return "unknown"


unknown: Final = _Unknown()


_callees = Remembered()


class _Path(NamedTuple):
    """How a callable was reached: the opcode that loaded a name, the name, and the attributes then taken: ``np.linalg.norm``."""

    opcode: int
    name: str
    attributes: tuple[str, ...]


def callee(frame: FrameType) -> Any:
    """The callable that a frame is calling, where that is written as a name or as attributes of one.

    The answer is what the name stands for *now*. Where the call's own arguments assign to the name (``f(f := g)``), it is
    `unknown`. A function that is called for an argument and rebinds a global name or an attribute is not noticed.

    Parameters
    ----------
    frame : frame
        A frame at work: usually the one that called a special method such as ``__float__``, by way of code in C.

    Returns
    -------
    callable or None or unknown
        None where the frame is at no call: an operator, a subscript, a loop. `unknown` where it is at a call, but not of a name:
        of a result, an element, what a property gives; and in code without positions (``-X no_debug_ranges``).

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
    # If a Python function were called, its frame would be running, not this one: the name must have been rebound.
    is_python = type(found.__func__ if type(found) is MethodType else found) is FunctionType
    return unknown if is_python or not callable(found) else found


def _called(frame: FrameType) -> Any:
    """What the name that a frame is calling stands for now; None where it is at no call, `unknown` if that cannot be told."""
    code, at = frame.f_code, frame.f_lasti
    known = _callees.get((id(code), at))
    path = known[1] if known is not None else _callees.put(code, at, _path(code, at))
    return _reading(frame, path) if type(path) is _Path else path


def _reading(frame: FrameType, path: _Path) -> Any:
    """The present value of a path, or `unknown`."""
    found = _named(frame, path)
    for name in path.attributes:
        found = _attribute(found, name)
    return found


def method_called(frame: FrameType) -> str | None:
    """The name of the attribute that a frame is calling, whatever it is an attribute of; None where it calls none.

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
    """Which instruction before a call leaves the callable on the stack: the last whose span begins where the call's does.

    The instructions of a call stand together: first those of the callable, then those of the arguments.
    """
    call, following = span_of(instructions[at]), None
    for k in range(at - 1, -1, -1):
        i = instructions[k]
        span = span_of(i)
        if span is None or call is None:
            return None
        if i.opname == "KW_NAMES" or (i.opname == "LOAD_CONST" and span[0] == call[0]):
            continue  # it loads the names of keywords, and may have the span of the method that is called with them
        if not (call[0] <= span[0] and span[1] <= call[1]):  # before the call's first instruction: none was found
            is_merged = following is not None and following.opname == "PUSH_NULL" and _loads_second(i)
            return k if is_merged else None
        if span[0] == call[0] and span[1] < call[1] and i.opname != "PUSH_NULL":
            # An attribute written on a line of its own has a span that begins there, so the next one may belong to the callable.
            return None if following is not None and following.opcode in ATTRIBUTES else k
        following = i
    return None


def _reached(instructions: Sequence[dis.Instruction], k: int) -> _Path | None:
    """The path that ends with instruction `k`; None if that is no chain of attributes of a name."""
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
    """Whether an instruction stands for two on local variables, the second of them a load (from Python 3.13 on)."""
    return isinstance(i.argval, tuple) and len(i.argval) == 2 and i.opname.endswith(("_LOAD_FAST", "_LOAD_FAST_BORROW"))


def _stored(i: dis.Instruction) -> tuple[Any, ...]:
    """Names that an instruction may assign to."""
    if "STORE_" not in i.opname and "DELETE_" not in i.opname:
        return ()
    return i.argval if isinstance(i.argval, tuple) else (i.argval,)


def _named(frame: FrameType, path: _Path) -> Any:
    """What a name stands for now, looked up as its instruction does: among locals, globals, builtins."""
    name = path.name
    is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
    if path.opcode in _VARIABLES:  # a local variable; those of a comprehension in a class or module are not in f_locals
        return frame.f_locals.get(name, unknown) if is_function else unknown
    if path.opcode != _GLOBAL:
        found = frame.f_locals.get(name, unknown)
        if found is not unknown:
            return found
    return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins.get(name, unknown)


# Kinds of attributes of a class whose binding to an instance runs nobody's code.
_SAFE = (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GetSetDescriptorType, MemberDescriptorType,
    MethodDescriptorType, WrapperDescriptorType, classmethod, staticmethod, type(functools.lru_cache(abs)),
)  # fmt: skip


def _attribute(owner: Any, name: str) -> Any:
    """An attribute, if reading it again runs no Python code (no property, no ``__getattr__``); else `unknown`."""
    kind = type(owner)
    if kind is ModuleType:
        return owner.__dict__.get(name, unknown)
    if issubclass(kind, ModuleType) and kind.__module__.startswith("compgraph."):
        return getattr(owner, name, unknown)  # a module of ours in place of NumPy
    if owner is unknown or type(kind.__getattribute__) is not WrapperDescriptorType:
        return unknown
    static = inspect.getattr_static(owner, name, unknown)
    if static is unknown or (hasattr(type(static), "__get__") and not isinstance(static, _SAFE)):
        return unknown
    return getattr(owner, name, unknown)
