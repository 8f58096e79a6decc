"""Derivatives of a loss over data larger than memory: Dask arrays, one block of rows at a time.

There is one task per block: it differentiates the loss on the rows of the block. Dask fuses it with the tasks that compute the
block, so that a block is freed when its task ends. Values and gradients are summed along a binary tree over the blocks. The tree
depends on the number of blocks alone, so results do not depend on scheduling, bit for bit.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import delayed
from distributed import Client
from distributed import wait as wait_for_futures
from numpy.typing import NDArray

from compgraph.context import default_dtype, default_float
from compgraph.values import Value, describe, require_computed

from .. import operators
from ..arguments import Argnums, Arguments, flatten, unflatten
from .cluster import WorkerRegistry

_log = logging.getLogger(__name__)
_POLL_INTERVAL = 1.0  # seconds between updates of the list of workers
_NAME = "distributed.value_and_grad"
_ADVICE = "Its computation is lost. Call again with a client of another cluster"


def value_and_grad(
    loss: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, wait: float = 60.0
) -> Callable[..., Any]:
    """Value and gradient of a mean over the rows of arrays that need not fit into memory.

    Parameters
    ----------
    loss : callable
        A function of parameters and arrays. It returns a scalar, a mean over the rows of its arrays; with `has_aux` a pair
        of this scalar and any other value.
    argnums : int, str, or sequence of them
        The parameters: the arguments to differentiate with respect to, as in `autodiff.value_and_grad`. Each block receives
        all of them.
    has_aux : bool
        Whether `loss` returns a pair ``(value, aux)``.
    wait : float
        With a distributed client: the seconds without a machine until a TimeoutError is raised.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (value, gradient)``, or ``((value, aux), gradient)`` with a list of each
        block's `aux`, in order. At least one of the arguments that are not parameters is, or contains, a ``dask.array``.
        `loss` is called once for each of its blocks along the first axis; blocks along other axes are concatenated. All
        other arrays, of Dask and NumPy, are divided into the same rows. Other values are passed to each block unchanged.
        An array whose first axis is not the rows must be a parameter, or bound by ``functools.partial``.

    Raises
    ------
    TypeError
        When called: if no argument is a ``dask.array``; if a parameter is one, or a node; if the loss reads a node of an
        enclosing scope; and as in `autodiff.value_and_grad`.
    ValueError
        When called: if the arrays have no rows, different numbers of rows, or unknown ones; and as in
        `autodiff.value_and_grad`.
    TimeoutError, ConnectionError
        When called, with a distributed client: if there is no machine for `wait` seconds; if the scheduler is lost.

    Notes
    -----
    Dask's current scheduler is used: threads, the setting ``dask.config.set(scheduler="synchronous")``, or the current
    ``distributed.Client``. Each thread holds one block of each array and the intermediate values of `loss`. Dask holds a
    whole array if its first block depends on all of it (``x - x.mean(axis=0)``): compute such a mean first. Results are
    identical, bit for bit, with any scheduler on machines of one kind; they depend on the chunks of the arrays. The gradient
    is the mean of the gradients of the blocks, weighted by rows: sum_i n_i/n grad f(X_i, p).

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> x = da.arange(6.0, chunks=2)
    >>> value, slope = value_and_grad(lambda p, x: np.mean((p - x) ** 2))(0.0, x)
    >>> print(value.round(6), slope)
    9.166667 -5.0
    """

    @functools.wraps(loss)
    def evaluate(*args: Any, **kwargs: object) -> Any:
        arguments = Arguments(_NAME, loss, args, kwargs, argnums)
        _check_parameters(arguments)
        data = DataArguments(arguments)
        value, *gradient_leaves = _compute_task(
            _sum_by_tree(_block_tasks(BlockGradient(arguments, data, has_aux), arguments, data)), timeout=wait
        )
        aux = gradient_leaves.pop() if has_aux else None
        return ((value, aux) if has_aux else value), arguments.nest(gradient_leaves)

    return evaluate


def _check_parameters(arguments: Arguments) -> None:
    """Raise for parameters that are dask arrays or nodes: a worker does not have the graph of a node."""
    for name, leaf in zip(arguments.names, arguments.leaves, strict=True):
        if isinstance(leaf, da.Array):
            raise TypeError(
                f"{_NAME}: {name} is a dask Array among the parameters, which each block receives whole. Pass its value "
                "(.compute()), or select the parameters by argnums."
            )
        if isinstance(leaf, Value):
            raise TypeError(
                f"{_NAME}: {name} is a node, the {describe(leaf)}. Derivatives by blocks do not continue in its graph. "
                "Pass node.value."
            )
    arguments.arrays()


class BlockSlot:
    """A placeholder among the arguments for the block of an array, by the array's index."""

    def __init__(self, index: int) -> None:
        self.index = index


