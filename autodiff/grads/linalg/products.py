"""Rules of products: each is linear in each of its operands, so a tangent needs no formula."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.ops import einsum, ensure_array, stacked_matmul

from ...rules import multilinear


def _swap(x: Any) -> Any:
    """The matrices in a stack, transposed."""
    return np.swapaxes(x, -1, -2) if x.ndim > 2 else x.T


def _matmul_a(g: Any, out: Any, a: Any, b: Any) -> Any:
    if b.ndim == 1:
        return g[..., None] * b if a.ndim > 1 else g * b
    if a.ndim == 1:
        return np.matmul(b, g) if b.ndim == 2 else np.matmul(b, g[..., None])[..., 0]
    return np.matmul(g, _swap(b))


def _matmul_b(g: Any, out: Any, a: Any, b: Any) -> Any:
    if a.ndim == 1:
        return a[:, None] * g[..., None, :] if b.ndim > 1 else g * a
    if b.ndim == 1:
        return np.matmul(g, a) if a.ndim == 2 else np.matmul(_swap(a), g[..., None])[..., 0]
    return np.matmul(_swap(a), g)


matmul_grad = multilinear("matmul", _matmul_a, _matmul_b).moving().said("g @ b.T", "a.T @ g")

# dot(a, b)[i..., k..., m] = sum over j of a[i..., j] b[k..., j, m]; with a scalar it multiplies.


def _dot_a(g: Any, out: Any, a: Any, b: Any) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * b
    if a.ndim <= 2 and b.ndim <= 2:
        return _matmul_a(g, out, a, b)
    kept = list(range(b.ndim - 2)) + ([b.ndim - 1] if b.ndim > 1 else [])
    return np.tensordot(g, b, axes=(list(range(a.ndim - 1, a.ndim - 1 + len(kept))), kept))


def _dot_b(g: Any, out: Any, a: Any, b: Any) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * a
    if a.ndim <= 2 and b.ndim <= 2:
        return _matmul_b(g, out, a, b)
    leading = list(range(a.ndim - 1))
    summed = np.tensordot(a, g, axes=(leading, leading))
    return np.moveaxis(summed, 0, -2) if b.ndim > 1 else summed


dot_grad = multilinear("dot", _dot_a, _dot_b).moving().said("g @ b.T", "a.T @ g")

# inner(a, b)[i..., k...] = sum over j of a[i..., j] b[k..., j]


def _inner_a(g: Any, out: Any, a: Any, b: Any) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * b
    kept = list(range(b.ndim - 1))
    return np.tensordot(g, b, axes=([i + a.ndim - 1 for i in kept], kept))


def _inner_b(g: Any, out: Any, a: Any, b: Any) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * a
    leading = list(range(a.ndim - 1))
    return np.tensordot(g, a, axes=(leading, leading))


inner_grad = multilinear("inner", _inner_a, _inner_b).moving()


outer_grad = multilinear(
    "outer",
    lambda g, out, a, b: np.reshape(np.matmul(g, np.ravel(b)), np.shape(a)),
    lambda g, out, a, b: np.reshape(np.matmul(np.ravel(a), g), np.shape(b)),
).moving()


# vdot conjugates its first operand; the conjugate of the adjoint's coefficient goes back to it.
vdot_grad = multilinear(
    "vdot",
    lambda g, out, a, b: np.conjugate(np.reshape(g * np.ravel(b), np.shape(a))),
    lambda g, out, a, b: np.reshape(g * np.conjugate(np.ravel(a)), np.shape(b)),
).moving()


def _tensordot_axes(axes: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    """The contracted axes of both operands, from any form tensordot takes."""
    if isinstance(axes, (int, np.integer)):
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    of_a, of_b = ([axis] if isinstance(axis, (int, np.integer)) else list(axis) for axis in axes)
    return [i % a.ndim for i in of_a], [i % b.ndim for i in of_b]


def _tensordot_a(g: Any, out: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    of_a, of_b = _tensordot_axes(axes, a, b)
    free_a, free_b = ([i for i in range(x.ndim) if i not in used] for x, used in ((a, of_a), (b, of_b)))
    summed = np.tensordot(g, b, axes=(list(range(len(free_a), g.ndim)), free_b))  # free axes of a, then axes of b in order
    order = free_a + [of_a[of_b.index(i)] for i in sorted(of_b)]
    return np.transpose(summed, np.argsort(order).tolist())


def _tensordot_b(g: Any, out: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    of_a, of_b = _tensordot_axes(axes, a, b)
    free_a, free_b = ([i for i in range(x.ndim) if i not in used] for x, used in ((a, of_a), (b, of_b)))
    summed = np.tensordot(a, g, axes=(free_a, list(range(len(free_a)))))  # axes of a in order, then free axes of b
    order = [of_b[of_a.index(i)] for i in sorted(of_a)] + free_b
    return np.transpose(summed, np.argsort(order).tolist())


tensordot_grad = multilinear("tensordot", _tensordot_a, _tensordot_b).moving()

# ------------------------------------------------------------------------------------------- einsum


def _explicit(subscripts: str, operands: tuple[Any, ...]) -> tuple[list[str], str]:
    """The subscripts of each operand and of the output, one letter an axis, without dots."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    spare = [c for c in string.ascii_letters if c not in subscripts]
    width = max(x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)) if "..." in left else 0
    dots = "".join(spare[:width])
    expanded = []
    for term, x in zip(terms, operands, strict=True):
        used = x.ndim - len(term.replace("...", ""))
        expanded.append(term.replace("...", dots[width - used :]))
    if arrow:
        return expanded, right.replace("...", dots)
    letters = left.replace(",", "").replace("...", "")
    return expanded, dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _einsum(position: int, g: Any, out: Any, *operands: Any, subscripts: str, **options: Any) -> Any:
    """Contract the adjoint with the other operands.

    An axis of the operand that nothing else has, or only with length one, was summed: its adjoint is repeated (a
    factor of ones). A letter that an operand has twice took a diagonal: its adjoint is put back there (an identity
    matrix).
    """
    operands = tuple(ensure_array(x) for x in operands)
    terms, target = _explicit(subscripts, operands)
    mine = terms[position]
    spare = iter(c for c in string.ascii_letters if c not in "".join(terms) + target)
    factors = [(target, g)] + [(t, x) for i, (t, x) in enumerate(zip(terms, operands, strict=True)) if i != position]
    known = {axis for t, x in factors for axis in zip(t, x.shape, strict=True)}
    wanted = ""
    for axis, letter in enumerate(mine):
        length = operands[position].shape[axis]
        if letter in wanted:
            letter, seen = next(spare), letter
            factors.append((seen + letter, np.eye(length, dtype=out.dtype)))
        elif (letter, length) not in known:
            factors.append((letter, np.ones(length, out.dtype)))
        wanted += letter
    return einsum(*[x for _, x in factors], subscripts=",".join(t for t, _ in factors) + "->" + wanted, **options)


einsum_grad = multilinear("einsum", variadic=_einsum).moving()

stacked_matmul_grad = multilinear(
    "stacked_matmul",
    lambda g, out, a, b: bind(stacked_matmul, (g, np.swapaxes(b, -1, -2))),
    lambda g, out, a, b: bind(stacked_matmul, (np.swapaxes(a, -1, -2), g)),
)
