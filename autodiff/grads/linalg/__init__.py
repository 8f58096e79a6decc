"""Rules of linear algebra: products, solutions, determinants and decompositions.

The names exported here are the formulas that the rules of ``scipy.linalg`` share.
"""

from .inverses_and_determinants import (
    as_columns,
    cofactors,
    conj_transpose,
    diagonals,
    fold_hermitian,
    function_of_matrices,
    matmul_chain,
    mirror_triangle,
    transpose,
    triangle_weights,
)
from .matrix_products import expand_subscripts, tensordot_axes
from .norms_and_factorizations import (
    cholesky_cotangent,
    cholesky_tangent,
    lstsq_cotangent_a,
    lstsq_cotangent_b,
    lstsq_tangent_a,
    lstsq_tangent_b,
    norm_corner,
    norm_numerator,
    norm_weights,
    pinv_cotangent,
    pinv_tangent,
    qr_cotangent,
    qr_tangent,
)
from .spectral_decompositions import (
    batch_unless_equal,
    check_cotangent,
    check_tangent,
    eig_cotangent,
    eig_tangent,
    equal_pairs,
    has_equal_values,
    inverse_gaps,
    on_diagonal,
    svd_cotangent,
    svd_tangent,
)

__all__ = [
    "as_columns", "batch_unless_equal", "check_cotangent", "check_tangent", "cholesky_cotangent", "cholesky_tangent",
    "cofactors", "conj_transpose", "diagonals", "eig_cotangent", "eig_tangent", "equal_pairs", "expand_subscripts",
    "fold_hermitian", "function_of_matrices", "has_equal_values", "inverse_gaps", "lstsq_cotangent_a", "lstsq_cotangent_b",
    "lstsq_tangent_a", "lstsq_tangent_b", "matmul_chain", "mirror_triangle", "norm_corner", "norm_numerator", "norm_weights",
    "on_diagonal", "pinv_cotangent", "pinv_tangent", "qr_cotangent", "qr_tangent", "svd_cotangent", "svd_tangent",
    "tensordot_axes", "transpose", "triangle_weights",
]  # fmt: skip
