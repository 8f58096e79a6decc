"""``scipy.sparse``: products of plain sparse matrices with nodes, and sparse matrices whose elements are nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import scipy.sparse

from ..policy import Policy
from . import arithmetic, making
from . import recorded as recorded  # fills in the methods of matrices whose elements are nodes
from .arithmetic import add, matmul, multiply
from .elements import built, is_recorded, parts_of, settled
from .patterns import Pattern
from .products import product, solution, times

__all__ = [
    "POLICY", "Pattern", "add", "built", "is_recorded", "matmul", "multiply", "parts_of", "product", "settled", "solution",
    "times",
]  # fmt: skip

_CLASSES = [f"{format}_{kind}" for format in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil") for kind in ("array", "matrix")]
_METHODS: dict[str, Callable[..., Any]] = {
    "__matmul__": arithmetic.matmul,
    "__rmatmul__": arithmetic.rmatmul,
    "dot": arithmetic.dot,
    "multiply": arithmetic.multiply,
    "__truediv__": arithmetic.divide,
    "__add__": arithmetic.add,
    "__radd__": arithmetic.add,
    "__sub__": arithmetic.subtract,
    "__rsub__": arithmetic.rsubtract,
    "__init__": making.make,
}
_OF_ARRAYS = {"__mul__": arithmetic.multiply, "__rmul__": arithmetic.multiply}


def _rmul_of_matrix(a: Any, b: Any) -> Any:
    return _product_of_matrix(a, b, arithmetic.rmatmul)


def _mul_of_matrix(a: Any, b: Any) -> Any:
    return _product_of_matrix(a, b, arithmetic.matmul)


def _product_of_matrix(a: Any, b: Any, product: Any) -> Any:
    """``a * b`` of what SciPy calls a matrix: a product, but with a number."""
    is_number = not scipy.sparse.issparse(b) and getattr(b, "ndim", 1) == 0
    return arithmetic.multiply(a, b) if is_number else product(a, b)


_OF_MATRICES = {"__mul__": _mul_of_matrix, "__rmul__": _rmul_of_matrix}


def _methods() -> Iterator[tuple[str, Any]]:
    for kind in _CLASSES:
        own = _OF_ARRAYS if kind.endswith("array") else _OF_MATRICES
        for name, answer in {**_METHODS, **own}.items():
            yield f"{kind}.{name}", answer


_PLAIN = """
    SparseEfficiencyWarning SparseWarning eye eye_array identity issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc
    isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil get_index_dtype safely_cast_index_arrays sparray spmatrix
    rand random random_array load_npz
"""

POLICY = Policy(
    module="scipy.sparse",
    instead={
        **dict(_methods()),
        **{name: making.diagonals(name) for name in ("diags", "diags_array")},
        **{name: making.of_blocks(name) for name in ("bmat", "block_array", "hstack", "vstack", "block_diag")},
        **{name: making.triangle(name) for name in ("tril", "triu")},
        "spdiags": making.spdiags,
        "kron": making.kron,
        "kronsum": making.kronsum,
        "find": making.find,
        "matrix_transpose": making.transpose,
        "permute_dims": making.permute_dims,
        "swapaxes": making.swapaxes,
    },
    plain=frozenset([*_PLAIN.split(), *_CLASSES]),
    refused={
        "save_npz": "A.data.value with its indices: a file keeps no graph",
        "expand_dims": "a matrix of two dimensions: those of others cannot hold nodes",
    },
)
