"""The worker side: sums of the loss and its gradient over some shards of a batch.

An actor holds the loss and stored arrays. It has no state of steps, parameters or other machines, so a request may be
repeated on the same machine or another one.
"""

from __future__ import annotations

import os
import socket
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from distributed.protocol import pickle as _pickle
from tblib import Traceback

from compgraph.compiled import jit
from compgraph.context import recording_on
from compgraph.graph import to_values
from compgraph.values import INERT, Value

from ...arguments import flatten, unflatten
from ...operators import grad, value_and_grad
from .shards import ShardRange, Sums, sum_by_tree, tree_nodes_within

_CHAIN_MARKERS = ("\nThe above exception was the direct cause", "\nDuring handling of the above exception")
WarningList = list[tuple[type[Warning], str]]
pickle: Any = _pickle  # Dask's pickle sends functions of the main module and of notebooks with their code


class Request(NamedTuple):
    """The computation of one step, the same for all machines.

    Attributes
    ----------
    order : int
        The number of directional derivatives before the gradient; see `differentiate_along`.
    with_gradient : bool
        Whether to compute the gradient, or the value alone.
    parameters, batch : bytes
        The structures of the parameters and of the batch: pickled trees, whose leaves are the indices of the leaves.
    leaves : list of array
        The leaves of the parameters, then the directions.
    """

    order: int
    with_gradient: bool
    parameters: bytes
    batch: bytes
    leaves: list[Any]


class ShareRequest(NamedTuple):
    """The share of one machine in a step.

    A named tuple is pickled as one object, whereas Dask serializes several arguments separately.

    Attributes
    ----------
    request : Request
        The computation.
    arrays : list
        The rows of each array, as an array or a `RemoteRows`.
    bounds : list of int
        The first row of each shard of the batch, and the number of rows.
    shards : tuple
        The shards to compute.
    evict : list of str
        The keys of stored arrays to delete.
    """

    request: Request
    arrays: list[Any]
    bounds: list[int]
    shards: ShardRange
    evict: list[str]


class RemoteRows(NamedTuple):
    """Rows of an array that is stored with the machines, by its key."""

    key: str
    rows: Any


class ShareSums(NamedTuple):
    """Sums at nodes of the tree, with the dtype of the value, the duration in seconds, and the warnings."""

    sums: dict[ShardRange, Sums]
    dtype: np.dtype[Any]
    seconds: float
    warnings: WarningList


class FailureReport(NamedTuple):
    """An error of the loss: pickled if possible, its traceback, and both as text."""

    error: bytes | None
    tb: Traceback
    text: str

    def to_exception(self, machine: str) -> BaseException:
        """Return the error, with the traceback that it had on `machine`."""
        error: BaseException
        try:
            error = pickle.loads(self.error) if self.error else RuntimeError(self.text.strip().rpartition("\n")[2])
        except Exception:
            error = RuntimeError(self.text.strip().rpartition("\n")[2])
        error.add_note(f"raised by the loss on {machine}")
        if any(marker in self.text for marker in _CHAIN_MARKERS):  # causes are not sent with the error
            error.add_note(self.text)
        return error.with_traceback(self.tb.as_traceback())


def serialize(value: Any) -> bytes:
    """Pickle an object for another process."""
    pickled: bytes = pickle.dumps(value)
    return pickled


def process_name() -> str:
    """Return a name of this process that is unique among all hosts."""
    return f"{socket.gethostname()}:{os.getpid()}"


