"""`DataParallel`: the mean of a loss over a batch whose rows are distributed over machines."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from distributed import Client
from tqdm import tqdm

from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.compiled import jit
from compgraph.context import is_recording, run_isolated
from compgraph.frames import warn_user
from compgraph.graph import as_operands, to_values
from compgraph.values import INERT, Value

from ..arguments import as_argument, flatten, unflatten
from ..custom import CallFunction, has_node, instantiate_zeros
from .parallel import (
    ActorPool,
    Batch,
    FailureReport,
    Log,
    LossActor,
    RemoteArray,
    Request,
    ShareRequest,
    Step,
    combine_sums,
    process_name,
    serialize,
    shard_bounds,
)

LOCAL_MACHINE = "here"
T = TypeVar("T")


class MachineInfo(NamedTuple):
    """The state of a machine; see `DataParallel.machines`.

    Attributes
    ----------
    address, name : str
        The address of the worker, and its name in the cluster.
    speed : float or None
        Rows per second; None before the first measurement.
    is_free : bool
        Whether the machine is idle.
    """

    address: str
    name: str
    speed: float | None
    is_free: bool


class DataParallel:
    """The mean of a loss over the rows of a batch, computed by all machines of a cluster.

    Each machine computes the loss and its gradient for some of the rows. The client holds the parameters and sends them with each
    step. The bits of the result do not depend on the number of machines, their speeds, or failures.

    Parameters
    ----------
    loss : callable
        ``loss(params, *batch)``: a real scalar, the mean over the rows of the batch. The parameters nest in any way; each
        array of the batch has the rows along its first axis. The loss is pickled when `DataParallel` is created.
    client : distributed.Client, optional
        A client of the cluster, preferably with ``direct_to_workers=True``. By default the loss is computed in this process,
        with the same bits.
    grains : int
        The number of shards of a batch. It determines the bits of the result, and how evenly rows can be distributed. At most
        `grains` machines have work.
    patience : float
        If a machine takes `patience` times as long as expected from its speed, and at least half a second, idle machines
        compute its rows too.
    wait : float
        The seconds without a machine, or without a reply or heartbeat of any machine, until a TimeoutError is raised.
    backend : {"jax", "torch", "cupy"} or module, optional
        The array library in which each machine computes the loss and its gradient, on its own device; see `compgraph.jit`. By
        default NumPy. With a library, results agree with those of NumPy up to rounding, and depend on the machines: each
        machine returns the result of NumPy for its first shard.

    Attributes
    ----------
    machines : list of MachineInfo
        The current machines.
    log : Log
        The rows that each machine computed, with times and faults. It prints as a table; ``log.plot()`` draws it.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or value. When called: if the arrays of the batch have no rows, or different numbers
        of rows.
    TimeoutError
        When called: after `wait` seconds without a machine.
    ConnectionError
        When called: if the scheduler does not answer. Errors leave the parameters unchanged.

    Notes
    -----
    Equal bits require processors and libraries of one kind, and equal numbers of threads. The loss must be a pure function: pass
    random numbers as arrays of the batch.

    For parameters with nodes, the mean is one node of the graph, with derivatives of every order, in both modes, with respect to
    the parameters alone. Active nodes in the batch or in the enclosing scope of the loss raise a TypeError.

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
        _check_arguments(loss, client, grains, patience, wait)
        if backend is not None and client is None:
            jit(np.sin, backend=backend)  # raises early; a remote machine has its own libraries
        self.grains, self.patience, self.wait = grains, patience, wait
        self.log = Log()
        self._client = client
        self._steps = itertools.count()
        self._lock = threading.Lock()
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._value = np.nan
        self._pool, self._local = None, None
        if client is None:
            self._local = LossActor(loss, process_name(), self._arrays, backend)
        else:
            self._pool = ActorPool(client, serialize(loss), process_name(), self._arrays, self.log, backend)

    def __reduce__(self) -> Any:
        raise TypeError("DataParallel holds the connection to its cluster, so it cannot be pickled. Create one in each process.")

    # --------------------------------------------------------------------------------------------------- values

    def __call__(self, params: object, *batch: object) -> Any:
        """Return the mean of the loss over all rows; a node, if the parameters contain nodes."""

        def record(evaluate: Any, leaves: Sequence[Any], _: object) -> Any:
            return record_mean(evaluate, leaves)

        return self._record_or_evaluate(params, batch, record, lambda value, _: value, False)

    def value_and_grad(self, params: object, *batch: object) -> tuple[Any, Any]:
        """Return the mean of the loss over all rows, and its gradient.

        Parameters
        ----------
        params : array, or arrays nested in any way
            The parameters.
        *batch : array or RemoteArray, or these nested in any way
            The data, with the rows along the first axis of each array.

        Returns
        -------
        value : scalar
            The mean.
        gradient
            Nested as the parameters.
        """

        def record(evaluate: Any, leaves: Sequence[Any], structure: object) -> Any:
            value, gradient = record_mean_and_gradient(evaluate, leaves)
            return value, unflatten(structure, gradient)

        value_and_gradient: tuple[Any, Any] = self._record_or_evaluate(
            params, batch, record, lambda *value_and_gradient: value_and_gradient, True
        )
        return value_and_gradient

    def _record_or_evaluate(
        self, params: object, batch: Sequence[Any], record: Any, make_result: Any, with_gradient: bool
    ) -> Any:
        """Return the result of `record` for nodes, or else of `make_result` for the value and the gradient."""
        parameter_leaves, structure = flatten(params)
        if not parameter_leaves:
            raise TypeError(f"DataParallel: the parameters, {params!r}, contain no array.")
        leaves = as_operands(tuple([as_argument(x, "DataParallel: a parameter") for x in parameter_leaves]))
        arrays = Batch(batch)
        trees = _serialize_structure(structure), _serialize_structure(arrays.structure)

        if is_node := any(map(_is_traced, leaves)):
            if any(x.dtype.kind == "c" for x in leaves):
                raise TypeError("DataParallel: complex parameters cannot be nodes. Pass real and imaginary parts as two arrays.")
            arrays = arrays.snapshot()  # higher derivatives evaluate the same rows again

        def evaluate(order: int, leaves: Sequence[Any], with_gradient: bool) -> tuple[Any, list[Any]]:
            return self._mean(Request(order, with_gradient, *trees, [np.asarray(to_values(x)) for x in leaves]), arrays)

        if is_node:
            return record(evaluate, leaves, structure)
        value, gradients = evaluate(0, leaves, with_gradient)
        return make_result(value, unflatten(structure, gradients) if with_gradient else None)

    # --------------------------------------------------------------------------------------------------- one step

    def _mean(self, request: Request, batch: Batch) -> tuple[Any, list[Any]]:
        """Return the mean over all rows, and its gradient, as plain arrays."""
        bounds = shard_bounds(batch.count, self.grains)
        count = len(bounds) - 1
        if batch.keys - set(self._arrays):
            raise ValueError(
                "DataParallel: an array of the batch was stored by another DataParallel. Store it by `put` of this one."
            )
        with self._lock:
            if self._local is not None:
                partial_sums, dtype = self._compute_locally(self._local, next(self._steps), request, batch, bounds)
            else:
                partial_sums, dtype = self._compute_on_machines(next(self._steps), request, batch, bounds)
        total, *sums = combine_sums(partial_sums, (0, count))
        value = np.asarray(total / batch.count).astype(dtype)[()]
        self._value = float(value)
        return value, [np.asarray(s / batch.count).astype(s.dtype, copy=False)[()] for s in sums]

    def _compute_locally(self, actor: LossActor, step: int, request: Request, batch: Batch, bounds: list[int]) -> Any:
        start = self.log.now()
        share = ShareRequest(request, batch.select(0, batch.count), bounds, (0, len(bounds) - 1), [])
        result = run_isolated(actor.compute_sums, share)
        fault = "error" if isinstance(result, FailureReport) else ""
        self.log.add(step, LOCAL_MACHINE, range(batch.count), start, self.log.now(), fault)
        if isinstance(result, FailureReport):
            raise result.to_exception("this machine")
        return result.sums, result.dtype

    def _compute_on_machines(self, step: int, request: Request, batch: Batch, bounds: list[int]) -> Any:
        pool: Any = self._pool

        async def run() -> Any:
            pool.begin_step(step)
            batch_step = Step(pool, request, batch.select, bounds, self.patience, self.wait)
            await batch_step.run()
            return batch_step

        batch_step = self._sync(run)
        if batch_step.failure is not None:
            address, report = batch_step.failure
            raise report.to_exception(address)
        for category, text in dict.fromkeys(batch_step.warnings):
            warn_user(text, category)
        return batch_step.partial_sums, batch_step.dtype

    def _sync(self, run: Callable[[], Any]) -> Any:
        """Run on the client's event loop, the only place where the state of the machines is used."""
        client: Any = self._client
        if client.asynchronous or client.status == "closed":
            raise ConnectionError("DataParallel: the client is closed or asynchronous. Use an open, synchronous client.")
        return client.sync(run)

    # ------------------------------------------------------------------------------------------------- machines

    def put(self, *arrays: Any) -> Any:
        """Store arrays with all machines. Machines that join later receive them too.

        Parameters
        ----------
        *arrays : array
            Arrays with the rows along the first axis. The client stores a copy.

        Returns
        -------
        RemoteArray, or tuple of RemoteArray
            References that replace the arrays in a batch, whole or indexed by rows (``x[rows]``), so that row numbers are sent
            instead of data. When a reference is garbage-collected, the machines delete its array.
        """
        if not arrays:
            raise TypeError("DataParallel.put: there are no arrays. Pass at least one.")
        remote_arrays = [x if isinstance(x, RemoteArray) else self._store(np.array(x, order="C")) for x in Batch(arrays).leaves]
        if self._pool is not None:
            self._sync(self._pool.send_arrays)
        return remote_arrays[0] if len(remote_arrays) == 1 else tuple(remote_arrays)

    def _store(self, array: np.ndarray[Any, Any]) -> RemoteArray:
        """Store an array for the lifetime of its reference."""
        remote_array = RemoteArray(uuid.uuid4().hex, array)
        self._arrays[remote_array.key] = array
        weakref.finalize(remote_array, self._arrays.pop, remote_array.key, None)
        return remote_array

    @property
    def machines(self) -> list[MachineInfo]:
        """The current machines."""
        if self._pool is None:
            return [MachineInfo(LOCAL_MACHINE, LOCAL_MACHINE, None, True)]
        self._sync(self._pool.refresh)
        return [MachineInfo(m.address, m.name, m.speed, m.pending_request is None) for m in self._pool.members.values()]

    def steps(self, batches: Iterable[T], **options: Any) -> Iterator[T]:
        """Iterate over batches with a progress bar: the last loss, the steps per second, and the number of machines.

        Parameters
        ----------
        batches : iterable
            The batches to yield, one per step.
        **options
            Options of `tqdm.tqdm`, such as ``total``, ``desc`` and ``disable``.
        """
        with tqdm(batches, **{"unit": "step", "desc": "Training", **options}) as bar:
            for batch in bar:
                yield batch
                count = 1 if self._pool is None else len(self._pool.members)
                bar.set_postfix(loss=f"{self._value:.4g}", machines=count, refresh=False)

    def close(self) -> None:
        """Release the machines. The cluster and the client stay open."""
        if self._client is not None and self._pool is not None and self._client.status != "closed":
            self._sync(self._pool.release)

    def __enter__(self) -> DataParallel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_traced(x: Array) -> bool:
    """Whether a leaf is an active node while recording, or carries a tangent."""
    return isinstance(x, Value) and type(x) not in INERT and (is_recording() or bool(x.level))


