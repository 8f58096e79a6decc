"""Derivatives of a loss over data larger than memory: Dask arrays, one block of rows at a time.

Each block is one task, which loads its rows, differentiates the loss there, and returns its value and gradient. Dask fuses it
with the tasks that make the block, so that no block outlives its task. Values and gradients are summed by a tree that depends on
the number of blocks alone, so the bits do not depend on the assignment of blocks to workers, or on timing.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from compgraph.context import default_dtype, default_float
from compgraph.values import Value, describe, require_computed

from .. import operators
from ..arguments import Argnums, Arguments, flatten, unflatten
from .computing import compute_task

_NAME = "distributed.value_and_grad"


def value_and_grad(
    loss: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, wait: float = 60.0
) -> Callable[..., Any]:
    """The value and gradient of a mean over the rows of arrays that need not fit into memory.

    Parameters
    ----------
    loss : callable
        A function of parameters and arrays that returns the mean of something over the rows of the arrays it is given: a
        scalar, or with `has_aux` a pair of it and anything else.
    argnums : int, str, or sequence of them
        The arguments that are the parameters, as in `autodiff.value_and_grad`. They go to every block whole.
    has_aux : bool
        Whether `loss` returns a pair ``(value, aux)``.
    wait : float
        With a distributed client: after how many seconds without a machine a TimeoutError is raised.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (value, gradient)``, or ``((value, aux), gradient)`` with a list of each
        block's `aux`, in order. Of the other arguments, also nested, at least one is a ``dask.array``. Its blocks
        along the first axis are what `loss` is given; along other axes they are joined. The other arrays, of Dask and of
        NumPy, are cut alike. Everything else goes to every block as it is; an array whose first axis is not the
        rows must be a parameter, or bound by ``functools.partial``.

    Raises
    ------
    TypeError
        When called: if no argument is a ``dask.array``, a parameter is one or holds a node, or the loss uses an outer node;
        and as in `autodiff.value_and_grad`.
    ValueError
        When called: if the arrays have different numbers of rows, none, or unknown ones; and as in `autodiff.value_and_grad`.
    TimeoutError, ConnectionError
        When called, with a distributed client: if no machine is there for `wait` seconds; if the scheduler is lost.

    Notes
    -----
    The scheduler is the one that Dask would use: threads, what ``dask.config.set(scheduler="synchronous")`` says, or the
    current ``distributed.Client``. Each thread at work holds one block of rows of each array, and what `loss` makes of it; Dask
    holds all of an array whose first block depends on all of it (``x - x.mean(axis=0)``), so compute such a mean first. The
    bits are the same with any scheduler on machines of one kind, but depend on how the arrays are cut. The gradient of a mean
    over all rows is the mean of the gradients of the blocks, weighted by rows: sum_i n_i/n grad f(X_i, p).

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
    def differentiated(*args: object, **kwargs: object) -> Any:
        arguments = Arguments(_NAME, loss, args, kwargs, argnums)
        _require_parameters(arguments)
        row_arguments = DataArguments(arguments)
        value, *gradient_leaves = compute_task(
            _summed(_parts(Block(arguments, row_arguments, has_aux), arguments, row_arguments)), wait
        )
        aux = gradient_leaves.pop() if has_aux else None
        return ((value, aux) if has_aux else value), arguments.nest(gradient_leaves)

    return differentiated


def _require_parameters(arguments: Arguments) -> None:
    """Raise for parameters that are not computed yet, or are nodes: blocks are differentiated where their graph is not known."""
    for name, leaf in zip(arguments.names, arguments.leaves, strict=True):
        if isinstance(leaf, da.Array):
            raise TypeError(
                f"{_NAME}: {name} is a dask Array, but a parameter, which every block is given whole; give its numbers "
                "(.compute()), or say by argnums which arguments are the parameters"
            )
        if isinstance(leaf, Value):
            raise TypeError(
                f"{_NAME}: {name} is a node, the {describe(leaf)}, and a derivative by blocks does not continue in its "
                "graph; give node.value"
            )
    arguments.arrays()


