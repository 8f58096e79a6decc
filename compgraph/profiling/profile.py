"""`profile`, and the `Profile` that it returns."""

from __future__ import annotations

import os
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING

from ..context import Context, active_profiler, profiler
from .entries import Holder, Ledger, root_entry
from .recorder import Recorder, begin_block, end_block

if TYPE_CHECKING:
    from .reports import ProfilePage, Table


class Profile(Context):
    """The time and the bytes of operations. Created by `profile`; entered again, it adds to its entries.

    Attributes
    ----------
    seconds : float
        The time of the blocks.
    operations_seconds : float
        The time of operations, forward and backward. The rest is Python and NumPy between them, and the profile itself.
    peak : int
        The maximum of live bytes of results and cotangents.
    held : list of Holder
        The holders of the peak: named tuples ``(operation, line, place, scope, bytes)``, the largest first.
    """

    __slots__ = ("_depth", "_ledger", "_root", "_running", "seconds")

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._depth = 0  # the number of nested running blocks of this profile
        self._root, self._ledger = root_entry(), Ledger()
        self._running: tuple[Recorder, Ledger, float] | None = None

    def __enter__(self) -> Profile:
        if self._running is not None:
            recorder = self._running[0]
            if recorder.thread != get_ident():
                raise RuntimeError("this profile is running in another thread; use a separate cg.profile() in each thread")
        else:
            ledger = Ledger()
            recorder = Recorder(ledger, active_profiler())
            begin_block(recorder)
            self._running = recorder, ledger, perf_counter()
        self._depth += 1
        try:
            self._enter({profiler: recorder})
        except BaseException:  # an interrupt: ``__exit__`` will not be called
            self._end(perf_counter())
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        stop = perf_counter()
        self._leave()
        self._end(stop)

    def _end(self, stop: float) -> None:
        """End the block, if it is the outermost of this profile."""
        self._depth -= 1
        if self._depth or self._running is None:
            return
        (recorder, ledger, start), self._running = self._running, None
        end_block(recorder)
        self._root.merge(recorder.leave(stop))
        ledger.end(start, stop)
        self._ledger.append(ledger)
        self.seconds += stop - start

    @property
    def operations_seconds(self) -> float:
        """The time of operations, forward and backward."""
        return sum(entry.seconds for entry in self._root.steps.values())

    @property
    def peak(self) -> int:
        """The maximum of live bytes of results and cotangents."""
        self._require_finished()
        return self._ledger.peak

    @property
    def held(self) -> list[Holder]:
        """The holders of the peak, the largest first."""
        self._require_finished()
        return self._ledger.peak_holders()

    def table(self, sort: str = "time", by: str = "operation", limit: int | None = 20) -> Table:
        """Return time and bytes as a table, with a row for each operation, line or scope.

        Parameters
        ----------
        sort : {"time", "own", "calls", "bytes", "name"}
            The column by which rows are sorted.
        by : {"operation", "line", "scope"}
            The rows: operations with their direction, lines of the user's code, or scopes (see `compgraph.scope`) with all
            scopes in them.
        limit : int or None
            The number of rows that are displayed; None displays all.

        Returns
        -------
        Table
            It can be printed, and a notebook displays it. ``.rows`` has all rows, named tuples
            ``(name, calls, time, own, share, bytes)``. `time` is in seconds and includes the steps of an operation, `own` does
            not; `share` is that of `own` in the time of the block. `bytes` were allocated by all calls together.

        Raises
        ------
        ValueError
            If `sort` or `by` is unknown, or the block is still running.
        """
        self._require_finished()
        from .reports import table_of

        return table_of(self._root, self.seconds, sort, by, limit)

    def flamegraph(self, path: str | os.PathLike[str] | None = None) -> ProfilePage:
        """Draw time as a flame graph: directions, scopes, functions, lines and operations, with widths in proportion to time.

        Parameters
        ----------
        path : str or path, optional
            A file to which the page is also written: self-contained HTML, which needs no network.

        Returns
        -------
        ProfilePage
            A notebook displays it; ``.save(path)`` writes it to a file.

        Raises
        ------
        ValueError
            If the block is still running.
        """
        self._require_finished()
        from .reports import flame_page  # imported on first use, with the package of pictures

        return flame_page(self._root, self.seconds).save_if(path)

    def memory(self, path: str | os.PathLike[str] | None = None) -> ProfilePage:
        """Draw the live bytes over time, with the peak and its holders: operations and lines.

        Parameters
        ----------
        path : str or path, optional
            A file to which the page is also written: self-contained HTML, which needs no network.

        Returns
        -------
        ProfilePage
            A notebook displays it; ``.save(path)`` writes it to a file.

        Raises
        ------
        ValueError
            If the block is still running.
        """
        self._require_finished()
        from .reports import memory_page

        return memory_page(self._ledger).save_if(path)

    def _require_finished(self) -> None:
        if self._running is not None:
            raise ValueError("the profile is still running; read it after its with block")

    def __str__(self) -> str:
        return repr(self) if self._running is not None else str(self.table())

    def __repr__(self) -> str:
        if self._running is not None:
            return "<Profile, running>"
        return f"<Profile of {self.seconds:.3g} s: print it, or see .table(), .flamegraph(), .memory()>"

    def _repr_html_(self) -> str:
        return self.flamegraph()._repr_html_()


def profile() -> Profile:
    """Profile time and memory: a context manager that records each operation on nodes, forward and backward.

    Each operation is recorded with its time and the bytes of its result, by the user's line and by scope. In a sweep, each rule
    is recorded at the line of the operation that it differentiates. Each call of a compiled function (`jit`) or of an `Executor`
    is one entry, as is each operation on values with tangents (forward mode) and of `vmap`.

    Returns
    -------
    Profile
        Use it as ``with cg.profile() as p:``, for the current thread or asyncio task. Afterwards ``print(p)`` prints a table,
        ``p.flamegraph(path)`` and ``p.memory(path)`` draw pictures.

    Raises
    ------
    RuntimeError
        If a profile is entered while it runs in another thread. Profiles may be nested: both record the inner block.

    Notes
    -----
    Time is wall-clock time. The time between operations (Python, plain NumPy, the search through the graph before a sweep) is
    the rest in the table and the flame graph. Each profiled operation takes a few microseconds longer. Inactive profiles add no
    overhead.

    Bytes are those of arrays that operations and sweeps allocate and keep: results, copies of plain operands, cotangents, values
    overwritten by writes. Views, NumPy's scalars, variables and arrays made by other code do not count. Arrays of less than 1 kB
    count as allocated, but not as living. Temporary arrays within an operation are not recorded.

    Other threads and processes are not profiled. A suspended generator is profiled while it runs.

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
