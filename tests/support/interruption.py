"""Simulated signals: raises an exception at a chosen bytecode, as a signal handler does."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

# Names of locks taken in a `with` statement. It is left in C, before signals are checked; an exception raised here would
# leave the lock held for ever, and the threads of later tests wait for it.
_LOCKS = {"_lock", "callbacks_lock", "_counts_lock", "_locks_lock", "_registering"}

# Up to Python 3.12 the names of keyword arguments wait in a register between KW_NAMES and the call. No signal is handled there.
# An exception that a trace function raises there leaves them to the next call, which reads its arguments wrongly and may crash.
_KEYWORDS = dis.opmap.get("KW_NAMES")
_CALLS = {
    dis.opmap[name]: offset
    for name, offset in (("PRECALL", 2), ("CALL", 6 if "PRECALL" in dis.opmap else 2))
    if name in dis.opmap
}


def _is_passing_keywords(frame: Any) -> bool:
    """Whether a frame is at a call whose keyword names have been set."""
    code, at = frame.f_code.co_code, frame.f_lasti
    offset = _CALLS.get(code[at], 0)
    return 0 < offset <= at and code[at - offset] == _KEYWORDS


class Interruption:
    """Runs something, and raises KeyboardInterrupt at one of its steps.

    Parameters
    ----------
    at : int or None
        Which step, from 1 on; with None steps are only counted.
    within : callable
        Whether steps of a function's code count: of all, unless told.

    Attributes
    ----------
    steps : int
        How many there were.
    """

    def __init__(self, at: int | None, within: Callable[[CodeType], bool] = lambda code: True) -> None:
        self.at, self.within, self.steps = at, within, 0

    def __call__(self, run: Callable[[], Any]) -> bool:
        """Whether it came to be interrupted."""
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # by which Python 3.12 knows, when tracing begins, that bytecodes are traced
        sys.settrace(self._called)
        try:
            run()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        if not _LOCKS.isdisjoint(frame.f_code.co_names) or not self.within(frame.f_code):
            return None
        frame.f_trace = self._step  # first: Python 3.13 reports bytecodes only in a frame that has a trace function
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: Any, event: str, argument: Any) -> Any:
        if event in ("opcode", "line") and not _is_passing_keywords(frame):
            self.steps += 1
            if self.steps == self.at:
                raise KeyboardInterrupt
        return self._step
