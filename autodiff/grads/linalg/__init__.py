"""Rules of linear algebra: products, solutions, determinants, decompositions, and what holds at equal eigenvalues.

What is shown here are the formulas that the rules of ``scipy.linalg`` share.
"""

from .decompositions import _cholesky as cholesky
from .decompositions import _cholesky_tangent as cholesky_tangent
from .decompositions import _length as length
from .decompositions import _lstsq_a as lstsq_a
from .decompositions import _lstsq_b as lstsq_b
from .decompositions import _lstsq_tangent_a as lstsq_tangent_a
from .decompositions import _lstsq_tangent_b as lstsq_tangent_b
from .decompositions import _norm as norm
from .decompositions import _norm_corner as norm_corner
from .decompositions import _pinv as pinv
from .decompositions import _pinv_tangent as pinv_tangent
from .decompositions import _qr as qr
from .decompositions import _qr_tangent as qr_tangent
from .determinants import _cofactors as cofactors
from .matrices import _adjoint as adjoint
from .matrices import _diagonal as diagonal
from .matrices import _folded as folded
from .matrices import _half as half
from .matrices import _mirrored as mirrored
from .matrices import _of_matrices as of_matrices
from .matrices import _product as product
from .matrices import _swap as swap
from .repeated import check_along, check_back, equal_pairs, on_diagonal
from .spectra import _eig as eig
from .spectra import _eig_tangent as eig_tangent
from .spectra import _inverse_gaps as inverse_gaps
from .spectra import _of_stacks as of_stacks
from .spectra import _svd as svd
from .spectra import _svd_tangent as svd_tangent

__all__ = [
    "adjoint", "check_along", "check_back", "cholesky", "cholesky_tangent", "cofactors", "diagonal", "eig", "eig_tangent",
    "equal_pairs", "folded", "half", "inverse_gaps", "length", "lstsq_a", "lstsq_b", "lstsq_tangent_a", "lstsq_tangent_b",
    "mirrored", "norm", "norm_corner", "of_matrices", "of_stacks", "on_diagonal", "pinv", "pinv_tangent", "product", "qr",
    "qr_tangent", "svd", "svd_tangent", "swap",
]  # fmt: skip
