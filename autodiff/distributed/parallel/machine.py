"""The worker side: the loss and its gradient over some grains of a batch.

A machine holds the loss and the arrays stored with it. It has no data about steps, parameters or other machines, so a request may
be sent to it twice, and its arrays can be sent to another.
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
from .grains import Run, Sums, folded, nodes_within

_CAUSES = ("\nThe above exception was the direct cause", "\nDuring handling of the above exception")
Warned = list[tuple[type[Warning], str]]
pickle: Any = _pickle  # Dask's: functions of the main module and of notebooks travel with their code


class Request(NamedTuple):
    """The computation of one step; each machine receives it with its rows.

    Attributes
    ----------
    order : int
        The number of directional derivatives taken before the gradient; see `along`.
    slopes : bool
        Whether to compute the gradient, or the value alone.
    parameters, batch : bytes
        The structures of the parameters and of the arrays of the batch: trees of the numbers of their leaves, pickled.
    leaves : list of array
        The parameters, and the directions.
    """

    order: int
    slopes: bool
    parameters: bytes
    batch: bytes
    leaves: list[Any]


class Share(NamedTuple):
    """The work of one machine in a step. (One named tuple is pickled at once; Dask inspects several arguments individually.)

    Attributes
    ----------
    request : Request
        The computation.
    pieces : list
        The rows of each array, as an array or a `Part`.
    bounds : list of int
        The rows at which all grains begin, and the end.
    run : tuple
        The grains of the rows.
    forget : list of str
        Arrays to drop.
    """

    request: Request
    pieces: list[Any]
    bounds: list[int]
    run: Run
    forget: list[str]


class Part(NamedTuple):
    """Rows of an array that was left with the machines."""

    key: str
    rows: Any


class ShareSums(NamedTuple):
    """A machine's answer: sums at nodes of the tree, the value's dtype, the seconds it took, and the warnings."""

    sums: dict[Run, Sums]
    dtype: np.dtype[Any]
    took: float
    warned: Warned


class Failed(NamedTuple):
    """An error in the loss: pickled, if that is possible; its traceback; and both as text."""

    error: bytes | None
    place: Traceback
    text: str

    def raised(self, machine: str) -> BaseException:
        """The error, to be raised here with the traceback it had on `machine`."""
        error: BaseException
        try:
            error = pickle.loads(self.error) if self.error else RuntimeError(self.text.strip().rpartition("\n")[2])
        except Exception:
            error = RuntimeError(self.text.strip().rpartition("\n")[2])
        error.add_note(f"raised by the loss on {machine}")
        if any(said in self.text for said in _CAUSES):  # causes are not sent with the error
            error.add_note(self.text)
        return error.with_traceback(self.place.as_traceback())


def packed(thing: list[int] | dict[str, Any] | Callable[..., Any]) -> bytes:
    """An object, pickled for other processes."""
    sent: bytes = pickle.dumps(thing)
    return sent


def process() -> str:
    """A name of this process that no other has, here or on another host."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Machine:
    """A loss, and the data that was left with it.

    Parameters
    ----------
    loss : callable or bytes
        The loss, perhaps pickled.
    owner : str
        The process of the client. A machine in another process sends warnings back; in the same they are shown anyway.
    kept : dict, optional
        The data, by key.
    backend : str or module, optional
        The array library that computes; see `compgraph.jit`.
    """

    def __init__(
        self, loss: Callable[..., Any] | bytes, owner: str, kept: dict[str, np.ndarray] | None = None, backend: Any = None
    ) -> None:
        self._loss, self._backend = loss, backend
        self._is_apart = process() != owner
        self._kept = {} if kept is None else kept
        self._functions: dict[Any, Callable[..., Any]] = {}

    def ready(self) -> Failed | None:
        """Load the loss and its imports."""
        try:
            if isinstance(self._loss, bytes):
                self._loss = pickle.loads(self._loss)
            if self._backend is not None:
                jit(np.sin, backend=self._backend)  # imports the library, or says what is missing
        except Exception as error:
            return _failed(error)
        return None

    def keep(self, key: str, array: np.ndarray) -> None:
        """Hold an array."""
        self._kept[key] = array

    def sums(self, share: Share) -> ShareSums | Failed:
        """The sums over the rows of a run of grains."""
        for key in share.forget:
            self._kept.pop(key, None)
        try:
            with warnings.catch_warnings(record=True) if self._is_apart else nullcontext() as warned:
                result = self._sums(share)
        except BaseException as error:  # whatever the loss raises, even SystemExit, is raised at the client
            return _failed(error)
        return result._replace(warned=[(w.category, str(w.message)) for w in warned or ()])

    def _sums(self, share: Share) -> ShareSums:
        start = time.perf_counter()
        request, pieces, bounds, run, _ = share
        leaves = [np.array(x, order="C")[()] for x in request.leaves]  # one layout, so that sums have the same bits
        arrays = [self._kept[x.key][x.rows] if isinstance(x, Part) else x for x in pieces]
        dtypes = []

        def leaf(grain: int) -> Sums:
            low, high = (bounds[g] - bounds[run[0]] for g in (grain, grain + 1))
            rows = [np.array(x[low:high], order="C") for x in arrays]
            value, slopes = self._evaluated(request, leaves, rows)
            dtypes.append(value.dtype)
            return [np.multiply(value, high - low, dtype=np.float64), *slopes]

        with recording_on():
            node_sums = {node: [np.asarray(s) for s in folded(leaf, node)] for node in nodes_within(run, (0, len(bounds) - 1))}
        return ShareSums(node_sums, dtypes[0], time.perf_counter() - start, [])

    def _evaluated(self, request: Request, leaves: list[Any], rows: list[np.ndarray]) -> tuple[Any, list[Any]]:
        """The value for some rows, and the gradient of their sum."""
        (total, value), slopes = self._function(request)(leaves, rows)
        if any(isinstance(x, Value) and type(x) not in INERT for x in (total, value, *slopes)):
            raise TypeError(
                "DataParallel: the loss uses a node from outside, whose derivative would be lost on the way; give it among the "
                "parameters, or as numbers (node.value)"
            )
        value = np.asarray(to_values(value))
        if value.shape or value.dtype.kind != "f":
            raise ValueError(f"DataParallel: the loss is a real scalar, the mean over the rows it is given, not {value!r}")
        return value, [to_values(s) for s in slopes]

    def _function(self, request: Request) -> Callable[..., Any]:
        """Return the function of a request; retained, because every step sends the same ones."""
        key = request.order, request.slopes, request.parameters, request.batch
        if key not in self._functions:
            if len(self._functions) > 100:
                self._functions.clear()
            function = _sum_and_gradient(self._loss, request)
            self._functions[key] = function if self._backend is None else jit(function, backend=self._backend)
        return self._functions[key]


