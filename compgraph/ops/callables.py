"""Recorded callables: adapters of functions, functions for operators and methods, and data attached to users' functions.

The opname and the rule of a user's function are attributes of the function, so that all are freed together. A table would keep
every function alive, even with weak keys, because a rule refers to its function. As an attribute, the rule forms a cycle with the
function, which the garbage collector frees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..array_types import Array


class Packed:
    """A function that takes its operands as one sequence: ``concatenate((a, b), axis=0)``."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *operands: object, **options: object) -> Any:
        """Call the function with the operands packed."""
        return self.function(operands, **options)


class Keyworded:
    """A function whose last operands are passed by keyword: ``sum(a, where=mask_node)``, ``roll(a, shift=count_node)``.

    `names` are all of these keywords; `counts` are the integers among them, such as `shift`.
    """

    __slots__ = ("counts", "function", "names")

    def __init__(self, function: Callable[..., Any], names: tuple[str, ...], counts: tuple[str, ...]) -> None:
        self.function = function
        self.names = names
        self.counts = counts

    def __call__(self, *operands: object, **options: object) -> Any:
        """Call the function, naming the last operands."""
        num_positional = len(operands) - len(self.names)
        keywords = self.keyword_values(operands[num_positional:])
        return self.function(*operands[:num_positional], **keywords, **options)

    def keyword_values(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The values by keyword; counts as Python's integers.

        A computed count stays a node, so that a replay of the graph computes it again.
        """
        pairs = zip(self.names, values, strict=True)
        return {k: _integers(v) if k in self.counts and getattr(v, "function", None) is None else v for k, v in pairs}


def _integers(value: Array) -> Any:
    """Convert an array or node of integers to a Python integer, or to nested tuples of them."""
    elements = np.asarray(value.raw_value if hasattr(value, "raw_value") else value).tolist()
    return _to_tuples(elements) if isinstance(elements, list) else elements


def _to_tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple([_to_tuples(v) if isinstance(v, list) else v for v in values])


class Configured:
    """A ufunc with options (``dtype=``, ``casting=``) that rules do not receive."""

    __slots__ = ("function", "options")

    def __init__(self, function: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> None:
        self.function = function
        self.options = dict(options)

    def __call__(self, *operands: object) -> Any:
        """Call the ufunc with its options."""
        return self.function(*operands, **self.options)


configured = functools.cache(Configured)


class OnAxes(Configured):
    """A ufunc of vectors or matrices (`vecdot`, `matmul`) along axes other than the last: ``vecdot(a, b, axis=0)``."""

    __slots__ = ()

    def __call__(self, *operands: Any) -> Any:
        """Call the ufunc with its options; NumPy requires `axes` to be a list."""
        axes = {"axes": list(self.options["axes"])} if "axes" in self.options else {}
        return self.function(*operands, **{**self.options, **axes})

    def operand_axes(self, count: int) -> list[tuple[int, ...]]:
        """For each of `count` operands, then for the output: the axes along which its vectors or matrices lie."""
        keepdims = self.options.get("keepdims", False)
        if "axes" in self.options:
            operand_axes = [axes if isinstance(axes, tuple) else (axes,) for axes in self.options["axes"]]
            return operand_axes if len(operand_axes) > count else [*operand_axes, (-1,) if keepdims else ()]
        axis = (self.options.get("axis", -1),)
        return [*[axis] * count, axis if keepdims else ()]


on_axes = functools.cache(OnAxes)


class UfuncMethod:
    """A method of a ufunc that folds it along an axis: ``np.hypot.reduce``, ``accumulate``, ``reduceat``."""

    __slots__ = ("__name__", "method", "ufunc")

    def __init__(self, ufunc: np.ufunc, method: str) -> None:
        self.ufunc = ufunc
        self.method = method
        self.__name__ = f"{ufunc.__name__}.{method}"

    def __call__(self, *operands: object, **options: object) -> Any:
        """Call the method."""
        return getattr(self.ufunc, self.method)(*operands, **options)


ufunc_method = functools.cache(UfuncMethod)


class Output:
    """Picks one output of an operation that has several."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        """Return the output."""
        return outputs[self.index]


output = functools.cache(Output)


def getitem(x: Any, *index: Any) -> Any:
    """``x[index]``; the parts of a tuple index may be separate arguments, so that each can be a node."""
    return x[index[0] if len(index) == 1 else index]


def astype(x: Any, dtype: DTypeLike | None, **options: object) -> Any:
    """``x.astype(dtype)``."""
    return x.astype(dtype, **options)


def view(x: NDArray[Any], dtype: DTypeLike | None) -> Any:
    """``x.view(dtype)``. An array whose memory layout allows no such view is copied first."""
    try:
        return x.view(dtype)
    except ValueError:
        return x.copy().view(dtype)


def copy(x: Any, order: Any = "C") -> Any:
    """``x.copy(order)``."""
    return x.copy(order)


def flatten(x: Any, order: Any = "C") -> Any:
    """``x.flatten(order)``."""
    return x.flatten(order)


def power(x: Array, y: int) -> Any:
    """``x ** y`` by the operator: of an array, ``** 2`` calls ``np.square``, where the ufunc would call pow."""
    return x**y


def einsum(*operands: Any, subscripts: str, **options: Any) -> Any:
    """``numpy.einsum`` with its subscripts as an option."""
    return np.einsum(subscripts, *operands, **options)


def input_of(x: NDArray[Any]) -> Any:
    """A copy of `x` as the argument of a traced function, which may write into it."""
    return np.array(x)[()] if isinstance(x, np.generic) else copy_with_layout(x)


def stacked_matmul(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """``a @ b`` of stacks of matrices; a single product if `b` repeats one matrix."""
    if a.ndim == b.ndim == 3 and b.strides[0] == 0 and a.strides[0] and a.size and b.size:
        return np.matmul(a.reshape(-1, a.shape[2]), b[0]).reshape(a.shape[0], a.shape[1], b.shape[2])
    if a.shape[-1] == 1 and b.shape[-2] == 1:  # outer products: half the time of one BLAS call per matrix
        return a * b
    return np.matmul(a, b)


def copy_with_layout(x: NDArray[Any]) -> Any:
    """Return a copy with the same memory layout.

    Whether ``reshape`` returns a view depends on the strides, and NumPy must return the same views of the copy as of `x`. The
    copy has the same order of axes in memory, gaps (of one element) where `x` has gaps, and negative strides where `x` has them.
    """
    copied = np.array(x)
    if type(x) is not np.ndarray or copied.strides == x.strides or copied.size <= 1:
        return copied
    item = x.itemsize
    # From the innermost axis outward: `reach` is the extent in `x` of the axes so far, `extent` that in the result.
    strides, reach, extent = list(x.strides), item, item
    for axis in sorted(range(x.ndim), key=lambda axis: (not x.strides[axis], abs(x.strides[axis]), -axis)):
        if x.shape[axis] > 1:
            step = extent if abs(x.strides[axis]) == reach else extent + item
            strides[axis] = -step if x.strides[axis] < 0 else step
            reach, extent = abs(x.strides[axis]) * x.shape[axis], step * x.shape[axis]
    offset = sum([-step * (length - 1) for step, length in zip(strides, x.shape, strict=True) if step < 0 and length > 1])
    result: Any = np.ndarray(x.shape, x.dtype, np.zeros(extent // item, x.dtype), offset, strides)
    result[...] = x
    return result


def scatter_add(region: NDArray[Any], values: NDArray[Any], *, positions: NDArray[Any]) -> Any:
    """Scatter-add (``np.add.at``) on a region of an array.

    `positions` has the shape of the region: for each element, the flat position of the last one that is the same element of the
    array. Repeated elements therefore share one sum.
    """
    total = np.array(region).ravel()
    np.add.at(total, np.ravel(positions), np.ravel(values))
    return total[positions]


def complex_sign(z: Array) -> Any:
    """``sign(z)`` of complex numbers, ``z / abs(z)``: unlike the sign of real numbers it is not piecewise constant."""
    return np.sign(z)


def stop_gradient(x: Array) -> Any:
    """A copy of `x`, whose derivative is zero."""
    return np.array(x) if isinstance(x, np.ndarray) else x


_PREFIX = "__compgraph_"


def set_attached(function: Callable[..., Any], key: str, value: object) -> bool:
    """Attach a value to a function, under the name `key`; return False if the callable is not a plain Python function."""
    if type(function) is not FunctionType:
        return False
    # The owner is stored too, because functools.wraps copies attributes to functions that they do not describe.
    function.__dict__[f"{_PREFIX}{key}__"] = function, value
    return True


def get_attached(function: object, key: str) -> Any:
    """The value that `set_attached` attached to a function under the name `key`, or None."""
    if type(function) is not FunctionType:
        return None
    owner, value = function.__dict__.get(f"{_PREFIX}{key}__", (None, None))
    return value if owner is function else None


# Registries of callables that `set_attached` rejects: name of the data -> (look it up, register it after unpickling).
EXTERNAL_REGISTRIES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def external_data(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the data of a callable that `set_attached` rejects, from `EXTERNAL_REGISTRIES`."""
    if type(function) is FunctionType:
        return {}
    data = {key: read(function) for key, (read, _) in EXTERNAL_REGISTRIES.items()}
    return {key: value for key, value in data.items() if value is not None}
