"""Graphs that run again with other values: recorded once more, made smaller, given buffers, and written as one function."""

from .cse import simplified
from .executor import Executor
from .retrace import GuardError

__all__ = ["Executor", "GuardError", "simplified"]
