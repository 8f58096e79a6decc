"""Solutions of sparse linear systems, by factorizations and by iteration; operations of ``scipy.sparse.linalg``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ....array_types import Array
from ....frames import warn_user
from ....graph import stack_nested, to_values
from ....interception import argument_has_node, unpatched
from ....protocols import primitive, unsupported_message
from ....tracing import is_tracing
from ....values import Value
from ...tools import pin_value
from .. import add, build_matrix, elements_and_pattern, has_nodes, multiply, solution

# ------------------------------------------------------------------------------------------------------------ operations


class Factorization:
    """SciPy's factorization of a sparse matrix, recomputed for different elements.

    Parameters
    ----------
    matrix : sparse array
        The matrix of plain numbers.
    data : array
        Its elements, the operand of the recorded operation.
    options : dict
        The options of `splu`.
    """

    def __init__(self, matrix: object, data: NDArray[Any], options: dict[str, Any]) -> None:
        self.options, self.data = options, data
        self.lu = unpatched(scipy.sparse.linalg.splu)(matrix, **options)

    def with_elements(self, data: NDArray[Any], pattern: Any) -> Any:
        """The factorization of the matrix with these elements."""
        if data is self.data:
            return self.lu
        return unpatched(scipy.sparse.linalg.splu)(pattern.matrix(data).tocsc(), **self.options)


@primitive(opname="scipy_sparse_linalg_factored")
def solve_factored(
    data: NDArray[Any], b: NDArray[Any], *, pattern: object, factorization: Factorization, trans: str = "N"
) -> Any:
    """The solution of ``A @ x = b``, or with ``trans="T"`` of ``A.T @ x = b``, by a factorization."""
    return factorization.with_elements(data, pattern).solve(np.asarray(b, np.result_type(data, b, np.float32)), trans)


@primitive(opname="scipy_sparse_linalg_incomplete")
def solve_incomplete(b: Array, *, lu: Any, trans: str = "N") -> Any:
    """Apply an incomplete factorization of a plain matrix to a right-hand side, in which it is linear."""
    return lu.solve(b, trans)


@primitive(opname="scipy_sparse_linalg_expm_multiply")
def apply_expm(x: NDArray[Any], *, matrix: object) -> Any:
    """``expm(matrix) @ x`` with a plain matrix."""
    return unpatched(scipy.sparse.linalg.expm_multiply)(matrix, x)


@primitive(opname="scipy_sparse_linalg_eigenpairs")
def eigenpairs(data: NDArray[Any], *, pattern: object, find: Callable[..., Any]) -> Any:
    """Some eigenvalues and normalized eigenvectors of a symmetric sparse matrix, ``find(data)``."""
    return find(data)


# -------------------------------------------------------------------------------------------------------- linear systems

Solver = Callable[..., Any]


def plain_matrix(matrix: Any) -> Any:
    """A matrix without nodes."""
    return build_matrix(matrix, to_values(matrix.data)) if has_nodes(type(matrix)) else matrix


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.spsolve``."""
    if scipy.sparse.issparse(b):
        raise TypeError(unsupported_message("spsolve with a sparse right-hand side", "spsolve(A, b.toarray())"))
    if not scipy.sparse.issparse(A):
        A = scipy.sparse.csc_array(stack_nested(A))  # noqa: N806
    if A.format not in ("csc", "csr"):
        message = "spsolve requires A be CSC or CSR matrix format"
        warn_user(message, scipy.sparse.SparseEfficiencyWarning)
    b = stack_nested(b)
    _require_square("spsolve", A, b)
    data, pattern = elements_and_pattern(A)
    b = np.reshape(b, (-1,)) if b.ndim == 2 and b.shape[1] == 1 else b
    options = {} if permc_spec is None else {"permc_spec": permc_spec}
    return solution(data, b, pattern=pattern, **options)


def _require_square(name: str, matrix: Any, b: Any = None) -> None:
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"{name}: matrix must be square (has shape {(rows, columns)})")
    if b is not None and rows != b.shape[0]:
        raise ValueError(f"{name}: matrix - rhs dimension mismatch ({matrix.shape} - {b.shape[0]})")


