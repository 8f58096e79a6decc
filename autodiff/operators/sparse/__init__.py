"""Sparse Jacobians and Hessians: which elements can differ from zero, and which columns are found together."""

from .sparsity import sparse_hessian, sparse_jacobian

__all__ = ["sparse_hessian", "sparse_jacobian"]
