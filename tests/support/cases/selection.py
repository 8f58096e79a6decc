"""Cases of the family compgraph.ops.families.array_manipulation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import DESCENDING, MASK, ROW_MASK, Shape, Sketch, complexes, optional, real, shifted, unary

Options = dict[str, tuple[Shape, dict[str, Any]]]

windows: Any = np.lib.stride_tricks.sliding_window_view
ORDER = np.array([[2, 0, 1], [0, 0, 2]])
SORTED: Options = {
    "axis -2": ((3, 2, 2), {"axis": -2}),
    "last axis": ((2, 3), {}),
    "axis None": ((2, 3), {"axis": None}),
    "vector": ((5,), {}),
    "zero size": ((0, 3), {"axis": 0}),
}
DIAGONALS: Options = {
    "wide": ((2, 4), {}),
    "axes": ((2, 3, 3), {"axis1": 1, "axis2": 2}),
    "axes negative": ((3, 2, 3), {"offset": 1, "axis1": -1, "axis2": 0}),
    "none there": ((2, 2), {"offset": 5}),
    "zero size": ((0, 3), {}),
}

# ------------------------------------------------------------------------------------------ with rules

TAKING: dict[str, list[Sketch]] = {
    "take": [
        ("axis, positional", lambda x: np.take(x, [-1, 0], 1), real(2, 3)),
        ("one, a number", lambda x: np.take(x, 1), real(3)),
        ("mode wrap", lambda x: np.take(x, [4, -7, 2], mode="wrap"), real(3)),
        ("mode clip", lambda x: np.take(x, [4, -7, 2], axis=1, mode="clip"), real(2, 3)),
        ("of a number", lambda x: np.take(x, [0, 0]), real()),
        ("method, keywords", lambda x: x.take(indices=[1, 0], axis=0, mode="wrap"), real(2, 3)),
        ("recorded positions, descending", lambda x: np.take(x, np.argsort(x, **DESCENDING)), real(4)),
        ("none", lambda x: np.take(x, np.zeros(0, int)), real(3)),
        ("zero size", lambda x: np.take(x, [1, 1], axis=1), real(0, 3)),
    ],
    "take_along_axis": [
        ("axis 1", lambda x: np.take_along_axis(x, ORDER, 1), real(2, 3)),
        ("axis -1 by default", lambda x: np.take_along_axis(x, ORDER), real(2, 3)),
        ("axis None", lambda x: np.take_along_axis(x, np.array([5, 0, 0]), axis=None), real(2, 3)),
        ("broadcast", lambda x: np.take_along_axis(x, ORDER, axis=1), real(1, 3)),
        ("recorded order", lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), real(3, 2)),
        ("zero size", lambda x: np.take_along_axis(x, np.zeros((0, 1), int), axis=1), real(0, 3)),
    ],
    "sort": [
        *optional(np.sort, real, SORTED),
        ("positional", lambda x: np.sort(x, 0, "mergesort"), real(4, 2)),
        ("descending, stable", partial(np.sort, axis=None, stable=True, **DESCENDING), real(2, 3)),
    ],
    "partition": [
        *optional(partial(np.partition, kth=1), real, {k: v for k, v in SORTED.items() if k != "zero size"}),
        ("two in a list", lambda x: np.partition(x, [1, -2], axis=0), real(5, 2)),
        ("zero size", lambda x: np.partition(x, 1), real(0, 3)),
    ],
    "diagonal": [
        *optional(np.diagonal, real, DIAGONALS),
        ("positional", lambda x: np.diagonal(x, 1, 2, 0), real(2, 3, 4)),
        ("method", lambda x: x.diagonal(-1), real(3, 3)),
    ],
    "trace": [
        *optional(np.trace, real, DIAGONALS),
        ("dtype", partial(np.trace, dtype=np.float64), real(2, 3)),
        ("method", lambda x: x.trace(1, axis1=1, axis2=0), real(3, 3, 2)),
    ],
    "diag": [
        ("vector", np.diag, real(3)),
        ("vector, above", partial(np.diag, k=1), real(2)),
        ("vector, below", lambda x: np.diag(x, -2), real(2)),
        ("matrix", np.diag, real(3, 3)),
        ("matrix, above", partial(np.diag, k=1), real(2, 3)),
        ("zero size", np.diag, real(0)),
    ],
    "diagflat": [
        ("vector", np.diagflat, real(3)),
        ("matrix, above", partial(np.diagflat, k=1), real(2, 2)),
        ("number, below", lambda x: np.diagflat(x, -1), real()),
        ("zero size", np.diagflat, real(0, 2)),
    ],
    "repeat": [
        ("flat", lambda x: np.repeat(x, 2), real(2, 2)),
        ("axis -1", lambda x: np.repeat(x, repeats=2, axis=-1), real(2, 3)),
        ("each as often", lambda x: np.repeat(x, [1, 0, 2], axis=1), real(2, 3)),
        ("one count in a list", lambda x: np.repeat(x, [2], axis=1), real(2, 3)),
        ("number", lambda x: np.repeat(x, 3), real()),
        ("recorded counts", lambda x: np.repeat(x, 1 + np.argsort(x)), real(3)),
        ("zero size", lambda x: np.repeat(x, 2, axis=1), real(0, 3)),
    ],
    "delete": [
        ("flat", lambda x: np.delete(x, 1), real(2, 3)),
        ("axis -1, several", lambda x: np.delete(x, [0, -1], axis=-1), real(2, 4)),
        ("slice", lambda x: np.delete(x, slice(0, 4, 2), 1), real(2, 5)),
        ("mask", lambda x: np.delete(x, ROW_MASK, axis=1), real(2, 3)),
        ("a list of booleans", lambda x: np.delete(x, [True, False, True]), real(3)),
        ("recorded place", lambda x: np.delete(x, np.argmax(x)), real(3)),
        ("zero size", lambda x: np.delete(x, 0, axis=1), real(0, 3)),
    ],
    "insert": [
        ("flat", lambda x, y: np.insert(x, 1, y), real(2, 3), shifted()),
        ("a column", lambda x, y: np.insert(x, 0, y, axis=1), real(2, 3), shifted(2)),
        ("the same twice", lambda x, y: np.insert(x, [2, 2], y), real(4), shifted(2)),
        ("a slice", lambda x, y: np.insert(x, slice(0, 4, 2), y), real(4), shifted(2)),
        ("a slice backwards", lambda x, y: np.insert(x, slice(None, None, -1), y, 1), real(2, 3), shifted(2, 3)),
        ("a mask", lambda x, y: np.insert(x, ROW_MASK, y), real(3), shifted(2)),
        ("constant values", lambda x: np.insert(x, 1, [5.0, 6.0]), real(3)),
        ("into a constant", lambda y: np.insert(np.ones(3), 1, y), shifted(2)),
        ("zero size", lambda x, y: np.insert(x, 0, y), real(0), shifted(2)),
    ],
    "full_like": [
        ("number", lambda x: np.full_like(x, x[0, 0]), real(2, 3)),
        ("row", lambda x: x * np.full_like(x, x[1]), real(2, 3)),
        ("shape", lambda x: np.full_like(x, x[1] ** 2, shape=(2, 2)), real(3)),
        ("dtype, order", lambda x: np.full_like(x, x[:1], dtype=np.float64, order="F"), real(2, 3)),
        ("Python number", lambda x: np.full_like(x, 2.5) * x, real(2, 3)),
        ("of a list", lambda x: np.full_like(x, [x[0], x[0] ** 2]), real(2)),
        ("zero size", lambda x: np.full_like(x, x[:, :1]), real(0, 3)),
    ],
}
MOVING: dict[str, list[Sketch]] = {
    "roll": [
        ("flat", lambda x: np.roll(x, 2), real(2, 3)),
        ("axis -1, backwards", lambda x: np.roll(x, -2, -1), real(2, 3)),
        ("axes", lambda x: np.roll(x, (1, 2), axis=(0, 1)), real(2, 3)),
        ("the same axis twice", lambda x: np.roll(x, (1, 1), axis=(1, 1)), real(2, 3)),
        ("number", lambda x: np.roll(x, 1), real()),
        ("zero size", lambda x: np.roll(x, 1, axis=1), real(0, 3)),
    ],
    "tile": [
        ("matrix", lambda x: np.tile(x, (2, 1)), real(3)),
        ("more axes", lambda x: np.tile(x, (2, 1, 2)), real(2, 2)),
        ("once, more axes", lambda x: np.tile(x, (1, 1)), real(3)),
        ("of a number", lambda x: np.tile(x, 3), real()),
        ("zero size", lambda x: np.tile(x, 2), real(0, 3)),
    ],
    "sliding_window_view": [
        ("vector", lambda x: windows(x, 3), real(5)),
        ("matrix", lambda x: windows(x, (2, 2)), real(3, 3)),
        ("axis", lambda x: windows(x, 2, axis=-1), real(2, 4)),
        ("axes", lambda x: windows(x, [2, 1], axis=[1, 0]), real(2, 3)),
        ("subok", lambda x: windows(x, 2, subok=True), real(3)),
        ("zero size", lambda x: windows(x, 2, axis=1), real(0, 3)),
    ],
    "nan_to_num": [
        *unary(np.nan_to_num),
        ("not finite", lambda x: np.nan_to_num(x + np.array([np.nan, 1, np.nan, 0])), real(4)),
        ("to", lambda x: np.nan_to_num(x + np.array([np.nan, np.inf, -np.inf, 0]), True, 1.0, 2.0, -3.0), real(4)),
        ("keywords", lambda x: np.nan_to_num(x - [np.nan, np.inf], nan=5, posinf=1, neginf=2), real(2)),
    ],
}


def padded(mode: str, *widths: Any, **options: Any) -> list[Sketch]:
    """A mode of padding, with several widths and one choice of its options."""
    named = ", ".join([mode, *[f"{k} {v}" for k, v in options.items()]])
    return [(f"{named}, {width} of {shape}", partial(np.pad, pad_width=width, mode=mode, **options), real(*shape))
            for shape, width in [((2, 3), ((0, 1), (2, 0))), *widths]]  # fmt: skip


FAR: list[Any] = [((2, 3), ((3, 0), (0, 9))), ((1, 2), 3)]
PADDED: dict[str, list[Sketch]] = {
    "pad": [
        *padded("constant", ((4,), (1, 2)), ((2, 3), {1: (1, 2)}), ((2, 3), {-1: 2}), ((0, 2), 1), ((), 1)),
        *padded("constant", ((2, 2), 1), constant_values=(1, 2)),
        *padded("edge", *FAR[:1]),
        *padded("wrap", *FAR),
        *padded("reflect", *FAR),
        *padded("reflect", *FAR[:1], reflect_type="odd"),
        *padded("symmetric", *FAR[:1]),
        *padded("symmetric", *FAR[1:], reflect_type="odd"),
        *padded("linear_ramp", ((0, 2), ((0, 0), (1, 1)))),
        *padded("linear_ramp", *FAR[:1], end_values=(1, -2)),
        *padded("maximum", *FAR[:1]),
        *padded("minimum", *FAR[:1], stat_length=2),
        *padded("mean", *FAR[:1]),
        *padded("mean", ((2, 2, 2), 1), stat_length=(1, 2)),
        *padded("median", ((2, 3), {0: 1})),
        *padded("median", ((2, 2, 3), 1), stat_length=((2, 3),)),
        ("default", lambda x: np.pad(x, 1), real(2, 3)),
        ("a list", lambda x: np.pad(x, [[1, 0], [0, 2]], "edge"), real(2, 3)),
        ("empty, the inside", lambda x: np.pad(x, 1, "empty")[1:-1, 1:-1], real(2, 3)),
    ],
}
SKETCHES: dict[str, list[Sketch]] = {**TAKING, **MOVING, **PADDED}

COMPLEX_SKETCHES: dict[str, list[Sketch]] = {
    "take": [("repeated", lambda x: np.take(x, [0, 0, 2]), complexes(3))],
    "take_along_axis": [("matrix", lambda x: np.take_along_axis(x, ORDER, 1), complexes(2, 3))],
    "sort": [("vector", np.sort, complexes(4)), ("axis None", partial(np.sort, axis=None), complexes(2, 3))],
    "partition": [("vector", lambda x: np.partition(x, 2), complexes(5))],
    "diagonal": [("above", partial(np.diagonal, offset=1), complexes(2, 3))],
    "trace": [("matrix", np.trace, complexes(2, 3)), ("to complex", lambda x: np.trace(x, dtype=complex) * 1j, real(2, 2))],
    "diag": [("vector", np.diag, complexes(3))],
    "diagflat": [("vector", np.diagflat, complexes(3))],
    "repeat": [("vector", lambda x: np.repeat(x, 2), complexes(3))],
    "delete": [("vector", lambda x: np.delete(x, 1), complexes(3))],
    "insert": [
        ("both", lambda x, y: np.insert(x, 1, y), complexes(3), complexes(2, seed=1)),
        ("real values", lambda x, y: np.insert(x, 1, y), complexes(3), real(2)),
    ],
    "full_like": [("both", lambda x: np.full_like(x, x[1]), complexes(2, 3))],
    "pad": [
        *[(mode, partial(np.pad, pad_width=2, mode=mode), complexes(3)) for mode in ("edge", "linear_ramp", "mean", "constant")],
        ("odd", partial(np.pad, pad_width=2, mode="reflect", reflect_type="odd"), complexes(3)),
    ],
    "roll": [("vector", lambda x: np.roll(x, 1), complexes(3))],
    "tile": [("vector", lambda x: np.tile(x, 2), complexes(3))],
    "sliding_window_view": [("vector", lambda x: windows(x, 2), complexes(3))],
    "nan_to_num": [("parts", lambda x: np.nan_to_num(x + np.array([np.nan, complex(0, np.inf), 0]), posinf=3), complexes(3))],
}

# ------------------------------------------------------------------------------------------- composed


def power_of(row: Any, a: Any, b: Any = 1) -> Any:
    """A function with arguments of its own."""
    return a * row**b


CHOICE = np.array([[2, 0, 1], [1, 1, 0]])
FLIPPED: list[Sketch] = [
    ("all", np.flip, real(2, 3)),
    ("axis", partial(np.flip, axis=0), real(2, 3)),
    ("axes", partial(np.flip, axis=(0, -1)), real(2, 3, 2)),
    ("number", np.flip, real()),
    ("zero size", np.flip, real(0, 3)),
    ("complex", np.flip, complexes(3)),
]
SETS: dict[str, list[Sketch]] = {
    "unique": [
        ("repeated", lambda x: np.unique(x[[0, 1, 1, 2, 0]]), real(3)),
        ("axis", lambda x: np.unique(x[[0, 1, 0]], axis=0), real(2, 3)),
        ("index", lambda x: x[np.unique(x, return_index=True)[1]], real(4)),
        ("all", lambda x: np.multiply(*np.unique(x[[0, 1, 1]], True, True, True)[::3]), real(2)),
        ("inverse", lambda x: np.unique(x, return_inverse=True)[0] * np.unique(x, return_inverse=True)[1], real(4)),
        ("options", partial(np.unique, equal_nan=False, sorted=True), real(3)),
        ("zero size", np.unique, real(0)),
        ("complex", np.unique, complexes(3)),
    ],
    "unique_all": [("values", lambda x: np.unique_all(x).values * np.unique_all(x).indices, real(4))],
    "unique_counts": [("values", lambda x: np.unique_counts(x[[0, 1, 0]]).values * [1, 2], real(2))],
    "unique_inverse": [("values", lambda x: np.unique_inverse(x).values, real(4))],
    "unique_values": [("of NumPy's order", np.unique_values, real(4))],
    "union1d": [("two", np.union1d, real(3), shifted(2, 2)), ("a list", lambda x: np.union1d([1.0, 7], x), real(3))],
    "setdiff1d": [
        ("two", lambda x: np.setdiff1d(x, x[:2]), real(4)),
        ("assume_unique", lambda x: np.setdiff1d(x, x[:2], assume_unique=True), real(4)),
        ("with constants", lambda x: np.setdiff1d(x, [5.0]), real(2, 2)),
    ],
    "setxor1d": [
        ("two", lambda x, y: np.setxor1d(x, np.concatenate([x[:2], y])), real(4), shifted(2)),
        ("assume_unique", lambda x, y: np.setxor1d(x, y, assume_unique=True), real(3), shifted(2)),
        ("zero size", lambda x: np.setxor1d(x, x), real(0)),
    ],
    "intersect1d": [
        ("two", lambda x: np.intersect1d(x, x[1:]), real(4)),
        ("assume_unique", lambda x: np.intersect1d(x, x[1:], True), real(2, 2)),
        ("indices", lambda x: x[np.intersect1d(x, x[1:], return_indices=True)[1]], real(4)),
        ("indices, unique", lambda x: x[np.intersect1d(x, x[1:], assume_unique=True, return_indices=True)[2]], real(4)),
    ],
}
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {
    "flip": FLIPPED,
    "fliplr": [("matrix", np.fliplr, real(2, 3))],
    "flipud": [("vector", np.flipud, real(3)), ("matrix", np.flipud, real(2, 3))],
    "rot90": [(f"{k} times", partial(np.rot90, k=k), real(2, 3)) for k in (-1, 0, 2)]
    + [("axes", partial(np.rot90, axes=(1, 2)), real(2, 2, 3))],
    "tril": [("matrix", np.tril, real(3, 3)), ("above", partial(np.tril, k=1), real(2, 2, 3)), ("vector", np.tril, real(3))],
    "triu": [("matrix", np.triu, real(3, 3)), ("below", partial(np.triu, k=-1), real(3, 2)), ("zero size", np.triu, real(0, 2))],
    "compress": [
        ("axis", partial(np.compress, [False, True]), real(3)),
        ("axis 0", lambda x: np.compress([False, True], x, axis=0), real(2, 3)),
        ("axis 1", lambda x: np.compress(ROW_MASK, x, axis=1), real(2, 3)),
        ("method", lambda x: x.compress(ROW_MASK, axis=-1), real(2, 3)),
        ("recorded mask", lambda x: np.compress(x > 0, x), real(4)),
        ("zero size", lambda x: np.compress(ROW_MASK, x, axis=1), real(0, 3)),
    ],
    "extract": [
        ("mask", partial(np.extract, MASK), real(2, 3)),
        ("recorded mask", lambda x: np.extract(x > 0, x), real(2, 3)),
        ("complex", partial(np.extract, ROW_MASK), complexes(3)),
    ],
    "choose": [
        ("two", lambda x, y, z: np.choose(CHOICE, [x, y, z]), real(2, 3), shifted(2, 3), real(2, 3, seed=3)),
        ("broadcast", lambda x, y: np.choose([[0], [1]], [x, y]), real(3), shifted(3)),
        ("mode wrap", lambda x, y: np.choose(CHOICE, [x, y], mode="wrap"), real(2, 3), shifted(2, 3)),
        ("mode clip", lambda x, y: np.choose(CHOICE - 1, [x, y], mode="clip"), real(2, 3), shifted(2, 3)),
        ("recorded", lambda x: np.choose(np.argmin(x, axis=0), x), real(2, 3)),
        ("method", lambda x: np.argmin(x, axis=0).choose(x), real(2, 3)),
    ],
    "select": [
        ("two", lambda x: np.select([x < -1, x > 1], [x * x, -x], 7), real(5)),
        ("default", lambda x, y: np.select([x < 0, x > 1], [x * x, y], default=y), real(5), shifted(5)),
        ("first of two", lambda x: np.select([MASK, True | MASK], [x, 2 * x]), real(2, 3)),
        ("broadcast", lambda x: np.select([MASK], [x]), real(3)),
    ],
    "piecewise": [
        ("two", lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: v**2, lambda v: 3 * v]), real(2, 3)),
        ("default", lambda x: np.piecewise(x, [x < -1, x > 1], [np.sin, np.exp, lambda v: -v]), real(7)),
        ("one condition", lambda x: np.piecewise(x, x > 0, [np.exp, np.sin]), real(4)),
        ("one plain condition", lambda x: np.piecewise(x, ROW_MASK, [np.exp]), real(3)),
        ("a list of booleans", lambda x: np.piecewise(x, [True, False, True], [np.exp, np.sin]), real(3)),
        ("overlapping", lambda x: np.piecewise(x, [x < 1, x > -1], [np.exp, lambda v: v * np.sum(v)]), real(6)),
        ("among all chosen", lambda x: np.piecewise(x, [x > 0, x < -1], [np.cumsum, lambda v: v - np.mean(v)]), real(6)),
        ("numbers only, a node one of them", lambda x, y: cg.piecewise(x, [x < 0], [y, 2 * y]) * x, real(4), shifted()),
        ("an array of values", lambda x, y: cg.piecewise(x, [ROW_MASK], [y, 0]), real(3), shifted(2)),
        ("rows", lambda x, y: cg.piecewise(x, [[True, False], [False, True]], [y, np.exp]), real(2, 3), shifted(1, 3)),
        ("arguments", lambda x, a: cg.piecewise(x, [x > 0], [power_of, 0], a, b=2), real(5), shifted()),
        ("0-d", lambda x: np.piecewise(x, x > 0, [np.exp, np.sin]), np.array(0.7)),
        ("0-d, two", lambda x: np.piecewise(x, [x > 0, x < -1], [np.exp, lambda v: v * v, 5]), np.array(-1.7)),
        ("zero size", lambda x: np.piecewise(x, [x > 0], [np.exp, np.sin]), real(0, 3)),
        ("complex", lambda x: np.piecewise(x, [np.real(x) > 0], [np.exp, lambda v: v * 1j]), complexes(4)),
    ],
    "resize": [
        ("larger", lambda x: np.resize(x, (2, 4)), real(3)),
        ("smaller", lambda x: np.resize(x, 2), real(2, 3)),
    ],
    "trim_zeros": [
        ("both", lambda x: np.trim_zeros(x * np.array([0, 1, 0, 1, 0])), real(5)),
        ("front", lambda x: np.trim_zeros(x * np.array([0, 1, 0]), "f"), real(3)),
        ("back, axis", lambda x: np.trim_zeros(x * np.array([0, 1, 0]), trim="b", axis=-1), real(2, 3)),
    ],
    "meshgrid": [
        ("xy", lambda x, y: np.multiply(*np.meshgrid(x, y)), real(2), shifted(3)),
        ("ij", lambda x, y: np.multiply(*np.meshgrid(x, y, indexing="ij")), real(2), shifted(3)),
        ("three", lambda x, y: np.stack(np.meshgrid(x, [1, 2.0], y)), real(2), shifted(3)),
        ("number", lambda x, y: np.stack(np.meshgrid(x, y)), real(), shifted(2)),
    ],
    "apply_along_axis": [
        ("to numbers", lambda x: np.apply_along_axis(lambda row: np.sum(row * row), 0, x), real(2, 3)),
        ("to vectors", lambda x: np.apply_along_axis(lambda row: np.sort(row)[:2], 1, x), real(2, 3, 2)),
        ("to matrices", lambda x: np.apply_along_axis(np.diag, -1, x), real(2, 2)),
        ("to lists", lambda x: np.apply_along_axis(lambda row: [row[0], row[1] ** 2], 0, x), real(2, 3)),
        ("arguments", lambda x: np.apply_along_axis(power_of, 1, x, 3, b=2), real(2, 2)),
    ],
    "apply_over_axes": [
        ("axes", lambda x: np.apply_over_axes(np.sum, x, (0, -1)), real(2, 3, 2)),
        ("axis", lambda x: np.apply_over_axes(np.prod, x, 1), real(2, 3)),
    ],
    "astype": [("function", lambda x: np.astype(x, np.float64, copy=False), real(3))],
    "real_if_close": [
        ("real", np.real_if_close, real(3)),
        ("close", lambda x: np.real_if_close(x + 0j), real(3)),
        ("not close", lambda x: np.real_if_close(x, tol=10), complexes(3)),
    ],
    "pad_values": [
        ("one", lambda x: np.pad(x, 1, constant_values=x[0, 0] ** 2), real(2, 3)),
        ("two", lambda x: np.pad(x, (1, 2), constant_values=(x[0, 0], x[0, 1])), real(2, 3)),
        ("each", lambda x: np.pad(x, ((1, 2), (2, 0)), constant_values=x * x), real(2, 2)),
    ],
    "block": [
        ("matrix", lambda x, y: np.block([[x, y], [y * y, x]]), real(2, 2), shifted(2, 2)),
        ("ragged", lambda x, y: np.block([[x, y], [np.ones((1, 5))]]), real(2, 2), shifted(2, 3)),
        ("row", lambda x, y: np.block([x, 1.0, y[0], y]), real(2), shifted(3)),
        ("deep", lambda x, y: np.block([[[x], [y]]]), real(2), shifted(2)),
    ],
    "vander": [
        ("square", np.vander, real(3)),
        ("wide", lambda x: np.vander(x, 5), real(3)),
        ("increasing", partial(np.vander, N=4, increasing=True), real(3)),
        ("one column", lambda x: np.vander(x, N=1)[:, 0] * x, real(3)),
        ("at zero", np.vander, np.array([0.0, 1.0, -2.0])),
        ("zero size", partial(np.vander, N=3), real(0)),
        ("complex", np.vander, complexes(3)),
    ],
    "sort_complex": [
        ("vector", lambda x: np.real(np.sort_complex(x) * (1 - 2j)), real(4)),
        ("matrix", lambda x: np.real(np.sort_complex(x) * (1 - 2j)), real(2, 3)),
        ("zero size", lambda x: np.real(np.sort_complex(x)), real(0)),
        ("complex", np.sort_complex, complexes(4)),
        ("real to complex", np.sort_complex, real(4)),
    ],
    "concat": [("axis", lambda x, y: np.concat([x, y], axis=1), real(2, 1), shifted(2, 2))],
    "copy": [("order", lambda x: np.copy(x, order="F"), real(2, 3))],
    **SETS,
}
