"""`profile`: where time and memory go, as users ask for it."""

from __future__ import annotations

import os
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING

from ..context import Context, active_profiler, profiler
from .entries import root
from .exchanges import begin_block, end_block
from .ledger import Holder, Ledger
from .recorder import Recorder

if TYPE_CHECKING:
    from .pages import ProfilePage
    from .table import Table


class Profile(Context):
    """The time and the bytes of operations. Made by `profile`; it may be entered again, and adds what it sees then.

    Attributes
    ----------
    seconds : float
        How long the blocks ran.
    operations_seconds : float
        How long operations took, forward and backward; the rest is Python and NumPy between them, and the profile itself.
    peak : int
        The most bytes of results and adjoints that were alive at once.
    held : list of Holder
        What held them: named tuples ``(operation, line, place, scope, bytes)``, the largest first.
    """

    __slots__ = ("_depth", "_ledger", "_root", "_running", "seconds")

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._depth = 0  # blocks of this profile that run, within each other
        self._root, self._ledger = root(), Ledger()
        self._running: tuple[Recorder, Ledger, float] | None = None

    def __enter__(self) -> Profile:
        if self._running is not None:
            recorder = self._running[0]
            if recorder.thread != get_ident():
                raise RuntimeError("this profile is running in another thread; make one for each, with cg.profile()")
        else:
            ledger = Ledger()
            recorder = Recorder(ledger, active_profiler())
            begin_block()
            self._running = recorder, ledger, perf_counter()
        self._depth += 1
        try:
            self._enter({profiler: recorder})
        except BaseException:  # a signal: no ``__exit__`` will follow
            self._end(perf_counter())
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        stop = perf_counter()
        self._leave()
        self._end(stop)

    def _end(self, stop: float) -> None:
        """End the block, if it is the outermost of this profile's."""
        self._depth -= 1
        if self._depth or self._running is None:
            return
        (recorder, ledger, start), self._running = self._running, None
        end_block()
        self._root.take(recorder.leave(stop))
        ledger.end(start, stop)
        self._ledger.take(ledger)
        self.seconds += stop - start

    @property
    def operations_seconds(self) -> float:
        """How long operations took, forward and backward."""
        return sum(entry.seconds for entry in self._root.steps.values())

    @property
    def peak(self) -> int:
        """The most bytes of results and adjoints that were alive at once."""
        self._require_left()
        return self._ledger.peak

    @property
    def held(self) -> list[Holder]:
        """What held the memory at its peak, the largest first."""
        self._require_left()
        return self._ledger.held()

    def table(self, sort: str = "time", by: str = "operation", limit: int | None = 20) -> Table:
        """Time and bytes in a table, a row for each operation, line or scope.

        Parameters
        ----------
        sort : {"time", "own", "calls", "bytes", "name"}
            By which column the rows are in order.
        by : {"operation", "line", "scope"}
            What is a row: an operation and its direction, a line of the user's code, or a scope (see `compgraph.scope`), with
            all scopes within.
        limit : int or None
            How many rows are shown; None shows all.

        Returns
        -------
        Table
            It prints itself, and shows itself in a notebook; ``.rows`` has all rows, named tuples
            ``(name, calls, time, own, share, bytes)``. `time` is in seconds and has the steps of an operation in it, `own` has
            them not; `share` is that of `own` in the time of the block. `bytes` is what was allocated, in all calls together.

        Raises
        ------
        ValueError
            If `sort` or `by` is none of these, or the block is still running.
        """
        self._require_left()
        from .table import table_of

        return table_of(self._root, self.seconds, sort, by, limit)

    def flamegraph(self, path: str | os.PathLike[str] | None = None) -> ProfilePage:
        """Time as a flame graph: directions, scopes, functions, lines and operations, each as wide as it took long.

        Parameters
        ----------
        path : str or path, optional
            An HTML file to write it to as well, one page that needs no other file and no network.

        Returns
        -------
        ProfilePage
            It shows itself in a notebook; ``.save(path)`` writes it to a file.

        Raises
        ------
        ValueError
            If the block is still running.
        """
        self._require_left()
        from .pages import flame_page  # imported when it is first needed, with what draws

        return flame_page(self._root, self.seconds).saved(path)

    def memory(self, path: str | os.PathLike[str] | None = None) -> ProfilePage:
        """A picture of the bytes that are alive over time, with the peak, and what held it: operations and lines.

        Parameters
        ----------
        path : str or path, optional
            An HTML file to write it to as well, one page that needs no other file and no network.

        Returns
        -------
        ProfilePage
            It shows itself in a notebook; ``.save(path)`` writes it to a file.

        Raises
        ------
        ValueError
            If the block is still running.
        """
        self._require_left()
        from .pages import memory_page

        return memory_page(self._ledger).saved(path)

    def _require_left(self) -> None:
        if self._running is not None:
            raise ValueError("the profile is still running; look at it after its with block")

    def __str__(self) -> str:
        return repr(self) if self._running is not None else str(self.table())

    def __repr__(self) -> str:
        if self._running is not None:
            return "<Profile, running>"
        return f"<Profile of {self.seconds:.3g} s: print it, or see .table(), .flamegraph(), .memory()>"

    def _repr_html_(self) -> str:
        return self.flamegraph()._repr_html_()


def profile() -> Profile:
    """See where time and memory go: a context manager that is told of each operation on nodes, forward and backward.

    Each operation is entered with its time and the bytes of its result, by the user's line and by scope; in a sweep, each rule,
    by the line of the operation whose derivative it is. Each call of a compiled function (`jit`) or of an `Executor` is one
    entry, and so is each operation on values with tangents (forward mode) and of `vmap`.

    Returns
    -------
    Profile
        To be used in ``with cg.profile() as p:``, for the current thread or asyncio task. Afterwards ``print(p)`` shows a table,
        ``p.flamegraph(path)`` and ``p.memory(path)`` draw pictures.

    Raises
    ------
    RuntimeError
        If a profile is entered while it runs in another thread. Another one may be entered within: both see what it sees.

    Notes
    -----
    Time is that of the clock. What passes between operations is no operation's: Python, plain NumPy, the search through the
    graph before a sweep. The table and the flame graph show it as the rest. Each operation takes a few microseconds longer while
    it is profiled; nothing is slower where nobody profiles.

    Bytes are those of arrays that operations and sweeps make and keep: results, copies of plain operands, adjoints, what writes
    overwrote. Views have none, nor have numbers of NumPy's, variables, and arrays made by other code. Arrays of less than 1 kB
    count as allocated, but not among those that are alive. What an operation needs while it runs, and frees before it ends, is
    not seen.

    Other threads and processes are not profiled. A generator that is suspended inside is profiled while it runs.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> x = cg.variable(np.ones((100, 100)))
    >>> with cg.profile() as p:
    ...     y = np.sum(np.tanh(x @ x))
    >>> [(row.name, row.calls, row.bytes) for row in p.table(sort="name").rows]
    [('matmul', 1, 80000), ('sum', 1, 0), ('tanh', 1, 80000)]
    >>> p.peak
    160000
    """
    return Profile()