def _serialize_structure(structure: Any) -> bytes:
    """Pickle a structure as a tree of leaf indices, so that unpickling imports its types."""
    return serialize(unflatten(structure, range(structure.num_leaves)))


def _check_arguments(loss: object, client: object, grains: object, patience: Any, wait: Any) -> None:
    """Raise for arguments of a wrong type or value."""
    if not callable(loss):
        raise TypeError(f"DataParallel: the loss must be a function (params, *batch), not {loss!r}.")
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"DataParallel: client must be a dask.distributed.Client, not {type(client).__name__}.")
    if client is not None and client.asynchronous:
        raise TypeError("DataParallel: the client is asynchronous. Create it with asynchronous=False.")
    if not isinstance(grains, (int, np.integer)) or isinstance(grains, bool) or grains < 1:
        raise ValueError(f"DataParallel: grains must be an integer of at least 1, not {grains!r}.")
    if not patience > 0 or not wait > 0:
        raise ValueError(f"DataParallel: patience and wait must be positive, not {patience!r} and {wait!r}.")


# ------------------------------------------------------------------------------------------ the mean as a node
# Machines compute directional derivatives (`actor.differentiate_along`), nested once per order. A gradient that is differentiated
# itself is another node. Its VJP is a Hessian-vector product: the gradient of a directional derivative.

