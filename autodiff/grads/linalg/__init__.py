"""Rules of linear algebra: products, solutions, determinants and decompositions.

The names exported here are the formulas that the rules of ``scipy.linalg`` share.
"""

from .determinants import cofactors
from .matrix_inverses import (
    conj_transpose,
    diagonals,
    fold_hermitian,
    function_of_matrices,
    matmul_chain,
    mirror_triangle,
    transpose,
    triangle_weights,
)
from .norms_and_factorizations import (
    cholesky,
    cholesky_tangent,
    length,
    lstsq_a,
    lstsq_b,
    lstsq_tangent_a,
    lstsq_tangent_b,
    norm,
    norm_corner,
    pinv,
    pinv_tangent,
    qr,
    qr_tangent,
)
from .repeated_eigenvalues import check_cotangent, check_tangent, equal_pairs, on_diagonal
from .spectral_decompositions import batch_unless_equal, eig, eig_tangent, inverse_gaps, svd, svd_tangent

__all__ = [
    "batch_unless_equal", "check_cotangent", "check_tangent", "cholesky", "cholesky_tangent", "cofactors", "conj_transpose",
    "diagonals", "eig", "eig_tangent", "equal_pairs", "fold_hermitian", "function_of_matrices", "inverse_gaps", "length",
    "lstsq_a", "lstsq_b", "lstsq_tangent_a", "lstsq_tangent_b", "matmul_chain", "mirror_triangle", "norm", "norm_corner",
    "on_diagonal", "pinv", "pinv_tangent", "qr", "qr_tangent", "svd", "svd_tangent", "transpose", "triangle_weights",
]  # fmt: skip
