"""When Python's collector of cycles is called, for graphs with writes."""

from __future__ import annotations

import gc


class Collector:
    """Calls Python's collector of cycles by the bytes that were written, where Python itself only counts objects.

    A root refers to its log, the log to the values stored, and these often to what they were computed from, the root. Only the
    collector frees such a cycle, and by the number of objects it would come much too late for a few large arrays.

    Attributes
    ----------
    limit : int
        The bytes after which it is called; doubled each time that it finds nothing, `least` again once it finds something.
    """

    least = 2**28

    def __init__(self) -> None:
        self.limit = self.least
        self._weighed = 0

    def weigh(self, size: int) -> None:
        """Count bytes that a write keeps alive, and collect if they are more than the limit."""
        self._weighed += size
        if self._weighed > self.limit and gc.isenabled():
            self._weighed = 0
            self.limit = self.least if gc.collect() else 2 * self.limit


collector = Collector()
