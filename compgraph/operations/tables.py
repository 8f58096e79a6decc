"""Data: which callables become nodes, under which opname, with which operands.

Nothing here computes. A NumPy function is recorded by entering it in one of the tables below; its rule is
declared in `autodiff.grads` under the same opname. The tables are also the policy: what is in none of them
is refused by `protocols` with a TypeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from .attached import kept
from .callables import (
    Keyworded,
    Packed,
    added_at,
    astype,
    complex_sign,
    copy,
    einsum,
    flatten,
    getitem,
    input_of,
    power,
    stacked_matmul,
    stop_gradient,
    ufunc_method,
    view,
)
from .compositions import selection
from .policies import FAMILIES

# --------------------------------------------------------------------------------------------- ufuncs

UFUNC_OPNAMES: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.divide: "div",
    np.power: "pow",
    np.negative: "neg",
    np.absolute: "abs",
    np.conjugate: "conj",
}

# Ufuncs that are not piecewise constant.
SMOOTH_UFUNCS: frozenset[Any] = frozenset(
    {
        np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, np.negative, np.positive,
        np.absolute, np.fabs, np.square, np.sqrt, np.cbrt, np.reciprocal, np.conjugate,
        np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.logaddexp, np.logaddexp2,
        np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot,
        np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
        np.deg2rad, np.rad2deg, np.degrees, np.radians,
        np.heaviside, np.nextafter, np.maximum, np.minimum, np.fmax, np.fmin, np.remainder, np.fmod, np.divmod, np.matmul,
    }.union(*[family.smooth_ufuncs for family in FAMILIES])
)  # fmt: skip

# Recorded, piecewise constant.
PIECEWISE_UFUNCS: frozenset[Any] = frozenset(
    {
        np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
        np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift, np.bitwise_count,
        np.floor, np.ceil, np.trunc, np.rint, np.sign, np.signbit, np.floor_divide,
        np.isnan, np.isinf, np.isfinite, np.isnat, np.gcd, np.lcm, np.spacing,
    }.union(*[family.piecewise_ufuncs for family in FAMILIES])
)  # fmt: skip

# The operators: special method -> (ufunc it records, what computes it on plain arrays). For the scalars in SAME_BITS
# Python's operators give the same bits as the ufunc, at a quarter of the cost.
BINARY_OPERATORS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "add": (np.add, operator.add),
    "sub": (np.subtract, operator.sub),
    "mul": (np.multiply, operator.mul),
    "truediv": (np.divide, operator.truediv),
    "pow": (power, power),
    "floordiv": (np.floor_divide, np.floor_divide),
    "mod": (np.remainder, np.remainder),
    "divmod": (np.divmod, np.divmod),
    "matmul": (np.matmul, np.matmul),
    "and": (np.bitwise_and, np.bitwise_and),
    "or": (np.bitwise_or, np.bitwise_or),
    "xor": (np.bitwise_xor, np.bitwise_xor),
    "lshift": (np.left_shift, np.left_shift),
    "rshift": (np.right_shift, np.right_shift),
}
COMPARISONS: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNARY_OPERATORS: dict[str, Any] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
SAME_BITS = frozenset({np.float64, np.float32, np.float16})

# ------------------------------------------------------------------------------------------ functions
# Smooth NumPy functions: function -> the parameters that may be nodes, in order, separated by spaces.

SMOOTH_FUNCTIONS: dict[Callable[..., Any], str] = {
    np.sum: "a initial where",
    np.mean: "a where",
    np.prod: "a initial where",
    np.max: "a initial where",
    np.min: "a initial where",
    np.var: "a where mean",
    np.std: "a where mean",
    np.clip: "a a_min a_max",
    np.where: "condition x y",
    np.dot: "a b",
    np.inner: "a b",
    np.outer: "a b",
    np.vdot: "a b",
    np.tensordot: "a b",
    np.copy: "a",
    np.reshape: "a",
    np.ravel: "a",
    np.transpose: "a",
    np.squeeze: "a",
    np.expand_dims: "a",
    np.swapaxes: "a",
    np.moveaxis: "a",
    np.broadcast_to: "array",
    np.real: "val",
    np.imag: "val",
    **{k: v for family in FAMILIES for k, v in family.smooth.items()},
}

# The same, with the operands packed in a sequence that comes first.
_packed: list[Any] = [np.concatenate, np.stack, *[f for family in FAMILIES for f in family.packed]]
PACKED_FUNCTIONS: dict[Callable[..., Any], Packed] = {f: Packed(f) for f in _packed}

stack = PACKED_FUNCTIONS[np.stack]

# Recorded, piecewise constant: they decide, count, or find positions.
PIECEWISE_FUNCTIONS: dict[Callable[..., Any], str] = {
    np.argmax: "a",
    np.argmin: "a",
    np.argsort: "a",
    np.all: "a where",
    np.any: "a where",
    np.round: "a",
    np.fix: "x",
    np.count_nonzero: "a",
    np.searchsorted: "a v sorter",
    np.isclose: "a b",
    np.nonzero: "a",
    np.flatnonzero: "a",
    np.zeros_like: "a",
    np.ones_like: "a",
    np.empty_like: "prototype",
    np.isposinf: "x",
    np.isneginf: "x",
    np.digitize: "x bins",
    **{k: v for family in FAMILIES for k, v in family.piecewise.items()},
}

# Other names of a recorded function.
ALIASES: dict[Callable[..., Any], Callable[..., Any]] = {
    np.amax: np.max,
    np.amin: np.min,
    np.around: np.round,
    **{k: v for family in FAMILIES for k, v in family.aliases.items()},
}

# NumPy's own Python code is run on the nodes, and its steps are recorded. Only where that is exact.
COMPOSED_FUNCTIONS: frozenset[Any] = frozenset(
    {
        np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit,
        np.vstack, np.hstack, np.dstack, np.column_stack, np.unstack,
        np.matrix_transpose, np.linalg.matrix_transpose, np.rollaxis,
        np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.append,
        np.linalg.matmul, np.linalg.outer, np.linalg.tensordot,
    }.union(*[family.composed for family in FAMILIES])
)  # fmt: skip

# A function of the same meaning, in recorded steps, runs instead of NumPy's.
INSTEAD_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {k: v for family in FAMILIES for k, v in family.instead.items()}

# Of INSTEAD_FUNCTIONS, those that call a function of the user, which may bring nodes that are not among the arguments.
CALLING_FUNCTIONS: frozenset[Any] = frozenset({np.piecewise, np.apply_along_axis, np.apply_over_axes})

# Of COMPOSED_FUNCTIONS, those that take a sequence of arrays.
STACKING_FUNCTIONS: frozenset[Any] = frozenset({np.vstack, np.hstack, np.dstack, np.column_stack})

# They ask about an array, print it or save it; the answer is no part of the graph.
PLAIN_FUNCTIONS: frozenset[Any] = frozenset(
    {
        np.array2string, np.array_repr, np.array_str, np.shape, np.ndim, np.size, np.result_type, np.can_cast,
        np.common_type, np.min_scalar_type, np.iscomplexobj, np.isrealobj, np.may_share_memory, np.shares_memory,
        np.save, np.savetxt, np.savez, np.savez_compressed, np.allclose, np.array_equal, np.array_equiv,
        np.einsum_path,
    }.union(*[family.plain for family in FAMILIES])
)  # fmt: skip

# Of PLAIN_FUNCTIONS, those whose answer is indices that depend on the shape of their operand alone.
INDICES_OF_SHAPE: frozenset[Any] = frozenset({np.diag_indices_from, np.tril_indices_from, np.triu_indices_from})

# They give a view where the strides of the array allow one, else a copy.
VIEWS_IF_THEY_CAN: frozenset[Any] = frozenset({np.reshape, np.ravel})

# They write into their first argument.
WRITING_FUNCTIONS: frozenset[Any] = frozenset({np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal})

# They raise a TypeError that says what to use instead.
REFUSED_FUNCTIONS: dict[Callable[..., Any], str] = {k: v for family in FAMILIES for k, v in family.refused.items()}

# --------------------------------------------------------------------------------------- array methods
# ndarray methods that are the NumPy function with the array as its first argument.

METHODS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "var": np.var,
    "std": np.std,
    "dot": np.dot,
    "ravel": np.ravel,
    "squeeze": np.squeeze,
    "swapaxes": np.swapaxes,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "argsort": np.argsort,
    "all": np.all,
    "any": np.any,
    "round": np.round,
    "nonzero": np.nonzero,
    "searchsorted": np.searchsorted,
    **{k: v for family in FAMILIES for k, v in family.methods.items()},
}
# Methods that give plain values, as their names say.
PLAIN_METHODS = frozenset({"item", "tolist", "tobytes", "tofile", "dump", "dumps", "to_device"})
# Methods that write into the array.
WRITING_METHODS = frozenset({"fill", "put", "sort", "partition"})
REFUSED_METHODS: dict[str, str] = {
    "byteswap": "astype(x.dtype.newbyteorder()) makes a node of other byte order",
    "getfield": "x.real and x.imag give the parts of a complex node",
    "setfield": "make a new array instead",
    "resize": "np.resize makes a new node",
    "setflags": "flags of a node are its own affair; node.value is the plain array",
    "__array_wrap__": "a node is made by the operations on it",
    "__setstate__": "pickle.loads makes a new node",
}
# From NumPy 2.5 on there are methods for what was an assignment to an attribute.
_SETTERS = {"_set_shape": "np.reshape makes a new node", "_set_dtype": "astype and view make new nodes"}
REFUSED_METHODS |= {name: instead for name, instead in _SETTERS.items() if hasattr(np.ndarray, name)}


def _own_name(function: Any) -> str:
    """The name of a function; those of ``np.linalg`` and ``np.fft`` carry it as a prefix."""
    place = str(getattr(function, "__module__", "")).removeprefix("numpy").strip(".")
    return f"{place}_{function.__name__}" if place in ("linalg", "fft") else str(function.__name__)


SMOOTH_SPECIALS: dict[Callable[..., Any], str] = {
    getitem: "getitem",
    astype: "astype",
    view: "view",
    copy: "copy",
    flatten: "flatten",
    input_of: "input",
    added_at: "added_at",
    complex_sign: "complex_sign",
    stacked_matmul: "stacked_matmul",
    power: "pow",
    np.emath.power: "pow",
    einsum: "einsum",
    **{packed: f.__name__ for f, packed in PACKED_FUNCTIONS.items()},
}
# Functions whose arguments after the first are indices, which are not operands.
INDEXED: set[Any] = {getitem}
# Folds of piecewise ufuncs with two operands give integers or booleans, so they are piecewise too. Not floor_divide:
# its fold passes the first element on as it is.
_FOLDED = [f for f in PIECEWISE_UFUNCS - {np.floor_divide} if f.nin == 2]
PIECEWISE: set[Any] = {
    *PIECEWISE_UFUNCS,
    *PIECEWISE_FUNCTIONS,
    *[ufunc_method(f, method) for f in _FOLDED for method in ("reduce", "accumulate", "reduceat")],
    stop_gradient,
}
OPNAMES: dict[Any, str] = {
    **{f: _own_name(f) for f in (*SMOOTH_UFUNCS, *PIECEWISE_UFUNCS, *SMOOTH_FUNCTIONS, *PIECEWISE_FUNCTIONS)},
    **UFUNC_OPNAMES,
    **SMOOTH_SPECIALS,
    stop_gradient: "stop_gradient",
}

# Functions whose result's length depends on values of operands; for `_CHOOSING`, on integers and booleans alone.
COUNTING: frozenset[Any] = frozenset(
    {np.nonzero, np.flatnonzero, np.argwhere, np.bincount, np.histogram, np.histogram_bin_edges, np.linalg.lstsq, np.polymul,
     np.polydiv, np.roots, selection.unique}
)  # fmt: skip
_WHERE = np.where  # bound here, because the name in `np` is replaced within operators
_CHOOSING = frozenset({np.repeat, selection.delete, selection.insert})


def counts(function: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> bool:
    """Whether the shape of a result depends on the values of the operands at the positions `edges`, and not on shapes alone."""
    if function is getitem:  # a mask; how many elements integers choose follows from their shape
        return any(args[i].plain.dtype.kind == "b" for i in edges if i)
    if type(function) is Keyworded and function.counts:
        return True
    if function is _WHERE:
        return len(args) == 1
    if type(function) is FunctionType and kept(function, "opname") is not None:  # a user's primitive
        return True
    function = getattr(function, "function", function)
    return function in COUNTING or (function in _CHOOSING and any(args[i].plain.dtype.kind in "biu" for i in edges if i))


# Functions of several steps that an executor may record step by step, to share steps with other operations.
INLINED: set[Any] = set()
