"""Results of compiled functions: their nesting, the leaves that a program computes, and comparison with NumPy's results."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..array_types import Array, Operand
from ..bind import stack_object_array
from ..graph import to_values
from ..guards import Shape
from ..trees import flatten, register_container, unflatten
from ..values import InertScalarNode, ScalarNode, Value, unwrap_buffer
from .compile_errors import NotCompilableError

ndarray = np.ndarray
_NUMBERS = frozenset({int, float, complex, bool})
_RELATIVE_TOLERANCE = {2: 1e-1, 4: 1e-3, 8: 1e-6}  # by itemsize; a traced derivative may be evaluated in another order
_BLOCK_SIZE = 2**18  # elements compared at once
_MAX_ROUNDINGS = 2**12  # rounding errors by which sums may differ


class _MatrixParts:
    """The parts of a sparse matrix: a container of its elements and indices, from which `unflatten` builds a matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def flatten(self) -> tuple[tuple[Any, ...], Any, None]:
        """Return the elements and indices, and the class and the shape."""
        from ..scipy.sparse import plain_class

        matrix = self.matrix
        indices = matrix.coords if matrix.format == "coo" else (matrix.indices, matrix.indptr)
        return (matrix.data, *indices), (plain_class(type(matrix)), matrix.shape), None

    @staticmethod
    def unflatten(metadata: Any, parts: tuple[Any, ...]) -> Any:
        """Return the matrix."""
        cls, shape = metadata
        data, *indices = parts
        return cls((data, tuple(indices)) if "coo" in cls.__name__ else (data, *indices), shape=shape)


def flatten_results(results: object) -> tuple[list[Any], Any]:
    """Return the leaves of results, among them the parts of sparse matrices, and their nesting."""
    leaves, structure = flatten(results)
    if any(map(_is_matrix, leaves)):
        register_container(_MatrixParts, _MatrixParts.flatten, _MatrixParts.unflatten)
        leaves, structure = flatten(unflatten(structure, [_MatrixParts(x) if _is_matrix(x) else x for x in leaves]))
    return leaves, structure


def _is_matrix(leaf: object) -> bool:
    """Return whether a leaf is a sparse matrix in the format csr, csc or coo."""
    library: Any = sys.modules.get("scipy.sparse")
    return library is not None and library.issparse(leaf) and leaf.ndim == 2 and leaf.format in ("csr", "csc", "coo")  # type: ignore[attr-defined]


class ResultTree:
    """The nesting of a function's results, and the origin of each leaf.

    Parameters
    ----------
    returned : object
        The return value of the function for argument tracers.
    expected : tuple
        The results of NumPy (see `snapshot_results`), which distinguish 0-d arrays from scalars.

    Attributes
    ----------
    outputs : list of Node
        The leaves that a program computes.
    """

    def __init__(self, returned: Any, expected: tuple[list[Any], Any]) -> None:
        leaves, structure = flatten_results(returned)
        if any(isinstance(leaf, Shape) for leaf in leaves):  # tuples that record their use
            returned = unflatten(structure, [tuple(leaf) if isinstance(leaf, Shape) else leaf for leaf in leaves])
            leaves, structure = flatten_results(returned)
        self.structure = structure
        expected_leaves = expected[0] if len(expected[0]) == len(leaves) else leaves
        self.outputs: list[Any] = []
        # By leaf: whether it is a 0-d array, and the number of its output; or None and a constant.
        self._leaf_sources: list[tuple[bool | None, Any]] = []
        for value, expected_leaf in zip(leaves, expected_leaves, strict=True):
            leaf = result_leaf(value)
            if isinstance(leaf, Value):
                self._leaf_sources.append((leaf.ndim == 0 and isinstance(expected_leaf, ndarray), len(self.outputs)))
                self.outputs.append(leaf)
            else:
                self._leaf_sources.append((None, _copy_constant(leaf)))

    def select_outputs(self, returned: Array) -> tuple[Any, ...]:
        """Return the leaves of `returned` that correspond to outputs of the program."""
        leaves = flatten_results(returned)[0]
        return tuple([leaf for leaf, (is_0d, _) in zip(leaves, self._leaf_sources, strict=True) if is_0d is not None])

    def make_builder(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that builds the results from the outputs of a program."""
        are_outputs = all(is_0d is False for is_0d, _ in self._leaf_sources)
        if are_outputs and self.structure.is_leaf():
            return _first_output
        if are_outputs and len(self._leaf_sources) > 1 and self.structure == flatten((0,) * len(self._leaf_sources))[1]:
            return tuple
        leaf_sources, structure = tuple(self._leaf_sources), self.structure

        def build(values: Sequence[Any]) -> Any:
            return unflatten(structure, [_build_leaf(is_0d, source, values) for is_0d, source in leaf_sources])

        return build


def _first_output(values: Sequence[Any]) -> Any:
    return values[0]


def _build_leaf(is_0d: bool | None, source: Any, values: Sequence[Any]) -> Any:
    """Return a leaf of the result from the outputs of a program; see `ResultTree._leaf_sources`."""
    if is_0d is None:
        return source.copy("K") if type(source) is ndarray else source
    value = values[source]
    return np.asarray(value) if is_0d and isinstance(value, np.generic) else value


def result_leaf(value: object) -> Any:
    """Return a leaf of a result; an array that holds nodes is converted to a node."""
    data = None if isinstance(value, ndarray) else getattr(value, "data", None)
    return data if isinstance(data, Value) else unwrap_buffer(stack_object_array(value))


def _copy_constant(value: object) -> Any:
    """Return a copy of a constant result."""
    if type(value) is ndarray and value.dtype.kind in "biufc":
        return value.copy("K")
    if type(value) in _NUMBERS or (isinstance(value, np.generic) and value.dtype.kind in "biufc"):
        return value
    raise NotCompilableError(f"it returns a {type(value).__name__}, not a number, an array, or a tree of these")


def snapshot_results(returned: object) -> tuple[list[Any], Any]:
    """Return copies of the leaves of results, as plain values, and their nesting."""
    leaves, structure = flatten_results(returned)
    return [leaf.copy("K") if isinstance(leaf, ndarray) else leaf for leaf in map(_value_of, leaves)], structure


def _value_of(leaf: Operand) -> Any:
    """Return the value of a result as NumPy returns it: an array, or a scalar for a scalar node."""
    leaf = result_leaf(leaf)
    if not isinstance(leaf, Value):
        return leaf
    value = to_values(leaf)
    return value[()] if isinstance(leaf, (ScalarNode, InertScalarNode)) and isinstance(value, ndarray) else value


def require_close_results(returned: Any, expected: tuple[list[Any], Any], description: str, values: Sequence[Any] = ()) -> None:
    """Raise a NotCompilableError unless results equal NumPy's results for the same arguments, up to rounding.

    Rounding errors of sums with cancellation are bounded by the magnitude of the addends, estimated from the inputs `values`.
    """
    leaves, structure = flatten_results(returned)
    expected_leaves, expected_structure = expected
    rounding = _MAX_ROUNDINGS * max(map(_rounding, map(np.asarray, values)), default=0.0)
    if structure != expected_structure:
        raise NotCompilableError(f"{description} has the structure {structure}, NumPy's result {expected_structure}")
    for position, (actual, other) in enumerate(zip(leaves, expected_leaves, strict=True)):
        if type(actual) is not type(other):
            raise NotCompilableError(
                f"{description} has a {_describe_type(actual)} where NumPy returned a {_describe_type(other)}"
            )
        if isinstance(actual, (ndarray, np.generic)):
            if actual.dtype != other.dtype or actual.shape != other.shape:
                raise NotCompilableError(
                    f"{description} has {_describe_type(actual)} where NumPy returned {_describe_type(other)}"
                )
            if not are_close(actual, other, rounding):
                raise NotCompilableError(f"{description} differs from NumPy's (result {position})")
        elif repr(actual) != repr(other):
            raise NotCompilableError(f"{description} is {actual!r} where NumPy returned {other!r}")


def _describe_type(value: ArrayLike) -> str:
    if isinstance(value, (ndarray, np.generic)):
        return f"{type(value).__name__} of shape {value.shape} and dtype {value.dtype}"
    return type(value).__name__


def are_close(actual: Any, other: Any, rounding: float = 0.0) -> bool:
    """Return whether numbers are equal up to rounding, with an absolute tolerance of at least `rounding`; nan equals nan."""
    if actual.dtype.kind not in "fc":
        return bool(np.array_equal(actual, other))
    with np.errstate(all="ignore"):
        rtol = _RELATIVE_TOLERANCE.get(actual.real.dtype.itemsize, _RELATIVE_TOLERANCE[8])
        atol = max(rtol * _largest_magnitude(other), rounding)
        indices = block_indices(actual.shape)
        return all(np.allclose(actual[index], other[index], rtol=rtol, atol=atol, equal_nan=True) for index in indices)


def block_indices(shape: tuple[int, ...]) -> Iterator[slice | tuple[()]]:
    """Yield indices of blocks along the first axis, whose temporary arrays are small beside a large array."""
    if not shape:
        yield ()
        return
    rows = max(1, _BLOCK_SIZE * shape[0] // max(math.prod(shape), 1))
    for start in range(0, shape[0], rows):
        yield slice(start, start + rows)


def _largest_magnitude(values: NDArray[Any]) -> float:
    """Return the largest absolute value of the finite numbers."""
    largest = 0.0
    for index in block_indices(np.shape(values)):
        block = values[index]
        largest = max(largest, float(np.abs(block, where=np.isfinite(block), out=np.zeros(np.shape(block))).max(initial=0.0)))
    return largest


def _rounding(values: NDArray[Any]) -> float:
    """Return an upper bound of the rounding error of one of some numbers."""
    kind = values.dtype.kind
    precision = np.finfo(values.dtype if kind in "fc" else np.float64).eps
    return float(precision) * _largest_magnitude(values) if kind in "biufc" else 0.0
