"""`DataParallel`: the mean of a loss over a batch whose rows are shared among machines."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from tqdm import tqdm

from compgraph.compiled import jit
from compgraph.context import is_recording, run_isolated
from compgraph.frames import warn_user
from compgraph.graph import as_operands, to_values
from compgraph.values import INERT, Value

from ..arguments import as_argument, flatten, unflatten
from .parallel import (
    Failed,
    Kept,
    Log,
    Machine,
    Machines,
    Request,
    Rows,
    Share,
    Step,
    assembled,
    both_at,
    cuts,
    mean_at,
    packed,
    process,
)

HERE = "here"
T = TypeVar("T")


class MachineInfo(NamedTuple):
    """A machine as `DataParallel.machines` shows it.

    Attributes
    ----------
    address, name : str
        Its address, and its name in the cluster.
    speed : float or None
        Rows a second; None until it was measured.
    is_free : bool
        Whether it waits for work.
    """

    address: str
    name: str
    speed: float | None
    is_free: bool


class DataParallel:
    """The mean of a loss over the rows of a batch, computed by all machines of a cluster.

    Each machine has the loss and computes its gradient for some of the rows; the parameters live with the client and travel
    with each step. The result has the same bits whatever the number of machines, their speed, and which of them are lost.

    Parameters
    ----------
    loss : callable
        ``loss(params, *batch)``: the mean over the rows it is given, a real scalar. The parameters nest in any way; every
        array of the batch has the rows along its first axis. It is sent to the machines once, in its present state.
    client : distributed.Client, optional
        A client of the cluster, best made with ``direct_to_workers=True``. By default the loss is computed here, with the
        same bits.
    grains : int
        The number of pieces (grains) that a batch is cut into. It decides the bits, and how evenly rows can be shared. More
        machines than grains are of no use.
    patience : float
        A machine is overtaken if it takes `patience` times as long as its speed predicts, and at least half a second: others
        that wait for work compute its rows too.
    wait : float
        After how many seconds without a machine, or without a sign of life of any, to give up.
    backend : {"jax", "torch", "cupy"} or module, optional
        The array library by which each machine computes the loss and its gradient, on its own device; see `compgraph.jit`. By
        default NumPy. Results agree with those of NumPy to rounding, and no longer have the same bits: a machine computes its
        first grain by NumPy as well, and returns that result.

    Attributes
    ----------
    machines : list of MachineInfo
        The machines of now.
    log : Log
        The rows that each machine computed, with times and faults; shown as a table, drawn by ``log.plot()``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong type or value; when called: if the arrays of the batch have no rows, or not equally many.
    TimeoutError
        When called: after `wait` seconds without a machine.
    ConnectionError
        When called: if the scheduler does not answer. No error changes the parameters.

    Notes
    -----
    The bits are the same where processors and libraries are of the same kind, with as many threads. A loss that draws random
    numbers, or has a state, is not the same function twice: pass such numbers as arrays of the batch.

    Called with nodes it is one node of the graph, with derivatives of every order, in both modes, with respect to the
    parameters alone: an active node in the batch, or one that the loss uses from outside, raises.

    Examples
    --------
    >>> import numpy as np
    >>> def loss(params, x, y):
    ...     return np.mean((x @ params["w"] - y) ** 2)
    >>> x, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 5.0])
    >>> mean = DataParallel(loss)  # with a client: DataParallel(loss, client)
    >>> value, slope = mean.value_and_grad({"w": np.ones(1)}, x, y)
    >>> print(round(float(value), 6), slope["w"])
    1.333333 [-4.]
    """

    def __init__(
        self, loss: Callable[..., Any], client: Client | None = None, *, grains: int = 16, patience: float = 3.0,
        wait: float = 60.0, backend: Any = None,
    ) -> None:  # fmt: skip
        _check(loss, client, grains, patience, wait)
        if backend is not None and client is None:
            jit(np.sin, backend=backend)  # a machine elsewhere has its own libraries
        self.grains, self.patience, self.wait = grains, patience, wait
        self.log = Log()
        self._client = client
        self._step = itertools.count()
        self._one_at_a_time = threading.Lock()
        self._kept: dict[str, np.ndarray[Any, Any]] = {}
        self._value = np.nan
        self._machines, self._here = None, None
        if client is None:
            self._here = Machine(loss, process(), self._kept, backend)
        else:
            self._machines = Machines(client, packed(loss), process(), self._kept, self.log, backend)

    def __reduce__(self) -> Any:
        raise TypeError("DataParallel holds the connection to its cluster and is not pickled; make one where it is used")

    # --------------------------------------------------------------------------------------------------- values

    def __call__(self, params: object, *batch: object) -> Any:
        """The mean of the loss over all rows; a node, if the parameters hold nodes."""
        return self._asking(params, batch, lambda ask, leaves, _: mean_at(ask, leaves), lambda value, _: value, False)

    def value_and_grad(self, params: object, *batch: object) -> tuple[Any, Any]:
        """The mean of the loss over all rows, and its gradient.

        Parameters
        ----------
        params : array, or arrays nested in any way
            The parameters.
        *batch : array, or what `put` returned, or such nested
            The data; each has the rows along its first axis.

        Returns
        -------
        value : scalar
            The mean.
        gradient
            Nested as the parameters.
        """

        def recorded(ask: Callable[..., Any], leaves: Sequence[Any], structure: object) -> Any:
            value, slopes = both_at(ask, leaves)
            return value, unflatten(structure, slopes)

        value_and_gradient: tuple[Any, Any] = self._asking(
            params, batch, recorded, lambda *value_and_gradient: value_and_gradient, True
        )
        return value_and_gradient

    def _asking(
        self, params: object, batch: Sequence[Any], recorded: Callable[..., Any], plain: Callable[..., Any], slopes: bool
    ) -> Any:
        """Return the result of `recorded` for nodes, or of `plain` for the value and the gradient."""
        parameter_leaves, structure = flatten(params)
        if not parameter_leaves:
            raise TypeError(f"DataParallel: the parameters, {params!r}, hold no array")
        leaves = as_operands(tuple([as_argument(x, "DataParallel: a parameter") for x in parameter_leaves]))
        rows = Rows(batch)
        trees = _tree(structure), _tree(rows.structure)

        if is_node := any(map(_is_followed, leaves)):
            if any(x.dtype.kind == "c" for x in leaves):
                raise TypeError(
                    "DataParallel: complex parameters cannot be nodes here; pass real and imaginary parts as two arrays"
                )
            rows = rows.fixed()  # derivatives of second order need the same rows again

        def ask(order: int, leaves: Sequence[Any], slopes: bool) -> tuple[Any, list[Any]]:
            return self._mean(Request(order, slopes, *trees, [np.asarray(to_values(x)) for x in leaves]), rows)

        if is_node:
            return recorded(ask, leaves, structure)
        value, gradients = ask(0, leaves, slopes)
        return plain(value, unflatten(structure, gradients) if slopes else None)

    # --------------------------------------------------------------------------------------------------- one step

    def _mean(self, request: Request, rows: Rows) -> tuple[Any, list[Any]]:
        """The mean over all rows, and its gradient, on plain arrays."""
        bounds = cuts(rows.count, self.grains)
        count = len(bounds) - 1
        if rows.keys - set(self._kept):
            raise ValueError("DataParallel: an array of the batch was left with another object's machines; use `put` of this one")
        with self._one_at_a_time:
            if self._here is not None:
                parts, dtype = self._computed_here(self._here, next(self._step), request, rows, bounds)
            else:
                parts, dtype = self._computed_there(next(self._step), request, rows, bounds)
        total, *sums = assembled(parts, (0, count))
        value = np.asarray(total / rows.count).astype(dtype)[()]
        self._value = float(value)
        return value, [np.asarray(s / rows.count).astype(s.dtype, copy=False)[()] for s in sums]

    def _computed_here(self, machine: Machine, step: int, request: Request, rows: Rows, bounds: list[int]) -> Any:
        begun = self.log.now()
        result = run_isolated(machine.sums, Share(request, rows.pieces(0, rows.count), bounds, (0, len(bounds) - 1), []))
        fault = "error" if isinstance(result, Failed) else ""
        self.log.add(step, HERE, range(rows.count), begun, self.log.now(), fault)
        if isinstance(result, Failed):
            raise result.raised("this machine")
        return result.sums, result.dtype

    def _computed_there(self, step: int, request: Request, rows: Rows, bounds: list[int]) -> Any:
        machines: Any = self._machines

        async def run() -> Any:
            machines.begin(step)
            batch_step = Step(machines, request, rows.pieces, bounds, self.patience, self.wait)
            await batch_step.run()
            return batch_step

        batch_step = self._sync(run)
        if batch_step.failed is not None:
            address, failed = batch_step.failed
            raise failed.raised(address)
        for category, text in dict.fromkeys(batch_step.warned):
            warn_user(text, category)
        return batch_step.parts, batch_step.dtype

    def _sync(self, run: Callable[[], Any]) -> Any:
        """Run on the client's event loop: the machines' state is used nowhere else."""
        client: Any = self._client
        if client.asynchronous or client.status == "closed":
            raise ConnectionError("DataParallel: the client is closed, or asynchronous; give one that is neither")
        return client.sync(run)

    # ------------------------------------------------------------------------------------------------- machines

    def put(self, *arrays: object) -> Any:
        """Leave arrays with all machines, once; machines that join later are given them too.

        Parameters
        ----------
        *arrays : array
            With the rows along the first axis. The client keeps a copy.

        Returns
        -------
        Kept, or tuple of Kept
            What is given in a batch in place of an array: as it is, or indexed by rows (``x[rows]``); then row numbers travel
            and no data. When nothing refers to it any more, the machines forget the array.
        """
        if not arrays:
            raise TypeError("put: no arrays were given")
        remote_arrays = [x if isinstance(x, Kept) else self._keep(np.array(x, order="C")) for x in Rows(arrays).leaves]
        if self._machines is not None:
            self._sync(self._machines.give)
        return remote_arrays[0] if len(remote_arrays) == 1 else tuple(remote_arrays)

    def _keep(self, array: np.ndarray[Any, Any]) -> Kept:
        """Keep an array as long as its `Kept` exists."""
        remote_array = Kept(uuid.uuid4().hex, array)
        self._kept[remote_array.key] = array
        weakref.finalize(remote_array, self._kept.pop, remote_array.key, None)
        return remote_array

    @property
    def machines(self) -> list[MachineInfo]:
        """The machines of now."""
        if self._machines is None:
            return [MachineInfo(HERE, HERE, None, True)]
        self._sync(self._machines.look)
        return [MachineInfo(m.address, m.name, m.speed, m.busy is None) for m in self._machines.members.values()]

    def steps(self, batches: Iterable[T], **options: object) -> Iterator[T]:
        """Go through batches with a bar that shows the last loss, the steps in a second, and the number of machines.

        Parameters
        ----------
        batches : iterable
            The batches to yield, one per step.
        **options
            Options of `tqdm.tqdm`: ``total``, ``desc``, ``disable`` and so on.
        """
        with tqdm(batches, **{"unit": "step", "desc": "Training", **options}) as bar:
            for batch in bar:
                yield batch
                count = 1 if self._machines is None else len(self._machines.members)
                bar.set_postfix(loss=f"{self._value:.4g}", machines=count, refresh=False)

    def close(self) -> None:
        """Let the machines go; the cluster and the client stay."""
        if self._client is not None and self._machines is not None and self._client.status != "closed":
            self._sync(self._machines.release)

    def __enter__(self) -> DataParallel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_followed(x: NDArray[Any]) -> bool:
    """Whether more than a leaf's numbers counts: its graph while recording, or a tangent, recording or not."""
    return isinstance(x, Value) and type(x) not in INERT and (is_recording() or bool(x.level))


def _tree(structure: Any) -> bytes:
    """A structure as it is sent: a tree, so that unpickling it imports its types there."""
    return packed(unflatten(structure, range(structure.num_leaves)))


def _check(loss: Callable[..., Any] | int, client: Any, grains: float, patience: float, wait: float) -> None:
    """Raise for an argument of a wrong type or value."""
    if not callable(loss):
        raise TypeError(f"DataParallel: the loss is a function (params, *batch), not {loss!r}")
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"DataParallel: the client is a dask.distributed.Client, not {type(client).__name__}")
    if client is not None and client.asynchronous:
        raise TypeError("DataParallel: the client is asynchronous; it would have to be awaited. Make one that is not")
    if not isinstance(grains, (int, np.integer)) or isinstance(grains, bool) or grains < 1:
        raise ValueError(f"DataParallel: grains is a whole number, at least 1, not {grains!r}")
    if not patience > 0 or not wait > 0:
        raise ValueError(f"DataParallel: patience and wait are positive, not {patience!r} and {wait!r}")