def _sum_and_gradient(loss: Any, request: Request) -> Callable[..., Any]:
    """Return a function of the parameters and of some rows: the sum of the loss over the rows, its mean, and the gradient."""
    order, slopes = request.order, request.slopes
    parameters, batch = (flatten(pickle.loads(tree))[1] for tree in (request.parameters, request.batch))

    def evaluate(leaves: list[Any], rows: list[np.ndarray]) -> tuple[Any, list[Any]]:
        arrays = unflatten(batch, rows)

        def mean(leaves: list[Any]) -> Any:
            return loss(unflatten(parameters, leaves), *arrays)

        f = along(mean, order)

        def summed(leaves: list[Any]) -> Any:
            value = f(leaves)
            return value * len(rows[0]), value

        return value_and_grad(summed, has_aux=True)(leaves) if slopes else ((0, f(leaves)), [])

    evaluate.__qualname__ = getattr(loss, "__qualname__", type(loss).__qualname__)  # the name in errors
    return evaluate


def along(f: Callable[[list[Any]], Any], order: int) -> Callable[[list[Any]], Any]:
    """A function differentiated `order` times along directions, which follow the leaves; each doubles their number.

    ``f1(p, v) = sum(grad f(p) * v)``, ``f2(p, v, u, w) = sum(grad f1(p, v) * (u, w))`` and so on. For a mean over rows
    each is a mean over rows too, so derivatives of every order are summed as the first is.
    """
    if order == 0:
        return f
    inner = along(f, order - 1)

    def directional(leaves: list[Any]) -> Any:
        half = len(leaves) // 2
        slopes = grad(inner)(leaves[:half])
        return sum(np.sum(s * v) for s, v in zip(slopes, leaves[half:], strict=True))

    return directional


def _failed(error: BaseException) -> Failed:
    """An error as it is sent, with a traceback from the first line of the loss on."""
    place = error.__traceback__
    step = place
    while step is not None and step.tb_next is not None:  # skip the library's frames
        step = step.tb_next
        if step.tb_frame.f_code.co_filename != __file__ and not _is_ours(step):
            place = step
            break
    try:
        sent = pickle.dumps(error.with_traceback(None))
        pickle.loads(sent)
    except Exception:
        sent = None
    return Failed(sent, Traceback(place), "".join(traceback.format_exception(type(error), error, place)))


def _is_ours(step: Any) -> bool:
    return str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in ("autodiff", "compgraph", "optree")
