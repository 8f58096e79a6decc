"""The current instruction of a frame: whether it assigns, operates, delegates or raises; and CPython's type flags.

NumPy and C code convert values by ``__float__`` alone, so nothing else distinguishes ``plain[0] = x`` from ``float(x)``.
``co_code`` shows specialized and instrumented instructions in their ordinary form.
"""

from __future__ import annotations

import dis
from types import CodeType, FrameType

_STORE_OPCODES = frozenset(code for name, code in dis.opmap.items() if name.startswith("STORE_"))
_RAISE_OPCODES = frozenset(code for name, code in dis.opmap.items() if name.startswith(("RAISE_", "RERAISE")))
_BINARY_OP, _SEND = dis.opmap["BINARY_OP"], dis.opmap["SEND"]
_CACHE = 0  # the opcode of the cache entries that follow an instruction


def _instruction(frame: FrameType) -> tuple[int, int]:
    """The opcode and the argument of a frame's current instruction."""
    code, offset = frame.f_code.co_code, frame.f_lasti
    while code[offset] == _CACHE and offset:
        offset -= 2
    return code[offset], code[offset + 1]


def is_assigning(frame: FrameType) -> bool:
    """Whether a frame is at an assignment to an element, a slice or an attribute: ``a[0] = x``, ``a[:2] = x``, ``a.b = x``.

    Examples
    --------
    >>> import sys
    >>> class Probe:
    ...     def __setitem__(self, index, value):
    ...         print(is_assigning(sys._getframe(1)))
    >>> probe = Probe()
    >>> probe[0] = probe[1:2] = 1.0
    True
    True
    >>> probe.__setitem__(0, 1.0)
    False
    """
    return _instruction(frame)[0] in _STORE_OPCODES


def is_at_operator(frame: FrameType) -> bool:
    """Whether a frame is at a binary operator: true for ``"%.2f" % x``, false in a loop over ``map(math.sin, x)``.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(is_at_operator(sys._getframe(1)))
    ...         return 1.0
    >>> shown = "%.1f" % Number()
    True
    >>> for number in map(float, [Number()]):
    ...     pass
    False
    """
    return _instruction(frame)[0] == _BINARY_OP


_SWAP = dis.opmap["SWAP"]
_SUBSCRIPT_STORES = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)


def augments_element(frame: FrameType, code: CodeType | None, instruction: int) -> bool:
    """Whether a frame is at the operator of ``a[i] += x``, for the element that ``code`` read at `instruction`.

    Parameters
    ----------
    frame : frame
        The frame that runs the operator.
    code : code or None
        The code that read the element.
    instruction : int
        The offset of the reading instruction, as in ``frame.f_lasti``.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __iadd__(self, other):
    ...         print(augments_element(sys._getframe(1), *read))
    ...         return self
    >>> class Values:
    ...     def __getitem__(self, index):
    ...         global read
    ...         read = sys._getframe(1).f_code, sys._getframe(1).f_lasti
    ...         return Number()
    ...     def __setitem__(self, index, value): ...
    >>> values = Values()
    >>> values[0] += 1
    True
    >>> element = values[0]
    >>> element += 1
    False
    """
    if frame.f_code is not code or code is None or _instruction(frame)[0] != _BINARY_OP:
        return False
    for offset in range(frame.f_lasti + 2, len(code.co_code), 2):
        if code.co_code[offset] not in (_CACHE, _SWAP):
            break
    else:
        return False
    positions = list(code.co_positions())
    return code.co_code[offset] in _SUBSCRIPT_STORES and positions[offset // 2] == positions[instruction // 2] != (None,) * 4


_REMAINDERS = (6, 19)  # the arguments of BINARY_OP for ``%`` and ``%=``


def is_formatting(frame: FrameType) -> bool:
    """Whether a frame is at an operator ``%``, which formats a number if its left operand is a string.

    Examples
    --------
    >>> import sys
    >>> class Number:
    ...     def __float__(self):
    ...         print(is_formatting(sys._getframe(1)))
    ...         return 1.0
    >>> shown = "%.1f" % Number()
    True
    """
    operation, argument = _instruction(frame)
    return operation == _BINARY_OP and argument in _REMAINDERS


def is_delegating(frame: FrameType) -> bool:
    """Whether a generator's frame is at ``yield from``, so that another generator runs for it.

    Examples
    --------
    >>> import sys
    >>> def inner():
    ...     yield is_delegating(sys._getframe(1))
    >>> def outer():
    ...     yield from inner()
    >>> next(outer()), next(inner())
    (True, False)
    """
    return _instruction(frame)[0] == _SEND


def is_raised_by(code: CodeType, instruction: int) -> bool:
    """Whether the instruction through which an error passed is a ``raise`` statement, not a call.

    Examples
    --------
    >>> try:
    ...     raise ValueError
    ... except ValueError as error:
    ...     trace = error.__traceback__
    ...     print(is_raised_by(trace.tb_frame.f_code, trace.tb_lasti))
    True
    """
    return code.co_code[instruction] in _RAISE_OPCODES


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_heap_type(cls: type) -> bool:
    """Whether a class was created at run time, as all classes defined in Python are.

    Examples
    --------
    >>> class Model: ...
    >>> is_heap_type(Model), is_heap_type(dict)
    (True, False)
    """
    return bool(cls.__flags__ & _HEAP_TYPE)