class Rows:
    """Stands among the arguments for a block's rows of an array."""

    def __init__(self, place: int) -> None:
        self.place = place


class DataArguments:
    """The arguments that are not parameters.

    Attributes
    ----------
    arrays : list of dask.array.Array
        The arrays with rows, all with the same chunks along the first axis.
    template : tuple of list and dict
        All arguments, with `Rows` for the arrays, and None for the parameters.
    chunks : tuple of int
        The number of rows of each block.
    """

    def __init__(self, arguments: Arguments) -> None:
        hidden = [None if place in arguments.selected else a for place, a in enumerate(arguments.args)]
        named = {name: None if name in arguments.selected else a for name, a in arguments.kwargs.items()}
        leaves, structure = flatten((hidden, named))
        names = [path[2:].codify(f"argument {path[1].entry!r}") for path in structure.accessors()]
        row_leaves = [(k, name) for k, name in enumerate(names) if _has_rows(leaves[k], name)]
        self.chunks = _chunks([leaves[k] for k, _ in row_leaves])
        self.arrays = [_cut(leaves[k], self.chunks, name) for k, name in row_leaves]
        _require_arrays((*hidden, *named.values()), sum(self.chunks))
        for place, (k, _) in enumerate(row_leaves):
            leaves[k] = Rows(place)
        self.template = unflatten(structure, leaves)


def _has_rows(leaf: object, name: str) -> bool:
    """Whether an argument is data, which is divided into blocks of rows; raise if it is neither data nor a plain value."""
    if isinstance(leaf, Value):
        raise TypeError(f"{_NAME}: {name} is a node, the {describe(leaf)}; give node.value")
    if isinstance(leaf, da.Array):
        if leaf.ndim == 0:
            raise TypeError(f"{_NAME}: {name} is a single number that is not computed yet; give its value (.compute())")
        return True
    if hasattr(leaf, "to_dask_array"):
        raise TypeError(f"{_NAME}: {name} is a dask {type(leaf).__name__}; give its array, .to_dask_array(lengths=True)")
    require_computed(leaf, f"{_NAME}: {name}")
    return isinstance(leaf, np.ndarray) and leaf.ndim > 0


def _chunks(arrays: Sequence[Any]) -> tuple[int, ...]:
    """How many rows each block has: as in the first Dask array."""
    first = next((x for x in arrays if isinstance(x, da.Array)), None)
    if first is None:
        raise TypeError(
            f"{_NAME}: none of the arguments beside the parameters is a dask.array; for arrays that are in memory there is "
            "autodiff.value_and_grad, and dask.array.from_array cuts one into blocks"
        )
    chunks: tuple[int, ...] = first.chunks[0]
    if sum(_known(chunks)) == 0:
        raise ValueError(f"{_NAME}: the arrays have no rows, and a mean over none is not defined")
    return chunks


def _known(chunks: tuple[int, ...]) -> tuple[int, ...]:
    if any(n != n for n in chunks):  # nan
        raise ValueError(
            f"{_NAME}: the blocks of a dask.array have unknown numbers of rows; x.compute_chunk_sizes() finds them, in place"
        )
    return chunks


def _cut(array: Any, chunks: tuple[int, ...], name: str) -> Any:
    """An array in blocks of rows; other axes stay as they are cut."""
    rows = sum(_known(array.chunks[0])) if isinstance(array, da.Array) else len(array)
    if rows != sum(chunks):
        raise ValueError(
            f"{_NAME}: {name} has {rows} rows, the first array {sum(chunks)}; all arrays beside the parameters are cut by rows, "
            "and one that has none is a parameter (argnums), or bound by functools.partial"
        )
    if not isinstance(array, da.Array):
        return da.from_array(array, chunks=(chunks, *[(n,) for n in array.shape[1:]]), name=False)
    return array if array.chunks[0] == chunks else array.rechunk({0: chunks}, method="tasks")


