"""When Python's collector of cycles is called, for graphs with writes."""

from __future__ import annotations

import gc


class Collector:
    """Calls Python's collector of cycles by the size of what was written into, not only by the number of objects.

    A buffer holds its log, the log what was stored, and that often what it was computed from, the buffer. Nothing but the
    collector frees such a graph, and for a few large arrays it would come much too late.

    Attributes
    ----------
    limit : int
        The bytes after which it is called; more for as long as nothing is found.
    """

    least = 2**28

    def __init__(self) -> None:
        self.limit = self.least
        self._weighed = 0

    def weigh(self, size: int) -> None:
        """Count some bytes of a graph with writes."""
        self._weighed += size
        if self._weighed > self.limit and gc.isenabled():
            self._weighed = 0
            self.limit = self.least if gc.collect() else 2 * self.limit


collector = Collector()
