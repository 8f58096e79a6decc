"""`vmap`: vectorizes a function over a batch axis."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.bind import to_concrete
from compgraph.context import run_isolated
from compgraph.frames import is_internal
from compgraph.graph import breadth_first
from compgraph.interception import as_borrowed, intercept
from compgraph.profiling import BATCHED, patch_method
from compgraph.scipy import register_imported
from compgraph.tracing import Tracing, is_tracing, retracing, user_line_of
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
    find_class_check,
    find_shared_positions,
    flatten,
    is_labeled,
    make_read_only,
    pickle_as_call,
    require_aligned,
    require_array,
    require_class_independence,
    require_function,
    require_label_independence,
    unflatten,
)
from .batch_node import BatchNode, BufferWrapper
from .levels import LiveLevels, broadcast_batch, copy_values, is_batch, next_level, plain_base, vmap_scope
from .randomness import RANDOMNESS, DrawWatch, draw_interception

Axes = Any  # an axis, None, or a tree of these


@ops.reject_foreign_options(
    {
        "in_dims": "use in_axes=",
        "out_dims": "use out_axes=",
        "axis_name": "axes have no names",
        "chunk_size": "the whole batch is computed at once",
    }
)
def vmap(
    f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None, randomness: str = "error"
) -> Callable[..., Any]:
    """Vectorize a function over a batch axis of its arguments.

    Parameters
    ----------
    f : callable
        A function of one batch element. It takes and returns arrays, which may nest in lists, tuples, dictionaries, named
        tuples and dataclasses.
    in_axes : int, None, or sequence of them, default 0
        The batch axis of each positional argument; None for an argument that all batch elements share. An entry for a nested
        argument may nest in the same way, or as its upper levels do. Keyword arguments are batched along axis 0, as in JAX.
    out_axes : int, None, or tree of them, default 0
        The position of the batch axis in each result; None for a result that is not batched.
    axis_size : int, optional
        The batch size; needed if no argument is batched.
    randomness : {"error", "different", "same"}, default "error"
        What happens if `f` draws random numbers: an error is raised, each batch element gets a draw of its own, or all share
        one draw. A generator that `f` makes from a seed gives the same numbers to all elements, as in a loop.

    Returns
    -------
    callable
        The vectorized function. For an argument of shape ``s`` of `f`, it takes an array with one more axis, at `in_axes`;
        results of shape ``r`` and their dtype get one more axis, at `out_axes`.

    Raises
    ------
    TypeError
        When called: if Python needs the value of a batch element (``if x > 0``, ``float(x)``), if the shape of a result
        depends on values (``x[x > 0]``), if `f` draws random numbers and `randomness` is "error", or if `in_axes` or
        `out_axes` nests differently from the arguments or the result.
    ValueError
        If `randomness` is unknown. When called: if batch sizes differ or none is given, or an axis is out of range.

    See Also
    --------
    autodiff.jacobian : uses batches of tangents or cotangents.

    Notes
    -----
    `f` is called once, with batched values in place of arrays. Each NumPy operation is computed for the whole batch by its
    batching rule; one without a rule runs once for each batch element. `f` may write into its own arrays in place; a write into
    an argument copies it first. `vmap` composes with all operators of this package, inside and outside of `f`, as in
    JAX [1]_.

    References
    ----------
    .. [1] R. Frostig, M. J. Johnson, C. Leary, "Compiling machine learning programs via high-level tracing", SysML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import autodiff as ad
    >>> vmap(np.dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [2.0, 0.0]]))
    array([3., 6.])

    Gradients of a loss for each sample, with shared weights:

    >>> loss = lambda w, x: np.sum(np.tanh(w * x))
    >>> vmap(ad.grad(loss), in_axes=(None, 0))(np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    >>> vmap(ad.hessian(loss), in_axes=(None, 0))(np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2, 2)

    A generator with a fixed seed gives all batch elements the same numbers:

    >>> noisy = vmap(lambda x: x + np.random.default_rng(0).normal())
    >>> bool(np.ptp(noisy(np.zeros(3))) == 0)
    True
    """
    f = require_function("vmap", f)
    _require_axes(in_axes)
    if randomness not in RANDOMNESS:
        raise ValueError(f"vmap: randomness must be 'error', 'different' or 'same', not {randomness!r}")

    @functools.wraps(f)
    def mapped(*args: object, **kwargs: object) -> Any:
        leaves, structure = flatten((args, kwargs))
        has_labels = any(map(is_labeled, leaves))
        if has_labels:
            require_aligned("vmap", [(f"argument {k}", leaf) for k, leaf in enumerate(leaves)])
        axes = _argument_axes(in_axes, args, kwargs)
        arrays = [_as_batched_argument(x, axis) for x, axis in zip(leaves, axes, strict=True)]
        size = _batch_size(arrays, axes, axis_size)
        level = next_level()
        shared = find_shared_positions(arrays)
        batched = [_wrap_argument(x, axis, level, k in shared) for k, (x, axis) in enumerate(zip(arrays, axes, strict=True))]
        with LiveLevels((level,)):
            result = retracing(lambda: run_isolated(_run, f, unflatten(structure, batched), level, size, randomness))
            outs, result_structure = _unwrap_results(result, level, size, out_axes)
        if not is_tracing() and not any(isinstance(x, Value) for x in leaves):
            outs = [out.value if isinstance(out, Value) and not _has_variables(out) else out for out in outs]
            if size and out_axes == 0:
                call = functools.partial(_call_with_leaves, f, structure)
                if has_labels:
                    first = [x if axis is None else _first_element(x, axis) for x, axis in zip(leaves, axes, strict=True)]
                    require_label_independence("vmap", first, call, [out[0] for out in outs])
                if find_class_check(f)[0]:
                    first = [x if axis is None else np.take(x, 0, axis) for x, axis in zip(arrays, axes, strict=True)]
                    require_class_independence("vmap", f, first, call, [out[0] for out in outs])
        return unflatten(result_structure, outs)

    return pickle_as_call(vmap, mapped, (f, in_axes, out_axes, axis_size, randomness), {})


def _first_element(value: Any, axis: int) -> Any:
    """The first batch element of an array, which may be labeled."""
    if hasattr(value, "iloc"):
        return value.iloc[:, 0] if axis % value.ndim else value.iloc[0]
    return value[(slice(None),) * (axis % np.ndim(value)) + (0,)]


def _call_with_leaves(f: Callable[..., Any], structure: object, *leaves: object) -> Any:
    args, kwargs = unflatten(structure, leaves)
    return f(*args, **kwargs)


def _run(f: Callable[..., Any], arguments: tuple[Any, ...], level: int, size: int, randomness: str) -> Any:
    """Trace the function once for the whole batch."""
    register_imported()
    args, kwargs = arguments
    values = (*args, *kwargs.values())
    intercepts = randomness != "same"
    draw_changes = draw_interception(randomness, level, size)
    scope = vmap_scope(_scope_title(f, size), level, size, BufferWrapper(level, size), draw_changes)
    with Tracing(), scope, intercept(f, values, intercepts, unchanged=values) as interception:
        if not intercepts or interception.calls_only_numpy:
            return _call(f, args, kwargs)
        with DrawWatch(f, values) as watch:
            result = _call(f, args, kwargs)
    watch.require_unused()
    return result


def _scope_title(f: object, size: int) -> str:
    """The title of the box around the recorded nodes in drawings."""
    name = str(getattr(f, "__name__", "<lambda>")).rpartition(".")[2]
    return f"vmap × {size}" if name == "<lambda>" else f"vmap {name} × {size}"


def _call(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function; explain errors of NumPy that batched values cause, and add the user's line to errors of vmap."""
    try:
        return f(*map(as_borrowed, args), **{name: as_borrowed(value) for name, value in kwargs.items()})
    except IndexError as error:
        if "arrays used as indices" not in str(error):
            raise
        raise TypeError(
            f"vmap: a plain array was indexed by a batched value{_user_line(error)}. NumPy dispatches on the array, not on the "
            "index: use cg.take(array, index, axis=0), or cg.constant(array)[index]"
        ) from error
    except (TypeError, ValueError) as error:
        if "read-only" in str(error) and len(error.args) == 1 and any(map(_is_read_only, flatten((args, kwargs))[0])):
            error.args = (
                f"{error}: vmap: the function writes into an argument that all batch elements share (in_axes None), or that "
                "shares memory with another argument. Copy it inside the function (np.copy)",
            )
        if _is_own_error(error):
            error.args = (f"{error}{_user_line(error)}",)
        raise


def _is_read_only(value: NDArray[Any]) -> bool:
    """Whether an argument is an array that `_wrap_argument` has made read-only."""
    memory = plain_base(value)
    return isinstance(memory, np.ndarray) and not memory.flags.writeable


def _is_own_error(error: BaseException) -> bool:
    """Whether an error was raised by this package for vmap, without naming the user's line."""
    if len(error.args) != 1 or not isinstance(message := error.args[0], str) or 'File "' in message:
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_raised_here = trace is not None and is_internal(trace.tb_frame.f_code.co_filename)
    return is_raised_here and (isinstance(error, BatchedValueError) or "vmap" in message)


def _user_line(error: BaseException) -> str:
    """The user's line at which an error was raised, in parentheses."""
    line = user_line_of(error)
    return "" if line is None else f" ({line})"


def _has_variables(out: Value) -> bool:
    """Whether a result depends on a variable of the caller; otherwise only derivatives inside the function need its graph."""
    return any(type(n) in _VARIABLES for n in breadth_first(out))


_VARIABLES = VARYING | ARGUMENTS


# ------------------------------------------------------------------------------------------------- arguments


def _require_axes(in_axes: Axes) -> None:
    """Raise a TypeError unless `in_axes` consists of axes; arguments of the function are a frequent mistake."""
    leaves = flatten(in_axes)[0] if isinstance(in_axes, (tuple, list)) else [in_axes]
    if any(isinstance(leaf, Value) or not isinstance(leaf, (int, np.integer, type(None))) for leaf in leaves):
        raise TypeError(
            f"vmap: in_axes must be an int, None, or a sequence with an entry for each argument, not "
            f"{reprlib.repr(in_axes)}. vmap(f) returns a function, which takes the arguments: write vmap(f)(x)"
        )


def _argument_axes(in_axes: Axes, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int | None]:
    """The batch axis of each leaf of the arguments."""
    if in_axes is None or isinstance(in_axes, (int, np.integer)):
        entries: Sequence[Any] = [in_axes] * len(args)
    else:
        if len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(in_axes)} entries, but the function was called with {len(args)} positional arguments"
            )
        entries = in_axes
    axes: list[int | None] = []
    for entry, arg in zip(entries, args, strict=True):
        leaves, structure = flatten(arg)
        axes += _spread_axes("in_axes", entry, structure, arg, len(leaves))
    for value in kwargs.values():
        axes += [0] * len(flatten(value)[0])
    return axes


def _spread_axes(name: str, entry: Axes, structure: object, tree: object, count: int) -> list[int | None]:
    """The axis of each of the `count` leaves of a tree, from an entry that nests as the tree or its upper levels."""
    if entry is None or (isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)):
        return [entry if entry is None else int(entry)] * count
    if isinstance(entry, dict) and isinstance(tree, dict) and entry.keys() == tree.keys():
        parts = [(entry[key], tree[key]) for key in sorted(tree)]
    elif isinstance(entry, (tuple, list)) and isinstance(tree, (tuple, list)) and len(entry) == len(tree):
        parts = list(zip(entry, tree, strict=True))
    else:
        raise TypeError(f"vmap: {name} {entry!r} nests differently from its argument or result, {structure}")
    axes: list[int | None] = []
    for axis, part in parts:
        leaves, inner = flatten(part)
        axes += _spread_axes(name, axis, inner, part, len(leaves))
    return axes


def _as_batched_argument(value: object, axis: int | None) -> Any:
    """A batched argument as an array or node; others unchanged."""
    if axis is None:
        return value
    require_history(value)
    require_computed(value, "an argument of vmap")
    require_array(value, "an argument of vmap")
    array = value if isinstance(value, Value) else np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"vmap: an argument, {value!r}, is not numeric and cannot be batched. Pass it with in_axes None, or by "
            "functools.partial"
        )
    if not -array.ndim <= axis < array.ndim:
        advice = "" if array.ndim else ". A list is passed as several arguments: use np.array(...), or in_axes None for a number"
        raise ValueError(f"vmap: axis {axis} of in_axes is out of range for an argument of shape {array.shape}{advice}")
    return array


