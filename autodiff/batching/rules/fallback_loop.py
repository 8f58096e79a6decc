"""The fallback loop: computes batch elements one after the other, and stacks the results."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.values import BatchedValueError

from ...arguments import flatten, unflatten
from ..levels import is_batch, outside_vmap, single_element
from .call import RULES_BY_KIND, Call

LOOP_COUNTS: collections.Counter[str] = collections.Counter()  # by opname, calls that used the fallback loop; for tests
_NUMBERS = (bool, int, float, complex)


# ------------------------------------------------------------------------------------------------- operations


def loop_over_elements(call: Call) -> Any:
    """Call an operation for each batch element, and stack the results."""
    LOOP_COUNTS[ops.opname_of(call.function)] += 1
    if not call.batch_size:
        return _empty_batch(call)
    results = []
    with outside_vmap():
        for i in range(call.batch_size):
            values = [v[i] if is_batched else v for v, is_batched in zip(call.values, call.batched, strict=True)]
            results.append(bind(call.function, tuple(values), call.options))
        return stack_results(results, ops.opname_of(call.function))


RULES_BY_KIND["sequential"] = loop_over_elements


def _empty_batch(call: Call) -> Any:
    """The results for a batch of size 0; their shapes are those of the results for ones."""
    ones = [
        np.ones(v.shape[1:], v.dtype)[()] if is_batched else v for v, is_batched in zip(call.values, call.batched, strict=True)
    ]
    with outside_vmap(), np.errstate(all="ignore"):
        result = bind(call.function, tuple(ones), call.options)
    source = next(v for v, is_batched in zip(call.values, call.batched, strict=True) if is_batched)

    def empty(one: Any) -> Any:
        if one is None:
            return None
        if isinstance(one, (tuple, list)):
            return _rebuild(one, [empty(part) for part in one])
        connected = np.reshape(source, (-1,))[:0]  # depends on the operand, if that is a node
        return np.reshape(np.broadcast_to(connected, (*np.shape(one), 0)), (0, *np.shape(one))).astype(one.dtype)

    return empty(result)


def stack_results(results: Sequence[Any], name: str) -> Any:
    """Stack the results of all elements along a new first axis; a TypeError for different shapes."""
    first = results[0]
    if first is None:
        return None
    if isinstance(first, (tuple, list)):
        lengths = [len(result) for result in results]
        if len(set(lengths)) > 1:
            raise _shape_error(name, lengths)
        return _rebuild(first, [stack_results(parts, name) for parts in zip(*results, strict=True)])
    shapes = [np.shape(result) for result in results]
    if len(set(shapes)) > 1:
        raise _shape_error(name, shapes)
    return np.stack(results)


def _rebuild(result: Sequence[Any], parts: list[Any]) -> Any:
    """A tuple, list or named tuple of the type of `result`, of other parts."""
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)  # type: ignore[call-arg]


def _shape_error(name: str, shapes: Sequence[object]) -> TypeError:
    different = " and ".join([*dict.fromkeys(map(str, shapes))][:2])
    return TypeError(
        f"vmap: {name} returns results of different shapes for different batch elements ({different}), which cannot be stacked. "
        "Use np.where, or another function whose result shape does not depend on values"
    )


# ------------------------------------------------------------------------------------------------- functions


def any_batched(*trees: object) -> bool:
    """Whether any leaf of some trees is batched."""
    return any(map(is_batch, flatten(trees)[0]))


def map_elements(name: str, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """Call a function for each batch element of the innermost level among its arguments, and stack the results.

    Parameters
    ----------
    name : str
        The name of the function, for messages.
    f : callable
        Called as ``f(*args, **kwargs)`` with one element of each batched leaf.
    args, kwargs : sequence, dict
        The nested arguments, with some batched leaves.
    """
    leaves, structure = flatten((args, kwargs or {}))
    level = max(x.level for x in leaves if is_batch(x))
    positions = [i for i, x in enumerate(leaves) if is_batch(x) and x.level == level]
    batch = leaves[positions[0]]
    if not batch.batch_size:
        raise BatchedValueError(
            f"vmap: {name} runs once for each batch element, and the batch is empty, so the shape of its result is unknown. "
            "Handle the empty batch before vmap"
        )
    results = []
    with single_element(level):
        for k in range(batch.batch_size):
            element = list(leaves)
            for i in positions:
                element[i] = leaves[i].values[k]
            element_args, element_kwargs = unflatten(structure, element)
            results.append(f(*element_args, **element_kwargs))
        return _join(results, name, lambda values: batch.create_using(values, level))


def _join(results: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join the results of all elements: arrays are stacked, other leaves must be equal."""
    first = results[0]
    if isinstance(first, (np.ndarray, np.generic)):
        if any(map(is_batch, results)) and wrap(first).level <= max(x.level for x in results if is_batch(x)):
            raise BatchedValueError(
                f"vmap: {name} runs once for each batch element, but uses a batched value that is not an argument (a variable "
                "of an enclosing function, or an attribute). Pass that value as an argument, or replace vmap by a Python loop"
            )
        return wrap(stack_results(results, name))
    if isinstance(first, dict):
        return _join_fields(results, name, wrap)
    if isinstance(first, (tuple, list)):
        parts = [_join([result[k] for result in results], name, wrap) for k in range(len(first))]
        return _join_named_tuples(results, parts, name, wrap) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, _NUMBERS) and any(result != first for result in results):
        return wrap(np.array(results))
    if isinstance(first, str):
        return first if all(result == first for result in results) else tuple(results)
    if not all(x is first or (type(x) is type(first) and isinstance(x, _NUMBERS) and x == first) for x in results):
        raise BatchedValueError(
            f"vmap: {name} returns a different {type(first).__name__} for each batch element, which cannot be stacked. Return "
            "arrays or numbers"
        )
    return first


def _join_named_tuples(results: list[Any], parts: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join named tuples, given their joined fields. SciPy's have more attributes; those that cannot be joined are left out."""
    first = results[0]
    joined: Any = tuple.__new__(type(first), parts)
    for key in getattr(first, "__dict__", ()):
        with contextlib.suppress(BatchedValueError, AttributeError):
            vars(joined)[key] = _join([vars(result)[key] for result in results], name, wrap)
    return joined


def _construct(kind: type) -> Any:
    try:
        return kind()
    except TypeError as error:  # a constructor with other parameters than the fields
        raise BatchedValueError(
            f"vmap: a {kind.__name__} cannot be constructed from the stacked fields of all batch elements. Return its fields "
            "as a tuple"
        ) from error


def _join_fields(results: list[Any], name: str, wrap: Callable[[Any], Any]) -> Any:
    """Join dictionaries. Values that cannot be joined are omitted; fields without a derivative still raise when they are read."""
    first = results[0]
    joined = _construct(type(first))
    excluded: frozenset[str] = frozenset() if type(first) is dict else getattr(first, "fields_without_derivative", frozenset())
    for key, value in dict.items(first):
        if key in excluded:
            joined[key] = value
            continue
        with contextlib.suppress(BatchedValueError):
            joined[key] = _join([result[key] for result in results], name, wrap)
    if excluded:
        object.__setattr__(joined, "fields_without_derivative", excluded)
    return joined