def _require_arrays(arguments: Sequence[Any], rows: int) -> None:
    """Raise for a list of as many numbers as there are rows: it would go to every block whole."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)) and len(argument) == rows and all(map(np.isscalar, argument)):
            raise TypeError(f"{_NAME}: a list of {rows} numbers is not cut into blocks as an array is; give np.array(...)")


class Block:
    """The value and gradient of one block, as a callable. It is sent to where the block is, with all that it needs."""

    def __init__(self, arguments: Arguments, row_arguments: DataArguments, has_aux: bool) -> None:
        self.loss, self.places, self.template = arguments.f, arguments.selected, row_arguments.template
        self.rows, self.has_aux = sum(row_arguments.chunks), has_aux
        self.number, self.errors = default_float(), np.geterr()

    def __call__(self, parameters: Sequence[Any], *blocks: Any) -> list[Any]:
        """The block's weighted share of the value, and of the gradient with respect to each leaf; with aux, that in a list."""
        return contextvars.Context().run(self._derived, parameters, [_as_anywhere(_gathered(b)) for b in blocks])

    def _derived(self, parameters: Sequence[Any], blocks: list[Any]) -> list[Any]:
        leaves, structure = flatten(self.template)
        args, kwargs = unflatten(structure, [blocks[x.place] if isinstance(x, Rows) else x for x in leaves])
        for place, tree in zip(self.places, parameters, strict=True):
            if isinstance(place, int):
                args[place] = tree
            else:
                kwargs[place] = tree
        with default_dtype(self.number), np.errstate(**self.errors):
            value, gradient = operators.value_and_grad(self.loss, tuple(self.places), self.has_aux)(*args, **kwargs)
            value, *aux = value if self.has_aux else (value,)
            numbers = [value, *flatten(gradient)[0]]
            _require_plain(numbers)
            weight = len(blocks[0]) / self.rows
            return [*[weight * x for x in numbers], *[[x] for x in aux]]


def _gathered(block: NDArray[Any] | list[NDArray[Any]], axis: int = 1) -> Any:
    """The rows of a block as one array, from its pieces along the other axes, nested in lists."""
    if isinstance(block, list):
        pieces = [_gathered(piece, axis + 1) for piece in block]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)
    if type(block) is not np.ndarray:
        raise TypeError(
            f"{_NAME}: the blocks of an array are of class {type(block).__name__}; blocks of NumPy's arrays are differentiated "
            "(x.map_blocks(np.asarray) converts them)"
        )
    return block


def _as_anywhere(block: NDArray[Any]) -> Any:
    """A block in one layout on every machine: one that was sent may be unaligned, and NumPy then adds in another order."""
    return np.require(block, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _require_plain(numbers: Sequence[Any]) -> None:
    if any(isinstance(x, Value) for x in numbers):
        raise TypeError(
            f"{_NAME}: the loss uses a variable from outside, whose derivative would be lost; make it a parameter, or use its "
            "numbers (variable.value)"
        )


def _parts(block: Block, arguments: Arguments, row_arguments: DataArguments) -> list[Any]:
    """A task for each block that has rows."""
    trees = [arguments.args[p] if isinstance(p, int) else arguments.kwargs[p] for p in arguments.selected]
    parameters = delayed(trees, name=f"parameters-{uuid.uuid4().hex}", traverse=False)
    axes = itertools.count(1)
    indexed = [(x, (0, *itertools.islice(axes, x.ndim - 1))) for x in row_arguments.arrays]
    together = da.blockwise(
        block,
        (0,),
        *(parameters, None),
        *itertools.chain.from_iterable(indexed),
        name=f"derivatives-{uuid.uuid4().hex}",
        meta=np.empty(0, object),
        align_arrays=False,
    )
    return [part for part, rows in zip(together.to_delayed(), row_arguments.chunks, strict=True) if rows]


def _summed(parts: list[Any]) -> Any:
    """The sum of the parts, by a tree that depends on their number alone."""
    plus = delayed(_plus, pure=False)
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [plus(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _plus(one: list[Any], other: list[Any]) -> list[Any]:
    return [x + y for x, y in zip(one, other, strict=True)]
