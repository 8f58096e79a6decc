"""Data for `test_rules`: for every opname, functions of arrays in plain NumPy, with arguments.

A case is ``(label, function, *arguments)``. It is differentiated with respect to its arguments, inside the domain of the
function and away from its corners. Other inputs of a function (masks, indices, Python numbers) are part of
its definition. `CASES` holds real arguments, `COMPLEX_CASES` complex ones.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import (
    AXES,
    FORMS,
    MASK,
    MASKED,
    REDUCED,
    ROW_MASK,
    Array,
    Case,
    Function,
    Shape,
    Sketch,
    above,
    binary,
    complexes,
    inside,
    negative,
    optional,
    positive,
    real,
    scalars,
    shifted,
    small_complexes,
    unary,
)
from tests.support.cases import linear_algebra as cases_linear_algebra
from tests.support.cases import networks as cases_networks
from tests.support.cases import selection as cases_selection
from tests.support.cases import special as cases_special
from tests.support.cases import statistics as cases_statistics
from tests.support.cases import transforms as cases_transforms

# ------------------------------------------------------------------------------- elementwise, one operand

ONE_OPERAND: dict[str, list[Sketch]] = {
    "neg": [*unary(operator.neg), ("function", np.negative, real(2, 2))],
    "positive": [*unary(operator.pos), ("function", np.positive, real(2, 2))],
    "conj": [*unary(np.conjugate), ("method", lambda x: x.conj(), real(2, 2))],
    "real": [*unary(np.real), ("attribute", lambda x: x.real, real(2, 2))],
    "imag": [*unary(np.imag), ("attribute", lambda x: x.imag, real(2, 2))],
    "square": unary(np.square),
    "reciprocal": unary(np.reciprocal),
    "deg2rad": unary(np.deg2rad),
    "radians": unary(np.radians),
    "rad2deg": unary(np.rad2deg),
    "degrees": unary(np.degrees),
    "sqrt": unary(np.sqrt, positive),
    "cbrt": unary(np.cbrt),
    "exp": unary(np.exp),
    "exp2": unary(np.exp2),
    "expm1": unary(np.expm1),
    "log": unary(np.log, positive),
    "log2": unary(np.log2, positive),
    "log10": unary(np.log10, positive),
    "log1p": unary(np.log1p, inside),
    "sin": unary(np.sin),
    "cos": unary(np.cos),
    "tan": unary(np.tan, inside),
    "arcsin": unary(np.arcsin, inside),
    "arccos": unary(np.arccos, inside),
    "arctan": unary(np.arctan),
    "sinh": unary(np.sinh),
    "cosh": unary(np.cosh),
    "tanh": unary(np.tanh),
    "arcsinh": unary(np.arcsinh),
    "arccosh": unary(np.arccosh, above),
    "arctanh": unary(np.arctanh, inside),
    "abs": [*unary(np.abs), ("operator", operator.abs, real(2, 2))],
    "fabs": unary(np.fabs),
    "relu": unary(cg.relu),
    "sigmoid": [*unary(cg.sigmoid), ("far out", cg.sigmoid, real(4, low=-30, high=30))],
    "softplus": [*unary(cg.softplus), ("far out", cg.softplus, real(4, low=-30, high=30))],
}

# ---------------------------------------------------------------------------- elementwise, more operands


MORE_OPERANDS: dict[str, list[Sketch]] = {
    "add": [
        *binary(operator.add),
        *scalars(np.add),
        ("twice the same", lambda x: x + x, real(3)),
        ("dtype", lambda x, y: np.add(x, y, dtype=np.float64), real(2, 3), real(3)),
    ],
    "sub": [*binary(np.subtract), *scalars(operator.sub), ("the same", lambda x: x - x, real(3))],
    "mul": [
        *binary(operator.mul),
        *scalars(np.multiply),
        ("an integer", lambda x: 3 * x, real(3)),
        ("an integer array", lambda x: x * np.array([[1], [-2]]), real(3)),
        ("a mask", lambda x: x * (x > 0), real(2, 3)),
        ("twice the same", lambda x: x * x, real(2, 2)),
        ("dtype", lambda x, y: np.multiply(x, y, dtype=np.float64), real(2, 3), real(3)),
    ],
    "div": [*binary(operator.truediv), *scalars(np.divide), ("by an integer", lambda x: x / 3, real(3))],
    "remainder": [
        *binary(operator.mod, partial(real, low=-4, high=4), positive),
        ("negative divisor", np.mod, real(2, 3, low=-4, high=4), negative(3)),
        ("Python number right", lambda x: x % 0.7, real(3)),
        ("Python number left", lambda x: 4.3 % x, positive(3)),
    ],
    "fmod": [
        *binary(np.fmod, partial(real, low=-4, high=4), positive),
        ("negative divisor", np.fmod, real(2, 3, low=-4, high=4), negative(3)),
        ("Python number right", lambda x: np.fmod(x, 0.7), real(3)),
        ("Python number left", lambda x: np.fmod(4.3, x), positive(3)),
        ("both negative", np.fmod, real(2, 3, low=-9, high=-1), negative(3)),
    ],
    "divmod": [
        *binary(lambda x, y: np.divmod(x, y)[1], partial(real, low=-4, high=4), positive),
        ("the quotient", lambda x, y: np.divmod(x, y)[0], real(2, 3), positive(3)),
        ("both", lambda x, y: math.prod(np.divmod(x, y)), real(2, 3, low=-4, high=4), positive(2, 1)),
        ("operator", lambda x: divmod(x, 0.7)[1], real(3)),
        ("zero size", lambda x, y: np.divmod(x, y)[1], real(0, 3), positive(3)),
        ("operator, reflected", lambda x: divmod(4.3, x)[1], positive(3)),
    ],
    "pow": [
        *binary(operator.pow, positive, real),
        ("function", np.power, positive(2, 3), real(3)),
        *scalars(operator.pow, positive),
        ("square", lambda x: x**2, real(2, 3)),
        ("to the 0", lambda x: x**0, real(3)),
        ("to the -1", lambda x: x**-1, real(3)),
        ("to the -2, a float", lambda x: x**-2.0, real(3)),
        ("0 to the x", lambda x: 0.0**x, positive(3)),
        ("integer array", lambda x: x ** np.array([0, 1, 2]), real(2, 3)),
        ("bool array", lambda x: x**ROW_MASK, real(2, 3)),
        ("0-d integer array", lambda x: x ** np.array(2), real(3)),
        ("function, zero", lambda x: np.power(x, 0), real(3)),
        ("exponents with zero and one", lambda x, y: x**y, positive(2, 3), np.array([0.0, 1.0, 2.0])),
        ("x to the x", lambda x: x**x, positive(3)),
    ],
    "float_power": [
        *binary(np.float_power, positive, real),
        ("square", lambda x: np.float_power(x, 2), real(3)),
        ("integer array", lambda x: np.float_power(x, np.array([0, 1, 2])), real(2, 3)),
        ("2 to the x", lambda x: np.float_power(2, x), real(3)),
    ],
    "logaddexp": [*binary(np.logaddexp), *scalars(np.logaddexp)],
    "logaddexp2": [*binary(np.logaddexp2), *scalars(np.logaddexp2)],
    "arctan2": [*binary(np.arctan2), *scalars(np.arctan2)],
    "hypot": [*binary(np.hypot), *scalars(np.hypot)],
    "heaviside": [
        ("at zero", lambda h: np.heaviside([-1.0, 0.0, 2.0], h), real(2, 3)),
        ("zero size", lambda h: np.heaviside(np.zeros((0, 3)), h), real(3)),
        ("number", lambda h: np.heaviside(0.0, h), real()),
    ],
    "nextafter": [
        ("upwards", lambda x: np.nextafter(x, 5.0), real(2, 3)),
        ("broadcast", lambda x: np.nextafter(x, np.ones((2, 1)) * [5.0, -5.0, 0.0]), positive(3)),
        ("zero size", lambda x: np.nextafter(x, 1.0), real(0, 2)),
    ],
    "maximum": [*binary(np.maximum), *scalars(np.maximum, number=0)],
    "minimum": [*binary(np.minimum), *scalars(np.minimum, number=0)],
    "fmax": [*binary(np.fmax), *scalars(np.fmax, number=0.0)],
    "fmin": [*binary(np.fmin), *scalars(np.fmin, number=0.0)],
    "where": [
        *binary(partial(np.where, np.True_)),
        ("mask repeated", partial(np.where, ROW_MASK), real(2, 3), shifted(2, 1)),
        ("arguments repeated", partial(np.where, MASK), real(3), shifted()),
        ("mask larger than both", partial(np.where, MASK), real(), shifted(1)),
        ("recorded mask", lambda x, y: np.where(x > y, x, y * y), real(2, 3), shifted(3)),
        ("floating mask", lambda x: np.where(x, x, 1.0), real(3)),
        ("Python number right", lambda x: np.where(MASK, x, 0), real(2, 3)),
        ("Python number left", lambda x: np.where(MASK, 1.5, x), real(3)),
    ],
    "clip": [
        ("of a number", lambda x: np.clip(x, -0.5, 0.3), real()),
        ("method", lambda x: x.clip(-0.5, 1.0), real(3)),
        ("only low", lambda x: np.clip(x, 0.3, None), real(5)),
        ("keywords a_min, a_max", lambda x: np.clip(x, a_min=-0.5, a_max=1.0), real(5)),
        ("no bounds", lambda x: np.clip(x, None, None), real(5)),
        ("keywords min, max, arrays", lambda x, low, high: np.clip(x, min=low, max=high), real(2, 3), negative(3), positive()),
        ("keywords min, max", lambda x: np.clip(x, min=-0.5, max=1.0), real(5)),
        ("arrays", np.clip, real(2, 3, low=-3, high=3), negative(2, 3), positive(2, 3)),
        ("ones inside", np.clip, real(2, 1, 3, low=-3, high=3), negative(2, 2, 1), positive(1, 2, 3)),
        ("low alone, an array", lambda x, low: np.clip(x, low, None), real(2, 3), shifted(3)),
        ("high alone, an array", lambda x, high: np.clip(x, None, high), real(2, 3), shifted(3)),
        ("low above high, arrays", np.clip, real(2, 2), above(2, 2), negative(2, 2)),
        ("zero size", np.clip, real(0, 3), negative(3), positive()),
    ],
}

# ------------------------------------------------------------------------------------------ reductions


def class_numbers(*shape: int) -> Array:
    """Numbers of three classes."""
    return np.arange(math.prod(shape)).reshape(shape) % 3


ONE_HOT = np.eye(3)[[2, 0]]


def from_initial(function: Function, number: float) -> list[Sketch]:
    """A reduction of an array and of the number it begins with, which NumPy's own does not see if it alone is a node."""
    begin = np.array(number)
    return [
        (
            f"initial {number} a node, keepdims",
            lambda x, y: function(x, axis=(0, 2), initial=y, keepdims=True),
            real(2, 3, 2),
            begin,
        ),
        (f"initial {number} a node, where", lambda x, y: function(x, axis=1, initial=y, where=MASK), real(2, 3), begin),
    ]