class DataArguments:
    """The arguments that are not parameters: the data, and values passed on unchanged.

    Attributes
    ----------
    arrays : list of dask.array.Array
        The arrays with rows, all with the same chunks along the first axis.
    template : tuple of list and dict
        All arguments, with `BlockSlot` for the arrays, and None for the parameters.
    chunks : tuple of int
        The number of rows of each block.
    """

    def __init__(self, arguments: Arguments) -> None:
        args = [None if index in arguments.selected else a for index, a in enumerate(arguments.args)]
        kwargs = {name: None if name in arguments.selected else a for name, a in arguments.kwargs.items()}
        leaves, structure = flatten((args, kwargs))
        names = [path[2:].codify(f"argument {path[1].entry!r}") for path in structure.accessors()]
        row_leaves = [(k, name) for k, name in enumerate(names) if _has_rows(leaves[k], name)]
        self.chunks = _row_chunks([leaves[k] for k, _ in row_leaves])
        self.arrays = [_align_rows(leaves[k], self.chunks, name) for k, name in row_leaves]
        _reject_lists_of_rows((*args, *kwargs.values()), sum(self.chunks))
        for index, (k, _) in enumerate(row_leaves):
            leaves[k] = BlockSlot(index)
        self.template = unflatten(structure, leaves)


def _has_rows(leaf: Any, name: str) -> bool:
    """Whether an argument is an array to divide into blocks of rows; raise for nodes and other unsupported values."""
    if isinstance(leaf, Value):
        raise TypeError(f"{_NAME}: {name} is a node, the {describe(leaf)}. Pass node.value.")
    if isinstance(leaf, da.Array):
        if leaf.ndim == 0:
            raise TypeError(f"{_NAME}: {name} is a dask Array without axes. Pass its value (.compute()).")
        return True
    if hasattr(leaf, "to_dask_array"):
        raise TypeError(f"{_NAME}: {name} is a dask {type(leaf).__name__}. Pass its array, .to_dask_array(lengths=True).")
    require_computed(leaf, f"{_NAME}: {name}")
    return isinstance(leaf, np.ndarray) and leaf.ndim > 0


def _row_chunks(arrays: Sequence[Any]) -> tuple[int, ...]:
    """Return the number of rows of each block, from the first Dask array."""
    first = next((x for x in arrays if isinstance(x, da.Array)), None)
    if first is None:
        raise TypeError(
            f"{_NAME}: no argument except the parameters is a dask.array. Use autodiff.value_and_grad for arrays in memory, or "
            "divide one into blocks by dask.array.from_array."
        )
    chunks: tuple[int, ...] = first.chunks[0]
    if sum(_require_known_chunks(chunks)) == 0:
        raise ValueError(f"{_NAME}: the arrays have no rows, so their mean is undefined.")
    return chunks


def _require_known_chunks(chunks: tuple[int, ...]) -> tuple[int, ...]:
    if any(n != n for n in chunks):  # nan
        raise ValueError(f"{_NAME}: the blocks of a dask.array have unknown numbers of rows. Call x.compute_chunk_sizes() first.")
    return chunks


def _align_rows(array: NDArray[Any], chunks: tuple[int, ...], name: str) -> Any:
    """Return an array with the given chunks of rows; chunks along other axes are unchanged."""
    rows = sum(_require_known_chunks(array.chunks[0])) if isinstance(array, da.Array) else len(array)
    if rows != sum(chunks):
        raise ValueError(
            f"{_NAME}: {name} has {rows} rows, the first array {sum(chunks)}. All data are divided by rows. "
            "Select an array without rows as a parameter (argnums), or bind it by functools.partial."
        )
    if not isinstance(array, da.Array):
        return da.from_array(array, chunks=(chunks, *[(n,) for n in array.shape[1:]]), name=False)
    return array if array.chunks[0] == chunks else array.rechunk({0: chunks}, method="tasks")


def _reject_lists_of_rows(arguments: Sequence[Any], rows: int) -> None:
    """Raise for a list with one number per row, which would be passed whole to each block."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)) and len(argument) == rows and all(map(np.isscalar, argument)):
            raise TypeError(f"{_NAME}: a list of {rows} numbers is not divided into blocks. Pass np.array(...).")


class BlockGradient:
    """The computation of one block: a callable that is pickled and sent to the worker that holds the block."""

    def __init__(self, arguments: Arguments, data: DataArguments, has_aux: bool) -> None:
        self.loss, self.selected, self.template = arguments.f, arguments.selected, data.template
        self.rows, self.has_aux = sum(data.chunks), has_aux
        self.dtype, self.errors = default_float(), np.geterr()

    def __call__(self, parameters: Sequence[Any], *blocks: object) -> list[Any]:
        """Return the value and the gradient of each leaf, weighted by the rows of the block; then aux, in a list."""
        arrays = [_normalize_layout(_concatenate_chunks(block)) for block in blocks]
        return contextvars.Context().run(self._differentiate, parameters, arrays)

    def _differentiate(self, parameters: Sequence[Any], blocks: list[Any]) -> list[Any]:
        leaves, structure = flatten(self.template)
        args, kwargs = unflatten(structure, [blocks[x.index] if isinstance(x, BlockSlot) else x for x in leaves])
        for index, tree in zip(self.selected, parameters, strict=True):
            if isinstance(index, int):
                args[index] = tree
            else:
                kwargs[index] = tree
        with default_dtype(self.dtype), np.errstate(**self.errors):
            value, gradient = operators.value_and_grad(self.loss, tuple(self.selected), self.has_aux)(*args, **kwargs)
            value, *aux = value if self.has_aux else (value,)
            numbers = [value, *flatten(gradient)[0]]
            _require_no_nodes(numbers)
            weight = len(blocks[0]) / self.rows
            return [*[weight * x for x in numbers], *[[x] for x in aux]]


def _concatenate_chunks(block: object, axis: int = 1) -> Any:
    """Concatenate the chunks of a block along the axes after the first; Dask passes them as nested lists."""
    if isinstance(block, list):
        chunks = [_concatenate_chunks(chunk, axis + 1) for chunk in block]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis)
    if type(block) is not np.ndarray:
        raise TypeError(
            f"{_NAME}: the blocks of an array are of class {type(block).__name__}, not numpy.ndarray. Convert them by "
            "x.map_blocks(np.asarray)."
        )
    return block


def _normalize_layout(block: object) -> Any:
    """Copy a received block that is unaligned or not C-contiguous: the layout determines the order in which NumPy adds."""
    return np.require(block, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _require_no_nodes(numbers: Sequence[Any]) -> None:
    if any(isinstance(x, Value) for x in numbers):
        raise TypeError(
            f"{_NAME}: the loss uses a variable of an enclosing scope, so its derivative would be lost. Pass it as a parameter, "
            "or use its value (variable.value)."
        )


def _block_tasks(block: BlockGradient, arguments: Arguments, data: DataArguments) -> list[Any]:
    """Return a task for each block that has rows."""
    trees = [arguments.args[p] if isinstance(p, int) else arguments.kwargs[p] for p in arguments.selected]
    parameters = delayed(trees, name=f"parameters-{uuid.uuid4().hex}", traverse=False)
    axes = itertools.count(1)
    blockwise_args = [(x, (0, *itertools.islice(axes, x.ndim - 1))) for x in data.arrays]
    blockwise = da.blockwise(
        block,
        (0,),
        *(parameters, None),
        *itertools.chain.from_iterable(blockwise_args),
        name=f"derivatives-{uuid.uuid4().hex}",
        meta=np.empty(0, object),
        align_arrays=False,
    )
    return [task for task, rows in zip(blockwise.to_delayed(), data.chunks, strict=True) if rows]


def _sum_by_tree(tasks: list[Any]) -> Any:
    """Sum the results of tasks along a binary tree, which depends on their number alone."""
    add = delayed(_add, pure=False)
    while len(tasks) > 1:
        pairs = [tasks[i : i + 2] for i in range(0, len(tasks), 2)]
        tasks = [add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return tasks[0]


def _add(a: list[Any], b: list[Any]) -> list[Any]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _compute_task(task: Any, timeout: float) -> Any:
    """Compute a task with Dask's current scheduler and return the result.

    Parameters
    ----------
    task : dask.delayed.Delayed
        The task.
    timeout : float
        With a distributed client: the seconds without a worker until a TimeoutError is raised.

    Raises
    ------
    TimeoutError
        If there was no worker for `timeout` seconds.
    ConnectionError
        If the scheduler is lost.
    """
    client: Any = getattr(get_scheduler(collections=[task]), "__self__", None)
    if not isinstance(client, Client):
        return task.compute()
    address = str(getattr(client.scheduler, "address", "an unknown address"))
    _log.debug("%d tasks are sent to the scheduler at %s", len(task.dask), address)
    future = client.compute(task)
    try:
        _wait_for_result(client, future, timeout, address)
        return future.result()
    except CancelledError as error:
        raise ConnectionError(f"{_NAME}: the scheduler at {address} does not answer. {_ADVICE}") from error
    finally:
        future.release()


def _wait_for_result(client: Any, future: Any, timeout: float, address: str) -> None:
    registry, last_alive = WorkerRegistry(client, _NAME, _ADVICE), time.monotonic()
    while not future.done():
        try:
            wait_for_futures([future], timeout=_POLL_INTERVAL)
        except TimeoutError:
            if client.status not in ("closed", "closing"):
                client.sync(registry.refresh)
            registry.require_scheduler()
            if registry.workers:
                last_alive = time.monotonic()
            elif time.monotonic() - last_alive > timeout:
                future.cancel()
                raise TimeoutError(
                    f"{_NAME}: the scheduler at {address} had no machine for {timeout:g} seconds. Start workers, then call again."
                ) from None
