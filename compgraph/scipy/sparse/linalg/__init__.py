"""``scipy.sparse.linalg``: linear systems, norms, exponentials and eigenvalues of sparse matrices with nodes."""

from __future__ import annotations

import math
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
from ...policy import Policy
from ...tools import pin_value
from .. import Pattern, add, build_matrix, elements_and_pattern, has_nodes, matmul, multiply, product, solution, sum_duplicates

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
        strict_triangle = (scipy.sparse.tril if lower else scipy.sparse.triu)(matrix, -1 if lower else 1)
        matrix = add(strict_triangle.tocsr(), scipy.sparse.eye_array(A.shape[0], format="csr"))
    data, pattern = elements_and_pattern(matrix)
    x = solution(data, stack_nested(b), pattern=pattern)
    return pin_value(x, value)


# ------------------------------------------------------------------------------------------ factorizations


class NodeFactorization:
    """The result of `splu` for a matrix whose elements are nodes, or while a function is traced."""

    def __init__(self, matrix: object, options: dict[str, Any]) -> None:
        self._data, self._pattern = elements_and_pattern(matrix)
        plain_data = to_values(self._data)
        self._factorization = Factorization(self._pattern.matrix(plain_data).tocsc(), plain_data, options)
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


def splu(A: object, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.splu``; SciPy's own object for plain arguments outside of traces."""
    scipy_function = unpatched(scipy.sparse.linalg.splu)
    if not argument_has_node(A) and (not is_tracing() or not scipy.sparse.issparse(A)):
        return scipy_function(A, *args, **options)
    names = ("permc_spec", "diag_pivot_thresh", "relax", "panel_size", "options")
    _require_square("splu", A)
    return NodeFactorization(A, {**dict(zip(names, args, strict=False)), **options})


def spilu(A: object, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
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


def replace_iterative_solver(name: str) -> Callable[..., Any]:
    """Return the replacement of an iterative solver: SciPy computes the value; the derivative is that of the exact solution."""
    scipy_function = unpatched(getattr(scipy.sparse.linalg, name))

    def solve_recorded(A: object, b: NDArray[Any], x0: object = None, **options: Any) -> Any:  # noqa: N803 (SciPy's names)
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


def _solve(matrix: Array, b: NDArray[Any]) -> Any:
    if not scipy.sparse.issparse(matrix):
        return np.linalg.solve(matrix, b)
    data, pattern = elements_and_pattern(matrix)
    return solution(data, b, pattern=pattern)


# ------------------------------------------------------------------------------------------ functions of matrices

TERMS = 24  # of the exponential series of a matrix of norm 1: the remainder is less than 1e-24


def norm(x: Any, ord: object = None, axis: int | tuple[int, ...] | None = None) -> Any:
    """``scipy.sparse.linalg.norm``."""
    x = sum_duplicates(x)
    if axis in (None, (0, 1), (1, 0)) and ord in (None, "fro", "f"):
        return np.sqrt(np.sum(np.abs(x.data) ** 2))
    if axis is None and ord in (1, -1, np.inf, -np.inf):
        sums = abs(x).sum(axis=0 if abs(ord) == 1 else 1)
        return np.max(sums) if ord > 0 else np.min(sums)
    single_axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if isinstance(single_axis, (int, np.integer)) and ord in (None, 1, 2):
        powers = build_matrix(x, np.abs(x.data) ** (1 if ord == 1 else 2))
        sums = np.ravel(powers.sum(axis=int(single_axis)))
        return sums if ord == 1 else np.sqrt(sums)
    raise TypeError(
        unsupported_message(f"the norm of order {ord} of a sparse matrix along {axis}", "np.linalg.norm(A.toarray(), ord)")
    )


def inv(A: Any) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.inv``: the inverse, with all elements stored."""
    data, pattern = elements_and_pattern(A)
    inverse = solution(data, np.eye(A.shape[0], dtype=data.dtype), pattern=pattern)
    cls = scipy.sparse.csc_array if isinstance(A, scipy.sparse.sparray) else scipy.sparse.csc_matrix
    return cls(inverse).asformat(A.format)


def matrix_power(A: object, power: int) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.matrix_power``."""
    if power < 0:
        raise ValueError("exponent must be >= 0")
    if power == 0:
        return unpatched(scipy.sparse.linalg.matrix_power)(plain_matrix(A), 0)
    result = A
    for _ in range(int(power) - 1):
        result = matmul(result, A)
    return result


def expm_multiply(
    A: object,  # noqa: N803 (SciPy's name)
    B: object,  # noqa: N803
    start: int | None = None,
    stop: int | None = None,
    num: int | None = None,
    endpoint: object = None,
    traceA: object = None,  # noqa: N803
) -> Any:
    """``scipy.sparse.linalg.expm_multiply`` at one time: the exponential series, in a number of steps given by the norm."""
    if any(option is not None for option in (start, stop, num, endpoint)):
        raise TypeError(unsupported_message("expm_multiply at several times", "expm_multiply(A * t, B) for each of them"))
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise TypeError(unsupported_message("expm_multiply with a LinearOperator", "a sparse matrix"))
    x = stack_nested(B)
    if not has_nodes(type(A)) and not isinstance(A, Value):
        return apply_expm(x, matrix=A)
    if isinstance(A, Value):
        A = scipy.sparse.csr_array(A)  # noqa: N806
    data, pattern = elements_and_pattern(A)
    plain = plain_matrix(A)
    value = unpatched(scipy.sparse.linalg.expm_multiply)(plain, to_values(x))
    steps = max(1, math.ceil(float(unpatched(scipy.sparse.linalg.norm)(plain, 1))))
    for _ in range(steps):
        term = x
        for k in range(1, TERMS + 1):
            term = product(data, term, pattern=pattern) / (steps * k)
            x = x + term
    return pin_value(x, value)


# ---------------------------------------------------------------------------------------------- eigenvalues


def eigsh(A: object, k: int = 6, M: object = None, sigma: float | None = None, **options: object) -> Any:  # noqa: N803 (SciPy's names)
    """``scipy.sparse.linalg.eigsh`` of real symmetric matrices."""
    if not scipy.sparse.issparse(A):
        raise TypeError(
            unsupported_message("eigsh of an object that is not a sparse matrix", "np.linalg.eigh, or a sparse matrix")
        )
    if M is not None or options.get("mode", "normal") != "normal":
        raise TypeError(unsupported_message("eigsh with M= or mode=", "np.linalg.eigh of the dense matrix"))
    data, pattern = elements_and_pattern(A)
    if data.dtype.kind == "c":
        raise TypeError(unsupported_message("eigsh of a complex matrix", "np.linalg.eigh(A.toarray())"))
    returns_vectors = options.pop("return_eigenvectors", True)
    scipy_function = unpatched(scipy.sparse.linalg.eigsh)

    def find(numbers: NDArray[Any]) -> Any:
        w, v = scipy_function(pattern.matrix(numbers), k, sigma=to_values(sigma), **options)
        if returns_vectors:
            return w, v
        values_only = scipy_function(pattern.matrix(numbers), k, sigma=to_values(sigma), return_eigenvectors=False, **options)
        order = np.argsort(w)[np.argsort(np.argsort(values_only))]  # without vectors, SciPy's order of the values differs
        return w[order], v[:, order]

    w, v = eigenpairs(data, pattern=pattern, find=find)
    return (w, v) if returns_vectors else w


def svds(A: object, k: int = 6, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.svds`` of real matrices: eigenvalues of ``[[0, A], [A.T, 0]]``."""
    if not scipy.sparse.issparse(A):
        raise TypeError(unsupported_message("svds of an object that is not a sparse matrix", "np.linalg.svd"))
    returns_vectors = options.pop("return_singular_vectors", True)
    if returns_vectors not in (True, False) or args:
        raise TypeError(unsupported_message("svds with these options", "svds(A, k) and keyword arguments"))
    data, pattern = elements_and_pattern(A)
    if data.dtype.kind == "c":
        raise TypeError(unsupported_message("svds of a complex matrix", "np.linalg.svd(A.toarray())"))
    m, n = pattern.shape
    scipy_function = unpatched(scipy.sparse.linalg.svds)

    def find(numbers: NDArray[Any]) -> Any:
        u, s, vh = scipy_function(pattern.matrix(numbers[: pattern.count]), k, **options)
        return s, np.concatenate([u, vh.T]) / np.sqrt(2)

    rows, cols = np.concatenate([pattern.rows, pattern.cols + m]), np.concatenate([pattern.cols + m, pattern.rows])
    augmented_pattern = Pattern(scipy.sparse.coo_array((np.ones(rows.size), (rows, cols)), shape=(m + n, m + n)))
    s, vectors = eigenpairs(np.concatenate([data, data]), pattern=augmented_pattern, find=find)
    if not returns_vectors:
        return s
    return vectors[:m] * np.sqrt(2), s, np.transpose(vectors[m:]) * np.sqrt(2)


_ITERATIVE = "bicg bicgstab cg cgs gcrotmk gmres lgmres minres qmr tfqmr"


def _linear_operator_method(name: str) -> Any:
    """Return a method of LinearOperator for nodes: it calls the method `name`, by which a user or SciPy defines the product."""

    def apply(self: Any, x: Any) -> Any:
        x = stack_nested(x)
        input_length = self.shape[0] if name.startswith("_r") else self.shape[1]
        if x.shape[0] != input_length:
            raise ValueError("dimension mismatch")
        if "vec" not in name:
            return stack_nested(getattr(self, name)(x))
        result = stack_nested(getattr(self, name)(x))
        output_length = self.shape[1] if name.startswith("_r") else self.shape[0]
        return np.reshape(result, (output_length,) if x.ndim == 1 else (output_length, 1))

    return apply


def _apply_operator(self: Any, x: object) -> Any:
    x = stack_nested(x)
    if not hasattr(x, "ndim") or x.ndim not in (1, 2):
        raise TypeError("a LinearOperator cannot be scaled by a node. Scale its result")
    return self.matvec(x) if x.ndim == 1 else self.matmat(x)


POLICY = Policy(
    module="scipy.sparse.linalg",
    replacements={
        "spsolve": spsolve,
        "spsolve_triangular": spsolve_triangular,
        "splu": splu,
        "spilu": spilu,
        "factorized": factorized,
        **{name: replace_iterative_solver(name) for name in _ITERATIVE.split()},
        "norm": norm,
        "inv": inv,
        "matrix_power": matrix_power,
        "expm_multiply": expm_multiply,
        "eigsh": eigsh,
        "svds": svds,
        **{f"LinearOperator.{name}": _linear_operator_method(f"_{name}") for name in ("matvec", "rmatvec", "matmat", "rmatmat")},
        **{f"LinearOperator.{name}": _apply_operator for name in ("dot", "__matmul__", "__mul__", "__call__")},
    },
    always_replaced=frozenset({"splu", "spilu", "factorized"}),
    plain=frozenset(
        {"ArpackError", "ArpackNoConvergence", "MatrixRankWarning", "SuperLU", "LinearOperator", "use_solver"}
        | {"LaplacianNd", "is_sptriangular", "spbandwidth"}
    ),
    unsupported={
        "aslinearoperator": "the matrix itself (a LinearOperator cannot hold nodes)",
        "expm": "scipy.linalg.expm(A.toarray()), or expm_multiply",
        "funm_multiply_krylov": "expm_multiply, or scipy.linalg.funm",
        "eigs": "np.linalg.eig(A.toarray()), or eigsh where the matrix is symmetric",
        "lobpcg": "scipy.sparse.linalg.eigsh",
        "lsqr": "scipy.sparse.linalg.spsolve(A.T @ A, A.T @ b)",
        "lsmr": "scipy.sparse.linalg.spsolve(A.T @ A, A.T @ b)",
        "onenormest": "scipy.sparse.linalg.norm(A, 1)",
    },
)
