"""`NotCompilableError`: why a function, or a call of it, is not compiled."""

from __future__ import annotations


class NotCompilableError(Exception):
    """A call cannot be compiled and runs as NumPy; the message gives the reason.

    Parameters
    ----------
    message : str
        A line of the report.
    is_lasting : bool
        Whether another attempt would also fail. False if another thread may have interfered.
    """

    def __init__(self, message: str, is_lasting: bool = True) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting
