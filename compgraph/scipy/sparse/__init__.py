"""``scipy.sparse``: products of plain sparse matrices with nodes, and sparse matrices whose elements are nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import scipy.sparse

from ..policy import Policy
from . import matrix_creation, matrix_methods
from .matrix_methods import add, matmul, multiply
from .node_matrices import (
    Pattern,
    build_matrix,
    elements_and_pattern,
    has_nodes,
    plain_class,
    product,
    solution,
    sum_duplicates,
    times,
)

__all__ = [
    "POLICY", "Pattern", "add", "build_matrix", "elements_and_pattern", "has_nodes", "matmul", "multiply", "plain_class",
    "product", "solution", "sum_duplicates", "times",
]  # fmt: skip

_FORMATS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
_CLASS_NAMES = [f"{format}_{kind}" for format in _FORMATS for kind in ("array", "matrix")]
_METHODS: dict[str, Callable[..., Any]] = {
    "__matmul__": matrix_methods.matmul,
    "__rmatmul__": matrix_methods.rmatmul,
    "dot": matrix_methods.dot,
    "multiply": matrix_methods.multiply,
    "__truediv__": matrix_methods.divide,
    "__add__": matrix_methods.add,
    "__radd__": matrix_methods.add,
    "__sub__": matrix_methods.subtract,
    "__rsub__": matrix_methods.rsubtract,
    "__init__": matrix_creation.init_matrix,
}
_ARRAY_METHODS = {"__mul__": matrix_methods.multiply, "__rmul__": matrix_methods.multiply}


def _matrix_rmul(a: object, b: object) -> Any:
    return _matrix_product(a, b, matrix_methods.rmatmul)


def _matrix_mul(a: object, b: object) -> Any:
    return _matrix_product(a, b, matrix_methods.matmul)


def _matrix_product(a: object, b: object, matrix_product: Callable[..., Any]) -> Any:
    """``a * b`` for SciPy's matrix classes: the matrix product, unless `b` is a number."""
    is_number = not scipy.sparse.issparse(b) and getattr(b, "ndim", 1) == 0
    return matrix_methods.multiply(a, b) if is_number else matrix_product(a, b)


_MATRIX_METHODS = {"__mul__": _matrix_mul, "__rmul__": _matrix_rmul}


def _methods() -> Iterator[tuple[str, Any]]:
    for class_name in _CLASS_NAMES:
        operators = _ARRAY_METHODS if class_name.endswith("array") else _MATRIX_METHODS
        for name, method in {**_METHODS, **operators}.items():
            yield f"{class_name}.{name}", method
        if hasattr(getattr(scipy.sparse, class_name), "__setitem__"):
            yield f"{class_name}.__getitem__", matrix_methods.indexing_method(class_name)
            yield f"{class_name}.__setitem__", matrix_methods.assignment_method(class_name)


_PLAIN = """
    SparseEfficiencyWarning SparseWarning eye eye_array identity issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc
    isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil get_index_dtype safely_cast_index_arrays sparray spmatrix
    rand random random_array load_npz
"""

POLICY = Policy(
    module="scipy.sparse",
    replacements={
        **dict(_methods()),
        **{name: matrix_creation.diagonal_constructor(name) for name in ("diags", "diags_array")},
        **{name: matrix_creation.block_constructor(name) for name in ("bmat", "block_array", "hstack", "vstack", "block_diag")},
        **{name: matrix_creation.triangle_function(name) for name in ("tril", "triu")},
        "spdiags": matrix_creation.spdiags,
        "kron": matrix_creation.kron,
        "kronsum": matrix_creation.kronsum,
        "find": matrix_creation.find,
        "matrix_transpose": matrix_creation.matrix_transpose,
        "permute_dims": matrix_creation.permute_dims,
        "swapaxes": matrix_creation.swapaxes,
    },
    plain=frozenset([*_PLAIN.split(), *_CLASS_NAMES]),
    unsupported={
        **{f"{class_name}.setdiag": matrix_methods.ASSEMBLY for class_name in _CLASS_NAMES},
        "save_npz": "A.data.value and the indices (a file holds no graph)",
        "expand_dims": "a matrix of two dimensions (others cannot hold nodes)",
    },
)
