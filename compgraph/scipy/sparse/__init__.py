"""``scipy.sparse``: products of plain sparse matrices with nodes, and sparse matrices whose elements are nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import scipy.sparse

from ..policy import Policy
from . import making, products, recorded

__all__ = ["POLICY", "making", "products", "recorded"]

_CLASSES = [f"{format}_{kind}" for format in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil") for kind in ("array", "matrix")]
_METHODS: dict[str, Callable[..., Any]] = {
    "__matmul__": recorded.matmul,
    "__rmatmul__": recorded.rmatmul,
    "dot": recorded.dot,
    "multiply": recorded.multiply,
    "__truediv__": recorded.divide,
    "__add__": recorded.add,
    "__radd__": recorded.add,
    "__sub__": recorded.subtract,
    "__rsub__": recorded.rsubtract,
    "__init__": making.make,
}
_OF_ARRAYS = {"__mul__": recorded.multiply, "__rmul__": recorded.multiply}


def _rmul_of_matrix(a: Any, b: Any) -> Any:
    return _product_of_matrix(a, b, recorded.rmatmul)


def _mul_of_matrix(a: Any, b: Any) -> Any:
    return _product_of_matrix(a, b, recorded.matmul)


def _product_of_matrix(a: Any, b: Any, product: Any) -> Any:
    """``a * b`` of what SciPy calls a matrix: a product, but with a number."""
    is_number = not scipy.sparse.issparse(b) and getattr(b, "ndim", 1) == 0
    return recorded.multiply(a, b) if is_number else product(a, b)


_OF_MATRICES = {"__mul__": _mul_of_matrix, "__rmul__": _rmul_of_matrix}


def _methods() -> Iterator[tuple[str, Any]]:
    for kind in _CLASSES:
        own = _OF_ARRAYS if kind.endswith("array") else _OF_MATRICES
        for name, answer in {**_METHODS, **own}.items():
            yield f"{kind}.{name}", answer


_PLAIN = """
    SparseEfficiencyWarning SparseWarning eye eye_array identity issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc
    isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil get_index_dtype safely_cast_index_arrays sparray spmatrix rand random
    random_array load_npz
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
    },
    plain=frozenset([*_PLAIN.split(), *_CLASSES]),
    refused={
        "save_npz": "A.data.value with its indices: a file keeps no graph",
        **dict.fromkeys(("expand_dims", "permute_dims", "swapaxes", "matrix_transpose"), "A.T, A.reshape"),
    },
)
