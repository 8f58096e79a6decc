"""NumPy functions that no protocol reaches: ``np.vectorize``, ``np.ndenumerate``, ``np.poly1d``, ``np.fromiter``, ``np.r_``."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import arrays
from ..context import is_recording
from ..graph import stack_nested, to_values
from ..inplace import contains_node
from ..tracing import is_tracing
from ..values import NUMERIC, Value, as_buffer, mark_python_number
from .toplevel import is_users, records_lists


def vectorized(function: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.vectorize(f)(*args)``: f is called on the elements of nodes, and its results are stacked to one node."""
    self, *given = args
    if self.signature is not None:
        raise TypeError("np.vectorize with a signature is not supported on nodes; write the loop, and np.stack its results")
    named = {name: value for name, value in kwargs.items() if name not in self.excluded}
    positions = [k for k in range(len(given)) if k not in self.excluded]
    operands = np.broadcast_arrays(*[_as_array(given[k]) for k in positions], *map(_as_array, named.values()))
    shape = operands[0].shape
    results = []
    for index in np.ndindex(shape):
        parts = [_number(operand[index]) for operand in operands]
        call = list(given)
        for k, part in zip(positions, parts, strict=False):
            call[k] = part
        keywords = {**kwargs, **dict(zip(named, parts[len(positions) :], strict=True))}
        results.append(self.pyfunc(*call, **keywords))
    if not results:
        return original(*args, **kwargs)
    if isinstance(results[0], tuple):
        return tuple([_shaped(list(column), shape, self.otypes, k) for k, column in enumerate(zip(*results, strict=True))])
    return _shaped(results, shape, self.otypes, 0)


def _number(element: Any) -> Any:
    """An element as `np.vectorize` passes it: a node that represents a Python number."""
    return mark_python_number(element) if isinstance(element, Value) else element


def polynomial(begin: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``np.poly1d(c)``; raises if it drops leading coefficients (zeros) of a node, whose derivatives would be lost."""
    original(*args, **kwargs)
    polynomial, given = inspect.signature(begin).bind(*args, **kwargs).args[:2]
    given = stack_nested(given)
    if isinstance(given, Value) and given.ndim and len(polynomial.coeffs) < len(given):
        raise ValueError(
            "np.poly1d drops leading coefficients that are zero, and their derivatives would be lost: use np.polyval(c, x), or "
            "np.polynomial.Polynomial, which keeps them"
        )


def _as_array(value: Any) -> Any:
    value = stack_nested(value)
    return value if isinstance(value, Value) else np.asarray(value)


def _shaped(results: list[Any], shape: tuple[int, ...], otypes: Any, position: int) -> Any:
    found = np.reshape(arrays.asarray(results), shape)
    return found if otypes is None else found.astype(otypes[position])


def enumerated(array: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """``np.ndenumerate`` of a node: pairs of index and element."""
    for index in np.ndindex(array.shape):
        yield index, array[index]


def from_iterable(iterable: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    """``np.fromiter``, also of an iterable with nodes in it."""
    items = list(iterable)
    if not any(map(contains_node, items)):
        made = np.fromiter(items, dtype, count, **options)
        return as_buffer(made) if made.dtype.kind in NUMERIC else made
    if count >= 0:
        if len(items) < count:
            raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
        items = items[:count]
    np.fromiter(map(to_values, items), dtype, **options)  # raises what NumPy raises for such elements
    return arrays.asarray(items, dtype)


def gathered_iterable(filename: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.fromiter`` at the top level: an iterable that holds nodes is recorded. It consumes as many elements as NumPy."""
    if not args or not is_users(filename) or not is_recording():
        return original(*args, **kwargs)
    items, count = args[0], kwargs.get("count", args[2] if len(args) > 2 else -1)
    if type(items) not in (list, tuple):
        items = list(items if count < 0 else itertools.islice(items, count))
    if not records_lists(filename, [items]):
        return original(items, *args[1:], **kwargs)
    return from_iterable(items, *args[1:], **{name: value for name, value in kwargs.items() if name != "like"})


class Joining:
    """``np.r_``, ``np.c_``, ``np.mgrid`` or ``np.ogrid`` as a differentiated function sees it: ours, if any, for nodes."""

    def __init__(self, original: Any, ours: Any) -> None:
        self._original, self._ours = original, ours

    def __getitem__(self, key: Any) -> Any:
        if not is_tracing():
            return self._original[key]
        parts = key if isinstance(key, tuple) else (key,)
        if self._ours is not None and any(map(_holds, parts)):
            return self._ours[key]
        return _fresh(self._original[key])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __len__(self) -> int:
        return 0


def _fresh(made: Any) -> Any:
    """Make newly allocated arrays promotable: one array, or a tuple of arrays."""
    if type(made) is tuple:
        return tuple(map(_fresh, made))
    return as_buffer(made) if type(made) is np.ndarray and made.dtype.kind in NUMERIC else made


def _holds(part: Any) -> bool:
    if isinstance(part, slice):
        return contains_node([part.start, part.stop, part.step])
    return contains_node(part)
