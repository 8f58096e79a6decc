"""Products and decompositions of matrices."""

from __future__ import annotations

import numpy as np

from .policy import Policy

POLICY = Policy(
    smooth_ufuncs=frozenset({np.vecdot, np.matvec, np.vecmat}),
    smooth={
        np.linalg.inv: "a",
        np.linalg.det: "a",
        np.linalg.slogdet: "a",
        np.linalg.solve: "a b",
        np.linalg.matrix_power: "a",
        np.linalg.tensorinv: "a",
        np.linalg.tensorsolve: "a b",
        np.linalg.norm: "x",
        np.linalg.cond: "x",
        np.linalg.vecdot: "x1 x2",
        np.linalg.cholesky: "a",
        np.linalg.eigh: "a",
        np.linalg.eigvalsh: "a",
        np.linalg.eig: "a",
        np.linalg.eigvals: "a",
        np.linalg.svd: "a",
        np.linalg.qr: "a",
        np.linalg.pinv: "a",
        np.linalg.lstsq: "a b",
        np.kron: "a b",
        np.cross: "a b",
    },
    packed=(np.linalg.multi_dot,),
    composed=frozenset(
        {
            np.linalg.vector_norm, np.linalg.matrix_norm, np.linalg.cross, np.linalg.svdvals,
            np.linalg.trace, np.linalg.diagonal,
        }
    ),
    piecewise={np.linalg.matrix_rank: "A tol rtol"},
)  # fmt: skip
