"""Sparse matrices from nodes: constructors of the classes, diagonals and blocks.

SciPy's function runs on a matrix of element numbers; see `node_matrices`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from ...array_types import Array
from ...graph import stack_nested
from ...guards import evaluate_guarded, guarded_value
from ...interception import argument_has_node, unpatched
from ...values import Value
from .matrix_methods import add
from .node_matrices import FORMATS, build_matrix, has_nodes, number_elements, plain_class, read_elements, sum_duplicates

Function = Callable[..., Any]

_CLASSES_WITH_NODES = tuple(
    getattr(scipy.sparse, f"{format}_{kind}") for format in (*FORMATS, "dia", "bsr") for kind in ("array", "matrix")
)


def init_matrix(
    self: Any, arg1: object, shape: object = None, dtype: DTypeLike | None = None, copy: bool = False, **options: object
) -> None:
    """``__init__`` of SciPy's classes, for elements that are nodes."""
    cls = type(self)
    if not issubclass(cls, _CLASSES_WITH_NODES):
        raise TypeError(f"a {cls.__name__} cannot hold nodes. Use csr_array, csc_array or coo_array")
    if isinstance(arg1, tuple):
        is_shape = len(arg1) == 2 and not isinstance(arg1[1], (tuple, list)) and np.ndim(arg1[1]) == 0
        pattern = guarded_value(arg1 if is_shape else arg1[1:], "the pattern of a sparse matrix")
        arg1 = pattern if is_shape else (arg1[0], *pattern)
    shape = guarded_value(shape, "the shape of a sparse matrix")
    if not argument_has_node(arg1):
        unpatched(cls.__init__)(self, arg1, shape, dtype, copy, **options)
        return
    matrix = _create_matrix(cls, arg1, shape)
    if dtype is not None:
        matrix = matrix.astype(dtype)
    self.__dict__.update(matrix.__dict__)
    self.__class__ = type(matrix)


def _create_matrix(cls: Any, arg1: object, shape: object) -> Any:
    """Create a matrix of a class from its first argument; in CSR format if instances of the class cannot hold nodes."""
    if isinstance(arg1, tuple) and len(arg1) == 3:
        data = stack_nested(arg1[0])
        return read_elements(cls((_make_element_numbers(data), *arg1[1:]), shape=shape), np.ravel(data))
    if isinstance(arg1, tuple) and len(arg1) == 2:
        data, coordinates = stack_nested(arg1[0]), arg1[1]
        if isinstance(coordinates, (tuple, list)) and len(coordinates) == 2 and np.ndim(coordinates[0]):
            numbered = scipy.sparse.coo_array((_make_element_numbers(data), coordinates), shape=shape)
            return _to_class(cls, read_elements(numbered, np.ravel(data)))
        return read_elements(cls((_make_element_numbers(data), coordinates), shape=shape), np.ravel(data))
    if has_nodes(type(arg1)):
        _require_shape(shape, arg1)
        return _to_class(cls, arg1)
    elements = stack_nested(arg1)
    if plain_class(cls)(np.zeros(np.shape(elements))).ndim == 1:
        raise TypeError(f"a {cls.__name__} with one axis cannot hold nodes. Use a matrix of one row: np.reshape(x, (1, -1))")
    full = np.atleast_2d(elements)
    _require_shape(shape, full)
    rows, cols = np.indices(full.shape)
    return _to_class(
        cls, build_matrix(scipy.sparse.coo_array((np.ones(full.size), (rows.ravel(), cols.ravel()))), np.ravel(full))
    )


def _require_shape(shape: Any, matrix: Any) -> None:
    if shape is not None and tuple(shape) != matrix.shape:
        raise ValueError(f"shape={tuple(shape)} differs from the shape {matrix.shape} of the elements")


def _make_element_numbers(data: Array) -> Any:
    """Return the numbers of the elements, 1, 2, 3 ..., in the shape of `data`."""
    return np.arange(1, data.size + 1).reshape(data.shape)


def _to_class(cls: Any, matrix: Any) -> Any:
    """Convert a matrix to the format of `cls`."""
    source = matrix if plain_class(cls)((1, 1)).format == "coo" else sum_duplicates(matrix)
    return read_elements(plain_class(cls)(number_elements(source)), source.data)


# --------------------------------------------------------------------------------- diagonals and blocks


def diagonal_constructor(name: str) -> Function:
    """Return the replacement of ``diags`` or ``diags_array``."""
    scipy_function = unpatched(getattr(scipy.sparse, name))
    parameters = inspect.signature(scipy_function)

    def construct(*args: object, **kwargs: object) -> Any:
        options = parameters.bind(*args, **kwargs).arguments
        diagonals, format, dtype = options.pop("diagonals"), options.pop("format", None), options.pop("dtype", None)
        offsets = options.get("offsets", 0)
        is_single_diagonal = np.ndim(offsets) == 0 and (len(diagonals) == 0 or np.ndim(diagonals[0]) == 0)
        rows = [diagonals] if is_single_diagonal else list(diagonals)
        parts = [np.atleast_1d(stack_nested(row)) for row in rows]
        element_numbers, start = [], 1
        for part in parts:
            element_numbers.append(np.arange(start, start + part.shape[0]))
            start += part.shape[0]
        number_matrix = scipy_function(element_numbers[0] if is_single_diagonal else element_numbers, **options, dtype=np.int64)
        matrix = _to_format(read_elements(number_matrix, np.concatenate(parts)), format)
        return matrix if dtype is None else matrix.astype(dtype)

    return construct


