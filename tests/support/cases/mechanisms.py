"""Cases for the mechanisms that all rules share: arbitrary shapes, dtypes and options, for each kind of rule.

Each strategy draws a `Case` of one kind of rule. Shapes include zero sizes and zero dimensions, and shapes that broadcast;
arguments are real or complex. The tables of the other modules have the cases of single operations.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes, valid_tuple_axes

import compgraph as cg
from tests.support.arguments import Array, Case, Function, Shape, complexes, negative, off_zero, positive, real, shifted

Draw = Callable[[Any], Any]


def search(check: Callable[..., None], count: int, **strategies: st.SearchStrategy[Any]) -> None:
    """Check `count` independent examples, the same in each run, and as often the simplest one.

    A single search of Hypothesis mostly varies a few small examples, so each one has a search and a seed of its own.
    """
    reproducible = settings(max_examples=2, deadline=None, database=None)
    for number in range(count):
        reproducible(seed(number)(given(**strategies)(check)))()


def argument(
    draw: Draw, shape: Shape, number: int, make: Callable[..., Array], plane: bool = False, repeats: bool = True
) -> Array:
    """An argument of a shape, complex or not where `plane`, and a view of one row repeated or not where `repeats`."""
    x = complexes(*shape, seed=number) if plane and draw(st.booleans()) else make(*shape, seed=number)
    if repeats and shape and shape[0] > 1 and draw(st.integers(0, 3)) == 0:
        x = np.broadcast_to(x[:1], shape)
    return x


def case_of(kind: str, function: Function, *args: Array, **options: Any) -> Case:
    """A case whose label describes the arguments and options."""
    name = getattr(function, "__name__", str(function))
    label = ", ".join([name, *[f"{x.dtype} {x.shape}" for x in args], *[f"{k}={v}" for k, v in options.items()]])
    return Case(kind, label, functools.partial(function, **options) if options else function, args)


# ----------------------------------------------------------------------------------------- elementwise

UNARY: list[tuple[Function, Callable[..., Array], bool]] = [
    (np.exp, real, True),
    (np.conjugate, real, True),
    (np.abs, off_zero, True),
    (np.sqrt, positive, True),
    (cg.relu, off_zero, False),
    (np.arctan, real, False),
]
BINARY: list[tuple[Function, Callable[..., Array], bool]] = [
    (operator.add, real, True),
    (np.subtract, real, True),
    (operator.mul, real, True),
    (operator.truediv, positive, True),
    (operator.pow, positive, True),
    (np.arctan2, real, False),
    (np.maximum, real, False),
    (np.logaddexp, real, False),
]


def chosen(x: Any, y: Any) -> Any:
    """An operation with a recorded condition."""
    return np.where(x > y, x * y, y)


@st.composite
def unary_cases(draw: Draw) -> Case:
    function, make, plane = draw(st.sampled_from(UNARY))
    shape = draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    return case_of("elementwise", function, argument(draw, shape, 0, make, plane))


@st.composite
def binary_cases(draw: Draw) -> Case:
    function, make, plane = draw(st.sampled_from([*BINARY, (chosen, real, False)]))
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4, max_side=3)).input_shapes
    other = shifted if make is real else make
    left = argument(draw, shapes[0], 1, make, plane)
    return case_of("elementwise", function, left, argument(draw, shapes[1], 2, other, plane))


@st.composite
def ternary_cases(draw: Draw) -> Case:
    shapes = draw(mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=3, max_side=2)).input_shapes
    makers = (functools.partial(real, low=-3, high=3), negative, positive)
    return case_of("elementwise", np.clip, *[argument(draw, s, 0, make) for s, make in zip(shapes, makers, strict=True)])


# ------------------------------------------------------------------------------------------ reductions


def _mask(draw: Draw, shape: Shape) -> Array:
    """A mask that broadcasts to a shape."""
    own = tuple(draw(st.sampled_from((1, n))) for n in shape)[draw(st.integers(0, len(shape))) :]
    return np.random.default_rng(draw(st.integers(0, 9))).random(own) < 0.6


@st.composite
def reduction_cases(draw: Draw) -> Case:
    """Reductions along any axes, with a mask and an initial value, which may be differentiated."""
    shape = draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    options: dict[str, Any] = {}
    axis = draw(st.none() | st.integers(-len(shape), len(shape) - 1) | valid_tuple_axes(len(shape))) if shape else None
    if draw(st.booleans()) or axis is not None:
        options["axis"] = axis
    if draw(st.booleans()):
        options["keepdims"] = draw(st.booleans())
    plain = [np.mean, np.var, np.std, cg.logsumexp]
    with_initial = [cg.sum, cg.prod, cg.max, cg.min]
    whole = axis == () or np.prod(shape) < 2
    function = draw(st.sampled_from(with_initial if 0 in shape or whole else [*with_initial, *plain]))
    if function in plain:
        lines = np.ones(shape).sum(axis=axis)
        if function in (np.var, np.std) and (not lines.size or lines.flat[0] < 2):
            function = np.mean
        return case_of("reduction", function, argument(draw, shape, 0, real, function is np.mean, False), **options)
    x = argument(draw, shape, 0, real, function in (cg.sum, cg.prod), False)
    orders = function in (cg.max, cg.min)
    if draw(st.booleans()) or orders:
        if draw(st.booleans()):
            options["where"] = _mask(draw, shape)
        begin = np.array({cg.max: -5.0, cg.min: 5.0}.get(function, 0.7))
        if draw(st.booleans()):
            name = f"{function.__name__} and initial"
            return Case("reduction", f"{name}, {shape}, {options}", lambda x, y: function(x, initial=y, **options), (x, begin))
        options["initial"] = float(begin)
    return case_of("reduction", function, x, **options)


# ---------------------------------------------------------------------------- gather, linear, multilinear


@st.composite
def gather_cases(draw: Draw) -> Case:
    """Elements at arbitrary positions, some repeated and some omitted."""
    shape = draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    x = argument(draw, shape, 0, real, True)
    size = x.size
    where = draw(st.sampled_from(["take", "take flat", "repeat", "index", "mask", "slice"]))
    places = draw(st.lists(st.integers(-size, size - 1), max_size=4)) if size else []
    if where == "take" and shape and shape[-1]:
        positions = np.array([p % shape[-1] for p in places], int)
        return case_of("gather", np.take, x, indices=positions, axis=-1)
    if where == "repeat" and shape:
        counts = [p % 3 for p in (places * shape[0])[: shape[0]]] if places else 2
        return case_of("gather", np.repeat, x, repeats=counts, axis=0)
    if where == "index" and shape and shape[0]:
        index = np.array([p % shape[0] for p in places], int)
        return Case("gather", f"x[{index}] of {x.dtype} {shape}", lambda x: x[index], (x,))
    if where == "mask":
        mask = np.random.default_rng(len(places)).random(shape) < 0.6
        return Case("gather", f"x[mask] of {x.dtype} {shape}", lambda x: x[mask], (x,))
    if where == "slice" and shape:
        return Case("gather", f"x[..., ::-2] of {x.dtype} {shape}", lambda x: x[..., ::-2], (x,))
    return case_of("gather", np.take, x, indices=np.array(places, int))


@st.composite
def linear_cases(draw: Draw) -> Case:
    """Moved, repeated, joined and accumulated elements."""
    shape = draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    x = argument(draw, shape, 0, real, True)
    what = draw(st.sampled_from(["transpose", "reshape", "broadcast_to", "concatenate", "stack", "cumsum", "expand_dims"]))
    if what == "transpose":
        return case_of("linear", np.transpose, x, axes=draw(st.permutations(range(len(shape)))))
    if what == "reshape":
        return case_of("linear", np.reshape, x, shape=tuple(draw(st.permutations(shape))), order=draw(st.sampled_from("CF")))
    if what == "broadcast_to":
        larger = tuple(3 if n == 1 and draw(st.booleans()) else n for n in shape)
        return case_of("linear", np.broadcast_to, x, shape=(*draw(array_shapes(max_dims=2, max_side=2, min_side=0)), *larger))
    if what in ("concatenate", "stack") and shape:
        function = {"concatenate": np.concatenate, "stack": np.stack}[what]
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        y = argument(draw, shape, 3, shifted, True)
        return Case(
            "linear", f"{what} of {x.dtype}, {y.dtype}, {shape}, {axis}", lambda x, y: function([x, y], axis=axis), (x, y)
        )
    if what == "cumsum" and shape:
        return case_of("linear", np.cumsum, x, axis=draw(st.none() | st.integers(-len(shape), len(shape) - 1)))
    return case_of("linear", np.expand_dims, x, axis=draw(st.integers(-len(shape) - 1, len(shape))))


@st.composite
def multilinear_cases(draw: Draw) -> Case:
    """Products of vectors, matrices and stacks of them that broadcast."""
    what = draw(st.sampled_from(["matmul", "einsum", "outer", "dot", "inner", "three"]))
    k, m, n = (draw(st.integers(0, 3)) for _ in range(3))
    stacks = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=2, max_side=2)).input_shapes
    if what in ("matmul", "einsum"):
        left, right = (*stacks[0], m, k), (*stacks[1], k, n)
        function: Function = np.matmul if what == "matmul" else functools.partial(np.einsum, "...ij,...jk->...ik")
        if what == "matmul" and draw(st.booleans()):
            left = left[-1:]
    elif what == "three":
        function, left, right = functools.partial(np.einsum, "i,ij,j->i", np.arange(1.0, m + 1)), (m, n), (n,)
    elif what == "outer":
        function, left, right = np.outer, (m,), (n,)
    else:
        function = {"dot": np.dot, "inner": np.inner}[what]
        left, right = ((*stacks[0], m, k), (k,)) if draw(st.booleans()) else ((), (m, n))
    x, y = argument(draw, left, 1, real, True), argument(draw, right, 2, shifted, True)
    return Case("multilinear", f"{what} of {x.dtype} {left}, {y.dtype} {right}", function, (x, y))


# --------------------------------------------------------------------------------------------- general


def _both(x: Any) -> Any:
    """Both results of an operation that has two."""
    fraction, whole = np.modf(x)
    return fraction * x + whole


def _signed(x: Any) -> Any:
    return np.multiply(*np.linalg.slogdet(x))


def _remainders(x: Any, y: Any) -> Any:
    return np.multiply(*np.divmod(x, y))


@st.composite
def general_cases(draw: Draw) -> Case:
    """Rules with tangents of their own, of one and of several results."""
    what = draw(st.sampled_from(["softmax", "cumprod", "solve", "slogdet", "modf", "divmod"]))
    shape = draw(array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    if what in ("softmax", "cumprod"):
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        if what == "softmax" and not shape[axis]:
            shape = (*shape, 2)
            axis = -1
        function = {"softmax": cg.softmax, "cumprod": np.cumprod}[what]
        return case_of("general", function, argument(draw, shape, 0, real, what == "cumprod"), axis=axis)
    if what in ("solve", "slogdet"):
        n = draw(st.integers(1, 3))
        stacks = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=2, max_side=2)).input_shapes
        matrix = 0.3 * argument(draw, (*stacks[0], n, n), 0, real, True, False) + np.diag(np.linspace(1, 2.5, n))
        if what == "slogdet":
            return case_of("general", _signed, matrix)
        right = argument(draw, (*stacks[1], n, draw(st.integers(0, 2))), 1, shifted, True)
        return case_of("general", np.linalg.solve, matrix, right)
    if what == "modf":
        return case_of("general", _both, argument(draw, shape, 0, off_zero))
    shapes = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=3, max_side=3)).input_shapes
    x = argument(draw, shapes[0], 0, functools.partial(real, low=-4, high=4))
    return case_of("general", _remainders, x, argument(draw, shapes[1], 0, positive))


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "elementwise, one operand": unary_cases(),
    "elementwise, two operands": binary_cases(),
    "elementwise, three operands": ternary_cases(),
    "reduction": reduction_cases(),
    "gather": gather_cases(),
    "linear": linear_cases(),
    "multilinear": multilinear_cases(),
    "general": general_cases(),
}