def spsolve_triangular(
    A: Any,  # noqa: N803 (SciPy's name)
    b: object,
    lower: bool = True,
    overwrite_A: bool = False,  # noqa: N803
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """``scipy.sparse.linalg.spsolve_triangular``."""
    scipy_function = unpatched(scipy.sparse.linalg.spsolve_triangular)
    value = scipy_function(plain_matrix(A), to_values(stack_nested(b)), lower=lower, unit_diagonal=unit_diagonal)
    matrix = A.tocsr()
    if unit_diagonal:
        outer = (scipy.sparse.tril if lower else scipy.sparse.triu)(matrix, -1 if lower else 1)
        matrix = add(outer.tocsr(), scipy.sparse.eye_array(A.shape[0], format="csr"))
    data, pattern = elements_and_pattern(matrix)
    x = solution(data, stack_nested(b), pattern=pattern)
    return pin_value(x, value)


# ------------------------------------------------------------------------------------------ factorizations


class NodeFactorization:
    """The result of `splu` for a matrix whose elements are nodes, or while a function is traced."""

    def __init__(self, matrix: object, options: dict[str, Any]) -> None:
        self._data, self._pattern = elements_and_pattern(matrix)
        plain = to_values(self._data)
        self._factorization = Factorization(self._pattern.matrix(plain).tocsc(), plain, options)
        self.shape, self.nnz = self._factorization.lu.shape, self._factorization.lu.nnz

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution for a right-hand side, as ``SuperLU.solve``."""
        rhs = stack_nested(rhs)
        if trans == "H":
            return np.conj(
                solve_factored(self._data, np.conj(rhs), pattern=self._pattern, factorization=self._factorization, trans="T")
            )
        return solve_factored(self._data, rhs, pattern=self._pattern, factorization=self._factorization, trans=trans)

    def __getattr__(self, name: str) -> Any:
        if name not in ("L", "U", "perm_r", "perm_c"):
            raise AttributeError(f"a sparse factorization of nodes has no attribute {name!r}")
        if isinstance(self._data, Value) and name in "LU":
            raise TypeError(unsupported_message(f"{name} of a sparse factorization", "solve, or scipy.linalg.lu of A.toarray()"))
        return getattr(self._factorization.lu, name)


class IncompleteFactorization:
    """The result of `spilu` for a plain matrix while a function is traced."""

    def __init__(self, lu: object) -> None:
        self._lu = lu

    def solve(self, rhs: object, trans: str = "N") -> Any:
        """The solution for a right-hand side, as ``SuperLU.solve``."""
        if trans == "H":
            return np.conj(solve_incomplete(np.conj(stack_nested(rhs)), lu=self._lu, trans="T"))
        return solve_incomplete(stack_nested(rhs), lu=self._lu, trans=trans)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lu, name)


def splu(A: Any, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.splu``; SciPy's own object for plain arguments outside of traces."""
    scipy_function = unpatched(scipy.sparse.linalg.splu)
    if not argument_has_node(A) and (not is_tracing() or not scipy.sparse.issparse(A)):
        return scipy_function(A, *args, **options)
    names = ("permc_spec", "diag_pivot_thresh", "relax", "panel_size", "options")
    _require_square("splu", A)
    return NodeFactorization(A, {**dict(zip(names, args, strict=False)), **options})


def spilu(A: Any, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.spilu``, of plain matrices."""
    if argument_has_node(A):
        raise TypeError(unsupported_message("spilu", "splu, which is exact, or spilu of a plain matrix for a preconditioner"))
    lu = unpatched(scipy.sparse.linalg.spilu)(A, *args, **options)
    return lu if not is_tracing() else IncompleteFactorization(lu)


def factorized(A: Any) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.factorized``."""
    if not argument_has_node(A) and (not is_tracing() or not scipy.sparse.issparse(A)):
        return unpatched(scipy.sparse.linalg.factorized)(A)
    return splu(A.tocsc()).solve


# ---------------------------------------------------------------------------------------------- iterations


def replace_iterative_solver(name: str) -> Solver:
    """Return the replacement of an iterative solver: SciPy computes the value; the derivative is that of the exact solution."""
    scipy_function = unpatched(getattr(scipy.sparse.linalg, name))

    def solve_recorded(A: object, b: Any, x0: object = None, **options: Any) -> Any:  # noqa: N803 (SciPy's names)
        matrix = getattr(A, "A", A) if isinstance(A, scipy.sparse.linalg.LinearOperator) else A
        if isinstance(matrix, scipy.sparse.linalg.LinearOperator):
            raise TypeError(unsupported_message(f"{name} with a LinearOperator", "a sparse matrix, or autodiff.custom_gradient"))
        b = stack_nested(b)
        matrix = matrix if scipy.sparse.issparse(matrix) else stack_nested(matrix)
        matrix_values = plain_matrix(matrix) if scipy.sparse.issparse(matrix) else to_values(matrix)
        for option, value in options.items():
            options[option] = plain_matrix(value) if scipy.sparse.issparse(value) else to_values(value)
        x, info = scipy_function(matrix_values, to_values(b), None if x0 is None else to_values(stack_nested(x0)), **options)
        if info != 0:
            raise RuntimeError(
                f"{name}: no solution was found (info {info}), so it has no derivative. Use more iterations, or spsolve"
            )
        exact = _solve(_shift_diagonal(matrix, options.get("shift", 0.0)), np.reshape(b, (-1,)))
        return pin_value(exact, np.reshape(x, (-1,))), info

    return solve_recorded


def _shift_diagonal(matrix: Any, shift: float) -> Any:
    """The matrix of the equations that `minres` solves."""
    if not shift:
        return matrix
    if not scipy.sparse.issparse(matrix):
        return matrix - shift * np.eye(matrix.shape[0])
    return add(matrix, multiply(scipy.sparse.eye_array(matrix.shape[0], format="csr"), -shift))


def _solve(matrix: Any, b: Any) -> Any:
    if not scipy.sparse.issparse(matrix):
        return np.linalg.solve(matrix, b)
    data, pattern = elements_and_pattern(matrix)
    return solution(data, b, pattern=pattern)