def _batch_size(arrays: Sequence[Any], axes: Sequence[int | None], axis_size: int | None) -> int:
    """The common batch size of the arguments."""
    sizes = {x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ValueError("vmap: no argument is batched, so the batch size is unknown. Pass axis_size, or an axis in in_axes")
    if len(sizes) > 1:
        shapes = ", ".join(f"{x.shape} along axis {axis}" for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        and_size = "" if axis_size is None else f"; axis_size is {axis_size}"
        raise ValueError(
            f"vmap: the arguments have different batch sizes: shapes {shapes}{and_size}. in_axes=(0, None) shares the second "
            "argument among all batch elements"
        )
    return int(sizes.pop())


def _wrap_argument(value: NDArray[Any], axis: int | None, level: int, is_shared: bool) -> Any:
    """An argument as passed to the function. It is read-only if it is not batched, or shares memory with another one."""
    if axis is None:
        if type(value) not in ARRAYS:
            return value
        view = unwrap_buffer(value).view()
        view.flags.writeable = False
        return wrap_result(view, (value,)) if type(value) in TRACEABLE else view
    values = np.moveaxis(value, axis, 0) if axis % value.ndim else value
    if is_shared:
        node = BatchNode.create_using(copy_values(values), level, is_array=values.ndim > 1)
        make_read_only(node)
        return node
    return BatchNode.borrow(values, level, is_array=values.ndim > 1)


# --------------------------------------------------------------------------------------------------- results


def _unwrap_results(
    result: NDArray[Any] | tuple[Any, ...] | dict[str, Any], level: int, size: int, out_axes: Axes
) -> tuple[list[Any], Any]:
    """The leaves of the result, with their batch axes, and its structure."""
    leaves, structure = flatten(result)
    axes = _spread_axes("out_axes", out_axes, structure, result, len(leaves))
    outs = [_unwrap_result(as_result(leaf), axis, level, size) for leaf, axis in zip(leaves, axes, strict=True)]
    return [to_concrete(out) if isinstance(out, Value) else out for out in outs], structure


def _unwrap_result(out: NDArray[Any], axis: int | None, level: int, size: int) -> Any:
    """A result with its batch axis at `axis`, which shares no memory with arguments or other results."""
    if is_batch(out):
        if out.level > level:
            raise TypeError(_INNER_VMAP_RETURNED)
        if out.level == level:
            if axis is None:
                raise ValueError(f"vmap: out_axes is None for a batched result of shape {out.shape}. Pass an axis, or reduce it")
            values = out.values
            if is_batch(values) and values.level > level:
                raise TypeError(_INNER_VMAP_RETURNED)
            root = out if out.root is None else out.root
            is_shared = root.borrows_values or root is not out or not plain_base(values).flags.writeable
            if is_shared and not isinstance(values, Value):
                values = np.array(values)
            return _move_batch_axis(values, axis)
    value = unwrap_buffer(out)
    if axis is None:
        return value
    if not isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        advice = ". Does it lack a return statement?" if value is None else ". Return arrays or numbers"
        raise TypeError(f"vmap: the function returned a {type(value).__name__}, not an array{advice}")
    shared = broadcast_batch(value, size)
    return _move_batch_axis(shared if isinstance(shared, Value) else np.array(shared), axis)


_INNER_VMAP_RETURNED = (
    "vmap: the function returned a batched value of an inner vmap, which has returned, or an array that such a value was written "
    "into. Return the result of the inner vmap instead"
)


def _move_batch_axis(values: NDArray[Any], axis: int) -> Any:
    if not -values.ndim <= axis < values.ndim:
        raise ValueError(f"vmap: axis {axis} of out_axes is out of range for a result of shape {values.shape}")
    return np.moveaxis(values, 0, axis) if axis % values.ndim else values


def _allocated_arrays(result: NDArray[Any]) -> tuple[Any, ...]:
    """The arrays behind the results of a batched operation, for profiles."""
    parts: Iterable[Any] = result if isinstance(result, (tuple, list)) else (result,)
    return tuple([plain_base(part) for part in parts if is_batch(part)])


patch_method(
    BatchNode, "process", lambda profiler, _, __, function, *___: profiler.begin_here(BATCHED, function), _allocated_arrays
)
