"""`vmap`: code for one example runs on many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import to_concrete
from compgraph.context import run_isolated
from compgraph.frames import is_internal
from compgraph.graph import breadth_first
from compgraph.interception import intercepted, lent
from compgraph.profiling import EXAMPLES, exchange
from compgraph.scipy import enter_imported
from compgraph.tracing import Tracing, is_tracing, user_line_of
from compgraph.values import (
    ARGUMENTS,
    ARRAYS,
    TRACEABLE,
    VARYING,
    BatchedValueError,
    Value,
    require_computed,
    require_history,
    unwrap_buffer,
    wrap_result,
)

from ..arguments import (
    as_result,
    find_shared,
    flatten,
    is_labelled,
    lock,
    pickle_as_call,
    questions_of,
    require_aligned,
    require_array,
    require_same_by_label,
    require_same_value,
    unflatten,
)
from .active import Alive, next_level, setting
from .batch_node import BatchNode, BufferFor
from .randomness import WAYS, Watch, asking
from .values import copied, is_batch, plain_base

Axes = Any


@ops.saying(
    {"in_dims": "it is in_axes=", "out_dims": "it is out_axes=", "axis_name": "axes have no names", "chunk_size": "all at once"}
)
def vmap(
    f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None, randomness: str = "error"
) -> Callable[..., Any]:
    """The function of many examples, from that of one.

    Parameters
    ----------
    f : callable
        A function of one example: of arrays, nested in any way, that returns arrays, nested in any way.
    in_axes : int, None, or sequence of them
        Along which axis of each argument the examples lie; None for an argument that is the same for all. A sequence has an
        entry for each argument, which may nest as that does, or as its upper part does.
    out_axes : int, None, or nested as the result
        Along which axis of each result the examples shall lie; None for a result that is the same for all.
    axis_size : int, optional
        How many examples there are, where no argument tells.
    randomness : {"error", "different", "same"}
        What is done about random numbers that `f` draws: an error (the default), another draw for each example, or one draw
        that all examples share. A generator that `f` makes from a seed draws the same for all in any case, as in a loop.

    Returns
    -------
    callable
        The function of arrays with one more axis. Arguments given by keyword have theirs first, as JAX has it.

    Raises
    ------
    TypeError
        If `in_axes` or `out_axes` does not nest as the arguments, or the result, do; when called: where `f` takes a number of
        an example (``if x > 0``, ``float(x)``), or asks for results of different shapes (``x[x > 0]``).
    ValueError
        When called: if the arguments have different numbers of examples, or none tells how many there are.

    Notes
    -----
    `f` is called once. What it computes, it computes for all examples together; what NumPy has no form of that takes a further
    axis runs example by example. In-place writes change the examples of `f`'s own arrays, never the caller's. Operators stand
    inside `f`, or around the function of many, to any depth; pictures draw what was recorded as a box.

    Examples
    --------
    >>> import numpy as np
    >>> import autodiff as ad
    >>> vmap(np.dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [2.0, 0.0]]))
    array([3., 6.])
    >>> loss = lambda w, x: np.sum(np.tanh(w * x))
    >>> vmap(ad.grad(loss), in_axes=(None, 0))(np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    >>> vmap(ad.hessian(loss), in_axes=(None, 0))(np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2, 2)
    >>> noisy = vmap(lambda x: x + np.random.default_rng(0).normal())  # seeded within: the same for all
    >>> bool(np.ptp(noisy(np.zeros(3))) == 0)
    True
    """
    if randomness not in WAYS:
        raise ValueError(f"vmap: randomness is 'error', 'different' or 'same', not {randomness!r}")

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        if any(map(is_labelled, leaves)):
            require_aligned("vmap", [(f"argument {k}", leaf) for k, leaf in enumerate(leaves)])
        axes = _axes_of(in_axes, args, kwargs)
        arrays = [_checked(x, axis) for x, axis in zip(leaves, axes, strict=True)]
        count = _count(arrays, axes, axis_size)
        level = next_level()
        shared = find_shared(arrays)
        given = [_given(x, axis, level, k in shared) for k, (x, axis) in enumerate(zip(arrays, axes, strict=True))]
        with Alive((level,)):
            results = run_isolated(_run, f, unflatten(structure, given), level, count, randomness)
            found, nesting = _results(results, level, count, out_axes)
        if not is_tracing() and not any(isinstance(x, Value) for x in leaves):
            found = [out.value if isinstance(out, Value) and not _has_variables(out) else out for out in found]
            if count and out_axes == 0:
                call = functools.partial(_plainly, f, structure)
                if any(map(is_labelled, leaves)):
                    first = [x if axis is None else _first_of(x, axis) for x, axis in zip(leaves, axes, strict=True)]
                    require_same_by_label("vmap", first, call, [out[0] for out in found])
                if questions_of(f)[0]:
                    first = [x if axis is None else np.take(x, 0, axis) for x, axis in zip(arrays, axes, strict=True)]
                    require_same_value("vmap", f, first, call, [out[0] for out in found])
        return unflatten(nesting, found)

    return pickle_as_call(vmap, mapped, (f, in_axes, out_axes, axis_size, randomness), {})  # type: ignore[no-any-return]


def _first_of(value: Any, axis: int) -> Any:
    """The first batch element of an array, which may be labelled."""
    if hasattr(value, "iloc"):
        return value.iloc[:, 0] if axis % value.ndim else value.iloc[0]
    return value[(slice(None),) * (axis % np.ndim(value)) + (0,)]


def _plainly(f: Callable[..., Any], structure: Any, *leaves: Any) -> Any:
    args, kwargs = unflatten(structure, leaves)
    return f(*args, **kwargs)


def _run(f: Callable[..., Any], given: Any, level: int, count: int, randomness: str) -> Any:
    """What the function gives for all examples."""
    enter_imported()
    args, kwargs = given
    given_all = (*args, *kwargs.values())
    asks = randomness != "same"
    around = setting(_title(f, count), level, count, BufferFor(level, count), asking(randomness, level, count))
    with Tracing(), around, intercepted(f, given_all, asks, kept=given_all) as opened:
        if not asks or opened.is_closed:
            return _called(f, args, kwargs)
        with Watch(f, given_all) as watch:
            result = _called(f, args, kwargs)
    watch.require_unused()
    return result


def _title(f: Any, count: int) -> str:
    """What a picture writes over the part of a graph that is of many examples."""
    name = str(getattr(f, "__name__", "<lambda>")).rpartition(".")[2]
    return f"vmap × {count}" if name == "<lambda>" else f"vmap {name} × {count}"


def _called(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return f(*map(lent, args), **{name: lent(value) for name, value in kwargs.items()})
    except IndexError as error:
        if "arrays used as indices" not in str(error):
            raise
        raise TypeError(
            "vmap: a plain array was indexed by a value that differs between the examples, of which it knows nothing; use "
            f"cg.take(array, index, axis=0), or cg.constant(array)[index]{_place(error)}"
        ) from error
    except (TypeError, ValueError) as error:
        if "read-only" in str(error) and len(error.args) == 1 and any(map(_is_read_only, flatten((args, kwargs))[0])):
            error.args = (
                f"{error}: vmap: the function writes into an argument that all examples share (in_axes None), or that "
                "shares memory with another argument: examples would change each other. Copy it inside the function (np.copy)",
            )
        if _is_ours(error):
            error.args = (f"{error}{_place(error)}",)
        raise


def _is_read_only(value: Any) -> bool:
    """Whether an argument is an array that `_given` has made read-only."""
    memory = plain_base(value)
    return isinstance(memory, np.ndarray) and not memory.flags.writeable


def _is_ours(error: BaseException) -> bool:
    """Whether an error is one of vmap's own, that does not yet name the user's line; a user's own stays as it is."""
    if len(error.args) != 1 or not isinstance(said := error.args[0], str) or 'File "' in said:
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_raised_here = trace is not None and is_internal(trace.tb_frame.f_code.co_filename)
    return is_raised_here and (isinstance(error, BatchedValueError) or "vmap" in said)


def _place(error: BaseException) -> str:
    """The user's line that an error came through, for a message."""
    line = user_line_of(error)
    return "" if line is None else f" ({line})"


def _results(result: Any, level: int, count: int, out_axes: Axes) -> tuple[list[Any], Any]:
    """The results for the caller, as leaves and how they nest."""
    outs, structure = flatten(result)
    axes = _spread("out_axes", out_axes, structure, result, len(outs))
    found = [_taken(as_result(out), axis, level, count) for out, axis in zip(outs, axes, strict=True)]
    return [to_concrete(out) if isinstance(out, Value) else out for out in found], structure


def _has_variables(out: Value) -> bool:
    """Whether a result depends on a variable of the caller's; what derivatives within were computed by is a graph as well."""
    return any(type(n) in _VARIABLES for n in breadth_first(out))


_VARIABLES = VARYING | ARGUMENTS


# ------------------------------------------------------------------------------------------------- arguments


def _axes_of(in_axes: Axes, args: Sequence[Any], kwargs: Any) -> list[int | None]:
    """The axis of each leaf of the arguments."""
    if in_axes is None or isinstance(in_axes, (int, np.integer)):
        each: Sequence[Any] = [in_axes] * len(args)
    elif isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(in_axes)} entries, but {len(args)} arguments were given by position")
        each = in_axes
    else:
        raise TypeError(f"vmap: in_axes is an axis, None, or a sequence with an entry for each argument, not {in_axes!r}")
    found: list[int | None] = []
    for axis, arg in zip(each, args, strict=True):
        leaves, structure = flatten(arg)
        found += _spread("in_axes", axis, structure, arg, len(leaves))
    for value in kwargs.values():
        found += [0] * len(flatten(value)[0])
    return found


