"""Products of arrays, and decompositions of matrices."""

from __future__ import annotations

import numpy as np

from ..callables import einsum, stacked_matmul
from ..spec import OpSpec, composed, packed, piecewise, rule

OPERATIONS: tuple[OpSpec, ...] = (
    # products
    rule(np.matmul, warns="floats", operator="@"),
    rule(stacked_matmul, warns="floats"),
    composed(np.linalg.matmul),
    rule(np.dot, "a b", warns="floats", method="dot", returns_buffer=True),
    rule(np.inner, "a b", warns="floats"),
    rule(np.outer, "a b", warns="floats", returns_buffer=True),
    composed(np.linalg.outer),
    rule(np.vdot, "a b", warns="floats"),
    rule(np.vecdot),
    rule(np.linalg.vecdot, "x1 x2"),
    rule(np.matvec),
    rule(np.vecmat),
    rule(np.tensordot, "a b", warns="floats"),
    composed(np.linalg.tensordot),
    rule(np.kron, "a b", warns="floats", returns_buffer=True),
    rule(np.cross, "a b"),
    composed(np.linalg.cross),
    rule(einsum, warns="floats"),
    packed(np.linalg.multi_dot, opname="multi_dot"),
    rule(np.linalg.matrix_power, "a", kind="matrices"),
    # solving and inverting
    rule(np.linalg.solve, "a b"),
    rule(np.linalg.inv, "a", kind="matrices"),
    rule(np.linalg.pinv, "a", kind="matrices"),
    rule(np.linalg.lstsq, "a b", kind="sequential", shape_depends_on="values"),
    rule(np.linalg.tensorsolve, "a b", kind="sequential"),
    rule(np.linalg.tensorinv, "a", kind="sequential"),
    # decompositions
    rule(np.linalg.cholesky, "a", kind="matrices"),
    rule(np.linalg.qr, "a", kind="matrices"),
    rule(np.linalg.svd, "a", kind="matrices"),
    composed(np.linalg.svdvals),
    rule(np.linalg.eig, "a", kind="matrices", real_on="unknown"),
    rule(np.linalg.eigh, "a", kind="matrices"),
    rule(np.linalg.eigvals, "a", kind="matrices", real_on="unknown"),
    rule(np.linalg.eigvalsh, "a", kind="matrices"),
    # determinants, norms, ranks
    rule(np.linalg.det, "a", kind="matrices"),
    rule(np.linalg.slogdet, "a", kind="matrices"),
    rule(np.linalg.norm, "x", corner="length"),
    composed(np.linalg.vector_norm),
    composed(np.linalg.matrix_norm),
    rule(np.linalg.cond, "x", kind="matrices"),
    composed(np.linalg.trace),
    piecewise(np.linalg.matrix_rank, "A tol rtol", kind="matrices"),
)
