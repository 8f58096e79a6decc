"""Data for `test_every_name`: every public name of NumPy without a useful derivative, called with arrays of numbers."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from tests.support.arguments import Function, Sketch, real
from tests.support.every_name import Examples, of

FLOATS = real(2, 3, low=-4, high=4)
OTHERS = real(2, 3, low=1.1, high=3.7, seed=5)
INTEGERS = np.array([[3, 1, 4], [1, 5, 9]])
COUNTS = np.array([[2, 4, 1], [3, 1, 2]])
BOOLS = np.array([[True, False, True], [True, True, False]])

# Ufuncs are called with each of these; what NumPy refuses for one kind of numbers is passed over for that kind.
OPERANDS: list[tuple[Any, Any]] = [(FLOATS, OTHERS), (INTEGERS, COUNTS), (FLOATS, COUNTS), (BOOLS, ~BOOLS)]


def ufunc_calls(names: list[str]) -> Examples:
    """A ufunc, or a method of one, with every kind of operands."""
    calls: Examples = {}
    for name in names:
        _, ufunc_name, *method = name.split(".")
        ufunc: Any = getattr(np, ufunc_name)
        call = _method(ufunc, method[0]) if method else ufunc
        count = 1 if method and method[0] in ("reduce", "accumulate", "reduceat") else ufunc.nin
        pairs = [pair for pair in OPERANDS if method != ["at"] or _keeps_dtype(ufunc, *pair[:count])]
        calls[name] = of(*[(call, *pair[:count]) for pair in pairs or OPERANDS])
    return calls


def _keeps_dtype(ufunc: Any, x: Any, *others: Any) -> bool:
    """Whether a ufunc's result can be cast to the dtype of its first operand, as ``ufunc.at`` of a node requires."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.can_cast(ufunc(x, *others).dtype, x.dtype, "same_kind"))
    except TypeError:
        return False


def _method(ufunc: Any, method: str) -> Function:
    if method == "reduceat":
        return lambda x: ufunc.reduceat(x, [0, 2, 1], axis=1)
    if method == "at":
        return into_any(lambda y, *others: ufunc.at(y, ([0, 1, 0], [1, 1, 1]), *[o[0] for o in others]))
    bound_method: Function = getattr(ufunc, method)
    return bound_method


def into_any(write: Function) -> Function:
    """A copy, of the same dtype, after a write into it."""

    def call(x: Any, *others: Any) -> Any:
        y = x.copy()
        write(y, *others)
        return y

    return call


def both(name: str) -> list[Sketch]:
    """A function of one array and its method, if any, for all elements and along an axis."""
    function: Any = getattr(np, name)
    calls: list[Function] = [function, partial(function, axis=1)]
    if hasattr(np.ndarray, name):
        calls += [lambda x: getattr(x, name)(), lambda x: getattr(x, name)(axis=0)]
    return of(*[(call, FLOATS) for call in calls])


