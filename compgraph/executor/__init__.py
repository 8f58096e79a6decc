"""Graphs that run again with other values: recorded once more, made smaller, given buffers, and written as one function."""

from ..guards import GuardError
from .cse import simplified
from .executor import Executor

__all__ = ["Executor", "GuardError", "simplified"]
