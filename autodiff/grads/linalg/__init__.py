"""Rules of linear algebra: products, solutions, determinants and decompositions.

The names exported here are the formulas that the rules of ``scipy.linalg`` share.
"""

from .determinants import cofactors
from .matrix_inverses import conj_transpose as adjoint
from .matrix_inverses import diagonals as diagonal
from .matrix_inverses import fold_hermitian as folded
from .matrix_inverses import function_of_matrices as of_matrices
from .matrix_inverses import matmul_chain as product
from .matrix_inverses import mirror_triangle as mirrored
from .matrix_inverses import transpose as swap
from .matrix_inverses import triangle_weights as half
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
from .spectral_decompositions import batch_unless_equal as of_stacks
from .spectral_decompositions import eig, eig_tangent, inverse_gaps, svd, svd_tangent

__all__ = [
    "adjoint", "check_cotangent", "check_tangent", "cholesky", "cholesky_tangent", "cofactors", "diagonal", "eig", "eig_tangent",
    "equal_pairs", "folded", "half", "inverse_gaps", "length", "lstsq_a", "lstsq_b", "lstsq_tangent_a", "lstsq_tangent_b",
    "mirrored", "norm", "norm_corner", "of_matrices", "of_stacks", "on_diagonal", "pinv", "pinv_tangent", "product", "qr",
    "qr_tangent", "svd", "svd_tangent", "swap",
]  # fmt: skip