FUNCTIONS: Examples = {
    **{f"np.{n}": both(n) for n in ("all", "any", "argmax", "argmin", "argsort", "count_nonzero", "nanargmax", "nanargmin")},
    **{
        f"np.ndarray.{n}": of((lambda x, n=n: getattr(x, n)(), FLOATS), (lambda x, n=n: getattr(x, n)(axis=0), FLOATS))
        for n in ("all", "any", "argmax", "argmin", "argsort")
    },
    **{
        f"np.{n}": of((getattr(np, n), FLOATS))
        for n in (
            "argwhere",
            "around",
            "empty_like",
            "fix",
            "flatnonzero",
            "iscomplex",
            "iscomplexobj",
            "isneginf",
            "isposinf",
            "isreal",
            "isrealobj",
            "ndim",
            "nonzero",
            "ones_like",
            "round",
            "shape",
            "size",
            "zeros_like",
            "tril_indices_from",
            "triu_indices_from",
        )
    },
    **{f"np.{n}": of((getattr(np, n), FLOATS, OTHERS)) for n in ("allclose", "array_equal", "array_equiv", "isclose", "isin")},
    "np.empty_like": of((lambda x: np.empty_like(x) * 0 == 7, FLOATS)),
    "np.tril_indices_from": of((lambda x: np.tril_indices_from(x[:, :2]), FLOATS)),
    "np.triu_indices_from": of((lambda x: np.triu_indices_from(x[:, :2]), FLOATS)),
    "np.diag_indices_from": of((lambda x: np.diag_indices_from(x[:, :2]), FLOATS)),
    "np.argpartition": of((lambda x: np.sort(np.argpartition(x, 1)[:, :1]), FLOATS)),
    "np.ndarray.argpartition": of((lambda x: x.argpartition(1), FLOATS)),
    "np.digitize": of((lambda x: np.digitize(x, [-1.0, 0.5]), FLOATS)),
    "np.searchsorted": of((lambda x, y: np.searchsorted(np.sort(x[0]), y), FLOATS, OTHERS)),
    "np.ndarray.searchsorted": of((lambda x, y: np.sort(x[0]).searchsorted(y), FLOATS, OTHERS)),
    "np.intersect1d": of((lambda x: np.intersect1d(x, x[0]), FLOATS)),
    "np.ix_": of((lambda x: np.ix_(x[0] > 0, [True, False]), FLOATS)),
    "np.lexsort": of((lambda x: np.lexsort((x[0], x[1])), FLOATS)),
    "np.packbits": of((lambda x: np.packbits(x > 0), FLOATS)),
    "np.unpackbits": of((lambda x: np.unpackbits((x > 0).astype(np.uint8)), FLOATS)),
    "np.ravel_multi_index": of((lambda x: np.ravel_multi_index(np.nonzero(x > 0), (2, 3)), FLOATS)),
    "np.unravel_index": of((lambda x: np.unravel_index(np.argmax(x), (2, 3)), FLOATS)),
    "np.isscalar": of((lambda x: np.isscalar(x), FLOATS)),
    "np.linalg.matrix_rank": of((np.linalg.matrix_rank, FLOATS), (lambda x: np.linalg.matrix_rank(x, tol=0.1), FLOATS)),
    # They make arrays of nothing but counts.
    **{
        f"np.{n}": of((lambda x, n=n: getattr(np, n)(x.shape[1], like=x) * 0, FLOATS))
        for n in ("arange", "empty", "zeros", "ones", "eye", "identity", "tri")
    },
    **{
        f"np.{n}": of((lambda x, n=n: getattr(np, n)(x.shape[1]), FLOATS))
        for n in ("bartlett", "blackman", "hamming", "hanning", "diag_indices", "tril_indices", "triu_indices")
    },
    "np.indices": of((lambda x: np.indices(x.shape), FLOATS)),
    "np.mask_indices": of((lambda x: np.mask_indices(x.shape[1], np.triu), FLOATS)),
}


def operators(name: str) -> list[Sketch]:
    """An operator as a method, its reflection and its form in place, with every kind of operands."""
    method = f"__{name}__"
    if name.startswith("i") and name not in ("invert",):
        return of(*[(into_any(lambda y, other: getattr(y, method)(other)), *pair) for pair in OPERANDS])
    if name == "invert":
        return of(*[(operator.invert, x) for x, _ in OPERANDS])
    return of(*[(lambda x, y: getattr(x, method)(y), *pair) for pair in OPERANDS])


NAMES = ["and", "or", "xor", "lshift", "rshift", "floordiv"]
METHODS: Examples = {
    **{
        f"np.ndarray.__{n}__": operators(n)
        for n in (*NAMES, *[f"r{n}" for n in NAMES], *[f"i{n}" for n in NAMES], "invert", "eq", "ne", "lt", "le", "gt", "ge")
    },
    "np.ndarray.__bool__": of((lambda x: bool(x[0, 0]), FLOATS)),
    "np.ndarray.__contains__": of((lambda x: 1.5 in x, FLOATS), (lambda x: x[0, 1] in x, FLOATS)),
    "np.ndarray.__len__": of((len, FLOATS)),
    "np.ndarray.nonzero": of((lambda x: x.nonzero(), FLOATS)),
    "np.ndarray.round": of((lambda x: x.round(), FLOATS), (lambda x: x.round(1), FLOATS)),
    "np.ndarray.shape": of((lambda x: x.shape, FLOATS)),
    "np.ndarray.ndim": of((lambda x: x.ndim, FLOATS)),
    "np.ndarray.size": of((lambda x: x.size, FLOATS)),
}


def examples(names: list[str]) -> Examples:
    """The examples of all names; ufuncs and their methods are known by their names."""
    table = {**FUNCTIONS, **METHODS}
    return {
        **table,
        **ufunc_calls([n for n in names if n not in table and isinstance(getattr(np, n.split(".")[1], None), np.ufunc)]),
    }
