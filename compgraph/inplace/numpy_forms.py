"""The forms in which NumPy writes into an array, each in terms of `writing.store`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import operations as ops
from ..graph import Node, as_operand, full_name, gathered, last_places, leaves_of, record, require_history, to_plain
from ..graph.context import is_recording
from ..guards import frozen
from .overlapping import MOVING, as_numpy_writes, assign, move, overlap
from .writing import require_cast, require_writeable, rewrite, store

ndarray = np.ndarray


def own_index(index: Any) -> Any:
    """An index of plain parts that nobody else can change."""
    if isinstance(index, tuple):
        return tuple(map(own_index, index))
    if isinstance(index, Node):
        return np.array(frozen(index, "the index of a write"))
    if not isinstance(index, (list, ndarray)) or not len(np.shape(index)):
        return index
    own = np.array(index)
    return own.astype(np.intp) if isinstance(index, list) and not own.size else own  # an empty list names no place


def own_mask(where: Any, shape: tuple[int, ...], name: str) -> Any:
    """A ``where=`` in a shape, as plain booleans of our own: NumPy converts whatever is no array."""
    plain = frozen(where, f"the mask of {name}")
    if isinstance(plain, ndarray) and plain.dtype != bool:
        raise TypeError(f"{name}: where= is an array of {plain.dtype}, not of booleans; write where=mask.astype(bool)")
    mask = np.array(plain, dtype=bool)
    try:
        return np.broadcast_to(mask, shape).copy()
    except ValueError:
        raise ValueError(f"{name}: where= has shape {mask.shape}, which does not broadcast to {shape}") from None


def set_item(target: Any, index: Any, value: Any) -> None:
    """``target[index] = value``."""
    assign(target, own_index(index), gathered(value))


# ---------------------------------------------------------------------------------------------- functions


def _plain_target(name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name} would write a node into a plain array, which keeps numbers and no graph. Make the array of nodes from the "
        f"start (np.zeros_like(node), cg.zeros(shape)), {instead}, or give node.value where the numbers alone are meant"
    )


def into_plain(function: Any, instead: str, *args: Any, **options: Any) -> None:
    """A function that writes into its first argument, a plain array: NumPy's own, where nothing is recorded."""
    if is_recording():
        raise _plain_target(full_name(function), instead)
    function(*to_plain(args), **to_plain(options))


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """``numpy.copyto``."""
    if not isinstance(dst, Node):
        into_plain(np.copyto, "use np.copy(node)", dst, src, casting=casting, where=where)
        return
    src = as_operand(src)
    if where is True:
        assign(dst, ..., src, casting)
        return
    require_history(dst, src)
    require_cast(src, dst, casting, "np.copyto")
    mask = own_mask(where, dst.shape, "np.copyto")
    if overlap(dst, src):
        move(dst, (src,), lambda there, given: np.copyto(there, given, where=mask))
        return
    extra = np.ndim(src) - dst.ndim
    if extra > 0 and set(np.shape(src)[:extra]) == {1}:  # NumPy drops them
        src = np.reshape(src, np.shape(src)[extra:])
    rewrite(dst, lambda: np.broadcast_to(src, dst.shape)[mask], (src,), mask)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``numpy.put``: at positions counted along the flattened array."""
    if not isinstance(a, Node):
        into_plain(np.put, "use np.where", a, ind, v, mode=mode)
        return
    require_history(a)
    places = np.ravel(frozen(ind, "the places of np.put")).astype(np.intp)
    if mode == "wrap":
        places = places % a.size
    elif mode == "clip":
        places = np.clip(places, 0, a.size - 1)
    elif mode != "raise":
        raise ValueError(f"np.put: mode must be one of 'clip', 'raise', or 'wrap', not {mode!r}")
    v = as_operand(v)
    if overlap(a, v):
        move(a, (v,), lambda there, given: np.put(there, places, given))
    else:
        set_flat(a, places, v)


def set_flat(a: Any, places: Any, values: Any) -> None:
    """Store values, repeated as often as needed, at positions counted along the flattened array."""
    require_writeable(a)
    if np.any((places < -a.size) | (places >= a.size)):
        raise IndexError(f"index {places[(places < -a.size) | (places >= a.size)][0]} is out of bounds for size {a.size}")
    values = as_operand(values)
    if np.size(places) and np.size(values):
        if not a.ndim:  # of several values for the one place, the last stays
            rewrite(a, lambda: _repeated(values, np.size(places))[-1], (values,))
            return
        index = np.unravel_index(places % a.size, a.shape)
        rewrite(a, lambda: _repeated(values, np.size(places)).reshape(np.shape(places)), (values,), index)


def _repeated(values: Any, count: int) -> Any:
    """As many values, from the first again where they end."""
    flat = np.ravel(values)
    return flat if flat.size == count else flat[np.arange(count) % flat.size]


def place(arr: Any, mask: Any, vals: Any) -> None:
    """``numpy.place``: the first values where a mask holds."""
    if not isinstance(arr, Node):
        into_plain(np.place, "use np.where", arr, mask, vals)
        return
    require_history(arr)
    mask = np.asarray(frozen(mask, "the mask of np.place"))
    places = np.flatnonzero(mask)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if places.size and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    vals = as_operand(vals)
    if overlap(arr, vals):
        move(arr, (vals,), lambda there, given: np.place(there, mask, given))
    else:
        set_flat(arr, places, vals)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """``numpy.putmask``: where a mask holds, the value of the same place."""
    if not isinstance(a, Node):
        into_plain(np.putmask, "use np.where", a, mask, values)
        return
    require_history(a)
    chosen = np.asarray(frozen(mask, "the mask of np.putmask")).astype(bool)
    if chosen.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    chosen = chosen.reshape(a.shape)
    values = as_operand(values)
    if overlap(a, values):
        move(a, (values,), lambda there, given: np.putmask(there, chosen, given))
    elif np.size(values):
        rewrite(a, lambda: _repeated(values, a.size)[np.flatnonzero(chosen)], (values,), chosen)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``numpy.put_along_axis``: NumPy's own implementation assigns to the items of a node."""
    if not isinstance(arr, Node):
        into_plain(np.put_along_axis, "use np.where", arr, indices, values, axis)
        return
    indices = frozen(indices, "the places of np.put_along_axis")
    if axis is None:
        set_flat(arr, indices, values)
        return
    ops.implementation(np.put_along_axis)(arr, indices, gathered(values), axis)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``numpy.fill_diagonal``: NumPy's own implementation assigns to ``a.flat``."""
    if not isinstance(a, Node):
        into_plain(np.fill_diagonal, "use np.where", a, val, wrap)
        return
    ops.implementation(np.fill_diagonal)(a, gathered(val), wrap)


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``numpy.nan_to_num``, which writes into its operand if it is told not to copy."""
    compute = functools.partial(ops.INSTEAD_FUNCTIONS[np.nan_to_num], x, nan=nan, posinf=posinf, neginf=neginf)
    if ops.copies(copy):
        return compute()
    if not isinstance(x, Node):
        raise _plain_target("np.nan_to_num(..., copy=False)", "leave copy out")
    rewrite(x, compute)
    return x


# ------------------------------------------------------------------------------------------- array methods


def fill(a: Any, value: Any) -> None:
    """``a.fill(value)``."""
    if np.ndim(value):
        raise ValueError(f"fill takes a single number, not an array of shape {np.shape(value)}")
    store(a, ..., as_operand(value))


def sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None, **options: Any) -> None:
    """``a.sort()``; NumPy says which options there are."""
    rewrite(a, lambda: np.sort(a, axis=axis, kind=kind, order=order, **options))


def partition(a: Any, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
    """``a.partition(kth)``."""
    rewrite(a, lambda: np.partition(a, kth, axis=axis, kind=kind, order=order))


# --------------------------------------------------------------------------------------------------- out=


def _name_of(function: Any) -> str:
    """The name of what is given ``out=``, as users write it."""
    if isinstance(function, ops.UfuncMethod):
        return f"np.{function.ufunc.__name__}.{function.method}"
    by_numpy = str(getattr(function, "__module__", "")).startswith("numpy")
    return full_name(function) if by_numpy and hasattr(function, "__name__") else f"np.{ops.opname_of(function)}"


def write_out(function: Any, args: tuple[Any, ...], options: dict[str, Any], out: Any, compute: Any) -> Any:
    """``out=``: what `compute` gives is recorded as ever, and stored."""
    targets = out if isinstance(out, tuple) else (out,)
    require_history(*targets)
    name = _name_of(function)
    if not targets:
        raise TypeError(f"{name}: out=() names no array to write into; give one, or leave it out")
    if not all(isinstance(t, Node) for t in targets if t is not None):
        if is_recording():
            raise _plain_target(f"{name}(..., out=plain array)", f"use result = {name}(...)")
        return _plain_out(function, args, out, options)
    found: list[Any] = []

    def value_of(position: int) -> Any:
        if not found:
            result = compute()
            found.extend(result if isinstance(result, tuple) else (result,))
        return found[position]

    _require_apart(name, targets)
    if any(t is None for t in targets):
        value_of(0)  # here, where it is recorded: what updates a variable is not
    written = as_numpy_writes(function, args, options, targets)
    for position, found_there in enumerate(written or ()):
        if found_there is None or _same(value_of(position), found_there):
            continue
        if function not in MOVING or len(targets) > 1:
            raise ValueError(
                f"{name}: out= lies in the memory of an operand, of which NumPy then reads what it has already overwritten; "
                "give a copy of the operand (np.copy), or an out= of its own"
            )
        move(targets[0], *_moving(function, args, options))
        return targets[0]
    sources = leaves_of((args, tuple(options.values())))
    casting = options.get("casting", "same_kind")
    for position, target in enumerate(targets):
        if target is not None:
            rewrite(target, lambda p=position, t=target: _fitting(function, name, value_of(p), t), sources, casting=casting)
    results = tuple(value_of(p) if t is None else t for p, t in enumerate(targets))
    return results if len(results) > 1 else results[0]


def _same(value: Any, written: Any) -> bool:
    """Whether a value is, bit for bit, what NumPy has written."""
    stored = np.empty(written.shape, written.dtype)
    np.copyto(stored, to_plain(value), casting="unsafe")
    return bool(stored.tobytes() == written.tobytes())


def _moving(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """The sources of a call that moves elements, and the call on other arrays that lie as they do."""
    options = to_plain(options)
    if function in ops.PACKED_FUNCTIONS:
        return tuple(map(as_operand, args[0])), lambda there, *given: function(given, out=there, **options)
    moved = 1 if function is np.compress else 0
    others = tuple(to_plain(args))

    def do(there: Any, given: Any) -> None:
        function(*others[:moved], given, *others[moved + 1 :], out=there, **options)

    return (args[moved],), do


def _require_apart(name: str, targets: tuple[Any, ...]) -> None:
    """Raise if two outputs would be written into one memory: which of them stays, NumPy does not say."""
    written = [t.plain for t in targets if t is not None]
    if len(written) > 1 and np.shares_memory(*written):
        raise ValueError(f"{name}: both outputs would be written into the same memory; give each out= of its own")


def _plain_out(function: Any, args: tuple[Any, ...], out: Any, options: dict[str, Any]) -> Any:
    """A call without a graph, some of whose targets are plain: NumPy writes into those, and into copies of nodes."""
    targets = out if isinstance(out, tuple) else (out,)
    copies = [t.value.copy() if isinstance(t, Node) else t for t in targets]
    results = function(*to_plain(args), out=tuple(copies) if isinstance(out, tuple) else copies[0], **to_plain(options))
    for target, copied in zip(targets, copies, strict=True):
        if isinstance(target, Node):
            store(target, ..., copied)
    places = zip(targets, results if isinstance(results, tuple) else (results,), strict=True)
    found = tuple([r if t is None else t for t, r in places])
    return found if len(found) > 1 else found[0]


def _fitting(function: Any, name: str, value: Any, target: Any) -> Any:
    """A result, if NumPy would write it into `target` as it is; other dtypes change how NumPy computes."""
    if isinstance(function, np.ufunc):
        here, there = np.shape(value), target.shape
        names = (function.signature or "").partition("->(")[2].partition(")")[0]
        core = min(len(names.split(",")) if names else 0, len(here))  # the last axes, which NumPy does not broadcast
        if np.broadcast_shapes(here, there) != there or here[len(here) - core :] != there[len(there) - core :]:
            raise ValueError(f"{name}: the result has shape {here}, out= {there}")
        if not hasattr(value, "dtype"):
            raise TypeError(f"{name}: the result, a {type(value).__name__}, holds no numbers")
        return value
    if np.shape(value) != target.shape:
        raise ValueError(f"{name}: the result has shape {np.shape(value)}, out= {target.shape}")
    if np.result_type(value) != target.dtype:
        raise TypeError(f"{name}: the result is {np.result_type(value)}, out= {target.dtype}; give out= of the same dtype")
    return value


def write_where(ufunc: Any, inputs: tuple[Any, ...], options: dict[str, Any], out: Any, where: Any) -> Any:
    """``out=`` and ``where=`` of a ufunc: it is computed, and differentiated, only where the mask holds."""
    name = f"np.{ufunc.__name__}"
    if not all(isinstance(t, Node) for t in out):
        if is_recording():
            raise _plain_target(f"{name}(..., out=plain array)", "use np.where(mask, result, other)")
        return _plain_out(ufunc, inputs, out, {"where": where, **options})
    _require_apart(name, out)
    mask = own_mask(where, out[0].shape, name)
    operands = [as_operand(x) for x in inputs]
    found: list[Any] = []

    def value_of(position: int, target: Any) -> Any:
        if not found:
            result = ufunc(*[np.broadcast_to(x, mask.shape)[mask] for x in operands], **options)
            found.extend(result if isinstance(result, tuple) else (result,))
        require_cast(found[position], target, options.get("casting", "same_kind"), name)
        return found[position]

    for position, target in enumerate(out):
        rewrite(target, lambda p=position, t=target: value_of(p, t), tuple(operands), mask)
    return out if len(out) > 1 else out[0]


# ---------------------------------------------------------------------------------------------- ufunc.at


def ufunc_at(ufunc: np.ufunc, target: Any, index: Any, *others: Any) -> None:
    """``ufunc.at(target, index, other)``: a place that is named several times changes as often."""
    name = f"np.{ufunc.__name__}.at"
    if not isinstance(target, Node):
        if is_recording():
            raise _plain_target(name, f"use {name} on it")
        ufunc.at(*to_plain((target, index, *others)))
        return
    require_history(target)
    index = own_index(index)
    places, numbers = last_places(target.shape, index)
    others = tuple(map(as_operand, others))

    def change(here: Any, chosen: Any = ...) -> Any:
        region = target[here]
        operands = [np.broadcast_to(x, places.shape)[chosen] for x in others]
        value = ufunc(region, *operands)
        require_cast(value, target, "same_kind", name)
        return value

    if np.array_equal(places, numbers):
        rewrite(target, lambda: change(index), others, index)
    elif ufunc in (np.add, np.subtract):
        added = np.broadcast_to(others[0] if ufunc is np.add else np.negative(others[0]), places.shape)
        rewrite(target, lambda: record(ops.added_at, (target[index], added), {"places": places}), others, index)
    else:
        flat = np.arange(target.size).reshape(target.shape)[index]
        turns = _occurrences(places)
        for turn in range(turns.max() + 1):
            chosen = turns == turn
            here = np.unravel_index(flat[chosen], target.shape)
            rewrite(target, lambda here=here, chosen=chosen: change(here, chosen), others, here)


def _occurrences(places: Any) -> Any:
    """For each element, how many before it have the same place."""
    order = np.argsort(places, axis=None, kind="stable")
    ordered = places.ravel()[order]
    counted = np.empty(places.size, np.intp)
    counted[order] = np.arange(places.size) - np.searchsorted(ordered, ordered)
    return counted.reshape(places.shape)
