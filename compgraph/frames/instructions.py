"""The effect of the current instruction of a frame, other than a call: it assigns, operates, delegates, or raises.

Specialised and instrumented instructions need no care here: ``co_code`` shows the ordinary ones that they stand for.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FrameType

from .positions import KEPT, at_work

_ASSIGNS = frozenset(code for name, code in dis.opmap.items() if name.startswith("STORE_"))
_RAISES = frozenset(code for name, code in dis.opmap.items() if name.startswith(("RAISE_", "RERAISE")))
_OPERATES = dis.opmap["BINARY_OP"]


def assigns(frame: FrameType) -> bool:
    """Whether a frame is at an assignment to an element, a slice or an attribute: ``a[0] = x``, ``a[:2] = x``, ``a.b = x``.

    Examples
    --------
    >>> import sys
    >>> class Probe:
    ...     def __setitem__(self, index, value):
    ...         print(assigns(sys._getframe(1)))
    >>> probe = Probe()
    >>> probe[0] = probe[1:2] = 1.0
    True
    True
    >>> probe.__setitem__(0, 1.0)
    False
    """
    return frame.f_code.co_code[frame.f_lasti] in _ASSIGNS


def operates(frame: FrameType) -> bool:
    """Whether a frame is at a binary operator: at ``"%.2f" % x`` it is, in a loop over ``map(math.sin, x)`` it is not.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(operates(sys._getframe(1)))
    ...         return 1.0
    >>> shown = "%.1f" % Number()
    True
    >>> for number in map(float, [Number()]):
    ...     pass
    False
    """
    return frame.f_code.co_code[frame.f_lasti] == _OPERATES


_REMAINDERS = (6, 19)  # the arguments of BINARY_OP for ``%`` and ``%=``


def formats(frame: FrameType) -> bool:
    """Whether a frame is at an operator ``%``, which formats a number if its left operand is a string.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(formats(sys._getframe(1)))
    ...         return 1.0
    >>> shown = "%.1f" % Number()
    True
    """
    return operates(frame) and frame.f_code.co_code[frame.f_lasti + 1] in _REMAINDERS


def delegates(frame: FrameType) -> bool:
    """Whether a generator's frame is at ``yield from``, so that another generator runs on its behalf.

    Examples
    --------
    >>> import sys
    >>> def inner():
    ...     yield delegates(sys._getframe(1))
    >>> def outer():
    ...     yield from inner()
    >>> next(outer()), next(inner())
    (True, False)
    """
    instructions, at = at_work(frame.f_code, frame.f_lasti)
    return instructions[at].opname == "SEND"


def catches(frame: FrameType, error: str) -> bool:
    """Whether the current instruction of a frame is inside a ``try`` whose ``except`` clause names a class of errors.

    Examples
    --------
    >>> import sys
    >>> class Probe:
    ...     @property
    ...     def value(self):
    ...         print(catches(sys._getframe(1), "AttributeError"), catches(sys._getframe(1), "KeyError"))
    >>> try:
    ...     Probe().value
    ... except AttributeError:
    ...     pass
    True False
    """
    return frame.f_lasti in _caught(frame.f_code, error)


@functools.lru_cache(KEPT)
def _caught(code: CodeType, error: str) -> frozenset[int]:
    """The instructions of a code object whose errors of a class are caught by an ``except`` clause that names it."""
    inside: set[int] = set()
    instructions = {i.offset: i for i in dis.get_instructions(code)}
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        at = entry.target
        for _ in range(32):  # the clauses of one handler
            i = instructions.get(at)
            if i is None or i.opname in ("RERAISE", "POP_EXCEPT", "WITH_EXCEPT_START"):
                break
            if i.opname.startswith("LOAD_") and i.argval == error:
                inside.update(range(entry.start, entry.end, 2))
                break
            at += 2
    return frozenset(inside)


def is_raised_by(code: CodeType, instruction: int) -> bool:
    """Whether the instruction at which an error passed is itself a ``raise``, and not a call of something that raised.

    Examples
    --------
    >>> try:
    ...     raise ValueError
    ... except ValueError as error:
    ...     trace = error.__traceback__
    ...     print(is_raised_by(trace.tb_frame.f_code, trace.tb_lasti))
    True
    """
    return code.co_code[instruction] in _RAISES