class LossActor:
    """The loss and stored arrays of one machine.

    Parameters
    ----------
    loss : callable or bytes
        The loss, or its pickle.
    client_process : str
        The process of the client. Warnings are sent back only from other processes; in the same process they are shown anyway.
    arrays : dict, optional
        The stored arrays, by key.
    backend : str or module, optional
        The array library of the computation; see `compgraph.jit`.
    """

    def __init__(
        self,
        loss: Callable[..., Any] | bytes,
        client_process: str,
        arrays: dict[str, np.ndarray] | None = None,
        backend: Any = None,
    ) -> None:
        self._loss, self._backend = loss, backend
        self._is_remote = process_name() != client_process
        self._arrays = {} if arrays is None else arrays
        self._functions: dict[Any, Callable[..., Any]] = {}

    def load(self) -> FailureReport | None:
        """Load the loss and its imports."""
        try:
            if isinstance(self._loss, bytes):
                self._loss = pickle.loads(self._loss)
            if self._backend is not None:
                jit(np.sin, backend=self._backend)  # imports the library, or raises
        except Exception as error:
            return _report_failure(error)
        return None

    def store(self, key: str, array: np.ndarray) -> None:
        """Store an array."""
        self._arrays[key] = array

    def compute_sums(self, share: ShareRequest) -> ShareSums | FailureReport:
        """Compute the sums at the tree nodes within a range of shards, or report the error of the loss."""
        for key in share.evict:
            self._arrays.pop(key, None)
        try:
            with warnings.catch_warnings(record=True) if self._is_remote else nullcontext() as caught:
                result = self._compute_sums(share)
        except BaseException as error:  # any error of the loss, even SystemExit, is raised at the client
            return _report_failure(error)
        return result._replace(warnings=[(w.category, str(w.message)) for w in caught or ()])

    def _compute_sums(self, share: ShareRequest) -> ShareSums:
        start = time.perf_counter()
        request, rows_or_keys, bounds, shards, _ = share
        leaves = [np.array(x, order="C")[()] for x in request.leaves]  # the layout determines the bits of sums
        arrays = [self._arrays[x.key][x.rows] if isinstance(x, RemoteRows) else x for x in rows_or_keys]
        dtypes = []

        def leaf(shard: int) -> Sums:
            low, high = (bounds[g] - bounds[shards[0]] for g in (shard, shard + 1))
            rows = [np.array(x[low:high], order="C") for x in arrays]
            value, gradient = self._evaluate(request, leaves, rows)
            dtypes.append(value.dtype)
            return [np.multiply(value, high - low, dtype=np.float64), *gradient]

        with recording_on():
            nodes = tree_nodes_within(shards, (0, len(bounds) - 1))
            sums = {node: [np.asarray(s) for s in sum_by_tree(leaf, node)] for node in nodes}
        return ShareSums(sums, dtypes[0], time.perf_counter() - start, [])

    def _evaluate(self, request: Request, leaves: list[Any], rows: list[np.ndarray]) -> tuple[Any, list[Any]]:
        """Return the mean of the loss over some rows, and the gradient of its sum over them."""
        (total, value), gradient = self._function_for(request)(leaves, rows)
        if any(isinstance(x, Value) and type(x) not in INERT for x in (total, value, *gradient)):
            raise TypeError(
                "DataParallel: the loss uses a node of an enclosing scope, so its derivative would be lost. Pass it as a "
                "parameter, or use its value (node.value)."
            )
        value = np.asarray(to_values(value))
        if value.shape or value.dtype.kind != "f":
            raise ValueError(f"DataParallel: the loss must return a real scalar, the mean over its rows, not {value!r}.")
        return value, [to_values(g) for g in gradient]

    def _function_for(self, request: Request) -> Callable[..., Any]:
        """Return the function of a request, from a cache, because every step uses the same functions."""
        key = request.order, request.with_gradient, request.parameters, request.batch
        if key not in self._functions:
            if len(self._functions) > 100:
                self._functions.clear()
            function = _sum_and_gradient(self._loss, request)
            self._functions[key] = function if self._backend is None else jit(function, backend=self._backend)
        return self._functions[key]


def _sum_and_gradient(loss: Any, request: Request) -> Callable[..., Any]:
    """Return a function of parameters and rows: the sum of the loss over the rows, its mean, and the gradient of the sum."""
    parameters, batch = (flatten(pickle.loads(tree))[1] for tree in (request.parameters, request.batch))

    def evaluate(leaves: list[Any], rows: list[np.ndarray]) -> tuple[Any, list[Any]]:
        arrays = unflatten(batch, rows)

        def mean(leaves: list[Any]) -> Any:
            return loss(unflatten(parameters, leaves), *arrays)

        f = differentiate_along(mean, request.order)

        def total_and_mean(leaves: list[Any]) -> Any:
            value = f(leaves)
            return value * len(rows[0]), value

        return value_and_grad(total_and_mean, has_aux=True)(leaves) if request.with_gradient else ((0, f(leaves)), [])

    evaluate.__qualname__ = getattr(loss, "__qualname__", type(loss).__qualname__)  # the name in errors
    return evaluate


def differentiate_along(f: Callable[[list[Any]], Any], order: int) -> Callable[[list[Any]], Any]:
    """Return a directional derivative of `f`. The directions follow the leaves; each order doubles their number.

    ``f1(p, v) = sum(grad f(p) * v)``, ``f2(p, v, u, w) = sum(grad f1(p, v) * (u, w))`` and so on. The directional derivative of
    a mean over rows is a mean over rows, so derivatives of every order are summed in the same way.
    """
    if order == 0:
        return f
    inner = differentiate_along(f, order - 1)

    def directional(leaves: list[Any]) -> Any:
        half = len(leaves) // 2
        gradient = grad(inner)(leaves[:half])
        return sum(np.sum(g * v) for g, v in zip(gradient, leaves[half:], strict=True))

    return directional


def _report_failure(error: BaseException) -> FailureReport:
    """Return a report of an error, with a traceback that starts in the loss."""
    tb = error.__traceback__
    frame = tb
    while frame is not None and frame.tb_next is not None:  # skip the library's frames
        frame = frame.tb_next
        if frame.tb_frame.f_code.co_filename != __file__ and not _is_library_frame(frame):
            tb = frame
            break
    try:
        pickled = pickle.dumps(error.with_traceback(None))
        pickle.loads(pickled)
    except Exception:
        pickled = None
    return FailureReport(pickled, Traceback(tb), "".join(traceback.format_exception(type(error), error, tb)))


def _is_library_frame(frame: Any) -> bool:
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in ("autodiff", "compgraph", "optree")
