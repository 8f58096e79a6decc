"""Products of arrays in terms of the array API standard."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .elementwise import conj
from .positions import flat, move_elements
from .reductions import sum_
from .shapes import moveaxis

Namespace = Any
Array = Any


def stacked_matmul(xp: Namespace, a: Array, b: Array) -> Array:
    return xp.matmul(a, b)


def dot(xp: Namespace, a: Array, b: Array) -> Array:
    if not a.ndim or not b.ndim:
        return a * b
    return xp.tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def inner(xp: Namespace, a: Array, b: Array) -> Array:
    return a * b if not a.ndim or not b.ndim else xp.tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,)))


def outer(xp: Namespace, a: Array, b: Array) -> Array:
    return flat(xp, a)[:, None] * flat(xp, b)[None, :]


def vdot(xp: Namespace, a: Array, b: Array) -> Array:
    return sum_(xp, conj(xp, flat(xp, a)) * flat(xp, b))


def vecdot(xp: Namespace, a: Array, b: Array, axis: int = -1) -> Array:
    return sum_(xp, conj(xp, moveaxis(xp, a, axis, -1)) * moveaxis(xp, b, axis, -1), axis=-1)


linalg_vecdot = vecdot


def matvec(xp: Namespace, a: Array, v: Array) -> Array:
    return xp.matmul(a, v[..., None])[..., 0]


def vecmat(xp: Namespace, v: Array, a: Array) -> Array:
    return xp.matmul(conj(xp, v)[..., None, :], a)[..., 0, :]


def tensordot(xp: Namespace, a: Array, b: Array, axes: tuple[Any, ...] | int = 2) -> Array:
    if not isinstance(axes, (int, np.integer)):
        axes = tuple(tuple(normalize_axis_tuple(part, x.ndim)) for part, x in zip(axes, (a, b), strict=True))
    return xp.tensordot(a, b, axes=axes)


def kron(xp: Namespace, a: Array, b: Array) -> Array:
    count = max(a.ndim, b.ndim)
    first, second = (xp.reshape(x, ((1,) * (count - x.ndim) + tuple(x.shape))) for x in (a, b))
    pairs = [n for k in range(count) for n in (first.shape[k], 1)], [n for k in range(count) for n in (1, second.shape[k])]
    product = xp.reshape(first, tuple(pairs[0])) * xp.reshape(second, tuple(pairs[1]))
    return xp.reshape(product, tuple(m * n for m, n in zip(first.shape, second.shape, strict=True)))


def cross(xp: Namespace, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = moveaxis(xp, a, axisa, -1), moveaxis(xp, b, axisb, -1)
    (x, y, *z), (u, v, *w) = ([p[..., k] for k in range(p.shape[-1])] for p in (a, b))
    if not z and not w:
        return x * v - y * u
    third, other = z[0] if z else xp.zeros_like(x), w[0] if w else xp.zeros_like(u)
    parts = [y * other - third * v, third * u - x * other, x * v - y * u]
    return moveaxis(xp, xp.stack(list(xp.broadcast_arrays(*parts)), axis=-1), -1, axisc)


def einsum(xp: Namespace, *operands: Array, subscripts: str, dtype: object = None) -> Array:
    if hasattr(xp, "einsum"):
        return xp.einsum(subscripts, *operands)
    input_subscripts, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = input_subscripts.split(",")
    if "." in subscripts:
        unused_letters = [c for c in string.ascii_letters if c not in subscripts]
        counts = [x.ndim - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True)]
        ellipsis_letters = unused_letters[: max(n for n, term in zip(counts, terms, strict=True) if "." in term)]
        terms = [
            t.replace("...", "".join(ellipsis_letters[len(ellipsis_letters) - n :])) for t, n in zip(terms, counts, strict=True)
        ]
        inner = input_subscripts.replace("...", "")
        rest = "".join(sorted(c for c in set(inner) - {","} if inner.count(c) == 1))
        output = output.replace("...", "".join(ellipsis_letters)) if arrow else "".join(ellipsis_letters) + rest
        input_subscripts, subscripts = ",".join(terms), "->"
    letters = sorted(set("".join(terms)))
    if "->" not in subscripts:
        output = "".join(c for c in letters if input_subscripts.count(c) == 1)
    order = [*output, *(c for c in letters if c not in output)]
    product = None
    for term, x in zip(terms, operands, strict=True):
        for c in sorted(set(term)):  # diagonals
            while term.count(c) > 1:
                first, second = term.index(c), term.rindex(c)
                x = move_elements(xp, np.diagonal, x, 0, first, second)
                term = "".join(d for k, d in enumerate(term) if k not in (first, second)) + c
        x = xp.permute_dims(x, tuple(sorted(range(len(term)), key=lambda k: order.index(term[k])))) if x.ndim > 1 else x
        lengths = iter(x.shape)
        x = xp.reshape(x, tuple(next(lengths) if c in term else 1 for c in order))
        product = x if product is None else product * x
    summed = tuple(range(len(output), len(order)))
    return sum_(xp, product, axis=summed) if summed else product


def linalg_multi_dot(xp: Namespace, arrays: Sequence[Array]) -> Array:
    product = arrays[0]
    for other in arrays[1:]:
        product = xp.matmul(product, other)
    return product
