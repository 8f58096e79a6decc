"""Rules of products of vectors and matrices. Each is multilinear, so its tangents need no formula."""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.ops import OnAxes, einsum, ensure_array, stacked_matmul

from ...rules import Formula, Rule, by_function, multilinear, rule_factories, unbroadcast
from .inverses_and_determinants import matmul_chain


def _swap(x: NDArray[Any]) -> Any:
    """Transpose the matrices in a stack."""
    return np.swapaxes(x, -1, -2) if x.ndim > 2 else x.T


def _matmul_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    if b.ndim == 1:
        return g[..., None] * b if a.ndim > 1 else g * b
    if a.ndim == 1:
        return np.matmul(b, g) if b.ndim == 2 else np.matmul(b, g[..., None])[..., 0]
    return np.matmul(g, _swap(b))


def _matmul_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    if a.ndim == 1:
        return a[:, None] * g[..., None, :] if b.ndim > 1 else g * a
    if b.ndim == 1:
        return np.matmul(g, a) if a.ndim == 2 else np.matmul(_swap(a), g[..., None])[..., 0]
    return np.matmul(_swap(a), g)


matmul_grad = multilinear("matmul", _matmul_a, _matmul_b).moves_elements().with_formula("g @ b.T", "a.T @ g")

# dot(a, b)[i..., k..., m] = sum over j of a[i..., j] b[k..., j, m]; with a scalar it multiplies.


def _dot_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * b
    if a.ndim <= 2 and b.ndim <= 2:
        return _matmul_a(g, out, a, b)
    free_b = list(range(b.ndim - 2)) + ([b.ndim - 1] if b.ndim > 1 else [])
    return np.tensordot(g, b, axes=(list(range(a.ndim - 1, a.ndim - 1 + len(free_b))), free_b))


def _dot_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * a
    if a.ndim <= 2 and b.ndim <= 2:
        return _matmul_b(g, out, a, b)
    leading = list(range(a.ndim - 1))
    summed = np.tensordot(a, g, axes=(leading, leading))
    return np.moveaxis(summed, 0, -2) if b.ndim > 1 else summed


dot_grad = multilinear("dot", _dot_a, _dot_b).moves_elements().with_formula("g @ b.T", "a.T @ g")

# inner(a, b)[i..., k...] = sum over j of a[i..., j] b[k..., j]


def _inner_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * b
    free_b = list(range(b.ndim - 1))
    return np.tensordot(g, b, axes=([i + a.ndim - 1 for i in free_b], free_b))


def _inner_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return g * a
    leading = list(range(a.ndim - 1))
    return np.tensordot(g, a, axes=(leading, leading))


inner_grad = multilinear("inner", _inner_a, _inner_b).moves_elements()


outer_grad = multilinear(
    "outer",
    lambda g, out, a, b: np.reshape(np.matmul(g, np.ravel(b)), np.shape(a)),
    lambda g, out, a, b: np.reshape(np.matmul(np.ravel(a), g), np.shape(b)),
).moves_elements()


# vdot conjugates its first operand, whose cotangent is conjugated in turn.
vdot_grad = multilinear(
    "vdot",
    lambda g, out, a, b: np.conjugate(np.reshape(g * np.ravel(b), np.shape(a))),
    lambda g, out, a, b: np.reshape(g * np.conjugate(np.ravel(a)), np.shape(b)),
).moves_elements()


def tensordot_axes(axes: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    """Return the contracted axes of both operands, given any form of the argument."""
    if isinstance(axes, (int, np.integer)):
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    axes_a, axes_b = ([axis] if isinstance(axis, (int, np.integer)) else list(axis) for axis in axes)
    return [i % a.ndim for i in axes_a], [i % b.ndim for i in axes_b]


def _tensordot_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: tuple[Any, ...] | int = 2) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    axes_a, axes_b = tensordot_axes(axes, a, b)
    free_a, free_b = ([i for i in range(x.ndim) if i not in used] for x, used in ((a, axes_a), (b, axes_b)))
    summed = np.tensordot(g, b, axes=(list(range(len(free_a), g.ndim)), free_b))  # free axes of a, then axes of b in order
    order = free_a + [axes_a[axes_b.index(i)] for i in sorted(axes_b)]
    return np.transpose(summed, np.argsort(order).tolist())


def _tensordot_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: tuple[Any, ...] | int = 2) -> Any:
    a, b = ensure_array(a), ensure_array(b)
    axes_a, axes_b = tensordot_axes(axes, a, b)
    free_a, free_b = ([i for i in range(x.ndim) if i not in used] for x, used in ((a, axes_a), (b, axes_b)))
    summed = np.tensordot(a, g, axes=(free_a, list(range(len(free_a)))))  # axes of a in order, then free axes of b
    order = [axes_b[axes_a.index(i)] for i in sorted(axes_a)] + free_b
    return np.transpose(summed, np.argsort(order).tolist())