def _to_format(matrix: Any, name: object) -> Any:
    """Convert a matrix to a format; to csr if matrices of that format cannot hold nodes."""
    return matrix.asformat(name if name in FORMATS else "csr")


def spdiags(data: Any, diags: object, m: object = None, n: object = None, format: object = None) -> Any:
    """``scipy.sparse.spdiags``."""
    data = stack_nested(data)
    number_matrix = unpatched(scipy.sparse.spdiags)(_make_element_numbers(np.atleast_2d(data)), diags, m, n)
    return _to_format(read_elements(number_matrix, np.ravel(data)), format)


def block_constructor(name: str) -> Function:
    """Return the replacement of a function that builds a matrix from blocks."""
    scipy_function = unpatched(getattr(scipy.sparse, name))
    parameters = inspect.signature(scipy_function)

    def construct(*args: object, **kwargs: object) -> Any:
        (_, blocks), *other_arguments = parameters.bind(*args, **kwargs).arguments.items()
        options = dict(other_arguments)
        format, dtype = options.pop("format", None), options.pop("dtype", None)
        elements: list[Any] = []
        count = 0

        def number_block(block: Any) -> Any:
            nonlocal count
            if block is None:
                return None
            if isinstance(block, (list, tuple)) and any(
                scipy.sparse.issparse(b) or isinstance(b, Value) or b is None for b in block
            ):
                return [number_block(b) for b in block]
            if not scipy.sparse.issparse(block):
                block = stack_nested(block)
                block = (
                    scipy.sparse.coo_array(block)
                    if not isinstance(block, Value)
                    else _create_matrix(scipy.sparse.coo_array, block, None)
                )
            block = sum_duplicates(block)
            numbered_block = number_elements(block, count)
            elements.append(block.data)
            count += block.nnz
            return numbered_block

        block_numbers = [number_block(block) for block in blocks]
        matrix = _to_format(read_elements(scipy_function(block_numbers, **options), np.concatenate(elements)), format)
        return matrix if dtype is None else matrix.astype(dtype)

    return construct


def kron(A: object, B: object, format: object = None) -> Any:  # noqa: N803 (SciPy's names)
    """``scipy.sparse.kron``."""
    a, b = (sum_duplicates(m if scipy.sparse.issparse(m) else scipy.sparse.coo_array(stack_nested(m))) for m in (A, B))
    scipy_function = unpatched(scipy.sparse.kron)
    ones = [build_matrix(m, np.ones(m.nnz, np.int64)) for m in (a, b)]
    # The numbers of the elements of `a` and of `b` whose products are the elements of the result.
    left, right = scipy_function(number_elements(a), ones[1], "coo"), scipy_function(ones[0], number_elements(b), "coo")
    return _to_format(build_matrix(left, read_elements(left, a.data).data * read_elements(right, b.data).data), format)


def kronsum(A: Any, B: Any, format: Any = None) -> Any:  # noqa: N803 (SciPy's names)
    """``scipy.sparse.kronsum``."""
    left = kron(scipy.sparse.eye_array(B.shape[0]), A)
    return _to_format(add(left, kron(B, scipy.sparse.eye_array(A.shape[0]))), format)


def triangle_function(name: str) -> Function:
    """Return the replacement of ``tril`` or ``triu``."""
    scipy_function = unpatched(getattr(scipy.sparse, name))

    def construct(A: object, k: int = 0, format: str | None = None) -> Any:  # noqa: N803 (SciPy's names)
        source = sum_duplicates(A if scipy.sparse.issparse(A) else scipy.sparse.coo_array(stack_nested(A)))
        return _to_format(read_elements(scipy_function(number_elements(source), k), source.data), format or source.format)

    return construct


def matrix_transpose(A: Any) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.matrix_transpose``."""
    return A.transpose()


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.permute_dims``."""
    unpatched(scipy.sparse.permute_dims)(scipy.sparse.coo_array(A.shape), axes)  # raises for invalid axes
    is_same = axes is not None and [axis % 2 for axis in axes] == [0, 1]
    return (A.copy() if copy else A) if is_same else A.transpose()


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.swapaxes``."""
    unpatched(scipy.sparse.swapaxes)(scipy.sparse.coo_array(A.shape), axis1, axis2)  # raises for invalid axes
    return A.copy() if axis1 % 2 == axis2 % 2 else A.transpose()


def find(A: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.find``: the positions and values of the nonzero elements."""
    source = sum_duplicates(A if scipy.sparse.issparse(A) else scipy.sparse.coo_array(stack_nested(A))).tocoo()
    nonzero = evaluate_guarded("the nonzero elements of scipy.sparse.find", np.flatnonzero, source.data)
    return source.row[nonzero], source.col[nonzero], source.data[nonzero]
