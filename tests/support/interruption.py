"""Simulated signals: raises an exception at a chosen bytecode, as a signal handler does."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

# Names of locks taken in a `with` statement. C code releases it before signals are checked; an exception raised here
# would leave the lock locked, and threads of later tests would wait for it.
_LOCKS = {"_lock", "callbacks_lock", "_counts_lock", "_locks_lock", "_registering"}

# Up to Python 3.12, KW_NAMES stores the names of keyword arguments for the following call, and no signal is handled in between.
# An exception of a trace function there would leave them for the next call, which would misread its arguments and may crash.
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
    """Run a function, and raise KeyboardInterrupt at one of its bytecodes.

    Parameters
    ----------
    at : int or None
        Number of the step, from 1; with None steps are only counted.
    within : callable
        Whether steps of a code object count; by default all do.

    Attributes
    ----------
    steps : int
        Number of steps.
    """

    def __init__(self, at: int | None, within: Callable[[CodeType], bool] = lambda code: True) -> None:
        self.at, self.within, self.steps = at, within, 0

    def __call__(self, run: Callable[[], Any]) -> bool:
        """Run; return whether the interruption occurred."""
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 checks this when tracing begins
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
