"""Why a function, or a call of it, is not compiled."""

from __future__ import annotations


class RefusedError(Exception):
    """A call cannot be compiled, and runs as NumPy; the message says what of it, and why.

    Parameters
    ----------
    message : str
        A line of the report.
    is_lasting : bool
        Whether another try would end the same way. It may not where another thread was at work meanwhile.
    """

    def __init__(self, message: str, is_lasting: bool = True) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting
