"""``out=`` and ``where=``: the result is recorded without them, and then stored in the target."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..context import is_recording
from ..graph import as_operand, flatten_sequences, full_name, to_values
from ..guards import guarded_value
from ..values import Value, require_history
from .buffer_methods import as_traced
from .stores import backing_array, move_elements, require_cast, simulate_numpy_writes, store, store_computed

ndarray = np.ndarray


def copy_mask(where: object, shape: tuple[int, ...], name: str) -> Any:
    """Return a ``where=`` broadcast to a shape, as a copy in plain booleans; raise a TypeError for arrays of other libraries."""
    plain = guarded_value(where, f"the mask of {name}")
    if isinstance(plain, ndarray) and plain.dtype != bool:
        raise TypeError(f"{name}: where= is an array of {plain.dtype}, not of booleans. Pass mask.astype(bool)")
    mask = np.array(plain, dtype=bool)
    try:
        return np.broadcast_to(mask, shape).copy()
    except ValueError:
        raise ValueError(f"{name}: where= has shape {mask.shape}, which does not broadcast to {shape}") from None


def make_plain_target_error(name: str, advice: str) -> TypeError:
    """Make the error for a node that would be written into a plain array; `advice` is a part of the message."""
    return TypeError(
        f"{name} would write a node into a plain array, which keeps numbers and no graph. Make the array a node from the "
        f"start (np.zeros_like(node), cg.zeros(shape)), or {advice}. If plain numbers are intended, pass node.value"
    )


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function with ``out=`` as users write it."""
    if isinstance(function, ops.UfuncMethod):
        return f"np.{function.ufunc.__name__}.{function.method}"
    is_numpys = str(getattr(function, "__module__", "")).startswith("numpy")
    return full_name(function) if is_numpys and hasattr(function, "__name__") else f"np.{ops.opname_of(function)}"


def write_out(function: Any, args: tuple[Any, ...], options: dict[str, Any], out: Any, compute: Any) -> Any:
    """``function(*args, out=out, **options)``: store ``compute()``, the recorded call without ``out=``, and return `out`."""
    targets = out if isinstance(out, tuple) else (out,)
    for target in targets:
        as_traced(target, args)
    require_history(*targets)
    name = _name_of(function)
    if not targets:
        raise TypeError(f"{name}: out=() contains no array. Pass one, or omit out=")
    if not all(isinstance(t, Value) for t in targets if t is not None):
        if is_recording() and are_integer_arrays(targets):
            return _write_integers(function, name, targets, compute(), options.get("casting", "same_kind"))
        if is_recording():
            raise make_plain_target_error(f"{name}(..., out=plain array)", f"use result = {name}(...)")
        return _call_unrecorded(function, args, out, options)
    outputs: list[Any] = []

    def get_output(position: int) -> Any:
        if not outputs:
            result = compute()
            outputs.extend(result if isinstance(result, tuple) else (result,))
        return outputs[position]

    _require_disjoint(name, targets)
    if any(t is None for t in targets):
        get_output(0)  # computed here, because updates of variables are not recorded
    simulated_outputs = simulate_numpy_writes(function, args, options, targets)
    for position, expected in enumerate(simulated_outputs or ()):
        if expected is None or _has_same_bits(get_output(position), expected):
            continue
        if function not in ops.MOVING_FUNCTIONS or len(targets) > 1:
            raise ValueError(
                f"{name}: out= shares memory with an operand, so that NumPy reads elements that it has already overwritten. "
                "Pass a copy of the operand (np.copy), or an out= with its own memory"
            )
        move_elements(targets[0], *_as_move(function, args, options))
        return targets[0]
    sources = flatten_sequences((args, tuple(options.values())))
    casting = options.get("casting", "same_kind")
    for position, target in enumerate(targets):
        if target is not None:
            store_computed(
                target, lambda p=position, t=target: _require_fitting(function, name, get_output(p), t), sources, casting=casting
            )
    results = tuple(get_output(p) if t is None else t for p, t in enumerate(targets))
    return results if len(results) > 1 else results[0]


def are_integer_arrays(targets: tuple[Any, ...]) -> bool:
    """Whether the targets are plain arrays of integers or booleans, which have no derivative to lose."""
    return all(isinstance(t, ndarray) and not isinstance(t, Value) and t.dtype.kind in "biu" for t in targets)


def _write_integers(function: Callable[..., Any], name: str, targets: tuple[Any, ...], result: NDArray[Any], casting: str) -> Any:
    """Write the values of a recorded result into plain arrays of integers or booleans, under a guard."""
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(targets, results, strict=True):
        plain = guarded_value(_require_fitting(function, name, value, target), f"the result of {name}")
        np.copyto(target, plain, casting=casting)  # type: ignore[arg-type]
    return targets if len(targets) > 1 else targets[0]


def _has_same_bits(value: object, expected: NDArray[Any]) -> bool:
    """Whether a value has the same bits as the array `expected` after a cast to its dtype."""
    cast_value = np.empty(expected.shape, expected.dtype)
    np.copyto(cast_value, to_values(value), casting="unsafe")
    return bool(cast_value.tobytes() == expected.tobytes())


def _as_move(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """Return the arguments of `move_elements` for a call that only moves elements: its sources, and the call on other arrays."""
    options = to_values(options)
    if function in ops.PACKED_FUNCTIONS:
        return tuple(map(as_operand, args[0])), lambda target, *source_values: function(source_values, out=target, **options)
    position = [*inspect.signature(function).parameters].index(ops.SPECS[function].operands.split()[0])
    others = tuple(to_values(args))

    def move(target: object, source_values: object) -> None:
        function(*others[:position], source_values, *others[position + 1 :], out=target, **options)

    return (args[position],), move


def _require_disjoint(name: str, targets: tuple[Any, ...]) -> None:
    """Raise if two outputs share memory, because NumPy does not define which of them is stored last."""
    target_arrays = [backing_array(t) for t in targets if t is not None]
    if len(target_arrays) > 1 and np.shares_memory(*target_arrays):
        raise ValueError(f"{name}: both outputs would be written into the same memory. Pass arrays that do not overlap as out=")


def _call_unrecorded(function: Callable[..., Any], args: tuple[Any, ...], out: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function without recording it: NumPy writes into plain targets, and into copies of nodes, which are then stored."""
    targets = out if isinstance(out, tuple) else (out,)
    copies = [t.value.copy() if isinstance(t, Value) else t for t in targets]
    results = function(*to_values(args), out=tuple(copies) if isinstance(out, tuple) else copies[0], **to_values(options))
    for target, target_copy in zip(targets, copies, strict=True):
        if isinstance(target, Value):
            store(target, ..., target_copy)
    pairs = zip(targets, results if isinstance(results, tuple) else (results,), strict=True)
    outputs = tuple([r if t is None else t for t, r in pairs])
    return outputs if len(outputs) > 1 else outputs[0]


def _require_fitting(function: Callable[..., Any], name: str, value: Any, target: Any) -> Any:
    """Return `value` if NumPy could write it into `target`, else raise.

    Except for ufuncs it must have the target's dtype, because another dtype of ``out=`` changes NumPy's computation.
    """
    if isinstance(function, np.ufunc):
        shape, target_shape = np.shape(value), target.shape
        names = (function.signature or "").partition("->(")[2].partition(")")[0]
        core = min(len(names.split(",")) if names else 0, len(shape))  # the last axes, which NumPy does not broadcast
        has_same_core = shape[len(shape) - core :] == target_shape[len(target_shape) - core :]
        if np.broadcast_shapes(shape, target_shape) != target_shape or not has_same_core:
            raise ValueError(
                f"{name}: out= has shape {target_shape}, but the result has shape {shape}. Pass an out= of that shape"
            )
        if not hasattr(value, "dtype"):
            raise TypeError(f"{name}: the result, a {type(value).__name__}, holds no numbers. Omit out=")
        return value
    if np.shape(value) != target.shape:
        raise ValueError(
            f"{name}: out= has shape {target.shape}, but the result has shape {np.shape(value)}. Pass an out= of that shape"
        )
    if np.result_type(value) != target.dtype:
        raise TypeError(f"{name}: out= is {target.dtype}, but the result is {np.result_type(value)}. Pass an out= of that dtype")
    return value


def write_where(
    ufunc: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any], out: tuple[Any, ...], where: object
) -> Any:
    """Call a ufunc with ``out=`` and ``where=``. It is computed, and differentiated, only where the mask is true."""
    name = f"np.{ufunc.__name__}"
    if not all(isinstance(t, Value) for t in out):
        if is_recording() and not are_integer_arrays(out):
            raise make_plain_target_error(f"{name}(..., out=plain array)", "use np.where(mask, result, other)")
        plain_inputs, plain_where = guarded_value((inputs, where), f"the operands of {name}")
        return _call_unrecorded(ufunc, plain_inputs, out, {"where": plain_where, **options})
    _require_disjoint(name, out)
    mask = copy_mask(where, out[0].shape, name)
    operands = [as_operand(x) for x in inputs]
    outputs: list[Any] = []

    def get_output(position: int, target: object) -> Any:
        if not outputs:
            result = ufunc(*[np.broadcast_to(x, mask.shape)[mask] for x in operands], **options)
            outputs.extend(result if isinstance(result, tuple) else (result,))
        require_cast(outputs[position], target, options.get("casting", "same_kind"), name)
        return outputs[position]

    for position, target in enumerate(out):
        store_computed(target, lambda p=position, t=target: get_output(p, t), tuple(operands), mask)
    return out if len(out) > 1 else out[0]
