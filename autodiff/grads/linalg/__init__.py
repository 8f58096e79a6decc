"""Rules of linear algebra: products, solutions, determinants, decompositions, and what holds at equal eigenvalues.

What is shown here are the formulas that the rules of ``scipy.linalg`` share.
"""

from .determinants import _cofactors as cofactors
from .matrix_inverses import _adjoint as adjoint
from .matrix_inverses import _diagonal as diagonal
from .matrix_inverses import _folded as folded
from .matrix_inverses import _half as half
from .matrix_inverses import _mirrored as mirrored
from .matrix_inverses import _of_matrices as of_matrices
from .matrix_inverses import _product as product
from .matrix_inverses import _swap as swap
from .norms_and_factorizations import _cholesky as cholesky
from .norms_and_factorizations import _cholesky_tangent as cholesky_tangent
from .norms_and_factorizations import _length as length
from .norms_and_factorizations import _lstsq_a as lstsq_a
from .norms_and_factorizations import _lstsq_b as lstsq_b
from .norms_and_factorizations import _lstsq_tangent_a as lstsq_tangent_a
from .norms_and_factorizations import _lstsq_tangent_b as lstsq_tangent_b
from .norms_and_factorizations import _norm as norm
from .norms_and_factorizations import _norm_corner as norm_corner
from .norms_and_factorizations import _pinv as pinv
from .norms_and_factorizations import _pinv_tangent as pinv_tangent
from .norms_and_factorizations import _qr as qr
from .norms_and_factorizations import _qr_tangent as qr_tangent
from .repeated_eigenvalues import check_along, check_back, equal_pairs, on_diagonal
from .spectral_decompositions import _eig as eig
from .spectral_decompositions import _eig_tangent as eig_tangent
from .spectral_decompositions import _inverse_gaps as inverse_gaps
from .spectral_decompositions import _of_stacks as of_stacks
from .spectral_decompositions import _svd as svd
from .spectral_decompositions import _svd_tangent as svd_tangent

__all__ = [
    "adjoint", "check_along", "check_back", "cholesky", "cholesky_tangent", "cofactors", "diagonal", "eig", "eig_tangent",
    "equal_pairs", "folded", "half", "inverse_gaps", "length", "lstsq_a", "lstsq_b", "lstsq_tangent_a", "lstsq_tangent_b",
    "mirrored", "norm", "norm_corner", "of_matrices", "of_stacks", "on_diagonal", "pinv", "pinv_tangent", "product", "qr",
    "qr_tangent", "svd", "svd_tangent", "swap",
]  # fmt: skip