tensordot_grad = multilinear("tensordot", _tensordot_a, _tensordot_b).moves_elements()

# ------------------------------------------------------------------------------------------- einsum


def expand_subscripts(subscripts: str, operands: tuple[Any, ...]) -> tuple[list[str], str]:
    """Return the subscripts of each operand and of the output, with one letter per axis and no ellipsis."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    unused_letters = [c for c in string.ascii_letters if c not in subscripts]
    num_ellipsis_axes = (
        max(x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)) if "..." in left else 0
    )
    ellipsis_letters = "".join(unused_letters[:num_ellipsis_axes])
    expanded = []
    for term, x in zip(terms, operands, strict=True):
        num_covered = x.ndim - len(term.replace("...", ""))
        expanded.append(term.replace("...", ellipsis_letters[num_ellipsis_axes - num_covered :]))
    if arrow:
        return expanded, right.replace("...", ellipsis_letters)
    letters = left.replace(",", "").replace("...", "")
    return expanded, ellipsis_letters + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _einsum(
    position: int, g: NDArray[Any], out: NDArray[Any], *operands: NDArray[Any], subscripts: str, **options: object
) -> Any:
    """Contract the cotangent with the other operands.

    If an axis of the operand is missing in the cotangent and the other operands, or has length one there, it was summed: a
    factor of ones repeats the cotangent. If a letter occurs twice in the operand, it selected a diagonal: a factor that is an
    identity matrix places the cotangent there.
    """
    operands = tuple(ensure_array(x) for x in operands)
    terms, target = expand_subscripts(subscripts, operands)
    own_term = terms[position]
    unused_letters = iter(c for c in string.ascii_letters if c not in "".join(terms) + target)
    factors = [(target, g)] + [(t, x) for i, (t, x) in enumerate(zip(terms, operands, strict=True)) if i != position]
    known_axes = {axis for t, x in factors for axis in zip(t, x.shape, strict=True)}
    subscripts_out = ""
    for axis, letter in enumerate(own_term):
        length = operands[position].shape[axis]
        if letter in subscripts_out:
            letter, previous = next(unused_letters), letter
            factors.append((previous + letter, np.eye(length, dtype=out.dtype)))
        elif (letter, length) not in known_axes:
            factors.append((letter, np.ones(length, out.dtype)))
        subscripts_out += letter
    return einsum(*[x for _, x in factors], subscripts=",".join(t for t, _ in factors) + "->" + subscripts_out, **options)


einsum_grad = multilinear("einsum", variadic=_einsum).moves_elements()

stacked_matmul_grad = multilinear(
    "stacked_matmul",
    lambda g, out, a, b: bind(stacked_matmul, (g, np.swapaxes(b, -1, -2))),
    lambda g, out, a, b: bind(stacked_matmul, (np.swapaxes(a, -1, -2), g)),
)


def _last_axes(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the last axes, as many as `axes`."""
    return tuple(range(-len(axes), 0))


def on_axes_rule(function: OnAxes) -> Rule:
    """Return the rule of a product along specified axes, as ``np.vecdot(a, b, axis=0)``, from the rule along the last axes."""
    rule = by_function[function.function]

    def formula_of(position: int) -> Formula:
        def formula(g: NDArray[Any], out: NDArray[Any], *operands: NDArray[Any]) -> Any:
            *operand_axes, out_axes = function.operand_axes(len(operands))
            moved_operands = [
                np.moveaxis(ensure_array(x), axes, _last_axes(axes)) for x, axes in zip(operands, operand_axes, strict=True)
            ]
            g, out = (np.moveaxis(y, out_axes, _last_axes(out_axes)) for y in (g, out))
            if function.options.get("keepdims", False):
                g, out = g[..., 0], out[..., 0]
            formula: Any = rule.formulas[position]
            cotangent = unbroadcast(formula(g, out, *moved_operands), moved_operands[position].shape)
            return np.moveaxis(cotangent, _last_axes(operand_axes[position]), operand_axes[position])

        return formula

    return Rule(rule.opname, "multilinear", [formula_of(0), formula_of(1)], ()).batchable()


rule_factories[OnAxes] = on_axes_rule

# ----------------------------------------------------------------------------------------- products