def _spread(name: str, axes: Any, structure: Any, tree: Any, count: int) -> list[int | None]:
    """The axis of each leaf of a tree, from axes that nest as its upper part does."""
    if axes is None or (isinstance(axes, (int, np.integer)) and not isinstance(axes, bool)):
        return [axes if axes is None else int(axes)] * count
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        parts = [(axes[key], tree[key]) for key in sorted(tree)]
    elif isinstance(axes, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axes) == len(tree):
        parts = list(zip(axes, tree, strict=True))
    else:
        raise TypeError(f"vmap: {name} {axes!r} does not nest as what it is for, {structure}")
    found: list[int | None] = []
    for axis, part in parts:
        leaves, below = flatten(part)
        found += _spread(name, axis, below, part, len(leaves))
    return found


def _checked(value: Any, axis: int | None) -> Any:
    """An argument that has an axis of examples, as an array or node."""
    if axis is None:
        return value
    require_history(value)
    require_computed(value, "an argument of vmap")
    require_array(value, "an argument of vmap")
    array = value if isinstance(value, Value) else np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"vmap: an argument, {value!r}, holds no numbers; pass it by in_axes None, or by functools.partial")
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"vmap: in_axes asks for axis {axis} of an argument of shape {array.shape}")
    return array


def _count(arrays: list[Any], axes: list[int | None], axis_size: int | None) -> int:
    """How many examples there are."""
    counts = {x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None}
    if axis_size is not None:
        counts.add(axis_size)
    if not counts:
        raise ValueError("vmap: no argument has an axis of examples; give one of in_axes, or axis_size")
    if len(counts) > 1:
        shapes = ", ".join(f"{x.shape} along axis {axis}" for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        said = "" if axis_size is None else f"; axis_size is {axis_size}"
        raise ValueError(f"vmap: the arguments have different numbers of examples: shapes {shapes}{said}")
    return int(counts.pop())


def _given(value: Any, axis: int | None, level: int, is_shared: bool) -> Any:
    """An argument as passed to the function. It is read-only if it is not batched, or shares memory with another one."""
    if axis is None:
        if type(value) not in ARRAYS:
            return value
        seen = unwrap_buffer(value).view()
        seen.flags.writeable = False
        return wrap_result(seen, (value,)) if type(value) in TRACEABLE else seen
    moved = np.moveaxis(value, axis, 0) if axis % value.ndim else value
    if is_shared:
        made = BatchNode.create_using(copied(moved), level, is_array=moved.ndim > 1)
        lock(made)
        return made
    return BatchNode.lent(moved, level, is_array=moved.ndim > 1)


# --------------------------------------------------------------------------------------------------- results


def _taken(out: Any, axis: int | None, level: int, count: int) -> Any:
    """A result for the caller, its examples along an axis."""
    if is_batch(out):
        if out.level > level:
            raise TypeError("vmap: the function returned a value of a vmap inside it, which has returned")
        if out.level == level:
            if axis is None:
                raise ValueError("vmap: out_axes is None for a result that differs between the examples")
            values = out.values
            if is_batch(values) and values.level > level:
                raise TypeError("vmap: a value of a vmap inside was written into one of this, and outlived it")
            root = out if out.root is None else out.root
            is_theirs = root.borrows_values or root is not out or not plain_base(values).flags.writeable
            if is_theirs and not isinstance(values, Value):
                values = np.array(values)
            return _placed(values, axis)
    value = unwrap_buffer(out)
    if axis is None:
        return value
    if not isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        raise TypeError(f"vmap: the function returned a {type(value).__name__}, which is no array{_advice(value)}")
    shared = np.broadcast_to(value, (count, *np.shape(value)))
    return _placed(shared if isinstance(shared, Value) else np.array(shared), axis)


def _advice(value: Any) -> str:
    return "; it lacks a return statement" if value is None else ""


def _placed(values: Any, axis: int) -> Any:
    if not -values.ndim <= axis < values.ndim:
        raise ValueError(f"vmap: out_axes asks for axis {axis} of a result of shape {values.shape}")
    return np.moveaxis(values, 0, axis) if axis % values.ndim else values


def _numbers_of(result: Any) -> tuple[Any, ...]:
    """The arrays of all examples that results are."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return tuple([plain_base(part) for part in parts if is_batch(part)])


exchange(BatchNode, "process", lambda profiler, _, __, function, *___: profiler.begin_here(EXAMPLES, function), _numbers_of)
