"""``scipy.linalg``: operations with rules, SciPy's own Python code, and functions composed of operations."""

from __future__ import annotations

from ..policy import Policy
from . import compiled_functions

_OWN_CODE = """
    block_diag companion convolution_matrix diagsvd fiedler fiedler_companion khatri_rao leslie coshm cosm sinhm sinm tanhm
    tanm matmul_toeplitz solve_circulant orth subspace_angles
"""
_COMPILED = """
    bandwidth cho_factor cho_solve cho_solve_banded circulant hankel ishermitian issymmetric lstsq lu lu_solve norm
    orthogonal_procrustes pinv pinvh qr_multiply solve_banded solve_toeplitz toeplitz
"""

POLICY = Policy(
    module="scipy.linalg",
    smooth={
        "cholesky": "a",
        "cholesky_banded": "ab",
        "det": "a",
        "eig": "a b",
        "eig_banded": "a_band",
        "eigh": "a b",
        "eigh_tridiagonal": "d e",
        "eigvals": "a b",
        "eigvals_banded": "a_band",
        "eigvalsh": "a b",
        "eigvalsh_tridiagonal": "d e",
        "expm": "A",
        "expm_frechet": "A E",
        "fractional_matrix_power": "A",
        "inv": "a",
        "ldl": "A",
        "logm": "A",
        "lu_factor": "a",
        "matrix_balance": "A",
        "null_space": "A",
        "polar": "a",
        "qr": "a",
        "rq": "a",
        "signm": "A",
        "solve": "a b",
        "solve_continuous_are": "a b q r e s",
        "solve_continuous_lyapunov": "a q",
        "solve_discrete_are": "a b q r e s",
        "solve_discrete_lyapunov": "a q",
        "solve_sylvester": "a b q",
        "solve_triangular": "a b",
        "solveh_banded": "ab b",
        "sqrtm": "A",
        "svd": "a",
        "svdvals": "a",
    },
    replacements={name: getattr(compiled_functions, name) for name in _COMPILED.split()},
    own_code=frozenset(_OWN_CODE.split()),
    plain=frozenset(
        {
            *("LinAlgError", "LinAlgWarning", "find_best_blas_type", "get_blas_funcs", "get_lapack_funcs"),
            *("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"),  # of counts
            "solve_lyapunov",  # another name of solve_continuous_lyapunov
        }
    ),
    unsupported={
        "cdf2rdf": "the complex eigenvalues and eigenvectors of scipy.linalg.eig",
        "clarkson_woodruff_transform": "scipy.linalg.clarkson_woodruff_transform(np.eye(n), k) @ a",
        "cossin": "scipy.linalg.svd of the blocks",
        "expm_cond": "np.linalg.norm of scipy.linalg.expm_frechet in one direction",
        "funm": "scipy.linalg.expm, logm, sqrtm, cosm ..., or (v * f(w)) @ np.linalg.inv(v) of scipy.linalg.eig",
        "hessenberg": "the matrix itself, or scipy.linalg.eig",
        "ordqz": "scipy.linalg.eig(a, b)",
        "qr_delete": "scipy.linalg.qr of np.delete(a, ...), mode='economic'",
        "qr_insert": "scipy.linalg.qr of np.insert(a, ...), mode='economic'",
        "qr_update": "scipy.linalg.qr(a + u @ v.T), mode='economic'",
        "qz": "scipy.linalg.eig(a, b)",
        "rsf2csf": "scipy.linalg.eig, or functions of matrices: expm, logm, sqrtm",
        "schur": "scipy.linalg.eig or eigh, or functions of matrices: expm, logm, sqrtm, solve_sylvester",
    },
)