# ``evaluate(order, leaves, with_gradient)``: the mean of the loss after `order` directional derivatives, and its gradient.
Evaluate = Callable[[int, Sequence[Any], bool], tuple[Any, list[Any]]]


class Mean:
    """The mean of a loss over a batch, at leaves that may be nodes.

    Parameters
    ----------
    evaluate : callable
        Evaluates the mean on the machines; see `Evaluate`.
    order : int
        The number of directional derivatives. The directions follow the leaves.
    """

    def __init__(self, evaluate: Evaluate, order: int = 0) -> None:
        self.evaluate, self.order = evaluate, order
        self.operands: tuple[Any, ...] = ()
        self.gradients: list[Any] = []

    def compute(self, *leaves: object) -> Any:
        """Return the mean; the gradient is computed with it and cached."""
        value, gradients = self.evaluate(self.order, leaves, True)
        self.operands, self.gradients = leaves, gradients
        return value

    def gradient(self, *operands: Any, record: bool) -> Sequence[Any]:
        """Return the gradient, as nodes if `record`."""
        if record:
            return record_gradient(self.evaluate, self.order, operands)
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # an operand was updated, or the graph runs again
        return self.gradients

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the leaves."""
        return [cotangent * g for g in self.gradient(*operands, record=has_node(cotangent, *operands))]

    def push(self, position: int, tangent: Array, out: Array, *operands: Any) -> Any:
        """Return the tangent of the mean from that of one leaf."""
        return np.sum(self.gradient(*operands, record=has_node(tangent, *operands))[position] * tangent)


class MeanGradient:
    """The gradient of the mean; `precomputed` if it was computed with the mean."""

    def __init__(self, evaluate: Evaluate, order: int, precomputed: list[Any] | None = None) -> None:
        self.evaluate, self.order, self.precomputed = evaluate, order, precomputed

    def compute(self, *leaves: object) -> Any:
        """Return the gradient, one array for each leaf."""
        precomputed, self.precomputed = self.precomputed, None  # leaves have other values when the graph runs again
        gradients = [np.array(g)[()] for g in precomputed or self.evaluate(self.order, leaves, True)[1]]
        return tuple(gradients) if len(gradients) > 1 else gradients[0]

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the leaves: the Hessian times the cotangents of the gradient."""
        directions = instantiate_zeros(cotangent, out) if isinstance(out, tuple) else (cotangent,)
        inputs = (*operands, *directions)
        if has_node(*inputs):
            return list(record_gradient(self.evaluate, self.order + 1, inputs)[: len(operands)])
        return self.evaluate(self.order + 1, inputs, True)[1][: len(operands)]

    def push(self, position: int, tangent: Array, out: Array, *operands: Any) -> Any:
        """Return the tangents of the gradient from that of one leaf: the same product, because the Hessian is symmetric."""
        if not isinstance(out, tuple):
            return self.pull(tangent, out, *operands)[0]
        directions = [np.zeros(o.shape, o.dtype)[()] for o in out]
        directions[position] = tangent
        return tuple(self.pull(tuple(directions), out, *operands))


def record_mean(evaluate: Evaluate, leaves: Sequence[Any]) -> Any:
    """Return the mean as a node."""
    return bind(_mean, tuple(leaves), {"call": Mean(evaluate)})


def record_mean_and_gradient(evaluate: Evaluate, leaves: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the mean and its gradient as nodes, by one evaluation."""
    mean = Mean(evaluate)
    return bind(_mean, tuple(leaves), {"call": mean}), record_gradient(evaluate, 0, leaves, mean.gradients)


def record_gradient(
    evaluate: Evaluate, order: int, leaves: Sequence[Any], precomputed: list[Any] | None = None
) -> tuple[Any, ...]:
    """Return the gradient as nodes."""
    output = bind(_mean_gradient, tuple(leaves), {"call": MeanGradient(evaluate, order, precomputed)})
    return output if isinstance(output, tuple) else (output,)


_mean = CallFunction("data_parallel")
_mean_gradient = CallFunction("data_parallel_gradient")