REDUCTIONS: dict[str, list[Sketch]] = {
    "sum": [
        *optional(np.sum, real, {**REDUCED, **FORMS, **MASKED}),
        ("initial", partial(np.sum, axis=0, initial=3.0), real(2, 3)),
        ("initial and where", partial(np.sum, initial=3.0, where=MASK), real(2, 3)),
        *from_initial(cg.sum, 0.3),
        ("dtype", partial(np.sum, axis=0, dtype=np.float64), real(2, 3)),
        ("dtype complex", lambda x: np.real(np.sum(x, dtype=complex)), real(2, 3)),
        ("method", lambda x: x.sum(1, keepdims=True), real(2, 3)),
        ("where a list", lambda x: np.sum(x, where=[True, False, True]), real(2, 3)),
        ("of a ufunc", lambda x: np.add.reduce(x), real(2, 3)),
        ("of a ufunc, axis None", lambda x: np.add.reduce(x, axis=None), real(2, 3)),
        ("recorded mask", lambda x: np.sum(x, where=x > 0), real(2, 3)),
    ],
    "mean": [
        *optional(np.mean, real, {**REDUCED, **MASKED}),
        ("dtype", partial(np.mean, axis=0, dtype=np.float64), real(2, 3)),
        ("method", lambda x: x.mean(-1), real(2, 3)),
        ("recorded mask", lambda x: np.mean(x, where=x > 0), real(2, 3)),
    ],
    "max": [
        *optional(np.max, real, REDUCED),
        ("initial below", partial(np.max, initial=-5), real(2, 3)),
        ("initial above all", partial(np.max, initial=5), real(3)),
        *from_initial(cg.max, 0.9),
        *from_initial(cg.max, 5.0)[:1],
        ("where", partial(np.max, axis=0, where=MASK, initial=-5), real(2, 3)),
        ("recorded mask", lambda x: np.max(x, where=x < 1, initial=-5), real(2, 3)),
        ("zero size, initial", partial(np.max, axis=0, initial=0), real(0, 3)),
        ("method", lambda x: x.max(0), real(2, 3)),
        ("of a ufunc", lambda x: np.maximum.reduce(x, axis=1), real(2, 3)),
    ],
    "min": [
        *optional(np.min, real, REDUCED),
        ("initial above", partial(np.min, initial=5), real(2, 3)),
        ("initial below some", partial(np.min, axis=0, initial=-1.0), real(2, 3)),
        *from_initial(cg.min, -0.9),
        ("where", partial(np.min, axis=0, where=MASK, initial=5), real(2, 3)),
        ("zero size, initial", partial(np.min, axis=0, initial=0), real(0, 3)),
        ("method", lambda x: x.min(axis=-1, keepdims=True), real(2, 3)),
    ],
    "prod": [
        *optional(np.prod, real, {**REDUCED, **MASKED}),
        ("initial and where", partial(np.prod, initial=-3.0, where=MASK), real(2, 3)),
        *from_initial(cg.prod, -1.3),
        ("one zero", np.prod, np.array([1.5, 0.0, -0.5, 2.0])),
        ("two zeros", partial(np.prod, axis=1), np.array([[1.5, 0.0, -0.5, 0.0], [0.0, 1.0, 2.0, 3.0]])),
        ("three axes, transposed", partial(np.prod, axis=(2, 0)), real(2, 3, 2)),
        ("method", lambda x: x.prod(axis=1), real(2, 3)),
        ("of a ufunc", lambda x: np.multiply.reduce(x, axis=0), real(2, 3)),
        ("recorded mask", lambda x: np.prod(x, where=x > 0), real(2, 3)),
    ],
    "var": [
        *optional(np.var, real, {**REDUCED, **MASKED}),
        ("ddof", partial(np.var, axis=1, ddof=1), real(2, 3)),
        ("ddof a float", partial(np.var, ddof=0.5, keepdims=True), real(2, 3)),
        ("correction", partial(np.var, axis=0, correction=1), real(3, 2)),
        ("given mean", lambda x: np.var(x, axis=1, mean=np.array([[0.5], [-0.5]])), real(2, 3)),
        ("given mean and where", lambda x: np.var(x, axis=1, mean=np.array([[0.5], [-0.5]]), where=MASK), real(2, 3)),
        ("mean a node", lambda x, m: cg.var(x, axis=1, mean=m), real(2, 3), shifted(2, 1)),
        (
            "mean a node, keepdims",
            lambda x, m: np.var(x, axis=(0, 2), ddof=1, mean=m, keepdims=True),
            real(2, 3, 2),
            shifted(1, 3, 1),
        ),
        ("its own mean", lambda x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), real(3, 2)),
        ("method", lambda x: x.var(axis=(0, 1), ddof=1), real(2, 3)),
    ],
    "std": [
        *optional(np.std, real, {k: v for k, v in {**AXES, **MASKED}.items() if k != "number"}),
        ("axes, keepdims", partial(np.std, axis=(-1, 0), keepdims=True), real(2, 3, 2)),
        ("zero size kept", partial(np.std, axis=1), real(0, 3)),
        ("ddof", partial(np.std, axis=1, ddof=1), real(2, 3)),
        ("given mean", lambda x: np.std(x, axis=1, mean=np.array([[0.5], [-0.5]])), real(2, 3)),
        ("mean a node", lambda x, m: cg.std(x, axis=1, mean=m), real(2, 3), shifted(2, 1)),
        (
            "mean a node, keepdims",
            lambda x, m: np.std(x, axis=(0, 2), ddof=1, mean=m, keepdims=True),
            real(2, 3, 2),
            shifted(1, 3, 1),
        ),
        ("mean a node, where", lambda x, m: cg.std(x, mean=m, where=MASK), real(2, 3), shifted(1, 1)),
        ("its own mean", lambda x: np.std(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), real(3, 2)),
        ("method", lambda x: x.std(axis=0, ddof=1, keepdims=True), real(3, 2)),
    ],
    "logsumexp": [
        *optional(cg.logsumexp, real, AXES),
        ("all, keepdims", partial(cg.logsumexp, keepdims=True), real(2, 3)),
        ("axes, keepdims", partial(cg.logsumexp, axis=(-1, 0), keepdims=True), real(2, 3, 2)),
        *optional(cg.logsumexp, real, {"axis 1, keepdims=1": ((2, 2), {"axis": 1, "keepdims": 1})}),
        ("zero size kept", partial(cg.logsumexp, axis=1), real(0, 3)),
        ("large", cg.logsumexp, real(3, low=1000, high=1005)),
    ],
    "softmax": [
        *optional(cg.softmax, real, {k: v for k, v in AXES.items() if k == "axis 1 of 3"}),
        ("last axis", cg.softmax, real(2, 3)),
        ("all axes", partial(cg.softmax, axis=None), real(2, 3)),
        ("zero size kept", cg.softmax, real(0, 3)),
        ("far out", cg.softmax, real(3, low=-20, high=20)),
    ],
    "log_softmax": [
        *optional(cg.log_softmax, real, {k: v for k, v in AXES.items() if k == "axis 1 of 3"}),
        ("last axis", cg.log_softmax, real(2, 3)),
        ("all axes", partial(cg.log_softmax, axis=None), real(2, 3)),
        ("zero size kept", cg.log_softmax, real(0, 3)),
        ("far out", cg.log_softmax, real(3, low=-20, high=20)),
    ],
    "softmax_cross_entropy": [
        ("class numbers", lambda x: cg.softmax_cross_entropy(x, class_numbers(2)), real(2, 3)),
        ("one-hot", lambda x: cg.softmax_cross_entropy(x, ONE_HOT), real(2, 3)),
        ("integer one-hot", lambda x: cg.softmax_cross_entropy(x, ONE_HOT.astype(int)), real(2, 3)),
        ("one example, one-hot", lambda x: cg.softmax_cross_entropy(x, ONE_HOT[0]), real(3)),
        ("both differentiated", cg.softmax_cross_entropy, real(2, 3), positive(2, 3)),
        ("both, more batch axes", cg.softmax_cross_entropy, real(2, 1, 3), positive(2, 1, 3)),
    ],
    "sigmoid_cross_entropy": [
        ("labels", lambda x: cg.sigmoid_cross_entropy(x, MASK.astype(float)), real(2, 3)),
        ("integer labels", lambda x: cg.sigmoid_cross_entropy(x, MASK.astype(int)), real(2, 3)),
        ("both differentiated", cg.sigmoid_cross_entropy, real(2, 3), inside(2, 3)),
        ("numbers", cg.sigmoid_cross_entropy, real(), inside()),
        ("far out", lambda x: cg.sigmoid_cross_entropy(x, np.array([0.0, 1.0, 1.0, 0.0])), real(4, low=-30, high=30)),
    ],
}

