"""Products of vectors and matrices."""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind

from .call import Call, OneByOneError, flat, front, shift
from .table import own


def _adjoint(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def product(a: Any, b: Any, differs: list[bool], ndims: list[int]) -> Any:
    """``a @ b`` for each example."""
    (in_a, in_b), (na, nb) = differs, ndims
    if not na or not nb:
        raise ValueError("matmul: an operand has no axes, but needs at least one; use * instead")
    if in_a and not in_b and (na == 1 or nb <= 2):  # rows of one product
        if na == nb == 2:
            count, rows, columns = a.shape
            return np.reshape(np.matmul(np.reshape(a, (count * rows, columns)), b), (count, rows, b.shape[1]))
        found = np.matmul(a, b)
        return found if na > 1 or nb <= 2 else np.moveaxis(found, -2, 0)
    if in_b and not in_a and na == 1 and nb > 1:
        return np.matmul(a, b)
    if in_b and not in_a and nb == 1:
        found = np.matmul(b, _adjoint(a)) if na > 1 else np.matmul(b, a)
        return found if na <= 2 else np.moveaxis(found, -2, 0)
    columns = np.expand_dims(a, -2) if na == 1 else a
    rows = np.expand_dims(b, -1) if nb == 1 else b
    ndim = max(na, nb, 2)
    columns, rows = front(columns, ndim) if in_a else columns, front(rows, ndim) if in_b else rows
    found = bind(ops.stacked_matmul if in_a and in_b else np.matmul, (columns, rows))
    dropped = tuple([axis for axis, n in ((-2, na), (-1, nb)) if n == 1])
    return np.squeeze(found, dropped) if dropped else found


def matmul(call: Call) -> Any:
    """``a @ b``."""
    if call.function is not np.matmul:
        raise OneByOneError
    a, b = call.values
    return product(a, b, call.batched, call.ndims)


def dot(call: Call) -> Any:
    """``np.dot``: of more than matrices the last axis of one and the last but one of the other."""
    na, nb = call.ndims
    if not na or not nb:
        return np.multiply(*call.aligned())
    if na <= 2 and nb <= 2:
        return product(call.values[0], call.values[1], call.batched, call.ndims)
    first, second = string.ascii_lowercase[: na - 1], string.ascii_uppercase[:nb]
    summed = "z" if nb == 1 else f"{second[: nb - 2]}z{second[nb - 1]}"
    return _einsum(call, f"{first}z", summed, first + summed.replace("z", ""))


def inner(call: Call) -> Any:
    """``np.inner``: of the last axes."""
    na, nb = call.ndims
    if not na or not nb:
        return np.multiply(*call.aligned())
    first, second = string.ascii_lowercase[: na - 1], string.ascii_uppercase[: nb - 1]
    return _einsum(call, f"{first}z", f"{second}z", first + second)


def _einsum(call: Call, first: str, second: str, result: str) -> Any:
    a, b = ["y" * differs for differs in call.batched]
    return bind(ops.einsum, tuple(call.values), {"subscripts": f"{a}{first},{b}{second}->y{result}"})


def einsum(call: Call) -> Any:
    """``np.einsum``, with one more letter."""
    subscripts = call.options["subscripts"].replace(" ", "")
    terms, _, result = subscripts.partition("->")
    if "->" not in subscripts:
        letters = terms.replace(",", "").replace(".", "")
        result = ("..." if "..." in terms else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    letter = next(c for c in string.ascii_letters if c not in subscripts)
    parts = [letter + t if b else t for t, b in zip(terms.split(","), call.batched, strict=True)]
    return call.run(call.values, subscripts=f"{','.join(parts)}->{letter}{result}")


def outer(call: Call) -> Any:
    """``np.outer``, of flattened examples."""
    (a, b), (in_a, in_b) = call.values, call.batched
    a = np.expand_dims(flat(a), 2) if in_a else np.reshape(a, (-1, 1))
    b = np.expand_dims(flat(b), 1) if in_b else np.reshape(b, (1, -1))
    return a * b


def vdot(call: Call) -> Any:
    """``np.vdot``, of flattened examples."""
    a, b = [flat(v) if differs else np.ravel(v) for v, differs in zip(call.values, call.batched, strict=True)]
    return np.vecdot(a, b)


def tensordot(call: Call) -> Any:
    """``np.tensordot``, by letters."""
    (na, nb), axes = call.ndims, call.options.get("axes", 2)
    if isinstance(axes, (int, np.integer)):
        axes = list(range(na - axes, na)), list(range(axes))
    from_a, from_b = [[part] if isinstance(part, (int, np.integer)) else list(part) for part in axes]
    letters = iter(c for c in string.ascii_letters if c != "y")
    first, second = [[next(letters) for _ in range(n)] for n in (na, nb)]
    for i, j in zip(from_a, from_b, strict=True):
        second[j] = first[i]
    summed = {first[i] for i in from_a}
    result = [c for c in (*first, *second) if c not in summed]
    return _einsum(call, "".join(first), "".join(second), "".join(result))


def kron(call: Call) -> Any:
    """``np.kron``: the product of one with axes of length one after each axis, and of the other with such before."""
    ndim = max(call.ndims)
    parts = []
    for place, (value, differs, n) in enumerate(zip(call.values, call.batched, call.ndims, strict=True)):
        value = front(value, ndim) if differs else np.reshape(value, (1, *(1,) * (ndim - n), *np.shape(value)))
        pairs = [(length, 1) if place == 0 else (1, length) for length in value.shape[1:]]
        parts.append((value.shape[1:], np.reshape(value, (value.shape[0], *[length for pair in pairs for length in pair]))))
    (one, a), (other, b) = parts
    return np.reshape(a * b, (call.count, *[m * n for m, n in zip(one, other, strict=True)]))


def gufunc(*cores: int) -> Any:
    """A ufunc of vectors or matrices, whose other axes are aligned."""

    def way(call: Call) -> Any:
        loops = max(n - core for n, core in zip(call.ndims, cores, strict=True))
        pairs = zip(call.values, call.batched, cores, strict=True)
        return call.run([front(v, loops + core) if differs else v for v, differs, core in pairs])

    return way


def vecdot(call: Call) -> Any:
    """``np.linalg.vecdot``, along the last axis by default."""
    if call.options.get("axis", -1) != -1:
        raise OneByOneError
    return gufunc(1, 1)(call)


def solve(call: Call) -> Any:
    """``np.linalg.solve``, whose right side is a vector only if it has one axis."""
    (a, b), (in_a, in_b), (na, nb) = call.values, call.batched, call.ndims
    if nb == 2 and na == 2 and in_b and not in_a:  # one decomposition for all
        columns = np.moveaxis(b, 0, 1)
        solved = np.linalg.solve(a, np.reshape(columns, (columns.shape[0], columns.shape[1] * columns.shape[2])))
        return np.moveaxis(np.reshape(solved, columns.shape), 1, 0)
    if nb != 1:
        return np.linalg.solve(*call.aligned())
    if in_b and not in_a and na == 2:
        return np.swapaxes(np.linalg.solve(a, np.swapaxes(b, 0, 1)), 0, 1)
    columns = np.expand_dims(b, -1)
    return np.squeeze(np.linalg.solve(a, front(columns, na) if in_b else columns), -1)


def norm(call: Call) -> Any:
    """``np.linalg.norm``: of vectors, of matrices, or of all elements."""
    x, ndim = call.first(), call.ndims[0]
    axis, order, keeps = call.options.get("axis"), call.options.get("ord"), call.options.get("keepdims", False)
    if not ndim:
        raise OneByOneError
    if axis is not None:
        return call.on_first(x, axis=shift(axis, ndim))
    if order is None:
        found = np.linalg.norm(flat(x), axis=1)
        return np.reshape(found, (call.count, *(1,) * ndim)) if keeps else found
    if ndim > 2:
        raise OneByOneError
    return call.on_first(x, axis=1 if ndim == 1 else (1, 2))


def cross(call: Call) -> Any:
    """``np.cross``, of vectors that lie along the last axis."""
    if any(call.options.get(name, -1) not in (None, -1) for name in ("axisa", "axisb", "axisc", "axis")):
        raise OneByOneError
    return call.run(call.aligned())


def multi_dot(call: Call) -> Any:
    """``np.linalg.multi_dot``, from left to right."""
    parts = [[v, b, n] for v, b, n in zip(call.values, call.batched, call.ndims, strict=True)]

    def times(one: Any, other: Any) -> Any:
        (a, in_a, na), (b, in_b, nb) = one, other
        found = product(a, b, [in_a, in_b], [na, nb]) if in_a or in_b else np.matmul(a, b)
        return [found, in_a or in_b, na + nb - 2]

    return functools.reduce(times, parts)[0]


def on_axes(call: Call) -> Any:
    """A ufunc of vectors or matrices on other axes than the last."""
    raise OneByOneError


own |= {
    "matmul": matmul, "dot": dot, "inner": inner, "outer": outer, "vdot": vdot, "einsum": einsum, "tensordot": tensordot,
    "kron": kron, "vecdot": gufunc(1, 1), "linalg_vecdot": vecdot, "matvec": gufunc(2, 1), "vecmat": gufunc(1, 2),
    "stacked_matmul": gufunc(2, 2), "linalg_solve": solve, "linalg_norm": norm, "cross": cross, "linalg_multi_dot": multi_dot,
    "multi_dot": multi_dot, "on_axes": on_axes,
}  # fmt: skip
