"""Cases of products of arrays and decompositions of matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.support.arguments import Array, Function, Shape, Sketch, complexes, optional, real


def regular(*shape: int, seed: int = 0, make: Callable[..., Array] = real) -> Array:
    """Well-conditioned matrices, square or not, with singular values apart."""
    m, n = shape[-2:]
    matrix: Array = 0.3 * make(*shape, seed=seed) + np.eye(m, n) * np.linspace(1, 2.5, n)
    return matrix


def complex_regular(*shape: int, seed: int = 0) -> Array:
    """The same with complex numbers."""
    matrix: Array = regular(*shape, seed=seed, make=complexes) + 0.4j * np.eye(shape[-2], shape[-1])
    return matrix


def definite(*shape: int, seed: int = 0) -> Array:
    """Real matrices whose two triangles are each that of a positive definite matrix."""
    return 0.15 * real(*shape, seed=seed) + np.diag(np.linspace(1, 2.5, shape[-1]))


def complex_definite(*shape: int, seed: int = 0) -> Array:
    """The same with complex numbers."""
    return 0.15 * complexes(*shape, seed=seed) + np.diag(np.linspace(1, 2.5, shape[-1]))


def matrices(function: Function, make: Callable[..., Array] = regular, *shapes: Shape) -> list[Sketch]:
    """A function of matrices on the common shapes of square ones, or on given ones."""
    common: tuple[Shape, ...] = ((2, 2, 2), (3, 3), (0, 2, 2))
    return [(f"of {shape}", function, make(*shape)) for shape in shapes or common]


def solutions(make: Callable[..., Array] = regular, right: Callable[..., Array] = real) -> list[Sketch]:
    """Linear systems of several shapes."""
    shapes: list[tuple[Shape, Shape]] = [
        ((2, 3, 3), (3, 1)), ((3, 3), (3,)), ((2, 3, 3), (3,)), ((3, 3), (2, 3, 1)), ((1, 2, 2), (2, 2, 2)), ((2, 2), (2, 0)),
        ((0, 2, 2), (2,)),
    ]  # fmt: skip
    return [(f"{a} {b}", np.linalg.solve, make(*a), right(*b, seed=1)) for a, b in shapes]


INVERSES: dict[str, list[Sketch]] = {
    "linalg_inv": [*matrices(np.linalg.inv), ("of 0 by 0", np.linalg.inv, real(0, 0))],
    "linalg_det": [
        *matrices(np.linalg.det),
        ("of 0 by 0", lambda x: np.linalg.det(x), real(0, 0)),
        ("singular", np.linalg.det, np.array([[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [0.5, 1.0, 3.0]])),
        ("zeros", np.linalg.det, np.zeros((2, 2))),
        ("one singular", np.linalg.det, np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [2.0, 3.0]]])),
        ("of rank one", np.linalg.det, np.outer([1.0, -2.0, 0.3], [0.7, 0.1, 1.1])),
        ("one by one", np.linalg.det, np.array([[[0.0]], [[1e-9]], [[2.0]]])),
    ],
    "linalg_slogdet": [
        *matrices(lambda x: np.linalg.slogdet(x)[1]),
        ("sign", lambda x: np.linalg.slogdet(x)[0] * x, regular(3, 3)),
        ("both", lambda x: np.multiply(*np.linalg.slogdet(x)), regular(3, 3)),
        ("by name", lambda x: np.linalg.slogdet(x).logabsdet, -regular(3, 3)),
    ],
    "linalg_solve": [
        *solutions(),
        ("a list", lambda x: np.linalg.solve(x, [1, -2, 1]), regular(3, 3)),
        ("a plain matrix", lambda x: np.linalg.solve([[1, 2], [-1, 1]], x), real(2)),
    ],
    "linalg_matrix_power": [
        *[(f"to the {n}", lambda x, n=n: np.linalg.matrix_power(x, n), regular(3, 3)) for n in (-3, -1, 0, 1, 2, 5)],
        *matrices(lambda x: np.linalg.matrix_power(x, 4)),
        ("by name", partial(np.linalg.matrix_power, n=np.int64(2)), regular(2, 2)),
    ],
    "linalg_tensorinv": [
        ("of four axes", np.linalg.tensorinv, regular(6, 6).reshape(2, 3, 3, 2)),
        ("ind 1", partial(np.linalg.tensorinv, ind=1), regular(6, 6).reshape(6, 3, 2)),
        ("ind 3", lambda x: np.linalg.tensorinv(x, 3), regular(4, 4).reshape(2, 1, 2, 4)),
        ("none of it", lambda x: np.linalg.tensorinv(x, ind=1)[:0], regular(2, 2)),
    ],
    "linalg_tensorsolve": [
        ("of four axes", np.linalg.tensorsolve, regular(6, 6).reshape(2, 3, 3, 2), real(2, 3)),
        ("of a vector", np.linalg.tensorsolve, regular(6, 6).reshape(6, 2, 3), real(6)),
        ("axes", partial(np.linalg.tensorsolve, axes=(1,)), np.moveaxis(regular(6, 6).reshape(2, 3, 6), 2, 1), real(2, 3)),
        ("zero size", np.linalg.tensorsolve, real(0, 0), real(0)),
    ],
}
COMPLEX_INVERSES: dict[str, list[Sketch]] = {
    "linalg_inv": matrices(np.linalg.inv, complex_regular),
    "linalg_det": [
        *matrices(np.linalg.det, complex_regular),
        ("singular", np.linalg.det, np.array([[1.0, 2j, -1.0], [2.0, 4j, -2.0], [0.5, 1.0, 3.0]])),
    ],
    "linalg_slogdet": [
        *matrices(lambda x: np.linalg.slogdet(x)[1], complex_regular),
        ("sign", lambda x: np.linalg.slogdet(x)[0], complex_regular(2, 3, 3)),
        ("both", lambda x: np.multiply(*np.linalg.slogdet(x)), complex_regular(3, 3)),
        ("the determinant", lambda x: (lambda both: both[0] * np.exp(both[1]))(np.linalg.slogdet(x)), complex_regular(3, 3)),
    ],
    "linalg_solve": [
        *solutions(complex_regular, complexes)[:3],
        ("with real", np.linalg.solve, regular(3, 3), complexes(3)),
        ("with real right", np.linalg.solve, complex_regular(3, 3), real(3, 2)),
    ],
    "linalg_matrix_power": [(f"{n}", partial(np.linalg.matrix_power, n=n), complex_regular(2, 2, 2)) for n in (-2, 3)],
    "linalg_tensorinv": [("of four axes", np.linalg.tensorinv, complex_regular(4, 4).reshape(2, 2, 4, 1))],
    "linalg_tensorsolve": [("of a vector", np.linalg.tensorsolve, complex_regular(4, 4).reshape(4, 2, 2), complexes(4))],
}

# -------------------------------------------------------------------------------------------- norms

INF = np.inf
VECTOR_ORDERS: list[Any] = [None, 0, 1, 2, 3, 0.5, -2, INF, -INF]
MATRIX_ORDERS: list[Any] = [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF]
NORMS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "of a number": ((), {}),
    "of a vector": ((3,), {}),
    "of four axes": ((2, 1, 2, 2), {}),
    "all, keepdims": ((2, 3), {"keepdims": True}),
    "four axes, keepdims": ((2, 1, 2, 2), {"keepdims": True}),
    "zero size": ((0, 3), {}),
    "zero size, axis": ((0, 3), {"axis": 0}),
    "zero size, axes": ((0, 3), {"axis": (0, 1), "ord": 1}),
    "zero size kept": ((0, 3), {"axis": 1, "ord": 3}),
    **{f"vector, ord {ord}": ((4,), {"ord": ord}) for ord in VECTOR_ORDERS},
    **{f"axis 0, ord {ord}": ((3, 2), {"ord": ord, "axis": 0}) for ord in (0, 3)},
    "axis -1, keepdims": ((2, 2, 3), {"ord": 3, "axis": -1, "keepdims": True}),
    "axis in a tuple": ((2, 3), {"axis": (0,), "keepdims": True, "ord": INF}),
    **{f"matrix, ord {ord}": ((2, 3), {"ord": ord}) for ord in (None, "nuc", 1)},
    **{f"axes 0, -1, ord {ord}": ((3, 2, 2), {"ord": ord, "axis": (0, -1)}) for ord in MATRIX_ORDERS},
    **{
        f"axes 2, 1, keepdims, ord {ord}": ((2, 3, 2), {"ord": ord, "axis": (2, 1), "keepdims": True})
        for ord in ("fro", "nuc", -1, 2)
    },
    **{f"matrix, keepdims, ord {ord}": ((2, 2), {"ord": ord, "keepdims": True}) for ord in (1, "nuc", 2)},
}
VECTOR_NORMS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "all": ((2, 3), {}),
    "all, keepdims": ((2, 3), {"keepdims": True, "ord": 3}),
    "axis": ((2, 3), {"axis": 1, "ord": 1}),
    "axis, keepdims": ((2, 3), {"axis": -2, "keepdims": True}),
    "axes": ((2, 3, 2), {"axis": (0, 2), "ord": INF}),
    "axes crossed": ((2, 3, 2), {"axis": (2, 0), "ord": 3, "keepdims": True}),
    "number": ((), {}),
    "zero size": ((0,), {}),
}
MATRIX_NORMS: dict[str, tuple[Shape, dict[str, Any]]] = {
    **{f"ord {ord}": ((2, 2, 3), {"ord": ord}) for ord in (None, "nuc", -1, 2)},
    "keepdims": ((2, 2, 3), {"keepdims": True}),
    "ord nuc, keepdims": ((2, 3), {"ord": "nuc", "keepdims": True}),
}
NORM_SKETCHES: dict[str, list[Sketch]] = {
    "linalg_norm": [
        *optional(np.linalg.norm, real, NORMS),
        ("by position", lambda x: np.linalg.norm(x, 3, 1, True), real(2, 3)),
        ("zeros among the elements", lambda x: np.linalg.norm(x, 4), np.array([0.0, 1.0, -2.0, 0.0])),
    ],
    "linalg_cond": [
        *[(f"p {p}", partial(np.linalg.cond, p=p), regular(2, 3, 3)) for p in MATRIX_ORDERS],
        *[(f"not square, p {p}", partial(np.linalg.cond, p=p), regular(2, 3)) for p in (None, -2)],
        ("by position", lambda x: np.linalg.cond(x, 1), regular(2, 2)),
        ("zero size", np.linalg.cond, real(1, 2, 2)[:0]),
    ],
}
COMPLEX_TOO = (
    "axes 0, -1, ord fro",
    "axes 0, -1, ord nuc",
    "axes 0, -1, ord 1",
    "axes 0, -1, ord -2",
    "of a number",
    "vector, ord None",
)
COMPLEX_TOO += ("vector, ord 0", "vector, ord 3", "vector, ord 0.5", "vector, ord inf", "of four axes")
COMPLEX_NORMS: dict[str, list[Sketch]] = {
    "linalg_norm": [
        *optional(np.linalg.norm, complexes, {k: NORMS[k] for k in COMPLEX_TOO}),
        *optional(np.linalg.norm, complexes, {"axis, keepdims": ((2, 3), {"axis": 1, "keepdims": True, "ord": 3})}),
    ],
    "linalg_cond": [(f"p {p}", partial(np.linalg.cond, p=p), complex_regular(2, 2)) for p in (None, "nuc", -1, -2)],
}

# ----------------------------------------------------------------------------------------- products


def pairs(function: Function, *shapes: tuple[Shape, Shape], make: Callable[..., Array] = real) -> list[Sketch]:
    """A product on pairs of shapes, which are also the labels."""
    return [(f"{a} {b}", function, make(*a, seed=1), make(*b, seed=2)) for a, b in shapes]


def in_the_plane(**options: Any) -> Function:
    """The cross product of vectors of two components, which NumPy gave up with 2.5."""

    def cross(x: Any, y: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return np.cross(x, y, **options)

    return cross


def multi_dot(*arrays: Any) -> Any:
    """The product of several matrices."""
    return np.linalg.multi_dot(arrays)


def several(*shapes: Shape, make: Callable[..., Array] = real) -> Sketch:
    """The product of several matrices of given shapes."""
    return (f"of {shapes}", multi_dot, *[make(*shape, seed=i) for i, shape in enumerate(shapes)])


VECDOT_AXES: dict[str, dict[str, Any]] = {
    "axis": {"axis": 0},
    "axis, keepdims": {"axis": 0, "keepdims": True},
    "axes": {"axes": [0, 0]},
    "axes, keepdims": {"axes": [0, 0, 1], "keepdims": True},
    "axes, keepdims, the output last": {"axes": [(0,), (0,)], "keepdims": True},
}


def vecdot_axes(make: Callable[..., Array] = real) -> list[Sketch]:
    """Products of vectors along several axes."""
    return [
        ("keepdims", partial(np.vecdot, keepdims=True), make(2, 3), make(3, seed=1)),
        *[
            (f"{name}, repeated", partial(np.vecdot, **o), make(3, 2, 2), make(3, 1, 2, seed=1))
            for name, o in VECDOT_AXES.items()
        ],
    ]


KRONS: list[tuple[Shape, Shape]] = [
    ((2, 3), (3, 2)), ((2,), (3,)), ((2, 1, 2), (2, 3)), ((), (3,)), ((), ()), ((0, 2), (2, 2)),
]  # fmt: skip
CROSSES: list[tuple[Shape, Shape]] = [((2, 1, 3), (2, 3)), ((3,), (3,)), ((0, 3), (3,))]
VECDOTS: list[tuple[Shape, Shape]] = [((2, 1, 3), (2, 3)), ((3,), (3,)), ((3,), (2, 3)), ((2, 0), (0,))]
IN_THE_PLANE: list[Sketch] = [
    *pairs(in_the_plane(), ((2,), (2,)), ((2, 2), (3,)), ((3,), (2,)), ((3, 2), (2,))),
    ("in the plane, axis", in_the_plane(axis=0), real(2, 3), real(2, 3, seed=1)),
]
try:
    in_the_plane()(np.ones(2), np.ones(2))
except ValueError:
    IN_THE_PLANE = []
MATVECS: list[tuple[Shape, Shape]] = [
    ((2, 1, 2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((1, 2, 3), (2, 3)),
    ((0, 3), (3,)), ((2, 0), (0,)),
]  # fmt: skip
PRODUCTS: dict[str, list[Sketch]] = {
    "kron": [
        *pairs(np.kron, *KRONS),
        ("Python number", lambda x: np.kron(x, 1.5), real(2)),
        ("with itself", lambda x: np.kron(x, x), real(2, 2)),
    ],
    "cross": [
        *pairs(np.cross, *CROSSES),
        ("axis", partial(np.cross, axis=0), real(3, 2), real(3, 2, seed=1)),
        ("axisa", partial(np.cross, axisa=0), real(3, 2), real(2, 3)),
        ("axisb", partial(np.cross, axisb=-2), real(3), real(3, 2)),
        ("axisc", partial(np.cross, axisc=0), real(2, 3), real(3)),
        ("axes, repeated", lambda x, y: np.cross(x, y, 0, 1), real(3, 1), real(2, 3)),
        ("with itself", lambda x: np.cross(x, x[::-1]), real(2, 3)),
        *IN_THE_PLANE,
    ],
    "vecdot": [
        *pairs(np.vecdot, *VECDOTS),
        ("a list", lambda x: np.vecdot([1, -2, 1], x), real(2, 3)),
        ("dtype", lambda x: np.vecdot(x, x, dtype=np.float64), real(2, 3)),
        ("dtype and axis", lambda x, y: np.vecdot(x, y, dtype=np.float64, axis=0), real(2, 3), real(2, 3, seed=1)),
        *vecdot_axes(),
    ],
    "linalg_vecdot": [
        *pairs(np.linalg.vecdot, *VECDOTS),
        ("axis", partial(np.linalg.vecdot, axis=0), real(3, 2), real(3, 2, seed=1)),
        ("axis, repeated", partial(np.linalg.vecdot, axis=-2), real(2, 3, 1), real(3, 2)),
        ("axis of both, repeated", partial(np.linalg.vecdot, axis=0), real(3, 1), real(3, 2)),
        ("a list", lambda x: np.linalg.vecdot(x, [1, -2, 1]), real(2, 3)),
    ],
    "matvec": [
        ("axes", partial(np.matvec, axes=[(0, 1), 0, 0]), real(2, 3, 4), real(3, 1)),
        *pairs(np.matvec, *MATVECS),
        ("a list", lambda x: np.matvec(x, [1, -2, 1]), real(2, 3)),
    ],
    "vecmat": [
        ("axes", partial(np.vecmat, axes=[0, (1, 0), 0]), real(3, 2), real(4, 3, 1)),
        *[(label, np.vecmat, y, np.swapaxes(x, -1, -2)) for label, _, x, y in pairs(np.matvec, *MATVECS)],
        ("a list", lambda x: np.vecmat([1, -2], x), real(2, 3)),
    ],
    "multi_dot": [
        several((2, 3), (3, 2)),
        several((2, 3), (3, 3), (3, 2)),
        several((2, 3), (3, 1), (1, 3), (3, 2)),
        several((3,), (3, 2), (2, 3), (3,)),
        several((3,), (3, 2)),
        several((2, 0), (0, 3), (3, 2)),
        ("constants between", lambda x: np.linalg.multi_dot([x, np.ones((3, 2)), [[1, 2], [3, 4]]]), real(2, 3)),
    ],
}
COMPLEX_PRODUCTS: dict[str, list[Sketch]] = {
    "kron": pairs(np.kron, *KRONS[1:3], make=complexes),
    "cross": [*pairs(np.cross, *CROSSES[:2], make=complexes), ("with real", np.cross, real(3), complexes(2, 3))],
    "vecdot": [
        *vecdot_axes(complexes)[:3],
        *pairs(np.vecdot, *VECDOTS[:2], make=complexes),
        ("with real", np.vecdot, complexes(2, 3), real(3)),
    ],
    "linalg_vecdot": [
        *pairs(np.linalg.vecdot, *VECDOTS[:2], make=complexes),
        ("axis, repeated", partial(np.linalg.vecdot, axis=-2), complexes(2, 3, 1), complexes(3, 2)),
        ("with real", partial(np.linalg.vecdot, axis=0), real(3, 1), complexes(3, 2)),
    ],
    "matvec": [*pairs(np.matvec, *MATVECS[:2], make=complexes), ("with real", np.matvec, real(2, 3), complexes(3))],
    "vecmat": [
        *[(label, np.vecmat, y, np.swapaxes(x, -1, -2)) for label, _, x, y in pairs(np.matvec, *MATVECS[:2], make=complexes)],
        ("with real", np.vecmat, complexes(3), real(3, 2)),
    ],
    "multi_dot": [several((3,), (3, 2), (2, 3), make=complexes)],
}

# ----------------------------------------------------------------------------------- decompositions


def part(index: int, function: Function, **options: Any) -> Function:
    """One of the results of a decomposition."""
    return lambda *args: function(*args, **options)[index]


def vectors(function: Function, **options: Any) -> Function:
    """Eigenvectors without their phases: each times the conjugate of its first component."""

    def gauged(x: Any) -> Any:
        v = function(x, **options)[1]
        return v * np.conj(v[..., :1, :])

    return gauged


def of_both(function: Function, **options: Any) -> Function:
    """A function of a matrix, of its eigenvalues and eigenvectors: v f(w) v^H."""

    def rebuilt(x: Any) -> Any:
        w, v = function(x, **options)
        return np.matmul(v * np.sin(w)[..., None, :], np.conj(np.swapaxes(v, -1, -2)))

    return rebuilt


def singular(**options: Any) -> Function:
    """A function of singular vectors that does not depend on their phases."""

    def gauged(x: Any) -> Any:
        u, s, vh = np.linalg.svd(x, **options)
        k = s.shape[-1]
        both = np.matmul(u[..., :k] * np.sin(s)[..., None, :], vh[..., :k, :])
        left, right = u[..., k:], vh[..., k:, :]
        first, second = u[..., :k] * np.conj(u[..., :1, :k]), vh[..., :k, :] * np.conj(vh[..., :k, :1])
        rest = np.matmul(left, np.conj(np.swapaxes(left, -1, -2))), np.matmul(np.conj(np.swapaxes(right, -1, -2)), right)
        return np.concatenate([np.ravel(y) for y in (both, first, second, *rest)])

    return gauged


def both(function: Function, **options: Any) -> Function:
    """All results of a decomposition, in one row."""
    return lambda x: np.concatenate([np.ravel(y) for y in function(x, **options)])


SHAPES: list[Shape] = [(2, 3, 2), (3, 3), (3, 2), (2, 3), (2, 2, 4), (2, 1), (0, 2, 3)]


SYSTEMS: list[tuple[Shape, Shape]] = [
    ((4, 2), (4,)), ((3, 2), (3, 2)), ((2, 2), (2,)), ((2, 3), (2,)), ((2, 3), (2, 2)), ((3, 2), (3, 0)),
]  # fmt: skip


def of_rank_one(x: Any, y: Any) -> Any:
    """The pseudo-inverse of a singular matrix."""
    return np.linalg.pinv(x @ y, rcond=1e-4)


def least_squares(a: Any, b: Any) -> Any:
    """All that lstsq finds but the rank."""
    solution = np.linalg.lstsq(a, b)
    return np.concatenate([np.ravel(solution[i]) for i in (0, 1, 3)])


def spectral(
    make: Callable[..., Array], general: Callable[..., Array], plain: Callable[..., Array], shapes: list[Shape]
) -> dict[str, list[Sketch]]:
    """Decompositions of real or of complex matrices."""
    eigh, svd, qr, eig = np.linalg.eigh, np.linalg.svd, np.linalg.qr, np.linalg.eig
    return {
        "linalg_cholesky": [
            *matrices(np.linalg.cholesky, make),
            ("upper", partial(np.linalg.cholesky, upper=True), make(3, 3)),
            ("upper, of a stack", partial(np.linalg.cholesky, upper=True), make(2, 2, 2)),
            ("of a product", lambda x: np.linalg.cholesky(x @ np.conj(x.T)), general(2, 3)),
        ],
        "linalg_eigh": [
            *[(f"values {label}", part(0, eigh), x) for label, _, x in matrices(eigh, make)],
            *[(f"vectors {label}", vectors(eigh), x) for label, _, x in matrices(eigh, make)],
            ("both", of_both(eigh), make(3, 3)),
            ("both of a stack", of_both(eigh), make(2, 2, 2)),
            ("U", of_both(eigh, UPLO="U"), make(3, 3)),
            ("U, values", lambda x: np.linalg.eigh(x, "u")[0], make(3, 3)),
            ("by name", lambda x: np.linalg.eigh(x).eigenvalues, make(3, 3)),
        ],
        "linalg_eigvalsh": [
            *matrices(np.linalg.eigvalsh, make),
            ("U", partial(np.linalg.eigvalsh, UPLO="U"), make(3, 3)),
        ],
        "linalg_eig": [
            *[(f"values {label}", part(0, eig), x) for label, _, x in matrices(eig, general)],
            *[(f"vectors {label}", part(1, eig), x) for label, _, x in matrices(eig, general)],
            ("both", both(eig), general(3, 3)),
        ],
        "linalg_eigvals": matrices(np.linalg.eigvals, general),
        "linalg_svd": [
            ("values", part(1, svd), general(2, 3, 2)),
            *[(f"all of {s}", singular(), general(*s)) for s in shapes],
            *[(f"reduced of {s}", singular(full_matrices=False), general(*s)) for s in SHAPES[2:5]],
            *[(f"only values of {s}", partial(svd, compute_uv=False), general(*s)) for s in SHAPES[3:5]],
            ("by name", lambda x: np.linalg.svd(x).S, general(2, 3)),
            ("only u", lambda x: np.abs(svd(x, full_matrices=False)[0]), general(3, 2)),
            ("only vh", lambda x: np.abs(svd(x, False)[2]), general(2, 3)),
            ("hermitian, values", part(1, svd, hermitian=True), make(3, 3)),
            ("hermitian, only values", partial(svd, hermitian=True, compute_uv=False), make(2, 2, 2) - 2 * np.eye(2)),
            ("hermitian, all", singular(hermitian=True), make(3, 3) - 1.5 * np.eye(3)),
        ],
        "linalg_pinv": [
            *[(f"of {s}", np.linalg.pinv, general(*s)) for s in shapes],
            *[(f"rank 1 of {m}, {n}", of_rank_one, general(m, 1), general(1, n)) for m, n in ((3, 3), (3, 2), (2, 3))],
            ("hermitian", partial(np.linalg.pinv, hermitian=True), make(3, 3)),
            ("hermitian stack", partial(np.linalg.pinv, hermitian=True), make(2, 2, 2) - 1.6 * np.eye(2)),
            *[(f"rcond, {s}", partial(np.linalg.pinv, rcond=0.5), general(*s)) for s in SHAPES[:2]],
            ("rcond by position", lambda x: np.linalg.pinv(x, 1e-10), general(3, 2)),
            ("rcond array", partial(np.linalg.pinv, rcond=np.array([0.5, 0.1])), general(2, 3, 2)),
            ("rcond, hermitian", partial(np.linalg.pinv, rcond=0.5, hermitian=True), make(3, 3)),
            ("rtol", partial(np.linalg.pinv, rtol=0.5), general(3, 3)),
            ("rtol None", partial(np.linalg.pinv, rtol=None), general(3, 2)),
        ],
        "linalg_lstsq": [
            *[(f"x of {a} {b}", part(0, np.linalg.lstsq), general(*a), plain(*b)) for a, b in SYSTEMS],
            *[(f"residuals of {a} {b}", part(1, np.linalg.lstsq), general(*a), plain(*b)) for a, b in SYSTEMS[:2]],
            ("singular values", part(3, np.linalg.lstsq), general(3, 2), plain(3)),
            ("all", least_squares, general(4, 2), plain(4, 2)),
            ("rcond", part(0, np.linalg.lstsq, rcond=0.5), general(3, 3), plain(3)),
            ("rcond -1", lambda x, y: np.linalg.lstsq(x, y, -1)[0], general(3, 3), plain(3)),
            ("a list", lambda x: np.linalg.lstsq([[1, 2], [3, 4], [1, 0]], x)[0], plain(3)),
            ("a list right", lambda x: np.linalg.lstsq(x, [1, 2, -1])[0], general(3, 2)),
        ],
        "linalg_qr": [
            *[(f"q of {s}", part(0, qr), general(*s)) for s in SHAPES[2:4]],
            *[(f"r of {s}", part(1, qr), general(*s)) for s in SHAPES[2:4]],
            *[(f"both of {s}", both(qr), general(*s)) for s in shapes],
            *[(f"mode r of {s}", partial(qr, mode="r"), general(*s)) for s in SHAPES[2:4]],
            ("complete", both(qr, mode="complete"), general(2, 3)),
            ("complete, square", both(qr, mode="complete"), general(2, 2)),
            ("by name", lambda x: np.linalg.qr(x, mode="reduced").Q, general(3, 2)),
        ],
    }


def with_turned_vectors(*shape: int, seed: int = 0) -> Array:
    """Real matrices with complex eigenvalues."""
    n = shape[-1]
    return regular(*shape, seed=seed) + np.tri(n, k=-1) - np.tri(n, k=-1).T


DECOMPOSITIONS = spectral(definite, regular, real, SHAPES)
DECOMPOSITIONS["linalg_eig"] += [
    ("values, complex", part(0, np.linalg.eig), with_turned_vectors(3, 3)),
    ("vectors, complex", vectors(np.linalg.eig), with_turned_vectors(3, 3)),
    ("both of a stack, complex", of_both(np.linalg.eig), with_turned_vectors(2, 3, 3)),
]
DECOMPOSITIONS["linalg_eigvals"] += [("complex", np.linalg.eigvals, with_turned_vectors(2, 3, 3))]
# Forms of the arguments, which do not depend on the dtype
OF_REAL_ALONE = {
    "by name", "rcond by position", "rcond array", "rcond, hermitian", "rtol", "rtol None", "a list", "a list right", "rcond -1",
    "U, values", "upper, of a stack", "both of a stack", "only u", "only vh", "mode r of (2, 3)", "q of (2, 3)", "r of (2, 3)",
}  # fmt: skip
COMPLEX_DECOMPOSITIONS = {
    name: [sketch for sketch in sketches if sketch[0] not in OF_REAL_ALONE]
    for name, sketches in spectral(complex_definite, complex_regular, complexes, SHAPES[2:5]).items()
}

# ------------------------------------------------------------------------------------------------ all

SKETCHES: dict[str, list[Sketch]] = {**INVERSES, **NORM_SKETCHES, **PRODUCTS, **DECOMPOSITIONS}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {
    **COMPLEX_INVERSES, **COMPLEX_NORMS, **COMPLEX_PRODUCTS, **COMPLEX_DECOMPOSITIONS,
}  # fmt: skip
# The same checks, for functions that NumPy composes of others and that so have no rule of their own.
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {
    "vector_norm": [
        *optional(np.linalg.vector_norm, real, VECTOR_NORMS),
        ("complex", partial(np.linalg.vector_norm, axis=(0, 1)), complexes(2, 2, 2)),
    ],
    "matrix_norm": [
        *optional(np.linalg.matrix_norm, real, MATRIX_NORMS),
        ("complex", partial(np.linalg.matrix_norm, ord="nuc"), complexes(2, 2)),
    ],
    "svdvals": [
        *matrices(np.linalg.svdvals, regular, (3, 3), (2, 2, 3), (0, 2)),
        ("complex", np.linalg.svdvals, complex_regular(3, 2)),
    ],
    "linalg.trace": [
        *matrices(np.linalg.trace, real, (3, 3), (2, 2, 3), (0, 2)),
        ("offset", partial(np.linalg.trace, offset=-1), real(2, 3, 2)),
        ("dtype", partial(np.linalg.trace, dtype=np.float64), real(2, 2)),
        ("complex", np.linalg.trace, complexes(2, 2)),
    ],
    "linalg.diagonal": [
        *matrices(np.linalg.diagonal, real, (3, 3), (2, 2, 3), (0, 2)),
        ("offset", partial(np.linalg.diagonal, offset=1), real(2, 3, 2)),
        ("complex", np.linalg.diagonal, complexes(2, 2)),
    ],
    "linalg.cross": [
        *pairs(np.linalg.cross, *CROSSES),
        ("axis", partial(np.linalg.cross, axis=0), real(3, 2), real(3, 2, seed=1)),
        ("complex", np.linalg.cross, complexes(3), complexes(2, 3)),
    ],
}