# -------------------------------------------------------------------------------------------- products


def products(function: Function, shapes: Iterable[tuple[Shape, Shape]], make: Callable[..., Array] = real) -> list[Sketch]:
    """A product on pairs of shapes, which are also the labels."""
    return [(f"{a} {b}".replace(",)", ")"), function, make(*a, seed=1), make(*b, seed=2)) for a, b in shapes]


def einsums(shapes: Iterable[tuple[Any, ...]], make: Callable[..., Array] = real) -> list[Sketch]:
    """Sums by their subscripts, which are also the labels."""
    return [
        (f"{subscripts} {sizes}", partial(np.einsum, subscripts), *[make(*shape, seed=i) for i, shape in enumerate(sizes)])
        for subscripts, *sizes in shapes
    ]


DOTS: list[tuple[Shape, Shape]] = [
    ((), ()), ((), (3,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3,)), ((0,), (0,)),
]  # fmt: skip
MATMULS: list[tuple[Shape, Shape]] = [
    ((2, 1, 2, 3), (2, 3, 1)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)),
    ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((1, 2, 3), (2, 3, 2)), ((1, 1, 1), (2, 1, 1)), ((2, 0), (0, 3)), ((0, 2, 3), (3, 2)),
]  # fmt: skip
EINSUMS: list[tuple[Any, ...]] = [
    ("...ij,...jk->...ik", (2, 1, 2, 3), (2, 3, 2)), ("ij,jk->ik", (2, 3), (3, 2)), ("ba", (2, 3)),
    ("ij->", (2, 3)),  ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("iii->i", (2, 2, 2)), ("iji->j", (2, 3, 2)),

    ("ii,i->i", (2, 2), (2,)),
    (",ij->ij", (), (2, 3)), (",", (), ()), ("->", ()),
    ("...i->i...", (2, 3)), ("...ii->...i", (2, 3, 3)),

    ("...ij,...jk", (1, 2, 3), (2, 3, 2)),
    ("ij...,jk...->ik...", (2, 3), (3, 2)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,ij->", (2, 1), (1, 3)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
    ("ij,j,i->", (2, 3), (3,), (2,)), ("i,ij,j", (2,), (2, 3), (3,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("i->", (0,)),
]  # fmt: skip

PRODUCTS: dict[str, list[Sketch]] = {
    "matmul": [
        *products(operator.matmul, MATMULS),
        ("the same twice", lambda x: x @ x, real(2, 2)),
        ("a list", lambda x: x @ [1, -2, 1], real(2, 3)),
        ("an integer matrix", lambda x: np.array([[1, 2], [3, 4]]) @ x, real(2, 3)),
        ("in numpy.linalg", lambda x, y: np.linalg.matmul(x, y), real(2, 3), real(3, 2)),
        ("axes", partial(np.matmul, axes=[(0, 1), (1, 0), (-1, -2)]), real(2, 3), real(4, 3)),
        ("axes, repeated", partial(np.matmul, axes=[(0, 1), (0, 2), (0, 1)]), real(2, 3, 2), real(3, 1, 4)),
        ("axes of a vector", partial(np.matmul, axes=[0, (0, 1), 0]), real(3), real(3, 4, 2)),
    ],
    "dot": [
        *products(np.dot, [((2, 1, 3), (2, 3, 2)), *DOTS]),
        *scalars(np.dot),
        ("method", lambda x: x.dot(np.arange(3)), real(2, 3)),
    ],
    "inner": [
        *products(np.inner, [((2, 1, 3), (1, 2, 3)), *DOTS]),
        *scalars(np.inner),
    ],
    "outer": [
        *products(np.outer, [((2, 2), (2, 1, 3)), ((), (3,)), ((), ()), ((0,), (2,))]),
        *scalars(np.outer),
        ("in numpy.linalg", lambda x, y: np.linalg.outer(x, y), real(2), real(3)),
    ],
    "vdot": [
        *products(np.vdot, [((2, 3), (6,)), ((3,), (3,)), ((), ()), ((0,), (0,))]),
        ("Python number", lambda x: np.vdot(1.5, x), real()),
        ("a list", lambda x: np.vdot(x, [1, -2, 1]), real(3)),
    ],
    "tensordot": [
        *products(np.tensordot, [((2, 2, 3), (2, 3))]),
        *products(partial(np.tensordot, axes=0), [((), (3,)), ((2, 2), (3,))]),
        *products(partial(np.tensordot, axes=1), [((2, 3), (3, 2)), ((3,), (3,)), ((2, 0), (0, 3))]),
        ("axes (-1, 1)", partial(np.tensordot, axes=(-1, 1)), real(2, 3), real(2, 3, 2)),
        ("axes out of order", partial(np.tensordot, axes=([2, 0], [0, 2])), real(2, 3, 4), real(4, 2, 2)),
        ("three axes crossed", partial(np.tensordot, axes=([0, 1, 2], [2, 0, 1])), real(2, 3, 4), real(3, 4, 2)),
        ("no axes", partial(np.tensordot, axes=([], [])), real(2), real(3)),
        ("a list", lambda x: np.tensordot([1, -2], x, axes=1), real(2, 3)),
    ],
    "einsum": [
        *einsums(EINSUMS),
        ("lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]), real(2, 3), real(3, 2)),
        ("lists, implicit", lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), real(2, 3), real(3, 2)),
        ("lists, dots", lambda x, y: np.einsum(x, [..., 1], y, [1], [...]), real(2, 3), real(3)),
        ("lists, large numbers", lambda x: np.einsum(x, [30, 2], [2, 30]), real(2, 3)),
        ("optimize", lambda x, y, z: np.einsum("ij,jk,kl->il", x, y, z, optimize=True), real(2, 3), real(3, 2), real(2, 3)),
        ("a constant between", lambda x, z: np.einsum("i,ij,j->", x, np.ones((2, 3)), z), real(2), real(3)),
        ("an integer constant", lambda x: np.einsum("ij,j->i", x, np.array([1, -2, 3])), real(2, 3)),
        ("Python number", lambda x: np.einsum(",i->i", 1.5, x), real(3)),
    ],
}

# --------------------------------------------------------------------------------------------- shaping


def indexed(indices: dict[str, tuple[Shape, Any]]) -> list[Sketch]:
    """Reading at indices."""
    return [(label, partial(_read, index), real(*shape)) for label, (shape, index) in indices.items()]


def _read(index: Any, x: Any) -> Any:
    return x[index]


def pairs(x: Any) -> Any:
    """Neighbors as one complex number."""
    return (x * np.ones(1, x.dtype)).copy().view(np.result_type(x.dtype, np.complex64))


def parts(z: Any) -> Any:
    """The real and imaginary parts side by side."""
    return (z * np.ones(1, z.dtype)).copy().view(np.finfo(z.dtype).dtype)


SHAPING: dict[str, list[Sketch]] = {
    "astype": [
        *unary(lambda x: x.astype(np.float64), zero_size=True),
        ("by name", lambda x: x.astype("float64"), real(2, 3)),
        ("long double", lambda x: x.astype(np.longdouble), real(3)),
        ("complex", lambda x: np.real(x.astype(complex) * (1 + 2j)), real(3)),
        ("no copy", lambda x: x.astype(x.dtype, copy=False), real(3)),
        ("order", lambda x: x.astype(float, order="F"), real(2, 3)),
    ],
    "copy": [
        *unary(np.copy, zero_size=True),
        ("method", lambda x: x.copy(), real(2, 3)),
        ("order F", lambda x: x.copy("F"), real(2, 3)),
    ],
    "broadcast_to": [
        ("one inside", lambda x: np.broadcast_to(x, (2, 2, 3)), real(2, 1, 3)),
        ("number", lambda x: np.broadcast_to(x, (2, 2)), real()),
        ("to an integer", lambda x: np.broadcast_to(x, 3), real(1)),
        ("both", lambda x: np.broadcast_to(x, (2, 2, 3)), real(2, 1)),
        ("more leading ones", lambda x: np.broadcast_to(x, (1, 1, 3)), real(3)),
        ("to zero size", lambda x: np.broadcast_to(x, (0, 3)), real(3)),
    ],
    "reshape": [
        ("shape", lambda x: np.reshape(x, (3, 2)), real(2, 3)),
        ("inferred", lambda x: x.reshape(-1, 2), real(2, 3)),
        ("order F, method", lambda x: x.reshape(2, 2, 3, order="F"), real(3, 4)),
        ("to a number", lambda x: x.reshape(()), real(1, 1)),
        ("from a number", lambda x: np.reshape(x, (1, 1)), real()),
        ("zero size", lambda x: x.reshape(3, 0, 2), real(0, 2)),
        ("copy", lambda x: np.reshape(x, (3, 2), copy=True), real(2, 3)),
    ],
    "ravel": [
        *unary(np.ravel, zero_size=True),
        ("order F", partial(np.ravel, order="F"), real(2, 3)),
        ("method, order F", lambda x: x.ravel("F"), real(2, 3, 2)),
    ],
    "view": [
        ("the same", lambda x: x.view() * x.view(x.dtype), real(2, 3)),
        ("number", lambda x: x.view(), real()),
        ("pairs", lambda x: pairs(x), real(2, 4)),
        ("pairs, squared", lambda x: pairs(x) ** 2, real(2, 1, 2)),
        ("parts", lambda x: parts(pairs(x)), real(4)),
        ("zero size", pairs, real(0, 2)),
    ],
    "flatten": [
        *unary(lambda x: x.flatten(), zero_size=True),
        ("order F", lambda x: x.flatten("F"), real(2, 3, 2)),
    ],
    "squeeze": [
        *unary(np.squeeze, zero_size=True),
        ("axes", partial(np.squeeze, axis=(0, -1)), real(1, 2, 1)),
        ("no axes", partial(np.squeeze, axis=()), real(1, 2)),
        ("method", lambda x: x.squeeze(0), real(1, 3)),
        ("to a number", np.squeeze, real(1, 1)),
    ],
    "expand_dims": optional(
        np.expand_dims,
        real,
        {
            "axis -1": ((2, 3), {"axis": -1}),
            "axes": ((2, 3), {"axis": (0, 2)}),
            "no axes": ((3,), {"axis": ()}),
            "number": ((), {"axis": (0, 1)}),
            "zero size": ((0, 2), {"axis": 1}),
        },
    ),
    "transpose": [
        *unary(np.transpose, zero_size=True),
        ("attribute T", lambda x: x.T, real(2, 3)),
        ("attribute mT", lambda x: x.mT, real(2, 3, 2)),
        ("axes negative", partial(np.transpose, axes=(-1, 0, -2)), real(2, 3, 4)),
        ("method", lambda x: x.transpose(1, 0), real(2, 3)),
        ("permute_dims", lambda x: np.permute_dims(x, (2, 0, 1)), real(2, 3, 2)),
        ("matrix_transpose", lambda x: np.matrix_transpose(x), real(2, 3, 2)),
    ],
    "swapaxes": [
        ("0, 1", lambda x: np.swapaxes(x, 0, 1), real(2, 3)),
        ("0, -1", lambda x: np.swapaxes(x, 0, -1), real(2, 3, 4)),
        ("method", lambda x: x.swapaxes(-2, 2), real(2, 3, 4)),
        ("the same", lambda x: np.swapaxes(x, 1, 1), real(2, 3)),
        ("keywords", lambda x: np.swapaxes(x, axis1=0, axis2=1), real(2, 3)),
        ("zero size", lambda x: np.swapaxes(x, 0, 1), real(0, 3)),
    ],
    "moveaxis": [
        ("-1, 0", lambda x: np.moveaxis(x, -1, 0), real(2, 3, 4)),
        ("lists", lambda x: np.moveaxis(x, [0, 1], [-1, 0]), real(2, 3, 4)),
        ("keywords", lambda x: np.moveaxis(x, source=1, destination=0), real(2, 3)),
        ("zero size", lambda x: np.moveaxis(x, 0, 1), real(0, 3)),
    ],
    "concatenate": [
        ("axis 0", lambda x, y: np.concatenate((x, y)), real(2, 3), real(1, 3)),
        ("axis -1", lambda x, y: np.concatenate([x, y], axis=-1), real(2, 2, 1), real(2, 2, 2)),
        ("axis None", lambda x, y: np.concatenate([x, y], axis=None), real(2, 2), real(3)),
        ("axis None, a number", lambda x, y: np.concatenate([x, y], axis=None), real(), real(3)),
        ("the same twice", lambda x: np.concatenate([x, x]), real(3)),
        ("a constant between", lambda x, y: np.concatenate([x, np.ones(2, np.int8), y]), real(1), real(3)),
        ("zero size", lambda x, y: np.concatenate([x, y], axis=1), real(0, 2), real(0, 3)),
        ("rows of an array", lambda x: np.concatenate(x), real(2, 3)),
        ("a list", lambda x: np.concatenate([[1, 2.5], x]), real(3)),
        ("hstack with a Python number", lambda x: np.hstack([x, 1.5]), real(3)),
        ("vstack", lambda x, y: np.vstack([x, y]), real(3), real(2, 3)),
        ("hstack", lambda x, y: np.hstack([x, y]), real(2), real(3)),
        ("dstack", lambda x, y: np.dstack([x, y]), real(2, 2), real(2, 2)),
        ("column_stack", lambda x, y: np.column_stack([x, y]), real(2), real(2, 2)),
        ("append", lambda x, y: np.append(x, y), real(2), real(2, 2)),
    ],
    "stack": [
        ("axis 0", lambda x, y: np.stack([x, y]), real(2, 3), real(2, 3, seed=1)),
        ("axis -1", lambda x, y: np.stack([x, y], axis=-1), real(3), real(3, seed=1)),
        ("numbers", lambda x, y, z: np.stack([x, y, z]), real(), positive(), above()),
        ("a constant between", lambda x, y: np.stack([x, np.ones(2, np.int8), y]), real(2), real(2, seed=1)),
        ("zero size", lambda x, y: np.stack([x, y], 1), real(0, 2), real(0, 2)),
        ("rows of an array", lambda x: np.stack(x, axis=1), real(2, 3)),
        ("Python number", lambda x: np.stack([1.5, x]), real()),
        ("dtype", lambda x, y: np.stack([x, y], dtype=np.float64), real(2), real(2, seed=1)),
    ],
    "getitem": [
        *indexed(
            {
                "integer": ((3,), 1),
                "integers": ((2, 3), (1, -2)),
                "slice": ((5,), slice(1, 4)),
                "slice backwards": ((5,), slice(None, None, -2)),
                "ellipsis": ((2, 3, 2), (..., 1)),
                "new axis": ((2, 3), None),
                "empty tuple": ((2, 3), ()),
                "ellipsis of a number": ((), ...),
                "list": ((4,), [2, 0]),
                "repeated": ((3,), [2, 0, 2, 2]),
                "array": ((3,), np.array([[0, 1], [1, 1]])),
                "arrays": ((2, 3), ([0, 1, 1, 0], [2, 0, 0, 2])),
                "arrays that broadcast": ((2, 3), (np.array([[0], [1]]), np.array([1, 1, 2]))),
                "arrays with a slice between": ((2, 3, 2), ([0, 1, 0], slice(None), [1, 1, 1])),
                "array and slice": ((3, 4), (slice(1, None), [0, 0, 3])),
                "0-d array": ((3,), np.array(1)),
                "mask": ((2, 3), MASK),
                "mask and slice": ((2, 3), (slice(None), ROW_MASK)),
                "mask of a number": ((), np.array(True)),
                "True": ((3,), True),
                "meshed": ((3, 4), np.ix_([2, 0, 2], [1, 3])),
                "zero size": ((0, 3), (slice(None), 1)),
            }
        ),
        ("recorded mask", lambda x: x[x > 0], real(2, 3)),
        ("recorded position", lambda x: x[np.argmax(x)], real(4)),
        ("recorded order", lambda x: x[np.argsort(x)], real(4)),
        ("recorded, in a tuple", lambda x: x[np.argmax(x, axis=0), np.arange(3)], real(2, 3)),
        ("constant index", lambda x: x[cg.constant([1, 1, 0])], real(3)),
        ("pieces that overlap", lambda x: x[1:] * x[:-1] + x[0] * x[[1, 1, 2]], real(4)),
        ("pieces and the whole", lambda x: x * x[0] + x[::-1], real(3)),
        ("iterated", lambda x: sum(row * row for row in x), real(2, 3)),
    ],
}

# --------------------------------------------------------------------------------------------- complex


def with_real(function: Function, make: Callable[..., Array] = complexes) -> list[Sketch]:
    """A function of two arguments, both complex, or one of them real."""
    return [
        ("complex, complex", function, make(2, 3), make(3, seed=1)),
        ("complex, real", function, make(3), positive(2, 3, seed=1)),
        ("real, complex", function, positive(2, 1), make(1, 3, seed=1)),
        ("complex Python number", lambda x: function(x, 1 - 2j), positive(3)),
    ]


IN_THE_PLANE: list[Any] = [
    np.positive, np.real, np.imag, np.square, np.reciprocal, np.sqrt, np.exp, np.exp2, np.expm1,
    np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.sinh, np.cosh,
]  # fmt: skip
NEAR_ZERO: list[Any] = [np.tan, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh]

COMPLEX_SKETCHES: dict[str, list[Sketch]] = {
    "add": with_real(operator.add),
    "sub": with_real(operator.sub),
    "mul": [*with_real(operator.mul), ("its conjugate", lambda x: x * np.conj(x), complexes(3))],
    "div": with_real(operator.truediv),
    "pow": [
        *with_real(operator.pow),
        ("square", lambda x: x**2, complexes(3)),
        ("cube", lambda x: x**3, complexes(3)),
        ("to the -1", lambda x: x**-1, complexes(3)),
        ("root", lambda x: x**0.5, complexes(3)),
        ("integer array", lambda x: x ** np.array([0, 1, 2]), complexes(3)),
    ],
    "float_power": with_real(np.float_power),
    **{f.__name__: [("vector", f, complexes(3))] for f in IN_THE_PLANE},
    **{f.__name__: [("vector", f, small_complexes(3))] for f in NEAR_ZERO},
    "neg": [("vector", operator.neg, complexes(3))],
    "conj": [("function", np.conj, complexes(3)), ("method", lambda x: x.conjugate(), complexes(2, 2))],
    "abs": [("vector", np.abs, complexes(3)), ("number", abs, complexes())],
    "complex_sign": [("vector", np.sign, complexes(3)), ("number", np.sign, complexes())],
    "where": [
        ("both", partial(np.where, MASK), complexes(2, 3), complexes(3, seed=1)),
        ("with real", partial(np.where, MASK), complexes(3), real(2, 3)),
    ],
    "sum": [
        ("axis", partial(np.sum, axis=0), complexes(2, 3)),
        ("where", partial(np.sum, axis=1, where=MASK), complexes(2, 3)),
        ("to complex", lambda x: np.sum(x, dtype=complex) * (1 + 1j), real(3)),
    ],
    "mean": [("axis", partial(np.mean, axis=-1, keepdims=True), complexes(2, 3))],
    "prod": [("axis", partial(np.prod, axis=0), complexes(2, 3)), ("one zero", np.prod, complexes(3) * [1, 0, 1])],
    "var": [("axis", partial(np.var, axis=1, ddof=1), complexes(2, 3)), ("where", partial(np.var, where=MASK), complexes(2, 3))],
    "std": [("axis", partial(np.std, axis=1), complexes(2, 3)), ("all", np.std, complexes(3))],
    "matmul": [
        *products(np.matmul, [((2, 3), (3, 2)), ((3,), (3,)), ((2, 2, 3), (3,))], complexes),
        ("axes", partial(np.matmul, axes=[(0, 1), (1, 0), (-1, -2)]), complexes(2, 3), complexes(4, 3)),
        ("with real", np.matmul, real(2, 3), complexes(3, 2)),
    ],
    "dot": [
        *products(np.dot, [((2, 3), (3, 2)), ((3,), (3,)), ((), (3,))], complexes),
        ("with real", np.dot, complexes(3), real(3)),
    ],
    "inner": products(np.inner, [((2, 3), (2, 3)), ((3,), (3,))], complexes),
    "outer": products(np.outer, [((2,), (3,))], complexes),
    "vdot": [
        *products(np.vdot, [((3,), (3,)), ((2, 3), (2, 3))], complexes),
        ("with real", np.vdot, real(3), complexes(3)),
        ("with real right", np.vdot, complexes(3), real(3)),
        ("the same", lambda x: np.vdot(x, x), complexes(3)),
    ],
    "tensordot": products(np.tensordot, [((2, 3), (2, 3))], complexes),
    "einsum": [
        *einsums([("ij,jk->ik", (2, 3), (3, 2)), ("ii->i", (2, 2)), ("ij->", (2, 3)), ("i,i,i", (3,), (3,), (3,))], complexes),
        ("with real", partial(np.einsum, "ij,j"), real(2, 3), complexes(3)),
        ("real trace", lambda x: np.einsum("ii,j->j", x, np.array([1j, 2])), real(2, 2)),
    ],
    "astype": [
        ("to complex", lambda x: x.astype(complex) * (1 - 1j), real(3)),
        ("to the same", lambda x: x.astype(complex), complexes(3)),
    ],
    "copy": [("vector", lambda x: x.copy(), complexes(3))],
    "broadcast_to": [("vector", lambda x: np.broadcast_to(x, (2, 3)), complexes(3))],
    "reshape": [("order F", lambda x: np.reshape(x, (3, 2), order="F"), complexes(2, 3))],
    "ravel": [("matrix", np.ravel, complexes(2, 3))],
    "view": [("parts", lambda x: parts(x), complexes(2, 3)), ("there and back", lambda x: pairs(parts(x)) * 1j, complexes(3))],
    "flatten": [("matrix", lambda x: x.flatten(), complexes(2, 3))],
    "squeeze": [("matrix", np.squeeze, complexes(1, 3))],
    "expand_dims": [("vector", partial(np.expand_dims, axis=0), complexes(3))],
    "transpose": [("matrix", np.transpose, complexes(2, 3))],
    "swapaxes": [("matrix", lambda x: np.swapaxes(x, 0, 1), complexes(2, 3))],
    "moveaxis": [("matrix", lambda x: np.moveaxis(x, 0, 1), complexes(2, 3))],
    "concatenate": [("with real", lambda x, y: np.concatenate([x, y]), complexes(2), real(3))],
    "stack": [("with real", lambda x, y: np.stack([x, y]), complexes(3), real(3))],
    "getitem": [
        ("slice", lambda x: x[1:], complexes(3)),
        ("repeated", lambda x: x[[0, 0, 1]], complexes(3)),
        ("pieces", lambda x: x[1:] * x[0] + x[:-1], complexes(3)),
    ],
}

# ------------------------------------------------------------------------------------------------ all

SKETCHES: dict[str, list[Sketch]] = {**ONE_OPERAND, **MORE_OPERANDS, **REDUCTIONS, **PRODUCTS, **SHAPING}
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {}
for family in (cases_linear_algebra, cases_networks, cases_selection, cases_special, cases_statistics, cases_transforms):
    SKETCHES |= family.SKETCHES
    COMPLEX_SKETCHES |= family.COMPLEX_SKETCHES
    COMPOSED_SKETCHES |= family.COMPOSED_SKETCHES


def _cases(sketches: dict[str, list[Sketch]], kind: str) -> list[Case]:
    return [Case(opname, label, f, tuple(args), kind) for opname, some in sketches.items() for label, f, *args in some]


CASES: list[Case] = _cases(SKETCHES, "real")
COMPLEX_CASES: list[Case] = _cases(COMPLEX_SKETCHES, "complex")
COMPOSED_CASES: list[Case] = _cases(COMPOSED_SKETCHES, "composed")