def _contract_kron(g: NDArray[Any], x: NDArray[Any], other: NDArray[Any], position: int) -> Any:
    """Contract the cotangent of a Kronecker product with the other factor. Its reshaped axes alternate between the factors."""
    ndim = max(x.ndim, other.ndim)
    shapes = [(1,) * (ndim - y.ndim) + y.shape for y in (x, other)]
    pairs = [shape[k] for k in range(ndim) for shape in (shapes if position == 0 else shapes[::-1])]
    factor = np.reshape(other, [n if i % 2 != position else 1 for i, n in enumerate(pairs)])
    return np.reshape(np.sum(np.reshape(g, pairs) * factor, axis=tuple(range(1 - position, 2 * ndim, 2))), x.shape)


kron_grad = multilinear(
    "kron",
    lambda g, out, a, b: _contract_kron(g, ensure_array(a), ensure_array(b), 0),
    lambda g, out, a, b: _contract_kron(g, ensure_array(b), ensure_array(a), 1),
).moves_elements()


def _to_3d(x: NDArray[Any], axis: int) -> Any:
    """Move the vectors to the last axis, and append a third component of 0 to vectors of length two."""
    x = np.moveaxis(x, axis, -1)
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)


def _cross(position: int, g: NDArray[Any], out: NDArray[Any], *operands: Any, **options: Any) -> Any:
    """Compute the cross product of the other operand and the cotangent: b x g, or g x a."""
    axis = options.get("axis")
    axes = [axis if axis is not None else options.get(name, -1) for name in ("axisa", "axisb", "axisc")]
    x, other = operands[position], _to_3d(ensure_array(operands[1 - position]), axes[1 - position])
    length = np.shape(x)[axes[position]]
    if length == np.shape(operands[1 - position])[axes[1 - position]] == 2:  # the product is a number, the third component
        g = g[..., None] * np.array([0, 0, 1])
    else:
        g = np.moveaxis(g, axes[2], -1)
    product = np.cross(other, g) if position == 0 else np.cross(g, other)
    return _unbroadcast_and_move(product[..., :length], np.moveaxis(ensure_array(x), axes[position], -1), axes[position])


def _unbroadcast_and_move(g: NDArray[Any], x: NDArray[Any], axis: int) -> Any:
    """Undo broadcasting, then move the last axis back to `axis`."""
    return np.moveaxis(unbroadcast(g, x.shape), -1, axis)


cross_grad = multilinear("cross", functools.partial(_cross, 0), functools.partial(_cross, 1))


# vecdot and vecmat conjugate their first operand, whose cotangent is conjugated in turn.
vecdot_grad = multilinear(
    "vecdot",
    lambda g, out, a, b: np.conjugate(g[..., None] * b),
    lambda g, out, a, b: g[..., None] * np.conjugate(a),
).moves_elements()


def _vecdot(g: NDArray[Any], x: NDArray[Any], other: NDArray[Any], axis: int) -> Any:
    x, other = (np.moveaxis(ensure_array(y), axis, -1) for y in (x, other))
    return _unbroadcast_and_move(g[..., None] * other, x, axis)


linalg_vecdot_grad = multilinear(
    "linalg_vecdot",
    lambda g, out, a, b, axis=-1: np.conjugate(_vecdot(g, a, b, axis)),
    lambda g, out, a, b, axis=-1: _vecdot(g, b, np.conjugate(a), axis),
).moves_elements()
matvec_grad = multilinear(
    "matvec",
    lambda g, out, a, b: g[..., None] * b[..., None, :],
    lambda g, out, a, b: np.matmul(_swap(a), g[..., None])[..., 0],
).moves_elements()
vecmat_grad = multilinear(
    "vecmat",
    lambda g, out, a, b: np.conjugate(np.matmul(b, g[..., None])[..., 0]),
    lambda g, out, a, b: np.conjugate(a)[..., None] * g[..., None, :],
).moves_elements()


def _multi_dot(position: int, g: NDArray[Any], out: NDArray[Any], *operands: NDArray[Any]) -> Any:
    """Multiply the cotangent by the transposed products of the factors before and after."""
    last = len(operands) - 1
    factors = [np.reshape(x, (-1, 1) if i == last else (1, -1)) if x.ndim < 2 else x for i, x in enumerate(operands)]
    g = np.reshape(g, (factors[0].shape[0], factors[-1].shape[1]))
    if position:
        g = np.matmul(matmul_chain(*factors[:position]).T, g)
    if position < last:
        g = np.matmul(g, matmul_chain(*factors[position + 1 :]).T)
    return np.reshape(g, operands[position].shape)


multi_dot_grad = multilinear("multi_dot", variadic=_multi_dot).moves_elements()
